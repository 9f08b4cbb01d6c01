#!/usr/bin/env python3
"""Fits the polynomials of lib/Kernels/Math.cpp (docs/math.md says how they are used).

Each fit is minimax in a weighted error: Lawson's iteration (least squares whose
weights grow where the error is large) on Chebyshev nodes, references by mpmath. The
coefficients are rounded to f32 from the lowest upwards, and the ones above are fitted
again each time, so that they make up for the rounding below.

Prints C++ arrays, lowest degree first, with the largest weighted error, in units of 2^-24.
"""

import mpmath
import numpy as np

mpmath.mp.dps = 40
NODES = 1200


def literal(value):
    mantissa, exponent = float(value).hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}f"


def lawson(basis, target, weight):
    """Coefficients c that make max |weight * (basis @ c - target)| nearly least."""
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


def fit(name, target, weight, low, high, degree, variable=lambda x: x):
    """`target`, `weight`: of x in [low, high]; the polynomial is in variable(x)."""
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
    worst = np.max(np.abs(weights * (powers @ np.array(fixed) - goal))) * 2.0**24
    print(f"// On [{low:.5g}, {high:.5g}], error {worst:.3g} * 2^-24.")
    print(f"static constexpr float {name}[] = {{{', '.join(map(literal, fixed))}}};")


def squared(x):
    return x * x


def chunks(name, value, widths):
    """Splits `value` in pieces of so many bits each, the last one rounded to f32."""
    pieces = []
    for width in widths:
        exponent = int(mpmath.floor(mpmath.log(abs(value), 2)))
        unit = mpmath.mpf(2) ** (exponent - width + 1)
        piece = mpmath.nint(value / unit) * unit
        pieces.append(float(piece))
        value -= piece
    pieces.append(float(np.float32(float(value))))
    print(f"static constexpr float {name}[] = {{{', '.join(map(literal, pieces))}}};")


half_ln2 = float(mpmath.log(2)) / 2 * 1.001
log_low, log_high = 2**-0.5 - 1 - 1e-4, 2**0.5 - 1 + 1e-4
log2e, log10e = 1 / mpmath.log(2), 1 / mpmath.log(10)
pi = mpmath.pi

fit("expTail", lambda x: (mpmath.expm1(x) - x) / x**2, lambda x: x**2 / mpmath.expm1(x), -half_ln2, half_ln2, 4)
fit("exp2Tail", lambda x: mpmath.expm1(x / log2e) / x, lambda x: x, -0.5005, 0.5005, 5)


def log_tail(lead, scale):
    return lambda x: (mpmath.log1p(x) * scale - lead * x) / x


fit("logTail", lambda x: (mpmath.log1p(x) - x) / x**2, lambda x: x**2 / mpmath.log1p(x), log_low, log_high, 8)
fit("log2Tail", log_tail(1, log2e), lambda x: x / (mpmath.log1p(x) * log2e), log_low, log_high, 9)
fit("log10Tail", log_tail(0.5, log10e), lambda x: x / (mpmath.log1p(x) * log10e), log_low, log_high, 9)
fit("tanhTail", lambda x: (mpmath.tanh(x) - x) / x**3, lambda x: x**3 / mpmath.tanh(x), 1e-3, 0.5505, 4, squared)
fit("erfTail", lambda x: mpmath.erf(x) / x - 1, lambda x: x / mpmath.erf(x), 1e-3, 1.0, 6, squared)
fit("erfcLog2", lambda x: mpmath.log(mpmath.erfc(x)) * log2e,
    lambda x: mpmath.erfc(x) / mpmath.erf(x) / log2e, 1.0, 4.0, 7)
fit("sinTail", lambda x: (mpmath.sin(x) - x) / x**3, lambda x: x**3 / mpmath.sin(x), 1e-3, 0.787, 2, squared)
fit("cosTail", lambda x: (mpmath.cos(x) - 1 + x**2 / 2) / x**4, lambda x: x**4 / mpmath.cos(x), 1e-3, 0.787, 2, squared)
fit("rsqrtGuess", lambda x: 1 / mpmath.sqrt(x), mpmath.sqrt, 1.0, 4.0, 3)
fit("rsqrtTail", lambda x: ((1 - x) ** mpmath.mpf(-0.5) - 1) / x, lambda x: x, -0.026, 0.026, 3)
fit("atanhTail", lambda x: (mpmath.atanh(x) - x) / x**3, lambda x: x**3 / mpmath.atanh(x), 1e-3, 0.1717, 3, squared)
fit("atanTail", lambda x: (mpmath.atan(x) - x) / x**3, lambda x: x**3 / mpmath.atan(x), 1e-3, 1.0, 7, squared)

chunks("ln2", mpmath.log(2), [15])
chunks("log10Of2", mpmath.log10(2), [15])
chunks("halfPi", pi / 2, [8, 8, 8, 8, 8])
chunks("twoLog2E", 2 * log2e, [12])
print(f"static constexpr float log2E = {literal(np.float32(float(log2e)))};")
print(f"static constexpr float twoOverPi = {literal(np.float32(float(2 / pi)))};")
chunks("halfPiPair", pi / 2, [24])
