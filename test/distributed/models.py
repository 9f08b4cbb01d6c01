"""Small models that are cut into stages, or trained by several ranks."""

import torch
from torch import nn
from torch.nn import functional

TOKENS, WIDTH, LENGTH = 24, 16, 5


class Block(nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        return x + self.drop(self.down(functional.gelu(self.up(self.norm(x)))))


class Bare(nn.Module):
    """Has no parameters."""

    def forward(self, x):
        return torch.tanh(x)


class Language(nn.Module):
    """Blocks between an embedding and a head. Kinds: plain, tied, frozen, bare (a stage without parameters), skip,
    dropped."""

    def __init__(self, blocks, kind="plain"):
        super().__init__()
        self.kind = kind
        self.embed = nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList(Bare() if kind == "bare" and i == 1 else Block(0.25 if kind == "dropped" else 0.0)
                                    for i in range(blocks))
        self.head = nn.Linear(WIDTH, TOKENS, bias=False)
        if kind == "tied":
            self.head.weight = self.embed.weight
        if kind == "frozen":
            self.embed.requires_grad_(False)
            self.blocks[-1].up.requires_grad_(False)

    def forward(self, tokens):
        x = first = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x + first if self.kind == "skip" else x)


def cross_entropy(output, target):
    return functional.cross_entropy(output.flatten(0, 1), target.flatten())


def make(blocks, kind="plain", seed=0):
    torch.manual_seed(seed)
    return Language(blocks, kind)


def draw(count, seed=0):
    """Returns `count` sequences and their targets."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randint(0, TOKENS, (count, LENGTH), generator=generator),
            torch.randint(0, TOKENS, (count, LENGTH), generator=generator))
