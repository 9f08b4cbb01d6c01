"""Sorts, scatters, running sums and loops on the processor, beside PyTorch, XLA and onnxruntime in one run.

    python benchmarks/places/run.py [CASE...] [--threads=2] [--repeats=9] [--json=FILE]

Each figure is the least of the repeated calls from Python, in ms; results stay where the library leaves them. Results of
all are compared with PyTorch's. Needs a build and scripts/setup --torch; a column is left out for jax and onnxruntime
where they are not installed."""

import argparse
import functools
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
TRIPS = 5000  # more than the compiler writes out


def sort(x):
    return torch.sort(x, stable=True)


def choose(x, k):
    return torch.topk(x, k)


def add_rows(target, places, updates):
    return target.index_add(0, places, updates)


def walk(x):
    return torch.cumsum(x, 1)


def repeat(x, w):
    for _ in range(TRIPS):
        x = torch.tanh(x * w + 0.25)
    return x


def make_cases():
    """Returns by name: the function, its arguments, and the same in JAX."""
    def rows(count, updates, *width):
        return torch.zeros(count, *width), torch.randint(0, count, (updates,)), torch.randn(updates, *width)

    def jax_repeat(x, w):
        return jax.lax.fori_loop(0, TRIPS, lambda _, h: jnp.tanh(h * w + 0.25), x)

    return {
        "sort 10^6": (sort, (torch.randn(10**6),),
                      lambda x: jax.lax.sort((x, jnp.arange(x.shape[0])), num_keys=1, is_stable=True)),
        "top 50 of 10^6": (functools.partial(choose, k=50), (torch.randn(10**6),), lambda x: jax.lax.top_k(x, 50)),
        "top 8 of 4096 x 128": (functools.partial(choose, k=8), (torch.randn(4096, 128),),
                                lambda x: jax.lax.top_k(x, 8)),
        "add 4,096 rows to 49,152 x 576": (add_rows, rows(49152, 4096, 576), lambda t, i, u: t.at[i].add(u)),
        "add 10^5 numbers to 10^5": (add_rows, rows(10**5, 10**5), lambda t, i, u: t.at[i].add(u)),
        "add 10^6 numbers to 10^6": (add_rows, rows(10**6, 10**6), lambda t, i, u: t.at[i].add(u)),
        "add 10^6 numbers to 1,000": (add_rows, rows(1000, 10**6), lambda t, i, u: t.at[i].add(u)),
        "cumsum 4096 x 4096": (walk, (torch.randn(4096, 4096),), lambda x: jnp.cumsum(x, 1)),
        f"loop of {TRIPS:,} trips, 256 elements": (repeat, (torch.rand(256), torch.rand(256)), jax_repeat),
    }


def measure(call, repeats):
    """Returns what a call returns, and the least time of one in ms."""
    result, times = call(), []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return result, min(times) * 1e3


def run_weir(function, arguments, jax_function, repeats):
    if function is repeat:  # PyTorch's trace of it has no loop
        program = weir.jax.compile(jax_function, *(value.numpy() for value in arguments), device="cpu")
    else:
        program = weir.compile(function, arguments, device="cpu")
    with program:
        given = [value.numpy() for value in arguments]
        result, least = measure(lambda: program(*given), repeats)
        return [part.numpy() for part in torch.utils._pytree.tree_leaves(result)], least


def run_torch(function, arguments, repeats):
    result, least = measure(lambda: function(*arguments), repeats)
    return [part.numpy() for part in torch.utils._pytree.tree_leaves(result)], least


def run_xla(function, arguments, repeats):
    compiled = jax.jit(function)
    given = [jnp.asarray(value.numpy()) for value in arguments]
    result, least = measure(lambda: jax.block_until_ready(compiled(*given)), repeats)
    return [numpy.asarray(part) for part in jax.tree.leaves(result)], least


def run_onnx(function, arguments, repeats, threads):
    """Runs the ONNX operator for a case, or returns None where there is none of its own."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper

    body = getattr(function, "func", function)
    size = arguments[0].numel() if body is sort else getattr(function, "keywords", {}).get("k")
    made = {
        sort: ([("TopK", ["a", "k"], ["out", "at"], {"largest": 0})], {"k": [size]}),
        choose: ([("TopK", ["a", "k"], ["out", "at"], {})], {"k": [size]}),
        add_rows: ([("Unsqueeze", ["b", "k"], ["at"], {}), ("ScatterND", ["a", "at", "c"], ["out"], {"reduction": "add"})],
                   {"k": [1]}),
        walk: ([("CumSum", ["a", "k"], ["out"], {})], {"k": [1]}),
    }.get(body)
    if made is None:
        return None
    nodes = [helper.make_node(name, inputs, outputs, **attributes) for name, inputs, outputs, attributes in made[0]]
    constants = [helper.make_tensor(name, TensorProto.INT64, [1], value) for name, value in made[1].items()]
    given = {name: value.numpy() for name, value in zip("abc", arguments)}
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
              for name, value in given.items()]
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, [None] * arguments[0].ndim)]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, constants),
                              opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return measure(lambda: session.run(["out"], given), repeats)


def check(name, library, results, expected):
    """Compares the values of a library with PyTorch's; positions of equal elements may differ."""
    scale = float(abs(expected[0]).max()) or 1.0
    error = float(abs(results[0].astype("f8") - expected[0].astype("f8")).max()) / scale
    if error > 1e-4:
        raise SystemExit(f"places: {library} is wrong on {name}: its error is {error:.1e} of the largest element")


def main():
    parser = argparse.ArgumentParser(prog="places", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="parts of names (default all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures to FILE")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    cases = {name: case for name, case in make_cases().items()
             if not options.cases or any(part in name for part in options.cases)}
    if not cases:
        parser.error(f"no case has {options.cases[0]} in its name")
    rows = []
    print("| ms | Weir | PyTorch | XLA | onnxruntime | best of the others / Weir |\n| --- | --- | --- | --- | --- | --- |")
    for name, (function, arguments, jax_function) in cases.items():
        expected, eager = run_torch(function, arguments, options.repeats)
        times = {"PyTorch": eager}
        ways = {"Weir": lambda: run_weir(function, arguments, jax_function, options.repeats),
                "XLA": lambda: run_xla(jax_function, arguments, options.repeats)}
        if has_onnxruntime():
            ways["onnxruntime"] = lambda: run_onnx(function, arguments, options.repeats, options.threads)
        for library, way in ways.items():
            if (found := way()) is not None:
                check(name, library, found[0], expected)
                times[library] = found[1]
        ratio = min(value for library, value in times.items() if library != "Weir") / times["Weir"]
        shown = [f"{times[library]:.3g}" if library in times else "-"
                 for library in ("Weir", "PyTorch", "XLA", "onnxruntime")]
        print(f"| {name} | {' | '.join(shown)} | {ratio:.2f} |", flush=True)
        rows.append({"case": name, "milliseconds": times, "ratio": ratio})
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


@functools.cache
def has_onnxruntime():
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        return False
    return True


# XLA takes its threads from the processors that it sees.
if __name__ == "__main__":
    threads = next((int(text[10:]) for text in sys.argv if text.startswith("--threads=") and text[10:].isdigit()), 2)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import jax
    import numpy
    import torch
    from jax import numpy as jnp

    import weir
    import weir.jax

    main()
