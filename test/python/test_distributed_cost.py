"""benchmarks/distributed: the formulas of docs/distributed-costs.md, against published numbers, PyTorch's schedules and plans."""

import json
import pathlib
import subprocess
import sys
import zipfile

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
transformers = pytest.importorskip("transformers", reason="transformers is not installed: scripts/setup --torch")

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "benchmarks/distributed"
sys.path.insert(0, str(FOLDER))
import cost  # noqa: E402
import schedules  # noqa: E402

import weir  # noqa: E402

SMALL = cost.Model(layers=1, width=256, heads=8, key_heads=4, hidden=688, vocabulary=100)
TOKENS = 768  # from 512 on attention on processors keeps no scores


def make(layers):
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=SMALL.width, intermediate_size=SMALL.hidden, num_hidden_layers=layers,
        num_attention_heads=SMALL.heads, num_key_value_heads=SMALL.key_heads, vocab_size=SMALL.vocabulary,
        max_position_embeddings=TOKENS))


def test_parameters_are_those_of_the_models():
    assert cost.MODELS["7B"].parameters == 6_738_415_616 and cost.MODELS["70B"].parameters == 68_976_648_192
    assert SMALL.parameters == sum(parameter.numel() for parameter in make(1).parameters())


@pytest.mark.parametrize("name", ["GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS"])
@pytest.mark.parametrize("ranks, microbatches", [(2, 4), (4, 4), (4, 12), (8, 32)])
def test_idle_time_of_schedules_is_that_of_the_formula(name, ranks, microbatches):
    stages = schedules.SCHEDULES[name]
    made = schedules.simulate(schedules.get_order(name, ranks, microbatches), stages, (1.0, 1.0, 1.0))
    assert made.idle == pytest.approx((ranks - 1) / (stages * microbatches + ranks - 1))
    assert name != "1F1B" or made.held == min(ranks, microbatches)


@pytest.mark.parametrize("name", ["InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"])
def test_split_backward_waits_less(name):
    whole, split = (schedules.simulate(schedules.get_order(each, 4, 8), schedules.SCHEDULES[each], (1.0, 1.0, 1.0))
                    for each in ("Interleaved1F1B", name))
    # Two stages a rank: the last rank waits for a forward of each other rank, and for no backward.
    assert split.seconds == 3 * 8 + 3 / 2 and split.seconds < whole.seconds


def test_order_that_waits_for_itself_is_refused():
    order = schedules.get_order("1F1B", 2, 4)
    order[0].reverse()
    with pytest.raises(ValueError, match="the order waits for itself"):
        schedules.simulate(order, 1, (1.0, 1.0, 1.0))


def test_kept_activations_are_those_of_plans():
    tokens = torch.zeros(1, TOKENS, dtype=torch.int64)
    arenas = []
    for layers in (1, 3):
        with weir.compile_step(make(layers), lambda output: output.loss,
                               example={"input_ids": tokens, "labels": tokens}, device="cpu") as step:
            with zipfile.ZipFile(step._path) as archive:
                arenas.append(json.loads(archive.read("plan/cpu/main.step.json"))["arena_bytes"])
    element = TOKENS * SMALL.width * 4
    kept = ((arenas[1] - arenas[0]) / 2 - SMALL.layer * 4) / element  # a layer's gradients are in the arena, too
    assert kept == pytest.approx(SMALL.count_kept(), rel=0.1)


def test_ranks_that_share_everything_hold_less_and_send_more():
    model, kind = cost.MODELS["7B"], cost.KINDS["bf16"]
    nothing, state, whole = (cost.estimate(model, cost.Layout(8, sharded=sharded), kind, 64, 4096, 0.5)
                             for sharded in ("nothing", "state", "all"))
    assert nothing.parameters > state.parameters > whole.parameters
    assert state.data_bytes == pytest.approx(model.parameters * (4 + 2) * 7 / 8, rel=1e-4)
    assert nothing.data_bytes > state.data_bytes and whole.data_bytes > state.data_bytes
    with pytest.raises(ValueError, match="64 sequences and 32 layers do not divide"):
        cost.estimate(model, cost.Layout(3), kind, 64, 4096, 0.5)


@pytest.mark.parametrize("script, arguments, message", [
    ("cost.py", ["--batch=1000"], "1000 sequences and 32 layers do not divide among"),
    ("schedules.py", ["--times=1,2"], "expected three times above 0"),
])
def test_wrong_numbers_are_refused(script, arguments, message):
    done = subprocess.run([sys.executable, FOLDER / script, *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and message in done.stderr
