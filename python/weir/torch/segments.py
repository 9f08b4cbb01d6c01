"""Reductions of segments of rows, each by a choice from all rows: a row belongs to at most one segment."""

import torch

from weir.graphs import ExportError

aten = torch.ops.aten

_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}


def segment_reduce(data: torch.Tensor, reduce: str, *, lengths: torch.Tensor | None = None,
                   indices: torch.Tensor | None = None, offsets: torch.Tensor | None = None, axis: int = 0,
                   unsafe: bool = False, initial: float | None = None) -> torch.Tensor:
    """The segments of dimension `axis`, by their lengths or by the places where they start and the last one ends."""
    if offsets is None:
        if lengths is None:
            raise ExportError("segment_reduce has a form for lengths or offsets; give one of them")
        end = lengths.cumsum(-1)
        start = end - lengths
    else:
        start, end = offsets[..., :-1], offsets[..., 1:]
    place = torch.arange(data.shape[axis], device=data.device)
    is_its = (place >= start.unsqueeze(-1)) & (place < end.unsqueeze(-1))  # [.., segments, rows]
    is_its = is_its.reshape(*is_its.shape, *[1] * (data.dim() - axis - 1))
    neutral = torch.full((), _NEUTRAL[reduce], dtype=data.dtype)
    rows = torch.where(is_its, data.unsqueeze(axis), neutral)
    count = is_its.sum(axis + 1)
    if reduce in ("max", "min"):
        made = rows.amax(axis + 1) if reduce == "max" else rows.amin(axis + 1)
        if initial is not None:
            bound = torch.full((), initial, dtype=data.dtype)
            made = torch.where((made < bound) if reduce == "max" else (made > bound), bound, made)
        return made
    if reduce == "prod":
        made = rows.prod(axis + 1)
        return made if initial is None else made * initial
    made = rows.sum(axis + 1)
    if initial is not None:
        made = made + initial
    if reduce == "sum":
        return made
    empty = torch.full((), float("nan") if initial is None else initial, dtype=data.dtype)
    return torch.where(count > 0, made / count.clamp(min=1).to(data.dtype), empty)


TABLE = {aten.segment_reduce.default: segment_reduce}
