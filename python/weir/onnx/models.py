"""Brings an ONNX model into the form that torch-mlir's importer takes: static, without calls and without shape
arithmetic."""

import pathlib
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy
import onnx
import onnx.inliner
import onnx.version_converter
from onnx import numpy_helper, shape_inference

from weir.graphs import ExportError
from weir.onnx.functions import has_function, write_function
from weir.onnx.references import run_node
from weir.onnx.regions import CONTROL, explain, is_kept
from weir.onnx.rewrites import EXPANDED, has_rule, rewrite
from weir.onnx.writing import DOMAINS, Writer, rename_values, walk_nodes

OPSET = 13  # older models are converted to this one; torch-mlir's importer lacks operators of those before
MAX_FOLDED = 1 << 20  # elements of a constant that replaces operators on constants

# The operands that give sizes, axes or modes, by operator: they are constants of the program.
IMMEDIATE = {
    "AffineGrid": (1,), "BlackmanWindow": (0,), "CenterCropPad": (1,), "Col2Im": (1, 2), "ConstantOfShape": (0,),
    "CumProd": (1,), "CumSum": (1,), "DFT": (1, 2), "Dropout": (1, 2), "Expand": (1,), "HammingWindow": (0,),
    "HannWindow": (0,), "If": (0,), "Loop": (0, 1), "MaxUnpool": (2,), "MelWeightMatrix": (0, 1, 2, 3, 4),
    "NonMaxSuppression": (2, 3, 4), "OneHot": (1,), "Pad": (1, 3), "Range": (0, 1, 2), "Reshape": (1,),
    "Resize": (1, 2, 3), "STFT": (1, 3), "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,), "Tile": (1,),
    "TopK": (1,), "Trilu": (1,), "Unsqueeze": (1,), "Upsample": (1,),
    **{f"Reduce{kind}": (1,) for kind in (
        "L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")},
}
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}

Model = str | pathlib.Path | bytes | onnx.ModelProto


class NeedsValues(ExportError):
    """Inputs whose values decide sizes, axes or modes, and that were not given as constants."""

    def __init__(self, names: Sequence[str], nodes: Sequence[str]):
        super().__init__(f"sizes or axes depend on the values of {', '.join(names)} (at {', '.join(nodes[:3])}); give "
                         f"their values as constants={{{names[0]!r}: ...}}")
        self.names = list(names)


def load(model: Model) -> onnx.ModelProto:
    """Returns a model of its own from a file, whose external data is read, too, from bytes or from a model.

    Errors: ExportError for what is no model. OSError.
    """
    if isinstance(model, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        return copy
    try:
        return onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
    except OSError:
        raise
    except Exception as error:  # protobuf's, and the checker's of external data
        name = "the bytes are" if isinstance(model, bytes) else f"{model} is"
        raise ExportError(f"{name} no ONNX model: {str(error).strip().splitlines()[0]}") from None


def specialize(
    model: onnx.ModelProto, shapes: Mapping[str, Sequence[int] | int], constants: Mapping[str, numpy.ndarray],
    is_trained: Callable[[str], bool] = lambda name: False,
) -> onnx.ModelProto:
    """Returns the model with its sizes and some of its inputs fixed, operators on constants evaluated and all nodes
    named.

    `shapes`:     the shape of an input by its name, or a size by the name that the model has for it.
    `is_trained`: whether what is computed from an initializer alone stays in the graph, for float initializers of rank 1
                  and higher from which no size, axis or mode is computed.
    Errors: ExportError for sizes that stay unknown, and for types that Weir has not; NeedsValues.
    """
    _check_constants(model, constants)
    for name, value in constants.items():
        tensor = numpy_helper.from_array(numpy.asarray(value), name)
        model.graph.initializer.append(tensor)
    _check_results(model.graph)
    model.ir_version = max(model.ir_version, 4)  # in which initializers are no inputs
    given = {tensor.name for tensor in model.graph.initializer}
    for value in [value for value in model.graph.input if value.name in given]:
        model.graph.input.remove(value)
    _fix_shapes(model, shapes)
    _check_types(model.graph.input)
    model = _convert(model)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    model = simplify(model, {name for name in _find_float_initializers(model.graph) if is_trained(name)})
    try:
        _check_types(model.graph.output)
    except ExportError as error:
        raise ExportError("\n".join([str(error), *_list_control(model)])) from None
    return model


def _list_control(model: onnx.ModelProto) -> list[str]:
    """Returns a line for each loop and branch that does not stay one: sizes behind it are not known."""
    write = open_writer(model)
    return [f"  {node.op_type}, node {node.name}: {explain(write(node))}" for node in model.graph.node
            if node.op_type in CONTROL and not is_kept(node)]


def simplify(model: onnx.ModelProto, kept: Collection[str] = ()) -> onnx.ModelProto:
    """Returns the model with types and shapes of all values, and operators on constants evaluated, but for those on
    initializers of the names `kept`. Errors: NeedsValues."""
    while True:
        name_nodes(model.graph)
        model = infer(model)
        if not (_fold(model, kept) or _choose_branches(model) or _replace(model, rewrite) or
                _expand_functions(model, EXPANDED)):
            break
    _check_immediate(model)
    return model


def infer(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with the types of its values. Errors: ExportError."""
    try:
        return shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:
        raise ExportError(f"the model is not valid: {str(error).strip().splitlines()[0]}") from None


def expand(model: onnx.ModelProto, operators: set[str]) -> onnx.ModelProto | None:
    """Returns the model with operators written out that ONNX defines by others, or None if there is none of these."""
    return simplify(model) if _expand_functions(model, operators) else None


def _expand_functions(model: onnx.ModelProto, operators: Collection[str]) -> bool:
    """Writes operators out by their functions, in place. Returns whether there were any."""
    def write(writer: Writer) -> bool:
        is_own = writer.node.domain in DOMAINS
        return (writer.node.op_type in operators or not is_own) and write_function(writer)

    return _replace(model, write)


def _replace(model: onnx.ModelProto, write: Callable[[Writer], bool]) -> bool:
    """Replaces the nodes that `write` writes anew, in place. Returns whether there were any."""
    graph, open_node = model.graph, open_writer(model)
    nodes, found = [], False
    for node in graph.node:
        writer = open_node(node)
        if not write(writer):
            nodes.append(node)
            continue
        found = True
        nodes += writer.nodes
        graph.initializer.extend(writer.initializers)
    if found:
        del graph.node[:]
        graph.node.extend(nodes)
    return found


def open_writer(model: onnx.ModelProto) -> Callable[[onnx.NodeProto], Writer]:
    """Returns what makes a writer for a node of the model."""
    graph = model.graph
    values = {value.name: value for value in (*graph.input, *graph.value_info, *graph.output)}
    known = {tensor.name: tensor for tensor in graph.initializer}
    return lambda node: Writer(model, node, values, known)


def name_nodes(graph: onnx.GraphProto) -> None:
    """Names nodes by their operators and first results, if they have no names or others have the same."""
    taken: set[str] = set()
    for node in walk_nodes(graph):
        if not node.name or node.name in taken:
            result = next((name for name in node.output if name), "")
            node.name = f"{node.op_type} of {result}"
        taken.add(node.name)


def get_shape(value: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    """Returns the shape of a tensor, or None if a size is not known."""
    sizes = value.type.tensor_type.shape.dim
    if not value.type.tensor_type.HasField("shape") or not all(size.HasField("dim_value") for size in sizes):
        return None
    return tuple(size.dim_value for size in sizes)


def get_dtype(value: onnx.ValueInfoProto) -> numpy.dtype:
    """Returns the type of a tensor's elements; ml_dtypes has bfloat16."""
    return onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)


def _check_constants(model: onnx.ModelProto, constants: Mapping[str, numpy.ndarray]) -> None:
    inputs = {value.name for value in model.graph.input}
    for name in constants:
        if name not in inputs:
            raise ExportError(f"there is no input {name}; the model has {', '.join(sorted(inputs)) or 'none'}")


def _check_results(graph: onnx.GraphProto) -> None:
    """Errors: ExportError for a name that two nodes give a value."""
    makers: dict[str, onnx.NodeProto] = {}
    for node in graph.node:
        for name in filter(None, node.output):
            if name in makers:
                raise ExportError(f"{name} is the result of two nodes: {makers[name].op_type} {makers[name].name!r} and "
                                  f"{node.op_type} {node.name!r}")
            makers[name] = node


def _fix_shapes(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int] | int]) -> None:
    unknown = []
    used: set[str] = set()
    for value in model.graph.input:
        if not value.type.HasField("tensor_type"):
            continue  # _check_types names it
        tensor = value.type.tensor_type
        if value.name in shapes and not isinstance(shapes[value.name], int):
            used.add(value.name)
            tensor.shape.CopyFrom(onnx.TensorShapeProto())
            for size in shapes[value.name]:
                tensor.shape.dim.add().dim_value = size
            continue
        for size in tensor.shape.dim:
            if size.HasField("dim_param") and isinstance(shapes.get(size.dim_param), int):
                used.add(size.dim_param)
                size.dim_value = shapes[size.dim_param]
        if get_shape(value) is None:
            sizes = [str(size.dim_value) if size.HasField("dim_value") else size.dim_param or "?"
                     for size in tensor.shape.dim]
            unknown.append(f"{value.name}: {', '.join(sizes) or 'no shape'}")
    if unused := [name for name in shapes if name not in used]:
        raise ExportError(f"shapes has {unused[0]}, which is neither an input nor a size of one")
    if unknown:
        name = unknown[0].partition(":")[0]
        raise ExportError(f"inputs of unknown size: {'; '.join(unknown)}; give them as shapes={{{name!r}: (...)}}, or "
                          "by the names of sizes")
    # The sizes inside that the model states hold no more, or say less.
    del model.graph.value_info[:]
    for value in model.graph.output:
        if value.type.HasField("tensor_type") and get_shape(value) is None:
            value.type.tensor_type.ClearField("shape")


def _check_types(values: Sequence[onnx.ValueInfoProto]) -> None:
    problems = []
    for value in values:
        if not value.type.HasField("tensor_type"):
            problems.append(f"{value.name} is a {value.type.WhichOneof('value').removesuffix('_type')}, no tensor")
            continue
        name = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)
        kind = get_dtype(value)
        if kind.kind not in "biuf" and kind.name != "bfloat16":
            problems.append(f"{value.name} is of type {name}, which Weir has not")
        elif get_shape(value) is None:
            problems.append(f"the size of {value.name} depends on values, or shape inference does not know it")
    if problems:
        raise ExportError("; ".join(problems))


def _convert(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model in a version that torch-mlir's importer knows. Errors: ExportError."""
    own = {function.domain for function in model.functions}
    if foreign := [node for node in walk_nodes(model.graph) if node.domain not in DOMAINS and node.domain not in own
                   and not has_rule(node) and not has_function(model, node)]:
        nodes = [f"{node.name or node.op_type} ({node.domain}.{node.op_type})" for node in foreign]
        raise ExportError(f"operators that are not ONNX's own: {', '.join(nodes)}")
    version = next((opset.version for opset in model.opset_import if opset.domain in DOMAINS), None)
    if version is None:  # a model of other domains' operators, which become ONNX's own
        model.opset_import.append(onnx.helper.make_opsetid("", OPSET))
        return model
    if version >= OPSET:
        return model
    shapes = [get_shape(value) for value in model.graph.input]
    try:
        converted = onnx.version_converter.convert_version(model, OPSET)
        if [get_shape(value) for value in converted.graph.input] != shapes:
            raise ValueError("the converter changes the shapes of inputs")
        return converted
    except Exception as error:
        raise ExportError(f"the model is of opset {version}, which torch-mlir does not know, and does not convert to "
                          f"{OPSET}: {str(error).strip().splitlines()[0]}") from None


def _find_float_initializers(graph: onnx.GraphProto) -> set[str]:
    """Returns the names of float initializers of rank 1 and higher from which no size, axis or mode is computed."""
    makers = {name: node for node in graph.node for name in node.output}
    found = [node.input[place] for node in graph.node for place in IMMEDIATE.get(node.op_type, ())
             if place < len(node.input)]
    fixed: set[str] = set()
    while found:
        name = found.pop()
        if name not in fixed:
            fixed.add(name)
            found += makers[name].input if name in makers else ()
    return {tensor.name for tensor in graph.initializer
            if tensor.dims and tensor.name not in fixed and is_float(tensor.data_type)}


def is_float(element_type: int) -> bool:
    """Whether a type of elements, an onnx.TensorProto.DataType, is one of floats."""
    kind = onnx.helper.tensor_dtype_to_np_dtype(element_type)
    return kind.kind == "f" or kind.name == "bfloat16"


def _fold(model: onnx.ModelProto, kept: Collection[str]) -> bool:
    """Replaces operators on constants, and the shapes of values, by constants. Returns whether there were any."""
    graph = model.graph
    known = {tensor.name: tensor for tensor in graph.initializer}
    values = {value.name: value for value in (*graph.input, *graph.value_info, *graph.output)}
    left, folded = [], False
    for node in graph.node:
        made = _evaluate(model, node, known, values, kept)
        if made is None:
            left.append(node)
            continue
        folded = True
        known |= {tensor.name: tensor for tensor in made}
        graph.initializer.extend(made)
    if folded:
        del graph.node[:]
        graph.node.extend(left)
        read = {name for node in walk_nodes(graph) for name in node.input} | {value.name for value in graph.output}
        used = [tensor for tensor in graph.initializer if tensor.name in read]
        del graph.initializer[:]
        graph.initializer.extend(used)
    return folded


def _evaluate(
    model: onnx.ModelProto, node: onnx.NodeProto, known: Mapping[str, onnx.TensorProto],
    values: Mapping[str, onnx.ValueInfoProto], kept: Collection[str],
) -> list[onnx.TensorProto] | None:
    """Returns the results of a node, or None if it is left to the program."""
    if node.op_type in ("Shape", "Size") and (shape := _find_shape(node.input[0], known, values)) is not None:
        attributes = {attribute.name: attribute.i for attribute in node.attribute}
        part = numpy.array(shape[attributes.get("start", 0):attributes.get("end", len(shape))], numpy.int64)
        return [numpy_helper.from_array(numpy.asarray(part if node.op_type == "Shape" else part.prod()),
                                        node.output[0])]
    inputs = [name for name in node.input if name]
    if node.op_type in RANDOM or any(name not in known or name in kept for name in inputs):
        return None
    if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute):
        return None
    if not all(_is_small(values.get(name)) for name in node.output if name):
        return None
    return run_node(model, node, {name: known[name] for name in inputs})


def _find_shape(name: str, known: Mapping[str, onnx.TensorProto], values: Mapping[str, onnx.ValueInfoProto]):
    if name in known:
        return tuple(known[name].dims)
    return get_shape(values[name]) if name in values else None


def _is_small(value: onnx.ValueInfoProto | None) -> bool:
    if value is None or not value.type.HasField("tensor_type"):
        return False
    shape = get_shape(value)
    return shape is None or int(numpy.prod(shape)) <= MAX_FOLDED


def _choose_branches(model: onnx.ModelProto) -> bool:
    """Replaces each `If` on a constant by its branch. Returns whether there was any."""
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes, chosen = [], False
    for node in model.graph.node:
        if node.op_type != "If" or node.input[0] not in known:
            nodes.append(node)
            continue
        chosen = True
        wanted = "then_branch" if numpy_helper.to_array(known[node.input[0]]).any() else "else_branch"
        [branch] = [attribute.g for attribute in node.attribute if attribute.name == wanted]
        nodes += _inline_branch(model.graph, node, branch)
    if chosen:
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return chosen


def _inline_branch(graph: onnx.GraphProto, node: onnx.NodeProto, branch: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Returns the nodes of a branch, its own names made unique."""
    own = {name for inner in branch.node for name in inner.output if name}
    own |= {tensor.name for tensor in branch.initializer}
    names = {name: f"{node.name}/{name}" for name in own}
    for tensor in branch.initializer:
        graph.initializer.add().CopyFrom(tensor)
        graph.initializer[-1].name = names[tensor.name]
    nodes = [rename_values(inner, lambda name: names.get(name, name)) for inner in branch.node]
    for result, value in zip(node.output, branch.output):
        nodes.append(onnx.helper.make_node("Identity", [names.get(value.name, value.name)], [result],
                                           name=f"{node.name}/{result}"))
    return nodes


def _check_immediate(model: onnx.ModelProto) -> None:
    """Refuses sizes, axes and modes that depend on the values of inputs. Errors: NeedsValues."""
    makers = {name: node for node in model.graph.node for name in node.output}
    inputs = {value.name for value in model.graph.input}
    found: dict[str, None] = {}
    nodes = []
    for node in walk_nodes(model.graph):
        places = IMMEDIATE.get(node.op_type, ()) if node.domain in DOMAINS else ()
        waiting = [node.input[place] for place in places if place < len(node.input)]
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in inputs:
                found[name] = None
                if node.name not in nodes:
                    nodes.append(node.name)
            if name in makers and name not in seen:
                seen.add(name)
                waiting += makers[name].input
    if found:
        raise NeedsValues(list(found), nodes)
