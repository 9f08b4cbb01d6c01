"""Writes pooling and convolution with windows over the ends, where torch-mlir lacks them or has other values."""

from math import prod

import numpy
from onnx import TensorProto, helper

from weir.onnx.elements import pool_bytes
from weir.onnx.writing import Value, Writer


def average(writer: Writer) -> bool:
    """Writes an AveragePool whose windows may lead over the padding at the end: a convolution with ones, divided by the
    number of elements. Returns whether it did."""
    shape, x = writer.shape(0), writer.operand(0)
    kernel = writer.attribute("kernel_shape", ())
    rank = len(kernel)
    dilations = writer.attribute("dilations", [1] * rank)
    if not writer.attribute("ceil_mode", 0) or 0 in shape:
        return False
    if max(dilations) == 1 and not writer.attribute("count_include_pad", 0):
        return False
    steps = writer.attribute("strides", [1] * rank)
    target = writer.shape_of(writer.node.output[0])
    pads = find_pads(writer, shape[2:], [(size - 1) * step + 1 for size, step in zip(kernel, dilations)], steps)
    if target is None or pads is None:
        return False
    count, more = numpy.ones(()), []
    for d in range(rank):
        size, (before, after) = shape[2 + d], pads[d]
        starts = numpy.arange(target[2 + d])[:, None] * steps[d] - before
        places = starts + numpy.arange(kernel[d])[None] * dilations[d]
        if writer.attribute("count_include_pad", 0):
            inside = (places >= -before) & (places < size + after)
        else:
            inside = (places >= 0) & (places < size)
        count = count[..., None] * inside.sum(1)
        more.append(max(0, int(places.max()) - size + 1))
    narrow = x.kind in (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    value = (x.cast(TensorProto.FLOAT) if narrow else x).reshape(prod(shape[:2]), 1, *shape[2:])
    dtype = _get_dtype(value)
    ones = writer.constant(numpy.ones((1, 1, *kernel)), dtype)
    total = value.apply("Conv", ones, strides=steps, dilations=dilations, pads=[before for before, _ in pads] + more)
    total = total.reshape(*target) / Value(writer, writer.constant(count, dtype), value.kind)
    total.cast(x.kind).finish()
    return True


def pool_norms(writer: Writer) -> bool:
    """Writes an LpPool: a convolution of powers with ones, and the root of the sums. Returns whether it did."""
    shape, x, p = writer.shape(0), writer.operand(0), writer.attribute("p", 2)
    kernel = writer.attribute("kernel_shape", ())
    rank = len(kernel)
    dilations, steps = (writer.attribute(name, [1] * rank) for name in ("dilations", "strides"))
    target = writer.shape_of(writer.node.output[0])
    pads = find_pads(writer, shape[2:], [(size - 1) * step + 1 for size, step in zip(kernel, dilations)], steps)
    if target is None or pads is None or 0 in shape:
        return False
    ends = [max(0, (target[2 + d] - 1) * steps[d] + (kernel[d] - 1) * dilations[d] + 1 - pads[d][0] - shape[2 + d])
            for d in range(rank)]
    narrow = x.kind in (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    size = (x.cast(TensorProto.FLOAT) if narrow else x).apply("Abs").reshape(prod(shape[:2]), 1, *shape[2:])
    powers = size if p == 1 else size * size if p == 2 else size ** p
    ones = writer.constant(numpy.ones((1, 1, *kernel)), _get_dtype(size))
    total = powers.apply("Conv", ones, strides=steps, dilations=dilations, pads=[before for before, _ in pads] + ends)
    total = total.reshape(*target)
    root = total if p == 1 else total.apply("Sqrt") if p == 2 else total ** (1 / p)
    root.cast(x.kind).finish()
    return True


def pool_places(writer: Writer) -> bool:
    """Writes a MaxPool with the places of its maxima, the first of equal ones or of NaNs, as a maximum of slices, one for
    each place of the kernel. Returns whether it did."""
    if len(writer.node.output) < 2 or not writer.node.output[1]:
        return pool_bytes(writer)
    shape, x = writer.shape(0), writer.operand(0)
    kernel = writer.attribute("kernel_shape", ())
    rank, dtype = len(kernel), _get_dtype(x)
    dilations, steps = (writer.attribute(name, [1] * rank) for name in ("dilations", "strides"))
    target = writer.shape_of(writer.node.output[0])
    pads = find_pads(writer, shape[2:], [(size - 1) * step + 1 for size, step in zip(kernel, dilations)], steps)
    if target is None or pads is None or 0 in target:
        return False
    starts = [numpy.arange(target[2 + d]) * steps[d] - pads[d][0] for d in range(rank)]
    ends = [max(0, int(starts[d][-1]) + (kernel[d] - 1) * dilations[d] + 1 - shape[2 + d]) for d in range(rank)]
    least = -numpy.inf if dtype.kind not in "iu" else numpy.iinfo(dtype).min
    sizes = [0, 0, *(before for before, _ in pads), 0, 0, *ends]
    padded = x.apply("Pad", writer.constant(sizes), writer.constant(least, dtype))
    slices, places = [], []
    for offset in numpy.ndindex(*kernel):
        first = [offset[d] * dilations[d] for d in range(rank)]
        last = [first[d] + (target[2 + d] - 1) * steps[d] + 1 for d in range(rank)]
        part = padded.apply("Slice", *map(writer.constant, (first, last, numpy.arange(2, 2 + rank), steps)))
        slices.append(part.reshape(1, *target).name)
        grid = numpy.meshgrid(*(starts[d] + first[d] for d in range(rank)), indexing="ij")
        is_inside = numpy.all([(grid[d] >= 0) & (grid[d] < shape[2 + d]) for d in range(rank)], axis=0)
        places.append(numpy.where(is_inside, numpy.ravel_multi_index(grid, shape[2:], mode="clip"), prod(shape)))
    stacked = Value(writer, writer.add("Concat", *slices, axis=0), x.kind)
    largest = stacked.reduce("ReduceMax", [0])
    largest.finish()
    is_largest = stacked.equal(largest)
    if dtype.kind not in "iu":
        is_largest = is_largest | Value(writer, writer.add("IsNaN", stacked.name), TensorProto.BOOL)
    table = writer.constant(numpy.reshape(places, (len(places), 1, 1, *target[2:])))
    place = is_largest.choose(Value(writer, table, TensorProto.INT64), prod(shape)).reduce("ReduceMin", [0])
    if writer.attribute("storage_order", 0):  # the last axis is the slowest
        order = numpy.arange(prod(shape[2:])).reshape(shape[:1:-1]).transpose().reshape(-1)
        place = Value(writer, writer.add("Gather", writer.constant(order), place.name, axis=0), TensorProto.INT64)
    plane = numpy.arange(prod(shape[:2])).reshape(*shape[:2], *(1,) * rank) * prod(shape[2:])
    (place + Value(writer, writer.constant(plane), TensorProto.INT64)).finish(1)
    return True


def convolve_integers(writer: Writer) -> bool:
    """Writes a ConvInteger as ones without padding, whose image is padded by its zero point, and with one zero point of
    all weights. Returns whether it did."""
    shape, weights = writer.shape(0), writer.shape(1)
    rank = len(shape) - 2
    steps, dilations = (writer.attribute(name, [1] * rank) for name in ("strides", "dilations"))
    pads = find_pads(writer, shape[2:], [(size - 1) * step + 1 for size, step in zip(weights[2:], dilations)], steps)
    has_many = writer.has(3) and prod(writer.shape(3)) > 1
    if pads is None or not (any(map(any, pads)) or has_many):
        return False
    x = writer.operand(0)
    if any(map(any, pads)):
        zero = writer.operand(2).reshape().name if writer.has(2) else writer.constant(0, _get_dtype(x))
        sizes = [0, 0, *(before for before, _ in pads), 0, 0, *(after for _, after in pads)]
        x = x.apply("Pad", writer.constant(sizes), zero)
    kept = {one.name: helper.get_attribute_value(one) for one in writer.node.attribute
            if one.name not in ("auto_pad", "pads")}

    def convolve(kernel: str, *zeros: str) -> Value:
        return Value(writer, writer.add("ConvInteger", x.name, kernel, *zeros, **kept), TensorProto.INT32)

    zeros = list(writer.node.input[2:])
    if not has_many:
        convolve(writer.node.input[1], *zeros).finish()
        return True
    # The weights' zero points take away a multiple of the sum of each window, which floats hold exactly.
    wide = x.cast(TensorProto.FLOAT if 255 * prod(weights[1:]) < 1 << 24 else TensorProto.DOUBLE)
    wide = wide - writer.operand(2).cast(wide.kind) if writer.has(2) else wide
    sums = wide.apply("Conv", writer.constant(numpy.ones(weights), _get_dtype(wide)), **kept).cast(TensorProto.INT32)
    low = writer.operand(3).cast(TensorProto.INT32).reshape(-1, *(1,) * rank)
    (convolve(writer.node.input[1], *zeros[:1]) - sums * low).finish()
    return True


def _get_dtype(value: Value) -> numpy.dtype:
    return helper.tensor_dtype_to_np_dtype(value.kind)


def unpool(writer: Writer) -> bool:
    """Writes a MaxUnpool as a scatter into zeros. Returns whether it did."""
    shape, x = writer.shape(0), writer.operand(0)
    kernel = writer.attribute("kernel_shape", ())
    rank = len(kernel)
    steps, pads = writer.attribute("strides", [1] * rank), writer.attribute("pads", [0] * 2 * rank)
    # The indices count in the result that belongs to the windows; a given shape has more zeros behind.
    sizes = [(shape[2 + d] - 1) * steps[d] - pads[d] - pads[rank + d] + kernel[d] for d in range(rank)]
    inner = (*shape[:2], *sizes)
    given = writer.array(2) if writer.has(2) else inner
    if given is None or 0 in shape or any(size > whole for size, whole in zip(inner, given)):
        return False
    zeros = Value(writer, writer.constant(numpy.zeros(prod(inner)), _get_dtype(x)), x.kind)
    made = zeros.apply("ScatterElements", writer.operand(1).reshape(-1).name, x.reshape(-1).name, axis=0)
    made = made.reshape(*inner)
    ends = [int(whole) - size for whole, size in zip(given, inner)]
    made.apply("Pad", writer.constant([0] * len(inner) + ends)).finish()
    return True


def find_pads(writer: Writer, sizes: tuple, windows: list[int], steps: list[int]) -> list[tuple[int, int]] | None:
    """Returns the padding before and behind each axis, or None for a name that ONNX does not have.

    `windows`: the elements from the first to the last of a window.
    """
    kind = writer.attribute("auto_pad", b"NOTSET")
    given = writer.attribute("pads", [0] * 2 * len(sizes))
    if kind == b"NOTSET":
        return list(zip(given, given[len(sizes):]))
    if kind == b"VALID":
        return [(0, 0)] * len(sizes)
    if kind not in (b"SAME_UPPER", b"SAME_LOWER"):
        return None
    whole = [max(0, (-(-size // step) - 1) * step + window - size) for size, window, step in zip(sizes, windows, steps)]
    small, large = [pad // 2 for pad in whole], [pad - pad // 2 for pad in whole]
    return list(zip(small, large) if kind == b"SAME_UPPER" else zip(large, small))
