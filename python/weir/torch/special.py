"""PyTorch's special functions by `weir.special`, and signs. bf16 and f16 are computed in f32."""

import functools
import math
from collections.abc import Callable

import torch

from weir.special import Functions

aten = torch.ops.aten
FUNCTIONS = Functions(
    torch, lambda number, like: torch.scalar_tensor(number, dtype=like.dtype), lambda x: x.dtype == torch.float64)


def _of_floats(function: Callable) -> Callable:
    """Computes a function of floats in f32 or f64; integers are floats of the default type."""

    @functools.wraps(function)
    def decompose(x: torch.Tensor, *rest: object) -> torch.Tensor:
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        return function(x.to(torch.float64 if dtype == torch.float64 else torch.float32), *rest).to(dtype)

    return decompose


def _choose(
    condition: torch.Tensor, x: torch.Tensor | float, y: torch.Tensor | float, like: torch.Tensor
) -> torch.Tensor:
    """A choice of tensors or numbers; an operand that a choice hides must be finite, or its gradient is NaN."""
    x, y = (torch.scalar_tensor(each, dtype=like.dtype) if not isinstance(each, torch.Tensor) else each for each in (x, y))
    return torch.where(condition, x, y)


def _is_negative(x: torch.Tensor) -> torch.Tensor:
    """Whether the sign is negative, of -0.0 as well. The sign of a NaN is not looked at."""
    if not x.is_floating_point():
        return x < 0
    return (x < 0) | ((x == 0) & (1 / _choose(x == 0, x, 1.0, x) < 0))


def _copysign(x: torch.Tensor, sign: torch.Tensor | float) -> torch.Tensor:
    dtype = torch.result_type(x, sign)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    x = x.to(dtype).abs()
    if not isinstance(sign, torch.Tensor):
        return (-x if math.copysign(1, sign) < 0 else x).clone()
    return torch.where(_is_negative(sign), -x, x)


def _polygamma(n: int, x: torch.Tensor) -> torch.Tensor:
    return aten.digamma.default(x) if n == 0 else _of_floats(functools.partial(FUNCTIONS.derive_digamma, order=n))(x)


@_of_floats
def _angle(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x != x, x, _choose(x < 0, math.pi, 0.0, x))


def _subtract_from(x: torch.Tensor, number: float, alpha: float = 1) -> torch.Tensor:
    """number - alpha * x. torch-mlir rounds the number to f32, also beside f64, which the forms above need exact."""
    return torch.scalar_tensor(number, dtype=torch.result_type(x, number)) - (x if alpha == 1 else x * alpha)


TABLE = {
    aten.rsub.Scalar: _subtract_from,
    aten.signbit.default: _is_negative,
    aten.copysign.Tensor: _copysign,
    aten.copysign.Scalar: _copysign,
    aten.angle.default: lambda x: NotImplemented if x.is_complex() else _angle(x),
    aten.lgamma.default: _of_floats(FUNCTIONS.lgamma),
    aten.digamma.default: _of_floats(FUNCTIONS.digamma),
    aten.polygamma.default: _polygamma,
    aten.erfc.default: _of_floats(FUNCTIONS.erfc),
    aten.erfinv.default: _of_floats(FUNCTIONS.erfinv),
    aten.special_erfcx.default: _of_floats(FUNCTIONS.erfcx),
    aten.i0.default: _of_floats(FUNCTIONS.bessel(scaled=False, odd=False)),
    aten.special_i0e.default: _of_floats(FUNCTIONS.bessel(scaled=True, odd=False)),
    aten.special_i1.default: _of_floats(FUNCTIONS.bessel(scaled=False, odd=True)),
    aten.special_i1e.default: _of_floats(FUNCTIONS.bessel(scaled=True, odd=True)),
}
