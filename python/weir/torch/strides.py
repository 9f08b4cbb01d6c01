"""Views by strides and their scatters: gathers and scatters at places that sizes and strides give."""

import torch

from weir.graphs import ExportError
from weir.torch.scattering import write_rows

aten = torch.ops.aten


def _list_dims(x: torch.Tensor) -> list[int]:
    """Returns the dimensions of a tensor, the one with the largest stride first.

    Errors: ExportError if the tensor skips or repeats elements of its memory.
    """
    dims = sorted(range(x.dim()), key=lambda d: (-x.stride(d) if x.shape[d] != 1 else 0, d))
    step = 1
    for d in reversed(dims):
        if x.shape[d] != 1 and x.stride(d) != step:
            raise ExportError("as_strided of a view that skips elements of its memory; call contiguous() first, and give "
                              "strides of that")
        step *= x.shape[d]
    return dims


def _list_places(x: torch.Tensor, size: list[int], stride: list[int], offset: int | None) -> torch.Tensor:
    """Returns the place of each element of a view, counted from the first element of `x`."""
    first = 0 if offset is None else offset - x.storage_offset()
    last = first + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    if first < 0 or last >= x.numel():
        raise ExportError("as_strided reads outside of the tensor that it is called on; call it on the tensor that the view "
                          "is of")
    place = torch.full([1] * len(size), first, dtype=torch.int64)
    for d, (count, step) in enumerate(zip(size, stride)):
        place = place + (torch.arange(count, device=x.device) * step).reshape([-1 if e == d else 1 for e in range(len(size))])
    return place.reshape(-1)


def as_strided(x: torch.Tensor, size: list[int], stride: list[int], storage_offset: int | None = None) -> torch.Tensor:
    if 0 in size:
        return torch.zeros(size, dtype=x.dtype)
    flat = x.permute(_list_dims(x)).reshape(-1)
    return flat[_list_places(x, size, stride, storage_offset)].reshape(size)


def as_strided_scatter(x: torch.Tensor, source: torch.Tensor, size: list[int], stride: list[int],
                       storage_offset: int | None = None) -> torch.Tensor:
    if 0 in size:
        return x.clone()
    dims = _list_dims(x)
    moved = x.permute(dims)
    made = write_rows(moved.reshape(-1), _list_places(x, size, stride, storage_offset), source.reshape(-1), "replace")
    return made.reshape(moved.shape).permute([dims.index(d) for d in range(x.dim())])


def diagonal_scatter(x: torch.Tensor, source: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> torch.Tensor:
    moved = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = (torch.arange(size, device=x.device) for size in moved.shape[-2:])
    is_on = columns == rows.unsqueeze(1) + offset
    # An element of the diagonal has the number of its row, or of its column if the diagonal starts lower.
    size = moved.shape[-2] if offset >= 0 else moved.shape[-1]
    spread = torch.constant_pad_nd(source, [0, size - source.shape[-1]], 0).unsqueeze(-1 if offset >= 0 else -2)
    return torch.where(is_on, spread, moved).movedim((-2, -1), (dim1, dim2))


TABLE = {
    aten.as_strided.default: as_strided,
    aten.as_strided_copy.default: as_strided,
    aten.as_strided_scatter.default: as_strided_scatter,
    aten.diagonal_scatter.default: diagonal_scatter,
}
