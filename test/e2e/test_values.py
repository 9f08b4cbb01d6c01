"""`weir run --check-values`: every value that a dispatch writes against the reference's, and the
first dispatch of a wrong kernel by its name."""

import json
import struct
import zipfile

import pytest
from graphs import make

ADD, SUBTRACT, MULTIPLY, DIVIDE = 129, 131, 133, 136  # opcodes of SPIR-V, on floats


def check(weir, artifact, *arguments, status=0):
    return json.loads(weir.run("run", artifact, "--random-inputs=1", "--check-values", "--json", *arguments,
                               status=status))


def get_plan(artifact, entry):
    with zipfile.ZipFile(artifact) as archive:
        return json.loads(archive.read(f"plan/vulkan/{entry}.json"))


def break_code(artifact, code, broken):
    """Writes the artifact with sums for differences and quotients for products in one kernel;
    returns whether there are any."""
    changed = False
    with zipfile.ZipFile(artifact) as archive, zipfile.ZipFile(broken, "w") as out:
        for name in archive.namelist():
            data = archive.read(name)
            if name == code:
                words = list(struct.unpack(f"<{len(data) // 4}I", data))
                at = 5
                while at < len(words):
                    opcode, count = words[at] & 0xFFFF, words[at] >> 16
                    if opcode in (ADD, MULTIPLY):
                        words[at] = count << 16 | (SUBTRACT if opcode == ADD else DIVIDE)
                        changed = True
                    at += count
                data = struct.pack(f"<{len(words)}I", *words)
            out.writestr(zipfile.ZipInfo(name), data)
    return changed


ENTRIES = [("layer_norm_vjp", [], "layer_norm_vjp"), ("background_case1", [], "background_case1"),
           ("mlp/mlp", ["--grad=mlp_loss"], "mlp_loss.grad"), ("mlp/mlp", ["--train=adamw:mlp_loss"], "mlp_loss.step")]


@pytest.mark.parametrize("name, flags, entry", ENTRIES)
@pytest.mark.parametrize("more", [[], ["--no-reuse"], ["--reorder=50%"]])
def test_all_values_are_the_references(weir, name, flags, entry, more):
    artifact = weir.compile(weir.examples / f"{name}.mlir", "a", "--target=vulkan", *flags, *more)
    plan = get_plan(artifact, entry)
    answer = check(weir, artifact, f"--entry={entry}", "--tolerance=1e-4")
    assert answer["passes"] and answer["first"] is None
    written = {operand[3] for command in plan["commands"] if command["command"] == "dispatch"
               for operand, effect in zip(command["operands"], plan["kernels"][command["kernel"]]["operands"])
               if effect["access"] in ("write", "update")}
    assert sorted(value["value"] for value in answer["values"]) == sorted(plan["values"][v][0] for v in written)


@pytest.mark.parametrize("name, flags, entry", ENTRIES[:3])
def test_first_dispatch_of_a_wrong_kernel_is_named(weir, name, flags, entry):
    artifact, broken = weir.compile(weir.examples / f"{name}.mlir", "a", "--target=vulkan", *flags), weir.folder / "b.weir"
    plan = get_plan(artifact, entry)
    dispatches = [command for command in plan["commands"] if command["command"] == "dispatch"]
    found = 0
    for number, kernel in enumerate(plan["kernels"]):
        if not break_code(artifact, kernel["code"], broken):
            continue
        first = next(i for i, dispatch in enumerate(dispatches) if dispatch["kernel"] == number)
        answer = check(weir, broken, f"--entry={entry}", status=1)
        assert not answer["passes"]
        assert (answer["first"]["dispatch"], answer["first"]["kernel"], answer["first"]["location"]) == (
            first, kernel["name"], dispatches[first]["location"])
        found += 1
    assert found >= len(plan["kernels"]) // 2
    text = weir.run("run", broken, f"--entry={entry}", "--random-inputs=1", "--check-values", status=1)
    assert f"values: dispatch {answer['first']['dispatch']} (kernel {answer['first']['kernel']}, from " in text
    assert "is the first that deviates from the reference, in '" in text


@pytest.mark.parametrize("seed", range(200, 216))
def test_values_of_random_graphs(weir, seed):
    answer = check(weir, weir.compile_text(make(seed).text(), "a", "--target=vulkan"), "--tolerance=1e-4")
    assert answer["passes"], answer["first"]


def test_another_graph_is_refused(weir):
    """A plan and a graph that don't belong together."""
    text = """func.func @f(%a: tensor<4x5xf32>) -> tensor<4xf32> {{
      %z = arith.constant dense<0.0> : tensor<4xf32>
      %s = linalg.reduce {{ arith.{0} }} ins(%a : tensor<4x5xf32>) outs(%z : tensor<4xf32>) dimensions = [1]
      {1} return %{2} : tensor<4xf32>
    }}"""
    more = """%w = arith.constant dense<2.0> : tensor<4x4xf32>
      %y = linalg.matvec ins(%w, %s : tensor<4x4xf32>, tensor<4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>"""
    one = weir.compile_text(text.format("addf", "", "s"), "one", "--target=vulkan")
    two = weir.compile_text(text.format("addf", more, "y"), "two", "--target=vulkan")
    swapped = weir.folder / "swapped.weir"
    with zipfile.ZipFile(one) as plan, zipfile.ZipFile(two) as graph, zipfile.ZipFile(swapped, "w") as out:
        for name in plan.namelist():
            out.writestr(zipfile.ZipInfo(name), (graph if name.startswith("ir/") else plan).read(name))
    assert check(weir, one)["passes"] and check(weir, two)["passes"]
    weir.run("run", swapped, "--random-inputs=1", "--check-values", status=2)
