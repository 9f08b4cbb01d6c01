"""Whole models: training steps of graphs that benchmarks/compile/graphs.py writes, with SGD."""

import functools
import math
import pathlib
import re
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "compile"))
import graphs  # noqa: E402

STEPS = 3  # whose losses are compared
ARGUMENT = re.compile(r'%\w+: tensor<([\dx]*)([if]\d+)> \{weir.kind = "(\w+)", weir.name = "([^"]+)"\}')
SIZES = {
    # SmolLM2-135M: 134.5 million parameters.
    "llama": {"layers": 30, "hidden": 576, "heads": 9, "kv_heads": 3, "intermediate": 1536, "vocabulary": 49152,
              "sequence": 128, "batch": 1, "tied": True},
    # The model of examples/gpt2_block_train.
    "gpt2": {"layers": 2, "hidden": 48, "heads": 4, "vocabulary": 96, "sequence": 16, "batch": 4},
    "resnet": {"layers": 18, "width": 64, "stages": 4, "classes": 1000, "resolution": 64, "batch": 8},
}


def make_graph(family, **sizes):
    """Returns the loss of a model as a graph for `weir compile`."""
    return graphs.FAMILIES[family](**sizes)


@functools.cache
def list_arguments(family, sizes):
    """Returns the shape, element and kind of each argument by its name; `sizes` are pairs."""
    found = ARGUMENT.findall(make_graph(family, **dict(sizes)))
    return {name: ([int(size) for size in shape.split("x") if size], element, kind)
            for shape, element, kind, name in found}


def list_parameters(family, sizes):
    """Returns the names of what a step updates, in the order of the arguments."""
    arguments = list_arguments(family, tuple(sizes.items()))
    return tuple(name for name, (_, _, kind) in arguments.items() if kind == "param")


def make_inputs(random, family, **sizes):
    """Returns a batch, and parameters with which activations keep their size."""
    inputs = {}
    for name, (shape, element, _) in list_arguments(family, tuple(sizes.items())).items():
        if element == "i64":
            inputs[name] = random.integers(0, sizes.get("vocabulary") or sizes["classes"], shape)
        elif len(shape) == 1:
            inputs[name] = numpy.full(shape, 0 if name.endswith("bias") else 1, numpy.float32)
        else:
            inputs[name] = random.standard_normal(shape, numpy.float32)
            inputs[name] *= numpy.float32(1 if name == "images" else 1 / math.sqrt(math.prod(shape[1:])))
    return inputs
