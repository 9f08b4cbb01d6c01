"""The exponential of matrices, by scaling and squaring."""

import torch

from weir.torch.operators import stop_gradient, widen

aten = torch.ops.aten

_SQUARINGS = 16
_DEGREE, _BLOCK = 16, 4
_NORMS = {torch.float32: 2.0, torch.float64: 0.5}  # for which the polynomial has all digits


def matrix_exp(x: torch.Tensor) -> torch.Tensor:
    """Taylor's polynomial of x / 2^s, squared s times.

    A norm above 2^15, of which the exponential is hardly in range, gives NaN.
    """
    if x.numel() == 0:
        return x.clone()
    narrow = x.dtype
    x = widen(x)
    norm = stop_gradient(x).abs().sum(-2, keepdim=True).amax(-1, keepdim=True)
    count, scale = torch.zeros_like(norm), torch.ones_like(norm)
    largest = _NORMS[x.dtype]
    for k in range(_SQUARINGS):
        is_larger = norm > largest * 2.0**k
        count, scale = torch.where(is_larger, count + 1, count), torch.where(is_larger, scale * 0.5, scale)
    scale = torch.where(norm > largest * 2.0**_SQUARINGS, torch.full((), float("nan"), dtype=x.dtype), scale)
    powers = [torch.eye(x.shape[-1], dtype=x.dtype, device=x.device).expand(x.shape), x * scale]
    while len(powers) <= _BLOCK:
        powers.append(powers[-1] @ powers[1])
    factors = [1.0]
    for k in range(1, _DEGREE + 1):
        factors.append(factors[-1] / k)
    made = powers[0] * factors[_DEGREE]
    for start in range(_DEGREE - _BLOCK, -1, -_BLOCK):
        made = made @ powers[_BLOCK]
        for k in range(_BLOCK):
            made = made + powers[k] * factors[start + k]
    for k in range(_SQUARINGS):
        made = torch.where(count > k, made @ made, made)
    return made.to(narrow)


TABLE = {aten.linalg_matrix_exp.default: matrix_exp}
