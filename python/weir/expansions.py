"""Operations of StableHLO that torch-mlir does not lower, written out by others of StableHLO's."""

import math
from collections.abc import Callable

from torch_mlir import ir

from weir import hlo
from weir.graphs import walk
from weir.sorting import sort

LARGEST = 64  # rows of a triangular matrix that is written out


def expand(op: ir.Operation) -> list[ir.Value] | None:
    """Writes an operation that has a rule out before it. Returns what replaces its results, or None if it stays."""
    with op.location, ir.InsertionPoint(op):
        return RULES[op.name](op)


class _Solver:
    """Solves m x = b for a triangular m, by the rows of m from the one with a single element on."""

    def __init__(self, a: ir.Value, b: ir.Value, is_transposed: bool, is_unit: bool):
        self.a, self.b, self.is_transposed, self.is_unit = a, b, is_transposed, is_unit
        self.sizes = hlo.get_sizes(b)  # batches, rows, columns
        self.row = hlo.resize(b, [*self.sizes[:-2], 1, self.sizes[-1]])

    def solve(self, is_lower: bool) -> ir.Value:
        count, found = self.sizes[-2], {}
        for i in range(count) if is_lower else reversed(range(count)):
            rest = self._slice(self.b, i, None)
            for j, x in found.items():
                rest = hlo.make("subtract", self.row, rest, hlo.make("multiply", self.row, self._get_entry(i, j), x))
            found[i] = rest if self.is_unit else hlo.make("divide", self.row, rest, self._get_entry(i, i))
        return hlo.concatenate([found[i] for i in range(count)], len(self.sizes) - 2)

    def _slice(self, value: ir.Value, i: int, j: int | None) -> ir.Value:
        """Returns a row of each matrix of `value`, or one element."""
        return hlo.slice_dims(value, {-2: (i, i + 1)} if j is None else {-2: (i, i + 1), -1: (j, j + 1)})

    def _get_entry(self, i: int, j: int) -> ir.Value:
        """Returns an element of each matrix, for each column of the result."""
        entry = self._slice(self.a, *((j, i) if self.is_transposed else (i, j)))
        return hlo.broadcast(entry, self.row, range(len(self.sizes)))


def _transpose(value: ir.Value) -> ir.Value:
    rank = len(hlo.get_sizes(value))
    return hlo.transpose(value, [*range(rank - 2), rank - 1, rank - 2])


def _conjugate(value: ir.Value) -> ir.Value:
    """Returns the conjugates of complex numbers, and other numbers as they are."""
    element = ir.ShapedType(value.type).element_type
    if not isinstance(element, ir.ComplexType):
        return value
    part = hlo.retype(value, element.element_type)
    return hlo.make("complex", value.type, hlo.make("real", part, value),
                    hlo.make("negate", part, hlo.make("imag", part, value)))


def _solve_triangular(op: ir.Operation) -> list[ir.Value] | None:
    a, b = op.operands
    is_left, is_lower, is_unit = (ir.BoolAttr(op.attributes[name]).value
                                  for name in ("left_side", "lower", "unit_diagonal"))
    is_transposed = "NO_TRANSPOSE" not in str(op.attributes["transpose_a"])
    if _is_real(a):
        right = b if is_left else _transpose(b)
        [x] = hlo.call_matrix("triangular_solve", [right.type], a, right, upper=not is_lower,
                              transposed=is_transposed == is_left, unit_diagonal=is_unit)
        return [x if is_left else _transpose(x)]
    if hlo.get_sizes(a)[-1] > LARGEST:
        return None
    if "ADJOINT" in str(op.attributes["transpose_a"]):
        a = _conjugate(a)
    if not is_left:  # x m = b is the same as m' x' = b'
        b, is_transposed = _transpose(b), not is_transposed
    x = _Solver(a, b, is_transposed, is_unit).solve(is_lower != is_transposed)
    return [x if is_left else _transpose(x)]


def _is_real(value: ir.Value) -> bool:
    """Whether ops of `matrix` take a tensor."""
    return isinstance(ir.ShapedType(value.type).element_type, (ir.F32Type, ir.F64Type))


def _factor_cholesky(op: ir.Operation) -> list[ir.Value] | None:
    """A matrix that is not positive definite gives NaNs. What lies beside the triangle is 0: StableHLO leaves it open."""
    [a] = op.operands
    is_lower = "lower" not in op.attributes or ir.BoolAttr(op.attributes["lower"]).value
    if not _is_real(a):
        return None
    [made] = hlo.call_matrix("cholesky", [a.type], a if is_lower else _transpose(a))
    return [made if is_lower else _transpose(made)]


def _reshape(op: ir.Operation) -> list[ir.Value] | None:
    """The sizes that are computed can only be those of the result."""
    kinds = [ir.ShapedType(value.type) for value in (op.operands[0], op.results[0])]
    if not all(kind.has_static_shape for kind in kinds):
        return None
    return [hlo.make("reshape", op.results[0].type, op.operands[0])]


def _read_integers(value: ir.Value) -> list[int] | None:
    """Returns the elements of a constant of integers, or None of another value."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if op is None or op.name != "stablehlo.constant":
        return None
    numbers, count = ir.DenseIntElementsAttr(op.attributes["value"]), math.prod(hlo.get_sizes(value))
    return [numbers[0]] * count if numbers.is_splat else list(numbers)


def _pad(op: ir.Operation) -> list[ir.Value] | None:
    lists = [_read_integers(value) for value in list(op.operands)[2:]]
    if None in lists:
        return None
    low, high, interior = (ir.DenseI64ArrayAttr.get(numbers) for numbers in lists)
    return [hlo.make("pad", op.results[0].type, *list(op.operands)[:2], edge_padding_low=low, edge_padding_high=high,
                     interior_padding=interior)]


def _gather(op: ir.Operation) -> list[ir.Value] | None:
    sizes = _read_integers(op.operands[2])
    if sizes is None:
        return None
    return [hlo.make("gather", op.results[0].type, *list(op.operands)[:2], **hlo.get_attributes(op),
                     slice_sizes=ir.DenseI64ArrayAttr.get(sizes))]


def _convolve(op: ir.Operation) -> list[ir.Value] | None:
    padding = _read_integers(op.operands[2])
    if padding is None:
        return None
    kind = ir.RankedTensorType.get(hlo.get_sizes(op.operands[2]), ir.IntegerType.get_signless(64))
    attribute = ir.Attribute.parse(f"dense<{[padding[i:i + 2] for i in range(0, len(padding), 2)]}> : {kind}")
    return [hlo.make("convolution", op.results[0].type, *list(op.operands)[:2],
                     **hlo.get_attributes(op) | {"padding": attribute})]


def _get_size(op: ir.Operation) -> list[ir.Value] | None:
    kind, dim = ir.ShapedType(op.operands[0].type), ir.IntegerAttr(op.attributes["dimension"]).value
    if not kind.has_static_shape:
        return None
    return [hlo.write_integer(op.results[0].type, kind.shape[dim])]


def _get_element(op: ir.Operation) -> list[ir.Value] | None:
    maker = op.operands[0].owner
    if isinstance(maker, ir.Block) or maker.operation.name != "stablehlo.tuple":
        return None
    return [maker.operation.operands[ir.IntegerAttr(op.attributes["index"]).value]]


def _choose(op: ir.Operation) -> list[ir.Value] | None:
    """Computes all branches, which have no effects, and chooses. An index that is out of range takes the last one. What
    has a loop stays: it may not end if it is not taken."""
    if any(inner.name == "stablehlo.while" for inner in walk(op)):
        return None
    results = []
    for region in op.regions:
        *body, end = list(region.blocks[0].operations)
        for inner in body:
            inner.operation.move_before(op)
        results.append(list(end.operands))
    pred = op.operands[0]
    if op.name == "stablehlo.if":
        return [hlo.make("select", one.type, pred, one, other) for one, other in zip(*results)]
    chosen = results[-1]
    for i in reversed(range(len(results) - 1)):
        is_it = hlo.compare("EQ", pred, hlo.write_integer(pred.type, i))
        chosen = [hlo.make("select", one.type, is_it, one, other) for one, other in zip(results[i], chosen)]
    return chosen


def _raise_integer(op: ir.Operation) -> list[ir.Value] | None:
    """Multiplies the squares that the bits of an exponent name. Powers that are below 1 without their sign are 0."""
    base, exponent = op.operands
    element = ir.ShapedType(base.type).element_type
    if not isinstance(element, ir.IntegerType) or element.width == 1:
        return None
    zero, one = hlo.write_integer(base.type, 0), hlo.write_integer(base.type, 1)
    is_odd = hlo.compare("NE", hlo.make("and", base.type, exponent, one), zero)
    result, square, rest = hlo.make("select", base.type, is_odd, base, one), base, exponent
    for _ in range(1, element.width if element.is_unsigned else element.width - 1):
        square = hlo.make("multiply", base.type, square, square)
        rest = hlo.make("shift_right_logical", base.type, rest, one)
        is_set = hlo.compare("NE", hlo.make("and", base.type, rest, one), zero)
        result = hlo.make("select", base.type, is_set, hlo.make("multiply", base.type, result, square), result)
    if element.is_unsigned:
        return [result]
    minus = hlo.write_integer(base.type, -1)
    small = hlo.make("select", base.type, hlo.compare("EQ", base, one), one, zero)
    of_minus = hlo.make("select", base.type, is_odd, minus, one)
    small = hlo.make("select", base.type, hlo.compare("EQ", base, minus), of_minus, small)
    return [hlo.make("select", base.type, hlo.compare("LT", exponent, zero), small, result)]


def _reduce_precision(op: ir.Operation) -> list[ir.Value] | None:
    """Makes infinities of NaNs, which a type without bits of mantissa has not: torch-mlir would keep them."""
    x, kind = op.operands[0], op.results[0].type
    if ir.IntegerAttr(op.attributes["mantissa_bits"]).value > 0:
        return None
    element = ir.ShapedType(kind).element_type
    plus, minus = (hlo.make("constant", kind, value=ir.DenseElementsAttr.get_splat(
        kind, ir.FloatAttr.get(element, number))) for number in (math.inf, -math.inf))
    bits = hlo.make("bitcast_convert", hlo.retype(x, ir.IntegerType.get_signless(element.width)), x)
    infinite = hlo.make("select", kind, hlo.compare("LT", bits, hlo.write_integer(bits.type, 0)), minus, plus)
    reduced = hlo.make("reduce_precision", kind, x, **hlo.get_attributes(op))
    return [hlo.make("select", kind, hlo.compare("NE", x, x), infinite, reduced)]


def _reduce(op: ir.Operation) -> None:
    """Gives a reduction over no dimension one of size 1: torch-mlir lowers none without."""
    if not list(ir.DenseI64ArrayAttr(op.attributes["dimensions"])):
        for i in range(len(op.operands) // 2):
            sizes = hlo.get_sizes(op.operands[i])
            op.operands[i] = hlo.reshape(op.operands[i], [*sizes, 1])
        op.attributes["dimensions"] = ir.DenseI64ArrayAttr.get([len(sizes)])


RULES: dict[str, Callable[[ir.Operation], list[ir.Value] | None]] = {
    "stablehlo.case": _choose,
    "stablehlo.cholesky": _factor_cholesky,
    "stablehlo.dynamic_conv": _convolve,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.dynamic_pad": _pad,
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.get_dimension_size": _get_size,
    "stablehlo.get_tuple_element": _get_element,
    "stablehlo.if": _choose,
    "stablehlo.optimization_barrier": lambda op: list(op.operands),
    "stablehlo.power": _raise_integer,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.sort": sort,
    "stablehlo.triangular_solve": _solve_triangular,
}
