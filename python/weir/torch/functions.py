"""Custom Functions, reentrant checkpoints and hooks, which autograd runs beside the operators of a graph.

Weir derives gradients from the operators alone. A custom backward or a hook would be lost without a word, so each
leaves a mark in the traced graph, and a mark through which a gradient flows is refused.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.fx import Node
from torch.fx.node import has_side_effect
from torch.utils.checkpoint import CheckpointFunction

from weir.graphs import ExportError
from weir.torch.operators import marked
from weir.torch.places import find_line

has_side_effect(marked)  # the mark of a hook has no reader


class _Handle:
    """What `register_hook` returns: a hook that is never called needs no removal."""

    def remove(self) -> None:
        pass


def _mark(value: Any, what: str) -> Any:
    return marked(value, what) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


@contextlib.contextmanager
def marking() -> Iterator[None]:
    """Marks, while a module is traced, results of custom Functions and tensors with hooks. A reentrant checkpoint calls
    its function, of which a checkpoint is a promise about memory alone."""
    apply, register = torch.autograd.Function.__dict__["apply"], torch.Tensor.register_hook

    def traced(cls: type, *arguments: Any, **options: Any) -> Any:
        if cls is CheckpointFunction:
            function, _, *operands = arguments
            return function(*operands)
        results = apply.__func__(cls, *arguments, **options)
        what = f"{cls.__name__}, a torch.autograd.Function with a backward of its own"
        if isinstance(results, tuple):
            return tuple(_mark(value, what) for value in results)
        return _mark(results, what)

    def hook(self: torch.Tensor, hook: Any) -> Any:
        _mark(self, "a hook of a tensor")
        return _Handle()

    torch.autograd.Function.apply = classmethod(traced)
    torch.Tensor.register_hook = hook
    try:
        yield
    finally:
        torch.autograd.Function.apply = apply
        torch.Tensor.register_hook = register


def refuse_hooks(module: nn.Module) -> None:
    """Refuses hooks on gradients of parameters and modules. Errors: ExportError."""
    found = [f"parameter {name}" for name, value in module.named_parameters()
             if value._backward_hooks or getattr(value, "_post_accumulate_grad_hooks", None)]
    found += [f"module {name or type(part).__name__}" for name, part in module.named_modules()
              if part._backward_hooks or part._backward_pre_hooks]
    if found:
        raise ExportError(f"hooks on gradients would not be called ({', '.join(found)}); remove them, and change gradients "
                          "by the optimizer's options or in the loss")


def refuse_marks(program: torch.export.ExportedProgram, flow: set[Node]) -> None:
    """Refuses marks through which a gradient flows, of which `flow` are the nodes. Errors: ExportError."""
    marks = [node for node in program.graph.nodes if node.target is marked]
    found = [node for node in marks if node in flow or (not node.users and node.args[0] in flow)]
    if found:
        lines = [f"  {node.args[1]}, {find_line(node)}" for node in found]
        raise ExportError("\n".join([
            "gradients would not be those of PyTorch, since Weir derives them from the operators:", *dict.fromkeys(lines),
            "write the operators so that their own gradient is the one you want, as x + (f(x) - x).detach() for a "
            "straight-through estimator"]))
