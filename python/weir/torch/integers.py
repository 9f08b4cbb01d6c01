"""Divisors and shifts of integers. A shift by a negative number, or by as many bits as there are, leaves no bit of the
number but its sign."""

import torch

aten = torch.ops.aten


def _promote(x: torch.Tensor, y: torch.Tensor | float) -> tuple[torch.Tensor, torch.Tensor]:
    dtype = torch.result_type(x, y)
    return x.to(dtype), y.to(dtype) if isinstance(y, torch.Tensor) else torch.full((), y, dtype=dtype)


def shift_left(x: torch.Tensor, y: torch.Tensor | float) -> torch.Tensor:
    x, y = _promote(x, y)
    if x.is_floating_point():
        return x * torch.exp2(y)
    zero = torch.zeros((), dtype=x.dtype)
    is_out = (y < 0) | (y >= x.dtype.itemsize * 8)
    return torch.where(is_out, zero, aten.bitwise_left_shift.Tensor(x, torch.where(is_out, zero, y)))


def shift_right(x: torch.Tensor, y: torch.Tensor | float) -> torch.Tensor:
    x, y = _promote(x, y)
    if x.is_floating_point():
        return x / torch.exp2(y)
    last = torch.full((), x.dtype.itemsize * 8 - 1, dtype=x.dtype)
    return aten.bitwise_right_shift.Tensor(x, torch.where((y < 0) | (y > last), last, y))


def gcd(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Euclid's algorithm, in as many steps as the largest numbers of the type take."""
    x, y = torch.broadcast_tensors(*_promote(x, y))
    steps = {1: 12, 2: 23, 4: 46, 8: 92}[x.dtype.itemsize]
    x, y = x.abs(), y.abs()
    one, zero = torch.ones((), dtype=x.dtype), torch.zeros((), dtype=x.dtype)
    for _ in range(steps):
        goes_on = y != 0
        x, y = torch.where(goes_on, y, x), torch.where(goes_on, torch.fmod(x, torch.where(goes_on, y, one)), zero)
    return x


def lcm(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Of 8 and 16 bits, a product that does not fit is cut after the sign is gone, as by C."""
    x, y = _promote(x, y)
    divisor, narrow = gcd(x, y), x.dtype
    x, y, divisor = (each.to(narrow if narrow.itemsize >= 4 else torch.int32) for each in (x, y, divisor))
    return (torch.div(x, divisor.clamp(min=1), rounding_mode="trunc") * y).abs().to(narrow)


TABLE = {
    aten.__lshift__.Tensor: shift_left,
    aten.__lshift__.Scalar: shift_left,
    aten.__rshift__.Tensor: shift_right,
    aten.__rshift__.Scalar: shift_right,
    aten.gcd.default: gcd,
    aten.lcm.default: lcm,
}
