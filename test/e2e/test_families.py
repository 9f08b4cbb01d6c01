"""Profiles of families of Vulkan GPUs, of which none is here: code that is proved and valid, and runs right in the
simulator, with subgroups of 16, 32 and 64 invocations."""

import itertools
import re

import pytest

import spirv
from check import BOUND
from graphs import make
from test_contractions import FORMS, make_graph, make_half_graph

FAMILIES = ["nvidia", "rdna2", "rdna3", "xe", "adreno7", "valhall", "apple"]
# Of each width of subgroups one, without cooperative matrices.
WIDTHS = ["rdna2", "valhall", "adreno7"]


def compile_for(weir, source, family, *flags):
    """Compiles for a family's profile. Its code is valid for its version of Vulkan."""
    artifact = weir.compile(source, family, f"--target=vulkan:{family}", *flags)
    spirv.validate(artifact, weir.folder)
    return artifact


def check(weir, artifact, inputs, tolerance):
    expected = weir.folder / "expected.safetensors"
    if not expected.exists():
        weir.run("run", artifact, "--device=reference", "--f64", *inputs, f"--output={expected}")
    weir.run("run", artifact, "--device=sim", *inputs, f"--compare={expected}", f"--tolerance={tolerance}")


def check_facts(weir, artifact, is_whole):
    """All facts are proved from code; where tiles reach beyond the end, but those of bounds, and of whether every byte
    is written. Debian's SPIRV-Tools has no cooperative matrices; that such code is valid is then taken, too."""
    text = weir.run("verify", artifact)
    taken = {line.split()[2] for line in text.splitlines()
             if " taken from compiler: " in line and "this SPIRV-Tools is from before cooperative matrices" not in line}
    assert int(re.search(r"(\d+) facts are proved from it", text)[1]) > 10
    assert taken <= (set() if is_whole else {"effects", "bounds"}), text


@pytest.mark.parametrize("example, family", [
    *itertools.product(["background_case1", "layer_norm_vjp"], FAMILIES),
    *itertools.product(["mlp/mlp"], WIDTHS), ("from_jax/mixer", "rdna3"), ("from_jax/mixer", "apple")])
def test_examples(weir, example, family):
    inputs = [f"--input={weir.examples}/{example.split('/')[0]}/inputs.safetensors"] if "/" in example else []
    artifact = compile_for(weir, weir.examples / f"{example}.mlir", family)
    check(weir, artifact, [*inputs, "--random-inputs=1"], 2e-5)


@pytest.mark.parametrize("seed", range(0, 14))
def test_random_graphs(weir, seed):
    text = make(seed, differentiable=False).text()
    families = FAMILIES[:3] if "f64" in text else FAMILIES  # those that have it
    family = families[seed % len(families)]
    (weir.folder / "a.mlir").write_text(text)
    artifact = compile_for(weir, weir.folder / "a.mlir", family)
    check(weir, artifact, [f"--random-inputs={seed}"], BOUND)


# Batches, rows, columns, products: of whole tiles, of parts of one, of odd sizes and slabs that are not whole.
SIZES = [(1, 256, 256, 48), (3, 130, 260, 37), (1, 387, 259, 41), (2, 192, 256, 44)]
WHOLE = SIZES[::3]


def has_slabs(artifact):
    """Whether the only kernel's code has workgroup memory."""
    [words] = spirv.read_code(artifact).values()
    return any(words[at + 3] == spirv.WORKGROUP for at in spirv.find(words, spirv.VARIABLE))


@pytest.mark.parametrize("family", WIDTHS)
@pytest.mark.parametrize("form, sizes", [*zip(FORMS, SIZES)],
                         ids=lambda value: value if isinstance(value, str) else "x".join(map(str, value)))
def test_slabs(weir, form, sizes, family):
    (weir.folder / "a.mlir").write_text(make_graph(form, *sizes))
    artifact = compile_for(weir, weir.folder / "a.mlir", family)
    assert has_slabs(artifact)
    check_facts(weir, artifact, sizes in WHOLE)
    check(weir, artifact, ["--random-inputs=1"], 2e-5)


@pytest.mark.parametrize("family", WIDTHS)
@pytest.mark.parametrize("half, form, sizes", [("f16", "nt", SIZES[0]), ("bf16", "tn", SIZES[1]),
                                               ("f16", "nn", SIZES[2]), ("bf16", "tt", SIZES[3])])
def test_slabs_of_halves(weir, half, form, sizes, family):
    (weir.folder / "a.mlir").write_text(make_half_graph(form, half, *sizes))
    artifact = compile_for(weir, weir.folder / "a.mlir", family)
    assert has_slabs(artifact)
    check_facts(weir, artifact, sizes in WHOLE)
    check(weir, artifact, ["--random-inputs=1"], {"f16": 2e-3, "bf16": 1e-2}[half])
