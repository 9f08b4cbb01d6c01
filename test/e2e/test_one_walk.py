"""Attention forward in one walk over the keys: any number of tokens, rows that are masked as a whole, scores that are
large and rise from block to block. Results and statistics against NumPy in f64."""

import json
import zipfile

import numpy
import pytest

from test_attention import LOWEST, Attention
from test_blocks import DEVICES, Blocks, count_matrix, count_shared, store
from test_halves import read, write

# Ways to make sums: profile, element, flags of the compiler, batches, elements of keys and of values, error of a value.
WAYS = {
    "vulkan": ("vulkan", "f32", [], (2,), 5, 6, 1e-5),
    "vulkan.f16": ("vulkan", "f16", [], (2,), 8, 35, 2 ** -10),
    "cuda.subgroup": ("cuda", "f32", [], (), 4, 7, 1e-5),
    "cuda.slab": ("cuda", "f32", [], (16,), 12, 33, 1e-5),
    "cuda.bf16": ("cuda", "bf16", [], (1, 2), 16, 48, 2 ** -8),
    "cuda.f16": ("cuda", "f16", [], (2,), 32, 144, 2 ** -10),
    "cuda.tf32": ("cuda", "f32", ["--precision=tf32"], (2,), 16, 32, 2 ** -10),
    "cpu.v2": ("cpu.v2", "f32", [], (2,), 6, 5, 1e-5),
    "cpu.v4": ("cpu.v4", "f32", [], (1,), 8, 530, 1e-5),
}
TOKENS = [*((way, *tokens) for way in WAYS for tokens in ((37, 67), (64, 192))),
          *(("vulkan", *tokens) for tokens in ((1, 1), (1, 131), (67, 1))),
          *((way, 2, 3) for way in ("vulkan", "cuda.bf16", "cpu.v2"))]


def make_text(attention, has_result=True):
    """Returns a function that gives the statistics, behind the result."""
    rows = f"tensor<{'x'.join(map(str, attention.rows))}xf32>"
    types, names = f"{rows}, {rows}", "%m, %s"
    if has_result:
        types = f"tensor<{'x'.join(map(str, attention.result))}x{attention.element}>, {types}"
        names = f"%y, {names}"
    return f"""func.func @f({attention.arguments()}) -> ({types}) {{
      %y, %m, %s = {attention.op("attention", "%q, %k, %v")}
      return {names} : {types}
    }}"""


def decode(bits, element):
    """Returns the numbers that are stored as such bits. The last two, statistics, are f32."""
    *result, largest, share = (bits[f"result{i}"] for i in range(len(bits)))
    if element == "bf16":
        result, element = [each.astype(numpy.uint32) << 16 for each in result], "f32"
    type = numpy.float16 if element == "f16" else numpy.float32
    return [*(each.view(type) for each in result), largest.view(numpy.float32), share.view(numpy.float32)]


class OneWalk:
    def __init__(self, weir, way, queries, keys, bias=None, scale=512.0):
        profile, element, self.flags, batches, width, values, self.error = WAYS[way]
        self.weir, self.blocks = weir, Blocks(weir, profile)
        self.attention = Attention((batches, queries, keys, width, values, bias, None), scale=scale, element=element)
        self.text = make_text(self.attention)
        # Multiples of an eighth: all scores are exact.
        random = numpy.random.default_rng(queries * keys)
        self.operands = [(numpy.clip(numpy.round(random.standard_normal(shape) * 8), -16, 16) / 8).astype(numpy.float32)
                         for shape in self.attention.shapes]

    def run(self, *bias, kernel="block_softmax"):
        """Compares with NumPy; returns the result and the artifact. All is one kernel."""
        artifact = self.weir.compile_text(self.text, "a", self.blocks.target, *self.flags)
        with zipfile.ZipFile(artifact) as archive:
            [plan] = [name for name in archive.namelist() if name.startswith("plan/")]
            kernels = [each["name"] for each in json.loads(archive.read(plan))["kernels"]]
        if min(self.attention.scores[-2:]) > 1:  # one query or key makes no contraction
            assert [name.startswith(kernel) for name in kernels] == [True], kernels
        path, output = self.weir.folder / "inputs.safetensors", self.weir.folder / "output.safetensors"
        inputs = {f"arg{i}": store(operand, self.attention.element) for i, operand in enumerate(self.operands)}
        write(path, inputs | {f"arg{3 + i}": ("F32", each) for i, each in enumerate(bias)})
        wide = [operand.astype(numpy.float64) for operand in [*self.operands, *bias]]
        y, largest, share = self.attention.compute(*wide)
        largest = numpy.maximum(largest, float(LOWEST))
        for device in DEVICES[self.blocks.kind]:
            self.weir.run("run", artifact, f"--device={device}", f"--input={path}", f"--output={output}")
            *result, found, shares = decode(read(output), self.attention.element)
            for each in result:
                assert abs(each - y).max(initial=0) <= self.error * abs(self.operands[2]).max(initial=0), device
            assert numpy.allclose(found, largest, rtol=1e-6, atol=0), device
            assert numpy.allclose(shares, share, rtol=1e-5, atol=0), device
        assert "All claims hold" in self.weir.run("verify", artifact)
        return result, artifact


@pytest.mark.parametrize("way, queries, keys", TOKENS)
def test_tokens(weir, way, queries, keys):
    """Scores of thousands, most of which are the only one of their row that counts."""
    one = OneWalk(weir, way, queries, keys)
    _, artifact = one.run()
    if one.blocks.kind == "cuda" and keys == 192:
        assert count_matrix(artifact) == (way in ("cuda.bf16", "cuda.f16", "cuda.tf32"))
        assert count_shared(artifact) == (way in ("cuda.bf16", "cuda.f16", "cuda.tf32", "cuda.slab"))


@pytest.mark.parametrize("way, falls", [*((way, False) for way in WAYS), ("vulkan", True), ("cuda.bf16", True)])
def test_rising_scores(weir, way, falls):
    """Each block raises the maximum, by up to 10,000 in all, or none but the first does. Neighbours are near enough
    that each of them counts."""
    one = OneWalk(weir, way, 40, 131, scale=0.5)
    q, k, _ = one.operands
    steps = numpy.arange(131) - 65.0
    q[:], k[:] = 0, 0
    q[..., 0], k[..., 0] = 128 + numpy.arange(40) / 2, (-steps if falls else steps) * 2  # scores up to 10,000
    q[..., 1], k[..., 1] = 1, 1
    if one.attention.element != "f32":  # eight bits of a number
        q[..., 0], k[..., 0] = 128, (-steps if falls else steps) * 2
    one.run()
    q[..., 0] = 1  # scores of neighbours differ by 1
    one.run()


@pytest.mark.parametrize("way", WAYS)
def test_masked_rows(weir, way):
    """Rows without a key give 0; others have none among the first keys, or among the last ones."""
    batches = WAYS[way][3]
    one = OneWalk(weir, way, 37, 140, (*[1 for _ in batches], 37, 140), scale=0.125)
    bias = numpy.zeros(one.attention.bias, numpy.float32)
    bias[..., 2, :], bias[..., 3, :136], bias[..., 4, 3:] = -numpy.inf, -numpy.inf, -numpy.inf
    bias[..., 5, :] = -1e30
    bias[..., 6, 70] = 1e4
    [result], _ = one.run(bias)
    assert not result[..., 2, :].any()


@pytest.mark.parametrize("way", ["vulkan", "cuda.slab", "cuda.bf16", "cpu.v2"])
def test_statistics_alone(weir, way):
    """Rows that no contraction is summed beside."""
    one = OneWalk(weir, way, 37, 67)
    one.text = make_text(one.attention, has_result=False)
    one.run(kernel="block_row")


@pytest.mark.parametrize("way", ["vulkan", "cuda.bf16", "cpu.v2"])
def test_no_query(weir, way):
    one = OneWalk(weir, way, 0, 9)
    artifact = weir.compile_text(one.text, "a", one.blocks.target)
    assert "All claims hold" in weir.run("verify", artifact)
