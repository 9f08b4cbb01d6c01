"""weir.distributed.DataParallel: the bits of one process, sharded or not, and one error on every rank."""

import subprocess
import sys

import pytest
from conftest import ROOT

OPTIONS = {
    "adamw": {},
    "momentum": {"optimizer": "momentum", "grouped": True},
    "clipped": {"clip_norm": 0.5, "ema": 0.9},
    "scaled": {"loss_scale": True, "dtype": "float16"},
    "bfloat16": {"dtype": "bfloat16", "optimizer": "adafactor"},
}


def check(ranks):
    """Checks that ranks hold the same bits as one process."""
    first = ranks[0]
    alone = first["alone"]
    assert [list(losses) for losses in zip(*(rank["losses"] for rank in ranks))] == alone["losses"]
    for rank in ranks:
        # Shards count steps, too, and one process has nothing accumulated but for its own use.
        shared = [name for name in rank["bits"] if name in alone["bits"] and not name.endswith((".accumulated", ".step"))]
        assert shared
        assert [name for name in shared if rank["bits"][name] != alone["bits"][name]] == []


@pytest.mark.parametrize("name", OPTIONS)
def test_bits_are_those_of_one_process(launch, name):
    check(launch("data_parallel", reference=True, pieces=True, **OPTIONS[name]).results())


def test_buckets_change_nothing(launch):
    check(launch("data_parallel", reference=True, pieces=True, parallel={"bucket_bytes": 256}).results())


def test_vulkan(launch):
    check(launch("data_parallel", reference=True, pieces=True, device="vulkan", steps=2).results())


def test_a_ring_is_close_and_deterministic(launch):
    runs = [launch("data_parallel", reference=i == 0, pieces=True, parallel={"reduction": "ring"}).results()
            for i in range(2)]
    assert runs[0][0]["bits"] == runs[0][1]["bits"] == runs[1][0]["bits"]
    compare(runs[0][0]["values"], runs[0][0]["alone"]["values"])


def test_accumulation_without_the_others(launch):
    """Each rank adds its own microbatches first, so the order of the sum is another one."""
    ranks = launch("data_parallel", reference=True, pieces=True, accumulate=True, microbatches=2).results()
    assert ranks[0]["bits"] == ranks[1]["bits"]
    compare(ranks[0]["values"], ranks[0]["alone"]["values"])


@pytest.mark.parametrize("reduction", ["ranks", "ring"])
def test_shards(launch, reduction):
    ranks = launch("data_parallel", reference=True, shards=4, parallel={"sharded": True, "reduction": reduction}).results()
    if reduction == "ranks":
        check(ranks)
    compare(ranks[0]["values"], ranks[0]["alone"]["values"])
    moments = [{name for name in rank["bits"] if name.endswith("_moment")} for rank in ranks]
    assert moments[0] and moments[1] and not moments[0] & moments[1]


def compare(values, others):
    import torch

    for name, value in values.items():
        torch.testing.assert_close(torch.tensor(value), torch.tensor(others[name]), rtol=2e-4, atol=2e-6)


REFUSALS = {
    "artifacts": "have different artifacts; compile one module",
    "options": "have different options of DataParallel",
    "pieces": "compile it with pieces=True",
    "shards": "3 shards do not divide among 2 ranks",
    "reduction": "reduction is 'tree'; expected",
    "device": "none of them for host memory",
    "values": "compile it without check_values",
    "shape": "rank 1: tokens is int64[5, 5], expected int64[4, 5]",
    "missing": "rank 1: the target target is missing",
    "no_sync": "accumulate=True, which no_sync needs",
    "split": "there is no submodule 'blocks.2' to begin a stage with",
    "models": "have different stages; cut one model",
    "tied": "have different values of tied parameters",
    "twice": "split where a module is called once",
}


@pytest.fixture(scope="module")
def refused(launch):
    """The errors of each rank by case. The group is as before after each."""
    return launch("refuse", cases=list(REFUSALS)).results()


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_are_the_same_on_every_rank(refused, case):
    assert REFUSALS[case] in refused[0][case] and refused[0][case] == refused[1][case]


def test_old_torch():
    code = "import torch; torch.__version__ = '2.4.1'; import weir.distributed"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT / "python"), "PATH": ""},
                          capture_output=True, text=True)
    assert done.returncode and done.stderr.splitlines()[-1].startswith(
        "ImportError: weir.distributed needs torch 2.13 or later, and finds 2.4.1")


@pytest.mark.full
def test_four_ranks(launch):
    for options in ({"pieces": True}, {"shards": 4, "parallel": {"sharded": True}}):
        check(launch("data_parallel", size=4, reference=True, steps=4, **options).results())
