"""Writes ONNX's Resize as gathers and weights along one axis after the other.

The places and weights are those by which ONNX's reference resizes the rows of an identity.
"""

from fractions import Fraction

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from weir.onnx.references import run_node
from weir.onnx.writing import Writer

MAX_RESIZED = 1 << 20  # elements that the reference resizes one by one
MAX_TAPS = 16  # elements that an element of the result is made of, along an axis


def resize(writer: Writer) -> bool:
    """Writes a resize to constant sizes. Returns whether it did."""
    x, result = writer.node.input[0], writer.node.output[0]
    kind, sizes, target = writer.kind(x), writer.shape(0), writer.shape_of(result)
    is_nearest = writer.attribute("mode", b"nearest") == b"nearest"
    is_float = kind in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
    if target is None or not (is_float or is_nearest):
        return False
    given = _find_sizes(writer, len(sizes))
    if given is None:
        return False
    shared = _find_shared_ratio(writer, sizes, given)
    narrow = kind in (TensorProto.FLOAT16, TensorProto.BFLOAT16) and not is_nearest
    value = writer.add("Cast", x, to=TensorProto.FLOAT) if narrow else x
    dtype = numpy.float32 if narrow or kind == TensorProto.FLOAT else numpy.float64
    inside = numpy.ones(target, bool)
    for axis, (name, numbers, roi) in given.items():
        rows = _resize_identity(writer, sizes[axis], target[axis], name, numbers, roi, shared)
        if rows is None:
            return False
        outside = numpy.isnan(rows).any(1)
        inside &= ~outside.reshape([-1 if d == axis else 1 for d in range(len(sizes))])
        taps = _find_taps(numpy.where(outside[:, None], 0, rows))
        if taps is None:
            return False
        value = _apply(writer, value, axis, len(sizes), taps, is_nearest, dtype)
    if not inside.all():
        extrapolated = writer.constant(writer.attribute("extrapolation_value", 0.0), dtype)
        value = writer.add("Where", writer.constant(inside, bool), value, extrapolated)
    if narrow:
        writer.add("Cast", value, to=kind, result=result)
    else:
        writer.add("Identity", value, result=result)
    return True


def _find_sizes(writer: Writer, rank: int) -> dict[int, tuple[str, float, tuple[float, float]]] | None:
    """Returns for each axis the name and the value of what gives its size, `scales` or `sizes`, and its part of the
    region of interest. None if any is unknown."""
    place = next((place for place in (2, 3) if writer.has(place) and writer.array(place) is not None
                  and writer.array(place).size), None)
    if place is None:
        return None
    numbers = writer.array(place)
    axes = [axis % rank for axis in writer.attribute("axes", range(rank))]
    roi = writer.array(1) if writer.has(1) else None
    if roi is None or not roi.size:
        roi = numpy.repeat([0.0, 1.0], len(axes))
    if len(numbers) != len(axes) or len(roi) != 2 * len(axes):
        return None
    return {axis: ("scales" if place == 2 else "sizes", numbers[i], (roi[i], roi[len(axes) + i]))
            for i, axis in enumerate(axes)}


def _find_shared_ratio(writer: Writer, sizes: tuple, given: dict) -> Fraction | None:
    """Returns the ratio of all axes, if the sizes are bounds that keep the aspect ratio, or None."""
    policy = writer.attribute("keep_aspect_ratio_policy", b"stretch")
    ratios = [Fraction(int(number), sizes[axis]) for axis, (name, number, _) in given.items() if name == "sizes"]
    if policy == b"stretch" or not ratios:
        return None
    return min(ratios) if policy == b"not_larger" else max(ratios)


def _resize_identity(
    writer: Writer, size: int, target: int, name: str, number: float, roi: tuple[float, float], shared: Fraction | None
) -> numpy.ndarray | None:
    """Returns the weights of each element of the result. Those of elements outside of the region are NaN.

    A ratio that all axes share is that of a second axis, along which everything is equal.
    """
    replaced = ("axes", "extrapolation_value") if shared else ("axes", "extrapolation_value", "keep_aspect_ratio_policy")
    kept = [one for one in writer.node.attribute if one.name not in replaced]
    node = onnx.NodeProto(op_type="Resize", input=["x", "roi", "scales" if name == "scales" else "",
                                                   *(["sizes"] if name == "sizes" else [])], output=["y"])
    node.attribute.extend(kept)
    node.attribute.append(helper.make_attribute("extrapolation_value", float("nan")))
    inputs = {"x": numpy.eye(size, dtype=numpy.float64), "roi": numpy.array([0, roi[0], 1, roi[1]], numpy.float32)}
    inputs[name] = (numpy.array([1, number], numpy.float32) if name == "scales"
                    else numpy.array([size, number], numpy.int64))
    if shared:
        if size * target * shared.numerator > MAX_RESIZED:
            return None
        kept = shared.denominator
        node.attribute.append(helper.make_attribute("axes", [1, 2]))
        inputs["x"] = numpy.repeat(inputs["x"][:, None], kept, 1)
        inputs["roi"] = numpy.array([0, roi[0], 1, roi[1]], numpy.float32)
        inputs[name] = numpy.array([shared.numerator, number], numpy.int64)
    made = run_node(writer.model, node, {key: numpy_helper.from_array(value, key) for key, value in inputs.items()})
    rows = None if made is None else numpy_helper.to_array(made[0])
    rows = rows if rows is None else (rows[:, 0] if shared else rows).T
    return rows if rows is not None and rows.shape == (target, size) else None


def _find_taps(rows: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray] | None:
    """Returns places and weights, each of taps by elements, or None if an element has too many."""
    count = max(1, int((rows != 0).sum(1).max(initial=0)))
    if count > MAX_TAPS:
        return None
    places, weights = numpy.zeros((count, len(rows)), numpy.int64), numpy.zeros((count, len(rows)))
    for i, row in enumerate(rows):
        found = numpy.flatnonzero(row)
        places[:, i] = found[0] if len(found) else 0
        places[:len(found), i], weights[:len(found), i] = found, row[found]
    return places, weights


def _apply(
    writer: Writer, x: str, axis: int, rank: int, taps: tuple[numpy.ndarray, numpy.ndarray], is_nearest: bool, dtype
) -> str:
    total = ""
    for places, weights in zip(*taps):
        part = writer.add("Gather", x, writer.constant(places), axis=axis)
        if not is_nearest:
            factor = weights.reshape([-1 if d == axis else 1 for d in range(rank)])
            part = writer.add("Mul", part, writer.constant(factor, dtype))
        total = writer.add("Add", total, part) if total else part
    return total
