"""weir.distributed.TensorParallel: one process's training within rounding, and one error on every rank."""

import pytest


@pytest.fixture(scope="module")
def trained(launch):
    return launch("tensor_parallel", steps=3).results()


def measure(run, alone):
    """Returns the largest relative difference of a loss."""
    return max(abs(a / b - 1) for a, b in zip(run["losses"], alone["losses"], strict=True))


def check(run, alone):
    import torch

    assert measure(run, alone) < 1e-6
    assert run["values"].keys() == alone["values"].keys()
    for name, value in alone["values"].items():
        torch.testing.assert_close(torch.tensor(run["values"][name]), torch.tensor(value), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["right", "clipped"])
def test_parts_train_as_the_whole(trained, name):
    check(trained[0][name], trained[0][f"{name} alone"])


def test_clipping_changes_a_step(trained):
    """The twin: the norm is beyond the limit."""
    assert measure(trained[0]["clipped alone"], trained[0]["right alone"]) > 1e-4


@pytest.mark.parametrize("name", ["right", "clipped"])
def test_ranks_share_bits(trained, name):
    assert trained[0][name] == trained[1][name]
    assert trained[0][f"{name} shared"] == trained[1][f"{name} shared"]


def test_each_rank_has_its_parts(trained):
    for rank in trained:
        assert rank["own"]["blocks.0.qkv.weight"] == [24, 16] and rank["own"]["blocks.0.down.weight"] == [16, 16]
        assert rank["same"]


def test_a_bias_that_each_rank_adds_is_seen(trained):
    """The twin: what all ranks share, counted on each."""
    assert measure(trained[0]["wrong"], trained[0]["right alone"]) > 1e-4


def test_all_ranks_skip_a_step(launch):
    """One rank's part of a gradient is infinite."""
    for rank in launch("skipped_step").results():
        assert rank["skipped"]["scale"] == 32768 and rank["skipped"]["changed"] == ["loss_scale"]
        assert rank["done"]["scale"] == 65536 and "embed.weight" in rank["done"]["changed"]


def check_replicas(ranks):
    """Checks that replicas have trained as one process by the mean of their batches."""
    check(ranks[0], ranks[0]["alone"])
    for rank in ranks:
        assert rank["same"] and all(rank[key] == ranks[0][key] for key in ("losses", "values", "shared"))


def test_replicas(launch, tmp_path):
    ranks = launch("replicas", count=2, steps=3, folder=str(tmp_path)).results()
    check_replicas(ranks)
    assert [rank["refused"] for rank in ranks] == ["", ""]  # batches of their own


@pytest.mark.full
def test_replicas_of_two_ranks(launch, tmp_path):
    ranks = launch("replicas", size=4, count=2, steps=3, folder=str(tmp_path)).results()
    check_replicas(ranks)
    assert {rank["refused"].partition(",")[0] for rank in ranks} == {"Error: rank 1 has other arguments than rank 0"}


REFUSALS = {
    "heads": "ValueError: 1 heads do not divide among 2 ranks",
    "columns": "ValueError: 5 of dimension 0 do not divide among 2 ranks",
    "rows": "ValueError: 5 of dimension 1 do not divide among 2 ranks",
    "forgotten sum": "has result 'loss', which differs by rank",
    "sum of a sum": "is of a value that all ranks share, so each rank would count once more",
    "pieces of parts": "--pieces and --shards put the gradients of all parameters into one buffer: leave them out",
    "replicas of the whole": "ExportError: the module has no collectives, of which there could be replicas",
    "replicas without a mesh": "the step has 2 replicas, and the ranks have",
    "a mesh of one dimension": "the mesh has 1 dimensions and 2 of 2 ranks; give one of all ranks with two dimensions",
    "parts of replicas": "replicas have different values of parts; seed them alike",
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
