"""Seeded generators of functions: ones to train, with layers whose weights may be shared,
stored either way, read by the loss itself, or used by nothing; and attention, whose heads
come and go by reshapes and transposes."""

import math
import random


def type_of(shape, element="f32"):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


class Graph:
    """The lines of a function; `%zero` must be among them where something is summed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.parameters, self.count = [], {}, 0  # parameters: name to shape

    def emit(self, text, shape):
        """Adds an op whose text lacks the result and `-> type`; returns its name."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}" + (f" -> {type_of(shape)}" if shape is not None else ""))
        return f"%v{self.count}"

    def parameter(self, shape):
        name = f"w{len(self.parameters)}"
        self.parameters[name] = shape
        return f"%{name}"

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
        lines = "\n    ".join(body + [f"linalg.yield {'%sum' if reduced else '%r' if body else '%x0'} : f32"])
        return self.emit(f"""linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({', '.join(name for name, _, _ in operands)} : {', '.join(type_of(other) for _, other, _ in operands)})
      outs({init} : {type_of(shape)}) {{
  ^bb0({arguments}%o: f32):
    {lines}
  }}""", shape)


class Model(Graph):
    """`f` with arguments x and t and parameters, and results loss and y."""

    def __init__(self, seed):
        super().__init__(seed)
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

    def weight(self, shape):
        """A new parameter, or one that is used already."""
        same = [name for name, other in self.parameters.items() if other == shape]
        return f"%{self.random.choice(same)}" if same and self.random.random() < 0.5 else self.parameter(shape)

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


class Attention(Graph):
    """`f` of attention, softmax or not: samples, heads and what shares a factor's heads, each
    1 or more, are dimensions in any order, and batches of one contraction."""

    def __init__(self, seed):
        super().__init__(seed)
        self.heads = [self.random.choice([1, 1, 2, 2, 3, 4, 5]) for _ in "bh"] + [self.random.choice([1, 1, 2, 3])]
        self.batches = math.prod(self.heads)
        queries, keys, width = (self.random.choice(sizes) for sizes in ([1, 3, 5, 8], [1, 4, 5, 9], [1, 2, 4, 7]))
        scores = self.product(self.factor([queries, width]), self.factor([keys, width]), ["d2", "s0"], queries, keys)
        weights = (self.weigh(scores, [queries, keys]), [self.batches, queries, keys], False)
        result = self.product(weights, self.factor([keys, width]), ["s0", "d2"], queries, width)
        shape = self.heads + [queries, width]
        result = self.reshape(result, [self.batches, queries, width], shape, [[0, 1, 2], [3], [4]])
        order = [0, 3, 1, 2, 4] if self.random.random() < 0.7 else self.random.sample(range(5), 5)
        result, shape = self.transpose(result, shape, order)
        self.results = [(result, shape)]
        if self.random.random() < 0.6:
            merged = [math.prod(shape[:2]), math.prod(shape[2:])]
            self.results = [(self.reshape(result, shape, merged, [[0, 1], [2, 3, 4]]), merged)]
        if self.random.random() < 0.2:
            self.results.append((scores, [self.batches, queries, keys]))

    def reshape(self, value, shape, wanted, groups):
        """Merges or splits dimensions; `groups` are of the side that has more."""
        if len(wanted) < len(shape):
            return self.emit(f"tensor.collapse_shape {value} {groups} : {type_of(shape)} into {type_of(wanted)}", None)
        return self.emit(f"tensor.expand_shape {value} {groups} output_shape {wanted} : {type_of(shape)} into "
                         f"{type_of(wanted)}", None)

    def transpose(self, value, shape, order):
        turned = [shape[i] for i in order]
        return self.emit(f"linalg.transpose ins({value} : {type_of(shape)}) outs({self.empty(turned)} : "
                         f"{type_of(turned)}) permutation = {order}", None), turned

    def pointwise(self, value, shape, op, *others):
        dims = [f"d{i}" for i in range(len(shape))]
        return self.generic([(value, shape, dims), *((name, shape[-2:], dims[-2:]) for name in others)], shape,
                            [f"%r = {op} : f32"])

    def store(self, shape):
        """An argument, a function of one, or a product whose rows and columns are split."""
        kind = self.random.random()
        if kind < 0.6:
            value = self.parameter(shape)
            return value if kind < 0.35 else self.pointwise(value, shape, "math.tanh %x0")
        cut, sums = self.random.randint(1, len(shape) - 1), self.random.choice([2, 3])
        rows, columns = math.prod(shape[:cut]), math.prod(shape[cut:])
        product = self.generic([(self.parameter([rows, sums]), [rows, sums], ["d0", "s0"]),
                                (self.parameter([sums, columns]), [sums, columns], ["s0", "d1"])], [rows, columns],
                               ["%r = arith.mulf %x0, %x1 : f32"], reduced=1)
        return self.reshape(product, [rows, columns], shape, [[*range(cut)], [*range(cut, len(shape))]])

    def factor(self, inner):
        """Batches of `inner`, their shape, and whether that is turned over."""
        isShared, isTurned = self.random.random() < 0.4, self.random.random() < 0.4
        shape = (self.heads[:2] if isShared else self.heads) + inner
        order = [*range(len(shape))]
        if self.random.random() < 0.7:
            self.random.shuffle(order)
        stored = [shape[i] for i in order]
        value, shape = self.transpose(self.store(stored), stored, [order.index(i) for i in range(len(order))])
        if isShared:
            value = self.generic([(value, shape, ["d0", "d1", "d3", "d4"])], self.heads + inner, [])
            shape = self.heads + inner
        if self.random.random() < 0.5:
            merged = [shape[0], shape[1] * shape[2], *inner]
            value, shape = self.reshape(value, shape, merged, [[0], [1, 2], [3], [4]]), merged
            if isTurned:
                value, shape = self.transpose(value, shape, [0, 1, 3, 2])
            if self.random.random() < 0.3:
                value = self.pointwise(value, shape, "arith.addf %x0, %x0")
            merged = [self.batches, *shape[2:]]
            return self.reshape(value, shape, merged, [[0, 1], [2], [3]]), merged, isTurned
        value, shape = self.reshape(value, shape, [self.batches, *inner], [[0, 1, 2], [3], [4]]), [self.batches, *inner]
        return (*self.transpose(value, shape, [0, 2, 1]), True) if isTurned else (value, shape, False)

    def product(self, left, right, dims, rows, columns):
        """The product of batches; `dims` are the right factor's, unless it is turned over."""
        operands = [(value, shape, ["d0", *(reversed(read) if isTurned else read)])
                    for (value, shape, isTurned), read in ((left, ["d1", "s0"]), (right, dims))]
        return self.generic(operands, [self.batches, rows, columns], ["%r = arith.mulf %x0, %x1 : f32"], reduced=1)

    def weigh(self, scores, inner):
        """Adds a mask, scales and takes the softmax, some of that with batches split."""
        shape, split = [self.batches, *inner], self.random.choice([0, 1, 2])
        value, merged = scores, shape
        if self.random.random() < 0.4:
            value = self.pointwise(value, shape, "arith.addf %x0, %x1", self.parameter(inner))
        groups = [[0, 1], [2], [3]] if split == 1 else [[0, 1, 2], [3], [4]]
        if split:
            shape = ([self.heads[0], self.heads[1] * self.heads[2]] if split == 1 else self.heads) + inner
            value = self.reshape(value, merged, shape, groups)
        if self.random.random() < 0.4:
            value = self.pointwise(value, shape, "arith.mulf %x0, %x1", self.parameter(inner))
        if self.random.random() < 0.6:
            value = self.emit(f"linalg.softmax dimension({len(shape) - 1}) ins({value} : {type_of(shape)}) "
                              f"outs({self.empty(shape)} : {type_of(shape)})", shape)
        return self.reshape(value, shape, merged, groups) if split else value

    def text(self):
        arguments = ", ".join(f"%{name}: {type_of(shape)}" for name, shape in self.parameters.items())
        types = ", ".join(type_of(shape) for _, shape in self.results)
        return "\n".join([
            f"func.func @f({arguments}) -> ({types}) {{", "  %zero = arith.constant 0.0 : f32", *self.lines,
            f"  return {', '.join(value for value, _ in self.results)} : {types}", "}", ""])
