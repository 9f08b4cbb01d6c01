"""Evaluates the parts of an exported program that depend only on constants.

Position ids and static masks arrive as dozens of operators on `arange`; some of
those have no form in linalg at all.
"""

from collections.abc import Container

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Node

from weir.graphs import ExportError
from weir.torch.operators import COLLECTIVES
from weir.torch.places import emit, refuse
from weir.torch.places import find_line

aten = torch.ops.aten
SMALL_MASK = 1024  # elements of a mask that is stored in any case


def is_random(target: object) -> bool:
    """Whether an operator draws random numbers, so that no constant may replace it."""
    return isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags


def fold_constants(program: ExportedProgram) -> None:
    """Replaces, in place, each value that depends on no user input, other than by shape, by a constant. Values without
    elements are among them.

    A comparison of places with each other stays, since its mask would be their square.

    Shapes: a value that is the same everywhere becomes `full`, and an `expand` stays, so that
            what is kept has one element or the size before the broadcast.
    Errors: ExportError if an operator does not take its constant operands, such as an index out of range.
    """
    graph, values = program.graph, _given_constants(program)
    fixed = _find_fixed(program, values)
    for node in graph.nodes:
        if _is_constant_call(node, values) and not _is_wide_comparison(node, fixed):
            arguments, options = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            try:
                values[node] = node.target(*arguments, **options)
            except (IndexError, RuntimeError) as error:
                raise ExportError(f"{node.target} of constants: {error}, {find_line(node)}") from None
        elif node.op == "call_function" and _is_empty(node.meta.get("val")):
            # Some of these operators end torch-mlir's process, or get sizes that it does not know.
            values[node] = torch.zeros(node.meta["val"].shape, dtype=node.meta["val"].dtype)
        elif (number := _get_filling(node)) is not None:
            like = node.meta["val"]
            values[node] = torch.full(like.shape, number, dtype=like.dtype)

    kept: dict[Node, Node] = {}
    for node in [node for node in values if node.op == "call_function"]:
        if isinstance(values[node], torch.Tensor) and any(user not in values for user in node.users):
            node.replace_all_uses_with(_keep(program, node, values, kept), lambda user: user not in values)
    graph.eliminate_dead_code()
    _drop_unused(program)
    _read_once(program)
    program.graph_module.recompile()


def _find_fixed(program: ExportedProgram, values: dict) -> set[Node]:
    """Returns the nodes that depend on no input, other than by shape."""
    fixed = set(values)
    for node in program.graph.nodes:
        if _is_constant_call(node, fixed) or (node.op == "call_function" and (
                _is_empty(node.meta.get("val")) or _get_filling(node) is not None)):
            fixed.add(node)
    return fixed


def _given_constants(program: ExportedProgram) -> dict[Node, torch.Tensor]:
    """Returns the tensors that the program holds itself, by their placeholders."""
    values = {}
    for node, spec in zip(_placeholders(program), program.graph_signature.input_specs, strict=True):
        if spec.kind == InputKind.CONSTANT_TENSOR or spec.kind == InputKind.BUFFER:
            held = program.constants if spec.target in program.constants else program.state_dict
            values[node] = held[spec.target]
    return values


def _placeholders(program: ExportedProgram) -> list[Node]:
    return [node for node in program.graph.nodes if node.op == "placeholder"]


def _is_empty(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() == 0


def _is_constant_call(node: Node, values: Container[Node]) -> bool:
    return (
        node.op == "call_function"
        and not is_random(node.target)
        and node.target not in COLLECTIVES
        and all(operand in values for operand in node.all_input_nodes)
    )


def _is_wide_comparison(node: Node, fixed: set[Node]) -> bool:
    """Whether `node` compares two small tensors, each with all of the other, for what depends on inputs: a mask of places,
    better made than stored."""
    if node.target not in (aten.le.Tensor, aten.lt.Tensor, aten.ge.Tensor, aten.gt.Tensor):
        return False
    if all(operand in fixed for user in node.users for operand in user.all_input_nodes):
        return False
    size = node.meta["val"].numel()
    return size > SMALL_MASK and size > 4 * sum(operand.meta["val"].numel() for operand in node.all_input_nodes)


def _get_filling(node: Node) -> float | None:
    """Returns the number that `node` fills a tensor with, if its operand gives only the shape.

    torch-mlir would evaluate what is made of such tensors itself, and takes `full_like(x, 1) != 1` for true.
    """
    place = {aten.full_like.default: 1, aten.new_full.default: 2}.get(node.target)
    number = {aten.new_zeros.default: 0, aten.new_ones.default: 1, aten.zeros_like.default: 0, aten.ones_like.default: 1}
    filling = node.args[place] if place else number.get(node.target)
    return filling if isinstance(filling, (bool, int, float)) else None


def _keep(program: ExportedProgram, node: Node, values: dict, kept: dict[Node, Node]) -> Node:
    """Returns a node that replaces `node` by its value in the rest of the graph."""
    value = values[node]
    if node in kept or (node.target is aten.full.default and value.dtype != torch.uint8):
        return kept.get(node, node)
    with program.graph.inserting_before(node):
        if node.target is aten.expand.default:
            source = node.args[0]
            if source.op == "call_function":
                source = _keep(program, source, values, kept)
            new = program.graph.call_function(node.target, (source, *node.args[1:]), node.kwargs)
        elif value.dtype == torch.uint8:
            new = _keep_bytes(program, node, value)
        elif _is_empty(value) or _is_uniform(value):
            number = value.flatten()[0].item() if value.numel() else 0
            new = program.graph.call_function(aten.full.default, (list(value.shape), number), {"dtype": value.dtype})
        else:
            new = _add_constant(program, f"folded_{node.name}", value)
    new.meta = dict(node.meta)
    kept[node] = new
    return new


def _keep_bytes(program: ExportedProgram, node: Node, value: torch.Tensor) -> Node:
    """Returns a node that makes bytes of a constant of integers: torch-mlir's constants of bytes are signed ones."""
    # torch-mlir would evaluate what is made of one element, or of none.
    empty = next((dim for dim, size in enumerate(value.shape) if size == 0), None)
    if empty is not None:
        held = torch.zeros([2 if dim == empty else 1 for dim in range(value.dim())], dtype=torch.uint8)
    else:
        held = value if value.numel() > 1 else value.reshape(1).expand(2)
    wide = _add_constant(program, f"folded_{node.name}", held.to(torch.int32))
    wide.meta = node.meta | {"val": node.meta["val"].new_empty(held.shape, dtype=torch.int32)}
    made = emit(node, aten._to_copy.default, wide, dtype=torch.uint8)
    if held is value:
        return made
    if empty is not None:
        return emit(node, aten.expand.default, emit(node, aten.slice.Tensor, made, empty, 0, 0), list(value.shape))
    return emit(node, aten.view.default, emit(node, aten.slice.Tensor, made, 0, 0, 1), list(value.shape))


def _view_bits(value: torch.Tensor) -> torch.Tensor:
    """Returns a row of bytes for each element."""
    row = value.flatten().clone(memory_format=torch.contiguous_format)  # one element may have any stride, which stays else
    return row.view(torch.uint8).view(value.numel(), value.itemsize)


def _is_uniform(value: torch.Tensor) -> bool:
    """Whether all elements, of which there are some, are one real number; 0 and -0 are two."""
    bits = _view_bits(value)
    return not value.is_complex() and bool((bits == bits[0]).all())


def _are_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(_view_bits(one), _view_bits(other))


def _add_constant(program: ExportedProgram, name: str, value: torch.Tensor) -> Node:
    """Returns the placeholder of a constant. Equal constants, such as each layer's mask, share one."""
    for node, spec in zip(_placeholders(program), program.graph_signature.input_specs, strict=True):
        if spec.kind == InputKind.CONSTANT_TENSOR and _are_same(program.constants[spec.target], value):
            return node
    with program.graph.inserting_before(next(iter(program.graph.nodes))):
        new = program.graph.placeholder(name)
    spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(name=new.name), target=name)
    program.graph_signature.input_specs.insert(0, spec)
    program.constants[name] = value.contiguous()
    return new


def _drop_unused(program: ExportedProgram) -> None:
    """Removes constants that nothing reads any more. Arguments stay."""
    specs = program.graph_signature.input_specs
    for node, spec in list(zip(_placeholders(program), specs, strict=True)):
        if spec.kind != InputKind.USER_INPUT and not node.users:
            program.graph.erase_node(node)
            specs.remove(spec)


def _read_once(program: ExportedProgram) -> None:
    """Puts a `clone`, which torch-mlir drops, behind each constant: it writes one for each use, and takes none in
    lists of tensors. Constants without elements, which have no bytes to write, become `full`."""
    placeholders = _placeholders(program)
    for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
        if spec.kind != InputKind.USER_INPUT:
            value = node.meta["val"]
            with program.graph.inserting_after(placeholders[-1]):
                copy = (program.graph.call_function(aten.full.default, (list(value.shape), 0), {"dtype": value.dtype})
                        if _is_empty(value) else program.graph.call_function(aten.clone.default))
            node.replace_all_uses_with(copy)
            copy.args, copy.meta = copy.args or (node,), dict(node.meta)
