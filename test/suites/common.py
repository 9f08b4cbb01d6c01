"""Shared by the suites: each case in a process of its own, the simulator, and the counts."""

import argparse
import collections
import importlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from safetensors.numpy import load_file  # noqa: E402

import weir  # noqa: E402
from weir.locations import find_tool  # noqa: E402

VERDICTS = ("right", "rounded", "wrong", "refused", "broken")


def can_import(name):
    """Whether a package that a suite needs is there."""
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


class Simulation:
    """A graph compiled for Vulkan and run on the simulator, with every byte watched."""

    def __init__(self, text, parameters):
        self._place = pathlib.Path(tempfile.mkdtemp(prefix="weir-"))
        from weir.graphs import write_tensors

        self._write = write_tensors
        (self._place / "graph.mlir").write_text(text)
        self._write(self._place / "parameters.safetensors", parameters)
        self._run_tool("compile", self._place / "graph.mlir", "-o", self._place / "a.weir")

    def run(self, inputs):
        """Returns the results by name."""
        self._write(self._place / "inputs.safetensors", inputs)
        output = self._place / "results.safetensors"
        self._run_tool("run", self._place / "a.weir", "--device=sim", f"--output={output}",
                       *(f"--input={self._place / name}.safetensors" for name in ("inputs", "parameters")))
        return load_file(output)

    def _run_tool(self, *words):
        done = subprocess.run([find_tool("weir"), *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            raise weir.CompileError(done.stderr.strip())


def use_profile(name):
    """Compiles for a built-in profile in place of the device's own, which must have what the profile has."""
    weir.Device.profile = json.dumps({"like": name, "name": name})


def parse_options(description, add=lambda parser: None):
    """Returns the options that all suites have, and those of `add`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add(parser)
    parser.add_argument("--device", default="cpu", help="cpu, sim, vulkan or cuda (default cpu)")
    parser.add_argument("--filter", default="", help="a regular expression of tests' names")
    parser.add_argument("--every", type=int, default=1, help="run each Nth test only")
    parser.add_argument("--json", help="write the verdict on each test")
    return parser.parse_args()


def run_all(cases, run, options):
    """Runs named cases, prints the counts, and returns the exit status. `run` returns a verdict and what was said."""
    chosen = [(name, case) for name, case in cases if re.search(options.filter, name)][::options.every]
    verdicts = {}
    for name, case in chosen:
        verdicts[name] = _run_apart(run, case)
        if verdicts[name][0] in ("wrong", "broken"):
            print(f"{verdicts[name][0]}: {name}: {verdicts[name][1]}", flush=True)
    counts = collections.Counter(verdict for verdict, _ in verdicts.values())
    print(f"{options.device}: {len(verdicts)} tests, " + ", ".join(f"{counts[kind]} {kind}" for kind in VERDICTS))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(verdicts, indent=1) + "\n")
    return 1 if counts["wrong"] or counts["broken"] else 0


def _run_apart(run, case, seconds=180):
    """Runs a case in a process of its own, with its children: torch-mlir ends some, and does not end others."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(0, signal.SIGKILL))
        signal.alarm(seconds)
        os.write(writer, json.dumps(run(case)).encode()[:60000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        said = stream.read()
    _, status = os.waitpid(child, 0)
    return json.loads(said) if said else ("broken", f"the process ended with status {status}")
