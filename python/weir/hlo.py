"""Writes operations of StableHLO at the current insertion point. torch-mlir's bindings do not know the dialect."""

import re
from collections.abc import Sequence

from torch_mlir import ir

STOP_GRADIENT = "weir.stop_gradient"  # the target of a custom call
MATRIX = "weir.matrix."  # what targets begin with that are ops of `matrix`; their flags follow, each behind a dot


def make(name: str, kind: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(f"stablehlo.{name}", [kind], list(operands), attributes).results[0]


def resize(value: ir.Value, sizes: Sequence[int]) -> ir.Type:
    """Returns the type of a tensor of other sizes."""
    return ir.RankedTensorType.get(list(sizes), ir.ShapedType(value.type).element_type)


def retype(value: ir.Value, element: ir.Type) -> ir.Type:
    """Returns the type of a tensor of other elements."""
    return ir.RankedTensorType.get(get_sizes(value), element)


def get_sizes(value: ir.Value) -> list[int]:
    return list(ir.ShapedType(value.type).shape)


def get_attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    """Returns all attributes of an operation.

    Of an unknown dialect the bindings look up the attributes that belong to an operation, but do not list them: their
    names are read from its text.
    """
    text = op.get_asm(print_generic_op_form=True, skip_regions=True)
    start = re.search(r'^[^"]*"[\w.]+"\([^()]*\)(?:\[[^\]]*\])? <(?={)', text)
    names = list(ir.DictAttr.parse(text[start.end():_find_end(text, start.end())])) if start else []
    names += list(op.attributes)
    names = [one if isinstance(one, str) else one.name for one in names]
    return {name: op.attributes[name] for name in names}


def _find_end(text: str, start: int) -> int:
    """Returns the place behind the braces that open at `start`."""
    depth = 0
    for word in re.finditer(r'"(?:[^"\\]|\\.)*"|[{}]', text[start:]):
        depth += {"{": 1, "}": -1}.get(word.group(), 0)
        if not depth:
            return start + word.end()
    raise ValueError("braces that are not closed")


def write_integer(kind: ir.Type, number: int) -> ir.Value:
    """Writes a constant of one integer or boolean in all elements."""
    element = ir.ShapedType(kind).element_type
    return make("constant", kind, value=ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(element, number)))


def compare(direction: str, one: ir.Value, other: ir.Value) -> ir.Value:
    return make("compare", retype(one, ir.IntegerType.get_signless(1)), one, other,
                comparison_direction=ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>"))


def broadcast(value: ir.Value, kind: ir.Type, dims: Sequence[int]) -> ir.Value:
    return make("broadcast_in_dim", kind, value, broadcast_dimensions=ir.DenseI64ArrayAttr.get(list(dims)))


def reshape(value: ir.Value, sizes: Sequence[int]) -> ir.Value:
    return value if list(sizes) == get_sizes(value) else make("reshape", resize(value, sizes), value)


def transpose(value: ir.Value, order: Sequence[int]) -> ir.Value:
    if list(order) == sorted(order):
        return value
    sizes = get_sizes(value)
    return make("transpose", resize(value, [sizes[d] for d in order]), value,
                permutation=ir.DenseI64ArrayAttr.get(list(order)))


def slice_dims(value: ir.Value, ranges: dict[int, tuple[int, int]]) -> ir.Value:
    """Returns a part of a tensor, from the ranges of some dimensions, the last ones counted by negative numbers."""
    sizes = get_sizes(value)
    starts, ends = [0] * len(sizes), list(sizes)
    for d, (start, end) in ranges.items():
        starts[d], ends[d] = start, end
    return make("slice", resize(value, [end - start for start, end in zip(starts, ends)]), value,
                start_indices=ir.DenseI64ArrayAttr.get(starts), limit_indices=ir.DenseI64ArrayAttr.get(ends),
                strides=ir.DenseI64ArrayAttr.get([1] * len(sizes)))


def concatenate(values: Sequence[ir.Value], d: int) -> ir.Value:
    sizes = get_sizes(values[0])
    sizes[d] = sum(get_sizes(value)[d] for value in values)
    return make("concatenate", resize(values[0], sizes), *values,
                dimension=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), d))


def call_matrix(name: str, kinds: Sequence[ir.Type], *operands: ir.Value, **flags: bool) -> list[ir.Value]:
    """Calls an op of `matrix` with the flags that are set."""
    target = ".".join([MATRIX + name, *(flag for flag, is_set in flags.items() if is_set)])
    return list(ir.Operation.create("stablehlo.custom_call", list(kinds), list(operands),
                                    {"call_target_name": ir.StringAttr.get(target)}).results)


def stop_gradient(value: ir.Value) -> ir.Value:
    return make("custom_call", value.type, value, call_target_name=ir.StringAttr.get(STOP_GRADIENT))
