"""Decompositions that operators get before torch-mlir sees them."""

import math
from collections.abc import Callable

import torch
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from weir.torch import ordering, scattering, special
from weir.torch.operators import stop_gradient

aten = torch.ops.aten


def _spread(values: torch.Tensor, dim: int, neutral: float) -> torch.Tensor:
    """[.., n, ..] to [.., n, n, ..]: at `dim` the places of a running result, after it what each combines.

    What comes after a place is `neutral`, by a choice rather than a product, so that infinities and NaNs stay
    where they are.
    """
    size = values.shape[dim]
    place = torch.arange(size, device=values.device)
    before = (place[None, :] <= place[:, None]).reshape(size, size, *[1] * (values.dim() - dim - 1))
    return torch.where(before, values.unsqueeze(dim), torch.scalar_tensor(neutral, dtype=values.dtype))


def _running(combine: Callable[[torch.Tensor, int], torch.Tensor], neutral: float) -> Callable:
    def decompose(values: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
        if dtype is None and not values.is_floating_point():
            dtype = torch.int64
        values = values if dtype is None else values.to(dtype)
        if values.dim() == 0:
            return values.clone()
        dim %= values.dim()
        return combine(_spread(values, dim, neutral), dim + 1)

    return decompose


def _attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """scaled_dot_product_attention, laid out as PyTorch's own for CPUs: [.., heads, n, d], heads next to d.

    torch's decomposition has another layout, of which a `view` that was traced may be none.
    """
    if enable_gqa:
        key, value = (part.repeat_interleave(query.shape[-3] // part.shape[-3], -3) for part in (key, value))
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    if attn_mask is None:
        weights = scores.softmax(-1)
    else:
        masked = attn_mask.dtype == torch.bool
        scores = torch.where(attn_mask, scores, float("-inf")) if masked else scores + attn_mask
        # Rows that are masked as a whole give 0.
        weights = scores.softmax(-1) if is_causal else aten._safe_softmax(scores, -1)
    if dropout_p:
        weights = torch.dropout(weights, dropout_p, True)
    output = weights @ value
    return output.transpose(1, 2).contiguous().transpose(1, 2) if output.dim() == 4 else output


def _is_finite(values: torch.Tensor) -> torch.Tensor:
    if not values.is_floating_point():
        return torch.ones_like(values, dtype=torch.bool)
    return values.abs() < float("inf")  # not NaN either


# Activations with kinks, as choices: there PyTorch's gradient is that of one side, and torch-mlir's sums of maxima and
# minima leave nothing to tell which.


def _leaky_relu(x: torch.Tensor, negative_slope: float = 0.01) -> torch.Tensor:
    return torch.where(x > 0, x, x * negative_slope)


def _elu(x: torch.Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> torch.Tensor:
    return torch.where(x > 0, x * scale, torch.expm1(x * input_scale) * (alpha * scale))


def _hardtanh(x: torch.Tensor, min_val: float = -1, max_val: float = 1) -> torch.Tensor:
    low, high = (torch.scalar_tensor(limit, dtype=x.dtype) for limit in (min_val, max_val))
    return torch.where(x <= low, low, torch.where(x >= high, high, x))


def _relu6(x: torch.Tensor) -> torch.Tensor:
    return _hardtanh(x, 0, 6)


def _hardsigmoid(x: torch.Tensor) -> torch.Tensor:
    return _relu6(x + 3) / 6


def _hardswish(x: torch.Tensor) -> torch.Tensor:
    return x * _relu6(x + 3) / 6


def _std(
    x: torch.Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> torch.Tensor:
    """The root of the variance. Where it is 0 its gradient is 0, as in PyTorch."""
    variance = torch.var(x, dim, correction=1 if correction is None else correction, keepdim=keepdim)
    return torch.where(variance > 0, torch.sqrt(variance), variance)


def _std_mean(
    x: torch.Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    mean = x.mean() if dim is None and not keepdim else x.mean(list(range(x.dim())) if dim is None else dim, keepdim)
    return _std(x, dim, correction=correction, keepdim=keepdim), mean


def _gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    """torch-mlir has 0.797724 for the square root of 2 / pi."""
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + torch.tanh(inner))
    return 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))


def _group_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    n: int,
    channels: int,
    size: int,
    groups: int,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A LayerNorm of each group, then the channels' weights.

    torch's decomposition adds the mean to the bias and finds each channel's group in tables, which is three times the
    kernels.
    """
    rows = x.reshape(n, groups, -1)
    mean = rows.mean(-1, keepdim=True)
    centered = rows - mean
    rstd = torch.rsqrt((centered * centered).mean(-1, keepdim=True) + eps)
    y = (centered * rstd).reshape(x.shape)
    places = (1, channels, *[1] * (x.dim() - 2))
    y = y if weight is None else y * weight.reshape(places)
    y = y if bias is None else y + bias.reshape(places)
    return y, mean.reshape(n, groups), rstd.reshape(n, groups)


def _embedding(
    weight: torch.Tensor,
    indices: torch.Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> torch.Tensor:
    """The row of the padding index gets no gradient."""
    if padding_idx < 0:
        return NotImplemented
    rows = aten.embedding.default(weight, indices)
    return torch.where((indices == padding_idx).unsqueeze(-1), stop_gradient(rows), rows)


def _with_scalar(function: Callable) -> Callable:
    """A scalar as a tensor: torch-mlir lowers the other form alone."""
    return lambda x, number: function(x, torch.scalar_tensor(number, dtype=x.dtype))


def _pow(x: torch.Tensor, exponent: float) -> torch.Tensor:
    """A power of integers, as products where it is one."""
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool or exponent < 0:
        return NotImplemented
    if not isinstance(exponent, int):
        return x.to(torch.get_default_dtype()) ** exponent
    result = torch.ones_like(x)
    while exponent:
        if exponent % 2:
            result = result * x
        x, exponent = x * x, exponent // 2
    return result


def get_table() -> dict[torch._ops.OpOverload, Callable]:
    """torch-mlir's table, with attention, sorts and scatters, and running sums and products as reductions of n by n
    elements."""
    return get_decomposition_table() | special.TABLE | ordering.TABLE | scattering.get_table() | {
        aten.scaled_dot_product_attention.default: _attend,
        aten.embedding.default: _embedding,
        aten.leaky_relu.default: _leaky_relu,
        aten.elu.default: _elu,
        aten.hardtanh.default: _hardtanh,
        aten.relu6.default: _relu6,
        aten.hardsigmoid.default: _hardsigmoid,
        aten.hardswish.default: _hardswish,
        aten.std.correction: _std,
        aten.std_mean.correction: _std_mean,
        aten.gelu.default: _gelu,
        aten.native_group_norm.default: _group_norm,
        aten.isfinite.default: _is_finite,
        aten.bitwise_or.Scalar: _with_scalar(torch.bitwise_or),
        aten.bitwise_xor.Scalar: _with_scalar(torch.bitwise_xor),
        aten.pow.Tensor_Scalar: _pow,
        aten.cumsum.default: _running(lambda values, dim: values.sum(dim), 0),
        aten.cumprod.default: _running(lambda values, dim: values.prod(dim), 1),
        aten.logcumsumexp.default: _running(lambda values, dim: values.logsumexp(dim), float("-inf")),
    }
