"""Wheels that take minutes: the runtime from its sources, and the compiler."""

import os
import shutil
import sys

from conftest import ROOT, call
from test_wheels import RUN, Environment, make_wheel, wheel  # noqa: F401 (a fixture)


def test_runtime_from_sources_needs_no_llvm(tmp_path, artifact):
    """Builds with a PATH that has GCC and none of LLVM's programs."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in os.listdir("/usr/bin"):
        if not any(word in name for word in ("clang", "llvm", "mlir", "lld", "ccache")):
            (programs / name).symlink_to(f"/usr/bin/{name}")
    checkout = shutil.copytree(ROOT, tmp_path / "checkout", symlinks=True,
                               ignore=shutil.ignore_patterns("build", ".git"))
    call(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", checkout / "python",
         "-w", tmp_path / "wheels", PATH=str(programs))
    [made] = (tmp_path / "wheels").iterdir()
    assert "weir_runtime" in Environment(tmp_path / "environment", made).python("-c", RUN, artifact)


def test_compiler(tmp_path, wheel, artifact):  # noqa: F811
    environment = Environment(tmp_path / "environment", wheel, make_wheel(tmp_path, "python/compiler"))
    found = environment.python("-c", "import weir.locations; print(weir.locations.find_tool('weir'))").strip()
    assert found == str(environment.packages / "weir_compiler/native/bin/weir")
    libraries = call("ldd", found)
    assert f"{environment.packages}/weir_compiler" in libraries
    assert "/usr/lib/llvm" not in libraries
    call(environment.bin / "weir", "compile", ROOT / "examples/layer_norm.mlir", "-o", tmp_path / "a.weir")
    assert (tmp_path / "a.weir").read_bytes() == artifact.read_bytes()
    environment.python("-c", RUN, tmp_path / "a.weir")
