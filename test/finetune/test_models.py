"""Models of transformers, unchanged and in training mode: some steps beside PyTorch's in f64."""

import importlib.util
import pathlib

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("transformers", reason="transformers is not installed: scripts/setup --torch")

PATH = pathlib.Path(__file__).resolve().parents[2] / "benchmarks/huggingface/run.py"
spec = importlib.util.spec_from_file_location("huggingface", PATH)
huggingface = importlib.util.module_from_spec(spec)
spec.loader.exec_module(huggingface)


@pytest.mark.parametrize("name, steps", [
    ("bert", 3), ("resnet18", 3), *(pytest.param(name, 20, marks=pytest.mark.full) for name in huggingface.KINDS)])
def test_steps_are_pytorchs(name, steps):
    row = huggingface.check(name, steps)
    assert row["state"] == "right", row
    print(f"{name}, {steps} steps: {row['loss_error']:.1e} of losses, {row['error']:.1e} of {row['where']}")
