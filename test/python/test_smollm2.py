"""The example that fine-tunes SmolLM2: its twin of 4 layers against PyTorch in f64, and the script as users call it."""

import copy
import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch
from conftest import ENVIRONMENT, ROOT

import weir

FOLDER = ROOT / "examples/smollm2"
sys.path.insert(0, str(FOLDER))
example = pytest.importorskip("model", reason="transformers is not installed")
MODES = [pytest.param("lora", marks=pytest.mark.skipif(
    not any((pathlib.Path(path) / "peft").is_dir() for path in sys.path), reason="peft is not installed")), "full"]


@pytest.mark.parametrize("mode", MODES)
def test_twin_is_pytorchs(mode):
    """20 steps of AdamW with clipping: loss and all trained parameters; the others are the same bytes."""
    module = example.make_model("twin", mode)
    reference = copy.deepcopy(module).double()
    trained = {name: value for name, value in reference.named_parameters() if value.requires_grad}
    assert all(("lora" in name) == (mode == "lora") for name in trained)
    optimizer = torch.optim.AdamW(trained.values(), lr=1e-3, eps=1e-5)
    text = example.Text(example.Bytes(), example.read_docs(), 32)
    ids, following = text.draw(2, seed=0)
    with weir.compile_step(module, example.compute_loss, example=(ids,), targets={"following": following},
                           optimizer=weir.AdamW(learning_rate=1e-3, epsilon=1e-5), clip_norm=1.0) as step:
        [entry] = step.entries.values()
        moments = [tensor.name for tensor in entry.arguments if tensor.name.endswith(".first_moment")]
        assert {name.removesuffix(".first_moment") for name in moments} == set(trained)
        for seed in range(20):
            ids, following = text.draw(2, seed)
            loss = float(step(ids, following=following))
            optimizer.zero_grad()
            expected = example.compute_loss(reference(ids), following)
            expected.backward()
            torch.nn.utils.clip_grad_norm_(trained.values(), 1.0)
            optimizer.step()
            assert loss == pytest.approx(expected.item(), rel=1e-4), seed
        values = step.state_dict()
    for name, value in reference.named_parameters():
        if name in trained:
            torch.testing.assert_close(values[name].double(), value.detach(), rtol=1e-3, atol=1e-4)
        else:
            assert torch.equal(values[name], module.state_dict()[name])


def test_the_script_trains_and_resumes(tmp_path):
    def train(*options):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", FOLDER / "train.py", "--size=twin", "--mode=full", "--sequence=32",
             "--batch=8", "--learning-rate=5e-3", "--device=cpu", *options],
            cwd=tmp_path, env={**ENVIRONMENT, "MPLCONFIGDIR": os.fspath(tmp_path)}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    printed = train("--steps=150", "--output=first")
    assert "before: loss" in printed and "step 150 of 150" in printed and "after:  loss" in printed
    losses = json.loads((tmp_path / "first/losses.json").read_text())
    assert len(losses) == 150 and sum(losses[-10:]) / 10 < 0.7 * losses[0]
    more = train("--steps=160", "--resume=first/trained.safetensors", "--output=second")
    assert "step 151 of 160" in more and len(json.loads((tmp_path / "second/losses.json").read_text())) == 10
    assert "step 2 of 2" in train("--steps=2", "--microbatches=2", "--memory-limit=4MB")
