"""Builds element by element what torch-mlir has no operator for, or one of other values: nodes of Weir's own, of which
`weir.onnx.elements` makes use, become `linalg.generic`."""

import math
from collections.abc import Callable, Sequence

import numpy
import onnx
from onnx import TensorProto, helper
from torch_mlir import ir

LESS_OR_EQUAL, GREATER_OR_EQUAL, UNORDERED = 5, 3, 14  # predicates of arith.cmpf
WIDTHS = {TensorProto.BFLOAT16: 16, TensorProto.FLOAT16: 16, TensorProto.FLOAT: 32, TensorProto.DOUBLE: 64}


def build(form: str, operands: Sequence[ir.Value], kinds: Sequence[int]) -> ir.Value:
    """Returns `form` of all elements of tensors, which broadcast as ONNX has it.

    `form`:  the name of an op of two operands, or "cast". `kinds`: for that, the types of operand and result.
    """
    types = [ir.RankedTensorType(operand.type) for operand in operands]
    shape = numpy.broadcast_shapes(*(tuple(one.shape) for one in types))
    element = _get_element(kinds[1]) if form == "cast" else types[0].element_type
    out = ir.RankedTensorType.get(shape, element)
    maps = [_spell_map(one.shape, shape) for one in types] + [_spell_map(shape, shape)]
    empty = ir.Operation.create("tensor.empty", [out]).result
    generic = ir.Operation.create("linalg.generic", [out], [*operands, empty], {
        "indexing_maps": ir.Attribute.parse(f"[{', '.join(maps)}]"),
        "iterator_types": ir.Attribute.parse(f"[{', '.join(['#linalg.iterator_type<parallel>'] * len(shape))}]"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 1])}, regions=1)
    elements = [*(one.element_type for one in types), element]
    block = generic.regions[0].blocks.append(*elements, arg_locs=[generic.location] * len(elements))
    with ir.InsertionPoint(block):
        values = list(block.arguments)[:-1]
        made = _cast(values[0], element, *kinds) if form == "cast" else _make(form, element, *values)
        ir.Operation.create("linalg.yield", [], [made])
    return generic.result


def _spell_map(sizes: Sequence[int], shape: Sequence[int]) -> str:
    dims = [f"d{d}" for d in range(len(shape))]
    first = len(shape) - len(sizes)
    places = ["0" if size == 1 != shape[first + d] else dims[first + d] for d, size in enumerate(sizes)]
    return f"affine_map<({', '.join(dims)}) -> ({', '.join(places)})>"


def _get_element(kind: int) -> ir.Type:
    floats: dict[int, Callable[[], ir.Type]] = {
        TensorProto.BFLOAT16: ir.BF16Type.get, TensorProto.FLOAT16: ir.F16Type.get, TensorProto.FLOAT: ir.F32Type.get,
        TensorProto.DOUBLE: ir.F64Type.get}
    if kind in floats:
        return floats[kind]()
    return ir.IntegerType.get_signless(8 * helper.tensor_dtype_to_np_dtype(kind).itemsize)


def _make(name: str, kind: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(name, [kind], list(operands), attributes).result


def _number(kind: ir.Type, value: float) -> ir.Value:
    attribute = ir.FloatAttr.get(kind, value) if isinstance(kind, ir.FloatType) else ir.IntegerAttr.get(kind, value)
    return _make("arith.constant", kind, value=attribute)


def _cast(x: ir.Value, out: ir.Type, kind: int, target: int) -> ir.Value:
    """Casts a number. Integers wrap; floats are cut to whole numbers within the limits of integers, NaN is 0."""
    before, after = (helper.tensor_dtype_to_np_dtype(one) for one in (kind, target))
    if kind in WIDTHS:
        return _truncate(x, out, kind, numpy.iinfo(after))
    if target in WIDTHS:
        return _make("arith.uitofp" if before.kind == "u" else "arith.sitofp", out, x)
    if before.itemsize == after.itemsize:
        return x
    widen = "arith.extui" if before.kind == "u" else "arith.extsi"
    return _make(widen if before.itemsize < after.itemsize else "arith.trunci", out, x)


def _truncate(x: ir.Value, out: ir.Type, kind: int, limits: numpy.iinfo) -> ir.Value:
    """Casts a float: beyond the limits the op itself has no value."""
    if kind in (TensorProto.BFLOAT16, TensorProto.FLOAT16):
        x = _make("arith.extf", ir.F32Type.get(), x)
    whole = _make("arith.fptoui" if limits.min == 0 else "arith.fptosi", out, x)
    bit, long = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64)

    def choose(predicate: int, limit: float, yes: int, no: ir.Value) -> ir.Value:
        is_it = _make("arith.cmpf", bit, x, _number(x.type, limit), predicate=ir.IntegerAttr.get(long, predicate))
        return _make("arith.select", out, is_it, _number(out, yes), no)

    # Powers of two, which floats hold; the largest integers they do not.
    above = float(2 ** math.ceil(math.log2(limits.max)))
    largest = limits.max - (2 ** limits.bits if limits.min == 0 else 0)  # the same bits, signed
    made = choose(GREATER_OR_EQUAL, above, largest, whole)
    made = choose(LESS_OR_EQUAL, float(limits.min), limits.min, made)
    return choose(UNORDERED, 0.0, 0, made)
