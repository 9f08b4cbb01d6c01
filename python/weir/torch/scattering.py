"""Operators that write at computed places, as reductions over all updates for each element that may be written.

So each element has one writer, and updates of one element are combined in their order. Where several replace it, the
last one does.
"""

import functools
from collections.abc import Callable, Sequence

import torch

from weir.graphs import ExportError
from weir.torch.operators import stop_gradient

aten = torch.ops.aten


def _combine(own: torch.Tensor, hits: torch.Tensor, updates: torch.Tensor, reduce: str, include_self: bool):
    """Returns elements [n, ..] of `own` after updates [m, ..], where `hits` [n, m, ..] says who writes.

    Ties of a limit give all of the gradient to one side, that of `own` or of the updates; see `_share`.
    """
    if own.dtype == torch.bool and reduce != "replace":
        return _combine(own.to(torch.int32), hits, updates.to(torch.int32), reduce, include_self) != 0
    updates = updates.to(own.dtype).unsqueeze(0)
    if reduce == "replace":
        number = torch.arange(1, hits.shape[1] + 1, device=own.device).reshape(-1, *[1] * (hits.dim() - 2))
        last = torch.where(hits, number, torch.zeros((), dtype=torch.int64)).amax(1)
        found = (last - 1).clamp(min=0)
        if found.dim() < own.dim():
            found = found.reshape(*found.shape, *[1] * (own.dim() - found.dim())).expand(own.shape)
        chosen = updates.squeeze(0).expand(-1, *own.shape[1:]).gather(0, found.expand(own.shape))
        written = (last > 0).reshape(*last.shape, *[1] * (own.dim() - last.dim()))
        return torch.where(written, chosen, own)
    hits = hits.reshape(*hits.shape, *[1] * (updates.dim() - hits.dim()))

    def chosen(neutral: float | int) -> torch.Tensor:
        return torch.where(hits, updates, torch.full((), neutral, dtype=own.dtype))

    if reduce in ("sum", "mean"):
        made = chosen(0).sum(1, dtype=own.dtype)
        combined = own + made if include_self else made
        if reduce == "mean":
            count = hits.sum(1) + int(include_self)
            combined = combined / count.clamp(min=1) if own.is_floating_point() else torch.div(
                combined, count.clamp(min=1), rounding_mode="floor")
            combined = combined.to(own.dtype)
    elif reduce == "prod":
        made = chosen(1).prod(1, dtype=own.dtype)
        combined = own * made if include_self else made
    else:
        sign = -1 if reduce == "amax" else 1
        limit = (sign * float("inf") if own.is_floating_point() else
                 torch.iinfo(own.dtype).max if sign > 0 else torch.iinfo(own.dtype).min)
        made = chosen(limit).amax(1) if reduce == "amax" else chosen(limit).amin(1)
        pick = torch.maximum if reduce == "amax" else torch.minimum
        combined = pick(own, made) if include_self else made
    if include_self:
        return combined
    return torch.where(hits.any(1), combined, own)


def _share(own: torch.Tensor, index: torch.Tensor, hits: torch.Tensor, source: torch.Tensor, reduce: str) -> torch.Tensor:
    """Returns the limits of elements and their updates, where an element that equals the limit of its updates has the
    same share of the gradient as each update that does."""
    limits = _combine(own, hits, source, reduce, False)
    combined = (torch.maximum if reduce == "amax" else torch.minimum)(own, limits)
    tied = (source == limits.detach().gather(0, index.clamp(min=0))).to(own.dtype)
    count = torch.where(hits, tied.unsqueeze(0), torch.zeros((), dtype=own.dtype)).sum(1)
    share = 1 / (count + 1)
    value, limit = stop_gradient(own), stop_gradient(limits)
    is_tie = (count > 0) & (own == limits) & (own.abs() < float("inf"))
    shared = value + (own - value) * share + (limits - limit) * (1 - share)
    # Elements without updates are their own limits.
    return torch.where(is_tie, shared, torch.where(hits.any(1), combined, own))


def wrap(index: torch.Tensor, size: int) -> torch.Tensor:
    """Returns indices that count from the end as ones that count from the start."""
    return torch.where(index < 0, index + size, index)


def _check(index: torch.Tensor, size: int) -> torch.Tensor:
    """Returns `index` with -1 for what is not in [0, size), by a gather from all places: `--check-indices` reports what
    gathers read outside."""
    if size == 0 or index.numel() == 0:
        return index
    index = index.to(torch.int64)
    # A gather would count negative places from the end.
    ahead = torch.where(index < 0, torch.full((), size, dtype=torch.int64), index)
    found = torch.arange(size, device=index.device)[ahead]
    return torch.where(found == index, index, torch.full((), -1, dtype=torch.int64))


def _scatter(own: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str,
             include_self: bool = True, shares: bool = False) -> torch.Tensor:
    """`shares`: whether ties of limits share their gradient, which takes a second pass over the updates."""
    if own.dim() == 0:
        made = _scatter(own.reshape(1), 0, index.reshape(1), source.reshape(1), reduce, include_self, shares)
        return made.reshape(())
    dim %= own.dim()
    if index.numel() == 0:
        return own.clone()
    source = source[tuple(slice(size) for size in index.shape)] if source.dim() else source.expand(index.shape)
    index = _check(index, own.shape[dim])
    # Rows that the index lacks are written by nobody.
    pads = [amount for d in reversed(range(own.dim()))
            for amount in (0, 0 if d == dim else own.shape[d] - index.shape[d])]
    if any(pads):
        index = torch.constant_pad_nd(index, pads, -1)
        source = torch.constant_pad_nd(source, pads, 0)
    own, index, source = (part.movedim(dim, 0) for part in (own, index, source))
    place = torch.arange(own.shape[0], device=own.device).reshape(-1, 1, *[1] * (own.dim() - 1))
    hits = index.unsqueeze(0) == place
    if shares and include_self and reduce in ("amax", "amin") and own.is_floating_point():
        return _share(own, index, hits, source.to(own.dtype), reduce).movedim(0, dim)
    return _combine(own, hits, source, reduce, include_self).movedim(0, dim)


def scatter(own: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return _scatter(own, dim, index, source, "replace")


def scatter_value(own: torch.Tensor, dim: int, index: torch.Tensor, value: float) -> torch.Tensor:
    return _scatter(own, dim, index, torch.full((), value, dtype=own.dtype), "replace")


def scatter_add(own: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return _scatter(own, dim, index, source, "sum")


def scatter_combine(own: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, reduce: str):
    return _scatter(own, dim, index, source, {"add": "sum", "multiply": "prod"}[reduce])


def scatter_combine_value(own: torch.Tensor, dim: int, index: torch.Tensor, value: float, *, reduce: str):
    return scatter_combine(own, dim, index, torch.full((), value, dtype=own.dtype), reduce=reduce)


def scatter_reduce(own: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, *,
                   include_self: bool = True, shares: bool = True) -> torch.Tensor:
    return _scatter(own, dim, index, source, reduce, include_self, shares)


def write_rows(own: torch.Tensor, place: torch.Tensor, updates: torch.Tensor, reduce: str) -> torch.Tensor:
    """Writes rows `updates` [m, ..] at the rows of `own` [n, ..] that `place` [m] names."""
    if place.numel() == 0:
        return own.clone()
    rows = torch.arange(own.shape[0], device=own.device).unsqueeze(1)
    return _combine(own, place.unsqueeze(0) == rows, updates, reduce, True)


def index_put(own: torch.Tensor, indices: Sequence[torch.Tensor | None], values: torch.Tensor,
              accumulate: bool = False) -> torch.Tensor:
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype in (torch.bool, torch.uint8):
        mask = indices[0]
        if values.numel() != 1:
            raise ExportError("an index_put by a mask takes as many values as the mask has ones, which is not known "
                              "before it runs; use torch.where")
        mask = mask.reshape(*mask.shape, *[1] * (own.dim() - mask.dim())).to(torch.bool)
        value = values.reshape(()).to(own.dtype)
        return torch.where(mask, own + value if accumulate else value, own)
    dims = [d for d, index in enumerate(indices) if index is not None]
    given = torch.broadcast_tensors(*[indices[d] for d in dims])
    if any(index.dtype in (torch.bool, torch.uint8) for index in given):
        raise ExportError("an index_put by masks and indices has a form only for a single mask; use torch.where")
    place = torch.zeros_like(given[0])
    outside = torch.zeros_like(place, dtype=torch.bool)
    for d, index in zip(dims, given):
        size = own.shape[d]
        checked = _check(wrap(index, size), size)
        outside = outside | (checked < 0)
        place = place * size + checked
    place = torch.where(outside, torch.full((), -1, dtype=torch.int64), place)
    others = [d for d in range(own.dim()) if d not in dims]
    rest = [own.shape[d] for d in others]
    # Neighbouring indexed dimensions stay where they are, others come first.
    adjacent = dims == list(range(dims[0], dims[-1] + 1))
    first = dims[0] if adjacent else 0
    values = values.expand(*rest[:first], *place.shape, *rest[first:])
    values = values.movedim(tuple(range(first, first + place.dim())), tuple(range(place.dim())))
    moved = own.permute(*dims, *others)
    made = write_rows(moved.reshape(-1, *rest), place.reshape(-1), values.reshape(-1, *rest),
                "sum" if accumulate else "replace").reshape(moved.shape)
    back = [0] * own.dim()
    for position, d in enumerate([*dims, *others]):
        back[d] = position
    return made.permute(*back)


def _along(dim: int, own: torch.Tensor, index: torch.Tensor, source: torch.Tensor, reduce: str) -> torch.Tensor:
    place = _check(index.reshape(-1), own.shape[dim] if own.dim() else 1)
    if own.dim() == 0:
        return write_rows(own.reshape(1), place, source.reshape(-1), reduce).reshape(())
    return write_rows(own.movedim(dim, 0), place, source.movedim(dim, 0), reduce).movedim(0, dim)


def index_add(own: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: float = 1):
    return _along(dim, own, index, source if alpha == 1 else source * alpha, "sum")


def index_copy(own: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return _along(dim, own, index, source, "replace")


def index_fill(own: torch.Tensor, dim: int, index: torch.Tensor, value: float) -> torch.Tensor:
    shape = list(own.shape)
    if shape:
        index = wrap(index, shape[dim])
        shape[dim] = index.numel()
    return _along(dim, own, index, torch.full(shape, value, dtype=own.dtype), "replace")


def index_reduce(own: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, *,
                 include_self: bool = True, shares: bool = True) -> torch.Tensor:
    if own.dim() == 0:
        return _scatter(own, 0, index.reshape(()), source.reshape(()), reduce, include_self, shares)
    index = index.reshape([-1 if d == dim % own.dim() else 1 for d in range(own.dim())]).expand(source.shape)
    return _scatter(own, dim, index, source, reduce, include_self, shares)


def put(own: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
    place = _check(wrap(index.reshape(-1), own.numel()), own.numel())
    return write_rows(own.reshape(-1), place, source.reshape(-1), "sum" if accumulate else "replace").reshape(own.shape)


def masked_scatter(own: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """Elements of `source`, in their order, where the mask is set."""
    shape = torch.broadcast_shapes(own.shape, mask.shape)
    own, mask = own.expand(shape), mask.expand(shape)
    if source.numel() == 0:
        return own.clone()
    flags = mask.reshape(-1)
    number = torch.where(flags, flags.to(torch.int64).cumsum(0) - 1, torch.zeros((), dtype=torch.int64))
    return torch.where(mask, source.reshape(-1)[number].reshape(shape), own)


def grouped_mm(x: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    """Rows [s, k] of x, in groups that end at `offs` [e], by the matrix of each group, [e, k, n].

    As one product of all matrices, in which a row is 0 for the others: no row has a place of its own, so each
    gradient has one writer, too. Rows behind the last group give 0.
    """
    groups, depth, width = weight.shape
    row = torch.arange(x.shape[0], device=x.device).unsqueeze(1)
    group = (offs.unsqueeze(0) <= row).sum(1, keepdim=True)
    is_own = (group == torch.arange(groups, device=x.device)).unsqueeze(-1)
    spread = torch.where(is_own, x.unsqueeze(1), torch.zeros((), dtype=x.dtype))
    return spread.reshape(x.shape[0], groups * depth) @ weight.reshape(groups * depth, width)


def _grouped_mm_of_torch(x: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor | None = None,
                         bias: torch.Tensor | None = None, out_dtype: torch.dtype | None = None) -> torch.Tensor:
    if offs is None or x.dim() != 2 or weight.dim() != 3 or bias is not None:
        raise ExportError("_grouped_mm has a form for rows [s, k], matrices [e, k, n] and offsets alone")
    made = grouped_mm(x, weight, offs)
    return made if out_dtype is None else made.to(out_dtype)


def get_table(gradients: bool = True) -> dict[torch._ops.OpOverload, Callable]:
    table = {
        aten.scatter.src: scatter,
        aten.scatter.value: scatter_value,
        aten.scatter.reduce: scatter_combine,
        aten.scatter.value_reduce: scatter_combine_value,
        aten.scatter_add.default: scatter_add,
        aten.scatter_reduce.two: functools.partial(scatter_reduce, shares=gradients),
        aten.index_put.default: index_put,
        aten._unsafe_index_put.default: index_put,
        aten.index_add.default: index_add,
        aten.index_copy.default: index_copy,
        aten.index_fill.int_Scalar: index_fill,
        aten.index_reduce.default: functools.partial(index_reduce, shares=gradients),
        aten.put.default: put,
        aten.masked_scatter.default: masked_scatter,
        aten._grouped_mm.default: _grouped_mm_of_torch,
    }
    # Registered by transformers, if that is there.
    fallback = getattr(torch.ops.transformers, "grouped_mm_fallback", None)
    return table if fallback is None else table | {fallback.default: grouped_mm}
