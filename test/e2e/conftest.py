"""Shared by the end-to-end tests: the tools of this build."""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile
import zlib

import numpy
import ptxas
import pytest
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/random"))
BIN = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/release/bin"))
CPUS = os.environ.get("WEIR_CPUS")  # profiles of cpu that every graph is run with; default: one of them
# The manifest of a Vulkan driver beside the default one, None for none: SwiftShader, which has no integers of 8, 16 and
# 64 bits and no f64.
SECOND_DRIVER = os.environ.get("WEIR_SECOND_DRIVER", "/usr/lib/chromium/vk_swiftshader_icd.json")
SECOND_DRIVER = SECOND_DRIVER if os.path.exists(SECOND_DRIVER) else None
# SwiftShader flushes denormals. A number below this, 1,000 times the least normal one, may be made of some.
FLUSHED = 1e-35
ALL_ON_SECOND = bool(os.environ.get("WEIR_ALL_ON_SECOND"))  # every graph that is compared; default: those of test_words
KEEP = os.environ.get("WEIR_KEEP_CASES")  # a folder for what a GPU can run elsewhere


def get_cuda(artifact):
    """Returns the artifact compiled for CUDA from the graph of `artifact`."""
    return artifact.with_suffix(".cuda.weir")


def get_hopper(artifact):
    """Returns the artifact compiled for GPUs of compute capability 9.0 alone, if cases are kept for one."""
    return artifact.with_suffix(".sm_90a.weir")


def get_cpu(artifact):
    """Returns the artifact for the CPU of the graph of `artifact`."""
    return artifact.with_suffix(".cpu.weir")


@functools.cache
def list_isas():
    """Returns the instruction sets of this processor that profiles are for."""
    command = [str(BIN / "weir"), "devices", "--api=cpu", "--json"]
    [device] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    best = device["profile"]["isa"]
    return [best] if best == "aarch64" else [isa for isa in ("x86-64-v2", "x86-64-v3", "x86-64-v4") if isa <= best]


def choose_isa(source):
    """Returns an instruction set for a graph: its own of several, so that all are tried over all graphs."""
    isas = list_isas()
    return isas[zlib.crc32(source.read_bytes()) % len(isas)]


def keep_case(artifact, expected, inputs, tolerance):
    """Makes a folder of a run and what it must result in, for `scripts/gpu-tests`."""
    test = re.sub(r"\W+", "_", os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].split(" ")[0])
    suffix = artifact.name.split(".", 1)[1].removesuffix(".weir")
    number = len(list(pathlib.Path(KEEP).glob(f"{test}-*-{suffix}")))
    folder = pathlib.Path(KEEP) / f"{test}-{number}-{suffix}"
    folder.mkdir(parents=True)
    shutil.copy(artifact, folder / "a.weir")
    shutil.copy(expected, folder / "expected.safetensors")
    arguments = [f"--tolerance={tolerance}"]
    for argument in map(str, inputs):
        if argument.startswith("--input="):
            name = f"input{len(arguments)}.safetensors"
            shutil.copy(artifact.parent / argument.removeprefix("--input="), folder / name)
            argument = f"--input={name}"
        arguments.append(argument)
    (folder / "arguments").write_text("\n".join(arguments) + "\n")


def drop_rounding(path):
    """Makes zeros of results in f64 that are rounding alone: of graphs whose values are of order one, and some of whose
    gradients are 0, as those of scores are that a softmax of one element reads."""
    tensors = load_file(path)
    for name, tensor in tensors.items():
        if tensor.dtype == numpy.float64 and 0 < numpy.abs(tensor).max(initial=0) < 1e-14:
            tensors[name] = numpy.zeros_like(tensor)
    save_file(tensors, path)


class Weir:
    """Runs `weir` in a folder of the test's own."""

    def __init__(self, folder):
        self.folder = folder
        self.cpus = CPUS.split(",") if CPUS else []  # none: one for each graph
        self.isas = {}  # by artifact for the CPU, the instruction sets that it has code for
        self.sources = {}  # by artifact, what it was compiled from without a target: the graph and flags
        self.examples = ROOT / "examples"

    def run(self, *arguments, validated=False, status=0, driver=None):
        """Runs `weir`; with `driver`, the manifest of a Vulkan driver, that one is the only one."""
        command = [str(BIN / "weir"), *map(str, arguments)]
        # The tests compare results themselves.
        if arguments[0] == "compile" and "--against-graph" not in " ".join(command):
            command.append("--against-graph=never")
        if validated:
            command.insert(0, str(ROOT / "scripts/with-validation"))
        env = os.environ | {"VK_DRIVER_FILES": driver, "VK_ICD_FILENAMES": driver} if driver else None
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env=env)
        assert done.returncode == status, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def compile(self, source, name="a", *flags):
        artifact = self.folder / f"{name}.weir"
        self.run("compile", source, "-o", artifact, *flags)
        self.sources.pop(artifact, None)
        if not any(str(flag).startswith("--target") for flag in flags):
            self.sources[artifact] = (source, flags)
        if not any(str(flag).startswith("--target") for flag in flags):
            isas = self.isas[get_cpu(artifact)] = self.cpus or [choose_isa(self.folder / source)]
            targets = ",".join(f"cpu:{self.choose_profile(isa, self.folder / source)}" for isa in isas)
            self.run("compile", source, "-o", get_cpu(artifact), f"--target={targets}", *flags)
        if ptxas.PTXAS and not any(str(flag).startswith("--target") for flag in flags):
            cuda = get_cuda(artifact)
            targets = "vulkan,cuda" if KEEP else "cuda"
            self.run("compile", source, "-o", cuda, f"--target={targets}", *flags)
            if KEEP:
                self.run("compile", source, "-o", get_hopper(artifact), "--target=cuda:sm_90a", *flags)
            ptxas.assemble_artifact(cuda, self.folder)
        return artifact

    def choose_profile(self, isa, source):
        """Returns an instruction set's own profile for some graphs, for others one with stages of any groups."""
        if zlib.crc32(source.read_bytes()) & 4:
            return isa
        path = self.folder / f"{isa}.json"
        path.write_text(json.dumps({"like": isa, "name": isa, "stage_groups": 1}))
        return path

    def compile_text(self, text, name="a", *flags):
        source = self.folder / f"{name}.mlir"
        source.write_text(text)
        return self.compile(source, name, *flags)

    def compare(self, artifact, inputs, tolerance, validated=False, has_order_one=False):
        """Runs on Vulkan and on the CPU against the f64 reference, and on the simulator; returns Vulkan's output
        file. With `has_order_one` the graph's values are of order one."""
        expected, output = self.folder / "expected.safetensors", self.folder / "output.safetensors"
        self.run("run", artifact, "--device=reference", "--f64", *inputs, f"--output={expected}")
        if has_order_one:
            drop_rounding(expected)
        self.run("run", artifact, *inputs, f"--compare={expected}", f"--tolerance={tolerance}",
                 f"--output={output}", validated=validated)
        self.simulate(artifact, inputs, output)
        for isa in self.isas.get(get_cpu(artifact), []):
            self.run("run", get_cpu(artifact), f"--device=cpu:{isa}", *inputs, f"--compare={expected}",
                     f"--tolerance={tolerance}")
        if ALL_ON_SECOND and artifact in self.sources:
            self.compare_on_second(artifact, inputs, tolerance)
        for kept in (get_cuda(artifact), get_hopper(artifact)) if KEEP else ():
            if kept.exists():
                keep_case(kept, expected, inputs, tolerance)
        return output

    def compare_on_second(self, artifact, inputs, tolerance):
        """Runs code of the smallest profile on the second driver against what the f64 reference has just written, and
        on the simulator. A graph with f64 may be refused."""
        source, flags = self.sources[artifact]
        small, output = artifact.with_suffix(".minimum.weir"), self.folder / "second.safetensors"
        command = [BIN / "weir", "compile", source, "--target=vulkan:minimum", "-o", small, *flags]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode == 2 and "f64" in done.stderr + (self.folder / source).read_text():
            return
        assert done.returncode == 0, done.stderr
        self.run("run", small, *inputs, f"--compare={self.folder / 'expected.safetensors'}", f"--tolerance={tolerance}",
                 f"--output={output}", driver=SECOND_DRIVER)
        self.simulate(small, inputs, output, least=FLUSHED)

    def simulate(self, artifact, inputs, expected, *flags, least=0.0):
        """Runs on the simulator, which has nothing to report and the same bits, signs
        and payloads of NaNs apart, and numbers that are below `least` in both."""
        output = self.folder / "sim.safetensors"
        self.run("run", artifact, *inputs, "--device=sim", *flags, f"--output={output}")
        if output.read_bytes() == expected.read_bytes():
            return
        simulated = load_file(output)
        for name, tensor in load_file(expected).items():
            other = simulated[name]
            signs = numpy.signbit(tensor) == numpy.signbit(other)
            same = numpy.where(numpy.isnan(tensor), numpy.isnan(other), (tensor == other) & signs)
            same |= (abs(tensor) < least) & (abs(other) < least)
            assert same.all(), f"the simulator has other bits of {name}"

    def inspect(self, artifact):
        return json.loads(self.run("inspect", artifact, "--json"))

    def profile(self, **changes):
        """Writes the device's profile with some keys changed; returns its path."""
        path = self.folder / "profile.json"
        self.run("devices", f"--emit-profile={path}")
        profile = json.loads(path.read_text())
        assert not set(changes) - set(profile)
        path.write_text(json.dumps(profile | {"name": "changed"} | changes))
        return path

    def profile_like_cuda(self, artifact):
        """Writes a profile of Vulkan that schedules as an artifact's profile of CUDA does; returns its path."""
        with zipfile.ZipFile(self.folder / artifact) as archive:
            [cuda] = json.loads(archive.read("manifest.json"))["targets"]
        path = self.folder / "profile.json"
        self.run("devices", f"--emit-profile={path}")
        profile = json.loads(path.read_text())
        own = {"name": "like_cuda", "target": profile["target"], "api": profile["api"], "matrix_tile": 0}
        path.write_text(json.dumps({key: cuda[key] for key in profile} | own))
        return path


@pytest.fixture
def weir(tmp_path):
    return Weir(tmp_path)
