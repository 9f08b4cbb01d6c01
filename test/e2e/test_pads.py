"""Kernels that make what is padded write the padding, too."""

import json

import numpy
import pytest

from edits import edit_plan, get_plan, run_checkers

# %z is 0.0; each gives a tensor of the name and shape.
PRODUCT = """%i{0} = arith.constant dense<0.0> : tensor<{2}xf32>
    %{0} = linalg.matmul ins(%{1}, %w{0} : tensor<{3}xf32>, tensor<{4}xf32>) outs(%i{0} : tensor<{2}xf32>) -> tensor<{2}xf32>
    """
CONV = """%i{0} = arith.constant dense<0.0> : tensor<{2}xf32>
    %{0} = linalg.conv_2d_nchw_fchw ins(%{1}, %w{0} : tensor<{3}xf32>, tensor<{4}xf32>) outs(%i{0} : tensor<{2}xf32>) -> tensor<{2}xf32>
    """
TANH = """%i{0} = tensor.empty() : tensor<{2}xf32>
    %{0} = linalg.tanh ins(%{1} : tensor<{2}xf32>) outs(%i{0} : tensor<{2}xf32>) -> tensor<{2}xf32>
    """
SUMS = """%i{0} = arith.constant dense<0.0> : tensor<{2}xf32>
    %{0} = linalg.reduce {{ arith.addf }} ins(%{1} : tensor<{3}xf32>) outs(%i{0} : tensor<{2}xf32>) dimensions = [{4}]
    """
ADD = """%i{0} = tensor.empty() : tensor<{2}xf32>
    %{0} = linalg.add ins(%{1} : tensor<{2}xf32>, tensor<{2}xf32>) outs(%i{0} : tensor<{2}xf32>) -> tensor<{2}xf32>
    """
SPREAD = """%i{0} = arith.constant dense<{5}> : tensor<{2}xf32>
    %{0} = tensor.insert_slice %{1} into %i{0}{4} : tensor<{3}xf32> into tensor<{2}xf32>
    """


def pad(name, source, to, from_, low, value="%z"):
    """High pads follow from the shapes."""
    high = [t - f - l for t, f, l in zip(map(int, to.split("x")), map(int, from_.split("x")), low)]
    indices = ", ".join(f"%k{dim}: index" for dim in range(len(low)))
    return f"""%{name} = tensor.pad %{source} low{low} high{high} {{
    ^bb0({indices}):
      tensor.yield {value} : f32
    }} : tensor<{from_}xf32> to tensor<{to}xf32>
    """


def conv(name, source, to, from_, weights):
    return CONV.format(name, source, to, from_, weights)


NET = "%x: tensor<2x3x9x11xf32>, %wa: tensor<5x3x3x3xf32>, %wb: tensor<4x5x3x3xf32>"
LAYER = conv("a", "x", "2x5x7x9", "2x3x9x11", "5x3x3x3")
PADDED = pad("p", "t", "2x5x9x11", "2x5x7x9", [0, 0, 1, 1])

# Arguments, results, body; dispatches, and how many of them write padding.
GRAPHS = {
    "two_layers": (NET, [("2x4x7x9", "b")], LAYER + TANH.format("t", "a", "2x5x7x9") + PADDED
                   + conv("b", "p", "2x4x7x9", "2x5x9x11", "4x5x3x3"), 2, 1),
    # What is padded is a result, too, or what it is computed from: both are written.
    "read_besides": (NET, [("2x4x7x9", "b"), ("2x5x7x9", "t"), ("2x5x7x9", "a")], LAYER + TANH.format("t", "a", "2x5x7x9") + PADDED
                     + conv("b", "p", "2x4x7x9", "2x5x9x11", "4x5x3x3"), 2, 1),
    # A transposed convolution with strides: what is padded is not spread, and the weights get a zero.
    "transposed": (NET.replace("4x5x3x3", "4x5x2x3"), [("2x4x14x18", "b")], LAYER
                   + SPREAD.format("p", "a", "2x5x15x20", "2x5x7x9", "[0, 0, 1, 2] [2, 5, 7, 9] [1, 1, 2, 2]", "0.0")
                   + conv("b", "p", "2x4x14x18", "2x5x15x20", "4x5x2x3"), 3, 1),
    # Around every element, of something else than zero.
    "spread": (NET.replace("4x5x3x3", "4x5x2x3"), [("2x4x14x18", "b")], LAYER
               + SPREAD.format("p", "a", "2x5x15x20", "2x5x7x9", "[0, 0, 1, 2] [2, 5, 7, 9] [1, 1, 2, 2]", "0.5")
               + conv("b", "p", "2x4x14x18", "2x5x15x20", "4x5x2x3"), 2, 1),
    "product": ("%x: tensor<7x8xf32>, %wa: tensor<8x13xf32>", [("10x16", "p")], PRODUCT.format("a", "x", "7x13", "7x8", "8x13")
                + "%two = arith.constant 2.5 : f32\n    " + pad("p", "a", "10x16", "7x13", [3, 2], "%two"), 1, 1),
    "rows": ("%x: tensor<5x7x40xf32>", [("9x8", "p")], SUMS.format("a", "x", "5x7", "5x7x40", 2) + pad("p", "a", "9x8", "5x7", [0, 1]), 1, 1),
    "columns": ("%x: tensor<9x5x8xf32>", [("6x9", "p")], SUMS.format("a", "x", "5x8", "9x5x8", 0) + pad("p", "a", "6x9", "5x8", [1, 0]), 2, 1),
    "one": ("%x: tensor<40xf32>", [("1x300", "p")], SUMS.format("s", "x", "", "40", 0).replace("<xf32>", "<f32>")
            + "%a = tensor.expand_shape %s [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>\n    "
            + pad("p", "a", "1x300", "1x1", [0, 257]), 1, 1),
    "joined": ("%x: tensor<2x6x40xf32>", [("15", "p")], SUMS.format("a", "x", "2x6", "2x6x40", 2)
               + "%j = tensor.collapse_shape %a [[0, 1]] : tensor<2x6xf32> into tensor<12xf32>\n    " + pad("p", "j", "15", "12", [2]), 1, 1),
    "map_read": ("%x: tensor<5x3xf32>", [("8x3", "p"), ("5x3", "t")], TANH.format("t", "x", "5x3") + pad("p", "t", "8x3", "5x3", [1, 0]), 1, 1),
    # The twins: who reads the padding point by point computes it, and what is an argument is gathered.
    "read_by_points": ("%x: tensor<7x8xf32>, %wa: tensor<8x13xf32>, %y: tensor<9x13xf32>", [("9x13", "r")],
                       PRODUCT.format("a", "x", "7x13", "7x8", "8x13") + pad("p", "a", "9x13", "7x13", [1, 0]) + ADD.format("r", "p, %y", "9x13"), 2, 0),
    "argument": ("%x: tensor<1x3x9x11xf32>, %wa: tensor<5x3x3x3xf32>", [("1x5x9x11", "a")],
                 pad("p", "x", "1x3x11x13", "1x3x9x11", [0, 0, 1, 1]) + conv("a", "p", "1x5x9x11", "1x3x11x13", "5x3x3x3"), 2, 0),
}
PROFILES = [{}, {"vector_width": 1, "max_loop_trips": 60, "max_grid": [3, 5, 65535]},
            {"offset_alignment": 256, "row_mapping": "workgroup", "workgroup_size": 16}]


def get_text(name):
    arguments, results, body = GRAPHS[name][:3]
    types = ", ".join(f"tensor<{type}xf32>" for type, _ in results)
    return (f"func.func @f({arguments}) -> ({types}) {{\n    %z = arith.constant 0.0 : f32\n    {body}"
            f"return {', '.join('%' + v for _, v in results)} : {types}\n}}\n")


def get_taken(weir, artifact):
    """Returns the claims that rely on the compiler."""
    claims = json.loads(weir.run("verify", artifact, "--json"))["claims"]
    assert all(claim["holds"] for claim in claims)
    return [claim["detail"] for claim in claims if claim["taken_from_compiler"]]


def count_padding(weir):
    kernels = weir.run("compile", weir.folder / "a.mlir", "--stop-after=kernels", "-o", "-")
    return kernels.count("tensor.insert_slice")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", GRAPHS)
def test_pad(weir, name, profile):
    flags = [f"--target=vulkan:{weir.profile(**profile)}"] if profile else []
    text = get_text(name)
    artifact = weir.compile_text(text, "a", *flags)
    weir.compare(artifact, ["--random-inputs=7"], 1e-5, validated=True)
    if not profile:
        dispatches = [command for command in get_plan(artifact)["commands"] if command["command"] == "dispatch"]
        assert (len(dispatches), count_padding(weir)) == GRAPHS[name][3:]
    # Of loops cut in pieces it is not known where they read.
    taken = [fact for fact in get_taken(weir, artifact) if not (profile and "bounds of operand 0" in fact)]
    assert not taken
    weir.run("run", artifact, "--random-inputs=7", "--check-values")


@pytest.mark.parametrize("type, value", [("i1", "true"), ("i8", "-7"), ("i32", "100000"), ("i64", "-5000000000"), ("f16", "-2.5"),
                                         ("bf16", "0xFF80"), ("f64", "1.0e-300")])
def test_types(weir, type, value):
    """The padding is the constant, whatever the type."""
    text = f"""func.func @f(%x: tensor<3x5x{type}>) -> (tensor<4x9x{type}>, tensor<3x5x{type}>) {{
  %c = arith.constant {value + (" : " + type if type != "i1" else "")}
  %e = tensor.empty() : tensor<3x5x{type}>
  %t = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%x : tensor<3x5x{type}>) outs(%e : tensor<3x5x{type}>) {{
  ^bb0(%a: {type}, %o: {type}):
    %b = {"arith.addf" if "f" in type else "arith.xori"} %a, %a : {type}
    linalg.yield %b : {type}
  }} -> tensor<3x5x{type}>
  %p = tensor.pad %t low[1, 2] high[0, 2] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %c : {type}
  }} : tensor<3x5x{type}> to tensor<4x9x{type}>
  return %p, %t : tensor<4x9x{type}>, tensor<3x5x{type}>
}}
"""
    artifact = weir.compile_text(text)
    assert count_padding(weir) == 1
    expected, output = weir.folder / "e.safetensors", weir.folder / "o.safetensors"
    weir.run("run", artifact, "--device=reference", "--random-inputs=3", f"--output={expected}")
    weir.run("run", artifact, "--random-inputs=3", f"--output={output}", validated=True)
    assert expected.read_bytes() == output.read_bytes()
    weir.simulate(artifact, ["--random-inputs=3"], output)


def make_random(seed):
    """A reduction of a random shape, padded or spread at random places, read in windows or returned."""
    random = numpy.random.default_rng(seed)
    pick = lambda *numbers: int(random.choice(numbers))
    rank = pick(1, 2, 2, 3, 3, 4)
    shape = [pick(1, 2, 3, 5) if dim < rank - 2 else pick(1, 2, 3, 4, 7, 8, 11, 17, 33) for dim in range(rank)]
    reduced = pick(1, 5, 8, 40)
    whole = shape + [reduced] if random.random() < 0.5 else [reduced] + shape
    x = lambda numbers: "x".join(map(str, numbers))
    body = SUMS.format("a", "x", x(shape), x(whole), rank if whole[-1] == reduced and whole[:-1] == shape else 0)
    results, source = [], "a"
    if random.random() < 0.4:
        body += TANH.format("t", "a", x(shape))
        source = "t"
        results += [(x(shape), "a")] if random.random() < 0.5 else []
    low = [pick(0, 0, 1, 2, 3) for _ in shape]
    strides = [pick(1, 1, 2, 3) for _ in shape]
    to = [l + (s - 1) * k + 1 + pick(0, 0, 1, 4) for l, s, k in zip(low, shape, strides)]
    body += SPREAD.format("p", source, x(to), x(shape), f"{low} {shape} {strides}", pick(0, 3) / 2)
    if random.random() < 0.4:
        loops = ", ".join(f"d{dim}" for dim in range(rank + 1))
        taps = min(2, to[-1])
        windows = to[:-1] + [to[-1] - taps + 1]
        read = ", ".join([f"d{dim}" for dim in range(rank - 1)] + [f"d{rank - 1} + d{rank}"])
        body += f"""%taps = tensor.empty() : tensor<{taps}xf32>
    %none = arith.constant dense<0.0> : tensor<{x(windows)}xf32>
    %q = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({read})>, affine_map<({loops}) -> (d{rank})>,
        affine_map<({loops}) -> ({", ".join(f"d{dim}" for dim in range(rank))})>],
        iterator_types = [{", ".join(['"parallel"'] * rank + ['"reduction"'])}]}}
        ins(%p, %taps : tensor<{x(to)}xf32>, tensor<{taps}xf32>) outs(%none : tensor<{x(windows)}xf32>) {{
    ^bb0(%v: f32, %w: f32, %o: f32):
      %s = arith.addf %o, %v : f32
      linalg.yield %s : f32
    }} -> tensor<{x(windows)}xf32>
    """
        results.append((x(windows), "q"))
    else:
        results.append((x(to), "p"))
    types = ", ".join(f"tensor<{type}xf32>" for type, _ in results)
    return (f"func.func @f(%x: tensor<{x(whole)}xf32>) -> ({types}) {{\n    {body}"
            f"return {', '.join('%' + value for _, value in results)} : {types}\n}}\n")


@pytest.mark.parametrize("seed", range(40))
def test_random(weir, seed):
    """All of what is written is proved from the code, and races are ruled out, whatever the shape."""
    profile = PROFILES[seed % 3]
    flags = [f"--target=vulkan:{weir.profile(**profile)}"] if profile else []
    artifact = weir.compile_text(make_random(seed), "a", *flags)
    weir.compare(artifact, [f"--random-inputs={seed}"], 1e-5)
    assert not get_taken(weir, artifact)


@pytest.mark.parametrize("covers", [False, True])
def test_both_checkers_see_what_covers_less(weir, covers):
    """Were the slice all that is written, the rest would hold whatever was there."""
    artifact = weir.compile_text(get_text("product"))
    plan = get_plan(artifact)
    operand = plan["kernels"][0]["operands"][2]
    # 7 rows of 13 elements behind 3 rows of 16 and 2 elements.
    operand |= {"covers_all": covers, "slice": [200, 52, 64, 7]}
    edited = weir.folder / "edited.weir"
    edit_plan(edited, artifact, plan)
    for done in run_checkers(edited):
        assert done.returncode != 0 and any(word in done.stdout + done.stderr for word in ("contents", "slice")), done


@pytest.mark.parametrize("name", ["two_layers", "spread"])
def test_other_targets_and_limits(weir, name):
    weir.compile_text(get_text(name), "a", "--target=vulkan,cuda")
    artifact = weir.compile_text(get_text(name), "b", f"--target=vulkan:{weir.profile(queues=2)}", "--memory-limit=1000000")
    weir.compare(artifact, ["--random-inputs=3"], 1e-5, validated=True)
