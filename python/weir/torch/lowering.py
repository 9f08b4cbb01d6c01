"""Lowers a graph of PyTorch's operators to linalg on tensors, by torch-mlir."""

import operator
import pathlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.fx import Node
from torch_mlir import ir
from torch_mlir.dialects.torch import register_dialect
from torch_mlir.extras.fx_importer import ContextCache, FxImporter, RefTracker
from torch_mlir.passmanager import PassManager

from weir.apart import EndedError, call_apart
from weir.graphs import ExportError, collect_errors, find_foreign
from weir.holes import fill_holes, open_holes
from weir.torch.loops import WHILE, carry_all, refuse_branches
from weir.torch.matrices import OPERATORS as MATRICES
from weir.torch.operators import COLLECTIVES, argsort, bitcast, limit, stop_gradient, uniform
from weir.torch.places import CALLED, find_place, list_calls, refuse

INLINE = "builtin.module(inline,symbol-dce)"
LOWERING = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline)",
    "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true})",
)


def lower(program: torch.export.ExportedProgram, entry: str) -> tuple[ir.Module, bool]:
    """Returns linalg on tensors, and whether it draws random numbers.

    Where there is no such form, each operator is tried alone, to name all that have none.
    """
    refuse_branches(program)
    carry_all(program)
    # Nodes now: the import replaces the constants among them by their values.
    nodes = _list_operators(program)
    alone = _isolate_all(nodes)
    lowered, reason = _try_lowering(lambda importer: importer.import_frozen_program(program, func_name=entry))
    if lowered is not None:
        return lowered
    refused = {
        key for key, module in alone.items()
        if _try_lowering(lambda importer: importer.import_stateless_graph(module.graph))[0] is None
    }
    if not refused:
        raise ExportError(f"torch-mlir does not lower the graph: {reason}")
    refuse("operators without a form in linalg", [node for node in nodes if _describe_call(node) in refused])


def refuse_fatal(program: torch.export.ExportedProgram) -> None:
    """Lowers each operator alone, in a process of its own. Errors: ExportError, which names those that end theirs."""
    nodes, fatal = _list_operators(program), set()
    for key, module in _isolate_all(nodes).items():
        try:
            call_apart(lambda: _try_lowering(lambda importer: importer.import_stateless_graph(module.graph))[1], ExportError)
        except EndedError:
            fatal.add(key)
    if fatal:
        refuse("operators that end the process of torch-mlir; write them in other types or by other operators",
               [node for node in nodes if _describe_call(node) in fatal])


def _list_operators(program: torch.export.ExportedProgram) -> list[Node]:
    """Returns the calls that can be lowered alone."""
    nodes = [node for node in list_calls(program) if "val" in node.meta and node.target is not operator.getitem]
    own = (argsort, bitcast, limit, stop_gradient, uniform, WHILE, *COLLECTIVES, *MATRICES)
    return [node for node in nodes if node.target not in own]


def _isolate_all(nodes: list[Node]) -> dict[str, torch.fx.GraphModule]:
    """Returns a graph for each kind of call, by its key."""
    return {key: _isolate(node) for key, node in {_describe_call(node): node for node in reversed(nodes)}.items()}


def _try_lowering(bring_in: Callable[[FxImporter], Any]) -> tuple[tuple[ir.Module, bool] | None, str]:
    """Returns the module and whether it draws random numbers, or None and the reason."""
    context = ir.Context()
    register_dialect(context)
    errors = collect_errors(context)
    importer = FxImporter(context=context, py_attr_tracker=_Keeping())
    importer._cc = _Locating(context, py_attr_tracker=importer._py_attr_tracker)
    try:
        bring_in(importer)
        lowered = importer.module
        if len(lowered.body.operations) > 1:  # a loop's functions are called
            with context:
                PassManager.parse(INLINE).run(lowered.operation)
        holes = open_holes(lowered)
        for pipeline in LOWERING:
            with context:
                PassManager.parse(pipeline).run(lowered.operation)
        if foreign := sorted(operation.name for operation in find_foreign(lowered)):
            return None, f"{foreign[0]} is left"
        return (lowered, fill_holes(lowered, holes)), ""
    except Exception as error:  # torch-mlir raises plain Exception, too
        return None, errors[0] if errors else str(error).strip() or repr(error)


class _Keeping(RefTracker):
    """Keeps every tensor that the import asks for. The import knows constants by `id`, which a later tensor gets again
    once an earlier one, such as the bytes of a mask, is freed."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[Any] = []

    def track(self, referrent: Any) -> Any:
        self._kept.append(referrent)
        return super().track(referrent)


class _Locating(ContextCache):
    """Gives each op the user's line, named by the part of the module that made it, or else by the operator.

    torch-mlir gives all lines of the call, and no names.
    """

    __slots__ = ()

    def get_node_location(self, node: Node) -> ir.Location:
        location = ir.Location.unknown(self._c)
        if place := find_place(node):
            location = ir.Location.file(pathlib.Path(place[0]).name, place[1], 0, self._c)
        modules = list((node.meta.get("nn_module_stack") or {}).values())
        name = modules[-1][0].removeprefix(CALLED).removeprefix(".") if modules else ""
        name = name or getattr(node.meta.get("original_aten") or node.target, "_opname", "")
        return ir.Location.name(name, location, self._c) if name else location


def _isolate(node: Node) -> torch.fx.GraphModule:
    """Returns a graph of one call, with operands of the same types."""
    graph = torch.fx.Graph()

    def take(operand: Node) -> Node:
        new = graph.placeholder(operand.name)
        new.meta = {"val": operand.meta["val"]}
        return new

    taken = {operand: take(operand) for operand in node.all_input_nodes}
    copy, value = graph.node_copy(node, taken.__getitem__), node.meta["val"]
    results = [copy]
    if isinstance(value, (tuple, list)):
        results = [graph.call_function(operator.getitem, (copy, i)) for i in range(len(value))]
        for result, part in zip(results, value):
            result.meta = {"val": part}
    graph.output(tuple(results))
    return torch.fx.GraphModule(nn.Module(), graph)


def _describe_call(node: Node) -> str:
    """Returns a key that is equal for calls that lower the same way."""
    def describe(operand: Node) -> str:
        value = operand.meta.get("val")
        return f"{value.dtype}{list(value.shape)}" if isinstance(value, torch.Tensor) else str(value)

    return str((str(node.target), torch.fx.node.map_arg((node.args, node.kwargs), describe)))
