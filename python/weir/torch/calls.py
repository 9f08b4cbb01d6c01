"""The arguments of a module's call, and the values that the module holds."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn

from weir.graphs import ExportError
from weir.torch.trees import map_leaves


def bind(module: nn.Module, inputs: Sequence | Mapping) -> inspect.BoundArguments:
    """Returns `inputs` by the names that the module's `forward` has for them. Errors: TypeError if they don't fit."""
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    signature = inspect.signature(module.forward)
    try:
        bound = signature.bind(**inputs) if isinstance(inputs, Mapping) else signature.bind(*inputs)
    except TypeError as error:
        raise TypeError(f"forward{signature} cannot be called with these inputs: {error}") from None
    return bound


def map_bound(
    bound: inspect.BoundArguments,
    function: Callable[[str, Any], Any],
    is_leaf: Callable[[Any], bool] = lambda value: isinstance(value, torch.Tensor),
) -> inspect.BoundArguments:
    """Returns a call with every leaf, a tensor, replaced by `function(name, leaf)`.

    What **kwargs takes goes by its own name.
    """
    kinds = bound.signature.parameters
    return inspect.BoundArguments(bound.signature, {
        name: map_leaves(value, function, is_leaf, "" if kinds[name].kind == inspect.Parameter.VAR_KEYWORD else name)
        for name, value in bound.arguments.items()
    })


def get_module(module: nn.Module | Callable) -> nn.Module:
    """Returns a function as a module without parameters; a module as it is.

    Errors: ExportError for what torch.jit compiled, and for functions whose inputs have no names.
    """
    if isinstance(module, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        name = getattr(module, "original_name", None) or getattr(module, "name", "")
        raise ExportError(f"{name} is compiled by torch.jit already; give the module or function that it was made of")
    try:
        inspect.signature(module.forward if isinstance(module, nn.Module) else module)
    except ValueError:
        name = getattr(module, "__name__", type(module).__name__)
        raise ExportError(f"the inputs of {name}, which is built in, have no names; give a function that calls it, such as "
                          f"lambda a, b: torch.{name}(a, b)") from None
    return module if isinstance(module, nn.Module) else _Function(module)


def keep_lines(function: Callable) -> None:
    """Makes PyTorch keep the lines of a function that is traced. Without it, it keeps those of functions named forward."""
    if anchor := getattr(fx.proxy, "_register_stack_trace_anchor", None):
        anchor(function)


class _Function(nn.Module):
    """A function as a module without parameters."""

    def __init__(self, function: Callable):
        super().__init__()
        self.forward = function  # whose signature names the inputs
        keep_lines(function)


class Held:
    """A module's parameters and buffers, each under its first name in the module."""

    def __init__(self, module: nn.Module):
        self.parameters, self.buffers = dict(module.named_parameters()), dict(module.named_buffers())
        names = {id(value): name for group in (self.parameters, self.buffers) for name, value in group.items()}
        self._places = [
            (places, key, names[id(value)])
            for part in module.modules()
            for places in (part._parameters, part._buffers)
            for key, value in places.items()
            if value is not None
        ]

    @contextlib.contextmanager
    def replaced(self, values: Mapping[str, torch.Tensor | None]) -> Iterator[dict[str, torch.Tensor]]:
        """Replaces the module's values for a while, in every place. At the end the dict has what the module then holds.

        A module may put a new tensor in the place of a buffer, which torch.func.functional_call would lose.
        """
        places = [(place, key, name) for place, key, name in self._places if name in values]
        before = [place[key] for place, key, _ in places]
        after: dict[str, torch.Tensor] = {}
        try:
            for place, key, name in places:
                place[key] = values[name]
            yield after
            after.update({name: place[key] for place, key, name in reversed(places)})
        finally:
            for (place, key, _), value in zip(places, before):
                place[key] = value
