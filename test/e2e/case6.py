"""Prints the graph of background case 6: two modulated norms, as in diffusion transformers, whose shifts, scales and
gates are the six chunks of one table. The table's gradient is joined from six sums over the rows.

    h = layer_norm(x) * (1 + scale) + shift,  x' = x + gate * h,  twice"""

import argparse

from case3 import Builder, tensor

CHUNKS = ["shift1", "scale1", "gate1", "shift2", "scale2", "gate2"]


def make_graph(rows, width):
    """Returns the text of a module with one function, `f`, of x and the table."""
    shape, builder, chunks = (rows, width), Builder(), {}
    for i, name in enumerate(CHUNKS):
        chunk = builder.emit(f"tensor.extract_slice %table[{i}, 0] [1, {width}] [1, 1] : {tensor(6, width)} to "
                             f"{tensor(width)}")
        chunks[name] = f"%column:{chunk[1:]}"
    x = "%x"
    for norm in "12":
        n = builder.emit(f"norm.layer_norm {x} {{axes = 1 : i64, eps = 1.0e-5 : f64}} : {tensor(*shape)}")
        h = builder.pointwise(shape, [n, chunks[f"scale{norm}"], chunks[f"shift{norm}"]],
                              ["%s = arith.addf %one, %x1 : f32", "%m = arith.mulf %x0, %s : f32",
                               "%r = arith.addf %m, %x2 : f32"])
        x = builder.pointwise(shape, [x, chunks[f"gate{norm}"], h],
                              ["%g = arith.mulf %x1, %x2 : f32", "%r = arith.addf %x0, %g : f32"])
    return "\n".join([
        "#point = affine_map<(d0, d1) -> (d0, d1)>",
        "#column = affine_map<(d0, d1) -> (d1)>",
        f'func.func @f(%x: {tensor(*shape)} {{weir.name = "x", weir.kind = "input"}},',
        f'             %table: {tensor(6, width)} {{weir.name = "table", weir.kind = "param"}})',
        f'    -> ({tensor(*shape)} {{weir.name = "y"}}) {{',
        "  %one = arith.constant 1.0 : f32",
        *builder.lines,
        f"  return {x} : {tensor(*shape)}",
        "}", ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--width", type=int, default=96)
    print(make_graph(**vars(parser.parse_args())), end="")
