"""kernelbench CHECKOUT [--levels=1,2] [--full-size] [--run] [--keep=DIR] [--json=FILE] [--csv=FILE]

Exports the modules of a checkout of KernelBench (github.com/ScalingIntelligence/KernelBench), compiles each and, where it
has a gradient, its `--vjp`, and says what was refused and what took long. Integers above 32 outside of the models are
made smaller, unless --full-size is given. With --run the results are compared with PyTorch's in f64. With --keep the
graphs stay in DIR, and those that are there are not exported again.
Needs a build, scripts/build release, and PyTorch, scripts/setup --torch. Exits 1 where a result is not right or the
compiler crashed."""

import argparse
import csv
import importlib.util
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from safetensors import safe_open
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks/compile"))
from run import run_child  # noqa: E402

COLUMNS = ("module", "exported", "seconds", "peak_mb", "refused", "error", "vjp_seconds", "vjp_peak_mb", "vjp_refused",
           "vjp_error")
SLOW = 2.0  # user CPU seconds


def list_modules(checkout, levels):
    """Returns (name, path) in the suite's order."""
    modules = []
    for level in levels:
        folder = checkout / f"KernelBench/level{level}"
        paths = sorted(folder.glob("*.py"), key=lambda path: int(re.match(r"\d*", path.name)[0] or 0))
        if not paths:
            raise SystemExit(f"kernelbench: {folder} has no modules; give a checkout of ScalingIntelligence/KernelBench")
        modules += [(f"level{level}_{path.stem}", path) for path in paths]
    return modules


def export(path, stem, options):
    """Makes STEM.mlir, and with --run STEM.inputs.safetensors and STEM.expected.safetensors, unless they are there.
    Returns what export.py says of it."""
    said = pathlib.Path(f"{stem}.json")
    before = json.loads(said.read_text()) if said.exists() else {}
    if not before or (options.run and before["exported"] and "rounding" not in before):
        said.unlink(missing_ok=True)
        flags = ["--full-size"] * options.full_size + ["--values"] * options.run
        script = pathlib.Path(__file__).with_name("export.py")
        status, problem, _, _ = run_child([sys.executable, "-W", "ignore", script, path, stem, *flags], options.limit)
        if not said.exists():  # out of time or memory: tried again the next time
            return {"exported": False, "reason": problem or f"exit status {status}"}
    return json.loads(said.read_text())


def compare(artifact, stem, folder, options):
    """Returns the largest error of a run's results, each against its largest magnitude; or a problem. An error of up to
    four times that of PyTorch's own f32 is none; up to a hundred times if that one has no digit of a result, which is 0
    but for rounding, such as the gradient of a bias before a normalization."""
    output, given = folder / "out.safetensors", folder / "in.safetensors"
    described = subprocess.run([options.weir, "inspect", artifact, "--json"], capture_output=True, text=True, check=True)
    [entry] = json.loads(described.stdout)["entries"]
    taken = load_file(f"{stem}.inputs.safetensors")
    save_file({part["name"]: taken[part["name"]] for part in entry["arguments"]}, given)
    status, problem, _, _ = run_child([options.weir, "run", artifact, f"--input={given}", f"--output={output}"],
                                      options.limit)
    if status:
        return problem or f"exit status {status}"
    largest, rounding = 0.0, json.loads(pathlib.Path(f"{stem}.json").read_text())["rounding"]
    with safe_open(f"{stem}.expected.safetensors", "numpy") as expected:
        for name, value in load_file(output).items():
            wanted = expected.get_tensor(name)
            if value.size:
                scale = float(abs(wanted).max()) or 1.0
                error = float(abs(value.astype("f8") - wanted.astype("f8")).max())
                own = rounding[name]
                largest = max(largest, error / scale if error > (4 if own < scale else 100) * own else 0.0)
    return largest


def judge(name, path, options, folder):
    """Returns the module's row, a column without a value left out."""
    kept = options.keep or folder
    stem = kept / name
    said = export(path, stem, options)
    row = {"module": name, "exported": said["exported"]}
    if not said["exported"]:
        return row | {"refused": said["reason"]}
    ways = {"": ["--entry=main"]}
    if said["has_gradient"] and not options.forward:
        ways["vjp_"] = ["--vjp=main", "--entry=main.vjp"]
    for prefix, flags in ways.items():
        artifact = folder / "a.weir"
        command = [options.weir, "compile", f"{stem}.mlir", *flags, *options.target, "-o", artifact]
        status, problem, seconds, peak = run_child(command, options.limit)
        row |= {f"{prefix}seconds": round(seconds, 3), f"{prefix}peak_mb": round(peak / 1e6)}
        if status:
            row[f"{prefix}refused"] = problem.replace(f"{kept}/", "") or f"exit status {status}"
            row["crashed"] = row.get("crashed", False) or status != 2 and not problem.startswith("longer")
        elif options.run:
            row[f"{prefix}error"] = (compare(artifact, stem, folder, options) if "rounding" in said else
                                     f"PyTorch has no values in f64: {said.get('reason')}")
    return row


def print_summary(rows, tolerance):
    exported = [row for row in rows if row["exported"]]
    print(f"{len(rows)} modules, {len(exported)} exported")
    for row in rows:
        if not row["exported"]:
            print(f"  {row['module']}: {row['refused']}")
    for prefix, title in ("", "forward"), ("vjp_", "with gradients"):
        tried = [row for row in exported if f"{prefix}seconds" in row]
        if not tried:
            continue
        seconds = [row[f"{prefix}seconds"] for row in tried]
        refused = [row for row in tried if f"{prefix}refused" in row]
        print(f"{title}: {len(tried) - len(refused)} of {len(tried)} compile; user CPU seconds: median "
              f"{statistics.median(seconds):.2f}, max {max(seconds):.2f}, all {sum(seconds):.1f}")
        for row in refused:
            print(f"  refused: {row['module']}: {row[f'{prefix}refused']}")
        for row in sorted(tried, key=lambda row: -row[f"{prefix}seconds"]):
            if row[f"{prefix}seconds"] > SLOW:
                print(f"  slow: {row['module']}: {row[f'{prefix}seconds']:.1f} s, {row[f'{prefix}peak_mb']} MB")
        errors = [row for row in tried if f"{prefix}error" in row]
        if errors:
            numbers = [row[f"{prefix}error"] for row in errors if isinstance(row[f"{prefix}error"], float)]
            print(f"  {len(errors)} run; largest error {max(numbers, default=0):.1e}")
        for row in errors:
            if is_wrong(row[f"{prefix}error"], tolerance):
                print(f"  wrong: {row['module']}: {row[f'{prefix}error']}")


def is_wrong(error, tolerance):
    return error is not None and not (isinstance(error, float) and error <= tolerance)


def main():
    parser = argparse.ArgumentParser(prog="kernelbench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path, nargs="?", help="the folder of a checkout")
    parser.add_argument("--weir", type=pathlib.Path, help="the binary",
                        default=pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/release/bin")) / "weir")
    parser.add_argument("--target", default=[], type=lambda target: [f"--target={target}"],
                        help="of weir compile (default its own)")
    parser.add_argument("--levels", default="1,2", help="of the suite (default 1,2)")
    parser.add_argument("--only", default="", metavar="REGEX", help="the modules whose names match (default all)")
    parser.add_argument("--full-size", action="store_true", help="leave the modules' sizes as they are")
    parser.add_argument("--forward", action="store_true", help="no gradients")
    parser.add_argument("--run", action="store_true", help="run and compare with PyTorch in f64")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of an error with --run (default 1e-4)")
    parser.add_argument("--limit", type=float, default=300, help="wall seconds of one step (default 300)")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="where graphs stay; one for each size")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the rows to FILE")
    parser.add_argument("--csv", type=pathlib.Path, metavar="FILE", help="write the rows to FILE")
    options = parser.parse_args()
    if options.checkout is None:
        print("kernelbench: skipped, since no checkout of ScalingIntelligence/KernelBench is given")
        return 0
    if missing := [name for name in ("torch", "torch_mlir") if importlib.util.find_spec(name) is None]:
        print(f"kernelbench: skipped, since {missing[0]} is not installed; run scripts/setup --torch")
        return 0
    modules = [module for module in list_modules(options.checkout, options.levels.split(","))
               if re.search(options.only, module[0])]
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, path in modules:
            if sys.stderr.isatty():
                print(f"\r\033[K{len(rows)} of {len(modules)}: {name}", end="", file=sys.stderr, flush=True)
            rows.append(judge(name, path, options, pathlib.Path(folder)))
            if options.json:  # what is measured stays if a later module is interrupted
                options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
    if not rows:
        parser.error(f"no module matches {options.only}")
    print_summary(rows, options.tolerance)
    wrong = [row for row in rows if row.get("crashed") or is_wrong(row.get("error"), options.tolerance)
             or is_wrong(row.get("vjp_error"), options.tolerance)]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
