"""Decompositions that operators get before torch-mlir sees them."""

import math
from collections.abc import Callable

import torch
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from weir import running
from weir.graphs import ExportError
from weir.torch import arithmetic, ordering, pooling, products, scattering, special
from weir.torch.families import FAMILIES
from weir.torch.operators import limit, stop_gradient, widen

aten = torch.ops.aten


def _spread(values: torch.Tensor, dim: int, neutral: float) -> torch.Tensor:
    """[.., n, ..] to [.., n, n, ..]: at `dim` the places of a running result, after it what each combines.

    What comes after a place is `neutral`, by a choice rather than a product, so that infinities and NaNs stay
    where they are.
    """
    size, rest = values.shape[dim], [1] * (values.dim() - dim - 1)
    place = torch.arange(size, device=values.device)
    # Compared in its last shape: a reshape of the mask would be a constant of n x n elements.
    before = place.reshape(1, size, *rest) <= place.reshape(size, 1, *rest)
    return torch.where(before, values.unsqueeze(dim), torch.scalar_tensor(neutral, dtype=values.dtype))


def _running(reduce: Callable[[torch.Tensor, int], torch.Tensor], combine: Callable, neutral: float) -> Callable:
    def decompose(values: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
        if dtype is None and not values.is_floating_point():
            dtype = torch.int64
        values = values if dtype is None else values.to(dtype)
        if values.dim() == 0:
            return values.clone()
        dim %= values.dim()
        if values.shape[dim] <= running.LONGEST:
            return reduce(_spread(values, dim, neutral), dim + 1)
        narrow = values.dtype
        wide = widen(values)
        made = running.accumulate(
            wide.movedim(dim, -1), lambda rows: reduce(_spread(rows, rows.dim() - 1, neutral), rows.dim()), combine,
            lambda shape: torch.full(shape, neutral, dtype=wide.dtype), lambda parts: torch.cat(parts, -1))
        return made.movedim(-1, dim).to(narrow)

    return decompose


def _log_sum(values: torch.Tensor, dim: int) -> torch.Tensor:
    """log(sum(exp(values))). The gradient of infinity is the largest element's: a NaN would reach all of its block."""
    largest = values.amax(dim)
    is_infinite, zero = largest == float("inf"), torch.zeros((), dtype=values.dtype)
    base = torch.where(largest.abs() == float("inf"), zero, largest).detach()
    terms = torch.where(is_infinite.unsqueeze(dim), zero, torch.exp(values - base.unsqueeze(dim)))
    return torch.where(is_infinite, largest, base + torch.log(terms.sum(dim)))


def _log_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return _log_sum(torch.stack(torch.broadcast_tensors(x, y)), 0)


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
    hidden = None
    if attn_mask is None:
        weights = scores.softmax(-1)
    else:
        is_flag = attn_mask.dtype == torch.bool
        if not is_causal:
            # Rows that are masked as a whole give 0, and no gradient: their mask is dropped, and so is what they give.
            hidden = ((~attn_mask) if is_flag else (attn_mask == float("-inf"))).all(-1, keepdim=True)
            attn_mask = attn_mask | hidden if is_flag else torch.where(hidden, torch.zeros((), dtype=attn_mask.dtype), attn_mask)
        scores = torch.where(attn_mask, scores, float("-inf")) if is_flag else scores + attn_mask
        weights = scores.softmax(-1)
    if dropout_p:
        weights = torch.dropout(weights, dropout_p, True)
    output = weights @ value
    if hidden is not None:
        output = torch.where(hidden, torch.zeros((), dtype=output.dtype), output)
    return output.transpose(1, 2).contiguous().transpose(1, 2) if output.dim() == 4 else output


def _safe_softmax(x: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Rows of -inf alone give 0, and no gradient."""
    x = x if dtype is None else x.to(dtype)
    zero = torch.zeros((), dtype=x.dtype)
    hidden = (x == float("-inf")).all(dim, keepdim=True)
    return torch.where(hidden, zero, torch.where(hidden, zero, x).softmax(dim))


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


def _limit(largest: bool) -> Callable:
    """The largest or smallest elements, whose gradient is shared among equal ones."""
    def decompose(x: torch.Tensor, dim: list[int] | None = None, keepdim: bool = False) -> torch.Tensor:
        if x.dim() == 0:
            return x.clone()
        if not x.is_floating_point() or x.numel() == 0:
            return NotImplemented
        dims = {d % x.dim() for d in (dim or range(x.dim()))}
        made = limit(x, int(largest), sum(1 << d for d in dims))
        return made.reshape([1 if d in dims else size for d, size in enumerate(x.shape)]) if keepdim else made

    return decompose


def _place(largest: bool) -> Callable:
    """The place of the first of the largest or smallest elements. A NaN counts as one."""
    def decompose(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
        if x.dim() == 0:
            return torch.zeros((), dtype=torch.int64, device=x.device)
        if not x.is_floating_point() or x.numel() == 0:
            return NotImplemented
        flat = x.reshape(-1) if dim is None else x
        along = 0 if dim is None else dim % x.dim()
        flat = flat.detach()
        limit_of = (flat.amax if largest else flat.amin)(along, True)
        is_it = (flat == limit_of) | ((flat != flat) & (limit_of != limit_of))
        size = flat.shape[along]
        place = torch.arange(size, device=x.device).reshape(-1, *[1] * (flat.dim() - along - 1))
        found = torch.where(is_it, place, torch.full((), size, dtype=torch.int64)).amin(along, keepdim)
        return found.reshape([1] * x.dim()) if dim is None and keepdim else found

    return decompose


def _limit_with_place(largest: bool) -> Callable:
    """The gradient goes to the place."""
    def decompose(x: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        if x.dim() == 0:
            return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
        if not x.is_floating_point() or x.numel() == 0:
            return NotImplemented
        place = _place(largest)(x, dim, True)
        made = x.gather(dim, place)
        return (made, place) if keepdim else (made.squeeze(dim), place.squeeze(dim))

    return decompose


def _reduce_flags(reduce: Callable) -> Callable:
    """`all` and `any`, one dimension after the other. No dimension is none, and not all."""
    def decompose(x: torch.Tensor, dim: int | list[int] | None = None, keepdim: bool = False) -> torch.Tensor:
        if isinstance(dim, int) and x.dim():
            return NotImplemented
        made, dims = x != 0, range(x.dim()) if dim is None else dim
        for d in sorted({d % x.dim() for d in dims}, reverse=True) if x.dim() else ():
            made = reduce(made, d, keepdim)
        return made.to(torch.uint8) if x.dtype == torch.uint8 else made

    return decompose


def _vector_norm(x: torch.Tensor, ord: float = 2, dim: list[int] | None = None, keepdim: bool = False, *,
                 dtype: torch.dtype | None = None) -> torch.Tensor:
    if x.is_complex():
        return NotImplemented
    if not math.isinf(ord):
        narrow = x.dtype if dtype is None else dtype
        x = widen(x if dtype is None else x.to(dtype))
        return NotImplemented if x.dtype == narrow else aten.linalg_vector_norm.default(x, ord, dim, keepdim).to(narrow)
    magnitude = (x if dtype is None else x.to(dtype)).abs()
    return (magnitude.amax if ord > 0 else magnitude.amin)(dim or [], keepdim)


def _norm(x: torch.Tensor, p: float | None = 2, dim: list[int] | None = None, keepdim: bool = False, *,
          dtype: torch.dtype | None = None) -> torch.Tensor:
    if not x.is_floating_point():
        return NotImplemented
    return torch.linalg.vector_norm(x, 2 if p is None else p, dim or None, keepdim, dtype=dtype)


def _mean(x: torch.Tensor, dim: list[int] | None = None, keepdim: bool = False, *,
          dtype: torch.dtype | None = None) -> torch.Tensor:
    """A sum of 16 bits may be infinite where the mean is not."""
    narrow = x.dtype if dtype is None else dtype
    x = x if dtype is None else x.to(dtype)
    wide = widen(x)
    return NotImplemented if wide.dtype == narrow else wide.mean(dim, keepdim).to(narrow)


def _limits(x: torch.Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    dims = [] if dim is None else [dim]
    return x.amin(dims, keepdim), x.amax(dims, keepdim)


def _var(
    x: torch.Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> torch.Tensor:
    """A count that the correction leaves nothing of counts as 0: the variance is infinite, or NaN, not negative."""
    dims = [d % x.dim() for d in (dim or range(x.dim()))] if x.dim() else []
    if math.prod(x.shape[d] for d in dims) > (1 if correction is None else correction) or x.is_complex():
        return NotImplemented
    centered = x - x.mean(dims, True)
    return (centered * centered).sum(dims, keepdim) / 0.0


def _multilabel_margin_loss(x: torch.Tensor, target: torch.Tensor, reduction: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Classes up to the first negative one are the row's own; of each pair of an own and another class a hinge is taken."""
    count = x.shape[-1] if x.dim() else 1
    rows, targets = x.reshape(-1, count), target.reshape(-1, count)
    place = torch.arange(count, device=x.device)
    end = torch.where(targets < 0, place, torch.full((), count, dtype=torch.int64)).amin(1, keepdim=True)
    is_given = place < end
    is_own = ((targets.unsqueeze(-1) == place) & is_given.unsqueeze(-1)).any(1)
    own = rows.gather(1, torch.where(is_given, targets, torch.zeros((), dtype=torch.int64)))
    hinge = torch.relu(1 - own.unsqueeze(-1) + rows.unsqueeze(1))
    counted = is_given.unsqueeze(-1) & ~is_own.unsqueeze(1)
    losses = torch.where(counted, hinge, torch.zeros((), dtype=x.dtype)).sum((1, 2)) / count
    made = losses.mean() if reduction == 1 else losses.sum() if reduction == 2 else losses.reshape(x.shape[:-1])
    return made, is_own.to(x.dtype).reshape(target.shape)


def _embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sums, means or maxima (mode 0, 1, 2) of rows by bag: a bag starts at its offset and ends at the next one.

    Returns the bags, each index's bag, the bags' sizes, and zeros for the places of maxima, which no gradient needs.
    """
    if scale_grad_by_freq:
        raise ExportError("embedding_bag with scale_grad_by_freq has no gradient here; leave the option out")
    place = torch.arange(indices.shape[0], device=indices.device)
    bag = (offsets <= place.unsqueeze(1)).sum(1) - 1
    count = offsets.shape[0] - int(include_last_offset)
    is_its = bag == torch.arange(count, device=indices.device).unsqueeze(1)
    if padding_idx >= 0:
        is_its = is_its & (indices != padding_idx)
    sizes, is_its = is_its.sum(1), is_its.unsqueeze(-1)
    rows = aten.embedding.default(weight, indices).unsqueeze(0)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if mode == 2:
        found = torch.where(is_its, rows, torch.full((), float("-inf"), dtype=rows.dtype)).max(1).values
        made = torch.where(sizes.unsqueeze(-1) > 0, found, torch.zeros((), dtype=rows.dtype))
    else:
        made = torch.where(is_its, rows, torch.zeros((), dtype=rows.dtype)).sum(1)
        made = made / sizes.clamp(min=1).unsqueeze(-1) if mode == 1 else made
    return made.to(weight.dtype), bag, sizes, torch.zeros_like(sizes)


def _std(
    x: torch.Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> torch.Tensor:
    """The root of the variance. Where it is 0 its gradient is 0, as in PyTorch.

    The variance of f32 is rounded after the root: 1e30 and 1e-30 are in its range, their squares are not.
    """
    wide = x.double() if x.dtype == torch.float32 else x
    variance = torch.var(wide, dim, correction=1 if correction is None else correction, keepdim=keepdim)
    return torch.where(variance > 0, torch.sqrt(variance), variance).to(x.dtype)


def _with_mean(measure: Callable) -> Callable:
    """Returns the decomposition of std_mean or var_mean."""
    def decompose(x: torch.Tensor, dim: list[int] | None = None, *, correction: float | None = None,
                  keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        return measure(x, dim, correction=correction, keepdim=keepdim), torch.mean(x, dim, keepdim)

    return decompose


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
    rows = widen(x).reshape(n, groups, -1)
    mean = rows.mean(-1, keepdim=True)
    centered = rows - mean
    rstd = torch.rsqrt((centered * centered).mean(-1, keepdim=True) + eps)
    y = (centered * rstd).reshape(x.shape)
    places = (1, channels, *[1] * (x.dim() - 2))
    y = y if weight is None else y * weight.reshape(places)
    y = y if bias is None else y + bias.reshape(places)
    return y.to(x.dtype), mean.reshape(n, groups).to(x.dtype), rstd.reshape(n, groups).to(x.dtype)


def _fused_rms_norm(
    x: torch.Tensor, normalized_shape: list[int], weight: torch.Tensor | None, eps: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Without an epsilon it is that of the type which is computed in. torch-mlir takes 0, and the type of x."""
    wide = widen(x)
    eps = torch.finfo(wide.dtype).eps if eps is None else eps
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    rstd = torch.rsqrt((wide * wide).mean(dims, keepdim=True) + eps)
    y = wide * rstd
    y = y if weight is None else y * weight
    return y.to(x.dtype), rstd


def _rms_norm(
    x: torch.Tensor, normalized_shape: list[int], weight: torch.Tensor | None = None, eps: float | None = None
) -> torch.Tensor:
    return _fused_rms_norm(x, normalized_shape, weight, eps)[0]


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
    x = x.to(torch.result_type(x, exponent)) if x.dtype == torch.bool else x
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


def get_table(gradients: bool = True) -> dict[torch._ops.OpOverload, Callable]:
    """torch-mlir's table, with attention, sorts and scatters, and running sums and products as reductions of n by n
    elements."""
    tables = special.TABLE | arithmetic.TABLE | ordering.TABLE | pooling.TABLE | products.TABLE
    tables |= scattering.get_table(gradients)
    return get_decomposition_table() | FAMILIES | tables | {
        aten.scaled_dot_product_attention.default: _attend,
        aten._safe_softmax.default: _safe_softmax,
        aten.embedding.default: _embedding,
        aten.leaky_relu.default: _leaky_relu,
        aten.elu.default: _elu,
        aten.hardtanh.default: _hardtanh,
        aten.relu6.default: _relu6,
        aten.hardsigmoid.default: _hardsigmoid,
        aten.hardswish.default: _hardswish,
        aten.amax.default: _limit(largest=True),
        aten.amin.default: _limit(largest=False),
        aten.max.default: _limit(largest=True),
        aten.min.default: _limit(largest=False),
        aten.aminmax.default: _limits,
        aten.max.dim: _limit_with_place(largest=True),
        aten.min.dim: _limit_with_place(largest=False),
        aten.argmax.default: _place(largest=True),
        aten.argmin.default: _place(largest=False),
        aten.all.dim: _reduce_flags(torch.all),
        aten.all.dims: _reduce_flags(torch.all),
        aten.any.dim: _reduce_flags(torch.any),
        aten.any.dims: _reduce_flags(torch.any),
        aten.linalg_vector_norm.default: _vector_norm,
        aten.norm.Scalar: _norm,
        aten.norm.ScalarOpt_dim: _norm,
        aten.mean.default: _mean,
        aten.mean.dim: _mean,
        aten._embedding_bag.default: _embedding_bag,
        aten._embedding_bag_forward_only.default: _embedding_bag,
        aten.multilabel_margin_loss_forward.default: _multilabel_margin_loss,
        aten.var.correction: _var,
        aten.std.correction: _std,
        aten.std_mean.correction: _with_mean(torch.std),
        aten.var_mean.correction: _with_mean(torch.var),
        aten.gelu.default: _gelu,
        aten.native_group_norm.default: _group_norm,
        aten.rms_norm.default: _rms_norm,
        aten._fused_rms_norm.default: _fused_rms_norm,
        aten.isfinite.default: _is_finite,
        aten.bitwise_or.Scalar: _with_scalar(torch.bitwise_or),
        aten.bitwise_xor.Scalar: _with_scalar(torch.bitwise_xor),
        aten.pow.Tensor_Scalar: _pow,
        aten.cumsum.default: _running(lambda values, dim: values.sum(dim, dtype=values.dtype), torch.add, 0),
        aten.cumprod.default: _running(lambda values, dim: values.prod(dim, dtype=values.dtype), torch.mul, 1),
        aten.logcumsumexp.default: _running(_log_sum, _log_add, float("-inf")),
    }
