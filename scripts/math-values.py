#!/usr/bin/env python3
"""Prints test/unit/Numerics/MathValues.inc: values of f64 functions at difficult arguments,
computed by mpmath. Each value is a sum of two f64s."""

import random
import struct

import mpmath

mpmath.mp.dps = 400
random.seed(1)
LARGEST, SMALLEST, NORMAL = 2.0**1023 * (2 - 2.0**-52), 2.0**-1074, 2.0**-1022
NEAR = [1 + 2.0**-52, 1 - 2.0**-53, 1 + 2.0**-30, 1 - 2.0**-30, 1.0000152587890625, 0.9999]
TINY = [SMALLEST, 12345 * SMALLEST, NORMAL, 2.0**-1021, 3e-200, 1e-17, 2.0**-27, 1e-5]
LARGE = [1e5, 1e17, 2.0**500, 1e300, LARGEST]
# The f64 nearest to a multiple of pi/2, and similar ones.
ANGLES = [6381956970095103.0 * 2.0**797, 2.0**1023, LARGEST, 1e22, 3.141592653589793, 1.5707963267948966,
          4.71238898038469, 0.7853981633974483, 0.7853981633974484, 1e5, 2.0**53, 355.0, 1.2345e100, 6.0221409e23]


def sides(values):
    return [sign * x for x in values for sign in (1, -1)]


def some(low, high, count=8):
    return [random.uniform(low, high) for _ in range(count)]


FUNCTIONS = {
    "acos": (mpmath.acos, sides([0.5, 0.75, 1 - 2.0**-53, 1e-9]) + some(-1, 1)),
    "acosh": (mpmath.acosh, NEAR[::2] + LARGE + some(1, 3)),
    "asin": (mpmath.asin, sides([0.5, 0.75, 1 - 2.0**-53] + TINY) + some(-1, 1)),
    "asinh": (mpmath.asinh, sides(TINY + LARGE) + some(-3, 3)),
    "atan": (mpmath.atan, sides(TINY + LARGE + NEAR) + some(-3, 3)),
    "atanh": (mpmath.atanh, sides([1 - 2.0**-53, 0.5] + TINY) + some(-1, 1)),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), sides(TINY + LARGE + [27.0, 0.125]) + some(-9, 9)),
    "cos": (mpmath.cos, sides(ANGLES + TINY[-2:]) + some(-9, 9)),
    "cosh": (mpmath.cosh, sides([710.4, 709.9, 1e-5, 22.0]) + some(-3, 3)),
    "erf": (mpmath.erf, sides(TINY + [0.9999, 1.0001, 5.8]) + some(-4, 4)),
    "erfc": (mpmath.erfc, [26.5, 27.2, 10.0, 0.5, 0.4999, -0.5, -5.0, 1e-20] + some(0, 26, 16)),
    "exp": (mpmath.exp, [709.7, -708.3, -744.0, 1e-17, -1e-17] + some(-700, 700)),
    "exp2": (lambda x: mpmath.mpf(2) ** x, [1023.9, -1021.9, -1073.5, 1e-17] + some(-1000, 1000)),
    "expm1": (mpmath.expm1, sides(TINY) + [709.7, -36.0, -50.0] + some(-2, 2)),
    "log": (mpmath.log, NEAR + TINY + LARGE + some(0, 3)),
    "log10": (mpmath.log10, NEAR + TINY + LARGE + [1000.0] + some(0, 3)),
    "log1p": (mpmath.log1p, sides(TINY) + LARGE + [-1 + 2.0**-53, -0.3, 0.41] + some(-1, 3)),
    "log2": (lambda x: mpmath.log(x) / mpmath.log(2), NEAR + TINY + LARGE + [8.0, 0.25] + some(0, 3)),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), TINY + LARGE + NEAR + some(0, 9)),
    "sin": (mpmath.sin, sides(ANGLES + TINY) + some(-9, 9)),
    "sinh": (mpmath.sinh, sides(TINY + [710.4, 0.9999, 1.0001]) + some(-3, 3)),
    "sqrt": (mpmath.sqrt, TINY + LARGE + NEAR + some(0, 9)),
    "tan": (mpmath.tan, sides(ANGLES + TINY) + some(-9, 9)),
    "tanh": (mpmath.tanh, sides(TINY + [0.5499, 0.5501, 19.0]) + some(-3, 3)),
}
PAIRS = {
    "atan2": (mpmath.atan2, [(1.0, -1e-300), (-1e-300, -1.0), (LARGEST, LARGEST), (LARGEST, -3.0), (1e-308, 2e-308),
                             (3e-310, 5e-311), (1e300, 1e-300)] + [tuple(some(-2, 2, 2)) for _ in range(8)]),
    "powf": (mpmath.power, [(1 + 2.0**-52, 2.0**61), (1 - 2.0**-53, -(2.0**62)), (10.0, 308.2), (10.0, -307.5),
                            (-3.0, 645.0), (-0.7, -1991.0), (2.0**0.5, 2047.5), (SMALLEST, 0.5), (LARGEST, -0.999)]
             + [(random.uniform(0.5, 2), random.uniform(-900, 900)) for _ in range(12)]),
}


def bits(x):
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016x}"


def pair(value):
    high = float(value)
    low = 0.0 if high in (float("inf"), float("-inf")) else float(value - mpmath.mpf(high))
    return f"{bits(high)}, {bits(low)}"


print("// As scripts/math-values.py prints it: the function, its operands, the sum of two that it is.")
for name, (function, inputs) in FUNCTIONS.items():
    for x in inputs:
        print(f'{{"{name}", {bits(x)}, 0, {pair(function(mpmath.mpf(x)))}}},')
for name, (function, inputs) in PAIRS.items():
    for x, y in inputs:
        print(f'{{"{name}", {bits(x)}, {bits(y)}, {pair(function(mpmath.mpf(x), mpmath.mpf(y)))}}},')
