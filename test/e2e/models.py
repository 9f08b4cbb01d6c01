"""A seeded generator of functions to train: layers whose weights may be shared, stored
either way, read by the loss itself, or used by nothing."""

import random


def type_of(shape, element="f32"):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


class Model:
    """`f` with arguments x and t and parameters, and results loss and y."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.parameters, self.count = [], {}, 0  # parameters: name to shape
        self.batch = self.random.choice([1, 3, 8, 24])
        self.features = self.random.choice([3, 8, 20])
        value, width = "%x", self.features
        for _ in range(self.random.randint(1, 5)):
            value, width = self.layer(value, width)
        self.shape = [self.batch, width]
        loss = self.mean_square(value)
        if self.random.random() < 0.5:
            loss = self.penalize(loss)
        if self.random.random() < 0.3:
            self.parameter([2, 5])  # used by nothing
        self.results = f"{loss}, {value}"

    def emit(self, text, shape):
        """Adds an op whose text lacks the result and `-> type`; returns its name."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}" + (f" -> {type_of(shape)}" if shape is not None else ""))
        return f"%v{self.count}"

    def parameter(self, shape):
        name = f"w{len(self.parameters)}"
        self.parameters[name] = shape
        return f"%{name}"

    def weight(self, shape):
        """A new parameter, or one that is used already."""
        same = [name for name, other in self.parameters.items() if other == shape]
        return f"%{self.random.choice(same)}" if same and self.random.random() < 0.5 else self.parameter(shape)

    def empty(self, shape):
        return self.emit(f"tensor.empty() : {type_of(shape)}", None)

    def generic(self, operands, shape, body, reduced=0):
        """`operands` are (name, shape, dimensions of the loops); the last `reduced` loops
        are summed onto zero, where the body gives %r."""
        kept = [f"d{i}" for i in range(len(shape))]
        dims = kept + [f"s{i}" for i in range(reduced)]
        maps = ", ".join(f"affine_map<({', '.join(dims)}) -> ({', '.join(read)})>"
                         for read in [*(read for _, _, read in operands), kept])
        kinds = ", ".join(['"parallel"'] * len(kept) + ['"reduction"'] * reduced)
        init = self.empty(shape)
        if reduced:
            init = self.emit(f"linalg.fill ins(%zero : f32) outs({init} : {type_of(shape)})", shape)
            body = body + ["%sum = arith.addf %o, %r : f32"]
        arguments = "".join(f"%x{i}: f32, " for i in range(len(operands)))
        lines = "\n    ".join(body + [f"linalg.yield {'%sum' if reduced else '%r'} : f32"])
        return self.emit(f"""linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({', '.join(name for name, _, _ in operands)} : {', '.join(type_of(other) for _, other, _ in operands)})
      outs({init} : {type_of(shape)}) {{
  ^bb0({arguments}%o: f32):
    {lines}
  }}""", shape)

    def layer(self, value, width):
        kind = self.random.choice(["linear"] * 4 + ["scale", "norm"])
        shape = [self.batch, width]
        if kind == "norm":
            gamma, beta = self.parameter([width]), self.parameter([width])
            return self.emit(f"norm.layer_norm {value} gamma({gamma} : {type_of([width])}) "
                             f"beta({beta} : {type_of([width])}) {{axes = 1 : i64, eps = 1.0e-2 : f64}} : "
                             f"{type_of(shape)}", None), width
        if kind == "scale":
            return self.generic([(value, shape, ["d0", "d1"]), (self.weight([width]), [width], ["d1"])], shape,
                                ["%r = arith.mulf %x0, %x1 : f32"]), width
        out = width if self.random.random() < 0.6 else self.random.choice([1, 4, 16])
        shape = [self.batch, out]
        if self.random.random() < 0.5:
            weight = self.weight([width, out])
        else:
            stored, transposed = self.weight([out, width]), self.empty([width, out])
            weight = self.emit(f"linalg.transpose ins({stored} : {type_of([out, width])}) "
                               f"outs({transposed} : {type_of([width, out])}) permutation = [1, 0]", None)
        zeros = self.emit(f"linalg.fill ins(%zero : f32) outs({self.empty(shape)} : {type_of(shape)})", shape)
        result = self.emit(f"linalg.matmul ins({value}, {weight} : {type_of([self.batch, width])}, "
                           f"{type_of([width, out])}) outs({zeros} : {type_of(shape)})", shape)
        if self.random.random() < 0.6:
            result = self.generic([(result, shape, ["d0", "d1"]), (self.weight([out]), [out], ["d1"])], shape,
                                  ["%r = arith.addf %x0, %x1 : f32"])
        if self.random.random() < 0.7:
            result = self.generic([(result, shape, ["d0", "d1"])], shape, ["%r = math.tanh %x0 : f32"])
        return result, out

    def mean_square(self, value):
        read = ["s0", "s1"]
        return self.generic([(value, self.shape, read), ("%t", self.shape, read)], [],
                            ["%d = arith.subf %x0, %x1 : f32", "%q = arith.mulf %d, %d : f32",
                             f"%n = arith.constant {1 / (self.shape[0] * self.shape[1])!r} : f32",
                             "%r = arith.mulf %q, %n : f32"], reduced=2)

    def penalize(self, loss):
        if not self.parameters:
            return loss
        name, shape = self.random.choice(list(self.parameters.items()))
        read = [f"s{i}" for i in range(len(shape))]
        size = self.generic([(f"%{name}", shape, read)], [],
                            ["%q = arith.mulf %x0, %x0 : f32", "%n = arith.constant 1.0e-2 : f32",
                             "%r = arith.mulf %q, %n : f32"], reduced=len(shape))
        return self.generic([(loss, [], []), (size, [], [])], [], ["%r = arith.addf %x0, %x1 : f32"])

    def text(self):
        if not self.parameters:
            self.parameter([3])
        arguments = [f'%x: {type_of([self.batch, self.features])} {{weir.name = "x", weir.kind = "input"}}',
                     f'%t: {type_of(self.shape)} {{weir.name = "t", weir.kind = "target"}}']
        arguments += [f'%{name}: {type_of(shape)} {{weir.name = "{name}", weir.kind = "param"}}'
                      for name, shape in self.parameters.items()]
        types = f"tensor<f32>, {type_of(self.shape)}"
        return "\n".join([
            f"func.func @f({', '.join(arguments)})",
            f'    -> (tensor<f32> {{weir.name = "loss"}}, {type_of(self.shape)} {{weir.name = "y"}}) {{',
            "  %zero = arith.constant 0.0 : f32", *self.lines, f"  return {self.results} : {types}", "}", ""])
