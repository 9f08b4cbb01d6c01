#!/usr/bin/env python3
"""Tables of docs/model.md: run.py kernels|cases|published [--model=h100] [--weir=PATH] [--only=CASE].

`kernels` compiles norms, losses, matrix products and models for CUDA and prints what the model says of each kernel; `cases`
of each case, on several models, beside a copy of as many bytes as the case's arguments and results have. `published` prints its predictions for the kernels of test/model/kernels.cu beside the times that others measured.
"""

import argparse
import functools
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks" / folder) for folder in ("peers", "compile")]
import graphs  # noqa: E402
import weir_graphs  # noqa: E402

SHAPES = ((4096, 1024), (1024, 4096), (512, 8192), (1024, 32000))
ROWS = ("layer_norm", "layer_norm_vjp", "rms_norm", "rms_norm_vjp", "softmax", "softmax_vjp", "cross_entropy",
        "cross_entropy_vjp", "gelu_bias", "gelu_bias_vjp")
BYTES = {"f32": 4, "bf16": 2, "i64": 8}
# Code for a device, by the name of its model.
PROFILES = {"h100": "sm_90a", "h200": "sm_90a"}
GPT2 = {"layers": 6, "vocabulary": 32768}

MATRIX = 4096 * 4096 * 4
GIB = 1 << 30
# Model, entry, grid, workgroup, bytes, measured ms, source.
PUBLISHED = (
    ("h100", "copy4", "262144", "256", (GIB, GIB), 2 * GIB / 3024e9 * 1e3, "copy, 3024 GB/s"),
    ("h200", "copy4", "262144", "256", (GIB, GIB), 2 * GIB / 4300e9 * 1e3, "copy, 4300 GB/s"),
    ("a6000", "naive", "128,128", "32,32", (MATRIX,) * 3, 2 * 4096**3 / 309.0e9 * 1e3, "worklog, kernel 1"),
    ("a6000", "coalesced", "128,128", "1024", (MATRIX,) * 3, 2 * 4096**3 / 1986.5e9 * 1e3, "worklog, kernel 2"),
    ("a6000", "tiled", "128,128", "1024", (MATRIX,) * 3, 2 * 4096**3 / 2980.3e9 * 1e3, "worklog, kernel 3"),
    ("a6000", "column8", "64,64", "512", (MATRIX,) * 3, 2 * 4096**3 / 8474.7e9 * 1e3, "worklog, kernel 4"),
    ("a6000", "square8", "32,32", "256", (MATRIX,) * 3, 2 * 4096**3 / 15971.7e9 * 1e3, "worklog, kernel 5"),
    ("a6000", "vector8", "32,32", "256", (MATRIX,) * 3, 2 * 4096**3 / 18237.3e9 * 1e3, "worklog, kernel 6"),
)


def make_cases():
    """Yields the name, the graph's text and the options of `weir compile`."""
    for rows, columns in SHAPES:
        for name in ROWS:
            text = getattr(weir_graphs, name)(rows, columns)
            yield f"{name} {rows} x {columns}", text, ()
            yield f"{name} {rows} x {columns} bf16", weir_graphs.store_as("bf16", text), ()
    for n in (512, 1024, 4096):
        product = weir_graphs.product(n, n, n)
        yield f"matmul {n}", product, ()
        yield f"matmul {n} bf16", product.replace("f32", "bf16"), ()
        yield f"matmul {n} tf32", product, ("--precision=tf32",)
    yield "mlp 512 x 768 x 3072", weir_graphs.mlp(512, 768, 3072), ()
    yield "gpt2-6 step", graphs.gpt2(**GPT2), ("--train=sgd:main", "--entry=main.step")


def get_profile(options, model):
    return options.profile or PROFILES.get(model, "sm_80")


def predict(options, *arguments):
    done = subprocess.run([options.weir, "bench", *arguments, f"--ptxas={options.ptxas}", "--json"],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def get_bytes(text):
    """Returns the bytes of the arguments and results of a graph's function."""
    head = text.split("\n", 1)[0]
    return sum(BYTES[element] * math.prod(map(int, re.findall(r"\d+", shape)))
               for shape, element in re.findall(r"tensor<((?:\d+x)*)(\w+)>", head))


@functools.cache
def predict_copy(model, size, weir, ptxas):
    """Returns the seconds of a copy that reads and writes `size` bytes in all, 16 an invocation, its launch included."""
    half = size // 2
    options = argparse.Namespace(weir=weir, ptxas=ptxas)
    return predict(options, ROOT / "test/model/kernels.ptx", "--entry=copy4", f"--model={model}", "--workgroup=256",
                   f"--grid={max(1, half // 4096)}", f"--bytes={half},{half}")["seconds"]


def print_row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def compile_cases(options):
    """Yields the name and the artifacts of each case, by profile, and the bytes of its arguments and results."""
    profiles = {get_profile(options, model) for model in options.model.split(",")}
    with tempfile.TemporaryDirectory() as folder:
        for name, text, flags in make_cases():
            if options.only and options.only not in name:
                continue
            graph = pathlib.Path(folder) / "graph.mlir"
            artifacts = {profile: pathlib.Path(folder) / f"{profile}.weir" for profile in profiles}
            graph.write_text(text)
            for profile, artifact in artifacts.items():
                done = subprocess.run([options.weir, "compile", graph, f"--target=cuda:{profile}", *flags, "-o",
                                       artifact], capture_output=True, text=True)
                if done.returncode:
                    sys.exit(f"{name}: {done.stderr}")
            yield name, artifacts, get_bytes(text)


def print_kernel(kernel, seconds):
    if "problem" in kernel:
        return print_row("", kernel["kernel"], kernel["dispatches"], kernel["problem"], *[""] * 8)
    time, bound, times = kernel["seconds"], kernel["bound"], kernel["dispatches"]
    resources, needed = kernel["resources"], kernel["bytes_needed_in_flight"]
    print_row("", kernel["kernel"], times, f"{time * times * 1e6:.1f}", f"{time * times / seconds:.0%}",
              f"{bound['seconds'] * times * 1e6:.1f} {bound['by']}", f"{bound['seconds'] / time:.0%}",
              kernel["terms"][0]["name"], f"{kernel['sectors_used']:.0%}",
              resources["registers"] if isinstance(resources, dict) else "not known",
              f"{kernel['occupancy']['share']:.0%}", f"{kernel['bytes_in_flight'] / needed:.0%}")


def print_kernels(options):
    print_row("case", "kernel", "times", "us", "share", "bound us", "of bound", "limited by", "sectors", "registers",
              "occupancy", "in flight")
    print_row(*["---"] * 12)
    model = options.model.split(",")[0]
    for name, artifacts, _ in compile_cases(options):
        result = predict(options, artifacts[get_profile(options, model)], f"--model={model}")
        print_row(f"**{name}**", f"{result['dispatches']} dispatches", "", f"{result['seconds'] * 1e6:.1f}", *[""] * 8)
        for kernel in result["kernels"][:options.top]:
            print_kernel(kernel, result["kernel_seconds"])
        sys.stdout.flush()


def print_cases(options):
    models = options.model.split(",")
    print_row("case", *[cell for model in models for cell in (f"{model}: dispatches", "us", "bound us", "of bound",
                                                              "of a copy", "slowest kernel")])
    print_row(*["---"] * (1 + 6 * len(models)))
    for name, artifacts, size in compile_cases(options):
        cells = []
        for model in models:
            result = predict(options, artifacts[get_profile(options, model)], f"--model={model}")
            known = [kernel for kernel in result["kernels"] if "problem" not in kernel]
            bound = sum(kernel["bound"]["seconds"] * kernel["dispatches"] for kernel in known)
            slowest = known[0]
            cells += [result["dispatches"], f"{result['seconds'] * 1e6:.1f}", f"{bound * 1e6:.1f}", f"{bound / result['seconds']:.0%}",
                      f"{predict_copy(model, size, options.weir, options.ptxas) / result['seconds']:.0%}"
                      if name.startswith(ROWS) else "", f"{slowest['kernel']}: {slowest['terms'][0]['name']}"]
        print_row(name, *cells)
        sys.stdout.flush()


def print_published(options):
    print_row("device", "kernel", "predicted ms", "measured ms", "off by", "limited by", "measured in")
    print_row(*["---"] * 7)
    for model, entry, grid, workgroup, sizes, measured, source in PUBLISHED:
        result = predict(options, ROOT / "test/model/kernels.ptx", f"--entry={entry}", f"--model={model}",
                         f"--grid={grid}", f"--workgroup={workgroup}", f"--bytes={','.join(map(str, sizes))}")
        kernel = result["kernels"][0]
        time = kernel["seconds"] * 1e3
        print_row(model, entry, f"{time:.3g}", f"{measured:.3g}", f"{time / measured - 1:+.0%}",
                  kernel["terms"][0]["name"], source)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("kernels", "cases", "published"))
    parser.add_argument("--model", default="h100", help="several, separated by commas, with cases")
    parser.add_argument("--profile", help="of all models; else sm_90a for h100 and h200, sm_80 for others")
    parser.add_argument("--weir", default=ROOT / "build/release/bin/weir")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--top", type=int, default=100, help="kernels of a case")
    options = parser.parse_args()
    {"kernels": print_kernels, "cases": print_cases, "published": print_published}[options.table](options)


if __name__ == "__main__":
    main()
