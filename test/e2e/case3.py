"""Prints a graph like that of background case 3: forward and backward, written by
hand, of a deep residual model, with many gradients alive at once.

Of every layer, n = rms_norm(x, gamma) + b, h = n w, x' = x + silu(h). Backward,
with g the gradient of x' and dn that of n:

    dx, dgamma = rms_norm_vjp(dn, x, gamma),  then  g + dx,  n' dh,  sum(dn)

so what the VJP reads, and what it was made from, is read again after it. `mirror`
adds up dn * dn of layers as far from the first as from the last, so half of all
dn live until the other half is there."""

import argparse


def tensor(*shape):
    return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"


class Builder:
    def __init__(self):
        self.lines = []
        self.count = 0

    def emit(self, operation):
        self.count += 1
        self.lines.append(f"  %{self.count} = {operation}")
        return f"%{self.count}"

    def pointwise(self, shape, operands, body):
        """`operands` are names of tensors of `shape`, or of vectors of its columns
        if they start with "%column:"; the body gets %x0, %x1... and yields %r."""
        maps, names, types = [], [], []
        for operand in operands:
            is_column = operand.startswith("%column:")
            names.append("%" + operand.removeprefix("%column:") if is_column else operand)
            maps.append("#column" if is_column else "#point")
            types.append(tensor(shape[1]) if is_column else tensor(*shape))
        out = self.emit(f"tensor.empty() : {tensor(*shape)}")
        arguments = "".join(f"%x{i}: f32, " for i in range(len(operands)))
        return self.emit(
            f'linalg.generic {{indexing_maps = [{", ".join(maps)}, #point], iterator_types = ["parallel", "parallel"]}}\n'
            f"      ins({', '.join(names)} : {', '.join(types)}) outs({out} : {tensor(*shape)}) {{\n"
            f"  ^bb0({arguments}%o: f32):\n" + "".join(f"    {line}\n" for line in body)
            + f"    linalg.yield %r : f32\n  }} -> {tensor(*shape)}")

    def zeros(self, *shape):
        empty = self.emit(f"tensor.empty() : {tensor(*shape)}")
        return self.emit(f"linalg.fill ins(%zero : f32) outs({empty} : {tensor(*shape)}) -> {tensor(*shape)}")

    def product(self, left, right, maps, sizes, out):
        """The sum of products over loop d2 of (rows, columns, products)."""
        init = self.zeros(*out)
        return self.emit(
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}, #out], "
            f'iterator_types = ["parallel", "parallel", "reduction"]}}\n'
            f"      ins({left}, {right} : {', '.join(tensor(*size) for size in sizes)}) outs({init} : {tensor(*out)}) {{\n"
            f"  ^bb0(%a: f32, %b: f32, %o: f32):\n    %p = arith.mulf %a, %b : f32\n    %s = arith.addf %o, %p : f32\n"
            f"    linalg.yield %s : f32\n  }} -> {tensor(*out)}")

    def sum_of_rows(self, value, shape):
        init = self.zeros(shape[1])
        return self.emit(
            f'linalg.generic {{indexing_maps = [#point, #column], iterator_types = ["reduction", "parallel"]}}\n'
            f"      ins({value} : {tensor(*shape)}) outs({init} : {tensor(shape[1])}) {{\n"
            f"  ^bb0(%a: f32, %o: f32):\n    %s = arith.addf %o, %a : f32\n"
            f"    linalg.yield %s : f32\n  }} -> {tensor(shape[1])}")


# Of h = n w / sqrt(width); %q is the sigmoid.
SIGMOID = ["%m = arith.negf %x0 : f32", "%e = math.exp %m : f32", "%d = arith.addf %one, %e : f32",
           "%q = arith.divf %one, %d : f32"]
SILU = [*SIGMOID, "%t = arith.mulf %x0, %q : f32", "%r = arith.addf %x1, %t : f32"]
SILU_VJP = [*SIGMOID, "%u = arith.subf %one, %q : f32", "%v = arith.mulf %x0, %u : f32",
            "%w = arith.addf %one, %v : f32", "%z = arith.mulf %q, %w : f32", "%y = arith.mulf %x1, %z : f32",
            "%r = arith.mulf %y, %scale : f32"]


def make_graph(layers=30, rows=24, width=48):
    """Returns the text of a module with one function, `case3`."""
    shape, square, vector = (rows, width), (width, width), (width,)
    attributes = "{axes = 1 : i64, eps = 1.0e-2 : f64}"
    builder = Builder()
    x, tape = "%x", []
    for layer in range(layers):
        norm = builder.emit(f"norm.rms_norm {x} gamma(%gamma{layer} : {tensor(width)}) {attributes} : {tensor(*shape)}")
        n = builder.pointwise(shape, [norm, f"%column:b{layer}"], ["%r = arith.addf %x0, %x1 : f32"])
        raw = builder.product(n, f"%w{layer}", ["#rows", "#products"], [shape, square], shape)
        h = builder.pointwise(shape, [raw], ["%r = arith.mulf %x0, %scale : f32"])
        tape.append((x, n, h))
        x = builder.pointwise(shape, [h, x], SILU)

    y, g, gradients, kept, mirror = x, "%dy", [None] * layers, {}, builder.zeros(*shape)
    for layer in reversed(range(layers)):
        x, n, h = tape[layer]
        dh = builder.pointwise(shape, [h, g], SILU_VJP)
        dn = builder.product(dh, f"%w{layer}", ["#rows", "#transposed"], [shape, square], shape)
        vjp = builder.count + 1
        builder.count += 1
        builder.lines.append(f"  %{vjp}:2 = norm.rms_norm_vjp {dn}, {x} gamma(%gamma{layer} : {tensor(width)}) "
                             f"{attributes} : {tensor(*shape)}, {tensor(width)}")
        g = builder.pointwise(shape, [g, f"%{vjp}#0"], ["%r = arith.addf %x0, %x1 : f32"])
        dw = builder.product(n, dh, ["#left", "#right"], [shape, shape], square)
        gradients[layer] = (dw, f"%{vjp}#1", builder.sum_of_rows(dn, shape))
        kept[layer] = dn
        if layer < layers - 1 - layer:
            mirror = builder.pointwise(shape, [mirror, dn, kept[layers - 1 - layer]],
                                       ["%p = arith.mulf %x1, %x2 : f32", "%r = arith.addf %x0, %p : f32"])

    arguments = [("x", shape, "input"), ("dy", shape, "input")]
    results = [("y", y, shape), ("dx", g, shape), ("mirror", mirror, shape)]
    for layer in range(layers):
        arguments += [(f"w{layer}", square, "param"), (f"gamma{layer}", vector, "param"), (f"b{layer}", vector, "param")]
        dw, dgamma, db = gradients[layer]
        results += [(f"dw{layer}", dw, square), (f"dgamma{layer}", dgamma, vector), (f"db{layer}", db, vector)]
    return "\n".join([
        "#point = affine_map<(d0, d1) -> (d0, d1)>",
        "#column = affine_map<(d0, d1) -> (d1)>",
        "#out = affine_map<(d0, d1, d2) -> (d0, d1)>",
        "#rows = affine_map<(d0, d1, d2) -> (d0, d2)>",
        "#products = affine_map<(d0, d1, d2) -> (d2, d1)>",
        "#transposed = affine_map<(d0, d1, d2) -> (d1, d2)>",
        "#left = affine_map<(d0, d1, d2) -> (d2, d0)>",
        "#right = affine_map<(d0, d1, d2) -> (d2, d1)>",
        "func.func @case3(" + ",\n    ".join(
            f'%{name}: {tensor(*size)} {{weir.name = "{name}", weir.kind = "{kind}"}}' for name, size, kind in arguments)
        + ")\n    -> (" + ",\n    ".join(f'{tensor(*size)} {{weir.name = "{name}"}}' for name, _, size in results) + ") {",
        "  %zero = arith.constant 0.0 : f32",
        "  %one = arith.constant 1.0 : f32",
        f"  %scale = arith.constant {width ** -0.5:.9e} : f32",
        *builder.lines,
        "  return " + ", ".join(value for _, value, _ in results) + "\n      : "
        + ", ".join(tensor(*size) for _, _, size in results),
        "}", ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--rows", type=int, default=24)
    parser.add_argument("--width", type=int, default=48)
    print(make_graph(**vars(parser.parse_args())), end="")
