"""Special functions as polynomials: gamma's and the error function's kin, and Bessel functions of imaginary order.

f32 has an error of a few units of the last place of the result or, near a zero of the function, of its terms; f64 of
some ten. Gradients are those of the forms. The arrays are those of any package.
"""

import math
from collections.abc import Callable
from typing import Any

# Coefficients of polynomials, lowest first, for f32 (False) and for f64 (True): Chebyshev series, found in 40 digits.
_LGAMMA = [  # of lgamma(2 + z) / z, |z| <= 1/2: 1 - Euler's constant, then (-1)^n (zeta(n) - 1) / n
    0.42278433509846713, 0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986,
    0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939,
    9.945751278180853e-05, -4.492623673813314e-05, 2.050721277567069e-05, -9.439488275268397e-06,
    4.374866789907488e-06, -2.039215753801366e-06, 9.55141213040742e-07, -4.492469198764566e-07,
    2.1207184805554665e-07, -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08,
    1.0838659214896955e-08, -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09,
    5.731367241678862e-10
]
_ERFCX = {
    False: [
        1.2375126300326993, -0.14024059953590887, 0.00358549531406309, 0.08227677399009918,
        -0.10880522754949953, 0.09230393753827405, -0.05868544049363111, 0.028364105117372054,
        -0.009770087183368234, 0.0017511576292398034, 0.00033016745627228067, -0.00028431307575109806,
        2.2046718905694024e-05, 1.8521947386750102e-05
    ],
    True: [
        1.2375126308378275, -0.14024059858554697, 0.0035854154854644293, 0.0822767384901452,
        -0.10880393014174886, 0.09230432116037748, -0.05869339858963677, 0.028362277418956406,
        -0.009746579558029276, 0.0017556258528952954, 0.0002937136655913448, -0.0002901540805408417,
        5.164909889268241e-05, 2.238423915508223e-05, -1.1444146237700524e-05, -9.73559896736775e-07,
        1.751637648849062e-06, -5.7218230603224086e-08, -2.5866850716155884e-07, 2.3263508708859124e-08,
        3.8675334242222354e-08, -3.744210080962018e-09, -5.1739902140113095e-09, 3.1114333809799254e-10,
        4.2514714447963895e-10
    ],
}
_I0_SMALL = {
    False: [
        0.20700192113010857, -0.11300433639506774, 0.09451564719798702, -0.0890428753638444,
        0.08734280515487007, -0.08497324395929248, 0.0792829727721399, -0.06946328880225133,
        0.05672728830188167, -0.04331789301487983, 0.030360637139794717, -0.018857354836155974,
        0.01155406559808401, -0.008018236782311294, 0.004169273658126491, -0.0007548949904818013,
        0.00041265146039947195, -0.0008519843905445875, 0.0003486284152415698
    ],
    True: [
        0.2070019212239867, -0.11300432688620536, 0.09451562853995103, -0.08904344136077755,
        0.08734341617552313, -0.08496338091541732, 0.07927522590716347, -0.06954119563168235,
        0.05677703201991695, -0.0429859492954222, 0.030177912022978357, -0.019682655791721182,
        0.011960077907026221, -0.006792394790940051, 0.003617126448897043, -0.0018119030567637056,
        0.0008563152748272306, -0.00038286526498299526, 0.00016240542162878106, -6.556805964401791e-05,
        2.520232727107692e-05, -9.183742586936203e-06, 3.2293390826404927e-06, -1.142045323881917e-06,
        3.675842926555429e-07, -8.591406444264668e-08, 2.6265363151970112e-08, -1.6316042856792757e-08,
        4.470516727511741e-09
    ],
}
_I0_LARGE = {
    False: [
        0.4021765094192122, 0.0033605557001427145, 0.00013621716424322397, 1.111214828523939e-05,
        1.4761157343412484e-06, 3.626670384797085e-07, 1.0867942482266837e-07
    ],
    True: [
        0.4021765094450081, 0.0033605519836677504, 0.00013621607438984735, 1.1143033800708978e-05,
        1.4838476651250266e-06, 2.973596046562712e-07, 8.872034383314144e-08, 3.932889375114634e-08,
        2.1566251453104354e-08, 7.534355843803342e-09, -6.8493381882867694e-09, -1.3326094405766387e-08,
        -5.0381064879032845e-09, 7.3359687108161536e-09, 6.560138746917057e-09, -3.1346276429240787e-09,
        -4.575553424534973e-09, 1.1050558794424347e-09, 2.1968921378829006e-09, -2.8033819978869995e-10,
        -6.633287112547084e-10, 3.629355229718733e-11, 9.36508689281819e-11
    ],
}
_I1_SMALL = {
    False: [
        0.044687710226746606, -0.0611243392551985, 0.06805754344630807, -0.06848253319811619,
        0.06376889552873899, -0.055281312761999025, 0.04465943707923484, -0.033661282866740416,
        0.023762642035647662, -0.015614300990375514, 0.009367400355918504, -0.005427421324892723,
        0.0033614203727057907, -0.0016985943146705425, 0.0004114421937871354, -0.0002026265888141342,
        0.0003074142170806935, -0.00012368279972890735
    ],
    True: [
        0.04468770987560883, -0.061124338029666284, 0.06805759990951268, -0.06848260620582691,
        0.06376740371333643, -0.055280039226991644, 0.04467457262306667, -0.03367135552108536,
        0.02368601693352639, -0.015571309243980052, 0.009583962344356725, -0.005534567847563678,
        0.003005761416447221, -0.00153887456203039, 0.0007445158727006065, -0.0003411760289073331,
        0.00014841259927108295, -6.142360299099794e-05, 2.42486684188831e-05, -9.136543922789093e-06,
        3.2758438130588964e-06, -1.1327072698408053e-06, 3.9094375480236725e-07, -1.2424759932738304e-07,
        2.987385645901576e-08, -8.984420960424589e-09, 5.2131237878886215e-09, -1.41695079121077e-09
    ],
}
_I1_LARGE = {
    False: [
        0.3893984590596593, -0.00974958137037718, -0.00021923712538189863, -1.5003965466132858e-05,
        -1.8256907317698838e-06, -4.2103501550232313e-07, -1.2273217235085558e-07
    ],
    True: [
        0.38939845902587233, -0.009749577193235635, -0.0002192357638317243, -1.5038547209501858e-05,
        -1.8349102358955385e-06, -3.4838534380376333e-07, -1.000109565963654e-07, -4.313196489977733e-08,
        -2.339250374801858e-08, -8.409182040442918e-09, 6.8401389977069586e-09, 1.3958551001385955e-08,
        5.59337010179061e-09, -7.44444147719727e-09, -6.983839624895866e-09, 3.086886736722725e-09,
        4.810597405089944e-09, -1.0594544160443166e-09, -2.297004161885201e-09, 2.6340771095136483e-10,
        6.917089294193807e-10, -3.365431853180176e-11, -9.752397204138195e-11
    ],
}
_STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400]
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


class Functions:
    """The functions of arrays of f32 or f64.

    `ops` has abs, clamp, erf, exp, full_like, log, log1p, ones_like, round, sin, sqrt, tan, where and zeros_like;
    `number(value, like)` makes an array of one number of the type of another; `is_double(x)` tells f64.
    """

    def __init__(self, ops: Any, number: Callable[[float, Any], Any], is_double: Callable[[Any], bool]):
        self._ops, self._number, self._is_double = ops, number, is_double

    def _polynomial(self, coefficients: list[float], x: Any) -> Any:
        value = self._ops.full_like(x, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = value * x + coefficient
        return value

    def _choose(self, condition: Any, x: Any, y: Any, like: Any) -> Any:
        """A choice of arrays or floats; an operand that a choice hides must be finite, or its gradient is NaN."""
        x, y = (self._number(each, like) if isinstance(each, float) else each for each in (x, y))
        return self._ops.where(condition, x, y)

    def _turns(self, x: Any) -> Any:
        """The distance to the nearest integer, of which sines and tangents of pi * x are exact."""
        return x - self._ops.round(x)

    def lgamma(self, x: Any) -> Any:
        degree = 14 if not self._is_double(x) else len(_LGAMMA)
        reflects = x < 0
        y = self._ops.where(reflects, 1 - x, x)
        # y to [1.5, 2.5] by lgamma(y) = log(y - 1) + lgamma(y - 1), upwards by -log(y) + lgamma(y + 1).
        is_large = ~(y < 8.5)
        small = self._choose(is_large, 2.0, y, y)
        tiny, low = small < 0.5, small < 1.5
        z = self._choose(tiny, small, self._ops.where(low, small - 1, small - 2), y)
        product = self._ops.ones_like(y)
        for step in range(1, 7):
            above = small - step >= 1.5
            product = product * self._choose(above, small - step, 1.0, y)
            z = self._ops.where(above, small - (2 + step), z)
        near = z * self._polynomial(_LGAMMA[:degree], z) + self._ops.log(product)
        near = near - self._choose(low, self._ops.log1p(self._choose(low, z, 0.0, y)), 0.0, y)
        near = near - self._choose(tiny, self._ops.log(self._choose(tiny, small, 1.0, y)), 0.0, y)
        large = self._choose(is_large & (y < float("inf")), y, 8.5, y)
        inverse = 1 / large
        far = (large - 0.5) * (self._ops.log(large) - 1) + (_HALF_LOG_TAU - 0.5)
        far = far + inverse * self._polynomial(_STIRLING[: 4 if not self._is_double(x) else 8], inverse * inverse)
        value = self._ops.where(is_large, far, near)
        # log(pi / |sin(pi * x)|) - lgamma(1 - x); lgamma(-inf) is +inf, as at every negative integer.
        turns = self._turns(self._choose(reflects & (y < float("inf")), x, 0.5, y))
        is_pole = turns == 0
        sine = self._ops.sin(math.pi * abs(self._choose(is_pole, 0.5, turns, y)))
        value = self._ops.where(reflects, math.log(math.pi) - self._ops.log(sine) - value, value)
        is_infinite = is_pole | (abs(x) == float("inf"))
        value = self._ops.where(is_infinite, self._choose(is_infinite, abs(x), 1.0, y) * float("inf"), value)
        return self._ops.where(x != x, x, value)

    def digamma(self, x: Any) -> Any:
        reflects = x < 0
        y = self._ops.where(reflects, 1 - x, x)
        shift = self._ops.zeros_like(y)
        for _ in range(8):
            low = y < 8
            shift = shift + self._choose(low, 1 / self._ops.where(low, y, self._ops.ones_like(y)), 0.0, y)
            y = self._ops.where(low, y + 1, y)
        inverse = 1 / y
        square = inverse * inverse
        terms = [number / (2 * k) for k, number in enumerate(_BERNOULLI, 1)][: 4 if not self._is_double(x) else 8]
        value = self._ops.log(y) - 0.5 * inverse - square * self._polynomial(terms, square) - shift
        turns = self._turns(self._choose(reflects & (x > -float("inf")), x, 0.25, x))
        is_pole = turns == 0
        tangent = self._ops.tan(math.pi * self._choose(is_pole, 0.25, turns, x))
        value = self._ops.where(reflects, value - math.pi / tangent, value)
        value = self._choose(is_pole | (x == -float("inf")), float("nan"), value, x)
        return self._ops.where(x == 0, -1 / self._choose(x == 0, x, 1.0, x), value)

    def derive_digamma(self, x: Any, order: int) -> Any:
        """(-1)^(n+1) n! zeta(n + 1, x) by Euler's and Maclaurin's sum from x + 10.

        Below 0 by derivatives of pi cot(pi x).
        """
        sign, factorial = (-1) ** (order + 1), math.factorial(order)
        reflects = x < 0.5
        y = self._ops.where(reflects, 1 - x, x)
        total = self._ops.zeros_like(y)
        for _ in range(10):
            total = total + y ** -(order + 1)
            y = y + 1
        inverse = 1 / y
        square = inverse * inverse
        terms, rising = [], 1.0
        for k, number in enumerate(_BERNOULLI[: 4 if not self._is_double(x) else 8], 1):
            rising = float(math.prod(order + 1 + i for i in range(2 * k - 1)))
            terms.append(number / math.factorial(2 * k) * rising)
        total = total + inverse**order * (1 / order + inverse * (0.5 + inverse * self._polynomial(terms, square)))
        total = factorial * total
        # derivatives of cot as polynomials of cot: d p(c) = -pi (1 + c^2) p'(c)
        powers = [0.0, 1.0]
        for _ in range(order):
            slope = [i * power for i, power in enumerate(powers)][1:]
            powers = [a + b for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
        turns = self._turns(x)
        is_pole = turns == 0
        cotangent = 1 / self._ops.tan(math.pi * self._choose(is_pole | ~reflects, 0.25, turns, x))
        # psi_n(x) = (-1)^n psi_n(1 - x) - pi d^n cot, and psi_n of 1 - x is sign * total.
        below = (-1) ** order * sign * total - math.pi * (-math.pi) ** order * self._polynomial(powers, cotangent)
        value = self._ops.where(reflects, below, sign * total)
        return self._choose(reflects & is_pole, sign * float("inf"), value, x)

    def erfcx(self, x: Any) -> Any:
        """exp(x^2) erfc(x)."""
        scaled = self._scale_erfc(self._ops.where(x < 0, -x, x))  # whose slope at 0 is not that of |x|
        below = self._choose(x < 0, x, 0.0, x)
        return self._ops.where(x < 0, 2 * self._exp_square(below, 1) - scaled, scaled)

    def _exp_square(self, x: Any, sign: int) -> Any:
        """exp(x^2), or 1 / exp(x^2), as a product for high and low bits of x: x * x alone is rounded too far."""
        x = self._ops.clamp(x, -40, 40)
        high = self._ops.round(x * 64) / 64
        return self._ops.exp(sign * high * high) * self._ops.exp(sign * (x - high) * (x + high))

    def _scale_erfc(self, y: Any) -> Any:
        """exp(y^2) erfc(y) of y >= 0, which infinity makes 0."""
        bounded = self._choose(y < 1e18, y, 1e18, y)
        value = self._polynomial(_ERFCX[self._is_double(y)], (bounded - 3.75) / (bounded + 3.75))
        value = value / (1 + 2 * self._choose(y < float("inf"), y, 1e18, y))
        return self._ops.where(y == float("inf"), self._ops.zeros_like(y), self._ops.where(y != y, y, value))

    def erfc(self, x: Any) -> Any:
        """1 - erf(x), with a small relative error where it is close to 0."""
        is_large = x > 0.5
        y = self._choose(is_large & (x < 30), x, 1.0, x)
        far = self._exp_square(y, -1) * self._scale_erfc(y)
        far = self._choose(x >= 30, 0.0, far, x)
        return self._ops.where(is_large, far, 1 - self._ops.erf(self._ops.where(is_large, self._ops.zeros_like(x), x)))

    def erfinv(self, x: Any) -> Any:
        """Winitzki's estimate, then two steps of Halley's method for erf, or for erfc where erf is close to 1."""
        size = abs(x)
        inner = self._choose(size < 1, size, 0.5, x)
        logarithm = self._ops.log1p(-inner) + self._ops.log1p(inner)
        part = 2 / (math.pi * 0.147) + logarithm / 2
        # sqrt(a) - b as (a - b^2) / (sqrt(a) + b), which small values need; 0 / 0 does not come up.
        root = -logarithm / 0.147 / (self._ops.sqrt(part * part - logarithm / 0.147) + part)
        # The estimate of a small value is its tangent.
        is_small = inner < 1e-3
        estimate = self._ops.sqrt(self._choose(is_small, 1.0, root, x))
        y = self._ops.where(is_small, inner * (0.5 * math.sqrt(math.pi)), estimate)
        for _ in range(2):
            is_far = y > 0.75
            error = self._ops.where(is_far, (1 - inner) - self.erfc(y), self._ops.erf(y) - inner)
            step = error * self._ops.exp(y * y) * (0.5 * math.sqrt(math.pi))
            y = y - step / (1 + y * step)
        value = self._ops.where(x < 0, -y, y)
        # A product, whose gradient is infinite or NaN as well.
        limit = self._choose(size < 1, 1.0, size, x) * self._choose(size == 1, float("inf"), float("nan"), x)
        limit = self._ops.where(x < 0, -limit, limit)
        return self._ops.where(size < 1, self._ops.where(x == 0, x * (0.5 * math.sqrt(math.pi)), value), limit)

    def bessel(self, scaled: bool, odd: bool) -> Callable:
        """I0 and I1, or those times exp(-|x|): a polynomial of x up to 8, and one of 1 / x."""
        def compute(x: Any) -> Any:
            near, far = (_I1_SMALL, _I1_LARGE) if odd else (_I0_SMALL, _I0_LARGE)
            y = self._ops.where(x < 0, -x, x) if odd else abs(x)
            is_small = y <= 8
            low, high = self._choose(is_small, y, 1.0, x), self._choose(is_small | (y == float("inf")), 8.0, y, x)
            small = self._polynomial(near[self._is_double(x)], low / 4 - 1) * (low if odd else 1)
            large = self._polynomial(far[self._is_double(x)], 16 / high - 1) / self._ops.sqrt(high)
            if not scaled:
                # Two factors, as exp(x) alone overflows first.
                half = self._ops.exp(high / 2)
                small, large = small * self._ops.exp(low), large * half * half
            value = self._ops.where(is_small, small, large)
            value = self._choose(y == float("inf"), 0.0 if scaled else float("inf"), value, x)
            value = self._ops.where(x != x, x, value)
            return self._ops.where(x < 0, -value, value) if odd else value

        return compute

    def zeta(self, x: Any, q: Any) -> Any:
        """Hurwitz's sum of (q + k)^-x by Euler's and Maclaurin's formula from q + 10.

        NaN for x < 1 and infinite at 1. A whole q up to 0 is a pole, which even powers alone make infinite; between
        them only whole powers are numbers.
        """
        x, given = self._choose(x > 1, x, 2.0, x), x
        at = self._choose(q == 0, 1.0, q, q)
        total = self._ops.zeros_like(x + at)
        for k in range(10):
            total = total + (at + k * 1.0) ** -x
        at = at + 10.0
        term = at ** -x
        total = total + term * at / (x - 1) + 0.5 * term
        for k, number in enumerate(_BERNOULLI, 1):
            term = term * (x if k == 1 else (x + (2.0 * k - 3)) * (x + (2.0 * k - 2))) / (at if k == 1 else at * at)
            total = total + term * (number / math.factorial(2 * k))
        total = self._choose(given < 1, float("nan"), total, total)
        # Differences, which infinity makes NaN.
        is_whole, is_even = self._turns(given) == 0, self._turns(given * 0.5) == 0
        pole = self._choose(is_even, float("inf"), float("nan"), total)
        between = self._choose(is_whole, total, float("nan"), total)
        total = self._ops.where(q <= 0, self._ops.where(self._ops.round(q) == q, pole, between), total)
        total = self._ops.where((given != given) | (q != q), given + q, total)
        return self._choose(given == 1, float("inf"), total, total)
