"""Orthogonal polynomials by their recurrences: unrolled for a small number as order, and else a loop up to the largest.

PyTorch gives them no gradient. Orders are rounded towards 0; negative ones, infinities and NaNs give 0.
"""

import functools
import math
from collections.abc import Callable

import torch

aten = torch.ops.aten
UNROLLED = 32  # largest order of which each step is an operator of its own


def _step_chebyshev(x: torch.Tensor, k: torch.Tensor | int, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (x + x) * one - other


def _step_hermite(x: torch.Tensor, k: torch.Tensor | int, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (x + x) * one - 2 * k * other


def _step_hermite_e(x: torch.Tensor, k: torch.Tensor | int, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return x * one - k * other


def _step_laguerre(x: torch.Tensor, k: torch.Tensor | int, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return ((k + k + 1 - x) * one - k * other) / (k + 1)


def _step_legendre(x: torch.Tensor, k: torch.Tensor | int, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return ((k + k + 1) * x * one - k * other) / (k + 1)


# The polynomial of order 1, and the one of order k + 1 from those of k and k - 1.
_CHEBYSHEV: dict[str, Callable] = {
    "t": lambda x: x, "u": lambda x: x + x, "v": lambda x: x + x - 1, "w": lambda x: x + x + 1}
_KINDS: dict[str, tuple[Callable, Callable]] = {
    "hermite_polynomial_h": (lambda x: x + x, _step_hermite),
    "hermite_polynomial_he": (lambda x: x, _step_hermite_e),
    "laguerre_polynomial_l": (lambda x: 1 - x, _step_laguerre),
    "legendre_polynomial_p": (lambda x: x, _step_legendre),
} | {f"{prefix}chebyshev_polynomial_{kind}": (first, _step_chebyshev)
     for prefix in ("", "shifted_") for kind, first in _CHEBYSHEV.items()}
_HERMITE_LIMITS = {torch.float32: 128, torch.float64: 512}  # PyTorch gives NaN beyond


def _find_type(x: torch.Tensor | float, n: torch.Tensor | float) -> torch.dtype:
    dtype = torch.result_type(x, n)
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


def _unroll(name: str, x: torch.Tensor, n: float) -> torch.Tensor:
    dtype = _find_type(x, n)
    x = x.detach().to(dtype)
    if math.isnan(n) or math.isinf(n) or n <= -1:
        return torch.zeros_like(x)
    n = int(n)
    if name.startswith("hermite") and n > _HERMITE_LIMITS.get(dtype, 128):
        return torch.full_like(x, float("nan"))
    if n > UNROLLED:
        return _loop(name, x, torch.full((), n, dtype=torch.float64))
    first, step = _KINDS[name]
    x = x + x - 1 if name.startswith("shifted") else x
    other, one = torch.ones_like(x), first(x)
    for k in range(1, n):
        other, one = one, step(x, k, one, other)
    return one if n else other


def _loop(name: str, x: torch.Tensor | float, n: torch.Tensor | float) -> torch.Tensor:
    """All orders run up to the largest one, and each takes its result on the way."""
    dtype = _find_type(x, n)
    x = x.detach() if isinstance(x, torch.Tensor) else torch.scalar_tensor(x, dtype=dtype)
    n = torch.trunc(n.detach().to(torch.float64))
    x, n = torch.broadcast_tensors(x.to(dtype), n)
    first, step = _KINDS[name]
    x = x + x - 1 if name.startswith("shifted") else x.clone()
    limit = _HERMITE_LIMITS.get(dtype, 128) if name.startswith("hermite") else 2**53
    is_order = (n >= 0) & (n <= limit)
    orders = torch.where(is_order, n, torch.scalar_tensor(-1, dtype=torch.float64))
    start = torch.zeros_like(x)
    if name.startswith("hermite"):
        start = torch.where((n > limit) & (n < float("inf")), torch.scalar_tensor(float("nan"), dtype=dtype), start)
    if not x.numel():
        return start
    one, other = first(x).clone(), torch.ones_like(x)  # a loop may not carry two values that share memory
    start = torch.where(orders == 0, other, torch.where(orders == 1, one, start))

    def goes_on(k, last, x, orders, one, other, found):
        return k < last

    def advance(k, last, x, orders, one, other, found):
        made = step(x, k.to(dtype), one, other)
        found = torch.where(orders == k + 1, made, found)
        return k + 1, last.clone(), x.clone(), orders.clone(), made, one.clone(), found

    last = orders.amax()
    carried = (torch.ones_like(last), last, x, orders, one, other, start)
    return torch.while_loop(goes_on, advance, carried)[-1]


def _compute(name: str, input: torch.Tensor | float, n: torch.Tensor | float) -> torch.Tensor:
    return _loop(name, input, n) if isinstance(n, torch.Tensor) else _unroll(name, input, n)


FORMS: dict[Callable, Callable] = {
    getattr(torch.special, name): functools.partial(_compute, name) for name in _KINDS}
