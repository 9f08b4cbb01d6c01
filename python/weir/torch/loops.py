"""Loops of PyTorch's `while_loop`, as torch-mlir takes them."""

import torch
from torch.fx import GraphModule, Node

from weir.torch.places import list_calls, refuse

WHILE = torch.ops.higher_order.while_loop


def refuse_branches(program: torch.export.ExportedProgram) -> None:
    """Refuses, by ExportError, functions of functions beside loops: `torch.cond`, `scan` and their kin."""
    nodes = [node for node in list_calls(program) if isinstance(node.target, torch._ops.HigherOrderOperator)]
    if other := [node for node in nodes if node.target is not WHILE]:
        refuse("functions of functions that have no form here; take torch.where of both results in place of a cond, and "
               "torch.while_loop or a loop of Python in place of a scan", other)


def carry_all(program: torch.export.ExportedProgram) -> None:
    """Makes each loop of a program, in place, carry all tensors that its functions read: torch-mlir's import gives the
    functions those alone."""
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            for node in module.graph.find_nodes(op="call_function", target=WHILE):
                _carry(module, node)


def _carry(module: GraphModule, node: Node) -> None:
    condition, body, carried, read = node.args
    if not read:
        return
    graph = getattr(module, body.target).graph
    arguments, [end] = graph.find_nodes(op="placeholder"), graph.find_nodes(op="output")
    end.args = ((*end.args[0], *arguments[len(carried):]),)
    getattr(module, body.target).recompile()
    node.args = (condition, body, (*carried, *read), ())
    node.meta["val"] = (*node.meta["val"], *(value.meta["val"] for value in read))
    module.recompile()
