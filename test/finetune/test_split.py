"""Backward in two passes on language models: with tied embeddings, frozen parts, LoRA, and layers that are used twice,
the passes make the bits of the whole backward, and each value between them is consumed once."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("transformers", reason="transformers is not installed: scripts/setup --torch")

from model import Bytes, Text, make_model  # noqa: E402
from training import TEXT, Loss, SplitBackward, have_same_bits  # noqa: E402

import weir.torch  # noqa: E402

VARIANTS = ["lora", "full", "frozen", "twice"]
SEQUENCES = {"twin": 32, "135M": 128}
CASES = [*(("twin", variant, device) for variant in VARIANTS for device in ("cpu", "vulkan")),
         *(pytest.param("135M", variant, "cpu", marks=pytest.mark.full) for variant in VARIANTS)]


def make_variant(size, variant):
    if variant == "lora":
        pytest.importorskip("peft", reason="peft is not installed: scripts/setup --torch")
        module = make_model(size, "lora")
        for name, value in module.named_parameters():
            if "lora_B" in name:  # which begin at 0, and with them the gradients of lora_A
                torch.nn.init.normal_(value, std=0.02)
        return module
    module = make_model(size, "full")
    layers = module.model.model.layers
    if variant == "frozen":  # every other layer, norms everywhere, and the tied embedding
        for name, value in module.named_parameters():
            value.requires_grad = not (value.ndim == 1 or "embed" in name or any(
                f".layers.{i}." in name for i in range(0, len(layers), 2)))
    if variant == "twice":
        for i in range(len(layers) // 2):
            layers[len(layers) // 2 + i] = layers[i]
    return module


@pytest.mark.parametrize("size, variant, device", CASES)
def test_whole_backward_is_its_parts(size, variant, device):
    module = make_variant(size, variant)
    ids, following = Text(Bytes(), TEXT, SEQUENCES[size]).draw(1, seed=0)
    exported = weir.torch.export(Loss(module), (ids, following), keep_buffers=True)
    split = SplitBackward(exported, device)
    given = {"ids": ids, "following": following}
    whole, parts = split.run_whole(**given), split.run_parts(**given)
    trained = [name for name, value in Loss(module).named_parameters() if value.requires_grad]
    assert sorted(whole) == sorted(parts) == sorted(["output", *(f"grad.{name}" for name in trained)])
    assert all(value.any() for value in whole.values()), "nothing to compare"
    for name, value in whole.items():
        assert have_same_bits(value, parts[name]), name
    print(f"{size} {variant} on {device}: {len(trained)} gradients, {len(split.handed)} values between the passes, "
          f"{sum(tensor.bytes for tensor in split.entries['main.forward'].results) / 1e6:.0f} MB from forward")
