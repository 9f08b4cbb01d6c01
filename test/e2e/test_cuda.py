"""Examples and random graphs on a GPU, against the f64 reference. Skips where the
driver or a GPU is missing, saying which; nothing here has run on a GPU yet."""

import subprocess

import pytest

from conftest import BIN, ROOT
from graphs import make_graph

FOUND = subprocess.run([BIN / "weir", "devices", "--api=cuda"], capture_output=True, text=True)
pytestmark = pytest.mark.skipif(FOUND.returncode != 0, reason=FOUND.stderr.strip())


def check(weir, artifact, entry, tolerance):
    expected = weir.folder / "expected.safetensors"
    inputs = ["--random-inputs=1", *entry]
    weir.run("run", artifact, "--device=reference", "--f64", *inputs, f"--output={expected}")
    outputs = []
    for name in "first", "second":
        output = weir.folder / f"{name}.safetensors"
        weir.run("run", artifact, "--device=cuda", *inputs, f"--compare={expected}",
                 f"--tolerance={tolerance}", f"--output={output}")
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1], "two runs differ in bits"


@pytest.mark.parametrize("example", ["layer_norm.mlir", "layer_norm_vjp.mlir", "mlp/mlp.mlir"])
def test_example(weir, example):
    artifact = weir.compile(ROOT / "examples" / example, "a", "--target=cuda")
    check(weir, artifact, [], 1e-5)


@pytest.mark.parametrize("seed", range(40))
def test_random_graph(weir, seed):
    artifact = weir.compile_text(make_graph(seed), "a", "--target=cuda")
    check(weir, artifact, [], 1e-4)
