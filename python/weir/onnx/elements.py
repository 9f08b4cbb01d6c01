"""Operators on elements that torch-mlir lowers to other values at the edges of their types: NaN, infinities, unsigned
integers, integers that no float holds."""

import math
from collections.abc import Callable

import numpy
from onnx import TensorProto, helper

from weir.onnx.regions import DOMAIN
from weir.onnx.writing import Value, Writer

ELEMENTS = "Elements"  # the operator of Weir's own, `weir.onnx.scalars`


def _get_kind(kind: int) -> str:
    """Returns "u" for unsigned integers, "i" for signed ones, "b" for booleans, "f" for floats and "" for others."""
    if kind == TensorProto.BFLOAT16:
        return "f"
    found = helper.tensor_dtype_to_np_dtype(kind).kind
    return found if found in "uibf" else ""


def _write(writer: Writer, form: str, *operands: Value, kind: int = 0) -> Value:
    """Adds a node of Weir's own on elements. `kind`: of its result, if that is another."""
    shapes = [writer.shape_of(one.name) for one in operands]
    name, kind = f"{writer.node.name}/{form}{len(writer.nodes)}", kind or operands[0].kind
    known = [shape if shape is not None else _shapes(writer)[one.name] for shape, one in zip(shapes, operands)]
    shape = numpy.broadcast_shapes(*known)
    _shapes(writer)[name] = shape
    made = helper.make_node(ELEMENTS, [one.name for one in operands], [name], name=name, domain=DOMAIN, form=form,
                            kinds=[operands[0].kind, kind])
    if all(opset.domain != DOMAIN for opset in writer.model.opset_import):
        writer.model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    writer.set_type(name, helper.make_tensor_type_proto(kind, shape))
    writer.nodes.append(made)
    return Value(writer, name, kind)


def _shapes(writer: Writer) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the values that a writer has made."""
    return writer.__dict__.setdefault("made_shapes", {})


def _is_known(writer: Writer) -> bool:
    return all(writer.shape_of(name) is not None for name in writer.node.input if name)


def _choose_extremum(operator: str) -> Callable[[Writer], bool]:
    """Returns a rule for the larger or smaller of floats; a NaN is both."""
    def write(writer: Writer) -> bool:
        x = writer.operand(0)
        if _get_kind(x.kind) != "f" or not _is_known(writer):
            return False
        for place in range(1, len(writer.node.input)):
            x = _write(writer, operator, x, writer.operand(place))
        x.finish()
        return True

    return write


def _clip(writer: Writer) -> bool:
    """Takes what is larger than the lower limit, then what is smaller than the upper one, which holds if it is below the
    lower one. A NaN stays."""
    x = writer.operand(0)
    if not _is_known(writer):
        return False
    for place, operator, form in ((1, "Max", "arith.maximumf"), (2, "Min", "arith.minimumf")):
        if writer.has(place):
            limit = writer.operand(place)
            x = _write(writer, form, x, limit) if _get_kind(x.kind) == "f" else x.apply(operator, limit.name)
    x.finish()
    return True


def _divide(writer: Writer) -> bool:
    x, y = writer.operand(0), writer.operand(1)
    if _get_kind(x.kind) != "u" or not _is_known(writer):
        return False
    _write(writer, "arith.divui", x, y).finish()
    return True


def _take_rest(writer: Writer) -> bool:
    """Writes Mod of unsigned integers and of floats, where the rest has the sign of the divisor unless `fmod` says
    otherwise; of signed integers torch-mlir has ONNX's values."""
    x, y = writer.operand(0), writer.operand(1)
    kind = _get_kind(x.kind)
    if kind not in ("u", "f") or not _is_known(writer):
        return False
    rest = _write(writer, "arith.remui" if kind == "u" else "arith.remf", x, y)
    if kind == "f" and not writer.attribute("fmod", 0):
        differs = Value(writer, writer.add("Xor", (rest < 0).name, (y < 0).name), TensorProto.BOOL)
        moves = Value(writer, writer.add("And", differs.name, writer.add("Not", rest.equal(0).name)), TensorProto.BOOL)
        rest = moves.choose(rest + y, rest)
    rest.finish()
    return True


def _negate(writer: Writer) -> bool:
    """Subtracts integers from 0: torch-mlir's product with -1 goes through a float."""
    x = writer.operand(0)
    if _get_kind(x.kind) not in ("i", "u"):
        return False
    (0 - x).finish()
    return True


def _take_size(writer: Writer) -> bool:
    """Writes Abs of unsigned integers, which have no sign."""
    if _get_kind(writer.kind(writer.node.input[0])) != "u":
        return False
    writer.operand(0).finish()
    return True


def _equal(writer: Writer) -> bool:
    """Writes equality of floats as two comparisons: torch-mlir takes a value to equal itself, also where it is NaN."""
    x, y = writer.operand(0), writer.operand(1)
    if _get_kind(x.kind) != "f" or writer.shape(0) != writer.shape(1):
        return False
    (~((x < y) | (x > y) | Value(writer, writer.add("IsNaN", (x + y).name), TensorProto.BOOL))).finish()
    return True


def _take_sign(writer: Writer) -> bool:
    """Writes the sign of unsigned integers, and of floats, where it is NaN of NaN."""
    if writer.node.name.endswith("/Sign0"):
        return False  # made by this rule
    x = writer.operand(0)
    kind = _get_kind(x.kind)
    if kind == "u":
        x.equal(0).choose(0, Value(writer, writer.constant(1, helper.tensor_dtype_to_np_dtype(x.kind)), x.kind)).finish()
    elif kind == "f":
        sign = x.apply("Sign")
        Value(writer, writer.add("IsNaN", x.name), TensorProto.BOOL).choose(x, sign).finish()
    return kind in ("u", "f")


def _cast(writer: Writer) -> bool:
    """Casts from and to unsigned integers, and floats to integers; booleans are left to torch-mlir."""
    x, kind = writer.operand(0), writer.kind(writer.node.output[0])
    before, after = _get_kind(x.kind), _get_kind(kind)
    if not _is_known(writer) or not before or not after or "b" in (before, after) or x.kind == kind:
        return False
    if "u" not in (before, after) and not (before == "f" and after == "i") and TensorProto.INT16 not in (x.kind, kind):
        return False
    _write(writer, "cast", x, kind=kind).finish()
    return True


def _cast_like(writer: Writer) -> bool:
    """Writes CastLike as the cast that it is."""
    writer.operand(0).cast(writer.kind(writer.node.input[1])).finish()
    return True


def _find_extremum(reduce: str) -> Callable[[Writer], bool]:
    """Returns a rule for the place of the largest or smallest of floats: of the first NaN, if there is one."""
    def write(writer: Writer) -> bool:
        x, rank = writer.operand(0), len(writer.shape(0))
        if _get_kind(x.kind) != "f" or not rank:
            return False
        axis = writer.attribute("axis", 0)
        best = (x.apply(reduce, writer.constant([axis]), keepdims=1) if writer.opset >= 18 else
                x.apply(reduce, axes=[axis], keepdims=1))  # NaN if any is
        hit = writer.add("Or", x.equal(best).name, writer.add("IsNaN", x.name))
        writer.add("ArgMax", writer.add("Cast", hit, to=TensorProto.INT32), result=writer.node.output[0], axis=axis,
                   keepdims=writer.attribute("keepdims", 1), select_last_index=writer.attribute("select_last_index", 0))
        return True

    return write


def _reduce(writer: Writer, operator: str, x: Value) -> Value:
    """Adds a reduction with the axes of the node."""
    kept = {one.name: helper.get_attribute_value(one) for one in writer.node.attribute}
    axes = list(writer.node.input[1:])
    if operator == "ReduceSum" and "axes" in kept:
        axes = [writer.constant(kept.pop("axes"))]
    return x.apply(operator, *axes, **kept)


def _reduce_integers(writer: Writer) -> bool:
    """Writes norms and logarithms of sums of integers on floats, which hold the sums."""
    x = writer.operand(0)
    if _get_kind(x.kind) not in ("i", "u"):
        return False
    _reduce(writer, writer.node.op_type, x.cast(TensorProto.DOUBLE)).cast(x.kind).finish()
    return True


def _add_sizes(writer: Writer) -> bool:
    """Writes ReduceL1 of unsigned integers, which have no sign, as their sum."""
    x = writer.operand(0)
    if _get_kind(x.kind) != "u":
        return False
    _reduce(writer, "ReduceSum", x).finish()
    return True


def _average(writer: Writer) -> bool:
    """Writes the mean of integers: their sum, divided by their number."""
    x, result = writer.operand(0), writer.shape_of(writer.node.output[0])
    if _get_kind(x.kind) not in ("i", "u") or result is None or 0 in writer.shape(0):
        return False
    (_reduce(writer, "ReduceSum", x) / (math.prod(writer.shape(0)) // math.prod(result))).finish()
    return True


def _scale_negative(writer: Writer) -> bool:
    """Writes PRelu of unsigned integers, none of which is negative."""
    if _get_kind(writer.kind(writer.node.input[0])) != "u":
        return False
    writer.operand(0).finish()
    return True


def pool_bytes(writer: Writer) -> bool:
    """Writes MaxPool of bytes on floats, which hold them all."""
    x = writer.operand(0)
    if _get_kind(x.kind) not in ("i", "u"):
        return False
    kept = {one.name: helper.get_attribute_value(one) for one in writer.node.attribute}
    results = [f"{writer.node.name}/values", *writer.node.output[1:]]
    writer.nodes.append(helper.make_node("MaxPool", [x.cast(TensorProto.FLOAT).name], results,
                                         name=f"{writer.node.name}/MaxPool", **kept))
    Value(writer, results[0], TensorProto.FLOAT).cast(x.kind).finish()
    return True


RULES: dict[str, Callable[[Writer], bool]] = {
    "Abs": _take_size,
    "ArgMax": _find_extremum("ReduceMax"),
    "ArgMin": _find_extremum("ReduceMin"),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Clip": _clip,
    "Div": _divide,
    "Equal": _equal,
    "Max": _choose_extremum("arith.maximumf"),
    "Min": _choose_extremum("arith.minimumf"),
    "Mod": _take_rest,
    "Neg": _negate,
    "PRelu": _scale_negative,
    "ReduceL1": _add_sizes,
    "ReduceL2": _reduce_integers,
    "ReduceLogSum": _reduce_integers,
    "ReduceLogSumExp": _reduce_integers,
    "ReduceMean": _average,
    "Sign": _take_sign,
}
