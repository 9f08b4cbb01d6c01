"""Operators of ONNX that torch-mlir lacks, or lowers to other values, written by others of ONNX's."""

from collections.abc import Callable, Iterable

import numpy
import onnx
from onnx import TensorProto, helper

from weir.onnx import elements, learned, updates
from weir.onnx.columns import join_columns
from weir.onnx.determinants import MATRICES, factor
from weir.onnx.loops import write_loop, write_scan
from weir.onnx.recurrences import is_plain, unroll
from weir.onnx.regions import CONTROL, is_kept, keep_branches
from weir.onnx.resizing import resize
from weir.onnx.sampling import convolve_deformed, pool_regions, sample_grid
from weir.onnx.scatters import scatter_elements, scatter_nd, scatter_tensor, top_k
from weir.onnx.spectra import transform, transform_frames
from weir.onnx.windows import average, convolve_integers, pool_norms, pool_places, unpool
from weir.onnx.writing import DOMAINS, Value, Writer

# ONNX's own function of these is used. torch-mlir has 0.797724 for the square root of 2 / pi in Gelu, and adds the
# weights of a loss as integers.
MAX_SQUARE = 512  # elements of a row whose running sums are sums over n by n, of which the compiler makes scans
WIDENED = {"AveragePool", "GlobalAveragePool", "GlobalLpPool", "LRN", "ReduceL1", "ReduceL2", "ReduceLogSum",
           "ReduceLogSumExp", "ReduceMean"}
EXPANDED = {"Gelu", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}


def is_wrong(node: onnx.NodeProto) -> bool:
    """Whether torch-mlir lowers a node to other values than ONNX's, or has no such domain."""
    given = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    if node.op_type == "AveragePool":  # windows that lead over the end
        return bool(given.get("ceil_mode")) and (
            bool(given.get("count_include_pad")) or any(step > 1 for step in given.get("dilations", ())))
    if is_kept(node):
        return False
    if node.op_type in CONTROL:
        return True
    if node.op_type in ("GRU", "LSTM", "RNN"):
        return not is_plain(node)
    return node.domain not in (*DOMAINS, MATRICES) or node.op_type in ("Det", "GridSample")


def rewrite(writer: Writer) -> bool:
    """Writes a node by its rule. Returns whether there is one for it."""
    rule = _find_rule(writer.node)
    return rule is not None and rule(writer) or _widen(writer)


def _widen(writer: Writer) -> bool:
    """Computes in f32 with elements of 16 bits if sums on the way to the result may be infinite where that is not."""
    node, narrow = writer.node, (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    if node.domain not in DOMAINS or node.op_type not in WIDENED or writer.kind(node.input[0]) not in narrow:
        return False
    kind = writer.kind(node.input[0])
    inputs = [writer.add("Cast", name, to=TensorProto.FLOAT) if name and writer.kind(name) == kind else name
              for name in node.input]
    settings = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    writer.add("Cast", writer.add(node.op_type, *inputs, **settings), to=kind, result=node.output[0])
    return True


def has_rule(node: onnx.NodeProto) -> bool:
    """Whether there is a rule for a node's operator, for some operands at least."""
    return _find_rule(node) is not None


def _find_rule(node: onnx.NodeProto) -> Callable[[Writer], bool] | None:
    return RULES.get(node.op_type) if node.domain in DOMAINS else FOREIGN_RULES.get((node.domain, node.op_type))


def _cumulate_in_steps(writer: Writer, combine: str, neutral: int, axis: int) -> None:
    """Combines each element with the one that is 1, 2, 4, ... places before it, until that holds all up to it
    (Hillis and Steele, "Data parallel algorithms", 1986)."""
    shape, dtype = writer.shape(0), helper.tensor_dtype_to_np_dtype(writer.kind(writer.node.input[0]))
    count, is_reverse = shape[axis], writer.attribute("reverse", 0)

    def shift(name: str, by: int) -> str:
        kept = (by, count) if is_reverse else (0, count - by)
        rest = writer.add("Slice", name, *(writer.constant([place]) for place in (*kept, axis)))
        ends = writer.constant(numpy.full([by if d == axis else size for d, size in enumerate(shape)], neutral), dtype)
        return writer.add("Concat", *((rest, ends) if is_reverse else (ends, rest)), axis=axis)

    value, by = writer.node.input[0], 1
    if writer.attribute("exclusive", 0):
        value = shift(value, 1)
    while by < count:
        value = writer.add(combine, value, shift(value, by))
        by *= 2
    writer.add("Identity", value, result=writer.node.output[0])


def _cumulate(reduce: str, combine: str, neutral: int) -> Callable[[Writer], bool]:
    """Returns a rule that reduces over all elements up to each, n by n for short rows."""
    def write(writer: Writer) -> bool:
        axis, kind = writer.number(1), writer.kind(writer.node.input[0])
        shape = writer.shape(0)
        if axis is None or not shape:
            return False
        axis %= len(shape)
        count = shape[axis]
        if count > MAX_SQUARE:
            _cumulate_in_steps(writer, combine, neutral, axis)
            return True
        seen = numpy.tri(count, count, -1 if writer.attribute("exclusive", 0) else 0, dtype=bool)
        seen = seen.T if writer.attribute("reverse", 0) else seen
        # The element's own place comes before the place of what it adds.
        spread = writer.add("Unsqueeze", writer.node.input[0], writer.constant([axis]))
        mask = writer.constant(seen.reshape(count, count, *(1,) * (len(shape) - axis - 1)), bool)
        nothing = writer.constant(neutral, helper.tensor_dtype_to_np_dtype(kind))
        chosen = writer.add("Where", mask, spread, nothing)
        writer.add(reduce, chosen, writer.constant([axis + 1]), result=writer.node.output[0], keepdims=0)
        return True

    return write


def _shift(writer: Writer) -> bool:
    """Shifts by as many bits as the type has, or more, or less than 0, leave no bit; torch-mlir's are undefined."""
    if "/BitShift" in writer.node.name:
        return False  # made by this rule
    x, y = writer.node.input
    dtype = helper.tensor_dtype_to_np_dtype(writer.kind(y))
    direction = writer.attribute("direction", b"LEFT").decode()
    zero, bits = writer.constant(0, dtype), 8 * dtype.itemsize
    far = writer.add("Not", writer.add("Less", y, writer.constant(bits, dtype)))
    if dtype.kind == "i":
        far = writer.add("Or", far, writer.add("Less", y, zero))
    if dtype.kind == "i" and direction == "RIGHT":  # copies of the sign remain
        near = writer.add("Where", far, writer.constant(bits - 1, dtype), y)
        writer.add("BitShift", x, near, result=writer.node.output[0], direction=direction)
        return True
    shifted = writer.add("BitShift", x, writer.add("Where", far, zero, y), direction=direction)
    writer.add("Where", far, zero, shifted, result=writer.node.output[0])
    return True


def _reinterpret(writer: Writer) -> bool:
    """Casts from and to booleans, which are 0 and 1; `weir.onnx.lowering` has an op for the others."""
    kind = writer.kind(writer.node.output[0])
    if TensorProto.BOOL not in (kind, writer.kind(writer.node.input[0])):
        return False
    writer.operand(0).cast(kind).finish()
    return True


def _along(writer: Writer, name: str, rank: int, shape: tuple[int, ...], axis: int, block: int = 0, size: int = 0) -> str:
    """Returns a scale or a zero point with one element for each place of an axis, or for each `block` of its `size`
    places, as a tensor that broadcasts."""
    if block:
        return writer.add("Gather", name, writer.constant(numpy.arange(size) // block), axis=axis)
    if len(shape) != 1 or shape[0] == 1:
        return name
    sizes = [1] * rank
    sizes[axis % rank] = shape[0]
    return writer.add("Reshape", name, writer.constant(sizes))


def _write_dequantize(writer: Writer, places: tuple[int, int, int], axis: int, result: str = "") -> str:
    """Writes (x - zero point) * scale. `places`: of the operands."""
    x, scale, zero = places
    rank, name = len(writer.shape(x)), writer.node.input[scale]
    block = writer.attribute("block_size", 0)
    blocks = block, writer.shape(x)[axis] if block else 0
    kind = writer.kind(name)
    wide = writer.add("Cast", writer.node.input[x], to=TensorProto.FLOAT)
    if writer.has(zero):
        low = writer.add("Cast", writer.node.input[zero], to=TensorProto.FLOAT)
        wide = writer.add("Sub", wide, _along(writer, low, rank, writer.shape(zero), axis, *blocks))
    factor = writer.add("Cast", name, to=TensorProto.FLOAT)
    factor = _along(writer, factor, rank, writer.shape(scale), axis, *blocks)
    if kind == TensorProto.FLOAT:
        return writer.add("Mul", wide, factor, result=result)
    return writer.add("Cast", writer.add("Mul", wide, factor), to=kind, result=result)


def _write_quantize(writer: Writer, x: str, rank: int, places: tuple[int, int], kind: int, axis: int, result: str) -> None:
    """Writes x / scale rounded to even, plus the zero point, within the limits of the type."""
    scale, zero = places
    block = writer.attribute("block_size", 0)
    blocks = block, writer.shape(0)[axis] if block else 0
    wide = writer.add("Cast", x, to=TensorProto.FLOAT)
    factor = writer.add("Cast", writer.node.input[scale], to=TensorProto.FLOAT)
    rounded = writer.add("Round", writer.add("Div", wide, _along(
        writer, factor, rank, writer.shape(scale), axis, *blocks)))
    if writer.has(zero):
        low = writer.add("Cast", writer.node.input[zero], to=TensorProto.FLOAT)
        rounded = writer.add("Add", rounded, _along(writer, low, rank, writer.shape(zero), axis, *blocks))
    limits = numpy.iinfo(helper.tensor_dtype_to_np_dtype(kind))
    bounds = [writer.constant(limit, numpy.float32) for limit in (limits.min, limits.max)]
    writer.add("Cast", writer.add("Clip", rounded, *bounds), to=kind, result=result)


def _is_plain(writer: Writer, kinds: Iterable[int], scales: Iterable[int], block: int) -> bool:
    """Whether a quantization is to 8 or 16 bits, by one scale, or one for each place or block of an axis."""
    known = {TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32}
    return set(kinds) <= known and all(block or len(writer.shape(place)) <= 1 for place in scales)


def _dequantize(writer: Writer) -> bool:
    if not _is_plain(writer, [writer.kind(writer.node.input[0])], [1], writer.attribute("block_size", 0)):
        return False
    axis = writer.attribute("axis", 1) if len(writer.shape(0)) > 1 else 0
    _write_dequantize(writer, (0, 1, 2), axis, writer.node.output[0])
    return True


def _quantize(writer: Writer) -> bool:
    kind = writer.kind(writer.node.output[0])
    if not _is_plain(writer, [kind], [1], writer.attribute("block_size", 0)):
        return False
    axis = writer.attribute("axis", 1) if len(writer.shape(0)) > 1 else 0
    _write_quantize(writer, writer.node.input[0], len(writer.shape(0)), (1, 2), kind, axis, writer.node.output[0])
    return True


def _multiply_quantized(writer: Writer) -> bool:
    kinds = [writer.kind(writer.node.input[place]) for place in (0, 3, 7)]
    if not _is_plain(writer, kinds, (1, 4, 6), 0):
        return False
    a = _write_dequantize(writer, (0, 1, 2), -2)
    b = _write_dequantize(writer, (3, 4, 5), -1)
    a, b = (writer.add("Cast", x, to=TensorProto.FLOAT) for x in (a, b))
    rank = max(len(writer.shape(0)), len(writer.shape(3)))
    _write_quantize(writer, writer.add("MatMul", a, b), rank, (6, 7), kinds[2], -2, writer.node.output[0])
    return True


def _convolve_quantized(writer: Writer) -> bool:
    """Writes QLinearConv as a convolution of integers, which the scales of image and weights, one for each channel or
    for all, multiply once the bias is added: torch-mlir adds it unscaled."""
    kinds = [writer.kind(writer.node.input[place]) for place in (0, 3, 7)]
    if not _is_plain(writer, kinds, (1, 4, 6), 0) or writer.shape_of(writer.node.input[3]) is None:
        return False
    kept = {one.name: helper.get_attribute_value(one) for one in writer.node.attribute}
    x, x_scale, x_zero, w, w_scale, w_zero, _, _ = writer.node.input[:8]
    total, channels = writer.add("ConvInteger", x, w, x_zero, w_zero, **kept), [1, -1, *(1,) * (len(writer.shape(0)) - 2)]
    if writer.has(8):
        bias = writer.add("Reshape", writer.node.input[8], writer.constant(channels))
        total = writer.add("Add", total, bias)
    scale = writer.add("Mul", *(writer.add("Reshape", writer.add("Cast", one, to=TensorProto.FLOAT),
                                           writer.constant(channels)) for one in (x_scale, w_scale)))
    total = writer.add("Mul", writer.add("Cast", total, to=TensorProto.FLOAT), scale)
    _write_quantize(writer, total, len(writer.shape(0)), (6, 7), kinds[2], 1, writer.node.output[0])
    return True


def _wrap(writer: Writer) -> bool:
    """Pads by elements from the other end."""
    pads = writer.array(1)
    if writer.attribute("mode", b"constant") != b"wrap" or pads is None:
        return False
    shape = writer.shape(0)
    axes = writer.array(3) if writer.has(3) else numpy.arange(len(shape))
    value = writer.node.input[0]
    for axis, before, after in zip(axes, pads[:len(axes)], pads[len(axes):]):
        places = numpy.arange(-before, shape[axis] + after) % shape[axis]
        value = writer.add("Gather", value, writer.constant(places), axis=int(axis))
    writer.add("Identity", value, result=writer.node.output[0])
    return True


def _center(writer: Writer) -> bool:
    """Keeps the middle of each axis that is too long, and adds zeros around one that is too short."""
    sizes = writer.array(1)
    if sizes is None:
        return False
    shape, value = writer.shape(0), writer.operand(0)
    axes = [axis % len(shape) for axis in writer.attribute("axes", range(len(shape)))]
    less = [(shape[axis] - int(size)) // 2 if size < shape[axis] else 0 for axis, size in zip(axes, sizes)]
    ends = [start + min(shape[axis], int(size)) for axis, start, size in zip(axes, less, sizes)]
    value = value.apply("Slice", *map(writer.constant, (less, ends, axes)))
    pads = [0] * 2 * len(shape)
    for axis, size in zip(axes, sizes):
        more = max(0, int(size) - shape[axis])
        pads[axis], pads[axis + len(shape)] = more // 2, more - more // 2
    value.apply("Pad", writer.constant(pads)).finish()
    return True


def _reverse(writer: Writer) -> bool:
    """Reverses the first elements of each sequence: those before its length, which may be data."""
    shape = writer.shape(0)
    batch, time = writer.attribute("batch_axis", 1), writer.attribute("time_axis", 0)
    def spread(sizes: int, axis: int) -> list[int]:
        return [sizes if d == axis else 1 for d in range(len(shape))]

    lengths = writer.add("Reshape", writer.node.input[1], writer.constant(spread(shape[batch], batch)))
    place = writer.constant(numpy.arange(shape[time]).reshape(spread(shape[time], time)))
    mirrored = writer.add("Sub", writer.add("Sub", lengths, writer.constant(1)), place)
    source = writer.add("Where", writer.add("Less", place, lengths), mirrored, place)
    source = writer.add("Expand", source, writer.constant(shape))
    writer.add("GatherElements", writer.node.input[0], source, result=writer.node.output[0], axis=time)
    return True


def _normalize(writer: Writer) -> bool:
    """Divides by the norm; where that is 0, so is the result."""
    x, axis = writer.node.input[0], writer.attribute("axis", -1)
    kind = "ReduceL1" if writer.attribute("p", 2) == 1 else "ReduceL2"
    norm = (writer.add(kind, x, writer.constant([axis])) if writer.opset >= 18 else writer.add(kind, x, axes=[axis]))
    zero = writer.constant(0, helper.tensor_dtype_to_np_dtype(writer.kind(x)))
    writer.add("Where", writer.add("Equal", norm, zero), zero, writer.add("Div", x, norm), result=writer.node.output[0])
    return True


def _multiply(writer: Writer) -> bool:
    """Multiplies a vector and a stack of matrices: torch-mlir takes a vector and one matrix."""
    ranks = [len(writer.shape(place)) for place in (0, 1)]
    if 1 not in ranks or max(ranks) < 3:
        return False
    a, b = writer.node.input
    if ranks[0] == 1:
        a, axis = writer.add("Unsqueeze", a, writer.constant([0])), -2
    else:
        b, axis = writer.add("Unsqueeze", b, writer.constant([1])), -1
    writer.add("Squeeze", writer.add("MatMul", a, b), writer.constant([axis]), result=writer.node.output[0])
    return True


def _convolve_groups(writer: Writer) -> bool:
    """Splits a transposed convolution of several groups into one for each."""
    groups = writer.attribute("group", 1)
    if groups == 1:
        return False
    kept = {one.name: helper.get_attribute_value(one) for one in writer.node.attribute if one.name != "group"}
    channels, weights = writer.shape(0)[1] // groups, writer.shape(1)
    parts = []
    for i in range(groups):
        def take(name: str, count: int, axis: int, i: int = i) -> str:
            return writer.add("Slice", name, writer.constant([i * count]), writer.constant([(i + 1) * count]),
                              writer.constant([axis]))

        x, w = take(writer.node.input[0], channels, 1), take(writer.node.input[1], channels, 0)
        bias = [take(writer.node.input[2], weights[1], 0)] if writer.has(2) else []
        parts.append(writer.add("ConvTranspose", x, w, *bias, **kept))
    writer.add("Concat", *parts, result=writer.node.output[0], axis=1)
    return True


def _pad_alike(writer: Writer) -> bool:
    """Takes from a transposed convolution without padding the part that has as many elements as strides of the image."""
    kind, shape, weights = writer.attribute("auto_pad", b"NOTSET"), writer.shape(0), writer.shape(1)
    rank = len(shape) - 2
    if kind not in (b"SAME_UPPER", b"SAME_LOWER") or rank < 1 or len(weights) != rank + 2:
        return _convolve_groups(writer)
    kept = {one.name: helper.get_attribute_value(one) for one in writer.node.attribute if one.name != "auto_pad"}
    steps, dilations, more = (kept.get(name, [one] * rank) for name, one in (
        ("strides", 1), ("dilations", 1), ("output_padding", 0)))
    whole = [step * (size - 1) + extra + (taps - 1) * dilation + 1 - size * step for size, taps, step, dilation, extra in
             zip(shape[2:], weights[2:], steps, dilations, more)]
    if min(whole) < 0:
        return False
    starts = [pad // 2 if kind == b"SAME_UPPER" else pad - pad // 2 for pad in whole]
    ends = [start + size * step for start, size, step in zip(starts, shape[2:], steps)]
    made = writer.add("ConvTranspose", *writer.node.input, **kept)
    writer.add("Slice", made, *map(writer.constant, (starts, ends, numpy.arange(2, 2 + rank))), result=writer.node.output[0])
    return True


def _multiply_numbers(writer: Writer) -> bool:
    """Multiplies the operands of an Einsum that have no dimension; it has no sum."""
    if any(writer.shape_of(name) != () for name in writer.node.input):
        return False
    value = writer.operand(0)
    for place in range(1, len(writer.node.input)):
        value = value * writer.operand(place)
    value.finish()
    return True


def _keep_all(writer: Writer) -> bool:
    """Writes a Dropout in training that drops nothing."""
    ratio = writer.array(1) if writer.has(1) else None
    if not writer.has(2) or ratio is None or float(ratio.reshape(())) != 0:
        return False
    writer.operand(0).finish()
    mask = writer.add("Expand", writer.constant(True, bool), writer.constant(writer.shape(0)))
    Value(writer, mask, TensorProto.BOOL).finish(1)
    return True


def _reshape_nothing(writer: Writer) -> bool:
    """Writes a Reshape to a shape in which 0 is a size, and no element is left: a tensor of that shape."""
    shape = writer.array(1) if writer.has(1) else None
    target = writer.shape_of(writer.node.output[0])
    if not writer.attribute("allowzero", 0) or shape is None or 0 not in shape or target is None:
        return False
    zero = writer.constant(0, helper.tensor_dtype_to_np_dtype(writer.kind(writer.node.input[0])))
    writer.add("Expand", zero, writer.constant(target), result=writer.node.output[0])
    return True


def _slice_backward(writer: Writer) -> bool:
    """Takes elements at constant places along each axis, if one is walked from its end."""
    starts, ends = writer.array(1), writer.array(2)
    shape = writer.shape(0)
    steps = writer.array(4) if writer.has(4) else None
    if starts is None or ends is None or steps is None or (steps > 0).all() or (writer.has(3) and writer.array(3) is None):
        return False
    axes = writer.array(3) if writer.has(3) else numpy.arange(len(starts))
    value = writer.node.input[0]
    for axis, start, end, step in zip(axes, starts, ends, steps):
        size = shape[axis]
        # As Python's slices, but an end before the first element is one, whatever its sign.
        first = int(start + size if start < 0 else start)
        last = int(end + size if end < 0 else end)
        if step < 0:
            places = numpy.arange(min(max(first, -1), size - 1), min(max(last, -1), size - 1), step)
        else:
            places = numpy.arange(min(max(first, 0), size), min(max(last, 0), size), step)
        value = writer.add("Gather", value, writer.constant(places), axis=int(axis))
    writer.add("Identity", value, result=writer.node.output[0])
    return True


def _move_blocks(to_space: bool) -> Callable[[Writer], bool]:
    """Returns a rule that moves blocks of channels to space, or back, with channels in front of blocks (CRD) or behind
    (DCR)."""
    def write(writer: Writer) -> bool:
        block = writer.attribute("blocksize", 1)
        is_crd = writer.attribute("mode", b"DCR") == b"CRD"
        n, c, *space = writer.shape(0)
        if len(space) != 2:
            return False
        h, w = space
        if to_space:
            split = (n, c // block**2, block, block, h, w) if is_crd else (n, block, block, c // block**2, h, w)
            order = (0, 1, 4, 2, 5, 3) if is_crd else (0, 3, 4, 1, 5, 2)
            sizes = (n, c // block**2, h * block, w * block)
        else:
            split = (n, c, h // block, block, w // block, block)
            order = (0, 1, 3, 5, 2, 4) if is_crd else (0, 3, 5, 1, 2, 4)
            sizes = (n, c * block**2, h // block, w // block)
        value = writer.add("Reshape", writer.node.input[0], writer.constant(split))
        value = writer.add("Transpose", value, perm=order)
        writer.add("Reshape", value, writer.constant(sizes), result=writer.node.output[0])
        return True

    return write


RULES: dict[str, Callable[[Writer], bool]] = elements.RULES | {
    "AveragePool": average,
    "BitCast": _reinterpret,
    "BitShift": _shift,
    "CenterCropPad": _center,
    "Col2Im": join_columns,
    "DFT": transform,
    "DeformConv": convolve_deformed,
    "DepthToSpace": _move_blocks(to_space=True),
    "ConvInteger": convolve_integers,
    "ConvTranspose": _pad_alike,
    "CumProd": _cumulate("ReduceProd", "Mul", 1),
    "CumSum": _cumulate("ReduceSum", "Add", 0),
    "DequantizeLinear": _dequantize,
    "Det": factor,
    "Dropout": _keep_all,
    "Einsum": _multiply_numbers,
    "GRU": unroll,
    "GridSample": sample_grid,
    "LSTM": unroll,
    "If": keep_branches,
    "Loop": write_loop,
    "LpPool": pool_norms,
    "LpNormalization": _normalize,
    "MatMul": _multiply,
    "MaxPool": pool_places,
    "MaxUnpool": unpool,
    "Pad": _wrap,
    "QLinearConv": _convolve_quantized,
    "QLinearMatMul": _multiply_quantized,
    "QuantizeLinear": _quantize,
    "RNN": unroll,
    "Reshape": _reshape_nothing,
    "Resize": resize,
    "ReverseSequence": _reverse,
    "RoiAlign": pool_regions,
    "STFT": transform_frames,
    "Scan": write_scan,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Slice": _slice_backward,
    "SpaceToDepth": _move_blocks(to_space=False),
    "TensorScatter": scatter_tensor,
    "TopK": top_k,
}

# Operators outside of ONNX's own domain.
FOREIGN_RULES: dict[tuple[str, str], Callable[[Writer], bool]] = learned.RULES | updates.RULES
