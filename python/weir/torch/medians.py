"""Medians and modes, and their places. Equal elements keep their order."""

from collections.abc import Callable

import torch

from weir.torch.operators import limit
from weir.torch.ordering import find_order

aten = torch.ops.aten


def _take_middle(values: torch.Tensor, dim: int, ignores_nan: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the lower one of two middle elements and its place, with the dimension. A NaN is the middle if there is one,
    or counts as no element."""
    order = find_order(values.detach().movedim(dim, -1), False).movedim(-1, dim)
    size = values.shape[dim]
    if values.is_floating_point():
        numbers = (~torch.isnan(values)).sum(dim, keepdim=True)
        middle = ((numbers - 1) // 2).clamp(min=0)
        if not ignores_nan:
            middle = torch.where(numbers < size, numbers, middle)  # the first NaN
        place = order.gather(dim, middle)
    else:
        place = order.narrow(dim, (size - 1) // 2, 1)
    return values.gather(dim, place), place


def median(ignores_nan: bool) -> Callable:
    """The gradient is shared among the elements that equal the median."""
    def decompose(values: torch.Tensor) -> torch.Tensor:
        flat = values.reshape(-1)
        if flat.numel() == 0:
            return NotImplemented
        middle = _take_middle(flat, 0, ignores_nan)[0]
        if not values.is_floating_point():
            return middle.reshape(())
        # A limit of NaN has no gradient, a mean has.
        zero, is_nan = torch.zeros((), dtype=values.dtype), torch.isnan(flat)
        equal = torch.where(flat == middle, flat, torch.full((), float("-inf"), dtype=values.dtype))
        mean = torch.where(is_nan, flat, zero).sum() / is_nan.sum()
        return torch.where(torch.isnan(middle.reshape(())), mean, limit(equal, 1, 1))

    return decompose


def median_along(ignores_nan: bool) -> Callable:
    def decompose(values: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        if values.dim() == 0:
            return values.clone(), torch.zeros((), dtype=torch.int64, device=values.device)
        found = _take_middle(values, dim, ignores_nan)
        return found if keepdim else tuple(part.squeeze(dim) for part in found)

    return decompose


def mode(values: torch.Tensor, dim: int = -1, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """The smallest of the elements that are there most often, and the last place of it. Each NaN is its own element, and
    larger than numbers."""
    if values.dim() == 0:
        return values.clone(), torch.zeros((), dtype=torch.int64, device=values.device)
    moved = values.movedim(dim, -1)
    its = moved.detach()
    if its.dtype in (torch.bool, torch.uint8):
        its = its.to(torch.int16)
    count = (its.unsqueeze(-1) == its.unsqueeze(-2)).sum(-1).clamp(min=1)
    is_frequent = count == count.amax(-1, keepdim=True)
    if its.is_floating_point():
        largest, is_number = float("inf"), ~torch.isnan(its)
    else:
        largest, is_number = torch.iinfo(its.dtype).max, torch.ones_like(its, dtype=torch.bool)
    smallest = torch.where(is_frequent & is_number, its, torch.full((), largest, dtype=its.dtype)).amin(-1, keepdim=True)
    is_it = is_frequent & (its == smallest)
    is_it = is_it | (is_frequent & ~is_it.any(-1, keepdim=True))
    numbers = torch.arange(its.shape[-1], device=values.device)
    place = torch.where(is_it, numbers, torch.full((), -1, dtype=torch.int64)).amax(-1, keepdim=True)
    found = (part.movedim(-1, dim) for part in (moved.gather(-1, place), place))
    return tuple(found if keepdim else (part.squeeze(dim) for part in found))


TABLE = {
    aten.median.default: median(ignores_nan=False),
    aten.median.dim: median_along(ignores_nan=False),
    aten.nanmedian.default: median(ignores_nan=True),
    aten.nanmedian.dim: median_along(ignores_nan=True),
    aten.mode.default: mode,
}
