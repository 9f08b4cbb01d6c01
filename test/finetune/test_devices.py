"""Training of the twin on the simulator and on Vulkan, bit by bit, and in 16 bits, beside PyTorch in f64."""

import copy
import json
import os
import subprocess

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("transformers", reason="transformers is not installed: scripts/setup --torch")

from model import Bytes, Text, compute_loss, make_model  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from training import TEXT  # noqa: E402

import weir.torch  # noqa: E402
from weir.locations import find_tool  # noqa: E402

RATES = {"learning_rate": 1e-3, "weight_decay": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-5}


def run_weir(*arguments):
    done = subprocess.run([find_tool("weir"), *map(os.fspath, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def draw(count):
    text = Text(Bytes(), TEXT, 32)
    return [text.draw(1, seed) for seed in range(count)]


def follow_pytorch(module, batches, optimizer, after=lambda reference: None):
    """Yields the loss of each step of PyTorch in f64, with gradients clipped by their norm."""
    trained = [value for value in module.parameters() if value.requires_grad]
    for ids, following in batches:
        optimizer.zero_grad()
        loss = compute_loss(module(ids), following)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        after(module)
        yield loss.item()


@pytest.mark.parametrize("mode, steps", [
    ("lora", 3), pytest.param("lora", 100, marks=pytest.mark.full), pytest.param("full", 100, marks=pytest.mark.full)])
def test_the_simulator_trains_as_vulkan_does(tmp_path, mode, steps):
    if mode == "lora":
        pytest.importorskip("peft", reason="peft is not installed: scripts/setup --torch")
    module, batches = make_model("twin", mode), draw(steps)
    exported = weir.torch.export(module, batches[0][:1], loss=compute_loss, targets={"following": batches[0][1]},
                                 keep_buffers=True)
    graph, start, artifact, folder = (tmp_path / name for name in ("g.mlir", "start.safetensors", "a.weir", "batches"))
    exported.save(graph, start)
    folder.mkdir()
    for number, (ids, following) in enumerate(batches):
        save_file({"ids": ids.clone(), "following": following.clone()}, folder / f"{number:03}.safetensors")
    run_weir("compile", graph, "--train=adamw:main", "--clip-norm", "--entry=main.step", "-o", artifact)
    settings = [f"--set={name}={value!r}" for name, value in ({"max_norm": 1.0} | RATES).items()]
    losses, outputs = {}, {}
    for device in "vulkan", "sim":
        output = tmp_path / f"{device}.safetensors"
        told = run_weir("run", artifact, f"--device={device}", f"--input={start}", f"--batches={folder}", "--json",
                        f"--steps={steps}", *settings, f"--output={output}")
        losses[device] = [step["results"]["loss"] for step in json.loads(told)["steps"]]
        outputs[device] = output.read_bytes()
    assert losses["vulkan"] == losses["sim"] and outputs["vulkan"] == outputs["sim"]

    reference = copy.deepcopy(module).double()
    trained = {name: value for name, value in reference.named_parameters() if value.requires_grad}
    optimizer = torch.optim.AdamW(trained.values(), lr=1e-3, eps=1e-5)
    expected = list(follow_pytorch(reference, batches, optimizer))
    values = load_file(tmp_path / "vulkan.safetensors")
    worst = max((values[name].double() - value).abs().max().item() / value.abs().max().item()
                for name, value in trained.items())
    apart = max(abs(loss - other) / other for loss, other in zip(losses["vulkan"], expected))
    print(f"{mode}, {steps} steps: loss {expected[0]:.4f} to {expected[-1]:.4f}; errors {apart:.1e} of losses, "
          f"{worst:.1e} of parameters")
    assert apart < 1e-4 and worst < 1e-3


@pytest.mark.parametrize("steps", [3, pytest.param(20, marks=pytest.mark.full)])
def test_sixteen_bits_with_masters(steps):
    """PyTorch has the parameters rounded to bfloat16 as Weir has them, and masters and arithmetic in f64."""
    module, [batch] = make_model("twin", "full").bfloat16(), draw(1)
    reference = copy.deepcopy(module).double()
    masters = {name: torch.nn.Parameter(value.detach().clone()) for name, value in reference.named_parameters()}
    optimizer = torch.optim.AdamW(masters.values(), lr=1e-3, eps=1e-5)
    with weir.compile_step(module, compute_loss, example=batch[:1], targets={"following": batch[1]}, clip_norm=1.0,
                           optimizer=weir.AdamW(learning_rate=1e-3, epsilon=1e-5)) as step:
        losses, errors = [], []
        for _ in range(steps):
            losses.append(float(step(batch[0], following=batch[1])))
            reference.zero_grad()
            loss = compute_loss(reference(batch[0]), batch[1])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(reference.parameters(), 1.0)
            for name, value in reference.named_parameters():
                masters[name].grad = value.grad
            optimizer.step()
            with torch.no_grad():
                for name, value in reference.named_parameters():
                    value.copy_(masters[name].bfloat16())
            errors.append(abs(losses[-1] - loss.item()) / loss.item())
        held = step._execution.read()
        values = step.state_dict()
    apart = max((torch.from_numpy(held[f"{name}.master"]).double() - value).abs().max().item() /
                value.abs().max().item() for name, value in masters.items())
    print(f"bfloat16, {steps} steps: loss {losses[0]:.4f} to {losses[-1]:.4f}; errors {max(errors):.1e} of losses, "
          f"{apart:.1e} of masters")
    for name in masters:
        assert torch.equal(values[name], torch.from_numpy(held[f"{name}.master"]).bfloat16()), name
    assert max(errors) < 2**-8 and losses[-1] < losses[0]
    assert apart < 0.05
