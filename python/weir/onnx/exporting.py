"""Exports an ONNX model as a graph of linalg on tensors, with its initializers as arguments."""

import fnmatch
from collections.abc import Collection, Mapping, Sequence

import numpy
import onnx
from onnx import numpy_helper

from weir.graphs import Argument, Exported, ExportError, Result, check_names, print_graph, set_attributes
from weir.onnx.lowering import lower
from weir.onnx.models import IMMEDIATE, Model, get_dtype, get_shape, is_float, load, specialize

# Operands that are statistics: no gradient trains them.
STATISTICS = {"BatchNormalization": (3, 4)}
# Operators whose float operands torch-mlir takes as constants only.
CONSTANT_OPERANDS = {"DequantizeLinear", "QLinearConv", "QLinearMatMul", "QuantizeLinear"}


def export(
    model: Model,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    *,
    constants: Mapping[str, numpy.ndarray] | None = None,
    train: str | None = None,
    trained: Collection[str] = ("*",),
    entry: str = "main",
) -> Exported:
    """Returns an ONNX model as one function `entry` on tensors of static shape.

    `model`:     the path of an .onnx file, whose external data is read, too; bytes; or an onnx.ModelProto.
    `shapes`:    the shape of an input by its name, or a size by the name that the model has for it.
    `constants`: values of inputs, which become part of the graph: those that decide sizes and axes have to.
    `train`:     the output that is the loss, one float of rank 0. It becomes the first result, named "loss".
    `trained`:   patterns (*, ?, [a-z]) of the initializers that the loss trains, by default all floats but the running
                 statistics of batch norm. The others are frozen.
    Arguments: the model's inputs; then its initializers of floats of rank 1 and higher, under their names. Other
               initializers are constants.
    Results:   the model's outputs, under their names.
    Errors:    ExportError for operators without a form in linalg, all at once, each with its nodes; for sizes that are
               not known; for types that Weir has not. OSError.
    """
    specialized = specialize(load(model), shapes or {}, constants or {},
                             lambda name: train is not None and _is_trained(name, trained))
    graph = specialized.graph
    if not graph.node and not graph.output:
        raise ExportError("the model has no output")
    parameters = _take_parameters(graph)
    frozen = set()
    if train is not None:
        _put_first(graph, train)
        frozen = _find_frozen(graph, parameters, trained)
    arguments = [
        Argument(value.name,
                 "param" if value.name in parameters and value.name not in frozen else "input",
                 get_shape(value), get_dtype(value))
        for value in graph.input
    ]
    results = [value.name for value in graph.output]
    dtypes = _find_unsigned([*graph.input, *graph.output])
    if train is not None:
        if "loss" in (taken := [argument.name for argument in arguments] + results[1:]) and train != "loss":
            raise ExportError(f"the loss is {train}, but another tensor is called {taken[taken.index('loss')]}; "
                              "give that another name")
        results[0] = "loss"
    check_names(arguments)
    lowered = lower(specialized, entry)
    set_attributes(lowered, arguments, results, frozen)
    output = {name: Result(name) for name in results} if len(results) > 1 else Result(results[0])
    return Exported(print_graph(lowered), arguments, results, {}, parameters, {}, output, dtypes)


def _take_parameters(graph: onnx.GraphProto) -> dict[str, numpy.ndarray]:
    """Makes inputs of a graph's float initializers of rank 1 and higher, and returns their values."""
    fixed = set()
    for node in graph.node:
        places = range(len(node.input)) if node.op_type in CONSTANT_OPERANDS else IMMEDIATE.get(node.op_type, ())
        fixed |= {node.input[place] for place in places if place < len(node.input)}
        if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute):
            fixed |= {tensor.name for tensor in graph.initializer}  # branches may read any
    parameters, constants = {}, []
    for tensor in graph.initializer:
        value = numpy_helper.to_array(tensor)
        if not is_float(tensor.data_type) or not value.ndim or tensor.name in fixed or tensor.name.startswith("/constant"):
            constants.append(tensor)
            continue
        parameters[tensor.name] = value
        graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    del graph.initializer[:]
    graph.initializer.extend(constants)
    return parameters


def _put_first(graph: onnx.GraphProto, name: str) -> None:
    """Moves the output that is the loss to the front. Errors: ExportError."""
    outputs = {value.name: value for value in graph.output}
    if name not in outputs:
        raise ExportError(f"the model has no output {name}; it has {', '.join(outputs)}")
    loss = outputs.pop(name)
    if get_shape(loss) or get_dtype(loss).kind != "f":
        raise ExportError(f"the loss {name} is {get_dtype(loss)}{list(get_shape(loss))}; it must be one float of "
                          "rank 0: reduce it by ReduceMean or ReduceSum")
    values = [loss, *outputs.values()]
    copies = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in values]
    del graph.output[:]
    graph.output.extend(copies)


def _find_frozen(graph: onnx.GraphProto, parameters: Collection[str], trained: Collection[str]) -> set[str]:
    fixed = {node.input[place] for node in graph.node for place in STATISTICS.get(node.op_type, ())}
    return {name for name in parameters if name in fixed or not _is_trained(name, trained)}


def _is_trained(name: str, trained: Collection[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in trained)


def _find_unsigned(values: Sequence[onnx.ValueInfoProto]) -> dict[str, numpy.dtype]:
    """Returns the unsigned types by name. Errors: ExportError if an input and an output share a name, not the type."""
    kinds: dict[str, numpy.dtype] = {}
    for value in values:
        if kinds.setdefault(value.name, get_dtype(value)) != get_dtype(value):
            raise ExportError(f"an input and an output of other types are named {value.name}; rename one")
    return {name: kind for name, kind in kinds.items() if kind.kind == "u"}
