"""Factorizations of matrices by weir.torch and weir.jax beside PyTorch's and JAX's, with gradients.

Vectors are compared by what does not depend on their signs.
"""

import numpy
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import weir  # noqa: E402
import weir.torch  # noqa: E402

linalg = torch.linalg


def _join(vectors, values):
    """Returns V f(diag) V^T, which no sign or basis of V changes."""
    return vectors * torch.sin(values).unsqueeze(-2) @ vectors.mT


def _factor(a, b, tall):
    """Returns results that have gradients. `a`: any squares, `b`: right sides."""
    one = torch.eye(a.shape[-1], dtype=a.dtype)
    positive = a @ a.mT + one
    lower = linalg.cholesky(positive)
    values, vectors = linalg.eigh(positive, UPLO="U")
    u, s, vh = linalg.svd(tall, full_matrices=False)
    wide_u, wide_s, wide_vh = linalg.svd(tall.mT, full_matrices=False)
    q, r = linalg.qr(tall)
    wide_q, wide_r = linalg.qr(tall.mT)
    p, left, upper = linalg.lu(a)
    return [
        lower, linalg.cholesky(positive, upper=True), torch.cholesky_solve(b, lower), torch.cholesky_inverse(lower),
        linalg.solve(a, b), linalg.solve(a, b.mT, left=False), linalg.inv(a),
        linalg.solve_triangular(lower, b, upper=False),
        linalg.det(a), linalg.slogdet(a).logabsdet, p @ left, upper,
        linalg.lu_solve(*linalg.lu_factor(a), b, adjoint=True),
        q, r, wide_q, wide_r, values, _join(vectors, values), s, u * s.sin().unsqueeze(-2) @ vh,
        wide_u * wide_s.sin().unsqueeze(-2) @ wide_vh, linalg.pinv(tall),
        *linalg.lstsq(tall, tall[..., :1].sin(), driver="gels")[:2], linalg.eigh(a).eigenvectors.abs() @ b,
        linalg.matrix_norm(tall, "nuc"), linalg.cond(positive)]


class Factors(torch.nn.Module):
    def __init__(self, dtype):
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        shapes = [(), (2,), (3, 1)]
        self.values = torch.nn.ParameterList(
            torch.randn(*shapes[i % 3], *size, generator=draw, dtype=torch.float64).to(dtype)
            for i, n in enumerate((1, 2, 3, 7)) for size in ((n, n), (n, 2), (n + 2, n)))

    def forward(self, scale):
        squares, right, tall = (list(self.values)[i::3] for i in range(3))
        return [made for a, b, t in zip(squares, right, tall) for made in _factor(a * scale, b, t)]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 2e-3)])
def test_values_and_gradients(dtype, tolerance):
    reference, scale = Factors(torch.float64), torch.ones((), dtype=dtype)
    module = weir.torch.Module(Factors(dtype), example=(scale,), device="cpu")
    found, expected = module(scale), reference(scale.double())
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        torch.testing.assert_close(one.double(), other, rtol=tolerance, atol=tolerance,
                                   msg=lambda said, i=i: f"result {i}: {said}")
    if dtype != torch.float64:
        return
    for results in (found, expected):
        sum(result.cos().sum() for result in results).backward()
    found = {name.rpartition(".")[2]: parameter.grad for name, parameter in module.named_parameters()}
    for name, parameter in reference.values.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=1e-7, atol=1e-7,
                                   msg=lambda said, name=name: f"gradient of {name}: {said}")


class Edges(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.same = torch.nn.Parameter(2 * torch.eye(3, dtype=torch.float64))
        self.flat = torch.nn.Parameter(torch.tensor([[1.0, 2], [2, 4]], dtype=torch.float64))

    def forward(self, singular, negative, empty, none, graded):
        values, vectors = linalg.eigh(self.same)
        u, s, vh = linalg.svd(singular)
        packed, factors = torch.geqrf(graded.detach())
        lu, pivots = linalg.lu_factor(graded)
        return [
            # Vectors of equal values are not determined, but A squared is.
            vectors * (values * values).unsqueeze(-2) @ vectors.mT, linalg.det(self.flat),
            linalg.inv_ex(singular).info, linalg.cholesky_ex(negative).info, linalg.lu_factor_ex(singular).info,
            linalg.det(singular), linalg.matrix_rank(singular), s, u * s.unsqueeze(-2) @ vh, u @ u.mT,
            linalg.pinv(singular),
            linalg.inv(empty), linalg.svdvals(none), linalg.det(none), linalg.eigvalsh(empty), linalg.cholesky(none),
            linalg.svdvals(graded), *torch.lu_unpack(lu, pivots), pivots, linalg.householder_product(packed, factors),
            torch.ormqr(packed, factors, graded, transpose=True)]


def test_edges():
    singular = torch.tensor([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]], dtype=torch.float64)
    negative = torch.eye(3, dtype=torch.float64).repeat(3, 1, 1)
    negative[1, 1, 1], negative[2, 0, 0] = -1, 0
    draw = numpy.random.default_rng(0)
    graded = torch.from_numpy(draw.standard_normal((17, 17)) * numpy.logspace(0, -9, 17))
    empty, none = (torch.zeros(size, dtype=torch.float64) for size in ((0, 3, 3), (2, 0, 0)))
    inputs = (singular, negative, empty, none, graded)
    reference = Edges()
    module = weir.torch.Module(Edges(), example=inputs, device="cpu")
    found, expected = module(*inputs), reference(*inputs)
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one.dtype == other.dtype and one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-7, msg=lambda said, i=i: f"result {i}: {said}")
    (found[0].sum() + found[1]).backward()
    same, flat = module.parameters()
    # Rotations among equal vectors are left out.
    torch.testing.assert_close(same.grad, 4 * torch.eye(3, dtype=torch.float64))
    assert (flat.grad == 0).all()


@pytest.mark.parametrize(("name", "function", "said"), [
    ("complete", lambda a: linalg.qr(a, mode="complete").Q, "q has more columns than a"),
    ("pivot", lambda a: linalg.lu_factor(a, pivot=False).LU, "pivot=False"),
    ("driver", lambda a: linalg.lstsq(a, a, driver="gelsd").solution, "gelsd"),
])
def test_refusals(name, function, said):
    class Refused(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Parameter(torch.ones(4, 2, dtype=torch.float64))

        def forward(self, x):
            return function(self.a * x)

    with pytest.raises(Exception, match=said):
        module = weir.torch.Module(Refused(), example=(torch.ones((), dtype=torch.float64),), device="cpu")
        module(torch.ones((), dtype=torch.float64)).sum().backward()


def test_jax():
    jax = pytest.importorskip("jax")
    import weir.jax
    jnp = jax.numpy

    def factor(a, b):
        positive = a @ jnp.swapaxes(a, -1, -2) + jnp.eye(a.shape[-1])
        lower = jnp.linalg.cholesky(positive)
        q, r = jnp.linalg.qr(b)
        values, vectors = jnp.linalg.eigh(positive)
        u, s, vt = jnp.linalg.svd(b, full_matrices=False)
        return [lower, q, r, values, vectors * jnp.sin(values)[..., None, :] @ jnp.swapaxes(vectors, -1, -2), s,
                u * jnp.sin(s)[..., None, :] @ vt, jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a),
                jnp.linalg.slogdet(a)[1], jax.scipy.linalg.solve_triangular(lower, b, lower=True)]

    def add(a, b):
        return sum(jnp.sum(jnp.cos(x)) for x in factor(a, b))

    def compute(a, b):
        return factor(a, b), jax.grad(add, argnums=(0, 1))(a, b), jnp.linalg.cholesky(a - 9 * jnp.eye(3))

    draw = numpy.random.default_rng(0)
    with jax.enable_x64(True):
        a, b = draw.standard_normal((2, 3, 3)), draw.standard_normal((2, 3, 2))
        found, expected = weir.jax.compile(compute, a, b)(a, b), compute(a, b)
        leaves = [jax.tree_util.tree_leaves(each) for each in (found, expected)]
        for one, other in zip(*leaves, strict=True):
            numpy.testing.assert_allclose(numpy.asarray(one), numpy.asarray(other), rtol=1e-9, atol=1e-9)
        # Weir's own gradient, of what JAX solves with a matrix that has none.
        step = weir.jax.compile_step(lambda weights, b: add(weights["a"], b), {"a": a}, b,
                                     optimizer=weir.SGD(learning_rate=1.0), device="cpu")
        numpy.testing.assert_allclose(step(b), add(a, b), rtol=1e-9)
        numpy.testing.assert_allclose(step.params["a"], a - expected[1][0], rtol=1e-8, atol=1e-8)
