"""Computes unsigned bytes of an exported program, and signed ones beside numbers, in integers of 32 bits.

torch-mlir lowers some operators on them as if they were signed, and crashes on others.
"""

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from weir.torch.places import emit, refuse

aten = torch.ops.aten
# Operators on which torch-mlir ends its process for signed bytes.
SUMS = {aten.mm.default, aten.bmm.default, aten.convolution.default, aten.max.default, aten.min.default}
BYTE, WIDE = torch.uint8, torch.int32


def widen_bytes(program: ExportedProgram) -> None:
    """Writes, in place, each operator on unsigned bytes as one on integers, whose results wrap as bytes do.

    Errors: ExportError for loops and branches with such values.
    """
    _widen_scalars(program)
    graph, wide = program.graph, {}
    for node in list(graph.nodes):
        if node.op == "placeholder" and _has_bytes(node):
            with graph.inserting_after(node):
                wide[node] = emit(node, aten._to_copy.default, node, dtype=WIDE)
        elif node.op == "call_function" and (_has_bytes(node) or any(operand in wide for operand in node.all_input_nodes)):
            with graph.inserting_before(node):
                _widen(node, wide)
        elif node.op == "output":
            with graph.inserting_before(node):
                node.args = torch.fx.node.map_arg(node.args, lambda value: emit(
                    value, aten._to_copy.default, wide[value], dtype=BYTE) if _has_bytes(value) else wide.get(value, value))
    graph.eliminate_dead_code()
    program.graph_module.recompile()


def _widen_scalars(program: ExportedProgram) -> None:
    """Computes, in place, signed bytes and numbers, and their sums, in integers of 32 bits: torch-mlir ends its process on
    them."""
    graph = program.graph
    for node in list(graph.nodes):
        operands = [operand for operand in node.all_input_nodes if _has_signed_bytes(operand)]
        if node.op == "call_function" and operands and (_takes_number(node) or node.target in SUMS) and isinstance(node.meta["val"], torch.Tensor):
            with graph.inserting_before(node):
                wide = {operand: emit(node, aten._to_copy.default, operand, dtype=WIDE) for operand in operands}
                arguments, options = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: wide.get(each, each))
                made = emit(node, node.target, *arguments, **options)
                if made.meta["val"].dtype != node.meta["val"].dtype:
                    made = emit(node, aten._to_copy.default, made, dtype=node.meta["val"].dtype)
            node.replace_all_uses_with(made)
            graph.erase_node(node)


def _has_signed_bytes(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.int8


def _takes_number(node: Node) -> bool:
    """Whether a call has a number where the operator computes with it: a scalar, or in place of a tensor."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    return any(isinstance(value, (int, float)) and any(word in str(argument.type) for word in ("number", "Scalar", "Tensor"))
               for argument, value in zip(node.target._schema.arguments, node.args))


def _has_bytes(node: Node) -> bool:
    value = node.meta.get("val")
    return any(isinstance(part, torch.Tensor) and part.dtype == BYTE for part in torch.utils._pytree.tree_leaves(value))


def _widen(node: Node, wide: dict[Node, Node]) -> None:
    """Finds the wide form of bytes, or of a tuple; replaces other results."""
    if node.target is aten._assert_tensor_metadata.default:  # which held while the program was traced
        node.graph.erase_node(node)
        return
    arguments, options = torch.fx.node.map_arg((node.args, node.kwargs), lambda operand: wide.get(operand, operand))
    options = {key: WIDE if value == BYTE else value for key, value in options.items()}
    arguments = tuple(WIDE if value == BYTE else value for value in arguments)
    try:
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            raise TypeError("it has no form on integers")
        made = emit(node, node.target, *arguments, **options)
    except Exception:  # PyTorch's own, of many kinds
        refuse("operators without a form on torch.uint8", [node])
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor):
        wide[node] = made
    elif value.dtype == BYTE:
        wide[node] = emit(node, aten.bitwise_and.Scalar, made, 255)
    else:
        if made.meta["val"].dtype != value.dtype:
            made = emit(node, aten._to_copy.default, made, dtype=value.dtype)
        node.replace_all_uses_with(made)
