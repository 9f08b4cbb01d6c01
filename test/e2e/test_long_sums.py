"""Sums of millions of f32: made in blocks, so they keep their digits, on the CPU and on lavapipe."""

import numpy
import pytest
from conftest import list_isas
from safetensors.numpy import load_file, save_file
from test_contraction_groups import make_graph

# Values of one sign, so that nothing cancels and the error is that of the sums.
NUMBERS = numpy.random.default_rng(1)


def tensor(shape, element="f32"):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def add_sum(name, shape, reduced, value):
    """The sum of `value` over some dimensions."""
    dims = [f"d{i}" for i in range(len(shape))]
    kept = [i for i in range(len(shape)) if i not in reduced]
    kinds = ", ".join('"reduction"' if i in reduced else '"parallel"' for i in range(len(shape)))
    result = tensor([shape[i] for i in kept])
    return f"""
  %{name}_zero = arith.constant 0.0 : f32
  %{name}_empty = tensor.empty() : {result}
  %{name}_init = linalg.fill ins(%{name}_zero : f32) outs(%{name}_empty : {result}) -> {result}
  %{name} = linalg.generic {{iterator_types = [{kinds}], indexing_maps = [affine_map<({', '.join(dims)}) -> ({', '.join(dims)})>,
      affine_map<({', '.join(dims)}) -> ({', '.join(dims[i] for i in kept)})>]}}
      ins({value} : {tensor(shape)}) outs(%{name}_init : {result}) {{
  ^bb0(%{name}_x: f32, %{name}_o: f32):
    %{name}_s = arith.addf %{name}_o, %{name}_x : f32
    linalg.yield %{name}_s : f32
  }} -> {result}"""


def make_sum(shape, reduced):
    result = tensor([size for i, size in enumerate(shape) if i not in reduced])
    return f"""func.func @f(%x: {tensor(shape)} {{weir.name = "x"}}) -> ({result} {{weir.name = "y"}}) {{
  {add_sum("y", shape, reduced, "%x")}
  return %y : {result}
}}"""


def run(weir, text, inputs):
    """Returns the results on the CPU and on lavapipe, by name."""
    (weir.folder / "a.mlir").write_text(text)
    save_file(inputs, weir.folder / "inputs.safetensors")
    results = []
    for target in [f"cpu:{isa}" for isa in list_isas()[-1:]] + ["vulkan"]:
        weir.run("compile", "a.mlir", f"--target={target}", "-o", "a.weir")
        weir.run("run", "a.weir", f"--device={target}", "--input=inputs.safetensors", "--output=results.safetensors")
        results.append(load_file(weir.folder / "results.safetensors"))
    return results


def get_error(result, expected):
    return numpy.max(numpy.abs(result.astype(numpy.float64) - expected) / numpy.abs(expected))


# A row of vectors; one whose last dimension fills none, so that each sum takes many more terms; long rows beside each
# other; columns; a dimension on either side of the one that is left.
@pytest.mark.parametrize("shape, reduced", [
    ((10_000_019,), (0,)), ((30_011, 10, 10), (0, 1, 2)), ((3, 500_003), (1,)), ((500_003, 3), (0,)),
    ((500, 3, 1001), (0, 2))])
def test_sum(weir, shape, reduced):
    x = NUMBERS.random(shape, dtype=numpy.float32)
    for results in run(weir, make_sum(shape, reduced), {"x": x}):
        assert get_error(results["y"], x.sum(reduced, dtype=numpy.float64)) < 1e-6


def test_variance(weir):
    """The mean of a row and the mean of the squares of what its elements differ from it by."""
    shape = (2, 500_007)
    row, whole = "affine_map<(i, j) -> (i)>", "affine_map<(i, j) -> (i, j)>"
    count = f"{float(shape[1])}"
    text = f"""
func.func @f(%x: {tensor(shape)} {{weir.name = "x"}}) -> (tensor<2xf32> {{weir.name = "mean"}}, tensor<2xf32> {{weir.name = "squares"}}) {{
  %count = arith.constant {count} : f32
  {add_sum("sum", shape, (1,), "%x")}
  %e = tensor.empty() : tensor<2xf32>
  %mean = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%sum : tensor<2xf32>) outs(%e : tensor<2xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %m = arith.divf %a, %count : f32
    linalg.yield %m : f32
  }} -> tensor<2xf32>
  %squares = linalg.generic {{indexing_maps = [{whole}, {row}, {row}], iterator_types = ["parallel", "reduction"]}}
      ins(%x, %mean : {tensor(shape)}, tensor<2xf32>) outs(%sum_init : tensor<2xf32>) {{
  ^bb0(%a: f32, %m: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    %q = arith.mulf %d, %d : f32
    %r = arith.addf %o, %q : f32
    linalg.yield %r : f32
  }} -> tensor<2xf32>
  return %mean, %squares : tensor<2xf32>, tensor<2xf32>
}}"""
    x = NUMBERS.random(shape, dtype=numpy.float32)
    for results in run(weir, text, {"x": x}):
        assert get_error(results["mean"], x.mean(1, dtype=numpy.float64)) < 1e-6
        assert get_error(results["squares"], x.var(1, dtype=numpy.float64) * shape[1]) < 1e-6


def test_loss(weir):
    """The mean of a cross-entropy over many rows, and its gradient."""
    rows, classes = 200_009, 5
    text = f"""
func.func @f(%x: tensor<{rows}x{classes}xf32> {{weir.name = "x"}}, %t: tensor<{rows}xi64> {{weir.name = "t"}})
    -> (tensor<f32> {{weir.name = "y"}}) {{
  %y = norm.softmax_cross_entropy mean %x, %t : tensor<{rows}x{classes}xf32>, tensor<{rows}xi64> -> tensor<f32>
  return %y : tensor<f32>
}}"""
    x = NUMBERS.random((rows, classes), dtype=numpy.float32)
    t = NUMBERS.integers(0, classes, rows)
    wide = x.astype(numpy.float64)
    expected = numpy.mean(numpy.log(numpy.exp(wide).sum(1)) - wide[numpy.arange(rows), t])
    for results in run(weir, text, {"x": x, "t": t}):
        assert get_error(results["y"], expected) < 1e-6


# Factors whose columns are neighbours, whose products are, of many rows and of few; and a copy that is made in parts.
@pytest.mark.parametrize("left, right, rows, products, columns", [
    ("k, i", "k, j", 16, 100_003, 24), ("i, k", "j, k", 64, 50_000, 17), ("i, k", "j, k", 3, 200_000, 5)])
def test_weight_gradient(weir, left, right, rows, products, columns):
    size = {"i": rows, "j": columns, "k": products}
    shapes = [[size[dim] for dim in factor.split(", ")] for factor in (left, right)]
    result = tensor((rows, columns))
    text = f"""
func.func @f(%x: {tensor(shapes[0])} {{weir.name = "x"}}, %w: {tensor(shapes[1])} {{weir.name = "w"}}) -> ({result} {{weir.name = "y"}}) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {result}
  %init = linalg.fill ins(%zero : f32) outs(%e : {result}) -> {result}
  %y = linalg.generic {{iterator_types = ["parallel", "parallel", "reduction"], indexing_maps = [
      affine_map<(i, j, k) -> ({left})>, affine_map<(i, j, k) -> ({right})>, affine_map<(i, j, k) -> (i, j)>]}}
      ins(%x, %w : {tensor(shapes[0])}, {tensor(shapes[1])}) outs(%init : {result}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }} -> {result}
  return %y : {result}
}}"""
    x, w = (NUMBERS.random(shape, dtype=numpy.float32) for shape in shapes)
    subscripts = ",".join(factor.replace(", ", "") for factor in (left, right))
    expected = numpy.einsum(f"{subscripts}->ij", x.astype(numpy.float64), w.astype(numpy.float64))
    # The root of the number of blocks, of roundings, in one of hundreds of results.
    for results in run(weir, text, {"x": x, "w": w}):
        assert get_error(results["y"], expected) < 3e-6


def test_blocks_keep_bits(weir):
    """Other ops of a contraction's kernel decide the parts of its copy, not its blocks."""
    members = [("nt", 4997), ("nt", 4999), ("nt", 5001)]
    isa, outputs = list_isas()[-1], []
    for name, attributes in (("whole", ""), ("apart", "weir.no_fuse")):
        made = weir.compile_text(make_graph(1, 64, 64, members, attributes), name, f"--target=cpu:{isa}")
        assert (weir.inspect(made)["plans"][0]["dispatches"] == 1) == (name == "whole")
        weir.run("run", made, f"--device=cpu:{isa}", "--random-inputs=2", f"--output={name}.safetensors")
        outputs.append(load_file(weir.folder / f"{name}.safetensors"))
    for result, value in outputs[0].items():
        assert value.tobytes() == outputs[1][result].tobytes()
