"""Training steps on Vulkan against NumPy's in f64, on gradients of the reference; where
values lie, and what is updated in place."""

import re
import subprocess
import sys

import numpy
import pytest
from conftest import BIN
from models import Model
from safetensors.numpy import load_file, save_file

RATES = {"sgd": {"learning_rate": 0.1, "weight_decay": 0.02},
         "momentum": {"learning_rate": 0.1, "momentum": 0.8, "weight_decay": 0.02},
         # A gradient of nothing but rounding has a direction where epsilon is tiny.
         "adamw": {"learning_rate": 0.05, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-3},
         "adam": {"learning_rate": 0.05, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-3},
         "lion": {"learning_rate": 0.05, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.99}}
STATES = {"sgd": [], "momentum": ["momentum"], "adamw": ["first_moment", "second_moment"],
          "adam": ["first_moment", "second_moment"], "lion": ["momentum"]}


def update(optimizer, rates, values, gradients):
    """PyTorch's formulas: `values`, parameters and state by name, after one step."""
    rate, decay, new = rates["learning_rate"], rates["weight_decay"], {}
    if optimizer in ("adam", "adamw"):
        new["step"] = step = values["step"] + 1
    for name, g in gradients.items():
        p = values[name]
        if optimizer == "sgd":
            new[name] = p - rate * (g + decay * p)
        elif optimizer == "momentum":
            v = new[f"{name}.momentum"] = rates["momentum"] * values[f"{name}.momentum"] + g + decay * p
            new[name] = p - rate * v
        elif optimizer == "lion":
            m = values[f"{name}.momentum"]
            p_change = numpy.sign(rates["beta1"] * m + (1 - rates["beta1"]) * g) + decay * p
            new[f"{name}.momentum"] = rates["beta2"] * m + (1 - rates["beta2"]) * g
            new[name] = p - rate * p_change
        else:
            if optimizer == "adam":
                g, decay = g + decay * p, 0
            m = new[f"{name}.first_moment"] = (rates["beta1"] * values[f"{name}.first_moment"]
                                               + (1 - rates["beta1"]) * g)
            v = new[f"{name}.second_moment"] = (rates["beta2"] * values[f"{name}.second_moment"]
                                                + (1 - rates["beta2"]) * g * g)
            root = numpy.sqrt(v) / numpy.sqrt(1 - rates["beta2"]**step) + rates["epsilon"]
            new[name] = p - rate * decay * p - rate / (1 - rates["beta1"]**step) * m / root
    return new


def save(path, tensors, dtype):
    save_file({name: numpy.asarray(value, dtype, order="C") for name, value in tensors.items()}, path)


def make_inputs(model, optimizer, seed):
    random = numpy.random.default_rng(seed)
    inputs = {"x": random.standard_normal((model.batch, model.features)), "t": random.standard_normal(model.shape)}
    for name, shape in model.parameters.items():
        inputs[name] = random.standard_normal(shape) * max(shape[0], 1) ** -0.5
        for state in STATES[optimizer]:
            value = 0.1 * random.standard_normal(shape)
            inputs[f"{name}.{state}"] = value**2 if state == "second_moment" else value
    if optimizer in ("adam", "adamw"):
        inputs["step"] = numpy.array(3.0)
    inputs |= {name: numpy.array(rate) for name, rate in RATES[optimizer].items()}
    return {name: value.astype(numpy.float32) for name, value in inputs.items()}


def expect(weir, model, optimizer, inputs, steps):
    """The results of so many steps in f64."""
    artifact = weir.compile_text(model.text(), "gradients", "--grad=f", "--entry=f.grad", "--target=vulkan")
    values = {name: value.astype(numpy.float64) for name, value in inputs.items()}
    rates = {name: values[name] for name in RATES[optimizer]}
    for _ in range(steps):
        save(weir.folder / "at.safetensors", {name: values[name] for name in ["x", "t", *model.parameters]},
             numpy.float64)
        weir.run("run", artifact, "--device=reference", "--f64", "--input=at.safetensors",
                 "--output=gradients.safetensors")
        found = load_file(weir.folder / "gradients.safetensors")
        new = update(optimizer, rates, values, {name: found[f"grad.{name}"] for name in model.parameters})
        values |= new
    return {"loss": found["loss"], "y": found["y"], **new}


def check(weir, model, optimizer, seed, steps):
    """Steps of `f` against NumPy's, pinned and planned; returns the planned artifact."""
    inputs = make_inputs(model, optimizer, seed)
    save(weir.folder / "inputs.safetensors", inputs, numpy.float32)
    save(weir.folder / "expected.safetensors", expect(weir, model, optimizer, inputs, steps), numpy.float64)
    outputs, artifacts = [], []
    for name, flag in ("planned", "--require-donation"), ("pinned", "--no-reuse"):
        artifacts.append(weir.compile_text(model.text(), name, f"--train={optimizer}:f", "--entry=f.step", flag))
        output = weir.folder / f"{name}.safetensors"
        weir.run("run", artifacts[-1], f"--steps={steps}", "--input=inputs.safetensors",
                 "--compare=expected.safetensors", "--tolerance=1e-4", f"--output={output}",
                 validated=name == "planned")
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1], "where values lie changed their bits"
    return artifacts[0]


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 9, 10, 11])
def test_random_models(weir, seed):
    check(weir, Model(seed), ["sgd", "momentum", "adamw"][seed % 3], seed, steps=3)


@pytest.mark.parametrize("optimizer, seed", [("adam", 2), ("lion", 4)])
def test_other_optimizers(weir, optimizer, seed):
    check(weir, Model(seed), optimizer, seed, steps=1 if optimizer == "lion" else 3)


def test_mlp_trains_like_pytorch(weir):
    """20 steps of the example, loss and parameters on the way; pinned the same bits."""
    outputs = []
    for name, flags in ("planned", []), ("pinned", ["--no-reuse"]):
        folder = weir.folder / name
        folder.mkdir()
        done = subprocess.run([sys.executable, weir.examples / "mlp_train/train.py", f"--weir={BIN / 'weir'}",
                               f"--output={folder}", *flags], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        outputs.append([(folder / f"{optimizer}.safetensors").read_bytes() for optimizer in ("sgd", "adamw")])
    assert outputs[0] == outputs[1], "where values lie changed their bits"


def test_wrong_trajectories_are_noticed(weir):
    """The comparison that the example makes, of values that are off."""
    sys.path.insert(0, str(weir.examples / "mlp_train"))
    from train import compare

    expected = {"loss": 2.0, "w": {"largest": 4.0, "values": [1.0, 4.0]}}
    assert compare({"loss": 2.0, "w": numpy.array([1.0, 3.0, 4.0])}, expected) == (0, 0)
    assert compare({"loss": 2.5, "w": numpy.array([1.0, 3.0, 3.0])}, expected) == (0.25, 0.25)


@pytest.mark.parametrize("isa", ["x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"])
def test_processors_update_in_place(weir, isa):
    """Sizes that no tile divides: what the last tile writes, no tile before it has written."""
    text = (weir.examples / "mlp/mlp.mlir").read_text()
    for hidden in 1024, 301:
        source = weir.folder / f"{hidden}.mlir"
        source.write_text(text.replace("1024", str(hidden)))
        weir.run("compile", source, "--train=adamw:mlp_loss", "--entry=mlp_loss.step", "--require-donation",
                 f"--target=cpu:{isa}", "-o", "a.weir")


@pytest.mark.parametrize("optimizer", STATES)
def test_updates_join_their_gradients(weir, optimizer):
    """No gradient of a weight is in memory; each update is in place and its own kernel's."""
    flags = [weir.examples / "mlp/mlp.mlir", f"--train={optimizer}:mlp_loss", "--entry=mlp_loss.step"]
    weir.run("compile", *flags, "--require-donation", "-o", "a.weir")
    seen = weir.inspect("a.weir")
    [plan], [entry] = seen["plans"], seen["entries"]
    updated = {tensor["name"] for tensor in entry["arguments"] if tensor.get("kind") in ("param", "state")}
    assert len(updated) == 6 * (1 + len(STATES[optimizer])) + (optimizer in ("adam", "adamw"))
    assert {donation["argument"]: donation["result"] for donation in plan["donations"]} == {n: n for n in updated}
    assert plan["arena_bytes"] < 1024 * 256 * 4, "room for the gradient of the largest weight"
    kernels = weir.run("compile", *flags, "--stop-after=kernels", "-o", "-")
    results = f":{1 + len(STATES[optimizer])}" if STATES[optimizer] else ""
    for weight in "1024x256x64", "10x1024x64":
        assert re.search(rf'%\d+{results} = schedule.kernel "contraction_{weight}"', kernels)
    assert "linalg.transpose" not in kernels
