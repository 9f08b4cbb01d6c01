"""Trains small Hugging Face models as their users do, and compares each step with PyTorch's in f64.

    build/venv/bin/pip install transformers
    build/venv/bin/python benchmarks/huggingface/run.py [NAME...] [--steps=N] [--device=DEVICE] [--profile=NAME] [--json=FILE]

Every model is in training mode, with the dropout, the padding index and the buffers that its configuration has by
default. PyTorch is given the random numbers that Weir draws, so that losses and gradients can be compared. A model is
right where its loss and each gradient, as SGD with rate 1 shows it, differ from f64's by less than 1e-4 of the
largest gradient of that parameter (1e-4 of the model's largest where that is larger).

--steps trains so many steps by AdamW instead, with epsilon 1e-3: with less, gradients that are rounding errors decide
where parameters go (PyTorch's ResNet in f32 departs from that in f64 by 5% in 20 steps with 1e-5). Then a model is right
where every loss differs from f64's by less than 1e-4 of the first, and at the end each parameter and buffer by less than 1e-3 of its largest element, or of how far so many steps
can move one where that is larger; and where its dropout is the same again from the same seed, and another in another
step and from another seed.

--profile compiles for a built-in profile, such as minimum, in place of the device's own. VK_DRIVER_FILES names the
manifest of another Vulkan driver than the default one.
"""

import argparse
import copy
import json
import pathlib
import sys
import tempfile
import time
import traceback
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import numpy
import torch
import transformers
from torch.nn import functional

import weir

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()

TEXT = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            max_position_embeddings=64)
DECODER = TEXT | dict(num_key_value_heads=2, head_dim=8, pad_token_id=0)
VISION = dict(image_size=16, patch_size=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
              intermediate_size=48, num_labels=5)
EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=24)
SEQUENCE = dict(vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64,
                pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2)
GPT = dict(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64, n_ctx=64)

# Name: the model's class behind the prefix of its configuration's, what is told the configuration, and its inputs.
MODELS = {
    "albert": ("Albert:MaskedLM", TEXT | dict(embedding_size=16), "masked"),
    "bert": ("Bert:MaskedLM", TEXT, "masked"),
    "big_bird": ("BigBird:MaskedLM", TEXT | dict(attention_type="original_full"), "masked"),
    "camembert": ("Camembert:MaskedLM", TEXT, "masked"),
    "convbert": ("ConvBert:MaskedLM", TEXT | dict(embedding_size=32), "masked"),
    "data2vec_text": ("Data2VecText:MaskedLM", TEXT, "masked"),
    "deberta": ("Deberta:MaskedLM", TEXT | dict(relative_attention=True, pos_att_type=["c2p", "p2c"]), "masked"),
    "deberta_v2": ("DebertaV2:MaskedLM", TEXT | dict(relative_attention=True, pos_att_type=["c2p", "p2c"]), "masked"),
    "distilbert": ("DistilBert:MaskedLM", dict(vocab_size=64, dim=32, n_layers=2, n_heads=4, hidden_dim=48), "masked"),
    "electra": ("Electra:MaskedLM", TEXT | dict(embedding_size=16), "masked"),
    "ernie": ("Ernie:MaskedLM", TEXT, "masked"),
    "esm": ("Esm:MaskedLM", TEXT | dict(pad_token_id=1, mask_token_id=3), "masked"),
    "fnet": ("FNet:MaskedLM", TEXT, "masked"),
    "funnel": ("Funnel:MaskedLM", dict(vocab_size=64, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=48),
               "masked"),
    "layoutlm": ("LayoutLM:MaskedLM", TEXT, "masked"),
    "mobilebert": ("MobileBert:MaskedLM", TEXT | dict(intra_bottleneck_size=32, embedding_size=32), "masked"),
    "modernbert": ("ModernBert:MaskedLM", TEXT | dict(pad_token_id=0), "masked"),
    "mpnet": ("MPNet:MaskedLM", TEXT, "masked"),
    "roberta": ("Roberta:MaskedLM", TEXT, "masked"),
    "roformer": ("RoFormer:MaskedLM", TEXT | dict(embedding_size=32), "masked"),
    "squeezebert": ("SqueezeBert:MaskedLM", TEXT | dict(embedding_size=32), "masked"),
    "xlm_roberta": ("XLMRoberta:MaskedLM", TEXT, "masked"),
    "bloom": ("Bloom:CausalLM", dict(vocab_size=64, hidden_size=32, n_layer=2, n_head=4), "causal"),
    "codegen": ("CodeGen:CausalLM", GPT | dict(rotary_dim=8), "causal"),
    "falcon": ("Falcon:CausalLM", TEXT, "causal"),
    "gemma": ("Gemma:CausalLM", DECODER, "causal"),
    "gemma2": ("Gemma2:CausalLM", DECODER, "causal"),
    "gpt2": ("GPT2:LMHeadModel", GPT, "causal"),
    "gpt_bigcode": ("GPTBigCode:CausalLM", GPT, "causal"),
    "gpt_neo": ("GPTNeo:CausalLM", dict(vocab_size=64, hidden_size=32, num_layers=2, num_heads=4, window_size=8,
                                        max_position_embeddings=64, attention_types=[[["global", "local"], 1]]), "causal"),
    "gpt_neox": ("GPTNeoX:CausalLM", TEXT, "causal"),
    "gptj": ("GPTJ:CausalLM", GPT | dict(rotary_dim=4), "causal"),
    "granite": ("Granite:CausalLM", DECODER, "causal"),
    "llama": ("Llama:CausalLM", DECODER, "causal"),
    "mistral": ("Mistral:CausalLM", DECODER, "causal"),
    "mpt": ("Mpt:CausalLM", dict(vocab_size=64, d_model=32, n_layers=2, n_heads=4, max_seq_len=64), "causal"),
    "olmo2": ("Olmo2:CausalLM", DECODER, "causal"),
    "opt": ("OPT:CausalLM", dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48,
                                 max_position_embeddings=64, word_embed_proj_dim=32), "causal"),
    "phi": ("Phi:CausalLM", TEXT, "causal"),
    "qwen2": ("Qwen2:CausalLM", DECODER, "causal"),
    "qwen3": ("Qwen3:CausalLM", DECODER, "causal"),
    "stablelm": ("StableLm:CausalLM", DECODER, "causal"),
    "bart": ("Bart:ConditionalGeneration", SEQUENCE, "sequence"),
    "t5": ("T5:ConditionalGeneration", dict(vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
                                            decoder_start_token_id=0), "sequence"),
    "vit": ("ViT:ImageClassification", VISION, "image"),
    "convnext": ("ConvNext:ImageClassification", dict(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, num_labels=5),
                 "image"),
    "resnet": ("ResNet:ImageClassification", dict(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1],
                                                  layer_type="basic", num_labels=5), "image"),
    "resnet18": ("ResNet:ImageClassification", dict(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[2, 2, 2, 2],
                                                    layer_type="basic", num_labels=5), "picture"),
    "mixtral": ("Mixtral:CausalLM", DECODER | dict(num_local_experts=4, num_experts_per_tok=2), "causal"),
    "qwen3_moe": ("Qwen3Moe:CausalLM", DECODER | EXPERTS | dict(num_experts=4), "causal"),
    "olmoe": ("Olmoe:CausalLM", DECODER | dict(num_experts=4, num_experts_per_tok=2), "causal"),
    "gpt_oss": ("GptOss:CausalLM", DECODER | dict(num_local_experts=4, num_experts_per_tok=2, layer_types=[
        "sliding_attention", "full_attention"]), "causal"),
    "deepseek_v3": ("DeepseekV3:CausalLM", DECODER | EXPERTS | dict(
        n_routed_experts=4, n_group=2, topk_group=1, q_lora_rank=16, kv_lora_rank=8, qk_rope_head_dim=8,
        qk_nope_head_dim=8, v_head_dim=8, first_k_dense_replace=1, num_key_value_heads=4), "causal"),
    "jamba": ("Jamba:CausalLM", DECODER | dict(
        num_experts=4, num_experts_per_tok=2, num_hidden_layers=4, attn_layer_period=2, attn_layer_offset=1,
        expert_layer_period=2, expert_layer_offset=1, mamba_d_state=8), "causal"),
    "mamba2": ("Mamba2:CausalLM", dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, state_size=8, head_dim=8,
                                       num_heads=8, n_groups=1, chunk_size=4), "causal"),
    "mamba": ("Mamba:CausalLM", dict(vocab_size=64, hidden_size=32, state_size=4, num_hidden_layers=2), "causal"),
    "whisper": ("Whisper:AudioClassification", SEQUENCE | dict(num_mel_bins=8, max_source_positions=12, num_labels=5,
                                                               classifier_proj_size=16), "audio"),
    "clip": ("CLIP:Model", dict(text_config=TEXT | dict(eos_token_id=2), vision_config=VISION, projection_dim=16), "pair"),
}
# One model of each kind that people fine-tune most.
KINDS = ["resnet18", "vit", "bert", "t5", "mamba", "whisper", "clip"]
RATE, EPSILON = 1e-3, 1e-3  # of --steps


def make_model(name: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    (names, settings, kind) = MODELS[name]
    prefix, task = names.split(":")
    config = getattr(transformers, f"{prefix}Config")(**settings)
    config.use_cache = False
    config._attn_implementation = "eager"
    model = getattr(transformers, prefix + (task if task.endswith("Model") else f"For{task}"))(config)
    tokens = torch.randint(3, 64, (2, 9))
    if kind == "masked":
        tokens[1, -3:] = config.pad_token_id or 0
        labels = torch.where(torch.rand(2, 9) < 0.5, tokens, -100)
        return model, {"input_ids": tokens, "attention_mask": (tokens != config.pad_token_id).long(), "labels": labels}
    if kind == "causal":
        return model, {"input_ids": tokens, "labels": tokens}
    if kind == "sequence":
        return model, {"input_ids": tokens, "labels": torch.randint(3, 64, (2, 7))}
    if kind == "audio":
        return model, {"input_features": torch.randn(2, 8, 24), "labels": torch.randint(0, 5, (2,))}
    if kind == "pair":
        pixels = torch.randn(2, 3, 16, 16)
        return model, {"input_ids": tokens, "pixel_values": pixels, "attention_mask": torch.ones_like(tokens),
                       "return_loss": True}
    count, size = (8, 64) if kind == "picture" else (3, 16)
    return model, {"pixel_values": torch.randn(count, 3, size, size), "labels": torch.randint(0, 5, (count,))}


def draw(shape: torch.Size, stream: int, step: int) -> torch.Tensor:
    """Returns what random.uniform gives for seed 0: Philox4x32-10 of (place / 4, stream, step, 0)."""
    count = shape.numel()
    blocks = numpy.arange(-(-count // 4), dtype=numpy.uint64)
    counter = [blocks, *(numpy.full_like(blocks, word) for word in (stream, step, 0))]
    low, key = numpy.uint64(0xFFFFFFFF), [0, 0]
    for turn in range(10):
        if turn:
            key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
        first, second = counter[0] * numpy.uint64(0xD2511F53), counter[2] * numpy.uint64(0xCD9E8D57)
        counter = [second >> numpy.uint64(32) ^ counter[1] ^ numpy.uint64(key[0]), second & low,
                   first >> numpy.uint64(32) ^ counter[3] ^ numpy.uint64(key[1]), first & low]
    words = numpy.stack(counter, -1).reshape(-1)[:count]
    return torch.from_numpy((words >> numpy.uint64(8)).astype(numpy.float64) * 2.0**-24).reshape(shape)


class SameRandomNumbers:
    """Gives PyTorch's dropout and torch.rand the numbers that Weir draws in a step, in the order of the calls."""

    def __init__(self, step: int = 0):
        self._step = step

    def __enter__(self) -> None:
        self._dropout, self._rand, stream = functional.dropout, torch.rand, iter(range(1 << 30))

        def dropout(x, p=0.5, training=True, inplace=False):
            if not training or p == 0:
                return x
            return torch.where(draw(x.shape, next(stream), self._step) >= p, x / (1 - p), 0.0)

        def rand(*shape, dtype=None, device=None):
            shape = shape[0] if isinstance(shape[0], (tuple, list)) else shape
            return draw(torch.Size(shape), next(stream), self._step).to(dtype or torch.get_default_dtype())

        functional.dropout, torch.rand = dropout, rand

    def __exit__(self, *_: object) -> None:
        functional.dropout, torch.rand = self._dropout, self._rand


def check(name: str, steps: int | None, device: str = "auto") -> dict:
    """Returns what became of a model: its largest error, or why there is none."""
    torch.manual_seed(0)
    row = {"name": name}
    try:
        model, inputs = make_model(name)
    except Exception as error:  # this release of transformers
        return row | {"state": "not made", "why": f"{type(error).__name__}: {error}"}
    model.train()
    reference = copy.deepcopy(model).double()
    if "experts" in str([key for key, _ in model.named_parameters()]):
        reference.set_experts_implementation("eager")  # grouped products take no f64
    optimizer = weir.AdamW(learning_rate=RATE, epsilon=EPSILON) if steps else weir.SGD(learning_rate=1.0)
    begin = time.time()
    try:
        step = weir.compile_step(model, lambda output: output.loss, example=inputs, optimizer=optimizer,
                                 device=device)
    except (weir.torch.ExportError, weir.CompileError) as error:
        return row | {"state": "refused", "why": str(error)}
    except Exception:
        return row | {"state": "failed", "why": traceback.format_exc()}
    row |= {"seconds": round(time.time() - begin, 1), "why": repr(step).splitlines()[-1]}
    return row | (follow(step, reference, inputs, steps) if steps else compare_gradients(step, reference, inputs))


def widen(inputs: dict) -> dict:
    return {key: value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
            for key, value in inputs.items()}


def follow(step: weir.Step, reference: torch.nn.Module, inputs: dict, steps: int) -> dict:
    """Returns the largest errors of some steps, and whether dropout is what it should be."""
    draws, problem = check_dropout(step, inputs), ""
    if isinstance(draws, str):
        draws, problem = True, draws
    optimizer = torch.optim.AdamW(reference.parameters(), lr=RATE, eps=EPSILON)
    apart, losses, first = 0.0, [], None
    for number in range(steps):
        losses.append(step(**inputs).item())
        optimizer.zero_grad()
        with SameRandomNumbers(number):
            loss = reference(**widen(inputs)).loss
        loss.backward()
        optimizer.step()
        first = first or abs(loss.item())
        apart = max(apart, abs(losses[-1] - loss.item()) / first)
    found, worst, where = step.state_dict(), 0.0, "no parameter"
    for key, value in reference.state_dict().items():
        if value.is_floating_point() and value.numel():
            scale = max(value.abs().max().item(), RATE * steps)
            error = (found[key].double() - value).abs().max().item() / scale
            if not error <= worst:
                worst, where = error, key
    is_right = apart < 1e-4 and worst < 1e-3 and not problem
    return {"state": "right" if is_right else "wrong", "error": worst, "where": where, "loss_error": apart,
            "losses": losses, "dropout": problem or ("drawn" if draws else "none")}


def check_dropout(step: weir.Step, inputs: dict) -> bool | str:
    """Returns whether a step draws random numbers, or what is wrong with them; leaves the step as it was."""
    with tempfile.TemporaryDirectory() as folder:
        start = pathlib.Path(folder) / "start.safetensors"
        step.save(start)
        losses = [[step(**inputs, learning_rate=0.0).item() for _ in range(2)]]
        draws = "random.seed" in step._execution.held
        for seed in (0, 1) if draws else (None,):
            step.load(start)
            if draws:
                step.seed(seed)
            losses.append([step(**inputs, learning_rate=0.0).item() for _ in range(2)])
        step.load(start)
    if losses[1] != losses[0]:
        return "other numbers from the same seed"
    if draws and losses[0][0] == losses[0][1]:
        return "the same numbers in two steps"
    if draws and losses[2][0] == losses[0][0]:
        return "the same numbers from two seeds"
    return draws


def compare_gradients(step: weir.Step, reference: torch.nn.Module, inputs: dict) -> dict:
    """Returns the largest error of the loss and the gradients."""
    before = {key: value.double() for key, value in step.state_dict().items()}
    loss = step(**inputs).item()
    after = step.state_dict()
    with SameRandomNumbers():
        expected = reference(**widen(inputs)).loss
        expected.backward()
    gradients = {key: value.grad for key, value in reference.named_parameters() if value.grad is not None and value.numel()}
    scale = max(gradient.abs().max().item() for gradient in gradients.values())
    worst, where = abs(loss - expected.item()) / abs(expected.item()), "loss"
    for key, gradient in gradients.items():
        found = before[key] - after[key].double()
        # A parameter near 1 shows no gradient below its own rounding.
        rounding = 1e-7 * before[key].abs().max().item()
        error = (found - gradient).abs().max().item()
        relative = max(error - rounding, 0) / max(gradient.abs().max().item(), 1e-4 * scale)
        if not relative <= worst:
            worst, where = relative, key
    for key, value in reference.named_buffers():
        if key in after and value.is_floating_point() and value.numel():
            error = (after[key].double() - value).abs().max().item() / max(value.abs().max().item(), 1e-12)
            if not error <= worst:
                worst, where = error, key
    return {"state": "right" if worst < 1e-4 else "wrong", "error": worst, "where": where}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="models; all without one, or with --steps one of each kind")
    parser.add_argument("--steps", type=int, metavar="N", help="train so many steps by AdamW")
    parser.add_argument("--device", default="auto", help="as weir.compile_step has it (default auto)")
    parser.add_argument("--profile", metavar="NAME", help="a built-in profile")
    parser.add_argument("--json", metavar="FILE", help="write a row for each model")
    options = parser.parse_args()
    if options.profile:
        weir.Device.profile = json.dumps({"like": options.profile, "name": options.profile})
    if unknown := [name for name in options.names if name not in MODELS]:
        parser.error(f"there is no model {unknown[0]}; there are {', '.join(MODELS)}")
    rows = []
    for name in options.names or (KINDS if options.steps else MODELS):
        row = check(name, options.steps, options.device)
        rows.append(row)
        detail = row["why"].splitlines()[-1][:150] if "error" not in row else f"{row['error']:.1e} at {row['where']}"
        if "losses" in row:
            detail += (f", {row['loss_error']:.1e} of losses, {row['losses'][0]:.4f} to {row['losses'][-1]:.4f}; "
                       f"dropout: {row['dropout']}")
        print(f"{name:14} {row['state']:9} {row.get('seconds', ''):>6} {detail}", flush=True)
    counts = {state: sum(row["state"] == state for row in rows) for state in sorted({row["state"] for row in rows})}
    print(", ".join(f"{number} {state}" for state, number in counts.items()))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
