"""LoRA, step by step: the plan with reuse, without, under a memory limit of 60 percent, and with backward in two passes
have the same bits after every step, and follow PyTorch's training in f64."""

import copy
import json
import zipfile

import numpy
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("transformers", reason="transformers is not installed: scripts/setup --torch")
pytest.importorskip("peft", reason="peft is not installed: scripts/setup --torch")

from model import Bytes, Text, make_model  # noqa: E402
from training import TEXT, Loss, SplitSteps, Steps, have_same_bits  # noqa: E402

import weir.torch  # noqa: E402

RATES = {"learning_rate": 2e-3, "weight_decay": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-3}
BOUND = 1e-4  # of losses, and of adapters by the norm of each: a single element may be near 0


def make_lora(size, sequence):
    """Returns a model with random weights, and a window of text. Its embedding is four times that of an untrained model,
    as large as training makes it: adapters alone could not halve the loss else."""
    module = Loss(make_model(size, "lora"))
    for name, value in module.named_parameters():
        if "embed" in name:
            value.data.mul_(4)
    ids, following = Text(Bytes(), TEXT, sequence).draw(1, seed=0)
    return module, {"ids": ids, "following": following}


def follow(make, steps, given):
    """Returns the loss and the adapters after each of some steps."""
    run, seen = make(), []
    for _ in range(steps):
        loss = run(**given)
        seen.append({"loss": loss} | run.read())
    return run, seen


def get_arena(steps):
    with zipfile.ZipFile(steps.path) as archive:
        [path] = [name for name in archive.namelist() if name.startswith("plan/")]
        return json.loads(archive.read(path))["arena_bytes"]


def follow_pytorch(module, steps, given):
    """Returns the same by PyTorch in f64."""
    reference = copy.deepcopy(module).double()
    trained = {name: value for name, value in reference.named_parameters() if value.requires_grad}
    optimizer = torch.optim.AdamW(trained.values(), lr=RATES["learning_rate"], weight_decay=RATES["weight_decay"],
                                  betas=(RATES["beta1"], RATES["beta2"]), eps=RATES["epsilon"])
    for _ in range(steps):
        optimizer.zero_grad()
        loss = reference(**given)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained.values(), 1.0)
        optimizer.step()
        yield {"loss": loss.detach().numpy().copy()} | {name: value.detach().numpy().copy() for name, value in trained.items()}


def compare(found, expected):
    """Returns the largest error of a loss, and of an adapter by its norm, over all steps."""
    worst = {"loss": 0.0, "adapters": 0.0}
    for step, values in enumerate(expected):
        for name, value in values.items():
            kind = "loss" if name == "loss" else "adapters"
            error = numpy.linalg.norm(found[step][name] - value) / numpy.linalg.norm(value)
            worst[kind] = max(worst[kind], error)
    return worst


@pytest.mark.parametrize("size, sequence, steps, device", [
    ("twin", 32, 6, "cpu"), ("twin", 32, 4, "vulkan"), pytest.param("135M", 128, 20, "cpu", marks=pytest.mark.full)])
def test_every_plan_has_the_same_bits(size, sequence, steps, device):
    module, given = make_lora(size, sequence)
    exported = weir.torch.export(module, given, keep_buffers=True)
    planned, expected = follow(lambda: Steps(exported, device, RATES, []), steps, given)
    limit = get_arena(planned) * 6 // 10
    ways = {"--no-reuse": (Steps, ["--no-reuse"]), "60%": (Steps, [f"--memory-limit={limit}"]),
            "split": (SplitSteps, [])}
    for way, (kind, options) in ways.items():
        run, found = follow(lambda: kind(exported, device, RATES, options), steps, given)
        if way == "60%":
            assert get_arena(run) <= limit
        for step in range(steps):
            for name, value in expected[step].items():
                assert have_same_bits(value, found[step][name]), f"{way}: {name} after step {step + 1}"
    worst = compare(expected, follow_pytorch(module, steps, given))
    losses = [float(values["loss"]) for values in expected]
    print(f"{size} on {device}, {steps} steps: the same bits in {1 + len(ways)} ways; loss {losses[0]:.4f} to "
          f"{losses[-1]:.4f}; errors {worst['loss']:.1e} of losses, {worst['adapters']:.1e} of adapters")
    assert max(worst.values()) < BOUND
    assert size == "twin" or losses[-1] < losses[0] / 2
