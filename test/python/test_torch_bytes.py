"""Unsigned bytes in PyTorch modules: they wrap, compare and convert as PyTorch's do."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

import weir  # noqa: E402
from weir.graphs import ExportError  # noqa: E402

X, Y = torch.randint(0, 256, (2, 4, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))

FUNCTIONS = {
    "arithmetic": lambda x, y: (x + y, x - y, x * y, -x, ~x, x << 1, x >> 1, x + 300, x.int() + y),
    "values that wrapped": lambda x, y: ((x + y).float(), x * y > 100, (x - y) >> 1, (-x).long()),
    "quotients": lambda x, y: (x // (y | 1), x % (y | 1), x / (y | 1), x ^ 3, x**2, x.long() ** 3, x**2.0),
    "floats": lambda x, y: (x.float() / 255, x * 1.5, x.half(), (x.float() * 0.7).to(torch.uint8)),
    "comparisons": lambda x, y: (x > y, x >= 128, x <= y, (x == y).sum(), torch.where(x > y, x, y), x.bool()),
    "extrema": lambda x, y: (torch.maximum(x, y), x.amin(1), *x.max(1), x.argmax(1), x.clamp(10, 200)),
    "sums": lambda x, y: (x.sum(1), x.prod(1), x.cumsum(1), x.sum(1, dtype=torch.uint8)),
    "sorts": lambda x, y: (*x.sort(dim=1, stable=True), x.topk(3, 1)[0]),
    "places": lambda x, y: (torch.cat([x, y]).flip(0), torch.arange(256.0)[x.long()],
                            torch.zeros_like(x).scatter_reduce(1, (y % 6).long(), x, "amax")),
    "constants": lambda x, y: x + Y,
    "no elements": lambda x, y: (~x[:0], x[:, :0] @ y[:0], x.new_zeros((0, 3)), x[:0].sum(), torch.eye(0, dtype=x.dtype)),
    "signed bytes": lambda x, y: (x.char().T @ y.char(), x.char().max(), y.char().min(), torch.addmm(
        x.char()[:, :4], x.char()[:, :4], y.char()[:, :4], alpha=2, beta=3), torch.nn.functional.conv1d(
            x.char(), y.char().unsqueeze(-1)[:, :4])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    wanted = FUNCTIONS[name](X, Y)
    found = weir.compile(FUNCTIONS[name], (X, Y), device="cpu")(X, Y)
    for one, other in zip(*((part if isinstance(part, tuple) else (part,)) for part in (found, wanted)), strict=True):
        torch.testing.assert_close(one, other)


class Counting(torch.nn.Module):
    """A classifier of images as bytes, which counts its calls in a byte."""

    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(6, 2)
        self.register_buffer("calls", torch.tensor(254, dtype=torch.uint8))

    def forward(self, x):
        self.calls += 1
        return self.line(x.float() / 255)


def test_training_and_state():
    module = Counting()
    loss = lambda output: output.square().mean()  # noqa: E731
    gradient, = torch.autograd.grad(loss(module(X)), [module.line.weight])
    module.calls.fill_(254)
    before = module.line.weight.detach().clone()
    step = weir.compile_step(module, loss, example=(X,), optimizer=weir.SGD(learning_rate=1.0), device="cpu")
    step(X)
    torch.testing.assert_close(before - step.state_dict()["line.weight"], gradient, rtol=1e-4, atol=1e-6)
    for _ in range(2):
        step(X)
    assert step.state_dict()["calls"].item() == 1


def test_loops_are_refused():
    def count(x, y):
        return torch.while_loop(lambda z: (z < 9).all(), lambda z: (z + 1,), (x,))

    with pytest.raises(ExportError, match="(?s)operators without a form on torch.uint8.*while_loop"):
        weir.torch.export(count, (X, Y))


def test_wider_unsigned_integers_are_refused():
    with pytest.raises(ExportError, match="x is torch.uint16, which torch-mlir does not lower; convert it, as by .int()"):
        weir.torch.export(lambda x: x, (X.to(torch.uint16),))
