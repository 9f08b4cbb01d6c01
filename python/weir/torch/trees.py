"""Nested values: tensors and others in tuples, lists, dicts and dataclasses."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch

def flatten(value: Any, name: str = "") -> dict[str, torch.Tensor]:
    """Returns the tensors in `value` by their places, "0" or "0.key", prefixed by `name` if given."""
    found: dict[str, torch.Tensor] = {}
    map_tensors(value, lambda place, tensor: found.setdefault(place, tensor), name)
    return found


def map_tensors(value: Any, function: Callable[[str, torch.Tensor], Any], name: str = "") -> Any:
    """Returns `value` with every tensor replaced by `function(place, tensor)`."""
    return map_leaves(value, function, _is_tensor, name)


def map_leaves(
    value: Any, function: Callable[[str, Any], Any], is_leaf: Callable[[Any], bool], name: str = ""
) -> Any:
    """Returns `value` with every part that `is_leaf` replaced by `function(place, part)`.

    Tuples, lists, dicts, dataclasses and named tuples are made anew; what else there is, numbers and None among it,
    stays as it is.
    """
    def inside(key: Any, part: Any) -> Any:
        return map_leaves(part, function, is_leaf, f"{name}.{key}" if name else str(key))

    if is_leaf(value):
        return function(name, value)
    if isinstance(value, Mapping):
        parts = {key: inside(key, part) for key, part in value.items()}
        return parts if type(value) is dict else _make_anew(value, parts)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(inside(key, part) for key, part in zip(value._fields, value)))
    if isinstance(value, (tuple, list)):
        return type(value)(inside(i, part) for i, part in enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _make_anew(value, {f.name: inside(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)})
    return value


def to_pairs(value: torch.Tensor) -> torch.Tensor:
    """Returns complex numbers as pairs of their parts, along a last dimension of 2; others as they are."""
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _make_anew(value: Any, parts: dict) -> Any:
    """Returns a value of the type of `value`, a mapping or a dataclass, with other parts."""
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(value, **parts) if not isinstance(value, Mapping) else type(value)(**parts)
    try:
        return type(value)(parts)
    except TypeError:
        return parts
