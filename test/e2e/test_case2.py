"""Background case 2: packed weight gradients are tracked views. One queue reads them
while the other reuses memory, and every wait between the two is needed."""

import re
import subprocess

import numpy
import pytest
from safetensors.numpy import save_file

from conftest import BIN
from grouped import make_graph, pack

GROUPS, ROWS = 3, 8


def save_values(folder, outs, ins):
    random = numpy.random.default_rng(2)
    inputs, expected = {}, {}
    for g in range(GROUPS):
        x, dy, w = (random.standard_normal(shape) for shape in ((ROWS, ins), (ROWS, outs), (outs, ins)))
        x *= 0.25
        inputs |= {f"x{g}": x, f"dy{g}": dy, f"w{g}": w}
        expected[f"u{g}"] = w - dy.T @ x
    t = inputs["x0"].T @ inputs["x0"]
    for _ in range(2 * GROUPS - 1):
        t = t @ t
    expected[f"t{2 * GROUPS - 1}"] = t
    for name, values in ("inputs", inputs), ("expected", expected):
        save_file({key: numpy.ascontiguousarray(value, numpy.float32) for key, value in values.items()},
                  folder / f"{name}.safetensors")


def write_packed(weir, outs, ins, **profile):
    """The dispatches level with packed gradients, for a device of two queues."""
    source, unpacked, packed = (weir.folder / f"{name}.mlir" for name in ("graph", "unpacked", "packed"))
    source.write_text(make_graph(GROUPS, ROWS, outs, ins))
    target = f"--target=vulkan:{weir.profile(queues=2, **profile)}"
    weir.run("compile", source, target, "--stop-after=dispatches", "-o", unpacked)
    packed.write_text(pack(unpacked.read_text(), GROUPS, outs * ins))
    return packed


@pytest.fixture
def ordered(weir):
    # 576 bytes a group: no multiple of 256, one of the 16 that are needed.
    packed, path = write_packed(weir, 12, 12), weir.folder / "ordered.mlir"
    weir.run("compile", packed, "--start-from=dispatches", "--stop-after=ordered", "-o", path)
    return path


def test_packed_gradients_on_two_queues(weir, ordered):
    save_values(weir.folder, 12, 12)
    artifact = weir.folder / "a.weir"
    weir.run("compile", ordered, "--start-from=ordered", "-o", artifact)
    weir.run("verify", artifact)
    plan = weir.inspect(artifact)["plans"][0]
    assert plan["queues"] == 2 and plan["waits"] > 1
    assert plan["arena_bytes"] < plan["pinned_bytes"], "nothing shared memory, so nothing was tested"
    weir.run("run", artifact, "--input=inputs.safetensors", "--compare=expected.safetensors",
             "--tolerance=1e-5", "--steps=3", validated=True)
    weir.run("run", artifact, "--input=inputs.safetensors", "--compare=expected.safetensors",
             "--tolerance=1e-5", "--steps=3", "--device=sim")


def test_every_wait_is_needed(weir, ordered):
    lines = ordered.read_text().splitlines()
    waits = [i for i, line in enumerate(lines) if "schedule.wait" in line]
    kinds = set()
    for wait in waits:
        cut, artifact = weir.folder / "cut.mlir", weir.folder / "cut.weir"
        artifact.unlink(missing_ok=True)
        cut.write_text("\n".join(lines[:wait] + lines[wait + 1:]))
        done = subprocess.run([BIN / "weir", "compile", cut, "--start-from=ordered", "-o", artifact],
                              capture_output=True, text=True)
        assert done.returncode == 2 and not artifact.exists(), lines[wait]
        kinds |= set(re.findall(r"bytes \[\d+, \d+\) of the arena .*: a (\w+) hazard, and no barrier", done.stderr))
        subprocess.run([BIN / "weir-opt", cut, "--weir-emit-spirv", "--weir-pack",
                        f"--weir-test-pack-unchecked=output={artifact}", "-o", weir.folder / "out.mlir"], check=True)
        report = weir.run("verify", artifact, status=1)
        assert re.search(r"order +FAILS .*with no (barrier|wait) between", report), report
        report = weir.run("run", artifact, "--random-inputs=1", "--device=sim", status=1)
        assert re.search(r"^sim: (RAW|WAR|WAW): .*; no barrier or wait orders the two", report, re.M), report
    # Among them the reader that the reuse must wait for.
    assert "WAR" in kinds, kinds


@pytest.mark.parametrize("outs, ins, profile, byte", [(7, 5, {}, 140), (12, 12, {"offset_alignment": 256}, 576)])
def test_what_lies_askew_is_refused(weir, outs, ins, profile, byte):
    packed = write_packed(weir, outs, ins, **profile)
    done = subprocess.run([BIN / "weir", "compile", packed, "--start-from=dispatches", "-o",
                           weir.folder / "a.weir"], capture_output=True, text=True)
    assert done.returncode == 2 and not (weir.folder / "a.weir").exists()
    assert re.search(rf"begins at byte {byte}, profile '\w+' binds multiples of \d+", done.stderr), done.stderr
