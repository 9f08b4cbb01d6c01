"""Products with vectors and sums of batches of products, made of the matrix products that torch-mlir lowers."""

from collections.abc import Callable

import torch

aten = torch.ops.aten


def _add(product: Callable) -> Callable:
    """beta * x + alpha * product. Integers keep their type, and a beta of 0 hides x, NaN too."""
    def decompose(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1) -> torch.Tensor:
        made = product(a, b)
        if alpha != 1:
            made = made * torch.scalar_tensor(alpha, dtype=made.dtype)
        if beta == 0:
            return made
        return made + (x if beta == 1 else x * torch.scalar_tensor(beta, dtype=x.dtype))

    return decompose


def _multiply_vector(matrix: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


TABLE = {
    aten.addmv.default: _add(_multiply_vector),
    aten.addbmm.default: _add(lambda a, b: torch.bmm(a, b).sum(0, dtype=a.dtype)),
}
