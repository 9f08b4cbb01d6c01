"""A rank that is killed or stalls: the others end with one error, and a restart goes on bit for bit."""

import pathlib
import random
import signal
import time

import pytest

STEPS, EVERY = 8, 2


def start(launch, folder, **options):
    return launch("checkpointed", folder=str(folder), steps=STEPS, every=EVERY, group_timeout=10, **options)


def read_progress(ranks, rank):
    path = pathlib.Path(ranks.folder / f"progress.{rank}")
    return len(path.read_text().splitlines()) if path.exists() else 0


def kill(ranks, rank, step, delay=0.0):
    """Kills a rank after it has done some steps."""
    while read_progress(ranks, rank) < step:
        assert all(process.poll() is None for process in ranks.processes), ranks.wait()
        time.sleep(0.002)
    time.sleep(delay)
    ranks.processes[rank].send_signal(signal.SIGKILL)


def check_fault(ranks, lost, within):
    begin = time.monotonic()
    codes, outputs = ranks.wait()
    assert time.monotonic() - begin < within
    for rank, (code, output) in enumerate(zip(codes, outputs)):
        if rank != lost:
            assert code == 1 and output.count("FaultError: ") == 1, output
            assert f"FaultError: rank {rank} of {len(codes)}: " in output and "start again from the last checkpoint" in output


def check_resumed(launch, folder, expected, options):
    resumed = start(launch, folder, **options).results()
    assert resumed[0]["start"] % EVERY == 0
    for rank, run in enumerate(resumed):
        assert run["bits"] == expected[rank]["bits"]
        assert all(expected[rank]["hashes"][number] == value for number, value in run["hashes"].items())
    return resumed[0]["start"]


@pytest.mark.parametrize("options", [{"pieces": True}, {"shards": 2, "parallel": {"sharded": True}}],
                         ids=["replicated", "sharded"])
def test_a_killed_rank(launch, tmp_path, options):
    expected = start(launch, tmp_path / "whole", **options).results()
    ranks = start(launch, tmp_path / "cut", pause=0.1, **options)
    kill(ranks, 1, 5)
    check_fault(ranks, 1, within=60)
    assert check_resumed(launch, tmp_path / "cut", expected, options) == 4


def test_a_stalled_rank(launch, tmp_path):
    ranks = start(launch, tmp_path, pieces=True, stall=[1, 2])
    codes, outputs = [], []
    ranks.processes[0].wait(timeout=120)
    ranks.processes[1].kill()
    codes, outputs = ranks.wait()
    assert codes[0] == 1 and "FaultError: rank 0 of 2: step 3 did not end: " in outputs[0]


def test_a_checkpoint_of_another_step(launch, tmp_path):
    start(launch, tmp_path, pieces=True).results()
    codes, outputs = start(launch, tmp_path, pieces=True, kind="plain").wait()
    for code, output in zip(codes, outputs):
        assert code == 1 and "CheckpointError: " in output and "is of another step: it has no head.weight" in output


def test_another_number_of_ranks(launch, tmp_path):
    options = {"shards": 4, "parallel": {"sharded": True}}
    two = start(launch, tmp_path, **options).results()
    [one] = launch("checkpointed", size=1, folder=str(tmp_path), steps=STEPS, every=EVERY, **options).results()
    assert one["start"] == STEPS
    both = two[0]["bits"] | two[1]["bits"]
    assert one["bits"] == both


@pytest.mark.full
def test_twenty_kills(launch, tmp_path):
    options = {"pieces": True}
    expected = start(launch, tmp_path / "whole", **options).results()
    draw = random.Random(1)
    for number in range(20):
        folder = tmp_path / str(number)
        ranks = start(launch, folder, pause=0.02, **options)
        lost = draw.randrange(2)
        kill(ranks, lost, draw.randrange(1, STEPS - 1), draw.random() * 0.1)
        check_fault(ranks, lost, within=60)
        check_resumed(launch, folder, expected, options)
