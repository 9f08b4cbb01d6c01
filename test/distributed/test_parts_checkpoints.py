"""Checkpoints of weir.distributed.TensorParallel: the same bits after a restart, and parts moved to other ranks."""

import shutil

import pytest

STEPS, EVERY = 8, 2
OPTIONS = {"how": "tensor", "every": EVERY, "group_timeout": 30, "accumulate": True}


@pytest.fixture(scope="module")
def whole(launch, tmp_path_factory):
    """Returns a run without a fault, and the folder of its checkpoints."""
    folder = tmp_path_factory.mktemp("whole")
    return launch("checkpointed", folder=str(folder), steps=STEPS, **OPTIONS).results(), folder


def list_steps(folder):
    return sorted(int(path.name.removeprefix("step-")) for path in folder.glob("step-*"))


def kill(launch, folder, rank, step, part):
    codes, outputs = launch("checkpointed", folder=str(folder), steps=STEPS, die=[rank, step, part], **OPTIONS).wait()
    assert codes[rank] == -9 and codes[1 - rank] == 1
    assert outputs[1 - rank].count("FaultError: ") == 1, outputs[1 - rank]


def check_resumed(launch, folder, start, whole):
    """Checks that the steps behind the last checkpoint have the bits of the run without a fault."""
    resumed = launch("checkpointed", folder=str(folder), steps=STEPS, **OPTIONS).results()
    assert list_steps(folder) == [2, 4, 6, 8]
    for rank, expected in zip(resumed, whole[0], strict=True):
        assert rank["start"] == start and rank["bits"] == expected["bits"]
        assert rank["hashes"] == {number: expected["hashes"][number] for number in map(str, range(start, STEPS))}


def test_a_rank_killed_while_it_writes(launch, tmp_path, whole):
    kill(launch, tmp_path, 1, 4, "data")
    assert list_steps(tmp_path) == [2] and list(tmp_path.glob(".step-*4.partial/*.distcp"))
    check_resumed(launch, tmp_path, 2, whole)


@pytest.mark.full
def test_a_rank_killed_before_the_name(launch, tmp_path, whole):
    kill(launch, tmp_path, 0, 6, "all but the name")
    assert list_steps(tmp_path) == [2, 4] and list(tmp_path.glob(".step-*6.partial/.metadata"))
    check_resumed(launch, tmp_path, 4, whole)


def test_other_numbers_of_ranks(launch, tmp_path):
    """2 ranks, then 1, then 2: within rounding of 2 alone. What is only read has its bits."""
    import torch

    [moved, other] = launch("move_parts", folder=str(tmp_path), steps=6, every=2).results()
    losses, values = moved["whole"]
    for loss, expected in zip(moved["losses"], losses[2:], strict=True):
        assert abs(loss / expected - 1) < 1e-6
    for name, value in values.items():
        torch.testing.assert_close(torch.tensor(moved["values"][name]), torch.tensor(value), rtol=1e-5, atol=1e-6)
    assert moved["values"] == other["values"] == moved["read"]


@pytest.mark.full
def test_a_checkpoint_of_other_layers(launch, tmp_path, whole):
    shutil.copytree(whole[1], tmp_path / "whole")
    codes, outputs = launch("checkpointed", folder=str(tmp_path / "whole"), steps=STEPS, blocks=2, **OPTIONS).wait()
    for code, output in zip(codes, outputs):
        assert code == 1 and "CheckpointError: " in output and "is of another step: it has no blocks.1." in output
