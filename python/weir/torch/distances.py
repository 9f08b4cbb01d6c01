"""Distances of rows by a p-norm of their differences. Equal rows, and equal elements of rows, have no gradient."""

import math

import torch

from weir.torch.operators import stop_gradient

aten = torch.ops.aten


def _guard(root: torch.Tensor, exponent: float) -> torch.Tensor:
    """Returns the power of what is above 0, else `root` with no gradient."""
    is_apart = ~(root <= 0)
    powers = torch.where(is_apart, root, torch.ones((), dtype=root.dtype))
    return torch.where(is_apart, powers.sqrt() if exponent == 0.5 else powers**exponent, torch.zeros((), dtype=root.dtype))


def _measure(difference: torch.Tensor, p: float) -> torch.Tensor:
    """Returns the p-norm of the last dimension."""
    zero = torch.zeros((), dtype=difference.dtype)
    if p == 0:
        count = (difference != 0).to(difference.dtype)
        return torch.where(difference != difference, stop_gradient(difference), count).sum(-1)
    if p == 2:
        return _guard((difference * difference).sum(-1), 0.5)
    size = difference.abs()
    if p == 1:
        return size.sum(-1)
    if math.isinf(p):
        # Each element that is as large has all of the gradient.
        limit = stop_gradient(size).amax(-1)
        tied = (size == limit.unsqueeze(-1)) & (size < math.inf)
        return limit + torch.where(tied, size - stop_gradient(size), zero).sum(-1)
    is_apart = difference != 0
    powers = torch.where(is_apart, torch.where(is_apart, size, torch.ones((), dtype=size.dtype)) ** p, zero)
    return _guard(powers.sum(-1), 1 / p)


def cdist(x: torch.Tensor, y: torch.Tensor, p: float, compute_mode: int | None) -> torch.Tensor:
    return _measure(x.unsqueeze(-2) - y.unsqueeze(-3), p)


def euclidean(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Multiplies the rows, as PyTorch does for many."""
    squares = ((part * part).sum(-1) for part in (x, y))
    square = next(squares).unsqueeze(-1) + next(squares).unsqueeze(-2) - 2 * (x @ y.transpose(-2, -1))
    return _guard(square, 0.5)


def pdist(x: torch.Tensor, p: float = 2) -> torch.Tensor:
    """The distances of each row from those after it."""
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)
    return _measure(x[first] - x[second], p)


TABLE = {
    aten._cdist_forward.default: cdist,
    aten._euclidean_dist.default: euclidean,
    aten._pdist_forward.default: pdist,
}
