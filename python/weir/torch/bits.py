"""Functions of the bits of floats: exponents, mantissas and neighbours."""

import torch

from weir.torch.operators import bitcast, stop_gradient, widen

aten = torch.ops.aten

# The integer of each type, the bits of its mantissa and the bias of its exponent.
_FORMATS = {
    torch.float64: (torch.int64, 52, 1023), torch.float32: (torch.int32, 23, 127), torch.float16: (torch.int16, 10, 15),
    torch.bfloat16: (torch.int16, 7, 127),
}


def view_bits(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The bits as another type of the same size."""
    if x.is_complex() or dtype.is_complex or torch.bool in (x.dtype, dtype) or x.dtype.itemsize != dtype.itemsize:
        return NotImplemented
    return x.clone() if x.dtype == dtype else bitcast(x, dtype)


def frexp(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A mantissa of [1/2, 1) with the sign, and the exponent. The gradient is the mantissa's."""
    narrow = x.dtype
    x = widen(x)
    integer, width, bias = _FORMATS[x.dtype]
    value = stop_gradient(x)
    is_small = value.abs() < torch.finfo(x.dtype).tiny
    scaled = torch.where(is_small, value * 2.0 ** (width + 1), value)
    mask = 2 * bias + 1
    exponent = torch.bitwise_right_shift(bitcast(scaled, integer), torch.full((), width, dtype=integer))
    exponent = torch.bitwise_and(exponent, torch.full((), mask, dtype=integer)) - (bias - 1)
    exponent = torch.where(is_small, exponent - (width + 1), exponent)
    exponent = torch.where((value == 0) | ~(value.abs() < float("inf")), torch.zeros((), dtype=integer), exponent)
    # One factor may be out of range; two are not.
    half = torch.bitwise_right_shift(exponent, torch.ones((), dtype=integer))
    mantissa = x
    for part in (half, exponent - half):
        mantissa = mantissa * bitcast((bias - part) * 2**width, x.dtype)
    return mantissa.to(narrow), exponent.to(torch.int32)


def next_after(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The neighbour of x in the direction of y. It moves with x, as PyTorch has it, unless x is infinite or the
    neighbour 0, whose sign a sum would lose."""
    x, y = torch.broadcast_tensors(x, y)
    integer = _FORMATS[x.dtype][0]
    bits = bitcast(stop_gradient(x), integer)
    one = torch.ones((), dtype=integer)
    moved = torch.where((x < y) == (x > 0), bits + one, bits - one)
    least = bitcast(torch.where(y > 0, one, one + torch.iinfo(integer).min), x.dtype)
    found = torch.where(x == 0, least, bitcast(moved, x.dtype))
    found = torch.where(torch.isnan(x) | torch.isnan(y), stop_gradient(x + y), torch.where(x == y, stop_gradient(y), found))
    moves = (x != y) & (x.abs() != float("inf")) & (found != 0)
    return torch.where(moves, found + (x - stop_gradient(x)), found)


TABLE = {
    aten.view.dtype: view_bits,
    aten.frexp.Tensor: frexp,
    aten.nextafter.default: next_after,
}
