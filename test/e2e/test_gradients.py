"""Gradients against central differences in f64 (`weir gradcheck`), conventions where
there is none, and gradients on Vulkan against the reference."""

import json
import re
from pathlib import Path

import numpy
import pytest
from conftest import ROOT
from safetensors.numpy import load_file, save_file

TESTS = Path(__file__).parent.parent


def tensor(shape, element="f32"):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def check(weir, text, inputs=None, entry="f"):
    """Every gradient of `entry` by differences; returns what is said of each argument."""
    (weir.folder / "graph.mlir").write_text(text)
    flags = []
    if inputs:
        save_file({name: numpy.asarray(value) for name, value in inputs.items()}, weir.folder / "in.safetensors")
        flags = ["--input=in.safetensors"]
    report = json.loads(weir.run("gradcheck", "graph.mlir", f"--entry={entry}", "--json", *flags))
    return {row["argument"]: row for row in report["arguments"]}


def pointwise(cases, size=7):
    """A function with one result per (name, body, number of arguments); the body
    makes %y of scalars %a, %b, %c."""
    arguments, ops, results = [], [], []
    for name, body, number in cases:
        letters = "abc"[:number]
        arguments += [f'%{name}_{i}: {tensor([size], "f64")} {{weir.name = "{name}.{i}"}}' for i in letters]
        maps = ", ".join(["affine_map<(i) -> (i)>"] * (number + 1))
        ops.append(f"""
  %{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins({", ".join(f"%{name}_{i}" for i in letters)} : {", ".join([tensor([size], "f64")] * number)})
      outs(%empty : {tensor([size], "f64")}) {{
  ^bb0({", ".join(f"%{i}: f64" for i in letters)}, %out: f64):
    {body}
    linalg.yield %y : f64
  }} -> {tensor([size], "f64")}""")
        results.append(f"%{name}")
    types = ", ".join([tensor([size], "f64")] * len(results))
    return f"""
func.func @f({", ".join(arguments)}) -> ({types}) {{
  %empty = tensor.empty() : {tensor([size], "f64")}
  {"".join(ops)}
  return {", ".join(results)} : {types}
}}"""


# Where each function of one number is tried: its domain, kinks left out.
WIDE, POSITIVE, INSIDE, ABOVE_ONE = (-2.3, 2.1), (0.2, 3.0), (-0.9, 0.8), (1.2, 4.0)
UNARY = {"arith.negf": WIDE, "math.absf": WIDE, "math.acos": INSIDE, "math.acosh": ABOVE_ONE, "math.asin": INSIDE,
         "math.asinh": WIDE, "math.atan": WIDE, "math.atanh": INSIDE, "math.cbrt": POSITIVE, "math.ceil": WIDE,
         "math.cos": WIDE, "math.cosh": WIDE, "math.erf": WIDE, "math.erfc": WIDE, "math.exp": WIDE,
         "math.exp2": WIDE, "math.expm1": WIDE, "math.floor": WIDE, "math.log": POSITIVE, "math.log10": POSITIVE,
         "math.log1p": INSIDE, "math.log2": POSITIVE, "math.round": WIDE, "math.roundeven": WIDE,
         "math.rsqrt": POSITIVE, "math.sin": WIDE, "math.sinh": WIDE, "math.sqrt": POSITIVE, "math.tan": INSIDE,
         "math.tanh": WIDE, "math.trunc": WIDE}
STEPS = ["math.ceil", "math.floor", "math.round", "math.roundeven", "math.trunc"]


def test_functions_of_one_number(weir):
    cases = [(op.split(".")[1], f"%y = {op} %a : f64", 1) for op in UNARY]
    inputs = {f"{op.split('.')[1]}.a": numpy.linspace(*domain, 7) for op, domain in UNARY.items()}
    rows = check(weir, pointwise(cases), inputs)
    assert len(rows) == len(UNARY)
    for op in UNARY:
        row = rows[f"{op.split('.')[1]}.a"]
        assert row["error"] < 1e-8, op
        assert (row["gradient"] == 0) == (op in STEPS), op


def test_every_rule_of_an_elementwise_op_is_tested():
    text = Path(__file__).read_text()
    for dialect in "math", "arith":
        rules = re.findall(r"(\w+)Op::attachInterface", (ROOT / f"lib/Autodiff/{dialect.title()}.cpp").read_text())
        ops = [f"{dialect}.{rule.lower()}" for rule in rules]
        assert len(ops) > 10 and not [op for op in ops if not re.search(rf"\b{op}\b", text)]


def test_functions_of_more(weir):
    ordered = "%c = arith.cmpf ogt, %a, %b : f64\n    "
    cases = [("addf", "%y = arith.addf %a, %b : f64", 2), ("subf", "%y = arith.subf %a, %b : f64", 2),
             ("mulf", "%y = arith.mulf %a, %b : f64", 2), ("divf", "%y = arith.divf %a, %b : f64", 2),
             ("remf", "%y = arith.remf %a, %b : f64", 2), ("maximumf", "%y = arith.maximumf %a, %b : f64", 2),
             ("minimumf", "%y = arith.minimumf %a, %b : f64", 2), ("maxnumf", "%y = arith.maxnumf %a, %b : f64", 2),
             ("minnumf", "%y = arith.minnumf %a, %b : f64", 2), ("atan2", "%y = math.atan2 %a, %b : f64", 2),
             ("copysign", "%y = math.copysign %a, %b : f64", 2), ("powf", "%y = math.powf %a, %b : f64", 2),
             ("fma", "%y = math.fma %a, %b, %c : f64", 3), ("clampf", "%y = math.clampf %a to [%b, %c] : f64", 3),
             ("select", ordered + "%y = arith.select %c, %a, %b : f64", 2),
             ("fpowi", "%n = arith.constant 3 : i32\n    %y = math.fpowi %a, %n : f64, i32", 1),
             ("inverse", "%n = arith.constant -2 : i32\n    %y = math.fpowi %a, %n : f64, i32", 1),
             ("one", "%n = arith.constant 0 : i32\n    %y = math.fpowi %a, %n : f64, i32", 1),
             ("square", "%y = arith.mulf %a, %a : f64", 1),
             ("narrow", "%n = arith.truncf %a : f64 to f32\n    %s = math.sin %n : f32\n"
                        "    %y = arith.extf %s : f32 to f64", 1),
             ("sincos", "%s, %c = math.sincos %a : f64\n    %d = arith.mulf %s, %s : f64\n"
                        "    %y = arith.addf %d, %c : f64", 1),
             ("chain", "%e = math.exp %a : f64\n    %d = arith.divf %e, %b : f64\n"
                       "    %y = arith.mulf %d, %e : f64", 2)]
    random = numpy.random.default_rng(1)
    inputs = {f"{name}.{letter}": random.uniform(0.3, 2, 7) * random.choice([-1, 1], 7)
              for name, _, number in cases for letter in "abc"[:number]}
    inputs["powf.a"] = numpy.abs(inputs["powf.a"])
    inputs["remf.a"] = inputs["remf.a"] * 3
    # Below, between and above the limits.
    inputs |= {"clampf.a": numpy.linspace(-2, 2, 7), "clampf.b": numpy.full(7, -0.9), "clampf.c": numpy.full(7, 1.1)}
    rows = check(weir, pointwise(cases), inputs)
    assert len(rows) == sum(number for _, _, number in cases)
    for name, row in rows.items():
        assert row["error"] < 1e-8, name
    assert rows["copysign.b"]["gradient"] == rows["one.a"]["gradient"] == 0


STRUCTURES = {
    # name: arguments, results, body; sizes are odd, 1, 0 and primes.
    "matmul": (["3x5", "5x7"], "3x7", """
  %y = linalg.matmul ins(%a, %b : tensor<3x5xf32>, tensor<5x7xf32>) outs(%zeros : tensor<3x7xf32>) -> tensor<3x7xf32>"""),
    "matmul_of_one": (["1x1", "1x1"], "1x1", """
  %y = linalg.matmul ins(%a, %b : tensor<1x1xf32>, tensor<1x1xf32>) outs(%zeros : tensor<1x1xf32>) -> tensor<1x1xf32>"""),
    "matmul_of_none": (["3x0", "0x2"], "3x2", """
  %y = linalg.matmul ins(%a, %b : tensor<3x0xf32>, tensor<0x2xf32>) outs(%zeros : tensor<3x2xf32>) -> tensor<3x2xf32>"""),
    "matmul_onto": (["3x5", "5x2", "3x2"], "3x2", """
  %y = linalg.matmul ins(%a, %b : tensor<3x5xf32>, tensor<5x2xf32>) outs(%c : tensor<3x2xf32>) -> tensor<3x2xf32>"""),
    "matmul_of_itself": (["5x5"], "5x5", """
  %y = linalg.matmul ins(%a, %a : tensor<5x5xf32>, tensor<5x5xf32>) outs(%zeros : tensor<5x5xf32>) -> tensor<5x5xf32>"""),
    "matmul_transposed": (["3x5", "7x5"], "3x7", """
  %y = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                                      affine_map<(i, j, k) -> (i, j)>]
      ins(%a, %b : tensor<3x5xf32>, tensor<7x5xf32>) outs(%zeros : tensor<3x7xf32>) -> tensor<3x7xf32>"""),
    "batch_matmul": (["2x3x5", "2x5x1"], "2x3x1", """
  %y = linalg.batch_matmul ins(%a, %b : tensor<2x3x5xf32>, tensor<2x5x1xf32>) outs(%zeros : tensor<2x3x1xf32>)
      -> tensor<2x3x1xf32>"""),
    "dot": (["7", "7"], "", """
  %y = linalg.dot ins(%a, %b : tensor<7xf32>, tensor<7xf32>) outs(%zeros : tensor<f32>) -> tensor<f32>"""),
    "transpose": (["2x3x5"], "5x2x3", """
  %y = linalg.transpose ins(%a : tensor<2x3x5xf32>) outs(%empty : tensor<5x2x3xf32>) permutation = [2, 0, 1]"""),
    "broadcast": (["3"], "3x5", """
  %y = linalg.broadcast ins(%a : tensor<3xf32>) outs(%empty : tensor<3x5xf32>) dimensions = [1]"""),
    "reduce": (["3x5x2", "5"], "5", """
  %y = linalg.reduce { arith.addf } ins(%a : tensor<3x5x2xf32>) outs(%b : tensor<5xf32>) dimensions = [0, 2]"""),
    "map": (["3x5", "3x5"], "3x5", """
  %y = linalg.map { arith.mulf } ins(%a, %b : tensor<3x5xf32>, tensor<3x5xf32>) outs(%empty : tensor<3x5xf32>)"""),
    "softmax": (["3x5"], "3x5", """
  %y = linalg.softmax dimension(1) ins(%a : tensor<3x5xf32>) outs(%empty : tensor<3x5xf32>) -> tensor<3x5xf32>"""),
    "unit_dims": (["4x1", "1x5"], "4x5", """
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (0, j)>,
                                        affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<4x1xf32>, tensor<1x5xf32>) outs(%empty : tensor<4x5xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %r = arith.divf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<4x5xf32>"""),
    # Only a's own map says how often its row is counted in b's gradient, and no other.
    "pruned_extent": (["3x5", "3"], "3", """
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                                        affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%a, %b : tensor<3x5xf32>, tensor<3xf32>) outs(%zeros : tensor<3xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %r = arith.addf %p, %q : f32
    %s = arith.addf %out, %r : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>"""),
    "sum_of_differences": (["3x5", "3"], "3", """
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<3x5xf32>) outs(%b : tensor<3xf32>) {
  ^bb0(%p: f32, %out: f32):
    %r = math.sin %p : f32
    %s = arith.subf %out, %r : f32
    %t = math.fma %r, %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>"""),
    "point_reads_outs": (["7", "7"], "7", """
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<7xf32>) outs(%b : tensor<7xf32>) {
  ^bb0(%p: f32, %out: f32):
    %r = arith.mulf %out, %out : f32
    %s = arith.mulf %r, %p : f32
    linalg.yield %s : f32
  } -> tensor<7xf32>"""),
    "index": (["5"], "5", """
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<5xf32>) outs(%empty : tensor<5xf32>) {
  ^bb0(%p: f32, %out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %r = arith.sitofp %n : i32 to f32
    %s = arith.mulf %r, %p : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>"""),
    "largest": (["3x7"], "3", """
  %least = arith.constant dense<0xFF800000> : tensor<3xf32>
  %y = linalg.reduce { arith.maximumf } ins(%a : tensor<3x7xf32>) outs(%least : tensor<3xf32>) dimensions = [1]"""),
    "product": (["3x7", "3"], "3", """
  %ones = arith.constant dense<1.0> : tensor<3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                                        affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%a, %b : tensor<3x7xf32>, tensor<3xf32>) outs(%ones : tensor<3xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %r = arith.addf %p, %q : f32
    %s = arith.mulf %r, %out : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>"""),
    "smallest_square": (["3x7"], "7", """
  %most = arith.constant dense<0x7F800000> : tensor<7xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
                       iterator_types = ["reduction", "parallel"]}
      ins(%a : tensor<3x7xf32>) outs(%most : tensor<7xf32>) {
  ^bb0(%p: f32, %out: f32):
    %r = arith.mulf %p, %p : f32
    %s = arith.minnumf %out, %r : f32
    linalg.yield %s : f32
  } -> tensor<7xf32>"""),
    "largest_and_its_place": (["7"], "", """
  %least = arith.constant dense<0xFF800000> : tensor<f32>
  %none = arith.constant dense<0> : tensor<i32>
  %y, %at = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> ()>],
                            iterator_types = ["reduction"]}
      ins(%a : tensor<7xf32>) outs(%least, %none : tensor<f32>, tensor<i32>) {
  ^bb0(%p: f32, %out: f32, %place: i32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %r = arith.cmpf ogt, %p, %out : f32
    %s = arith.maximumf %p, %out : f32
    %t = arith.select %r, %n, %place : i32
    linalg.yield %s, %t : f32, i32
  } -> (tensor<f32>, tensor<i32>)"""),
    "two_results": (["5", "5"], "5", """
  %p:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                                          affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<5xf32>, tensor<5xf32>) outs(%empty, %empty : tensor<5xf32>, tensor<5xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32, %other: f32):
    %r = arith.mulf %p, %q : f32
    %s = math.sin %r : f32
    linalg.yield %r, %s : f32, f32
  } -> (tensor<5xf32>, tensor<5xf32>)
  %y = linalg.mul ins(%p#0, %p#1 : tensor<5xf32>, tensor<5xf32>) outs(%empty : tensor<5xf32>) -> tensor<5xf32>"""),
    "captured_scalar": (["", "5"], "5", """
  %s = tensor.extract %a[] : tensor<f32>
  %p = linalg.map ins(%b : tensor<5xf32>) outs(%empty : tensor<5xf32>) (%q: f32, %out: f32) {
    %r = arith.mulf %q, %s : f32
    linalg.yield %r : f32
  }
  %f = linalg.fill ins(%s : f32) outs(%empty : tensor<5xf32>) -> tensor<5xf32>
  %y = linalg.mul ins(%p, %f : tensor<5xf32>, tensor<5xf32>) outs(%empty : tensor<5xf32>) -> tensor<5xf32>"""),
    "conv_weights": (["3"], "6", """
  %x = arith.constant dense<[1.0, -2.0, 3.5, 0.0, 0.5, 7.0, -1.0, 2.0]> : tensor<8xf32>
  %y = linalg.conv_1d ins(%x, %a : tensor<8xf32>, tensor<3xf32>) outs(%zeros : tensor<6xf32>) -> tensor<6xf32>"""),
    "reshapes": (["6x5"], "2x15", """
  %p = tensor.expand_shape %a [[0, 1], [2]] output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
  %y = tensor.collapse_shape %p [[0], [1, 2]] : tensor<2x3x5xf32> into tensor<2x15xf32>"""),
    "slices": (["7x5", "2"], "3", """
  %p = tensor.extract_slice %a[1, 1] [3, 1] [2, 1] : tensor<7x5xf32> to tensor<3xf32>
  %q = tensor.extract_slice %a[2, 1] [3, 1] [1, 1] : tensor<7x5xf32> to tensor<3xf32>
  %r = linalg.mul ins(%p, %q : tensor<3xf32>, tensor<3xf32>) outs(%empty : tensor<3xf32>) -> tensor<3xf32>
  %y = tensor.insert_slice %b into %r[1] [2] [1] : tensor<2xf32> into tensor<3xf32>"""),
    "pad": (["3x2"], "6x5", """
  %two = arith.constant 2.0 : f32
  %y = tensor.pad %a low[1, 0] high[2, 3] {
  ^bb0(%i: index, %j: index):
    tensor.yield %two : f32
  } : tensor<3x2xf32> to tensor<6x5xf32>"""),
    "concat": (["3x2", "3x1", "3x0"], "3x5", """
  %y = tensor.concat dim(1) %a, %b, %c, %a : (tensor<3x2xf32>, tensor<3x1xf32>, tensor<3x0xf32>, tensor<3x2xf32>)
      -> tensor<3x5xf32>"""),
    # The gradient of the bias is a sum of a slice of a slice.
    "product_of_padded_concat": (["6x4", "4", "7x5"], "8x5", """
  %init = tensor.empty() : tensor<6x4xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<6x4xf32>, tensor<4xf32>) outs(%init : tensor<6x4xf32>) {
  ^bb0(%r: f32, %s: f32, %out: f32):
    %t = arith.addf %r, %s : f32
    linalg.yield %t : f32
  } -> tensor<6x4xf32>
  %k = tensor.extract_slice %a[0, 1] [6, 3] [1, 1] : tensor<6x4xf32> to tensor<6x3xf32>
  %q = tensor.concat dim(1) %k, %p : (tensor<6x3xf32>, tensor<6x4xf32>) -> tensor<6x7xf32>
  %padding = arith.constant 0.0 : f32
  %u = tensor.pad %q low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %padding : f32
  } : tensor<6x7xf32> to tensor<8x7xf32>
  %y = linalg.matmul ins(%u, %c : tensor<8x7xf32>, tensor<7x5xf32>) outs(%zeros : tensor<8x5xf32>) -> tensor<8x5xf32>"""),
    "splat": ([""], "3x5", """
  %s = tensor.extract %a[] : tensor<f32>
  %t = math.sin %s : f32
  %y = tensor.splat %t : tensor<3x5xf32>"""),
    "elements": (["3x2"], "2", """
  %i = arith.constant 1 : index
  %j = arith.constant 0 : index
  %s = tensor.extract %a[%i, %j] : tensor<3x2xf32>
  %t = tensor.extract %a[%j, %i] : tensor<3x2xf32>
  %u = arith.mulf %s, %t : f32
  %y = tensor.from_elements %u, %s : tensor<2xf32>"""),
    "cast": (["3"], "3", "\n  %y = tensor.cast %a : tensor<3xf32> to tensor<3xf32>"),
    "layer_norm": (["3x5", "5", "5"], "3x5", """
  %y = norm.layer_norm %a gamma(%b : tensor<5xf32>) beta(%c : tensor<5xf32>) {axes = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<3x5xf32>"""),
    "rms_norm": (["3x5", "5"], "3x5", """
  %y = norm.rms_norm %a gamma(%b : tensor<5xf32>) {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<3x5xf32>"""),
    "log_softmax": (["3x5"], "3x5", "\n  %y = norm.log_softmax %a {axis = 1 : i64} : tensor<3x5xf32>"),
    "softmax": (["3x5"], "3x5", """
  %y = linalg.softmax dimension(1) ins(%a : tensor<3x5xf32>) outs(%empty : tensor<3x5xf32>) -> tensor<3x5xf32>"""),
    "logsumexp": (["3x5"], "5", "\n  %y = norm.logsumexp %a {axis = 0 : i64} : tensor<3x5xf32> -> tensor<5xf32>"),
    "batch_norm": (["3x5x2", "5", "5"], "3x5x2", """
  %y, %m, %v = norm.batch_norm %a gamma(%b : tensor<5xf32>) beta(%c : tensor<5xf32>) {axis = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<3x5x2xf32>, tensor<5xf32>"""),
    "batch_statistics": (["3x5x2"], "5", """
  %r, %m, %v = norm.batch_norm %a {axis = 1 : i64, eps = 1.0e-5 : f64} : tensor<3x5x2xf32>, tensor<5xf32>
  %y = linalg.mul ins(%m, %v : tensor<5xf32>, tensor<5xf32>) outs(%empty : tensor<5xf32>) -> tensor<5xf32>"""),
    "batch_norm_inference": (["3x5x2", "5", "5"], "3x5x2", """
  %few = tensor.empty() : tensor<5xf32>
  %v = linalg.square ins(%c : tensor<5xf32>) outs(%few : tensor<5xf32>) -> tensor<5xf32>
  %y = norm.batch_norm_inference %a, %b, %v gamma(%b : tensor<5xf32>) {axis = 1 : i64, eps = 1.0e-1 : f64}
      : tensor<3x5x2xf32>, tensor<5xf32>"""),
    "gelu": (["3x5"], "3x5", "\n  %y = norm.gelu %a : tensor<3x5xf32>"),
    "gelu_by_tanh": (["3x5"], "3x5", "\n  %y = norm.gelu %a {tanh_factor = 0.79788456080286541 : f64} : tensor<3x5xf32>"),
    "silu": (["3x5"], "3x5", "\n  %y = norm.silu %a : tensor<3x5xf32>"),
    "cross_entropy": (["3x5"], "", """
  %t = arith.constant dense<[4, -100, 0]> : tensor<3xi64>
  %y = norm.softmax_cross_entropy mean %a, %t : tensor<3x5xf32>, tensor<3xi64> -> tensor<f32>"""),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures(weir, name):
    shapes, result, body = STRUCTURES[name]
    type_of = lambda shape: f"tensor<{shape + 'x' if shape else ''}f32>"
    arguments = ", ".join(f"%{letter}: {type_of(shape)}" for letter, shape in zip("abc", shapes))
    # A function of the result, so that no cotangent is the same everywhere, and a's last use.
    rows = check(weir, f"""
func.func @f({arguments}) -> {type_of(result)} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {type_of(result)}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {type_of(result)}) -> {type_of(result)}
  {body}
  %z = linalg.exp ins(%y : {type_of(result)}) outs(%empty : {type_of(result)}) -> {type_of(result)}
  return %z : {type_of(result)}
}}""")
    assert len(rows) == len(shapes)
    for argument, row in rows.items():
        assert row["error"] < 1e-7, argument
        assert row["elements"] == 0 or row["gradient"] != 0


FEW_STEPS = {
    # Accumulator %o, values %v and %w; the gradient flows to all of them.
    "quotient": "%r = arith.divf %o, %v : f32",
    "decay": """%k = arith.mulf %o, %w : f32
    %r = arith.addf %k, %v : f32""",
    "logaddexp": """%m = arith.maximumf %o, %v : f32
    %d = arith.subf %o, %v : f32
    %s = math.absf %d : f32
    %n = arith.negf %s : f32
    %u = math.exp %n : f32
    %l = math.log1p %u : f32
    %r = arith.addf %m, %l : f32""",
    "by_place": """%i = linalg.index 2 : index
    %c = arith.index_cast %i : index to i32
    %f = arith.sitofp %c : i32 to f32
    %k = arith.mulf %o, %v : f32
    %q = arith.addf %k, %f : f32
    %r = arith.divf %q, %w : f32""",
}


@pytest.mark.parametrize("name", FEW_STEPS)
@pytest.mark.parametrize("windows", [False, True])
def test_reductions_in_few_steps(weir, name, windows):
    """Reductions of rows, and of windows that overlap as those of a running reduction; also where the steps begin."""
    x, read = ("3x6", "i, j + k") if windows else ("3x4x3", "i, j, k")
    text = f"""
func.func @f(%x: tensor<{x}xf32>, %b: tensor<4x3xf32>, %start: tensor<3x4xf32>) -> tensor<3x4xf32> {{
  %e = tensor.empty() : tensor<{x}xf32>
  %p = linalg.exp ins(%x : tensor<{x}xf32>) outs(%e : tensor<{x}xf32>) -> tensor<{x}xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> ({read})>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%p, %b : tensor<{x}xf32>, tensor<4x3xf32>) outs(%start : tensor<3x4xf32>) {{
  ^bb0(%v: f32, %w: f32, %o: f32):
    {FEW_STEPS[name]}
    linalg.yield %r : f32
  }} -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}}"""
    random = numpy.random.default_rng(3)
    inputs = {"arg0": random.uniform(-1, 1, [int(size) for size in x.split("x")]).astype("f4"),
              "arg1": random.uniform(0.5, 2, (4, 3)).astype("f4"), "arg2": random.uniform(-1, 1, (3, 4)).astype("f4")}
    rows = check(weir, text, inputs)
    assert all(row["error"] < 1e-7 for row in rows.values())
    assert sum(row["gradient"] != 0 for row in rows.values()) == (2 if name in ("quotient", "logaddexp") else 3)
    artifact = weir.compile(weir.folder / "graph.mlir", "a", "--vjp=f")
    save_file(inputs | {"cotangent.result0": numpy.ones((3, 4), "f4")}, weir.folder / "in.safetensors")
    weir.compare(artifact, ["--entry=f.vjp", "--input=in.safetensors"], 1e-5)


@pytest.mark.parametrize("seed", range(16))
def test_random_convolutions(weir, seed):
    """Strides, dilations, groups, one channel, odd sizes; also of the gradient, where the factor is negative."""
    random = numpy.random.default_rng(seed)
    pick = lambda *numbers: int(random.choice(numbers))
    groups, batch, channels, filters = pick(1, 1, 2), pick(1, 2), pick(1, 2, 3), pick(1, 2, 3)
    windows, results, places = [], [], []
    for dim in range(pick(1, 2)):
        taps, stride, dilation, size = pick(1, 2, 3), pick(1, 1, 2, 3), pick(1, 1, 2), pick(1, 2, 4)
        windows.append((size - 1) * stride + (taps - 1) * dilation + 1 + pick(0, 0, 1))
        results.append(size)
        places.append((taps, f"o{dim} * {stride} + k{dim} * {dilation}" if seed % 3 else
                       f"{windows[-1] - 1} - o{dim} * {stride} - k{dim} * {dilation}"))
    dims = ", ".join(["n", "g", "f"] + [f"o{i}" for i in range(len(results))] + ["c"] + [f"k{i}" for i in range(len(results))])
    outer = ", ".join(f"o{i}" for i in range(len(results)))
    taps = ", ".join(f"k{i}" for i in range(len(results)))
    shapes = [tensor([batch, groups, channels, *windows]), tensor([groups, filters, channels, *(t for t, _ in places)]),
              tensor([batch, groups, filters, *results])]
    reads = ", ".join(place for _, place in places)
    kinds = ", ".join(['"parallel"'] * (3 + len(results)) + ['"reduction"'] * (1 + len(results)))
    rows = check(weir, f"""
func.func @f(%x: {shapes[0]}, %w: {shapes[1]}) -> {shapes[2]} {{
  %z = arith.constant dense<0.0> : {shapes[2]}
  %y = linalg.generic {{indexing_maps = [affine_map<({dims}) -> (n, g, c, {reads})>, affine_map<({dims}) -> (g, f, c, {taps})>,
      affine_map<({dims}) -> (n, g, f, {outer})>], iterator_types = [{kinds}]}}
      ins(%x, %w : {shapes[0]}, {shapes[1]}) outs(%z : {shapes[2]}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }} -> {shapes[2]}
  %e = tensor.empty() : {shapes[2]}
  %t = linalg.tanh ins(%y : {shapes[2]}) outs(%e : {shapes[2]}) -> {shapes[2]}
  return %t : {shapes[2]}
}}""")
    assert all(row["error"] < 1e-7 and row["gradient"] != 0 for row in rows.values())
    artifact = weir.compile(weir.folder / "graph.mlir", "a", "--vjp=f")
    weir.compare(artifact, ["--entry=f.vjp", "--random-inputs=3"], 1e-5)
    claims = json.loads(weir.run("verify", artifact, "--json"))["claims"]
    assert all(claim["holds"] for claim in claims)


@pytest.mark.parametrize("seed", range(12))
def test_random_slices(weir, seed):
    """Slices of one value, apart or over each other, strided or of fewer dimensions, each read in its own way."""
    random = numpy.random.default_rng(seed)
    shape = [int(random.choice([1, 3, 6, 8])) for _ in range(random.integers(1, 4))]
    names = lambda sizes: "".join(f"{size}x" for size in sizes) + "f32"
    whole, body, results = names(shape), "", []
    for number in range(int(random.integers(2, 7))):
        strides = [int(random.integers(1, 4)) for _ in shape]
        offsets = [int(random.integers(0, size)) for size in shape]
        sizes = [int(random.integers(1, (size - offset - 1) // stride + 2))
                 for size, offset, stride in zip(shape, offsets, strides)]
        kept = names([size for size in sizes if size != 1 or random.random() < 0.5])
        body += f"""
  %s{number} = tensor.extract_slice %a{offsets} {sizes} {strides} : tensor<{whole}> to tensor<{kept}>
  %e{number} = tensor.empty() : tensor<{kept}>
  %y{number} = linalg.{["exp", "tanh", "square"][number % 3]} ins(%s{number} : tensor<{kept}>) outs(%e{number} : tensor<{kept}>) -> tensor<{kept}>"""
        results.append((f"%y{number}", f"tensor<{kept}>"))
    types = ", ".join(type for _, type in results)
    rows = check(weir, f"""
func.func @f(%a: tensor<{whole}>) -> ({types}) {{{body}
  return {", ".join(name for name, _ in results)} : {types}
}}""")
    assert rows["arg0"]["error"] < 1e-7 and rows["arg0"]["gradient"] != 0


def test_group_norm_as_torch_decomposes_it(weir):
    """`x * scale + shift` is raised; its gradients are those of the text."""
    text = (TESTS / "passes" / "graph" / "raise-group-norm.test").read_text().split("//--- torch.mlir\n")[1]
    rows = check(weir, text.replace("f32", "f64"), entry="torch")
    assert set(rows) == {"arg0", "arg1", "arg2", "arg3"}
    assert all(row["error"] < 1e-7 for row in rows.values())
    artifact = weir.compile_text(text, "a", "--vjp=torch", "--entry=torch.vjp")
    weir.compare(artifact, ["--random-inputs=11"], 1e-5)


def test_gradients_of_gradients(weir):
    """Gradients of the gradients of matmul, tanh and layer_norm, by the rules for the ops that their rules made."""
    row = tensor((3, 5))
    rows = check(weir, f"""
func.func private @f(%x: {row}, %w: tensor<5x5xf32>, %g: tensor<5xf32>) -> {row} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {row}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {row}) -> {row}
  %h = linalg.matmul ins(%x, %w : {row}, tensor<5x5xf32>) outs(%zeros : {row}) -> {row}
  %t = linalg.tanh ins(%h : {row}) outs(%empty : {row}) -> {row}
  %y = norm.layer_norm %t gamma(%g : tensor<5xf32>) {{axes = 1 : i64, eps = 1.0e-2 : f64}} : {row}
  return %y : {row}
}}
func.func @g(%x: {row}, %w: tensor<5x5xf32>, %g: tensor<5xf32>, %dy: {row})
    -> ({row}, {row}, tensor<5x5xf32>, tensor<5xf32>) {{
  %r:4 = autodiff.vjp @f(%x, %w, %g) seeded [0] (%dy) wanted [0, 1, 2]
      : ({row}, tensor<5x5xf32>, tensor<5xf32>, {row}) -> ({row}, {row}, tensor<5x5xf32>, tensor<5xf32>)
  return %r#0, %r#1, %r#2, %r#3 : {row}, {row}, tensor<5x5xf32>, tensor<5xf32>
}}""", entry="g")
    assert len(rows) == 4
    assert all(row["error"] < 1e-7 for row in rows.values())


def gradients(weir, text, inputs, *flags, entry="f.vjp"):
    artifact = weir.compile_text(text, "a", "--vjp=f")
    save_file({name: numpy.asarray(value) for name, value in inputs.items()}, weir.folder / "in.safetensors")
    weir.run("run", artifact, f"--entry={entry}", *flags, "--input=in.safetensors", "--output=out.safetensors")
    return load_file(weir.folder / "out.safetensors")


@pytest.mark.parametrize("flags", [["--device=reference"], []])
def test_shared_weight_counts_each_use_once(weir, flags):
    """Background case 5, exactly: every product and sum here is one of few digits."""
    text = """
func.func @f(%x: tensor<1x2xf64> {weir.name = "x"}, %w: tensor<2x2xf64> {weir.name = "w"})
    -> (tensor<1x2xf64> {weir.name = "y"}) {
  %zero = arith.constant 0.0 : f64
  %empty = tensor.empty() : tensor<1x2xf64>
  %init = linalg.fill ins(%zero : f64) outs(%empty : tensor<1x2xf64>) -> tensor<1x2xf64>
  %h = linalg.matmul ins(%x, %w : tensor<1x2xf64>, tensor<2x2xf64>) outs(%init : tensor<1x2xf64>) -> tensor<1x2xf64>
  %y = linalg.matmul ins(%h, %w : tensor<1x2xf64>, tensor<2x2xf64>) outs(%init : tensor<1x2xf64>) -> tensor<1x2xf64>
  return %y : tensor<1x2xf64>
}"""
    found = gradients(weir, text, {"x": [[1.1, -0.7]], "w": [[0.4, -0.2], [0.7, 0.3]],
                                   "cotangent.y": [[1.0, 1.0]]}, *flags)
    numpy.testing.assert_allclose(found["grad.w"], [[0.17, 1.05], [-0.57, -1.13]], rtol=0, atol=1e-15)
    numpy.testing.assert_allclose(found["grad.x"], [[-0.12, 0.44]], rtol=0, atol=1e-15)
    numpy.testing.assert_allclose(found["y"], [[-0.321, -0.119]], rtol=0, atol=1e-15)


def test_ties_kinks_and_nans(weir):
    """Gradients at points with no derivative, or with several, as docs/gradients.md states them."""
    cases = [("absf", "%y = math.absf %a : f64", 1), ("maximumf", "%y = arith.maximumf %a, %b : f64", 2),
             ("minimumf", "%y = arith.minimumf %a, %b : f64", 2), ("maxnumf", "%y = arith.maxnumf %a, %b : f64", 2),
             ("minnumf", "%y = arith.minnumf %a, %b : f64", 2), ("floor", "%y = math.floor %a : f64", 1),
             ("copysign", "%y = math.copysign %a, %b : f64", 2),
             ("maximum", "%c = arith.cmpf ogt, %a, %b : f64\n    %y = arith.select %c, %a, %b : f64", 2),
             ("minimum", "%c = arith.cmpf olt, %a, %b : f64\n    %y = arith.select %c, %a, %b : f64", 2),
             ("clamp", "%c = arith.cmpf ult, %a, %b : f64\n    %y = arith.select %c, %b, %a : f64", 2),
             ("relu", "%c = arith.cmpf ogt, %a, %zero : f64\n    %y = arith.select %c, %a, %zero : f64", 1),
             ("infinite", """%infinity = arith.constant 0x7FF0000000000000 : f64
    %one = arith.constant 1.0 : f64
    %end = arith.cmpf oeq, %a, %one : f64
    %far = arith.mulf %infinity, %a : f64
    %square = arith.mulf %a, %a : f64
    %y = arith.select %end, %far, %square : f64""", 1)]
    nan = numpy.nan
    cases = [(name, "%zero = arith.constant 0.0 : f64\n    " + body, number) for name, body, number in cases]
    inputs = {"absf.a": [0.0, -0.0, -3.0, 2.0], "floor.a": [1.0, 0.0, -2.0, nan],
              "copysign.a": [0.0, -2.0, 2.0, -0.0], "copysign.b": [1.0, -3.0, -0.0, 2.0], "infinite.a": [2.0, -3.0, 0.0, 1.0],
              "relu.a": [0.0, -0.0, 1.0, -1.0]}
    for name in ["maximumf", "minimumf", "maxnumf", "minnumf", "maximum", "minimum", "clamp"]:
        inputs |= {f"{name}.a": [2.0, nan, 1.0, nan], f"{name}.b": [2.0, 1.0, nan, nan]}
    inputs |= {f"cotangent.result{i}": numpy.ones(4) for i in range(len(cases))}
    found = gradients(weir, pointwise(cases, 4), inputs, "--device=reference")
    expected = {"absf.a": [0, 0, -1, 1], "floor.a": [0, 0, 0, 0], "copysign.a": [0, 1, -1, 0], "copysign.b": [0] * 4,
                "infinite.a": [4, -6, 0, numpy.inf], "relu.a": [0, 0, 1, 0],
                "clamp.a": [1, 0, 0, 0], "clamp.b": [0, 1, 1, 1]}
    for name in ["maximum", "minimum"]:
        expected |= {f"{name}.a": [0.5, 0, 0, 0], f"{name}.b": [0.5, 1, 1, 1]}
    for name in ["maximumf", "minimumf"]:
        expected |= {f"{name}.a": [0.5, 1, 1, 1], f"{name}.b": [0.5, 1, 1, 1]}
    for name in ["maxnumf", "minnumf"]:
        expected |= {f"{name}.a": [0.5, 0, 1, 0], f"{name}.b": [0.5, 1, 0, 0]}
    for name, value in expected.items():
        numpy.testing.assert_array_equal(found[f"grad.{name}"], value, err_msg=name)


# Where the derivative of each is infinite, or is computed from a power that overflows.
STEEP = {"math.exp": 800, "math.exp2": 1100, "math.expm1": 800, "math.sinh": 800, "math.cosh": -800, "math.sqrt": 0,
         "math.rsqrt": 0, "math.cbrt": 0, "math.log": 0, "math.log2": 0, "math.log10": 0, "math.log1p": -1,
         "math.asin": 1, "math.acos": -1, "math.acosh": 1, "math.atanh": 1, "arith.divf %one,": 0}


@pytest.mark.parametrize("flags", [["--device=reference"], []])
def test_nothing_flows_by_an_infinite_slope(weir, flags):
    """To what isn't chosen and to what is saturated; what is chosen has its slope, a NaN is kept."""
    constants = "%one = arith.constant 1.0 : f64\n    "
    sigmoid = ("%n = arith.negf %a : f64\n    %e = math.exp %n : f64\n    %d = arith.addf %e, %one : f64\n    "
               "%y = arith.divf %one, %d : f64")
    softplus = ("%far = arith.constant 20.0 : f64\n    %e = math.exp %a : f64\n    %l = math.log1p %e : f64\n    "
                "%c = arith.cmpf ogt, %a, %far : f64\n    %y = arith.select %c, %a, %l : f64")
    cases = [("sigmoid", constants + sigmoid, 1), ("softplus", constants + softplus, 1)]
    inputs = {"sigmoid.a": [-800.0, 0, 800, numpy.nan], "softplus.a": [-800.0, 0, 800, numpy.nan]}
    expected = {"sigmoid.a": [0, 0.25, 0, numpy.nan], "softplus.a": [0, 0.5, 1, numpy.nan]}
    for op, where in STEEP.items():
        name = op.split()[0].split(".")[1]
        cases.append((name, constants + f"%v = {op} %a : f64\n    "
                      "%c = arith.cmpf oeq, %a, %b : f64\n    %y = arith.select %c, %a, %v : f64", 2))
        # Not chosen, chosen, not chosen but a NaN.
        inputs |= {f"{name}.a": [where, where, numpy.nan, where], f"{name}.b": [where, 3.0, 3.0, where]}
    inputs |= {f"cotangent.result{i}": numpy.ones(4) for i in range(len(cases))}
    inputs = {name: numpy.asarray(value, numpy.float64) for name, value in inputs.items()}
    found = gradients(weir, pointwise(cases, 4), inputs, *flags)
    for name, value in expected.items():
        numpy.testing.assert_array_equal(found[f"grad.{name}"], value, err_msg=name)
    for name, _, _ in cases[2:]:
        unchosen, chosen, nan, again = found[f"grad.{name}.a"]
        assert unchosen == again == 1 and numpy.isinf(chosen) and numpy.isnan(nan), (name, found[f"grad.{name}.a"])


@pytest.mark.parametrize("flags", [["--device=reference"], []])
def test_functions_with_kinks_where_they_have_none(weir, flags):
    """asinh as JAX writes it, whose parts have no derivative at 0, and the reciprocal an infinite value."""
    body = """%one = arith.constant 1.0 : f64
    %v = math.absf %a : f64
    %s = arith.mulf %a, %a : f64
    %t = arith.addf %s, %one : f64
    %r = math.sqrt %t : f64
    %o = arith.addf %r, %one : f64
    %q = arith.divf %s, %o : f64
    %w = arith.addf %v, %q : f64
    %l = math.log1p %w : f64
    %k = math.copysign %one, %a : f64
    %y = arith.mulf %k, %l : f64"""
    x = numpy.array([0.0, -0.0, 1.0, -2.0])
    found = gradients(weir, pointwise([("asinh", body, 1)], 4), {"asinh.a": x, "cotangent.result0": numpy.ones(4)}, *flags)
    numpy.testing.assert_allclose(found["grad.asinh.a"], 1 / numpy.sqrt(x * x + 1), rtol=1e-14, atol=0)


@pytest.mark.parametrize("flags", [["--device=reference"], []])
def test_largest_is_split_evenly_and_keeps_nans(weir, flags):
    text = """
func.func @f(%x: tensor<3x4xf32> {weir.name = "x"}) -> (tensor<3xf32> {weir.name = "y"}) {
  %least = arith.constant dense<0xFF800000> : tensor<3xf32>
  %y = linalg.reduce { arith.maximumf } ins(%x : tensor<3x4xf32>) outs(%least : tensor<3xf32>) dimensions = [1]
  return %y : tensor<3xf32>
}"""
    x = numpy.array([[1, 3, 3, 2], [-numpy.inf] * 4, [1, numpy.nan, 0, 0]], numpy.float32)
    found = gradients(weir, text, {"x": x, "cotangent.y": numpy.array([1, 8, 1], numpy.float32)}, *flags)
    numpy.testing.assert_array_equal(found["grad.x"], [[0, 0.5, 0.5, 0], [2] * 4, [numpy.nan] * 4])


def test_mlp_on_vulkan(weir):
    """All gradients of a trained model's loss, by the whole pipeline."""
    artifact = weir.compile(weir.examples / "mlp/mlp.mlir", "mlp", "--grad=mlp_loss", "--entry=mlp_loss.grad")
    inputs = ["--entry=mlp_loss.grad", f"--input={weir.examples / 'mlp/inputs.safetensors'}"]
    weir.compare(artifact, inputs, 1e-5, validated=True)
    kernels = weir.run("compile", weir.examples / "mlp/mlp.mlir", "--grad=mlp_loss", "--entry=mlp_loss.grad",
                       "--stop-after=kernels", "-o", "-")
    assert "linalg.transpose" not in kernels
    assert sum(line.lstrip().startswith("%") and 'schedule.kernel "contraction' in line
               for line in kernels.splitlines()) == 6


def test_products_with_zeros(weir):
    """Rows with no zero, one, two, and one next to a NaN; the product starts from 2."""
    artifact = weir.compile_text("""func.func @f(%x: tensor<5x4xf32>) -> tensor<5xf32> {
      %two = arith.constant dense<2.0> : tensor<5xf32>
      %y = linalg.reduce { arith.mulf } ins(%x : tensor<5x4xf32>) outs(%two : tensor<5xf32>) dimensions = [1]
      return %y : tensor<5xf32>
    }""", "products", "--vjp=f")
    nan = float("nan")
    x = numpy.array([[2, 4, -8, 0.5], [2, 0, 4, 8], [0, 2, 0, 4], [-0.0, 2, 4, 8], [2, nan, 4, 8]], numpy.float32)
    g = numpy.array([1, 2, 4, 8, 16], numpy.float32)
    others = numpy.array([[numpy.prod(numpy.delete(row, i)) for i in range(4)] for row in x])
    expected = 2 * g[:, None] * others
    save_file({"arg0": x, "cotangent.result0": g}, weir.folder / "in.safetensors")
    output = weir.folder / "out.safetensors"
    weir.run("run", artifact, "--entry=f.vjp", "--input=in.safetensors", f"--output={output}")
    found = load_file(output)["grad.arg0"]
    assert (numpy.isnan(found) | ~numpy.isnan(expected)).all()
    assert (found == expected)[:4].all(), found
