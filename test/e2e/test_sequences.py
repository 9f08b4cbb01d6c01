"""Loops whose trips compute element by element: one kernel walks all of them, with the bits of the loop."""

import json

import numpy
import pytest
from edits import get_plan, run_checkers
from safetensors.numpy import load_file

T = 4098  # more trips than are written out
HEAD = f"""  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %last = arith.constant {T - 1} : index
  %many = arith.constant {T} : index
  %one = arith.constant 1 : i32
"""


def generic(result, shape, operands, lines, element="f32", result_element="f32", attributes=""):
    """Text of an op at each point of `shape`; `operands` are (name, type, map's results)."""
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    maps = [f"affine_map<({dims}) -> ({at})>" for _, _, at in operands] + [f"affine_map<({dims}) -> ({dims})>"]
    type = f"tensor<{''.join(f'{size}x' for size in shape)}{result_element}>"
    names, types = ", ".join(name for name, _, _ in operands), ", ".join(kind for _, kind, _ in operands)
    arguments = ", ".join(f"%x{i}: {element}" for i in range(len(operands)))
    body = "\n".join(f"      {line}" for line in lines)
    return f"""    %e{result} = tensor.empty() : {type}
    %{result} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{', '.join(['"parallel"'] * len(shape))}]{attributes}}}
      ins({names} : {types}) outs(%e{result} : {type}) {{
    ^bb0({arguments}, %o: {result_element}):
{body}
    }} -> {type}
"""


STEP = ["%m = arith.mulf %x0, %x1 : f32", "%r = arith.addf %m, %x2 : f32", "linalg.yield %r : f32"]
S, ROWS = "tensor<3x5xf32>", f"tensor<{T}x3x5xf32>"


def recurrence(attributes=""):
    """A state, all states from the last row on, and a number that grows by 2, which decides a factor."""
    return f"""func.func @f(%a: tensor<{T}x1x5xf32>, %b: {ROWS}, %h0: {S}) -> ({S}, {ROWS}, tensor<i32>) {{
{HEAD}  %z = arith.constant dense<0.0> : {ROWS}
  %n0 = arith.constant dense<-3> : tensor<i32>
  %res:3 = scf.for %i = %c0 to %many step %c1 iter_args(%h = %h0, %all = %z, %n = %n0) -> ({S}, {ROWS}, tensor<i32>) {{
    %at = arith.subi %last, %i : index
    %a1 = tensor.extract_slice %a[%at, 0, 0] [1, 1, 5] [1, 1, 1] : tensor<{T}x1x5xf32> to tensor<5xf32>
    %b1 = tensor.extract_slice %b[%at, 0, 0] [1, 3, 5] [1, 1, 1] : {ROWS} to {S}
""" + generic("next", [3, 5], [("%h", S, "d0, d1"), ("%a1", "tensor<5xf32>", "d1"), ("%b1", S, "d0, d1"),
                              ], [*STEP[:2], "%k = arith.constant 0.25 : f32", "%s = arith.mulf %r, %k : f32",
                                  "%q = math.tanh %s : f32", "linalg.yield %q : f32"], attributes=attributes) + \
        generic("scaled", [3, 5], [("%next", S, "d0, d1")],
                ["%number = tensor.extract %n[] : tensor<i32>", "%f = arith.sitofp %number : i32 to f32",
                 "%k = arith.constant 0.001 : f32", "%t = arith.mulf %f, %k : f32", "%r = arith.mulf %x0, %t : f32",
                 "linalg.yield %r : f32"]) + f"""    %row = tensor.expand_shape %scaled [[0, 1], [2]] output_shape [1, 3, 5] : {S} into tensor<1x3x5xf32>
    %new = tensor.insert_slice %row into %all[%at, 0, 0] [1, 3, 5] [1, 1, 1] : tensor<1x3x5xf32> into {ROWS}
    %number = tensor.extract %n[] : tensor<i32>
    %two = arith.constant 2 : i32
    %grown = arith.addi %number, %two : i32
    %m = tensor.from_elements %grown : tensor<i32>
    scf.yield %next, %new, %m : {S}, {ROWS}, tensor<i32>
  }}
  return %res#0, %res#1, %res#2 : {S}, {ROWS}, tensor<i32>
}}
"""


def swap():
    """Two values that change places, of which one adds up; a table is read at numbers that a tensor decides."""
    v = "tensor<7xf32>"
    return f"""func.func @f(%x: {v}, %y: {v}, %table: tensor<9x7xf32>) -> ({v}, {v}) {{
{HEAD}  %turns = arith.constant dense<[4, 0, 8, 3, 3, 1, 7]> : tensor<7xi32>
  %res:2 = scf.for %i = %c0 to %many step %c1 iter_args(%p = %x, %q = %y) -> ({v}, {v}) {{
""" + generic("next", [7], [("%p", v, "d0"), ("%q", v, "d0"), ("%turns", "tensor<7xi32>", "d0")], [
        "%w = arith.index_cast %x2 : i32 to index", "%j = linalg.index 0 : index",
        f"%g = tensor.extract %table[%w, %j] : tensor<9x7xf32>", "%s = arith.subf %x0, %x1 : f32",
        "%k = arith.constant 0.5 : f32", "%h = arith.mulf %s, %k : f32", "%r = arith.addf %h, %g : f32",
        "linalg.yield %r : f32"]).replace("%x2: f32", "%x2: i32") + f"""    scf.yield %q, %next : {v}, {v}
  }}
  return %res#0, %res#1 : {v}, {v}
}}
"""


def count():
    """Integers, a choice by the number of the trip, and a scalar; nothing reads a row."""
    v = "tensor<4xi32>"
    return f"""func.func @f(%x: {v}, %s0: tensor<f32>) -> ({v}, tensor<f32>) {{
{HEAD}  %res = scf.for %i = %c0 to %many step %c1 iter_args(%p = %x) -> ({v}) {{
    %w = arith.index_cast %i : index to i32
""" + generic("next", [4], [("%p", v, "d0")], [
        "%k = arith.constant 3000 : i32", "%c = arith.cmpi slt, %w, %k : i32", "%t = arith.constant 3 : i32",
        "%m = arith.muli %x0, %t : i32", "%a = arith.addi %m, %w : i32", "%r = arith.select %c, %a, %x0 : i32",
        "linalg.yield %r : i32"], "i32", "i32") + f"""    scf.yield %next : {v}
  }}
  %q = scf.for %i = %c0 to %many step %c1 iter_args(%p = %s0) -> (tensor<f32>) {{
""" + generic("half", [], [("%p", "tensor<f32>", "")], ["%k = arith.constant 0.75 : f32", "%m = arith.mulf %x0, %k : f32",
        "%o1 = arith.constant 1.0 : f32", "%r = arith.addf %m, %o1 : f32", "linalg.yield %r : f32"]) + """    scf.yield %half : tensor<f32>
  }
  return %res, %q : """ + f"""{v}, tensor<f32>
}}
"""


GRAPHS = {"recurrence": recurrence(), "swap": swap(), "count": count()}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_loop_becomes_a_walk(weir, name):
    artifact = weir.compile_text(GRAPHS[name])
    plan = get_plan(artifact)
    assert "loops" not in plan and all(kernel["name"].startswith(("sequence", "map")) for kernel in plan["kernels"]), plan
    weir.compare(artifact, ["--random-inputs=4"], 1e-5)
    for done in run_checkers(artifact):
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", GRAPHS)
def test_operands_of_several_steps_are_loaded_at_a_time(weir, name):
    """For a GPU: with the bits of the device's own code, whose order of operations it keeps."""
    outputs = []
    for number, flags in enumerate([[], [f"--target=vulkan:{weir.profile(units=108, row_mapping='workgroup')}"]]):
        artifact = weir.compile_text(GRAPHS[name], f"a{number}", *flags)
        outputs.append(weir.compare(artifact, ["--random-inputs=4"], 1e-5).read_bytes())
    assert outputs[0] == outputs[1]


def test_the_walk_has_the_bits_of_the_loop(weir):
    results = []
    for number, attributes in enumerate(["", ", weir.no_fuse"]):
        artifact = weir.compile_text(recurrence(attributes), f"a{number}")
        assert ("loops" in get_plan(artifact)) == (number == 1)
        weir.run("run", artifact, "--random-inputs=4", f"--output=o{number}.safetensors")
        results.append(load_file(weir.folder / f"o{number}.safetensors"))
    for name, values in results[0].items():
        numpy.testing.assert_array_equal(values, results[1][name])
    assert results[0]["result2"] == 2 * T - 3 and numpy.abs(results[0]["result1"]).max() > 0.1


def test_a_loop_of_too_many_tensors_stays(weir):
    """Its kernels bind fewer tensors each than a walk would."""
    artifact = weir.compile_text(recurrence(), "a", f"--target=vulkan:{weir.profile(storage_buffers_per_stage=4)}")
    assert "loops" in get_plan(artifact)
    weir.compare(artifact, ["--random-inputs=4"], 1e-5)


def other(body, more=""):
    v = "tensor<8xf32>"
    return f"""func.func @f(%x: {v}, %n: tensor<i32>, %rows: tensor<{T}x8xf32>) -> {v} {{
{HEAD}  %e = tensor.empty() : {v}
  %zero = arith.constant dense<0.0> : tensor<f32>
{more}  %res = scf.for %i = %c0 to %many step %c1 iter_args(%p = %x) -> ({v}) {{
{body}    scf.yield %next : {v}
  }}
  return %res : {v}
}}
"""


ADD = generic("next", [8], [("%p", "tensor<8xf32>", "d0"), ("%row", "tensor<8xf32>", "d0")],
              ["%s = arith.addf %x0, %x1 : f32", "%k = arith.constant 0.5 : f32", "%r = arith.mulf %s, %k : f32",
               "linalg.yield %r : f32"])
LOOPS = {
    "reads a neighbour": generic("next", [8], [("%p", "tensor<8xf32>", "7 - d0")],
                                 ["%r = math.tanh %x0 : f32", "linalg.yield %r : f32"]),
    "reduces": """    %s = linalg.reduce { arith.addf } ins(%p : tensor<8xf32>) outs(%zero : tensor<f32>) dimensions = [0]
""" + generic("next", [8], [("%p", "tensor<8xf32>", "d0"), ("%s", "tensor<f32>", "")], [
        "%t = arith.addf %x0, %x1 : f32", "%r = math.tanh %t : f32", "linalg.yield %r : f32"]),
    "data decide the row": """    %nn = tensor.extract %n[] : tensor<i32>
    %at = arith.index_cast %nn : i32 to index
    %row = tensor.extract_slice %rows[%at, 0] [1, 8] [1, 1] : tensor<4098x8xf32> to tensor<8xf32>
""" + ADD,
    "beyond the rows": """    %at = arith.addi %i, %c7 : index
    %row = tensor.extract_slice %rows[%at, 0] [1, 8] [1, 1] : tensor<4098x8xf32> to tensor<8xf32>
""" + ADD,
}


@pytest.mark.parametrize("name", LOOPS)
def test_other_loops_stay(weir, name):
    artifact = weir.compile_text(other(LOOPS[name]))
    assert "loops" in get_plan(artifact)
    weir.run("run", artifact, "--device=reference", "--f64", "--random-inputs=3", "--output=e.safetensors")
    weir.run("run", artifact, "--random-inputs=3", "--compare=e.safetensors", "--tolerance=1e-4")


def test_the_gradient_of_a_short_loop_is_a_walk(weir):
    """Backward, too: each operand has an element for each point. Another loop so short is written out."""
    v = "tensor<3x5xf32>"
    text = f"""func.func @f(%a: tensor<12x3x5xf32>, %w: {v}, %x: {v}) -> {v} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %many = arith.constant 12 : index
  %res = scf.for %i = %c0 to %many step %c1 iter_args(%h = %x) -> ({v}) {{
    %row = tensor.extract_slice %a[%i, 0, 0] [1, 3, 5] [1, 1, 1] : tensor<12x3x5xf32> to {v}
""" + generic("next", [3, 5], [("%h", v, "d0, d1"), ("%w", v, "d0, d1"), ("%row", v, "d0, d1")],
              [*STEP[:2], "%q = math.tanh %r : f32", "linalg.yield %q : f32"]) + f"""    scf.yield %next : {v}
  }}
  return %res : {v}
}}
"""
    artifact = weir.compile_text(text, "a", "--vjp=f")
    weir.compare(artifact, ["--entry=f.vjp", "--random-inputs=3"], 1e-5)
    report = json.loads(weir.run("gradcheck", "a.mlir", "--entry=f", "--json"))
    assert all(row["error"] < 1e-7 and row["gradient"] != 0 for row in report["arguments"])
    plan = get_plan(artifact, "f.vjp")
    names = [kernel["name"] for kernel in plan["kernels"]]
    assert "loops" not in plan and sum(name.startswith("sequence") for name in names) == 2, names
    other = weir.compile_text(text.replace("affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine",
                                           "affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine")
                              .replace(f"%w: {v}", "%w: tensor<5xf32>").replace(f"{v}, {v}, {v}) outs", f"{v}, tensor<5xf32>, {v}) outs"),
                              "b", "--vjp=f")
    weir.compare(other, ["--entry=f.vjp", "--random-inputs=3"], 1e-5)
    assert not any(kernel["name"].startswith("sequence") for kernel in get_plan(other, "f.vjp")["kernels"])
