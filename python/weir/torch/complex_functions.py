"""Elementary functions of complex tensors, by the formulas of `weir.complex_math`."""

import functools
import math
from collections.abc import Callable

import numpy
import torch

from weir import complex_math
from weir.complex_math import Complex, Floats
from weir.torch.complex_arithmetic import Pair, invert, multiply, scale, widen
from weir.torch.operators import bitcast, stop_gradient

aten = torch.ops.aten

# The operations that the formulas use, by the names of StableHLO and of chlo.
_CALLS: dict[str, Callable] = {
    "abs": torch.abs,
    "add": torch.add,
    "and": torch.logical_and,
    "atan2": torch.atan2,
    "chlo.asinh": torch.asinh,
    "chlo.cosh": torch.cosh,
    "chlo.sinh": torch.sinh,
    "cosine": torch.cos,
    "divide": torch.div,
    "exponential": torch.exp,
    "exponential_minus_one": torch.expm1,
    "log": torch.log,
    "log_plus_one": torch.log1p,
    "multiply": torch.mul,
    "negate": torch.neg,
    "not": torch.logical_not,
    "or": torch.logical_or,
    "power": torch.pow,
    "sine": torch.sin,
    "sqrt": torch.sqrt,
    "subtract": torch.sub,
}
_COMPARISONS = {"EQ": torch.eq, "GE": torch.ge, "GT": torch.gt, "LT": torch.lt, "NE": torch.ne}
_TYPES = {torch.float32: (numpy.float32, torch.int32), torch.float64: (numpy.float64, torch.int64)}


class Reals(Floats):
    """A tensor of PyTorch's as the formulas use it."""

    def fill(self, number: float) -> "Reals":
        return Reals(torch.scalar_tensor(number, dtype=self.value.dtype))

    @property
    def limits(self) -> numpy.finfo:
        return numpy.finfo(_TYPES[self.value.dtype][0])

    def call(self, name: str, *others: Floats | float) -> "Reals":
        return Reals(_CALLS[name](self.value, *(self._lift(other).value for other in others)))

    def compare(self, direction: str, other: Floats | float) -> "Reals":
        return Reals(_COMPARISONS[direction](self.value, self._lift(other).value))

    def is_negative(self) -> "Reals":
        bits = bitcast(stop_gradient(self.value), _TYPES[self.value.dtype][1])
        return Reals(bits < 0)

    def choose(self, one: Floats, other: Floats) -> "Reals":
        return Reals(torch.where(self.value, one.value, other.value))


def apply(function: Callable[..., Complex], *operands: Pair | torch.Tensor) -> Pair:
    """Returns a function of `weir.complex_math`; constants among its results get the operands' shape."""
    pairs = [widen(operand) for operand in operands]
    dtype = functools.reduce(torch.promote_types, (part.dtype for each in pairs for part in each))
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    given = [Complex(*(Reals(part.to(dtype)) for part in each)) for each in pairs]
    shape = torch.broadcast_shapes(*(part.value.shape for each in given for part in each))
    return Pair(*(part.value.expand(shape) for part in function(*given)))


def _function(function: Callable[..., Complex], factor: float = 1, of: float = 1) -> Callable[..., Pair]:
    """Returns the rule of a factor times a function of a multiple."""
    def rule(*operands: Pair | torch.Tensor) -> Pair:
        return scale(apply(function, *(scale(each, of) for each in operands)), factor)

    return rule


def _make(like: torch.Tensor, number: complex | float) -> Pair:
    dtype = like.dtype if like.is_floating_point() else torch.get_default_dtype()
    return Pair(*(torch.scalar_tensor(part, dtype=dtype) for part in (number.real, number.imag)))


def raise_to(z: Pair, exponent: complex | float) -> Pair:
    """Returns a power. Small integers are exponents of products, which need no cut."""
    exponent = exponent if exponent.imag else exponent.real
    if exponent == 0:
        return Pair(torch.ones_like(z.real), torch.zeros_like(z.real))
    if exponent in (-4, -3, -2, -1):
        return invert(raise_to(z, -exponent))
    if exponent in (1, 2, 3, 4):
        half = raise_to(z, exponent // 2) if exponent > 1 else z
        square = multiply(half, half) if exponent > 1 else z
        return multiply(square, z) if exponent == 3 else square
    if exponent in (0.5, -0.5):
        return apply(complex_math.root if exponent > 0 else complex_math.inverse_root, z)
    return apply(complex_math.power, z, _make(z.real, exponent))


def _raise_number(number: complex | float, z: Pair) -> Pair:
    return apply(complex_math.power, _make(z.real, number), z)


def exponential(z: Pair) -> Pair:
    return apply(complex_math.exponential, z)


def _load_exponent(z: Pair | torch.Tensor, exponent: Pair | torch.Tensor) -> Pair:
    """Returns ldexp: a complex exponent counts as one."""
    return multiply(z, _EXP2(exponent) if isinstance(exponent, Pair) else torch.exp2(exponent.to(z.real.dtype)))


def add_logs(a: Pair, b: Pair) -> Pair:
    """Returns log(exp(a) + exp(b)), by the operand with the larger real part."""
    a, b = widen(a), widen(b)
    is_first = a.real >= b.real
    large, small = (Pair(*(torch.where(is_first, one, other) for one, other in zip(*both)))
                    for both in ((a, b), (b, a)))
    is_same = (large.real.abs() == math.inf) & (large.real == small.real)  # whose difference is NaN
    zero = torch.zeros((), dtype=large.real.dtype)
    distance = Pair(torch.where(is_same, zero, small.real - large.real), small.imag - large.imag)
    rest = apply(complex_math.log_plus_one, exponential(distance))
    return Pair(large.real + rest.real, large.imag + rest.imag)


_EXP2 = _function(complex_math.exponential, of=math.log(2))
RULES: dict[torch._ops.OpOverload, Callable] = {
    aten.acos.default: _function(complex_math.arc_cosine),
    aten.acosh.default: _function(complex_math.area_cosine),
    aten.asin.default: _function(complex_math.arc_sine),
    aten.asinh.default: _function(complex_math.area_sine),
    aten.atan.default: _function(complex_math.arc_tangent),
    aten.atanh.default: _function(complex_math.area_tangent),
    aten.cos.default: _function(complex_math.cosine),
    aten.cosh.default: _function(complex_math.hyperbolic_cosine),
    aten.exp.default: exponential,
    aten.exp2.default: _EXP2,
    aten.expm1.default: _function(complex_math.exponential_minus_one),
    aten.log.default: _function(complex_math.log),
    aten.log10.default: _function(complex_math.log, 1 / math.log(10)),
    aten.log1p.default: _function(complex_math.log_plus_one),
    aten.log2.default: _function(complex_math.log, 1 / math.log(2)),
    aten.logaddexp.default: add_logs,
    aten.ldexp.Tensor: _load_exponent,
    aten.pow.Scalar: _raise_number,
    aten.pow.Tensor_Scalar: raise_to,
    aten.pow.Tensor_Tensor: _function(complex_math.power),
    aten.rsqrt.default: _function(complex_math.inverse_root),
    aten.sgn.default: _function(complex_math.sign),
    aten.sigmoid.default: _function(complex_math.logistic),
    aten.sin.default: _function(complex_math.sine),
    aten.sinh.default: _function(complex_math.hyperbolic_sine),
    aten.sqrt.default: _function(complex_math.root),
    aten.tan.default: _function(complex_math.tangent),
    aten.tanh.default: _function(complex_math.hyperbolic_tangent),
}
