"""Exports one module of KernelBench: export.py MODULE.py OUT_STEM [--full-size] [--values].

Writes OUT_STEM.json, which says what the export came to, and where there is a graph OUT_STEM.mlir; with --values also
what it takes, OUT_STEM.inputs.safetensors, and what PyTorch makes of that in f64, OUT_STEM.expected.safetensors: the
arguments and results of `main.vjp`, of which those of `main` are a part. "rounding" in OUT_STEM.json has the largest
error of PyTorch's own f32 in each result."""

import argparse
import ast
import contextlib
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

LARGEST = (32, 256)  # what a shrunk module has at most of anything: the first with which PyTorch runs it


class Shrink(ast.NodeTransformer):
    """Replaces integers above the largest allowed, but not those of classes: sizes, not what the model does."""

    def __init__(self, largest):
        self.largest = largest

    def visit_ClassDef(self, node):
        return node

    def visit_Constant(self, node):
        if type(node.value) is not int or node.value <= self.largest:
            return node
        # Odd sizes stay odd, and what groups of up to 32 divide still is.
        rest, half = node.value % self.largest, self.largest // 2
        return ast.Constant(rest if rest > half else half + rest if rest else self.largest)


def shrink(path):
    """Returns the module's model and inputs at the smallest sizes with which PyTorch runs it."""
    for largest in LARGEST:
        try:
            model, inputs = load(path, largest)
            with torch.no_grad():
                model(**inputs)
            return load(path, largest)
        except Exception:  # such as an image that is smaller than a window: the module's own checks, and PyTorch's
            continue
    return load(path, None)


def register_tensors(model):
    """Makes buffers of tensors that are mere attributes: torch.export refuses a module that writes those."""
    for part in model.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor):
                delattr(part, name)
                part.register_buffer(name, value)


def load(path, largest):
    """Returns the module's model and its inputs by name, numbers bound to `forward`."""
    tree = ast.parse(path.read_text())
    if largest:
        tree = ast.fix_missing_locations(Shrink(largest).visit(tree))
    names = {"__name__": path.stem}
    exec(compile(tree, str(path), "exec"), names)
    torch.manual_seed(0)
    given = names["get_init_inputs"]() if "get_init_inputs" in names else []
    model = names["Model"](*given).eval()
    register_tensors(model)
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
    stack.enter_context(mock.patch.object(exporting, "_take", lambda values, copies: dict(values)))
    return stack


@contextlib.contextmanager
def computed_in(model, kind, states):
    """Makes the model one of floats of a kind meanwhile. Yields its parameters, and its states before a call, by name.

    The model itself, for a copy's functions may still be those of the model.
    """
    owners = {name: dict(model.named_modules())[name.rpartition(".")[0]]._buffers for name, _ in model.named_buffers()}
    before = {name: value.clone() for name, value in model.named_buffers()}
    model.to(kind)
    torch.set_default_dtype(kind)  # of tensors that the module makes itself
    read = {name: before[name].to(kind) for name in states}
    try:
        for name, value in read.items():
            owners[name][name.rpartition(".")[2]] = value.requires_grad_().clone()  # which may be written
        yield dict(model.named_parameters()) | read
    finally:
        torch.set_default_dtype(torch.float32)
        model.to(torch.float32)
        for name, value in before.items():
            owners[name][name.rpartition(".")[2]] = value


def evaluate(model, inputs, exported, kind, given_cotangents=None):
    """Returns the cotangents and the results of `main.vjp` by name, computed in floats of a kind.

    Those of `main` alone where PyTorch has no gradient: a module may write over what its backward pass needs.
    """
    if "random.step" in exported.results:
        raise ValueError("the module draws random numbers, of which PyTorch has others")
    states = [name for name, value in model.named_buffers() if name in exported.results and value.is_floating_point()]
    given = {name: value.to(kind, copy=True) if value.is_floating_point() else value for name, value in inputs.items()}
    with computed_in(model, kind, states) as values:
        wanted = {name: value.requires_grad_() for name, value in (given | values).items() if value.is_floating_point()}
        # Copies, since a module may not write to a leaf.
        outputs = model(**{name: value.clone() for name, value in given.items()})
        leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
        written = dict(model.named_buffers())
        leaves += [written[name] for name in exported.results[len(leaves):]]
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
            model, inputs = load(options.module, None) if options.full_size else shrink(options.module)
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
            taken = exported.inputs | exported.parameters | exported.states
            taken |= {f"cotangent.{name}": value for name, value in cotangents.items()}
            save(taken, f"{options.stem}.inputs.safetensors")
            save(expected, f"{options.stem}.expected.safetensors")
    except Exception as error:  # the module's own, torch's and weir.torch's
        made["reason"] = f"{type(error).__name__}: {error}"
    made["seconds"] = round(time.process_time() - start, 2)
    pathlib.Path(f"{options.stem}.json").write_text(json.dumps(made) + "\n")


if __name__ == "__main__":
    main()
