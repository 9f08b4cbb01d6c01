"""Loops of PyTorch's `while_loop`, as torch-mlir takes them, and branches of its `cond`, both of which are computed."""

import re
from collections.abc import Callable, Sequence

import torch
from torch.fx import GraphModule, Node

from weir.torch.places import emit, list_calls, refuse

aten = torch.ops.aten

# Operators that look up or write at places which an operand names.
INDEXING = re.compile("index|gather|scatter|embedding|take|put|nll_loss|cross_entropy|one_hot")
WHILE, COND = torch.ops.higher_order.while_loop, torch.ops.higher_order.cond


def inline_branches(program: torch.export.ExportedProgram) -> None:
    """Replaces each `torch.cond`, in place, by both of its functions and a choice of their results.

    A function's operands are zeros if it is not chosen, and so are its indices: a gradient that is NaN there ends at that
    choice, and no index is out of range.
    """
    for module in reversed(list(program.graph_module.modules())):
        if isinstance(module, GraphModule) and (nodes := module.graph.find_nodes(op="call_function", target=COND)):
            names = {old: new for node in nodes for old, new in _inline(module, node).items()}
            if module is program.graph_module:
                for spec in program.graph_signature.output_specs:
                    spec.arg.name = names.get(spec.arg.name, spec.arg.name)
            module.recompile()


def _inline(module: GraphModule, node: Node) -> dict[str, str]:
    """Returns the new name of each result by its old one."""
    flag, *functions, operands = node.args
    graph = module.graph
    with graph.inserting_before(node):
        if isinstance(flag, bool):
            results = _copy(module, getattr(module, functions[not flag].target), operands)
        else:
            zeros = [emit(operand, aten.full.default, [], 0, dtype=operand.meta["val"].dtype) for operand in operands]
            made = []
            for function, chosen in zip(functions, (True, False)):
                side = [_guard(flag, chosen, *pair) for pair in zip(operands, zeros)]
                made.append(_copy(module, getattr(module, function.target), side, lambda value, chosen=chosen: _guard(
                    flag, chosen, value, emit(value, aten.full.default, [], 0, dtype=value.meta["val"].dtype))))
            results = [emit(yes, aten.where.self, flag, yes, no) for yes, no in zip(*made)]
    names = {}
    for user in list(node.users):
        names[user.name] = results[user.args[1]].name
        user.replace_all_uses_with(results[user.args[1]])
        graph.erase_node(user)
    graph.erase_node(node)
    for function in functions:
        if not function.users:
            graph.erase_node(function)
    return names


def _guard(flag: Node, chosen: bool, value: Node, zero: Node) -> Node:
    return emit(value, aten.where.self, flag, *((value, zero) if chosen else (zero, value)))


def _copy(module: GraphModule, function: GraphModule, operands: Sequence[Node],
          guard: Callable[[Node], Node] | None = None) -> list[Node]:
    """Copies a function's calls to where the graph inserts, with guarded indices; returns its results."""
    values = dict(zip(function.graph.find_nodes(op="placeholder"), operands, strict=True))
    for node in function.graph.nodes:
        if node.op == "get_attr":  # a function of a loop inside, or a constant
            name = f"{node.target}_{len(list(module.children()))}_inlined"
            setattr(module, name, getattr(function, node.target))
            values[node] = module.graph.get_attr(name)
            values[node].meta = dict(node.meta)
        elif node.op == "call_function":
            copy = values[node] = module.graph.node_copy(node, values.__getitem__)
            if guard and INDEXING.search(str(node.target)):
                with module.graph.inserting_before(copy):
                    for operand in copy.all_input_nodes:
                        if getattr(operand.meta.get("val"), "dtype", None) in (torch.int32, torch.int64):
                            copy.replace_input_with(operand, guard(operand))
    [end] = function.graph.find_nodes(op="output")
    return [values[result] for result in end.args[0]]


def refuse_branches(program: torch.export.ExportedProgram) -> None:
    """Refuses, by ExportError, functions of functions beside loops: `scan` and its kin."""
    nodes = [node for node in list_calls(program) if isinstance(node.target, torch._ops.HigherOrderOperator)]
    if other := [node for node in nodes if node.target is not WHILE]:
        refuse("functions of functions that have no form here; take torch.while_loop or a loop of Python in place of a scan",
               other)


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
