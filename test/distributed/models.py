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


class Heads(nn.Module):
    """An attention block and an MLP, whole or as the parts of ranks."""

    def __init__(self, heads=2):
        super().__init__()
        self.heads, self.size = heads, WIDTH // heads
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        rows, length, _ = x.shape
        query, key, value = self.qkv(self.norm1(x)).view(rows, length, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, -1))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))

    def share_out(self, group=None):
        """Keeps this rank's heads and columns."""
        from weir.distributed import ColumnLinear, RowLinear

        self.qkv, self.out = ColumnLinear(self.qkv, parts=3, heads=self.heads, group=group), RowLinear(self.out, group=group)
        self.up, self.down = ColumnLinear(self.up, group=group), RowLinear(self.down, group=group)
        self.heads //= torch.distributed.get_world_size(group)


def make_heads(blocks=1, seed=0, shared_out=True, group=None):
    """Returns a language model with attention, of which this rank has its part among the ranks of a group."""
    torch.manual_seed(seed)
    model = Language(blocks, "tied")
    model.blocks = nn.ModuleList(Heads() for _ in range(blocks))
    for block in model.blocks if shared_out else []:
        block.share_out(group)
    return model


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
