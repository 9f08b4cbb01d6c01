#!/usr/bin/env python3
"""Compiles what a GPU is measured on: gather.py FOLDER [--only=REGEX] [--small] [--targets=vulkan,cuda:sm_80].

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
import whole_models  # noqa: E402

SHAPES = ((4096, 1024), (1024, 4096), (512, 8192), (1024, 32000))
SMALL = ((64, 256),)


def list_benchmarks(is_small):
    """Yields the name, the kind and sizes by which benchmarks/peers knows it, the elements' type and the precision."""
    for rows, columns in SMALL if is_small else SHAPES:
        for kind in ("copy", *cases.ROW_KINDS):
            for element in ("f32", "bf16"):
                if (kind, element) != ("copy", "bf16"):
                    yield f"{kind}-{rows}x{columns}-{element}", kind, {"rows": rows, "columns": columns}, element, "f32"
    for n in (128,) if is_small else (512, 1024, 4096, 8192):
        for element, precision in (("f32", "f32"), ("bf16", "f32"), ("f32", "tf32")):
            for kind in ("product", "product_bt"):
                if n != 8192 or element == "bf16":
                    name = f"{kind}-{n}-{precision if precision != 'f32' else element}"
                    yield name, kind, {"m": n, "k": n, "n": n}, element, precision
    for sizes in ((16, 24, 40),) if is_small else ((512, 768, 3072), (4096, 1024, 4096)):
        for element, precision in (("f32", "f32"), ("bf16", "f32"), ("f32", "tf32")):
            name = f"mlp-{'x'.join(map(str, sizes))}-{precision if precision != 'f32' else element}"
            yield name, "mlp", dict(zip(("rows", "width", "hidden"), sizes)), element, precision
    for heads, tokens, size in (((2,), 40, 16),) if is_small else (((2, 8), 2048, 64), ((1, 16), 4096, 128)):
        for kind in "attention", "attention_vjp":
            for element in "f32", "bf16":
                name = f"{kind}-{'x'.join(map(str, (*heads, tokens, size)))}-{element}"
                yield name, kind, {"heads": heads, "tokens": tokens, "size": size}, element, "f32"


def list_models():
    """Yields the same of models, whose training steps are measured."""
    gpt2 = {"layers": 6, "hidden": 768, "heads": 12, "vocabulary": 32768}
    yield "gpt2", gpt2 | {"sequence": 128, "batch": 1}
    yield "gpt2", gpt2 | {"sequence": 512, "batch": 8}
    yield "llama", whole_models.SIZES["llama"]
    yield "resnet", whole_models.SIZES["resnet"]


def make_text(kind, sizes, element):
    """Returns the graph. Products and attention compute on bf16, with sums of f32; what else there is in bf16 is stored
    so and computed in f32."""
    if kind.startswith("attention"):
        return getattr(weir_graphs, kind)(**sizes, element=element)
    if (kind, element) == ("mlp", "bf16"):
        return weir_graphs.mlp_bf16(**sizes)
    text = getattr(weir_graphs, kind)(**sizes)
    if element == "f32":
        return text
    return text.replace("f32", element) if kind.startswith("product") else weir_graphs.store_as(element, text)


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
        source.write_text(make_text(kind, sizes, element))
        compile_graph(options, source, name, targets, [f"--precision={precision}"] if precision != "f32" else [])
        made.append({"name": name, "kind": kind, "sizes": sizes, "type": element, "precision": precision})
    for family, sizes in () if options.small else list_models():
        for precision in "f32", "tf32":
            name = f"{family}-{sizes['batch']}x{sizes.get('sequence', sizes.get('resolution'))}-{precision}"
            if re.search(options.only, name):
                source.write_text(whole_models.make_graph(family, **sizes))
                targets = [target for target in options.targets.split(",")
                           if target.startswith("cuda") or precision == "f32"]
                compile_graph(options, source, name, targets,
                              ["--train=sgd:main", "--entry=main.step", f"--precision={precision}"])
                made.append({"name": name, "kind": family, "sizes": sizes, "type": "f32", "precision": precision})
    source.unlink(missing_ok=True)
    (options.folder / "benchmarks.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
