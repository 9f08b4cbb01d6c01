"""Functions of PyTorch whose own form reads values, in forms that read none. They take the place of PyTorch's while a
module is traced."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from weir.torch import polynomials
from weir.torch.alignments import ctc_loss


def cov(x: torch.Tensor, *, correction: int = 1, fweights: torch.Tensor | None = None,
        aweights: torch.Tensor | None = None) -> torch.Tensor:
    rows = x.reshape(1, -1) if x.dim() < 2 else x
    given = [each for each in (fweights, aweights) if each is not None]
    weight = given[0] * given[1] if len(given) == 2 else given[0] if given else None
    weighted = rows if weight is None else rows * weight
    total = torch.full((), rows.shape[1], dtype=torch.int64) if weight is None else weight.sum()
    centered = rows - (weighted.sum(1) / total).unsqueeze(1)
    if aweights is not None and correction:
        divisor = total - correction * (weight * aweights).sum() / total
    else:
        divisor = total - correction
    products = centered @ (centered if weight is None else centered * weight).t().conj()
    return (products / divisor.clamp(min=0)).squeeze()


def corrcoef(x: torch.Tensor) -> torch.Tensor:
    covariance = cov(x)
    if covariance.dim() == 0:
        return covariance / covariance
    deviation = covariance.diagonal().sqrt()
    return (covariance / deviation.unsqueeze(1) / deviation).clamp(-1, 1)


def combinations(x: torch.Tensor, r: int = 2, with_replacement: bool = False) -> torch.Tensor:
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = list(choose(range(x.shape[0]), r))
    return x[torch.tensor(places)] if places and r else x.new_zeros((0, r) if r else (0,))


def gaussian_nll_loss(x: torch.Tensor, target: torch.Tensor, var: torch.Tensor | float, full: bool = False,
                      eps: float = 1e-6, reduction: str = "mean") -> torch.Tensor:
    """Clamps the variance to `eps` without ending its gradient. A negative variance is not refused."""
    if isinstance(var, float):
        var = torch.full_like(x, var)
    elif var.shape != x.shape and x.shape[:-1] == var.shape:
        var = var.unsqueeze(-1)
    var = var + (var.clamp(min=eps) - var).detach()
    loss = 0.5 * (torch.log(var) + (x - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def narrow(input: torch.Tensor, dim: int, start: int | torch.Tensor, length: int) -> torch.Tensor:
    if not isinstance(start, torch.Tensor):
        return torch.narrow(input, dim, start, length)
    first = torch.where(start < 0, start + input.shape[dim], start).reshape(()).to(torch.int64)
    return input.index_select(dim, first + torch.arange(length, device=input.device))


def _refuse(function: Callable, form: str) -> Callable:
    """The function, of constants alone."""
    def call(*args: Any, **kwargs: Any) -> bool:
        try:
            return function(*args, **kwargs)
        except Exception:
            raise TypeError(f"torch.{function.__name__} gives a number to Python; take {form}, which is a tensor, and "
                            "torch.where") from None

    return call


_FORMS: dict[Callable, Callable] = {
    torch.cov: cov, torch.Tensor.cov: cov, torch.corrcoef: corrcoef, torch.Tensor.corrcoef: corrcoef,
    torch.equal: _refuse(torch.equal, "(a == b).all()"), torch.Tensor.equal: _refuse(torch.equal, "(a == b).all()"),
    torch.allclose: _refuse(torch.allclose, "torch.isclose(a, b).all()"),
    torch.Tensor.allclose: _refuse(torch.allclose, "torch.isclose(a, b).all()"),
    torch.combinations: combinations, torch.nn.functional.gaussian_nll_loss: gaussian_nll_loss,
    torch.narrow: narrow, torch.Tensor.narrow: narrow, torch.ctc_loss: ctc_loss, torch.nn.functional.ctc_loss: ctc_loss,
} | polynomials.FORMS


class Composing(TorchFunctionMode):
    """Calls the forms in place of PyTorch's functions."""

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        form = _FORMS.get(function)
        if form is None or any(isinstance(each, torch.Tensor) and each.is_complex() for each in args):
            return function(*args, **(kwargs or {}))
        return form(*args, **(kwargs or {}))
