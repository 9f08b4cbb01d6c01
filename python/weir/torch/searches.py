"""Searches of values among bounds, and histograms by them."""

import builtins
from collections.abc import Sequence

import torch

aten = torch.ops.aten


def search_sorted(bounds: torch.Tensor, values: torch.Tensor | float, *, out_int32: bool = False, right: bool = False,
                  side: str | None = None, sorter: torch.Tensor | None = None) -> torch.Tensor:
    """The place of each value among bounds: the steps of PyTorch's binary search, so also of bounds out of order."""
    if not isinstance(values, torch.Tensor):
        values = torch.scalar_tensor(values, dtype=torch.result_type(bounds, values))
    dtype = torch.promote_types(bounds.dtype, values.dtype)
    bounds, values = bounds.to(dtype), values.to(dtype)
    if sorter is not None:
        bounds = bounds.gather(-1, sorter)
    size, shape = bounds.shape[-1], values.shape
    if bounds.dim() == 1:
        values = values.reshape(-1)
    right = right or side == "right"
    low = torch.zeros(values.shape, dtype=torch.int64, device=values.device)
    high = torch.full(values.shape, size, dtype=torch.int64, device=values.device)
    for _ in range(size.bit_length()):
        middle = low + (high - low) // 2
        bound = bounds.gather(-1, middle.clamp(max=size - 1))
        is_open = low < high
        goes_on = ~((bound > values) if right else (bound >= values))
        low, high = torch.where(is_open & goes_on, middle + 1, low), torch.where(is_open & ~goes_on, middle, high)
    return low.reshape(shape).to(torch.int32 if out_int32 else torch.int64)


def bucketize(values: torch.Tensor | float, bounds: torch.Tensor, *, out_int32: bool = False, right: bool = False):
    return search_sorted(bounds, values, out_int32=out_int32, right=right)


def _count(values: torch.Tensor, edges: torch.Tensor, weight: torch.Tensor | None, density: bool) -> torch.Tensor:
    """Returns the sum of weights in each bin. The last bin includes its upper edge; values outside are not counted."""
    flat = values.reshape(-1)
    bins = edges.shape[0] - 1
    is_its = _find_bins(flat, edges).unsqueeze(1) == torch.arange(bins, device=values.device)
    weights = torch.ones_like(flat) if weight is None else weight.reshape(-1)
    made = torch.where(is_its, weights.unsqueeze(1), torch.zeros((), dtype=weights.dtype)).sum(0)
    return made / (made.sum() * (edges[1:] - edges[:-1])) if density else made


def _find_bins(values: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    """Returns the bin of each value, -1 below the edges and the number of bins above. The last bin has its upper edge."""
    place = search_sorted(edges, values, right=True) - 1
    return torch.where(values == edges[-1], torch.full((), edges.shape[0] - 2, dtype=torch.int64), place)


def _space(values: torch.Tensor, bins: int, range: Sequence[float] | None) -> torch.Tensor:
    """Returns the edges of equally wide bins of a range, or else of the values'."""
    if range is None:
        low, high = (values.min(), values.max()) if values.numel() else (values.new_zeros(()), values.new_ones(()))
    else:
        low, high = (torch.full((), number, dtype=values.dtype) for number in range)
    flat = low == high
    low, high = torch.where(flat, low - 0.5, low), torch.where(flat, high + 0.5, high)
    # From both ends, as PyTorch's linspace.
    place, step = torch.arange(bins + 1, device=values.device), (high - low) / bins
    return torch.where(place < (bins + 1) // 2, low + step * place, high - step * (bins - place)).to(values.dtype)


def histogram(values: torch.Tensor, bins: int = 100, *, range: Sequence[float] | None = None,
              weight: torch.Tensor | None = None, density: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    edges = _space(values, bins, range)
    return _count(values, edges, weight, density), edges


def histogram_between(values: torch.Tensor, bins: torch.Tensor, *, weight: torch.Tensor | None = None,
                      density: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return _count(values, bins, weight, density), bins.clone()


def space_all(values: torch.Tensor, bins: Sequence[int], *, range: Sequence[float] | None = None,
              weight: torch.Tensor | None = None, density: bool = False) -> list[torch.Tensor]:
    """The edges of a histogramdd: of each element of the last dimension."""
    columns = values.reshape(-1, values.shape[-1])
    ranges = [None if range is None else range[2 * k : 2 * k + 2] for k in builtins.range(len(bins))]
    return [_space(columns[:, k], count, ranges[k]) for k, count in enumerate(bins)]


def histogram_all(values: torch.Tensor, edges: Sequence[torch.Tensor], *, weight: torch.Tensor | None = None,
                  density: bool = False) -> torch.Tensor:
    """histogramdd: the sums of weights of points in boxes."""
    columns = values.reshape(-1, values.shape[-1])
    made = torch.ones(columns.shape[0], dtype=values.dtype) if weight is None else weight.reshape(-1)
    for k, each in enumerate(edges):
        place = torch.arange(each.shape[0] - 1, device=values.device)
        is_its = _find_bins(columns[:, k], each).reshape(-1, *[1] * k, 1) == place
        made = torch.where(is_its, made.unsqueeze(-1), torch.zeros((), dtype=made.dtype))
    made = made.sum(0)
    if density:
        made = made / made.sum()
        for k, each in enumerate(edges):
            made = made / (each[1:] - each[:-1]).reshape(-1, *[1] * (len(edges) - k - 1))
    return made


def histogram_in_boxes(values: torch.Tensor, bins: Sequence[int], *, range: Sequence[float] | None = None,
                       weight: torch.Tensor | None = None, density: bool = False) -> torch.Tensor:
    return histogram_all(values, space_all(values, bins, range=range), weight=weight, density=density)


TABLE = {
    aten.searchsorted.Tensor: search_sorted,
    aten.searchsorted.Scalar: search_sorted,
    aten.bucketize.Tensor: bucketize,
    aten.bucketize.Scalar: bucketize,
    aten.histogram.bin_ct: histogram,
    aten.histogram.bins_tensor: histogram_between,
    aten._histogramdd_bin_edges.default: space_all,
    aten._histogramdd_from_bin_cts.default: histogram_in_boxes,
    aten._histogramdd_from_bin_tensors.default: histogram_all,
}
