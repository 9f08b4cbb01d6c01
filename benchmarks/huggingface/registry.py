"""Trains one step of the models that the release of transformers has, shrunk by one rule, as run.py does its own.

    build/venv/bin/python benchmarks/huggingface/registry.py [causal|masked|sequence|image[:NAME]...] [--json=FILE]

Tasks are all four without one. A model's configuration is its default with sizes that are small (SIZES), so most have their own kinds
of layers. Each runs in a process of its own, within 16 GB and 400 s. A model is left out if it cannot be made so, or
PyTorch does not compute its loss in f64. It is unstable, not wrong, if PyTorch's own f32 is as far from f64. With --json
models that FILE has are not run again.
"""

import argparse
import copy
import json
import os
import pathlib
import resource
import subprocess
import sys

import run
import torch
import transformers
from transformers.models.auto import modeling_auto

LIMIT, MEMORY, PARAMETERS = 400, 16 << 30, 30_000_000
TASKS = {
    "causal": (transformers.AutoModelForCausalLM, modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
    "masked": (transformers.AutoModelForMaskedLM, modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES),
    "sequence": (transformers.AutoModelForSeq2SeqLM, modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES),
    "image": (transformers.AutoModelForImageClassification, modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES),
}
# Sizes by the names that configurations have for them.
SIZES = {name: size for size, names in (
    (64, "vocab_size decoder_vocab_size encoder_vocab_size vocab_size_per_layer_input max_position_embeddings n_positions "
         "n_ctx max_seq_len max_sequence_length context_length"),
    (48, "intermediate_size ffn_dim d_ff d_inner dim_ff encoder_ffn_dim decoder_ffn_dim shared_expert_intermediate_size "
         "ffn_hidden_size shared_intermediate_size block_ff_dim moe_shared_expert_intermediate_size"),
    (32, "hidden_size n_embd d_model dim embed_dim embedding_size word_embed_proj_dim emb_dim n_embed "
         "attention_hidden_size lru_width"),
    (24, "moe_intermediate_size expert_ffn_hidden_size"),
    (16, "q_lora_rank kv_lora_rank image_size"),
    (8, "head_dim qk_rope_head_dim qk_nope_head_dim v_head_dim attention_head_dim kv_channels d_kv global_head_dim "
        "linear_key_head_dim linear_value_head_dim mamba_headdim mamba_head_dim index_head_dim swa_head_dim state_size "
        "mamba_d_state ssm_state_size d_state mamba_state_size sliding_window window_size local_window_size"),
    (5, "num_labels"),
    (4, "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads "
        "num_encoder_attention_heads num_decoder_attention_heads linear_num_value_heads linear_num_key_heads mamba_n_heads "
        "mamba_num_heads n_mamba_heads index_n_heads num_experts num_local_experts n_routed_experts moe_num_experts "
        "chunk_size mamba_chunk_size patch_size rotary_dim"),
    (2, "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_encoder_layers "
        "num_decoder_layers num_key_value_heads num_kv_heads attention_num_kv_heads num_experts_per_tok moe_topk moe_top_k "
        "top_k_experts num_experts_per_token"),
    (1, "n_group topk_group n_groups mamba_n_groups mamba_ngroups first_k_dense_replace"),
) for name in names.split()}


def shrink(config):
    """Returns what a configuration's class is told for small sizes."""
    told = {}
    for name, value in config.to_dict().items():
        if name in SIZES and type(value) is int:
            told[name] = SIZES[name]
        elif name == "layer_types" and isinstance(value, list):  # at least one layer of each kind
            kinds = list(dict.fromkeys(value))
            told[name] = (kinds * 2)[:max(2, len(kinds))]
        elif name.endswith("token_id") and type(value) is int and value >= SIZES["vocab_size"]:
            told[name] = {"pad_token_id": 0, "bos_token_id": 1}.get(name, 2)
        elif name.endswith("_config") and hasattr(getattr(config, name, None), "to_dict"):
            told[name] = shrink(getattr(config, name))
    if "layer_types" in told and "num_hidden_layers" in told:
        told["num_hidden_layers"] = len(told["layer_types"])
    if "kv_lora_rank" in told and "num_key_value_heads" in told:  # latent attention has as many heads of both
        told["num_key_value_heads"] = SIZES["num_attention_heads"]
    return told


def make(name):
    """Returns a model and its inputs, if PyTorch can compute its loss."""
    task, kind = name.split(":")
    config = transformers.CONFIG_MAPPING[kind]
    config = config(**shrink(config()))
    config.use_cache = False
    model = TASKS[task][0].from_config(config, attn_implementation="eager").train()
    if (count := sum(value.numel() for value in model.parameters())) > PARAMETERS:
        raise ValueError(f"it has {count} parameters at these sizes")
    tokens = torch.randint(3, 64, (2, 9))
    if task == "image":
        size = getattr(config, "image_size", 64)
        size = size if isinstance(size, int) else size[0]
        inputs = {"pixel_values": torch.randn(2, getattr(config, "num_channels", 3), size, size),
                  "labels": torch.randint(0, 2, (2,))}
    elif task == "masked":
        inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens),
                  "labels": torch.where(torch.rand(2, 9) < 0.5, tokens, -100)}
    else:
        inputs = {"input_ids": tokens, "labels": torch.randint(3, 64, (2, 7)) if task == "sequence" else tokens}
    reference = copy.deepcopy(model).double()
    if "experts" in str([key for key, _ in reference.named_parameters()]):
        reference.set_experts_implementation("eager")  # grouped products take no f64
    with torch.no_grad():
        if reference(**run.widen(inputs)).loss is None:
            raise ValueError("it computes no loss")
    return model, inputs


def measure_rounding(name):
    """Returns the largest error of PyTorch's own gradients in f32, each against its largest element."""
    gradients = []
    for kind in (torch.float64, torch.float32):
        torch.manual_seed(0)
        model, inputs = make(name)
        model.to(kind)
        if "experts" in str([key for key, _ in model.named_parameters()]):
            model.set_experts_implementation("eager")
        with run.SameRandomNumbers():
            model(**(run.widen(inputs) if kind == torch.float64 else inputs)).loss.backward()
        gradients.append({key: value.grad.double() for key, value in model.named_parameters() if value.grad is not None})
    scale = max(value.abs().max().item() for value in gradients[0].values())
    return max((gradients[1][key] - value).abs().max().item() / max(value.abs().max().item(), 1e-4 * scale)
               for key, value in gradients[0].items())


def run_alone(name):
    """Returns the row of a model that a process of its own made."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    command = [sys.executable, "-W", "ignore", __file__, "--one", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return {"name": name, "state": "failed", "why": f"longer than {LIMIT} s"}
    rows = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(rows[-1]) if rows else {"name": name, "state": "failed", "why": done.stderr[-1000:]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(TASKS), metavar="TASK[:NAME]")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write a row for each model")
    options = parser.parse_args()
    if options.one:
        run.make_model = make
        row = run.check(options.names[0], None, "cpu")
        if row["state"] == "wrong" and (rounding := measure_rounding(options.names[0])) > 1e-4:
            row |= {"state": "unstable", "where": f"{row['where']}; PyTorch's f32 has {rounding:.1e}"}
        print(json.dumps(row))
        return
    names = [f"{task}:{kind}" for task, (_, kinds) in TASKS.items() for kind in kinds]
    if unknown := [name for name in options.names if name not in names and name not in TASKS]:
        parser.error(f"there is no {unknown[0]}; there are {', '.join(TASKS)} and each with :NAME of a model's type")
    names = [name for name in names if name in options.names or name.split(":")[0] in options.names]
    rows = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    known = {row["name"] for row in rows}
    for name in names:
        if name in known:
            continue
        row = run_alone(name)
        rows.append(row)
        detail = f"{row['error']:.1e} at {row['where']}" if "error" in row else row["why"].strip().splitlines()[-1][:150]
        print(f"{name:36} {row['state']:9} {detail}", flush=True)
        if options.json:
            temporary = options.json.with_suffix(".part")
            temporary.write_text(json.dumps(rows, indent=1) + "\n")
            os.replace(temporary, options.json)
    chosen = [row["state"] for row in rows if row["name"] in names]
    print(", ".join(f"{chosen.count(state)} {state}" for state in sorted(set(chosen))))


if __name__ == "__main__":
    main()
