"""Functions of StableHLO's extension chlo that torch-mlir does not lower, as one operation with a body of scalars each.

As operations on tensors, one logarithm of gamma would be hundreds.
"""

import math
import types
from collections.abc import Callable

from torch_mlir import ir

from weir.special import Functions

PREDICATES = {"lt": 4, "le": 5, "gt": 2, "ge": 3, "eq": 1, "ne": 13}  # ordered, but for ne
INTEGERS = {"lt": 2, "gt": 4, "eq": 0}  # signed


class Scalar:
    """A number at the current insertion point, with Python's operators. Floats among operands become constants."""

    def __init__(self, value: ir.Value):
        self.value = value

    def _read(self, other: "Scalar | float") -> ir.Value:
        return other.value if isinstance(other, Scalar) else write(other, self).value

    def _compute(self, name: str, *others: "Scalar | float", swapped: bool = False) -> "Scalar":
        operands = [self.value, *map(self._read, others)]
        operands = operands[::-1] if swapped else operands
        return Scalar(ir.Operation.create(name, [self.value.type], operands).result)

    def _compare(self, name: str, other: "Scalar | float") -> "Scalar":
        is_float = isinstance(self.value.type, ir.FloatType)
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), (PREDICATES if is_float else INTEGERS)[name])
        return Scalar(ir.Operation.create(
            "arith.cmpf" if is_float else "arith.cmpi", [ir.IntegerType.get_signless(1)],
            [self.value, self._read(other)], {"predicate": number}).result)

    def __add__(self, other): return self._compute(f"arith.add{self._kind}", other)
    def __sub__(self, other): return self._compute(f"arith.sub{self._kind}", other)
    def __mul__(self, other): return self._compute("arith.mulf", other)
    def __truediv__(self, other): return self._compute("arith.divf", other)
    def __rsub__(self, other): return self._compute("arith.subf", other, swapped=True)
    def __rtruediv__(self, other): return self._compute("arith.divf", other, swapped=True)
    def __neg__(self): return self._compute("arith.negf")
    def __abs__(self): return self._compute("math.absf")
    def __pow__(self, other): return self._compute("math.powf", other)
    def __and__(self, other): return self._compute("arith.andi", other)
    def __or__(self, other): return self._compute("arith.ori", other)
    def __invert__(self): return self._compute("arith.xori", True)
    def __lt__(self, other): return self._compare("lt", other)
    def __le__(self, other): return self._compare("le", other)
    def __gt__(self, other): return self._compare("gt", other)
    def __ge__(self, other): return self._compare("ge", other)
    def __eq__(self, other): return self._compare("eq", other)
    def __ne__(self, other): return self._compare("ne", other)
    __radd__, __rmul__ = __add__, __mul__

    @property
    def _kind(self) -> str:
        return "f" if isinstance(self.value.type, ir.FloatType) else "i"


def write(number: float, like: Scalar) -> Scalar:
    """Writes a constant of the type of another number."""
    kind = like.value.type
    make = ir.FloatAttr.get if isinstance(kind, ir.FloatType) else ir.IntegerAttr.get
    return Scalar(ir.Operation.create("arith.constant", [kind], [], {"value": make(kind, number)}).result)


def _convert(x: Scalar, name: str, kind: ir.Type) -> Scalar:
    return Scalar(ir.Operation.create(f"arith.{name}", [kind], [x.value]).result)


def _choose(condition: Scalar, x: Scalar | float, y: Scalar | float) -> Scalar:
    like = x if isinstance(x, Scalar) else y
    x, y = (each if isinstance(each, Scalar) else write(each, like) for each in (x, y))
    return Scalar(ir.Operation.create("arith.select", [x.value.type], [condition.value, x.value, y.value]).result)


def _function(name: str) -> Callable[[Scalar], Scalar]:
    return lambda x: x._compute(f"math.{name}")


OPS = types.SimpleNamespace(
    clamp=lambda x, low, high: x._compute("arith.maximumf", float(low))._compute("arith.minimumf", float(high)),
    full_like=lambda x, number: write(number, x), ones_like=lambda x: write(1, x), zeros_like=lambda x: write(0, x),
    round=_function("roundeven"), where=_choose,
    **{name: _function(name) for name in ("erf", "exp", "log", "log1p", "sin", "sqrt", "tan")})
FUNCTIONS = Functions(OPS, write, lambda x: str(x.value.type) == "f64")


def _digamma(x: Scalar) -> Scalar:
    """A pole at 0 as at the others, of which JAX tells no sign."""
    return _choose(x == 0.0, math.nan, FUNCTIONS.digamma(x))


def _polygamma(n: Scalar, x: Scalar) -> Scalar:
    """(-1)^(n + 1) n! zeta(n + 1, x), and digamma for 0."""
    half = n * 0.5
    is_whole, is_even = n == OPS.round(n), half == OPS.round(half)
    made = OPS.exp(FUNCTIONS.lgamma(n + 1.0)) * FUNCTIONS.zeta(n + 1.0, x)
    made = _choose(is_even, -made, made)
    made = _choose(n == 0.0, _digamma(x), made)
    return _choose(is_whole & (n >= 0.0) & (n < math.inf), made, math.nan)


def _next_after(x: Scalar, y: Scalar) -> Scalar:
    """The float next to x towards y: one more or less in its bits, which are in the order of magnitudes."""
    width = ir.FloatType(x.value.type).width
    bits = _convert(x, "bitcast", ir.IntegerType.get_signless(width))
    least = _choose(y > 0.0, write(1, bits), write(1 - 2 ** (width - 1), bits))
    is_further = _choose(x > 0.0, y > x, y < x)
    moved = _choose(x == 0.0, least, _choose(is_further, bits + 1, bits - 1))
    made = _convert(moved, "bitcast", x.value.type)
    return _choose((x != x) | (y != y), x + y, _choose(x == y, y, made))


BODIES: dict[str, Callable[..., Scalar]] = {
    "chlo.bessel_i1e": FUNCTIONS.bessel(scaled=True, odd=True),
    "chlo.digamma": _digamma,
    "chlo.erf_inv": FUNCTIONS.erfinv,
    "chlo.lgamma": FUNCTIONS.lgamma,
    "chlo.next_after": _next_after,
    "chlo.polygamma": _polygamma,
    "chlo.zeta": FUNCTIONS.zeta,
}


def write_body(op: ir.Operation) -> ir.Operation:
    """Writes an operation of `BODIES` at the current insertion point, on each element; 16 bits are computed in f32."""
    kind = ir.ShapedType(op.results[0].type)
    element, rank = kind.element_type, len(kind.shape)
    out = ir.Operation.create("tensor.empty", [op.results[0].type]).result
    count = len(op.operands)
    new = ir.Operation.create("linalg.generic", [op.results[0].type], [*op.operands, out], {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))] * (count + 1)),
        "iterator_types": ir.Attribute.parse(f"[{', '.join(['#linalg.iterator_type<parallel>'] * rank)}]"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([count, 1]),
    }, regions=1)
    block = new.regions[0].blocks.append(*[element] * (count + 1), arg_locs=[new.location] * (count + 1))
    is_narrow = ir.FloatType(element).width == 16 and op.name != "chlo.next_after"
    with ir.InsertionPoint(block):
        given = [Scalar(value) for value in list(block.arguments)[:count]]
        if is_narrow:
            given = [_convert(each, "extf", ir.F32Type.get()) for each in given]
        made = BODIES[op.name](*given)
        ir.Operation.create("linalg.yield", [], [(_convert(made, "truncf", element) if is_narrow else made).value])
    return new
