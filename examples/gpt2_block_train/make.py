"""Exports two GPT-2 blocks from PyTorch, and what training them gives in double precision.

Embedding, two pre-LN blocks with causal attention, final norm, output by the embedding's
weight, cross-entropy. Writes gpt2.mlir; inputs.safetensors, the batch and the parameters;
gradients.safetensors, the loss and every gradient of it; trained.safetensors, the parameters
after 10 steps of AdamW; steps.json, the hyperparameters and the loss of each step.

Needs scripts/setup --torch. The outputs are committed: nobody has to run this to build or
test.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1] / "python"))
import weir.torch  # noqa: E402

VOCABULARY, WIDTH, HEADS, LENGTH, BATCH, STEPS = 96, 48, 4, 16, 4, 10
HYPERPARAMETERS = {"learning_rate": 0.003, "weight_decay": 0.01, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.mlp_norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def attend(self, x):
        parts = self.qkv(x).split(WIDTH, -1)
        query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.mix(mixed.transpose(1, 2).flatten(-2))

    def forward(self, x):
        x = x + self.attend(self.attention_norm(x))
        return x + self.down(functional.gelu(self.up(self.mlp_norm(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.place = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(WIDTH)
        self.score = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.score.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens) + self.place(torch.arange(tokens.shape[1]))
        return self.score(self.norm(self.blocks(x)))


def loss_of(logits, following):
    return functional.cross_entropy(logits.flatten(0, 1), following.flatten())


def start():
    """The model, with norms and biases away from 1 and 0, which would hide mistakes; the batch."""
    torch.manual_seed(0)
    model = Gpt2()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.dim() > 1:
                value.normal_(std=0.1 if "embed" in name or "place" in name else value.shape[1] ** -0.5)
            else:
                value.add_(0.1 * torch.randn_like(value))
    text = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1))
    return model, text[:, :-1].contiguous(), text[:, 1:].contiguous()


def train(model, tokens, following):
    """Returns the gradients of the first step, and each step's loss."""
    # Weir is given its hyperparameters in single precision.
    rates = {name: torch.tensor(rate, dtype=torch.float32).item() for name, rate in HYPERPARAMETERS.items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=rates["learning_rate"], weight_decay=rates["weight_decay"],
                                  betas=(rates["beta1"], rates["beta2"]), eps=rates["epsilon"])
    losses, gradients = [], {}
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(tokens), following)
        loss.backward()
        gradients = gradients or {f"grad.{name}": value.grad.clone() for name, value in model.named_parameters()}
        losses.append(loss.item())
        optimizer.step()
    return gradients, losses


def main():
    model, tokens, following = start()
    exported = weir.torch.export(model, {"tokens": tokens}, loss=loss_of, targets={"next": following}, entry="gpt2")
    exported.save(FOLDER / "gpt2.mlir")
    save_file(exported.inputs | exported.parameters, FOLDER / "inputs.safetensors")
    gradients, losses = train(model.double(), tokens, following)
    values = {"loss": torch.tensor(losses[0]), **gradients}
    save_file({name: value.float() for name, value in values.items()}, FOLDER / "gradients.safetensors")
    trained = {name: value.detach().float() for name, value in model.named_parameters()}
    save_file(trained, FOLDER / "trained.safetensors")
    (FOLDER / "steps.json").write_text(json.dumps({"hyperparameters": HYPERPARAMETERS, "losses": losses}) + "\n")


if __name__ == "__main__":
    main()
