"""The text of operations, and what they have in common."""


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
        """Adds a function that makes values of order one of values that grow with their row, and are
        nothing but rounding where the row is constant."""
        body = ["%half = arith.constant 0.5 : E", "%q = arith.mulf %x0, %x0 : E", "%one = arith.constant 1.0 : E",
                "%u = arith.addf %q, %one : E", "%s = math.sqrt %u : E", "%t = arith.divf %x0, %s : E",
                "%r = arith.addf %t, %half : E"]
        return self.map(shape, element, [(name, shape, element, get_dims(len(shape)))],
                        [line.replace(": E", f": {element}") for line in body])


class Operation:
    """The rules for nodes of one kind. `propose` returns (operands, data), or None where nothing
    fits; `infer` returns the results' shapes and elements, or raises Invalid; `emit` writes the
    text, and returns the names of the results."""

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
