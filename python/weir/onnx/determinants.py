"""Writes ONNX's Det by elimination, with the largest element of each column as its pivot."""

import numpy
from onnx import TensorProto

from weir.onnx.writing import Value, Writer

MAX_SIZE = 32  # rows of a matrix, each of which is written out


def eliminate(writer: Writer) -> bool:
    """Writes the determinants of square matrices. Returns whether it did."""
    *batch, size, columns = writer.shape(0)
    x = writer.operand(0)
    if size != columns or not 0 < size <= MAX_SIZE:
        return False
    rest = x.cast(TensorProto.DOUBLE if x.kind == TensorProto.DOUBLE else TensorProto.FLOAT).reshape(-1, size, size)
    made = None
    for count in range(size, 0, -1):
        pivot, is_first, rest = _take_pivot(writer, rest, count)
        pivot = is_first.choose(pivot, 0 - pivot)
        made = pivot if made is None else made * pivot
    made.reshape(*batch).cast(x.kind).finish()
    return True


def _take_pivot(writer: Writer, x: Value, count: int) -> tuple[Value, Value, Value]:
    """Returns the pivot of each matrix, whether its row is the first, and what is left of the others."""
    def cut(value: Value, axis: int, start: int, end: int) -> Value:
        return value.apply("Slice", *(writer.constant([number]) for number in (start, end, axis)))

    size = cut(x, 2, 0, 1).apply("Abs")
    place = Value(writer, writer.add("ArgMax", size.name, axis=1, keepdims=1), TensorProto.INT64)
    numbers = writer.constant(numpy.arange(count).reshape(1, count, 1))
    is_pivot = place.equal(Value(writer, numbers, TensorProto.INT64))
    row = is_pivot.choose(x, 0).apply("ReduceSum", writer.constant([1]), keepdims=1)
    pivot = cut(row, 2, 0, 1)
    if count > 1:
        # The first row takes the place of the pivot's.
        others = cut(is_pivot, 1, 1, count).choose(cut(x, 1, 0, 1), cut(x, 1, 1, count))
        factors = pivot.equal(0).choose(0, cut(others, 2, 0, 1) / pivot)
        x = cut(others, 2, 1, count) - factors * cut(row, 2, 1, count)
    return pivot.reshape(-1), place.equal(0).reshape(-1), x
