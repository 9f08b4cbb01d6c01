"""A slice that goes into a donated argument is all that is written: no copy of the rest."""

import json
import zipfile

import numpy
import pytest
from safetensors.numpy import load_file, save_file

from edits import edit_plan, get_plan, run_checkers

HEAD = """%n = tensor.extract %k[] : tensor<i64>
    %p = arith.index_cast %n : i64 to index
    """
SUM = """%e{0} = arith.constant dense<0.0> : tensor<{1}xf32>
    %s{0} = linalg.reduce {{ arith.addf }} ins(%{0} : tensor<{1}x{2}xf32>) outs(%e{0} : tensor<{1}xf32>) dimensions = [1]
    """
PRODUCT = """%z = arith.constant dense<0.0> : tensor<{0}x{1}xf32>
    %a = linalg.matmul ins(%x, %w : tensor<{0}x8xf32>, tensor<8x{1}xf32>) outs(%z : tensor<{0}x{1}xf32>) -> tensor<{0}x{1}xf32>
    """


def row_at_runtime(rows, width, update="%c"):
    """A row of a product into a cache, at a place that data gives, and sums of the new cache."""
    cache = f"tensor<{rows}x{width}xf32>"
    return (f'%c: {cache} {{weir.name = "c", weir.donate}}, %x: tensor<1x8xf32>, %w: tensor<8x{width}xf32>, '
            "%k: tensor<i64>", [(cache, "r"), (f"tensor<{rows}xf32>", "sr")],
            HEAD + PRODUCT.format(1, width)
            + f"%r = tensor.insert_slice %a into {update}[%p, 0] [1, {width}] [1, 1] : tensor<1x{width}xf32> into {cache}\n    "
            + SUM.format("r", rows, width))


def insert(type, source, place, arguments="", before="", name="r"):
    return (f'%c: tensor<{type}> {{weir.name = "c", weir.donate}}, %x: tensor<{source}>{arguments}',
            [(f"tensor<{type}>", name)],
            before + f"%r = tensor.insert_slice %x into %c{place} : tensor<{source}> into tensor<{type}>\n    ")


AT = ", %k: tensor<i64>"
# Arguments, results, body, insertions.
GRAPHS = {
    "row": (*row_at_runtime(16, 64), 1),
    "odd_row": (*row_at_runtime(7, 13), 1),
    "wide_row": (*row_at_runtime(3, 1000), 1),
    # A tile of sums that begins before its turn, at a computed place.
    "rows_of_product": ('%c: tensor<16x77xf32> {weir.name = "c", weir.donate}, %x: tensor<5x8xf32>, '
                        "%w: tensor<8x77xf32>, %k: tensor<i64>", [("tensor<16x77xf32>", "r")],
                        HEAD + PRODUCT.format(5, 77) + "%r = tensor.insert_slice %a into %c[%p, 0] [5, 77] [1, 1] : "
                        "tensor<5x77xf32> into tensor<16x77xf32>\n    ", 1),
    "constant_place": (*insert("9x4xf32", "2x4xf32", "[3, 0] [2, 4] [1, 1]"), 1),
    "strided": (*insert("9x10xf32", "3x2xf32", "[1, 2] [3, 2] [3, 5]"), 1),
    "column_at_runtime": (*insert("6x11xf32", "6x1xf32", "[0, %p] [6, 1] [1, 1]", AT, HEAD), 1),
    "drops_dims": (*insert("3x5x8xf32", "8xf32", "[1, %p, 0] [1, 1, 8] [1, 1, 1]", AT, HEAD), 1),
    "element": (*insert("17xf32", "f32", "[%p] [1] [1]", AT, HEAD), 1),
    "f64": (*insert("8x4xf64", "1x4xf64", "[%p, 0] [1, 4] [1, 1]", AT, HEAD), 1),
    "f16": (*insert("8x4xf16", "1x4xf16", "[%p, 0] [1, 4] [1, 1]", AT, HEAD), 1),
    "i1": (*insert("8x4xi1", "1x4xi1", "[%p, 0] [1, 4] [1, 1]", AT, HEAD), 1),
    "i64": (*insert("5x3xi64", "5x1xi64", "[0, %p] [5, 1] [1, 1]", AT, HEAD), 1),
    "reshaped": ('%c: tensor<2x6x4xf32> {weir.donate}, %x: tensor<2x2xf32>, %k: tensor<i64>', [("tensor<2x6x4xf32>", "t")],
                 HEAD + """%d = tensor.collapse_shape %c [[0, 1], [2]] : tensor<2x6x4xf32> into tensor<12x4xf32>
    %y = linalg.exp ins(%x : tensor<2x2xf32>) outs(%x : tensor<2x2xf32>) -> tensor<2x2xf32>
    %z = tensor.collapse_shape %y [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
    %r = tensor.insert_slice %z into %d[%p, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<12x4xf32>
    %t = tensor.expand_shape %r [[0, 1], [2]] output_shape [2, 6, 4] : tensor<12x4xf32> into tensor<2x6x4xf32>
    """, 1),
    "twice": ('%c: tensor<9x4xf32> {weir.donate}, %x: tensor<1x4xf32>, %y: tensor<1x4xf32>, %k: tensor<i64>',
              [("tensor<9x4xf32>", "r"), ("tensor<9xf32>", "sr")],
              HEAD + """%q = tensor.insert_slice %x into %c[%p, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<9x4xf32>
    %r = tensor.insert_slice %y into %q[5, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<9x4xf32>
    """ + SUM.format("r", 9, 4), 2),
    "two_caches": ('%c: tensor<9x4xf32> {weir.donate}, %d: tensor<9x4xf32> {weir.donate}, %x: tensor<1x4xf32>, %k: tensor<i64>',
                   [("tensor<9x4xf32>", "r"), ("tensor<9x4xf32>", "t"), ("tensor<9x4xf32>", "u")],
                   HEAD + """%q = tensor.insert_slice %x into %c[%p, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<9x4xf32>
    %y = linalg.exp ins(%x : tensor<1x4xf32>) outs(%x : tensor<1x4xf32>) -> tensor<1x4xf32>
    %r = linalg.exp ins(%q : tensor<9x4xf32>) outs(%q : tensor<9x4xf32>) -> tensor<9x4xf32>
    %b = tensor.collapse_shape %q [[0, 1]] : tensor<9x4xf32> into tensor<36xf32>
    %u = tensor.expand_shape %b [[0, 1]] output_shape [9, 4] : tensor<36xf32> into tensor<9x4xf32>
    %t = tensor.insert_slice %y into %d[%p, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<9x4xf32>
    """, 2),
    # One in place, one not, at the same place.
    "one_of_two": ('%c: tensor<9x4xf32> {weir.donate}, %d: tensor<9x4xf32>, %x: tensor<1x4xf32>, %k: tensor<i64>',
                   [("tensor<9x4xf32>", "r"), ("tensor<9x4xf32>", "t")],
                   HEAD + """%r = tensor.insert_slice %x into %c[%p, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<9x4xf32>
    %t = tensor.insert_slice %x into %d[%p, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<9x4xf32>
    """, 1),
    # Not in place: what is inserted into is not given away, read by others, or no result;
    # what is inserted is all of it.
    "kept": (row_at_runtime(16, 64)[0].replace(", weir.donate", ""), *row_at_runtime(16, 64)[1:], 0),
    "read": (row_at_runtime(16, 64)[0], row_at_runtime(16, 64)[1] + [("tensor<16xf32>", "sc")],
             row_at_runtime(16, 64)[2] + SUM.format("c", 16, 64), 0),
    "no_result": (row_at_runtime(16, 64)[0], [("tensor<16xf32>", "sr")], row_at_runtime(16, 64)[2], 0),
    "whole": (*insert("4x3xf32", "4x3xf32", "[0, 0] [4, 3] [1, 1]"), 0),
}
# The cache is written by the kernel that computes the row, or its last part.
DISPATCHES = {"row": 2, "twice": 3}


def get_text(name):
    arguments, results, body, _ = GRAPHS[name]
    types = [f'{type} {{weir.name = "c"}}' if i == 0 else type for i, (type, _) in enumerate(results)]
    values = ", ".join(f"%{value}" for _, value in results)
    return (f"func.func @f({arguments}) -> ({', '.join(types)}) {{\n    {body}return {values} : "
            f"{', '.join(type for type, _ in results)}\n}}\n")


def get_insertions(plan):
    return [operand for command in plan["commands"] for operand in command.get("operands", []) if len(operand) == 6]


@pytest.mark.parametrize("profile", [{}, {"vector_width": 1}, {"max_loop_trips": 60, "max_grid": [3, 5, 65535]},
                                     {"row_mapping": "workgroup", "workgroup_size": 16}])
@pytest.mark.parametrize("name", GRAPHS)
def test_insertion(weir, name, profile):
    flags = [f"--target=vulkan:{weir.profile(**profile)}"] if profile else []
    artifact = weir.compile_text(get_text(name), "a", *flags)
    weir.compare(artifact, ["--random-inputs=7"], 1e-6, validated=True)
    plan = get_plan(artifact)
    assert len(get_insertions(plan)) == GRAPHS[name][3]
    if name in DISPATCHES and not profile:
        assert sum(command["command"] == "dispatch" for command in plan["commands"]) == DISPATCHES[name]
    # Everything is proved from the code: that one invocation's element is no other's, too. Only
    # whether one row is the other is a matter of the data.
    taken = [claim["claim"] for claim in json.loads(weir.run("verify", artifact, "--json"))["claims"] if claim["taken_from_compiler"]]
    assert taken == (["needs"] if name == "twice" else [])
    weir.run("run", artifact, "--random-inputs=7", "--check-values")


@pytest.mark.parametrize("name", ["row", "odd_row", "reshaped", "twice"])
@pytest.mark.parametrize("at", [0, 3, 4, -5, 2**40])
def test_places_are_clamped(weir, name, at):
    artifact = weir.compile_text(get_text(name))
    with zipfile.ZipFile(artifact) as archive:
        arguments = json.loads(archive.read("manifest.json"))["entries"][0]["arguments"]
    random = numpy.random.default_rng(3)
    inputs = {a["name"]: numpy.array(at) if a["dtype"] == "I64" else
              random.standard_normal(a["shape"]).astype(numpy.float32) for a in arguments}
    save_file(inputs, weir.folder / "in.safetensors")
    weir.compare(artifact, ["--input=in.safetensors"], 1e-6)


def test_runs_carry_the_cache_over(weir):
    """Every run writes one more row of the buffer that it is given."""
    artifact = weir.compile_text(get_text("row"))
    outputs = []
    for device in "vulkan", "reference", "sim":
        weir.run("run", artifact, f"--device={device}", "--random-inputs=5", "--steps=4",
                 f"--output={device}.safetensors")
        outputs.append(load_file(weir.folder / f"{device}.safetensors"))
    for output in outputs[1:]:
        assert numpy.allclose(output["c"], outputs[0]["c"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["row", "twice"])
def test_pinned_has_the_same_bits(weir, name):
    files = []
    for artifact in weir.compile_text(get_text(name)), weir.compile_text(get_text(name), "b", "--no-reuse"):
        weir.run("run", artifact, "--random-inputs=5", f"--output={artifact}.out")
        files.append((weir.folder / f"{artifact}.out").read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("wrong", ["before", "value", "order"])
def test_both_checkers_see_a_wrong_insertion(weir, wrong):
    """Into a value that the bytes don't hold, or of which a reader wants the one before."""
    artifact = weir.compile_text(get_text("twice"))
    plan = get_plan(artifact)
    first, second = get_insertions(plan)
    if wrong == "before":
        second[5] = first[5]
    elif wrong == "value":
        first[3] = second[3]
    else:
        del first[5]
    edited = weir.folder / "edited.weir"
    edit_plan(edited, artifact, plan)
    for done in run_checkers(edited):
        assert done.returncode == 1 and "contents" in done.stdout + done.stderr, done.stdout + done.stderr
