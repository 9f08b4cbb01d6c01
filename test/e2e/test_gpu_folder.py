"""The folder that `scripts/gpu-tests` makes of these tests runs without the compiler, and a wrong expectation in it is
noticed."""

import os
import shutil
import subprocess
import sys

import ptxas
import pytest

from conftest import BIN, ROOT

pytestmark = pytest.mark.skipif(not ptxas.PTXAS, reason="ptxas is missing: run scripts/setup")


def test_cases_run_elsewhere(tmp_path):
    cases = tmp_path / "cases"
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                    ROOT / "test/e2e/test_examples.py", "-k", "test_layer_norm"],
                   env=os.environ | {"WEIR_KEEP_CASES": str(cases)}, check=True)
    names = sorted(case.name for case in cases.iterdir())
    assert names == ["test_layer_norm-0", "test_layer_norm_vjp-0", "test_layer_norm_vjp-1"]

    (tmp_path / "lib").mkdir()
    (tmp_path / "benchmarks").mkdir()
    shutil.copy(BIN / "weir-device", tmp_path)
    shutil.copy(ROOT / "scripts/gpu-tests-run", tmp_path / "run")
    libraries = subprocess.run(["ldd", BIN / "weir-device"], capture_output=True, text=True).stdout
    for word in libraries.split():
        if word.startswith("/"):
            shutil.copy(word, tmp_path / "lib")
    (tmp_path / "copy.mlir").write_text(
        "func.func @copy(%x: tensor<8388608xf32>) -> tensor<8388608xf32> {\n  return %x : tensor<8388608xf32>\n}\n")
    subprocess.run([BIN / "weir", "compile", tmp_path / "copy.mlir", "-o", tmp_path / "copy.weir"], check=True)
    shutil.copy(cases / "test_layer_norm-0/a.weir", tmp_path / "benchmarks/layer_norm.weir")
    done = subprocess.run([tmp_path / "run", "vulkan"], capture_output=True, text=True)
    assert "3 cases passed, 0 failed on vulkan" in done.stdout, done.stdout + done.stderr
    assert "of a copy" in done.stdout and "predicted" not in done.stdout
    # Kernels stand beside what a model with subgroups of the same size says of them.
    done = subprocess.run([tmp_path / "run", "vulkan", "a770"], capture_output=True, text=True)
    assert done.returncode == 0 and "predicted  of measured" in done.stdout, done.stdout + done.stderr

    shutil.copy(cases / "test_layer_norm-0/expected.safetensors",
                cases / "test_layer_norm_vjp-0/expected.safetensors")
    done = subprocess.run([tmp_path / "run", "vulkan"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "FAILED test_layer_norm_vjp-0" in done.stdout
    assert "2 cases passed, 1 failed on vulkan" in done.stdout
