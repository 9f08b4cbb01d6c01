"""Pooling that torch-mlir lacks or ends its process on, one dimension at a time: by strided slices, one for each place of
a window."""

import functools
import math
from collections.abc import Callable, Sequence

import torch

from weir.torch.operators import stop_gradient, widen
from weir.torch.scattering import scatter_add

aten = torch.ops.aten


def _each(value: int | Sequence[int], count: int) -> list[int]:
    """Returns a setting of each dimension: one number may stand for all."""
    values = [value] if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


def _count(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Returns the number of windows. With `ceil_mode` the last one may reach beyond the padding, but starts before it."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def _slice(x: torch.Tensor, dim: int, kernel: int, stride: int, padding: int, dilation: int, count: int,
           fill: float) -> list[torch.Tensor]:
    """Returns the element of each window at each place of a window; `fill` is what is outside."""
    size = x.shape[dim]
    behind = max((count - 1) * stride + dilation * (kernel - 1) + 1 - padding - size, 0)
    pads = [0, 0] * (x.dim() - 1 - dim) + [padding, behind]
    x = torch.constant_pad_nd(x, pads, fill) if any(pads) else x
    return [x[(slice(None),) * dim + (slice(k * dilation, k * dilation + (count - 1) * stride + 1, stride),)]
            for k in range(kernel)]


def _max_pool(x: torch.Tensor, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
              dilation: Sequence[int] = (1,), ceil_mode: bool = False, *, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Maxima of windows and their places. NaN counts as the largest; the first of equal ones gets the gradient."""
    kernel, stride, padding, dilation = (_each(each, rank) for each in (kernel, stride or kernel, padding, dilation))
    fill = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    sizes = x.shape[-rank:]
    place = torch.arange(math.prod(sizes), device=x.device).reshape(sizes).expand(x.shape)
    is_padded = False
    for dim in reversed(range(x.dim() - rank, x.dim())):
        k, s, p, d = (each[dim - x.dim()] for each in (kernel, stride, padding, dilation))
        count = _count(x.shape[dim], k, s, p, d, ceil_mode)
        is_padded = is_padded or p > 0 or (count - 1) * s + d * (k - 1) + 1 > x.shape[dim]
        values = _slice(x, dim, k, s, p, d, count, fill)
        places = _slice(place, dim, k, s, p, d, count, -1)
        x, place = values[0], places[0]
        for value, its in zip(values[1:], places[1:]):
            is_it = value > x
            if value.is_floating_point():
                is_it = is_it | (value != value)
            if is_padded:  # a window of infinities alone has the first of them that is not padding
                is_it = is_it | ((place < 0) & (its >= 0))
            x, place = torch.where(is_it, value, x), torch.where(is_it, its, place)
    return x, place


def _avg_pool(x: torch.Tensor, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
              ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None, *,
              rank: int) -> torch.Tensor:
    """Means of windows; 16 bits are added in f32, as in PyTorch."""
    kernel, stride, padding = (_each(each, rank) for each in (kernel, stride or kernel, padding))
    total = widen(x)
    divisor = torch.ones((), dtype=total.dtype, device=x.device)
    for dim in reversed(range(x.dim() - rank, x.dim())):
        k, s, p = (each[dim - x.dim()] for each in (kernel, stride, padding))
        size = x.shape[dim]
        count = _count(size, k, s, p, 1, ceil_mode)
        total = sum(_slice(total, dim, k, s, p, 1, count, 0))
        start = torch.arange(count, device=x.device) * s - p
        end = (start + k).clamp(max=size + p if count_include_pad else size)
        length = end - (start if count_include_pad else start.clamp(min=0))
        divisor = length.to(total.dtype).reshape(-1, *[1] * (x.dim() - 1 - dim)) * divisor
    if divisor_override is not None:
        divisor = torch.scalar_tensor(divisor_override, dtype=total.dtype, device=x.device)
    made = total / divisor if total.is_floating_point() else torch.div(total, divisor, rounding_mode="trunc")
    return made.to(x.dtype)


def _is_known(x: torch.Tensor) -> bool:
    """Whether torch-mlir pools the two last dimensions."""
    return x.is_floating_point() and x.dim() == 4


def _avg_pool2d(x: torch.Tensor, *settings: object) -> torch.Tensor:
    return _avg_pool(x, *settings, rank=2) if not _is_known(x) or settings[5:] not in ((), (None,)) else NotImplemented


class _MaxPool2d:
    """torch-mlir has the maxima of batches of floats, and other places than PyTorch for windows of NaNs or infinities."""

    def __init__(self) -> None:
        self._takes_values = False

    def take_values(self, x: torch.Tensor, *settings: object) -> torch.Tensor:
        """Returns the maxima alone, by the other's first result."""
        self._takes_values = True
        try:
            return aten.max_pool2d_with_indices.default(x, *settings)[0]
        finally:
            self._takes_values = False

    def __call__(self, x: torch.Tensor, *settings: object) -> tuple[torch.Tensor, torch.Tensor]:
        return NotImplemented if self._takes_values and _is_known(x) else _max_pool(x, *settings, rank=2)


def _adaptive_avg_pool3d(x: torch.Tensor, output_size: Sequence[int]) -> torch.Tensor:
    """Means of windows that divide each dimension as evenly as they can."""
    total = widen(x)
    for dim, count in zip(range(x.dim() - 3, x.dim()), output_size):
        size = x.shape[dim]
        starts, ends = [i * size // count for i in range(count)], [-(-(i + 1) * size // count) for i in range(count)]
        if size % count == 0:
            total = total.unflatten(dim, (count, size // count)).mean(dim + 1)
        else:
            total = torch.stack([total.narrow(dim, start, end - start).mean(dim) for start, end in zip(starts, ends)], dim)
    return total.to(x.dtype)


def _unpool(x: torch.Tensor, indices: torch.Tensor, output_size: Sequence[int], rank: int) -> torch.Tensor:
    """Elements at the places that a pooling took them from, others 0. Of several at one place the last is there, and all
    have its gradient."""
    outer, count = x.shape[:-rank], math.prod(output_size)
    flat, places = x.reshape(*outer, -1), indices.reshape(*outer, -1)
    number = torch.arange(flat.shape[-1], device=x.device)
    is_hidden = ((places.unsqueeze(-1) == places.unsqueeze(-2)) & (number > number.unsqueeze(-1))).any(-1)
    made = torch.zeros(*outer, count, dtype=x.dtype, device=x.device)
    hidden = torch.where(is_hidden & (flat.abs() < math.inf), flat - stop_gradient(flat), torch.zeros((), dtype=x.dtype))
    made = scatter_add(made, -1, places, torch.where(is_hidden, hidden, flat))
    return made.reshape(*outer, *output_size)


def _scatter_to_largest(cotangent: torch.Tensor, x: torch.Tensor, kernel: Sequence[int], stride: Sequence[int],
                        padding: Sequence[int], dilation: Sequence[int], ceil_mode: bool, indices: torch.Tensor) -> torch.Tensor:
    """Returns the gradient of a maximum over windows: the sum, at each place, of those of the windows that it won."""
    flat = torch.zeros_like(x).flatten(-2)
    return flat.scatter_add(-1, indices.flatten(-2), cotangent.flatten(-2)).view(x.shape)


_MAX_POOL_2D = _MaxPool2d()
TABLE = {
    aten.max_pool1d_with_indices.default: functools.partial(_max_pool, rank=1),
    aten.max_pool2d.default: _MAX_POOL_2D.take_values,
    aten.max_pool2d_with_indices.default: _MAX_POOL_2D,
    aten.max_pool3d_with_indices.default: functools.partial(_max_pool, rank=3),
    aten.max_pool2d_with_indices_backward.default: _scatter_to_largest,
    aten.avg_pool2d.default: _avg_pool2d,
    aten.avg_pool3d.default: functools.partial(_avg_pool, rank=3),
    aten._adaptive_avg_pool3d.default: _adaptive_avg_pool3d,
    aten.max_unpool2d.default: lambda x, indices, output_size: _unpool(x, indices, output_size, 2),
    aten.max_unpool3d.default: lambda x, indices, output_size, stride, padding: _unpool(x, indices, output_size, 3),
}
