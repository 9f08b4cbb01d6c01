"""Weir inside PyTorch: weir.torch.Module and torch.compile's backend "weir"."""

import copy
import importlib.metadata
import pathlib
import sys
import types
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from test_programs import Convolutional, Transforming, images, tokens  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import weir.torch.modules  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def train(module, data, count=4):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for i in range(count):
        x, y = data(seed=i)
        optimizer.zero_grad()
        loss = functional.cross_entropy(module(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


@pytest.mark.parametrize("make, data", [(Convolutional, images), (Transforming, tokens)])
def test_a_module_trains_with_pytorchs_optimizer(make, data):
    torch.manual_seed(1)
    module = make()
    reference = copy.deepcopy(module)
    ours = weir.torch.Module(module, (data()[0],))
    torch.testing.assert_close(train(ours, data), train(reference, data))
    for name, value in reference.state_dict().items():
        torch.testing.assert_close(module.state_dict()[name], value, rtol=1e-3, atol=1e-5)


def test_gradients_of_inputs_and_of_several_results():
    def compute(x, y, n):
        return x * y, {"sum": (x + y).sum(), "count": n + 1}

    class Computing(nn.Module):
        forward = staticmethod(compute)

    x, y, n = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True), torch.arange(3)
    module = weir.torch.Module(Computing(), (x.detach(), y.detach(), n))
    product, more = module(x, y, n)
    assert torch.equal(more["count"], n + 1)
    (product.sum() + 2 * more["sum"]).backward()
    torch.testing.assert_close(x.grad, y.detach() + 2)
    torch.testing.assert_close(y.grad, x.detach() + 2)
    x.grad = None
    product, _ = module(x, y.detach(), n)
    product[1].backward()  # the other result has no cotangent
    torch.testing.assert_close(x.grad, torch.tensor([0, y[1].item(), 0]))
    with pytest.raises(RuntimeError):  # there is no second derivative
        gradient, = torch.autograd.grad(module(x, y, n)[0].sum(), x, create_graph=True)
        gradient.sum().backward()


def test_dropout_is_drawn_from_pytorchs_generator_and_the_same_in_backward():
    module = weir.torch.Module(nn.Dropout(0.5), (torch.ones(40),))
    x = torch.ones(40, requires_grad=True)
    torch.manual_seed(2)
    first, second = module(x), module(x)
    torch.manual_seed(2)
    assert torch.equal(module(x), first) and not torch.equal(first, second)
    second.sum().backward()
    assert torch.equal(x.grad, second.detach())


class Dense(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(49, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 5))


def compile_and_watch(module, **options):
    """Returns a module compiled by torch.compile, and a list of what the backend leaves to PyTorch."""
    torch._dynamo.reset()
    left = []
    warn = warnings.warn
    weir.torch.modules.warnings = types.SimpleNamespace(
        warn=lambda text, **given: (left.append(text), warn(text, **given)))
    return torch.compile(module, backend="weir", options=options or None), left


@pytest.fixture(autouse=True)
def restored():
    yield
    weir.torch.modules.warnings = warnings


@pytest.mark.parametrize("make, data", [(Dense, images), (Convolutional, images), (Transforming, tokens)])
def test_torch_compile(make, data):
    torch.manual_seed(3)
    module = make()
    reference = copy.deepcopy(module)
    compiled, left = compile_and_watch(module)
    torch.testing.assert_close(train(compiled, data), train(reference, data))
    assert not left


def test_torch_compile_falls_back_and_says_why():
    compiled, _ = compile_and_watch(lambda x: torch.linalg.eigvals(x * 2).real)
    x = torch.diag(torch.arange(5.0))
    with pytest.warns(UserWarning, match="weir leaves a graph to PyTorch: .*eig"):
        result = compiled(x)
    assert torch.equal(result, torch.linalg.eigvals(x * 2).real)


class Masking(nn.Module):
    """Attention under a mask that is made in forward, as in every transformer."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 24)

    def forward(self, x):
        places = torch.arange(x.shape[1])
        mask = places[:, None] >= places
        q, k, v = self.mix(x).chunk(3, -1)
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        total = y.mean((0, 1), keepdim=True).expand(x.shape)  # which backward keeps as it is
        y = y * total.sin()
        turned = (y * 2).transpose(1, 2) * 1.5  # another order in memory, of which the second result is a view
        return turned, turned[:, 1:3], x.shape[1] * 2


def test_torch_compile_follows_shapes_that_change():
    """Tensors that forward makes, odd batches and batch 1, views of results, with gradients: nothing is left to PyTorch."""
    torch.manual_seed(4)
    module = Masking()
    compiled, left = compile_and_watch(module, device="cpu")
    for shape in ((4, 6, 8), (3, 6, 8), (1, 7, 8), (4, 6, 8)):
        x = torch.randn(shape)
        results = []
        for each in (compiled, module):
            each.zero_grad()
            y, part, number = each(x)
            (y.square().sum() + part.sum()).backward()
            results.append((y.detach(), part.detach(), number, module.mix.weight.grad.clone()))
        for got, right in zip(*results):
            torch.testing.assert_close(got, right, rtol=2e-5, atol=2e-5)
    with torch.inference_mode():
        torch.testing.assert_close(compiled(x)[1], module(x)[1])
    assert not left


def test_torch_compile_stops_at_many_shapes(monkeypatch):
    monkeypatch.setattr(weir.torch.modules, "MOST", 2)
    compiled, left = compile_and_watch(lambda x: x.sin() + 1, device="cpu")
    for count in range(2, 7):
        x = torch.randn(count)
        torch.testing.assert_close(compiled(x), x.sin() + 1)
    assert len(left) == 1 and "2 sets of sizes" in left[0]


def test_torch_compile_refuses_unknown_options():
    compiled, _ = compile_and_watch(lambda x: x + 1, threads=3)
    with pytest.raises(Exception, match="the backend weir has no option 'threads'; it has device, memory_limit, precision"):
        compiled(torch.ones(2))


def test_the_entry_point_of_an_installed_package_is_the_backend(monkeypatch):
    """Loading it imports the module, which must not take the name as well."""
    from torch._dynamo.backends import registry

    [line] = [line for line in (ROOT / "python/pyproject.toml").read_text().splitlines() if "weir.torch.modules:" in line]
    entry = importlib.metadata.EntryPoint("weir", line.split('"')[1], "torch_dynamo_backends")
    monkeypatch.setitem(registry._BACKENDS, "weir", entry)
    monkeypatch.delitem(registry._COMPILER_FNS, "weir")
    monkeypatch.delitem(sys.modules, "weir.torch.modules")
    assert registry.lookup_backend("weir").__name__ == "compile_graph"
