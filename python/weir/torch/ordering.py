"""Sorting and counting operators, written by comparing elements.

Few are compared with every other one, and places follow from counts. Many pass through a bitonic network (Batcher,
"Sorting networks and their applications", 1968), by their values and then their numbers. So equal elements keep their
order and no result depends on timing. NaN counts as the largest, as in PyTorch.
"""

from collections.abc import Callable

import torch

from weir.graphs import ExportError

aten = torch.ops.aten
MANY = 2048  # elements of a row for which a network takes fewer comparisons than there are pairs, and little code
LARGEST = 1 << 22  # elements of a row


def _rank(values: torch.Tensor, descending: bool) -> torch.Tensor:
    """Returns the place in sorted order of each element of the last dimension."""
    size = values.shape[-1]
    if values.dtype == torch.bool:
        values = values.to(torch.int8)
    mine, its = values.unsqueeze(-1), values.unsqueeze(-2)
    less, equal = (its > mine, its == mine) if descending else (its < mine, its == mine)
    if values.is_floating_point():
        mine_nan, its_nan = mine != mine, its != its
        larger = its_nan & ~mine_nan if descending else ~its_nan & mine_nan
        less, equal = less | larger, equal | (its_nan & mine_nan)
    place = torch.arange(size, device=values.device)
    earlier = place[None, :] < place[:, None]
    return (less | (equal & earlier)).sum(-1)


def _order(values: torch.Tensor, descending: bool, count: int | None = None) -> torch.Tensor:
    """Returns the first `count` elements of the last dimension in sorted order, by their numbers."""
    size = values.shape[-1]
    if size > MANY:
        return _order_many(values, descending)[..., :count]
    rank = _rank(values, descending).unsqueeze(-2)
    wanted = torch.arange(size if count is None else count, device=values.device).unsqueeze(-1)
    number = torch.arange(size, device=values.device)
    return torch.where(rank == wanted, number, torch.zeros((), dtype=torch.int64)).sum(-1)


def _order_many(values: torch.Tensor, descending: bool) -> torch.Tensor:
    """Returns the order of the last dimension by a bitonic network over its next power of two."""
    size = values.shape[-1]
    if size > LARGEST:
        raise ExportError(f"a sort of {size} elements has no form; the largest has {LARGEST}")
    number = torch.arange(size, dtype=torch.int32, device=values.device).expand(values.shape)
    if values.is_floating_point():
        # A NaN is an infinity behind, or in front of, all others.
        is_nan = values != values
        values = torch.where(is_nan, torch.full((), float("inf"), dtype=values.dtype), values)
        number = torch.where(is_nan, number - size if descending else number + size, number)
    elif values.dtype == torch.bool:
        values = values.to(torch.int8)
    bits = (size - 1).bit_length()
    rest = (1 << bits) - size
    if rest:
        worst = (float("-inf" if descending else "inf") if values.is_floating_point() else
                 torch.iinfo(values.dtype).min if descending else torch.iinfo(values.dtype).max)
        values = torch.constant_pad_nd(values, [0, rest], worst)
        number = torch.constant_pad_nd(number, [0, rest], 2 * size)
    rows = values.shape[:-1]
    for merged in range(1, bits + 1):  # sorted runs become runs of 2^merged, every second one backwards
        for step in reversed(range(merged)):
            shape = (*rows, 1 << (bits - merged), 1 << (merged - step - 1), 2, 1 << step)
            values, number = values.reshape(shape), number.reshape(shape)
            other, its = values.flip(-2), number.flip(-2)
            before = (values > other) if descending else (values < other)
            before = before | ((values == other) & (number < its))
            run = torch.arange(shape[-4], device=values.device).reshape(-1, 1, 1, 1)
            second = torch.arange(2, device=values.device).reshape(2, 1)
            stays = before ^ (((run + second) & 1) != 0)
            values, number = torch.where(stays, values, other), torch.where(stays, number, its)
    number = number.reshape(*rows, -1)[..., :size]
    number = torch.where(number < 0, number + size, torch.where(number >= size, number - size, number))
    return number.to(torch.int64)


def _sorted(values: torch.Tensor, dim: int, descending: bool, count: int | None = None) -> tuple:
    if values.dim() == 0:
        return values.clone(), torch.zeros((), dtype=torch.int64, device=values.device)
    order = _order(values.detach().movedim(dim, -1), descending, count).movedim(-1, dim)
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


def median(values: torch.Tensor) -> torch.Tensor:
    """The lower one of two middle elements; NaN if there is one."""
    flat = values.reshape(-1)
    middle, _ = kth_value(flat, (flat.numel() + 1) // 2)
    if not values.is_floating_point():
        return middle
    return torch.where(torch.isnan(flat).any(), torch.full((), float("nan"), dtype=values.dtype), middle)


def running_limit(largest: bool) -> Callable:
    """cummax or cummin: values and their places, of equal ones the last."""
    def decompose(values: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
        if values.dim() == 0:
            return values.clone(), torch.zeros((), dtype=torch.int64, device=values.device)
        moved = values.movedim(dim, -1)
        its = moved.detach().unsqueeze(-2)
        size = moved.shape[-1]
        place = torch.arange(size, device=values.device)
        before = place[None, :] <= place[:, None]
        if values.is_floating_point():
            furthest = float("-inf" if largest else "inf")
        else:
            limits = torch.iinfo(values.dtype)
            furthest = limits.min if largest else limits.max
        kept = torch.where(before, its, torch.full((), furthest, dtype=values.dtype))
        limit = (kept.amax(-1) if largest else kept.amin(-1)).unsqueeze(-1)
        is_it = (its == limit) | ((its != its) & (limit != limit))
        chosen = torch.where(is_it & before, place, torch.zeros((), dtype=torch.int64)).amax(-1)
        return moved.gather(-1, chosen).movedim(-1, dim), chosen.movedim(-1, dim)

    return decompose


def count_in_bins(values: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> torch.Tensor:
    """histc: counts of equally wide bins; the last one has its upper end, too, and what is outside counts nowhere."""
    if min == max:
        raise ExportError("histc takes its limits from the values; give min and max")
    flat = values.reshape(-1, 1)
    # As PyTorch computes a bin, in the type of the values.
    place = ((flat - min) * bins / (max - min)).to(torch.int64)
    place = torch.where(flat == max, torch.full((), bins - 1, dtype=torch.int64), place)
    inside = (flat >= min) & (flat <= max)
    number = torch.arange(bins, device=values.device)
    return ((place == number) & inside).sum(0).to(values.dtype)


TABLE = {
    aten.sort.default: sort,
    aten.sort.stable: sort_stable,
    aten.topk.default: top_k,
    aten.kthvalue.default: kth_value,
    aten.median.default: median,
    aten.cummax.default: running_limit(largest=True),
    aten.cummin.default: running_limit(largest=False),
    aten.histc.default: count_in_bins,
}
