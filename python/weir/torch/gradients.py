"""Marks where PyTorch stops gradients. linalg has no op for that, so gradients would flow on."""

import operator
from collections.abc import Sequence

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from weir.torch import bessel
from weir.torch.operators import stop_gradient

aten = torch.ops.aten
# Their first result alone has a gradient in PyTorch; the others are statistics.
NORMS = {aten.native_layer_norm.default, aten.native_batch_norm.default, aten._native_batch_norm_legit.default,
         aten._native_batch_norm_legit.no_stats, aten._native_batch_norm_legit_no_training.default,
         aten._batch_norm_with_update.default, aten._batch_norm_no_update.default, aten._fused_rms_norm.default}


def mark_stops(program: ExportedProgram, trained: Sequence[bool]) -> None:
    """Writes `weir.stop_gradient` in place where a gradient stops between the inputs that are `trained` and the outputs.

    Gradients stop at `detach`, calls under `no_grad`, functions without a gradient and statistics of normalizations. An
    embedding with a padding index has a decomposition instead. Must run before `program` is decomposed, which drops stops.
    """
    for node in _find_stops(program, trained):
        if node.target is aten.detach.default:
            node.target = stop_gradient
            continue
        has_parts = node.target is torch.ops.higher_order.wrap_with_set_grad_enabled
        for result in list(node.users) if has_parts else [node]:
            with program.graph.inserting_after(result):
                stopped = program.graph.call_function(stop_gradient, (result,))
            stopped.meta = dict(result.meta)
            result.replace_all_uses_with(stopped, lambda user, stopped=stopped: user is not stopped)
    program.graph_module.recompile()


def find_flow(program: ExportedProgram, trained: Sequence[bool], beyond_stops: bool = False) -> set[Node]:
    """Returns the nodes through which a gradient flows from the outputs to the inputs that are `trained`.

    `beyond_stops`: whether those count that it would reach if nothing stopped it.
    """
    nodes = {node.name: node for node in program.graph.nodes}
    inputs = zip(program.graph_signature.user_inputs, trained, strict=True)
    reached = {nodes[name] for name, wanted in inputs if wanted}
    written = set()
    for node in program.graph.nodes:
        if _is_float(node) and (beyond_stops or not _stops(node)) and any(
                operand in reached or _find_base(operand) in written for operand in node.all_input_nodes):
            reached.add(node)
            if _writes(node):
                written.add(_find_base(node.args[0]))
    reached |= written
    wanted = {node for node in program.graph.nodes if node.op == "output"}
    read = {_find_base(operand) for node in wanted for operand in node.all_input_nodes}  # and what was written there
    for node in reversed(program.graph.nodes):
        if node in reached and (any(user in wanted for user in node.users) or
                                _writes(node) and _find_base(node.args[0]) in read):
            wanted.add(node)
            read.update(map(_find_base, node.all_input_nodes))
    return wanted & reached


def _writes(node: Node) -> bool:
    """Whether an operator writes to its first operand."""
    arguments = node.target._schema.arguments if isinstance(node.target, torch._ops.OpOverload) else ()
    return bool(arguments) and arguments[0].alias_info is not None and arguments[0].alias_info.is_write


def _find_base(node: Node) -> Node:
    """Returns the node whose elements a view shows, or that was written in place; else the node itself. A view through
    which no gradient flows is one of its own."""
    while isinstance(node.target, torch._ops.OpOverload) and node.target._schema.returns and not _stops(node) and (
            node.target._schema.returns[0].alias_info is not None) and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node


def _find_stops(program: ExportedProgram, trained: Sequence[bool]) -> list[Node]:
    flow = find_flow(program, trained, beyond_stops=True)
    return [node for node in program.graph.nodes if node in flow and _stops(node)]


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")
    parts = value if isinstance(value, (tuple, list)) else [value]
    return any(isinstance(part, torch.Tensor) and (part.is_floating_point() or part.is_complex()) for part in parts)


def _stops(node: Node) -> bool:
    if node.target is torch.ops.higher_order.wrap_with_set_grad_enabled:
        return node.args[0] is False
    return _is_statistic(node) or node.target is aten.detach.default or node.target in bessel.FIXED


def _is_statistic(node: Node) -> bool:
    """Whether a node is another result than the first of a normalization. Those of group norms have gradients."""
    return node.target is operator.getitem and node.args[0].target in NORMS and node.args[1] > 0
