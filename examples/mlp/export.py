"""Exports the MLP of this folder from PyTorch: mlp.mlir, its inputs, what it should compute.

LayerNorm, Linear, GELU (exact), Linear, cross-entropy. Parameters stay
arguments, so that they can be given, differentiated and updated. The expected
values are PyTorch's in double, from the same single-precision inputs.

Needs the packages of requirements.txt. The outputs are committed: nobody has to
run this to build or test.
"""

import argparse
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn
from torch_mlir import fx
from torch_mlir.ir import ArrayAttr, DictAttr, StringAttr

ENTRY = "mlp_loss"
RESULTS = ["loss", "logits"]


class Mlp(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(self.norm(x))))


class Loss(nn.Module):
    """The loss as a function of the batch and of the parameters' values."""

    def __init__(self, model, names):
        super().__init__()
        self.call = lambda values, x: torch.func.functional_call(model, dict(zip(names, values)), (x,))

    def forward(self, x, target, *values):
        logits = self.call(values, x)
        return nn.functional.cross_entropy(logits, target), logits


def name_values(module, arguments):
    """Sets weir.name and weir.kind, which torch-mlir knows nothing of."""
    [function] = module.body.operations
    with module.context as context:
        context.allow_unregistered_dialects = True

        def attributes(**values):
            return DictAttr.get({f"weir.{key}": StringAttr.get(value) for key, value in values.items()})

        function.attributes["arg_attrs"] = ArrayAttr.get(
            [attributes(name=name, kind=kind) for name, kind in arguments]
        )
        function.attributes["res_attrs"] = ArrayAttr.get([attributes(name=name) for name in RESULTS])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--classes", type=int, default=10)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    model = Mlp(args.features, args.hidden, args.classes)
    with torch.no_grad():  # a fresh norm's weights are 1 and 0, which would hide mistakes
        model.norm.weight.uniform_(0.5, 1.5)
        model.norm.bias.uniform_(-0.5, 0.5)
    names = [name for name, _ in model.named_parameters()]
    values = [value.detach() for value in model.parameters()]
    x = torch.randn(args.batch, args.features)
    target = torch.randint(0, args.classes, (args.batch,))

    loss = Loss(model, names)
    module = fx.export_and_import(
        torch.export.export(loss, (x, target, *values)),
        output_type="linalg-on-tensors",
        func_name=ENTRY,
    )
    name_values(module, [("x", "input"), ("target", "target")] + [(name, "param") for name in names])
    (args.output / "mlp.mlir").write_text(module.operation.get_asm().rstrip() + "\n")

    inputs = {"x": x, "target": target, **dict(zip(names, values))}
    save_file(inputs, args.output / "inputs.safetensors")
    expected = loss(x.double(), target, *(value.double() for value in values))
    save_file(
        {name: value.detach().contiguous() for name, value in zip(RESULTS, expected)},
        args.output / "expected.safetensors",
    )


if __name__ == "__main__":
    main()
