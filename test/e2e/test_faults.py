"""Failures of the outside world: drivers that crash, devices without memory or lost, full disks, processes
that are killed, several at once, libraries of another version. Each ends in one clear sentence, or in the file of before."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import BIN, ROOT

FAULTS = BIN.parent / "test/faults"
OUT_OF_DEVICE_MEMORY, DEVICE_LOST = -2, -4  # of VkResult
GRAPH = """
func.func @f(%x: tensor<24xf32> {weir.name = "x"}, %w: tensor<24xf32> {weir.name = "w", weir.donate, weir.kind = "state"})
    -> (tensor<24xf32> {weir.name = "y"}, tensor<24xf32> {weir.name = "w"}) {
  %y = arith.mulf %x, %w : tensor<24xf32>
  %z = arith.addf %x, %w : tensor<24xf32>
  return %y, %z : tensor<24xf32>, tensor<24xf32>
}
"""


@pytest.fixture
def artifact(weir):
    path = weir.folder / "a.mlir"
    path.write_text(GRAPH)
    weir.run("compile", path, "-o", "a.weir")
    return weir.folder / "a.weir"


def start(weir, *arguments, **environment):
    """Runs `weir`; returns its status and what it printed as errors."""
    done = subprocess.run([BIN / "weir", *map(str, arguments)], cwd=weir.folder, capture_output=True, text=True,
                          env=os.environ | {name: str(value) for name, value in environment.items()})
    return done.returncode, done.stderr


def fail_driver(weir, *arguments, **fault):
    layer = {"VK_INSTANCE_LAYERS": "VK_LAYER_WEIR_faults", "VK_ADD_LAYER_PATH": FAULTS, "VK_LAYER_PATH": FAULTS}
    return start(weir, *arguments, **layer, **{f"WEIR_FAULT_{name.upper()}": value for name, value in fault.items()})


def check_refused(status, errors):
    """One sentence that asks for no report, and status 2."""
    assert status == 2 and re.fullmatch(r"error: [^\n]+\n", errors) and "internal" not in errors, (status, errors)


@pytest.mark.parametrize("crash", [signal.SIGSEGV, signal.SIGABRT])
@pytest.mark.parametrize("name, work", [
    ("vkCreateInstance", "loading the drivers of Vulkan"), ("vkCreateDevice", "opening '.+'"),
    ("vkCreateComputePipelines", r"building kernel '\w+' of code/vulkan/\w+\.spv on '.+'"),
    ("vkQueueSubmit", "starting a run on '.+'"), ("vkWaitForFences", "running kernels on '.+'")])
def test_driver_crashes(weir, artifact, name, work, crash):
    """The driver, what it did and for which module; not Weir, and not silently."""
    status, errors = fail_driver(weir, "run", artifact, "--random-inputs=1", "--output=o.safetensors", name=name, call=1,
                                 result=int(crash))
    check_refused(status, errors)
    assert re.search(f"^error: the driver crashed while {work}; ", errors), errors
    assert sorted(os.listdir(weir.folder)) == ["a.mlir", "a.weir"]


def test_weir_crashes(weir):
    """Where no driver is called it stays an internal error."""
    with subprocess.Popen([BIN / "weir", "compile", "-", "-o", weir.folder / "b.weir"], stdin=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as weir_process:
        wait_until_it_reads(weir_process.pid)
        weir_process.send_signal(signal.SIGSEGV)
        assert "internal error" in weir_process.stderr.read()
    assert weir_process.returncode == 1 and not os.listdir(weir.folder)


def wait_until_it_reads(pid):
    """Waits for a process to sleep in a read of its standard input."""
    while not re.match(r"0 0x0 ", open(f"/proc/{pid}/syscall").read()):
        time.sleep(0.01)


@pytest.mark.parametrize("result, name", [(OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"),
                                          (DEVICE_LOST, "VK_ERROR_DEVICE_LOST")])
def test_calls_of_the_driver_fail(weir, artifact, result, name):
    """Every seventh call of a run; the test FaultTest lets each fail."""
    run = ["run", artifact, "--random-inputs=1", "--output=o.safetensors"]
    step, failures = (7 if result == OUT_OF_DEVICE_MEMORY else 1), 0
    for call in range(1, 1000, step):
        report = weir.folder / f"report{call}"
        status, errors = fail_driver(weir, *run, call=call, result=result, report=report)
        assert report.read_text().endswith(" calls, 0 live\n"), report.read_text()
        if status == 0:
            break
        check_refused(status, errors)
        assert f" failed: {name}" in errors and not (weir.folder / "o.safetensors").exists()
        failures += 1
    assert failures >= 2 and (weir.folder / "o.safetensors").exists()


#===----------------------------------------------------------------------===#
# Disks
#===----------------------------------------------------------------------===#

def count_calls(weir, folder, command):
    """Returns how often a command changes something below a folder."""
    report = weir.folder / "report"
    report.unlink(missing_ok=True)
    run_on_disk(weir, folder, command, report=report, status=0)
    return report.stat().st_size


def run_on_disk(weir, folder, command, status=None, **fault):
    environment = {f"WEIR_DISK_{name.upper()}": str(value) for name, value in fault.items()}
    done = subprocess.run([*map(str, command)], cwd=weir.folder, capture_output=True, text=True,
                          env=os.environ | environment | {"LD_PRELOAD": str(FAULTS / "libweir_fault_disk.so"),
                                                          "WEIR_DISK_FOLDER": f"{folder}/"})
    assert status in (None, done.returncode), done.stderr
    return done.returncode, done.stderr


def choose_calls(calls):
    """Returns the numbers of at most 15 calls, the first and the last ones among them."""
    return sorted({*range(1, calls + 1, -(-calls // 8)), *range(max(calls - 5, 1), calls + 1)})


def list_files(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The command, and the files that it writes into the folder `out`.
WRITERS = {
    "compile": (["compile", "a.mlir", "-o", "out/o"], ["o"]),
    "compile for processors": (["compile", "a.mlir", "--target=cpu", "-o", "out/o"], ["o"]),
    "a level": (["compile", "a.mlir", "--stop-after=ordered", "-o", "out/o"], ["o"]),
    "results": (["run", "a.weir", "--device=sim", "--random-inputs=1", "--output=out/o"], ["o"]),
    "a checkpoint of a run": (["run", "a.weir", "--random-inputs=1", "--steps=3", "--output=out/o"], ["o"]),
    "a profile": (["devices", "--emit-profile=out/o"], ["o"]),
    "a page": (["explain", "a.weir", "--html=out/o"], ["o"]),
}


@pytest.fixture(params=WRITERS)
def writer(request, weir, artifact):
    """A command, its files, and the folder that they were in before with other bytes."""
    command, names = WRITERS[request.param]
    folder = weir.folder / "out"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("before")
    return [BIN / "weir", *command], {name: b"before" for name in names}, folder


def test_disk_is_full(weir, writer):
    """At each call that changes a file, and from there on at each write."""
    command, before, folder = writer
    calls = count_calls(weir, folder, command)
    after = list_files(folder)
    assert calls >= 3 and after.keys() == before.keys() and after != before
    for call in choose_calls(calls):
        for name, text in before.items():
            (folder / name).write_bytes(text)
        status, errors = run_on_disk(weir, folder, command, call=call)
        check_refused(status, errors)
        assert re.search("No space left on device", errors), errors
        assert list_files(folder) == before, f"call {call} of {calls}"


def test_killed_while_writing(weir, writer):
    """At each call that changes a file, as by `kill -9`: the file is that of before. The next run replaces it."""
    command, before, folder = writer
    calls = count_calls(weir, folder, command)
    after = list_files(folder)
    for call in choose_calls(calls):
        for name, text in before.items():
            (folder / name).write_bytes(text)
        status, _ = run_on_disk(weir, folder, command, call=call, kill=1)
        assert status == -signal.SIGKILL
        found = list_files(folder)
        assert {name: found[name] for name in before} in (before, after), f"call {call} of {calls}"
    run_on_disk(weir, folder, command, status=0)
    found = list_files(folder)
    assert {name: found[name] for name in before} == after


CHECKPOINT = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy
from weir import checkpoints
from weir.runtime import Tensor
value = numpy.full(5000, int(sys.argv[3]), dtype=numpy.float32)
checkpoints.save(sys.argv[2], {"w": Tensor("w", value.dtype, value.shape, spelling="F32")}, {"w": value}, {})
"""


@pytest.mark.parametrize("kill", [False, True], ids=["full", "killed"])
def test_checkpoint_is_whole(weir, kill):
    """Python's checkpoints, on a full disk or killed at each call: the old values or the new ones, never others."""
    sys.path.insert(0, str(ROOT / "python"))
    from weir import checkpoints
    folder = weir.folder / "out"
    folder.mkdir()

    def save(number):
        return [sys.executable, "-c", CHECKPOINT, ROOT / "python", folder / "c.safetensors", number]
    run_on_disk(weir, folder, save(1), status=0)
    calls = count_calls(weir, folder, save(2))
    assert calls >= 3
    seen = set()
    for call in range(1, calls + 1):
        run_on_disk(weir, folder, save(1), status=0)
        status, errors = run_on_disk(weir, folder, save(2), call=call, **({"kill": 1} if kill else {}))
        assert status == (-signal.SIGKILL if kill else 1), errors
        values, _ = checkpoints.load(folder / "c.safetensors")
        assert len(set(values["w"])) == 1
        seen.add(int(values["w"][0]))
        if not kill:
            assert "No space left on device" in errors and os.listdir(folder) == ["c.safetensors"], f"call {call}"
    assert 1 in seen


#===----------------------------------------------------------------------===#
# Processes and versions
#===----------------------------------------------------------------------===#

def test_several_processes_write_and_run_one_artifact(weir, artifact):
    """Each run finds a whole artifact, of one writer or the other; no file is left."""
    other = weir.folder / "b.mlir"
    other.write_text(GRAPH.replace("arith.addf", "arith.subf"))
    compile = [[BIN / "weir", "compile", name, "-o", "a.weir", "--against-graph=never"] for name in ("a.mlir", "b.mlir")]
    run = [BIN / "weir", "run", "a.weir", "--random-inputs=1", "--device=sim", "--json"]
    started = [subprocess.Popen([*map(str, command)], cwd=weir.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True) for command in [*compile, run, run, *compile, run]]
    for process in started:
        output, errors = process.communicate()
        assert process.returncode == 0, errors
    assert sorted(os.listdir(weir.folder)) == ["a.mlir", "a.weir", "b.mlir"]
    weir.run("verify", "a.weir")


def test_runtime_of_another_version(weir, artifact):
    other = FAULTS / "libweir_other_version.so"
    status, errors = start(weir, "run", artifact, "--random-inputs=1", LD_PRELOAD=other)
    check_refused(status, errors)
    assert re.search(r"the library libweir_runtime is of version 0\.0\.7, weir of ", errors), errors

    def open_library(path):
        return subprocess.run([sys.executable, "-c", "import weir.runtime as r; r.Device('cpu')"], capture_output=True,
                              text=True, env=os.environ | {"WEIR_RUNTIME": str(path), "PYTHONPATH": str(ROOT / "python")})
    done = open_library(other)
    assert re.search(r"weir.runtime.Error: .*libweir_other_version.so is of version 0\.0\.7, this package of .*; ",
                     done.stderr), done.stderr
    done = open_library("libm.so.6")
    assert "weir.runtime.Error: libm.so.6 is no runtime of Weir, or older than this package; " in done.stderr
    assert open_library(BIN.parent / "lib/libweir_runtime.so.0").returncode == 0

