"""Factorizations of matrices and equations, as ops of Weir's graph level: `matrix.cholesky` and its kin.

The last two dimensions of an operand are rows and columns. Where eager PyTorch raises an error about values, since a
matrix is singular or not positive definite, a result has NaNs or infinities, and the `info` of `_ex` operators is
PyTorch's.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_impls import op_implementations_dict

from weir.graphs import ExportError
from weir.torch.operators import stop_gradient

aten = torch.ops.aten

_library = torch.library.Library("weir", "FRAGMENT")


def _define(schema: str, compute: Callable) -> torch._ops.OpOverload:
    """Returns an operator that passes through torch-mlir unknown. Flags are integers, as `weir.holes` reads them."""
    _library.define(schema)
    name = schema.partition("(")[0]
    _library.impl(name, compute, "CompositeExplicitAutograd")
    return getattr(torch.ops.weir, name).default


def _compute_lu(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    lu, pivots = torch.linalg.lu_factor_ex(a)[:2]
    if not a.shape[-2]:
        return lu, pivots, pivots.new_zeros(a.shape[:-1])
    permutation = torch.lu_unpack(lu, pivots, unpack_data=False)[0].argmax(-2)
    return lu, pivots - 1, permutation.to(torch.int32)


_cholesky = _define("cholesky(Tensor a) -> Tensor", lambda a: torch.linalg.cholesky_ex(a)[0])
_triangular_solve = _define(
    "triangular_solve(Tensor a, Tensor b, int upper, int transposed, int unit_diagonal) -> Tensor",
    lambda a, b, upper, transposed, unit_diagonal: torch.linalg.solve_triangular(
        a.mT if transposed else a, b, upper=bool(upper) != bool(transposed), unitriangular=bool(unit_diagonal)))
_solve = _define("solve(Tensor a, Tensor b, int transposed) -> Tensor",
                 lambda a, b, transposed: torch.linalg.solve_ex(a.mT if transposed else a, b)[0])
_lu = _define("lu(Tensor a) -> (Tensor, Tensor, Tensor)", _compute_lu)
_householder = _define("householder(Tensor a) -> (Tensor, Tensor)", lambda a: torch.geqrf(a))
_qr = _define("qr(Tensor a, int is_complete) -> (Tensor, Tensor)",
              lambda a, is_complete: torch.linalg.qr(a, "complete" if is_complete else "reduced"))
_eigh = _define("eigh(Tensor a, int upper) -> (Tensor, Tensor)",
                lambda a, upper: torch.linalg.eigh(a, "U" if upper else "L"))
_svd = _define("svd(Tensor a, int is_complete) -> (Tensor, Tensor, Tensor)",
               lambda a, is_complete: torch.linalg.svd(a, bool(is_complete)))

torch.library.register_fake(
    "weir::householder", lambda a: (torch.empty_like(a), a.new_empty(*a.shape[:-2], min(a.shape[-2:]))), lib=_library)
OPERATORS = (_cholesky, _triangular_solve, _solve, _lu, _householder, _qr, _eigh, _svd)


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Drops the checks whether matrices have factorizations while a graph is decomposed: a kernel cannot stop."""
    effect = torch._library.simple_registry.singleton.find("aten::_linalg_check_errors").effect
    before = effect.effect
    effect.register(None)
    try:
        yield
    finally:
        effect.register(before)


def _identity(a: torch.Tensor, rows: int | None = None, columns: int | None = None) -> torch.Tensor:
    """Returns identities with the batch and type of `a`."""
    rows = a.shape[-2] if rows is None else rows
    one = torch.eye(rows, a.shape[-1] if columns is None else columns, dtype=a.dtype, device=a.device)
    return one.expand(*a.shape[:-2], *one.shape)


def _spread(*operands: torch.Tensor) -> list[torch.Tensor]:
    """Returns the operands with one batch for all."""
    batch = torch.broadcast_shapes(*(each.shape[:-2] for each in operands))
    return [each.expand(*batch, *each.shape[-2:]) for each in operands]


def _find_first(is_it: torch.Tensor) -> torch.Tensor:
    """Returns the number of the first flag of each row that is set, counted from 1, or 0."""
    size = is_it.shape[-1]
    if not size:
        return torch.zeros(is_it.shape[:-1], dtype=torch.int32, device=is_it.device)
    place = torch.arange(1, size + 1, device=is_it.device)
    first = torch.where(is_it, place, torch.full((), size + 1, dtype=torch.int64)).amin(-1)
    return torch.where(first > size, torch.zeros((), dtype=torch.int64), first).to(torch.int32)


# Cholesky


def _factor_cholesky(a: torch.Tensor, upper: bool = False) -> torch.Tensor:
    made = _cholesky(a.mH if upper else a)
    return made.mH if upper else made


def _cholesky_ex(
    a: torch.Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    made = _factor_cholesky(a, upper)
    ends = made.diagonal(0, -2, -1)
    return made, _find_first(ends != ends)


def _cholesky_solve(b: torch.Tensor, factor: torch.Tensor, upper: bool = False) -> torch.Tensor:
    factor, b = _spread(factor, b)
    other = factor.conj()
    inner = _triangular_solve(other if upper else factor, b, int(upper), int(upper), 0)
    return _triangular_solve(factor if upper else other, inner, int(upper), int(not upper), 0)


def _cholesky_inverse(factor: torch.Tensor, upper: bool = False) -> torch.Tensor:
    return _cholesky_solve(_identity(factor), factor, upper) if factor.numel() else factor.clone()


# Equations


def _is_vector(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether the right side of an equation is one column for each matrix, without its dimension."""
    return b.dim() == 1 or (a.dim() - 1 == b.dim() and b.shape == a.shape[:-1])


def _solve_triangular(
    a: torch.Tensor, b: torch.Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> torch.Tensor:
    a, b = _spread(a, b)
    if left:
        return _triangular_solve(a, b, int(upper), 0, int(unitriangular))
    return _triangular_solve(a, b.mT, int(upper), 1, int(unitriangular)).mT


def _old_triangular_solve(
    b: torch.Tensor, a: torch.Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = _spread(a, b)
    return _triangular_solve(a, b, int(upper), int(transpose), int(unitriangular)), a.clone()


def _solve_ex(
    a: torch.Tensor, b: torch.Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    is_vector = _is_vector(a, b)
    factors, pivots, info = _lu_factor_ex(a)
    wide, right = _spread(a, b.unsqueeze(-1) if is_vector else b)
    made = _solve(wide, right, 0) if left or is_vector else _solve(wide, right.mT, 1).mT
    return made.squeeze(-1) if is_vector else made, factors, pivots, info


def _inv_ex(a: torch.Tensor, *, check_errors: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return _solve(a, _identity(a), 0) if a.numel() else a.clone(), _lu_factor_ex(a)[2]


# L U


def _check_pivoting(pivot: bool) -> None:
    if not pivot:
        raise ExportError("LU without exchanges of rows (pivot=False) has no form here; leave the option out")


def _lu_factor_ex(
    a: torch.Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    _check_pivoting(pivot)
    lu, pivots, _ = _lu(a)
    return lu, pivots + 1, _find_first(lu.diagonal(0, -2, -1) == 0)


def _unpack(lu: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    size = min(lu.shape[-2:])
    return lu[..., :size].tril(-1) + _identity(lu, lu.shape[-2], size), lu[..., :size, :].triu()


def _make_permutation(order: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns P of A = P L U."""
    place = torch.arange(order.shape[-1], device=order.device)
    return (order.unsqueeze(-2) == place.unsqueeze(-1)).to(dtype)


def _factor_lu(a: torch.Tensor, *, pivot: bool = True) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    _check_pivoting(pivot)
    lu, _, order = _lu(a)
    return (_make_permutation(order, a.dtype), *_unpack(lu))


def find_order(pivots: torch.Tensor, rows: int) -> torch.Tensor:
    """Returns the row of A that each row of L U is, from the exchanges: a product of as many permutations.

    Each is a row of numbers; neighbours are multiplied until one is left.
    """
    place = torch.arange(rows, device=pivots.device)
    step = torch.arange(pivots.shape[-1], device=pivots.device).unsqueeze(-1)
    pivot = (pivots.to(torch.int64) - 1).unsqueeze(-1)
    steps = torch.where(place == step, pivot, torch.where(place == pivot, step, place))
    if not steps.shape[-2]:
        return place.expand(*pivots.shape[:-1], rows)
    while (count := steps.shape[-2]) > 1:
        last = [steps[..., count - 1 :, :]] if count % 2 else []
        pairs = steps[..., : count - 1 :2, :].gather(-1, steps[..., 1:count:2, :])
        steps = torch.cat([pairs, *last], -2)
    return steps.squeeze(-2)


def _lu_unpack(
    lu: torch.Tensor, pivots: torch.Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    none = lu.new_zeros(0)
    lower, upper = _unpack(lu) if unpack_data else (none, none)
    return _make_permutation(find_order(pivots, lu.shape[-2]), lu.dtype) if unpack_pivots else none, lower, upper


def _lu_solve(
    lu: torch.Tensor, pivots: torch.Tensor, b: torch.Tensor, *, left: bool = True, adjoint: bool = False
) -> torch.Tensor:
    if not left:
        return _lu_solve(lu, pivots, b.mH, adjoint=not adjoint).mH
    lu, b = _spread(lu, b)
    order = find_order(pivots, lu.shape[-1]).expand(lu.shape[:-1])
    if adjoint:  # the row of a row is asked for
        place = torch.arange(lu.shape[-1], device=lu.device)
        is_its = order.unsqueeze(-2) == place.unsqueeze(-1)
        order = torch.where(is_its, place, torch.zeros((), dtype=torch.int64)).sum(-1)
        lu = lu.conj()
        made = _triangular_solve(lu, _triangular_solve(lu, b, 1, 1, 0), 0, 1, 1)
        return made.gather(-2, order.unsqueeze(-1).expand(b.shape))
    made = b.gather(-2, order.unsqueeze(-1).expand(b.shape))
    return _triangular_solve(lu, _triangular_solve(lu, made, 0, 0, 1), 1, 0, 0)


def _find_sign(pivots: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    place = torch.arange(pivots.shape[-1], device=pivots.device)
    return (1 - 2 * ((pivots != place).sum(-1) % 2)).to(dtype)


def _det(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    lu, pivots, _ = _lu(a)
    if not a.shape[-1]:
        return a.new_ones(a.shape[:-2]), lu, pivots
    return lu.diagonal(0, -2, -1).prod(-1) * _find_sign(pivots, a.dtype), lu, pivots + 1


def _slogdet(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    lu, pivots, _ = _lu(a)
    if not a.shape[-1]:
        return a.new_ones(a.shape[:-2]), a.real.new_zeros(a.shape[:-2]), lu, pivots
    ends = lu.diagonal(0, -2, -1)
    sign = ends.sgn().prod(-1) * _find_sign(pivots, a.dtype)
    return sign, ends.abs().log().sum(-1), lu, pivots + 1


# Q R


def _reduce_qr(a: torch.Tensor, is_complete: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    if not a.is_complex():
        return _qr(a, int(is_complete))
    packed, factors = _householder(a)
    rows, columns = a.shape[-2:]
    size = rows if is_complete else min(rows, columns)
    padded = torch.cat([packed, packed.new_zeros(*packed.shape[:-1], max(size - columns, 0))], -1)[..., :size]
    return _householder_product(padded, factors), packed[..., :size, :].triu()


def _factor_qr(a: torch.Tensor, mode: str = "reduced") -> tuple[torch.Tensor, torch.Tensor]:
    q, r = _reduce_qr(a, mode == "complete")
    return (a.new_zeros(0), r) if mode == "r" else (q, r)


def _get_reflections(packed: torch.Tensor, factors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns V, and M so that the product of the reflections is 1 - V M^-1 diag(factors) V^H. M is upper triangular,
    with a diagonal of 1."""
    size = factors.shape[-1]
    v = packed[..., :size].tril(-1) + _identity(packed, packed.shape[-2], size)
    return v, factors.unsqueeze(-1) * (v.mH @ v).triu(1)


def _householder_product(packed: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    columns = packed.shape[-1]
    one = _identity(packed)
    if not factors.shape[-1]:
        return one.clone()
    v, m = _get_reflections(packed, factors)
    return one - v @ _triangular_solve(m, factors.unsqueeze(-1) * v[..., :columns, :].mH, 1, 0, 1)


def _ormqr(
    packed: torch.Tensor, factors: torch.Tensor, other: torch.Tensor, left: bool = True, transpose: bool = False
) -> torch.Tensor:
    if not left:
        return _ormqr(packed, factors, other.mH, True, not transpose).mH
    if not factors.shape[-1]:
        return other.clone()
    v, m = _get_reflections(packed, factors)
    if transpose:
        return other - v @ (factors.conj().unsqueeze(-1) * _triangular_solve(m.conj(), v.mH @ other, 1, 1, 1))
    return other - v @ _triangular_solve(m, factors.unsqueeze(-1) * (v.mH @ other), 1, 0, 1)


# Least squares


def _lstsq(
    a: torch.Tensor, b: torch.Tensor, rcond: float | None = None, *, driver: str | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Solves by QR, for matrices of full rank. Wide ones give the shortest solution."""
    if driver in ("gelsd", "gelss"):
        raise ExportError(f"torch.linalg.lstsq with driver={driver!r} has no form here: its solutions are of matrices "
                          "without full rank, too; leave the driver out, or multiply by torch.linalg.pinv")
    rows, columns = a.shape[-2:]
    a, right = _spread(a, b.unsqueeze(-1) if _is_vector(a, b) else b)
    if rows >= columns:
        q, r = _reduce_qr(a)
        made = _triangular_solve(r, q.mH @ right, 1, 0, 0)
    else:
        q, r = _reduce_qr(a.mH)
        made = q @ _triangular_solve(r.conj(), right, 1, 1, 0)
    rank = torch.full([0] if driver == "gels" else a.shape[:-2], min(rows, columns), dtype=torch.int64)
    has_residuals = driver == "gels" and rows > columns  # as LAPACK's
    residuals = ((a @ made - right).abs() ** 2).sum(-2) if has_residuals else a.real.new_zeros(0)
    return made.squeeze(-1) if _is_vector(a, b) else made, residuals, rank, a.real.new_zeros(0)


def _fake_lstsq(mode: Any, function: Any, *arguments: Any, **named: Any) -> tuple[torch.Tensor, ...]:
    with mode:
        return _lstsq(*arguments, **named)


# PyTorch traces no lstsq: shapes of its residuals depend on ranks.
op_implementations_dict.setdefault(aten.linalg_lstsq.default, _fake_lstsq)


# Eigenvalues and singular values


def _find_eigenvalues(a: torch.Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    values, vectors = _eigh(a, int(UPLO.upper() == "U"))
    return values, vectors if compute_v else a.new_zeros(0)


def _find_singular_values(
    a: torch.Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    u, values, vh = _svd(a, int(full_matrices and compute_uv))
    return (u, values, vh) if compute_uv else (a.new_zeros(0), values, a.new_zeros(0))


def _pinv(
    a: torch.Tensor, *, atol: torch.Tensor | float | None = None, rtol: torch.Tensor | float | None = None,
    hermitian: bool = False
) -> torch.Tensor:
    if not a.numel():
        return a.mH.clone()
    start = stop_gradient(a)
    made = stop_gradient(_compute_pinv(start, atol, rtol, hermitian))
    # The added value is 0, and its gradient is that of a pseudoinverse, whatever the rank (Golub and Pereyra, 1973).
    change = a - start
    turned, wide = change.mH, start @ made
    return (made - made @ change @ made + made @ made.mH @ (turned - turned @ wide)
            + (turned - made @ start @ turned) @ made.mH @ made)


def _compute_pinv(
    a: torch.Tensor, atol: torch.Tensor | float | None, rtol: torch.Tensor | float | None, hermitian: bool,
    size: int | None = None
) -> torch.Tensor:
    """`size` is the larger one of the matrix, of which the default tolerance is a multiple."""
    size = size or max(a.shape[-2:])
    if a.is_complex():  # the real matrix [[Re, -Im], [Im, Re]] of the result is the pseudoinverse of that of `a`
        rows, columns = a.shape[-2:]
        if hermitian:
            lower = a.tril(-1)
            a = lower + lower.mH + torch.diag_embed(a.diagonal(0, -2, -1).real).to(a.dtype)
        wide = torch.cat([torch.cat([a.real, -a.imag], -1), torch.cat([a.imag, a.real], -1)], -2)
        made = _compute_pinv(wide, atol, rtol, hermitian, size)[..., :rows]
        return torch.complex(made[..., :columns, :], made[..., columns:, :])
    if hermitian:
        values, right = _eigh(a, 0)
        left, sizes = right, values.abs()
    else:
        left, values, vh = _svd(a, 0)
        sizes, right = values, vh.mT

    def widen(limit: torch.Tensor | float) -> torch.Tensor | float:
        return limit.unsqueeze(-1).to(a.dtype) if isinstance(limit, torch.Tensor) else limit

    default = torch.finfo(a.dtype).eps * size
    relative = (default if atol is None else 0.0) if rtol is None else widen(rtol)
    if rtol is None and isinstance(atol, torch.Tensor):
        relative = torch.where(widen(atol) > 0, torch.zeros((), dtype=a.dtype), torch.full((), default, dtype=a.dtype))
    elif rtol is None and atol is not None and atol <= 0:
        relative = default
    limit = relative * sizes.amax(-1, keepdim=True)
    if atol is not None:
        least = widen(atol)
        limit = torch.maximum(limit, least if isinstance(least, torch.Tensor) else torch.full_like(limit, least))
    inverse = torch.where(sizes > limit, 1 / values, torch.zeros((), dtype=a.dtype))
    return (right * inverse.unsqueeze(-2)) @ left.mT


def _norm(
    x: torch.Tensor, ord: float | str | None = None, dim: list[int] | None = None, keepdim: bool = False, *,
    dtype: torch.dtype | None = None
) -> torch.Tensor:
    """torch.linalg.norm: of matrices if there is an order, and two dimensions."""
    dims = list(range(x.dim())) if dim is None else list(dim)
    if ord is not None and len(dims) == 2:
        return torch.linalg.matrix_norm(x, ord, dims, keepdim, dtype=dtype)
    return torch.linalg.vector_norm(x, 2 if ord is None else ord, None if dim is None else dims, keepdim, dtype=dtype)


TABLE = {
    aten.linalg_norm.default: _norm,
    aten.linalg_norm.ord_str: _norm,
    aten._linalg_check_errors.default: lambda info, api_name, *, is_matrix: None,
    aten.linalg_lstsq.default: _lstsq,
    aten.linalg_cholesky_ex.default: _cholesky_ex,
    aten.cholesky.default: _factor_cholesky,
    aten.cholesky_solve.default: _cholesky_solve,
    aten.cholesky_inverse.default: _cholesky_inverse,
    aten.linalg_solve_triangular.default: _solve_triangular,
    aten.triangular_solve.default: _old_triangular_solve,
    aten._linalg_solve_ex.default: _solve_ex,
    aten.linalg_inv_ex.default: _inv_ex,
    aten.linalg_lu_factor_ex.default: _lu_factor_ex,
    aten.linalg_lu.default: _factor_lu,
    aten.lu_unpack.default: _lu_unpack,
    aten.linalg_lu_solve.default: _lu_solve,
    aten._linalg_det.default: _det,
    aten._linalg_slogdet.default: _slogdet,
    aten.linalg_slogdet.default: lambda a: _slogdet(a)[:2],
    aten.linalg_det.default: lambda a: _det(a)[0],
    aten.linalg_qr.default: _factor_qr,
    aten.geqrf.default: lambda a: _householder(a),
    aten.linalg_householder_product.default: _householder_product,
    aten.ormqr.default: _ormqr,
    aten._linalg_eigh.default: _find_eigenvalues,
    aten._linalg_svd.default: _find_singular_values,
    aten.linalg_pinv.atol_rtol_tensor: _pinv,
    aten.linalg_pinv.atol_rtol_float: _pinv,
}
