"""Finds the line of the user's source that an operator comes from, for locations and refusals, and keeps it for others
that replace the operator."""

import linecache
import operator
import pathlib
import re
from collections.abc import Callable

import torch
from torch.fx import Node

from weir.graphs import ExportError

CALLED = "called"  # the name of the user's module in the one that is traced
LIBRARIES = (str(pathlib.Path(torch.__file__).parent), str(pathlib.Path(__file__).parent))


def list_calls(program: torch.export.ExportedProgram) -> list[Node]:
    return [node for node in program.graph.nodes if node.op == "call_function"]


def name_call(node: Node) -> str:
    """Returns the name of the user's call that made the node, such as torch.linalg.qr, or else the operator's."""
    kind, _, name = node.meta.get("torch_fn", ("", ""))[1].rpartition(".")
    name = name.strip("_")
    if not name or kind.startswith("OpOverload"):
        return str(node.target)
    family = next((each for each in ("linalg", "fft", "special") if name.startswith(f"{each}_")), None)
    return f"torch.{family}.{name.removeprefix(family)[1:]}" if family else f"torch.{name}"


def refuse(what: str, nodes: list[Node], name: Callable[[Node], str] = lambda node: str(node.target)) -> None:
    """Raises ExportError, with each operator by its name and with its lines."""
    places: dict[str, list[str]] = {}
    for node in nodes:
        while node.target is operator.getitem:  # a part of what an operator gives
            node = node.args[0]
        line = find_line(node)
        if line not in (known := places.setdefault(name(node), [])):
            known.append(line)
    lines = [f"  {target}, {line}" for target, known in places.items() for line in known]
    raise ExportError("\n".join([f"the module has {what}:", *lines]))


def find_place(node: Node) -> tuple[str, int] | None:
    """Returns the file and line, the innermost of the user's, that made the node."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    frames = [(file, int(line)) for file, line in frames if not file.startswith((*LIBRARIES, "<eval_with_key>"))]
    if frames or not isinstance(node.target, torch._ops.HigherOrderOperator):
        return frames[-1] if frames else None
    # PyTorch knows no place of a function of functions, but those of what it reads and does.
    functions = [getattr(node.graph.owning_module, part.target) for part in node.all_input_nodes if part.op == "get_attr"]
    inside = [part for function in functions if isinstance(function, torch.fx.GraphModule) for part in function.graph.nodes]
    return next((place for part in (*node.all_input_nodes, *inside) if (place := find_place(part))), None)


def find_line(node: Node) -> str:
    """Returns the line that made the node, with its text."""
    if not (place := find_place(node)):
        return "at no known place"
    file, line = place
    return f"{file}:{line}: {linecache.getline(file, line).strip()}"


def emit(node: Node, target: Callable, *arguments: object, **options: object) -> Node:
    """Emits an operator where the graph inserts, which counts as made by the line that made `node`."""
    made = node.graph.call_function(target, arguments, options)
    given, named = torch.fx.node.map_arg((arguments, options), lambda operand: operand.meta["val"])
    tensors = [part for part in torch.utils._pytree.tree_leaves(node.meta["val"]) if isinstance(part, torch.Tensor)]
    made.meta = {key: value for key, value in node.meta.items() if key not in ("val", "tensor_meta")}
    with tensors[0].fake_mode:
        made.meta["val"] = target(*given, **named)
    return made
