"""Loops between tensors: recorded once, run until a count or a flag ends them, proved from trip to trip."""

import json
import subprocess
import zipfile

import numpy
import pytest
from safetensors.numpy import load_file, save_file

from conftest import BIN
from edits import edit_plan, get_plan, run_checkers

HEAD = """%c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %e = tensor.empty() : tensor<8xf32>
    """
COUNT = """%nn = tensor.extract %n[] : tensor<i32>
    %count = arith.index_cast %nn : i32 to index
    """
V = "tensor<8xf32>"


def binary(result, op, a, b):
    return f"%{result} = linalg.{op} ins(%{a}, %{b} : {V}, {V}) outs(%e : {V}) -> {V}\n    "


def unary(result, op, a):
    return f"%{result} = linalg.{op} ins(%{a} : {V}) outs(%e : {V}) -> {V}\n    "


# Name: arguments, result types, body, results.
GRAPHS = {
    # Too long to be unrolled: its number of trips is in the plan.
    "counted": (f"%x: {V}, %w: {V}", [V], HEAD + f"""%many = arith.constant 4097 : index
    %r = scf.for %i = %c0 to %many step %c1 iter_args(%h = %x) -> {V} {{
      %t = linalg.tanh {{weir.no_fuse}} ins(%h : {V}) outs(%e : {V}) -> {V}
      """ + binary("y", "add", "t", "w") + f"scf.yield %y : {V}\n    }}\n", ["r"]),
    # The counter decides where a row is read and where one is written, in place.
    "stacked": (f"%x: {V}, %xs: tensor<9x8xf32>, %n: tensor<i32>", [V, "tensor<9x8xf32>"], HEAD + COUNT + f"""
    %z = arith.constant dense<1.0> : tensor<9x8xf32>
    %r:2 = scf.for %i = %c0 to %count step %c1 iter_args(%a = %x, %ys = %z) -> ({V}, tensor<9x8xf32>) {{
      %row = tensor.extract_slice %xs[%i, 0] [1, 8] [1, 1] : tensor<9x8xf32> to {V}
      """ + binary("s", "add", "a", "row") + f"""
      %y = tensor.insert_slice %s into %ys[%i, 0] [1, 8] [1, 1] : {V} into tensor<9x8xf32>
      scf.yield %s, %y : {V}, tensor<9x8xf32>
    }}
    """, ["r#0", "r#1"]),
    # Values change places, so none can be updated where it is.
    "swapped": (f"%x: {V}, %w: {V}, %n: tensor<i32>", [V, V], HEAD + COUNT + f"""
    %r:2 = scf.for %i = %c0 to %count step %c1 iter_args(%a = %x, %b = %w) -> ({V}, {V}) {{
      """ + binary("s", "sub", "a", "b") + f"scf.yield %b, %s : {V}, {V}\n    }}\n", ["r#0", "r#1"]),
    # Elements of one trip become neighbours of others: a kernel cannot write over what it reads.
    "reversed": (f"%x: {V}, %w: {V}, %n: tensor<i32>", [V], HEAD + COUNT + f"""
    %r = scf.for %i = %c0 to %count step %c1 iter_args(%a = %x) -> {V} {{
      %s = linalg.generic {{indexing_maps = [affine_map<(d0) -> (7 - d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
          iterator_types = ["parallel"]}} ins(%a, %w : {V}, {V}) outs(%e : {V}) {{
      ^bb0(%p: f32, %q: f32, %o: f32):
        %t = arith.addf %p, %q : f32
        linalg.yield %t : f32
      }} -> {V}
      scf.yield %s : {V}
    }}
    """, ["r"]),
    # Data decide when it ends.
    "decided": (f"%x: {V}, %n: tensor<f32>", [V, "tensor<i32>"], HEAD + f"""
    %i0 = arith.constant dense<0> : tensor<i32>
    %one = arith.constant 1 : i32
    %low = arith.constant dense<0xFF800000> : tensor<f32>
    %r:2 = scf.while (%h = %x, %i = %i0) : ({V}, tensor<i32>) -> ({V}, tensor<i32>) {{
      %m = linalg.reduce {{ arith.maximumf }} ins(%h : {V}) outs(%low : tensor<f32>) dimensions = [0]
      %most = tensor.extract %m[] : tensor<f32>
      %end = tensor.extract %n[] : tensor<f32>
      %go = arith.cmpf olt, %most, %end : f32
      scf.condition(%go) %h, %i : {V}, tensor<i32>
    }} do {{
    ^bb0(%h: {V}, %i: tensor<i32>):
      """ + binary("d", "add", "h", "h") + f"""
      %k = tensor.extract %i[] : tensor<i32>
      %k1 = arith.addi %k, %one : i32
      %next = tensor.from_elements %k1 : tensor<i32>
      scf.yield %d, %next : {V}, tensor<i32>
    }}
    """, ["r#0", "r#1"]),
    # A donated argument, values from before the loop, one loop behind another.
    "two": (f'%x: {V} {{weir.name = "x", weir.donate}}, %n: tensor<i32>', [V], HEAD + COUNT + binary("two", "add", "x", "x") + f"""
    %r = scf.for %i = %c0 to %count step %c1 iter_args(%h = %x) -> {V} {{
      """ + binary("a", "add", "h", "two") + unary("b", "tanh", "a") + f"""scf.yield %b : {V}
    }}
    """ + binary("m", "mul", "r", "two") + f"""
    %s = scf.for %i = %c0 to %count step %c1 iter_args(%h = %r) -> {V} {{
      """ + binary("c", "sub", "h", "m") + f"scf.yield %c : {V}\n    }}\n    " + binary("last", "mul", "s", "m"), ["last"]),
}
NESTED = (f"%x: {V}, %n: tensor<i32>", [V], HEAD + COUNT + binary("two", "add", "x", "x") + f"""
    %r = scf.for %i = %c0 to %count step %c1 iter_args(%h = %x) -> {V} {{
      %s = scf.for %j = %c0 to %i step %c1 iter_args(%g = %h) -> {V} {{
        """ + binary("a", "add", "g", "two") + f"""scf.yield %a : {V}
      }}
      """ + binary("t", "sub", "s", "h") + binary("u", "sub", "t", "x") + f"scf.yield %u : {V}\n    }}\n", ["r"])


def times(body, count, name, arg="x"):
    """A loop that runs `count` times; `body` maps %h to %y."""
    return f"""%{name} = scf.for %{name}i = %c0 to %{count} step %c1 iter_args(%h = %{arg}) -> {V} {{
      {body}scf.yield %y : {V}
    }}
    """


ABOVE = """%mm = tensor.extract %n[] : tensor<i32>
    %two = arith.constant 2 : i32
    %above = arith.cmpi sgt, %mm, %two : i32
    """
# Choices of which a branch has a loop: it runs once or never.
CHOICES = {
    # Computed in front of it is the branch that has none.
    "then": (f"%x: {V}, %n: tensor<i32>", [V], HEAD + COUNT + ABOVE + f"%r = scf.if %above -> {V} {{\n    "
             + times(unary("y", "tanh", "h"), "count", "s") + f"""scf.yield %s : {V}
    }} else {{
      """ + binary("m", "mul", "x", "x") + f"scf.yield %m : {V}\n    }}\n", ["r"]),
    # The one that is not taken would not end.
    "both": (f"%x: {V}, %n: tensor<i32>", [V, "tensor<i32>"], HEAD + COUNT + ABOVE + f"""%r:2 = scf.if %above -> ({V}, tensor<i32>) {{
      """ + times(unary("y", "tanh", "h"), "count", "s") + f"""scf.yield %s, %n : {V}, tensor<i32>
    }} else {{
      %w:2 = scf.while (%h = %x, %k = %n) : ({V}, tensor<i32>) -> ({V}, tensor<i32>) {{
        %kk = tensor.extract %k[] : tensor<i32>
        %go = arith.cmpi ne, %kk, %two : i32
        scf.condition(%go) %h, %k : {V}, tensor<i32>
      }} do {{
      ^bb0(%h: {V}, %k: tensor<i32>):
        """ + binary("d", "add", "h", "h") + f"""%kk = tensor.extract %k[] : tensor<i32>
        %one = arith.constant 1 : i32
        %k1 = arith.addi %kk, %one : i32
        %next = tensor.from_elements %k1 : tensor<i32>
        scf.yield %d, %next : {V}, tensor<i32>
      }}
      scf.yield %w#0, %w#1 : {V}, tensor<i32>
    }}
    """, ["r#0", "r#1"]),
    # A choice in a branch of a choice in a loop; one result is a scalar, which what follows reads.
    "deep": (f"%x: {V}, %n: tensor<i32>", [V], HEAD + COUNT + ABOVE + f"""%r = scf.for %i = %c0 to %count step %c1 iter_args(%a = %x) -> {V} {{
      %k = arith.index_cast %i : index to i32
      %early = arith.cmpi slt, %k, %two : i32
      %p:2 = scf.if %above -> ({V}, f32) {{
        %q = scf.if %early -> {V} {{
          """ + times(unary("y", "tanh", "h"), "i", "s", "a") + f"""scf.yield %s : {V}
        }} else {{
          """ + times(binary("y", "sub", "h", "x"), "count", "s", "a") + f"""scf.yield %s : {V}
        }}
        %f = arith.constant 2.0 : f32
        scf.yield %q, %f : {V}, f32
      }} else {{
        %f = arith.constant 0.5 : f32
        scf.yield %a, %f : {V}, f32
      }}
      %scale = linalg.fill ins(%p#1 : f32) outs(%e : {V}) -> {V}
      """ + binary("t", "mul", "p#0", "scale") + f"scf.yield %t : {V}\n    }}\n", ["r"]),
}


def get_text(arguments, types, body, results):
    values = ", ".join(f"%{value}" for value in results)
    return (f"func.func @f({arguments}) -> ({', '.join(types)}) {{\n    {body}    return {values} : "
            f"{', '.join(types)}\n}}\n")


def make_inputs(weir, artifact, n):
    """Writes random arguments; `n` is the one of rank 0."""
    random = numpy.random.default_rng(3)
    arguments = weir.inspect(artifact)["entries"][0]["arguments"]
    kinds = {"F32": numpy.float32, "I32": numpy.int32}
    save_file({a["name"]: (random.standard_normal(a["shape"]) if a["shape"] else numpy.array(n)).astype(kinds[a["dtype"]])
               for a in arguments}, weir.folder / "in.safetensors")
    return ["--input=in.safetensors"]


@pytest.mark.parametrize("n", [1, 9])
def test_flags_in_words(weir, n):
    """Where a flag has no bytes, a copy of it is two dispatches, in two waves of the loop."""
    artifact = weir.compile_text(get_text(*GRAPHS["swapped"]), "a", "--target=vulkan:minimum")
    inputs = make_inputs(weir, artifact, n)
    weir.run("run", artifact, "--device=reference", "--f64", *inputs, "--output=expected.safetensors")
    plan = get_plan(artifact)
    [loop] = plan["loops"]
    inside = {c["wave"] for c in plan["commands"][loop["first"]:loop["end"]] if c["command"] == "dispatch"}
    behind = {c["wave"] for c in plan["commands"][loop["end"]:] if c["command"] == "dispatch"}
    assert max(inside) < min(behind)
    for strategy in ("recorded", "latest-first"):
        weir.run("run", artifact, *inputs, "--device=sim", f"--sim-strategy={strategy}",
                 "--compare=expected.safetensors", "--tolerance=1e-5")
    for done in run_checkers(artifact):
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("n", [0, 1, 9])
@pytest.mark.parametrize("name", GRAPHS)
def test_loop(weir, name, n):
    if name == "counted" and n:
        pytest.skip("its length is constant")
    artifact = weir.compile_text(get_text(*GRAPHS[name]))
    weir.compare(artifact, make_inputs(weir, artifact, n), 1e-5, validated=True)
    plan = get_plan(artifact)
    assert len(plan["loops"]) == (2 if name == "two" else 1)
    assert all(("flag" in loop) == (name != "counted") for loop in plan["loops"])
    for done in run_checkers(artifact):
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loop_in_a_loop(weir, n):
    """How often the inner one runs is decided in each trip of the outer one, which the simulator refuses."""
    artifact = weir.compile_text(get_text(*NESTED))
    inputs = make_inputs(weir, artifact, n)
    weir.run("run", artifact, "--device=reference", "--f64", *inputs, "--output=expected.safetensors")
    weir.run("run", artifact, *inputs, "--compare=expected.safetensors", "--tolerance=1e-5", validated=True)
    [isa] = weir.isas[artifact.with_suffix(".cpu.weir")]
    weir.run("run", artifact.with_suffix(".cpu.weir"), f"--device=cpu:{isa}", *inputs, "--compare=expected.safetensors",
             "--tolerance=1e-5")
    for done in run_checkers(artifact):
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("n", [0, 1, 3, 5])
@pytest.mark.parametrize("name", CHOICES)
def test_choices_with_loops_inside(weir, name, n):
    artifact = weir.compile_text(get_text(*CHOICES[name]))
    inputs = make_inputs(weir, artifact, n)
    weir.run("run", artifact, "--device=reference", "--f64", *inputs, "--output=expected.safetensors")
    [isa] = weir.isas[artifact.with_suffix(".cpu.weir")]
    for path, device in (artifact, []), (artifact.with_suffix(".cpu.weir"), [f"--device=cpu:{isa}"]):
        weir.run("run", path, *device, *inputs, "--compare=expected.safetensors", "--tolerance=1e-5")
    for done in run_checkers(artifact):
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_branch_runs_once(weir):
    """A trip has no copies: what it makes is not read in it, so it stands where the loop expects it."""
    plan = get_plan(weir.compile_text(get_text(*CHOICES["then"])))
    outer, inner = plan["loops"]
    assert "flag" in outer and outer["first"] <= inner["first"] and inner["end"] <= outer["end"]
    behind = [c for c in plan["commands"][inner["end"]:outer["end"]] if c["command"] == "dispatch"]
    assert len(behind) == 2, behind  # the inner loop's result, and the flag


def test_what_is_updated_in_place(weir):
    """A row of a stack is all that a trip writes of it; what changes places is copied."""
    plans = {}
    for name in "stacked", "swapped":
        plans[name] = get_plan(weir.compile_text(get_text(*GRAPHS[name]), name))
    [loop] = plans["stacked"]["loops"]
    body = plans["stacked"]["commands"][loop["first"]:loop["end"]]
    assert sum(len(operand) == 6 for command in body for operand in command.get("operands", [])) == 1
    counts = {name: sum(command["command"] == "dispatch" for command in plan["commands"][
        plan["loops"][0]["first"]:plan["loops"][0]["end"]]) for name, plan in plans.items()}
    assert counts["swapped"] > 2, counts


def test_pinned_has_the_same_bits(weir):
    files = []
    for artifact in weir.compile_text(get_text(*GRAPHS["two"])), weir.compile_text(get_text(*GRAPHS["two"]), "b", "--no-reuse"):
        weir.run("run", artifact, *make_inputs(weir, artifact, 4), f"--output={artifact}.out")
        files.append((weir.folder / f"{artifact}.out").read_bytes())
    assert files[0] == files[1]


def edit_loop(plan, wrong):
    """Breaks a plan; returns the claim that no longer holds."""
    [loop] = plan["loops"]
    commands = plan["commands"]
    if wrong == "no barrier at the end of a trip":
        assert commands[loop["end"] - 1]["command"] == "barrier"
        del commands[loop["end"] - 1]
        loop["end"] -= 1
        return "order"
    if wrong == "no barrier before the loop":
        assert commands[loop["first"] - 1]["command"] == "barrier"
        del commands[loop["first"] - 1]
        loop["first"] -= 1
        loop["end"] -= 1
        return "order"
    if wrong == "nothing is shown at the end of a trip":
        commands[loop["end"] - 1]["memory"] = []
        return "order"
    if wrong == "the end of a trip is not what it carries":
        one, other = (carried for carried in loop["carried"] if carried[2] == 32)
        one[5], other[5] = other[5], one[5]
        return "contents"
    if wrong == "carried bytes are overwritten":
        # The last write of a trip goes to the bytes of another carried value.
        views = [carried[:3] for carried in loop["carried"] if carried[2] == 32]
        last = [c for c in commands[loop["first"]:loop["end"]] if c["command"] == "dispatch"][-1]
        target = next(operand for operand in last["operands"] if operand[:3] in views)
        target[:3] = next(view for view in views if view != target[:3])
        return "contents"
    if wrong == "a value of the trip before":
        # It is no longer said that the bytes hold it when a trip begins.
        loop["carried"].remove(next(carried for carried in loop["carried"] if carried[2] == 32))
        return "contents"
    inside = [c for c in commands[loop["first"]:loop["end"]] if c["command"] == "dispatch"]
    if wrong == "a slot that is not live in all trips":
        first, last = min(c["wave"] for c in inside), max(c["wave"] for c in inside)
        slot = next(slot for slot in plan["slots"] if slot[4] < first and slot[5] >= last)
        slot[5] = last - 1
        return "slots"
    if wrong == "a wave of the loop behind it":
        [behind, *_] = [c for c in commands[loop["end"]:] if c["command"] == "dispatch"]
        behind["wave"] = max(c["wave"] for c in inside)
        return "waves"
    assert wrong == "one value made inside and outside"
    inside = [c for c in commands[loop["first"]:loop["end"]] if c["command"] == "dispatch"][0]
    outside = [c for c in commands[:loop["first"]] if c["command"] == "dispatch"][0]
    outside["operands"][-1][3] = inside["operands"][-1][3]
    return "contents"


@pytest.mark.parametrize("wrong", [
    "no barrier at the end of a trip", "no barrier before the loop", "nothing is shown at the end of a trip",
    "the end of a trip is not what it carries", "carried bytes are overwritten", "a value of the trip before",
    "a slot that is not live in all trips", "a wave of the loop behind it", "one value made inside and outside"])
def test_both_checkers_see_a_wrong_loop(weir, wrong):
    artifact = weir.compile_text(get_text(*GRAPHS["swapped"]))
    plan = get_plan(artifact)
    claim = edit_loop(plan, wrong)
    edited = weir.folder / "edited.weir"
    edit_plan(edited, artifact, plan)
    for done in run_checkers(edited):
        assert done.returncode == 1 and claim in done.stdout + done.stderr, done.stdout + done.stderr


def test_the_simulator_sees_a_missing_barrier(weir):
    artifact = weir.compile_text(get_text(*GRAPHS["reversed"]))
    plan = get_plan(artifact)
    edit_loop(plan, "no barrier at the end of a trip")
    edited = weir.folder / "edited.weir"
    edit_plan(edited, artifact, plan)
    inputs = make_inputs(weir, artifact, 4)
    weir.run("run", edited, "--device=sim", *inputs, "--output=o.safetensors", status=1)


def test_gradients_of_a_loop_of_known_length(weir):
    """Each trip begins with what a row keeps: `h` is read behind an exp, `w` in every trip."""
    text = get_text(f"%x: {V}, %w: {V}, %xs: tensor<4097x8xf32>", [V], HEAD + f"""%many = arith.constant 4097 : index
    %k = arith.constant dense<0.4> : {V}
    %r = scf.for %i = %c0 to %many step %c1 iter_args(%h = %x) -> {V} {{
      %row = tensor.extract_slice %xs[%i, 0] [1, 8] [1, 1] : tensor<4097x8xf32> to {V}
      """ + binary("p", "mul", "h", "w") + binary("q", "mul", "p", "k") + binary("s", "add", "q", "row") + unary("t", "tanh", "s")
                    + unary("u", "tanh", "t") + unary("v", "tanh", "u") + unary("o", "tanh", "v")
                    + f"scf.yield %o : {V}\n    }}\n", ["r"])
    artifact = weir.compile_text(text, "a", "--vjp=f")
    random = numpy.random.default_rng(5)
    x, w, rows, last = (random.standard_normal(shape).astype(numpy.float32) for shape in ((8,), (8,), (4097, 8), (8,)))
    save_file({"arg0": x, "arg1": w, "arg2": rows, "cotangent.result0": last}, weir.folder / "in.safetensors")
    weir.run("run", artifact, "--entry=f.vjp", "--input=in.safetensors", "--output=o.safetensors")
    found = load_file(weir.folder / "o.safetensors")
    k, kept = numpy.float64(numpy.float32(0.4)), []
    h = x.astype(numpy.float64)
    for row in rows.astype(numpy.float64):
        kept.append((h, [h := h * w * k + row] + [h := numpy.tanh(h) for _ in range(4)]))
    g, by_w, by_rows = last.astype(numpy.float64), numpy.zeros(8), numpy.zeros((4097, 8))
    for i, (before, values) in reversed(list(enumerate(kept))):
        for value in reversed(values[1:]):
            g = g * (1 - value * value)
        by_rows[i] = g
        by_w += g * before * k
        g = g * w * k
    for name, expected in ("grad.arg0", g), ("grad.arg1", by_w), ("grad.arg2", by_rows):
        numpy.testing.assert_allclose(found[name], expected, rtol=1e-3, atol=1e-5)
    assert numpy.abs(by_w).max() > 0.01


@pytest.mark.parametrize("n", [1, 7])
def test_gradients_of_a_choice_with_a_loop_inside(weir, n):
    """The derivative runs once or never, too. `x` is read by both branches, `w` by one."""
    text = get_text(f"%x: {V}, %w: {V}, %n: tensor<i32>", [V, V], HEAD + ABOVE + f"""%many = arith.constant 4097 : index
    %k = arith.constant dense<0.4> : {V}
    """ + binary("xx", "mul", "x", "x") + f"""%r:2 = scf.if %above -> ({V}, {V}) {{
      """ + times(binary("p", "mul", "h", "w") + binary("q", "mul", "p", "k") + binary("s", "add", "q", "x")
                  + unary("t", "tanh", "s") + unary("u", "tanh", "t") + unary("v", "tanh", "u") + unary("o", "tanh", "v")
                  + unary("y", "tanh", "o"), "many", "s", "xx") + f"""scf.yield %s, %x : {V}, {V}
    }} else {{
      """ + unary("o", "exp", "xx") + f"scf.yield %o, %w : {V}, {V}\n    }}\n" + binary("last", "mul", "r#0", "x"), ["last", "r#1"])
    artifact = weir.compile_text(text, "a", "--vjp=f")
    random = numpy.random.default_rng(5)
    x, w, last, other = (random.standard_normal(8).astype(numpy.float32) for _ in range(4))
    save_file({"arg0": x, "arg1": w, "arg2": numpy.array(n, numpy.int32), "cotangent.result0": last,
               "cotangent.result1": other}, weir.folder / "in.safetensors")
    weir.run("run", artifact, "--entry=f.vjp", "--input=in.safetensors", "--output=o.safetensors")
    found = load_file(weir.folder / "o.safetensors")
    x, w, last, other = (value.astype(numpy.float64) for value in (x, w, last, other))
    k, by_w = numpy.float64(numpy.float32(0.4)), numpy.zeros(8)
    if n > 2:
        h, kept, by_x = x * x, [], other.copy()
        for _ in range(4097):
            kept.append((h, [h := h * w * k + x] + [h := numpy.tanh(h) for _ in range(5)]))
        g = last * x
        for before, values in reversed(kept):
            for value in reversed(values[1:]):
                g = g * (1 - value * value)
            by_x += g
            by_w += g * before * k
            g = g * w * k
    else:
        h, by_x, by_w = numpy.exp(x * x), numpy.zeros(8), other
        g = last * x * h
    by_x = by_x + 2 * x * g + last * h
    for name, expected in ("grad.arg0", by_x), ("grad.arg1", by_w):
        numpy.testing.assert_allclose(found[name], expected, rtol=1e-3, atol=1e-5)
    for done in run_checkers(artifact):
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("text, sentence", [
    (get_text(*GRAPHS["two"]), "'scf.for' op has no gradient rule: its number of trips is no constant"),
    (get_text(*GRAPHS["decided"]), "'scf.while' op has no gradient rule: data decide its number of trips"),
    (get_text(*CHOICES["both"]), "'scf.while' op has no gradient rule: data decide its number of trips"),
], ids=["counted", "decided", "in a branch"])
def test_gradients_of_other_loops_are_refused(weir, text, sentence):
    source = weir.folder / "a.mlir"
    source.write_text(text)
    done = subprocess.run([BIN / "weir", "compile", source, "-o", weir.folder / "a.weir", "--vjp=f"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and sentence in done.stderr, done.stderr
    assert not (weir.folder / "a.weir").exists()


@pytest.mark.parametrize("name, n, trips", [("swapped", 5, 5), ("swapped", 0, 0), ("counted", 0, 4097)])
def test_dispatches_of_all_trips_are_timed(weir, name, n, trips):
    artifact = weir.compile_text(get_text(*GRAPHS[name]))
    inputs = make_inputs(weir, artifact, n)
    [isa] = weir.isas[artifact.with_suffix(".cpu.weir")]
    measured = json.loads(weir.run("bench", artifact.with_suffix(".cpu.weir"), f"--device=cpu:{isa}", "--rounds=1",
                                   "--json", *inputs))
    with zipfile.ZipFile(artifact.with_suffix(".cpu.weir")) as archive:
        [path] = [name for name in archive.namelist() if name.startswith("plan/")]
        plan = json.loads(archive.read(path))
    [loop] = plan["loops"]
    ran = {}
    for i, command in enumerate(plan["commands"]):
        if command["command"] == "dispatch":
            kernel = plan["kernels"][command["kernel"]]["name"]
            ran[kernel] = ran.get(kernel, 0) + (trips if loop["first"] <= i < loop["end"] else 1)
    assert {kernel["kernel"]: kernel["dispatches"] for kernel in measured["kernels"]} == {
        name: count for name, count in ran.items() if count}


@pytest.mark.parametrize("name, trips, is_decided", [("counted", 4097, False), ("decided", 1, True), ("two", 1, True)])
def test_the_model_says_what_a_trip_takes(weir, name, trips, is_decided):
    """Where data decide how many there are it counts one, and says so."""
    artifact = weir.compile_text(get_text(*GRAPHS[name]), "a", "--target=cuda")
    with zipfile.ZipFile(artifact) as archive:
        [path] = [name for name in archive.namelist() if name.startswith("plan/")]
        plan = json.loads(archive.read(path))
    answer = json.loads(weir.run("bench", artifact, "--model=h100", "--json"))
    assert [(loop["trips"], loop["data_decide"]) for loop in answer["loops"]] == [(trips, is_decided)] * len(plan["loops"])
    for loop, told in zip(plan["loops"], answer["loops"], strict=True):
        inside = plan["commands"][loop["first"]:loop["end"]]
        assert told["dispatches"] == sum(command["command"] == "dispatch" for command in inside) > 0
        assert told["seconds"] > 0
    assert answer["seconds"] == pytest.approx(answer["outside"]["seconds"] + sum(
        loop["trips"] * loop["seconds"] for loop in answer["loops"]))
    assert [" one trip each time that it comes up" in note for note in answer["assumptions"]] == (
        [True] * len(plan["loops"]) if is_decided else [])
    text = weir.run("bench", artifact, "--model=h100")
    assert text.count("a trip of loop ") == len(plan["loops"]) and "outside of loops: " in text
    assert ("note: loop 0: data decide how often it runs" in text) == is_decided
    assert ("one trip of each loop that data end" in weir.run("inspect", artifact, "--model=h100")) == is_decided


def test_the_model_of_what_has_no_loops_speaks_of_none(weir):
    artifact = weir.compile_text(get_text(f"%x: {V}", [V], HEAD + unary("y", "tanh", "x"), ["y"]), "a", "--target=cuda")
    assert not {"loops", "outside", "assumptions"} & set(json.loads(weir.run("bench", artifact, "--model=h100", "--json")))


def test_a_limit_that_loops_do_not_keep_is_refused(weir):
    arena = get_plan(weir.compile_text(get_text(*GRAPHS["two"])))["arena_bytes"]
    artifact = weir.compile_text(get_text(*GRAPHS["two"]), "b", f"--memory-limit={arena}", "--target=vulkan")
    assert get_plan(artifact)["arena_bytes"] <= arena
    done = subprocess.run([BIN / "weir", "compile", weir.folder / "b.mlir", "-o", weir.folder / "c.weir",
                           f"--memory-limit={arena - 1}", "--target=vulkan"], capture_output=True, text=True)
    assert done.returncode == 2 and f"does not fit in {arena - 1} bytes: it has loops" in done.stderr, done.stderr
    assert not (weir.folder / "c.weir").exists()


def test_a_profile_of_a_run_has_no_loops(weir):
    artifact = weir.compile_text(get_text(*GRAPHS["swapped"]))
    done = subprocess.run([BIN / "weir", "run", artifact, "--profile=t.json", *make_inputs(weir, artifact, 2)],
                          capture_output=True, text=True, cwd=weir.folder)
    assert done.returncode == 2 and "has loops, whose dispatches run many times" in done.stderr, done.stderr
    assert not (weir.folder / "t.json").exists()
