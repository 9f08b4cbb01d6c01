"""weir.locations: the library and programs, from the environment, the package, a checkout, the system."""


import pytest

from weir import locations


def make_program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A package, a checkout around it and a PATH, all empty."""
    monkeypatch.delenv("WEIR_RUNTIME", raising=False)
    monkeypatch.delenv("WEIR_BIN", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(locations, "PACKAGE", tmp_path / "python/weir")
    monkeypatch.setattr(locations, "BUILD", tmp_path / "build/release")
    (tmp_path / "CMakePresets.json").touch()
    return tmp_path


def test_library_of_the_package_then_of_the_checkout(places):
    assert locations.find_library() == "libweir_runtime.so.0"
    built = make_program(places / "build/release/lib/libweir_runtime.so.0")
    assert locations.find_library() == built
    installed = make_program(places / "python/weir/native/lib/libweir_runtime.so.0")
    assert locations.find_library() == installed


def test_library_that_the_environment_names_comes_first(places, monkeypatch):
    make_program(places / "python/weir/native/lib/libweir_runtime.so.0")
    monkeypatch.setenv("WEIR_RUNTIME", "/elsewhere/libweir_runtime.so")
    assert locations.find_library() == "/elsewhere/libweir_runtime.so"


def test_build_folder_beside_an_installed_package_is_not_used(places):
    make_program(places / "build/release/lib/libweir_runtime.so.0")
    (places / "CMakePresets.json").unlink()
    assert locations.find_library() == "libweir_runtime.so.0"


def test_tool_of_the_package_the_checkout_the_compiler_the_path(places, monkeypatch):
    on_path = make_program(places / "path/weir")
    assert locations.find_tool("weir") == on_path
    (places / "site/weir_compiler").mkdir(parents=True)
    (places / "site/weir_compiler/__init__.py").touch()
    monkeypatch.syspath_prepend(places / "site")
    compiler = make_program(places / "site/weir_compiler/native/bin/weir")
    assert locations.find_tool("weir") == compiler
    built = make_program(places / "build/release/bin/weir")
    assert locations.find_tool("weir") == built
    installed = make_program(places / "python/weir/native/bin/weir")
    assert locations.find_tool("weir") == installed


def test_tool_of_the_folder_that_the_environment_names(places, monkeypatch):
    make_program(places / "build/release/bin/weir")
    named = make_program(places / "named/weir")
    monkeypatch.setenv("WEIR_BIN", str(places / "named"))
    assert locations.find_tool("weir") == named
    with pytest.raises(FileNotFoundError, match="no program weir-opt in .*named, which WEIR_BIN names"):
        locations.find_tool("weir-opt")


def test_missing_tool_says_how_to_get_it(places):
    with pytest.raises(FileNotFoundError, match=r"the program weir is not found; install weir\[compiler\], build it"):
        locations.find_tool("weir")
    with pytest.raises(FileNotFoundError, match="install the package weir, build it"):
        locations.find_tool("weir-device")
