"""The error of weir.torch where it cannot run."""


def test_missing_package_is_named(python):
    done = python("-c", "import sys; sys.modules['torch'] = None; import weir.torch")
    assert done.returncode == 1
    assert "weir.torch needs the package torch" in done.stderr
    assert "scripts/python-torch-packages.txt" in done.stderr


def test_weir_alone_needs_nothing(python):
    assert python("-S", "-c", "import weir").returncode == 0
