"""`weir run --check-values` of plans with loops: each value in each trip, and the first trip that is wrong by its number."""

import json
import subprocess

import numpy
import pytest
from safetensors.numpy import save_file

from conftest import BIN
from edits import get_plan
from test_loops import CHOICES, GRAPHS, HEAD, COUNT, NESTED, V, binary, get_text, make_inputs
from test_values import break_code


def check(artifact, inputs, *more, status=0):
    tolerance = [] if "--steps=1" in more else ["--tolerance=1e-4"]
    done = subprocess.run([BIN / "weir", "run", artifact, *inputs, "--check-values", "--json", *tolerance, *more],
                          capture_output=True, text=True, cwd=artifact.parent)
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout)


def list_written(plan, commands):
    """Returns the dispatches of some commands with the values that they write, by name."""
    numbers = [i for i, command in enumerate(plan["commands"]) if command["command"] == "dispatch"]
    return {(numbers.index(i), plan["values"][operand[3]][0])
            for i in numbers if i in commands
            for operand, effect in zip(plan["commands"][i]["operands"],
                                       plan["kernels"][plan["commands"][i]["kernel"]]["operands"])
            if effect["access"] in ("write", "update")}


@pytest.mark.parametrize("device", ["vulkan", "sim"])
@pytest.mark.parametrize("name, n", [("counted", 0), ("stacked", 9), ("swapped", 3), ("swapped", 0), ("reversed", 2),
                                     ("decided", 40), ("two", 2)])
def test_all_values_of_all_trips(weir, name, n, device):
    if (name, device) == ("counted", "vulkan"):
        pytest.skip("a wait for each of 8,000 dispatches")
    artifact = weir.compile_text(get_text(*GRAPHS[name]), "a", "--target=vulkan")
    plan = get_plan(artifact)
    answer = check(artifact, make_inputs(weir, artifact, n), f"--device={device}")
    assert answer["passes"] and answer["first"] is None
    inside = {i for loop in plan["loops"] for i in range(loop["first"], loop["end"])}
    told = {(value["dispatch"], value["value"]): value.get("trips") for value in answer["values"]}
    outside = list_written(plan, set(range(len(plan["commands"]))) - inside)
    assert set(told) == (outside | list_written(plan, inside) if n or name == "counted" else outside)
    assert all(trips is None for one, trips in told.items() if one in outside)
    assert all(len(trips) == 1 for one, trips in told.items() if one not in outside)


@pytest.mark.parametrize("text", [get_text(*NESTED), get_text(*CHOICES["both"]), get_text(*CHOICES["deep"])],
                         ids=["nested", "both", "deep"])
def test_loops_in_loops(weir, text):
    """The simulator does not run these; the values of the inner loop have two trips."""
    artifact = weir.compile_text(text, "a", "--target=vulkan")
    answer = check(artifact, make_inputs(weir, artifact, 4))
    assert answer["passes"]
    assert max(len(value.get("trips", [])) for value in answer["values"]) > 1


@pytest.mark.parametrize("profile", ["minimum", "v3d"])
def test_words_in_place_of_bytes(weir, profile):
    artifact = weir.compile_text(get_text(*GRAPHS["swapped"]), "a", f"--target=vulkan:{profile}")
    assert check(artifact, make_inputs(weir, artifact, 3), "--device=sim")["passes"]


def test_a_wrong_kernel_of_a_body_is_named_with_its_trip(weir):
    """The sum of a trip is a difference, so the first trip departs already."""
    artifact, broken = weir.compile_text(get_text(*GRAPHS["stacked"]), "a", "--target=vulkan"), weir.folder / "b.weir"
    plan = get_plan(artifact)
    [loop] = plan["loops"]
    inside = [c["kernel"] for c in plan["commands"][loop["first"]:loop["end"]] if c["command"] == "dispatch"]
    number = next(k for k in inside if break_code(artifact, plan["kernels"][k]["code"], broken))
    break_code(artifact, plan["kernels"][number]["code"], broken)
    answer = check(broken, make_inputs(weir, artifact, 3), "--device=sim", status=1)
    assert answer["first"]["kernel"] == plan["kernels"][number]["name"] and answer["first"]["trips"] == [1]


# The logarithm of x - 1, x - 2...: that of a negative number is NaN.
SINKING = (f"%x: {V}, %n: tensor<i32>", [V], HEAD + COUNT + f"""%one = arith.constant dense<1.0> : {V}
    %zero = arith.constant dense<0.0> : {V}
    %r:2 = scf.for %i = %c0 to %count step %c1 iter_args(%a = %x, %sum = %zero) -> ({V}, {V}) {{
      """ + binary("s", "sub", "a", "one") + f"""%l = linalg.log ins(%s : {V}) outs(%e : {V}) -> {V}
      """ + binary("t", "add", "sum", "l") + f"scf.yield %s, %t : {V}, {V}\n    }}\n", ["r#1"])
# The same in a loop, which begins anew each time with one less.
SINKING_TWICE = (f"%x: {V}, %n: tensor<i32>", [V], HEAD + COUNT + f"""%one = arith.constant dense<1.0> : {V}
    %zero = arith.constant dense<0.0> : {V}
    %q:2 = scf.for %k = %c0 to %count step %c1 iter_args(%y = %x, %total = %zero) -> ({V}, {V}) {{
      %r:2 = scf.for %i = %c0 to %count step %c1 iter_args(%a = %y, %sum = %total) -> ({V}, {V}) {{
        """ + binary("s", "sub", "a", "one") + f"""%l = linalg.log ins(%s : {V}) outs(%e : {V}) -> {V}
        """ + binary("t", "add", "sum", "l") + f"""scf.yield %s, %t : {V}, {V}
      }}
      """ + binary("z", "sub", "y", "one") + f"scf.yield %z, %r#1 : {V}, {V}\n    }}\n", ["q#1"])


def explain(weir, graph, x, n, *more, status=1):
    artifact = weir.compile_text(get_text(*graph), "a", "--target=vulkan")
    save_file({"arg0": numpy.full(8, x, numpy.float32), "arg1": numpy.array(n, numpy.int32)}, weir.folder / "in.safetensors")
    return check(artifact, ["--input=in.safetensors"], *more, status=status)


@pytest.mark.parametrize("device", ["vulkan", "sim"])
@pytest.mark.parametrize("more, status", [([], 0), (["--steps=1"], 1)], ids=["values", "steps"])
def test_the_first_nan_is_named_with_its_trip(weir, device, more, status):
    """By default a NaN that the reference has, too, is told; a step must have none."""
    told = explain(weir, SINKING, 3.5, 6, f"--device={device}", *more, status=status)["not_finite"]
    assert " in trip 4 is the first that makes a NaN, in '" in told and "what it reads is finite" in told, told
    answer = explain(weir, SINKING, 3.5, 3, f"--device={device}", *more, status=0)
    assert "not_finite" not in answer


def test_the_first_nan_of_a_loop_in_a_loop(weir):
    told = explain(weir, SINKING_TWICE, 4.5, 3, status=0)["not_finite"]
    # 3.5 2.5 1.5, then 2.5 1.5 0.5, then 1.5 0.5 -0.5.
    assert " in trip 3 of loop 0, trip 3 of loop 1 is the first that makes a NaN" in told, told


def test_a_nan_of_an_argument_is_no_trips(weir):
    told = explain(weir, SINKING, numpy.nan, 2, status=0)["not_finite"]
    assert told.startswith("argument 'arg0' at [0] is NaN before the run"), told
