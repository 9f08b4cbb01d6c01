"""Writes Col2Im as gathers and sums along one axis after the other."""

from math import prod

import numpy
from onnx import TensorProto

from weir.onnx.writing import Value, Writer


def join_columns(writer: Writer) -> bool:
    """Adds up blocks that overlap, at constant places. Returns whether it did."""
    sizes, kernel = writer.array(1), writer.array(2)
    shape, x = writer.shape(0), writer.operand(0)
    if sizes is None or kernel is None or 0 in shape:
        return False
    rank = len(sizes)
    steps, dilations = (writer.attribute(name, [1] * rank) for name in ("strides", "dilations"))
    pads = writer.attribute("pads", [0] * 2 * rank)
    counts = [(int(sizes[d]) + pads[d] + pads[rank + d] - dilations[d] * (int(kernel[d]) - 1) - 1) // steps[d] + 1
              for d in range(rank)]
    if prod(counts) != shape[2] or shape[1] % prod(kernel):
        return False
    narrow = x.kind in (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    value = x.cast(TensorProto.FLOAT) if narrow else x
    channels = shape[1] // int(prod(kernel))
    # Each axis of the blocks behind that of the elements of one.
    value = value.reshape(shape[0], channels, *map(int, kernel), *counts)
    value = value.apply("Transpose", perm=[0, 1, *(axis for d in range(rank) for axis in (2 + d, 2 + rank + d))])
    value = value.reshape(shape[0], channels, *(int(kernel[d]) * counts[d] for d in range(rank)))
    for d in range(rank):
        tap = numpy.arange(kernel[d])[:, None]
        start = numpy.arange(sizes[d])[None] + pads[d] - tap * dilations[d]
        block = start // steps[d]
        inside = (start % steps[d] == 0) & (block >= 0) & (block < counts[d])
        places = writer.constant(numpy.where(inside, tap * counts[d] + block, 0))
        taken = value.apply("Gather", places, axis=2 + d)
        mask = writer.constant(inside.reshape(*inside.shape, *(1,) * (rank - d - 1)), bool)
        value = Value(writer, mask, TensorProto.BOOL).choose(taken, 0).reduce("ReduceSum", [2 + d])
    value.cast(x.kind).finish()
    return True
