"""Profiles of families of Vulkan GPUs, of which none is here: code that is proved and valid, and runs right in the
simulator, with subgroups of 16, 32 and 64 invocations."""

import itertools
import re
import subprocess
import zipfile

import pytest

from check import BOUND
from conftest import ROOT
from graphs import make
from test_contractions import FORMS, make_graph, make_half_graph

FAMILIES = ["nvidia", "rdna2", "rdna3", "xe", "adreno7", "valhall", "apple"]
# Of each width of subgroups one.
WIDTHS = ["nvidia", "valhall", "adreno7"]


def compile_for(weir, source, family, *flags):
    """Compiles for a family's profile. Its code is valid for its version of Vulkan."""
    artifact = weir.compile(source, family, f"--target=vulkan:{family}", *flags)
    folder = weir.folder / f"{family}.code"
    with zipfile.ZipFile(artifact) as archive:
        code = [name for name in archive.namelist() if name.endswith(".spv")]
        archive.extractall(folder, code)
    for name in code:
        subprocess.run(["spirv-val", "--target-env", "vulkan1.3", folder / name], check=True)
    return artifact


def check(weir, artifact, inputs, tolerance):
    expected = weir.folder / "expected.safetensors"
    if not expected.exists():
        weir.run("run", artifact, "--device=reference", "--f64", *inputs, f"--output={expected}")
    weir.run("run", artifact, "--device=sim", *inputs, f"--compare={expected}", f"--tolerance={tolerance}")


def read_facts(weir, artifact):
    """Returns how many facts of an artifact are proved from code, and how many are taken."""
    found = re.search(r"(\d+) facts are proved from it, (\d+) taken", weir.run("verify", artifact))
    return int(found[1]), int(found[2])


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


# Batches, rows, columns, products: of whole tiles, of parts of one, of odd sizes and slabs that are not whole. All facts
# of the first are proved; whether every byte is written where tiles reach beyond the end, may be taken.
SIZES = [(1, 256, 256, 48), (3, 130, 260, 37), (1, 259, 257, 20), (2, 192, 256, 44)]
WHOLE = SIZES[::3]


def has_slabs(folder, family):
    """Whether a kernel's code has workgroup memory."""
    [code] = (folder / f"{family}.code").glob("code/vulkan/*.spv")
    return " Workgroup" in subprocess.run(["spirv-dis", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("family", WIDTHS)
@pytest.mark.parametrize("form, sizes", [*zip(FORMS, SIZES)],
                         ids=lambda value: value if isinstance(value, str) else "x".join(map(str, value)))
def test_slabs(weir, form, sizes, family):
    (weir.folder / "a.mlir").write_text(make_graph(form, *sizes))
    artifact = compile_for(weir, weir.folder / "a.mlir", family)
    assert has_slabs(weir.folder, family)
    proved, taken = read_facts(weir, artifact)
    assert proved > 10 and taken <= (0 if sizes in WHOLE else 4)
    check(weir, artifact, ["--random-inputs=1"], 2e-5)


@pytest.mark.parametrize("family", WIDTHS)
@pytest.mark.parametrize("half, form, sizes", [("f16", "nt", SIZES[0]), ("bf16", "tn", SIZES[1]),
                                               ("f16", "nn", SIZES[2]), ("bf16", "tt", SIZES[3])])
def test_slabs_of_halves(weir, half, form, sizes, family):
    (weir.folder / "a.mlir").write_text(make_half_graph(form, half, *sizes))
    artifact = compile_for(weir, weir.folder / "a.mlir", family)
    assert has_slabs(weir.folder, family)
    proved, taken = read_facts(weir, artifact)
    assert proved > 10 and taken <= (0 if sizes in WHOLE else 3)
    check(weir, artifact, ["--random-inputs=1"], {"f16": 2e-3, "bf16": 1e-2}[half])
