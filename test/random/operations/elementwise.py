"""Operations on each element for itself, and arithmetic of integers and halves on the way."""

from operations.base import Operation, get_dims, maybe_alone, need, no_fuse, type_of


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
    """The larger of two values, by a tensor of i1 that a kernel of its own may make."""

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
    """A value, scaled by its index, through a tensor of integers."""

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
    """A value, scaled by an integer that is computed from its index, and perhaps rounded. All of it
    is exact, so that it may jump."""

    # By op on %p and a constant %c: that constant.
    OPS = {"addi": 7, "subi": 5, "muli": 3, "andi": 13, "ori": 2, "xori": 11, "maxsi": 6, "maxui": 4, "minsi": 9,
           "minui": 10, "divsi": 3, "divui": 2, "remsi": 11, "remui": 7, "ceildivsi": 3, "ceildivui": 2,
           "floordivsi": 3, "shli": 1, "shrsi": 1, "shrui": 1}
    OTHERS = ["absi", "cmpi", "extsi", "extui", "addui_extended", "mulsi_extended", "mului_extended", "ctlz"]
    WIDER = {"i8": "i16", "i16": "i32", "i32": "i64"}
    # Roundings of %f, which counts quarters.
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
    """A cast to the other type of float and back."""

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
