"""Special functions of JAX that torch-mlir does not lower, at their edges, against JAX's own."""

import numpy
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from jax import lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

import weir  # noqa: E402
import weir.jax  # noqa: E402

NAN, INF = numpy.nan, numpy.inf
POINTS = numpy.array([0, -0.0, 0.3, -0.3, 1, -1, 2.5, -2.5, 7.3, 30, 0.999, -0.999, INF, -INF, NAN], numpy.float32)
LARGE, SMALL = (each.reshape(-1) for each in numpy.meshgrid(POINTS[POINTS >= 0], POINTS[POINTS >= 0]))


def test_values_are_jaxs():
    def run(x, a, b, key):
        return {"lgamma": lax.lgamma(x), "digamma": lax.digamma(x), "erf_inv": lax.erf_inv(x), "i1e": lax.bessel_i1e(x),
                "next": lax.nextafter(a, b), "zeta": lax.zeta(a, b), "polygamma": lax.polygamma(jnp.floor(a), b),
                "igamma": lax.igamma(a, b), "narrow": lax.lgamma(x.astype(jnp.bfloat16)).astype(jnp.float32),
                "normal": jax.random.normal(key, (5, 3)), "choice": jax.random.categorical(key, jnp.log(b[:3]))}

    key = jax.random.PRNGKey(3)
    with weir.jax.compile(run, POINTS, LARGE, SMALL, key, device="cpu") as program:
        found, expected = program(POINTS, LARGE, SMALL, key), jax.jit(run)(POINTS, LARGE, SMALL, key)
    for name, value in expected.items():
        tolerance = 1e-2 if name == "narrow" else 2e-4 if name in ("polygamma", "igamma") else 5e-6
        numpy.testing.assert_allclose(found[name].numpy(), value, rtol=tolerance, atol=tolerance, err_msg=name)


def test_gradients_are_jaxs():
    x = numpy.array([0.3, 0.7, 0.05, 0.9, 0.2], numpy.float32)

    def loss(x, y):
        return (lax.lgamma(x * 9) + lax.erf_inv(x) + lax.bessel_i1e(x * 20) + lax.lgamma(-x) * y).sum()

    with weir.jax.compile_step(loss, x, x, optimizer=weir.SGD(learning_rate=1.0), device="cpu") as step:
        step(x)
        numpy.testing.assert_allclose(x - step.params, jax.grad(loss)(x, x), rtol=2e-4, atol=1e-5)
    with weir.jax.compile(jax.grad(loss), x, x, device="cpu") as program:
        numpy.testing.assert_allclose(program(x, x).numpy(), jax.grad(loss)(x, x), rtol=2e-4, atol=1e-5)
