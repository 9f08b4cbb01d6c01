"""weir.distributed.TensorParallel: one process's training within rounding, and one error on every rank."""

import pytest


@pytest.fixture(scope="module")
def trained(launch):
    return launch("tensor_parallel", steps=3).results()


def measure(run, alone):
    """Returns the largest relative difference of a loss."""
    return max(abs(a / b - 1) for a, b in zip(run["losses"], alone["losses"], strict=True))


def test_parts_train_as_the_whole(trained):
    import torch

    right, alone = trained[0]["right"], trained[0]["alone"]
    assert measure(right, alone) < 1e-6
    assert right["values"].keys() == alone["values"].keys()
    for name, value in alone["values"].items():
        torch.testing.assert_close(torch.tensor(right["values"][name]), torch.tensor(value), rtol=1e-5, atol=1e-6)


def test_ranks_share_bits(trained):
    assert trained[0]["right"] == trained[1]["right"]
    assert trained[0]["shared"] == trained[1]["shared"]


def test_each_rank_has_its_parts(trained):
    for rank in trained:
        assert rank["own"]["blocks.0.qkv.weight"] == [24, 16] and rank["own"]["blocks.0.down.weight"] == [16, 16]
        assert rank["same"]


def test_a_bias_that_each_rank_adds_is_seen(trained):
    """The twin: what all ranks share, counted on each."""
    assert measure(trained[0]["wrong"], trained[0]["alone"]) > 1e-4


REFUSALS = {
    "heads": "ValueError: 1 heads do not divide among 2 ranks",
    "columns": "ValueError: 5 of dimension 0 do not divide among 2 ranks",
    "rows": "ValueError: 5 of dimension 1 do not divide among 2 ranks",
    "forgotten sum": "has result 'loss', which differs by rank",
    "sum of a sum": "is of a value that all ranks share, so each rank would count once more",
    "clipped parts": "--clip-norm would need the gradients of all ranks: leave it out",
    "adafactor of parts": "the update rule computes with all elements of a parameter, and a rank has some",
    "no collectives": "the step has no collectives; put ColumnLinear and RowLinear in its module",
    "parallel artifacts": "have different artifacts; compile one module",
    "parallel values": "have different values of what all share; seed them alike",
    "batches": "rank 1 has other arguments than rank 0",
    "without ranks": "exchanges values with other ranks; call it by weir.distributed.TensorParallel",
}


@pytest.fixture(scope="module")
def refused(launch):
    return launch("refuse", cases=list(REFUSALS)).results()


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_are_the_same_on_every_rank(refused, case):
    assert REFUSALS[case] in refused[0][case] and refused[0][case] == refused[1][case]
