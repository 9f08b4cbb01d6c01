"""Views that copy. A graph has values alone, so each is the view."""

import torch

aten = torch.ops.aten

_NAMES = ("alias", "detach", "diagonal", "expand", "narrow", "permute", "select.int", "slice.Tensor", "split.Tensor",
          "split_with_sizes", "squeeze", "squeeze.dim", "squeeze.dims", "t", "transpose.int", "unbind.int", "unfold",
          "unsqueeze", "view", "view.dtype")


def _find(name: str, suffix: str = "") -> torch._ops.OpOverload:
    base, _, overload = name.partition(".")
    return getattr(getattr(aten, base + suffix), overload or "default")


TABLE = {_find(name, "_copy"): _find(name) for name in _NAMES}
