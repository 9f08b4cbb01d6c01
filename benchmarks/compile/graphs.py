"""Prints the training loss of a model as a graph for `weir compile`, op by op as weir.torch writes an export, but
without PyTorch: graphs.py llama --layers=30 --hidden=576 ...; graphs.py FAMILY --help lists what a family takes.

Parameters are arguments of kind `param`, so no weight is in the text. Batch norms use the statistics of their batch."""

import argparse
import dataclasses
import inspect
import math
import struct
import sys


@dataclasses.dataclass(frozen=True)
class Value:
    name: str
    shape: tuple
    element: str

    @property
    def type(self):
        return f"tensor<{'x'.join([*map(str, self.shape), self.element])}>"


def count(shape):
    return math.prod(shape)


def print_list(values):
    return f"[{', '.join(map(str, values))}]"


class Graph:
    """A function that is written from its arguments to its results."""

    def __init__(self):
        self.arguments, self.head, self.lines, self.resources = [], [], [], []
        self.known = {}  # constants, empty and filled tensors, each made once
        self.made = 0

    def argument(self, name, *shape, kind="param", element="f32"):
        value = Value(f"%arg{len(self.arguments)}", shape, element)
        self.arguments.append(f'{value.name}: {value.type} {{weir.kind = "{kind}", weir.name = "{name}"}}')
        return value

    def emit(self, text, shape, element="f32", is_typed=True):
        """Adds the operation `text`, which ends in front of its type where that is printed."""
        self.made += 1
        value = Value(f"%{self.made}", tuple(shape), element)
        self.lines.append(f"    {value.name} = {text}{value.type if is_typed else ''}")
        return value

    def once(self, text):
        """Returns the name of a constant at the function's begin."""
        if text not in self.known:
            self.known[text] = f"%c{len(self.head)}"
            self.head.append(f"    {self.known[text]} = arith.constant {text}")
        return self.known[text]

    def number(self, number, element="f32"):
        if element[0] == "i":
            return self.once(f"{number} : {element}")
        return self.once(f"{'0xFF800000' if number == -math.inf else f'{number:.17e}'} : {element}")

    def resource(self, shape, values):
        """Returns a constant of f32, its bytes behind the module as exports have those of tables."""
        name = f"table_{'_'.join(map(str, shape))}_{len(self.resources)}"
        self.resources.append(f'      {name}: "0x04000000{struct.pack(f"<{len(values)}f", *values).hex().upper()}"')
        type = f"tensor<{'x'.join(map(str, shape))}xf32>"
        return Value(self.once(f"dense_resource<{name}> : {type}"), tuple(shape), "f32")

    def empty(self, shape, element="f32"):
        key = ("empty", tuple(shape), element)
        if key not in self.known:
            self.known[key] = self.emit("tensor.empty() : ", shape, element)
        return self.known[key]

    def fill(self, number, shape, element="f32"):
        key = (number, tuple(shape), element)
        if key not in self.known:
            out, filling = self.empty(shape, element), self.number(number, element)
            self.known[key] = self.emit(f"linalg.fill ins({filling} : {element}) outs({out.name} : {out.type}) -> ",
                                        shape, element)
        return self.known[key]

    def generic(self, out, inputs, body, kinds, maps):
        """Adds a linalg.generic. The steps of `body` give %t0, %t1, ... of the elements %a, %b, ... of `inputs` and %o
        of `out`; the last one is yielded. A step without a type has the element type of `out`."""
        loops = ", ".join(f"d{i}" for i in range(len(kinds)))
        maps = ", ".join(f"affine_map<({loops}) -> ({', '.join(points)})>" for points in maps)
        kinds = ", ".join(f'"{kind}"' for kind in kinds)
        ins = f"ins({', '.join(x.name for x in inputs)} : {', '.join(x.type for x in inputs)}) " if inputs else ""
        names = [*(f"%{chr(97 + i)}: {x.element}" for i, x in enumerate(inputs)), f"%o: {out.element}"]
        steps = [f"      %t{i} = {step if ' : ' in step else f'{step} : {out.element}'}" for i, step in enumerate(body)]
        result = f"%t{len(steps) - 1}" if steps else "%a"
        text = "\n".join([
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {ins}outs({out.name} : {out.type}) {{",
            f"    ^bb0({', '.join(names)}):", *steps, f"      linalg.yield {result} : {out.element}", "    } -> "])
        return self.emit(text, out.shape, out.element)

    def each(self, *inputs, body, element="f32"):
        """Computes `body` for each element, operands broadcast to each other."""
        rank = max(len(x.shape) for x in inputs)
        padded = [(1,) * (rank - len(x.shape)) + x.shape for x in inputs]
        shape = [max(sizes) for sizes in zip(*padded)]
        maps = []
        for x in inputs:
            first = rank - len(x.shape)
            maps.append([f"d{first + i}" if size == shape[first + i] else "0" for i, size in enumerate(x.shape)])
        maps.append([f"d{i}" for i in range(rank)])
        return self.generic(self.empty(shape, element), inputs, body, ["parallel"] * rank, maps)

    def add(self, x, y):
        return self.each(x, y, body=["arith.addf %a, %b"], element=x.element)

    def sub(self, x, y):
        return self.each(x, y, body=["arith.subf %a, %b"], element=x.element)

    def mul(self, x, y):
        return self.each(x, y, body=["arith.mulf %a, %b"], element=x.element)

    def scale(self, x, number):
        return self.each(x, body=[f"arith.mulf %a, {self.number(number)}"])

    def divide(self, x, number):
        return self.each(x, body=[f"arith.divf %a, {self.number(number, x.element)}"], element=x.element)

    def cast(self, x, element):
        step = {"f64": "extf", "f32": "truncf"}[element]
        return self.each(x, body=[f"arith.{step} %a : {x.element} to {element}"], element=element)

    def sum(self, x, axes):
        """Sums along `axes`, which stay with size 1; along all of them to rank 0."""
        all_axes = len(axes) == len(x.shape)
        shape = [] if all_axes else [1 if i in axes else size for i, size in enumerate(x.shape)]
        points = [] if all_axes else ["0" if i in axes else f"d{i}" for i in range(len(x.shape))]
        kinds = ["reduction" if i in axes else "parallel" for i in range(len(x.shape))]
        return self.generic(self.fill(0.0, shape, x.element), [x], ["arith.addf %a, %o"], kinds,
                            [[f"d{i}" for i in range(len(x.shape))], points])

    def mean(self, x, axes):
        return self.divide(self.sum(x, axes), float(count(x.shape[i] for i in axes)))

    def max(self, x):
        """The maximum of each row, with size 1: with its place, as torch's max along a dimension has it."""
        shape, last = x.shape[:-1], len(x.shape) - 1
        places, out = self.fill(0, shape, "i64"), self.fill(-math.inf, shape)
        loops = ", ".join(f"d{i}" for i in range(len(x.shape)))
        rows = f"affine_map<({loops}) -> ({', '.join(f'd{i}' for i in range(last))})>"
        kinds = ", ".join(['"parallel"'] * last + ['"reduction"'])
        self.made += 1
        self.lines.append(f"""\
    %{self.made}:2 = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({loops})>, {rows}, {rows}], iterator_types = [{kinds}]}} \
ins({x.name} : {x.type}) outs({out.name}, {places.name} : {out.type}, {places.type}) {{
    ^bb0(%a: f32, %o: f32, %p: i64):
      %t0 = linalg.index {last} : index
      %t1 = arith.index_cast %t0 : index to i64
      %t2 = arith.maximumf %a, %o : f32
      %t3 = arith.cmpf ogt, %a, %o : f32
      %t4 = arith.select %t3, %t1, %p : i64
      linalg.yield %t2, %t4 : f32, i64
    }} -> ({out.type}, {places.type})""")
        return self.reshape(Value(f"%{self.made}#0", shape, "f32"), [*shape, 1])

    def reshape(self, x, shape):
        """Collapses or expands, or both, groups of dimensions."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if (groups := group(x.shape, shape)) is not None:
            return self.emit(f"tensor.collapse_shape {x.name} {groups} : {x.type} into ", shape, x.element)
        if (groups := group(shape, x.shape)) is not None:
            return self.emit(f"tensor.expand_shape {x.name} {groups} output_shape {print_list(shape)} : {x.type} into ",
                             shape, x.element)
        return self.reshape(self.reshape(x, [count(x.shape)]), shape)

    def transpose(self, x, *order):
        out = self.empty([x.shape[i] for i in order], x.element)
        return self.emit(f"linalg.transpose ins({x.name} : {x.type}) outs({out.name} : {out.type}) "
                         f"permutation = {print_list(order)}", out.shape, out.element, is_typed=False)

    def slice(self, x, axis, begin, size):
        shape = [size if i == axis else s for i, s in enumerate(x.shape)]
        offsets = [begin if i == axis else 0 for i in range(len(shape))]
        ones = [1] * len(shape)
        return self.emit(f"tensor.extract_slice {x.name}{print_list(offsets)} {print_list(shape)} {print_list(ones)} : "
                         f"{x.type} to ", shape, x.element)

    def concat(self, axis, *parts):
        shape = list(parts[0].shape)
        shape[axis] = sum(x.shape[axis] for x in parts)
        return self.emit(f"tensor.concat dim({axis}) {', '.join(x.name for x in parts)} : "
                         f"({', '.join(x.type for x in parts)}) -> ", shape, parts[0].element)

    def pad(self, x, size, number=0.0):
        """Pads height and width of images."""
        if size == 0:
            return x
        shape = [*x.shape[:2], x.shape[2] + 2 * size, x.shape[3] + 2 * size]
        sizes = f"[0, 0, {size}, {size}]"
        return self.emit(f"""tensor.pad {x.name} low{sizes} high{sizes} {{
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield {self.number(number)} : f32
    }} : {x.type} to """, shape)

    def broadcast(self, x, shape, dimensions):
        """Repeats `x` along `dimensions` of the result."""
        out = self.empty(shape)
        return self.emit(f"linalg.broadcast ins({x.name} : {x.type}) outs({out.name} : {out.type}) "
                         f"dimensions = {print_list(dimensions)}", shape, is_typed=False)

    def named(self, op, x, y, out, attributes=""):
        return self.emit(f"linalg.{op} {attributes}ins({x.name}, {y.name} : {x.type}, {y.type}) "
                         f"outs({out.name} : {out.type}) -> ", out.shape)

    def matmul(self, x, y):
        op = "matmul" if len(x.shape) == 2 else "batch_matmul"
        return self.named(op, x, y, self.fill(0.0, [*x.shape[:-1], y.shape[-1]]))

    def linear(self, x, weight, bias=None):
        """x times the transpose of `weight`, which is stored (out, in)."""
        rows = self.reshape(x, [count(x.shape[:-1]), x.shape[-1]])
        y = self.matmul(rows, self.transpose(weight, 1, 0))
        y = self.reshape(y, [*x.shape[:-1], weight.shape[0]])
        return self.add(y, bias) if bias else y

    def gather(self, table, places):
        """The rows of `table` at `places`; an index out of range is asserted against, as torch-mlir does."""
        out = self.empty([*places.shape, table.shape[1]], table.element)
        rank = len(out.shape)
        body = ["arith.index_cast %a : i64 to index", f"linalg.index {rank - 1} : index",
                f"tensor.extract {table.name}[%t0, %t1] : {table.type}"]
        loops = [f"d{i}" for i in range(rank)]
        return self.generic(out, [places], body, ["parallel"] * rank, [loops[:-1], loops])

    def exp(self, x):
        return self.each(x, body=["math.exp %a"])

    def sigmoid(self, x):
        one = self.number(1.0)
        return self.each(x, body=["arith.negf %a", "math.exp %t0", f"arith.addf %t1, {one}", f"arith.divf {one}, %t2"])

    def silu(self, x):
        return self.mul(x, self.sigmoid(x))

    def relu(self, x):
        zero = self.number(0.0)
        return self.each(x, body=[f"arith.cmpf ugt, %a, {zero} : f32", f"arith.select %t0, %a, {zero} : f32"])

    def relu6(self, x):
        for compare, bound in ("oge", 6.0), ("ole", 0.0):
            bound = self.number(bound)
            below = self.each(x, body=[f"arith.cmpf {compare}, %a, {bound} : f32"], element="i1")
            x = self.each(below, x, body=[f"arith.select %a, {bound}, %b : f32"])
        return x

    def gelu(self, x):
        half = self.scale(x, 0.5)
        y = self.each(self.scale(x, math.sqrt(0.5)), body=["math.erf %a"])
        return self.mul(half, self.each(y, body=[f"arith.addf %a, {self.number(1.0)}"]))

    def gelu_tanh(self, x):
        half, cube = self.scale(x, 0.5), self.mul(self.mul(x, x), x)
        inner = self.scale(self.add(x, self.scale(cube, 0.044715)), math.sqrt(2 / math.pi))
        y = self.each(inner, body=["math.tanh %a"])
        return self.mul(half, self.each(y, body=[f"arith.addf %a, {self.number(1.0)}"]))

    def inverse_root(self, x, eps):
        small = self.number(eps, "f64")
        x = self.each(x, body=[f"arith.truncf {small} : f64 to f32", "arith.addf %a, %t0"])
        return self.each(x, body=["math.rsqrt %a"])

    def normalize(self, x, axes, eps=1e-5):
        """(x - mean) / sqrt(variance + eps), the variance in f64 as torch-mlir writes it."""
        wide = self.cast(x, "f64")
        centered = self.sub(wide, self.mean(wide, axes))
        variance = self.cast(self.mean(self.mul(centered, centered), axes), "f32")
        return self.mul(self.sub(x, self.mean(x, axes)), self.inverse_root(variance, eps))

    def layer_norm(self, x, name):
        size = x.shape[-1]
        weight, bias = self.argument(f"{name}.weight", size), self.argument(f"{name}.bias", size)
        return self.add(self.mul(self.normalize(x, [len(x.shape) - 1]), weight), bias)

    def rms_norm(self, x, name, eps=1e-5):
        two = self.number(2, "i64")
        squares = self.each(x, body=[f"math.fpowi %a, {two} : f32, i64"])
        root = self.inverse_root(self.mean(squares, [len(x.shape) - 1]), eps)
        return self.mul(self.argument(f"{name}.weight", x.shape[-1]), self.mul(x, root))

    def weigh_channels(self, x, name):
        for step, part in (self.mul, "weight"), (self.add, "bias"):
            x = step(x, self.reshape(self.argument(f"{name}.{part}", x.shape[1]), [x.shape[1], 1, 1]))
        return x

    def batch_norm(self, x, name):
        return self.weigh_channels(self.normalize(x, [0, 2, 3]), name)

    def group_norm(self, x, name, groups, eps=1e-5):
        """The rows of all groups normalized, as weir.torch writes it."""
        rows = self.reshape(self.reshape(x, [x.shape[0], count(x.shape[1:])]),
                            [x.shape[0], groups, count(x.shape[1:]) // groups])
        centered = self.sub(rows, self.mean(rows, [2]))
        rows = self.mul(centered, self.inverse_root(self.mean(self.mul(centered, centered), [2]), eps))
        return self.weigh_channels(self.reshape(self.reshape(rows, [x.shape[0], count(x.shape[1:])]), x.shape), name)

    def conv(self, x, name, channels, size, stride=1, bias=False, depthwise=False, padding=None):
        x = self.pad(x, size // 2 if padding is None else padding)
        height, width = ((s - size) // stride + 1 for s in x.shape[2:])
        shape = [x.shape[0], channels, height, width]
        weight = self.argument(f"{name}.weight", channels, 1 if depthwise else x.shape[1], size, size)
        out = self.broadcast(self.argument(f"{name}.bias", channels), shape, [0, 2, 3]) if bias else self.fill(0.0, shape)
        attributes = f"{{dilations = dense<1> : vector<2xi64>, strides = dense<{stride}> : vector<2xi64>}} "
        if depthwise:
            return self.named("depthwise_conv_2d_nchw_chw", x, self.reshape(weight, [channels, size, size]), out, attributes)
        return self.named("conv_2d_nchw_fchw", x, weight, out, attributes)

    def max_pool(self, x, size, stride):
        x = self.pad(x, size // 2, -math.inf)
        shape = [*x.shape[:2], *((s - size) // stride + 1 for s in x.shape[2:])]
        attributes = f"{{dilations = dense<1> : vector<2xi64>, strides = dense<{stride}> : vector<2xi64>}} "
        return self.named("pooling_nchw_max", x, self.empty([size, size]), self.fill(-math.inf, shape), attributes)

    def upsample(self, x):
        """Twice the height and width by the nearest element, whose place torch-mlir computes."""
        out = self.empty([*x.shape[:2], 2 * x.shape[2], 2 * x.shape[3]])
        body = [f"linalg.index {i} : index" for i in range(4)]
        places = []
        for i, extent in (2, x.shape[2]), (3, x.shape[3]):
            n = len(body)
            body += [f"arith.index_cast %t{i} : index to i64", f"arith.sitofp %t{n} : i64 to f32",
                     f"arith.divf %t{n + 1}, {self.number(2.0)}", f"math.floor %t{n + 2}",
                     f"arith.maximumf %t{n + 3}, {self.number(0.0)}",
                     f"arith.minimumf %t{n + 4}, {self.number(float(extent - 1))}",
                     f"arith.fptosi %t{n + 5} : f32 to i64", f"arith.index_cast %t{n + 6} : i64 to index"]
            places.append(f"%t{n + 7}")
        body.append(f"tensor.extract {x.name}[%t0, %t1, {', '.join(places)}] : {x.type}")
        return self.generic(out, [], body, ["parallel"] * 4, [["d0", "d1", "d2", "d3"]])

    def softmax(self, x):
        powers = self.exp(self.sub(x, self.max(x)))
        return self.each(powers, self.sum(powers, [len(x.shape) - 1]), body=["arith.divf %a, %b"])

    def attention(self, q, k, v, mask=None):
        """Returns the attention of (batch, heads, sequence, size). Consecutive heads of q share one of k and v."""
        batch, heads, sequence, size = q.shape
        k, v = (self.repeat_heads(x, heads // x.shape[1]) for x in (k, v))
        q, k, v = (self.reshape(x, [batch * heads, *x.shape[2:]]) for x in (q, self.transpose(k, 0, 1, 3, 2), v))
        scores = self.reshape(self.matmul(q, k), [batch, heads, sequence, sequence])
        scores = self.scale(scores, size ** -0.5)
        weights = self.softmax(self.add(scores, mask) if mask else scores)
        mixed = self.matmul(self.reshape(weights, [batch * heads, sequence, sequence]), v)
        mixed = self.transpose(self.reshape(mixed, [batch, heads, sequence, size]), 0, 2, 1, 3)
        return self.reshape(mixed, [batch, sequence, heads * size])

    def repeat_heads(self, x, times):
        if times == 1:
            return x
        batch, heads, sequence, size = x.shape
        out = self.empty([batch, heads, times, sequence, size])
        maps = [["d0", "d1", "d3", "d4"], [f"d{i}" for i in range(5)]]
        x = self.generic(out, [x], [], ["parallel"] * 5, maps)
        return self.reshape(x, [batch, heads * times, sequence, size])

    def split_heads(self, x, heads):
        batch, sequence, width = x.shape
        return self.transpose(self.reshape(x, [batch, sequence, heads, width // heads]), 0, 2, 1, 3)

    def causal_mask(self, sequence):
        lowest = -3.4028234663852886e38  # what is masked in f32, as transformers has it
        return self.resource([1, 1, sequence, sequence], [0.0 if j <= i else lowest
                                                          for i in range(sequence) for j in range(sequence)])

    def cross_entropy(self, scores, targets):
        """The mean of the rows' losses but those whose target is -100, as PyTorch has it."""
        classes = scores.shape[-1]
        rows = count(scores.shape[:-1])
        scores, targets = self.reshape(scores, [rows, classes]), self.reshape(targets, [rows])
        shifted = self.sub(scores, self.max(scores))
        logarithm = self.each(self.sum(self.exp(shifted), [1]), body=["math.log %a"])
        logs = self.sub(shifted, logarithm)
        ignored, zero = self.number(-100, "i64"), self.number(0, "i64")
        used = self.each(targets, body=[f"arith.cmpi ne, %a, {ignored} : i64"], element="i1")
        safe = self.each(used, targets, body=[f"arith.select %a, %b, {zero} : i64"], element="i64")
        body = ["linalg.index 0 : index", "arith.index_cast %a : i64 to index",
                f"tensor.extract {logs.name}[%t0, %t1] : {logs.type}", "arith.negf %t2"]
        losses = self.each(safe, body=body)
        losses = self.each(used, losses, body=[f"arith.select %a, %b, {self.number(0.0)} : f32"])
        number = self.generic(self.fill(0, [], "i64"), [used], ["arith.extui %a : i1 to i64", "arith.addi %t0, %o"],
                              ["reduction"], [["d0"], []])
        number = self.each(number, body=["arith.sitofp %a : i64 to f32"])
        return self.each(self.sum(losses, [0]), number, body=["arith.divf %a, %b"])

    def mean_square(self, x, y):
        two = self.number(2, "i64")
        squares = self.each(self.sub(x, y), body=[f"math.fpowi %a, {two} : f32, i64"])
        return self.mean(squares, list(range(len(x.shape))))

    def text(self, loss):
        tables = ["", "{-#", "  dialect_resources: {", "    builtin: {", ",\n".join(self.resources), "    }", "  }", "#-}"]
        return "\n".join([
            "module {", f'  func.func @main({", ".join(self.arguments)}) -> ({loss.type} {{weir.name = "loss"}}) {{',
            *self.head, *self.lines, f"    return {loss.name} : {loss.type}", "  }", "}",
            *(tables if self.resources else [])]) + "\n"


def group(many, few):
    """Returns the reassociation that collapses the shape `many` to `few`, None if there is none."""
    groups, place = [], 0
    for extent in few:
        group, size = [], 1
        while place < len(many) and (not group or size < extent or size == extent and many[place] == 1
                                     and len(many) - place > len(few) - len(groups) - 1):
            size *= many[place]
            group.append(place)
            place += 1
        if size != extent or not group:
            return None
        groups.append(group)
    return groups if place == len(many) else None


def llama(layers=6, hidden=576, heads=9, kv_heads=3, intermediate=1536, vocabulary=49152, sequence=128, batch=1,
          tied=False, rank=0):
    """A Llama: rotary embedding, RMSNorm, grouped heads, SwiGLU. With --rank the queries and values have adapters of that
    rank (LoRA), and nothing else is trained."""
    g, size = Graph(), hidden // heads
    frozen = "input" if rank else "param"
    tokens = g.argument("tokens", batch, sequence, kind="input", element="i64")
    targets = g.argument("next", batch, sequence, kind="target", element="i64")
    table = g.argument("embed.weight", vocabulary, hidden, kind=frozen)
    angles = [i * 10000.0 ** (-2 * (j % (size // 2)) / size) for i in range(sequence) for j in range(size)]
    cosines = g.resource([1, 1, sequence, size], list(map(math.cos, angles)))
    sines = g.resource([1, 1, sequence, size], list(map(math.sin, angles)))
    mask = g.causal_mask(sequence)

    def rms_norm(x, name):
        return g.rms_norm(x, name)

    def project(x, name, width, adapted=False):
        y = g.linear(x, g.argument(f"{name}.weight", width, x.shape[-1], kind=frozen))
        if not (rank and adapted):
            return y
        down = g.linear(x, g.argument(f"{name}.down", rank, x.shape[-1]))
        return g.add(y, g.scale(g.linear(down, g.argument(f"{name}.up", width, rank)), 2.0))

    def rotate(x):
        half = size // 2
        first, second = g.slice(x, 3, 0, half), g.slice(x, 3, half, half)
        turned = g.concat(3, g.each(second, body=["arith.negf %a"]), first)
        return g.add(g.mul(x, cosines), g.mul(turned, sines))

    x = g.gather(table, tokens)
    for i in range(layers):
        name = f"layers.{i}"
        y = rms_norm(x, f"{name}.input_norm")
        q = g.split_heads(project(y, f"{name}.q", hidden, adapted=True), heads)
        k = g.split_heads(project(y, f"{name}.k", kv_heads * size), kv_heads)
        v = g.split_heads(project(y, f"{name}.v", kv_heads * size, adapted=True), kv_heads)
        x = g.add(x, project(g.attention(rotate(q), rotate(k), v, mask), f"{name}.o", hidden))
        y = rms_norm(x, f"{name}.post_norm")
        gate, up = project(y, f"{name}.gate", intermediate), project(y, f"{name}.up", intermediate)
        x = g.add(x, project(g.mul(g.silu(gate), up), f"{name}.down", hidden))
    x = rms_norm(x, "norm")
    scores = g.linear(x, table) if tied else project(x, "head", vocabulary)
    return g.text(g.cross_entropy(scores, targets))


def add_block(g, x, name, heads, activation, mask=None):
    """A block of GPT-2 or ViT: attention, then an MLP of four times the width."""
    width = x.shape[-1]

    def linear(x, part, out):
        weight, bias = g.argument(f"{name}.{part}.weight", out, x.shape[-1]), g.argument(f"{name}.{part}.bias", out)
        return g.linear(x, weight, bias)

    joint = linear(g.layer_norm(x, f"{name}.attention_norm"), "qkv", 3 * width)
    q, k, v = (g.split_heads(g.slice(joint, 2, i * width, width), heads) for i in range(3))
    x = g.add(x, linear(g.attention(q, k, v, mask), "mix", width))
    y = activation(linear(g.layer_norm(x, f"{name}.mlp_norm"), "up", 4 * width))
    return g.add(x, linear(y, "down", width))


def gpt2(layers=12, hidden=768, heads=12, vocabulary=50257, sequence=128, batch=1):
    """GPT-2: learned places, LayerNorm, GELU by tanh, the embedding scores, too."""
    g = Graph()
    tokens = g.argument("tokens", batch, sequence, kind="input", element="i64")
    targets = g.argument("next", batch, sequence, kind="target", element="i64")
    table, places = g.argument("embed.weight", vocabulary, hidden), g.argument("place.weight", sequence, hidden)
    mask = g.causal_mask(sequence)
    x = g.add(g.gather(table, tokens), places)
    for i in range(layers):
        x = add_block(g, x, f"blocks.{i}", heads, g.gelu_tanh, mask)
    return g.text(g.cross_entropy(g.linear(g.layer_norm(x, "norm"), table), targets))


def classify(g, x, classes, targets):
    weight, bias = g.argument("head.weight", classes, x.shape[-1]), g.argument("head.bias", classes)
    return g.text(g.cross_entropy(g.linear(x, weight, bias), targets))


def begin_images(resolution, batch):
    """Returns a graph, its images and their classes."""
    g = Graph()
    images = g.argument("images", batch, 3, resolution, resolution, kind="input")
    return g, images, g.argument("classes", batch, kind="target", element="i64")


def vit(layers=12, hidden=192, heads=3, patch=16, classes=1000, resolution=224, batch=1):
    """A vision transformer: patches by a strided convolution, a class token, GELU by the error function."""
    g, images, targets = begin_images(resolution, batch)
    x = g.conv(images, "patches", hidden, patch, stride=patch, bias=True, padding=0)
    x = g.transpose(g.reshape(x, [batch, hidden, count(x.shape[2:])]), 0, 2, 1)
    token = g.reshape(g.argument("token", 1, 1, hidden), [hidden])
    x = g.concat(1, g.broadcast(token, [batch, 1, hidden], [0, 1]), x)
    x = g.add(x, g.argument("places", 1, x.shape[1], hidden))
    for i in range(layers):
        x = add_block(g, x, f"blocks.{i}", heads, g.gelu)
    x = g.reshape(g.slice(g.layer_norm(x, "norm"), 1, 0, 1), [batch, hidden])
    return classify(g, x, classes, targets)


def pool_and_classify(g, x, classes, targets):
    return classify(g, g.reshape(g.mean(x, [2, 3]), x.shape[:2]), classes, targets)


def resnet(layers=18, width=64, stages=4, classes=1000, resolution=224, batch=1):
    """A ResNet of 18, 34, 50, 101 or 152 layers, of its first stages alone with --stages."""
    blocks = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
    if layers not in blocks:
        raise ValueError(f"no ResNet has {layers} layers; there are {', '.join(map(str, blocks))}")
    g, images, targets = begin_images(resolution, batch)

    def conv(x, name, channels, size, stride=1):
        return g.batch_norm(g.conv(x, f"{name}.conv", channels, size, stride), f"{name}.norm")

    x = g.max_pool(g.relu(conv(images, "stem", width, 7, 2)), 3, 2)
    for stage, repeats in enumerate(blocks[layers][:stages]):
        inner = width << stage
        channels = 4 * inner if layers >= 50 else inner
        for i in range(repeats):
            name, stride = f"stages.{stage}.{i}", 2 if stage and not i else 1
            if layers >= 50:
                y = g.relu(conv(x, f"{name}.0", inner, 1))
                y = g.relu(conv(y, f"{name}.1", inner, 3, stride))
                y = conv(y, f"{name}.2", channels, 1)
            else:
                y = conv(g.relu(conv(x, f"{name}.0", inner, 3, stride)), f"{name}.1", channels, 3)
            if stride != 1 or x.shape[1] != channels:
                x = conv(x, f"{name}.shortcut", channels, 1, stride)
            x = g.relu(g.add(y, x))
    return pool_and_classify(g, x, classes, targets)


def mobilenet(version=1, depth=1, width=32, stages=7, classes=1000, resolution=224, batch=1):
    """MobileNet: depthwise and pointwise convolutions (version 1) or inverted residuals (version 2); --depth repeats the
    blocks of equal shape that often, --stages takes the first ones alone."""
    if version not in (1, 2):
        raise ValueError(f"there is no version {version}; there are 1 and 2")
    g, images, targets = begin_images(resolution, batch)
    activation = g.relu if version == 1 else g.relu6

    def conv(x, name, channels, size, stride=1, depthwise=False):
        return g.batch_norm(g.conv(x, f"{name}.conv", channels, size, stride, depthwise=depthwise), f"{name}.norm")

    x = activation(conv(images, "stem", width, 3, 2))
    if version == 1:  # channels by the width, repeats, the first one's stride
        table = [(2, 1, 1), (4, 1, 2), (4, depth, 1), (8, 1, 2), (8, depth, 1), (16, 1 + 5 * depth, 2), (32, 1 + depth, 2)]
        for stage, (factor, repeats, stride) in enumerate(table[:stages]):
            for i in range(repeats):
                name = f"stages.{stage}.{i}"
                x = g.relu(conv(x, f"{name}.0", x.shape[1], 3, stride if i == 0 else 1, depthwise=True))
                x = g.relu(conv(x, f"{name}.1", factor * width, 1))
        return pool_and_classify(g, x, classes, targets)
    table = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for stage, (expansion, channels, repeats, stride) in enumerate(table[:stages]):
        channels = max(1, channels * width // 32)
        for i in range(repeats * depth):
            name, y = f"stages.{stage}.{i}", x
            if expansion != 1:
                y = g.relu6(conv(y, f"{name}.0", expansion * x.shape[1], 1))
            y = g.relu6(conv(y, f"{name}.1", y.shape[1], 3, stride if i == 0 else 1, depthwise=True))
            y = conv(y, f"{name}.2", channels, 1)
            x = g.add(x, y) if x.shape == y.shape else y
    return pool_and_classify(g, g.relu6(conv(x, "last", 40 * width, 1)), classes, targets)


def unet(levels=4, width=32, blocks=2, groups=8, resolution=64, batch=1):
    """A U-Net: residual blocks of group norm and SiLU, strided convolutions down, nearest elements up, skips joined."""
    g = Graph()
    images = g.argument("images", batch, 3, resolution, resolution, kind="input")
    targets = g.argument("targets", batch, 3, resolution, resolution, kind="target")

    def block(x, name, channels):
        y = g.conv(g.silu(g.group_norm(x, f"{name}.norm0", groups)), f"{name}.conv0", channels, 3, bias=True)
        y = g.conv(g.silu(g.group_norm(y, f"{name}.norm1", groups)), f"{name}.conv1", channels, 3, bias=True)
        if x.shape[1] != channels:
            x = g.conv(x, f"{name}.shortcut", channels, 1, bias=True)
        return g.add(x, y)

    x, skips = g.conv(images, "first", width, 3, bias=True), []
    for level in range(levels):
        for i in range(blocks):
            x = block(x, f"down.{level}.{i}", width << level)
        skips.append(x)
        if level < levels - 1:
            x = g.conv(x, f"down.{level}.half", x.shape[1], 3, stride=2, bias=True)
    x = block(x, "middle", x.shape[1])
    for level in reversed(range(levels)):
        x = g.concat(1, x, skips.pop())
        for i in range(blocks):
            x = block(x, f"up.{level}.{i}", width << level)
        if level:
            x = g.conv(g.upsample(x), f"up.{level}.twice", x.shape[1], 3, bias=True)
    x = g.conv(g.silu(g.group_norm(x, "last.norm", groups)), "last.conv", 3, 3, bias=True)
    return g.text(g.mean_square(x, targets))


FAMILIES = {family.__name__: family for family in (llama, gpt2, vit, resnet, mobilenet, unet)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="family", required=True)
    for name, family in FAMILIES.items():
        verb = verbs.add_parser(name, description=family.__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        for parameter in inspect.signature(family).parameters.values():
            flag = f"--{parameter.name.replace('_', '-')}"
            if parameter.default is False:
                verb.add_argument(flag, action="store_true", help=" ")
            else:
                verb.add_argument(flag, type=int, default=parameter.default, help=" ")
    options = vars(parser.parse_args())
    try:
        sys.stdout.write(FAMILIES[options.pop("family")](**options))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
