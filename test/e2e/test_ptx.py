"""PTX of every example and of the passes' own kernels, assembled. The PTX of all
other end-to-end graphs is assembled where they are compiled: see conftest.py."""

import re
import subprocess

import pytest

import ptxas
from conftest import BIN, ROOT

pytestmark = pytest.mark.skipif(not ptxas.PTXAS, reason="there is no ptxas; run scripts/setup")
EXAMPLES = sorted(ROOT.glob("examples/**/*.mlir"))


@pytest.mark.parametrize("gpu", ptxas.GPUS)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(weir, example, gpu):
    artifact = weir.folder / "a.weir"
    weir.run("compile", example, "-o", artifact, f"--target=vulkan,cuda:{gpu}")
    assert ptxas.assemble_artifact(artifact, weir.folder)
    weir.run("verify", artifact)


@pytest.mark.parametrize("gpu", ptxas.GPUS)
def test_kernels_of_the_pass(tmp_path, gpu):
    command = [BIN / "weir-opt", ROOT / "test/passes/emitted/emit-ptx.mlir", "-o", tmp_path / "ignored",
               f"--weir-set-profile=profile={gpu}", "--weir-emit-ptx", "--weir-print-ptx"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kernels = re.split("^// gpu.binary", text, flags=re.MULTILINE)[1:]
    assert len(kernels) > 10
    for kernel in kernels:
        ptxas.assemble("//" + kernel, tmp_path)


def test_unresolved_symbols_are_found(tmp_path):
    text = """.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) __nv_expf (.param .b32 a);
.visible .entry k() {
  .param .b32 a;
  .param .b32 r;
  call.uni (r), __nv_expf, (a);
  ret;
}
"""
    with pytest.raises(AssertionError, match="__nv_expf"):
        ptxas.assemble(text, tmp_path)
