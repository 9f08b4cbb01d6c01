"""The families of operators that have a module of their own, in one table."""

from collections.abc import Callable

import torch

from weir.torch import (
    bessel, bits, convolutions, copies, distances, exponentials, integers, logarithms, matrices, measures, medians,
    resampling, searches, segments, strides,
)

_MODULES = (
    bessel, bits, convolutions, copies, distances, exponentials, integers, logarithms, matrices, measures, medians,
    resampling, searches, segments, strides,
)
FAMILIES: dict[torch._ops.OpOverload, Callable] = {op: form for module in _MODULES for op, form in module.TABLE.items()}
