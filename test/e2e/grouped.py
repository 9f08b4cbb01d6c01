"""Background case 2's graph: the weight gradients of a grouped linear layer, packed."""

import re


def contraction(result, operands, types, maps, zero):
    return f"""
  {result} = linalg.generic {{indexing_maps = [{", ".join(f"affine_map<(i, j, k) -> {m}>" for m in maps)}],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins({", ".join(operands)} : {", ".join(types[:2])}) outs({zero} : {types[2]}) {{
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %s, %p : f32
    linalg.yield %q : f32
  }} -> {types[2]}"""


def make_graph(groups, rows, outs, ins):
    """For each group g = dy^T x and its update w - g in a kernel of its own; beside
    them a chain of products of x^T x, which wants memory."""
    w, x, d, s = (f"tensor<{a}x{b}xf32>" for a, b in ((outs, ins), (rows, ins), (rows, outs), (ins, ins)))
    arguments = ", ".join(f'%{n}{g}: {t} {{weir.name = "{n}{g}"}}'
                          for g in range(groups) for n, t in (("x", x), ("dy", d), ("w", w)))
    body = f"""
  %zero = arith.constant dense<0.0> : {w}
  %square = arith.constant dense<0.0> : {s}
  %empty = tensor.empty() : {w}"""
    for g in range(groups):
        body += contraction(f"%g{g}", [f"%dy{g}", f"%x{g}"], [d, x, w], ["(k, i)", "(k, j)", "(i, j)"], "%zero")
    for g in range(groups):
        body += f"""
  %u{g} = linalg.sub {{weir.no_fuse}} ins(%w{g}, %g{g} : {w}, {w}) outs(%empty : {w}) -> {w}"""
    body += contraction("%t0", ["%x0", "%x0"], [x, x, s], ["(k, i)", "(k, j)", "(i, j)"], "%square")
    for t in range(1, 2 * groups):
        body += contraction(f"%t{t}", [f"%t{t - 1}"] * 2, [s] * 3, ["(i, k)", "(k, j)", "(i, j)"], "%square")
    values = [f"%u{g}" for g in range(groups)] + [f"%t{2 * groups - 1}"]
    types = [w] * groups + [s]
    named = ", ".join(f'{t} {{weir.name = "{v[1:]}"}}' for v, t in zip(values, types))
    return f"""func.func @grouped({arguments}) -> ({named}) {{{body}
  return {", ".join(values)} : {", ".join(types)}
}}
"""


def pack(text, groups, elements):
    """The dispatches level with all gradients in one allocation, each a view at
    group * bytes, as a packed tensor (groups, outs, ins) has them."""
    kernel = re.search(r"dispatch @(\w+)::@\w+ [^(]*\(%arg1, %arg0, ", text)[1]
    gradients = re.findall(rf"dispatch @{kernel}::@{kernel} [^(]*\(%arg\d+, %arg\d+, (%\w+)\)", text)
    assert len(gradients) == groups
    lines, size = [], 4 * elements
    for line in text.splitlines():
        made = re.match(r"\s*(%\w+) = memref.alloc\(\)", line)
        if not made or made[1] not in gradients:
            lines.append(line)
            continue
        if made[1] == gradients[0]:
            lines.append(f'    %packed = memref.alloc() {{weir.name = "gradients"}} : memref<{groups * size}xi8>')
        at = gradients.index(made[1]) * size
        lines.append(f"    %at{at} = arith.constant {at} : index")
        lines.append(f"    {made[1]} = memref.view %packed[%at{at}][] : memref<{groups * size}xi8> "
                     f"to memref<{elements}xf32>")
    return "\n".join(lines)
