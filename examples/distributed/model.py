"""A small GPT on bytes of text, with tied embeddings, and the batches of each rank."""

import pathlib

import torch
from torch import nn
from torch.nn import functional

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
BYTES = 256


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        rows, length, _ = x.shape
        parts = self.qkv(self.norm1(x)).view(rows, length, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, -1))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, blocks: int = 4, width: int = 64, heads: int = 4, length: int = 32):
        super().__init__()
        self.tokens, self.places = nn.Embedding(BYTES, width), nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, BYTES, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, text):
        x = self.tokens(text) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss(output, target):
    return functional.cross_entropy(output.flatten(0, 1), target.flatten())


def make(blocks: int, seed: int = 0) -> Gpt:
    torch.manual_seed(seed)
    return Gpt(blocks)


def draw(step: int, batch: int, rows: int = 4, length: int = 32) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns rows of text and what follows each byte, the same for each call with these numbers."""
    text = torch.tensor(list(b"".join(path.read_bytes() for path in sorted(DOCS.glob("*.md"))[:4])))
    generator = torch.Generator().manual_seed(1000 * step + batch)
    places = torch.randint(len(text) - length - 1, (rows,), generator=generator)
    pieces = torch.stack([text[place:place + length + 1] for place in places.tolist()])
    return pieces[:, :-1].contiguous(), pieces[:, 1:].contiguous()
