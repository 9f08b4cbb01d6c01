"""A seeded generator of graph-level functions, odd sizes included.

Operations are chosen so that f32 and f64 stay close: values stay of order one,
sums are averages, and nothing is discontinuous."""

import random

SIZES = [0, 1, 1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 31, 32, 64, 97, 128]


class Graph:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.arguments = []  # (name, type)
        self.values = []  # (name, shape) of f32 tensors
        self.count = 0

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def type(self, shape, element="f32"):
        return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"

    def emit(self, text):
        self.lines.append(f"  {text}")

    def argument(self, shape):
        name = f"%a{len(self.arguments)}"
        self.arguments.append((name, self.type(shape)))
        self.values.append((name, shape))
        return name, shape

    def empty(self, shape, element="f32"):
        name = self.name()
        self.emit(f"{name} = tensor.empty() : {self.type(shape, element)}")
        return name

    def filled(self, shape, value):
        scalar, name, empty = self.name(), self.name(), self.empty(shape)
        self.emit(f"{scalar} = arith.constant {value} : f32")
        self.emit(f"{name} = linalg.fill ins({scalar} : f32) outs({empty} : {self.type(shape)}) -> {self.type(shape)}")
        return name

    def generic(self, loops, kinds, operands, init, out_map, out_shape, body, element="f32"):
        """`operands` are (name, shape, map results); `body` gets %x0, %x1... and %o."""
        dims = ", ".join(f"d{i}" for i in range(loops))
        maps = [results for _, _, results in operands] + [out_map]
        maps = ", ".join(f"affine_map<({dims}) -> ({', '.join(results)})>" for results in maps)
        name, out = self.name(), self.type(out_shape, element)
        names = ", ".join(operand for operand, _, _ in operands)
        types = ", ".join(self.type(shape) for _, shape, _ in operands)
        arguments = "".join(f"%x{i}: f32, " for i in range(len(operands)))
        iterators = ", ".join(f'"{kind}"' for kind in kinds)
        self.emit(f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}")
        self.emit(f"    ins({names} : {types}) outs({init} : {out}) {{")
        self.emit(f"^bb0({arguments}%o: {element}):")
        for line in body:
            self.emit(f"  {line}")
        self.emit(f"}} -> {out}")
        return name

    # Operations; each adds a value.

    def pick(self):
        return self.random.choice(self.values)

    def pointwise(self):
        name, shape = self.pick()
        dims = [f"d{i}" for i in range(len(shape))]
        bodies = [
            ["%r = math.tanh %x0 : f32"],
            ["%r = arith.negf %x0 : f32"],
            ["%s = math.absf %x0 : f32", "%t = math.exp %s : f32", "%one = arith.constant 1.0 : f32",
             "%u = arith.addf %t, %one : f32", "%r = arith.divf %one, %u : f32"],
            ["%r = math.erf %x0 : f32"],
            ["%z = arith.constant 0.0 : f32", "%k = arith.constant 0.1 : f32",
             "%c = arith.cmpf ogt, %x0, %z : f32", "%m = arith.mulf %x0, %k : f32",
             "%r = arith.select %c, %x0, %m : f32"],
            ["%q = arith.mulf %x0, %x0 : f32", "%one = arith.constant 1.0 : f32",
             "%u = arith.addf %q, %one : f32", "%s = math.rsqrt %u : f32", "%r = arith.mulf %x0, %s : f32"],
        ]
        body = self.random.choice(bodies) + ["linalg.yield %r : f32"]
        result = self.generic(len(shape), ["parallel"] * len(shape), [(name, shape, dims)],
                              self.empty(shape), dims, shape, body)
        self.values.append((result, shape))

    def binary(self):
        """Two values of one shape, or one and a broadcast of some of its dimensions."""
        name, shape = self.pick()
        dims = [f"d{i}" for i in range(len(shape))]
        equal = [value for value in self.values if value[1] == shape]
        if self.random.random() < 0.5 or not shape:
            other = (*self.random.choice(equal), dims)
        else:
            kept = [i for i in range(len(shape)) if self.random.random() < 0.5]
            fitting = [v for v in self.values if v[1] == [shape[i] for i in kept]]
            value = self.random.choice(fitting) if fitting else self.argument([shape[i] for i in kept])
            other = (*value, [f"d{i}" for i in kept])
        op = self.random.choice(["addf", "subf", "mulf", "maximumf"])
        body = [f"%r = arith.{op} %x0, %x1 : f32", "linalg.yield %r : f32"]
        result = self.generic(len(shape), ["parallel"] * len(shape), [(name, shape, dims), other],
                              self.empty(shape), dims, shape, body)
        self.values.append((result, shape))

    def transpose(self):
        name, shape = self.pick()
        order = list(range(len(shape)))
        self.random.shuffle(order)
        dims = [f"d{i}" for i in range(len(shape))]
        out_shape = [shape[i] for i in order]
        body = ["linalg.yield %x0 : f32"]
        # Loop i walks the result's dimension i, the operand's dimension order[i].
        read = [dims[order.index(i)] for i in range(len(shape))]
        result = self.generic(len(shape), ["parallel"] * len(shape), [(name, shape, read)],
                              self.empty(out_shape), dims, out_shape, body)
        self.values.append((result, out_shape))

    def reduce(self):
        name, shape = self.pick()
        dims = [f"d{i}" for i in range(len(shape))]
        if self.random.random() < 0.3:  # columns: all dimensions but the last ones
            leading = self.random.randint(0, len(shape))
            reduced = [i < leading for i in range(len(shape))]
        else:
            reduced = [self.random.random() < 0.5 for _ in shape]
        if not any(reduced):
            return
        kinds = ["reduction" if is_reduced else "parallel" for is_reduced in reduced]
        kept = [i for i, is_reduced in enumerate(reduced) if not is_reduced]
        out_shape = [shape[i] for i in kept]
        length = 1
        for size, is_reduced in zip(shape, reduced):
            length *= size if is_reduced else 1
        if self.random.random() < 0.5 or length == 0:
            body = [f"%n = arith.constant {1.0 / max(length, 1)!r} : f32", "%m = arith.mulf %x0, %n : f32",
                    "%r = arith.addf %o, %m : f32"]
            init = self.filled(out_shape, "0.0") if self.random.random() < 0.7 else self.filled(out_shape, "0.25")
        else:
            body = ["%r = arith.maximumf %o, %x0 : f32"]
            init = self.filled(out_shape, "0xFF800000")
        result = self.generic(len(shape), kinds, [(name, shape, dims)], init, [f"d{i}" for i in kept],
                              out_shape, body + ["linalg.yield %r : f32"])
        self.values.append((result, out_shape))

    def contract(self):
        """A matmul of a value with another or an argument, some operands stored transposed."""
        matrices = [value for value in self.values if len(value[1]) == 2]
        if not matrices:
            return
        name, (m, k) = self.random.choice(matrices)
        flip = self.random.random() < 0.5
        fitting = [v for v in matrices if v[1][1 if flip else 0] == k]
        if fitting and self.random.random() < 0.5:
            other, shape = self.random.choice(fitting)
        else:
            n = self.random.choice(SIZES)
            other, shape = self.argument([n, k] if flip else [k, n])
        n = shape[0] if flip else shape[1]
        out_shape = [m, n]
        body = ["%p = arith.mulf %x0, %x1 : f32", "%r = arith.addf %o, %p : f32", "linalg.yield %r : f32"]
        raw = self.generic(3, ["parallel", "parallel", "reduction"],
                           [(name, [m, k], ["d0", "d2"]), (other, shape, ["d1", "d2"] if flip else ["d2", "d1"])],
                           self.filled(out_shape, "0.0"), ["d0", "d1"], out_shape, body)
        scale = [f"%n = arith.constant {1.0 / max(k, 1) ** 0.5!r} : f32", "%r = arith.mulf %x0, %n : f32",
                 "linalg.yield %r : f32"]
        result = self.generic(2, ["parallel"] * 2, [(raw, out_shape, ["d0", "d1"])], self.empty(out_shape),
                              ["d0", "d1"], out_shape, scale)
        self.values.append((result, out_shape))

    def pick_like(self, shape):
        """A value of this shape, or a new argument."""
        equal = [value for value in self.values if value[1] == shape]
        return self.random.choice(equal)[0] if equal and self.random.random() < 0.7 else self.argument(shape)[0]

    def bounded(self, name, shape):
        """Adds a result that grows with its row, and is nothing but rounding where the
        row is constant: it becomes a value of order one."""
        dims = [f"d{i}" for i in range(len(shape))]
        result = self.generic(len(shape), ["parallel"] * len(shape), [(name, shape, dims)], self.empty(shape),
                              dims, shape, ["%half = arith.constant 0.5 : f32", "%t = math.tanh %x0 : f32",
                                            "%r = arith.addf %t, %half : f32", "linalg.yield %r : f32"])
        self.values.append((result, shape))

    def norm(self):
        tensors = [value for value in self.values if value[1]]
        if tensors:
            name, shape = self.random.choice(tensors)
            self.random.choice([self.softmax, self.trailing_norm, self.cross_entropy])(name, shape)

    def softmax(self, name, shape):
        """A softmax or its logarithm, and perhaps the VJP of it."""
        axis = self.random.randrange(len(shape))
        kind, type, result = self.random.choice(["softmax", "log_softmax"]), self.type(shape), self.name()
        if kind == "softmax":
            empty = self.empty(shape)
            self.emit(f"{result} = linalg.softmax dimension({axis}) ins({name} : {type}) outs({empty} : {type}) -> {type}")
        else:
            self.emit(f"{result} = norm.log_softmax {name} {{axis = {axis} : i64}} : {type}")
        self.bounded(result, shape)
        if self.random.random() < 0.7:
            cotangent, gradient = self.pick_like(shape), self.name()
            self.emit(f"{gradient} = norm.{kind}_vjp {cotangent}, {result} {{axis = {axis} : i64}} : {type}")
            self.bounded(gradient, shape)

    def trailing_norm(self, name, shape):
        """LayerNorm or RMSNorm, or the VJP of one; `eps` is large, since nothing
        in f32 is close where a row is almost constant."""
        axes = self.random.randint(1, len(shape))
        columns = shape[-axes:]
        kind, type, weights = self.random.choice(["layer_norm", "rms_norm"]), self.type(shape), self.type(columns)
        gamma = f"gamma({self.pick_like(columns)} : {weights}) " if self.random.random() < 0.7 else ""
        attributes = f"{{axes = {axes} : i64, eps = 1.0e-1 : f64}}"
        if self.random.random() < 0.3:
            result = self.name()
            self.emit(f"{result} = norm.{kind} {name} {gamma}{attributes} : {type}")
            self.bounded(result, shape)
            return
        gradients = [self.name() for _ in range(3 if kind == "layer_norm" else 2)]
        cotangent = self.pick_like(shape)
        self.emit(f"{', '.join(gradients)} = norm.{kind}_vjp {cotangent}, {name} {gamma}{attributes} : {type}, {weights}")
        self.bounded(gradients[0], shape)
        for gradient in gradients[1:]:
            if self.random.random() < 0.8:
                self.bounded(gradient, columns)

    def cross_entropy(self, name, shape):
        """The losses of rows, or the gradient of a loss; some targets are ignored."""
        rows, classes = shape[:-1], shape[-1]
        numbers = 1
        for size in rows:
            numbers *= size
        type, integers = self.type(shape), self.type(rows, "i64")
        # Without classes, every target has to be one that is ignored.
        kept = 0.8 if classes else 0.0
        flat = [self.random.randrange(classes) if self.random.random() < kept else -100 for _ in range(numbers)]
        nested = flat
        for size in reversed(rows):
            nested = [nested[i:i + size] for i in range(0, len(nested), size)] if size else []
        targets = self.name()
        self.emit(f"{targets} = arith.constant dense<{nested[0] if numbers else ''}> : {integers}")
        if self.random.random() < 0.3:
            result = self.name()
            self.emit(f"{result} = norm.softmax_cross_entropy none {name}, {targets} : {type}, {integers} -> {self.type(rows)}")
            self.bounded(result, rows)
            return
        reduction, gradient = self.random.choice(["none", "sum", "mean"]), self.name()
        loss_shape = rows if reduction == "none" else []
        loss = self.pick_like(loss_shape)
        self.emit(f"{gradient} = norm.softmax_cross_entropy_vjp {reduction} {loss}, {name}, {targets} : "
                  f"{self.type(loss_shape)}, {type}, {integers}")
        self.bounded(gradient, shape)

    def reshape(self):
        name, shape = self.pick()
        if len(shape) < 2:
            return
        result, out_shape = self.name(), [shape[0] * shape[1], *shape[2:]]
        groups = [[0, 1]] + [[i] for i in range(2, len(shape))]
        self.emit(f"{result} = tensor.collapse_shape {name} {groups} : {self.type(shape)} into {self.type(out_shape)}")
        self.values.append((result, out_shape))

    def text(self):
        results = self.random.sample(self.values, min(len(self.values), self.random.randint(1, 4)))
        if self.values[-1] not in results:
            results.append(self.values[-1])
        arguments = ", ".join(f"{name}: {type}" for name, type in self.arguments)
        types = ", ".join(self.type(shape) for _, shape in results)
        names = ", ".join(name for name, _ in results)
        return "\n".join([f"func.func @f({arguments}) -> ({types}) {{", *self.lines,
                          f"  return {names} : {types}", "}", ""])


def make_graph(seed):
    """Returns the text of a module with one function, `f`."""
    graph = Graph(seed)
    for _ in range(graph.random.randint(1, 3)):
        rank = graph.random.choice([0, 1, 2, 2, 2, 3])
        graph.argument([graph.random.choice(SIZES) for _ in range(rank)])
    operations = [graph.pointwise, graph.pointwise, graph.binary, graph.binary, graph.transpose, graph.reduce,
                  graph.reduce, graph.contract, graph.norm, graph.norm, graph.reshape]
    for _ in range(graph.random.randint(1, 12)):
        graph.random.choice(operations)()
    return graph.text()
