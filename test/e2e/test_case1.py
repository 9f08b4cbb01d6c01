"""Background case 1: a kernel of its own reads dy before dx is written over it.
Every barrier of it is needed, and whoever leaves one out hears of it."""

import re
import subprocess

import pytest

from conftest import BIN, ROOT

BARRIERS = 2


@pytest.fixture
def ordered(weir):
    """The text of the ordered level, in lines, and where its barriers stand."""
    path = weir.folder / "ordered.mlir"
    weir.run("compile", weir.examples / "background_case1.mlir", "--require-donation",
             "--stop-after=ordered", "-o", path)
    lines = path.read_text().splitlines()
    return lines, [i for i, line in enumerate(lines) if "schedule.barrier" in line]


def test_right_with_its_barriers(weir):
    source = weir.examples / "background_case1.mlir"
    outputs = []
    for name, flags in ("planned", ["--require-donation"]), ("pinned", ["--no-reuse"]):
        artifact = weir.compile(source, name, *flags)
        outputs.append(weir.compare(artifact, ["--random-inputs=1"], 1e-5, validated=True).read_bytes())
    assert outputs[0] == outputs[1], "where values lie changed their bits"


def test_dx_lies_over_dy_behind_a_war_barrier(ordered):
    lines, barriers = ordered
    assert len(barriers) == BARRIERS
    wars = re.findall(r"war, (\d+) operand (\d+) -> (\d+) operand (\d+)", "\n".join(lines))
    assert len(wars) == 1
    reader, writer = (
        [line for line in lines if "schedule.dispatch" in line][int(number)] for number in wars[0][::2])
    operands = [re.search(r"\]\(([^)]*)\)", line)[1].split(", ") for line in (reader, writer)]
    assert operands[0][int(wars[0][1])] == operands[1][int(wars[0][3])]


@pytest.mark.parametrize("barrier", range(BARRIERS))
def test_no_barrier_can_be_left_out(weir, ordered, barrier):
    lines, barriers = ordered
    hazards = re.findall(r"hazard<(\w+), (\d+) operand \d+ -> (\d+) ", lines[barriers[barrier]])
    assert hazards
    kernels = [re.search(r"::(@\w+)", line)[1] for line in lines if "schedule.dispatch" in line]
    cut = weir.folder / "cut.mlir"
    cut.write_text("\n".join(lines[: barriers[barrier]] + lines[barriers[barrier] + 1:]))

    # The compiler refuses it and writes nothing.
    artifact = weir.folder / "cut.weir"
    done = subprocess.run([BIN / "weir", "compile", cut, "--start-from=ordered", "-o", artifact],
                          capture_output=True, text=True)
    assert done.returncode == 2 and not artifact.exists()
    for kind, first, second in hazards:
        names = [f"dispatch {number} of {kernels[int(number)]}" for number in (first, second)]
        assert any(f"a {kind.upper()} hazard" in line and all(name in line for name in names)
                   and re.search(r"bytes \[\d+, \d+\) of (the arena|argument 0)", line)
                   for line in done.stderr.splitlines()), f"{kind} {names}\n{done.stderr}"

    # Packed all the same, the artifact does not verify.
    subprocess.run([BIN / "weir-opt", cut, "--weir-emit-spirv", "--weir-pack",
                    f"--weir-test-pack-unchecked=output={artifact}", "-o", weir.folder / "out.mlir"],
                   check=True)
    report = weir.run("verify", artifact, status=1)
    order = next(line for line in report.splitlines() if " order " in line)
    assert "FAILS" in order
    assert any(f"dispatch {a} (" in order and f"dispatch {b} (" in order for _, a, b in hazards)

    # And Vulkan's own validation sees the kernels that race.
    done = subprocess.run([ROOT / "scripts/with-validation", BIN / "weir", "run", artifact,
                           "--random-inputs=1"], capture_output=True, text=True)
    assert done.returncode == 1
    spelled = {"raw": "READ_AFTER_WRITE", "war": "WRITE_AFTER_READ", "waw": "WRITE_AFTER_WRITE"}
    for kind, _, second in hazards:
        assert re.search(rf"Hazard {spelled[kind]} .*VkPipeline \w+\[{kernels[int(second)][1:]}\]",
                         done.stderr), f"{kind} at {kernels[int(second)]}\n{done.stderr}"
