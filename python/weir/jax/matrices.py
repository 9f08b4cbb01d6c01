"""JAX's factorizations of matrices, as ops of Weir's graph level: `matrix.cholesky` and its kin."""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

from weir.hlo import MATRIX


def _call(
    name: str, results: list[tuple[tuple[int, ...], Any]], *operands: jax.Array, **flags: bool
) -> list[jax.Array]:
    """Calls an op of `matrix` with the flags that are set."""
    target = ".".join([MATRIX + name, *(flag for flag, is_set in flags.items() if is_set)])
    kinds = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in results]
    return list(jax.ffi.ffi_call(target, kinds)(*operands))


def _of_reals(own: Callable) -> Callable:
    """Makes a rule that leaves complex numbers, and types that `matrix` lacks, to JAX's own form."""
    def decorate(rule: Callable) -> Callable:
        @functools.wraps(rule)
        def call(*operands: jax.Array, **parameters: Any) -> Any:
            if operands[0].dtype in (jnp.float32, jnp.float64):
                return rule(*operands, **parameters)
            return own(*operands, **parameters)

        return call

    return decorate


def _transpose(x: jax.Array) -> jax.Array:
    return jnp.swapaxes(x, -1, -2)


@_of_reals(lax.linalg.cholesky_p.bind)
def cholesky(a: jax.Array) -> jax.Array:
    """All of a matrix that is not positive definite is NaN, as in JAX."""
    [made] = _call("cholesky", [(a.shape, a.dtype)], a)
    ends = lax.stop_gradient(jnp.diagonal(made, axis1=-2, axis2=-1))
    fails = jnp.isnan(ends).any(-1)[..., None, None]
    return jnp.where(fails, jnp.asarray(jnp.nan, a.dtype), made)


@_of_reals(lax.linalg.triangular_solve_p.bind)
def solve_triangular(
    a: jax.Array, b: jax.Array, *, left_side: bool, lower: bool, transpose_a: bool, unit_diagonal: bool, **_: object
) -> jax.Array:
    right = b if left_side else _transpose(b)
    [made] = _call("triangular_solve", [(right.shape, right.dtype)], a, right, upper=not lower,
                   transposed=transpose_a == left_side, unit_diagonal=unit_diagonal)
    return made if left_side else _transpose(made)


@_of_reals(lax.linalg.lu_p.bind)
def factor_lu(a: jax.Array, **_: object) -> list[jax.Array]:
    *batch, rows, columns = a.shape
    return _call("lu", [(a.shape, a.dtype), ((*batch, min(rows, columns)), jnp.int32), ((*batch, rows), jnp.int32)], a)


def find_order(pivots: jax.Array, *, permutation_size: int) -> jax.Array:
    """Returns the permutation that exchanges of rows make: a product of as many, whose neighbours are multiplied until
    one is left."""
    place = jnp.arange(permutation_size, dtype=jnp.int32)
    step = jnp.arange(pivots.shape[-1], dtype=jnp.int32)[:, None]
    pivot = pivots[..., None]
    steps = jnp.where(place == step, pivot, jnp.where(place == pivot, step, place))
    if not steps.shape[-2]:
        return jnp.broadcast_to(place, (*pivots.shape[:-1], permutation_size))
    while (count := steps.shape[-2]) > 1:
        pairs = jnp.take_along_axis(steps[..., : count - 1 : 2, :], steps[..., 1:count:2, :], -1, mode="clip")
        steps = jnp.concatenate([pairs, steps[..., count - 1 :, :]], -2) if count % 2 else pairs
    return steps[..., 0, :]


@_of_reals(lax.linalg.qr_p.bind)
def factor_qr(a: jax.Array, *, full_matrices: bool, pivoting: bool, use_magma: Any) -> list[jax.Array]:
    if pivoting:
        return list(lax.linalg.qr_p.bind(a, full_matrices=full_matrices, pivoting=pivoting, use_magma=use_magma))
    *batch, rows, columns = a.shape
    count = rows if full_matrices else min(rows, columns)
    return _call("qr", [((*batch, rows, count), a.dtype), ((*batch, count, columns), a.dtype)], a)


@_of_reals(lax.linalg.householder_product)
def multiply_reflections(packed: jax.Array, factors: jax.Array) -> jax.Array:
    return _call("householder_product", [(packed.shape, packed.dtype)], packed, factors)[0]


@_of_reals(lax.linalg.eigh_p.bind)
def find_eigenvalues(
    a: jax.Array, *, lower: bool, subset_by_index: tuple[int, int] | None = None, **_: object
) -> list[jax.Array]:
    values, vectors = _call("eigh", [(a.shape[:-1], a.dtype), (a.shape, a.dtype)], a, upper=not lower)
    start, end = subset_by_index or (0, a.shape[-1])
    return [vectors[..., start:end], values[..., start:end]]


@_of_reals(lax.linalg.svd_p.bind)
def find_singular_values(
    a: jax.Array, *, full_matrices: bool, compute_uv: bool, subset_by_index: tuple[int, int] | None = None, **_: object
) -> list[jax.Array]:
    *batch, rows, columns = a.shape
    count = min(rows, columns)
    completes = full_matrices and compute_uv
    u, values, vt = _call(
        "svd", [((*batch, rows, rows if completes else count), a.dtype), ((*batch, count), a.dtype),
                ((*batch, columns if completes else count, columns), a.dtype)], a)
    start, end = subset_by_index or (0, count)
    if (start, end) != (0, count):
        u, values, vt = u[..., start:end], values[..., start:end], vt[..., start:end, :]
    return [values, u, vt] if compute_uv else [values]


RULES: dict[str, Callable] = {
    "cholesky": cholesky,
    "triangular_solve": solve_triangular,
    "lu": factor_lu,
    "lu_pivots_to_permutation": find_order,
    "qr": factor_qr,
    "householder_product": multiply_reflections,
    "eigh": find_eigenvalues,
    "svd": find_singular_values,
}
