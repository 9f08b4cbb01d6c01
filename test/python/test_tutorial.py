"""The tutorial's code, block by block."""

import re

import pytest
from conftest import ROOT

pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")
pytest.importorskip("sklearn", reason="scikit-learn is not installed: scripts/setup --torch")


def test_tutorial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/tutorial.md").read_text(), re.DOTALL)
    names = {"__name__": "tutorial"}
    for i, block in enumerate(blocks):
        exec(compile(block, f"tutorial.md, block {i}", "exec"), names)
    losses = [float(loss) for loss in names["losses"]]
    assert len(blocks) >= 8 and len(losses) == 150
    assert losses[0] > 2 and sum(losses[-10:]) / 10 < 0.3
    assert names["accuracy"] > 0.95
    assert names["scores"].shape == (297, 10)
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"losses.png", "digits.safetensors", "digits.weir", "digits_parameters.safetensors"}
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")
