"""Equations and factorizations of complex matrices, as pairs of real ones: rules of `weir.torch.complexes`.

Equations are those of the real matrix [[Re, -Im], [Im, Re]] of twice the size, which also has each singular value, and
each eigenvalue of a Hermitian matrix, twice. Factorizations, whose results such a matrix does not have, are written out
column by column.
"""

import math
from collections.abc import Callable

import torch

from weir.torch.complex_arithmetic import Pair, conjugate, divide, multiply, multiply_matrices, subtract, widen
from weir.torch.matrices import find_order
from weir.torch.operators import stop_gradient

ops = torch.ops.weir
LONGEST = 32  # columns that are written out


def _map(function: Callable[[torch.Tensor], torch.Tensor], z: Pair) -> Pair:
    return Pair(*map(function, z))


def _embed(a: Pair) -> torch.Tensor:
    return torch.cat([torch.cat([a.real, -a.imag], -1), torch.cat([a.imag, a.real], -1)], -2)


def _solve(a: Pair, b: Pair, transposed: int = 0) -> Pair:
    a, b = (widen(each) for each in (a, b))
    a = _map(lambda part: part.mT, a) if transposed else a
    return Pair(*ops.solve(_embed(a), torch.cat(b, -2), 0).chunk(2, -2))


def _solve_triangle(a: Pair, b: Pair, upper: int, transposed: int, unit_diagonal: int) -> Pair:
    shift = int(bool(unit_diagonal))
    a = _map(lambda part: part.triu(shift) if upper else part.tril(-shift), widen(a))
    one = torch.eye(a.real.shape[-1], dtype=a.real.dtype) if unit_diagonal else 0
    return _solve(Pair(a.real + one, a.imag), b, transposed)


def _read_triangle(a: Pair, upper: bool = False) -> Pair:
    """Returns the Hermitian matrix of a triangle. Its gradient goes to both, as PyTorch's does."""
    start = _map(stop_gradient, a)
    real, imag = (start.real.mT, -start.imag.mT) if upper else start
    read = Pair(real.tril() + real.tril(-1).mT, imag.tril(-1) - imag.tril(-1).mT)
    zero = torch.zeros((), dtype=real.dtype)
    change = [torch.where(old.abs() < math.inf, part - old, zero) for part, old in zip(a, start)]
    return Pair(read.real + (change[0] + change[0].mT) * 0.5, read.imag + (change[1] - change[1].mT) * 0.5)


def _find_eigenvalues(a: Pair, upper: int) -> tuple[torch.Tensor, None]:
    return ops.eigh(_embed(_read_triangle(a, bool(upper))), 0)[0][..., ::2], None


def _find_singular_values(a: Pair, is_complete: int) -> tuple[None, torch.Tensor, None]:
    return None, ops.svd(_embed(a), 0)[1][..., ::2], None


def _exponential(a: Pair) -> Pair:
    """Returns matrix_exp, whose real matrix is the exponential of that of `a`."""
    return Pair(*torch.linalg.matrix_exp(_embed(a))[..., :a.real.shape[-1]].chunk(2, -2))


def _factor_cholesky(a: Pair) -> Pair | None:
    size = a.real.shape[-1]
    if size > LONGEST:
        return None
    a, columns, nan = _read_triangle(a), [], torch.full((), math.nan, dtype=a.real.dtype)
    for k in range(size):
        square = a.real[..., :1, 0]
        is_positive = square > 0
        end = torch.where(is_positive, torch.sqrt(torch.where(is_positive, square, torch.ones_like(square))), nan)
        below = _map(lambda part: part[..., 1:, 0] / end, a)
        above = [torch.zeros_like(a.real[..., :1, 0])] * k
        columns.append(Pair(torch.cat([*above, end, below.real], -1),
                            torch.cat([*above, torch.zeros_like(end), below.imag], -1)))
        column = _map(lambda part: part.unsqueeze(-1), below)
        product = multiply(column, _map(lambda part: part.mT, conjugate(column)))
        a = subtract(_map(lambda part: part[..., 1:, 1:], a), product)
    return Pair(*(torch.stack(parts, -1) for parts in zip(*columns)))


def _factor_lu(a: Pair) -> tuple[Pair, torch.Tensor, torch.Tensor] | None:
    """Exchanges rows as LAPACK does, for the largest sum of the parts' absolute values."""
    rows, columns = a.real.shape[-2:]
    if min(rows, columns) > LONGEST:
        return None
    place = torch.arange(rows).unsqueeze(-1)
    pivots = []
    for k in range(min(rows, columns)):
        size = (a.real.abs() + a.imag.abs())[..., k:, k].detach()
        pivot = size.argmax(-1) + k
        pivots.append(pivot)
        is_pivot = place == pivot[..., None, None]
        a = _map(lambda part: _exchange(part, k, place == k, is_pivot), a)
        end, below = _map(lambda part: part[..., k:k + 1, k:k + 1], a), _map(lambda part: part[..., k + 1:, k:k + 1], a)
        is_zero = (end.real == 0) & (end.imag == 0)
        factors = divide(below, Pair(torch.where(is_zero, torch.ones_like(end.real), end.real), end.imag))
        product = multiply(factors, _map(lambda part: part[..., k:k + 1, k + 1:], a))
        inner = subtract(_map(lambda part: part[..., k + 1:, k + 1:], a), product)
        a = Pair(*(torch.cat([part[..., :k + 1, :], torch.cat([part[..., k + 1:, :k], *new], -1)], -2)
                   for part, *new in zip(a, factors, inner)))
    if not pivots:
        return None
    made = torch.stack(pivots, -1).to(torch.int32)
    return a, made, find_order(made + 1, rows).to(torch.int32)


def _exchange(part: torch.Tensor, k: int, is_row: torch.Tensor, is_pivot: torch.Tensor) -> torch.Tensor:
    zero = torch.zeros((), dtype=part.dtype)
    found = torch.where(is_pivot, part, zero).sum(-2, keepdim=True)
    return torch.where(is_row, found, torch.where(is_pivot, part[..., k:k + 1, :], part))


def _reflect(a: Pair) -> tuple[Pair, Pair] | None:
    """Returns geqrf: a reflection 1 - t v v^H for each column, whose first element it makes real, as LAPACK's."""
    rows, columns = a.real.shape[-2:]
    if min(rows, columns) > LONGEST:
        return None
    factors = []
    for k in range(min(rows, columns)):
        column = _map(lambda part: part[..., k:, k], a)
        first, rest = _map(lambda part: part[..., :1], column), _map(lambda part: part[..., 1:], column)
        size = _measure(column)
        is_done = (_measure(rest) == 0) & (first.imag == 0)
        one = torch.ones_like(size)
        end = torch.where(is_done, one, torch.where(first.real >= 0, -size, size))
        factor = _map(lambda part: torch.where(is_done, torch.zeros_like(part), part),
                      Pair((end - first.real) / end, -first.imag / end))
        divisor = Pair(torch.where(is_done, one, first.real - end), torch.where(is_done, 0 * one, first.imag))
        tail = divide(rest, divisor)
        v = Pair(torch.cat([one, tail.real], -1).unsqueeze(-1), torch.cat([0 * one, tail.imag], -1).unsqueeze(-1))
        others = _map(lambda part: part[..., k:, k + 1:], a)
        products = multiply_matrices(_map(lambda part: part.mT, conjugate(v)), others)
        turn = _map(lambda part: part.unsqueeze(-1), conjugate(factor))
        others = subtract(others, multiply(multiply(v, turn), products))
        diagonal = Pair(torch.where(is_done, first.real, end), 0 * one)
        a = Pair(*(torch.cat([part[..., :k], torch.cat([part[..., :k, k:], torch.cat([
            torch.cat([top, low], -1).unsqueeze(-1), new], -1)], -2)], -1)
            for part, top, low, new in zip(a, diagonal, tail, others)))
        factors.append(factor)
    if not factors:
        return None
    return a, Pair(*(torch.cat(parts, -1) for parts in zip(*factors)))


def _measure(z: Pair) -> torch.Tensor:
    """Returns the lengths of rows, with a gradient of 0 for those of 0."""
    return torch.linalg.vector_norm(torch.cat(z, -1), 2, -1, keepdim=True)


RULES = {
    torch.ops.aten.linalg_matrix_exp.default: _exponential,
    ops.cholesky.default: _factor_cholesky,
    ops.eigh.default: _find_eigenvalues,
    ops.householder.default: _reflect,
    ops.lu.default: _factor_lu,
    ops.solve.default: _solve,
    ops.svd.default: _find_singular_values,
    ops.triangular_solve.default: _solve_triangle,
}
