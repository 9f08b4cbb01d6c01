"""Arithmetic of complex tensors as pairs of real ones: rules of `weir.torch.complexes`.

A rule is given an operator's operands, complex tensors as pairs, and returns a pair, a real tensor, or several of them.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch.fx import Node

from weir.torch.operators import stop_gradient

aten = torch.ops.aten


class Pair(NamedTuple):
    """The parts of a value: tensors, or their nodes."""

    real: torch.Tensor | Node
    imag: torch.Tensor | Node


def take_part(operands: object, part: int) -> object:
    """Returns operands with one part of each pair, and real types in place of complex ones."""
    if isinstance(operands, Pair):
        return operands[part]
    if isinstance(operands, (list, tuple)):
        return type(operands)(take_part(each, part) for each in operands)
    if isinstance(operands, torch.dtype) and operands.is_complex:
        return operands.to_real()
    if isinstance(operands, dict):
        return {key: take_part(each, part) for key, each in operands.items()}
    return operands


def widen(x: Pair | torch.Tensor | complex | float) -> Pair | complex | float:
    """Gives a real tensor an imaginary part."""
    return Pair(x, torch.zeros_like(x)) if isinstance(x, torch.Tensor) else x


def scale(z: Pair | torch.Tensor, factor: float) -> Pair | torch.Tensor:
    if factor == 1:
        return z
    return Pair(*(part * factor for part in z)) if isinstance(z, Pair) else z * factor


def add(a: Pair | torch.Tensor, b: Pair | torch.Tensor | complex | float, alpha: complex | float = 1) -> Pair:
    a, b = widen(a), widen(b if alpha == 1 else multiply(b, alpha))
    return Pair(a.real + b.real, a.imag + b.imag)


def subtract(a: Pair | torch.Tensor, b: Pair | torch.Tensor | complex | float, alpha: complex | float = 1) -> Pair:
    return add(a, b, alpha=-alpha)


def multiply(a: Pair | torch.Tensor, b: Pair | torch.Tensor | complex | float,
             times: Callable[..., torch.Tensor] = operator.mul) -> Pair | torch.Tensor:
    if not isinstance(b, (Pair, complex)):
        return Pair(times(a.real, b), times(a.imag, b)) if isinstance(a, Pair) else times(a, b)
    if not isinstance(a, Pair):
        return Pair(times(a, b.real), times(a, b.imag))
    return Pair(times(a.real, b.real) - times(a.imag, b.imag), times(a.real, b.imag) + times(a.imag, b.real))


def multiply_matrices(a: Pair | torch.Tensor, b: Pair | torch.Tensor) -> Pair:
    return multiply(a, b, torch.matmul)


def _measure(z: Pair) -> tuple[torch.Tensor, Pair, torch.Tensor]:
    """Returns the larger part, or 1 where both are 0; both in units of it; and the sum of their squares.

    An infinite part is one unit, and a finite one beside it none.
    """
    larger = stop_gradient(torch.maximum(z.real.abs(), z.imag.abs()))
    is_infinite, zero = larger == math.inf, torch.zeros_like(larger)
    unit = torch.where(larger == 0, torch.ones_like(larger), larger)
    ends = (torch.where(part.abs() == math.inf, torch.sign(part), zero) for part in z)
    parts = Pair(*(torch.where(is_infinite, end, part / unit) for part, end in zip(z, ends)))
    return unit, parts, parts.real**2 + parts.imag**2


def absolute(z: Pair) -> torch.Tensor:
    """The gradient at 0 is 0, as in PyTorch."""
    unit, _, square = _measure(z)
    is_zero = square == 0
    size = torch.where(is_zero, square, torch.sqrt(torch.where(is_zero, torch.ones_like(square), square)) * unit)
    is_infinite = (z.real.abs() == math.inf) | (z.imag.abs() == math.inf)  # also beside NaN
    return torch.where(is_infinite, torch.full((), math.inf, dtype=size.dtype), size)


def divide(a: Pair | torch.Tensor, b: Pair | torch.Tensor | complex | float) -> Pair:
    """A divisor of 0 divides both parts, as in PyTorch."""
    if isinstance(b, complex):
        return multiply(a, 1 / b)
    if not isinstance(b, Pair):
        return Pair(a.real / b, a.imag / b)
    unit, parts, square = _measure(b)
    a, is_zero = widen(a), square == 0
    quotient = multiply(a, Pair(parts.real / square, -parts.imag / square))
    return Pair(*(torch.where(is_zero, part / square, made / unit) for part, made in zip(a, quotient)))


def invert(z: Pair) -> Pair:
    return divide(torch.ones_like(z.real), z)


def conjugate(z: Pair) -> Pair:
    return Pair(z.real, -z.imag)


def _polar(size: torch.Tensor, angle: torch.Tensor) -> Pair:
    return Pair(size * torch.cos(angle), size * torch.sin(angle))


def _angle(z: Pair) -> torch.Tensor:
    return torch.atan2(z.imag, z.real)


# Comparisons and numbers other than finite ones.


def _are_equal(a: Pair | torch.Tensor, b: Pair | torch.Tensor | complex | float) -> torch.Tensor:
    a, b = widen(a), widen(b)
    return (a.real == b.real) & (a.imag == b.imag)


def _are_close(a: Pair, b: Pair, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> torch.Tensor:
    distance, size = absolute(subtract(a, b)), absolute(b)
    close = _are_equal(a, b) | ((distance < math.inf) & (distance <= atol + rtol * size))
    return close | (_any_part(torch.isnan)(a) & _any_part(torch.isnan)(b)) if equal_nan else close


def _any_part(test: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Pair], torch.Tensor]:
    """Returns whether one of the parts passes a test."""
    return lambda z: test(z.real) | test(z.imag)


def _on_flags(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Returns a function of whether numbers are not 0."""
    def rule(*operands: object, **options: object) -> torch.Tensor:
        flags = (_any_part(lambda part: part != 0)(each) if isinstance(each, Pair) else each for each in operands)
        return function(*flags, **options)

    return rule


# Reductions and running results.


def on_sizes(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Returns a function of the absolute values of its first operand."""
    return lambda z, *more, **options: function(absolute(z), *take_part(more, 0), **take_part(options, 0))


def _multiply_all(z: Pair, dim: int | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Pair:
    """Multiplies neighbours until one number is left."""
    z = widen(z) if dtype is None else Pair(*(part.to(dtype.to_real()) for part in widen(z)))
    if dim is None or not z.real.dim():
        z, dim = Pair(*(part.reshape(-1) for part in z)), 0
        made = _multiply_all(z, 0) if z.real.numel() != 1 else z
        return made if made.real.dim() == 0 else Pair(*(part.reshape(()) for part in made))
    while (count := z.real.shape[dim]) > 1:
        half = count // 2
        first, second, rest = (Pair(*(part.narrow(dim, start, size) for part in z))
                               for start, size in ((0, half), (half, half), (2 * half, count % 2)))
        z = multiply(first, second)
        z = Pair(*(torch.cat(parts, dim) for parts in zip(z, rest))) if count % 2 else z
    if not z.real.shape[dim]:
        shape = [1 if d == dim % z.real.dim() else size for d, size in enumerate(z.real.shape)]
        z = Pair(torch.ones(shape, dtype=z.real.dtype), torch.zeros(shape, dtype=z.real.dtype))
    return z if keepdim else Pair(*(part.squeeze(dim) for part in z))


def running(combine: Callable[[Pair, Pair], Pair]) -> Callable[..., Pair]:
    """Returns the rule of a running result. Each step combines it with what comes before as many places as the step
    before it, doubled (Hillis and Steele, 1986)."""
    def rule(z: Pair, dim: int, *, dtype: torch.dtype | None = None) -> Pair:
        z = widen(z) if dtype is None else Pair(*(part.to(dtype.to_real()) for part in widen(z)))
        step, count = 1, z.real.shape[dim] if z.real.dim() else 0
        while step < count:
            start, before, after = (Pair(*(part.narrow(dim, *range_) for part in z))
                                    for range_ in ((0, step), (0, count - step), (step, count - step)))
            z = Pair(*(torch.cat(parts, dim) for parts in zip(start, combine(before, after))))
            step *= 2
        return z

    return rule


def _var(
    z: Pair, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> torch.Tensor:
    correction = 1 if correction is None else correction
    real, imag = (torch.var(part, dim, correction=correction, keepdim=keepdim) for part in z)
    return real + imag


def _std(z: Pair, dim: Sequence[int] | None = None, **options: object) -> torch.Tensor:
    """The gradient is 0 if the variance is, as in PyTorch."""
    variance = _var(z, dim, **options)
    is_zero = variance == 0
    return torch.where(is_zero, variance, torch.sqrt(torch.where(is_zero, torch.ones_like(variance), variance)))


def _with_mean(function: Callable[..., torch.Tensor]) -> Callable[..., tuple[torch.Tensor, Pair]]:
    def rule(z: Pair, dim: Sequence[int] | None = None, *, correction: float | None = None,
             keepdim: bool = False) -> tuple[torch.Tensor, Pair]:
        dims = list(range(z.real.dim())) if not dim else dim
        mean = Pair(*(part.mean(dims, keepdim) for part in z))
        return function(z, dim, correction=correction, keepdim=keepdim), mean

    return rule


RULES: dict[torch._ops.OpOverload, Callable] = {
    aten.add.Tensor: add,
    aten.add.Scalar: add,
    aten.sub.Tensor: subtract,
    aten.sub.Scalar: subtract,
    aten.rsub.Scalar: lambda z, number, alpha=1: subtract(number, z, alpha),
    aten.mul.Tensor: multiply,
    aten.mul.Scalar: multiply,
    aten.div.Tensor: divide,
    aten.div.Scalar: divide,
    aten.reciprocal.default: invert,
    aten.mm.default: multiply_matrices,
    aten.bmm.default: multiply_matrices,
    aten.abs.default: absolute,
    aten.angle.default: _angle,
    aten.polar.default: _polar,
    aten._conj.default: conjugate,
    aten._conj_physical.default: conjugate,
    aten.conj_physical.default: conjugate,
    aten.eq.Tensor: _are_equal,
    aten.eq.Scalar: _are_equal,
    aten.ne.Tensor: lambda a, b: ~_are_equal(a, b),
    aten.ne.Scalar: lambda a, b: ~_are_equal(a, b),
    aten.isclose.default: _are_close,
    aten.isnan.default: _any_part(torch.isnan),
    aten.isinf.default: _any_part(torch.isinf),
    aten.isfinite.default: lambda z: torch.isfinite(z.real) & torch.isfinite(z.imag),
    aten.prod.default: _multiply_all,
    aten.prod.dim_int: _multiply_all,
    aten.cumprod.default: running(multiply),
    aten.var.correction: _var,
    aten.std.correction: _std,
    aten.var_mean.correction: _with_mean(_var),
    aten.std_mean.correction: _with_mean(_std),
} | {op: on_sizes(op) for op in (
    aten.linalg_vector_norm.default, aten.norm.Scalar, aten.norm.ScalarOpt_dim, aten.norm.ScalarOpt_dim_dtype,
    aten.norm.ScalarOpt_dtype)
} | {op: _on_flags(op) for op in (
    aten.all.default, aten.all.dim, aten.all.dims, aten.any.default, aten.any.dim, aten.any.dims,
    aten.count_nonzero.default, aten.count_nonzero.dim_IntList, aten.logical_and.default, aten.logical_not.default,
    aten.logical_or.default, aten.logical_xor.default)
}
