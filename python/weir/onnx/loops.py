"""Writes ONNX's Loop and Scan: few trips one by one, others as loops if what they carry keeps its shape."""

from collections.abc import Callable, Mapping

import numpy
import onnx
from onnx import helper

from weir.onnx.regions import count_trips, keep_loop, keep_scan
from weir.onnx.writing import Writer, rename_values

ALWAYS_UNROLLED = 1 << 8  # nodes of all trips
MAX_UNROLLED = 1 << 13  # the same if what a loop carries changes its shape


def write_loop(writer: Writer) -> bool:
    """Writes a Loop as its trips or as a loop. Returns whether it did."""
    return _unroll_loop(writer, ALWAYS_UNROLLED) or keep_loop(writer) or _unroll_loop(writer, MAX_UNROLLED)


def write_scan(writer: Writer) -> bool:
    """Writes a Scan as its trips or as a loop. Returns whether it did."""
    return _unroll_scan(writer, ALWAYS_UNROLLED) or keep_scan(writer) or _unroll_scan(writer, MAX_UNROLLED)


def _unroll_loop(writer: Writer, limit: int) -> bool:
    """Writes a Loop as its trips if their number is constant and its condition stays true. Returns whether it did."""
    node, body = writer.node, writer.attribute("body", None)
    trips = count_trips(writer, body)
    if trips is None or trips * max(1, len(body.node)) > limit:
        return False
    carried = list(node.input[2:])
    rows: list[list[str]] = []
    for i in range(trips):
        given = dict(zip((value.name for value in body.input), (
            writer.constant(i), writer.constant(True, bool), *carried)))
        made = _add_body(writer, body, given, f"{node.name}/{i}")[1:]
        carried = made[:len(carried)]
        rows.append(made[len(carried):])
    return _finish(writer, carried, rows, lambda k: 0)


def _unroll_scan(writer: Writer, limit: int) -> bool:
    """Writes a Scan as its trips, of at most `limit` nodes. Returns whether it did."""
    node, body = writer.node, writer.attribute("body", None)
    count = writer.attribute("num_scan_inputs", 0)
    carried, lists = list(node.input[:-count]), list(node.input[-count:])
    first = len(carried)
    if writer.opset < 9 or any(not name for name in node.input):
        return False
    axes = writer.attribute("scan_input_axes", [0] * count)
    backward = writer.attribute("scan_input_directions", [0] * count)
    trips = writer.shape(first)[axes[0]]
    if trips * max(1, len(body.node)) > limit:
        return False
    rows = []
    for i in range(trips):
        parts = [writer.add("Gather", name, writer.constant(trips - 1 - i if reverse else i), axis=axis)
                 for name, axis, reverse in zip(lists, axes, backward)]
        given = dict(zip((value.name for value in body.input), (*carried, *parts)))
        made = _add_body(writer, body, given, f"{node.name}/{i}")
        carried = made[:first]
        rows.append(made[first:])
    results = len(node.output) - first
    reversed_ = writer.attribute("scan_output_directions", [0] * results)
    out_axes = writer.attribute("scan_output_axes", [0] * results)
    columns = [list(column)[::-1] if reverse else list(column) for column, reverse in zip(zip(*rows), reversed_)]
    return _finish(writer, carried, [list(row) for row in zip(*columns)] if columns else rows, out_axes.__getitem__)


def _add_body(writer: Writer, body: onnx.GraphProto, given: Mapping[str, str], prefix: str) -> list[str]:
    """Adds the nodes of one trip, and returns the names of its results."""
    own = {name for inner in body.node for name in inner.output if name}
    own |= {tensor.name for tensor in body.initializer}
    names = {name: f"{prefix}/{name}" for name in own} | dict(given)
    for tensor in body.initializer:
        copy = onnx.TensorProto.FromString(tensor.SerializeToString())
        copy.name = names[tensor.name]
        writer.initializers.append(copy)
    for inner in body.node:
        new = rename_values(inner, lambda name: names.get(name, name))
        new.name = f"{prefix}/{inner.name}" if inner.name else ""
        writer.nodes.append(new)
    return [names.get(value.name, value.name) for value in body.output]


def _finish(writer: Writer, carried: list[str], rows: list[list[str]], get_axis: Callable[[int], int]) -> bool:
    """Gives the results their names: carried values, then the lists of one element for each trip."""
    results = list(writer.node.output)
    for name, result in zip(carried, results):
        if result:
            writer.add("Identity", name, result=result)
    for k, result in enumerate(results[len(carried):]):
        if not result:
            continue
        if not rows:
            shape = writer.shape_of(result)
            if shape is None:
                return False
            empty = writer.constant(numpy.zeros(shape), helper.tensor_dtype_to_np_dtype(writer.kind(result)))
            writer.add("Identity", empty, result=result)
            continue
        axis = writer.constant([get_axis(k)])
        parts = [writer.add("Unsqueeze", row[k], axis) for row in rows]
        writer.add("Concat", *parts, result=result, axis=get_axis(k))
    return True
