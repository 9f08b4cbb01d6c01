"""Sums over the terms that a condition selects, as in the gradient of a gather: on a processor a row of results asks
each condition once."""

import numpy
import pytest
from check import PROFILES
from safetensors.numpy import save_file

# Rows and columns of the table, and how many terms there are.
SHAPES = [(50, 64, 40), (7, 33, 5), (1, 16, 3), (20, 1, 9), (3, 8, 1), (13, 40, 70), (11, 24, 301)]
COMBINES = {"add": ("arith.addf", "0.0"), "max": ("arith.maximumf", "0xFF800000")}


def make_graph(rows, columns, terms, combine, number="0"):
    """An update of a table by what is combined for each of its rows; `number` is the loop that the index is compared
    with."""
    op, neutral = COMBINES[combine]
    table, values = f"tensor<{rows}x{columns}xf32>", f"tensor<{terms}x{columns}xf32>"
    return f"""
func.func @f(%table: {table} {{weir.name = "table"}}, %index: tensor<{terms}xi64> {{weir.name = "index"}},
             %value: {values} {{weir.name = "value"}}) -> ({table} {{weir.name = "sum"}}, {table}) {{
  %neutral = arith.constant {neutral} : f32
  %half = arith.constant 0.5 : f32
  %empty = tensor.empty() : {table}
  %init = linalg.fill ins(%neutral : f32) outs(%empty : {table}) -> {table}
  %sum = linalg.generic {{iterator_types = ["parallel", "parallel", "reduction"], indexing_maps = [
      affine_map<(v, c, t) -> (t)>, affine_map<(v, c, t) -> (t, c)>, affine_map<(v, c, t) -> (v, c)>]}}
      ins(%index, %value : tensor<{terms}xi64>, {values}) outs(%init : {table}) {{
  ^bb0(%i: i64, %x: f32, %o: f32):
    %n = arith.index_cast %i : i64 to index
    %at = linalg.index {number} : index
    %is = arith.cmpi eq, %n, %at : index
    %taken = arith.select %is, %x, %neutral : f32
    %s = {op} %o, %taken : f32
    linalg.yield %s : f32
  }} -> {table}
  %new = linalg.generic {{iterator_types = ["parallel", "parallel"], indexing_maps = [
      affine_map<(v, c) -> (v, c)>, affine_map<(v, c) -> (v, c)>, affine_map<(v, c) -> (v, c)>]}}
      ins(%table, %sum : {table}, {table}) outs(%empty : {table}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %half, %b : f32
    %q = arith.subf %a, %p : f32
    linalg.yield %q : f32
  }} -> {table}
  return %sum, %new : {table}, {table}
}}"""


def save_inputs(weir, rows, columns, terms):
    """Repeated indices, and some of no row; infinities and NaNs that nobody selects."""
    random = numpy.random.default_rng(rows)
    index = random.integers(-1, rows + 1, terms)
    value = random.standard_normal((terms, columns)).astype(numpy.float32)
    value[(index < 0) | (index >= rows)] = numpy.nan
    save_file({"index": index, "value": value, "table": random.standard_normal((rows, columns)).astype(numpy.float32)},
              weir.folder / "in.safetensors")


@pytest.mark.parametrize("combine", COMBINES)
@pytest.mark.parametrize("shape", SHAPES)
def test_values(weir, shape, combine):
    save_inputs(weir, *shape)
    weir.compare(weir.compile_text(make_graph(*shape, combine)), ["--input=in.safetensors"], "1e-6")


# Also rows of several blocks, and of one that is not whole.
@pytest.mark.parametrize("shape", [*SHAPES, (5, 1400, 9), (3, 515, 6)])
def test_values_of_teams(weir, shape):
    """A subgroup owns a row where a profile has units."""
    save_inputs(weir, *shape)
    flags = [f"--target=vulkan:{weir.profile(**PROFILES['busy_units'])}"]
    artifact = weir.compile_text(make_graph(*shape, "add"), "a", *flags)
    assert weir.inspect(artifact)["plans"][0]["dispatches"] == 1
    weir.compare(artifact, ["--input=in.safetensors"], "1e-6")


def test_alone_with_the_same_bits(weir):
    """With and without the update in its kernel, on a processor."""
    save_inputs(weir, *SHAPES[0])
    fused = make_graph(*SHAPES[0], "add")
    found = []
    for text in (fused, fused.replace("linalg.generic {", "linalg.generic {weir.no_fuse, ")):
        artifact = weir.compile_text(text, "a", "--target=cpu")
        weir.run("run", artifact, "--device=cpu", "--input=in.safetensors", "--output=out.safetensors")
        found.append((weir.folder / "out.safetensors").read_bytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("number, shape", [("0", "across"), ("1", "row")])
def test_only_conditions_of_a_whole_row(weir, number, shape):
    """A condition that differs within the row of results is no such sum."""
    artifact = weir.compile_text(make_graph(20, 20, 40, "add", number), "a", "--target=cpu")
    assert f"{shape}_20x20x40" in weir.run("inspect", artifact, "--asm")
    save_inputs(weir, 20, 20, 40)
    weir.run("run", artifact, "--device=cpu", "--input=in.safetensors", "--check-values")


RUNNING = """
func.func @f(%x: tensor<5x4x4x2xf32>, %k: tensor<2x2x2x1xf32>) -> tensor<5x3x3x2x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3x3x2x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3x3x2x1xf32>) -> tensor<5x3x3x2x1xf32>
  %y = linalg.depthwise_conv_2d_nhwc_hwcm {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %k : tensor<5x4x4x2xf32>, tensor<2x2x2x1xf32>) outs(%f : tensor<5x3x3x2x1xf32>) -> tensor<5x3x3x2x1xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(a, b, c, i, e, j) -> (a, b, c, j, e)>,
                                        affine_map<(a, b, c, i, e, j) -> (a, b, c, i, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%y : tensor<5x3x3x2x1xf32>) outs(%f : tensor<5x3x3x2x1xf32>) {
  ^bb0(%v: f32, %o: f32):
    %i = linalg.index 3 : index
    %j = linalg.index 5 : index
    %is = arith.cmpi sle, %j, %i : index
    %t = arith.select %is, %v, %zero : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<5x3x3x2x1xf32>
  return %z : tensor<5x3x3x2x1xf32>
}"""


def test_a_last_dimension_of_one_element_is_no_row(weir):
    """The neighbours are those of the dimension before, within which the condition differs: running sums."""
    artifact = weir.compile_text(RUNNING)
    expected = weir.compare(artifact, ["--random-inputs=3"], "1e-5").with_name("expected.safetensors")
    for profile in "cpu", "cuda:sm_80":
        artifact = weir.compile_text(RUNNING, "b", f"--target={profile}")
        device = ["--device=sim", "--target=cuda"] if profile.startswith("cuda") else ["--device=cpu"]
        weir.run("run", artifact, *device, "--random-inputs=3", f"--compare={expected}", "--tolerance=1e-5")
