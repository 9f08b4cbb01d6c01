"""Finds where PyTorch stops gradients. Linalg has no word for that: the gradient of a graph would flow on."""

from collections.abc import Sequence

import torch
from torch.export import ExportedProgram
from torch.fx import Node


def find_stops(program: ExportedProgram, trained: Sequence[bool]) -> list[Node]:
    """The calls that stop a gradient between the inputs of `program` that are `trained` and its outputs.

    Those are `detach`, calls under `no_grad`, and embeddings with a padding index. `program` is not decomposed yet:
    nothing of the kind is left then.
    """
    nodes = {node.name: node for node in program.graph.nodes}
    inputs = zip(program.graph_signature.user_inputs, trained, strict=True)
    reached = {nodes[name] for name, wanted in inputs if wanted}
    for node in program.graph.nodes:
        if _is_float(node) and any(operand in reached for operand in node.all_input_nodes):
            reached.add(node)
    wanted = {node for node in program.graph.nodes if node.op == "output"}
    for node in reversed(program.graph.nodes):
        if node in reached and any(user in wanted for user in node.users):
            wanted.add(node)
    return [node for node in program.graph.nodes if node in wanted and _stops(node, reached)]


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")
    parts = value if isinstance(value, (tuple, list)) else [value]
    return any(isinstance(part, torch.Tensor) and part.is_floating_point() for part in parts)


def _stops(node: Node, reached: set[Node]) -> bool:
    if node.target is torch.ops.higher_order.wrap_with_set_grad_enabled:
        return node.args[0] is False
    if node.target is torch.ops.aten.embedding.default:
        return node.args[0] in reached and len(node.args) > 2 and node.args[2] >= 0
    return node.target is torch.ops.aten.detach.default
