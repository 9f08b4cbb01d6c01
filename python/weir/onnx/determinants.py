"""Writes ONNX's Det by an L U factorization, an op of Weir's graph level."""

import numpy
from onnx import TensorProto, helper

from weir.onnx.writing import Value, Writer

MATRICES, LU = "weir.matrix", "lu"  # of a node that torch-mlir brings in unknown, and `weir.holes` takes out


def factor(writer: Writer) -> bool:
    """Writes the determinants of square matrices of one row or more. Returns whether it did."""
    *batch, size, columns = writer.shape(0)
    x = writer.operand(0)
    if size != columns or not size or x.kind not in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16,
                                                    TensorProto.BFLOAT16):
        return False
    wide = x.cast(TensorProto.DOUBLE if x.kind == TensorProto.DOUBLE else TensorProto.FLOAT)
    lu, pivots = _factor(writer, wide, batch, size)
    is_end = Value(writer, writer.constant(numpy.eye(size), numpy.bool_), TensorProto.BOOL)
    place = Value(writer, writer.constant(numpy.arange(size), numpy.int32), TensorProto.INT32)
    one = Value(writer, writer.constant(1, helper.tensor_dtype_to_np_dtype(wide.kind)), wide.kind)
    ends = is_end.choose(lu, 0).reduce("ReduceSum", [len(batch) + 1])
    signed = pivots.equal(place).choose(one, -1) * ends
    signed.reduce("ReduceProd", [len(batch)]).cast(x.kind).finish()
    return True


def _factor(writer: Writer, x: Value, batch: list[int], size: int) -> tuple[Value, Value]:
    """Returns L U in one matrix, and the exchanges of rows."""
    kinds = [(x.kind, [*batch, size, size]), (TensorProto.INT32, [*batch, size]), (TensorProto.INT32, [*batch, size])]
    names = [f"{writer.node.name}/{part}" for part in ("lu", "pivots", "order")]
    for name, (kind, shape) in zip(names, kinds, strict=True):
        writer.set_type(name, helper.make_tensor_type_proto(kind, shape))
    writer.nodes.append(helper.make_node(LU, [x.name], names, name=f"{writer.node.name}/{LU}", domain=MATRICES))
    if all(opset.domain != MATRICES for opset in writer.model.opset_import):
        writer.model.opset_import.append(helper.make_opsetid(MATRICES, 1))
    return Value(writer, names[0], x.kind), Value(writer, names[1], TensorProto.INT32)
