"""The audit layer on a small Vulkan program with planted hazards, and on Weir's own runtime."""

import json
import os
import re
import subprocess

import pytest
from case3 import make_graph as make_case3
from conftest import BIN, ROOT

KERNELS = BIN.parent / "share/audit"


def audit(*command, status=0):
    """Runs a command with the layer; returns what it reports."""
    done = subprocess.run([str(ROOT / "scripts/with-audit"), *map(str, command)], capture_output=True, text=True,
                          env=os.environ | {"WEIR_LIB": str(BIN.parent / "lib")})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr


def plant(tmp_path, case):
    """Runs the program with the layer alone, for the report as JSON."""
    report = tmp_path / f"{case}.json"
    environment = {"VK_INSTANCE_LAYERS": "VK_LAYER_WEIR_audit", "VK_ADD_LAYER_PATH": str(BIN.parent / "lib"),
                   "WEIR_AUDIT_REPORT": str(report), "WEIR_AUDIT_FORMAT": "json"}
    subprocess.run([BIN / "planted", KERNELS, case], check=True, env=os.environ | environment)
    summary = json.loads(report.read_text())
    summary["found"] = sorted((finding["kind"], finding["certain"], finding["ordered"], finding["from"].split(" of ")[0],
                               finding["to"].split(" of ")[0], *finding["bytes"]) for finding in summary["findings"])
    for finding in summary["findings"]:
        assert finding["times"] == 2  # it runs twice
    return summary


def pair(kind, first, second, begin=0, end=1024, certain=True, ordered=False):
    return (kind, certain, ordered, f"command {first} (dispatch", f"command {second} (dispatch", begin, end)


@pytest.mark.parametrize("case, found, needless", [
    ("none", [], 0),
    # Without its memory, what orders the writes is no dependency of theirs any more.
    ("raw", [pair("RAW", 0, 1), pair("WAW", 0, 3, ordered=True)], 0),
    ("war", [pair("WAR", 2, 3)], 0),
    ("waw", [pair("WAW", 4, 5)], 0),
    ("needless", [], 1),
    # A barrier for another stage, for a part of the bytes, for reads alone.
    ("stage", [pair("RAW", 0, 2), pair("WAW", 0, 4, ordered=True)], 1),
    ("range", [pair("WAW", 4, 6, begin=256, ordered=True)], 0),
    ("access", [pair("WAW", 4, 6, ordered=True)], 1),
    # Two buffers on the same memory; other bytes of one buffer; another buffer.
    ("alias", [pair("WAW", 4, 5)], 0),
    ("split", [], 0),
    ("apart", [], 0),
    # Bytes that depend on values, up to an index of 63; a grid in memory.
    ("possible", [pair("WAR", 2, 3, end=256, certain=False)], 0),
    ("indirect", [pair("WAR", 4, 5, certain=False)], 0),
    ("secondary", [], 0),
    # Recorded again for the second run.
    ("again", [], 0),
    ("waw-again", [pair("WAW", 4, 5)], 0),
    ("wide", [], 0),
])
def test_planted(tmp_path, case, found, needless):
    summary = plant(tmp_path, case)
    assert summary["found"] == found
    assert (summary["needless"], summary["not_judged"]) == (needless, 0)
    assert summary["missing"] == sum(each[1] for each in found)
    assert summary["possible"] == sum(not each[1] for each in found)
    assert bool(summary["not_looked_at"]) == (case == "indirect")
    assert summary["too_wide"] == len(summary["wide_barriers"]) == (case == "wide")


@pytest.mark.parametrize("case, again", [("none", "again"), ("waw", "waw-again")])
def test_a_command_buffer_that_is_recorded_again_counts_once(tmp_path, case, again):
    assert plant(tmp_path, again) == plant(tmp_path, case)


def test_scopes_that_suffice(tmp_path):
    write = {"from_stages": ["COMPUTE_SHADER"], "from_accesses": ["SHADER_STORAGE_WRITE"],
             "to_stages": ["COMPUTE_SHADER"]}
    finding, = plant(tmp_path, "waw")["findings"]
    assert finding["suffices"] == write | {"to_accesses": ["SHADER_STORAGE_WRITE"]}
    finding, = plant(tmp_path, "war")["findings"]
    assert finding["suffices"] == write | {"from_accesses": [], "to_accesses": []}
    wide, = plant(tmp_path, "wide")["wide_barriers"]
    assert wide["barrier"].startswith("command 1 (barrier)")
    assert wide["suffices"] == write | {"to_accesses": ["SHADER_STORAGE_READ", "SHADER_STORAGE_WRITE"]}
    assert wide["ranges"] == [{"buffer": 'buffer "A"', "bytes": [0, 1024]}]


def test_report_for_people():
    report = audit(BIN / "planted", KERNELS, "waw", status=1)
    assert ('missing WAW: command 5 (dispatch of "fill") of command buffer 1 writes bytes [0, 1024) of buffer "A" that '
            'command 4 (dispatch of "fill") of command buffer 1 writes: nothing orders the two (2 times); a barrier from COMPUTE_SHADER '
            '(SHADER_STORAGE_WRITE) to COMPUTE_SHADER (SHADER_STORAGE_WRITE) for these bytes suffices') in report
    assert "1 missing, 0 possible, 0 needless of 2 barriers (0 not judged), in 8 dispatches and 0 transfers" in report


def test_a_report_of_a_wide_barrier():
    report = audit(BIN / "planted", KERNELS, "wide")
    assert ('too wide: command 1 (barrier) of command buffer 1 names stages that nothing needs; a barrier from '
            'COMPUTE_SHADER (SHADER_STORAGE_WRITE) to COMPUTE_SHADER (SHADER_STORAGE_READ | SHADER_STORAGE_WRITE) for '
            'bytes [0, 1024) of buffer "A" suffices') in report
    assert "0 needless of 3 barriers (0 not judged, 1 too wide), in" in report


def test_never_active():
    assert "never active" in audit("true", status=1)
    assert "usage" in audit(BIN / "planted", KERNELS, "nothing", status=2)


def check_clean(artifact, dispatches, *flags):
    report = audit(BIN / "weir", "run", artifact, "--random-inputs=1", *flags).splitlines()
    assert len(report) == 1, report
    assert "0 missing, 0 possible, 0 needless" in report[0]
    assert f"in {dispatches} dispatches" in report[0]


@pytest.mark.parametrize("name, flags, entry, dispatches", [
    ("layer_norm.mlir", [], "layer_norm", 1),
    ("layer_norm_vjp.mlir", [], "layer_norm_vjp", 2),
    ("background_case1.mlir", [], "background_case1", 4),
    ("mlp/mlp.mlir", ["--grad=mlp_loss"], "mlp_loss.grad", 15),
])
def test_weir_itself(weir, name, flags, entry, dispatches):
    artifact = weir.compile(weir.examples / name, "a", "--target=vulkan", *flags)
    check_clean(artifact, dispatches, f"--entry={entry}")


def test_a_plan_of_two_queues(weir):
    source = weir.folder / "a.mlir"
    source.write_text(make_case3(4, 8, 12))
    artifact = weir.compile(source, "a", f"--target=vulkan:{weir.profile(queues=2)}")
    waits = weir.inspect(artifact)["plans"][0]["waits"]
    report = audit(BIN / "weir", "run", artifact, "--random-inputs=1").splitlines()
    found = re.search(r": 0 missing, 0 possible, (\d+) needless of ", report[-1])
    # A device with one queue runs a wait as a barrier, which others may make needless.
    assert found and waits > 0 and int(found[1]) <= waits, report
    assert len(report) == 1 + int(found[1])
