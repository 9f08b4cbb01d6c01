"""Shared by the tests of what is installed: commands, and an artifact that this build compiled."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEIR_BUILD", ROOT / "build/release"))
# Nothing of the checkout is found by accident.
CLEAN = {name: value for name, value in os.environ.items() if name not in
         ("WEIR_BIN", "WEIR_RUNTIME", "PYTHONPATH", "LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH")}


def call(*command, folder=None, status=0, **environment):
    """Runs a command; returns its standard output, or its standard error where it must fail."""
    done = subprocess.run([str(word) for word in command], cwd=folder, env=CLEAN | environment,
                          capture_output=True, text=True)
    assert done.returncode == status, f"{command}\n{done.stdout}{done.stderr}"
    return done.stderr if status else done.stdout


@pytest.fixture(scope="session")
def artifact(tmp_path_factory):
    path = tmp_path_factory.mktemp("artifact") / "layer_norm.weir"
    call(BUILD / "bin/weir", "compile", ROOT / "examples/layer_norm.mlir", "-o", path)
    return path
