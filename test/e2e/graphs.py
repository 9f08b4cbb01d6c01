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

    def norm(self):
        matrices = [value for value in self.values if len(value[1]) == 2 and value[1][1] > 1]
        if not matrices:
            return
        name, shape = self.random.choice(matrices)
        result = self.name()
        type = self.type(shape)
        self.emit(f"{result} = norm.log_softmax {name} {{axis = 1 : i64}} : {type}")
        # A log-softmax grows with its row; tanh keeps what follows of order one.
        bounded = self.generic(2, ["parallel"] * 2, [(result, shape, ["d0", "d1"])], self.empty(shape),
                               ["d0", "d1"], shape, ["%r = math.tanh %x0 : f32", "linalg.yield %r : f32"])
        self.values.append((bounded, shape))

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
                  graph.reduce, graph.contract, graph.norm, graph.reshape]
    for _ in range(graph.random.randint(1, 12)):
        graph.random.choice(operations)()
    return graph.text()
