"""Elementwise arithmetic as PyTorch defines it at its edges: NaN, ties, infinities, and scalars that round.

torch-mlir computes negatives of integers by floats, compares with scalars that are not rounded, drops NaN in maxima, and
takes a - b * trunc(a / b) for a remainder. `aten.remainder` is exact there, and so are the forms here that use it.
"""

import math
from collections.abc import Callable

import torch

from weir.torch.operators import stop_gradient, widen

aten = torch.ops.aten


def _promote(x: torch.Tensor | float, y: torch.Tensor | float) -> tuple[torch.Tensor, ...]:
    dtype = torch.result_type(x, y)
    return tuple(each.to(dtype) if isinstance(each, torch.Tensor) else torch.scalar_tensor(each, dtype=dtype)
                 for each in (x, y))


def _compare(function: Callable) -> Callable:
    """A comparison with a scalar, which is rounded to the type of the tensor first."""
    def decompose(x: torch.Tensor, number: float) -> torch.Tensor:
        dtype = torch.result_type(x, number)
        if not dtype.is_floating_point:
            return NotImplemented
        return function(x.to(dtype), torch.scalar_tensor(number, dtype=dtype))

    return decompose


def _round(number: float, x: torch.Tensor) -> torch.Tensor:
    return torch.scalar_tensor(number, dtype=x.dtype)


def _threshold(x: torch.Tensor, threshold: float, value: float) -> torch.Tensor:
    wide = widen(x)
    return torch.where(wide <= _round(threshold, wide), _round(value, x), x)


def _hardshrink(x: torch.Tensor, lambd: float = 0.5) -> torch.Tensor:
    """NaN stays."""
    wide = widen(x)
    low, high = _round(-lambd, wide), _round(lambd, wide)
    return torch.where((wide >= low) & (wide <= high), _round(0, x), x)


def _softshrink(x: torch.Tensor, lambd: float = 0.5) -> torch.Tensor:
    """NaN stays: x * 0 of a choice that PyTorch makes last."""
    wide = widen(x)
    limit = _round(lambd, wide)
    shrunk = torch.where(wide > limit, wide - limit, torch.where(wide < -limit, wide + limit, wide * 0))
    return shrunk.to(x.dtype)


def _negate(x: torch.Tensor) -> torch.Tensor:
    if x.is_floating_point() or x.is_complex():
        return NotImplemented
    return torch.zeros((), dtype=x.dtype) - x


def _equal(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Not unequal: torch-mlir takes a value to equal itself, also where it is NaN."""
    if x.shape != y.shape:
        return NotImplemented
    x, y = _promote(x, y)
    return torch.logical_not(x != y) if x.is_floating_point() else NotImplemented


def _fmod(x: torch.Tensor, y: torch.Tensor | float) -> torch.Tensor:
    """C's fmod, whose result has the sign of x, by way of magnitudes."""
    x, y = _promote(x, y)
    if not x.is_floating_point():
        return NotImplemented
    rest = torch.remainder(x.abs(), y.abs())
    signed = torch.where(x < 0, -rest, rest)
    return torch.where((x == 0) & (rest == 0), x, signed)


def _make_atan2() -> Callable:
    """Returns the angle's decomposition. Its gradient is 0 at the origin, as PyTorch has it, not NaN."""
    is_inside = [False]  # the angles that it is made of stay

    def decompose(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        if is_inside[0] or not x.is_floating_point():
            return NotImplemented
        is_inside[0] = True
        try:
            is_origin = (y == 0) & (x == 0)
            angle = torch.atan2(y, torch.where(is_origin, torch.ones((), dtype=x.dtype), x))
            return torch.where(is_origin, torch.atan2(stop_gradient(y), stop_gradient(x)), angle)
        finally:
            is_inside[0] = False

    return decompose


def _floor_divide(x: torch.Tensor, y: torch.Tensor | float) -> torch.Tensor:
    """The floor of the exact quotient, by the remainder: a quotient that rounds up to an integer is below it. Its
    gradient is 0."""
    x, y = _promote(x, y)
    if not x.is_floating_point():
        return _floor_integers(x, y)
    wide_x, wide_y = widen(stop_gradient(x)), widen(stop_gradient(y))
    quotient, rest = wide_x / wide_y, _fmod(wide_x, wide_y)
    multiple = (wide_x - rest) / wide_y
    multiple = torch.where((rest != 0) & ((wide_y < 0) != (rest < 0)), multiple - 1, multiple)
    whole = multiple.floor()
    whole = torch.where(multiple - whole > 0.5, whole + 1, whole)
    whole = torch.where(multiple == 0, quotient * 0, whole)  # keeps the quotient's sign
    return torch.where(wide_y == 0, quotient, whole).to(x.dtype)


def _floor_integers(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The quotient towards 0, less 1 where it rounded up. torch-mlir's floors of integers go through floats."""
    narrow = x.dtype
    if x.dtype not in (torch.int32, torch.int64):
        x, y = x.to(torch.int32), y.to(torch.int32)
    quotient = torch.div(x, y, rounding_mode="trunc")
    rounded_up = (quotient * y != x) & ((x < 0) != (y < 0))
    return (quotient - rounded_up.to(x.dtype)).to(narrow)


def _with_mode(x: torch.Tensor, y: torch.Tensor | float, *, rounding_mode: str | None = None) -> torch.Tensor:
    return _floor_divide(x, y) if rounding_mode == "floor" else NotImplemented


def _clamp(x: torch.Tensor, low: float | None = None, high: float | None = None) -> torch.Tensor:
    """Between two numbers, which wrap as PyTorch's do beside bytes. NaN stays; at a bound the gradient is x's."""
    dtype = x.dtype
    for bound in (low, high):
        if bound is not None:
            dtype = torch.promote_types(dtype, torch.result_type(x, bound))
    x = x.to(dtype)
    if any(bound is not None and math.isnan(bound) for bound in (low, high)):
        return torch.full_like(x, math.nan)
    return _limit(x, *(None if bound is None else _round(bound, x) for bound in (low, high)))


def _clamp_by_tensors(x: torch.Tensor, low: torch.Tensor | None = None, high: torch.Tensor | None = None) -> torch.Tensor:
    """Between two tensors. NaN stays, that of a bound too; at a bound the gradient is x's."""
    dtype = x.dtype
    for bound in (low, high):
        if bound is not None:
            dtype = torch.promote_types(dtype, torch.result_type(x, bound))
    if dtype == torch.bool:
        wide = (each if each is None else each.to(torch.int32) for each in (x, low, high))
        return _limit(*wide).to(torch.bool)
    return _limit(*(each if each is None else each.to(dtype) for each in (x, low, high)))


def _limit(x: torch.Tensor, low: torch.Tensor | None, high: torch.Tensor | None) -> torch.Tensor:
    is_float = x.is_floating_point()
    if low is not None:
        x = torch.where((x < low) | (low != low) if is_float else x < low, low, x)
    if high is not None:
        x = torch.where((x > high) | (high != high) if is_float else x > high, high, x)
    return x


def _pick(is_first: Callable) -> Callable:
    """A maximum or minimum. NaN of either operand is the result; equal operands have half of the gradient each.

    Halves of the smallest numbers may round, so a tie of these is the second operand's alone.
    """
    def decompose(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = _promote(x, y)
        if not x.is_floating_point():
            return NotImplemented
        chosen = torch.where(is_first(x, y) | (x != x), x, y)
        tied = (x == y) & ((x.abs() > 4 * torch.finfo(x.dtype).tiny) | (x == 0))
        return torch.where(tied, x * 0.5 + y * 0.5, chosen)

    return decompose


def _pick_number(is_first: Callable) -> Callable:
    """fmax or fmin: a NaN counts only beside another. Equal operands give all of the gradient to the first."""
    def decompose(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = _promote(x, y)
        if x.dtype == torch.bool:
            return decompose(x.to(torch.int32), y.to(torch.int32)).to(torch.bool)
        return torch.where(is_first(x, y) | (y != y) if x.is_floating_point() else is_first(x, y), x, y)

    return decompose


def _is_close(x: torch.Tensor, y: torch.Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> torch.Tensor:
    """PyTorch takes the distance of integers in floats."""
    if x.is_complex():
        return NotImplemented
    near, far = (each if each.is_floating_point() else each.to(torch.get_default_dtype()) for each in (x, y))
    distance = (near - far).abs()
    made = (x == y) | ((distance < math.inf) & (distance <= atol + (rtol * far).abs()))
    return made | ((x != x) & (y != y)) if equal_nan else made


def _pow_integers(x: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    """Powers of integers, by a product for each bit of the exponent. Those of negative exponents are cut to integers."""
    dtype = torch.result_type(x, exponent)
    if dtype.is_floating_point or dtype.is_complex or dtype == torch.bool:
        return NotImplemented
    x, exponent = x.to(dtype), exponent.to(dtype)
    one = torch.ones((), dtype=dtype)
    made, power = torch.ones_like(x), x
    bits = torch.iinfo(dtype).bits - (dtype != torch.uint8)
    for bit in range(bits):
        is_set = torch.bitwise_and(exponent, torch.scalar_tensor(1 << bit, dtype=dtype)) != 0
        made = torch.where(is_set, made * power, made)
        power = power * power if bit + 1 < bits else power
    if dtype == torch.uint8:
        return made
    odd = torch.where(torch.bitwise_and(exponent, one) != 0, x, one)
    cut = torch.where((x == 1) | (x == -1), odd, torch.zeros((), dtype=dtype))
    return torch.where(exponent < 0, cut, made)


def _space(start: torch.Tensor | float, end: torch.Tensor | float, steps: int, *, dtype: torch.dtype | None = None,
           **options: object) -> torch.Tensor:
    """Evenly spaced numbers, from both ends to the middle. Ends of integers are cut to integers first."""
    dtype = dtype or torch.get_default_dtype()
    wide = torch.float64 if not dtype.is_floating_point else torch.float32 if dtype.itemsize == 2 else dtype
    start, end = ((each.to(dtype) if isinstance(each, torch.Tensor) else torch.scalar_tensor(each, dtype=dtype)).to(wide)
                  for each in (start, end))
    number = torch.arange(steps)
    step = (end - start) / max(steps - 1, 1)
    made = torch.where(number < max(steps // 2, 1), start + step * number, end - step * (steps - 1 - number))
    return made.to(dtype)


TABLE = {
    # Constants, which PyTorch evaluates as they are.
    aten.linspace.default: lambda *arguments, **options: NotImplemented,
    aten.logspace.default: lambda *arguments, **options: NotImplemented,
    aten.linspace.Tensor_Tensor: _space,
    aten.linspace.Tensor_Scalar: _space,
    aten.linspace.Scalar_Tensor: _space,
    aten.pow.Tensor_Tensor: _pow_integers,
    aten.neg.default: _negate,
    aten.eq.Tensor: _equal,
    aten.eq.Scalar: _compare(torch.eq),
    aten.ne.Scalar: _compare(torch.ne),
    aten.lt.Scalar: _compare(torch.lt),
    aten.le.Scalar: _compare(torch.le),
    aten.gt.Scalar: _compare(torch.gt),
    aten.ge.Scalar: _compare(torch.ge),
    aten.threshold.default: _threshold,
    aten.hardshrink.default: _hardshrink,
    aten.softshrink.default: _softshrink,
    aten.atan2.default: _make_atan2(),
    aten.fmod.Tensor: _fmod,
    aten.fmod.Scalar: _fmod,
    aten.floor_divide.default: _floor_divide,
    aten.floor_divide.Scalar: _floor_divide,
    aten.div.Tensor_mode: _with_mode,
    aten.div.Scalar_mode: _with_mode,
    aten.clamp.default: _clamp,
    aten.clamp_min.default: lambda x, low: _clamp(x, low),
    aten.clamp_max.default: lambda x, high: _clamp(x, None, high),
    aten.clamp.Tensor: _clamp_by_tensors,
    aten.clamp_min.Tensor: lambda x, low: _clamp_by_tensors(x, low),
    aten.clamp_max.Tensor: lambda x, high: _clamp_by_tensors(x, None, high),
    aten.maximum.default: _pick(torch.gt),
    aten.minimum.default: _pick(torch.lt),
    aten.fmax.default: _pick_number(torch.ge),
    aten.fmin.default: _pick_number(torch.le),
    aten.isclose.default: _is_close,
}
