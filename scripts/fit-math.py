#!/usr/bin/env python3
"""Fits the polynomials of lib/Numerics/MathTables.h and prints them (docs/math.md explains
their use). Needs numpy and mpmath.

Each is fitted to one type. For f32: minimax in a weighted error by Lawson's iteration (least
squares whose weights grow where the error is large) on Chebyshev nodes. For f64, where least
squares in f64 are too inexact: interpolation on Chebyshev nodes, which is nearly minimax. The
coefficients for f32 are rounded from the lowest degree upwards; after each, the higher ones are
fitted again to compensate for the rounding.

Prints C++ arrays, lowest degree first, with the max weighted error in units of 2^-24 or 2^-53.
"""

import mpmath
import numpy as np

mpmath.mp.dps = 60
NODES = 1200


def literal(value):
    mantissa, exponent = float(value).hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}"


def lawson(basis, target, weight):
    """Returns coefficients c that nearly minimize max |weight * (basis @ c - target)|."""
    load = np.full(len(target), 1.0 / len(target))
    best, best_error = None, np.inf
    for _ in range(250):
        scale = np.sqrt(load) * weight
        c = np.linalg.lstsq(basis * scale[:, None], target * scale, rcond=None)[0]
        error = np.abs(weight * (basis @ c - target))
        if error.max() < best_error:
            best, best_error = c, error.max()
        load *= error / error.max() + 1e-3
        load /= load.sum()
    return best


def show(name, low, high, worst, bits, coefficients):
    print(f"// On [{low:.5g}, {high:.5g}], error {worst * 2.0**bits:.3g} * 2^-{bits}.")
    print(f"static constexpr double {name}[] = {{{', '.join(map(literal, coefficients))}}};")


def chebyshev(low, high, count):
    return [(low + high) / 2 + (high - low) / 2 * mpmath.cos(mpmath.pi * (i + 0.5) / count) for i in range(count)]


def fit(name, target, weight, low, high, degree, variable=lambda x: x):
    """Fits a polynomial in variable(x); `target` and `weight` are functions of x in [low, high]."""
    nodes = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
    x = [mpmath.mpf(float(v)) for v in nodes]
    goal = np.array([float(target(v)) for v in x])
    weights = np.array([abs(float(weight(v))) for v in x])
    u = np.array([float(variable(v)) for v in x])
    powers = np.stack([u**k for k in range(degree + 1)], axis=1)
    fixed = []
    while len(fixed) <= degree:
        rest = goal - powers[:, : len(fixed)] @ np.array(fixed)
        c = lawson(powers[:, len(fixed) :], rest, weights)
        fixed.append(float(np.float32(c[0])))
    worst = np.max(np.abs(weights * (powers @ np.array(fixed) - goal)))
    show(name, low, high, worst, 24, fixed)


def fit_wide(name, target, weight, low, high, degree, inverse=lambda u: u):
    """Fits in f64, as above, but [low, high] is the range of the variable u; inverse(u) is x."""
    nodes = chebyshev(mpmath.mpf(low), mpmath.mpf(high), degree + 1)
    powers = mpmath.matrix([[u**k for k in range(degree + 1)] for u in nodes])
    exact = mpmath.lu_solve(powers, mpmath.matrix([target(inverse(u)) for u in nodes]))
    fixed = [mpmath.mpf(float(c)) for c in exact]
    worst = 0
    for u in chebyshev(mpmath.mpf(low), mpmath.mpf(high), 301):
        x = inverse(u)
        worst = max(worst, abs(weight(x) * (mpmath.polyval(fixed[::-1], u) - target(x))))
    show(name, float(low), float(high), float(worst), 53, fixed)


def fit_both(name, target, weight, narrow, wide, variable=lambda x: x, inverse=lambda u: u):
    """Fits for f32 with `narrow` = (low, high, degree) in x, for f64 with `wide` = the same in the variable."""
    fit(name + "32", target, weight, *narrow, variable)
    fit_wide(name + "64", target, weight, *wide, inverse)
    print(f"static constexpr Table {name} = {{{name}32, {name}64}};")


def squared(x):
    return x * x


def chunks(name, value, widths, bits):
    """Splits `value` into pieces of a fixed number of bits; the last one is rounded to the type."""
    pieces = []
    for width in widths:
        exponent = int(mpmath.floor(mpmath.log(abs(value), 2)))
        unit = mpmath.mpf(2) ** (exponent - width + 1)
        piece = mpmath.nint(value / unit) * unit
        pieces.append(float(piece))
        value -= piece
    pieces.append(float(np.float32(float(value))) if bits == 32 else float(value))
    print(f"static constexpr double {name}[] = {{{', '.join(map(literal, pieces))}}};")


def chunks_both(name, value, narrow, wide):
    chunks(name + "32", value, narrow, 32)
    chunks(name + "64", value, wide, 64)
    print(f"static constexpr Table {name} = {{{name}32, {name}64}};")


def words(name, value, width, count):
    """Returns the first bits of a fraction below 1 as words of `width` bits."""
    with mpmath.workprec(width * count + 64):
        bits = int(mpmath.floor(value() * mpmath.mpf(2) ** (width * count)))
    text = ", ".join(f"{bits >> (width * (count - 1 - i)) & (1 << width) - 1:#x}" for i in range(count))
    print(f"static constexpr uint64_t {name}[] = {{{text}}};")


half_ln2 = float(mpmath.log(2)) / 2 * 1.001
log_low, log_high = 2**-0.5 - 1 - 1e-4, 2**0.5 - 1 + 1e-4
log2e, log10e = 1 / mpmath.log(2), 1 / mpmath.log(10)
pi = mpmath.pi
one = lambda x: 1

fit_both("expTail", lambda x: (mpmath.expm1(x) - x) / x**2, lambda x: x**2 / mpmath.expm1(x),
         (-half_ln2, half_ln2, 4), (-half_ln2, half_ln2 * 1.001, 10))
fit_both("exp2Tail", lambda x: mpmath.expm1(x / log2e) / x, lambda x: x, (-0.5005, 0.5005, 5), (-0.5005, 0.5005, 11))


def log_tail(lead, scale):
    return lambda x: (mpmath.log1p(x) * scale - lead * x) / x


fit("logTail", lambda x: (mpmath.log1p(x) - x) / x**2, lambda x: x**2 / mpmath.log1p(x), log_low, log_high, 8)
fit("log2Tail", log_tail(1, log2e), lambda x: x / (mpmath.log1p(x) * log2e), log_low, log_high, 9)
fit("log10Tail", log_tail(0.5, log10e), lambda x: x / (mpmath.log1p(x) * log10e), log_low, log_high, 9)
fit_both("tanhTail", lambda x: (mpmath.tanh(x) - x) / x**3, lambda x: x**3 / mpmath.tanh(x),
         (1e-3, 0.5505, 4), (0, 0.5505**2, 10), squared, mpmath.sqrt)
fit_both("erfTail", lambda x: mpmath.erf(x) / x - 1, lambda x: x / mpmath.erf(x),
         (1e-3, 1.0, 6), (0, 1.0, 12), squared, mpmath.sqrt)
fit("erfcLog2", lambda x: mpmath.log(mpmath.erfc(x)) * log2e,
    lambda x: mpmath.erfc(x) / mpmath.erf(x) / log2e, 1.0, 4.0, 7)


# (a + c) * exp(a^2) * erfc(a) in t = (a - c) / (a + c) = 1 - 2c / (a + c).
def scaled_erfc(c):
    def scaled(t):
        a = 2 * c / (1 - mpmath.mpf(t)) - c
        return (a + c) * mpmath.exp(a**2) * mpmath.erfc(a)

    return scaled, lambda t: 1 / scaled(t), (0.49 - c) / (0.49 + c)


scaled, weight, low = scaled_erfc(0.5)
fit("erfcTail32", scaled, weight, low, (10.2 - 0.5) / (10.2 + 0.5), 10)
scaled, weight, low = scaled_erfc(2)
fit_wide("erfcTail64", scaled, weight, low, (28.0 - 2) / (28 + 2), 24)
print("static constexpr Table erfcTail = {erfcTail32, erfcTail64};")


def rounded(name, basis, target, low, high, fixed=()):
    """Fits the rest of the coefficients for f32 in the relative error, from the lowest upwards."""
    fixed = list(fixed)
    while len(fixed) < basis.shape[1]:
        rest = target - basis[:, : len(fixed)] @ np.array(fixed)
        fixed.append(float(np.float32(lawson(basis[:, len(fixed) :], rest, 1 / np.abs(target))[0])))
    show(name, low, high, np.max(np.abs(basis @ np.array(fixed) / target - 1)), 24, fixed)


def powers_of(u, degree):
    return np.stack([u**k for k in range(degree + 1)], axis=1)


def nodes_of(low, high):
    return (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)


def fit_tail(low, numerator, denominator):
    """Fits exp(a^2 / 2) * erfc(-a / sqrt(2)) / 2 on [low, 0] as p(a) / q(a), where q is monic: both minus themselves.
    The error that is weighted with the last q is linear in all coefficients."""
    a = nodes_of(low, 0.0)
    goal = np.array([float(mpmath.exp(mpmath.mpf(x) ** 2 / 2) * mpmath.erfc(-x / mpmath.sqrt(2)) / 2) for x in a])
    cheb = np.polynomial.chebyshev
    top, bottom = cheb.chebvander(1 - 2 * a / low, numerator), cheb.chebvander(1 - 2 * a / low, denominator)
    load, last, best = np.full(NODES, 1.0 / NODES), np.ones(NODES), None
    for _ in range(400):
        scale = np.sqrt(load)
        basis = np.hstack([top / goal[:, None], -bottom[:, 1:]]) / last[:, None]
        c = np.linalg.lstsq(basis * scale[:, None], scale / last, rcond=1e-18)[0]
        last = 1 + bottom[:, 1:] @ c[numerator + 1 :]
        error = np.abs(top @ c[: numerator + 1] / last / goal - 1)
        if best is None or error.max() < best[0]:
            best = error.max(), c
        load *= error / error.max() + 1e-3
        load /= load.sum()
    series = cheb.Chebyshev(np.r_[1, best[1][numerator + 1 :]], domain=[low, 0]).convert(kind=np.polynomial.Polynomial)
    q = np.float32(series.coef / series.coef[-1]).astype(float)
    rounded("tailNumerator", powers_of(a, numerator), goal * (powers_of(a, denominator) @ q), low, 0.0)
    print(f"static constexpr double tailDenominator[] = {{{', '.join(map(literal, q))}}};")


fit_tail(-14.5, 4, 5)
r = nodes_of(-2 * half_ln2, 2 * half_ln2)
rounded("expOfHalf", powers_of(r, 5), np.exp(-r / 2), r.min(), r.max(), [1.0])
# Products of x and the float whose bits are 0x7ee00000 less those of x.
z = nodes_of(0.875, 0.9453125)
rounded("inverseGuess", powers_of(z, 2), 1 / z, 0.875, 0.9453125)
fit_both("sinTail", lambda x: (mpmath.sin(x) - x) / x**3, lambda x: x**3 / mpmath.sin(x),
         (1e-3, 0.787, 2), (0, 0.787**2, 6), squared, mpmath.sqrt)
fit_both("cosTail", lambda x: (mpmath.cos(x) - 1 + x**2 / 2) / x**4, lambda x: x**4 / mpmath.cos(x),
         (1e-3, 0.787, 2), (0, 0.787**2, 6), squared, mpmath.sqrt)
fit("rsqrtGuess", lambda x: 1 / mpmath.sqrt(x), mpmath.sqrt, 1.0, 4.0, 3)
fit_both("rsqrtTail", lambda x: ((1 - x) ** mpmath.mpf(-0.5) - 1) / x, lambda x: x,
         (-0.026, 0.026, 3), (-0.0002, 0.0002, 3))
fit("cbrtGuess", lambda x: mpmath.cbrt(x), lambda x: 1 / mpmath.cbrt(x), 1.0, 8.0, 4)
fit_both("cbrtTail", lambda x: (mpmath.cbrt(1 + x) - 1) / x, lambda x: x, (-0.018, 0.018, 3), (-0.0001, 0.0001, 3))
fit_both("atanhTail", lambda x: (mpmath.atanh(x) - x - x**3 / 3) / x**5, lambda x: x**5 / mpmath.atanh(x),
         (1e-3, 0.1717, 1), (0, 0.1717**2, 6), squared, mpmath.sqrt)
fit_both("atanTail", lambda x: (mpmath.atan(x) - x) / x**3, lambda x: x**3 / mpmath.atan(x),
         (1e-3, 1.0, 7), (0, 1.0, 21), squared, mpmath.sqrt)
fit_both("asinTail", lambda x: (mpmath.asin(x) - x) / x**3, lambda x: x**3 / mpmath.asin(x),
         (1e-3, 0.501, 4), (0, 0.251, 12), squared, mpmath.sqrt)
fit_both("sinhTail", lambda x: (mpmath.sinh(x) - x) / x**3, lambda x: x**3 / mpmath.sinh(x),
         (1e-3, 1.0, 3), (0, 1.0, 7), squared, mpmath.sqrt)

chunks_both("ln2", mpmath.log(2), [15], [40])
chunks_both("log10Of2", mpmath.log10(2), [15], [40])
chunks_both("twoLog2E", 2 * log2e, [12], [26])
chunks_both("twoThirdsLog2E", 2 * log2e / 3, [12], [26])
chunks_both("halfPi", pi / 2, [12], [26])
chunks_both("halfPiPair", pi / 2, [24], [53])
chunks("log2E", log2e, [26], 64)
chunks("log10E", log10e, [26], 64)
words("twoOverPiWords32", lambda: 2 / mpmath.pi / 2**26, 32, 7)
words("twoOverPiWords64", lambda: 2 / mpmath.pi / 2**55, 64, 19)
