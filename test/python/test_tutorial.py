"""The code of the tutorial and the guide, block by block."""

import pytest
from conftest import run_blocks

pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")


def test_guide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    count, names = run_blocks("python.md")
    assert count >= 10 and names["step"].steps == 8
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint.safetensors", "model.safetensors", "model.weir"}


def test_tutorial(tmp_path, monkeypatch):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed: scripts/setup --torch")
    monkeypatch.chdir(tmp_path)
    count, names = run_blocks("tutorial.md")
    losses = [float(loss) for loss in names["losses"]]
    assert count >= 8 and len(losses) == 150
    assert losses[0] > 2 and sum(losses[-10:]) / 10 < 0.3
    assert names["accuracy"] > 0.95
    assert names["scores"].shape == (297, 10)
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"losses.png", "digits.safetensors", "digits.weir", "digits_parameters.safetensors"}
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")
