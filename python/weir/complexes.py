"""Complex numbers in StableHLO as pairs of floats: Weir's graphs have none.

Each complex value becomes two, its real and its imaginary part, also where it enters or leaves the function, a loop or
a reduction.
"""

import re
from collections.abc import Callable, Sequence

import numpy
from torch_mlir import ir

from weir import complex_math, hlo, transforms
from weir.complex_math import DTYPES, Complex, Floats
from weir.graphs import list_values, walk

Parts = tuple[ir.Value, ir.Value]

# Operations that move elements: the parts are moved alike.
MOVES = {f"stablehlo.{name}" for name in (
    "broadcast", "broadcast_in_dim", "concatenate", "copy", "dynamic_broadcast_in_dim", "dynamic_gather", "dynamic_pad",
    "dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "gather", "optimization_barrier", "pad",
    "real_dynamic_slice", "reshape", "reverse", "select", "slice", "transpose")}
PRODUCTS = {"stablehlo.convolution", "stablehlo.dot_general", "stablehlo.dynamic_conv"}
# Operations with regions whose operands, results and blocks' arguments are lists.
LISTS = {f"stablehlo.{name}" for name in ("case", "if", "reduce", "reduce_window", "scatter", "sort", "while")}
ENDS = {"func.return", "stablehlo.return"}


CONSTANT = re.compile(r'dense<([^<>]*)> : tensor<((?:\d+x)*)complex<(f32|f64)>>')


def split_constants(text: str) -> str:
    """Returns a module's text with two constants in place of each complex one, which torch-mlir's bindings do not read."""
    return CONSTANT.sub(_split_constant, text) if "complex<" in text else text


def _split_constant(found: re.Match) -> str:
    content, sizes, element = found.groups()
    parts = []
    for place in range(2):
        if content.startswith('"'):  # the bytes of all parts, one behind the other
            words = numpy.frombuffer(bytes.fromhex(content[3:-1]), DTYPES[element])
            part = f'"0x{words[place::2].tobytes().hex().upper()}"'
        else:
            part = re.sub(r"\(([^(),]*),([^(),]*)\)", lambda pair: pair.group(place + 1), content)
        parts.append(f"dense<{part}> : tensor<{sizes}{element}>")
    return f"[{', '.join(parts)}]"


def is_complex(kind: ir.Type) -> bool:
    """Whether a type is that of tensors of complex numbers."""
    return isinstance(kind, ir.RankedTensorType) and isinstance(kind.element_type, ir.ComplexType)


def find_unsplit(function: ir.Operation) -> list[ir.Operation]:
    """Returns the operations on complex numbers that `split_complex` has no rule for, in order."""
    known = MOVES | PRODUCTS | LISTS | ENDS | RULES.keys() | {"func.func"}
    return [op for op in walk(function) if _is_touched(op) and (op.name not in known or (
        op.name == "stablehlo.fft" and not transforms.can_transform(op)))]


def split_complex(function: ir.Operation) -> dict[str, list[str]]:
    """Writes pairs of floats in place of complex numbers. `find_unsplit` must have found nothing.

    Returns the names of the arguments and of the results, `arg0.real`, `arg0.imag`, or nothing if none is complex.
    """
    if not any(_is_touched(op) for op in walk(function)):
        return {}
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    sides = {"arg": list(kind.inputs), "result": list(kind.results)}
    _Splitter().split_function(function)
    if not any(is_complex(one) for side in sides.values() for one in side):
        return {}
    inputs, results = ([part for one in side for part in _split_type(one)] for side in sides.values())
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
    for name in ("arg_attrs", "res_attrs"):  # they are one for each value
        if name in function.attributes:
            del function.attributes[name]
    return {word: [name for i, one in enumerate(side) for name in name_parts(f"{word}{i}", is_complex(one))]
            for word, side in sides.items()}


def name_parts(name: str, is_split: bool) -> list[str]:
    """Returns the names of the tensors that stand for a value."""
    return [f"{name}.real", f"{name}.imag"] if is_split else [name]


def _is_touched(op: ir.Operation) -> bool:
    return any(is_complex(value.type) for value in list_values(op))


def _split_type(kind: ir.Type) -> list[ir.Type]:
    if not is_complex(kind):
        return [kind]
    shaped = ir.ShapedType(kind)
    return [ir.RankedTensorType.get(list(shaped.shape), ir.ComplexType(shaped.element_type).element_type)] * 2


class _Splitter:
    """Walks a function, writes the operations on parts, and drops those on complex numbers at the end."""

    def __init__(self) -> None:
        self.parts: dict[ir.Value, Parts] = {}
        self.dropped: list[ir.Operation] = []
        self.arguments: list[tuple[ir.Block, int]] = []

    def split_function(self, function: ir.Operation) -> None:
        self._split_block(function.regions[0].blocks[0])
        for op in reversed(self.dropped):
            op.erase()
        for block, count in self.arguments:
            for _ in range(count):
                block.erase_argument(0)

    def _split_block(self, block: ir.Block) -> None:
        old = list(block.arguments)
        if any(is_complex(value.type) for value in old):
            for value in old:
                made = [block.add_argument(kind, value.location) for kind in _split_type(value.type)]
                self._replace(value, made)
            self.arguments.append((block, len(old)))
        for op in list(block.operations):
            self._split_op(op.operation)

    def _split_op(self, op: ir.Operation) -> None:
        if not _is_touched(op):
            for region in op.regions:
                for block in region:
                    self._split_block(block)
            return
        with op.location, ir.InsertionPoint(op):
            if op.name in LISTS | ENDS:
                made = self._write_lists(op)
            else:
                made = [part for result in self._write(op) for part in result]
        for old in op.results:
            count = len(_split_type(old.type))
            self._replace(old, made[:count])
            made = made[count:]
        self.dropped.append(op)

    def _replace(self, old: ir.Value, made: Sequence[ir.Value]) -> None:
        if is_complex(old.type):
            self.parts[old] = (made[0], made[1])
        else:
            old.replace_all_uses_with(made[0])

    def _take(self, value: ir.Value) -> Sequence[ir.Value]:
        return self.parts[value] if is_complex(value.type) else (value,)

    def _write(self, op: ir.Operation) -> list[Sequence[ir.Value]]:
        """Writes an operation without regions. Returns the values for each of its results."""
        if op.name in MOVES:
            results = []
            for place in range(2):
                operands = [self._take(value)[place] if is_complex(value.type) else value for value in op.operands]
                kinds = [_split_type(result.type)[0] for result in op.results]
                results.append(list(ir.Operation.create(op.name, kinds, operands, hlo.get_attributes(op)).results))
            return list(zip(*results, strict=True))
        if op.name in PRODUCTS:
            return [self._multiply(op)]
        operands = [Complex(*map(Floats, self._take(value))) if is_complex(value.type) else Floats(value)
                    for value in op.operands]
        made = RULES[op.name](op, *operands)
        return [(made.real.value, made.imag.value) if isinstance(made, Complex) else (made.value,)]

    def _multiply(self, op: ir.Operation) -> Parts:
        """Writes a sum of products of complex numbers as four of floats."""
        kind, rest = _split_type(op.results[0].type)[0], list(op.operands)[2:]
        (a, b), (c, d) = (self._take(value) for value in list(op.operands)[:2])

        def multiply(one: ir.Value, other: ir.Value) -> Floats:
            return Floats(ir.Operation.create(op.name, [kind], [one, other, *rest], hlo.get_attributes(op)).result)

        return (multiply(a, c) - multiply(b, d)).value, (multiply(a, d) + multiply(b, c)).value

    def _write_lists(self, op: ir.Operation) -> list[ir.Value]:
        """Writes an operation with each part as a value of its own. Returns the values of all results."""
        operands = [part for value in op.operands for part in self._take(value)]
        kinds = [kind for result in op.results for kind in _split_type(result.type)]
        if op.name in ("stablehlo.reduce", "stablehlo.reduce_window") and _is_sum(op):
            return [self._sum(op, place) for place in range(2)]
        new = ir.Operation.create(op.name, kinds, operands, hlo.get_attributes(op), regions=len(op.regions))
        for old, region in zip(op.regions, new.regions):
            old.blocks[0].append_to(region)
            self._split_block(region.blocks[0])
        return list(new.results)

    def _sum(self, op: ir.Operation, place: int) -> ir.Value:
        """Writes the sum of one part alone: a reduction of both at once is computed by one invocation."""
        kind = _split_type(op.results[0].type)[0]
        new = ir.Operation.create(op.name, [kind], [self._take(value)[place] for value in op.operands],
                                  hlo.get_attributes(op), regions=1)
        scalar = ir.RankedTensorType.get([], ir.ShapedType(kind).element_type)
        block = new.regions[0].blocks.append(scalar, scalar, arg_locs=[op.location] * 2)
        with ir.InsertionPoint(block):
            total = Floats(block.arguments[0]) + Floats(block.arguments[1])
            ir.Operation.create("stablehlo.return", [], [total.value])
        return new.result


def _is_sum(op: ir.Operation) -> bool:
    """Whether a reduction of one tensor adds its elements."""
    if len(op.results) != 1:
        return False
    body, *rest = [inner.operation for inner in op.regions[0].blocks[0].operations]
    return len(rest) == 1 and body.name == "stablehlo.add" and rest[0].operands[0] == body.results[0] \
        and set(body.operands) == set(op.regions[0].blocks[0].arguments)


def _write_constant(op: ir.Operation) -> Complex:
    kind = _split_type(op.results[0].type)[0]
    return Complex(*(Floats(hlo.make("constant", kind, value=part))
                     for part in ir.ArrayAttr(op.attributes["value"])))


def _write_iota(op: ir.Operation) -> Complex:
    kind = _split_type(op.results[0].type)[0]
    count = Floats(hlo.make("iota", kind, **hlo.get_attributes(op)))
    return Complex(count, count.fill(0))


def _convert(op: ir.Operation, x: Complex | Floats) -> Complex | Floats:
    """Converts by the real part: a number that is not complex takes no other."""
    kind = _split_type(op.results[0].type)[0]
    parts = [Floats(hlo.make("convert", kind, part.value)) if part.value.type != kind
             else part for part in ((x.real, x.imag) if isinstance(x, Complex) else (x,))]
    if not is_complex(op.results[0].type):
        return parts[0]
    return Complex(*parts) if len(parts) == 2 else Complex(parts[0], parts[0].fill(0))


def _compare(op: ir.Operation, x: Complex, y: Complex) -> Floats:
    """Compares for equality, which is all that complex numbers have."""
    direction = "NE" if "NE" in str(op.attributes["comparison_direction"]) else "EQ"
    real, imag = x.real.compare(direction, y.real), x.imag.compare(direction, y.imag)
    return real | imag if direction == "NE" else real & imag


def _reinterpret(op: ir.Operation, x: Complex) -> Complex:
    """Reads the bits of a number as two of half the bits, or those of two as one."""
    kind = _split_type(op.results[0].type)[0]
    if kind == x.real.value.type:
        return x
    if len(hlo.get_sizes(x.real.value)) < len(ir.ShapedType(kind).shape):
        halves = [hlo.make("bitcast_convert", kind, part.value) for part in x]  # each the parts of a number
        return Complex(*(Floats(hlo.concatenate([hlo.slice_dims(half, {-1: (i, i + 1)}) for half in halves],
                                                len(hlo.get_sizes(halves[0])) - 1)) for i in range(2)))
    rank = len(hlo.get_sizes(x.real.value))
    return Complex(*(Floats(hlo.make("bitcast_convert", kind, hlo.concatenate(
        [hlo.slice_dims(part.value, {-1: (i, i + 1)}) for part in x], rank - 1))) for i in range(2)))


def _apply(function: Callable) -> Callable:
    return lambda _, *operands: function(*operands)


RULES: dict[str, Callable] = {
    "stablehlo.bitcast_convert": _reinterpret,
    "stablehlo.compare": _compare,
    "stablehlo.constant": _write_constant,
    "stablehlo.convert": _convert,
    "stablehlo.fft": transforms.transform,
    "stablehlo.iota": _write_iota,
} | {name: _apply(function) for name, function in complex_math.RULES.items()}
