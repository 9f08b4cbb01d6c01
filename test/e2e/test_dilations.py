"""Transposed convolutions and gradients of strided ones: no tensor is dilated, and the numbers are those of one that is."""

import json
import re

import numpy
import pytest


def tensor(shape):
    return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"


def list_loops(letter, dims):
    return [f"{letter}{dim}" for dim in range(dims)]


def write_op(name, loops, reads, writes, inputs, result, start):
    """A sum of products over `loops`; those that `writes` lacks are summed."""
    kinds = ", ".join('"parallel"' if loop in writes else '"reduction"' for loop in loops)
    maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(places)})>" for places in [*reads, writes])
    return f"""
  %{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({", ".join(value for value, _ in inputs)} : {", ".join(tensor(shape) for _, shape in inputs)})
      outs({start} : {tensor(result)}) {{
  ^bb0(%left: f32, %right: f32, %before: f32):
    %product = arith.mulf %left, %right : f32
    %sum = arith.addf %before, %product : f32
    linalg.yield %sum : f32
  }} -> {tensor(result)}"""


def write_transposed(batch, groups, channels, filters, sizes, taps, strides, dilations, pads, extra, onto):
    """As torch-mlir has it: zeros in between and around, weights from their end."""
    dims = len(sizes)
    before = [d * (k - 1) - p for d, k, p in zip(dilations, taps, pads)]
    spread = [max(b, 0) * 2 + (size - 1) * s + 1 + e for b, size, s, e in zip(before, sizes, strides, extra)]
    cut = [size + 2 * min(b, 0) for b, size in zip(before, spread)]
    results = [size - d * (k - 1) for size, d, k in zip(cut, dilations, taps)]
    shapes = {"x": [batch, groups, channels, *sizes], "w": [groups, channels, filters, *taps],
              "v": [groups, filters, channels, *taps], "z": [batch, groups, channels, *spread],
              "c": [batch, groups, channels, *cut], "y": [batch, groups, filters, *results], "b": [groups, filters]}
    t = {name: tensor(shape) for name, shape in shapes.items()}
    o, k = list_loops("o", dims), list_loops("k", dims)
    flip = ", ".join(["g", "c", "f"] + [f"{size - 1} - {loop}" for size, loop in zip(taps, k)])
    loops = ["n", "g", "f", *o, "c", *k]
    bias = f"""
  %start = linalg.broadcast ins(%b : {t["b"]}) outs(%e : {t["y"]}) dimensions = [0, {", ".join(str(3 + i) for i in range(dims))}]"""
    conv = write_op("y", loops, [["n", "g", "c", *(f"{i} + {j} * {d}" for i, j, d in zip(o, k, dilations))], ["g", "f", "c", *k]],
                    ["n", "g", "f", *o], [("%c", shapes["c"]), ("%v", shapes["v"])], shapes["y"], "%start" if onto else "%zero")
    return f"""
func.func @f(%x: {t["x"]}, %w: {t["w"]}{f', %b: {t["b"]}' if onto else ""}) -> {t["y"]} {{
  %ve = tensor.empty() : {t["v"]}
  %v = linalg.generic {{indexing_maps = [affine_map<({", ".join(["g", "f", "c", *k])}) -> ({flip})>,
      affine_map<({", ".join(["g", "f", "c", *k])}) -> ({", ".join(["g", "f", "c", *k])})>],
      iterator_types = [{", ".join(['"parallel"'] * (3 + dims))}]}} ins(%w : {t["w"]}) outs(%ve : {t["v"]}) {{
  ^bb0(%weight: f32, %before: f32):
    linalg.yield %weight : f32
  }} -> {t["v"]}
  %zeros = arith.constant dense<0.0> : {t["z"]}
  %d = tensor.insert_slice %x into %zeros[0, 0, 0, {", ".join(str(max(b, 0)) for b in before)}] {shapes["x"]} [1, 1, 1, {", ".join(map(str, strides))}]
      : {t["x"]} into {t["z"]}
  %c = tensor.extract_slice %d[0, 0, 0, {", ".join(str(max(-b, 0)) for b in before)}] {shapes["c"]} {[1] * (3 + dims)} : {t["z"]} to {t["c"]}
  %e = tensor.empty() : {t["y"]}
  %zero = arith.constant dense<0.0> : {t["y"]}{bias if onto else ""}{conv}
  %th = linalg.tanh ins(%y : {t["y"]}) outs(%e : {t["y"]}) -> {t["y"]}
  return %th : {t["y"]}
}}"""


def write_strided(batch, groups, channels, filters, sizes, taps, strides, dilations, pads, extra, onto):
    dims = len(sizes)
    padded = [size + 2 * p + e for size, p, e in zip(sizes, pads, extra)]
    results = [(size - d * (k - 1) - 1) // s + 1 for size, d, k, s in zip(padded, dilations, taps, strides)]
    shapes = {"x": [batch, groups, channels, *sizes], "w": [groups, filters, channels, *taps],
              "p": [batch, groups, channels, *padded], "y": [batch, groups, filters, *results]}
    t = {name: tensor(shape) for name, shape in shapes.items()}
    o, k = list_loops("o", dims), list_loops("k", dims)
    low, high = [0, 0, 0, *pads], [0, 0, 0, *(p + e for p, e in zip(pads, extra))]
    # A second reader of x adds to its gradient.
    more = f"""
  %xe = tensor.empty() : {t["x"]}
  %x2 = linalg.exp ins(%x : {t["x"]}) outs(%xe : {t["x"]}) -> {t["x"]}""" if onto else ""
    conv = write_op("y", ["n", "g", "f", *o, "c", *k],
                    [["n", "g", "c", *(f"{i} * {s} + {j} * {d}" for i, j, s, d in zip(o, k, strides, dilations))], ["g", "f", "c", *k]],
                    ["n", "g", "f", *o], [("%p", shapes["p"]), ("%w", shapes["w"])], shapes["y"], "%zero")
    return f"""
func.func @f(%x: {t["x"]}, %w: {t["w"]}) -> ({t["y"]}{f', {t["x"]}' if onto else ""}) {{
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %x low{low} high{high} {{
  ^bb0({", ".join(f"%i{dim}: index" for dim in range(3 + dims))}):
    tensor.yield %z : f32
  }} : {t["x"]} to {t["p"]}
  %zero = arith.constant dense<0.0> : {t["y"]}{conv}
  %e = tensor.empty() : {t["y"]}
  %th = linalg.tanh ins(%y : {t["y"]}) outs(%e : {t["y"]}) -> {t["y"]}{more}
  return %th{", %x2" if onto else ""} : {t["y"]}{f', {t["x"]}' if onto else ""}
}}"""


# batch, groups, channels, filters; sizes, taps, strides, dilations, pads, what is more at the end; onto something.
CASES = {
    "alexnet": (2, 1, 3, 8, [23, 27], [11, 11], [4, 4], [1, 1], [2, 2], [0, 0], False),
    "stem": (2, 1, 3, 4, [14, 16], [7, 7], [2, 2], [1, 1], [3, 3], [0, 0], False),
    "depthwise": (2, 5, 1, 1, [9, 8], [3, 3], [2, 2], [1, 1], [1, 1], [0, 1], False),
    "grouped": (2, 2, 3, 4, [7, 9], [3, 2], [2, 3], [1, 1], [1, 0], [1, 0], True),
    "one_tap": (2, 1, 3, 4, [7, 8], [1, 1], [2, 3], [1, 1], [0, 0], [0, 0], True),
    "fewer_taps_than_stride": (2, 1, 2, 3, [11], [2], [5], [1], [1], [3], False),
    "one_strided_dimension": (2, 1, 3, 4, [6, 9], [3, 3], [1, 2], [1, 1], [1, 1], [0, 0], False),
    "common_divisor": (2, 1, 3, 2, [13], [3], [4], [2], [2], [1], False),
    "dilated_by_the_stride": (2, 1, 3, 2, [13, 12], [3, 2], [2, 2], [2, 4], [2, 0], [0, 0], True),
    "dilated_by_another": (2, 1, 3, 2, [17], [4], [2], [3], [0], [0], False),
    "six_by_four": (2, 1, 2, 2, [19], [5], [6], [4], [1], [2], True),
    "volume": (1, 1, 2, 3, [5, 7, 6], [3, 2, 4], [2, 3, 2], [1, 1, 1], [1, 0, 2], [0, 0, 0], False),
    "one_result": (2, 1, 3, 4, [3, 5], [3, 3], [4, 2], [1, 1], [0, 0], [0, 0], False),
    "wide_padding": (2, 1, 3, 4, [6, 7], [2, 3], [2, 2], [1, 1], [2, 3], [0, 0], False),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("write", [write_strided, write_transposed])
def test_like_the_dilated(weir, name, write):
    text = write(*CASES[name])
    artifact = weir.compile_text(text, "a", "--vjp=f")
    weir.compare(artifact, ["--entry=f", "--random-inputs=3"], 2e-5)  # against the text, as it is written
    weir.compare(artifact, ["--entry=f.vjp", "--random-inputs=3"], 2e-5)
    report = json.loads(weir.run("gradcheck", "a.mlir", "--entry=f", "--json"))
    assert all(row["error"] < 1e-7 and row["gradient"] != 0 for row in report["arguments"])
    claims = json.loads(weir.run("verify", artifact, "--json"))["claims"]
    assert all(claim["holds"] for claim in claims)


@pytest.mark.parametrize("seed", range(12))
def test_random(weir, seed):
    random = numpy.random.default_rng(seed)
    pick = lambda *numbers: int(random.choice(numbers))
    dims = pick(1, 1, 2)
    spread = lambda *numbers: [pick(*numbers) for _ in range(dims)]
    taps, strides, dilations = spread(1, 2, 3, 4, 5), spread(1, 2, 3, 4), spread(1, 1, 2, 3)
    sizes = [d * (k - 1) + 1 + pick(0, 1, 3, 4) for d, k in zip(dilations, taps)]
    pads = [pick(0, 0, 1, k - 1) for k in taps]
    text = [write_strided, write_transposed][seed % 2](pick(1, 2), pick(1, 2), pick(1, 3), pick(1, 2, 3), sizes, taps, strides,
                                                       dilations, pads, spread(0, 1), bool(pick(0, 1)))
    artifact = weir.compile_text(text, "a", "--vjp=f")
    weir.compare(artifact, ["--entry=f", "--random-inputs=3"], 2e-5)
    weir.compare(artifact, ["--entry=f.vjp", "--random-inputs=3"], 2e-5)
    report = json.loads(weir.run("gradcheck", "a.mlir", "--entry=f", "--json"))
    assert all(row["error"] < 1e-7 for row in report["arguments"])


def test_no_tap_no_gradient(weir):
    """Elements that no tap reaches have gradient 0 exactly, also beside an infinite cotangent."""
    from safetensors.numpy import load_file, save_file
    text = write_strided(1, 1, 2, 3, [11], [2], [5], [1], [0], [0], False).replace("linalg.tanh", "linalg.negf")
    artifact = weir.compile_text(text, "a", "--vjp=f")
    save_file({"arg0": numpy.ones((1, 1, 2, 11), "f4"), "arg1": numpy.ones((1, 3, 2, 2), "f4"),
               "cotangent.result0": numpy.array([[[[1, numpy.inf]] * 3]], "f4")}, weir.folder / "in.safetensors")
    weir.run("run", artifact, "--entry=f.vjp", "--input=in.safetensors", "--output=out.safetensors")
    gradient = load_file(weir.folder / "out.safetensors")["grad.arg0"][0, 0]
    expected = [-3, -3, 0, 0, 0, -numpy.inf, -numpy.inf, 0, 0, 0, 0]
    assert (gradient == numpy.array([expected, expected], "f4")).all()


def test_no_tensor_is_dilated(weir):
    """AlexNet's first layer: the cotangent with zeros in between would be 696 MB."""
    text = write_strided(32, 1, 3, 96, [224, 224], [11, 11], [4, 4], [1, 1], [2, 2], [0, 0], False)
    (weir.folder / "alexnet.mlir").write_text(text)
    kernels = weir.run("compile", "alexnet.mlir", "--vjp=f", "--stop-after=kernels", "-o", "-")
    sizes = [numpy.prod([int(size) for size in shape.split("x")[:-1]], dtype=int) for shape in re.findall(r"tensor<([\dx]+f32)>", kernels)]
    assert max(sizes) * 4 < 50e6


PADDED = """
  %v = arith.constant 0.25 : f32
  %p = tensor.pad %x low[1, 0, 0] high[5, 0, 5] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %v : f32
  } : tensor<2x1x1xf32> to tensor<8x1x6xf32>
  %s = tensor.extract_slice %p[0, 0, 0] [3, 1, 6] [3, 1, 1] : tensor<8x1x6xf32> to tensor<3x1x6xf32>"""


def test_the_gradient_reads_a_part_of_the_cotangent(weir):
    """Of a strided slice of a tensor that was padded: of its rows' 6 elements one has a gradient."""
    text = f"""
func.func @f(%x: tensor<2x1x1xf32>) -> tensor<3x1x6xf32> {{{PADDED}
  %e = tensor.empty() : tensor<3x1x6xf32>
  %th = linalg.exp ins(%s : tensor<3x1x6xf32>) outs(%e : tensor<3x1x6xf32>) -> tensor<3x1x6xf32>
  return %th : tensor<3x1x6xf32>
}}"""
    artifact = weir.compile_text(text, "a", "--vjp=f")
    weir.compare(artifact, ["--entry=f.vjp", "--random-inputs=3"], 2e-5)
    report = json.loads(weir.run("gradcheck", "a.mlir", "--entry=f", "--json"))
    assert all(row["error"] < 1e-7 for row in report["arguments"])


def test_beside_another_reader_the_gradient_reads_a_part_of_the_cotangent(weir):
    text = f"""
func.func @f(%x: tensor<2x1x1xf32>) -> (tensor<2x1x1xf32>, tensor<3x1x6xf32>) {{{PADDED}
  return %x, %s : tensor<2x1x1xf32>, tensor<3x1x6xf32>
}}"""
    artifact = weir.compile_text(text, "a", "--vjp=f")
    weir.compare(artifact, ["--entry=f.vjp", "--random-inputs=3"], 2e-5)
