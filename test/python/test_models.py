"""Whole small models: an LSTM language model, a diffusion U-Net, a detection head. Gradients are PyTorch's in f64."""

import copy
import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import weir  # noqa: E402


class Language(nn.Module):
    """Two LSTM layers between an embedding and a head that shares its weights."""

    def __init__(self, tokens=23, width=12):
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.layers = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, tokens)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens))[0]).flatten(0, 1)


class Residual(nn.Module):
    """Two convolutions, with what the time adds between them."""

    def __init__(self, inputs, outputs, time):
        super().__init__()
        self.first_norm, self.first = nn.GroupNorm(2, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.second_norm, self.second = nn.GroupNorm(2, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.short = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, time):
        h = self.first(functional.silu(self.first_norm(x))) + self.time(functional.silu(time))[:, :, None, None]
        return self.short(x) + self.second(functional.silu(self.second_norm(h)))


class Attention(nn.Module):
    """Attention over all places of an image."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.mix, self.out = nn.GroupNorm(2, width), nn.Conv1d(width, 3 * width, 1), nn.Conv1d(width, width, 1)

    def forward(self, x):
        q, k, v = self.mix(self.norm(x).flatten(2)).transpose(1, 2).chunk(3, -1)
        return x + self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)).view_as(x)


class Diffusion(nn.Module):
    """A U-Net that predicts the noise of an image of odd sizes: down, attention, up, with skips that are joined."""

    def __init__(self, width=4, time=8):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(time, time), nn.SiLU(), nn.Linear(time, time))
        self.begin = nn.Conv2d(1, width, 3, padding=1)
        self.down, self.halve = Residual(width, width, time), nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.middle, self.attention = Residual(2 * width, 2 * width, time), Attention(2 * width)
        self.smooth = nn.Conv2d(2 * width, width, 3, padding=1)
        self.up, self.end = Residual(2 * width, width, time), nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, when):
        angles = when[:, None] * torch.exp(torch.arange(4, dtype=x.dtype) * (-math.log(100.0) / 4))
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        skip = self.down(self.begin(x), time)
        h = self.attention(self.middle(self.halve(skip), time))
        h = self.smooth(functional.interpolate(h, size=skip.shape[2:], mode="nearest"))
        return self.end(self.up(torch.cat([h, skip], 1), time))


class Detection(nn.Module):
    """Scores and boxes for all places; the best places' boxes are refined, and scattered back."""

    def __init__(self, width=6, best=5):
        super().__init__()
        self.best = best
        self.body = nn.Conv2d(3, width, 3, padding=1)
        self.score, self.box = nn.Conv2d(width, 1, 1), nn.Conv2d(width, 4, 1)
        self.refine = nn.Sequential(nn.Linear(4 + width, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, image):
        h = torch.tanh(self.body(image))
        scores, boxes = self.score(h).flatten(1), self.box(h).flatten(2).transpose(1, 2)
        found, places = scores.topk(self.best, -1)
        rows = places[..., None]
        chosen = torch.cat([boxes.gather(1, rows.expand(-1, -1, 4)),
                            h.flatten(2).transpose(1, 2).gather(1, rows.expand(-1, -1, h.shape[1]))], -1)
        refined = boxes.scatter(1, rows.expand(-1, -1, 4), self.refine(chosen) * found.sigmoid()[..., None])
        counted = torch.zeros_like(scores).scatter_add(1, places, found)
        return torch.cat([scores[..., None], counted[..., None], refined], -1)


def draw(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def mean_square(output, target):
    return ((output - target) ** 2).mean()


MODELS = {
    "lstm": (Language, (torch.arange(15).reshape(3, 5) * 7 % 23,), functional.cross_entropy, torch.arange(15) * 5 % 23),
    "diffusion": (Diffusion, (draw(2, 1, 7, 5, seed=1), torch.tensor([0.1, 0.7])), mean_square, draw(2, 1, 7, 5, seed=2)),
    "detection": (Detection, (draw(2, 3, 5, 7, seed=3),), mean_square, draw(2, 35, 6, seed=4)),
}


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_pytorchs(name, device):
    make, inputs, loss, target = MODELS[name]
    torch.manual_seed(1)
    module = make()
    reference = copy.deepcopy(module).double()
    exact = loss(reference(*(value.double() if value.is_floating_point() else value for value in inputs)),
                 target.double() if target.is_floating_point() else target)
    exact.backward()
    # One step of plain SGD whose rate makes the gradient the larger part of what it leaves.
    with weir.compile_step(module, loss, example=inputs, targets={"target": target}, device=device,
                           optimizer=weir.SGD(learning_rate=1024.0)) as step:
        assert float(step(*inputs, target=target)) == pytest.approx(exact.item(), rel=1e-5)
        trained = step.state_dict()
    largest = max(value.grad.abs().max().item() for value in reference.parameters())
    for key, value in reference.named_parameters():
        gradient = (module.state_dict()[key].double() - trained[key].double()) / 1024
        assert (gradient - value.grad).abs().max().item() < 2e-6 * largest, key
