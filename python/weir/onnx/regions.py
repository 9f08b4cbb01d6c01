"""Loop, Scan and If that stay loops and branches: each becomes a node of Weir's own, which names all that it reads.

Its bodies are models of their own, simplified, that read their inputs alone: those of ONNX, then what ONNX lets them
read from outside. `weir.onnx.flow` lowers these nodes.
"""

from collections.abc import Callable, Sequence

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from weir.graphs import ExportError
from weir.onnx.writing import Writer, walk_nodes

DOMAIN = "weir"
CONTROL = ("If", "Loop", "Scan")


class Obstacle(Exception):
    """The reason that a node cannot stay a loop or a branch."""


def keep_loop(writer: Writer) -> bool:
    """Writes a Loop whose carried values have one shape as a loop. Returns whether it did."""
    return _keep(writer, _write_loop)


def keep_scan(writer: Writer) -> bool:
    """Writes a Scan whose carried values have one shape as a loop. Returns whether it did."""
    return _keep(writer, _write_scan)


def keep_branches(writer: Writer) -> bool:
    """Writes an If that data decide, both of whose branches give the same shapes. Returns whether it did."""
    return _keep(writer, _write_branches)


def is_kept(node: onnx.NodeProto) -> bool:
    """Whether a node is one that the functions above have written."""
    return node.domain == DOMAIN


def explain(writer: Writer) -> str:
    """Returns the reason that a node stays neither a loop nor a branch, or ""."""
    try:
        {"If": _write_branches, "Loop": _write_loop, "Scan": _write_scan}[writer.node.op_type](writer)
    except Obstacle as obstacle:
        return str(obstacle)
    return ""


def count_trips(writer: Writer, body: onnx.GraphProto) -> int | None:
    """Returns how often a Loop runs if constants decide that, or None."""
    trips = writer.number(0) if writer.has(0) else None
    if writer.has(1):
        start = writer.array(1)
        if start is None:
            return None
        if not start.any():
            return 0
        if not _stays_true(body):
            return None
    return None if trips is None else max(trips, 0)


def _stays_true(body: onnx.GraphProto) -> bool:
    """Whether a loop's condition is true after each trip, whatever the data."""
    makers = {name: node for node in body.node for name in node.output}
    constants = {tensor.name: tensor for tensor in body.initializer}
    name = body.output[0].name
    while name in makers and makers[name].op_type in ("Identity", "Cast"):
        name = makers[name].input[0]
    if name == body.input[1].name:
        return True
    if name in constants:
        return bool(numpy_helper.to_array(constants[name]).all())
    values = [helper.get_attribute_value(one) for one in makers[name].attribute if one.name == "value"] \
        if name in makers and makers[name].op_type == "Constant" else []
    return bool(values) and bool(numpy_helper.to_array(values[0]).all())


def _keep(writer: Writer, write: Callable[[Writer], None]) -> bool:
    try:
        write(writer)
    except Obstacle:
        return False
    return True


def _write_loop(writer: Writer) -> None:
    node = writer.node
    carried = list(node.input[2:])
    types = [_scalar(TensorProto.INT64), _scalar(TensorProto.BOOL), *(_get_type(writer, name) for name in carried)]
    model, captured = _close(writer, writer.attribute("body", None), types)
    trips = count_trips(writer, model.graph)
    results = [value.type for value in model.graph.output]
    if _count(results[0]) != 1:
        raise Obstacle("its condition has more than one element")
    _compare(carried, types[2:], results[1:len(types) - 1])
    rows = results[len(types) - 1:]
    asked = ["", ""]
    if trips is None:
        _check_data(writer, (0, 1))
        if rows:
            raise Obstacle("it collects a row in each trip, and data decide how many")
        asked = [*node.input[:2], ""][:2]
        start = writer.array(1) if asked[1] else None
        if start is not None and start.all() and _stays_true(model.graph):
            asked[1] = ""  # the count alone ends it
    _finish(writer, [*asked, *carried, *captured], [*types[2:], *(_stack(row, trips, 0) for row in rows)], [model],
            trips=-1 if trips is None else trips, carried=len(carried))


def _write_scan(writer: Writer) -> None:
    node, count = writer.node, writer.attribute("num_scan_inputs", 0)
    if writer.opset < 9 or any(not name for name in node.input):
        raise Obstacle("it is of opset 8, in which it has a batch")
    first = len(node.input) - count
    types = [_get_type(writer, name) for name in node.input]
    lists = types[first:]
    axes = [axis % len(_get_shape(one)) for axis, one in zip(writer.attribute("scan_input_axes", [0] * count), lists)]
    lengths = {_get_shape(one)[axis] for axis, one in zip(axes, lists)}
    if len(lengths) != 1:
        raise Obstacle("its lists differ in length")
    [trips] = lengths
    parts = [_drop(one, axis) for one, axis in zip(lists, axes)]
    model, captured = _close(writer, writer.attribute("body", None), [*types[:first], *parts])
    results = [value.type for value in model.graph.output]
    _compare(node.input[:first], types[:first], results[:first])
    rows = results[first:]
    out_axes = [axis % (len(_get_shape(row)) + 1)
                for axis, row in zip(writer.attribute("scan_output_axes", [0] * len(rows)), rows)]
    _finish(writer, [*node.input, *captured],
            [*types[:first], *(_stack(row, trips, axis) for row, axis in zip(rows, out_axes))], [model],
            trips=trips, carried=first, lists=count, axes=[*axes, *out_axes],
            backward=[*writer.attribute("scan_input_directions", [0] * count),
                      *writer.attribute("scan_output_directions", [0] * len(rows))])


def _write_branches(writer: Writer) -> None:
    _check_data(writer, (0,))
    closed = [_close(writer, writer.attribute(f"{name}_branch", None), []) for name in ("then", "else")]
    kinds = [[value.type for value in model.graph.output] for model, _ in closed]
    for result, one, other in zip(writer.node.output, *kinds, strict=True):
        if one != other:
            raise Obstacle(f"{result} is {_spell(one)} of one branch and {_spell(other)} of the other")
    captured = [names for _, names in closed]
    _finish(writer, [writer.node.input[0], *captured[0], *captured[1]], kinds[0], [model for model, _ in closed],
            then=len(captured[0]))


def _close(writer: Writer, body: onnx.GraphProto, types: Sequence[onnx.TypeProto]) -> tuple[onnx.ModelProto, list[str]]:
    """Returns a body as a model of its own, and what it reads from outside, which are its last inputs.

    `types`: of the body's own inputs. Each output is a result of its own, of static shape. Errors: Obstacle.
    """
    from weir.onnx.models import get_shape, simplify  # which rewrites nodes by rules, this one among them

    defined = {value.name for graph in _walk_graphs(body) for value in (*graph.input, *graph.initializer)}
    defined |= {name for inner in walk_nodes(body) for name in inner.output}
    read = [name for inner in walk_nodes(body) for name in inner.input]
    read += [value.name for graph in _walk_graphs(body) for value in graph.output]
    captured = [name for name in dict.fromkeys(read) if name and name not in defined]
    inputs = [helper.make_value_info(value.name, kind) for value, kind in zip(body.input, types, strict=True)]
    initializers = list(body.initializer)
    for name in list(captured):
        constant = writer.find_constant(name)
        if constant is not None and not (constant.dims and numpy_helper.to_array(constant).dtype.kind not in "biu"):
            initializers.append(constant)
            captured.remove(name)
        else:
            inputs.append(helper.make_value_info(name, _get_type(writer, name)))
    nodes = list(body.node)
    results = []
    for k, value in enumerate(body.output):
        results.append(helper.make_value_info(f"{writer.node.name}/result{k}", onnx.TypeProto()))
        nodes.append(helper.make_node("Identity", [value.name], [results[-1].name], name=results[-1].name))
    graph = helper.make_graph(nodes, "body", inputs, results, initializers)
    model = helper.make_model(graph, opset_imports=writer.model.opset_import, ir_version=writer.model.ir_version)
    try:
        model = simplify(model)
    except ExportError as error:
        raise Obstacle(str(error)) from None
    for value, old in zip(model.graph.output, body.output, strict=True):
        if not value.type.HasField("tensor_type") or get_shape(value) is None:
            raise Obstacle(f"the size of {old.name} depends on values, or it is no tensor")
    return model, captured


def _walk_graphs(graph: onnx.GraphProto):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _walk_graphs(attribute.g)


def _check_data(writer: Writer, places: Sequence[int]) -> None:
    """Checks that operands are data, and do not wait for the sizes of another loop. Errors: Obstacle."""
    makers = {name: node for node in writer.model.graph.node for name in node.output}
    waiting, seen = [writer.node.input[place] for place in places if writer.has(place)], set()
    while waiting:
        name = waiting.pop()
        if name not in makers or name in seen:
            continue
        seen.add(name)
        if makers[name].op_type in CONTROL and not is_kept(makers[name]):
            raise Obstacle(f"it depends on {makers[name].name}")
        waiting += makers[name].input


def _finish(writer: Writer, operands: Sequence[str], types: Sequence[onnx.TypeProto], bodies: Sequence[onnx.ModelProto],
            **numbers: int | list[int]) -> None:
    """Writes the node, of the same results. Errors: Obstacle."""
    made = helper.make_node(writer.node.op_type, list(operands), list(writer.node.output), name=writer.node.name,
                            domain=DOMAIN, bodies=[body.SerializeToString() for body in bodies])
    made.attribute.extend(helper.make_attribute(name, value, attr_type=(
        onnx.AttributeProto.INTS if isinstance(value, list) else None)) for name, value in numbers.items())
    for name, kind in zip(writer.node.output, types, strict=True):
        if name:
            writer.set_type(name, kind)
    if all(opset.domain != DOMAIN for opset in writer.model.opset_import):
        writer.model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    writer.nodes.append(made)


def _scalar(kind: int) -> onnx.TypeProto:
    return helper.make_tensor_type_proto(kind, [])


def _get_type(writer: Writer, name: str) -> onnx.TypeProto:
    """Returns the type of a tensor of known shape. Errors: Obstacle."""
    shape = writer.shape_of(name)
    if shape is None:
        raise Obstacle(f"it reads {name}, whose size is not known, or which is no tensor")
    return helper.make_tensor_type_proto(writer.kind(name), shape)


def _get_shape(kind: onnx.TypeProto) -> list[int]:
    return [size.dim_value for size in kind.tensor_type.shape.dim]


def _count(kind: onnx.TypeProto) -> int:
    return int(numpy.prod(_get_shape(kind)))


def _drop(kind: onnx.TypeProto, axis: int) -> onnx.TypeProto:
    shape = _get_shape(kind)
    return helper.make_tensor_type_proto(kind.tensor_type.elem_type, shape[:axis] + shape[axis + 1:])


def _stack(kind: onnx.TypeProto, count: int | None, axis: int) -> onnx.TypeProto:
    shape = _get_shape(kind)
    return helper.make_tensor_type_proto(kind.tensor_type.elem_type, [*shape[:axis], count, *shape[axis:]])


def _spell(kind: onnx.TypeProto) -> str:
    name = TensorProto.DataType.Name(kind.tensor_type.elem_type).lower()
    return f"{name}{_get_shape(kind)}"


def _compare(names: Sequence[str], before: Sequence[onnx.TypeProto], after: Sequence[onnx.TypeProto]) -> None:
    """Checks that carried values keep their types. Errors: Obstacle."""
    for name, one, other in zip(names, before, after, strict=True):
        if _spell(one) != _spell(other):
            raise Obstacle(f"it carries {name}, which is {_spell(one)} before a trip and {_spell(other)} behind it")
