"""Exports the module that a Python function returns: python -m weir.torch package.module:factory."""

import argparse
import importlib
import os
import sys

import weir.torch


def _call_factory(path: str) -> dict:
    """Returns the result of `package.module:factory`: the arguments of `weir.torch.export` by name."""
    module, _, name = path.partition(":")
    if not module or not name:
        raise weir.torch.ExportError(f"{path} is no package.module:factory")
    try:
        factory = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise weir.torch.ExportError(f"{path}: {error}") from error
    made = factory()
    if not isinstance(made, dict) or not {"module", "inputs"} <= made.keys():
        raise weir.torch.ExportError(f"{path} must return a dict of weir.torch.export's arguments: module, inputs, ...")
    return made


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m weir.torch",
        description="Writes a graph for `weir compile`, and the parameters, of a PyTorch module.",
    )
    parser.add_argument("factory", help="package.module:factory; returns a dict of weir.torch.export's arguments")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.mlir", help="the graph")
    parser.add_argument("--parameters", metavar="OUT.safetensors", help="the parameters' values")
    parser.add_argument("--inputs", metavar="OUT.safetensors", help="the values of inputs and targets")
    parser.add_argument("--entry", help="the function's name; main, or what the factory says")
    options = parser.parse_args()
    sys.path.insert(0, os.getcwd())
    try:
        made = _call_factory(options.factory)
        if options.entry:
            made["entry"] = options.entry
        exported = weir.torch.export(**made)
    except (weir.torch.ExportError, TypeError) as error:
        print(f"weir.torch: {error}", file=sys.stderr)
        return 2
    exported.save(options.output, options.parameters, options.inputs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
