"""Times Weir beside PyTorch, torch.compile, XLA, onnxruntime and IREE on the CPU.

Each has the same number of threads and is called with its data in place; every operand is an argument, and nothing is
packed ahead of time. What it computes is compared with NumPy in f64 first, a model's losses with those of the first
peer that has it: what is wrong is reported and not timed.
Contenders take turns, a round of each after another. The fastest call counts, and of several settings the best."""

import argparse
import dataclasses
import importlib.metadata
import importlib.util
import json
import math
import os
import pathlib
import platform
import re
import sys

import worker

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The memory of a result that was dropped serves the next one, without a page fault.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
          "MALLOC_TOP_PAD_": str(64 << 20)}
THREADS = ("OMP_NUM_THREADS", "LP_NUM_THREADS", "WEIR_THREADS")  # of PyTorch, of lavapipe, of Weir


@dataclasses.dataclass(frozen=True)
class Contender:
    name: str
    module: str  # of this folder
    argument: str  # of its list_settings
    packages: dict  # what to install, by what is imported

    def find_missing(self):
        """Returns the packages that are not installed."""
        return sorted({package for module, package in self.packages.items() if not has_module(module)})


NUMPY, TORCH, JAX = {"numpy": "numpy"}, {"torch": "torch"}, {"jax": "jax"}
WEIRS = [Contender("Weir CPU", "with_weir", "cpu", NUMPY), Contender("Weir Vulkan", "with_weir", "vulkan", NUMPY)]
PEERS = [
    Contender("PyTorch", "with_torch", "", TORCH),
    Contender("torch.compile", "with_torch", "compiled", TORCH),
    Contender("XLA", "with_jax", "", JAX),
    Contender("onnxruntime", "with_onnx", "", {"onnxruntime": "onnxruntime", "onnx": "onnx"}),
    Contender("IREE", "with_iree", "", JAX | {"iree.compiler": "iree-base-compiler",
                                              "iree.runtime": "iree-base-runtime"}),
]


def has_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def say(text):
    print(text, file=sys.stderr, flush=True)


def get_geomean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


class Workers:
    """The contenders' processes: one of each, and for a model one of each setting, so that its memory is its own."""

    def __init__(self, options, limit):
        self.options, self.limit, self.processes = options, limit, {}

    def get(self, contender, case=None, setting=None):
        """Returns the process of a contender, or that of its setting if the case is a model. Errors: worker.Failure."""
        key = (contender.name, setting if case and case.is_model else None)
        if key not in self.processes or not self.processes[key].is_alive():
            self.processes[key] = worker.Worker(contender.module, contender.argument, self.options, self.limit)
        return self.processes[key]

    def clear(self):
        """Frees what a case has left."""
        for (name, setting), each in list(self.processes.items()):
            if setting is not None:
                self.processes.pop((name, setting)).kill()
            elif each.is_alive():
                each.ask("clear")

    def kill(self):
        for each in self.processes.values():
            each.kill()


def prepare(case, contender, workers, row):
    """Returns the settings of a contender that compute a case rightly. The row is told of the others."""
    problems = []
    try:
        settings = workers.get(contender).ask("list", case)
        if not settings:
            problems.append("it has none of this kind")
        for setting in list(settings):
            try:
                results, facts = workers.get(contender, case, setting).ask("prepare", case, setting)
                row["facts"].setdefault(contender.name, {})[setting] = facts
                if row["expected"] is None:
                    row["expected"], row["reference"] = results, f"{contender.name}, {setting}"
                wrong = case.find_problem(results, row["expected"])
                if wrong and "reference" in row:
                    wrong += f", against {row['reference']}"
            except worker.Failure as failure:
                wrong = str(failure)
            if wrong:
                settings.remove(setting)
                problems.append(f"{setting}: {wrong}")
    except worker.Failure as failure:
        settings = []
        problems.append(str(failure))
    if problems:
        row["problems"][contender.name] = problems
        say(f"{case.name}: {contender.name} is skipped: {'; '.join(problems)}")
    return settings


def measure(case, contenders, workers, rounds, seconds):
    """Returns a case's row: the fastest seconds of each contender by setting, its best, and problems."""
    row = {"case": case.name, "group": case.group, "seconds": {}, "settings": {}, "facts": {}, "problems": {},
           "expected": case.get_expected()}
    # Peers first: one of them is the reference of a model.
    turns = [(contender, setting) for contender in sorted(contenders, key=WEIRS.__contains__)
             for setting in prepare(case, contender, workers, row)]
    if case.is_model:
        row["losses"] = None if row["expected"] is None else [float(loss) for loss in row["expected"]]
    del row["expected"]
    for _ in range(rounds):
        for contender, setting in list(turns):
            name = contender.name
            try:
                took = workers.get(contender, case, setting).ask("measure", setting, seconds)
            except worker.Failure as failure:
                turns.remove((contender, setting))
                row["problems"].setdefault(name, []).append(f"{setting}: {failure}")
                say(f"{case.name}: {name} is skipped: {setting}: {failure}")
                row["settings"].get(name, {}).pop(setting, None)
                continue
            settings = row["settings"].setdefault(name, {})
            settings[setting] = min(took, settings.get(setting, took))
    row["seconds"] = {name: min(settings.values()) for name, settings in row["settings"].items() if settings}
    peers = {peer.name: row["seconds"][peer.name] for peer in PEERS if peer.name in row["seconds"]}
    if peers:
        row["best_peer"] = min(peers, key=peers.get)
        row["ratios"] = {weir.name: peers[row["best_peer"]] / row["seconds"][weir.name] for weir in WEIRS
                         if weir.name in row["seconds"]}
    return row


def run_all(cases, contenders, threads, options, rounds, seconds, limit):
    """Yields the row of each case on some threads."""
    options = options | {"threads": threads}
    os.environ.update(MALLOC | dict.fromkeys(THREADS, str(threads)))
    workers = Workers(options, limit)
    try:
        for case in cases:
            able = []
            for contender in contenders:
                try:
                    workers.get(contender)
                    able.append(contender)
                except worker.Failure as failure:
                    say(f"{case.name}: {contender.name} is skipped: {failure}")
            row = measure(case, able, workers, rounds, seconds)
            workers.clear()
            say(f"{case.name}, {print_count(threads)}: " + ", ".join(
                f"{name} {print_time(took)} ms" for name, took in row["seconds"].items()))
            yield row | {"threads": threads}
    finally:
        workers.kill()


def print_count(threads):
    return f"{threads} thread{'s' if threads > 1 else ''}"


def print_time(seconds):
    """Returns milliseconds with three digits."""
    return f"{seconds * 1e3:.{max(0, 2 - math.floor(math.log10(seconds * 1e3)))}f}"


def print_ratio(ratio):
    """Returns a ratio with two digits behind the point, or with two that are not 0."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def print_table(rows, names):
    """Prints milliseconds of each case, and how many times as fast as the best peer Weir is."""
    weirs = [weir.name for weir in WEIRS if weir.name in names]
    peers = [peer.name for peer in PEERS if peer.name in names]
    header = ["", *(column for weir in weirs for column in (weir, "ratio")), "best peer", *peers]
    print(f"| {' | '.join(header)} |\n|{' --- |' * len(header)}")
    for row in rows:
        times = {name: print_time(took) for name, took in row["seconds"].items()}
        cells = [row["case"]]
        for weir in weirs:
            ratio = row.get("ratios", {}).get(weir)
            cells += [times.get(weir, ""), print_ratio(ratio) if ratio else ""]
        print(f"| {' | '.join([*cells, row.get('best_peer', ''), *(times.get(peer, '') for peer in peers)])} |")


def print_models(rows):
    """Prints what memory, compilation and code of each contender's best setting take in whole models."""
    rows = [row for row in rows if "losses" in row and row["seconds"]]
    if not rows:
        return
    print("\n| | contender | setting | ms | peak MB | compile s | code KB |\n|" + " --- |" * 7)
    for row in rows:
        for name, settings in row["settings"].items():
            if settings:
                best = min(settings, key=settings.get)
                facts = row["facts"][name][best]
                compiling = f"{facts['compile_seconds']:.1f}" if "compile_seconds" in facts else ""
                code = f"{facts['code_bytes'] / 1e3:.0f}" if "code_bytes" in facts else ""
                print(f"| {row['case']} | {name} | {best} | {print_time(settings[best])} | "
                      f"{facts['peak_bytes'] / 1e6:.0f} | {compiling} | {code} |")


def print_groups(rows):
    """Prints how Weir does in each group, and how near LayerNorm is to a copy."""
    for weir in WEIRS:
        for group in dict.fromkeys(row["group"] for row in rows):
            ratios = {row["case"]: row["ratios"][weir.name] for row in rows
                      if row["group"] == group and weir.name in row.get("ratios", {})}
            if ratios:
                least = min(ratios, key=ratios.get)
                print(f"{weir.name}, {group}: geomean {print_ratio(get_geomean(ratios.values()))} of the best peers, "
                      f"least {print_ratio(ratios[least])} ({least})")
    seconds = {row["case"]: row["seconds"] for row in rows}
    for name, found in seconds.items():
        copies = seconds.get(name.replace("layer_norm-", "copy-"))
        if name.startswith("layer_norm-") and copies and WEIRS[0].name in found:
            print(f"{name}: {min(copies.values()) / found[WEIRS[0].name]:.0%} of the fastest copy's speed")


def print_scaling(rows, counts):
    """Prints how many times as fast each contender is on the most threads as on the fewest."""
    few, many = ({row["case"]: row["seconds"] for row in rows if row["threads"] == count} for count in
                 (min(counts), max(counts)))
    names = [each.name for each in (*WEIRS, *PEERS) if any(each.name in seconds for seconds in many.values())]
    print(f"\nTimes as fast on {print_count(max(counts))} as on {min(counts)}:\n")
    print(f"| | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}")
    for case, seconds in many.items():
        cells = [f"{few[case][name] / seconds[name]:.2f}" if name in seconds and name in few[case] else ""
                 for name in names]
        print(f"| {case} | {' | '.join(cells)} |")


def plot(rows, path, threads):
    """Draws bars of each case's ratio to the best peer."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    rows = [row for row in rows if row.get("ratios")][::-1]
    if not rows:
        say(f"{path} is not drawn: no case has both Weir and a peer")
        return
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.3 * len(rows)), layout="constrained")
    names = [weir.name for weir in WEIRS if any(weir.name in row["ratios"] for row in rows)]
    height = 0.8 / len(names)
    for i, name in enumerate(names):
        found = [(place, row["ratios"][name]) for place, row in enumerate(rows) if name in row["ratios"]]
        places, ratios = zip(*found)
        bars = axes.barh([place + 0.4 - (i + 0.5) * height for place in places], [ratio - 1 for ratio in ratios],
                         height, left=1, label=name)
        axes.bar_label(bars, [print_ratio(ratio) for ratio in ratios], padding=2, fontsize=7)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.margins(x=0.1, y=0.01)
    axes.set_yticks(range(len(rows)), [f"{row['case']}  ({row['best_peer']})" for row in rows], fontsize=8)
    axes.set_xlabel(f"times as fast as the best peer (in brackets), {print_count(threads)}")
    axes.legend(loc="best")
    figure.savefig(path)
    pyplot.close(figure)


def get_versions(contenders):
    packages = sorted({package for contender in contenders for package in contender.packages.values()})
    return {package: importlib.metadata.version(package) for package in packages}


def get_processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().split("\n")
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def choose_contenders(wanted, weir):
    """Returns the contenders that can take part. Each other one is named in a sentence."""
    chosen = []
    for contender in (*WEIRS, *PEERS):
        if not re.search(wanted, contender.name):
            continue
        if missing := contender.find_missing():
            say(f"{contender.name} is skipped: install {' and '.join(missing)}")
        elif contender in WEIRS and not os.access(weir, os.X_OK):
            say(f"{contender.name} is skipped: there is no program {weir}; build it, or name one with --weir")
        else:
            chosen.append(contender)
    return chosen


def parse_threads(text):
    counts = [int(part) for part in text.split(",")]
    cores = len(os.sched_getaffinity(0))
    if not all(1 <= count <= cores for count in counts):
        raise argparse.ArgumentTypeError(f"{text}: this process has {cores} cores")
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default=str(ROOT / "build/release/bin/weir"), help="the compiler")
    parser.add_argument("--runtime", help="libweir_runtime (default: as WEIR_RUNTIME says, or the build's)")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose name or group it is found in")
    parser.add_argument("--contenders", default="", metavar="REGEX", help="contenders whose name it is found in")
    parser.add_argument("--threads", type=parse_threads, default=[len(os.sched_getaffinity(0))], metavar="N,...",
                        help="numbers of threads (default: all cores)")
    parser.add_argument("--rounds", type=int, default=20, help="turns of each contender (default 20)")
    parser.add_argument("--seconds", type=float, default=0.02, help="length of a turn (default 0.02)")
    parser.add_argument("--limit", type=float, default=300, help="most seconds to prepare a case (default 300)")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the ratios on the most threads")
    parser.add_argument("--list", action="store_true", help="print the cases and their groups")
    args = parser.parse_args()
    if not has_module("numpy"):
        raise SystemExit("run.py needs numpy; install it with pip install numpy")
    import cases

    chosen = [case for case in cases.CASES.values() if re.search(args.only, case.name) or
              re.search(args.only, case.group)]
    if args.list or not chosen:
        print("\n".join(f"{case.group:10} {case.name}" for case in chosen) or f"no case has {args.only} in its name")
        return 0 if chosen else 2
    if args.plot and not has_module("matplotlib"):
        say("--plot is skipped: install matplotlib")
        args.plot = None
    if args.runtime:
        os.environ["WEIR_RUNTIME"] = str(pathlib.Path(args.runtime).resolve())
    contenders = choose_contenders(args.contenders, args.weir)
    facts = {"processor": get_processor(), "cores": len(os.sched_getaffinity(0)), "rounds": args.rounds,
             "versions": get_versions(contenders), "load_before": os.getloadavg()}
    rows = []
    for threads in args.threads:
        for row in run_all(chosen, contenders, threads, {"weir": args.weir}, args.rounds, args.seconds, args.limit):
            rows.append(row)
            facts["load_after"] = os.getloadavg()
            if args.json:
                pathlib.Path(args.json).write_text(json.dumps(facts | {"cases": rows}, indent=1))
    for threads in args.threads:
        print(f"\nMilliseconds on {print_count(threads)} of {facts['processor']}, load average "
              f"{facts['load_before'][0]:.1f} to {facts['load_after'][0]:.1f}:\n")
        here = [row for row in rows if row["threads"] == threads]
        print_table(here, [contender.name for contender in contenders])
        print_models(here)
        print()
        print_groups(here)
    if len(args.threads) > 1:
        print_scaling(rows, args.threads)
    if args.plot:
        plot([row for row in rows if row["threads"] == max(args.threads)], args.plot, max(args.threads))
    wrong = [row for row in rows for weir in WEIRS if weir.name in row["problems"]]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
