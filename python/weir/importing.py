"""Writes the graph of a model for `weir compile`, which calls this for files that are no graphs.

    python -m weir.importing MODEL -o OUT.mlir [--parameters=OUT.safetensors] [--shape=NAME=SIZES]

MODEL is *.onnx, *.pt2 (torch.export.save) or *.stablehlo.mlir (the text of StableHLO).
"""

import argparse
import pathlib
import sys

SUFFIXES = (".onnx", ".pt2", ".stablehlo.mlir")


def main(program: str = "python -m weir.importing", suffixes: tuple[str, ...] = SUFFIXES) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog=program, description="Writes the graph of a model for `weir compile`.")
    parser.add_argument("model", help=f"the model: *{', *'.join(suffixes)}")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.mlir", help="the graph")
    parser.add_argument("--parameters", metavar="OUT.safetensors", help="the parameters' values")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=SIZES",
                        help="sizes of an ONNX model's input, x=8,3,224,224, or of what it calls a size, batch=8")
    parser.add_argument("--train", metavar="OUTPUT", help="the output of an ONNX model that is the loss")
    parser.add_argument("--entry", default="main", help="the function's name (default main)")
    options = parser.parse_args()
    if not options.model.endswith(suffixes):
        parser.error(f"{options.model} is none of *{', *'.join(suffixes)}")
    try:
        _export(options)
    except ImportError as error:
        print(f"{error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error.filename or options.model}: {error.strerror or error}", file=sys.stderr)
        return 2
    except (ValueError, TypeError) as error:
        print(f"{error}", file=sys.stderr)
        return 2
    except Exception as error:
        if type(error).__name__ != "ExportError":  # importing its module needs torch-mlir
            raise
        print(f"{error}", file=sys.stderr)
        return 2
    return 0


def _export(options: argparse.Namespace) -> None:
    if not options.model.endswith(".onnx"):
        for name, given in (("--shape", options.shape), ("--train", options.train)):
            if given:
                raise ValueError(f"{name} is for ONNX models; {options.model} has sizes and results of its own")
    if options.model.endswith(".stablehlo.mlir"):
        if options.parameters:
            raise ValueError(f"{options.model} has no parameters, only arguments")
        _export_stablehlo(options)
        return
    exported = _export_onnx(options) if options.model.endswith(".onnx") else _export_torch(options)
    exported.save(options.output, options.parameters)


def _export_onnx(options: argparse.Namespace):
    import weir.onnx

    shapes = {}
    for text in options.shape:
        name, _, sizes = text.rpartition("=")
        if not name or not all(size.isdecimal() for size in sizes.split(",")):
            raise ValueError(f"--shape={text}: expected NAME=SIZE,SIZE,..., such as x=8,3,224,224")
        shapes[name] = tuple(map(int, sizes.split(",")))
    model = weir.onnx.models.load(options.model)
    inputs = {value.name for value in model.graph.input}
    shapes = {name: sizes if name in inputs or len(sizes) > 1 else sizes[0] for name, sizes in shapes.items()}
    return weir.onnx.export(model, shapes, train=options.train, entry=options.entry)


def _export_torch(options: argparse.Namespace):
    import torch

    import weir.torch

    try:
        program = torch.export.load(options.model)
    except (OSError, ImportError):
        raise
    except Exception as error:  # of many kinds for what is no such file
        raise ValueError(f"{options.model} is no program of torch.export.save: "
                         f"{str(error).strip().splitlines()[0]}") from None
    if program.example_inputs is None:
        raise ValueError(f"{options.model} has no example inputs; export it with them")
    arguments, named = program.example_inputs
    if named:
        raise ValueError(f"{options.model} takes {', '.join(named)} by name; export it with arguments in order")
    return weir.torch.export(program.module(), tuple(arguments), entry=options.entry)


def _export_stablehlo(options: argparse.Namespace) -> None:
    try:
        import weir.stablehlo
    except ImportError as missing:
        raise ImportError(f"StableHLO needs the package {(missing.name or 'torch-mlir').split('.')[0].replace('_', '-')};"
                          " install weir[jax], or run scripts/setup --torch") from None
    from weir.graphs import print_graph

    text = pathlib.Path(options.model).read_text()
    pathlib.Path(options.output).write_text(print_graph(weir.stablehlo.lower(text, options.entry)))


if __name__ == "__main__":
    sys.exit(main())
