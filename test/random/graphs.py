"""A seeded generator of graph-level functions of everything that the graph level takes:
sizes 0, 1 and primes, many readers, results that alias, broadcasts, windows, norms and
their gradients, f32 and f64, integers and 16 bits where they are exact.

A graph is a list of nodes that can be left out or made smaller one by one (shrink.py), so
a node says what it is and of which values; shapes follow from its operands.

Operations are chosen so that f32 and f64 stay close: values stay of order one, sums are
averages, and nothing is discontinuous."""

import copy
import dataclasses
import math
import random

SIZES = [0, 1, 1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 31, 32, 64, 97, 128]
TINY = [0, 1, 2, 3, 4, 5, 7]


class Invalid(Exception):
    """A node that does not fit its operands; the shrinker tries such."""


def need(condition):
    if not condition:
        raise Invalid


def type_of(shape, element):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def get_dims(count):
    return [f"d{i}" for i in range(count)]


class Writer:
    """The text of a function, op by op."""

    def __init__(self):
        self.lines, self.count = [], 0

    def emit(self, text):
        self.lines.append(f"  {text}")

    def op(self, text, results=1):
        """Adds an op that lacks its result's name; returns the name, names for several."""
        names = [f"%v{self.count + i}" for i in range(results)]
        self.count += results
        self.emit(f"{', '.join(names)} = {text}")
        return names[0] if results == 1 else names

    def empty(self, shape, element):
        return self.op(f"tensor.empty() : {type_of(shape, element)}")

    def filled(self, shape, element, value):
        scalar, empty = self.op(f"arith.constant {value} : {element}"), self.empty(shape, element)
        type = type_of(shape, element)
        return self.op(f"linalg.fill ins({scalar} : {element}) outs({empty} : {type}) -> {type}")

    def generic(self, kinds, operands, outs, body, attributes=""):
        """`operands` and `outs` are (name, shape, element, results of the map); `body` gets
        %x0, %x1... and %o0, %o1..., its last line yields."""
        loops = ", ".join(get_dims(len(kinds)))
        maps = ", ".join(f"affine_map<({loops}) -> ({', '.join(map)})>" for _, _, _, map in operands + outs)
        iterators = ", ".join(f'"{kind}"' for kind in kinds)
        types = [type_of(shape, element) for _, shape, element, _ in outs]
        text = f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]{attributes}}}\n   "
        if operands:
            text += (f" ins({', '.join(name for name, _, _, _ in operands)} : "
                     f"{', '.join(type_of(shape, element) for _, shape, element, _ in operands)})")
        text += f" outs({', '.join(name for name, _, _, _ in outs)} : {', '.join(types)}) {{"
        arguments = [f"%x{i}: {operand[2]}" for i, operand in enumerate(operands)]
        arguments += [f"%o{i}: {out[2]}" for i, out in enumerate(outs)]
        lines = [f"^bb0({', '.join(arguments)}):", *(f"  {line}" for line in body)]
        end = f"}} -> {types[0]}" if len(types) == 1 else f"}} -> ({', '.join(types)})"
        return self.op("\n  ".join([text, *lines, end]), len(outs))

    def map(self, shape, element, operands, body, attributes=""):
        """Every point for itself; `operands` are (name, shape, element, results of the map)."""
        out = (self.empty(shape, element), shape, element, get_dims(len(shape)))
        return self.generic(["parallel"] * len(shape), operands, [out],
                            body + [f"linalg.yield %r : {element}"], attributes)

    def bound(self, name, shape, element):
        """Of what grows with its row, and is nothing but rounding where the row is constant,
        a value of order one."""
        body = ["%half = arith.constant 0.5 : E", "%q = arith.mulf %x0, %x0 : E", "%one = arith.constant 1.0 : E",
                "%u = arith.addf %q, %one : E", "%s = math.sqrt %u : E", "%t = arith.divf %x0, %s : E",
                "%r = arith.addf %t, %half : E"]
        return self.map(shape, element, [(name, shape, element, get_dims(len(shape)))],
                        [line.replace(": E", f": {element}") for line in body])


def get_body(text):
    """Lines, with %u for 1 + x^2, %t for tanh x, %h for 0.5 tanh x."""
    first = {"%u": ["%one = arith.constant 1.0 : E", "%q = arith.mulf %x0, %x0 : E", "%u = arith.addf %q, %one : E"],
             "%t": ["%t = math.tanh %x0 : E"],
             "%h": ["%w = math.tanh %x0 : E", "%k = arith.constant 0.5 : E", "%h = arith.mulf %w, %k : E"]}
    lines = [line for name, some in first.items() if f"{name} " in text or f"{name}," in text for line in some]
    return lines + text.split("; ")


# Bodies of functions of %x0, by name.
UNARY = {name: get_body(text) for name, text in {
    "negf": "%r = arith.negf %x0 : E",
    "absf": "%s = math.absf %x0 : E; %z = arith.constant 0.5 : E; %r = arith.subf %s, %z : E",
    "leaky": "%z = arith.constant 0.0 : E; %k = arith.constant 0.1 : E; %c = arith.cmpf ogt, %x0, %z : E; "
             "%m = arith.mulf %x0, %k : E; %r = arith.select %c, %x0, %m : E",
    "rsqrt": "%s = math.rsqrt %u : E; %r = arith.mulf %x0, %s : E",
    "sqrt": "%s = math.sqrt %u : E; %r = arith.subf %s, %one : E",
    "fma": "%k = arith.constant 0.5 : E; %r = math.fma %x0, %k, %k : E",
    "clamp": "%l = arith.constant -0.9 : E; %m = arith.constant 1.1 : E; %n = arith.maximumf %x0, %l : E; "
             "%r = arith.minimumf %n, %m : E",
    "clampf": "%l = arith.constant -0.7 : E; %m = arith.constant 1.2 : E; %r = math.clampf %x0 to [%l, %m] : E",
    "copysign": "%d = arith.divf %q, %u : E; %r = math.copysign %d, %x0 : E",
    "gauss": "%q = arith.mulf %x0, %x0 : E; %n = arith.negf %q : E; %e = math.exp %n : E; "
             "%one = arith.constant 1.0 : E; %p = arith.addf %e, %one : E; %r = arith.divf %one, %p : E",
    "log1p": "%q = arith.mulf %x0, %x0 : E; %r = math.log1p %q : E",
    "powf": "%p = arith.constant 0.3 : E; %r = math.powf %u, %p : E",
    "fpowi": "%three = arith.constant 3 : i32; %r = math.fpowi %t, %three : E, i32",
    "atan2": "%r = math.atan2 %x0, %u : E",
    "acosh": "%k = arith.constant 0.5 : E; %v = arith.addf %u, %k : E; %r = math.acosh %v : E",
    "sincos": "%s, %c = math.sincos %x0 : E; %r = arith.addf %s, %c : E",
    "isnormal": "%c = math.isnormal %x0 : E; %z = arith.constant 0.0 : E; %r = arith.select %c, %x0, %z : E",
    "isfinite": "%c = math.isfinite %x0 : E; %z = arith.constant 0.0 : E; %r = arith.select %c, %x0, %z : E",
    "isnan": "%c = math.isnan %x0 : E; %z = arith.constant 0.0 : E; %r = arith.select %c, %z, %x0 : E",
    "isinf": "%c = math.isinf %x0 : E; %z = arith.constant 0.0 : E; %r = arith.select %c, %z, %x0 : E",
    **{name: f"%r = math.{name} %x0 : E" for name in ["tanh", "erf", "erfc", "sin", "cos", "atan", "asinh"]},
    **{name: f"%r = math.{name} %u : E" for name in ["log", "log2", "log10", "cbrt"]},
    **{name: f"%r = math.{name} %t : E" for name in ["expm1", "exp2", "sinh", "cosh", "tan"]},
    **{name: f"%r = math.{name} %h : E" for name in ["asin", "acos", "atanh"]},
}.items()}
BINARY = ["addf", "subf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf"]
# Where two branches meet, differences are no gradients.
KINKED = ["absf", "leaky", "clamp", "clampf", "maximumf", "minimumf", "maxnumf", "minnumf", "max", "min", "abs"]


class Operation:
    """What nodes of one kind share. `propose` gives (operands, data), or None where nothing
    fits; `infer` gives the results' shapes and elements, or raises Invalid; `emit` the text,
    and the names of the results."""

    has_gradient = True

    def propose(self, graph):
        raise NotImplementedError

    def infer(self, types, data):
        raise NotImplementedError

    def emit(self, writer, operands, data):
        raise NotImplementedError


def maybe_alone(graph):
    return graph.random.random() < 0.15


def no_fuse(data):
    return ", weir.no_fuse" if data.get("alone") else ""


class Unary(Operation):
    def propose(self, graph):
        value = graph.pick()
        return [value], {"body": graph.random.choice(sorted(UNARY)), "alone": maybe_alone(graph)}

    def infer(self, types, data):
        return [types[0]]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        body = [line.replace(": E", f": {element}") for line in UNARY[data["body"]]]
        return [writer.map(shape, element, [(name, shape, element, get_dims(len(shape)))], body, no_fuse(data))]


class Binary(Operation):
    """Two values of one shape, or one and a broadcast of some of its dimensions, which are
    left out of the other (`unit`: are of size 1 there)."""

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        data = {"op": graph.random.choice(BINARY), "kept": list(range(len(shape))), "unit": False}
        if graph.random.random() < 0.5 and shape:
            data["kept"] = [i for i in range(len(shape)) if graph.random.random() < 0.5]
            data["unit"] = graph.random.random() < 0.3
        return [value, graph.pick_like(self.get_other(shape, data), element)], data

    def get_other(self, shape, data):
        if data["unit"]:
            return [size if i in data["kept"] else 1 for i, size in enumerate(shape)]
        return [shape[i] for i in data["kept"]]

    def infer(self, types, data):
        (shape, element), other = types
        need(all(i < len(shape) for i in data["kept"]))
        need(other == (self.get_other(shape, data), element))
        return [(shape, element)]

    def emit(self, writer, operands, data):
        (name, shape, element), (other, other_shape, _) = operands
        dims = get_dims(len(shape))
        read = [dims[i] if i in data["kept"] else "0" for i in range(len(shape))] if data["unit"] else [
            dims[i] for i in data["kept"]]
        body = [f"%r = arith.{data['op']} %x0, %x1 : {element}"]
        return [writer.map(shape, element, [(name, shape, element, dims), (other, other_shape, element, read)],
                           body)]


class Select(Operation):
    """What of two values is larger, by a tensor of i1 that a kernel of its own may make."""

    def propose(self, graph):
        value = graph.pick()
        return [value, graph.pick_like(*graph.get(value))], {"alone": maybe_alone(graph)}

    def infer(self, types, data):
        need(types[0] == types[1])
        return [types[0]]

    def emit(self, writer, operands, data):
        (a, shape, element), (b, _, _) = operands
        dims = get_dims(len(shape))
        both = [(a, shape, element, dims), (b, shape, element, dims)]
        mask = writer.map(shape, "i1", both, [f"%r = arith.cmpf ogt, %x0, %x1 : {element}"], no_fuse(data))
        return [writer.map(shape, element, [(mask, shape, "i1", dims), *both],
                           [f"%r = arith.select %x0, %x1, %x2 : {element}"])]


class Index(Operation):
    """A value, scaled by where it stands, through a tensor of integers."""

    def propose(self, graph):
        value = graph.pick()
        shape = graph.get(value)[0]
        return ([value], {"dimension": graph.random.randrange(len(shape)),
                          "integer": graph.random.choice(["i32", "i64", "i16", "i8"])}) if shape else None

    def infer(self, types, data):
        need(data["dimension"] < len(types[0][0]))
        return [types[0]]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        dims, integer = get_dims(len(shape)), data["integer"]
        places = writer.map(shape, integer, [], [f"%i = linalg.index {data['dimension']} : index",
                                                 f"%r = arith.index_cast %i : index to {integer}"])
        # A factor: the difference of values that differ by little would be nothing but rounding.
        body = [f"%f = arith.sitofp %x0 : {integer} to {element}", f"%k = arith.constant 0.01 : {element}",
                f"%h = arith.constant 0.5 : {element}", f"%m = math.fma %f, %k, %h : {element}",
                f"%r = arith.mulf %x1, %m : {element}"]
        return [writer.map(shape, element, [(places, shape, integer, dims), (name, shape, element, dims)], body)]


class Named(Operation):
    """An elementwise op of linalg's own names, of two values, of one, or of one that is bounded
    or positive; a reduction by name."""

    OPS = {"add": "two", "sub": "two", "mul": "two", "max": "two", "min": "two", "map": "two", "elementwise": "two",
           "select": "two", "div": "ratio", "powf": "power", "tanh": "one", "erf": "one", "negf": "one", "abs": "one",
           "copy": "one", "exp": "bounded", "square": "bounded", "log": "positive", "sqrt": "positive",
           "rsqrt": "positive", "reciprocal": "positive", "reduce": "sum"}

    def propose(self, graph):
        value, op = graph.pick(), graph.random.choice(sorted(self.OPS))
        shape, element = graph.get(value)
        if op == "reduce":
            return ([value], {"op": op, "dimension": graph.random.randrange(len(shape))}) if shape else None
        operands = [value] + [graph.pick_like(shape, element)] * (self.OPS[op] in ("two", "ratio"))
        return operands, {"op": op}

    def infer(self, types, data):
        shape, element = types[0]
        need(types[-1] == types[0])
        if data["op"] != "reduce":
            return [types[0]]
        at = data["dimension"]
        need(at < len(shape))
        return [([*shape[:at], *shape[at + 1:]], element)]

    def emit(self, writer, operands, data):
        (name, shape, element), op = operands[0], data["op"]
        type, dims, kind = type_of(shape, element), get_dims(len(shape)), self.OPS[data["op"]]

        def compute(value, *body):
            return writer.map(shape, element, [(value, shape, element, dims)],
                              [line.replace(": E", f": {element}") for line in body])

        positive = ["%one = arith.constant 1.0 : E", "%q = arith.mulf %x0, %x0 : E", "%r = arith.addf %q, %one : E"]
        if kind == "sum":
            [(out, _)] = self.infer([(shape, element)], data)
            at, small = data["dimension"], type_of(out, element)
            scaled = compute(name, f"%k = arith.constant {1.0 / max(shape[at], 1)!r} : E",
                             "%r = arith.mulf %x0, %k : E")
            return [writer.op(f"linalg.reduce {{ arith.addf }} ins({scaled} : {type}) "
                              f"outs({writer.filled(out, element, 0.25)} : {small}) dimensions = [{at}]")]
        inputs = [operand for operand, _, _ in operands]
        if kind == "positive":
            inputs = [compute(name, *positive)]
        elif kind == "bounded":
            inputs = [compute(name, "%r = math.tanh %x0 : E")]
        elif kind == "ratio":
            inputs = [name, compute(operands[1][0], *positive)]
        elif kind == "power":
            inputs = [compute(name, *positive), compute(name, "%r = math.tanh %x0 : E")]
        types = [type] * len(inputs)
        if op == "select":  # odd places of the one, even ones of the other
            inputs.insert(0, writer.map(shape, "i1", [], [
                *[f"%i{i} = linalg.index {i} : index" for i in range(len(shape))],
                "%two = arith.constant 2 : index", f"%m = arith.remui {'%i0' if shape else '%two'}, %two : index",
                "%zero = arith.constant 0 : index", "%r = arith.cmpi eq, %m, %zero : index"]))
            types.insert(0, type_of(shape, "i1"))
        empty = writer.empty(shape, element)
        said, result = f"ins({', '.join(inputs)} : {', '.join(types)}) outs({empty} : {type})", f" -> {type}"
        if op == "map":
            return [writer.op(f"linalg.map {{ arith.subf }} {said}")]
        attributes = "kind=#linalg.elementwise_kind<mul> " if op == "elementwise" else ""
        return [writer.op(f"linalg.{op} {attributes}{said}{result}")]


class Integers(Operation):
    """A value, scaled by what arithmetic of integers makes of where it stands, and perhaps what
    rounding makes of that. All of it is exact, so that it may jump."""

    # Of %p and a constant %c, of which one is in {}.
    OPS = {"addi": 7, "subi": 5, "muli": 3, "andi": 13, "ori": 2, "xori": 11, "maxsi": 6, "maxui": 4, "minsi": 9,
           "minui": 10, "divsi": 3, "divui": 2, "remsi": 11, "remui": 7, "ceildivsi": 3, "ceildivui": 2,
           "floordivsi": 3, "shli": 1, "shrsi": 1, "shrui": 1}
    OTHERS = ["absi", "cmpi", "extsi", "extui", "addui_extended", "mulsi_extended", "mului_extended", "ctlz"]
    WIDER = {"i8": "i16", "i16": "i32", "i32": "i64"}
    # Of %f, which counts quarters.
    ROUNDED = {"none": "%g = arith.addf %f, %zero : E", "remf": "%g = arith.remf %f, %two : E",
               "fptosi": "%j = arith.fptosi %f : E to i32; %g = arith.sitofp %j : i32 to E",
               "fptoui": "%j = arith.fptoui %f : E to i32; %g = arith.uitofp %j : i32 to E",
               **{name: f"%g = math.{name} %f : E" for name in ["floor", "ceil", "round", "roundeven", "trunc"]}}

    def propose(self, graph):
        value = graph.pick()
        shape = graph.get(value)[0]
        integer = graph.random.choice(["i64", "i32", "i32", "i16", "i8"])
        others = [op for op in self.OTHERS if self.takes(op, integer)]
        ops = [graph.random.choice(others if graph.random.random() < 0.3 else sorted(self.OPS))
               for _ in range(graph.random.randint(1, 4))]
        return ([value], {"dimension": graph.random.randrange(len(shape)), "integer": integer, "ops": ops,
                          "cast": graph.random.choice(["index_cast", "index_castui"]),
                          "rounded": graph.random.choice(sorted(self.ROUNDED)),
                          "alone": maybe_alone(graph)}) if shape else None

    def takes(self, op, integer):
        if op in ("extsi", "extui"):
            return integer in self.WIDER
        return (integer in ("i32", "i64") or not op.endswith("extended")) and (integer == "i32" or op != "ctlz")

    def infer(self, types, data):
        need(data["dimension"] < len(types[0][0]))
        return [types[0]]

    def get_lines(self, op, integer, p, c, r):
        """The value {r} of the value {p}."""
        if op in self.OPS:
            return [f"{c} = arith.constant {self.OPS[op]} : {integer}", f"{r} = arith.{op} {p}, {c} : {integer}"]
        if op in ("absi", "ctlz"):
            return [f"{r} = math.{op} {p} : {integer}"]
        five = f"{c} = arith.constant 5 : {integer}"
        if op == "cmpi":
            return [five, f"{c}b = arith.cmpi sgt, {p}, {c} : {integer}",
                    f"{c}e = arith.extui {c}b : i1 to {integer}", f"{r} = arith.select {c}b, {c}e, {p} : {integer}"]
        if op in ("extsi", "extui"):
            wide = self.WIDER[integer]
            return [f"{c} = arith.constant 5 : {wide}", f"{c}w = arith.{op} {p} : {integer} to {wide}",
                    f"{c}m = arith.muli {c}w, {c} : {wide}", f"{r} = arith.trunci {c}m : {wide} to {integer}"]
        other = "i1" if op == "addui_extended" else integer
        high = f"{c}h" if other == integer else f"{c}x"
        return [five, f"{c}l, {c}h = arith.{op} {p}, {c} : {integer}{', i1' if other == 'i1' else ''}",
                *([f"{c}x = arith.extui {c}h : i1 to {integer}"] if other == "i1" else []),
                f"{r} = arith.xori {c}l, {high} : {integer}"]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        dims, integer = get_dims(len(shape)), data["integer"]
        body = [f"%i = linalg.index {data['dimension']} : index", f"%p0 = arith.{data['cast']} %i : index to {integer}"]
        for number, op in enumerate(data["ops"]):
            body += self.get_lines(op, integer, f"%p{number}", f"%c{number}", f"%p{number + 1}")
        body += [f"%most = arith.constant 8 : {integer}", f"%r = arith.remui %p{len(data['ops'])}, %most : {integer}"]
        numbers = writer.map(shape, integer, [], body, no_fuse(data))
        lines = [f"%n = arith.uitofp %x0 : {integer} to E", "%k = arith.constant 0.25 : E",
                 "%f = arith.mulf %n, %k : E", "%zero = arith.constant 0.0 : E", "%two = arith.constant 1.5 : E",
                 *self.ROUNDED[data["rounded"]].split("; "),
                 "%h = arith.constant 0.5 : E", "%m = math.fma %g, %h, %h : E", "%r = arith.mulf %x1, %m : E"]
        lines = [line.replace(": E", f": {element}").replace("to E", f"to {element}") for line in lines]
        return [writer.map(shape, element, [(numbers, shape, integer, dims), (name, shape, element, dims)], lines)]


class Half(Operation):
    """A value, scaled by numbers that f16 and bf16 hold: the reference in f64 rounds nothing."""

    def propose(self, graph):
        value = graph.pick()
        shape = graph.get(value)[0]
        return ([value], {"dimension": graph.random.randrange(len(shape)), "half": graph.random.choice(["f16", "bf16"]),
                          "op": graph.random.choice(["addf", "subf", "mulf", "select"]),
                          "alone": maybe_alone(graph)}) if shape else None

    def infer(self, types, data):
        need(data["dimension"] < len(types[0][0]))
        return [types[0]]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        dims, half = get_dims(len(shape)), data["half"]
        halves = writer.map(shape, half, [], [
            f"%i = linalg.index {data['dimension']} : index", "%n = arith.index_cast %i : index to i32",
            "%most = arith.constant 9 : i32", "%m = arith.remui %n, %most : i32",
            f"%f = arith.uitofp %m : i32 to {element}", f"%k = arith.constant 0.125 : {element}",
            f"%s = arith.mulf %f, %k : {element}", f"%r = arith.truncf %s : {element} to {half}"], no_fuse(data))
        body = [f"%k = arith.constant 0.5 : {half}", f"%c = arith.cmpf ogt, %x0, %k : {half}",
                f"%r = arith.select %c, %x0, %k : {half}"]
        if data["op"] != "select":
            body = [body[0], f"%r = arith.{data['op']} %x0, %k : {half}"]
        changed = writer.map(shape, half, [(halves, shape, half, dims)], body)
        return [writer.map(shape, element, [(changed, shape, half, dims), (name, shape, element, dims)],
                           [f"%e = arith.extf %x0 : {half} to {element}", f"%one = arith.constant 0.75 : {element}",
                            f"%f = arith.addf %e, %one : {element}", f"%r = arith.mulf %x1, %f : {element}"])]


class Cast(Operation):
    """By way of the other type of float."""

    def propose(self, graph):
        return [graph.pick()], {}

    def infer(self, types, data):
        return [types[0]]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        dims, other = get_dims(len(shape)), "f64" if element == "f32" else "f32"
        there, back = ("extf", "truncf") if other == "f64" else ("truncf", "extf")
        wide = writer.map(shape, other, [(name, shape, element, dims)],
                          [f"%c = arith.{there} %x0 : {element} to {other}", f"%k = arith.constant 0.75 : {other}",
                           f"%r = arith.mulf %c, %k : {other}"])
        return [writer.map(shape, element, [(wide, shape, other, dims)],
                           [f"%r = arith.{back} %x0 : {other} to {element}"])]


class Pair(Operation):
    """Two results of one op."""

    def propose(self, graph):
        value = graph.pick()
        return [value, graph.pick_like(*graph.get(value))], {}

    def infer(self, types, data):
        need(types[0] == types[1])
        return [types[0], types[0]]

    def emit(self, writer, operands, data):
        (a, shape, element), (b, _, _) = operands
        dims = get_dims(len(shape))
        body = [f"%s = arith.addf %x0, %x1 : {element}", f"%d = arith.subf %x0, %x1 : {element}",
                f"linalg.yield %s, %d : {element}, {element}"]
        outs = [(writer.empty(shape, element), shape, element, dims) for _ in range(2)]
        return writer.generic(["parallel"] * len(shape),
                              [(a, shape, element, dims), (b, shape, element, dims)], outs, body)


class Transpose(Operation):
    def propose(self, graph):
        value = graph.pick()
        order = list(range(len(graph.get(value)[0])))
        graph.random.shuffle(order)
        return [value], {"order": order, "named": bool(order) and graph.random.random() < 0.5}

    def infer(self, types, data):
        shape, element = types[0]
        need(len(shape) == len(data["order"]))
        return [([shape[i] for i in data["order"]], element)]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        order = data["order"]
        out = [shape[i] for i in order]
        if data["named"]:
            empty = writer.empty(out, element)
            return [writer.op(f"linalg.transpose ins({name} : {type_of(shape, element)}) "
                              f"outs({empty} : {type_of(out, element)}) permutation = {order}")]
        # Loop i walks the result's dimension i, the operand's dimension order[i].
        read = [f"d{order.index(i)}" for i in range(len(shape))]
        return [writer.map(out, element, [(name, shape, element, read)], [f"%r = arith.negf %x0 : {element}"])]


class Window(Operation):
    """Every so manyeth element from some place on: a slice, by its map."""

    def propose(self, graph):
        value = graph.pick()
        shape = graph.get(value)[0]
        large = [i for i, size in enumerate(shape) if size > 1]
        if not large:
            return None
        dimension = graph.random.choice(large)
        begin = graph.random.randrange(shape[dimension])
        step = graph.random.choice([1, 1, 2, 3])
        return [value], {"dimension": dimension, "begin": begin, "step": step}

    def infer(self, types, data):
        (shape, element), dimension = types[0], data["dimension"]
        need(dimension < len(shape) and data["begin"] < shape[dimension])
        size = (shape[dimension] - data["begin"] + data["step"] - 1) // data["step"]
        return [([*shape[:dimension], size, *shape[dimension + 1:]], element)]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        [(out, _)] = self.infer([(shape, element)], data)
        read = get_dims(len(shape))
        read[data["dimension"]] += f" * {data['step']} + {data['begin']}"
        return [writer.map(out, element, [(name, shape, element, read)],
                           [f"%k = arith.constant 0.5 : {element}", f"%r = arith.addf %x0, %k : {element}"])]


class Slice(Window):
    """The same, by an op of its own, which upstream's verifier takes of no empty tensor."""

    def propose(self, graph):
        found = super().propose(graph)
        return found if found and all(graph.get(found[0][0])[0]) else None

    def infer(self, types, data):
        need(all(types[0][0]))
        return super().infer(types, data)

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        [(out, _)] = self.infer([(shape, element)], data)
        offsets, strides = [0] * len(shape), [1] * len(shape)
        offsets[data["dimension"]], strides[data["dimension"]] = data["begin"], data["step"]
        return [writer.op(f"tensor.extract_slice {name}{offsets} {out} {strides} : {type_of(shape, element)} to "
                          f"{type_of(out, element)}")]


class Pad(Operation):
    def propose(self, graph):
        value = graph.pick()
        shape = graph.get(value)[0]
        pads = [[graph.random.choice([0, 0, 1, 2, 5]) for _ in shape] for _ in range(2)]
        return ([value], {"low": pads[0], "high": pads[1]}) if shape else None

    def infer(self, types, data):
        shape, element = types[0]
        need(len(shape) == len(data["low"]))
        return [([low + size + high for low, size, high in zip(data["low"], shape, data["high"])], element)]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        [(out, _)] = self.infer([(shape, element)], data)
        scalar = writer.op(f"arith.constant 0.25 : {element}")
        indices = ", ".join(f"%i{i}: index" for i in range(len(shape)))
        return [writer.op(f"tensor.pad {name} low{data['low']} high{data['high']} {{\n  ^bb0({indices}):\n"
                          f"    tensor.yield {scalar} : {element}\n  }} : {type_of(shape, element)} to "
                          f"{type_of(out, element)}")]


class Concat(Operation):
    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        if not shape:
            return None
        dimension = graph.random.randrange(len(shape))
        others = [graph.pick_like([graph.pick_size() if i == dimension else size for i, size in enumerate(shape)],
                                  element) for _ in range(graph.random.randint(1, 2))]
        return [value, *others], {"dimension": dimension}

    def infer(self, types, data):
        (shape, element), dimension = types[0], data["dimension"]
        need(dimension < len(shape))
        for other, other_element in types:
            need(other_element == element and len(other) == len(shape))
            need(all(a == b for i, (a, b) in enumerate(zip(shape, other)) if i != dimension))
        size = sum(other[dimension] for other, _ in types)
        return [([*shape[:dimension], size, *shape[dimension + 1:]], element)]

    def emit(self, writer, operands, data):
        types = [(shape, element) for _, shape, element in operands]
        [(out, element)] = self.infer(types, data)
        return [writer.op(f"tensor.concat dim({data['dimension']}) {', '.join(name for name, _, _ in operands)} : "
                          f"({', '.join(type_of(*type) for type in types)}) -> {type_of(out, element)}")]


class Insert(Operation):
    """A slice of a value is replaced by another value."""

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        if not shape or not all(shape):
            return None
        offsets = [graph.random.randrange(size) for size in shape]
        part = [graph.random.randint(1, size - offset) for size, offset in zip(shape, offsets)]
        return [value, graph.pick_like(part, element)], {"offsets": offsets}

    def infer(self, types, data):
        (shape, element), (part, other) = types
        need(element == other and len(shape) == len(part) == len(data["offsets"]))
        need(all(offset + size <= whole for offset, size, whole in zip(data["offsets"], part, shape)))
        return [types[0]]

    def emit(self, writer, operands, data):
        (name, shape, element), (part, part_shape, _) = operands
        return [writer.op(f"tensor.insert_slice {part} into {name}{data['offsets']} {part_shape} {[1] * len(shape)} : "
                          f"{type_of(part_shape, element)} into {type_of(shape, element)}")]


class Elements(Operation):
    """A tensor by its elements, computed or one by one; an element replaced; a size forgotten."""

    def propose(self, graph):
        value = graph.pick()
        shape = graph.get(value)[0]
        if not shape or not all(shape):
            return None
        op = graph.random.choice(["generate", "generate", "from_elements", "insert", "cast"])
        places = [[graph.random.randrange(size) for size in shape] for _ in range(graph.random.randint(1, 4))]
        return [value], {"op": op, "dimension": graph.random.randrange(len(shape)), "places": places}

    def infer(self, types, data):
        shape, element = types[0]
        need(shape and all(shape) and data["dimension"] < len(shape))
        need(all(len(place) == len(shape) and all(i < size for i, size in zip(place, shape))
                 for place in data["places"]))
        return [([len(data["places"])], element)] if data["op"] == "from_elements" else [types[0]]

    def extract(self, writer, name, type, place):
        places = [writer.op(f"arith.constant {i} : index") for i in place]
        return places, writer.op(f"tensor.extract {name}[{', '.join(places)}] : {type}")

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        type, at = type_of(shape, element), data["dimension"]
        if data["op"] == "from_elements":
            elements = [self.extract(writer, name, type, place)[1] for place in data["places"]]
            return [writer.op(f"tensor.from_elements {', '.join(elements)} : {type_of([len(elements)], element)}")]
        if data["op"] == "insert":
            _, scalar = self.extract(writer, name, type, data["places"][0])
            places, _ = self.extract(writer, name, type, data["places"][-1])
            return [writer.op(f"tensor.insert {scalar} into {name}[{', '.join(places)}] : {type}")]
        if data["op"] == "cast":
            unknown = type_of(["?" if i == at else size for i, size in enumerate(shape)], element)
            cast = writer.op(f"tensor.cast {name} : {type} to {unknown}")
            return [writer.op(f"tensor.cast {cast} : {unknown} to {type}")]
        indices = [f"%i{i}" for i in range(len(shape))]
        read = [*indices[:at], "%j", *indices[at + 1:]]  # back to front
        lines = [f"tensor.generate {{\n  ^bb0({', '.join(f'{index}: index' for index in indices)}):",
                 f"  %last = arith.constant {shape[at] - 1} : index", f"  %j = arith.subi %last, {indices[at]} : index",
                 f"  %e = tensor.extract {name}[{', '.join(read)}] : {type}",
                 f"  %k = arith.constant 0.75 : {element}", f"  %r = arith.mulf %e, %k : {element}",
                 f"  tensor.yield %r : {element}", f"}} : {type}"]
        return [writer.op("\n  ".join(lines))]


class Gather(Operation):
    """Rows of a value, by numbers that wrap around and reach beyond it; some twice."""

    def propose(self, graph):
        value = graph.pick()
        shape = graph.get(value)[0]
        return ([value], {"rows": graph.pick_size(), "integer": graph.random.choice(["i64", "i32"]),
                          "beyond": graph.random.randint(0, 2)}) if shape and all(shape) else None

    def infer(self, types, data):
        shape, element = types[0]
        need(shape and all(shape))
        return [([data["rows"], *shape[1:]], element)]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        [(out, _)] = self.infer([(shape, element)], data)
        rows = [(3 * i % (shape[0] + data["beyond"])) - data["beyond"] // 2 for i in range(data["rows"])]
        numbers = writer.op(f"arith.constant dense<{rows if rows else ''}> : {type_of(out[:1], data['integer'])}")
        body = [f"%at = arith.index_cast %x0 : {data['integer']} to index"]
        if data["beyond"] == 0:
            body += [f"%end = arith.constant {shape[0]} : index", "%ok = arith.cmpi slt, %at, %end : index",
                     'cf.assert %ok, "index must be smaller than dim size"']
        body += [f"%i{i} = linalg.index {i} : index" for i in range(1, len(shape))]
        places = ", ".join(["%at"] + [f"%i{i}" for i in range(1, len(shape))])
        body += [f"%r = tensor.extract {name}[{places}] : {type_of(shape, element)}"]
        return [writer.map(out, element, [(numbers, out[:1], data["integer"], ["d0"])], body)]


class Broadcast(Operation):
    """Into one dimension more."""

    def propose(self, graph):
        value = graph.pick()
        shape = graph.get(value)[0]
        return ([value], {"dimension": graph.random.randint(0, len(shape)),
                          "size": graph.pick_size()}) if len(shape) < 3 else None

    def infer(self, types, data):
        shape, element = types[0]
        need(data["dimension"] <= len(shape))
        return [([*shape[:data["dimension"]], data["size"], *shape[data["dimension"]:]], element)]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        [(out, _)] = self.infer([(shape, element)], data)
        empty = writer.empty(out, element)
        return [writer.op(f"linalg.broadcast ins({name} : {type_of(shape, element)}) "
                          f"outs({empty} : {type_of(out, element)}) dimensions = [{data['dimension']}]")]


class Constant(Operation):
    def propose(self, graph):
        value = graph.pick()
        return [value], {"splat": graph.random.random() < 0.3}

    def infer(self, types, data):
        return [types[0]]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        type, dims = type_of(shape, element), get_dims(len(shape))
        if data["splat"]:
            scalar = writer.op(f"arith.constant 0.7 : {element}")
            constant = writer.op(f"tensor.splat {scalar} : {type}")
        else:
            numbers = [(7 * i % 11 - 5) / 8 for i in range(math.prod(shape))]
            for size in reversed(shape):
                numbers = [numbers[i:i + size] for i in range(0, len(numbers), size)] if size else []
            constant = writer.op(f"arith.constant dense<{numbers[0] if math.prod(shape) else ''}> : {type}")
        return [writer.map(shape, element, [(name, shape, element, dims), (constant, shape, element, dims)],
                           [f"%r = arith.addf %x0, %x1 : {element}"])]


class Reduce(Operation):
    """The mean, its square's, a product of what is near 1, or the largest or least of some
    dimensions, onto a constant or onto a value."""

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        if graph.random.random() < 0.3:  # columns: all dimensions but the last ones
            reduced = list(range(graph.random.randint(0, len(shape))))
        else:
            reduced = [i for i in range(len(shape)) if graph.random.random() < 0.5]
        if not reduced:
            return None
        ops = ["sum", "sum", "square", "product"] + ["maximumf", "minimumf"] * all(shape)
        data = {"reduced": reduced, "op": graph.random.choice(ops), "init": graph.random.choice([0.0, 0.0, 0.25])}
        operands = [value]
        if data["op"] in ("sum", "square") and graph.random.random() < 0.2:
            operands.append(graph.pick_like([size for i, size in enumerate(shape) if i not in reduced], element))
        return operands, data

    def infer(self, types, data):
        (shape, element), reduced = types[0], data["reduced"]
        need(all(i < len(shape) for i in reduced))
        need(all(shape) or data["op"] in ("sum", "square", "product"))
        out = ([size for i, size in enumerate(shape) if i not in reduced], element)
        need(len(types) == 1 or types[1] == out)
        return [out]

    def emit(self, writer, operands, data):
        name, shape, element = operands[0]
        dims, reduced, op = get_dims(len(shape)), data["reduced"], data["op"]
        kept = [i for i in range(len(shape)) if i not in reduced]
        out = [shape[i] for i in kept]
        if op in ("sum", "square"):
            init = operands[1][0] if len(operands) > 1 else writer.filled(out, element, data["init"])
            length = max(math.prod(shape[i] for i in reduced), 1)
            body = [f"%y = arith.mulf %x0, %x0 : {element}"] if op == "square" else []
            body += [f"%n = arith.constant {1.0 / length!r} : {element}",
                     f"%m = arith.mulf {'%y' if op == 'square' else '%x0'}, %n : {element}",
                     f"%r = arith.addf %o0, %m : {element}"]
        elif op == "product":
            init = writer.filled(out, element, data["init"] + 0.5)
            length = max(math.prod(shape[i] for i in reduced), 1)
            body = [f"%one = arith.constant 1.0 : {element}", f"%q = arith.mulf %x0, %x0 : {element}",
                    f"%u = arith.addf %q, %one : {element}", f"%t = arith.divf %x0, %u : {element}",
                    f"%n = arith.constant {1.0 / length!r} : {element}",
                    f"%f = math.fma %t, %n, %one : {element}", f"%r = arith.mulf %o0, %f : {element}"]
        else:
            infinity = {"maximumf": {"f32": "0xFF800000", "f64": "0xFFF0000000000000"},
                        "minimumf": {"f32": "0x7F800000", "f64": "0x7FF0000000000000"}}[op][element]
            init = writer.filled(out, element, infinity)
            body = [f"%r = arith.{op} %o0, %x0 : {element}"]
        kinds = ["reduction" if i in reduced else "parallel" for i in range(len(shape))]
        return [writer.generic(kinds, [(name, shape, element, dims)],
                               [(init, out, element, [dims[i] for i in kept])],
                               body + [f"linalg.yield %r : {element}"])]


class Contract(Operation):
    """A product of matrices, of batches of them, or of a matrix and a vector; some stored
    transposed. Scaled, so that what comes out is of order one."""

    # kind: (loops, of which the last is summed; operands' and result's dimensions)
    KINDS = {
        "matmul": ("mnk", "mk", "kn", "mn"), "transposed": ("mnk", "mk", "nk", "mn"),
        "both": ("mnk", "km", "nk", "mn"), "batch_matmul": ("bmnk", "bmk", "bkn", "bmn"),
        "matvec": ("mk", "mk", "k", "m"), "vecmat": ("nk", "k", "kn", "n"), "dot": ("k", "k", "k", ""),
        "shared": ("bmnk", "bmk", "kn", "bmn"), "gradient": ("mnk", "km", "kn", "mn"),
        "batch_matvec": ("bmk", "bmk", "bk", "bm"), "batch_vecmat": ("bnk", "bk", "bkn", "bn"),
        "batch_reduce_matmul": ("mnbk", "bmk", "bkn", "mn"),
    }
    NAMED = ["matmul", "batch_matmul", "matvec", "vecmat", "dot", "batch_matvec", "batch_vecmat", "batch_reduce_matmul"]

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        kinds = [kind for kind, (_, first, _, _) in self.KINDS.items() if len(first) == len(shape)]
        if not kinds:
            return None
        kind = graph.random.choice(kinds)
        sizes = dict(zip(self.KINDS[kind][1], shape))
        other = []
        for dim in self.KINDS[kind][2]:
            sizes.setdefault(dim, graph.pick_size())
            other.append(sizes[dim])
        data = {"kind": kind, "named": graph.random.random() < 0.5, "maps": graph.random.random() < 0.3}
        return [value, graph.pick_like(other, element)], data

    def infer(self, types, data):
        _, first, second, out = self.KINDS[data["kind"]]
        need(len(types[0][0]) == len(first) and len(types[1][0]) == len(second) and types[0][1] == types[1][1])
        sizes = dict(zip(first, types[0][0]))
        for dim, size in zip(second, types[1][0]):
            need(sizes.setdefault(dim, size) == size)
        return [([sizes[dim] for dim in out], types[0][1])]

    def emit(self, writer, operands, data):
        loops, first, second, out = self.KINDS[data["kind"]]
        (a, a_shape, element), (b, b_shape, _) = operands
        sizes = dict(zip(first, a_shape)) | dict(zip(second, b_shape))
        shape = [sizes[dim] for dim in out]
        init, type = writer.filled(shape, element, "0.0"), type_of(shape, element)
        if data["named"] and data["kind"] in self.NAMED:
            raw = writer.op(f"linalg.{data['kind']} ins({a}, {b} : {type_of(a_shape, element)}, "
                            f"{type_of(b_shape, element)}) outs({init} : {type}) -> {type}")
        elif data["maps"]:
            maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(some)})>"
                             for some in (first, second, out))
            raw = writer.op(f"linalg.contract indexing_maps = [{maps}] ins({a}, {b} : {type_of(a_shape, element)}, "
                            f"{type_of(b_shape, element)}) outs({init} : {type}) -> {type}")
        else:
            dims = {dim: f"d{i}" for i, dim in enumerate(loops)}
            kinds = ["parallel" if dim in out else "reduction" for dim in loops]
            body = [f"%p = arith.mulf %x0, %x1 : {element}", f"%r = arith.addf %o0, %p : {element}",
                    f"linalg.yield %r : {element}"]
            raw = writer.generic(kinds, [(a, a_shape, element, [dims[d] for d in first]),
                                         (b, b_shape, element, [dims[d] for d in second])],
                                 [(init, shape, element, [dims[d] for d in out])], body)
        scale = 1.0 / max(math.prod(size for dim, size in sizes.items() if dim not in out), 1) ** 0.5
        return [writer.map(shape, element, [(raw, shape, element, get_dims(len(shape)))],
                           [f"%n = arith.constant {scale!r} : {element}", f"%r = arith.mulf %x0, %n : {element}"])]


class Convolve(Operation):
    """A convolution with a window of each dimension, or along sequences of channels; scaled."""

    # By rank: name, attributes
    NAMES = {1: "conv_1d", 2: "conv_2d", 3: "conv_1d_nwc_wcf"}

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        if len(shape) not in self.NAMES or not all(shape):
            return None
        window = lambda size: graph.random.randint(1, min(size, 4))  # noqa: E731
        if len(shape) < 3:
            return [value, graph.pick_like([window(size) for size in shape], element)], {}
        width, stride = window(shape[1]), graph.random.choice([1, 2])
        return [value, graph.pick_like([width, shape[2], graph.random.choice([1, 3, 8])], element)], {"stride": stride}

    def infer(self, types, data):
        (shape, element), (window, other) = types
        need(element == other and len(shape) == len(window) in self.NAMES and all(shape) and all(window))
        if len(shape) == 3:
            need(window[0] <= shape[1] and window[1] == shape[2])
            return [([shape[0], (shape[1] - window[0]) // data["stride"] + 1, window[2]], element)]
        need(all(inner <= size for inner, size in zip(window, shape)))
        return [([size - inner + 1 for inner, size in zip(window, shape)], element)]

    def emit(self, writer, operands, data):
        (name, shape, element), (window, window_shape, _) = operands
        [(out, _)] = self.infer([(shape, element), (window_shape, element)], data)
        type, init = type_of(out, element), writer.filled(out, element, "0.0")
        attributes = ""
        if len(shape) == 3:
            attributes = (f" {{dilations = dense<1> : tensor<1xi64>, "
                          f"strides = dense<{data['stride']}> : tensor<1xi64>}}")
        raw = writer.op(f"linalg.{self.NAMES[len(shape)]}{attributes} ins({name}, {window} : "
                        f"{type_of(shape, element)}, {type_of(window_shape, element)}) outs({init} : {type}) -> {type}")
        scale = 1.0 / math.prod(window_shape[:2]) ** 0.5
        return [writer.map(out, element, [(raw, out, element, get_dims(len(out)))],
                           [f"%n = arith.constant {scale!r} : {element}", f"%r = arith.mulf %x0, %n : {element}"])]


class Pool(Operation):
    """The sum, the largest or the least of windows along sequences."""

    def propose(self, graph):
        value = graph.pick()
        shape = graph.get(value)[0]
        if len(shape) != 3 or not all(shape):
            return None
        return [value], {"width": graph.random.randint(1, min(shape[1], 4)), "stride": graph.random.choice([1, 2, 3]),
                         "op": graph.random.choice(["sum", "max", "min"])}

    def infer(self, types, data):
        shape, element = types[0]
        need(len(shape) == 3 and all(shape) and data["width"] <= shape[1])
        return [([shape[0], (shape[1] - data["width"]) // data["stride"] + 1, shape[2]], element)]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        [(out, _)] = self.infer([(shape, element)], data)
        start = {"sum": "0.0", "max": {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}.get(element),
                 "min": {"f32": "0x7F800000", "f64": "0x7FF0000000000000"}.get(element)}[data["op"]]
        init, window = writer.filled(out, element, start), writer.empty([data["width"]], element)
        return [writer.op(f"linalg.pooling_nwc_{data['op']} {{dilations = dense<1> : tensor<1xi64>, "
                          f"strides = dense<{data['stride']}> : tensor<1xi64>}} ins({name}, {window} : "
                          f"{type_of(shape, element)}, {type_of([data['width']], element)}) "
                          f"outs({init} : {type_of(out, element)}) -> {type_of(out, element)}")]


class Windows(Operation):
    """Named convolutions and poolings of sequences, images and volumes, of channels first or last,
    in groups, by strides and dilations; scaled."""

    # The operands' and the result's dimensions; a value lacks n, the first of 1, where there are more than three.
    NAMES = {"conv_2d_nhwc_hwcf": ("nhwc", "hwcf", "nhwf"), "conv_2d_nhwc_fhwc": ("nhwc", "fhwc", "nhwf"),
             "conv_2d_nchw_fchw": ("nchw", "fchw", "nfhw"), "depthwise_conv_2d_nhwc_hwc": ("nhwc", "hwc", "nhwc"),
             "depthwise_conv_2d_nchw_chw": ("nchw", "chw", "nchw"), "conv_1d_ncw_fcw": ("ncw", "fcw", "nfw"),
             "depthwise_conv_1d_nwc_wc": ("nwc", "wc", "nwc"), "depthwise_conv_1d_ncw_cw": ("ncw", "cw", "ncw"),
             "depthwise_conv_1d_nwc_wcm": ("nwc", "wcm", "nwcm"),
             "depthwise_conv_2d_nhwc_hwcm": ("nhwc", "hwcm", "nhwcm"),
             "conv_2d_ngchw_fgchw": ("ngchw", "fgchw", "ngfhw"), "conv_2d_ngchw_gfchw": ("ngchw", "gfchw", "ngfhw"),
             "conv_2d_nhwgc_gfhwc": ("nhwgc", "gfhwc", "nhwgf"), "conv_3d": ("dhw", "dhw", "dhw"),
             "conv_3d_ndhwc_dhwcf": ("ndhwc", "dhwcf", "ndhwf"), "conv_3d_ncdhw_fcdhw": ("ncdhw", "fcdhw", "nfdhw"),
             "depthwise_conv_3d_ndhwc_dhwc": ("ndhwc", "dhwc", "ndhwc"),
             "depthwise_conv_3d_ncdhw_cdhw": ("ncdhw", "cdhw", "ncdhw"),
             "depthwise_conv_3d_ndhwc_dhwcm": ("ndhwc", "dhwcm", "ndhwcm"),
             "pooling_nhwc_sum": ("nhwc", "hw", "nhwc"), "pooling_nhwc_max": ("nhwc", "hw", "nhwc"),
             "pooling_nhwc_min": ("nhwc", "hw", "nhwc"), "pooling_nchw_sum": ("nchw", "hw", "nchw"),
             "pooling_nchw_max": ("nchw", "hw", "nchw"), "pooling_ncw_sum": ("ncw", "w", "ncw"),
             "pooling_ncw_max": ("ncw", "w", "ncw"), "pooling_ndhwc_sum": ("ndhwc", "dhw", "ndhwc"),
             "pooling_ndhwc_max": ("ndhwc", "dhw", "ndhwc"), "pooling_ndhwc_min": ("ndhwc", "dhw", "ndhwc")}

    def get_letters(self, op):
        """Of the value, the window and the result, and whether n is left out of the first and the last."""
        layout, kernel, out = self.NAMES[op]
        lacks = len(layout) > 3
        return layout[lacks:], kernel, out[lacks:], lacks

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        fitting = [op for op in sorted(self.NAMES) if len(self.get_letters(op)[0]) == len(shape)]
        if not fitting or not all(shape):
            return None
        op = graph.random.choice(fitting)
        letters, kernel, _, _ = self.get_letters(op)
        sizes = dict(zip(letters, shape))
        window = [graph.random.choice([1, 3, 8]) if letter == "f" else graph.random.choice([1, 2]) if letter == "m" else
                  sizes[letter] if letter in "cg" else graph.random.randint(1, min(sizes[letter], 3))
                  for letter in kernel]
        data = {"op": op, "stride": graph.random.choice([1, 2]), "dilation": graph.random.choice([1, 1, 2]),
                "window": window}
        if op == "conv_3d":  # has neither
            data |= {"stride": 1, "dilation": 1}
        if any(self.get_count(sizes[letter], size, data) < 1
               for letter, size in zip(kernel, window) if letter in "dhw"):
            data["dilation"] = 1
        return [value] + [graph.pick_like(window, element)] * ("conv" in op), data

    def get_count(self, size, window, data):
        return (size - (window - 1) * data["dilation"] - 1) // data["stride"] + 1

    def infer(self, types, data):
        (shape, element), (letters, kernel, out, _) = types[0], self.get_letters(data["op"])
        need(len(shape) == len(letters) and all(shape) and len(kernel) == len(data["window"]))
        need(all(other == (data["window"], element) for other in types[1:]))
        sizes, windows = {"n": 1} | dict(zip(letters, shape)), dict(zip(kernel, data["window"]))
        need(all(windows[letter] == sizes[letter] for letter in "cg" if letter in windows))
        sizes |= {letter: self.get_count(sizes[letter], windows[letter], data) for letter in kernel if letter in "dhw"}
        sizes |= {letter: windows[letter] for letter in "fm" if letter in windows}
        need(all(size > 0 for size in sizes.values()))
        return [([sizes[letter] for letter in out], element)]

    def emit(self, writer, operands, data):
        name, shape, element = operands[0]
        op, (_, kernel, _, lacks) = data["op"], self.get_letters(data["op"])
        [(small, _)] = self.infer([(shape, element), *[(shape, element) for _, shape, element in operands[1:]]], data)
        whole, result = [1] * lacks + shape, [1] * lacks + small

        def get_groups(shape):
            return [[0, 1], *[[i] for i in range(2, len(shape))]]

        if lacks:
            name = writer.op(f"tensor.expand_shape {name} {get_groups(whole)} output_shape {whole} : "
                             f"{type_of(shape, element)} into {type_of(whole, element)}")
        start = {"max": {"f32": "0xFF800000", "f64": "0xFFF0000000000000"},
                 "min": {"f32": "0x7F800000", "f64": "0x7FF0000000000000"}}.get(op[-3:], {}).get(element, "0.0")
        window = operands[1][0] if len(operands) > 1 else writer.empty(data["window"], element)
        count = sum(letter in "dhw" for letter in kernel)
        attributes = "" if op == "conv_3d" else (f" {{dilations = dense<{data['dilation']}> : tensor<{count}xi64>, "
                                                 f"strides = dense<{data['stride']}> : tensor<{count}xi64>}}")
        init, type = writer.filled(result, element, start), type_of(result, element)
        raw = writer.op(f"linalg.{op}{attributes} ins({name}, {window} : {type_of(whole, element)}, "
                        f"{type_of(data['window'], element)}) outs({init} : {type}) -> {type}")
        if lacks:
            raw = writer.op(f"tensor.collapse_shape {raw} {get_groups(result)} : {type} into {type_of(small, element)}")
        summed = 1 if op[-3:] in ("max", "min") else math.prod(
            size for letter, size in zip(kernel, data["window"])
            if letter in "dhw" or letter == "c" and "f" in kernel)
        return [writer.map(small, element, [(raw, small, element, get_dims(len(small)))],
                           [f"%n = arith.constant {1.0 / summed ** 0.5!r} : {element}",
                            f"%r = arith.mulf %x0, %n : {element}"])]


class Whole(Operation):
    """What named ops make of small whole numbers, or of quarters of them. All of it is exact."""

    # The operands' dimensions and the result's.
    NAMES = {"quantized_matmul": ("mk", "kn", "mn"), "quantized_batch_matmul": ("bmk", "bkn", "bmn"),
             "mmt4d": ("MKxz", "NKyz", "MNxy"), "batch_mmt4d": ("bMKxz", "bNKyz", "bMNxy"),
             "pooling_nhwc_max_unsigned": ("nhwc", "hw", "nhwc"), "pooling_nhwc_min_unsigned": ("nhwc", "hw", "nhwc"),
             "pooling_nwc_max_unsigned": ("nwc", "w", "nwc"), "pooling_nwc_min_unsigned": ("nwc", "w", "nwc"),
             "div_unsigned": ("mn", "mn", "mn"), "ceil": ("mn", "mn"), "floor": ("mn", "mn"), "round": ("mn", "mn")}
    NAMES |= {f"{op}_q": Windows.NAMES[op] for op in [
        "conv_2d_nhwc_hwcf", "conv_2d_nhwc_fhwc", "conv_2d_nchw_fchw", "conv_2d_nhwgc_gfhwc", "conv_2d_ngchw_gfchw",
        "conv_3d_ndhwc_dhwcf", "depthwise_conv_2d_nhwc_hwc", "depthwise_conv_2d_nhwc_hwcm"]}

    def propose(self, graph):
        op = graph.random.choice(sorted(self.NAMES))
        sizes = {letter: graph.random.choice([1, 2, 3, 5]) for letter in sorted(set("".join(self.NAMES[op])))}
        return [], {"op": op, "sizes": sizes, "element": graph.element, "stride": graph.random.choice([1, 2]),
                    "dilation": graph.random.choice([1, 2]), "seed": graph.random.randrange(13)}

    def is_windowed(self, op):
        return "conv" in op or "pool" in op

    def get_shapes(self, data):
        """Windows are of two in each place."""
        op, sizes = data["op"], data["sizes"]
        *inputs, result = self.NAMES[op]
        shapes = [[sizes[letter] for letter in letters] for letters in self.NAMES[op]]
        if self.is_windowed(op):
            shapes[0] = [(size - 1) * data["stride"] + data["dilation"] + 1 if letter in "dhw" else size
                         for letter, size in zip(inputs[0], shapes[0])]
            shapes[1] = [2 if letter in "dhw" else size for letter, size in zip(inputs[1], shapes[1])]
        return shapes

    def infer(self, types, data):
        return [(self.get_shapes(data)[-1], data["element"])]

    def numbers(self, writer, shape, integer, seed, least):
        """Whole numbers from `least` on, below 13 more."""
        lines, sum = [f"%s = arith.constant {seed} : index"], "%s"
        for i in range(len(shape)):
            lines += [f"%i{i} = linalg.index {i} : index", f"%k{i} = arith.constant {2 * i + 3} : index",
                      f"%m{i} = arith.muli %i{i}, %k{i} : index", f"%s{i} = arith.addi {sum}, %m{i} : index"]
            sum = f"%s{i}"
        lines += ["%most = arith.constant 13 : index", f"%p = arith.remui {sum}, %most : index",
                  f"%q = arith.index_cast %p : index to {integer}", f"%l = arith.constant {least} : {integer}",
                  f"%r = arith.addi %q, %l : {integer}"]
        return writer.map(shape, integer, [], lines)

    def emit(self, writer, operands, data):
        op, element = data["op"], data["element"]
        *inputs, out = self.get_shapes(data)
        quantized, dims = op.startswith("quantized") or op.endswith("_q"), get_dims(len(out))
        if len(inputs) == 1:
            numbers = self.numbers(writer, out, "i32", data["seed"], -6)
            quarters = writer.map(out, element, [(numbers, out, "i32", dims)], [
                f"%f = arith.sitofp %x0 : i32 to {element}", f"%k = arith.constant 0.25 : {element}",
                f"%r = arith.mulf %f, %k : {element}"])
            type = type_of(out, element)
            return [writer.op(f"linalg.{op} ins({quarters} : {type}) outs({writer.empty(out, element)} : {type}) -> {type}")]
        integer = "i8" if quantized or "mmt4d" in op else "i32"
        least = 1 if op == "div_unsigned" else -6
        values = [self.numbers(writer, inputs[0], integer, data["seed"], least)]
        if "pooling" in op:
            values.append(writer.empty(inputs[1], integer))
        else:
            values.append(self.numbers(writer, inputs[1], integer, 2 * data["seed"] + 1, least))
        types = [type_of(shape, integer) for shape in inputs]
        for point in [3, -5] * quantized:
            values.append(writer.op(f"arith.constant {point} : i32"))
            types.append("i32")
        count = sum(letter in "dhw" for letter in self.NAMES[op][0]) if self.is_windowed(op) else 0
        attributes = count * "x" and (f" {{dilations = dense<{data['dilation']}> : tensor<{count}xi64>, "
                                      f"strides = dense<{data['stride']}> : tensor<{count}xi64>}}")
        init, type = writer.filled(out, "i32", "-1" if "min" in op else "0"), type_of(out, "i32")
        result = writer.op(f"linalg.{op}{attributes} ins({', '.join(values)} : {', '.join(types)}) "
                           f"outs({init} : {type}) -> {type}")
        # Of unsigned numbers the low bits.
        return [writer.map(out, element, [(result, out, "i32", dims)], [
            "%most = arith.constant 1023 : i32", "%low = arith.andi %x0, %most : i32",
            f"%f = arith.sitofp %low : i32 to {element}", f"%k = arith.constant 0.0078125 : {element}",
            f"%r = arith.mulf %f, %k : {element}"])]


class Collapse(Operation):
    def propose(self, graph):
        value = graph.pick()
        rank = len(graph.get(value)[0])
        return ([value], {"at": graph.random.randrange(rank - 1)}) if rank > 1 else None

    def infer(self, types, data):
        (shape, element), at = types[0], data["at"]
        need(at + 1 < len(shape))
        return [([*shape[:at], shape[at] * shape[at + 1], *shape[at + 2:]], element)]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        [(out, _)] = self.infer([(shape, element)], data)
        at = data["at"]
        groups = [[i] for i in range(at)] + [[at, at + 1]] + [[i] for i in range(at + 2, len(shape))]
        return [writer.op(f"tensor.collapse_shape {name} {groups} : {type_of(shape, element)} into "
                          f"{type_of(out, element)}")]


class Expand(Operation):
    def propose(self, graph):
        value = graph.pick()
        shape = graph.get(value)[0]
        if not shape or len(shape) > 2:
            return None
        at = graph.random.randrange(len(shape))
        factors = [i for i in range(1, shape[at] + 1) if shape[at] % i == 0] or [1]
        return [value], {"at": at, "inner": graph.random.choice(factors)}

    def infer(self, types, data):
        (shape, element), at, inner = types[0], data["at"], data["inner"]
        need(at < len(shape) and shape[at] % inner == 0)
        return [([*shape[:at], shape[at] // inner, inner, *shape[at + 1:]], element)]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        [(out, _)] = self.infer([(shape, element)], data)
        at = data["at"]
        groups = [[i] for i in range(at)] + [[at, at + 1]] + [[i + 1] for i in range(at + 1, len(shape))]
        return [writer.op(f"tensor.expand_shape {name} {groups} output_shape {out} : {type_of(shape, element)} "
                          f"into {type_of(out, element)}")]


class Softmax(Operation):
    """A softmax or its logarithm."""

    def propose(self, graph):
        value = graph.pick(element="f32")
        shape = graph.get(value)[0] if value is not None else []
        return ([value], {"axis": graph.random.randrange(len(shape)),
                          "log": graph.random.random() < 0.5}) if shape else None

    def infer(self, types, data):
        need(data["axis"] < len(types[0][0]) and types[0][1] == "f32")
        return [types[0]]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        type, axis = type_of(shape, element), data["axis"]
        if data["log"]:
            result = writer.op(f"norm.log_softmax {name} {{axis = {axis} : i64}} : {type}")
        else:
            empty = writer.empty(shape, element)
            result = writer.op(f"linalg.softmax dimension({axis}) ins({name} : {type}) outs({empty} : {type}) "
                               f"-> {type}")
        return [writer.bound(result, shape, element)]


class Logsumexp(Softmax):
    """That of an axis that is not empty, or its gradient."""

    def propose(self, graph):
        found = super().propose(graph)
        if not found or not all(graph.get(found[0][0])[0]):
            return None
        [value], data = found
        shape, element = graph.get(value)
        row = [size for i, size in enumerate(shape) if i != data["axis"]]
        data["vjp"] = graph.random.random() < 0.5
        return [*([graph.pick_like(row, element)] if data["vjp"] else []), value], data

    def infer(self, types, data):
        shape, element = types[-1]
        need(data["axis"] < len(shape) and all(shape) and element == "f32")
        row = ([size for i, size in enumerate(shape) if i != data["axis"]], element)
        need(not data["vjp"] or len(types) == 2 and types[0] == row)
        return [types[-1]] if data["vjp"] else [row]

    def emit(self, writer, operands, data):
        name, shape, element = operands[-1]
        [(out, _)] = self.infer([(shape, element) for _, shape, element in operands], data)
        axis, type = f"{{axis = {data['axis']} : i64}}", type_of(shape, element)
        if data["vjp"]:
            cotangent, row, _ = operands[0]
            result = writer.op(f"norm.logsumexp_vjp {cotangent}, {name} {axis} : {type_of(row, element)}, {type}")
        else:
            result = writer.op(f"norm.logsumexp {name} {axis} : {type} -> {type_of(out, element)}")
        return [writer.bound(result, out, element)]


class SoftmaxVjp(Softmax):
    """Of a softmax, or of its logarithm, with its result made here."""

    def propose(self, graph):
        found = super().propose(graph)
        return found and ([*found[0], graph.pick_like(*graph.get(found[0][0]))], found[1])

    def infer(self, types, data):
        need(types[0] == types[1])
        return super().infer(types[:1], data)

    def emit(self, writer, operands, data):
        [result] = super().emit(writer, operands[:1], data)
        (_, shape, element), (cotangent, _, _) = operands
        kind = "log_softmax" if data["log"] else "softmax"
        gradient = writer.op(f"norm.{kind}_vjp {cotangent}, {result} {{axis = {data['axis']} : i64}} : "
                             f"{type_of(shape, element)}")
        return [writer.bound(gradient, shape, element)]


# Nothing in f32 is close where a row is almost constant, hence a large eps.
EPS = "1.0e-1"


class Norm(Operation):
    """LayerNorm or RMSNorm."""

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        if not shape:
            return None
        data = {"axes": graph.random.randint(1, len(shape)), "kind": graph.random.choice(["layer_norm", "rms_norm"]),
                "gamma": graph.random.random() < 0.7}
        data["beta"] = data["kind"] == "layer_norm" and graph.random.random() < 0.5
        columns = shape[-data["axes"]:]
        return [value] + [graph.pick_like(columns, element) for _ in range(data["gamma"] + data["beta"])], data

    def infer(self, types, data):
        shape, element = types[0]
        need(data["axes"] <= len(shape))
        need(types[1:] == [(shape[-data["axes"]:], element)] * (data["gamma"] + data["beta"]))
        return [(shape, element)]

    def emit(self, writer, operands, data):
        name, shape, element = operands[0]
        weights = [f"({weight} : {type_of(columns, element)})" for weight, columns, _ in operands[1:]]
        names = ["gamma"] * data["gamma"] + ["beta"] * data["beta"]
        optional = "".join(f"{a}{b} " for a, b in zip(names, weights))
        result = writer.op(f"norm.{data['kind']} {name} {optional}{{axes = {data['axes']} : i64, eps = {EPS} : f64}} : "
                           f"{type_of(shape, element)}")
        return [writer.bound(result, shape, element)]


class NormVjp(Operation):
    """The gradients of a LayerNorm or RMSNorm."""

    def propose(self, graph):
        found = Norm().propose(graph)
        if not found:
            return None
        operands, data = found
        data["beta"] = False
        return [operands[0], graph.pick_like(*graph.get(operands[0])), *operands[1:1 + data["gamma"]]], data

    def infer(self, types, data):
        shape, element = types[0]
        need(data["axes"] <= len(shape) and types[1] == types[0])
        columns = (shape[-data["axes"]:], element)
        need(types[2:] == [columns] * data["gamma"])
        return [(shape, element)] + [columns] * (2 if data["kind"] == "layer_norm" else 1)

    def emit(self, writer, operands, data):
        (name, shape, element), (cotangent, _, _) = operands[:2]
        columns = shape[-data["axes"]:]
        gamma = f"gamma({operands[2][0]} : {type_of(columns, element)}) " if data["gamma"] else ""
        gradients = writer.op(f"norm.{data['kind']}_vjp {cotangent}, {name} {gamma}{{axes = {data['axes']} : i64, "
                              f"eps = {EPS} : f64}} : {type_of(shape, element)}, {type_of(columns, element)}",
                              3 if data["kind"] == "layer_norm" else 2)
        return [writer.bound(gradient, shape if i == 0 else columns, element) for i, gradient in enumerate(gradients)]


class BatchNorm(Operation):
    """A batch norm in training, with one of its results, one by given statistics, or the gradients of the first."""

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        if not shape or not all(shape):
            return None
        data = {"axis": graph.random.randrange(len(shape)), "result": graph.random.choice([0, 0, 0, 1, 2]),
                "kind": graph.random.choice(["batch_norm", "batch_norm_inference", "batch_norm_vjp"]),
                "weights": [name for name in self.get_names("batch_norm_vjp") if graph.random.random() < 0.5]}
        data["weights"] = [name for name in data["weights"] if name in self.get_names(data["kind"])]
        operands = [value] + [graph.pick_like(shape, element)] * (data["kind"] == "batch_norm_vjp")
        statistics = 2 * (data["kind"] == "batch_norm_inference")
        channels = [shape[data["axis"]]]
        return operands + [graph.pick_like(channels, element)
                           for _ in range(statistics + len(data["weights"]))], data

    def get_names(self, kind):
        return ["gamma", "dmean", "dvariance"] if kind == "batch_norm_vjp" else ["gamma", "beta"]

    def infer(self, types, data):
        shape, element = types[0]
        need(data["axis"] < len(shape) and all(shape))
        channels, full = ([shape[data["axis"]]], element), data["kind"] == "batch_norm_vjp"
        statistics = 2 * (data["kind"] == "batch_norm_inference")
        need(types[1:] == [types[0]] * full + [channels] * (statistics + len(data["weights"])))
        if full:
            return [types[0], channels, channels]
        return [channels if data["kind"] == "batch_norm" and data["result"] else types[0]]

    def emit(self, writer, operands, data):
        kind, (name, shape, element) = data["kind"], operands[0]
        types = self.infer([(shape, element) for _, shape, element in operands], data)
        channels = type_of([shape[data["axis"]]], element)
        names = [operand for operand, _, _ in operands[1:len(operands) - len(data["weights"])]]
        if kind == "batch_norm_inference":  # no variance is negative
            names[1] = writer.map([shape[data["axis"]]], element, [(names[1], [shape[data["axis"]]], element, ["d0"])],
                                  [f"%r = arith.mulf %x0, %x0 : {element}"])
        first = [name, *names] if kind != "batch_norm_vjp" else [*names, name]
        weights = "".join(f"{weight}({operand} : {channels}) "
                          for weight, (operand, _, _) in zip(data["weights"], operands[len(operands) - len(data["weights"]):]))
        results = writer.op(f"norm.{kind} {', '.join(first)} {weights}{{axis = {data['axis']} : i64, eps = {EPS} : f64}} : "
                            f"{type_of(shape, element)}, {channels}", 1 if kind == "batch_norm_inference" else 3)
        if kind == "batch_norm_inference":
            results = [results]
        elif kind == "batch_norm":
            results = [results[data["result"]]]
        return [writer.bound(result, *type) for result, type in zip(results, types)]


class Activation(Operation):
    """GELU or SiLU, or the gradient of one."""

    def propose(self, graph):
        value = graph.pick()
        vjp = graph.random.random() < 0.5
        kind = graph.random.choice(["gelu", "gelu {tanh_factor = 0.79788456080286541 : f64}", "silu"])
        return [value] + [graph.pick_like(*graph.get(value))] * vjp, {"kind": kind, "vjp": vjp}

    def infer(self, types, data):
        need(types[1:] == types[:1] * data["vjp"])
        return [types[0]]

    def emit(self, writer, operands, data):
        name, shape, element = operands[0]
        kind, *attributes = data["kind"].split(" ", 1)
        if data["vjp"]:
            name, kind = f"{operands[1][0]}, {name}", f"{kind}_vjp"
        result = writer.op(f"norm.{kind} {name} {' '.join(attributes)} : {type_of(shape, element)}")
        return [writer.bound(result, shape, element)]


class CrossEntropy(Operation):
    """The losses of rows; some targets are ignored."""

    def propose(self, graph):
        value = graph.pick(element="f32")
        shape = graph.get(value)[0] if value is not None else []
        return ([value], {"integer": graph.random.choice(["i64", "i32"])}) if shape else None

    def infer(self, types, data):
        shape, element = types[0]
        need(shape and element == "f32")
        return [(shape[:-1], element)]

    def targets(self, writer, shape, integer):
        rows, classes = shape[:-1], shape[-1]
        # Without classes, every target has to be one that is ignored.
        flat = [-100 if not classes or i % 5 == 3 else 3 * i % classes for i in range(math.prod(rows))]
        nested = flat
        for size in reversed(rows):
            nested = [nested[i:i + size] for i in range(0, len(nested), size)] if size else []
        return writer.op(f"arith.constant dense<{nested[0] if flat else ''}> : {type_of(rows, integer)}")

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        rows, integers = shape[:-1], type_of(shape[:-1], data["integer"])
        targets = self.targets(writer, shape, data["integer"])
        result = writer.op(f"norm.softmax_cross_entropy none {name}, {targets} : {type_of(shape, element)}, {integers} "
                           f"-> {type_of(rows, element)}")
        return [writer.bound(result, rows, element)]


class CrossEntropyVjp(CrossEntropy):
    def propose(self, graph):
        found = super().propose(graph)
        if not found:
            return None
        [value], data = found
        shape = graph.get(value)[0]
        # Of no rows, or of ignored ones alone, the mean is 0 / 0, of which drivers may make anything.
        data["reduction"] = graph.random.choice(["none", "sum", "mean"] if all(shape) else ["none", "sum"])
        rows = shape[:-1]
        return [value, graph.pick_like(rows if data["reduction"] == "none" else [], "f32")], data

    def infer(self, types, data):
        [rows] = super().infer(types, data)
        need(data["reduction"] != "mean" or all(types[0][0]))
        need(types[1] == (rows if data["reduction"] == "none" else ([], "f32")))
        return [types[0]]

    def emit(self, writer, operands, data):
        (name, shape, element), (loss, loss_shape, _) = operands
        targets = self.targets(writer, shape, data["integer"])
        gradient = writer.op(f"norm.softmax_cross_entropy_vjp {data['reduction']} {loss}, {name}, {targets} : "
                             f"{type_of(loss_shape, element)}, {type_of(shape, element)}, "
                             f"{type_of(shape[:-1], data['integer'])}")
        return [writer.bound(gradient, shape, element)]


OPERATIONS = {operation.__name__: operation() for operation in [
    Unary, Binary, Named, Select, Index, Integers, Half, Cast, Pair, Transpose, Window, Slice, Pad, Concat, Insert,
    Elements, Gather, Broadcast, Constant, Reduce, Contract, Convolve, Pool, Windows, Whole, Collapse, Expand, Softmax,
    SoftmaxVjp, Logsumexp, Norm, NormVjp, BatchNorm, Activation, CrossEntropy, CrossEntropyVjp]}
# How often, of kinds that are more to the point than others.
WEIGHTS = {"Unary": 4, "Binary": 4, "Reduce": 4, "Contract": 3, "NormVjp": 2, "Named": 2, "Integers": 2,
           "Windows": 3}


@dataclasses.dataclass
class Argument:
    shape: list
    element: str
    donate: bool = False
    kind: str = ""  # "param" and so on


@dataclasses.dataclass
class Node:
    kind: str
    operands: list  # values
    results: list  # values
    data: dict


class Graph:
    """A function `f`. Values are numbers; `arguments` has those of arguments."""

    def __init__(self, arguments, nodes, results):
        self.arguments, self.nodes, self.results = arguments, nodes, results

    def copy(self):
        return copy.deepcopy(self)

    def infer(self):
        """The type of every value. Raises Invalid."""
        types = {value: (argument.shape, argument.element) for value, argument in self.arguments.items()}
        for node in self.nodes:
            inferred = OPERATIONS[node.kind].infer([types[value] for value in node.operands], node.data)
            types |= dict(zip(node.results, inferred))
        return types

    def text(self):
        types, names, writer = self.infer(), {}, Writer()
        arguments = []
        for i, (value, argument) in enumerate(self.arguments.items()):
            names[value] = f"%a{i}"
            attributes = ["weir.donate"] * argument.donate
            attributes += [f'weir.kind = "{argument.kind}"'] if argument.kind else []
            said = f" {{{', '.join(attributes)}}}" if attributes else ""
            arguments.append(f"{names[value]}: {type_of(argument.shape, argument.element)}{said}")
        for node in self.nodes:
            operands = [(names[value], *types[value]) for value in node.operands]
            names |= dict(zip(node.results, OPERATIONS[node.kind].emit(writer, operands, node.data)))
        result_types = ", ".join(type_of(*types[value]) for value in self.results)
        return "\n".join([f"func.func @f({', '.join(arguments)}) -> ({result_types}) {{", *writer.lines,
                          f"  return {', '.join(names[value] for value in self.results)} : {result_types}", "}", ""])

    def is_smooth(self):
        """Whether gradients may be compared with differences."""
        return not any(node.kind == "Select" or {node.data.get("body"), node.data.get("op")} & set(KINKED)
                       for node in self.nodes)


class Maker:
    """Makes a graph, value by value."""

    def __init__(self, seed, sizes):
        self.random, self.sizes = random.Random(seed), sizes
        self.element = self.random.choice(["f32"] * 4 + ["f64"])
        self.arguments, self.nodes, self.types = {}, [], {}

    def pick_size(self):
        return self.random.choice(self.sizes)

    def get(self, value):
        return self.types[value]

    def pick(self, element=None):
        found = [value for value, type in self.types.items() if element in (None, type[1])]
        # New values and old ones: chains, and many readers of one.
        return self.random.choice(found[-3:] if self.random.random() < 0.4 else found) if found else None

    def argument(self, shape, element):
        value = len(self.types)
        self.arguments[value] = Argument(shape, element, self.random.random() < 0.25)
        self.types[value] = (shape, element)
        return value

    def pick_like(self, shape, element):
        """A value of this type, or a new argument."""
        equal = [value for value, type in self.types.items() if type == (shape, element)]
        return self.random.choice(equal) if equal and self.random.random() < 0.7 else self.argument(shape, element)

    def add(self, kind):
        proposed = OPERATIONS[kind].propose(self)
        if proposed is None:
            return
        operands, data = proposed
        inferred = OPERATIONS[kind].infer([self.types[value] for value in operands], data)
        # What is too large takes time and shows nothing.
        if any(math.prod(shape) > 2**15 for shape, _ in inferred):
            return
        results = list(range(len(self.types), len(self.types) + len(inferred)))
        self.types |= dict(zip(results, inferred))
        self.nodes.append(Node(kind, operands, results, data))


def make(seed, differentiable=False, sizes=SIZES, without=()):
    """The graph of a seed. `differentiable`: every op has a gradient rule. `without`: kinds of ops."""
    maker = Maker(seed, sizes)
    for _ in range(maker.random.randint(1, 3)):
        rank = maker.random.choice([0, 1, 2, 2, 2, 3, 3, 4])
        maker.argument([min(maker.pick_size(), 8) if rank == 4 else maker.pick_size() for _ in range(rank)],
                       maker.element)
    kinds = [kind for kind, operation in OPERATIONS.items()
             if (operation.has_gradient or not differentiable) and kind not in without]
    weights = [WEIGHTS.get(kind, 1) for kind in kinds]
    for _ in range(maker.random.randint(1, 12)):
        maker.add(maker.random.choices(kinds, weights)[0])
    values = list(maker.types)
    results = maker.random.sample(values, min(len(values), maker.random.randint(1, 4)))
    if values[-1] not in results:
        results.append(values[-1])
    if maker.random.random() < 0.1:
        results.append(results[0])  # two results that are one value
    return Graph(maker.arguments, maker.nodes, results)


def make_graph(seed, **options):
    """The text of a module with one function, `f`."""
    return make(seed, **options).text()
