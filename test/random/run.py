"""random-graphs [--count=10000] [--seed=0] [--jobs=N] [--cuda] [--ops] [--families[=NAME,...]] [--drivers]

Makes random graphs and runs each through the reference in f64 and f32, Vulkan under
synchronization validation, the simulator and the verifier, also on NaN, infinities and numbers near 0; every other one with gradients,
against differences and on all of these. With --cuda also through the simulator as PTX. A graph that fails is made smaller as long as it
fails, and printed as a lit test. Exits 1 if one failed. Needs a build: scripts/build release.

With --families the examples and each graph are compiled for each family of Vulkan GPUs, or those named, validated, and
run in the simulator alone. A table counts what cannot be had, for lack of f64 or of buffers.

With --drivers each graph, every other one with gradients, is compiled once for the default Vulkan driver and for the
smallest profile, and both drivers (WEIR_SECOND_DRIVER) are compared with the reference in f64: several times as fast.

With --ops it runs none, but says which of the ops that the graph level takes they are made of."""

import argparse
import collections
import concurrent.futures
import functools
import os
import pathlib
import re
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/e2e"))
from check import (GRADIENT_BOUND, BOUND, PROFILES, check_cuda, check_drivers, check_edges,  # noqa: E402
                   check_family, check_gradients, check_values, get_profile, list_families)
from conftest import SECOND_DRIVER, Weir  # noqa: E402
from graphs import make  # noqa: E402
from operations import SINCE  # noqa: E402
from shrink import remove_unused, shrink  # noqa: E402


def check_everywhere(weir, graph, seed, has_gradients, has_cuda=False):
    check_values(weir, graph, seed, get_profile(seed), validated=True, pinned=seed % 4 == 0)
    check_edges(weir, graph, seed)
    if has_gradients:
        check_gradients(weir, graph, seed, validated=True)
    if has_cuda:
        check_cuda(weir, graph, seed)


def find_problem(graph, seed, has_gradients, check):
    """Returns the problem that `check`, a function as `check_everywhere`, finds in a graph, None for none."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(Weir(pathlib.Path(folder)), graph, seed, has_gradients)
        except AssertionError as problem:
            # Folders and tools have other names each time.
            return re.sub(rf"{re.escape(folder)}/?|\S*/bin/|\S*scripts/", "", str(problem))
    return None


def get_step(problem):
    """The command that failed, without what is particular to a run."""
    return problem.splitlines()[0] if problem else None


def print_lit_test(graph, seed, problem, choose_profile=get_profile):
    profile, step = choose_profile(seed), get_step(problem)
    compile, inputs = "weir compile %s -o %t.weir", f"--random-inputs={seed}"
    lines = [f"// Found by scripts/random-graphs --seed={seed} --count=1: {step}"]
    lines += [f"//   {line}" for line in problem.splitlines()[1:7]]
    if profile:
        edit = f"import json; p = json.load(open('%t.json')); json.dump(p | {PROFILES[profile]}, open('%t.json', 'w'))"
        lines += ["// RUN: weir devices --emit-profile=%t.json", f'// RUN: %python -c "{edit}"']
        compile += " --target=vulkan:%t.json"
    bound = BOUND
    if "gradcheck" in step:
        lines.append(f"// RUN: weir gradcheck %s --entry=f --seed={seed}")
    if "f.vjp" in step or "gradcheck" in step:
        compile, bound = compile + " --vjp=f --entry=f.vjp", GRADIENT_BOUND
    lines += [f"// RUN: {compile}",
              f"// RUN: weir run %t.weir --device=reference --f64 {inputs} --output=%t.safetensors",
              f"// RUN: weir run %t.weir {inputs} --compare=%t.safetensors --tolerance={bound}",
              f"// RUN: weir run %t.weir --device=sim {inputs}"]
    print("\n".join([*lines, graph.text()]), flush=True)


def judge(seed, check):
    has_gradients = seed % 2 == 0
    graph = make(seed, differentiable=has_gradients)
    problem = find_problem(graph, seed, has_gradients, check)
    if problem is None:
        return None
    # Values that nothing uses may decide which check is the first to fail.
    needed = remove_unused(graph.copy())
    if found := find_problem(needed, seed, has_gradients, check):
        graph, problem = needed, found
    step = get_step(problem)
    smaller = shrink(graph, lambda other: get_step(find_problem(other, seed, has_gradients, check)) == step)
    return smaller, seed, find_problem(smaller, seed, has_gradients, check) or problem


def count_ops(seeds):
    """Returns the ops that the graph level takes (those that test_ops.py runs, and norms), and the number of graphs
    that have each, of these seeds and the first ones of the kinds that came later."""
    from test_ops import FAMILIES
    text = (ROOT / "dialects/Norm/Norm.td").read_text()
    taken = {case.op for make_cases in FAMILIES.values() for case in make_cases()}
    taken |= {f"norm.{name}" for name in re.findall(r'Norm_Op<"(\w+)"', text)}
    graphs = collections.Counter()
    later = [first + number for first in set(SINCE.values()) for number in range(100)]
    for seed in [*seeds, *later]:
        graphs.update(set(re.findall(r"\b[a-z]+\.\w+", make(seed).text())) & taken)
    return taken, graphs


def print_ops(seeds):
    taken, graphs = count_ops(seeds)
    for dialect in sorted({op.split(".")[0] for op in taken}):
        ops = sorted(op for op in taken if op.startswith(f"{dialect}."))
        print(f"{dialect}: {sum(op in graphs for op in ops)} of {len(ops)}")
        for op in ops:
            print(f"  {op}: {graphs[op]}")
    print(f"all: {len(graphs)} of {len(taken)}")


# Examples that the simulator runs in seconds. Their tolerance is that of test_families.py.
EXAMPLES = ["background_case1", "layer_norm_vjp", "mlp/mlp", "from_jax/mixer"]
EXAMPLE_BOUND = 2e-5


def check_for_families(name, families):
    """Returns the outcome by family for an example or the graph of a seed: None, a reason, or a problem."""
    with tempfile.TemporaryDirectory() as folder:
        weir, bound = Weir(pathlib.Path(folder)), BOUND
        inputs = ["--random-inputs=1"]
        if isinstance(name, int):
            source, inputs = weir.folder / "a.mlir", [f"--random-inputs={name}"]
            source.write_text(make(name, differentiable=name % 2 == 0).text())
        else:
            source, bound = weir.examples / f"{name}.mlir", EXAMPLE_BOUND
            if (given := source.parent / "inputs.safetensors").exists():
                inputs.append(f"--input={given}")
        outcomes = {}
        for family, has_float64 in families.items():
            try:
                outcomes[family] = check_family(weir, source, family, has_float64, inputs, bound)
            except AssertionError as problem:
                outcomes[family] = f"failed: {problem}"
        return outcomes


def run_families(seeds, chosen, jobs):
    """Prints a table of what each family can have, and each problem. Returns the number of problems."""
    families = {name: f64 for name, f64 in list_families().items() if not chosen or name in chosen.split(",")}
    if unknown := set(filter(None, chosen.split(","))) - set(families):
        sys.exit(f"random-graphs: there is no family {', '.join(sorted(unknown))}")
    counts, failures = {family: collections.Counter() for family in families}, 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        names = [*EXAMPLES, *seeds]
        for name, outcomes in zip(names, pool.map(lambda name: check_for_families(name, families), names)):
            for family, outcome in outcomes.items():
                if outcome and outcome.startswith("failed"):
                    failures += 1
                    print(f"{name} for {family} {outcome}", flush=True)
                counts[family][(outcome or "right").split(":")[0], isinstance(name, int)] += 1
    print("family: examples and graphs that are right; without f64; without buffers; failed")
    for family, count in counts.items():
        cells = [f"{count[kind, False]} + {count[kind, True]}" for kind in ("right", "f64", "buffers", "failed")]
        print(f"{family}: {'; '.join(cells)}")
    return failures


def main():
    parser = argparse.ArgumentParser(prog="random-graphs", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0, help="of the first graph; the next have the next ones")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="graphs at a time")
    parser.add_argument("--cuda", action="store_true", help="also run each graph's PTX on the simulator")
    parser.add_argument("--drivers", action="store_true", help="run each graph on both Vulkan drivers, and nothing else")
    parser.add_argument("--ops", action="store_true", help="count the graphs that have each op")
    parser.add_argument("--families", nargs="?", const="", metavar="NAME,...",
                        help="compile for families of GPUs, and run in the simulator")
    options = parser.parse_args()
    start, failures = time.monotonic(), 0
    seeds = range(options.seed, options.seed + options.count)
    if options.ops:
        print_ops(seeds)
        return 0
    if options.families is not None:
        return 1 if run_families(seeds, options.families, options.jobs) else 0

    check, choose_profile, fit = functools.partial(check_everywhere, has_cuda=options.cuda), get_profile, {}
    if options.drivers:
        if not SECOND_DRIVER:
            parser.error("--drivers needs a second driver: WEIR_SECOND_DRIVER names its manifest")

        def check(weir, graph, seed, has_gradients):
            fit[seed] = check_drivers(weir, graph, seed, has_gradients)

        choose_profile = lambda _: None

    def show(done, end=""):
        speed = done / (time.monotonic() - start) * 60
        print(f"\r\033[K{done} of {options.count} graphs, {failures} failed, {speed:.0f} a minute", end=end,
              file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done, failure in enumerate(pool.map(lambda seed: judge(seed, check), seeds), 1):
            if failure:
                failures += 1
                print_lit_test(*failure, choose_profile)
            if sys.stderr.isatty():
                show(done)
    show(options.count, "\n")
    if options.drivers:
        count = sum(fit.values())
        print(f"{count} graphs fit the smallest profile and ran on the second driver; {len(fit) - count} need f64")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
