"""Equations and factorizations of complex matrices, as pairs of real ones: rules of `weir.torch.complexes`.

Equations are those of the real matrix [[Re, -Im], [Im, Re]] of twice the size, which also has each singular value, and
each eigenvalue of a Hermitian matrix, twice. Factorizations, whose results such a matrix does not have, are written out
column by column.
"""

import math
from collections.abc import Callable

import torch

from weir.torch.complex_arithmetic import Pair, add, conjugate, divide, multiply, multiply_matrices, subtract, widen
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


def _find_eigenvalues(a: Pair, upper: int) -> tuple[torch.Tensor, Pair | None]:
    """Returns values and vectors: of a tridiagonal matrix that is real, in the basis that made it one.

    The gradient is that of the first-order change by a matrix of zeros, as if they were computed without steps; vectors
    of equal values get none by each other.
    """
    whole = _read_triangle(a, bool(upper))
    size = whole.real.shape[-1]
    if not 1 <= size <= LONGEST:
        return ops.eigh(_embed(whole), 0)[0][..., ::2], None
    start = _map(stop_gradient, whole)
    one = torch.eye(size, dtype=start.real.dtype).expand(start.real.shape)
    basis, made = Pair(one, torch.zeros_like(one)), start
    for k in range(size - 1):
        factor, v = _make_reflection(_map(lambda part: part[..., k + 1:, k], made), k + 1)
        made = _turn_rows(_turn_columns(made, factor, v), factor, v)
        basis = _turn_columns(basis, factor, v)
    values, vectors = ops.eigh(made.real, 0)
    values, vectors = stop_gradient(values), _map(lambda part: stop_gradient(part @ vectors), basis)
    change = multiply_matrices(_adjoin(vectors), multiply_matrices(subtract(whole, start), vectors))
    inverse = _invert_gaps(values.unsqueeze(-2) - values.unsqueeze(-1))
    turned = multiply_matrices(vectors, _map(lambda part: part * inverse, change))
    return values + change.real.diagonal(0, -2, -1), add(vectors, turned)


def _adjoin(a: Pair) -> Pair:
    return Pair(a.real.mT, -a.imag.mT)


def _turn_columns(a: Pair, factor: Pair, v: Pair) -> Pair:
    """Returns the product with a reflection 1 - t v v^H."""
    return subtract(a, multiply(multiply(multiply_matrices(a, v), factor), _adjoin(v)))


def _turn_rows(a: Pair, factor: Pair, v: Pair) -> Pair:
    """Returns the product of a reflection's adjoint with a matrix."""
    return subtract(a, multiply(multiply(v, conjugate(factor)), multiply_matrices(_adjoin(v), a)))


def _make_reflection(column: Pair, zeros: int) -> tuple[Pair, Pair]:
    """Returns t, and v after some zeros, of the reflection 1 - t v v^H whose adjoint makes a column real, and 0 below its
    first element, as LAPACK's larfg."""
    first, rest = _map(lambda part: part[..., :1], column), _map(lambda part: part[..., 1:], column)
    size = _measure(column)
    is_done = (_measure(rest) == 0) & (first.imag == 0)
    one = torch.ones_like(size)
    end = torch.where(is_done, one, torch.where(first.real >= 0, -size, size))
    factor = Pair((end - first.real) / end, -first.imag / end)
    factor = _map(lambda part: torch.where(is_done, torch.zeros_like(part), part).unsqueeze(-1), factor)
    divisor = Pair(torch.where(is_done, one, first.real - end), torch.where(is_done, 0 * one, first.imag))
    tail, above = divide(rest, divisor), [torch.zeros_like(one)] * zeros
    v = Pair(torch.cat([*above, one, tail.real], -1), torch.cat([*above, 0 * one, tail.imag], -1))
    return factor, _map(lambda part: part.unsqueeze(-1), v)


def _find_singular_values(a: Pair, is_complete: int) -> tuple[Pair | None, torch.Tensor, Pair | None]:
    """Returns values and vectors, as `_find_eigenvalues`: of a bidiagonal matrix that is real."""
    rows, columns = a.real.shape[-2:]
    if not 1 <= min(rows, columns) <= LONGEST or (is_complete and rows != columns):
        return None, ops.svd(_embed(a), 0)[1][..., ::2], None
    if rows < columns:
        u, values, v = _find_singular_values(_adjoin(a), is_complete)
        return _adjoin(v), values, _adjoin(u)
    start = made = _map(stop_gradient, a)
    left, right = (Pair(one, torch.zeros_like(one)) for one in (
        torch.eye(size, dtype=a.real.dtype).expand(*a.real.shape[:-2], size, size) for size in (rows, columns)))
    for k in range(columns):
        factor, v = _make_reflection(_map(lambda part: part[..., k:, k], made), k)
        made, left = _turn_rows(made, factor, v), _turn_columns(left, factor, v)
        if k + 1 < columns:
            factor, v = _make_reflection(conjugate(_map(lambda part: part[..., k, k + 1:], made)), k + 1)
            made, right = _turn_columns(made, factor, v), _turn_columns(right, factor, v)
    u, values, vh = ops.svd(made.real, 0)
    values = stop_gradient(values)
    u, v = _map(lambda part: stop_gradient(part @ u), left), _map(lambda part: stop_gradient(part @ vh.mT), right)
    # U^H dA V = W S + dS - S Z, with dU = U W and dV = V Z but for what leaves the columns' space; dV takes no phase.
    change = subtract(a, start)
    inner = multiply_matrices(_adjoin(u), multiply_matrices(change, v))
    row, column = values.unsqueeze(-1), values.unsqueeze(-2)
    inverse, root = _invert_gaps(column * column - row * row), _invert_gaps(column)
    turned = Pair(inner.real.mT, -inner.imag.mT)
    w = Pair(*((one * column + row * other) * inverse for one, other in zip(inner, turned)))
    z = Pair(*((row * one + other * column) * inverse for one, other in zip(inner, turned)))
    phase = torch.diag_embed((inner.imag * root).diagonal(0, -2, -1))
    outer = multiply_matrices(change, v)
    outer = _map(lambda part: part * root, subtract(outer, multiply_matrices(u, inner)))
    u = add(u, add(multiply_matrices(u, Pair(w.real, w.imag + phase)), outer))
    return u, values + inner.real.diagonal(0, -2, -1), _adjoin(add(v, multiply_matrices(v, z)))


def _invert_gaps(gaps: torch.Tensor) -> torch.Tensor:
    """Returns inverses, and 0 for 0."""
    is_zero = gaps == 0
    return torch.where(is_zero, torch.zeros_like(gaps), 1 / torch.where(is_zero, torch.ones_like(gaps), gaps))


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
    row, column = torch.arange(rows).unsqueeze(-1), torch.arange(columns)
    pivots = []
    for k in range(min(rows, columns)):
        pivot = (a.real.abs() + a.imag.abs())[..., k:, k].argmax(-1) + k
        pivots.append(pivot)
        is_pivot = row == pivot[..., None, None]
        a = _map(lambda part: _exchange(part, k, row == k, is_pivot), a)
        end = _map(lambda part: part[..., k:k + 1, k:k + 1], a)
        is_zero = (end.real == 0) & (end.imag == 0)
        end = Pair(torch.where(is_zero, torch.ones_like(end.real), end.real), end.imag)
        factors = divide(_map(lambda part: part[..., k:k + 1], a), end)
        rest = subtract(a, multiply(factors, _map(lambda part: part[..., k:k + 1, :], a)))
        a = Pair(*(torch.where((row > k) & (column >= k), torch.where(column == k, factor, new), part)
                   for part, factor, new in zip(a, factors, rest)))
    if not pivots:
        return None
    made = torch.stack(pivots, -1).to(torch.int32)
    return a, made, find_order(made + 1, rows).to(torch.int32)


def _exchange(part: torch.Tensor, k: int, is_row: torch.Tensor, is_pivot: torch.Tensor) -> torch.Tensor:
    zero = torch.zeros((), dtype=part.dtype)
    found = torch.where(is_pivot, part, zero).sum(-2, keepdim=True)
    return torch.where(is_row, found, torch.where(is_pivot, part[..., k:k + 1, :], part))


def _reflect(a: Pair) -> tuple[Pair, Pair] | None:
    """Returns geqrf: a reflection for each column, and the factors."""
    rows, columns = a.real.shape[-2:]
    if not 1 <= min(rows, columns) <= LONGEST:
        return None
    factors, vectors = [], []
    for k in range(min(rows, columns)):
        factor, v = _make_reflection(_map(lambda part: part[..., k:, k], a), k)
        a = _turn_rows(a, factor, v)
        factors.append(factor)
        vectors.append(v)
    below = [torch.cat(parts, -1).tril(-1) for parts in zip(*vectors)]
    below = [torch.cat([part, part.new_zeros(*part.shape[:-1], columns - part.shape[-1])], -1) for part in below]
    packed = Pair(a.real.triu() + below[0], a.imag.triu(1) + below[1])  # with a real diagonal
    return packed, Pair(*(torch.cat(parts, -2).squeeze(-1) for parts in zip(*factors)))


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
