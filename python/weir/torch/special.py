"""Special functions as polynomials: gamma's and the error function's kin, and Bessel functions of imaginary order.

f32 has an error of a few units of the last place of the result or, near a zero of the function, of its terms; f64 of
some ten. bf16 and f16 are computed in f32. Gradients are those of the forms.
"""

import functools
import math
from collections.abc import Callable

import torch

aten = torch.ops.aten

# Coefficients of polynomials, lowest first, for f32 and for f64: Chebyshev series, found in 40 digits.
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
    torch.float32: [
        1.2375126300326993, -0.14024059953590887, 0.00358549531406309, 0.08227677399009918,
        -0.10880522754949953, 0.09230393753827405, -0.05868544049363111, 0.028364105117372054,
        -0.009770087183368234, 0.0017511576292398034, 0.00033016745627228067, -0.00028431307575109806,
        2.2046718905694024e-05, 1.8521947386750102e-05
    ],
    torch.float64: [
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
    torch.float32: [
        0.20700192113010857, -0.11300433639506774, 0.09451564719798702, -0.0890428753638444,
        0.08734280515487007, -0.08497324395929248, 0.0792829727721399, -0.06946328880225133,
        0.05672728830188167, -0.04331789301487983, 0.030360637139794717, -0.018857354836155974,
        0.01155406559808401, -0.008018236782311294, 0.004169273658126491, -0.0007548949904818013,
        0.00041265146039947195, -0.0008519843905445875, 0.0003486284152415698
    ],
    torch.float64: [
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
    torch.float32: [
        0.4021765094192122, 0.0033605557001427145, 0.00013621716424322397, 1.111214828523939e-05,
        1.4761157343412484e-06, 3.626670384797085e-07, 1.0867942482266837e-07
    ],
    torch.float64: [
        0.4021765094450081, 0.0033605519836677504, 0.00013621607438984735, 1.1143033800708978e-05,
        1.4838476651250266e-06, 2.973596046562712e-07, 8.872034383314144e-08, 3.932889375114634e-08,
        2.1566251453104354e-08, 7.534355843803342e-09, -6.8493381882867694e-09, -1.3326094405766387e-08,
        -5.0381064879032845e-09, 7.3359687108161536e-09, 6.560138746917057e-09, -3.1346276429240787e-09,
        -4.575553424534973e-09, 1.1050558794424347e-09, 2.1968921378829006e-09, -2.8033819978869995e-10,
        -6.633287112547084e-10, 3.629355229718733e-11, 9.36508689281819e-11
    ],
}
_I1_SMALL = {
    torch.float32: [
        0.044687710226746606, -0.0611243392551985, 0.06805754344630807, -0.06848253319811619,
        0.06376889552873899, -0.055281312761999025, 0.04465943707923484, -0.033661282866740416,
        0.023762642035647662, -0.015614300990375514, 0.009367400355918504, -0.005427421324892723,
        0.0033614203727057907, -0.0016985943146705425, 0.0004114421937871354, -0.0002026265888141342,
        0.0003074142170806935, -0.00012368279972890735
    ],
    torch.float64: [
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
    torch.float32: [
        0.3893984590596593, -0.00974958137037718, -0.00021923712538189863, -1.5003965466132858e-05,
        -1.8256907317698838e-06, -4.2103501550232313e-07, -1.2273217235085558e-07
    ],
    torch.float64: [
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


def _of_floats(function: Callable) -> Callable:
    """Computes a function of floats in f32 or f64; integers are floats of the default type."""

    @functools.wraps(function)
    def decompose(x: torch.Tensor, *rest: object) -> torch.Tensor:
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        return function(x.to(torch.float64 if dtype == torch.float64 else torch.float32), *rest).to(dtype)

    return decompose


def _polynomial(coefficients: list[float], x: torch.Tensor) -> torch.Tensor:
    value = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def _choose(
    condition: torch.Tensor, x: torch.Tensor | float, y: torch.Tensor | float, like: torch.Tensor
) -> torch.Tensor:
    """A choice of tensors or numbers; an operand that a choice hides must be finite, or its gradient is NaN."""
    x, y = (torch.scalar_tensor(each, dtype=like.dtype) if not isinstance(each, torch.Tensor) else each for each in (x, y))
    return torch.where(condition, x, y)


def _is_negative(x: torch.Tensor) -> torch.Tensor:
    """Whether the sign is negative, of -0.0 as well. The sign of a NaN is not looked at."""
    if not x.is_floating_point():
        return x < 0
    return (x < 0) | ((x == 0) & (1 / _choose(x == 0, x, 1.0, x) < 0))


def _copysign(x: torch.Tensor, sign: torch.Tensor | float) -> torch.Tensor:
    dtype = torch.result_type(x, sign)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    x = x.to(dtype).abs()
    if not isinstance(sign, torch.Tensor):
        return (-x if math.copysign(1, sign) < 0 else x).clone()
    return torch.where(_is_negative(sign), -x, x)


def _turns(x: torch.Tensor) -> torch.Tensor:
    """The distance to the nearest integer, of which sines and tangents of pi * x are exact."""
    return x - torch.round(x)


@_of_floats
def _lgamma(x: torch.Tensor) -> torch.Tensor:
    degree = 14 if x.dtype == torch.float32 else len(_LGAMMA)
    reflects = x < 0
    y = torch.where(reflects, 1 - x, x)
    # y to [1.5, 2.5] by lgamma(y) = log(y - 1) + lgamma(y - 1), upwards by -log(y) + lgamma(y + 1).
    is_large = ~(y < 8.5)
    small = _choose(is_large, 2.0, y, y)
    tiny, low = small < 0.5, small < 1.5
    z = _choose(tiny, small, torch.where(low, small - 1, small - 2), y)
    product = torch.ones_like(y)
    for step in range(1, 7):
        above = small - step >= 1.5
        product = product * _choose(above, small - step, 1.0, y)
        z = torch.where(above, small - (2 + step), z)
    near = z * _polynomial(_LGAMMA[:degree], z) + torch.log(product)
    near = near - _choose(low, torch.log1p(_choose(low, z, 0.0, y)), 0.0, y)
    near = near - _choose(tiny, torch.log(_choose(tiny, small, 1.0, y)), 0.0, y)
    large = _choose(is_large & (y < float("inf")), y, 8.5, y)
    inverse = 1 / large
    far = (large - 0.5) * (torch.log(large) - 1) + (_HALF_LOG_TAU - 0.5)
    far = far + inverse * _polynomial(_STIRLING[: 4 if x.dtype == torch.float32 else 8], inverse * inverse)
    value = torch.where(is_large, far, near)
    # log(pi / |sin(pi * x)|) - lgamma(1 - x); lgamma(-inf) is +inf, as at every negative integer.
    turns = _turns(_choose(reflects & (y < float("inf")), x, 0.5, y))
    is_pole = turns == 0
    sine = torch.sin(math.pi * _choose(is_pole, 0.5, turns, y).abs())
    value = torch.where(reflects, math.log(math.pi) - torch.log(sine) - value, value)
    is_infinite = is_pole | (x.abs() == float("inf"))
    value = torch.where(is_infinite, _choose(is_infinite, x.abs(), 1.0, y) * float("inf"), value)
    return torch.where(x != x, x, value)


@_of_floats
def _digamma(x: torch.Tensor) -> torch.Tensor:
    reflects = x < 0
    y = torch.where(reflects, 1 - x, x)
    shift = torch.zeros_like(y)
    for _ in range(8):
        low = y < 8
        shift = shift + _choose(low, 1 / torch.where(low, y, torch.ones_like(y)), 0.0, y)
        y = torch.where(low, y + 1, y)
    inverse = 1 / y
    square = inverse * inverse
    terms = [number / (2 * k) for k, number in enumerate(_BERNOULLI, 1)][: 4 if x.dtype == torch.float32 else 8]
    value = torch.log(y) - 0.5 * inverse - square * _polynomial(terms, square) - shift
    turns = _turns(_choose(reflects & (x > -float("inf")), x, 0.25, x))
    is_pole = turns == 0
    tangent = torch.tan(math.pi * _choose(is_pole, 0.25, turns, x))
    value = torch.where(reflects, value - math.pi / tangent, value)
    value = _choose(is_pole | (x == -float("inf")), float("nan"), value, x)
    return torch.where(x == 0, -1 / _choose(x == 0, x, 1.0, x), value)


def _polygamma(n: int, x: torch.Tensor) -> torch.Tensor:
    return aten.digamma.default(x) if n == 0 else _of_floats(functools.partial(_derive_digamma, order=n))(x)


def _derive_digamma(x: torch.Tensor, order: int) -> torch.Tensor:
    """(-1)^(n+1) n! zeta(n + 1, x) by Euler's and Maclaurin's sum from x + 10; below 0 by derivatives of pi cot(pi x)."""
    sign, factorial = (-1) ** (order + 1), math.factorial(order)
    reflects = x < 0.5
    y = torch.where(reflects, 1 - x, x)
    total = torch.zeros_like(y)
    for _ in range(10):
        total = total + y ** -(order + 1)
        y = y + 1
    inverse = 1 / y
    square = inverse * inverse
    terms, rising = [], 1.0
    for k, number in enumerate(_BERNOULLI[: 4 if x.dtype == torch.float32 else 8], 1):
        rising = float(math.prod(order + 1 + i for i in range(2 * k - 1)))
        terms.append(number / math.factorial(2 * k) * rising)
    total = total + inverse**order * (1 / order + inverse * (0.5 + inverse * _polynomial(terms, square)))
    total = factorial * total
    # derivatives of cot as polynomials of cot: d p(c) = -pi (1 + c^2) p'(c)
    powers = [0.0, 1.0]
    for _ in range(order):
        slope = [i * power for i, power in enumerate(powers)][1:]
        powers = [a + b for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    turns = _turns(x)
    is_pole = turns == 0
    cotangent = 1 / torch.tan(math.pi * _choose(is_pole | ~reflects, 0.25, turns, x))
    # psi_n(x) = (-1)^n psi_n(1 - x) - pi d^n cot, and psi_n of 1 - x is sign * total.
    below = (-1) ** order * sign * total - math.pi * (-math.pi) ** order * _polynomial(powers, cotangent)
    value = torch.where(reflects, below, sign * total)
    return _choose(reflects & is_pole, sign * float("inf"), value, x)


@_of_floats
def _erfcx(x: torch.Tensor) -> torch.Tensor:
    """exp(x^2) erfc(x)."""
    scaled = _scale_erfc(torch.where(x < 0, -x, x))  # whose slope at 0 is not that of |x|
    below = _choose(x < 0, x, 0.0, x)
    return torch.where(x < 0, 2 * _exp_square(below, 1) - scaled, scaled)


def _exp_square(x: torch.Tensor, sign: int) -> torch.Tensor:
    """exp(x^2), or 1 / exp(x^2), as a product for high and low bits of x: x * x alone is rounded too far."""
    x = torch.clamp(x, -40, 40)
    high = torch.round(x * 64) / 64
    return torch.exp(sign * high * high) * torch.exp(sign * (x - high) * (x + high))


def _scale_erfc(y: torch.Tensor) -> torch.Tensor:
    """exp(y^2) erfc(y) of y >= 0, which infinity makes 0."""
    bounded = _choose(y < 1e18, y, 1e18, y)
    value = _polynomial(_ERFCX[y.dtype], (bounded - 3.75) / (bounded + 3.75)) / (1 + 2 * bounded)
    return torch.where(y == float("inf"), torch.zeros_like(y), torch.where(y != y, y, value))


@_of_floats
def _erfc(x: torch.Tensor) -> torch.Tensor:
    """1 - erf(x), with a small relative error where it is close to 0."""
    is_large = x > 0.5
    y = _choose(is_large & (x < 30), x, 1.0, x)
    far = _exp_square(y, -1) * _scale_erfc(y)
    far = _choose(x >= 30, 0.0, far, x)
    return torch.where(is_large, far, 1 - torch.erf(torch.where(is_large, torch.zeros_like(x), x)))


@_of_floats
def _erfinv(x: torch.Tensor) -> torch.Tensor:
    """Winitzki's estimate, then two steps of Halley's method for erf, or for erfc where erf is close to 1."""
    size = x.abs()
    inner = _choose(size < 1, size, 0.5, x)
    logarithm = torch.log1p(-inner) + torch.log1p(inner)
    part = 2 / (math.pi * 0.147) + logarithm / 2
    # sqrt(a) - b as (a - b^2) / (sqrt(a) + b), which small values need; 0 / 0 does not come up.
    root = -logarithm / 0.147 / (torch.sqrt(part * part - logarithm / 0.147) + part)
    # The estimate of a small value is its tangent.
    is_small = inner < 1e-3
    y = torch.where(is_small, inner * (0.5 * math.sqrt(math.pi)), torch.sqrt(_choose(is_small, 1.0, root, x)))
    for _ in range(2):
        is_far = y > 0.75
        error = torch.where(is_far, (1 - inner) - aten.erfc.default(y), torch.erf(y) - inner)
        step = error * torch.exp(y * y) * (0.5 * math.sqrt(math.pi))
        y = y - step / (1 + y * step)
    value = torch.where(x < 0, -y, y)
    # A product, whose gradient is infinite or NaN as well.
    limit = _choose(size < 1, 1.0, size, x) * _choose(size == 1, float("inf"), float("nan"), x)
    limit = torch.where(x < 0, -limit, limit)
    return torch.where(size < 1, torch.where(x == 0, x * (0.5 * math.sqrt(math.pi)), value), limit)


def _bessel(scaled: bool, odd: bool) -> Callable:
    """I0 and I1, or those times exp(-|x|): a polynomial of x up to 8, and one of 1 / x."""
    def compute(x: torch.Tensor) -> torch.Tensor:
        near, far = (_I1_SMALL, _I1_LARGE) if odd else (_I0_SMALL, _I0_LARGE)
        y = torch.where(x < 0, -x, x) if odd else x.abs()
        is_small = y <= 8
        low, high = _choose(is_small, y, 1.0, x), _choose(is_small | (y == float("inf")), 8.0, y, x)
        small = _polynomial(near[x.dtype], low / 4 - 1) * (low if odd else 1)
        large = _polynomial(far[x.dtype], 16 / high - 1) / torch.sqrt(high)
        if not scaled:
            # Two factors, as exp(x) alone overflows first.
            half = torch.exp(high / 2)
            small, large = small * torch.exp(low), large * half * half
        value = torch.where(is_small, small, large)
        value = _choose(y == float("inf"), 0.0 if scaled else float("inf"), value, x)
        value = torch.where(x != x, x, value)
        return torch.where(x < 0, -value, value) if odd else value

    return _of_floats(compute)


@_of_floats
def _angle(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x != x, x, _choose(x < 0, math.pi, 0.0, x))


def _subtract_from(x: torch.Tensor, number: float, alpha: float = 1) -> torch.Tensor:
    """number - alpha * x. torch-mlir rounds the number to f32, also beside f64, which the forms above need exact."""
    return torch.scalar_tensor(number, dtype=torch.result_type(x, number)) - (x if alpha == 1 else x * alpha)


TABLE = {
    aten.rsub.Scalar: _subtract_from,
    aten.signbit.default: _is_negative,
    aten.copysign.Tensor: _copysign,
    aten.copysign.Scalar: _copysign,
    aten.angle.default: lambda x: NotImplemented if x.is_complex() else _angle(x),
    aten.lgamma.default: _lgamma,
    aten.digamma.default: _digamma,
    aten.polygamma.default: _polygamma,
    aten.erfc.default: _erfc,
    aten.erfinv.default: _erfinv,
    aten.special_erfcx.default: _erfcx,
    aten.i0.default: _bessel(scaled=False, odd=False),
    aten.special_i0e.default: _bessel(scaled=True, odd=False),
    aten.special_i1.default: _bessel(scaled=False, odd=True),
    aten.special_i1e.default: _bessel(scaled=True, odd=True),
}
