"""Times `weir compile` on a fixed set of graphs: the examples, and training steps of the models of graphs.py.

For each case: user CPU seconds, the fewest of some runs, and how many times those of a smaller case that is; the most
memory that was resident; the seconds of each level, where `weir compile` has --timing."""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

import graphs

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAIN = ("--train=sgd:main", "--entry=main.step")
STEP = (*TRAIN, "--require-donation")
LEVELS = ("graph", "gradient", "kernels", "dispatches", "placed", "ordered", "emitted")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    source: str  # a file, or the family of graphs.py
    flags: tuple = STEP
    sizes: dict = dataclasses.field(default_factory=dict)  # what the family is given
    base: str | None = None  # the smaller case

    def write(self, folder):
        """Returns the path of the graph, which is made in `folder` unless it is a file."""
        if self.source.endswith(".mlir"):
            return ROOT / self.source
        path = folder / "graph.mlir"
        path.write_text(graphs.FAMILIES[self.source](**self.sizes))
        return path


# SmolLM2-135M. Other vocabularies are cut to what the target binds, 128 MiB.
SMOL = {"tied": True}
WIDE = SMOL | {"hidden": 1152, "heads": 18, "kv_heads": 6, "intermediate": 3072, "vocabulary": 24576}
GPT2 = {"vocabulary": 32768}

CASES = [
    Case("layer_norm", "examples/layer_norm.mlir", ()),
    Case("layer_norm_vjp", "examples/layer_norm_vjp.mlir", ()),
    Case("background_case1", "examples/background_case1.mlir", ()),
    Case("mlp", "examples/mlp/mlp.mlir", ("--train=adamw:mlp_loss", "--entry=mlp_loss.step", "--require-donation")),
    Case("mixer", "examples/from_jax/mixer.mlir", ("--grad=mixer", "--entry=mixer.grad")),
    Case("gpt2_block", "examples/gpt2_block_train/gpt2.mlir",
         ("--train=adamw:gpt2", "--entry=gpt2.step", "--require-donation")),
    Case("llama-6", "llama", sizes=SMOL | {"layers": 6}),
    Case("llama-30", "llama", sizes=SMOL | {"layers": 30}, base="llama-6"),
    Case("llama-60", "llama", sizes=SMOL | {"layers": 60}, base="llama-30"),
    Case("llama-6-wide", "llama", sizes=WIDE | {"layers": 6}, base="llama-6"),
    Case("llama-30-lora", "llama", sizes=SMOL | {"layers": 30, "rank": 8}),
    Case("gpt2-6", "gpt2", sizes=GPT2 | {"layers": 6}),
    Case("gpt2-30", "gpt2", sizes=GPT2 | {"layers": 30}, base="gpt2-6"),
    Case("vit-12", "vit", sizes={"layers": 12}),
    # --require-donation refuses batch norms, whose weights are read behind their update.
    Case("resnet-18", "resnet", TRAIN, sizes={"layers": 18, "batch": 2}),
    Case("resnet-18-wide", "resnet", TRAIN, sizes={"layers": 18, "batch": 2, "width": 128}, base="resnet-18"),
    Case("resnet-50", "resnet", TRAIN, sizes={"layers": 50, "batch": 2}),
    Case("mobilenet-v1", "mobilenet", TRAIN, sizes={"batch": 2}),
    Case("mobilenet-v2", "mobilenet", TRAIN, sizes={"version": 2, "batch": 2}),
    Case("unet", "unet"),
    Case("unet-wide", "unet", sizes={"width": 64}, base="unet"),
]


def run_child(command, limit):
    """Returns the exit status, the first line on standard error, user CPU seconds and the most resident bytes."""
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=errors)
        timer = threading.Timer(limit, child.kill)
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        was_late = not timer.is_alive()
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        problem = f"longer than {limit} s" if was_late else errors.read().decode(errors="replace").strip().split("\n")[0]
    return child.returncode, problem, usage.ru_utime, usage.ru_maxrss * 1024


def read_levels(trace):
    """Returns the seconds of each level in a trace of --timing."""
    levels = {}
    for event in json.loads(trace.read_text())["traceEvents"]:
        if event.get("cat") == "level":
            levels[event["name"]] = levels.get(event["name"], 0.0) + event["dur"] / 1e6
    return levels


def has_timing(weir):
    text = subprocess.run([weir, "compile", "--help"], capture_output=True, text=True, check=True).stdout
    return re.search(r"--timing\b", text) is not None


def measure(case, weir, repeats, limit, timing):
    """Returns a case's row: name, seconds, peak_mb and levels, or a problem."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        graph, trace = case.write(folder), folder / "trace.json"
        command = [weir, "compile", graph, *case.flags, "-o", folder / "out.weir"]
        best = None
        for _ in range(repeats):
            status, problem, seconds, peak = run_child([*command, *([f"--timing={trace}"] if timing else [])], limit)
            if status:
                return {"name": case.name, "problem": problem.replace(f"{folder}/", "") or f"exit status {status}"}
            if best is None or seconds < best["seconds"]:
                best = {"name": case.name, "seconds": round(seconds, 3), "peak_mb": round(peak / 1e6, 1),
                        "levels": read_levels(trace) if timing else {}}
        return best


def measure_xla(case, python, limit):
    """Returns the CPU seconds that XLA compiles a Llama of these sizes in, None for other graphs or beyond the limit."""
    if case.source != "llama" or case.sizes.get("rank"):
        return None
    flags = [f"--{name.replace('_', '-')}={size}" for name, size in case.sizes.items() if name != "tied"]
    command = [python, pathlib.Path(__file__).with_name("xla.py"), *flags]
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        print(f"{case.name}: XLA takes longer than {limit} s", file=sys.stderr)
        return None
    if done.returncode:
        raise SystemExit(done.stderr.strip().split("\n")[-1])
    return json.loads(done.stdout)["seconds"]


def has_jax(python):
    return subprocess.run([python, "-c", "import jax"], stderr=subprocess.DEVNULL).returncode == 0


def add_growth(rows):
    """Sets how many times the smaller case's seconds each one takes."""
    seconds = {row["name"]: row.get("seconds") for row in rows}
    for case in CASES:
        for row in rows:
            if row["name"] == case.name and row.get("seconds") and seconds.get(case.base):
                row["growth"] = round(row["seconds"] / seconds[case.base], 2)
                row["base"] = case.base


def add_ratios(rows, others):
    """Sets the seconds of `others` by name, and how many times those each case takes."""
    earlier = {row["name"]: row.get("seconds") for row in others}
    for row in rows:
        if row.get("seconds") and earlier.get(row["name"]):
            row["against"] = earlier[row["name"]]
            row["ratio"] = round(row["seconds"] / row["against"], 2)


def print_table(rows):
    """Prints the rows in Markdown, with the columns that some row has."""
    levels = [level for level in LEVELS if any(level in row.get("levels", ()) for row in rows)]
    columns = {"s": "seconds", "growth": "growth", "MB": "peak_mb", "XLA s": "xla_seconds", "before s": "against",
               "ratio": "ratio"}
    columns = {title: key for title, key in columns.items() if any(row.get(key) is not None for row in rows)}
    print("| | " + " | ".join([*columns, *levels]) + " |")
    print("| --- |" + " --- |" * (len(columns) + len(levels)))
    for row in rows:
        if "problem" in row:
            print(f"| {row['name']} | {row['problem']} |")
            continue
        cells = []
        for key in columns.values():
            value = row.get(key)
            text = "" if value is None else f"{value:.2f}" if key != "peak_mb" else f"{value:.0f}"
            cells.append(f"{text} of {row['base']}" if key == "growth" and value else text)
        cells += [f"{row['levels'][level]:.2f}" if level in row["levels"] else "" for level in levels]
        print(f"| {row['name']} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", type=pathlib.Path, default=ROOT / "build/release/bin/weir", help="the binary")
    parser.add_argument("--only", default="", metavar="REGEX", help="the cases whose names match (default all)")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each case; the fastest counts (default 1)")
    parser.add_argument("--limit", type=float, default=600, help="wall seconds of a run (default 600)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the rows to FILE, too")
    parser.add_argument("--against", type=pathlib.Path, metavar="FILE",
                        help="an earlier run's --json, or another weir, which is run beside this one")
    parser.add_argument("--xla", metavar="PYTHON", help="a Python with jax: XLA's seconds for the same Llama steps")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    options = parser.parse_args()
    cases = [case for case in CASES if re.search(options.only, case.name)]
    if not cases:
        parser.error(f"no case matches {options.only}; --list prints the names")
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    for path in [options.weir, *([options.against] if options.against else [])]:
        if not path.exists():
            parser.error(f"{path} does not exist; scripts/build release makes weir, --json an earlier run's file")
    python = options.xla
    if python and not has_jax(python):
        print(f"{python} has no jax, so there are no figures of XLA; install it with pip install jax", file=sys.stderr)
        python = None

    other = options.against if options.against and os.access(options.against, os.X_OK) else None
    timing, rows, others = has_timing(options.weir), [], []
    for case in cases:
        if sys.stderr.isatty():
            print(f"\r\033[K{case.name}", end="", file=sys.stderr, flush=True)
        rows.append(measure(case, options.weir, options.repeats, options.limit, timing))
        if other:
            others.append(measure(case, other, options.repeats, options.limit, timing=False))
        if python:
            rows[-1]["xla_seconds"] = measure_xla(case, python, options.limit)
        if options.json:  # what is measured stays if a later case is interrupted
            options.json.write_text(json.dumps({"cases": rows}) + "\n")
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if options.against and not other:
        others = json.loads(options.against.read_text())["cases"]
    add_growth(rows)
    add_ratios(rows, others)
    print_table(rows)
    if options.json:
        options.json.write_text(json.dumps({"cases": rows}, indent=2) + "\n")
    return 1 if any("problem" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
