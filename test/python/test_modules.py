"""Weir inside PyTorch: weir.torch.Module and torch.compile's backend "weir"."""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from test_programs import Convolutional, Transforming, images, tokens  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import weir.torch.modules  # noqa: E402


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


@pytest.mark.parametrize("make, data", [(Dense, images), (Convolutional, images), (Transforming, tokens)])
def test_torch_compile(make, data):
    torch.manual_seed(3)
    module = make()
    reference = copy.deepcopy(module)
    torch._dynamo.reset()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        losses = train(torch.compile(module, backend="weir", dynamic=False), data)
    torch.testing.assert_close(losses, train(reference, data))
    refused = [str(warning.message) for warning in caught if "weir leaves a graph" in str(warning.message)]
    assert make is not Dense or not refused  # the backward of pooling and of embeddings is PyTorch's


def test_torch_compile_falls_back_and_says_why():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.linalg.eigvalsh(x * 2), backend="weir", dynamic=False)
    x = torch.diag(torch.arange(5.0))
    with pytest.warns(UserWarning, match="weir leaves a graph to PyTorch: the module has operators without a form.*eigh"):
        result = compiled(x)
    assert torch.equal(result, torch.linalg.eigvalsh(x * 2))
