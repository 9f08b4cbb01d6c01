"""Operations that move elements, or make them of nothing: transposes, slices, pads, gathers, constants."""

import math

from operations.base import Operation, get_dims, need, type_of


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


class Sort(Operation):
    """The elements of each row in the order of integers, many of them equal, or the first few."""

    def propose(self, graph):
        value, random = graph.pick(), graph.random
        shape = graph.get(value)[0]
        if not shape or not all(shape):
            return None
        return [value], {"wanted": random.choice([1, random.randint(1, shape[-1]), shape[-1]]),
                         "descending": random.random() < 0.5, "moduli": random.choice([[5], [89], [3, 7]])}

    def infer(self, types, data):
        shape, element = types[0]
        need(shape and all(shape) and data["wanted"] <= shape[-1])
        return [([*shape[:-1], data["wanted"]], element)]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        [(out, _)] = self.infer([(shape, element)], data)
        dims, keys, type = get_dims(len(shape)), [], type_of(shape, "i32")
        for modulus in data["moduli"]:
            body, number = [f"%n = arith.constant {modulus} : i32", "%s = arith.constant 2 : i32"], "%s"
            for i in range(len(shape)):
                body += [f"%i{i} = linalg.index {i} : index", f"%c{i} = arith.index_cast %i{i} : index to i32",
                         f"%f{i} = arith.constant {31 + 2 * i} : i32", f"%p{i} = arith.muli %c{i}, %f{i} : i32",
                         f"%s{i} = arith.addi {number}, %p{i} : i32"]
                number = f"%s{i}"
            keys.append(writer.map(shape, "i32", [], [*body, f"%r = arith.remui {number}, %n : i32"]))
        descending = " {descending}" if data["descending"] else ""
        order = writer.op(f"norm.argsort {', '.join(keys)}{descending} : {', '.join([type] * len(keys))} -> "
                          f"{type_of(out, 'i32')}")
        places = ", ".join([f"%i{i}" for i in range(len(shape) - 1)] + ["%at"])
        return [writer.map(out, element, [(order, out, "i32", dims)], [
            *(f"%i{i} = linalg.index {i} : index" for i in range(len(shape) - 1)),
            "%at = arith.index_cast %x0 : i32 to index",
            f"%r = tensor.extract {name}[{places}] : {type_of(shape, element)}"])]


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
