"""Cumulative operations of long rows, which are written in blocks, through weir.torch and weir.jax."""

import numpy
import pytest

import weir

SIZE = 1501  # elements of a long row, which blocks do not divide
NAN, INF = float("nan"), float("inf")


def make_rows():
    """Returns rows of f64 with what must stay in its place: NaN, infinities, and zeros of products."""
    rows = numpy.random.default_rng(0).standard_normal((3, SIZE))
    rows[1, 1300], rows[2, 100], rows[2, 1400] = NAN, INF, -INF
    factors = 1 + 0.01 * numpy.random.default_rng(1).standard_normal((3, SIZE))
    factors[1, 900], factors[2, [3, 1200]] = 0, 0
    return rows, factors


def test_torch_values_and_gradients():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")
    import weir.torch

    rows, factors = map(torch.from_numpy, make_rows())

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rows, self.finite, self.factors = map(torch.nn.Parameter, (rows[:2], rows[:1], factors))

        def forward(self, whole):
            return (self.rows.cumsum(1), self.factors.cumprod(1), self.finite.logcumsumexp(1), self.rows.T.cummax(0)[0],
                    whole.cumsum(1), whole.logcumsumexp(1), *whole.cummin(1), whole[0].float().cumsum(0))

    model = Model()
    module = weir.torch.Module(model, example=(rows,), device="cpu")
    found, expected = module(rows), model(rows)
    for one, other in zip(found[:-1], expected[:-1], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9, equal_nan=True)
    torch.testing.assert_close(found[-1], expected[-1], rtol=2e-6, atol=2e-5)
    gradients = []
    for results, trained in ((found, module), (expected, model)):
        trained.zero_grad()
        sum((value * torch.linspace(0.5, 1.5, value.numel(), dtype=value.dtype).reshape(value.shape)).sum()
            for value in results[:4]).backward()
        gradients.append({name.rpartition(".")[2]: parameter.grad.clone()
                          for name, parameter in trained.named_parameters()})
    for name in ("rows", "finite", "factors"):
        torch.testing.assert_close(gradients[0][name], gradients[1][name], rtol=1e-8, atol=1e-8, equal_nan=True)


def test_torch_graph_stays_small():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")
    import weir.torch

    class Model(torch.nn.Module):
        def forward(self, x):
            return x.cumsum(0), x.cumprod(0), x.logcumsumexp(0)

    assert len(weir.torch.export(Model(), (torch.ones(200_000),)).text) < 1_000_000


def test_jax_values_and_gradients():
    jax = pytest.importorskip("jax", reason="JAX is not installed: scripts/setup --torch")
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")
    import weir.jax
    from jax import lax

    rows, factors = (each.astype(numpy.float32) for each in make_rows())

    def run(rows, factors, reverse):
        return (lax.cumsum(rows, 1, reverse), lax.cumprod(factors, 1, reverse), lax.cummax(rows, 1, reverse),
                lax.cummin(rows.T, 0, reverse), lax.cumlogsumexp(rows[:2], 1, reverse))

    for reverse in (False, True):
        with weir.jax.compile(run, rows, factors, reverse, static_argnums=2, device="cpu") as program:
            for one, other in zip(program(rows, factors, reverse), run(rows, factors, reverse), strict=True):
                numpy.testing.assert_allclose(one.numpy(), other, rtol=2e-5, atol=2e-4)

    def loss(factors, rows):
        return (lax.cumprod(factors, 1) * rows[:1]).sum() + (lax.cumsum(factors, 1, True) ** 2).mean()

    with weir.jax.compile_step(loss, factors, rows, optimizer=weir.SGD(learning_rate=1.0), device="cpu") as step:
        step(rows)
        expected = jax.grad(loss)(factors, rows)
        numpy.testing.assert_allclose(factors - step.params, expected, rtol=2e-4, atol=2e-3 * abs(expected).max())
