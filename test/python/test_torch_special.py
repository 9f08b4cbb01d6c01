"""Special functions of weir.torch beside PyTorch's in f64, with their gradients, on both sides of every branch."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import weir  # noqa: E402
import weir.torch  # noqa: E402

FUNCTIONS = {
    "lgamma": torch.lgamma, "digamma": torch.digamma, "polygamma": lambda x: torch.polygamma(3, x.abs() + 0.1),
    "erfc": torch.erfc, "erfcx": lambda x: torch.special.erfcx(x / 2), "erfinv": lambda x: torch.erfinv(x / 12.0),
    "i0e": torch.special.i0e, "i1": torch.special.i1, "copysign": lambda x: torch.copysign(x * x + 1, x),
}
EDGES = [0.0, -0.0, 1, 2, 3, -1, -2, float("inf"), -float("inf"), float("nan"), 1e-30, 1e10, 30.5, -30.5]


class Functions(torch.nn.Module):
    def __init__(self, x):
        super().__init__()
        self.x = torch.nn.Parameter(x)

    def forward(self, edges):
        return [function(self.x) for function in FUNCTIONS.values()] + [
            torch.lgamma(edges), torch.digamma(edges), torch.erfc(edges), torch.erfinv(edges), torch.special.i1e(edges),
            torch.signbit(edges), torch.angle(edges)]


def _compare(found, expected, tolerance, name):
    expected = expected.to(found.dtype)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True,
                               msg=lambda said: f"{name}: {said}")


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 3e-6), (torch.float64, 3e-13)])
def test_special_functions(dtype, tolerance):
    x = torch.tensor([-11.3, -7.6, -2.4, -0.7, -0.2, 0.1, 0.45, 0.55, 1.2, 1.55, 2.6, 5.1, 7.9, 8.6, 11.9], dtype=dtype)
    edges = torch.tensor(EDGES, dtype=dtype)
    module = weir.torch.Module(Functions(x), example=(edges,), device="cpu")
    reference = Functions(x.double())
    found, expected = module(edges), reference(edges.double())
    for name, one, other in zip([*FUNCTIONS, "lgamma", "digamma", "erfc", "erfinv", "i1e", "signbit", "angle"], found,
                                expected, strict=True):
        _compare(one.detach(), other.detach(), tolerance, name)
    parameter = next(module.parameters())
    for name, one, other in zip(FUNCTIONS, found, expected, strict=False):
        parameter.grad = reference.x.grad = None
        one.sum().backward(retain_graph=True)
        other.sum().backward(retain_graph=True)
        # PyTorch's trigamma is itself exact to 1e-9 in f64.
        _compare(parameter.grad, reference.x.grad, max(10 * tolerance, 2e-9), f"gradient of {name}")
