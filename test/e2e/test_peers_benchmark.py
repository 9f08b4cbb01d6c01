"""benchmarks/peers: its cases are right in f64, Weir and PyTorch compute them, and what does not work is named."""

import dataclasses
import json
import re
import subprocess
import sys

import numpy
import pytest
from conftest import BIN, ROOT

FOLDER = ROOT / "benchmarks/peers"
sys.path.insert(0, str(FOLDER))
import cases  # noqa: E402
import whole_models  # noqa: E402
import with_weir  # noqa: E402
import worker  # noqa: E402

TINY = {
    **{kind: {"rows": 5, "columns": 7} for kind in ("copy", *cases.ROW_KINDS)},
    "product": {"m": 5, "k": 6, "n": 7, "batch": (3,)},
    "product_bt": {"m": 5, "k": 6, "n": 7, "batch": (3,)},
    "mlp": {"rows": 5, "width": 6, "hidden": 7},
    "mlp_step": {"layers": 4, "rows": 5, "width": 6},
    "add_one": {"count": 5},
    "chains": {"chains": 1, "length": 3, "size": 4},
    "llama": dict(layers=2, hidden=16, heads=4, kv_heads=2, intermediate=12, vocabulary=20, sequence=6, batch=2,
                  tied=True),
    "gpt2": dict(layers=2, hidden=16, heads=4, vocabulary=20, sequence=6, batch=2),
    "resnet": dict(layers=18, width=4, stages=2, classes=5, resolution=32, batch=2),
}


def make_tiny(kind, **sizes):
    case = next(case for case in cases.CASES.values() if case.kind == kind)
    sizes = TINY[kind] | sizes
    donated = whole_models.list_parameters(kind, sizes) if case.is_model else case.donated
    return dataclasses.replace(case, sizes=sizes, donated=donated)


def compute(module, case, setting):
    """Returns the results of each step, one after the other, and facts."""
    run, read, facts = module.prepare(case, setting, {"weir": BIN / "weir", "threads": 1})
    results = []
    for _ in range(case.steps):
        run()
        results += read()
    return results, facts


def find_problem(module, case, setting):
    return case.find_problem(compute(module, case, setting)[0], case.get_expected())


def test_every_case_has_a_tiny_one():
    assert set(TINY) == {case.kind for case in cases.CASES.values()} == set(cases.INPUTS)
    assert set(TINY) - set(whole_models.SIZES) == set(cases.REFERENCES)


@pytest.mark.parametrize("kind", [kind for kind in TINY if kind not in whole_models.SIZES])
def test_weir_computes(kind):
    assert find_problem(with_weir, make_tiny(kind), "vulkan") is None


@pytest.mark.parametrize("kind", whole_models.SIZES)
def test_weir_trains_as_pytorch(kind):
    pytest.importorskip("torch")
    import with_torch

    case = make_tiny(kind)
    losses, facts = compute(with_weir, case, "cpu:native")
    assert facts["compile_seconds"] > 0 and 1000 < facts["code_bytes"] < facts["artifact_bytes"]
    expected, _ = compute(with_torch, case, "eager")
    assert len(losses) == whole_models.STEPS and losses[0] != losses[-1]
    assert case.find_problem(losses, expected) is None
    # A step that updates nothing is found.
    problem = case.find_problem([losses[0]] * whole_models.STEPS, expected)
    assert problem and problem.startswith("loss is off by")


@pytest.mark.parametrize("kind", whole_models.SIZES)
def test_pytorch_trains_as_jax(kind):
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    import with_jax
    import with_torch

    case = make_tiny(kind)
    expected, _ = compute(with_torch, case, "eager")
    losses, facts = compute(with_jax, case, "default")
    assert case.find_problem(losses, expected) is None and facts["compile_seconds"] > 0


@pytest.mark.parametrize("kind", [kind for kind in TINY if kind not in whole_models.SIZES])
def test_pytorch_computes(kind):
    pytest.importorskip("torch")
    import with_torch

    assert find_problem(with_torch, make_tiny(kind), "eager") is None


@pytest.mark.parametrize("kind", ["product", "product_bt"])
def test_products_without_a_batch(kind):
    assert find_problem(with_weir, make_tiny(kind, batch=()), "vulkan") is None


def test_a_wrong_result_is_found():
    case = make_tiny("rms_norm_vjp")
    right = case.get_expected()
    assert case.find_problem(right, right) is None
    assert case.find_problem([right[0], right[1] * 1.001], right).startswith("dgamma is off by 1.0e-03")
    assert case.find_problem([right[0], right[1] * numpy.nan], right).startswith("dgamma is off by nan")
    assert case.find_problem([right[0].T, right[1]], right) == "dx has shape (7, 5), not (5, 7)"


def run(*arguments, python=(sys.executable,)):
    return subprocess.run([*python, FOLDER / "run.py", f"--weir={BIN / 'weir'}", *map(str, arguments)],
                          capture_output=True, text=True)


def test_run_measures_and_draws(tmp_path):
    pytest.importorskip("torch")
    done = run("--only=^(call|product-64)", "--contenders=Vulkan|^PyTorch", "--rounds=2", "--seconds=0.001",
               f"--json={tmp_path / 'a.json'}", f"--plot={tmp_path / 'a.svg'}", "--threads=1")
    assert done.returncode == 0, done.stderr
    seen = json.loads((tmp_path / "a.json").read_text())
    assert [row["case"] for row in seen["cases"]] == ["product-64x576x1536", "call-1024"]
    for row in seen["cases"]:
        assert row["threads"] == 1 and set(row["seconds"]) == {"Weir Vulkan", "PyTorch"}
        assert row["best_peer"] == "PyTorch"
        assert row["ratios"]["Weir Vulkan"] == row["seconds"]["PyTorch"] / row["seconds"]["Weir Vulkan"]
    table = [line for line in done.stdout.split("\n") if line.startswith("|")]
    assert table[0] == "|  | Weir Vulkan | ratio | best peer | PyTorch |" and len(table) == 4
    assert "Weir Vulkan, small: geomean" in done.stdout
    if (tmp_path / "a.svg").exists():
        assert "<svg" in (tmp_path / "a.svg").read_text()
    else:
        assert "--plot is skipped: install matplotlib" in done.stderr


def test_models_have_processes_of_their_own(tmp_path):
    pytest.importorskip("torch")
    done = run("--only=^gpt2", "--contenders=CPU|^PyTorch", "--rounds=1", "--seconds=0.001", "--threads=1",
               f"--json={tmp_path / 'a.json'}")
    assert done.returncode == 0, done.stderr
    [row] = json.loads((tmp_path / "a.json").read_text())["cases"]
    assert row["reference"] == "PyTorch, eager" and len(row["losses"]) == whole_models.STEPS
    [[target, facts]] = row["facts"]["Weir CPU"].items()
    assert target == "cpu:native" and facts["peak_bytes"] > 1 << 20 and facts["compile_seconds"] > 0
    lines = [line for line in done.stdout.split("\n") if line.startswith("| gpt2-step | Weir CPU | cpu:")]
    assert len(lines) == 1 and re.search(r"\| \d+ \| \d+\.\d \| \d+ \|$", lines[0])


def test_who_is_missing_is_named():
    # Only NumPy is left of what is installed.
    hide = "import runpy, sys; sys.argv = sys.argv[1:]; sys.modules |= dict.fromkeys(['torch', 'onnxruntime']); " \
           f"sys.path.insert(0, {str(FOLDER)!r}); runpy.run_path(sys.argv[0], run_name='__main__')"
    done = run("--only=^call", "--contenders=^PyTorch|onnx", python=(sys.executable, "-c", hide))
    assert re.search("^PyTorch is skipped: install torch$", done.stderr, re.M)
    assert re.search("^onnxruntime is skipped: install (onnx and )?onnxruntime$", done.stderr, re.M)
    done = run("--only=^call", "--contenders=Weir", "--weir=/nowhere/weir")
    assert "Weir Vulkan is skipped: there is no program /nowhere/weir" in done.stderr


def test_what_fails_is_named(tmp_path):
    failing = tmp_path / "weir"
    failing.write_text("#!/bin/sh\necho 'out of luck' >&2\nexit 1\n")
    failing.chmod(0o755)
    done = run("--only=^call", "--contenders=Vulkan", f"--weir={failing}")
    assert done.returncode == 1
    assert "call-1024: Weir Vulkan is skipped: vulkan: RuntimeError: out of luck" in done.stderr
    assert run("--only=nothing").returncode == 2


def test_a_process_that_dies_or_hangs_is_reported(tmp_path, monkeypatch):
    (tmp_path / "dying.py").write_text(
        "import os, time\n"
        "def list_settings(case, argument):\n"
        "    time.sleep(60) if case == 'hang' else os._exit(3)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    for case, problem in {"die": "its process ended with status 3", "hang": "takes longer than 5 s"}.items():
        each = worker.Worker("dying", "", {"threads": 1}, limit=60)
        each.limit = 60 if case == "die" else 5
        with pytest.raises(worker.Failure, match=problem):
            each.ask("list", case)
        assert not each.is_alive()
    with pytest.raises(worker.Failure, match="No module named 'no_such_module'"):
        worker.Worker("no_such_module", "", {"threads": 1}, limit=60)
