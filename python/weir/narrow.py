"""Integers of 2 and 4 bits in StableHLO as bytes, which are the smallest integers that Weir's graphs have.

A byte has the value of the narrow integer: signed ones repeat their sign, unsigned ones have zeros above. `_wrap` drops
the bits above their own behind operations whose results may have some.
"""

import re

import numpy
from torch_mlir import ir

from weir import hlo
from weir.graphs import list_values, walk

# Operations that keep values within the bits of their operands, so that nothing is dropped behind them.
CLOSED = {f"stablehlo.{name}" for name in (
    "and", "broadcast", "broadcast_in_dim", "case", "clamp", "concatenate", "constant", "copy",
    "dynamic_broadcast_in_dim", "dynamic_gather", "dynamic_pad", "dynamic_reshape", "dynamic_slice",
    "dynamic_update_slice", "gather", "if", "maximum", "minimum", "optimization_barrier", "or", "pad",
    "real_dynamic_slice", "remainder", "reshape", "reverse", "scatter", "select", "sign", "slice", "sort", "transpose",
    "while", "xor")}
# Operations that are done in bytes, and wrapped if their results are narrow.
WRAPPED = {f"stablehlo.{name}" for name in (
    "abs", "add", "compare", "convert", "convolution", "divide", "dot_general", "dynamic_conv", "dynamic_iota", "iota",
    "map", "multiply", "negate", "not", "power", "reduce", "reduce_window", "select_and_scatter", "shift_left",
    "shift_right_arithmetic", "subtract")}
# Operations that read the bits of their first operand as an unsigned number.
BITS = {"stablehlo.count_leading_zeros", "stablehlo.popcnt", "stablehlo.shift_right_logical"}
OTHERS = {"stablehlo.bitcast_convert", "stablehlo.return", "func.func", "func.return"}


class _Width:
    """The bits of a narrow type, and whether it has a sign."""

    def __init__(self, element: ir.Type):
        found = re.fullmatch(r"(u?)i([24])", str(element))
        self.is_narrow = found is not None
        self.bits, self.is_signed = (int(found.group(2)), not found.group(1)) if found else (0, True)


def widen(function: ir.Operation) -> list[ir.Operation]:
    """Writes bytes in place of narrow integers. Returns the operations without a rule, which leave all as it is."""
    touched = [(op, [_get_width(value) for value in op.operands], [_get_width(value) for value in op.results])
               for op in walk(function) if any(_get_width(value).is_narrow for value in list_values(op))]
    unknown = [op for op, operands, results in touched if not _has_rule(op, operands, results)]
    if unknown or not touched:
        return unknown
    for op, _, results in touched:
        for value in list_values(op):
            value.set_type(_widen_type(value.type))
        if op.name == "stablehlo.constant":
            op.attributes["value"] = _widen_constant(op, results[0])
    for op, operands, results in touched:
        with op.location:
            _adapt(op, operands, results)
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    sides = ([_widen_type(one) for one in side] for side in (kind.inputs, kind.results))
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*sides))
    return []


def _get_width(value: ir.Value) -> _Width:
    return _Width(value.type.element_type if isinstance(value.type, ir.RankedTensorType) else value.type)


def _has_rule(op: ir.Operation, operands: list[_Width], results: list[_Width]) -> bool:
    if op.name == "stablehlo.bitcast_convert":
        return operands[0].bits == results[0].bits
    return op.name in CLOSED | WRAPPED | BITS | OTHERS


def _widen_type(kind: ir.Type) -> ir.Type:
    if not isinstance(kind, ir.RankedTensorType) or not (width := _Width(kind.element_type)).is_narrow:
        return kind
    byte = ir.IntegerType.get_signless(8) if width.is_signed else ir.IntegerType.get_unsigned(8)
    return ir.RankedTensorType.get(kind.shape, byte)


def _adapt(op: ir.Operation, operands: list[_Width], results: list[_Width]) -> None:
    """Makes an operation on bytes give what it gives on narrow integers."""
    with ir.InsertionPoint(op):
        if op.name in BITS and operands[0].is_narrow:
            op.operands[0] = _mask(op.operands[0], operands[0])
        elif op.name == "stablehlo.shift_right_arithmetic" and not operands[0].is_signed:
            op.operands[0] = _extend(op.operands[0], operands[0])
    if op.name not in WRAPPED | BITS | {"stablehlo.bitcast_convert"} or _is_reducer(op):
        return
    for result, width in zip(op.results, results):
        if not width.is_narrow:
            continue
        uses = [(use.owner, use.operand_number) for use in result.uses]
        made = result
        with ir.InsertionPoint.after(op):
            if op.name == "stablehlo.count_leading_zeros":
                made = hlo.make("subtract", result.type, result, hlo.write_integer(result.type, 8 - width.bits))
            made = _wrap(made, width)
        for owner, place in uses:
            owner.operands[place] = made


def _is_reducer(op: ir.Operation) -> bool:
    """Whether an operation is all of the body of a reduction whose bits need be dropped only at its end."""
    return op.name in ("stablehlo.add", "stablehlo.multiply") and op.parent.name in (
        "stablehlo.reduce", "stablehlo.reduce_window") and len(list(op.parent.regions[0].blocks[0].operations)) == 2


def _wrap(value: ir.Value, width: _Width) -> ir.Value:
    """Drops the bits above a narrow integer's own."""
    return _extend(value, width) if width.is_signed else _mask(value, width)


def _mask(value: ir.Value, width: _Width) -> ir.Value:
    return hlo.make("and", value.type, value, hlo.write_integer(value.type, 2 ** width.bits - 1))


def _extend(value: ir.Value, width: _Width) -> ir.Value:
    """Repeats the sign of a narrow integer, the highest of its bits."""
    spare = hlo.write_integer(value.type, 8 - width.bits)
    return hlo.make("shift_right_arithmetic", value.type, hlo.make("shift_left", value.type, value, spare), spare)


def _widen_constant(op: ir.Operation, width: _Width) -> ir.Attribute:
    """Returns a constant of bytes: its digits are the same, and raw ones are bytes with any bits above their own."""
    content, _, _ = str(op.attributes["value"]).rpartition(" : ")
    if raw := re.fullmatch(r'dense<"0x([0-9A-Fa-f]*)">', content):
        spare = 8 - width.bits
        values = numpy.frombuffer(bytes.fromhex(raw.group(1)), numpy.int8 if width.is_signed else numpy.uint8) << spare
        content = f'dense<"0x{(values >> spare).tobytes().hex().upper()}">'
    return ir.Attribute.parse(f"{content} : {op.results[0].type}")
