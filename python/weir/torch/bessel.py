"""Functions of Bessel and Airy, zeta, and logarithms and quantiles of the normal distribution.

f32 is computed in f64, with an error of a few units of the last place of a result's terms. `FIXED` are the operators
that PyTorch gives no gradient: their results count as constants.
"""

import functools
import math
from collections.abc import Callable

import torch

from weir.torch.operators import stop_gradient
from weir.torch.special import FUNCTIONS

aten = torch.ops.aten

# Chebyshev series, found in 40 digits. x is up to 8 for J and Y, and up to 2 for I and K; the others are of 1 / x from
# there on. With c, s of x - pi/4 - n pi/2: J = sqrt(2 / (pi x)) (P c - Q s) and Y = sqrt(2 / (pi x)) (P s + Q c). With
# c, s of zeta + pi/4, zeta = 2/3 x^1.5: Ai(-x) = (P s - Q c) / (sqrt(pi) x^(1/4)).
_SERIES = {
    "j0": [  # J(0, x)
        0.15772797147489012, -0.008723442352852221, 0.2651786132033368, -0.37009499387264977, 0.15806710233209725,
        -0.034893769411408884, 0.004819180069467605, -0.00046062616620627504, 3.246032882100508e-05,
        -1.7619469077621507e-06, 7.608163592418782e-08, -2.679253530557673e-09, 7.848696314479465e-11,
        -1.9438346867370164e-12, 4.125320595634374e-14, -7.588508125447546e-16, 1.2218515873961411e-17
    ],
    "j1": [  # J(1, x) / x
        0.08104484632565812, -0.1489751450676521, 0.1609992623572097, -0.08268049176681791, 0.022213639654966037,
        -0.003646940600769276, 0.0004050337728354822, -3.255554866857259e-05, 1.9858774049915165e-06,
        -9.521984756750436e-08, 3.687133759097148e-09, -1.178026622695885e-10, 3.160154580348003e-12,
        -7.221755239651773e-14, 1.4232144003513942e-15, -2.4441972916190464e-17
    ],
    "y0": [  # Y(0, x) - 2 / pi log(x) J(0, x)
        -0.03314611320328494, -0.2744743055297453, 0.17903431407718265, 0.26156734625504663, -0.17730201278114358,
        0.04719668959576339, -0.007287962479552079, 0.0007531135932577742, -5.632079141056987e-05,
        3.206532537654801e-06, -1.44072332740187e-07, 5.248794787330516e-09, -1.5837552541812015e-10,
        4.02633081830612e-12, -8.747341203310769e-14, 1.6434898714919468e-15, -2.6977881152566837e-17
    ],
    "y1": [  # (Y(1, x) - 2 / pi (log(x) J(1, x) - 1 / x)) / x
        0.0025380132357417816, -0.01608717304766875, -0.09591204536083074, 0.08445197259652346,
        -0.028328123944594365, 0.005289897544167113, -0.0006414551451326356, 5.505982873338744e-05,
        -3.53808001868935e-06, 1.7707804556154404e-07, -7.11055004989928e-09, 2.344337905911516e-10,
        -6.4651518414115946e-12, 1.51429151205002e-13, -3.0511859694473254e-15, 5.34668038572867e-17,
        -8.224911372021585e-19
    ],
    "p0": [  # P of n = 0
        0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06, -5.1705945376060975e-08,
        1.6306464635151382e-09, -7.86409137723707e-11, 5.168262387349193e-12, -4.3045788699253914e-13,
        4.3265957431549404e-14, -5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16,
        1.6305919233744186e-17
    ],
    "q0": [  # x Q of n = 0
        -0.12444683684269607, 0.0005470815954089319, -5.9315987288485175e-06, 1.4377965798375193e-07,
        -5.817532749493056e-09, 3.376097523734991e-10, -2.565397936797308e-11, 2.404916100281365e-12,
        -2.6690625482579414e-13, 3.4041800321963686e-14, -4.87994410531204e-15, 7.729703176242605e-16,
        -1.3348852171502517e-16, 2.4865952389390515e-17, -4.952892629886516e-18, 1.0473158973776097e-18
    ],
    "p1": [  # P of n = 1
        1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06, 6.177633960644299e-08,
        -1.8718907491063067e-09, 8.816898659582339e-11, -5.704863640395645e-12, 4.699195515230542e-13,
        -4.6842237839904895e-14, 5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16,
        -1.7312313216116335e-17
    ],
    "q1": [  # x Q of n = 1
        0.3742222965562826, -0.0007702178839325664, 7.3108922063643636e-06, -1.676782510726674e-07,
        6.583354662120443e-09, -3.749090950541556e-10, 2.8121750359748866e-11, -2.61145253946232e-12,
        2.8774212663332235e-13, -3.649001916061838e-14, 5.206626366226707e-15, -8.215318025458595e-16,
        1.4141084390211833e-16, -2.626761589838529e-17, 5.2192649196714085e-18
    ],
    "k0": [  # K(0, x) + log(x / 2) I(0, x)
        -0.2676636966169514, 0.3442898999246285, 0.0359799365153615, 0.001264615411446926, 2.286212103119452e-05,
        2.5347910790261494e-07, 1.904516377220209e-09, 1.0349695257633625e-11, 4.2598161427910826e-14,
        1.3744654358807508e-16
    ],
    "k1": [  # x (K(1, x) - log(x / 2) I(1, x))
        0.7626501136694739, -0.3531559607765449, -0.12261118082265715, -0.006975723859639864, -0.0001730288957513052,
        -2.4334061415659684e-06, -2.213387630734726e-08, -1.4114883926335278e-10, -6.666901694199329e-13,
        -2.427449850519366e-15, -7.023863479386288e-18
    ],
    "i0": [  # I(0, x)
        1.6029228068079633, 0.638809625651177, 0.03685485969436176, 0.00098287812725148, 1.4983654208927293e-05,
        1.4738449008423848e-07, 1.0114797900674826e-09, 5.1149979020112795e-12, 1.984280622680562e-14,
        6.090516506058955e-17
    ],
    "i1": [  # I(1, x) / x
        0.6417589969911874, 0.1475393201491934, 0.005898742680020788, 0.00011988137174638708, 1.4739165119093128e-06,
        1.2138074968740922e-08, 7.161106692799279e-11, 3.17487931131012e-13, 1.0962998348773076e-15,
        3.0315021220933553e-18
    ],
    "k0e": [  # exp(x) sqrt(x) K(0, x)
        1.2201515410329777, -0.0314481013119645, 0.0015698838857300533, -0.00012849549581627802,
        1.39498137188765e-05, -1.8317555227191195e-06, 2.766813639445015e-07, -4.660489897687948e-08,
        8.574034017414225e-09, -1.6975345093890614e-09, 3.5773972814003283e-10, -7.957489244477396e-11,
        1.8559491149549264e-11, -4.514597883374519e-12, 1.1403405882073441e-12, -2.9800969231481784e-13,
        8.032890775068375e-14, -2.2275133267462965e-14, 6.340076476276646e-15, -1.848593377920907e-15,
        5.5120559994043335e-16, -1.6782311257549006e-16, 5.2103917776435543e-17, -1.6475805939842632e-17,
        5.3004337711773354e-18
    ],
    "k1e": [  # exp(x) sqrt(x) K(1, x)
        1.3603130952422213, 0.10392373657681724, -0.002857816859622779, 0.00019521551847135162,
        -1.936197974166083e-05, 2.406484947837217e-06, -3.5019606030878126e-07, 5.7410841254500495e-08,
        -1.0345762465678097e-08, 2.0150497551970347e-09, -4.1903547593419254e-10, 9.218315187605315e-11,
        -2.129967838427791e-11, 5.139639673482343e-12, -1.2891739609498229e-12, 3.348419666052243e-13,
        -8.976705182010146e-14, 2.4771544242195988e-14, -7.0198370892147685e-15, 2.038703166239861e-15,
        -6.057047270643018e-16, 1.8380935752430455e-16, -5.689462849193648e-17, 1.7940510478863572e-17,
        -5.7567444820733025e-18
    ],
    "ai": [  # Ai(x), -4 <= x <= 2
        0.06078525685079726, 0.18996030881729123, -0.250924387032336, -0.09512014013503055, 0.20236324198370076,
        -0.06418728306305249, -0.026814703186039963, 0.024051904281273857, -0.00413259164974895,
        -0.0020196817905494225, 0.0011250768750654559, -0.00011697538709676606, -7.125499253060682e-05,
        2.8167833107042442e-05, -1.7594742389691562e-06, -1.4587201524168717e-06, 4.388747958436033e-07,
        -1.4627095866197506e-08, -1.9495992841846798e-08, 4.660552774163884e-09, -5.106245117904234e-11,
        -1.8343326708789198e-10, 3.5857642041278925e-11, 2.658241327479573e-13, -1.2805447574198059e-12,
        2.0885896604502407e-13, 4.8741837202287105e-15, -6.895080927885035e-15, 9.51965014570017e-16,
        3.5978991422145034e-17, -2.9502705833721254e-17, 3.483989442459416e-18
    ],
    "ap": [  # P of Ai(-x)
        0.9993708890742778, -0.0006216836584374116, 7.181193774368645e-06, -2.316269813501758e-07,
        1.3216283888528755e-08, -1.0938736172758127e-09, 1.1794620737908535e-10, -1.5518841909929856e-11,
        2.386927411492466e-12, -4.16552889201035e-13, 8.071678110741467e-14, -1.708757321110567e-14,
        3.902945148540815e-15, -9.523976784907064e-16, 2.4632810885752603e-16, -6.709077463464858e-17,
        1.913939683718707e-17, -5.69308436211377e-18
    ],
    "aq": [  # zeta Q of Ai(-x)
        0.06882170556308001, -0.0006089151840832694, 1.3174151014089972e-05, -6.014071912908298e-07,
        4.327537342298499e-08, -4.247731732954726e-09, 5.232285376834493e-10, -7.672290975115024e-11,
        1.2923809452698712e-11, -2.43852975710829e-12, 5.059047237872084e-13, -1.1378513792256329e-13,
        2.7441377308322258e-14, -7.03448211263258e-15, 1.9032114367198917e-15, -5.403040541409308e-16,
        1.6016711026585234e-16, -4.9375274403528065e-17, 1.5773435797781153e-17, -5.206129581838458e-18,
        1.7706787947400164e-18, -6.191669620783275e-19
    ],
    "ah": [  # exp(zeta) x^(1/4) Ai(x)
        0.2776956095117059, -0.004172967562045923, 0.00020669586013998011, -1.7280997841068207e-05,
        1.928052166797157e-06, -2.605774398776262e-07, 4.051516883512395e-08, -7.022240440986223e-09,
        1.3286081997701028e-09, -2.703558037129289e-10, 5.852297782838998e-11, -1.3363584416519756e-11,
        3.1978547149289153e-12, -7.976813559559603e-13, 2.0651347541109665e-13, -5.52899978215978e-14,
        1.526165619010181e-14, -4.331979304955806e-15, 1.2616239319898747e-15, -3.7626070399357594e-16,
        1.1471616156264618e-16, -3.570144365109208e-17, 1.1326462271400218e-17, -3.658761589006902e-18,
        1.2021046148071358e-18
    ],
}


def _sum(name: str, t: torch.Tensor) -> torch.Tensor:
    """Returns a series of Chebyshev polynomials of t, -1 <= t <= 1, by Clenshaw's recurrence."""
    first, *rest = _SERIES[name]
    one, other, twice = torch.zeros_like(t), torch.zeros_like(t), 2 * t
    for coefficient in reversed(rest):
        one, other = twice * one - other + coefficient, one
    return t * one - other + first


def _number(value: float) -> torch.Tensor:
    return torch.scalar_tensor(value, dtype=torch.float64)


def _take_float(x: torch.Tensor | float) -> torch.dtype:
    """Returns the type of a function's result."""
    is_float = isinstance(x, torch.Tensor) and x.is_floating_point()
    return x.dtype if is_float else torch.get_default_dtype()


def _in_f64(function: Callable) -> Callable:
    @functools.wraps(function)
    def decompose(x: torch.Tensor) -> torch.Tensor:
        return function(x.to(torch.float64)).to(_take_float(x))

    return decompose


# J, Y, I, K


def _wave(order: int, is_second: bool, x: torch.Tensor) -> torch.Tensor:
    """Returns J or Y of x >= 8."""
    inverse = 8 / x
    t = 2 * inverse * inverse - 1
    p, q = _sum(f"p{order}", t), _sum(f"q{order}", t) / x
    # Sums of sin(x) and cos(x): x - pi/4 would be rounded.
    total, difference = torch.cos(x) + torch.sin(x), torch.sin(x) - torch.cos(x)
    cosine, sine = (total, difference) if order == 0 else (difference, -total)
    return (p * sine + q * cosine if is_second else p * cosine - q * sine) / torch.sqrt(math.pi * x)


def _bessel(order: int, is_second: bool) -> Callable:
    def compute(x: torch.Tensor) -> torch.Tensor:
        size = x if is_second else x.abs()
        is_small = size <= 8
        near = torch.where(is_small, size, _number(8))
        far = _wave(order, is_second, torch.where(is_small, _number(8), size))
        t = near * near / 32 - 1
        small = _sum(f"j{order}", t) * (near if order else 1)
        if is_second:
            logarithm = small * torch.log(near)
            if order:
                logarithm = logarithm - 1 / near
            small = logarithm * (2 / math.pi) + _sum(f"y{order}", t) * (near if order else 1)
            small = torch.where(x == 0, _number(-float("inf")), small)
        value = torch.where(is_small, small, far)
        return torch.where(x < 0, -value, value) if order and not is_second else value

    return _in_f64(compute)


def _modified_first(order: int) -> Callable:
    function = FUNCTIONS.bessel(scaled=False, odd=bool(order))
    return _in_f64(lambda x: torch.where(x.abs() == float("inf"), _number(float("nan")), function(x)))


def _modified_second(order: int, is_scaled: bool) -> Callable:
    def compute(x: torch.Tensor) -> torch.Tensor:
        is_small = x <= 2
        near, far = torch.where(is_small, x, _number(2)), torch.where(is_small, _number(2), x)
        t = near * near / 2 - 1
        logarithm = torch.log(near / 2) * _sum(f"i{order}", t)
        small = _sum("k1", t) / near + logarithm * near if order else _sum("k0", t) - logarithm
        small = torch.where(x == 0, _number(float("inf")), small)
        large = _sum(f"k{order}e", 4 / far - 1) / torch.sqrt(far)
        if is_scaled:
            small = small * torch.exp(near)
        else:
            large = large * torch.exp(-far)
        return torch.where(is_small, small, large)

    return _in_f64(compute)


@_in_f64
def _spherical_bessel(x: torch.Tensor) -> torch.Tensor:
    value = torch.where(x == 0, _number(1), torch.sin(x) / torch.where(x == 0, _number(1), x))
    return torch.where(x.abs() == float("inf"), _number(0), value)


@_in_f64
def _airy(x: torch.Tensor) -> torch.Tensor:
    is_low, is_high = x < -4, x > 2
    middle = _sum("ai", (torch.where(is_low | is_high, _number(0), x) + 1) / 3)
    size = torch.where(is_low, -x, _number(4))
    zeta = size * torch.sqrt(size) * (2 / 3)
    ratio = 16 / 3 / zeta
    t = 2 * ratio * ratio - 1
    sine, cosine = torch.sin(zeta), torch.cos(zeta)
    low = _sum("ap", t) * (sine + cosine) - _sum("aq", t) / zeta * (cosine - sine)
    low = low * math.sqrt(0.5 / math.pi) / torch.sqrt(torch.sqrt(size))
    size = torch.where(is_high, x, _number(2))
    zeta = size * torch.sqrt(size) * (2 / 3)
    high = _sum("ah", 8 * math.sqrt(2) / 3 / zeta - 1) * torch.exp(-zeta) / torch.sqrt(torch.sqrt(size))
    value = torch.where(is_low, low, torch.where(is_high, high, middle))
    return torch.where((x != x) | (x == float("inf")), _number(float("nan")), value)


# Zeta


def _zeta(x: torch.Tensor | float, q: torch.Tensor | float) -> torch.Tensor:
    """Returns the sum of (q + k)^-x over k >= 0. For q <= 0: the sum over all integers k, less the terms of k < 0."""
    dtype = torch.result_type(x, q)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    x, q = (each.to(torch.float64) if isinstance(each, torch.Tensor) else _number(each) for each in (x, q))
    is_whole, is_below = torch.floor(x) == x, q <= 0
    below = torch.where(is_below & (q > -float("inf")), q, _number(-1))  # -inf is a pole, as each integer
    turn = below - torch.round(below)
    is_pole = turn == 0
    turn = torch.where(is_pole, _number(0.5), turn)
    power = torch.where(is_whole & (x > 1), x, _number(2))
    sign = torch.where(power == 2 * torch.floor(power / 2), _number(1), _number(-1))
    lattice = turn.abs() ** -power * torch.where(turn < 0, sign, _number(1)) + FUNCTIONS.zeta(power, 1 + turn)
    lattice = lattice + sign * (FUNCTIONS.zeta(power, 1 - turn) - FUNCTIONS.zeta(power, 1 - below))
    lattice = torch.where(is_whole, lattice, _number(float("nan")))
    lattice = torch.where(is_pole, _number(float("inf")), lattice)
    value = torch.where(is_below & ~(x <= 1), lattice, FUNCTIONS.zeta(x, torch.where(is_below, _number(1), q)))
    return value.to(dtype)


# The normal distribution


def _log_ndtr(x: torch.Tensor) -> torch.Tensor:
    is_low = x < -1
    low = torch.where(is_low, x, _number(-1))
    tail = torch.log(FUNCTIONS.erfcx(low * -math.sqrt(0.5)) * 0.5) - low * low / 2
    high = torch.where(is_low, _number(0), x)
    return torch.where(is_low, tail, torch.log1p(FUNCTIONS.erfc(high * math.sqrt(0.5)) * -0.5))


@_in_f64
def _ndtri(p: torch.Tensor) -> torch.Tensor:
    """Newton's steps for the logarithm of the tail, from a rational estimate (Abramowitz and Stegun 26.2.23)."""
    inside = (p > 0) & (p < 1)
    given = stop_gradient(torch.where(inside, p, _number(0.5)))
    is_upper = given > 0.5
    tail = torch.where(is_upper, 1 - given, given)
    logarithm = torch.log(tail)
    t = torch.sqrt(-2 * logarithm)
    y = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    for _ in range(3):
        scaled = FUNCTIONS.erfcx(y * math.sqrt(0.5))
        y = y + (torch.log(scaled * 0.5) - y * y / 2 - logarithm) * scaled * math.sqrt(math.pi / 2)
    # Results near 0 need more than the tail's logarithm.
    centre = FUNCTIONS.erfinv(torch.where(tail > 0.1, 2 * given - 1, _number(0))) * math.sqrt(2)
    value = torch.where(tail > 0.1, centre, torch.where(is_upper, y, -y))
    # The term that is added is 0 and has the gradient: the slope of the inverse function.
    slope = torch.exp(torch.clamp(value * value / 2, max=700)) * math.sqrt(2 * math.pi)
    value = value + (torch.where(inside, p, _number(0.5)) - given) * slope
    # A product, whose gradient is infinite or NaN as well.
    factor = torch.where((p == 0) | (p == 1), _number(float("inf")), _number(float("nan")))
    limit = torch.where(p == 0, p - 1, p) * torch.where(inside, _number(1), factor)
    return torch.where(inside, value, limit)


_BESSEL = {
    aten.special_bessel_j0.default: _bessel(0, is_second=False),
    aten.special_bessel_j1.default: _bessel(1, is_second=False),
    aten.special_bessel_y0.default: _bessel(0, is_second=True),
    aten.special_bessel_y1.default: _bessel(1, is_second=True),
    aten.special_modified_bessel_i0.default: _modified_first(0),
    aten.special_modified_bessel_i1.default: _modified_first(1),
    aten.special_modified_bessel_k0.default: _modified_second(0, is_scaled=False),
    aten.special_modified_bessel_k1.default: _modified_second(1, is_scaled=False),
    aten.special_scaled_modified_bessel_k0.default: _modified_second(0, is_scaled=True),
    aten.special_scaled_modified_bessel_k1.default: _modified_second(1, is_scaled=True),
    aten.special_spherical_bessel_j0.default: _spherical_bessel,
    aten.special_airy_ai.default: _airy,
}
FIXED = set(_BESSEL)
TABLE = _BESSEL | {
    aten.special_zeta.default: _zeta,
    aten.special_zeta.self_scalar: _zeta,
    aten.special_zeta.other_scalar: _zeta,
    aten.special_ndtri.default: _ndtri,
    aten.special_log_ndtr.default: _in_f64(_log_ndtr),
}
