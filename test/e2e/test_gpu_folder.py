"""The folder that `scripts/gpu-tests` makes of these tests runs without the compiler, beside PyTorch where it is; wrong
expectations, accepted mutants and benchmarks that disagree with PyTorch are noticed."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

import ptxas
import pytest

from conftest import BIN, ROOT
import mutants  # behind conftest, which says where it is

pytestmark = pytest.mark.skipif(not ptxas.PTXAS, reason="ptxas is missing: run scripts/setup")
FAKE = BIN.parent / "test/fake-cuda"
HAS_TORCH = importlib.util.find_spec("torch") is not None


def run_tests(name, which, **environment):
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", ROOT / "test/e2e" / name, "-k",
                    which], env=os.environ | environment, check=True)


def make_folder(folder):
    """Makes the folder as `scripts/gpu-tests` does, of few tests and small benchmarks."""
    run_tests("test_examples.py", "test_layer_norm", WEIR_KEEP_CASES=str(folder / "cases"))
    for part in ("lib", "peers"):
        (folder / part).mkdir()
    shutil.copy(BIN / "weir-device", folder)
    shutil.copy(ROOT / "scripts/gpu-tests-run", folder / "run")
    shutil.copy(ROOT / "scripts/gpu-tests-run-case", folder / "run-case")
    shutil.copy(ROOT / "scripts/gpu-tests-weir", folder / "weir")
    shutil.copy(ROOT / "benchmarks/gpu/beside_torch.py", folder)
    for name in ("peers/cases", "peers/whole_models", "peers/with_torch", "compile/graphs", "compile/torch_models"):
        shutil.copy(ROOT / f"benchmarks/{name}.py", folder / "peers")
    libraries = subprocess.run(["ldd", BIN / "weir-device"], capture_output=True, text=True).stdout
    for word in libraries.split():
        if word.startswith("/"):
            shutil.copy(word, folder / "lib")
    (folder / "copy.mlir").write_text(
        "func.func @copy(%x: tensor<8388608xf32>) -> tensor<8388608xf32> {\n  return %x : tensor<8388608xf32>\n}\n")
    subprocess.run([BIN / "weir", "compile", folder / "copy.mlir", "-o", folder / "copy.weir", "--target=vulkan,cuda"],
                   check=True)
    subprocess.run([sys.executable, ROOT / "benchmarks/gpu/gather.py", folder / "benchmarks", "--small",
                    "--targets=vulkan,cuda", f"--weir={BIN / 'weir'}",
                    "--only=^(layer_norm_vjp.*bf16|cross_entropy-.*f32|product-128-tf32)$"], check=True)


def run_folder(folder, *arguments, python="false"):
    return subprocess.run([folder / "run", *arguments], capture_output=True, text=True,
                          env=os.environ | {"PYTHON": python})


def test_cases_run_elsewhere(tmp_path, monkeypatch):
    make_folder(tmp_path)
    cases = tmp_path / "cases"
    names = sorted(case.name for case in cases.iterdir())
    tests = ("test_layer_norm-0", "test_layer_norm_vjp-0", "test_layer_norm_vjp-1")
    assert names == [f"{test}-{target}" for test in tests for target in ("cuda", "sm_90a")]
    (tmp_path / "benchmarks/product-128-tf32.weir").unlink()  # Vulkan has no tf32
    done = run_folder(tmp_path, "vulkan")
    assert "3 cases passed, 0 failed on vulkan" in done.stdout, done.stdout + done.stderr
    assert "of a copy" in done.stdout and "predicted" not in done.stdout
    # Kernels stand beside what a model with subgroups of the same size says of them.
    done = run_folder(tmp_path, "vulkan", "a770")
    assert done.returncode == 0 and re.search("predicted +of measured", done.stdout), done.stdout + done.stderr
    assert "0 mutants refused, 0 accepted" in done.stdout

    monkeypatch.setattr(mutants, "KEEP", tmp_path / "mutants")
    small = tmp_path / "small.mlir"
    small.write_text((ROOT / "examples/layer_norm_vjp.mlir").read_text().replace("512x1024", "6x300").replace(
        "<1024x", "<300x"))
    subprocess.run([BIN / "weir", "compile", small, "-o", tmp_path / "small.weir", "--target=cuda"], check=True)
    judged = mutants.judge(BIN, tmp_path / "small.weir", tmp_path, most=1)
    kept = list((tmp_path / "mutants").iterdir())
    assert len(kept) == sum(mutant.is_of != "equivalent" for mutant in judged) > 5
    shutil.copy(cases / "test_layer_norm-0-cuda/a.weir", tmp_path / "mutants/sound.weir")
    shutil.copy(cases / "test_layer_norm-0-cuda/expected.safetensors",
                cases / "test_layer_norm_vjp-0-cuda/expected.safetensors")
    done = run_folder(tmp_path, "vulkan")
    assert done.returncode == 1
    assert "FAILED test_layer_norm_vjp-0-cuda" in done.stdout
    assert "2 cases passed, 1 failed on vulkan" in done.stdout
    assert f"{len(kept)} mutants refused, 1 accepted by weir verify" in done.stdout
    assert "FAILED mutants/sound.weir: the verifier must refuse it" in done.stdout


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed: scripts/setup --torch")
def test_benchmarks_stand_beside_torch(tmp_path):
    make_folder(tmp_path)
    benchmarks = tmp_path / "benchmarks"
    shutil.rmtree(tmp_path / "cases")
    (tmp_path / "cases").mkdir()

    def measure(*arguments, **environment):
        done = subprocess.run([sys.executable, tmp_path / "beside_torch.py", benchmarks, "--rounds=1",
                               f"--weir={tmp_path / 'weir'}", f"--copy={tmp_path / 'copy.weir'}", *arguments],
                              capture_output=True, text=True, env=os.environ | environment)
        assert done.stdout.endswith("\n") and not done.stderr.startswith("Traceback"), done.stdout + done.stderr
        return done, json.loads((benchmarks / "results.json").read_text())["benchmarks"]

    # Results are PyTorch's, on a device that computes.
    done, results = measure("--device=vulkan", "--model=a770", "--only=norm|entropy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [result["name"] for result in results] == ["layer_norm_vjp-64x256-bf16", "cross_entropy-64x256-f32"]
    for result in results:
        for name in "", "queued_", "predicted_", "eager_", "compiled_", "copy_":
            assert result[f"{name}seconds"] > 0, result
        assert all(kernel["seconds"] > 0 and kernel["predicted_seconds"] > 0 for kernel in result["kernels"])
    assert results[0]["bytes"] == 3 * 64 * 256 * 2 + 3 * 256 * 2
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("|")]
    assert len(rows) == 4 + sum(len(result["kernels"]) for result in results) and {len(row) for row in rows} == {13}

    # On the driver that records calls, of a GPU whose model is known; it computes nothing.
    done, results = measure("--device=cuda", "--model=h100", "--unchecked", "--only=product", LD_LIBRARY_PATH=str(FAKE))
    assert done.returncode == 0, done.stdout + done.stderr
    assert [result["name"] for result in results] == ["product-128-tf32"] and results[0]["predicted_seconds"] > 0
    done, results = measure("--device=cuda", "--only=entropy", LD_LIBRARY_PATH=str(FAKE))
    assert done.returncode == 1 and "FAILED cross_entropy-64x256-f32: loss differs from PyTorch's by" in done.stdout
    assert "loss differs" in results[0]["problem"]
