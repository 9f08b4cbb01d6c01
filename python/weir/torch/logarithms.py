"""Sums of exponentials of two numbers, and products with logarithms, with PyTorch's gradients at zeros and infinities."""

import math
from collections.abc import Callable

import torch

aten = torch.ops.aten


def _wide(x: torch.Tensor, y: torch.Tensor | float) -> tuple[torch.Tensor, torch.Tensor, torch.dtype]:
    """Returns both in the type in which PyTorch computes, and the type of the result."""
    narrow = torch.result_type(x, y)
    if not narrow.is_floating_point:
        narrow = torch.get_default_dtype()
    dtype = torch.float32 if narrow in (torch.float16, torch.bfloat16) else narrow
    given = (each if isinstance(each, torch.Tensor) else torch.full((), each, dtype=narrow) for each in (x, y))
    return *(each.to(narrow).to(dtype) for each in given), narrow


def _add_logs(base: float) -> Callable:
    def decompose(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.is_complex() or y.is_complex():
            return NotImplemented
        x, y, narrow = _wide(x, y)
        is_first = x >= y
        larger, smaller = torch.where(is_first, x, y), torch.where(is_first, y, x)
        is_same = (x == y) & (x.abs() == float("inf"))
        distance = torch.where(is_same, torch.zeros((), dtype=x.dtype), smaller - larger)
        rest = torch.log1p(torch.exp(distance * math.log(base))) / math.log(base)
        return torch.where(is_same, x, larger + rest).to(narrow)

    return decompose


def _multiply_log(log: Callable, end: float) -> Callable:
    """x * log(y), which is 0 if x is, unless y is NaN. The gradient of such an x is the logarithm if that is a number."""
    def decompose(x: torch.Tensor | float, y: torch.Tensor | float) -> torch.Tensor:
        if not isinstance(x, torch.Tensor):
            x = torch.full((), x, dtype=torch.result_type(y, x))
        x, y, narrow = _wide(x, y)
        is_zero = (x == 0) & ((y <= end) | (y == float("inf")))
        made = x * log(torch.where(is_zero, torch.ones((), dtype=y.dtype), y))
        return torch.where(is_zero, torch.zeros((), dtype=x.dtype), made).to(narrow)

    return decompose


_xlogy, _xlog1py = _multiply_log(torch.log, 0), _multiply_log(torch.log1p, -1)
TABLE = {
    aten.logaddexp.default: _add_logs(math.e),
    aten.logaddexp2.default: _add_logs(2),
    aten.xlogy.Tensor: _xlogy,
    aten.xlogy.Scalar_Self: _xlogy,
    aten.xlogy.Scalar_Other: _xlogy,
    aten.special_xlog1py.default: _xlog1py,
    aten.special_xlog1py.self_scalar: _xlog1py,
    aten.special_xlog1py.other_scalar: _xlog1py,
}
