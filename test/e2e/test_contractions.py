"""Contractions of all forms, of sizes that tiles divide and of sizes that they don't."""

import pytest

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
