"""Parts of a concatenation that kernels make anyway are written where it wants them, and
what is computed for a pad, a gather or a concatenation alone is computed in its kernel."""

import json

import pytest

from edits import edit_plan, get_plan, run_checkers

PRODUCT = """%z{0} = arith.constant dense<0.0> : tensor<{1}x{2}xf32>
    %{0} = linalg.matmul ins(%x, %w{0} : tensor<{1}x8xf32>, tensor<8x{2}xf32>) outs(%z{0} : tensor<{1}x{2}xf32>) -> tensor<{1}x{2}xf32>
    """
SUM = """%e{0} = arith.constant dense<0.0> : tensor<{1}xf32>
    %s{0} = linalg.reduce {{ arith.addf }} ins(%{0} : tensor<{1}x{2}xf32>) outs(%e{0} : tensor<{1}xf32>) dimensions = [1]
    """
TANH = """%i{0} = tensor.empty() : tensor<{2}xf32>
    %{0} = linalg.tanh ins(%{1} : tensor<{2}xf32>) outs(%i{0} : tensor<{2}xf32>) -> tensor<{2}xf32>
    """


def products(rows, *widths):
    """Arguments x, wa, wb... and products a, b..."""
    names = "abcde"[:len(widths)]
    return (f"%x: tensor<{rows}x8xf32>, " + ", ".join(f"%w{n}: tensor<8x{w}xf32>" for n, w in zip(names, widths)),
            "".join(PRODUCT.format(n, rows, w) for n, w in zip(names, widths)))


def concat(dim, *parts, name="r"):
    """Returns a concatenation of parts (name, shape), and its type."""
    shape = [int(size) for size in parts[0][1].split("x")]
    shape[dim] = sum(int(part[1].split("x")[dim]) for part in parts)
    types = ", ".join(f"tensor<{part[1]}xf32>" for part in parts)
    whole = f"tensor<{'x'.join(map(str, shape))}xf32>"
    return f"%{name} = tensor.concat dim({dim}) {', '.join('%' + part[0] for part in parts)} : ({types}) -> {whole}\n    ", whole


def graph(products, concatenation, *more, name="r"):
    return products[0], [(concatenation[1], name)], products[1] + concatenation[0] + "".join(more)


def rolled(rows):
    """RNN: each state is read by the next step and stacked."""
    body = ""
    for step in range(3):
        before = "x" if step == 0 else f"t{step - 1}"
        body += PRODUCT.format(f"m{step}", rows, 8).replace("%x", "%" + before).replace(f"%wm{step}", "%w")
        body += TANH.format(f"t{step}", f"m{step}", f"{rows}x8")
        body += f"%u{step} = tensor.expand_shape %t{step} [[0, 1], [2]] output_shape [1, {rows}, 8] : tensor<{rows}x8xf32> into tensor<1x{rows}x8xf32>\n    "
    text, whole = concat(0, *((f"u{step}", f"1x{rows}x8") for step in range(3)))
    return f"%x: tensor<{rows}x8xf32>, %w: tensor<8x8xf32>", [(whole, "r")], body + text


# Arguments, results, body; dispatches, and how many of them write a part of something larger.
GRAPHS = {
    "two": (*graph(products(16, 8, 8), concat(0, ("a", "16x8"), ("b", "16x8"))), 2, 2),
    "three_of_a_row": (*graph(products(1, 16, 32, 64), concat(1, ("a", "1x16"), ("b", "1x32"), ("c", "1x64"))), 3, 3),
    "stacked": (*rolled(16), 3, 3),
    # Something else reads the whole, and a part of it.
    "read": (products(16, 8, 8)[0], [("tensor<32xf32>", "sr"), ("tensor<16xf32>", "sa")],
             products(16, 8, 8)[1] + concat(0, ("a", "16x8"), ("b", "16x8"))[0] + SUM.format("r", 32, 8) + SUM.format("a", 16, 8), 4, 2),
    # What is only moved goes in with one kernel more.
    "moved": (*graph((products(16, 8, 8)[0] + ", %m: tensor<16x8xf32>, %n: tensor<3x8xf32>", products(16, 8, 8)[1]),
                     concat(0, ("a", "16x8"), ("m", "16x8"), ("n", "3x8"))), 2, 2),
    # In a concatenation in a concatenation.
    "nested": (*graph(products(16, 8, 8, 8), (concat(0, ("a", "16x8"), ("b", "16x8"), name="q")[0] +
                      concat(0, ("q", "32x8"), ("c", "16x8"))[0], "tensor<48x8xf32>")), 3, 3),
    # A part that is a result itself, or another's part, is written twice.
    "part_returned": (products(16, 8, 8)[0], [("tensor<32x8xf32>", "r"), ("tensor<16x8xf32>", "a")],
                      products(16, 8, 8)[1] + concat(0, ("a", "16x8"), ("b", "16x8"))[0], 2, 2),
    "part_twice": (*graph(products(16, 8), concat(0, ("a", "16x8"), ("a", "16x8"))), 1, 2),
    # Parts that are not side by side, or begin where nothing can be bound, are slices.
    "columns": (*graph(products(16, 8, 8), concat(1, ("a", "16x8"), ("b", "16x8"))), 2, 2),
    "odd_columns": (*graph(products(7, 5, 3, 11), concat(1, ("a", "7x5"), ("b", "7x3"), ("c", "7x11"))), 3, 3),
    "columns_moved": (*graph((products(7, 5)[0] + ", %m: tensor<7x3xf32>, %n: tensor<7x1xf32>", products(7, 5)[1]),
                             concat(1, ("m", "7x3"), ("n", "7x1"), ("a", "7x5"))), 2, 2),
    "columns_read": (products(7, 5, 3)[0], [("tensor<7xf32>", "sr"), ("tensor<7xf32>", "sa")],
                     products(7, 5, 3)[1] + concat(1, ("a", "7x5"), ("b", "7x3"))[0] + SUM.format("r", 7, 8) + SUM.format("a", 7, 5), 4, 2),
    "askew": (*graph(products(1, 5, 3), concat(1, ("a", "1x5"), ("b", "1x3"))), 2, 2),
    # The twin: so many would wait for each other.
    "many_columns": (*graph(products(7, 3, 3, 3, 3, 3), concat(1, *((n, "7x3") for n in "abcde"))), 6, 0),
    # Computed where it is put.
    "maps": ("%a: tensor<5x3xf32>, %b: tensor<7x3xf32>", [("tensor<12x3xf32>", "r")],
             TANH.format("c", "a", "5x3") + TANH.format("d", "b", "7x3") + concat(0, ("c", "5x3"), ("d", "7x3"))[0], 1, 0),
    "padded": ("%a: tensor<5x3xf32>", [("tensor<7x6xf32>", "r")], TANH.format("c", "a", "5x3") + """%f = arith.constant 2.5 : f32
    %r = tensor.pad %c low[1, 0] high[1, 3] {
    ^bb0(%i: index, %j: index):
      tensor.yield %f : f32
    } : tensor<5x3xf32> to tensor<7x6xf32>
    """, 1, 0),
    # The twins: others read it, or each element would be computed often.
    "map_read": ("%a: tensor<5x3xf32>, %b: tensor<7x3xf32>", [("tensor<12x3xf32>", "r"), ("tensor<5xf32>", "sc")],
                 TANH.format("c", "a", "5x3") + TANH.format("d", "b", "7x3") + concat(0, ("c", "5x3"), ("d", "7x3"))[0]
                 + SUM.format("c", 5, 3), 2, 2),
    "looked_up": ("%a: tensor<5xf32>, %at: tensor<64xi64>", [("tensor<64xf32>", "r")], TANH.format("c", "a", "5")
                  + """%q = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%at : tensor<64xi64>) outs(%q : tensor<64xf32>) {
    ^bb0(%n: i64, %o: f32):
      %five = arith.constant 5 : i64
      %m = arith.remui %n, %five : i64
      %p = arith.index_cast %m : i64 to index
      %v = tensor.extract %c[%p] : tensor<5xf32>
      linalg.yield %v : f32
    } -> tensor<64xf32>
    """, 2, 0),
}


def get_text(name):
    arguments, results, body = GRAPHS[name][:3]
    types = ", ".join(type for type, _ in results)
    return f"func.func @f({arguments}) -> ({types}) {{\n    {body}return {', '.join('%' + v for _, v in results)} : {types}\n}}\n"


@pytest.mark.parametrize("profile", [{}, {"vector_width": 1, "max_loop_trips": 60, "max_grid": [3, 5, 65535]},
                                     {"offset_alignment": 256, "row_mapping": "workgroup", "workgroup_size": 16}])
@pytest.mark.parametrize("name", GRAPHS)
def test_concatenation(weir, name, profile):
    flags = [f"--target=vulkan:{weir.profile(**profile)}"] if profile else []
    artifact = weir.compile_text(get_text(name), "a", *flags)
    weir.compare(artifact, ["--random-inputs=7"], 1e-6, validated=True)
    plan = get_plan(artifact)
    dispatches = [command for command in plan["commands"] if command["command"] == "dispatch"]
    values = plan["values"]
    parts = [operand for dispatch in dispatches
             for operand, kernel in zip(dispatch["operands"], plan["kernels"][dispatch["kernel"]]["operands"])
             if kernel["access"] == "write" and len(operand) == 5 and operand[2] < values[operand[3]][1]]
    slices = [kernel["slice"] for dispatch in dispatches for kernel in plan["kernels"][dispatch["kernel"]]["operands"]
              if "slice" in kernel]
    if not profile:
        assert (len(dispatches), len(parts) + len(slices)) == GRAPHS[name][3:]
    claims = json.loads(weir.run("verify", artifact, "--json"))["claims"]
    assert all(claim["holds"] and (not claim["taken_from_compiler"] or name == "looked_up") for claim in claims)
    weir.run("run", artifact, "--random-inputs=7", "--check-values")
    weir.run("run", artifact, "--random-inputs=7", "--device=sim")


@pytest.mark.parametrize("wrong", ["begin", "bytes", "stride", "count", "missing"])
def test_both_checkers_see_a_wrong_slice(weir, wrong):
    """Bytes of the whole remain that nothing writes, or what is said of the operand is no slice of it."""
    artifact = weir.compile_text(get_text("columns"))
    plan = get_plan(artifact)
    operand = next(o for kernel in plan["kernels"] for o in kernel["operands"] if "slice" in o)
    if wrong == "missing":
        del operand["slice"]
    else:
        operand["slice"][["begin", "bytes", "stride", "count"].index(wrong)] += {"count": -1, "bytes": -4}.get(wrong, 4)
    edited = weir.folder / "edited.weir"
    edit_plan(edited, artifact, plan)
    for done in run_checkers(edited):
        assert done.returncode != 0 and any(word in done.stdout + done.stderr for word in ("contents", "slice")), done
        assert "Traceback" not in done.stderr


def test_slices_of_each_other_are_seen_in_the_code(weir):
    """As far as the plan goes all is written: the code writes the other bytes."""
    artifact = weir.compile_text(get_text("columns"))
    plan = get_plan(artifact)
    first, second = (o for kernel in plan["kernels"] for o in kernel["operands"] if "slice" in o)
    first["slice"], second["slice"] = second["slice"], first["slice"]
    edited = weir.folder / "edited.weir"
    edit_plan(edited, artifact, plan)
    verify, check = run_checkers(edited)
    assert verify.returncode == 1 and "the plan says otherwise of its slice" in verify.stdout
    assert check.returncode == 0


def test_barriers_between_slices_are_there(weir):
    """Each kernel has the whole bound."""
    plan = get_plan(weir.compile_text(get_text("odd_columns")))
    assert [command["command"] for command in plan["commands"]] == ["dispatch", "barrier"] * 2 + ["dispatch"]
    plan = get_plan(weir.compile_text(get_text("three_of_a_row")))
    assert [command["command"] for command in plan["commands"]] == ["dispatch"] * 3


@pytest.mark.parametrize("name", ["two", "columns", "stacked", "nested", "part_returned"])
def test_pinned_has_the_same_bits(weir, name):
    files = []
    for artifact in weir.compile_text(get_text(name)), weir.compile_text(get_text(name), "b", "--no-reuse"):
        weir.run("run", artifact, "--random-inputs=5", f"--output={artifact}.out")
        files.append((weir.folder / f"{artifact}.out").read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("name", ["two", "odd_columns", "stacked", "nested"])
def test_other_targets_and_limits(weir, name):
    weir.compile_text(get_text(name), "a", "--target=vulkan,cuda")
    artifact = weir.compile_text(get_text(name), "b", f"--target=vulkan:{weir.profile(queues=2)}", "--memory-limit=1000000")
    weir.compare(artifact, ["--random-inputs=3"], 1e-6, validated=True)


@pytest.mark.parametrize("dim, parts", [(0, 70), (1, 70), (1, 200)])
def test_more_parts_than_a_kernel_reads(weir, dim, parts):
    shape = lambda size: f"tensor<{f'{size}x3' if dim == 0 else f'3x{size}'}xf32>"
    arguments = ", ".join(f"%a{i}: {shape(1 + i % 2)}" for i in range(parts))
    types = ", ".join(shape(1 + i % 2) for i in range(parts))
    whole = shape(parts + parts // 2)
    artifact = weir.compile_text(f"""func.func @f({arguments}) -> {whole} {{
  %r = tensor.concat dim({dim}) {", ".join(f"%a{i}" for i in range(parts))} : ({types}) -> {whole}
  return %r : {whole}
}}
""")
    weir.compare(artifact, ["--random-inputs=7"], 0)


def test_gradients_of_parts_are_written_in_place(weir):
    """Three slices of a product, each multiplied again: their gradients need no kernel to be put together."""
    body = PRODUCT.format("q", 16, 24)
    for name, offset in zip("abc", (8, 0, 16)):
        body += f"%s{name} = tensor.extract_slice %q[0, {offset}] [16, 8] [1, 1] : tensor<16x24xf32> to tensor<16x8xf32>\n    "
        body += PRODUCT.format(name, 16, 8).replace("%x", f"%s{name}")
    weights = ", ".join(f"%w{name}: tensor<8x8xf32>" for name in "abc")
    artifact = weir.compile_text(f"""func.func @f(%x: tensor<16x8xf32>, %wq: tensor<8x24xf32>, {weights})
    -> (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) {{
    {body}return %a, %b, %c : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>
}}
""", "a", "--vjp=f")
    weir.compare(artifact, ["--entry=f.vjp", "--random-inputs=7"], 1e-5, validated=True)
    # 4 products, for each 2 gradients.
    plan = get_plan(artifact, "f.vjp")
    assert sum(command["command"] == "dispatch" for command in plan["commands"]) == 12
    assert sum("slice" in operand for kernel in plan["kernels"] for operand in kernel["operands"]) == 3


def test_tensors_that_begin_alike_have_slices_of_their_own(weir):
    """Two concatenations of equal zeros and a product each, as Mamba-2 passes states from chunk to chunk."""
    part, whole, weight = "tensor<2x4x7xf32>", "tensor<2x5x7xf32>", "tensor<2x7x7xf32>"

    def multiply(name, x, kind):
        return f"""
  %{name}_empty = tensor.empty() : {kind}
  %{name}_init = linalg.fill ins(%zero : f32) outs(%{name}_empty : {kind}) -> {kind}
  %{name} = linalg.batch_matmul ins({x}, %w : {kind}, {weight}) outs(%{name}_init : {kind}) -> {kind}"""

    artifact = weir.compile_text(f"""func.func @f(%x: {part}, %y: {part}, %w: {weight}) -> ({whole}, {whole}) {{
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<2x1x7xf32>{multiply("a", "%x", part)}{multiply("b", "%y", part)}
  %0 = tensor.concat dim(1) %zeros, %a : (tensor<2x1x7xf32>, {part}) -> {whole}
  %1 = tensor.concat dim(1) %zeros, %b : (tensor<2x1x7xf32>, {part}) -> {whole}{multiply("c", "%0", whole)}{multiply("d", "%1", whole)}
  return %c, %d : {whole}, {whole}
}}
""")
    weir.compare(artifact, ["--random-inputs=7"], 1e-5)
    weir.run("verify", artifact)


def test_a_part_that_the_reader_leaves_out(weir):
    """States of three steps side by side, of which a loss reads two, as a language model of LSTMs does."""
    state, part, weight = "tensor<3x24xf32>", "tensor<1x3x24xf32>", "tensor<24x24xf32>"
    text, before = f"""func.func @f(%x: {state}, %w: {weight}) -> tensor<6x24xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {state}
  %i = linalg.fill ins(%zero : f32) outs(%e : {state}) -> {state}""", "%x"
    for name in "abc":
        text += f"""
  %{name} = linalg.matmul ins({before}, %w : {state}, {weight}) outs(%i : {state}) -> {state}
  %{name}t = linalg.tanh ins(%{name} : {state}) outs(%e : {state}) -> {state}
  %{name}p = tensor.expand_shape %{name}t [[0, 1], [2]] output_shape [1, 3, 24] : {state} into {part}"""
        before = f"%{name}t"
    artifact = weir.compile_text(text + f"""
  %all = tensor.concat dim(0) %ap, %bp, %cp : ({part}, {part}, {part}) -> tensor<3x3x24xf32>
  %two = tensor.extract_slice %all[0, 0, 0] [2, 3, 24] [1, 1, 1] : tensor<3x3x24xf32> to tensor<2x3x24xf32>
  %rows = tensor.collapse_shape %two [[0, 1], [2]] : tensor<2x3x24xf32> into tensor<6x24xf32>
  %e6 = tensor.empty() : tensor<6x24xf32>
  %i6 = linalg.fill ins(%zero : f32) outs(%e6 : tensor<6x24xf32>) -> tensor<6x24xf32>
  %r = linalg.matmul ins(%rows, %w : tensor<6x24xf32>, {weight}) outs(%i6 : tensor<6x24xf32>) -> tensor<6x24xf32>
  return %r : tensor<6x24xf32>
}}
""")
    weir.compare(artifact, ["--random-inputs=7"], 1e-5)
    assert "1 taken from the compiler" in weir.run("verify", artifact)


DOUBLES = """func.func @f(%x: tensor<2x3xf64>, %y: tensor<4xf64>) -> tensor<6xf64> {
  %zero = arith.constant dense<0.0> : tensor<2xf64>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<2x3xf64>) outs(%zero : tensor<2xf64>) dimensions = [1]
  %r = tensor.concat dim(0) %s, %y : (tensor<2xf64>, tensor<4xf64>) -> tensor<6xf64>
  return %r : tensor<6xf64>
}"""


def test_parts_of_f64_begin_where_vectors_may(weir):
    """A vector of four has 32 bytes, more than a device aligns bindings to: the second part, behind 16 bytes, is not
    written in place."""
    weir.compare(weir.compile_text(DOUBLES), ["--random-inputs=1"], "1e-12")
