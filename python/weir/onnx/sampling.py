"""Writes operators that read a tensor between its elements: one gather of all neighbours, and a weighted sum.

The neighbours along each axis, its taps, are a dimension of their own behind those of the places.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy
from onnx import TensorProto, helper

from weir.onnx.writing import Value, Writer

FLOATS = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE}
MODES = {b"bilinear": b"linear", b"bicubic": b"cubic"}  # older names by newer ones
SHARPNESS = -0.75  # of cubic convolution


def sample_grid(writer: Writer) -> bool:
    """Writes GridSample. Returns whether it did."""
    shape, given = writer.shape(0), writer.shape(1)
    x, grid = writer.operand(0), writer.operand(1)
    mode = writer.attribute("mode", b"linear")
    mode, padding = MODES.get(mode, mode), writer.attribute("padding_mode", b"zeros")
    align = bool(writer.attribute("align_corners", 0))
    sizes = shape[2:]
    if mode not in (b"nearest", b"linear", b"cubic") or padding not in (b"zeros", b"border", b"reflection"):
        return False
    if 0 in shape + given or (mode != b"nearest" and x.kind not in FLOATS):
        return False
    grid = grid.cast(TensorProto.DOUBLE if grid.kind == TensorProto.DOUBLE else TensorProto.FLOAT)
    axes = []
    for d, size in enumerate(sizes):
        # The last axis comes first in the grid.
        place = grid.apply("Gather", writer.constant(len(sizes) - 1 - d), axis=-1)
        place = place.apply("Unsqueeze", writer.constant([1]))
        place = (place + 1) / 2 * (size - 1) if align else ((place + 1) * size - 1) / 2
        axis = _Axis(size, len(sizes) - 1 - d, padding, 0.0 if align else -0.5)
        axes.append(axis.find_taps(_spread(place, len(shape), len(sizes)), mode))
    image = _Image(x, shape, _count(writer, shape[0]), len(shape) + len(sizes))
    image.sum_up(axes).cast(x.kind).finish()
    return True


def pool_regions(writer: Writer) -> bool:
    """Writes RoiAlign with a constant number of samples. Returns whether it did."""
    shape, regions = writer.shape(0), writer.operand(1)
    x, count = writer.operand(0), writer.attribute("sampling_ratio", 0)
    mode = writer.attribute("mode", b"avg").lower()
    given = writer.attribute("coordinate_transformation_mode", b"half_pixel").lower()
    is_half = writer.opset >= 16 and given == b"half_pixel"
    if count < 1 or mode not in (b"avg", b"max") or 0 in shape + writer.shape(1):
        return False
    pooled = [writer.attribute(name, 1) for name in ("output_height", "output_width")]
    regions = regions.cast(TensorProto.DOUBLE if regions.kind == TensorProto.DOUBLE else TensorProto.FLOAT)

    def take(column: int) -> Value:
        part = regions.apply("Gather", writer.constant([column]), axis=1).reshape(-1, 1, 1, 1)
        return part * writer.attribute("spatial_scale", 1.0) - (0.5 if is_half else 0)

    axes = []
    for d, bins in enumerate(pooled):
        start, end = take(1 - d), take(3 - d)
        extent = end - start
        if not is_half:
            extent = (extent < 1).choose(1, extent)
        extent = extent / bins
        numbers = numpy.arange(bins * count).reshape([-1 if axis == 2 + d else 1 for axis in range(4)])
        place = start + extent * _spell(extent, numbers // count)
        place = place + extent * _spell(extent, numbers % count + 0.5) / count
        axes.append(_find_clamped_taps(_spread(place, 4, 2), 1 - d, shape[2 + d]))
    image = _Image(x, shape, writer.operand(2).cast(TensorProto.INT64), 6)
    made = image.sum_up(axes) if mode == b"avg" else image.find_max(axes)
    made = made.reshape(writer.shape(1)[0], shape[1], pooled[0], count, pooled[1], count)
    made = made.reduce("ReduceMean" if mode == b"avg" else "ReduceMax", [3, 5])
    made.cast(x.kind).finish()
    return True


def convolve_deformed(writer: Writer) -> bool:
    """Writes DeformConv as samples of each element of the kernel, and a product of matrices. Returns whether it did."""
    shape, weights, given = (writer.shape(place) for place in range(3))
    x, kernel, target = writer.operand(0), weights[2:], given[2:]
    rank, elements = len(kernel), prod(kernel)
    groups, parts = writer.attribute("group", 1), writer.attribute("offset_group", 1)
    if 0 in shape + weights + given or tuple(writer.attribute("kernel_shape", kernel)) != kernel:
        return False
    work = TensorProto.DOUBLE if x.kind == TensorProto.DOUBLE else TensorProto.FLOAT
    rows, channels = shape[0] * parts, shape[1] // parts
    offsets = writer.operand(2).cast(work).reshape(rows, elements, rank, *target)
    axes = []
    for d, size in enumerate(shape[2:]):
        step, dilation = (writer.attribute(name, [1] * rank)[d] for name in ("strides", "dilations"))
        numbers = numpy.unravel_index(numpy.arange(elements), kernel)[d].reshape(1, 1, elements, *(1,) * rank)
        starts = numpy.arange(target[d]).reshape([-1 if axis == 3 + d else 1 for axis in range(3 + rank)])
        own = starts * step - writer.attribute("pads", [0] * 2 * rank)[d] + numbers * dilation
        moved = offsets.apply("Gather", writer.constant(d), axis=2).apply("Unsqueeze", writer.constant([1]))
        place = _spread(moved + _spell(moved, own), 3 + rank, rank)
        axes.append(_Axis(size, rank - 1 - d, b"zeros", 0.0).find_taps(place, b"linear"))
    samples = _Image(x, (rows, channels, *shape[2:]), _count(writer, rows), 3 + 2 * rank).sum_up(axes)
    if writer.has(4):
        samples = samples * writer.operand(4).cast(work).reshape(rows, 1, elements, *target)
    samples = samples.reshape(shape[0], groups, shape[1] // groups * elements, prod(target))
    matrix = writer.operand(1).cast(work).reshape(1, groups, weights[0] // groups, weights[1] * elements)
    made = matrix.apply("MatMul", samples.name).reshape(shape[0], weights[0], *target)
    if writer.has(3):
        made = made + writer.operand(3).cast(work).reshape(1, -1, *(1,) * rank)
    made.cast(x.kind).finish()
    return True


@dataclass(frozen=True)
class _Taps:
    """The neighbours of places along an axis. `weight`: None if one is all there is. `inside`: where there is an
    element; None if everywhere."""

    index: Value
    weight: Value | None = None
    inside: Value | None = None


@dataclass(frozen=True)
class _Image:
    """An operand of shape [rows, channels, *sizes], read at taps of shape [rows, 1, ...] of each axis.

    `rows`: the row that each row of the taps reads, as int64. `rank`: that of the taps.
    """

    x: Value
    shape: Sequence[int]
    rows: Value
    rank: int

    def sum_up(self, axes: Sequence[_Taps]) -> Value:
        """Returns the weighted sums over all taps of a place."""
        return self._reduce(axes, "ReduceSum")

    def find_max(self, axes: Sequence[_Taps]) -> Value:
        """Returns the greatest of the weighted elements of a place."""
        return self._reduce(axes, "ReduceMax")

    def _reduce(self, axes: Sequence[_Taps], kind: str) -> Value:
        value = self._take(axes)
        weights = [taps.weight for taps in axes if taps.weight is not None]
        if weights:
            work = TensorProto.DOUBLE if value.kind == TensorProto.DOUBLE else TensorProto.FLOAT
            value = value.cast(work)
            whole = weights[0].cast(work)
            for weight in weights[1:]:
                whole = whole * weight.cast(work)
            value = value * whole
        last = [self.rank - 1 - d for d in range(len(axes))]
        return value.reduce(kind, last) if weights else value.apply("Squeeze", value.writer.constant(last))

    def _take(self, axes: Sequence[_Taps]) -> Value:
        """Returns the elements at taps, 0 outside."""
        count, sizes = self.shape[1], self.shape[2:]
        behind = (1,) * (self.rank - 2)
        channels = _count(self.x.writer, count).reshape(1, count, *behind)
        index = (self.rows.reshape(-1, 1, *behind) * count + channels) * prod(sizes)
        inside = None
        for d, taps in enumerate(axes):
            index = index + taps.index * prod(sizes[d + 1:])
            if taps.inside is not None:
                inside = inside & taps.inside if inside else taps.inside
        value = self.x.reshape(-1).apply("Gather", index.name, axis=0)
        return inside.choose(value, 0) if inside else value


@dataclass(frozen=True)
class _Axis:
    """An axis of an image, and what places outside of it read.

    `behind`: the number of axes behind it. `low`: its border before the first element, whose place is 0; the border
              behind the last is as far away from that.
    """

    size: int
    behind: int
    padding: bytes
    low: float

    def find_taps(self, place: Value, mode: bytes) -> _Taps:
        """Returns the taps of places with a dimension of size 1 for the taps of each axis."""
        if mode == b"nearest":
            return self._make_taps(self._lead_inside(place.apply("Round")))
        place = self._lead_inside(place)
        first = place.apply("Floor")
        rest = place - first
        if mode == b"linear":
            return self._make_taps(first + self._spell(place, [0, 1]), _weigh_linear(rest, self.behind))
        distance = rest * self._spell(place, [1, 1, -1, -1]) + self._spell(place, [1, 0, 1, 2])
        a = SHARPNESS
        near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        is_near = place.writer.constant(_stand([False, True, True, False], self.behind), bool)
        weight = Value(place.writer, is_near, TensorProto.BOOL).choose(near, far)
        return self._make_taps(first + self._spell(place, [-1, 0, 1, 2]), weight)

    def _spell(self, like: Value, numbers: Sequence[float]) -> Value:
        return _spell(like, _stand(numbers, self.behind))

    def _lead_inside(self, place: Value) -> Value:
        """Returns places for those that lie outside of the borders."""
        if self.padding == b"border":
            return (place < self.low).choose(0, (place > self.size - 1 - self.low).choose(self.size - 1, place))
        return self._reflect(place) if self.padding == b"reflection" else place

    def _reflect(self, place: Value) -> Value:
        """Returns places mirrored at the borders until they lie between these."""
        low, high = self.low, self.size - 1 - self.low
        if low == high:
            return place * 0
        distance = place - low
        turns = (distance / (high - low)).apply("Floor")
        rest = distance - turns * (high - low)
        is_even = (turns / 2).apply("Floor").equal(turns / 2)
        mirrored = is_even.choose(rest + low, high - rest)
        return (place < low).choose(mirrored, (place > high).choose(mirrored, place))

    def _make_taps(self, place: Value, weight: Value | None = None) -> _Taps:
        """Returns the taps of whole numbers."""
        if self.padding == b"reflection":
            place = self._reflect(place)
        inside = (place > -0.5) & (place < self.size - 0.5) if self.padding == b"zeros" else None
        return _Taps(_clamp(place, self.size).cast(TensorProto.INT64), weight, inside)


def _find_clamped_taps(place: Value, behind: int, size: int) -> _Taps:
    """Returns the linear taps of places, of which those up to one element outside read the element at the border, and
    others 0."""
    inside = ~((place < -1) | (place > size))
    place = _clamp(place, size)
    first = place.apply("Floor")
    index = _clamp(first + _spell(place, _stand([0, 1], behind)), size)
    return _Taps(index.cast(TensorProto.INT64), _weigh_linear(place - first, behind), inside)


def _clamp(place: Value, size: int) -> Value:
    """Returns places from the first to the last element. A NaN becomes 0, so that all are integers' values."""
    return (place > 0).choose((place < size - 1).choose(place, size - 1), 0)


def _weigh_linear(rest: Value, behind: int) -> Value:
    return rest * _spell(rest, _stand([-1, 1], behind)) + _spell(rest, _stand([1, 0], behind))


def _stand(numbers: Sequence[float], behind: int) -> numpy.ndarray:
    """Returns numbers along the dimension that has `behind` others behind it."""
    return numpy.reshape(numbers, (-1, *(1,) * behind))


def _spell(like: Value, numbers: numpy.ndarray) -> Value:
    """Returns a constant of the type of `like`."""
    writer = like.writer
    return Value(writer, writer.constant(numbers, helper.tensor_dtype_to_np_dtype(like.kind)), like.kind)


def _count(writer: Writer, count: int) -> Value:
    return Value(writer, writer.constant(numpy.arange(count)), TensorProto.INT64)


def _spread(place: Value, rank: int, axes: int) -> Value:
    """Returns places of `rank` dimensions with one of size 1 for the taps of each axis behind them."""
    return place.apply("Unsqueeze", place.writer.constant(range(rank, rank + axes)))
