"""Stages under the schedules of torch.distributed.pipelining: the bits of one process, and PyTorch's gradients."""

import pytest

SINGLE = ["GPipe", "1F1B"]  # a stage for each rank
MULTI = ["LoopedBFS", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"]


def check(ranks):
    found = ranks.results()[0]
    assert found
    for name, run in found.items():
        assert run["bits"], f"{name} has other bits than its stages one after the other"
        assert not run["missing"], f"{name} has no gradient of {run['missing']}"
        assert run["error"] < 2e-6, f"{name} departs from PyTorch in f64 by {run['error']}"
        measured, alone, exact = run["losses"]
        assert measured == alone and (name.startswith("dropped") or abs(measured - exact) < 1e-5)


def test_a_stage_for_each_rank(launch):
    check(launch("pipeline", schedules=SINGLE, kinds=["tied", "skip"], blocks=2))


def test_several_stages_for_each_rank(launch):
    check(launch("pipeline", schedules=MULTI, kinds=["tied", "skip"], blocks=4))


def test_kinds_of_models(launch):
    check(launch("pipeline", schedules=["InterleavedZeroBubble"], kinds=["frozen", "bare", "dropped"], blocks=4))


def test_vulkan(launch):
    check(launch("pipeline", schedules=["ZBVZeroBubble"], kinds=["tied"], blocks=4, device="vulkan"))


def test_uses_that_are_counted_twice_are_seen(launch):
    """The twin: a wrong weight pass."""
    found = launch("pipeline", schedules=["1F1B"], kinds=["plain"], blocks=2, wrong=True).results()[0]
    assert found["plain 1F1B"]["error"] > 1e-2


def test_three_ranks_and_a_value_for_the_last(launch):
    check(launch("pipeline", size=3, schedules=SINGLE, kinds=["skip"], blocks=3))


def test_compiled_stages_need_no_module(launch):
    [found] = launch("forget", size=1, blocks=3).results()
    assert found["all"] and not found["alive"] and len(found["read"]) >= found["all"]


@pytest.mark.full
def test_four_ranks(launch):
    check(launch("pipeline", size=4, schedules=SINGLE, kinds=["tied", "skip"], blocks=4))
    check(launch("pipeline", size=4, schedules=MULTI, kinds=["tied", "frozen", "skip"], blocks=8, microbatches=8, timeout=900))
