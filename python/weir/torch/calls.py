"""The arguments of a module's call, and the values that the module holds."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

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
    """Returns a function as a module without parameters; a module as it is."""
    return module if isinstance(module, nn.Module) else _Function(module)


class _Function(nn.Module):
    """A function as a module without parameters."""

    def __init__(self, function: Callable):
        super().__init__()
        self.forward = function  # whose signature names the inputs


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
