"""Bessel's functions, zeta, orthogonal polynomials and the like of weir.torch beside PyTorch's."""

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import weir  # noqa: E402
import weir.torch  # noqa: E402

INFINITE, NAN = float("inf"), float("nan")
EDGES = [0.0, -0.0, 1e-30, -1e-30, -1, -2.5, 1e6, INFINITE, -INFINITE, NAN, 700, 750,
         0.3, 1.9, 2.1, 4.9, 7.9, 8.1, -8.1]
# PyTorch's own have an error of 1e-6 between 5 and 8, and below -2.
ROUGH = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "airy_ai"]
NAMES = [*ROUGH, "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
         "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0"]
POLYNOMIALS = [
    "chebyshev_polynomial_t", "shifted_chebyshev_polynomial_v", "hermite_polynomial_h", "hermite_polynomial_he",
    "laguerre_polynomial_l", "legendre_polynomial_p"]


def _compare(found, expected, tolerance, name):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True,
                               msg=lambda said: f"{name}: {said}")


def test_bessel_functions():
    def compute(x):
        return {name: getattr(torch.special, name)(x) for name in NAMES}

    x = torch.tensor(EDGES, dtype=torch.float64)
    found, expected = weir.compile(compute, example=(x,), device="cpu")(x), compute(x)
    for name in NAMES:
        _compare(found[name], expected[name], 2e-6 if name in ROUGH else 3e-15, name)
    # J1 Y0 - J0 Y1 = 2 / (pi x), where no rounding of PyTorch's counts.
    j0, j1, y0, y1 = (found[name][-7:-1] for name in ROUGH[:4])
    _compare(j1 * y0 - j0 * y1, 2 / (math.pi * x[-7:-1]), 1e-14, "Wronskian")


def test_types_and_gradients():
    """f32 and integers; a Bessel function counts as a constant, as in PyTorch."""
    class Functions(torch.nn.Module):
        def __init__(self, p):
            super().__init__()
            self.p = torch.nn.Parameter(p)

        def forward(self, x, i):
            return [
                torch.special.ndtri(self.p), torch.special.log_ndtr(40 * self.p - 20),
                torch.special.zeta(3.0, self.p + 0.01), torch.special.bessel_j0(self.p) * self.p,
                torch.special.airy_ai(x), torch.special.bessel_y1(i), torch.special.erfcx(x)]

    p = torch.tensor([1e-300, 1e-20, 1e-3, 0.2, 0.5, 0.7, 0.95, 1 - 1e-9], dtype=torch.float64)
    x, i = torch.tensor([-3.5, -0.2, 1.5, 2.5, 1e30]), torch.arange(-2, 10)
    module, reference = weir.torch.Module(Functions(p), example=(x, i), device="cpu"), Functions(p)
    found, expected = module(x, i), reference(x, i)
    for k, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one.dtype == other.dtype
        _compare(one.detach(), other.detach(), 1e-13 if k < 3 else 2e-6, k)
    parameter = next(module.parameters())
    for k in range(4):
        parameter.grad = reference.p.grad = None
        found[k].sum().backward(retain_graph=True)
        expected[k].sum().backward(retain_graph=True)
        _compare(parameter.grad, reference.p.grad, 1e-6 if k == 3 else 1e-12, f"gradient of {k}")


def test_zeta_and_quantiles_at_edges():
    cases = [(1, 1), (2, -1.5), (3, -1.5), (4, -2), (2.5, -1.5), (3, 0), (0.5, 1), (INFINITE, 2), (3, INFINITE),
             (3, -INFINITE), (NAN, 1), (1, -1.5), (2, -1000.3), (5, -3.2), (1.1, 1e-3), (9, 9), (50, 0.5)]
    x, q = torch.tensor(cases, dtype=torch.float64).T
    p = torch.tensor([0, 1, -1, 2, NAN, 5e-324], dtype=torch.float64)

    def compute(x, q, p):
        return torch.special.zeta(x, q), torch.special.ndtri(p)

    found, expected = weir.compile(compute, example=(x, q, p), device="cpu")(x, q, p), compute(x, q, p)
    for one, other in zip(found, expected, strict=True):
        _compare(one, other, 1e-13, "edges")


def test_orthogonal_polynomials():
    """Orders as numbers, small and large, and as data."""
    def compute(x, n):
        return [value for name in POLYNOMIALS for function in [getattr(torch.special, name)]
                for value in (function(x, 5), function(x, -2), function(x, 40), function(x, n), function(2.5, n))]

    x = torch.tensor([0, 0.3, 1, -1, -0.7, 2.5, -3, 2, INFINITE, -0.0, 0.5, 0.9, 1.5], dtype=torch.float64)
    n = torch.tensor([0, 1, 2, 3, 10, 7, 2.7, -1, -0.5, NAN, INFINITE, 600, 60], dtype=torch.float64)
    found, expected = weir.compile(compute, example=(x, n), device="cpu")(x, n), compute(x, n)
    for k, (one, other) in enumerate(zip(found, expected, strict=True)):
        _compare(one, other, 1e-11, f"{POLYNOMIALS[k // 5]}, {k % 5}")
