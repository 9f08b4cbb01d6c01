"""`weir verify --against-graph`: plans that hold, of code that does not compute the artifact's graph."""

import json
import subprocess

import numpy
import pytest
from safetensors.numpy import load_file, save_file

from conftest import BIN
from edits import edit_plan, get_plan, run_checkers

TWO = """func.func @f(%x: tensor<7x33xf32> {weir.name = "x"}, %y: tensor<7x33xf32> {weir.name = "y"})
    -> (tensor<7x33xf32> {weir.name = "a"}, tensor<7x33xf32> {weir.name = "b"}) {
  %e = tensor.empty() : tensor<7x33xf32>
  %a = linalg.sub ins(%x, %y : tensor<7x33xf32>, tensor<7x33xf32>) outs(%e : tensor<7x33xf32>) -> tensor<7x33xf32>
  %r = tensor.empty() : tensor<7x7xf32>
  %c = arith.constant 0.0 : f32
  %z = linalg.fill ins(%c : f32) outs(%r : tensor<7x7xf32>) -> tensor<7x7xf32>
  %m = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
      affine_map<(i, j, k) -> (i, j)>] ins(%x, %y : tensor<7x33xf32>, tensor<7x33xf32>) outs(%z : tensor<7x7xf32>)
      -> tensor<7x7xf32>
  %g = linalg.fill ins(%c : f32) outs(%e : tensor<7x33xf32>) -> tensor<7x33xf32>
  %b = linalg.matmul ins(%m, %a : tensor<7x7xf32>, tensor<7x33xf32>) outs(%g : tensor<7x33xf32>) -> tensor<7x33xf32>
  return %a, %b : tensor<7x33xf32>, tensor<7x33xf32>
}
"""


def compare(artifact, *flags):
    """Returns the exit status and what is said of each target."""
    done = subprocess.run([BIN / "weir", "verify", "--against-graph", "--json", artifact, *flags], capture_output=True, text=True)
    assert not done.stderr, done.stderr
    answers = json.loads(done.stdout)["against_graph"]
    return done.returncode, {answer["target"]: (answer["agrees"], answer["detail"]) for answer in answers}


def test_code_for_each_target(weir):
    artifact = weir.compile_text(TWO, "a", "--target=vulkan,cuda,cpu:native")
    for seed in (1, 7):
        status, answers = compare(artifact, f"--seed={seed}")
        assert status == 0 and len(answers) == 3
        assert all(agrees for agrees, _ in answers.values()), answers


def exchange_operands(plan):
    """Two arguments in the place of one another, in the first dispatch that reads both."""
    operands = plan["commands"][0]["operands"]
    operands[0], operands[1] = operands[1], operands[0]


def test_exchanged_operands(weir):
    """They keep all claims: their sizes and accesses are the same."""
    artifact, changed = weir.compile_text(TWO, "a", "--target=vulkan"), weir.folder / "b.weir"
    plan = get_plan(artifact)
    exchange_operands(plan)
    edit_plan(changed, artifact, plan)
    assert [done.returncode for done in run_checkers(changed)] == [0, 0]
    status, answers = compare(changed)
    agrees, detail = answers["vulkan"]
    assert status == 1 and agrees is False
    assert "result 'a' is not what the graph says: element " in detail


def test_what_breaks_a_claim_is_not_run(weir):
    artifact, changed = weir.compile_text(TWO, "a", "--target=vulkan"), weir.folder / "b.weir"
    plan = get_plan(artifact)
    plan["commands"] = [command for command in plan["commands"] if command["command"] != "barrier"]
    edit_plan(changed, artifact, plan)
    assert compare(changed) == (1, {})


def test_code_that_cannot_run_here(weir):
    status, answers = compare(weir.compile_text(TWO, "a", "--target=cpu:aarch64"))
    assert status == 0
    [(agrees, detail)] = answers.values()
    assert agrees is None and "aarch64" in detail


# Comparisons turn around where numbers are nearly equal, and roots have no values below 0.
ODD = """func.func @f(%x: tensor<5x9xbf16> {{weir.name = "x"}}, %n: tensor<5x9xi32> {{weir.name = "n"}})
    -> (tensor<5x9xbf16> {{weir.name = "a"}}) {{
  %e = tensor.empty() : tensor<5x9xbf16>
  %a = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %n : tensor<5x9xbf16>, tensor<5x9xi32>) outs(%e : tensor<5x9xbf16>) {{
  ^bb0(%v: bf16, %i: i32, %o: bf16):
    %f = arith.sitofp %i : i32 to bf16
    %r = math.{op} %v : bf16
    %s = arith.addf %r, %f : bf16
    linalg.yield %s : bf16
  }} -> tensor<5x9xbf16>
  return %a : tensor<5x9xbf16>
}}
"""


@pytest.mark.parametrize("op", ["sqrt", "log", "rsqrt", "erf", "floor"])
def test_narrow_floats(weir, op):
    status, answers = compare(weir.compile_text(ODD.format(op=op), "a", "--target=vulkan,cuda,cpu:native"))
    assert status == 0 and all(agrees for agrees, _ in answers.values()), answers


def test_graphs_without_f64(weir):
    """The bits of a float are no number of an f64."""
    text = ODD.format(op="floor").replace("%r = math.floor %v : bf16", "%b = arith.bitcast %v : bf16 to i16\n"
                                          "    %r = arith.bitcast %b : i16 to bf16")
    status, answers = compare(weir.compile_text(text, "a", "--target=vulkan", "--against-graph=always"))
    assert status == 0
    agrees, detail = answers["vulkan"]
    assert agrees is None and "bitcast" in detail


# The root is of a number below 0, unless b is between 0 and 1: AdamW's correction.
CORRECTED = """func.func @f(%x: tensor<5xf32> {{weir.name = "x"}}, %y: tensor<5xf32> {{weir.name = "y"}}, %b: tensor<f32> {{weir.name = "b"}})
    -> (tensor<5xf32> {{weir.name = "a"}}) {{
  %e = tensor.empty() : tensor<5xf32>
  %a = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>,
      affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%x, %y, %b : tensor<5xf32>, tensor<5xf32>, tensor<f32>) outs(%e : tensor<5xf32>) {{
  ^bb0(%v: f32, %w: f32, %d: f32, %o: f32):
    %one = arith.constant {one} : f32
    %square = arith.mulf %d, %d : f32
    %rest = arith.subf %one, %square : f32
    %r = math.sqrt %rest : f32
    %difference = arith.subf %v, %w : f32
    %s = arith.mulf %r, %difference : f32
    linalg.yield %s : f32
  }} -> tensor<5xf32>
  return %a : tensor<5xf32>
}}
"""


def test_arguments_with_finite_results(weir):
    """Exchanged operands are found also where only the third run has finite results, as with seed 15."""
    artifact, changed = weir.compile_text(CORRECTED.format(one="1.0"), "a", "--target=vulkan"), weir.folder / "b.weir"
    plan = get_plan(artifact)
    exchange_operands(plan)
    edit_plan(changed, artifact, plan)
    for seed, runs in ((1, 2), (15, 3)):
        status, answers = compare(artifact, f"--seed={seed}")
        agrees, detail = answers["vulkan"]
        assert status == 0 and agrees and f"in {runs} runs" in detail
        assert compare(changed, f"--seed={seed}")[1]["vulkan"][0] is False


def test_results_without_numbers_are_not_compared(weir):
    status, answers = compare(weir.compile_text(CORRECTED.format(one="-1.0"), "a", "--target=vulkan"))
    assert status == 0
    agrees, detail = answers["vulkan"]
    assert agrees is None and "not compared" in detail and "'a'" in detail


def test_empty_results_are_compared(weir):
    text = CORRECTED.format(one="1.0").replace("5xf32", "0xf32")
    status, answers = compare(weir.compile_text(text, "a", "--target=cpu:native"))
    assert status == 0 and all(agrees for agrees, _ in answers.values()), answers


def test_resources_without_elements(weir):
    """Upstream divides by their number of elements."""
    text = """func.func @f(%x: tensor<0x3xf32> {weir.name = "x"}) -> (tensor<0x3xf32> {weir.name = "y"}) {
  %c = arith.constant dense_resource<nothing> : tensor<0x3xf32>
  %e = tensor.empty() : tensor<0x3xf32>
  %y = linalg.add ins(%x, %c : tensor<0x3xf32>, tensor<0x3xf32>) outs(%e : tensor<0x3xf32>) -> tensor<0x3xf32>
  return %y : tensor<0x3xf32>
}
{-# dialect_resources: { builtin: { nothing: "0x04000000" } } #-}
"""
    status, answers = compare(weir.compile_text(text, "a", "--target=vulkan,cpu:native"))
    assert status == 0 and all(agrees for agrees, _ in answers.values()), answers


def test_compile_compares(weir):
    (weir.folder / "a.mlir").write_text(TWO)
    for when in ("auto", "always", "never"):
        weir.run("compile", "a.mlir", "-o", "a.weir", f"--against-graph={when}")


def test_refusals(weir):
    artifact = weir.compile_text(TWO, "a", "--target=vulkan")
    for tool, flags, sentence in (("weir", ["--seed=2"], "error: --seed is for --against-graph\n"),
                                  ("weir-device", ["--against-graph"], "error: --against-graph needs the compiler, which "
                                   "weir-device is without; use weir\n")):
        done = subprocess.run([BIN / tool, "verify", artifact, *flags], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (2, sentence)


@pytest.mark.parametrize("element", ["i16", "i64"])
def test_divisions_without_quotient(weir, element):
    """The arguments that `weir compile` makes up have zeros. No graph defines their quotients, and nothing ends there."""
    map = "affine_map<(i) -> (i)>"
    (weir.folder / "a.mlir").write_text(f"""func.func @f(%x: tensor<8x{element}>, %y: tensor<8x{element}>) -> tensor<8x{element}> {{
  %e = tensor.empty() : tensor<8x{element}>
  %r = linalg.generic {{indexing_maps = [{map}, {map}, {map}], iterator_types = ["parallel"]}}
      ins(%x, %y : tensor<8x{element}>, tensor<8x{element}>) outs(%e : tensor<8x{element}>) {{
  ^bb0(%a: {element}, %b: {element}, %o: {element}):
    %q = arith.divsi %a, %b : {element}
    %m = arith.remsi %a, %b : {element}
    %s = arith.addi %q, %m : {element}
    linalg.yield %s : {element}
  }} -> tensor<8x{element}>
  return %r : tensor<8x{element}>
}}
""")
    weir.run("compile", "a.mlir", "--target=vulkan,vulkan:minimum,cuda,cpu:native", "--against-graph=always", "-o", "a.weir")
    status, answers = compare(weir.folder / "a.weir")
    assert status == 0 and len(answers) == 4
    assert all(agrees is None and "divides an integer by 0" in detail for agrees, detail in answers.values()), answers
    least = numpy.iinfo(element.replace("i", "int")).min
    x, y = numpy.array([[7, -7, 7, -9, 5, least, least, 0], [2, 2, 0, -2, -1, -1, 1, 0]], element.replace("i", "int"))
    save_file({"arg0": x, "arg1": y}, weir.folder / "in.safetensors")
    weir.run("run", "a.weir", "--device=cpu", "--input=in.safetensors", "--output=out.safetensors")
    [found] = load_file(weir.folder / "out.safetensors").values()
    defined = [0, 1, 3, 4, 6]
    assert found[defined].tolist() == [4, -4, 3, -5, least]
