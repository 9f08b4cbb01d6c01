"""Sorting and counting operators. Equal elements keep their order, and NaN counts as the largest, as in PyTorch."""

from collections.abc import Callable

import torch

from weir import running
from weir.torch.operators import argsort

aten = torch.ops.aten


def find_order(values: torch.Tensor, descending: bool, count: int | None = None) -> torch.Tensor:
    """Returns the first `count` elements of the last dimension in sorted order, by their numbers."""
    if values.numel() == 0:
        shape = values.shape if count is None else (*values.shape[:-1], count)
        return torch.zeros(shape, dtype=torch.int64, device=values.device)
    if values.dtype == torch.uint8:
        values = values.to(torch.int16)
    count = values.shape[-1] if count is None else count
    if count == 0:
        return torch.zeros((*values.shape[:-1], 0), dtype=torch.int64, device=values.device)
    return argsort(values, int(descending), count).to(torch.int64)


def _sorted(values: torch.Tensor, dim: int, descending: bool, count: int | None = None) -> tuple:
    if values.dim() == 0:
        return values.clone(), torch.zeros((), dtype=torch.int64, device=values.device)
    order = find_order(values.detach().movedim(dim, -1), descending, count).movedim(-1, dim)
    return values.gather(dim, order), order


def sort(values: torch.Tensor, dim: int = -1, descending: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return _sorted(values, dim, descending)


def sort_stable(values: torch.Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> tuple:
    return _sorted(values, dim, descending)


def top_k(values: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple:
    return _sorted(values, dim, largest, k)


def kth_value(values: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple:
    if values.dim() == 0:
        return _sorted(values, dim, False)
    found, order = _sorted(values, dim, False, k)
    found, order = (part.narrow(dim, k - 1, 1) for part in (found, order))
    return (found, order) if keepdim else (found.squeeze(dim), order.squeeze(dim))


def running_limit(largest: bool) -> Callable:
    """cummax or cummin: values and their places, of equal ones the last."""
    def decompose(values: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
        if values.dim() == 0:
            return values.clone(), torch.zeros((), dtype=torch.int64, device=values.device)
        moved = values.movedim(dim, -1)
        its = moved.detach().to(torch.int32) if values.dtype == torch.bool else moved.detach()
        if values.is_floating_point():
            furthest = float("-inf" if largest else "inf")
        else:
            limits = torch.iinfo(its.dtype)
            furthest = limits.min if largest else limits.max
        limit = _run_limit(its, largest, furthest)
        # An element that is the limit at its own place stays so up to the next such element.
        is_it = (its == limit) | ((its != its) & (limit != limit))
        place = torch.arange(moved.shape[-1], device=values.device)
        chosen = _run_limit(torch.where(is_it, place, torch.zeros((), dtype=torch.int64)), True, -1)
        return moved.gather(-1, chosen).movedim(-1, dim), chosen.movedim(-1, dim)

    return decompose


def _run_limit(rows: torch.Tensor, largest: bool, furthest: float) -> torch.Tensor:
    """Returns the largest or smallest of all elements up to each."""
    def scan(rows: torch.Tensor) -> torch.Tensor:
        place = torch.arange(rows.shape[-1], device=rows.device)
        kept = torch.where(place <= place[:, None], rows.unsqueeze(-2), torch.full((), furthest, dtype=rows.dtype))
        return kept.amax(-1) if largest else kept.amin(-1)

    return running.accumulate(
        rows, scan, torch.maximum if largest else torch.minimum,
        lambda shape: torch.full(shape, furthest, dtype=rows.dtype), lambda parts: torch.cat(parts, -1))


def count_in_bins(values: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> torch.Tensor:
    """histc: counts of equally wide bins; the last one has its upper end, too, and what is outside counts nowhere."""
    flat = values.reshape(-1, 1)
    low, high = (torch.full((), limit, dtype=values.dtype) for limit in (min, max))
    if min == max:
        if values.numel():
            low, high = values.min(), values.max()
        is_flat = low == high
        low, high = torch.where(is_flat, low - 1, low), torch.where(is_flat, high + 1, high)
    # As PyTorch computes a bin, in the type of the values.
    place = ((flat - low) * bins / (high - low)).to(torch.int64)
    place = torch.where(flat == high, torch.full((), bins - 1, dtype=torch.int64), place)
    inside = (flat >= low) & (flat <= high)
    number = torch.arange(bins, device=values.device)
    counts = ((place == number) & inside).sum(0).to(values.dtype)
    # PyTorch refuses limits that are not finite.
    return torch.where((high - low).abs() < float("inf"), counts, torch.full((), float("nan"), dtype=values.dtype))


TABLE = {
    aten.sort.default: sort,
    aten.sort.stable: sort_stable,
    aten.topk.default: top_k,
    aten.kthvalue.default: kth_value,
    aten.cummax.default: running_limit(largest=True),
    aten.cummin.default: running_limit(largest=False),
    aten.histc.default: count_in_bins,
}
