"""Trains the MLP of ../mlp with PyTorch in double: expected.json, what train.py compares with.

Needs the packages of ../mlp/requirements.txt but torch-mlir. The output is committed:
nobody has to run this to build or test.
"""

import json
import pathlib

import torch
from safetensors.torch import load_file
from torch.nn import functional

FOLDER = pathlib.Path(__file__).parent
CHECKPOINTS = [1, 2, 5, 10, 20]  # steps after which values are kept
SAMPLES = 48  # elements of each parameter that are kept, evenly spaced
OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"learning_rate": 0.1, "weight_decay": 0.001}),
    "adamw": (
        torch.optim.AdamW,
        {"learning_rate": 0.001, "weight_decay": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    ),
}


def loss_of(values):
    x = functional.layer_norm(values["x"], values["norm.weight"].shape, values["norm.weight"], values["norm.bias"])
    x = functional.gelu(functional.linear(x, values["up.weight"], values["up.bias"]))
    logits = functional.linear(x, values["down.weight"], values["down.bias"])
    return functional.cross_entropy(logits, values["target"])


def train(make, rates):
    # Weir is given its hyperparameters in single precision.
    rates = {name: torch.tensor(rate, dtype=torch.float32).item() for name, rate in rates.items()}
    options = {"lr": rates["learning_rate"], "weight_decay": rates["weight_decay"]}
    if "beta1" in rates:
        options |= {"betas": (rates["beta1"], rates["beta2"]), "eps": rates["epsilon"]}
    values = load_file(FOLDER.parent / "mlp/inputs.safetensors")
    values = {name: value.double() if value.is_floating_point() else value for name, value in values.items()}
    parameters = {name: value.requires_grad_() for name, value in values.items() if name not in ("x", "target")}
    optimizer = make(parameters.values(), **options)
    kept = {}
    for step in range(1, max(CHECKPOINTS) + 1):
        optimizer.zero_grad()
        loss = loss_of(values)
        loss.backward()
        optimizer.step()
        if step not in CHECKPOINTS:
            continue
        kept[step] = {"loss": loss.item()}
        for name, value in parameters.items():
            flat = value.detach().flatten()
            places = [i * (len(flat) - 1) // (SAMPLES - 1) for i in range(SAMPLES)]
            kept[step][name] = {"largest": flat.abs().max().item(), "values": flat[places].tolist()}
    return kept


def main():
    expected = {name: {"hyperparameters": rates, "after": train(make, rates)}
                for name, (make, rates) in OPTIMIZERS.items()}
    (FOLDER / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
