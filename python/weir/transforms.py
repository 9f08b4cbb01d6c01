"""StableHLO's `fft`, written as products with small matrices of cosines and sines."""

from collections.abc import Callable, Sequence

import numpy
from torch_mlir import ir

from weir import hlo
from weir.complex_math import Complex, Floats

LARGEST = 1024  # of a matrix's rows: the largest prime factor of a length
SMALL = 32  # rows that prime factors are put together to


def can_transform(op: ir.Operation) -> bool:
    """Whether a transform can be written: no length has a prime factor above `LARGEST`."""
    return all(factor(length)[0] <= LARGEST for length in _get_lengths(op))


def transform(op: ir.Operation, x: Complex | Floats) -> Complex | Floats:
    """Transforms the last dimensions, from the last one on, but that comes last where the result is real."""
    name, lengths = str(op.attributes["fft_type"]), _get_lengths(op)
    is_inverse, is_real_result = "IFFT" in name or "IRFFT" in name, "IRFFT" in name
    whole = x if isinstance(x, Complex) else Complex(x, x.fill(0))
    rank = len(hlo.get_sizes(whole.real.value))
    if 0 in hlo.get_sizes(whole.real.value):
        zero = Floats.constant(hlo.resize(whole.real.value, ir.ShapedType(op.results[0].type).shape), numpy.zeros(0))
        return zero if is_real_result else Complex(zero, zero)
    dims = list(range(rank - len(lengths), rank))
    for d in dims[:-1] if is_real_result else reversed(dims):
        whole = _transform_dim(whole, d, is_inverse)
        if isinstance(x, Floats) and d == rank - 1:  # the other half is conjugate
            whole = _map(lambda part: hlo.slice_dims(part, {-1: (0, lengths[-1] // 2 + 1)}), whole)
    if is_real_result:
        whole = _transform_dim(_mirror(whole, lengths[-1]), rank - 1, is_inverse)
    if is_inverse:
        scale = 1 / float(numpy.prod(lengths))
        whole = Complex(whole.real * scale, whole.imag * scale)
    return whole.real if is_real_result else whole


def _map(function: Callable[[ir.Value], ir.Value], x: Complex) -> Complex:
    return Complex(*(Floats(function(part.value)) for part in x))


def _get_lengths(op: ir.Operation) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes["fft_length"]))


def factor(length: int) -> list[int]:
    """Returns factors of a length, the largest first: its primes, put together up to `SMALL`."""
    primes, rest, d = [], length, 2
    while rest > 1:
        d = d if d * d <= rest else rest
        while rest % d == 0:
            primes.append(d)
            rest //= d
        d += 1
    factors: list[int] = []
    for prime in reversed(primes):
        place = next((i for i, factor in enumerate(factors) if factor * prime <= SMALL), None)
        if place is None:
            factors.append(prime)
        else:
            factors[place] *= prime
    return sorted(factors, reverse=True) or [1]


def _transform_dim(x: Complex, d: int, is_inverse: bool) -> Complex:
    sizes = hlo.get_sizes(x.real.value)
    order = [*(other for other in range(len(sizes)) if other != d), d]
    moved = _map(lambda part: hlo.transpose(part, order), x)
    done = _transform_rows(moved, factor(sizes[d]), 1.0 if is_inverse else -1.0)
    return _map(lambda part: hlo.transpose(part, [order.index(other) for other in range(len(sizes))]), done)


def _transform_rows(x: Complex, factors: Sequence[int], sign: float) -> Complex:
    """Transforms the last dimension of length a b by transforms of length a, and then of length b.

    An element j = j1 b + j2 goes into the elements k = k1 + k2 a (Cooley and Tukey, 1965).
    """
    *outer, length = hlo.get_sizes(x.real.value)
    a, b = factors[0], length // factors[0]
    swap = [*range(len(outer)), len(outer) + 1, len(outer)]
    made = _map(lambda part: hlo.transpose(hlo.reshape(part, [*outer, a, b]), swap), x)
    made = _apply_matrix(made, _make_waves(numpy.arange(a)[:, None] * numpy.arange(a), a, sign))  # ..., j2, k1
    if b > 1:
        made = _twist(made, _make_waves(numpy.arange(b)[:, None] * numpy.arange(a), length, sign))
        made = _transform_rows(_map(lambda part: hlo.transpose(part, swap), made), factors[1:], sign)  # ..., k1, k2
        made = _map(lambda part: hlo.transpose(part, swap), made)
    return _map(lambda part: hlo.reshape(part, [*outer, length]), made)


def _make_waves(turns: numpy.ndarray, length: int, sign: float) -> numpy.ndarray:
    angles = 2 * numpy.pi * (turns % length) / length
    return numpy.cos(angles) + sign * 1j * numpy.sin(angles)


def _write_waves(x: Complex, waves: numpy.ndarray) -> Complex:
    kind = hlo.resize(x.real.value, waves.shape)
    return Complex(*(Floats.constant(kind, part) for part in (waves.real, waves.imag)))


def _apply_matrix(x: Complex, waves: numpy.ndarray) -> Complex:
    """Multiplies the rows of the last dimension by a matrix of complex numbers."""
    sizes = hlo.get_sizes(x.real.value)
    rows = _map(lambda part: hlo.reshape(part, [int(numpy.prod(sizes[:-1])), sizes[-1]]), x)
    matrix = _write_waves(x, waves)
    numbers = ir.Attribute.parse("#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>")

    def multiply(one: Floats, other: Floats) -> Floats:
        return Floats(hlo.make("dot_general", one.value.type, one.value, other.value, dot_dimension_numbers=numbers))

    made = Complex(multiply(rows.real, matrix.real) - multiply(rows.imag, matrix.imag),
                   multiply(rows.real, matrix.imag) + multiply(rows.imag, matrix.real))
    return _map(lambda part: hlo.reshape(part, sizes), made)


def _twist(x: Complex, waves: numpy.ndarray) -> Complex:
    """Multiplies the elements of the last two dimensions by complex numbers."""
    kind, rank = x.real.value.type, len(hlo.get_sizes(x.real.value))
    c, s = _map(lambda part: hlo.broadcast(part, kind, [rank - 2, rank - 1]), _write_waves(x, waves))
    return Complex(x.real * c - x.imag * s, x.real * s + x.imag * c)


def _mirror(x: Complex, length: int) -> Complex:
    """Returns all elements of the last dimension of a transform of real numbers, whose other half is conjugate."""
    d, half = len(hlo.get_sizes(x.real.value)) - 1, (length - 1) // 2
    if half == 0:
        return x
    parts = []
    for part, other in zip(x, x.conjugate()):
        tail = hlo.slice_dims(other.value, {d: (1, 1 + half)})
        tail = hlo.make("reverse", tail.type, tail, dimensions=ir.DenseI64ArrayAttr.get([d]))
        parts.append(Floats(hlo.concatenate([part.value, tail], d)))
    return Complex(*parts)
