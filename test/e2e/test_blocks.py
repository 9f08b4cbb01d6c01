"""Attention in blocks: on each kind of target, against the reference, which has one tensor of scores; and its memory."""

import json
import re
import zipfile

import numpy
import pytest
from safetensors.numpy import load_file, save_file

from test_attention import Attention
from test_halves import read, write

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
        self.use(profile)

    def use(self, profile, **keys):
        path = self.weir.folder / "blocks.json"
        path.write_text(json.dumps({"like": PROFILES.get(profile, PROFILES.get(self.kind)), "name": "blocks",
                                    "attention_keys": 1, **keys}))
        self.target = f"--target={self.kind}:{path}"

    def get_kernels(self, text, *flags):
        """Returns the names of the kernels, without their sizes."""
        source = self.weir.folder / "kernels.mlir"
        source.write_text(text)
        level = self.weir.folder / "level.mlir"
        self.weir.run("compile", source, "-o", level, "--stop-after=kernels", self.target, *flags)
        quoted = [line.split('"')[1] for line in level.read_text().splitlines() if "= schedule.kernel " in line]
        return ["_".join(part for part in name.split("_") if not re.fullmatch(r"\d+(x\d+)+", part)) for name in quoted]

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
    assert kernels.count("block_softmax") == 1 and kernels.count("block_contraction") == 3, kernels
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
    assert blocks.get_kernels(attention.forward(), *flags).count("block_contraction") == 3
    blocks.compare(attention.forward(), ["--random-inputs=9"], tolerance, *flags)


@pytest.mark.parametrize("profile", PROFILES)
def test_shared_heads(weir, profile):
    """The gradients of keys that heads share are sums over the heads, made where the sums over queries are."""
    blocks = Blocks(weir, profile)
    flags = ["--vjp=f", "--entry=f.vjp"]
    kernels = blocks.get_kernels(SHARED, *flags)
    assert sorted(kernels) == ["block_contraction"] * 3 + ["block_softmax", "row"], kernels
    blocks.compare(SHARED, ["--random-inputs=7"], 1e-5, *flags)


# As CASES, with enough rows for workgroups that share both factors.
SHARED_CASES = [
    ((16,), 70, 69, 7, 33, (16, 70, 69), None, "f32"),
    ((2, 8), 64, 192, 24, 64, None, 1.5, "f32"),
    ((5,), 197, 96, 5, 70, (1, 197, 96), None, "f32"),
    ((16,), 70, 72, 20, 40, None, None, "bf16"),
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
    assert blocks.get_kernels(attention.forward(), *flags).count("block_contraction") == 3
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
    assert count_shared(artifact) >= 2
    verified = weir.run("verify", artifact)
    assert "All claims hold" in verified and "@block_" not in verified  # else taken from the compiler


@pytest.mark.parametrize("width, flags, tolerance", [(40, [], 1e-5), (32, ["--precision=tf32"], 4e-2)])
def test_workgroups_share_factors_of_shared_heads(weir, width, flags, tolerance):
    """The sums over queries of all heads of a key begin a block anew for each head."""
    text = SHARED
    for old, new in (("6x12x8", f"16x70x{width}"), ("3x20x8", f"8x72x{width}"), ("3x2x20x8", f"8x2x72x{width}"),
                     ("6x20x8", f"16x72x{width}"), ("6x12xf", "16x70xf")):
        text = text.replace(f"<{old}", f"<{new}")
    blocks = Blocks(weir, "cuda")
    artifact = blocks.compare(text, ["--random-inputs=7"], tolerance, "--vjp=f", "--entry=f.vjp", *flags)
    assert count_matrix(artifact) == (4 if flags else 0)
    assert count_shared(artifact) == 4 and ", 0 taken from the compiler" in weir.run("verify", artifact)


# As SHARED_CASES, for instructions on matrices; elements of keys and of values are multiples of 16.
MATRIX_CASES = [
    ((16,), 70, 69, 16, 32, (16, 70, 69), None, "bf16"),
    ((2,), 101, 103, 48, 64, (1, 1, 103), 1.5, "bf16"),
    ((2, 2), 64, 192, 64, 64, None, None, "bf16"),
    ((3,), 37, 33, 32, 16, (3, 1, 33), None, "f16"),
    ((1,), 33, 66, 80, 144, None, None, "f16"),
    ((1,), 64, 40, 256, 128, None, None, "bf16"),
    ((2,), 70, 67, 32, 48, (1, 70, 67), None, "tf32"),
]


def count_matrix(artifact):
    """Returns the number of kernels in blocks whose products instructions on matrices add."""
    with zipfile.ZipFile(artifact) as archive:
        codes = [archive.read(name).decode() for name in archive.namelist() if "/block_" in name]
    return sum("mma.sync" in code for code in codes)


def store(array, element):
    """Returns an array of f32 as safetensors store it, of this type; bf16 is cut off."""
    if element == "f16":
        return "F16", array.astype(numpy.float16)
    return ("F32", array) if element == "f32" else ("BF16", (array.view(numpy.uint32) >> 16).astype(numpy.uint16))


@pytest.mark.parametrize("case", MATRIX_CASES)
def test_matrices(weir, case):
    """Results and gradients by instructions on matrices. What is computed from scores is not rounded, so results of 16
    bits are those of fma but for a few that are nearly halfway between two. Masked rows give 0."""
    *sizes, element = case
    stored = "f32" if element == "tf32" else element
    attention, blocks = Attention(sizes, scale=0.5, element=stored), Blocks(weir, "cuda")
    flags = ["--vjp=f", "--entry=f.vjp", *(["--precision=tf32"] if element == "tf32" else [])]
    generator = numpy.random.default_rng(4)
    sample = lambda shape: generator.standard_normal(shape).astype(numpy.float32)
    inputs = {f"arg{i}": store(sample(shape), stored) for i, shape in enumerate(attention.shapes)}
    inputs["cotangent.result0"] = store(sample(attention.result), stored)
    if attention.bias:
        bias = sample(attention.bias)
        if attention.bias[-2] > 1:
            bias[..., 2, :] = -numpy.inf
        inputs["arg3"] = "F32", bias
    path, found, expected = (weir.folder / f"{name}.safetensors" for name in ("inputs", "found", "fma"))
    write(path, inputs)
    artifact = blocks.compare(attention.forward(), [f"--input={path}"], 4e-2 if element == "tf32" else 1e-2, *flags)
    assert count_matrix(artifact) == 4
    verified = weir.run("verify", artifact)
    assert "All claims hold" in verified and "@block_" not in verified  # else taken from the compiler
    weir.run("run", artifact, "--device=sim", f"--input={path}", f"--output={found}")
    results = read(found)
    assert attention.bias is None or attention.bias[-2] == 1 or not results["result0"][..., 2, :].any()
    if element != "tf32":
        blocks.use("cuda", matrix_tile=0)
        plain = weir.compile_text(attention.forward(), "fma", blocks.target, *flags)
        assert count_matrix(plain) == 0
        weir.run("run", plain, "--device=sim", f"--input={path}", f"--output={expected}")
        differ = {name: numpy.mean(bits != read(expected)[name]) for name, bits in results.items() if name != "grad.arg3"}
        assert max(differ.values()) < (0.03 if element == "bf16" else 0.15), differ


# A mask of positions (%i, %j), or the same one as an argument.
MASKED = """
func.func @f(%q: tensor<{B}x{T}x{D}xf32>, %k: tensor<{B}x{S}x{D}xf32>, %v: tensor<{B}x{S}x{D}xf32>{argument})
    -> tensor<{B}x{T}x{D}xf32> {{
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x{T}x{S}xf32>
  {mask}
  %y, %m, %s = norm.attention %q, %k, %v bias(%mask : tensor<1x{T}x{S}xf32>) {{scale = 0.5 : f64}}
      : tensor<{B}x{T}x{D}xf32>, tensor<{B}x{S}x{D}xf32>, tensor<{B}x{S}x{D}xf32> -> tensor<{B}x{T}x{D}xf32>,
      tensor<{B}x{T}xf32>
  return %y : tensor<{B}x{T}x{D}xf32>
}}
"""
POSITIONS = """%mask = linalg.generic {{indexing_maps = [affine_map<(z, i, j) -> (z, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}} outs(%e : tensor<1x{T}x{S}xf32>) {{
  ^bb0(%c: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    {condition}
    %x = arith.select %is, %zero, %none : f32
    linalg.yield %x : f32
  }} -> tensor<1x{T}x{S}xf32>"""
CONDITIONS = {
    "causal": ("%is = arith.cmpi sle, %j, %i : index", lambda i, j: j <= i),
    "early": ("""%n = arith.constant -20 : index
    %last = arith.addi %i, %n : index
    %is = arith.cmpi sgt, %last, %j : index""", lambda i, j: i - 20 > j),  # the first rows have no key
    "window": ("""%n = arith.constant 9 : index
    %next = arith.addi %j, %n : index
    %near = arith.cmpi sge, %next, %i : index
    %past = arith.cmpi sle, %j, %i : index
    %is = arith.andi %near, %past : i1""", lambda i, j: (j <= i) & (j + 9 >= i)),
}


@pytest.mark.parametrize("profile", ["vulkan", "cuda", "cuda.tf32", "cpu.v3", "cpu.v4"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_masked_blocks_are_skipped(weir, profile, condition):
    """With a mask of positions, results and gradients have the bits that they have with the same mask in memory,
    where no block is skipped. Instructions on matrices walk smaller blocks there, which round otherwise."""
    sizes = {"cuda": {"B": 6, "T": 133, "S": 131, "D": 33}, "cuda.tf32": {"B": 2, "T": 133, "S": 131, "D": 32}}.get(
        profile, {"B": 2, "T": 70, "S": 165, "D": 6})
    code, is_kept = CONDITIONS[condition]
    computed = MASKED.format(argument="", mask=POSITIONS.format(condition=code, **sizes), **sizes)
    loaded = MASKED.format(argument=f", %mask: tensor<1x{sizes['T']}x{sizes['S']}xf32>", mask="", **sizes)
    blocks, has_matrices = Blocks(weir, profile), profile.endswith("tf32")
    flags = ["--vjp=f", "--entry=f.vjp", *(["--precision=tf32"] if has_matrices else [])]
    assert blocks.get_kernels(computed, *flags).count("block_contraction") == 3
    generator = numpy.random.default_rng(5)
    sample = lambda *names: generator.standard_normal([sizes[name] for name in names]).astype(numpy.float32)
    inputs = {"arg0": sample("B", "T", "D"), "arg1": sample("B", "S", "D"), "arg2": sample("B", "S", "D"),
              "cotangent.result0": sample("B", "T", "D")}
    path, both = weir.folder / "inputs.safetensors", weir.folder / "both.safetensors"
    save_file(inputs, path)
    artifact = blocks.compare(computed, [f"--input={path}"], 4e-2 if has_matrices else 1e-5, *flags)
    assert "All claims hold" in weir.run("verify", artifact)
    if has_matrices:  # the gradient of a mask in memory has a tensor of scores, and other kernels
        assert count_matrix(artifact) == 4
        del inputs["cotangent.result0"]
        save_file(inputs, path)
        flags = ["--precision=tf32"]
        artifact = weir.compile_text(computed, "forward", blocks.target, *flags)
    device, output = DEVICES[blocks.kind][0], weir.folder / "output.safetensors"
    i, j = numpy.ogrid[: sizes["T"], : sizes["S"]]
    mask = numpy.where(is_kept(i, j), 0, -numpy.inf).astype(numpy.float32)[None]
    save_file(inputs | {"arg3": mask}, both)
    weir.run("run", artifact, f"--device={device}", f"--input={path}", f"--output={output}")
    whole = weir.compile_text(loaded, "whole", blocks.target, *flags)
    weir.run("run", whole, f"--device={device}", f"--input={both}", f"--output={both}")
    results, expected = load_file(output), load_file(both)
    for name, result in results.items():
        if has_matrices:
            assert abs(result - expected[name]).max() < 2e-3, name
        else:
            assert numpy.array_equal(result, expected[name]), name


@pytest.mark.parametrize("offset, broken", [(0, False), (3, False), (-2, False), (-15, False), (18, False), (0, True)])
def test_constant_masks_are_comparisons(weir, offset, broken):
    """A mask that PyTorch stores as a constant is computed from positions, if that gives each of its elements."""
    attention = Attention(((2,), 16, 20, 4, 4, (1, 16, 20), None), scale=0.5, element="f32")
    mask = numpy.where(numpy.arange(20) <= numpy.arange(16)[:, None] + offset, 0, -numpy.inf)
    if broken:
        mask[9, 2] = -numpy.inf
    rows = ", ".join(f"[{', '.join('0.0' if x == 0 else '0xFF800000' for x in row)}]" for row in mask)
    type = "tensor<1x16x20xf32>"
    text = attention.text().replace(f", %b: {type}", "")
    text = text.replace("%zero = ", f"%b = arith.constant dense<[[{rows}]]> : {type}\n%zero = ", 1)
    graph, source = weir.folder / "graph.mlir", weir.folder / "text.mlir"
    source.write_text(text)
    weir.run("compile", source, "--stop-after=graph", "-o", graph)
    assert "norm.attention" in graph.read_text()
    assert ("arith.cmpi sle" in graph.read_text()) != broken and (f"> : {type}" in graph.read_text()) == broken
    blocks = Blocks(weir, "cpu.v3")
    operands = [operand.astype(numpy.float32) for operand in attention.sample(3)[:3]]
    inputs, expected = weir.folder / "inputs.safetensors", weir.folder / "expected.safetensors"
    save_file({f"arg{index}": operand for index, operand in enumerate(operands)}, inputs)
    save_file({"result0": attention.compute(*operands, mask)[0].astype(numpy.float32)}, expected)
    artifact = weir.compile_text(text, "a", blocks.target)
    weir.run("run", artifact, "--device=cpu", f"--input={inputs}", f"--compare={expected}", "--tolerance=1e-5")


def test_causal_attention_takes_half(weir):
    """By the operations of floats that the model counts in the code, forward and backward."""
    sizes = {"B": 16, "T": 1024, "S": 1024, "D": 64}
    code, _ = CONDITIONS["causal"]
    text = MASKED.format(argument="", mask=POSITIONS.format(condition=code, **sizes), **sizes)
    artifact = weir.compile_text(text, "a", "--target=cuda:sm_90", "--vjp=f", "--entry=f.vjp")
    assert ", 0 taken from the compiler" in weir.run("verify", artifact)
    kernels = json.loads(weir.run("bench", artifact, "--model=h100", "--json"))["kernels"]
    flops = sum(kernel["flops"] for kernel in kernels if "block_" in kernel["kernel"])
    resources = [kernel.get("resources") or {} for kernel in kernels]  # none without ptxas
    assert not any(each.get("spilled_bytes") for each in resources)
    products = 10  # of a row of scores with D elements: 2 forward, then 3, 3 and 2
    whole = 2 * products * sizes["B"] * sizes["T"] * sizes["S"] * sizes["D"]
    assert 0.5 * whole < flops < 0.7 * whole  # blocks on the diagonal are computed, and exponentials count, too


@pytest.mark.parametrize("tokens, width, flags", [
    (5, 1, ["--vjp=f", "--entry=f.vjp"]), (33, 17, ["--vjp=f", "--entry=f.vjp"]),
    (65, 33, ["--vjp=f", "--entry=f.vjp"]), (96, 64, []), (150, 64, [])])
def test_no_fact_is_taken(weir, tokens, width, flags):
    """All that plans say of the code of odd numbers of tokens, and of odd heads, is proved from it."""
    attention = Attention(((4,), tokens, tokens, width, width, None, None), element="f32")
    artifact = weir.compile_text(attention.forward(), "a", Blocks(weir, "cuda").target, *flags)
    assert ", 0 taken from the compiler" in weir.run("verify", artifact)


@pytest.mark.parametrize("profile", ["vulkan", "cpu.v3"])
def test_memory_is_linear(weir, profile):
    blocks = Blocks(weir, profile)

    def measure(tokens):
        attention = Attention(((2,), tokens, tokens, 8, 8, None, None), element="f32")
        artifact = weir.compile_text(attention.forward(), "a", blocks.target, "--vjp=f", "--entry=f.vjp")
        [plan] = weir.inspect(artifact)["plans"]
        return plan["device_bytes"]

    assert measure(1024) <= 2 * measure(512)


@pytest.mark.parametrize("profile", ["vulkan", "cpu.v3"])
def test_equal_scores(weir, profile):
    """Two results of equal probabilities share their statistics, which the walk of the first one makes."""
    text = """
      func.func @f(%q: tensor<9x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x4xf32>, %w: tensor<8x4xf32>)
          -> (tensor<9x4xf32>, tensor<9x4xf32>) {
        %y, %m, %s = norm.attention %q, %k, %v {scale = 0.5 : f64} : tensor<9x4xf32>, tensor<8x4xf32>,
            tensor<8x4xf32> -> tensor<9x4xf32>, tensor<9xf32>
        %z, %n, %t = norm.attention %q, %k, %w {scale = 0.5 : f64} : tensor<9x4xf32>, tensor<8x4xf32>,
            tensor<8x4xf32> -> tensor<9x4xf32>, tensor<9xf32>
        return %y, %z : tensor<9x4xf32>, tensor<9x4xf32>
      }"""
    blocks = Blocks(weir, profile)
    kernels = blocks.get_kernels(text)
    assert kernels == ["block_softmax", "block_contraction"], kernels
    blocks.compare(text, ["--random-inputs=8"], 1e-5)


def test_equal_layers_are_one_kernel(weir):
    """Chains have numbers of their own until they are kernels, which differ in nothing."""
    text = """
      func.func @f(%q: tensor<9x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x4xf32>) -> tensor<9x4xf32> {
        %y, %m, %s = norm.attention %q, %k, %v {scale = 0.5 : f64} : tensor<9x4xf32>, tensor<8x4xf32>,
            tensor<8x4xf32> -> tensor<9x4xf32>, tensor<9xf32>
        %z, %n, %t = norm.attention %y, %k, %v {scale = 0.5 : f64} : tensor<9x4xf32>, tensor<8x4xf32>,
            tensor<8x4xf32> -> tensor<9x4xf32>, tensor<9xf32>
        return %z : tensor<9x4xf32>
      }"""
    blocks = Blocks(weir, "vulkan")
    [plan] = weir.inspect(weir.compile_text(text, "a", blocks.target))["plans"]
    assert (plan["kernels"], plan["dispatches"]) == (1, 2)
