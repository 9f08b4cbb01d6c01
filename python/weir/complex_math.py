"""Functions of complex numbers, written as StableHLO's operations on their real and imaginary parts.

A subclass of `Floats` gives the same formulas other operations: `weir.torch.complex_functions` has PyTorch's.

Sources: Kahan, "Branch Cuts for Complex Elementary Functions", 1987, for the cuts and for functions that keep their
digits near them; Smith, "Algorithm 116: Complex Division", 1962; C's Annex G for infinities and signs of zeros.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy
from torch_mlir import ir

from weir import hlo

DTYPES = {"f32": numpy.float32, "f64": numpy.float64}


class Floats:
    """A tensor of floats or of booleans, as formulas use it. A number beside it is one of its type in each element."""

    def __init__(self, value: ir.Value):
        self.value = value

    @staticmethod
    def constant(kind: ir.Type, values: numpy.ndarray) -> "Floats":
        """Returns a constant; one value stands for all elements."""
        shaped = ir.ShapedType(kind)
        dtype = DTYPES[str(shaped.element_type)]
        if not values.size:
            attribute = ir.Attribute.parse(f"dense<> : {kind}")
        elif values.size == 1:
            number = ir.FloatAttr.get(shaped.element_type, float(values.reshape(())))
            attribute = ir.DenseElementsAttr.get_splat(kind, number)
        else:
            array = numpy.ascontiguousarray(values, dtype).reshape(shaped.shape)
            attribute = ir.DenseElementsAttr.get(array, type=shaped.element_type, shape=list(shaped.shape))
        return Floats(hlo.make("constant", kind, value=attribute))

    @property
    def limits(self) -> numpy.finfo:
        return numpy.finfo(DTYPES[str(ir.ShapedType(self.value.type).element_type)])

    def fill(self, number: float) -> "Floats":
        return Floats.constant(self.value.type, numpy.asarray(number))

    def call(self, name: str, *others: "Floats | float") -> "Floats":
        """Applies an operation of StableHLO, or of the dialect chlo."""
        operands = [self.value, *(self._lift(other).value for other in others)]
        name = name if "." in name else f"stablehlo.{name}"
        return Floats(ir.Operation.create(name, [self.value.type], operands).result)

    def _lift(self, other: "Floats | float") -> "Floats":
        return other if isinstance(other, Floats) else self.fill(other)

    def __add__(self, other: "Floats | float") -> "Floats":
        return self.call("add", other)

    def __sub__(self, other: "Floats | float") -> "Floats":
        return self.call("subtract", other)

    def __mul__(self, other: "Floats | float") -> "Floats":
        return self.call("multiply", other)

    def __truediv__(self, other: "Floats | float") -> "Floats":
        return self.call("divide", other)

    def __neg__(self) -> "Floats":
        return self.call("negate")

    def __abs__(self) -> "Floats":
        return self.call("abs")

    def __and__(self, other: "Floats") -> "Floats":
        return self.call("and", other)

    def __or__(self, other: "Floats") -> "Floats":
        return self.call("or", other)

    def __invert__(self) -> "Floats":
        return self.call("not")

    def __lt__(self, other: "Floats | float") -> "Floats":
        return self.compare("LT", other)

    def __gt__(self, other: "Floats | float") -> "Floats":
        return self.compare("GT", other)

    def __ge__(self, other: "Floats | float") -> "Floats":
        return self.compare("GE", other)

    def equals(self, other: "Floats | float") -> "Floats":
        return self.compare("EQ", other)

    def compare(self, direction: str, other: "Floats | float") -> "Floats":
        return Floats(hlo.compare(direction, self.value, self._lift(other).value))

    def is_negative(self) -> "Floats":
        """Whether the sign is that of -1, also of zeros."""
        word = ir.IntegerType.get_signless(self.limits.bits)
        bits = hlo.make("bitcast_convert", hlo.retype(self.value, word), hlo.stop_gradient(self.value))
        return Floats(hlo.compare("LT", bits, hlo.write_integer(bits.type, 0)))

    def is_finite(self) -> "Floats":
        return abs(self) < math.inf

    def is_infinite(self) -> "Floats":
        return abs(self).equals(math.inf)

    def flip(self, condition: "Floats") -> "Floats":
        """Returns the negative where the condition holds. Unlike `abs` it has a slope at 0, for gradients."""
        return choose(condition, -self, self)

    def with_sign(self, other: "Floats") -> "Floats":
        """Returns the absolute value with another number's sign."""
        size = abs(self)
        return choose(other.is_negative(), -size, size)

    def choose(self, one: "Floats", other: "Floats") -> "Floats":
        """Returns one value where this condition holds, and the other elsewhere."""
        return Floats(hlo.make("select", one.value.type, self.value, one.value, other.value))


def choose(condition: Floats, one: Floats, other: Floats | float) -> Floats:
    """Returns one value where the condition holds, and the other elsewhere."""
    return condition.choose(one, one._lift(other))


class Complex(NamedTuple):
    """The parts of a tensor of complex numbers."""

    real: Floats
    imag: Floats

    def conjugate(self) -> "Complex":
        return Complex(self.real, -self.imag)

    def turn(self) -> "Complex":
        """Returns the product with the imaginary unit."""
        return Complex(-self.imag, self.real)

    def turn_back(self) -> "Complex":
        """Returns the quotient by the imaginary unit."""
        return Complex(self.imag, -self.real)


def choose_both(condition: Floats, one: Complex, other: Complex) -> Complex:
    """Returns one number where the condition holds, and the other elsewhere."""
    return Complex(choose(condition, one.real, other.real), choose(condition, one.imag, other.imag))


def add(a: Complex, b: Complex) -> Complex:
    return Complex(a.real + b.real, a.imag + b.imag)


def subtract(a: Complex, b: Complex) -> Complex:
    return Complex(a.real - b.real, a.imag - b.imag)


def multiply(a: Complex, b: Complex) -> Complex:
    return Complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def negate(z: Complex) -> Complex:
    return Complex(-z.real, -z.imag)


def _order(z: Complex) -> tuple[Floats, Floats, Floats]:
    """Returns whether the real part is the larger one, the larger and the smaller part, without signs."""
    x, y = abs(z.real), abs(z.imag)
    first = x >= y
    return first, choose(first, x, y), choose(first, y, x)


def _measure(z: Complex) -> tuple[Floats, Floats]:
    """Returns the larger part p without its sign, and r such that |z| = p sqrt(1 + r^2) and r <= 1."""
    _, p, q = _order(z)
    is_zero, is_infinite = p.equals(0), p.equals(math.inf)  # equal ones have no quotient, and no gradient by it
    quotient = q / choose(is_zero | is_infinite, p.fill(1), p)
    return p, choose(is_zero, q, choose(is_infinite, p.fill(0), quotient))


def _root(x: Floats) -> Floats:
    return x.call("sqrt")


def absolute(z: Complex) -> Floats:
    p, r = _measure(z)
    return choose(z.real.is_infinite() | z.imag.is_infinite(), p.fill(math.inf), p * _root(r * r + 1))


def _scale(x: Floats) -> Floats:
    """Returns a power of two by which numbers up to `x` neither overflow nor lose digits in products with quotients."""
    limits = x.limits
    step = 2.0 ** (2 * (limits.nmant + 2))
    return choose(x > float(limits.max) / 4, x.fill(0.125), choose(x < float(limits.tiny) * step, x.fill(step), 1))


def divide(a: Complex, b: Complex) -> Complex:
    """Divides as NumPy does, with both numbers scaled so that no intermediate result leaves the range."""
    _, size, _ = _order(a)
    first, bound, _ = _order(b)
    up, down = _scale(size), _scale(bound)
    ar, ai = a.real * up, a.imag * up
    br, bi = b.real * down, b.imag * down
    p, q = choose(first, br, bi), choose(first, bi, br)  # the larger part of b and the smaller one
    u, v = choose(first, ar, ai), choose(first, ai, ar)
    r = choose(p.equals(0), p, q / p)
    is_lost = r.equals(0)
    total = p + q * r
    total = choose(p.equals(0), abs(p), total)
    real = (u + choose(is_lost, q * (v / p), v * r)) / total
    imag = (v - choose(is_lost, q * (u / p), u * r)) / total
    back = down / up
    is_zero = p.equals(0)  # NumPy divides the parts
    real = choose(is_zero, a.real / total, real * back)
    imag = choose(is_zero, a.imag / total, choose(first, imag, -imag) * back)
    return Complex(real, imag)


def invert(z: Complex) -> Complex:
    """Returns 1 / z."""
    return divide(Complex(z.real.fill(1), z.real.fill(0)), z)


def root(z: Complex) -> Complex:
    """Returns the square root with a real part that is not negative."""
    limits = z.real.limits
    _, size, _ = _order(z)
    half = limits.nmant // 2 + 2
    is_small, is_large = size < float(limits.tiny) * 2.0 ** (2 * half), size > float(limits.max) / 4
    factor = choose(is_small, size.fill(2.0 ** (2 * half)), choose(is_large, size.fill(0.25), 1))
    x, y = z.real * factor, z.imag * factor
    p, r = _measure(Complex(x, y))
    left = ~(x >= 0.0)
    t = _root(x.flip(left) * 0.5 + p * (_root(r * r + 1) * 0.5))
    u = choose(t.equals(0), y, y * 0.5 / t)
    back = choose(is_small, t.fill(2.0 ** -half), choose(is_large, t.fill(2), 1))
    tall, below = z.imag.is_infinite(), y.is_negative()
    real = choose(tall, t.fill(math.inf), choose(left, u.flip(below), t) * back)
    return Complex(real, choose(tall, y, choose(left, t.flip(below), u) * back))


def inverse_root(z: Complex) -> Complex:
    return invert(root(z))


def _square(x: Floats) -> tuple[Floats, Floats]:
    """Returns a square and the error of its rounding, by halves of the digits (Dekker, 1971)."""
    high = x * (2.0 ** ((x.limits.nmant + 2) // 2) + 1)
    high = high - (high - x)
    low = x - high
    whole = x * x
    return whole, low * low - ((whole - high * high) - high * low * 2)


def _add_exactly(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Returns a sum and the error of its rounding (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _log_size(z: Complex) -> Floats:
    """Returns log|z|, where |z| is not near 1."""
    p, r = _measure(z)
    far = p.call("log") + (r * r).call("log_plus_one") * 0.5
    return choose(z.real.is_infinite() | z.imag.is_infinite(), p.fill(math.inf), far)


def _log_near(excess: Floats, far: Floats) -> Floats:
    """Returns log|z| from |z|^2 - 1, which the caller has to all digits, unless z is far from the unit circle."""
    is_near = (excess > -0.5) & (excess < 1.5)
    return choose(is_near, choose(is_near, excess, 0).call("log_plus_one") * 0.5, far)


def _angle(y: Floats, x: Floats) -> Floats:
    return y.call("atan2", x)


def log(z: Complex) -> Complex:
    _, p, q = _order(z)
    (a, a_rest), (b, b_rest) = _square(p), _square(q)
    total, total_rest = _add_exactly(a.fill(-1), a)
    total, rest = _add_exactly(total, b)
    excess = total + ((a_rest + b_rest) + (total_rest + rest))
    return Complex(_log_near(excess, _log_size(z)), _angle(z.imag, z.real))


def log_plus_one(z: Complex) -> Complex:
    x, y = z
    (a, a_rest), (b, b_rest) = _square(x), _square(y)
    total, rest = _add_exactly(x * 2, b)
    total, more = _add_exactly(total, a)
    excess = total + ((a_rest + b_rest) + (rest + more))
    shifted = Complex(x + 1, y)
    return Complex(_log_near(excess, _log_size(shifted)), _angle(y, shifted.real))


def _exponential(x: Floats, y: Floats, is_less: bool = False) -> Complex:
    """Returns exp(x + iy), or that less 1. A large exponential is the product of two, since cos(y) may be small."""
    e, half = x.call("exponential"), (x * 0.5).call("exponential")
    c, s = y.call("cosine"), y.call("sine")
    is_large, is_open = e.equals(math.inf), ~y.is_finite()
    small = e * c
    if is_less:
        t = (y * 0.5).call("sine")
        small = x.call("exponential_minus_one") * c - t * t * 2
    real = choose(is_large, half * c * half, small)
    imag = choose(is_large, half * s * half, e * s)
    imag = choose(y.equals(0) & is_large, y, imag)
    nothing = x.equals(-math.inf) & is_open
    real = choose(x.equals(math.inf) & is_open, e, choose(nothing, e.fill(-1.0 if is_less else 0.0), real))
    return Complex(real, choose(nothing, e.fill(0), imag))


def exponential(z: Complex) -> Complex:
    return _exponential(z.real, z.imag)


def exponential_minus_one(z: Complex) -> Complex:
    return _exponential(z.real, z.imag, is_less=True)


def _wave(y: Floats, c: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Returns c cosh(y) and s sinh(y), which may be in range where cosh(y) is not."""
    size = abs(y)
    half = (size * 0.5).call("exponential")
    is_large = size > math.log(float(y.limits.max)) - 1
    bounded = choose(is_large, y.fill(0), y)
    sign = choose(y.is_negative(), y.fill(-1), 1)
    return (choose(is_large, c * half * 0.5 * half, c * bounded.call("chlo.cosh")),
            choose(is_large, s * sign * half * 0.5 * half, s * bounded.call("chlo.sinh")))


def sine(z: Complex) -> Complex:
    x, y = z
    real, imag = _wave(y, x.call("sine"), x.call("cosine"))
    return Complex(choose(x.equals(0) & y.is_infinite(), x, real), choose(y.equals(0) & ~x.is_finite(), y, imag))


def cosine(z: Complex) -> Complex:
    x, y = z
    real, imag = _wave(y, x.call("cosine"), x.call("sine"))
    return Complex(real, -choose(x.equals(0) & y.is_infinite(), x.flip(y.is_negative()), imag))


def hyperbolic_sine(z: Complex) -> Complex:
    return sine(z.turn()).turn_back()


def hyperbolic_cosine(z: Complex) -> Complex:
    return cosine(z.turn())


def hyperbolic_tangent(z: Complex) -> Complex:
    """Returns tanh(z) = (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y)."""
    x, y = z
    size = abs(x)
    limit = 12.0 if x.limits.bits == 32 else 24.0  # from here on the real part rounds to 1
    is_large = size > limit
    h = choose(is_large, x.fill(0), x).call("chlo.sinh")
    c, s = y.call("cosine"), y.call("sine")
    down = h * h + c * c
    real = choose(is_large, choose(x < 0.0, x.fill(-1), 1), h * _root(h * h + 1) / down)
    tail = s * c * 4 * (size * -2).call("exponential")
    tail = choose(x.is_infinite() & ~y.is_finite(), y.fill(0), tail)
    return Complex(real, choose(is_large, tail, s * c / down))


def tangent(z: Complex) -> Complex:
    return hyperbolic_tangent(z.turn()).turn_back()


def logistic(z: Complex) -> Complex:
    """Returns 1 / (1 + exp(-z)), by the exponential that is at most 1."""
    right = z.real >= 0.0
    e = exponential(choose_both(right, negate(z), z))
    one = Complex(e.real.fill(1), e.real.fill(0))
    return divide(choose_both(right, one, e), add(e, one))


def power(z: Complex, exponent: Complex) -> Complex:
    """Returns exp(w log z). The power of 0 is 1 for w = 0, 0 for a positive real part, and else NaN, as in NumPy."""
    c, d = exponent
    is_zero = z.real.equals(0) & z.imag.equals(0)
    z = Complex(choose(is_zero, z.real.fill(1), z.real), choose(is_zero, z.imag.fill(0), z.imag))
    size, turn, logarithm = absolute(z), _angle(z.imag, z.real), log(z).real
    angle = d * logarithm + c * turn
    one, other = size.call("power", c), (-(d * turn)).call("exponential")
    is_plain = one.is_finite() & (one > 0.0) & other.is_finite() & (other > 0.0)
    e = one * other
    plain = Complex(e * angle.call("cosine"), e * angle.call("sine"))
    plain = choose_both(is_plain, plain, _exponential(c * logarithm - d * turn, angle))
    none = c.equals(0) & d.equals(0)
    edge = choose(none, c.fill(1), choose(c > 0.0, c.fill(0), math.nan))
    edge_imag = choose(none | (c > 0.0), c.fill(0), math.nan)
    # The power with an exponent of 0 has a slope by the exponent if the logarithm is a number.
    return choose_both(is_zero | (none & ~logarithm.is_finite()), Complex(edge, edge_imag), plain)


def cube_root(z: Complex) -> Complex:
    p, r = _measure(z)
    size = p.call("cbrt") * _root(r * r + 1).call("cbrt")
    angle = _angle(z.imag, z.real) / 3.0
    return Complex(size * angle.call("cosine"), size * angle.call("sine"))


def sign(z: Complex) -> Complex:
    """Returns z / |z|, and 0 for 0."""
    p, r = _measure(z)
    is_zero, size = z.real.equals(0) & z.imag.equals(0), _root(r * r + 1)
    return Complex(*(choose(is_zero, part * 0, part / p / size) for part in z))


def _is_after(a: Complex, b: Complex) -> Floats:
    """Whether a comes after b in the order by real parts, and then by imaginary ones. A number with a NaN does."""
    is_nan = a.real.compare("NE", a.real) | a.imag.compare("NE", a.imag)
    return (a.real > b.real) | (a.real.equals(b.real) & (a.imag > b.imag)) | is_nan


def maximum(a: Complex, b: Complex) -> Complex:
    return choose_both(_is_after(a, b), a, b)


def minimum(a: Complex, b: Complex) -> Complex:
    return negate(maximum(negate(a), negate(b)))


def angle(y: Complex, x: Complex) -> Complex:
    """Returns -i log((x + iy) / sqrt(x^2 + y^2))."""
    size = root(add(multiply(x, x), multiply(y, y)))
    return log(divide(add(x, y.turn()), size)).turn_back()


def _roots(z: Complex) -> tuple[Complex, Complex]:
    """Returns the square roots of 1 - z and 1 + z, between which Kahan's inverse functions have their cuts."""
    return root(Complex(-z.real + 1, -z.imag)), root(Complex(z.real + 1, z.imag))


def _is_large(z: Complex) -> Floats:
    """Whether 1 is lost beside z, whose inverse functions are then those of log(2z)."""
    return _order(z)[1] > 2.0 ** (z.real.limits.nmant + 4)


def _log_double(z: Complex) -> Floats:
    return _log_size(z) + math.log(2)


def arc_sine(z: Complex) -> Complex:
    less, more = _roots(z)
    near = Complex(_angle(z.real, multiply(less, more).real), multiply(less.conjugate(), more).imag.call("chlo.asinh"))
    far = Complex(_angle(z.real, abs(z.imag)), _log_double(z).with_sign(z.imag))
    return choose_both(_is_large(z), far, near)


def arc_cosine(z: Complex) -> Complex:
    less, more = _roots(z)
    near = Complex(_angle(less.real, more.real) * 2, multiply(more.conjugate(), less).imag.call("chlo.asinh"))
    far = Complex(_angle(abs(z.imag), z.real), _log_double(z).with_sign(-z.imag))
    return choose_both(_is_large(z), far, near)


def area_sine(z: Complex) -> Complex:
    return arc_sine(z.turn()).turn_back()


def area_cosine(z: Complex) -> Complex:
    less, more = root(Complex(z.real - 1, z.imag)), root(Complex(z.real + 1, z.imag))
    near = Complex(multiply(less.conjugate(), more).real.call("chlo.asinh"), _angle(less.imag, more.real) * 2)
    return choose_both(_is_large(z), Complex(_log_double(z), _angle(z.imag, z.real)), near)


def area_tangent(z: Complex) -> Complex:
    """Returns atanh(z), which is 1 / z and a right angle for large z."""
    x, y = z
    is_large = _is_large(z)
    a, b = choose(is_large, x.fill(0), x), choose(is_large, y.fill(0), y)
    is_negative = x.is_negative()
    size = a.flip(is_negative)
    near = size * 4 / ((-size + 1) * (-size + 1) + b * b)
    is_pole = size.equals(1) & (abs(b) < float(x.limits.eps))  # whose square may be 0
    pole = (choose(is_pole, abs(b), 1) * 0.5).call("log") * -0.5
    real = choose(is_pole, pole, near.call("log_plus_one") * 0.25)
    tail = invert(Complex(choose(is_large, x, 1), choose(is_large, y, 0))).real
    far = choose(x.is_infinite() | y.is_infinite(), x.fill(0).flip(is_negative), tail)
    real = choose(is_large, far, real.flip(is_negative))
    imag = _angle(b * 2, (-size + 1) * (size + 1) - b * b) * 0.5
    return Complex(real, choose(is_large, x.fill(math.pi / 2).with_sign(y), imag))


def arc_tangent(z: Complex) -> Complex:
    return area_tangent(z.turn()).turn_back()


RULES: dict[str, Callable] = {
    "chlo.acos": arc_cosine,
    "chlo.acosh": area_cosine,
    "chlo.asin": arc_sine,
    "chlo.asinh": area_sine,
    "chlo.atan": arc_tangent,
    "chlo.atanh": area_tangent,
    "chlo.cosh": hyperbolic_cosine,
    "chlo.sinh": hyperbolic_sine,
    "chlo.tan": tangent,
    "stablehlo.abs": absolute,
    "stablehlo.add": add,
    "stablehlo.atan2": angle,
    "stablehlo.cbrt": cube_root,
    "stablehlo.complex": Complex,
    "stablehlo.cosine": cosine,
    "stablehlo.divide": divide,
    "stablehlo.exponential": exponential,
    "stablehlo.exponential_minus_one": exponential_minus_one,
    "stablehlo.imag": lambda z: z.imag,
    "stablehlo.log": log,
    "stablehlo.log_plus_one": log_plus_one,
    "stablehlo.logistic": logistic,
    "stablehlo.maximum": maximum,
    "stablehlo.minimum": minimum,
    "stablehlo.multiply": multiply,
    "stablehlo.negate": negate,
    "stablehlo.power": power,
    "stablehlo.real": lambda z: z.real,
    "stablehlo.rsqrt": inverse_root,
    "stablehlo.sign": sign,
    "stablehlo.sine": sine,
    "stablehlo.sqrt": root,
    "stablehlo.subtract": subtract,
    "stablehlo.tan": tangent,
    "stablehlo.tanh": hyperbolic_tangent,
}
