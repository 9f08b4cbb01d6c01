"""Exports one module of KernelBench: export.py MODULE.py OUT_STEM [--full-size] [--values].

Writes OUT_STEM.json, which says what the export came to, and where there is a graph OUT_STEM.mlir; with --values also
what it takes, OUT_STEM.inputs.safetensors, and what PyTorch makes of that in f64, OUT_STEM.expected.safetensors: the
arguments and results of `main.vjp`, of which those of `main` are a part. "rounding" in OUT_STEM.json has the largest
error of PyTorch's own f32 in each result."""

import argparse
import ast
import contextlib
import copy
import functools
import inspect
import json
import pathlib
import sys
import time
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import weir.torch  # noqa: E402
from weir.torch import exporting  # noqa: E402

LARGEST = 32  # what a shrunk module has at most of anything


class Shrink(ast.NodeTransformer):
    """Replaces integers above LARGEST, but not those of classes: sizes, not what the model does."""

    def visit_ClassDef(self, node):
        return node

    def visit_Constant(self, node):
        if type(node.value) is not int or node.value <= LARGEST:
            return node
        # Odd sizes stay odd, and what groups of up to 32 divide still is.
        rest = node.value % LARGEST
        return ast.Constant(rest if rest > LARGEST // 2 else LARGEST // 2 + rest if rest else LARGEST)


def load(path, full_size):
    """Returns the module's model and its inputs by name, numbers bound to `forward`."""
    tree = ast.parse(path.read_text())
    if not full_size:
        tree = ast.fix_missing_locations(Shrink().visit(tree))
    names = {"__name__": path.stem}
    exec(compile(tree, str(path), "exec"), names)
    torch.manual_seed(0)
    given = names["get_init_inputs"]() if "get_init_inputs" in names else []
    model = names["Model"](*given).eval()
    inputs = inspect.signature(model.forward).bind(*names["get_inputs"]()).arguments
    numbers = {name: value for name, value in inputs.items() if not isinstance(value, torch.Tensor)}
    if numbers:
        model.forward = functools.partial(model.forward, **numbers)
    return model, {name: value for name, value in inputs.items() if name not in numbers}


def leave_values():
    """Makes random tensors memory that nobody touches: a graph needs their shapes alone."""
    def empty(*shape, dtype=None, **options):
        return torch.empty(*shape, dtype=dtype)

    def integers(*arguments, dtype=torch.int64, **options):
        return torch.empty(next(part for part in arguments if isinstance(part, (tuple, list))), dtype=dtype)

    stack = contextlib.ExitStack()
    for name, function in {"rand": empty, "randn": empty, "randint": integers}.items():
        stack.enter_context(mock.patch.object(torch, name, function))
    stack.enter_context(mock.patch.object(exporting, "_copy", dict))
    return stack


def evaluate(model, inputs, exported, kind, given_cotangents=None):
    """Returns the cotangents and the results of `main.vjp` by name, computed in floats of a kind.

    Those of `main` alone where PyTorch has no gradient: a module may write over what its backward pass needs.
    """
    made = copy.deepcopy(model).to(kind)
    values = dict(made.named_parameters())
    given = {name: value.to(kind, copy=True) if value.is_floating_point() else value for name, value in inputs.items()}
    wanted = {name: value.requires_grad_() for name, value in (given | values).items() if value.is_floating_point()}
    torch.set_default_dtype(kind)  # of tensors that the module makes itself
    try:
        outputs = made(**given)
    finally:
        torch.set_default_dtype(torch.float32)
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
    results = dict(zip(exported.results, leaves, strict=True))
    floats = {name: value for name, value in results.items() if value.is_floating_point() and value.requires_grad}
    cotangents = given_cotangents or {name: torch.randn_like(value).float() for name, value in floats.items()}
    expected = dict(results)
    if floats:
        try:
            gradients = torch.autograd.grad(list(floats.values()), list(wanted.values()),
                                            [cotangents[name].to(kind) for name in floats], allow_unused=True)
        except RuntimeError:
            return {}, expected
        for (name, value), gradient in zip(wanted.items(), gradients):
            expected[f"grad.{name}"] = torch.zeros_like(value) if gradient is None else gradient
    return cotangents, expected


def save(tensors, path):
    save_file({name: value.detach().clone(memory_format=torch.contiguous_format) for name, value in tensors.items()},
              path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", type=pathlib.Path)
    parser.add_argument("stem")
    parser.add_argument("--full-size", action="store_true")
    parser.add_argument("--values", action="store_true")
    options = parser.parse_args()
    start, made = time.process_time(), {"exported": False}
    try:
        with leave_values() if options.full_size and not options.values else contextlib.nullcontext():
            model, inputs = load(options.module, options.full_size)
            exported = weir.torch.export(model, inputs)
        pathlib.Path(f"{options.stem}.mlir").write_text(exported.text)
        signature = exported.text[exported.text.index("func.func"):].split("\n", 1)[0].rpartition("->")
        has_float = [any(f"xf{bits}>" in part or f"<f{bits}>" in part for bits in (16, 32, 64))
                     for part in (signature[0], signature[2])]
        made = {"exported": True, "has_gradient": all(has_float)}
        if options.values:
            cotangents, expected = evaluate(model, inputs, exported, torch.float64)
            made["has_gradient"] &= bool(cotangents)
            _, rounded = evaluate(model, inputs, exported, torch.float32, cotangents)
            made["rounding"] = {name: float((rounded[name].double() - value).abs().max()) if value.numel() else 0.0
                                for name, value in expected.items()}
            taken = exported.inputs | exported.parameters
            taken |= {f"cotangent.{name}": value for name, value in cotangents.items()}
            save(taken, f"{options.stem}.inputs.safetensors")
            save(expected, f"{options.stem}.expected.safetensors")
    except Exception as error:  # the module's own, torch's and weir.torch's
        made["reason"] = f"{type(error).__name__}: {error}"
    made["seconds"] = round(time.process_time() - start, 2)
    pathlib.Path(f"{options.stem}.json").write_text(json.dumps(made) + "\n")


if __name__ == "__main__":
    main()
