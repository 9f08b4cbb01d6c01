"""Several contractions in one kernel of the CPU: the same bits as in kernels of their own."""

import random

import pytest
from conftest import list_isas
from safetensors.numpy import load_file
from test_contractions import FORMS

# Batches, rows, columns: of whole tiles, of parts of one, of primes, of few rows, of few columns.
SIZES = [(1, 64, 64), (1, 70, 100), (2, 37, 41), (1, 3, 150), (1, 200, 8), (3, 2, 3), (2, 1, 64)]


def make_graph(batches, rows, columns, members, attributes):
    """tanh(c0) c1, then added to the sums of c2 and so on. `members` are forms and numbers of products."""
    size = {"b": batches, "i": rows, "j": columns}
    c = f"tensor<{batches}x{rows}x{columns}xf32>"
    arguments, body = [], []
    for number, (form, products) in enumerate(members):
        types = [f"tensor<{'x'.join(str((size | {'k': products})[dim]) for dim in dims.split(', '))}xf32>"
                 for dims in FORMS[form]]
        arguments += [f"%{name}{number}: {type}" for name, type in zip("ab", types)]
        maps = ", ".join(f"affine_map<(b, i, j, k) -> ({dims})>" for dims in (*FORMS[form], "b, i, j"))
        init = "%zeros" if number < 2 else "%y" if number == 2 else f"%c{number - 1}"
        body.append(f"""
  %c{number} = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%a{number}, %b{number} : {types[0]}, {types[1]}) outs({init} : {c}) attrs = {{{attributes}}} {{
  ^bb0(%x: f32, %z: f32, %o: f32):
    %p = arith.mulf %x, %z : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  }} -> {c}""")
    whole = "affine_map<(b, i, j) -> (b, i, j)>"
    body.insert(2, f"""
  %y = linalg.generic {{indexing_maps = [{whole}, {whole}, {whole}], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%c0, %c1 : {c}, {c}) outs(%empty : {c}) {{
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = math.tanh %x : f32
    %r = arith.mulf %t, %z : f32
    linalg.yield %r : f32
  }} -> {c}""")
    result = f"%c{len(members) - 1}" if len(members) > 2 else "%y"
    return f"""func.func @f({', '.join(arguments)}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {c}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {c}) -> {c}{''.join(body)}
  return {result} : {c}
}}
"""


@pytest.mark.parametrize("seed", range(12))
def test_groups_keep_bits(weir, seed):
    """Sums over vectors of products and over vectors of columns, packed ones, and copies made in parts."""
    choose = random.Random(seed)
    sizes = SIZES[seed % len(SIZES)]
    members = [(choose.choice(list(FORMS)), choose.choice([1, 8, 13, 48, 64, 700, 4096 if sizes[1] < 100 else 16]))
               for _ in range(choose.choice([2, 2, 3, 4]))]
    artifact = weir.compile_text(make_graph(*sizes, members, ""))
    weir.compare(artifact, ["--random-inputs=1"], 2e-4)
    for isa in list_isas():
        outputs = []
        for name, attributes in (("whole", ""), ("apart", "weir.no_fuse")):
            made = weir.compile_text(make_graph(*sizes, members, attributes), name, f"--target=cpu:{isa}")
            dispatches = weir.inspect(made)["plans"][0]["dispatches"]
            # One row makes no tile: what has no other dimension is a reduction.
            assert 1 in sizes[1:] or (dispatches == 1 if name == "whole" else dispatches >= len(members))
            weir.run("run", made, f"--device=cpu:{isa}", "--random-inputs=2", f"--output={name}.safetensors")
            outputs.append(load_file(weir.folder / f"{name}.safetensors"))
        for result, value in outputs[0].items():
            assert value.tobytes() == outputs[1][result].tobytes(), (isa, members)
