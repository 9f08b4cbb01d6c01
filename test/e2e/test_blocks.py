"""Attention in blocks: on each kind of target, against the reference, which has one tensor of scores; and its memory."""

import json
import zipfile

import numpy
import pytest
from safetensors.numpy import save_file

from test_attention import Attention

PROFILES = {"vulkan": "lavapipe", "cuda": "sm_80", "cpu.v2": "x86-64-v2", "cpu.v3": "x86-64-v3", "cpu.v4": "x86-64-v4"}
DEVICES = {"vulkan": ["vulkan", "sim"], "cuda": ["sim"], "cpu": ["cpu"]}

# Batches, queries, keys, elements of a key and of a value, shape of the bias, softcap.
CASES = [
    ((), 7, 8, 4, 5, (7, 8), None),
    ((2,), 8, 7, 3, 2, (1, 1, 7), 2.0),
    ((3,), 16, 129, 8, 16, (3, 1, 129), None),
    ((1, 2), 129, 5, 3, 4, (1, 1, 129, 5), 1.5),
    ((2,), 33, 31, 64, 18, None, 0.7),
    ((2,), 40, 150, 2, 36, (1, 40, 150), None),
]

# Two heads share the keys and values of one.
SHARED = """
#repeat = affine_map<(b, h, t, d) -> (b, t, d)>
#all = affine_map<(b, h, t, d) -> (b, h, t, d)>
func.func @f(%q: tensor<6x12x8xf32>, %k: tensor<3x20x8xf32>, %v: tensor<3x20x8xf32>) -> tensor<6x12x8xf32> {
  %e = tensor.empty() : tensor<3x2x20x8xf32>
  %k2 = linalg.generic {indexing_maps = [#repeat, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<3x20x8xf32>) outs(%e : tensor<3x2x20x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<3x2x20x8xf32>
  %v2 = linalg.generic {indexing_maps = [#repeat, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v : tensor<3x20x8xf32>) outs(%e : tensor<3x2x20x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<3x2x20x8xf32>
  %k6 = tensor.collapse_shape %k2 [[0, 1], [2], [3]] : tensor<3x2x20x8xf32> into tensor<6x20x8xf32>
  %v6 = tensor.collapse_shape %v2 [[0, 1], [2], [3]] : tensor<3x2x20x8xf32> into tensor<6x20x8xf32>
  %y, %m, %s = norm.attention %q, %k6, %v6 {scale = 0.35 : f64} : tensor<6x12x8xf32>, tensor<6x20x8xf32>,
      tensor<6x20x8xf32> -> tensor<6x12x8xf32>, tensor<6x12xf32>
  return %y : tensor<6x12x8xf32>
}
"""


class Blocks:
    """Compiles for a profile that computes all attention in blocks, and compares with the reference."""

    def __init__(self, weir, profile):
        self.weir, self.kind = weir, profile.partition(".")[0]
        path = weir.folder / "blocks.json"
        path.write_text(json.dumps({"like": PROFILES[profile], "name": "blocks", "attention_keys": 1}))
        self.target = f"--target={self.kind}:{path}"

    def get_kernels(self, text, *flags):
        """Returns the names of the kernels, without their sizes."""
        source = self.weir.folder / "kernels.mlir"
        source.write_text(text)
        level = self.weir.folder / "level.mlir"
        self.weir.run("compile", source, "-o", level, "--stop-after=kernels", self.target, *flags)
        quoted = [line.split('"')[1] for line in level.read_text().splitlines() if "= schedule.kernel " in line]
        return ["_".join(part for part in name.split("_") if "x" not in part) for name in quoted]

    def compare(self, text, inputs, tolerance, *flags):
        artifact = self.weir.compile_text(text, "a", self.target, *flags)
        expected = self.weir.folder / "expected.safetensors"
        self.weir.run("run", artifact, "--device=reference", "--f64", *inputs, f"--output={expected}")
        for device in DEVICES[self.kind]:
            self.weir.run("run", artifact, f"--device={device}", *inputs, f"--compare={expected}",
                          f"--tolerance={tolerance}")
        return artifact


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("case", CASES)
def test_both_directions(weir, profile, case):
    """Results and gradients; a row that is masked as a whole gives 0."""
    attention, blocks = Attention(case, scale=0.5, element="f32"), Blocks(weir, profile)
    flags = ["--vjp=f", "--entry=f.vjp"]
    kernels = blocks.get_kernels(attention.forward(), *flags)
    assert kernels.count("block_row") == 1 and kernels.count("block_contraction") == 4, kernels
    operands = [operand.astype(numpy.float32) for operand in attention.sample(3)]
    if attention.bias and attention.bias[-2] == attention.scores[-2]:
        operands[3][..., 2, :], operands[3][..., 3, 4:] = -numpy.inf, -numpy.inf
    names = [f"arg{index}" for index in range(len(operands))]
    cotangent = numpy.random.default_rng(4).standard_normal(attention.result).astype(numpy.float32)
    inputs = weir.folder / "inputs.safetensors"
    save_file(dict(zip([*names, "cotangent.result0"], [*operands, cotangent])), inputs)
    blocks.compare(attention.forward(), [f"--input={inputs}"], 1e-5, *flags)


@pytest.mark.parametrize("profile", ["vulkan", "cuda", "cpu.v3"])
@pytest.mark.parametrize("element, tolerance", [("f16", 2e-3), ("bf16", 1e-2)])
def test_halves(weir, profile, element, tolerance):
    """Factors of 16 bits are widened where a block reads them."""
    attention, blocks = Attention(((2,), 18, 20, 8, 4, None, None), scale=0.5, element=element), Blocks(weir, profile)
    flags = ["--vjp=f", "--entry=f.vjp"]
    assert blocks.get_kernels(attention.forward(), *flags).count("block_contraction") == 4
    blocks.compare(attention.forward(), ["--random-inputs=9"], tolerance, *flags)


@pytest.mark.parametrize("profile", PROFILES)
def test_shared_heads(weir, profile):
    """The gradients of keys that heads share are sums over the heads, made where the sums over queries are."""
    blocks = Blocks(weir, profile)
    flags = ["--vjp=f", "--entry=f.vjp"]
    kernels = blocks.get_kernels(SHARED, *flags)
    assert sorted(kernels) == ["block_contraction"] * 4 + ["block_row", "row"], kernels
    blocks.compare(SHARED, ["--random-inputs=7"], 1e-5, *flags)


# As CASES, with enough rows for workgroups that share both factors.
SHARED_CASES = [
    ((16,), 70, 69, 7, 33, (16, 70, 69), None, "f32"),
    ((2, 8), 64, 192, 24, 64, None, 1.5, "f32"),
    ((16,), 33, 40, 4, 36, (16, 1, 40), None, "f32"),
    ((5,), 197, 96, 5, 70, (1, 197, 96), None, "f32"),
    ((16,), 70, 72, 16, 40, None, None, "bf16"),
    ((16,), 65, 66, 8, 34, None, None, "f16"),
]


def count_shared(artifact):
    """Returns the number of kernels in blocks that have workgroup memory. Narrow sums have none."""
    with zipfile.ZipFile(artifact) as archive:
        codes = [archive.read(name).decode() for name in archive.namelist() if "/block_" in name]
    return sum(".shared" in code for code in codes)


@pytest.mark.parametrize("case", SHARED_CASES)
def test_workgroups_share_factors(weir, case):
    """A workgroup's slabs hold the factors of a block, and its memory the factor that is computed from them."""
    *sizes, element = case
    attention, blocks = Attention(sizes, scale=0.5, element=element), Blocks(weir, "cuda")
    flags = ["--vjp=f", "--entry=f.vjp"]
    assert blocks.get_kernels(attention.forward(), *flags).count("block_contraction") == 4
    operands = [operand.astype(numpy.float32) for operand in attention.sample(3)]
    if attention.bias and attention.bias[-2] == attention.scores[-2]:
        operands[3][..., 2, :], operands[3][..., 5, 7:] = -numpy.inf, -numpy.inf
    tolerance = {"f32": 1e-5, "f16": 2e-3, "bf16": 1e-2}[element]
    inputs = ["--random-inputs=3"]
    if element == "f32":
        names = [f"arg{index}" for index in range(len(operands))]
        cotangent = numpy.random.default_rng(4).standard_normal(attention.result).astype(numpy.float32)
        path = weir.folder / "inputs.safetensors"
        save_file(dict(zip([*names, "cotangent.result0"], [*operands, cotangent])), path)
        inputs = [f"--input={path}"]
    artifact = blocks.compare(attention.forward(), inputs, tolerance, *flags)
    assert count_shared(artifact) >= 3
    verified = weir.run("verify", artifact)
    assert "All claims hold" in verified and "@block_" not in verified  # else taken from the compiler


def test_workgroups_share_factors_of_shared_heads(weir):
    """The sums over queries of all heads of a key begin a block anew for each head."""
    text = SHARED
    for old, new in (("6x12x8", "16x70x40"), ("3x20x8", "8x72x40"), ("3x2x20x8", "8x2x72x40"), ("6x20x8", "16x72x40"),
                     ("6x12xf", "16x70xf")):
        text = text.replace(f"<{old}", f"<{new}")
    blocks = Blocks(weir, "cuda")
    artifact = blocks.compare(text, ["--random-inputs=7"], 1e-5, "--vjp=f", "--entry=f.vjp")
    assert count_shared(artifact) == 5 and ", 0 taken from the compiler" in weir.run("verify", artifact)


@pytest.mark.parametrize("profile", ["vulkan", "cpu.v3"])
def test_memory_is_linear(weir, profile):
    blocks = Blocks(weir, profile)

    def measure(tokens):
        attention = Attention(((2,), tokens, tokens, 8, 8, None, None), element="f32")
        artifact = weir.compile_text(attention.forward(), "a", blocks.target, "--vjp=f", "--entry=f.vjp")
        [plan] = weir.inspect(artifact)["plans"]
        return plan["device_bytes"]

    assert measure(1024) <= 2 * measure(512)


def test_scores_that_others_read(weir):
    """Two results of equal probabilities share what CSE leaves of them: a tensor, as without blocks."""
    text = """
      func.func @f(%q: tensor<9x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x4xf32>, %w: tensor<8x4xf32>)
          -> (tensor<9x4xf32>, tensor<9x4xf32>) {
        %y, %m, %s = norm.attention %q, %k, %v {scale = 0.5 : f64} : tensor<9x4xf32>, tensor<8x4xf32>,
            tensor<8x4xf32> -> tensor<9x4xf32>, tensor<9xf32>
        %z, %n, %t = norm.attention %q, %k, %w {scale = 0.5 : f64} : tensor<9x4xf32>, tensor<8x4xf32>,
            tensor<8x4xf32> -> tensor<9x4xf32>, tensor<9xf32>
        return %y, %z : tensor<9x4xf32>, tensor<9x4xf32>
      }"""
    blocks = Blocks(weir, "vulkan")
    kernels = blocks.get_kernels(text)
    assert kernels.count("block_row") == 1 and "block_contraction" not in kernels, kernels
    blocks.compare(text, ["--random-inputs=8"], 1e-5)
