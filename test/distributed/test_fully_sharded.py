"""weir.distributed.FullySharded: the training of DataParallel, with a part of all values on each rank."""

import pytest

KINDS = ("plain", "tied", "frozen", "odd")


@pytest.fixture(scope="module")
def microbatches(launch):
    return launch("accumulated").results()


@pytest.fixture(scope="module")
def trained(launch):
    return launch("fully_sharded", kinds=KINDS).results()


def check(ranks, kind):
    for each in ranks:
        assert each[kind]["losses"] == pytest.approx(each[kind]["means"], rel=1e-6)
        assert each[kind]["bits"] == ranks[0][kind]["bits"] and each[kind]["losses"] == ranks[0][kind]["losses"]


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_train_as_data_parallel_with_the_same_bits(trained, kind):
    check(trained, kind)
    assert all(rank[kind]["same"] for rank in trained)


def test_a_rank_holds_its_part(trained):
    assert all(rank["plain"]["held"] < 0.51 * rank["plain"]["whole"] for rank in trained)


def test_each_unit_is_gathered_for_forward_and_for_backward(trained):
    """Of three blocks between an embedding and a head: the head stays, and the embedding is not read backward."""
    assert trained[0]["plain"]["sections"] == 1 + 3 + 1 + 3 + 1


def test_seeds_and_units_may_differ(launch):
    """Dropout draws other numbers on each rank; parameters of no unit are whole on each."""
    for rank in launch("fully_sharded", kinds=["dropped"], seeds=True, whole=False).results():
        assert rank["dropped"]["same"]
        assert rank["dropped"]["held"] < 0.7 * rank["dropped"]["whole"]


def test_another_order_and_gradients_that_count_twice_are_seen(launch):
    """The twins."""
    for rank in launch("broken").results():
        assert rank["right"] < 1e-6 < 1e-2 < min(rank["order"], rank["twice"])


@pytest.mark.parametrize("kind", ["plain", "clipped"])
def test_microbatches_averages_and_predictions(microbatches, kind):
    first, second = (rank[kind] for rank in microbatches)
    assert first["error"] < 1e-5 and first["average error"] < 1e-5
    assert first["averages"] == second["averages"] and first["output"] == second["output"]
    assert sum(first["output"], [])[0] == pytest.approx(sum(first["alone"], [])[0], abs=1e-5)


def test_the_norm_is_that_of_all_parts(microbatches):
    """The twin: without it parameters are others."""
    assert microbatches[0]["clipped"]["moved"] > 1e-2


def test_all_ranks_skip_a_step_with_an_infinite_gradient_in_the_part_of_one(launch):
    first, second = launch("skipped_parts").results()
    assert first == second
    assert first["skipped"]["same"] and not first["done"]["same"]
    assert first["skipped"]["scale"] == first["done"]["scale"] / 2
    assert all(abs(each["loss"]) < 10 for each in first.values())


def test_a_checkpoint_goes_on_with_the_same_bits_and_on_other_ranks(launch, tmp_path):
    whole = launch("checkpointed_parts", folder=str(tmp_path), steps=2, every=2).results()
    assert whole[0]["start"] == 0 and whole[0] == whole[1]
    assert launch("checkpointed_parts", size=1, folder=str(tmp_path), steps=2).results()[0] == {
        "start": 2, "2": whole[0]["2"]}


@pytest.mark.full
@pytest.mark.parametrize("size", [3, 4])
def test_more_ranks(launch, size):
    """A third is rounded, so with three ranks values agree within rounding."""
    ranks = launch("fully_sharded", size=size, kinds=["tied", "odd"], descent=size == 3).results()
    for kind in ("tied", "odd"):
        check(ranks, kind)
        assert all(rank[kind]["same"] if size == 4 else rank[kind]["error"] < 1e-5 for rank in ranks)


@pytest.mark.full
def test_a_checkpoint_of_two_ranks_is_read_by_four(launch, tmp_path):
    first = launch("checkpointed_parts", folder=str(tmp_path / "a"), steps=4, every=2).results()[0]
    again = launch("checkpointed_parts", folder=str(tmp_path / "a"), steps=4).results()[0]
    assert again == {"start": 4, "4": first["4"]}
    launch("checkpointed_parts", folder=str(tmp_path / "b"), steps=2, every=2).results()
    assert launch("checkpointed_parts", folder=str(tmp_path / "b"), steps=4).results()[0]["4"] == first["4"]
    assert launch("checkpointed_parts", size=4, folder=str(tmp_path / "b"), steps=2).results()[3]["2"] == first["2"]


REFUSALS = {
    "no units": "the step has no parameters of units; call weir.distributed.fully_shard before compile_step",
    "twice": "the module has no parameters that are not parts already",
    "other parameters": "ranks 0 and 1 have different parameters; give fully_shard the same module",
    "columns": "the module has parts by ColumnLinear or RowLinear, and fully_shard would cut them again; leave one out",
    "collectives": "the module exchanges values with other ranks, and has parameters by fully_shard; leave one out",
    "replicas": "by fully_shard, whose ranks have batches of their own already; leave replicas out",
    "pieces": "--pieces and --shards put the gradients of all parameters into one buffer: leave them out",
    "adafactor": "the update rule computes with all elements of a parameter, and a rank has some",
    "artifacts": "have different artifacts; compile one module",
    "tensor parallel": "the step's ranks have batches of their own; call it by FullySharded",
    "alone": "exchanges values with other ranks; call it by weir.distributed.TensorParallel, or FullySharded",
    "group": "the step is for 2 ranks, and the group has 1",
    "rates": "rank 1 has other arguments than rank 0",
    "shape": "rank 1: tokens is int64[5, 5], expected int64[4, 5]",
}


@pytest.fixture(scope="module")
def refused(launch):
    return launch("refuse_parts", cases=list(REFUSALS)).results()


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_are_the_same_on_every_rank(refused, case):
    assert REFUSALS[case] in refused[0][case] and refused[0][case] == refused[1][case]
