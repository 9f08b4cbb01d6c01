"""The wheels, packed from this build, work in an environment of their own."""

import pathlib
import re
import sys
import tomllib
import zipfile

import numpy
import pytest

from conftest import BUILD, ROOT, call

RUN = """
import sys, numpy, weir.runtime
x = numpy.random.default_rng(0).normal(size=(8192, 1024)).astype(numpy.float32)
gamma, beta = numpy.full(1024, 2, numpy.float32), numpy.full(1024, 3, numpy.float32)
with weir.runtime.Program(sys.argv[1]) as program:
    y = program.run({"x": x, "gamma": gamma, "beta": beta})["y"]
mean, deviation = x.mean(1, keepdims=True), x.std(1, keepdims=True)
assert numpy.abs(y - ((x - mean) / deviation * 2 + 3)).max() < 1e-3
print([line.split()[-1] for line in open("/proc/self/maps") if "weir_runtime" in line or "libzip" in line])
"""


class Environment:
    """A virtual environment with NumPy of this one, and nothing else of it."""

    def __init__(self, folder, *wheels):
        self.folder = folder
        call(sys.executable, "-m", "venv", "--without-pip", folder)
        self.bin = folder / "bin"
        [self.packages] = folder.glob("lib/python*/site-packages")
        (self.packages / "numpy.pth").write_text(f"{pathlib.Path(numpy.__file__).parents[1]}\n")
        call(sys.executable, "-m", "pip", f"--python={self.bin / 'python'}", "install", "--no-deps", "--no-index", *wheels)

    def python(self, *arguments, status=0):
        return call(self.bin / "python", *arguments, folder=self.folder, status=status)


def make_wheel(folder, project):
    call(sys.executable, ROOT / "scripts/make-wheels.py", BUILD, folder, ROOT / project)
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return make_wheel(tmp_path_factory.mktemp("wheel"), "python")


@pytest.fixture
def environment(tmp_path, wheel):
    return Environment(tmp_path / "environment", wheel)


def test_runtime_is_small_and_for_every_python(wheel):
    assert re.fullmatch(r"weir-0\.1\.0-py3-none-manylinux_2_\d+_x86_64\.whl", wheel.name)
    assert wheel.stat().st_size < 9e6
    assert not any("LLVM" in name or "MLIR" in name for name in zipfile.ZipFile(wheel).namelist())


def test_bundled_libraries_have_notices(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    libraries = {name.split("/")[1].split("-")[0] for name in names if name.startswith("weir.libs/")}
    assert {"libzip", "libsimdjson"} <= libraries
    notices = {pathlib.PurePath(name).stem for name in names if "/licenses/" in name}
    assert {"LICENSE", "libzip4", "libsimdjson14", "libcli11-dev", "nlohmann-json3-dev", "spirv-tools"} <= notices


def test_runtime_runs_an_artifact(environment, artifact):
    mapped = environment.python("-c", RUN, artifact)
    site = str(environment.packages)
    assert f"{site}/weir/native/lib/libweir_runtime.so.0" in mapped
    assert f"{site}/weir.libs/libzip-" in mapped
    assert "/usr/lib" not in mapped
    call(environment.bin / "weir-device", "verify", artifact)


def test_runtime_without_its_library(environment, artifact):
    (environment.packages / "weir/native/lib/libweir_runtime.so.0").unlink()
    said = environment.python("-c", RUN, artifact, status=1)
    assert "set WEIR_RUNTIME to the path of libweir_runtime.so.0" in said


def test_compiler_is_an_extra(environment):
    said = environment.python("-c", "import weir.locations; weir.locations.find_tool('weir')", status=1)
    assert "install weir[compiler]" in said


def test_extras_are_what_the_scripts_install():
    project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())["project"]
    pinned = (ROOT / "scripts/python-torch-packages.txt").read_text().split()
    extras = project["optional-dependencies"]
    assert sorted(extras["torch"]) == sorted(pinned)
    pinned += (ROOT / "scripts/python-front-end-packages.txt").read_text().split()
    for name in ("jax", "onnx"):
        assert {*extras[name]} <= {*pinned} and any(one.startswith(f"{name}==") for one in extras[name])
    [version] = re.findall(r"project\(weir VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert extras["compiler"] == [f"weir-compiler=={version}"]
