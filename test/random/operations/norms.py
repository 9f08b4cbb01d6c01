"""Softmaxes, norms, activations and losses, with their gradients."""

import math

from operations.base import Operation, need, type_of


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
    """The logarithm of the sum of exponentials of an axis that is not empty, or its gradient."""

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
    """The gradient of a softmax, or of its logarithm, with the result of that made here."""

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


class Attention(Operation):
    """Attention with as many batches as there are, or its gradients."""

    def propose(self, graph):
        value = graph.pick(element="f32")
        shape = graph.get(value)[0] if value is not None else []
        if len(shape) < 2 or 0 in shape:
            return None
        *batches, queries, width = shape
        keys, values = graph.random.randint(1, 9), graph.random.randint(1, 5)
        shapes = [(*batches, keys, width), (*batches, keys, values)]
        data = {"vjp": graph.random.random() < 0.5, "bias": graph.random.random() < 0.5,
                "softcap": graph.random.random() < 0.3, "scale": graph.random.choice([0.5, 1.0])}
        if data["bias"]:
            bias = [size if graph.random.random() < 0.6 else 1 for size in (*batches, queries, keys)]
            # A bias that all keys share has no gradient but rounding.
            shapes.append((*bias[:-1], keys))
        if data["vjp"]:
            shapes.append((*batches, queries, values))
        return [value, *(graph.pick_like(list(shape), "f32") for shape in shapes)], data

    def infer(self, types, data):
        need(all(element == "f32" for _, element in types) and len(types) == 3 + data["bias"] + data["vjp"])
        (q, _), (k, _), (v, _) = types[:3]
        need(min(len(q), len(k), len(v)) >= 2 and 0 not in q + k + v and q[:-2] == k[:-2] == v[:-2])
        need(q[-1] == k[-1] and k[-2] == v[-2])
        scores, result = [*q[:-1], k[-2]], [*q[:-1], v[-1]]
        if data["bias"]:
            bias = types[3][0]
            need(len(bias) == len(scores) and all(a in (1, b) for a, b in zip(bias, scores)) and bias[-1] == scores[-1])
        if data["vjp"]:
            need(types[-1][0] == result)
            return types[:3 + data["bias"]]
        return [(result, "f32")]

    def emit(self, writer, operands, data):
        # Rounding errors of large scores would grow in powers.
        q, k = (writer.bound(*operand) for operand in operands[:2])
        v, shapes = operands[2][0], [shape for _, shape, _ in operands]
        result, rows = type_of([*shapes[0][:-1], shapes[2][-1]], "f32"), type_of(shapes[0][:-1], "f32")
        bias = f" bias({operands[3][0]} : {type_of(shapes[3], 'f32')})" if data["bias"] else ""
        attributes = f"{{scale = {data['scale']} : f64{', softcap = 1.5 : f64' if data['softcap'] else ''}}}"
        types = ", ".join(type_of(shape, "f32") for shape in shapes[:3])
        y, largest, share = writer.op(f"norm.attention {q}, {k}, {v}{bias} {attributes} : {types} -> {result}, {rows}",
                                      results=3)
        if not data["vjp"]:
            return [y]
        dbias = f", {type_of(shapes[3], 'f32')}" if data["bias"] else ""
        return writer.op(f"norm.attention_vjp {operands[-1][0]}, {q}, {k}, {v}, {y}, {largest}, {share}{bias} "
                         f"{attributes} : {types} -> {result}, {rows}{dbias}", results=3 + data["bias"])


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
        # The mean of no rows, or of ignored ones alone, is 0 / 0, of which drivers may make anything.
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
