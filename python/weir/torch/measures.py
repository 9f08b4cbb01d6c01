"""Lengths and distances of elements, and of tensors as a whole."""

import torch

from weir.torch.operators import stop_gradient
from weir.torch.scattering import wrap

aten = torch.ops.aten


def hypotenuse(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The root of the sum of squares, which may leave the range where the root does not."""
    x, y = torch.broadcast_tensors(x, y)
    narrow = torch.result_type(x, y)
    x, y = (part.float() if narrow in (torch.float16, torch.bfloat16) else part.to(narrow) for part in (x, y))
    scale = stop_gradient(torch.maximum(x.abs(), y.abs()))
    scale = torch.where((scale > 0) & (scale < float("inf")), scale, torch.ones((), dtype=scale.dtype))
    root = scale * torch.sqrt((x / scale) ** 2 + (y / scale) ** 2)
    is_infinite = torch.isinf(x) | torch.isinf(y)
    return torch.where(is_infinite, torch.full((), float("inf"), dtype=root.dtype), root).to(narrow)


def dist(x: torch.Tensor, y: torch.Tensor, p: float = 2) -> torch.Tensor:
    return torch.linalg.vector_norm(x - y, p)


def take(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1)[wrap(index.reshape(-1), x.numel())].reshape(index.shape)


TABLE = {
    aten.hypot.default: hypotenuse,
    aten.dist.default: dist,
    aten.take.default: take,
}
