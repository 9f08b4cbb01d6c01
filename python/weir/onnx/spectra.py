"""Writes ONNX's DFT and STFT as products with constant matrices of cosines and sines."""

import numpy
from onnx import TensorProto

from weir.onnx.writing import Writer

MAX_LENGTH = 4096  # of a transform, whose matrices have its square of elements


def transform(writer: Writer) -> bool:
    """Writes a discrete Fourier transform along a constant axis. Returns whether it did."""
    shape, x = writer.shape(0), writer.node.input[0]
    kind = writer.kind(x)
    if kind not in (TensorProto.FLOAT, TensorProto.DOUBLE) or (writer.has(1) and writer.array(1) is None):
        return False
    axis = _find_axis(writer)
    if axis is None:
        return False
    axis %= len(shape)
    inverse, onesided = writer.attribute("inverse", 0), writer.attribute("onesided", 0)
    is_real_result = bool(inverse and onesided)
    length = writer.number(1) if writer.has(1) else (2 * (shape[axis] - 1) if is_real_result else shape[axis])
    if axis == len(shape) - 1 or not 0 < length <= MAX_LENGTH or shape[axis] == 0:
        return False
    given = min(shape[axis], length // 2 + 1 if is_real_result else length)
    made = length // 2 + 1 if onesided and not inverse else length
    angles = 2 * numpy.pi * (numpy.arange(given)[:, None] * numpy.arange(made)[None] % length) / length
    weights = numpy.full((given, 1), 1 / length if inverse else 1.0)
    if is_real_result:  # the other half is conjugate
        weights[1:(length + 1) // 2] *= 2
    # In f64, as ONNX's reference: elements that cancel would keep few digits of f32.
    cosines = writer.constant(numpy.cos(angles) * weights, numpy.float64)
    sines = writer.constant(numpy.sin(angles) * weights * (1 if inverse else -1), numpy.float64)
    x = writer.add("Cast", x, to=TensorProto.DOUBLE)
    # Each part with the axis last, in place of the pair of a complex number.
    order = [d for d in range(len(shape) - 1) if d != axis] + [axis]
    back = [order.index(d) for d in range(len(order))]

    def take(place: int) -> str:
        part = writer.add("Gather", x, writer.constant(place), axis=-1)
        part = writer.add("Transpose", part, perm=order)
        if given == shape[axis]:
            return part
        return writer.add("Slice", part, writer.constant([0]), writer.constant([given]), writer.constant([-1]))

    real = take(0)
    parts = [writer.add("MatMul", real, cosines), writer.add("MatMul", real, sines)]
    if shape[-1] == 2:
        imaginary = take(1)
        parts[0] = writer.add("Sub", parts[0], writer.add("MatMul", imaginary, sines))
        parts[1] = writer.add("Add", parts[1], writer.add("MatMul", imaginary, cosines))
    if is_real_result:
        parts = parts[:1]
    last = writer.constant([len(shape) - 1])
    spread = [writer.add("Unsqueeze", writer.add("Transpose", part, perm=back), last) for part in parts]
    whole = writer.add("Concat", *spread, axis=-1)
    writer.add("Cast", whole, to=kind, result=writer.node.output[0])
    return True


def transform_frames(writer: Writer) -> bool:
    """Writes an STFT as the DFT of each frame. Returns whether it did."""
    shape, x, step = writer.shape(0), writer.operand(0), writer.number(1)
    length = writer.number(3) if writer.has(3) else writer.shape(2)[0] if writer.has(2) else None
    if step is None or length is None or step < 1 or not 0 < length <= shape[1]:
        return False
    count = (shape[1] - length) // step + 1
    places = writer.constant(numpy.arange(count)[:, None] * step + numpy.arange(length)[None])
    x = x.reshape(*shape[:2], 1) if len(shape) == 2 else x
    frames = x.apply("Gather", places, axis=1)
    if writer.has(2):
        frames = frames * writer.operand(2).reshape(-1, 1)
    onesided = writer.attribute("onesided", 1)
    if writer.opset >= 20:
        made = frames.apply("DFT", "", writer.constant(2), onesided=onesided)
    else:
        made = frames.apply("DFT", axis=2, onesided=onesided)
    made.finish()
    writer.forget_shape()  # without `onesided` it is that of a whole spectrum
    return True


def _find_axis(writer: Writer) -> int | None:
    if writer.opset < 20:
        return writer.attribute("axis", 1)
    return writer.number(2) if writer.has(2) else -2
