"""Images at other places: resizing, samples of images and volumes, and maxima of windows that divide an image."""

import math
from collections.abc import Callable, Sequence

import torch
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from weir.graphs import ExportError
from weir.torch.operators import stop_gradient, widen

aten = torch.ops.aten


def _triangle(x: torch.Tensor) -> torch.Tensor:
    return (1 - x.abs()).clamp(min=0)


def _cubic(x: torch.Tensor) -> torch.Tensor:
    """The cubic with a = -1/2."""
    x = x.abs()
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros((), dtype=x.dtype)))


def _resize_along(x: torch.Tensor, dim: int, count: int, corners: bool, scale: float | None, weigh: Callable,
                  radius: int) -> torch.Tensor:
    size = x.shape[dim]
    if corners:
        step = (size - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = 1 / scale if scale else size / count
    stretch = max(step, 1.0)
    center = (torch.arange(count, dtype=torch.float64) + 0.5) * step
    first = (center - radius * stretch + 0.5).to(torch.int64).clamp(min=0)
    end = (center + radius * stretch + 0.5).to(torch.int64).clamp(max=size)
    place = first.unsqueeze(1) + torch.arange(math.ceil(2 * radius * stretch) + 1)
    weight = weigh((place - center.unsqueeze(1) + 0.5) / stretch)
    is_its = place < end.unsqueeze(1)
    weight = torch.where(is_its, weight, torch.zeros((), dtype=torch.float64))
    weight = (weight / weight.sum(1, keepdim=True)).to(x.dtype)
    # A window that lacks elements has its last one again, which is left out by a choice: it may be infinite.
    nearest = torch.minimum(place, end.unsqueeze(1) - 1)
    windows = x.movedim(dim, -1)[..., nearest]
    made = torch.where(is_its, windows * weight, torch.zeros((), dtype=x.dtype)).sum(-1)
    return made.movedim(-1, dim)


def _resize(weigh: Callable, radius: int) -> Callable:
    def decompose(x: torch.Tensor, output_size: Sequence[int], align_corners: bool, scales_h: float | None = None,
                  scales_w: float | None = None) -> torch.Tensor:
        if not x.is_floating_point():
            return NotImplemented
        wide = widen(x)
        made = _resize_along(wide, -1, output_size[1], align_corners, scales_w, weigh, radius)
        return _resize_along(made, -2, output_size[0], align_corners, scales_h, weigh, radius).to(x.dtype)

    return decompose


def _interpolate(rank: int) -> Callable:
    """Returns a decomposition that weighs both neighbours in each dimension, as PyTorch does; by their difference, which
    its decomposition takes, an infinity would be NaN."""
    def decompose(x: torch.Tensor, output_size: Sequence[int] | None, align_corners: bool,
                  scales: Sequence[float] | None) -> torch.Tensor:
        if not x.is_floating_point():
            return NotImplemented
        made = widen(x)
        for d in reversed(range(rank)):
            dim, size = d + 2, x.shape[d + 2]
            scale = None if scales is None else scales[d]
            count = int(math.floor(size * scale)) if output_size is None else output_size[d]
            number = torch.arange(count, dtype=made.dtype)
            if align_corners:
                place = number * ((size - 1) / (count - 1) if count > 1 else 0.0)
            else:
                place = ((number + 0.5) * (1 / scale if scale else size / count) - 0.5).clamp(min=0)
            first = place.to(torch.int64).clamp(max=size - 1)
            share = (place - first).clamp(0, 1).reshape(-1, *[1] * (rank - 1 - d))
            after = made.index_select(dim, (first + 1).clamp(max=size - 1))
            made = made.index_select(dim, first) * (1 - share) + after * share
        return made.to(x.dtype)

    return decompose


def _refuse_bytes(operator: torch._ops.OpOverload, decompose: Callable | None = None) -> Callable:
    """Returns an operator's decomposition for other types than bytes, which PyTorch rounds after each dimension."""
    decompose, name = decompose or get_decomposition_table()[operator], operator.overloadpacket.__name__

    def refuse_bytes(x: torch.Tensor, *settings: object) -> torch.Tensor:
        if x.dtype == torch.uint8:
            raise ExportError(f"{name} of torch.uint8 is rounded after each dimension in PyTorch, which has no form here; "
                              "interpolate floats, as by x.float(), and round those")
        return decompose(x, *settings)

    return refuse_bytes


def _find_place(grid: torch.Tensor, size: int, padding: int, corners: bool, is_image: bool) -> torch.Tensor:
    """Returns places in a dimension of coordinates from -1 to 1. Padding 1 takes the border, 2 reflects at it; a NaN is
    the first place of an image, the last of a volume."""
    place = (grid + 1) / 2 * (size - 1) if corners else ((grid + 1) * size - 1) / 2
    if padding == 0:
        return place
    last, zero = torch.full((), size - 1, dtype=grid.dtype), torch.zeros((), dtype=grid.dtype)
    if padding == 2:
        low, span = (0.0, size - 1) if corners else (-0.5, size)
        if span == 0:
            return torch.zeros_like(place)
        place = (place - low).abs()
        flips = stop_gradient((place / span).floor())
        rest = place - flips * span
        place = torch.where(torch.remainder(flips, 2) == 0, rest, span - rest) + low
    if is_image:
        return torch.where(place > 0, torch.where(place < last, place, last), zero)
    return torch.where(place < last, torch.where(place > 0, place, zero), last)


def sample_grid(x: torch.Tensor, grid: torch.Tensor, interpolation_mode: int, padding_mode: int,
                align_corners: bool) -> torch.Tensor:
    """Images or volumes at places of a grid, between neighbours (mode 0) or the nearest of them (mode 1)."""
    if interpolation_mode > 1:
        return NotImplemented
    narrow, sizes, rank = x.dtype, x.shape[2:], x.dim() - 2
    x, grid = widen(x), widen(grid)
    places = [_find_place(grid[..., rank - 1 - d], sizes[d], padding_mode, align_corners, rank == 2)
              for d in range(rank)]
    flat, zero = x.reshape(*x.shape[:2], -1), torch.zeros((), dtype=x.dtype)

    def look_up(corner: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        inside, index = torch.ones_like(corner[0], dtype=torch.bool), torch.zeros_like(corner[0], dtype=torch.int64)
        for place, size in zip(corner, sizes):
            is_in = (place >= 0) & (place < size)
            inside = inside & is_in
            index = index * size + torch.where(is_in, place, zero).to(torch.int64)
        shape = (*x.shape[:2], *corner[0].shape[1:])
        found = flat.gather(2, index.reshape(index.shape[0], 1, -1).expand(*x.shape[:2], -1)).reshape(shape)
        return found, inside.unsqueeze(1)

    if interpolation_mode == 1:
        found, inside = look_up([place.detach().round() for place in places])
        return torch.where(inside, found, zero).to(narrow)
    first = [place.detach().floor() for place in places]
    made = None
    for number in range(1 << rank):
        steps = [number >> d & 1 for d in range(rank)]
        found, inside = look_up([start + step for start, step in zip(first, steps)])
        weight = torch.ones_like(places[0])
        for place, start, step in zip(places, first, steps):
            weight = weight * (place - start if step else start + 1 - place)
        if rank == 2:  # a weight of NaN also counts outside, unlike in a volume
            term = torch.where(inside, found, zero) * weight.unsqueeze(1)
        else:
            term = torch.where(inside, found * weight.unsqueeze(1), zero)
        made = term if made is None else made + term
    return made.to(narrow)


def _adaptive_max_pool(x: torch.Tensor, output_size: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Maxima of windows that divide the last dimensions, and their places. The first of equal ones gets the gradient."""
    rank = len(output_size)
    sizes = x.shape[-rank:]
    place = torch.arange(math.prod(sizes), device=x.device).reshape(sizes).expand(x.shape)
    for d in reversed(range(x.dim() - rank, x.dim())):
        size, count = x.shape[d], output_size[d - x.dim()]
        first = torch.arange(count) * size // count
        end = ((torch.arange(count) + 1) * size + count - 1) // count
        longest = max(-(-(i + 1) * size // count) - i * size // count for i in range(count))
        index = torch.minimum(first.unsqueeze(1) + torch.arange(longest), end.unsqueeze(1) - 1).reshape(-1)
        x, place = (part.index_select(d, index).unflatten(d, (count, longest)) for part in (x, place))
        x, found = x.max(d + 1, keepdim=True)
        x, place = x.squeeze(d + 1), place.gather(d + 1, found).squeeze(d + 1)
    return x, place


TABLE = {
    aten.upsample_linear1d.vec: _interpolate(1),
    aten.upsample_bilinear2d.vec: _refuse_bytes(aten.upsample_bilinear2d.vec, _interpolate(2)),
    aten.upsample_bicubic2d.vec: _refuse_bytes(aten.upsample_bicubic2d.vec),
    aten.upsample_trilinear3d.vec: _interpolate(3),
    aten._upsample_bilinear2d_aa.default: _resize(_triangle, 1),
    aten._upsample_bicubic2d_aa.default: _resize(_cubic, 2),
    aten.grid_sampler_2d.default: sample_grid,
    aten.grid_sampler_3d.default: sample_grid,
    aten.adaptive_max_pool2d.default: _adaptive_max_pool,
    aten.adaptive_max_pool3d.default: _adaptive_max_pool,
}
