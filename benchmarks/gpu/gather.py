#!/usr/bin/env python3
"""Compiles what a GPU is measured on: gather.py FOLDER [--only=REGEX] [--small] [--targets=vulkan,cuda:sm_80,cuda:sm_90,cuda:sm_90a].

FOLDER gets an artifact for each benchmark, and benchmarks.json, which says how beside_torch.py computes the same in
PyTorch. --small makes all sizes small, to rehearse."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks/peers"))
import cases  # noqa: E402
import weir_graphs  # noqa: E402

SHAPES = ((4096, 1024), (1024, 4096), (512, 8192), (1024, 32000))
SMALL = ((64, 256),)
# Models have no twin in PyTorch here: name, graph, options.
MODELS = (
    ("mlp_adamw", "mlp/mlp.mlir", ("--train=adamw:mlp_loss", "--entry=mlp_loss.step")),
    ("gpt2_adamw", "gpt2_block_train/gpt2.mlir", ("--train=adamw:gpt2", "--entry=gpt2.step")),
)


def list_benchmarks(is_small):
    """Yields the name, the kind and sizes by which benchmarks/peers knows it, the elements' type and the precision."""
    for rows, columns in SMALL if is_small else SHAPES:
        for kind in ("copy", *cases.ROW_KINDS):
            for element in ("f32", "bf16"):
                if (kind, element) != ("copy", "bf16"):
                    yield f"{kind}-{rows}x{columns}-{element}", kind, {"rows": rows, "columns": columns}, element, "f32"
    for n in (128,) if is_small else (512, 1024, 4096):
        for element, precision in (("f32", "f32"), ("bf16", "f32"), ("f32", "tf32")):
            name = f"product-{n}-{precision if precision != 'f32' else element}"
            yield name, "product", {"m": n, "k": n, "n": n}, element, precision
    sizes = (16, 24, 40) if is_small else (512, 768, 3072)
    yield "mlp", "mlp", dict(zip(("rows", "width", "hidden"), sizes)), "f32", "f32"


def compile_graph(options, source, name, targets, flags):
    command = [options.weir, "compile", source, "-o", options.folder / f"{name}.weir", f"--target={','.join(targets)}"]
    done = subprocess.run([*map(str, command), *flags], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="benchmarks whose name this regular expression finds")
    parser.add_argument("--small", action="store_true", help="small sizes")
    parser.add_argument("--targets", default="vulkan,cuda:sm_80,cuda:sm_90,cuda:sm_90a")
    parser.add_argument("--weir", default=ROOT / "build/release/bin/weir")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    made, source = [], options.folder / "graph.mlir"
    for name, kind, sizes, element, precision in list_benchmarks(options.small):
        if not re.search(options.only, name):
            continue
        targets = options.targets.split(",")
        if precision != "f32":  # which Vulkan has not
            targets = [target for target in targets if target.startswith("cuda")]
        if not targets:
            continue
        text = getattr(weir_graphs, kind)(**sizes)
        source.write_text(weir_graphs.store_as(element, text) if element != "f32" else text)
        compile_graph(options, source, name, targets, [f"--precision={precision}"] if precision != "f32" else [])
        made.append({"name": name, "kind": kind, "sizes": sizes, "type": element, "precision": precision})
    for name, graph, flags in () if options.small else MODELS:
        if re.search(options.only, name):
            compile_graph(options, ROOT / "examples" / graph, name, options.targets.split(","), flags)
            made.append({"name": name})
    source.unlink(missing_ok=True)
    (options.folder / "benchmarks.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
