"""Operations of JAX at their edges, against JAX's own: empty arrays, keys of rows, approximate maxima."""

import numpy
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from jax import lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

import weir.jax  # noqa: E402

RANDOM = numpy.random.default_rng(0)


def compare(function, *arguments):
    with weir.jax.compile(function, *arguments, device="cpu") as program:
        found, expected = program(*arguments), jax.jit(function)(*arguments)
    for name, value in expected.items():
        for one, other in zip(jax.tree.leaves(found[name]), jax.tree.leaves(value), strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape, name
            numpy.testing.assert_allclose(one.numpy(), other, rtol=2e-5, atol=2e-6, err_msg=name)


def test_scans_by_halves():
    x = RANDOM.standard_normal((2, 7)).astype(numpy.float32)
    compare(lambda x: {
        "sum": [lax.associative_scan(jnp.add, x[:, :size], axis=1) for size in (1, 2, 3, 7)],
        "reverse": lax.associative_scan(jnp.maximum, x, axis=1, reverse=True),
        "pair": lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x), axis=1),
        "jacobian": jax.jacfwd(jnp.cumsum)(x[0]), "gradient": jax.grad(lambda x: (lax.cumprod(x, 1) ** 2).sum())(x)}, x)


def test_empty_arrays():
    x = RANDOM.standard_normal((3, 4)).astype(numpy.float32)
    none = numpy.zeros((0,), numpy.int32)
    compare(lambda x, none: {
        "gather": x[none].sum() + x.sum(), "max": x[none].max(initial=2.0), "cummax": lax.cummax(x[:0], 0),
        "pad": lax.pad(x[:, :0], jnp.float32(3), ((0, 0, 0), (1, 2, 0))), "slice": (x[3:], x[:, 4:]),
        "joined": jnp.concatenate([x[:0], x, x[:0]]), "kept": lax.reduce(x, jnp.float32(5), lax.add, ())}, x, none)


def test_functions_at_indices():
    x, i = RANDOM.standard_normal((5, 3)).astype(numpy.float32), numpy.array([4, 0, 4, 9], numpy.int32)
    compare(lambda x, i: {
        "again": x.at[i].apply(jnp.sin), "once": x.at[i[:2]].apply(jnp.cos, unique_indices=True),
        "unique": jnp.unique(jnp.round(x), size=6, fill_value=9), "largest": lax.approx_max_k(x, 2),
        "smallest": lax.approx_min_k(x, 2)}, x, i)


def test_random_numbers_of_a_key_for_each_row():
    compare(lambda key: {
        "rows": jax.vmap(lambda key: jax.random.normal(key, (3,)))(jax.random.split(key, 4)),
        "gamma": jax.random.gamma(key, jnp.array([0.5, 2.0])), "poisson": jax.random.poisson(key, 3.0, (4,))},
        jax.random.PRNGKey(3))
