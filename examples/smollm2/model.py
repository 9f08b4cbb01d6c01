"""SmolLM2-135M's architecture and a small twin, with seeded weights or those of a checkpoint; LoRA; text as bytes."""

import pathlib

import torch
from torch import nn
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
# https://huggingface.co/HuggingFaceTB/SmolLM2-135M/blob/main/config.json
SIZES = {
    "135M": {"hidden_size": 576, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
             "intermediate_size": 1536, "vocab_size": 49152},
    "twin": {"hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
             "intermediate_size": 160, "vocab_size": 256},
}
SHARED = {"tie_word_embeddings": True, "rms_norm_eps": 1e-5, "rope_theta": 100000.0, "max_position_embeddings": 8192,
          "attention_dropout": 0.0}


class Logits(nn.Module):
    """Token ids to logits: what a step and a prediction need of a language model."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=ids, use_cache=False).logits


def make_model(size: str, mode: str, checkpoint: pathlib.Path | None = None, seed: int = 0) -> Logits:
    """Returns the model, in training mode. In mode lora only the adapters of q and v, of rank 8, are trained."""
    torch.manual_seed(seed)
    if checkpoint:
        model = LlamaForCausalLM.from_pretrained(checkpoint, torch_dtype=torch.float32)
    else:
        model = LlamaForCausalLM(LlamaConfig(**SIZES[size], **SHARED))
    model.config.use_cache = False
    if mode == "lora":
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"]))
    return Logits(model).train()


def compute_loss(logits: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), following.flatten())


class Bytes:
    """A tokenizer: the token of a byte is its value."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: list[int]) -> str:
        return bytes(each for each in ids if each < 256).decode(errors="replace")


class Pieces:
    """The tokenizer of a checkpoint."""

    def __init__(self, checkpoint: pathlib.Path):
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids)


class Text:
    """Windows of a text, for training and for evaluation, which has its last tenth."""

    def __init__(self, tokenizer: Bytes | Pieces, text: str, sequence: int):
        ids = torch.tensor(tokenizer.encode(text))
        self.sequence = sequence
        self.parts = ids[: len(ids) * 9 // 10], ids[len(ids) * 9 // 10 :]
        if len(self.parts[1]) <= sequence:
            raise ValueError(f"the text has {len(ids)} tokens; a sequence of {sequence} needs {10 * sequence + 10}")

    def draw(self, batch: int, seed: int, evaluates: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns windows that begin anywhere, by a seed, and the tokens that follow each."""
        ids = self.parts[evaluates]
        begins = torch.randint(0, len(ids) - self.sequence, (batch,), generator=torch.Generator().manual_seed(seed))
        windows = torch.stack([ids[begin : begin + self.sequence + 1] for begin in begins.tolist()])
        return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


def read_docs() -> str:
    """Returns the text that ships with the example: Weir's own pages."""
    return "\n".join(page.read_text() for page in sorted(DOCS.glob("*.md")))
