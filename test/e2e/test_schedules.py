"""Schedules from a seed on the CPU: all give the same bits, and a missing barrier gives others."""

import json
import os
import subprocess
import zipfile

import pytest
from case3 import make_graph as make_case3
from conftest import BIN
from graphs import make
from test_mutants import MLP

SEEDS = range(1, 7)


def run(weir, artifact, seed, threads=3):
    """Returns the bytes of the results; without a seed, those of one thread."""
    output = weir.folder / "output.safetensors"
    settings = {"WEIR_THREADS": str(threads), "WEIR_SCHEDULE_SEED": str(seed)} if seed else {"WEIR_THREADS": "1"}
    done = subprocess.run([BIN / "weir-device", "run", artifact, "--random-inputs=1", "--device=cpu", f"--output={output}"],
                          env=os.environ | settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return output.read_bytes()


def drop_barriers(artifact, folder):
    """Yields a copy of the artifact without one of its barriers, for each."""
    with zipfile.ZipFile(artifact) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    [path] = [name for name in parts if name.startswith("plan/")]
    plan = json.loads(parts[path])
    for place in [i for i, command in enumerate(plan["commands"]) if command["command"] == "barrier"]:
        commands = plan["commands"][:place] + plan["commands"][place + 1:]
        with zipfile.ZipFile(folder / "edited.weir", "w") as copy:
            for name, data in parts.items():
                copy.writestr(zipfile.ZipInfo(name), json.dumps(plan | {"commands": commands}) if name == path else data)
        yield folder / "edited.weir"


@pytest.mark.parametrize("number", range(24))
def test_random_graph_has_the_same_bits(weir, number):
    source = weir.folder / "a.mlir"
    source.write_text(make(number, differentiable=True).text())
    for flags in ([], ["--vjp=f", "--entry=f.vjp"]):
        weir.run("compile", source, "-o", "a.weir", "--target=cpu", *flags)
        expected = run(weir, weir.folder / "a.weir", None)
        for seed in SEEDS[:3]:
            assert run(weir, weir.folder / "a.weir", seed) == expected, f"seed {seed}"


def test_missing_barriers_are_seen(weir):
    """Barriers that `weir verify` misses. Without the others, the bits are the same under every seed."""
    graphs = [(make(number, differentiable=True).text(), ["--vjp=f", "--entry=f.vjp"]) for number in range(100, 130)]
    graphs += [(MLP, ["--train=adamw:mlp_loss", "--entry=mlp_loss.step"]), (make_case3(4, 8, 12), [])]
    seen = needed = 0
    for text, flags in graphs:
        (weir.folder / "a.mlir").write_text(text)
        weir.run("compile", "a.mlir", "-o", "a.weir", "--target=cpu", *flags)
        expected = run(weir, weir.folder / "a.weir", None)
        for edited in drop_barriers(weir.folder / "a.weir", weir.folder):
            is_needed = subprocess.run([BIN / "weir-device", "verify", edited], capture_output=True).returncode == 1
            has_others = any(run(weir, edited, seed) != expected for seed in SEEDS)
            assert is_needed or not has_others, "verify missed a barrier"
            needed += is_needed
            seen += is_needed and has_others
    print(f"{seen} of {needed} missing barriers are seen")
    assert needed > 20 and seen > 0.8 * needed
