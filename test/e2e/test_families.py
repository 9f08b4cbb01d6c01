"""Profiles of families of Vulkan GPUs, of which none is here: code that is proved and valid, and runs right in the
simulator, with subgroups of 16, 32 and 64 invocations."""

import itertools
import json
import os
import re
import subprocess
import sys
import zipfile

import pytest

import spirv
from check import check_family, list_families
from conftest import BIN, ROOT, SECOND_DRIVER
from graphs import make
from test_contractions import FORMS, make_graph, make_half_graph

FAMILIES = list_families()  # and whether each has f64
SMALLEST = "vulkan13"  # subgroups of one invocation, and kernels of four buffers
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
    *itertools.product(["mlp/mlp"], [*WIDTHS, SMALLEST]),
    *itertools.product(["from_jax/mixer"], ["rdna3", "apple", "v3d", SMALLEST])])
def test_examples(weir, example, family):
    inputs = [f"--input={weir.examples}/{example.split('/')[0]}/inputs.safetensors"] if "/" in example else []
    artifact = compile_for(weir, weir.examples / f"{example}.mlir", family)
    check(weir, artifact, [*inputs, "--random-inputs=1"], 2e-5)


@pytest.mark.parametrize("seed", range(0, 26))
def test_random_graphs(weir, seed):
    """A slice of `scripts/random-graphs --families`. A family has them all, but for f64 and the buffers of some."""
    text = make(seed, differentiable=False).text()
    families = [name for name, has_float64 in FAMILIES.items() if has_float64 or "f64" not in text]
    family = families[seed % len(families)]
    (weir.folder / "a.mlir").write_text(text)
    reason = check_family(weir, weir.folder / "a.mlir", family, FAMILIES[family], [f"--random-inputs={seed}"])
    assert reason is None or (reason, family) == ("buffers", SMALLEST)


NORM = """
func.func @f(%x: tensor<24x40xf32> {weir.name = "x"}) -> (tensor<24xf32> {weir.name = "y"}) {
  %weights = arith.constant dense<CONSTANT> : tensor<40xf32>
  %empty = tensor.empty() : tensor<24xf32>
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<24xf32>) -> tensor<24xf32>
  %y = linalg.matvec ins(%x, %weights : tensor<24x40xf32>, tensor<40xf32>) outs(%start : tensor<24xf32>)
      -> tensor<24xf32>
  %squares = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                             iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<24x40xf32>) outs(%y : tensor<24xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %square = arith.mulf %a, %a : f32
    %next = arith.addf %sum, %square : f32
    linalg.yield %next : f32
  } -> tensor<24xf32>
  return %squares : tensor<24xf32>
}
""".replace("CONSTANT", str([number / 64 for number in range(40)]))
TARGET = "import sys, weir.runtime as r; print(r.Program(sys.argv[1]).target)"


def get_target(weir, artifact, driver):
    """Returns the target of an artifact that a driver's first device runs; with None the default driver."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "python"), "WEIR_RUNTIME": str(BIN.parent / "lib/libweir_runtime.so.0")}
    if driver:
        env |= {"VK_DRIVER_FILES": driver, "VK_ICD_FILENAMES": driver}
    done = subprocess.run([sys.executable, "-c", TARGET, artifact], capture_output=True, text=True, env=env, check=True)
    return done.stdout.strip()


DRIVERS = [pytest.param(None, id="default"),
           pytest.param(SECOND_DRIVER, id="second", marks=pytest.mark.skipif(not SECOND_DRIVER, reason="no second driver"))]


@pytest.mark.parametrize("driver", DRIVERS)
def test_one_artifact_for_several_families(weir, driver):
    """Its constants are there once. The best profile that fits is run, in whatever order they are given."""
    (weir.folder / "a.mlir").write_text(NORM)
    orders = itertools.permutations(["vulkan13", "minimum", "lavapipe"])
    for order in itertools.islice(orders, 0, None, 2):
        targets = ",".join(f"vulkan:{name}" for name in order)
        artifact = weir.compile("a.mlir", "a", f"--target={targets}")
        with zipfile.ZipFile(artifact) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            assert [name for name in archive.namelist() if "safetensors" in name] == ["weights.safetensors"]
        assert [target["target"] for target in manifest["targets"]] == [f"vulkan.{name}" for name in order]
        assert len(manifest["constants"]) == 1
        assert get_target(weir, artifact, driver) == ("vulkan.minimum" if driver else "vulkan.lavapipe")
        inputs, expected = ["--random-inputs=1"], weir.folder / "expected.safetensors"
        weir.run("run", artifact, "--device=reference", "--f64", *inputs, f"--output={expected}")
        weir.run("run", artifact, *inputs, f"--compare={expected}", "--tolerance=1e-5", driver=driver)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("seed", [None, *range(0, 12)])
def test_smallest_family_runs_anywhere(weir, seed, driver):
    """Its code asks for no size of subgroups, so drivers with 8 and with 4 run it, with the simulator's bits."""
    text = NORM if seed is None else make(seed, differentiable=False).text()
    (weir.folder / "a.mlir").write_text(text)
    inputs = [f"--random-inputs={seed or 0}"]
    if reason := check_family(weir, weir.folder / "a.mlir", SMALLEST, False, inputs):
        assert seed is not None and (reason == "buffers" or "f64" in text)
        return
    artifact, output = weir.folder / f"{SMALLEST}.weir", weir.folder / "output.safetensors"
    words = itertools.chain(*spirv.read_code(artifact).values())
    assert not {(2 << 16 | 17, number) for number in range(61, 67)} & set(itertools.pairwise(words))
    weir.run("run", artifact, *inputs, f"--output={output}", driver=driver)
    weir.simulate(artifact, inputs, output)


def test_kernel_of_more_buffers_than_there_are(weir):
    """One op of five results cannot be split."""
    count = 5
    types, outs = [", ".join([text] * count) for text in ("tensor<8xf32>", "%e")]
    names = ", ".join(f"%s{i}" for i in range(count))
    (weir.folder / "a.mlir").write_text(f"""
#id = affine_map<(i) -> (i)>
func.func @f(%x: tensor<8xf32> {{weir.name = "x"}}) -> ({types}) {{
  %e = tensor.empty() : tensor<8xf32>
  %y:{count} = linalg.generic {{indexing_maps = [{", ".join(["#id"] * (count + 1))}], iterator_types = ["parallel"]}}
      ins(%x : tensor<8xf32>) outs({outs} : {types}) {{
  ^bb0(%a: f32, {", ".join(f"%o{i}: f32" for i in range(count))}):
    %s0 = arith.addf %a, %a : f32
    %s1 = arith.mulf %a, %a : f32
    %s2 = math.absf %a : f32
    %s3 = arith.negf %a : f32
    %s4 = math.sqrt %a : f32
    linalg.yield {names} : {", ".join(["f32"] * count)}
  }} -> ({types})
  return {", ".join(f"%y#{i}" for i in range(count))} : {types}
}}
""")
    assert check_family(weir, weir.folder / "a.mlir", SMALLEST, False, ["--random-inputs=1"]) == "buffers"
    assert not list(weir.folder.glob("*.weir"))


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
