"""StableHLO's `sort` by comparisons that `norm.argsort` knows, written as an order of numbers and a gather by it."""

from typing import NamedTuple

from torch_mlir import ir

from weir import hlo

# The targets of custom calls, which become `norm.argsort`.
ARGSORT, ARGSORT_DESCENDING = "weir.argsort", "weir.argsort_descending"


class _Key(NamedTuple):
    """The operand that a comparison sorts by."""

    place: int
    is_descending: bool
    is_total: bool  # -0 comes before 0, and NaNs have an order


def sort(op: ir.Operation) -> list[ir.Value] | None:
    """Sorts by one comparison, or by several where each decides if those before it find equal elements."""
    end = list(op.regions[0].blocks[0].operations)[-1].operation
    keys = _find_keys(end.operands[0], list(op.regions[0].blocks[0].arguments))
    if not keys or len({key.is_descending for key in keys}) > 1:
        return None
    d, sizes = ir.IntegerAttr(op.attributes["dimension"]).value, hlo.get_sizes(op.operands[0])
    if 0 in sizes:
        return list(op.operands)
    d %= len(sizes)
    last = [*(other for other in range(len(sizes)) if other != d), d]
    back = [last.index(other) for other in range(len(sizes))]
    moved = [hlo.transpose(value, last) for value in op.operands]
    ordered = [_to_signed(moved[key.place], key.is_total) for key in keys]
    target = ARGSORT_DESCENDING if keys[0].is_descending else ARGSORT
    order = ir.Operation.create(
        "stablehlo.custom_call", [hlo.retype(moved[0], ir.IntegerType.get_signless(32))], ordered,
        {"call_target_name": ir.StringAttr.get(target)}).result
    return [hlo.transpose(_take(value, order), back) for value in moved]


def _find_keys(value: ir.Value, arguments: list[ir.Value]) -> list[_Key]:
    """Returns the keys of a comparison: `a < b`, or `a < b or (a == b and ...)`; nothing for another one."""
    op = _get_maker(value)
    if op is None:
        return []
    if op.name == "stablehlo.compare":
        key = _find_key(op, arguments)
        return [key] if key is not None and _get_direction(op) in ("LT", "GT") else []
    if op.name != "stablehlo.or":
        return []
    for first, rest in (op.operands, reversed(op.operands)):
        keys, both = _find_keys(first, arguments), _get_maker(rest)
        if len(keys) != 1 or both is None or both.name != "stablehlo.and":
            continue
        for same, others in (both.operands, reversed(both.operands)):
            equal = _get_maker(same)
            if equal is None or equal.name != "stablehlo.compare" or _get_direction(equal) != "EQ":
                continue
            key, more = _find_key(equal, arguments), _find_keys(others, arguments)
            if more and key is not None and (key.place, key.is_total) == (keys[0].place, keys[0].is_total):
                return [*keys, *more]
    return []


def _find_key(op: ir.Operation, arguments: list[ir.Value]) -> _Key | None:
    """Returns the operand whose two elements a comparison has."""
    (one, is_plain), (other, is_other_plain) = (_strip(value) for value in op.operands)
    if one not in arguments or other not in arguments or is_plain != is_other_plain:
        return None
    first, second = arguments.index(one), arguments.index(other)
    if first // 2 != second // 2 or first == second:
        return None
    is_total = "compare_type" in op.attributes and "TOTALORDER" in str(op.attributes["compare_type"])
    if not is_plain and not is_total:
        return None
    return _Key(first // 2, (_get_direction(op) == "GT") != (first > second), is_total and is_plain)


def _strip(value: ir.Value) -> tuple[ir.Value, bool]:
    """Returns the element that JAX compares, and whether it does as it is: or else all zeros are equal, and all NaNs."""
    outer = _match_choice(value, "NE")
    inner = _match_choice(outer, "EQ") if outer is not None else None
    return (value, True) if inner is None else (inner, False)


def _match_choice(value: ir.Value, direction: str) -> ir.Value | None:
    """Returns x of "NaN if x is one, or else x" (NE), or "0 if x is 0, or else x" (EQ), where x may be changed already."""
    choice = _get_maker(value)
    if choice is None or choice.name != "stablehlo.select":
        return None
    asked, constant = _get_maker(choice.operands[0]), _get_maker(choice.operands[1])
    if asked is None or constant is None or (asked.name, constant.name) != ("stablehlo.compare", "stablehlo.constant") \
            or _get_direction(asked) != direction:
        return None
    number = float(ir.DenseFPElementsAttr(constant.attributes["value"])[0])
    one, other = asked.operands
    if direction == "NE":
        is_it = number != number and one == other and one in (choice.operands[2], _match_choice(choice.operands[2], "EQ"))
    else:
        zero = _get_maker(other)
        is_it = number == 0 and one == choice.operands[2] and zero is not None and zero.name == "stablehlo.constant" \
            and float(ir.DenseFPElementsAttr(zero.attributes["value"])[0]) == 0
    return choice.operands[2] if is_it else None


def _get_maker(value: ir.Value | None) -> ir.Operation | None:
    if value is None or isinstance(value.owner, ir.Block):
        return None
    return value.owner.operation


def _get_direction(op: ir.Operation) -> str:
    return str(op.attributes["comparison_direction"]).rstrip(">").split()[-1]


def _to_signed(key: ir.Value, is_total: bool) -> ir.Value:
    """Returns keys of types that can be sorted, in the same order."""
    element = ir.ShapedType(key.type).element_type
    if isinstance(element, ir.FloatType):
        return _to_bits(key, element.width) if is_total else key
    if not element.is_unsigned:
        return key
    kind = hlo.retype(key, ir.IntegerType.get_signless(element.width))
    least = hlo.write_integer(kind, -(2 ** (element.width - 1)))
    return hlo.make("xor", kind, hlo.make("bitcast_convert", kind, key), least)


def _to_bits(key: ir.Value, width: int) -> ir.Value:
    """Returns integers in the total order of floats: the bits below the sign are turned where it is set."""
    kind = hlo.retype(key, ir.IntegerType.get_signless(width))
    bits = hlo.make("bitcast_convert", kind, key)
    sign = hlo.make("shift_right_arithmetic", kind, bits, hlo.write_integer(kind, width - 1))
    return hlo.make("xor", kind, bits, hlo.make("and", kind, sign, hlo.write_integer(kind, 2 ** (width - 1) - 1)))


def _take(value: ir.Value, order: ir.Value) -> ir.Value:
    """Returns the elements of the last dimension by their numbers."""
    sizes = hlo.get_sizes(value)
    outer = ", ".join(map(str, range(len(sizes) - 1)))
    batches = f"operand_batching_dims = [{outer}], start_indices_batching_dims = [{outer}], " if outer else ""
    numbers = ir.Attribute.parse(f"#stablehlo.gather<collapsed_slice_dims = [{len(sizes) - 1}], {batches}"
                                 f"start_index_map = [{len(sizes) - 1}], index_vector_dim = {len(sizes)}>")
    return hlo.make("gather", value.type, value, hlo.reshape(order, [*sizes, 1]), dimension_numbers=numbers,
                    slice_sizes=ir.DenseI64ArrayAttr.get([1] * len(sizes)),
                    indices_are_sorted=ir.BoolAttr.get(False))
