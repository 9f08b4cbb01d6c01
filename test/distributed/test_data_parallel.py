"""weir.distributed.DataParallel: the bits of one process, sharded or not, and one error on every rank."""

import subprocess
import sys

import pytest
from conftest import ROOT

WHOLE = {"pieces": True, "reference": True}
SHARDED = {"shards": 4, "reference": True}
# With the bits of one process.
EXACT = {
    "adamw": WHOLE,
    "momentum": WHOLE | {"optimizer": "momentum", "grouped": True},
    "clipped": WHOLE | {"clip_norm": 0.5, "ema": 0.9},
    "scaled": WHOLE | {"loss_scale": True, "dtype": "float16"},
    "bfloat16": WHOLE | {"dtype": "bfloat16", "optimizer": "adafactor"},
    "small buckets": WHOLE | {"parallel": {"bucket_bytes": 256}},
    "vulkan": WHOLE | {"device": "vulkan", "steps": 2},
    "sharded": SHARDED | {"parallel": {"sharded": True}},
}
# With another order of sums. A rank adds its own microbatches first.
CLOSE = {
    "ring": WHOLE | {"parallel": {"reduction": "ring"}},
    "ring again": WHOLE | {"parallel": {"reduction": "ring"}},
    "accumulated": WHOLE | {"accumulate": True, "microbatches": 2},
    "sharded ring": SHARDED | {"parallel": {"sharded": True, "reduction": "ring"}},
}


@pytest.fixture(scope="module")
def trained(launch):
    """Returns what each rank gives for a case."""
    ranks = launch("train_all", cases=EXACT | CLOSE).results()
    return {name: [rank[name] for rank in ranks] for name in EXACT | CLOSE}


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


@pytest.mark.parametrize("name", EXACT)
def test_bits_are_those_of_one_process(trained, name):
    check(trained[name])


@pytest.mark.parametrize("name", CLOSE)
def test_other_orders_are_close(trained, name):
    compare(trained[name][0]["values"], trained[name][0]["alone"]["values"])
    assert trained[name][0]["values"] == trained[name][1]["values"]


def test_a_ring_is_deterministic(trained):
    assert trained["ring"][0]["bits"] == trained["ring"][1]["bits"] == trained["ring again"][0]["bits"]


def test_shards_hold_state_of_their_own(trained):
    first, second = ({name for name in rank["bits"] if name.endswith("_moment")} for rank in trained["sharded"])
    assert first and second and not first & second


@pytest.mark.parametrize("name", ["adamw", "sharded", "ring"])
def test_gradients_have_one_buffer(trained, name):
    assert [rank["buffers"] for rank in trained[name]] == [1, 1]


@pytest.mark.parametrize("owners", [None, [300, 310, 1003]])
def test_received_shares_are_few_at_once(launch, owners):
    """Memory does not grow with the number of buckets, and the sums are in the order of the ranks."""
    for rank in launch("add_up", size=3, length=1003, step=29, owners=owners).results():
        assert rank["same"] and not rank["live"]
        assert rank["peak"] == 4 < rank["buckets"]


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
    for name in "adamw", "sharded":
        check(launch("data_parallel", size=4, **EXACT[name]).results())
