"""Writes ONNX's scatters and TopK as reductions over pairs of elements, in their order."""

from collections.abc import Callable
from math import prod

import numpy
from onnx import TensorProto, helper, numpy_helper

from weir.graphs import ExportError
from weir.onnx.writing import Writer

MAX_PAIRS = 1 << 26  # of an element of the result and one that may be written there
REDUCTIONS = {b"add": ("ReduceSum", "Add"), b"mul": ("ReduceProd", "Mul"), b"min": ("ReduceMin", "Min"),
              b"max": ("ReduceMax", "Max")}


def scatter_elements(writer: Writer) -> bool:
    """Writes updates at places along an axis. Of several at one place the last counts, if there is no reduction."""
    data, indices, updates = writer.node.input
    shape, given = writer.shape(0), writer.shape(1)
    axis = writer.attribute("axis", 0) % len(shape)
    count = given[axis]
    if prod(shape) * count > MAX_PAIRS or not count:
        return False
    # Rows that the updates lack get places that no element has.
    places = writer.add("Cast", _wrap_negative(writer, indices, shape[axis]), to=TensorProto.INT64)
    places = _check_places(writer, places, shape[axis])
    ends = [0 if d == axis else whole - part for d, (whole, part) in enumerate(zip(shape, given))]
    if any(ends):
        pads = writer.constant([0] * len(shape) + ends)
        zero = writer.constant(0, helper.tensor_dtype_to_np_dtype(writer.kind(updates)))
        places, updates = (writer.add("Pad", value, pads, fill)
                           for value, fill in ((places, writer.constant(-1)), (updates, zero)))
    # Pairs have the update's number in a dimension behind that of the place.
    own = numpy.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape) + 1)])
    hit = writer.add("Equal", writer.add("Unsqueeze", places, writer.constant([axis])), writer.constant(own))
    values = writer.add("Unsqueeze", updates, writer.constant([axis]))
    numbers = numpy.arange(count).reshape([-1 if d == axis + 1 else 1 for d in range(len(shape) + 1)])
    return _combine(writer, data, hit, values, numbers, axis + 1,
                    lambda last: writer.add("GatherElements", updates, last, axis=axis))


def scatter_nd(writer: Writer) -> bool:
    """Writes slices at places. Of several at one place the last counts, if there is no reduction."""
    data, indices, updates = writer.node.input
    shape, given = writer.shape(0), writer.shape(1)
    depth, count = given[-1], prod(given[:-1])
    rows, width = prod(shape[:depth]), prod(shape[depth:])
    if rows * count * width > MAX_PAIRS or not rows * count * width:
        return False
    strides = [prod(shape[d + 1:depth]) for d in range(depth)]
    places = writer.add("Reshape", indices, writer.constant([count, depth]))
    sizes = writer.constant(shape[:depth])
    places = writer.add("Where", writer.add("Less", places, writer.constant(0)), writer.add("Add", places, sizes), places)
    found = writer.find_constant(indices)
    if found is not None:
        fixed = numpy_helper.to_array(found).reshape(count, depth)
        for d, size in enumerate(shape[:depth]):
            _check_constants(writer, fixed[:, d], size)
    else:
        columns = [writer.add("Slice", places, *(writer.constant([number]) for number in (d, d + 1, 1)))
                   for d in range(depth)]
        checked = [_check_places(writer, column, shape[d]) for d, column in enumerate(columns)]
        places = writer.add("Concat", *checked, axis=1) if depth > 1 else checked[0]
        outside = writer.add("Less", writer.add("ReduceMin", places, writer.constant([1]), keepdims=1)
                             if writer.opset >= 18 else writer.add("ReduceMin", places, axes=[1], keepdims=1),
                             writer.constant(0))
        places = writer.add("Where", outside, writer.constant(-1), places)
    key = writer.add("ReduceSum", writer.add("Mul", places, writer.constant(strides)), writer.constant([1]), keepdims=0)
    key = writer.add("Reshape", key, writer.constant([1, count, 1]))
    hit = writer.add("Equal", key, writer.constant(numpy.arange(rows).reshape(-1, 1, 1)))
    flat = writer.add("Reshape", updates, writer.constant([count, width]))
    made = writer.add("Reshape", data, writer.constant([rows, width]))
    whole = f"{writer.node.name}/flat"
    numbers = numpy.arange(count).reshape(1, count, 1)

    def take(last: str) -> str:
        row = writer.add("Reshape", last, writer.constant([rows]))
        return writer.add("Gather", flat, row, axis=0)

    if not _combine(writer, made, hit, writer.add("Unsqueeze", flat, writer.constant([0])), numbers, 1, take, whole):
        return False
    writer.add("Reshape", whole, writer.constant(shape), result=writer.node.output[0])
    return True


def _combine(
    writer: Writer, data: str, hit: str, values: str, numbers: numpy.ndarray, dim: int, take: Callable[[str], str],
    result: str = "",
) -> bool:
    """Combines `values` where they `hit` an element of `data`, over dimension `dim` of the pairs.

    `take` returns the updates by the number of the last that hits.
    """
    result = result or writer.node.output[0]
    kind, reduction = writer.kind(writer.node.input[0]), writer.attribute("reduction", b"none")
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    if reduction == b"none":
        found = writer.add("Where", hit, writer.constant(numbers), writer.constant(-1))
        last = writer.add("ReduceMax", found, writer.constant([dim]), keepdims=0) if writer.opset >= 18 else \
            writer.add("ReduceMax", found, axes=[dim], keepdims=0)
        taken = take(writer.add("Max", last, writer.constant(0)))
        writer.add("Where", writer.add("Less", last, writer.constant(0)), data, taken, result=result)
        return True
    if reduction not in REDUCTIONS:
        return False
    reduce, join = REDUCTIONS[reduction]
    neutral = {"Add": 0, "Mul": 1}.get(join)
    if neutral is None:
        if dtype.kind == "f":
            neutral = numpy.inf if join == "Min" else -numpy.inf
        elif dtype.kind in "iu":
            neutral = numpy.iinfo(dtype).max if join == "Min" else numpy.iinfo(dtype).min
        else:
            return False
    chosen = writer.add("Where", hit, values, writer.constant(neutral, dtype))
    if reduce == "ReduceSum" or writer.opset >= 18:
        reduced = writer.add(reduce, chosen, writer.constant([dim]), keepdims=0)
    else:
        reduced = writer.add(reduce, chosen, axes=[dim], keepdims=0)
    writer.add(join, data, reduced, result=result)
    return True


def _wrap_negative(writer: Writer, indices: str, size: int) -> str:
    """Returns indices that count from the end as ones that count from the start."""
    dtype = helper.tensor_dtype_to_np_dtype(writer.kind(indices))
    is_negative = writer.add("Less", indices, writer.constant(0, dtype))
    return writer.add("Where", is_negative, writer.add("Add", indices, writer.constant(size, dtype)), indices)


def _check_constants(writer: Writer, places: numpy.ndarray, size: int) -> None:
    """Errors: ExportError for constant indices that lead outside."""
    if places.size and not (-size <= places.min() and places.max() < size):
        raise ExportError(f"{writer.node.op_type}, node {writer.node.name}, writes at an index that is not in "
                          f"[{-size}, {size}), the axis's range; correct the constant indices")


def _check_places(writer: Writer, places: str, size: int) -> str:
    """Returns places, of which those outside are -1, by a gather from all places: `--check-indices` reports what gathers
    read outside. Errors: ExportError if constants lead outside."""
    found = writer.find_constant(writer.node.input[1])
    if found is not None:
        _check_constants(writer, numpy_helper.to_array(found), size)
        return places
    # The gather would count its negative places from the end again.
    ahead = writer.add("Where", writer.add("Less", places, writer.constant(0)), writer.constant(size), places)
    table = writer.add("Gather", writer.constant(numpy.arange(size)), ahead, axis=0)
    return writer.add("Where", writer.add("Equal", table, places), places, writer.constant(-1))


def top_k(writer: Writer) -> bool:
    """Writes TopK by counting for each element those before it; of equal ones the first comes first. NaN is larger than
    all numbers."""
    x, shape, count = writer.node.input[0], writer.shape(0), writer.number(1)
    if count is None or not shape:
        return False
    axis = writer.attribute("axis", -1) % len(shape)
    size = shape[axis]
    if prod(shape) * size > MAX_PAIRS:
        return False
    rank = len(shape)

    def spread(numbers: numpy.ndarray, dim: int) -> numpy.ndarray:
        return numbers.reshape([-1 if d == dim else 1 for d in range(rank + 1)])

    this, other = (writer.add("Unsqueeze", x, writer.constant([d])) for d in (axis + 1, axis))
    earlier = spread(numpy.arange(size), axis + 1) < spread(numpy.arange(size), axis)
    largest = writer.attribute("largest", 1)
    is_before = writer.add("Greater" if largest else "Less", other, this)
    is_equal = writer.add("Equal", other, this)
    if helper.tensor_dtype_to_np_dtype(writer.kind(x)).kind not in "iub":
        nans = [writer.add("IsNaN", value) for value in (this, other)]
        is_equal = writer.add("Or", is_equal, writer.add("And", *nans))
        one, no = reversed(nans) if largest else nans
        is_before = writer.add("Or", is_before, writer.add("And", one, writer.add("Not", no)))
    is_tied = writer.add("And", is_equal, writer.constant(earlier, bool))
    before = writer.add("Cast", writer.add("Or", is_before, is_tied), to=TensorProto.INT64)
    place = writer.add("ReduceSum", before, writer.constant([axis + 1]), keepdims=0)
    # The element of each place: pairs of a place, in dimension `axis`, and an element behind it.
    hit = writer.add("Equal", writer.add("Unsqueeze", place, writer.constant([axis])),
                     writer.constant(spread(numpy.arange(count), axis)))
    chosen = writer.add("Where", hit, writer.constant(spread(numpy.arange(size), axis + 1)), writer.constant(0))
    values, places = (*writer.node.output, "")[:2]
    found = writer.add("ReduceSum", chosen, writer.constant([axis + 1]), result=places, keepdims=0)
    writer.add("GatherElements", x, found, result=values, axis=axis)
    return True


def scatter_tensor(writer: Writer) -> bool:
    """Writes TensorScatter: a part of a cache is replaced, from an index that each batch has of its own."""
    shape, given = writer.shape(0), writer.shape(1)
    axis = writer.attribute("axis", -2) % len(shape)
    place = numpy.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape))])
    number = writer.constant(place)
    if writer.has(2):
        starts = writer.add("Reshape", writer.node.input[2], writer.constant([shape[0], *[1] * (len(shape) - 1)]))
        number = writer.add("Sub", number, starts)
    if writer.attribute("mode", b"linear") == b"circular":
        number = writer.add("Mod", number, writer.constant(shape[axis]))
    zero, count = writer.constant(0), writer.constant(given[axis])
    outside = writer.add("Or", writer.add("Less", number, zero), writer.add("Not", writer.add("Less", number, count)))
    source = writer.add("Expand", writer.add("Where", outside, zero, number), writer.constant(shape))
    taken = writer.add("GatherElements", writer.node.input[1], source, axis=axis)
    writer.add("Where", outside, writer.node.input[0], taken, result=writer.node.output[0])
    return True
