"""Results that have the same bits by docs/same-bits.md, and that no test of a feature compares: fusion, order, queues,
runs."""

import re

import pytest
from conftest import ROOT
from graphs import make_graph

EXAMPLES = {
    "mlp": (ROOT / "examples/mlp/mlp.mlir", ["--grad=mlp_loss", "--entry=mlp_loss.grad"]),
    "layer_norm_vjp": (ROOT / "examples/layer_norm_vjp.mlir", []),
}
SEEDS = range(700, 706)


@pytest.fixture(params=[*EXAMPLES, *SEEDS])
def graph(request):
    """The text of a graph without `weir.no_fuse`, and flags to compile it."""
    if request.param in EXAMPLES:
        path, flags = EXAMPLES[request.param]
        return path.read_text(), flags
    return make_graph(request.param).replace(", weir.no_fuse", ""), []


def separate(text):
    """Each `linalg.generic` in kernels of its own."""
    return re.sub(r"linalg\.generic \{", "linalg.generic {weir.no_fuse, ", text)


def run(weir, text, name, *flags):
    """Returns the artifact and the bytes of all results."""
    artifact, output = weir.compile_text(text, name, *flags), weir.folder / f"{name}.safetensors"
    weir.run("run", artifact, "--random-inputs=1", f"--output={output}")
    return artifact, output.read_bytes()


def test_bits_do_not_depend_on_the_plan(weir, graph):
    text, flags = graph
    artifact, expected = run(weir, text, "fused", *flags)
    variants = {
        "alone": (separate(text), []),
        "recorded": (text, ["--reorder=off"]),
        "reordered": (text, ["--reorder=50%"]),
        "pinned": (text, ["--no-reuse"]),
        "queues": (text, [f"--target=vulkan:{weir.profile(queues=2)}"]),
    }
    for name, (changed, more) in variants.items():
        assert run(weir, changed, name, *flags, *more)[1] == expected, name


def test_fusion_makes_a_difference_to_kernels(weir):
    """Else the test above compares equal plans."""
    text, flags = EXAMPLES["mlp"][0].read_text(), EXAMPLES["mlp"][1]
    plans = [weir.inspect(run(weir, changed, name, *flags)[0])["plans"][0]
             for name, changed in (("fused", text), ("alone", separate(text)))]
    assert plans[0]["dispatches"] < plans[1]["dispatches"]


def test_compiling_and_running_again_changes_nothing(weir, graph):
    text, flags = graph
    first, expected = run(weir, text, "first", *flags)
    second, found = run(weir, text, "second", *flags)
    assert expected == found
    # The file's name is part of an artifact's locations.
    again = weir.compile(weir.folder / "first.mlir", "again", *flags)
    assert first.read_bytes() == again.read_bytes()
    output = weir.folder / "steps.safetensors"
    weir.run("run", first, "--random-inputs=1", "--steps=3", f"--output={output}")
    if not any(argument.get("donate") for entry in weir.inspect(first)["entries"] for argument in entry["arguments"]):
        assert output.read_bytes() == expected
