"""Contractions of all forms, of sizes that tiles divide and of sizes that they don't."""

import itertools

import pytest

from conftest import list_isas

# Factors by form, in the loops (b, i, j, k): batch, row, column, product.
FORMS = {"nn": ("b, i, k", "b, k, j"), "nt": ("b, i, k", "b, j, k"), "tn": ("b, k, i", "b, k, j"),
         "tt": ("b, k, i", "b, j, k")}
# Batches, rows, columns, products: of whole tiles, of parts of one, of primes, of one product, of none.
SIZES = [(1, 64, 64, 48), (1, 70, 100, 34), (2, 37, 41, 13), (3, 2, 3, 1), (1, 5, 6, 0), (2, 34, 7, 50), (1, 3, 150, 8)]


def make_graph(form, batches, rows, columns, products):
    """tanh(bias + (2 a) b), whose prologue and epilogue belong to the contraction's kernel."""
    size = {"b": batches, "i": rows, "j": columns, "k": products}
    a, b = (f"tensor<{'x'.join(str(size[dim]) for dim in dims.split(', '))}xf32>" for dims in FORMS[form])
    c, row = f"tensor<{batches}x{rows}x{columns}xf32>", f"tensor<{columns}xf32>"
    whole = "affine_map<(d0, d1, d2) -> (d0, d1, d2)>"
    maps = ", ".join(f"affine_map<(b, i, j, k) -> ({dims})>" for dims in (*FORMS[form], "b, i, j"))
    return f"""func.func @f(%a: {a}, %b: {b}, %bias: {row}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %ea = tensor.empty() : {a}
  %ec = tensor.empty() : {c}
  %zeros = linalg.fill ins(%zero : f32) outs(%ec : {c}) -> {c}
  %twice = linalg.generic {{indexing_maps = [{whole}, {whole}], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%a : {a}) outs(%ea : {a}) {{
  ^bb0(%x: f32, %o: f32):
    %r = arith.mulf %x, %two : f32
    linalg.yield %r : f32
  }} -> {a}
  %sums = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%twice, %b : {a}, {b}) outs(%zeros : {c}) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  }} -> {c}
  %result = linalg.generic {{indexing_maps = [{whole}, affine_map<(d0, d1, d2) -> (d2)>, {whole}],
                            iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%sums, %bias : {c}, {row}) outs(%ec : {c}) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %r = math.tanh %s : f32
    linalg.yield %r : f32
  }} -> {c}
  return %result : {c}
}}
"""


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: "x".join(map(str, sizes)))
@pytest.mark.parametrize("form", FORMS)
def test_contraction(weir, form, sizes):
    artifact = weir.compile_text(make_graph(form, *sizes))
    assert weir.inspect(artifact)["plans"][0]["dispatches"] == 1
    weir.compare(artifact, ["--random-inputs=1"], 2e-5)


# Tiles of a GPU, and of one row, one column and no vectors.
@pytest.mark.parametrize("changes", [{"contraction_rows": 8, "words64": False, "workgroup_size": 64},
                                     {"contraction_rows": 1, "contraction_columns": 1, "vector_width": 1}],
                         ids=["narrow", "scalars"])
def test_tiles_do_not_change_bits(weir, changes):
    text = make_graph("nt", 2, 37, 42, 34)
    outputs = []
    for name, flags in {"own": [], "changed": [f"--target=vulkan:{weir.profile(**changes)}"]}.items():
        artifact = weir.compile_text(text, name, *flags)
        outputs.append(weir.compare(artifact, ["--random-inputs=1"], 2e-5).read_bytes())
    assert outputs[0] == outputs[1]


def make_half_graph(form, half, batches, rows, columns, products):
    """The product of 16-bit factors, summed in f32, beside what is left of it in 16 bits."""
    size = {"b": batches, "i": rows, "j": columns, "k": products}
    a, b = (f"tensor<{'x'.join(str(size[dim]) for dim in dims.split(', '))}x{half}>" for dims in FORMS[form])
    c, narrow = (f"tensor<{batches}x{rows}x{columns}x{element}>" for element in ("f32", half))
    whole = "affine_map<(d0, d1, d2) -> (d0, d1, d2)>"
    maps = ", ".join(f"affine_map<(b, i, j, k) -> ({dims})>" for dims in (*FORMS[form], "b, i, j"))
    return f"""func.func @f(%a: {a}, %b: {b}) -> ({c}, {narrow}) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {c}
  %en = tensor.empty() : {narrow}
  %zeros = linalg.fill ins(%zero : f32) outs(%e : {c}) -> {c}
  %sums = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%a, %b : {a}, {b}) outs(%zeros : {c}) {{
  ^bb0(%x: {half}, %y: {half}, %o: f32):
    %v = arith.extf %x : {half} to f32
    %w = arith.extf %y : {half} to f32
    %p = arith.mulf %v, %w : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  }} -> {c}
  %rounded = linalg.generic {{indexing_maps = [{whole}, {whole}], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%sums : {c}) outs(%en : {narrow}) {{
  ^bb0(%x: f32, %o: {half}):
    %n = arith.truncf %x : f32 to {half}
    linalg.yield %n : {half}
  }} -> {narrow}
  return %sums, %rounded : {c}, {narrow}
}}
"""


@pytest.mark.parametrize("half, sizes", [("f16", SIZES[1]), ("bf16", SIZES[2]), ("f16", SIZES[4]), ("bf16", SIZES[6])])
@pytest.mark.parametrize("form", FORMS)
def test_halves(weir, form, half, sizes):
    artifact = weir.compile_text(make_half_graph(form, half, *sizes))
    assert weir.inspect(artifact)["plans"][0]["dispatches"] == 1
    weir.compare(artifact, ["--random-inputs=1"], {"f16": 2e-3, "bf16": 1e-2}[half])


# Batches, rows, columns, products: of whole tiles, of parts of one, of odd sizes, of slabs that are not whole.
SLABS = [(1, 256, 256, 48), (3, 130, 260, 37), (1, 259, 257, 20)]


@pytest.mark.parametrize("sizes", SLABS, ids=lambda sizes: "x".join(map(str, sizes)))
@pytest.mark.parametrize("form", FORMS)
def test_slabs_do_not_change_bits(weir, form, sizes):
    text = make_graph(form, *sizes)
    profile = weir.profile(contraction_slab=8, workgroup_size=64, words64=False)
    outputs = []
    for name, flags in {"own": [], "slabs": [f"--target=vulkan:{profile}"]}.items():
        artifact = weir.compile_text(text, name, *flags)
        outputs.append(weir.compare(artifact, ["--random-inputs=1"], 2e-5).read_bytes())
    assert outputs[0] == outputs[1]


# Batches, rows, columns, products that are summed in parts: in slabs and without, of odd sizes.
PARTS = [(1, 72, 80, 512), (2, 37, 41, 288), (3, 2, 7, 1040)]
# Too few products, a prime, none.
WHOLE = [(1, 6, 8, 240), (1, 64, 64, 257), (2, 5, 3, 0)]


@pytest.mark.parametrize("form, sizes", [*itertools.product(FORMS, PARTS), *itertools.product(["nn"], WHOLE)],
                         ids=lambda value: value if isinstance(value, str) else "x".join(map(str, value)))
def test_parts(weir, form, sizes):
    profile = weir.profile(units=108, contraction_slab=8, workgroup_size=64, words64=False)
    artifact = weir.compile_text(make_graph(form, *sizes), "a", f"--target=vulkan:{profile}")
    assert weir.inspect(artifact)["plans"][0]["dispatches"] == (2 if sizes in PARTS else 1)
    weir.compare(artifact, ["--random-inputs=1"], 1e-4)


# Images, channels in and out, height, width, window, stride: vectors of pixels of several images, or of a filter's
# weights; of whole tiles, of parts of one, of primes, of so many products that a copy of the columns is made in parts;
# of weights whose last tile, on x86-64-v4, begins within a row of a filter.
IMAGES = [(8, 16, 24, 2, 2, 3, 1), (3, 5, 7, 3, 3, 3, 1), (2, 7, 13, 5, 7, 3, 2), (1, 1, 5, 1, 1, 3, 1),
          (8, 40, 36, 4, 4, 1, 1), (5, 3, 17, 7, 7, 2, 2), (8, 509, 11, 2, 2, 3, 1), (2, 3, 50, 33, 31, 7, 2),
          (8, 24, 32, 2, 2, 3, 2)]


def make_convolution(images, inputs, outputs, height, width, window, stride):
    """relu(x * w), without padding, whose kernel has an epilogue."""
    rows, columns = ((size - 1) * stride + window for size in (height, width))
    x, w = f"tensor<{images}x{inputs}x{rows}x{columns}xf32>", f"tensor<{outputs}x{inputs}x{window}x{window}xf32>"
    y = f"tensor<{images}x{outputs}x{height}x{width}xf32>"
    same = "affine_map<(a, b, c, d) -> (a, b, c, d)>"
    maps = ", ".join(f"affine_map<(n, o, h, w, i, y, x) -> ({dims})>" for dims in (
        f"n, i, h * {stride} + y, w * {stride} + x", "o, i, y, x", "n, o, h, w"))
    return f"""func.func @f(%x: {x}, %w: {w}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {y}
  %zeros = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %sums = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel", "parallel",
                                                                       "reduction", "reduction", "reduction"]}}
      ins(%x, %w : {x}, {w}) outs(%zeros : {y}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  }} -> {y}
  %result = linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = ["parallel", "parallel", "parallel",
                                                                               "parallel"]}}
      ins(%sums : {y}) outs(%e : {y}) {{
  ^bb0(%s: f32, %o: f32):
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  }} -> {y}
  return %result : {y}
}}
"""


@pytest.mark.parametrize("flags", [(), ("--vjp=f", "--entry=f.vjp")], ids=["forward", "gradients"])
@pytest.mark.parametrize("sizes", IMAGES, ids=lambda sizes: "x".join(map(str, sizes)))
def test_small_images(weir, sizes, flags):
    weir.cpus = weir.cpus or list_isas()  # each has its own tiles
    artifact = weir.compile_text(make_convolution(*sizes), "a", *flags)
    weir.compare(artifact, ["--random-inputs=1"], 1e-4)


# Parts begin at a channel, at an image, and within an image. Seed 1 puts a value where relu has its kink.
@pytest.mark.parametrize("sizes", [(2, 64, 24, 4, 4, 4, 1), (8, 3, 5, 8, 8, 3, 1), (2, 3, 5, 16, 16, 3, 2)],
                         ids=lambda sizes: "x".join(map(str, sizes)))
def test_parts_of_images(weir, sizes):
    dispatches = []
    for units in (0, 108):
        flags = ["--vjp=f", "--entry=f.vjp", f"--target=vulkan:{weir.profile(units=units, workgroup_size=32)}"]
        artifact = weir.compile_text(make_convolution(*sizes), "a", *flags)
        dispatches.append(weir.inspect(artifact)["plans"][0]["dispatches"])
    assert dispatches[0] < dispatches[1]
    weir.compare(artifact, ["--random-inputs=2"], 1e-4)
