"""An installed Weir works wherever its prefix is moved to."""

import re
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT, call


def install(folder, *components):
    """Installs into a prefix and moves it; returns where it is then."""
    for component in components:
        call("cmake", "--install", BUILD, "--prefix", folder / "first", "--component", component)
    return (folder / "first").rename(folder / "moved")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return install(tmp_path_factory.mktemp("prefix"), "runtime", "development")


@pytest.fixture
def example(tmp_path):
    """A copy of the example in C, outside of the tree."""
    return shutil.copytree(ROOT / "examples/host_c", tmp_path / "host_c")


def run_example(program, artifact, **environment):
    printed = call(program, artifact, "layer_norm", **environment)
    assert "checksum" in printed
    return printed


def test_example_by_cmake_and_by_pkg_config(prefix, example, artifact):
    expected = run_example(BUILD / "bin/host_c", artifact)

    build = example / "build"
    call("cmake", "-S", example, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", build)
    assert run_example(build / "host_c", artifact) == expected

    packages = {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    assert call("pkg-config", "--modversion", "weir", **packages) == "0.1.0\n"
    flags = call("pkg-config", "--cflags", "--libs", "weir", **packages).split()
    call("cc", "main.c", "-o", "by_hand", *flags, folder=example)
    assert run_example(example / "by_hand", artifact, LD_LIBRARY_PATH=str(prefix / "lib")) == expected


def test_example_needs_the_package_and_its_version(prefix, example):
    build = example / "build"
    said = call("cmake", "-S", example, "-B", build, status=1)
    assert "WeirConfig.cmake" in said

    file = example / "CMakeLists.txt"
    file.write_text(file.read_text().replace("Weir 0.1 ", "Weir 0.2 "))
    said = call("cmake", "-S", example, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", status=1)
    assert "version: 0.1.0" in said


def test_prefix_names_neither_itself_nor_the_build(prefix):
    places = [str(prefix.parent / "first"), str(BUILD), str(ROOT)]
    files = [path for path in prefix.rglob("*") if path.is_file()]
    assert {prefix / "bin/weir-device", prefix / "lib/pkgconfig/weir.pc"} <= set(files)
    for path in files:
        is_program = path.read_bytes()[:4] == b"\x7fELF"
        text = call("readelf", "-d", path) if is_program else path.read_text()
        assert [place for place in places if place in text] == [], path


def test_library_has_a_version(prefix):
    library = prefix / "lib/libweir_runtime.so"
    assert library.is_symlink()
    assert library.resolve().name == "libweir_runtime.so.0.1.0"
    assert "[libweir_runtime.so.0]" in call("readelf", "-d", library)


def test_headers_are_the_c_abi_alone(prefix):
    headers = prefix / "include"
    assert [str(path.relative_to(headers)) for path in headers.rglob("*") if path.is_file()] == ["weir/weir.h"]


def test_device_tool_and_audit_layer(prefix, artifact):
    layers = prefix / "share/vulkan/explicit_layer.d"
    done = subprocess.run([ROOT / "scripts/with-audit", prefix / "bin/weir-device", "run", artifact, "--random-inputs=1"],
                          env={"PATH": "/usr/bin:/bin", "WEIR_LIB": str(layers)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "0 missing" in done.stderr


def test_compiler(tmp_path):
    tools = install(tmp_path, "runtime", "compiler") / "bin"
    assert {path.name for path in tools.iterdir()} == {"weir", "weir-device", "weir-opt", "weir-lsp-server"}
    call(tools / "weir", "compile", ROOT / "examples/layer_norm.mlir", "-o", tmp_path / "a.weir")
    assert "norm.layer_norm" in call(tools / "weir-opt", ROOT / "examples/layer_norm.mlir")
    assert "libweir_runtime.so.0" in call("readelf", "-d", tools / "weir")
    assert str(BUILD) not in call("readelf", "-d", tools / "weir")


def test_runtime_configures_without_llvm(tmp_path):
    """Configures only; test_wheels_full.py builds."""
    call("cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path, "-DWEIR_COMPILER=OFF", CC="gcc", CXX="g++")
    rules = (tmp_path / "build.ninja").read_text()
    assert "weir-device" in rules
    assert not re.search(r"llvm|mlir|clang|weir-opt", rules.replace(str(tmp_path), ""))


def test_compiler_does_not_configure_with_gcc(tmp_path):
    said = call("cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path, status=1, CC="gcc", CXX="g++")
    assert "built with clang 22" in said and "-DWEIR_COMPILER=OFF" in said
