#!/usr/bin/env python3
"""JAX's operations at their edges through weir.jax: values and gradients beside JAX's own in f64.

    test/suites/jax_ops.py --filter='^op:lgamma' --dtypes=f32,f64

Cases are "op:NAME" (values), "step:NAME" (gradients by Weir) and "grad:NAME" (JAX's gradients, compiled), each with all
types and inputs that it has: NaN, infinities, zeros of both signs, equal elements, empty, of size 1, and odd. Many
cases are one artifact; if it is refused or fails, its halves are tried, down to single ones. An error is right up to a
few times that of JAX in the same type.
"""

import collections
import itertools
import json
import os
import pathlib
import re
import signal
import sys
import time
import traceback
import warnings

warnings.filterwarnings("ignore")

from common import can_import, parse_options  # noqa: E402, I001

if not all(map(can_import, ("jax", "torch_mlir"))):
    print("skipped: needs jax and torch_mlir")
    sys.exit(77)
os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax  # noqa: E402
import numpy  # noqa: E402
from jax import lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

import weir  # noqa: E402
import weir.jax  # noqa: E402

jax.config.update("jax_enable_x64", True)
VERDICTS = ("right", "wrong", "refused", "raised", "not compared")
DTYPES = {"f32": "float32", "f64": "float64", "bf16": "bfloat16", "f16": "float16", "i32": "int32", "i64": "int64",
          "i8": "int8", "u8": "uint8", "u32": "uint32", "bool": "bool"}
FLOATS, INTEGERS = ("f32", "f64", "bf16"), ("i32", "i8", "u8")
BUNDLE = 48  # cases of one artifact
EDGES = numpy.array([0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2, 2.5, -2.5, 3, -3, 1e-3, -1e-3, 1e-20, -1e-20, 7.3, -7.3,
        0.999,
                     -0.999, 20, -20, 88, -88, 1e10, -1e10, numpy.inf, -numpy.inf, numpy.nan])
# Points where functions are differentiable and none is infinite, and those of kinks and poles.
SMOOTH = numpy.array([0.3, -0.3, 0.7, -0.7, 1.3, -1.3, 2.2, -2.2, 3.7, -3.7, 0.05, -0.05, 6.1, -6.1, 0.999, 12.5])
GRADED = numpy.concatenate([SMOOTH, [0, -0.0, 1, -1, 2, -2, 30, -30, numpy.inf, -numpy.inf, numpy.nan]])
WHOLE = numpy.array([0, 1, -1, 2, 3, -3, 5, 7, -7, 31, 64, 100, -100, 127, -128])


# Gradients that differ on purpose, by the reason: an expression of "kind:name label" that matches as a whole.
KNOWN = {
    "Weir shares the gradient of a maximum equally, and gives NaN none of its own; JAX's depends on a tree of pairs":
        r"step:cum(max|min) .*|step:reduce_window (max|min) gradient edges|step:jnp\.(max|min|ptp) gradient edges.*",
    "JAX's slope of a remainder is by the rounded quotient, Weir's by that of the remainder":
        r"step:(rem|jnp\.(fmod|mod|remainder)) gradient",
    "JAX's derivative at the origin, where there is none, is that of the larger operand":
        r"step:jnp\.hypot gradient",
    "JAX's derivative is NaN or another number beside an infinity, a NaN or at 0 to a power":
        r"step:(cum(prod|logsumexp)|jnp\.prod) gradient (edges|long).*|step:jnp\.(vander|logaddexp2?) .*|"
        r"step:logsumexp gradient edges.*|(step|grad):bessel_i1e .*",
}
# Functions whose slope JAX has as NaN or infinite at a pole or at the end of their domain, by its formula.
POLES = r"acosh|digamma|lgamma|rsqrt|integer_pow-3|pow|jnp\.(float_)?power|special\.(gammaln|digamma|betaln|factorial)"


def find_reason(kind, case):
    """Returns the reason for which a case is not compared, or None."""
    return next((why for why, names in KNOWN.items() if re.fullmatch(names, f"{kind}:{case.name} {case.label}")), None)


class Case:
    """A function and its arguments. `graded`: places of the arguments that gradients are taken by."""

    def __init__(self, name, label, function, arguments, graded=(), scaled=False):
        self.name, self.label, self.function, self.arguments = name, label, function, arguments
        self.graded, self.scaled, self.exact = graded, scaled, name == "bitcast"


def draw(*shape, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape)


def cast(value, label):
    """Returns an array of a type that keeps nothing undefined: integers from what fits."""
    value = numpy.asarray(value)
    dtype = jnp.dtype(DTYPES[label])
    if label == "bool":
        return value > 0
    if jnp.issubdtype(dtype, jnp.integer):
        limits = jnp.iinfo(dtype)
        value = numpy.clip(numpy.nan_to_num(value), -1000, 1000).round()
        return numpy.clip(value, int(limits.min), int(limits.max)).astype(dtype)
    return value.astype(dtype)


def pointwise(name, function, count=1, floats=FLOATS, integers=(), low=None, high=None, graded=True):
    """Yields the cases of a function of `count` arrays, element by element, at all pairs of edges."""
    def within(values):
        values = values[(values >= low) | numpy.isnan(values)] if low is not None else values
        return values[(values <= high) | numpy.isnan(values)] if high is not None else values

    for label in (*floats, *integers):
        edges = within(EDGES) if label in floats else WHOLE
        rows = [edges] if count == 1 else [each.reshape(-1) for each in numpy.meshgrid(*[edges] * count)]
        shapes = {"edges": rows, "empty": [numpy.zeros((0, 3))] * count, "one": [numpy.full((1,), 0.75)] * count}
        if label in floats:
            shapes["odd"] = [within(draw(7, 3, seed=k) * 3)[:7] if low is None else
                             numpy.abs(draw(7, 3, seed=k)) * 0.9 + low for k in range(count)]
        for kind, given in shapes.items():
            yield Case(name, f"{label} {kind}", function, [cast(each, label) for each in given])
    if graded:
        points = within(GRADED)
        rows = [points] if count == 1 else [each.reshape(-1) for each in numpy.meshgrid(*[points] * count)]
        yield Case(name, "gradient", function, rows, tuple(range(count)))


def shaped(name, function, *inputs, dtypes=("f32", "f64"), graded=(0,), label=""):
    """Yields the cases of a function of given arrays, of which the first len(graded) are of the type."""
    for kind in dtypes:
        yield Case(name, f"{kind} {label}".strip(), function,
                   [cast(each, kind) if numpy.asarray(each).dtype == numpy.float64 else each for each in inputs],
                   scaled=True)
    if graded:
        yield Case(name, f"gradient {label}".strip(), function, list(inputs), tuple(graded), scaled=True)


NAN, INF = numpy.nan, numpy.inf
ROWS = numpy.array([[3, -1, NAN, 0.0, -0.0, 7, 7], [2, INF, -INF, 2, 5, -3, 2], [1, 2, 3, 4, 5, 6, 7],
                    [-INF, -INF, 1, 2, 1, 2, -INF], [0, 2, 0, 3, 1, 0, 2]])
TIES = numpy.array([[2, 1, 2, 0, 2, -1, 0], [1, 1, 1, 1, 1, 1, 1], [-3, 5, 5, 2, 2, -3, 4.0]])
PLACES = numpy.array([4, 0, 4, -1, 9, 2], numpy.int32)


def list_elementwise():
    names = ("abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf erf_inv erfc "
             "exp exp2 expm1 floor is_finite lgamma log log1p logistic neg reciprocal round rsqrt sign sin sinh sqrt "
             "square tan tanh").split()
    integers = {"abs", "neg", "sign", "square"}
    flat = {"is_finite", "floor", "ceil", "round", "sign"}
    for name in names:
        yield from pointwise(name, getattr(lax, name), integers=INTEGERS if name in integers else (),
                                    graded=name not in flat)
    yield from pointwise("round_even", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), graded=False)
    for power in (-3, -1, 0, 1, 2, 3, 5):
        yield from pointwise(f"integer_pow{power}", lambda x, power=power: lax.integer_pow(x, power),
                                    integers=INTEGERS if power >= 0 else ())
    for name in ("population_count", "clz", "bitwise_not"):
        yield from pointwise(name, getattr(lax, name), floats=(), integers=("i32", "i64", *INTEGERS), graded=False)
    for name in ("add", "sub", "mul", "div", "rem", "max", "min"):
        yield from pointwise(name, getattr(lax, name), 2, integers=INTEGERS)
    for name in ("pow", "atan2"):
        yield from pointwise(name, getattr(lax, name), 2)
    yield from pointwise("nextafter", lax.nextafter, 2, floats=("f32", "f64"), graded=False)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield from pointwise(name, getattr(lax, name), 2, integers=INTEGERS, graded=False)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right_logical",
                 "shift_right_arithmetic"):
        yield from pointwise(name, getattr(lax, name), 2, floats=(), integers=("i32", *INTEGERS), graded=False)
    for name in ("igamma", "igammac", "zeta", "polygamma"):
        yield from pointwise(name, getattr(lax, name), 2, floats=("f32", "f64"), low=0)
    yield from pointwise("betainc", lambda a, b, x: lax.betainc(a, b, x / (1 + x)), 3, floats=("f32", "f64"), low=0.05,
                                high=30)
    yield from pointwise("clamp", lambda x: lax.clamp(-1.0, x, 2.0) if x.dtype == jnp.float64 else lax.clamp(
        x.dtype.type(-1), x, x.dtype.type(2)))
    yield from pointwise("select", lambda x, y: lax.select(x > y, x, y), 2, integers=INTEGERS)
    for name in ("hypot logaddexp logaddexp2 copysign heaviside fmod mod floor_divide arctan2 power fmax fmin "
                 "float_power ldexp").split():
        if name == "ldexp":
            yield from pointwise(f"jnp.{name}", lambda x: jnp.ldexp(x, jnp.int32(3)), floats=("f32", "f64"))
            continue
        floats = ("f32", "f64") if name == "float_power" else FLOATS
        yield from pointwise(f"jnp.{name}", getattr(jnp, name), 2, floats=floats, graded=name not in (
            "heaviside", "floor_divide"))
    for name in ("gcd", "lcm", "mod", "floor_divide", "power"):
        yield from pointwise(f"jnp.{name}", getattr(jnp, name) if name != "power" else lambda x, y: jnp.power(
            x, jnp.abs(y) % 8), 2, floats=(), integers=("i32", "u8"), graded=False)
    for name in ("sinc i0 nan_to_num trunc rint deg2rad signbit isnan isposinf cbrt log2 log10 spacing "
                 "reciprocal positive").split():
        floats = ("f32", "f64") if name in ("spacing", "i0") else FLOATS
        yield from pointwise(f"jnp.{name}", getattr(jnp, name), floats=floats, graded=name not in (
            "spacing", "signbit", "isnan", "isposinf", "rint", "trunc"))
    for name in ("frexp", "modf", "divmod"):
        function = getattr(jnp, name)
        yield from pointwise(f"jnp.{name}", function, 2 if name == "divmod" else 1, floats=("f32", "f64"), graded=False)
    special = jax.scipy.special
    for name in ("gammaln digamma erf erfc erfinv expit logit ndtr ndtri log_ndtr i0 i0e i1 i1e entr xlog1py xlogy "
                 "betaln gamma gammainc gammaincc kl_div rel_entr expi exp1 factorial").split():
        count = 2 if name in ("xlog1py", "xlogy", "betaln", "gammainc", "gammaincc", "kl_div", "rel_entr") else 1
        yield from pointwise(f"special.{name}", getattr(special, name), count, floats=("f32", "f64"),
                                    low=0 if name in ("gammainc", "gammaincc") else None)
    for name in ("celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu log_sigmoid mish relu relu6 "
                 "selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid squareplus swish tanh "
                 "identity").split():
        yield from pointwise(f"nn.{name}", getattr(jax.nn, name))
    yield from pointwise("nn.gelu_exact", lambda x: jax.nn.gelu(x, approximate=False))


def list_reductions():
    kinds = ("f32", "f64", "bf16", "i32", "u8")
    for name in ("sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "mean", "var", "std", "ptp", "median",
                 "nansum", "nanmax", "nanmean", "count_nonzero", "nanargmax", "nanmedian"):
        function = getattr(jnp, name)
        dtypes = kinds if name in ("sum", "prod", "max", "min", "argmax", "argmin") else ("f32", "f64")
        is_flat = name in ("argmax", "argmin", "any", "all", "count_nonzero", "nanargmax")
        for axis in (0, 1, None):
            for label, values in (("edges", ROWS), ("ties", TIES), ("one", numpy.full((1, 1), 2.5))):
                if name == "nanargmax" and label == "edges":
                    continue
                yield from shaped(f"jnp.{name}", lambda x, f=function, a=axis: f(x, axis=a), values, dtypes=dtypes,
                                       graded=() if is_flat else (0,), label=f"{label} {axis}")
        if name in ("sum", "prod", "any", "all", "mean", "var"):
            yield from shaped(f"jnp.{name}", lambda x, f=function: f(x, axis=0), numpy.zeros((0, 3)), graded=(),
                                   label="of none")
        yield from shaped(f"jnp.{name}", lambda x, f=function: f(x, axis=0), numpy.zeros((3, 0)), graded=(),
                               label="empty")
    for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
        yield from shaped(name, lambda x, f=getattr(lax, name): f(x, axes=(0, 1)), ROWS, graded=())
    for name in ("reduce_and", "reduce_or", "reduce_xor"):
        yield from shaped(name, lambda x, f=getattr(lax, name): f(x, (1,)), TIES, dtypes=("i32", "u8", "bool"),
                graded=())
    yield from shaped("reduce", lambda x: lax.reduce(x, x.dtype.type(1), lambda a, b: a * b, (1,)), TIES)
    yield from shaped("reduce_two", lambda x: lax.reduce((x, x), (x.dtype.type(0), x.dtype.type(1)), lambda a, b: (
        a[0] + b[0], a[1] * b[1]), (1,)), TIES, graded=())
    for axis in (0, 1):
        for label, values in (("edges", ROWS), ("ties", TIES)):
            yield from shaped("logsumexp", lambda x, a=axis: jax.nn.logsumexp(x, axis=a), values,
                    label=f"{label} {axis}")
            for name in ("softmax", "log_softmax", "standardize"):
                yield from shaped(f"nn.{name}", lambda x, f=getattr(jax.nn, name), a=axis: f(x, axis=a), values,
                                       dtypes=FLOATS, label=f"{label} {axis}")
    yield from shaped("nn.softmax where", lambda x: jax.nn.softmax(x, where=x > 1), TIES)
    yield from shaped("nn.glu", lambda x: jax.nn.glu(x[:, :6]), TIES)
    yield from shaped("nn.one_hot", lambda i: jax.nn.one_hot(i, 5), PLACES, dtypes=("f32",), graded=())
    for q in (0.25, 0.5, 1.0):
        for method in ("linear", "lower", "higher", "nearest", "midpoint"):
            yield from shaped("jnp.quantile", lambda x, q=q, m=method: jnp.quantile(x, q, axis=1, method=m), TIES,
                                   label=f"{q} {method}", graded=(0,) if method == "linear" else ())
    yield from shaped("jnp.quantile", lambda x: jnp.quantile(x, 0.3, axis=1), ROWS, label="edges")
    yield from shaped("jnp.percentile", lambda x: jnp.percentile(x, jnp.array([10.0, 50.0]), axis=0), TIES)
    yield from shaped("jnp.average", lambda x: jnp.average(x, axis=1, weights=jnp.arange(1.0, 8.0)), TIES)
    yield from shaped("jnp.cov", jnp.cov, TIES)
    yield from shaped("jnp.corrcoef", jnp.corrcoef, TIES[::2])


def list_cumulative():
    long = draw(2, 1100)
    long[0, 700] = NAN
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
        function = getattr(lax, name)
        dtypes = ("f32", "f64", "bf16", "i32") if name != "cumlogsumexp" else FLOATS
        for reverse, axis in itertools.product((False, True), (0, 1)):
            for label, values in (("edges", ROWS), ("ties", TIES), ("one", numpy.full((1, 1), 2.5)), ("empty",
                    TIES[:0])):
                yield from shaped(name, lambda x, f=function, a=axis, r=reverse: f(x, a, reverse=r), values,
                                       dtypes=dtypes, label=f"{label} {axis} {'back' if reverse else ''}".strip())
            if axis == 1:
                values = 1 + 0.01 * long if name == "cumprod" else long
                yield from shaped(name, lambda x, f=function, r=reverse: f(x, 1, reverse=r), values, dtypes=FLOATS,
                                       label="long back" if reverse else "long")
    yield from shaped("jnp.nancumsum", lambda x: jnp.nancumsum(x, 1), ROWS)
    for name, combine in (("add", jnp.add), ("mul", jnp.multiply), ("max", jnp.maximum)):
        for reverse in (False, True):
            for size in (1, 2, 3, 5, 7):
                yield from shaped("associative_scan", lambda x, c=combine, r=reverse: lax.associative_scan(
                    c, x, reverse=r, axis=1), ROWS[2:, :size],
                    label=f"{name} {size} {'back' if reverse else ''}".strip())
    yield from shaped("associative_scan pair", lambda x: lax.associative_scan(
        lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x), axis=1), TIES)
    yield from shaped("jacfwd cumsum", lambda x: jax.jacfwd(jnp.cumsum)(x), draw(5), graded=())
    yield from shaped("hessian cumprod", lambda x: jax.hessian(lambda x: jnp.cumprod(x).sum())(x), draw(4), graded=())
    yield from shaped("jnp.diff", lambda x: jnp.diff(x, n=2, axis=1), ROWS)
    yield from shaped("jnp.trapezoid", lambda x: jnp.trapezoid(x, axis=1), TIES)
    yield from shaped("jnp.ediff1d", jnp.ediff1d, TIES)
    yield from shaped("jnp.gradient", lambda x: jnp.gradient(x, axis=1), TIES)


def list_indexing():
    x, u = draw(5, 3), draw(6, 3, seed=1)
    for mode in ("fill", "clip", "promise_in_bounds", "wrap"):
        places = PLACES if mode in ("fill", "clip") else PLACES % 5
        yield from shaped("gather", lambda x, i, m=mode: x.at[i].get(mode=m), x, places, dtypes=("f32", "i32", "bf16"),
                               label=mode)
        if mode == "wrap":
            continue
        for kind in ("add", "multiply", "min", "max", "set", "divide", "power"):
            if kind in ("divide", "power"):
                continue
            yield from shaped(f"scatter {kind}", lambda x, u, i, k=kind, m=mode: getattr(x.at[i], k)(u, mode=m), x, u,
                                   places, dtypes=("f32", "bf16", "i32"), graded=(0, 1) if kind in ("add",
                                   "set") else (),
                                   label=mode)
    yield from shaped("scatter apply", lambda x, i: x.at[i].apply(jnp.sin), x, PLACES[:2])
    yield from shaped("scatter NaN", lambda x, i: x.at[i].add(jnp.array([NAN, INF, -INF, 1.0, 2.0, 3.0], x.dtype)),
                           draw(5), PLACES)
    for kind in ("min", "max"):
        yield from shaped(f"scatter {kind} NaN", lambda x, i, k=kind: getattr(x.at[i], k)(
            jnp.array([NAN, 5.0, -5.0, 1.0, 2.0, NAN], x.dtype)), draw(5), PLACES, graded=())
    yield from shaped("scatter none", lambda x: x.at[jnp.zeros((0,), jnp.int32)].add(jnp.zeros((0, 3), x.dtype)), x)
    yield from shaped("gather none", lambda x: x[jnp.zeros((0,), jnp.int32)].sum() + x.sum(), x)
    starts = numpy.array([[0, 0], [4, 2], [-1, 1], [100, -100]], numpy.int32)
    for k, start in enumerate(starts):
        yield from shaped("dynamic_slice", lambda x, s: lax.dynamic_slice(x, (s[0], s[1]), (2, 2)), x, start,
                               dtypes=("f32", "i32"), label=str(k))
        yield from shaped("dynamic_update_slice", lambda x, u, s: lax.dynamic_update_slice(x, u[:2, :2], (s[0], s[1])),
                x,
                               u, start, dtypes=("f32", "i32"), graded=(0, 1), label=str(k))
    yield from shaped("dynamic_slice size 0", lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (0, 2)), x, PLACES[:2],
                           graded=())
    yield from shaped("dynamic_index", lambda x, i: lax.dynamic_index_in_dim(x, i[3], 0), x, PLACES)
    yield from shaped("take_along_axis", lambda x, i: jnp.take_along_axis(x, i[:5, None] % 5, 0), x, PLACES)
    yield from shaped("jnp.take", lambda x, i: jnp.take(x, i, axis=0, mode="fill", fill_value=7), x, PLACES)
    yield from shaped("segment_sum", lambda x, i: jax.ops.segment_sum(x, i[:5], 5), x, PLACES)
    yield from shaped("segment_max", lambda x, i: jax.ops.segment_max(x, i[:5] % 3, 3), x, PLACES)
    yield from shaped("jnp.bincount", lambda i: jnp.bincount(i, length=6), abs(PLACES), dtypes=("f32",), graded=())
    yield from shaped("jnp.bincount weights", lambda w, i: jnp.bincount(i, w, length=6), draw(6), abs(PLACES))
    for side, method in itertools.product(("left", "right"), ("scan", "scan_unrolled", "sort", "compare_all")):
        yield from shaped("jnp.searchsorted", lambda a, v, s=side, m=method: jnp.searchsorted(a, v, side=s, method=m),
                               numpy.array([-1, 0, 0, 1, 2, 2, NAN]), numpy.array([0, -2, 2, 1.5, NAN, 3, -0.0, INF]),
                               graded=(), label=f"{side} {method}")
    yield from shaped("jnp.searchsorted", jnp.searchsorted, numpy.zeros((0,)), draw(3), graded=(), label="empty")
    yield from shaped("jnp.digitize", jnp.digitize, EDGES, numpy.array([-1.0, 0, 1, 2.5]), graded=())
    yield from shaped("jnp.histogram", lambda x: jnp.histogram(x, bins=4, range=(-2, 2))[0], draw(20), graded=())
    yield from shaped("jnp.interp", lambda x: jnp.interp(x, jnp.array([-1.0, 0, 2], x.dtype), jnp.array(
        [3.0, 1, 2], x.dtype)), draw(9))
    yield from shaped("jnp.unique", lambda x: jnp.unique(x, size=6, fill_value=9), TIES, graded=())
    yield from shaped("jnp.nonzero", lambda x: jnp.nonzero(x, size=5, fill_value=0), ROWS, graded=())
    yield from shaped("jnp.argwhere", lambda x: jnp.argwhere(x > 1, size=5), TIES, graded=())
    yield from shaped("jnp.isin", lambda x: jnp.isin(x, jnp.array([2.0, NAN, 7], x.dtype)), ROWS, graded=())
    for name in ("roll", "flip", "rot90", "tril", "triu", "diag", "diagonal", "trace", "kron", "vander", "select"):
        function = {"roll": lambda x: jnp.roll(x, (1, -2), (0, 1)), "kron": lambda x: jnp.kron(x[:2, :2], x),
                    "vander": lambda x: jnp.vander(x[0], 4), "diag": lambda x: jnp.diag(x[0], 1),
                    "select": lambda x: jnp.select([x > 1, x < 0], [x, -x], 5.0)}.get(name, getattr(jnp, name))
        yield from shaped(f"jnp.{name}", function, ROWS)
    yield from shaped("jnp.piecewise", lambda x: jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, jnp.sqrt]), draw(5))
    yield from shaped("jnp.put", lambda x: jnp.put_along_axis(x, jnp.array([[1], [0], [2], [1], [0]]), 9.0, 1,
                                                                  inplace=False), x)
    yield from shaped("jnp.insert", lambda x: jnp.insert(x, jnp.array([1, 3]), 9.0, axis=0), x)
    yield from shaped("jnp.delete", lambda x: jnp.delete(x, 1, axis=0), x)
    yield from shaped("jnp.repeat", lambda x: jnp.repeat(x, jnp.array([1, 0, 2, 1, 1]), axis=0, total_repeat_length=5),
            x)
    yield from shaped("jnp.split", lambda x: jnp.array_split(x, 3, axis=0), x)


def list_sorting():
    for label, values in (("edges", ROWS), ("ties", TIES), ("one", numpy.full((1, 1), 2.5)), ("empty", TIES[:, :0])):
        for axis in (0, 1):
            kinds = ("f32", "f64", "bf16", "i32", "u8")
            yield from shaped("sort", lambda x, a=axis: lax.sort(x, dimension=a), values, dtypes=kinds,
                                   label=f"{label} {axis}", graded=(0,) if label != "empty" else ())
            yield from shaped("jnp.argsort", lambda x, a=axis: jnp.argsort(x, axis=a, descending=True), values,
                                   dtypes=kinds, graded=(), label=f"{label} {axis}")
        yield from shaped("sort keys", lambda x: lax.sort((x > 1, x, -x), dimension=1, num_keys=2), values, graded=(),
                               label=label)
        if label != "empty":
            k = 1 if label == "one" else 3
            yield from shaped("top_k", lambda x, k=k: lax.top_k(x, k), values, dtypes=kinds, label=label)
            for name in ("approx_max_k", "approx_min_k") if label != "edges" else ():  # NaN has no place there
                yield from shaped(name, lambda x, k=k, f=getattr(lax, name): f(x, k), values, dtypes=("f32", "bf16"),
                                       label=label)
        yield from shaped("jnp.lexsort", lambda x: jnp.lexsort((x, -x)), values, graded=(), label=label)
    yield from shaped("top_k 0", lambda x: lax.top_k(x, 0), TIES, graded=())
    yield from shaped("jnp.partition", lambda x: jnp.partition(x, 2), TIES)
    yield from shaped("jnp.argpartition", lambda x: jnp.sort(jnp.argpartition(x, 2)[:, :2]), TIES[2:], graded=())
    yield from shaped("jnp.rank", lambda x: jax.scipy.stats.rankdata(x), draw(9), graded=())


def list_windows():
    x = draw(2, 7, 5)
    rough = numpy.round(x)
    for name, start, combine in (("add", 0.0, lax.add), ("max", -INF, lax.max), ("min", INF, lax.min), ("mul", 1.0,
            lax.mul)):
        for k, options in enumerate((
                {"window_strides": (1, 2, 1), "padding": ((0, 0), (1, 1), (0, 1))},
                {"window_strides": (1, 1, 1), "padding": "SAME"}, {"window_strides": (2, 3, 3), "padding": "VALID"},
                {"window_strides": (1, 1, 1), "padding": "VALID", "window_dilation": (1, 2, 1)},
                {"window_strides": (1, 2, 1), "padding": "VALID", "base_dilation": (1, 2, 1)})):
            yield from shaped(f"reduce_window {name}", lambda x, s=start, c=combine, o=options: lax.reduce_window(
                x, x.dtype.type(s), c, (1, 3, 2), **o), rough, dtypes=FLOATS, label=str(k),
                graded=(0,) if name != "mul" else ())
    edges = numpy.tile(ROWS, (1, 1, 1))
    for name, start, combine in (("add", 0.0, lax.add), ("max", -INF, lax.max), ("min", INF, lax.min)):
        yield from shaped(f"reduce_window {name}", lambda x, s=start, c=combine: lax.reduce_window(
            x, x.dtype.type(s), c, (1, 2, 3), (1, 1, 1), "SAME"), edges, label="edges")
    low = -(2**31)
    yield from shaped("reduce_window max", lambda x: lax.reduce_window(x, jnp.int32(low), lax.max, (1, 2, 2), (1, 1, 1),
                                                                           "SAME"), rough, dtypes=("i32",), graded=(),
                                                                           label="integers")
    for k, config in enumerate((((0, 0, 0), (1, 2, 0), (0, 0, 0)), ((0, 0, 0), (-1, 2, 1), (1, -1, 0)), ((0, 1, 0), (1,
            -2, 2),
                                                                                                        (0, 0, 3)))):
        yield from shaped("pad", lambda x, c=config: lax.pad(x, x.dtype.type(3), c), x, dtypes=("f32", "i32", "bf16"),
                               label=str(k))
    yield from shaped("pad", lambda x: lax.pad(x[:, :0], x.dtype.type(3), ((0, 0, 0), (1, 2, 0), (0, 0, 1))), x,
                           label="empty", graded=())
    for mode in ("edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "mean"):
        yield from shaped("jnp.pad", lambda x, m=mode: jnp.pad(x, ((0, 0), (1, 2), (3, 0)), mode=m), x, label=mode)
    image, kernel = draw(2, 4, 7, 6), draw(6, 2, 3, 2, seed=1)
    for k, options in enumerate((
            {"window_strides": (1, 1), "padding": "SAME"}, {"window_strides": (2, 1), "padding": ((1, 0), (2, 1))},
            {"window_strides": (1, 1), "padding": "VALID", "rhs_dilation": (2, 1)},
            {"window_strides": (1, 1), "padding": ((1, 1), (1, 1)), "lhs_dilation": (2, 2)},
            {"window_strides": (1, 1), "padding": ((-1, 0), (1, -1))})):
        yield from shaped("conv", lambda x, w, o=options: lax.conv_general_dilated(x, w, feature_group_count=2, **o),
                image,
                               kernel, dtypes=("f32", "f64"), graded=(0, 1), label=str(k))
    yield from shaped("conv reversed", lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", feature_group_count=2, preferred_element_type=None), image, kernel, dtypes=("bf16",),
        graded=())
    yield from shaped("conv batch groups", lambda x, w: lax.conv_general_dilated(
        x[:, :2], w, (1, 1), "SAME", batch_group_count=2), image, kernel, graded=(0, 1))
    yield from shaped("conv NHWC", lambda x, w: lax.conv_general_dilated(
        x, w.transpose(2, 3, 1, 0), (1, 1), "VALID", feature_group_count=2, dimension_numbers=("NCHW", "HWIO",
        "NHWC")), image,
        kernel, graded=(0, 1))
    yield from shaped("conv_transpose", lambda x, w: lax.conv_transpose(
        x, w, (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")), draw(2, 4, 5, 5), draw(3, 4, 3, 3),
        graded=(0, 1))
    yield from shaped("conv 1d", lambda x, w: lax.conv_general_dilated(x, w, (1,), [(2, 2)]), draw(1, 3, 8), draw(
        5, 3, 4), graded=(0, 1))
    yield from shaped("conv 3d", lambda x, w: lax.conv_general_dilated(x, w, (1, 2, 1), "SAME"), draw(1, 2, 4, 5, 3),
            draw(
        3, 2, 2, 3, 2), graded=(0, 1))
    yield from shaped("jnp.convolve", lambda x, w: jnp.convolve(x, w, mode="same"), draw(9), draw(4), graded=(0, 1))
    yield from shaped("jnp.correlate", lambda x, w: jnp.correlate(x, w), draw(9), draw(4), graded=(0, 1))
    a, b = draw(2, 3, 4, 5), draw(2, 4, 3, 6, seed=1)
    numbers = (((1, 2), (2, 1)), ((0,), (0,)))
    for preferred in (None, "float32"):
        yield from shaped("dot_general", lambda a, b, p=preferred: lax.dot_general(
            a, b, numbers, preferred_element_type=p if a.dtype == jnp.bfloat16 else None), a, b, graded=(0, 1),
            dtypes=("f32", "f64", "bf16", "i32", "i8"), label=str(preferred))
    yield from shaped("dot_general", lambda a, b: lax.dot_general(a[:, :0], b[:, :, :0], numbers), a, b, graded=(),
                           label="of none")
    yield from shaped("dot_general", lambda a, b: lax.dot_general(a[..., :0], b, numbers), a, b, graded=(),
            label="empty")
    yield from shaped("dot", lambda a: jnp.dot(a, a.T), ROWS)
    yield from shaped("dot i8", lambda a: lax.dot(a, a.T, preferred_element_type=jnp.int32), TIES, dtypes=("i8", "u8"),
                           graded=())
    for name in ("einsum", "tensordot", "vdot", "inner", "outer", "cross", "matmul"):
        function = {"einsum": lambda a, b: jnp.einsum("bijk,bjim->kbm", a, b),
                    "tensordot": lambda a, b: jnp.tensordot(a, b, ((1, 2), (2, 1))),
                    "vdot": lambda a, b: jnp.vdot(a[0, 0, 0], b[0, 0, 0, :5] if b.shape[-1] > 5 else a[0, 0, 0]),
                    "inner": lambda a, b: jnp.inner(a[0, 0], a[1, 0]), "outer": lambda a, b: jnp.outer(a[0, 0, 0], b[0,
                    0, 0]),
                    "cross": lambda a, b: jnp.cross(a[..., :3], a[..., 2:]),
                    "matmul": lambda a, b: a @ a.swapaxes(-1, -2)}[name]
        yield from shaped(f"jnp.{name}", function, a, b, graded=(0, 1) if name in ("einsum", "tensordot",
                "outer") else (0,))


def list_conversions():
    labels = ("f32", "f64", "bf16", "f16", "i32", "i8", "u8", "u32", "bool")
    for source, target in itertools.product(labels, labels):
        values = EDGES if source in FLOATS and target in FLOATS else SMOOTH if target in ("u8",
        "u32") else numpy.concatenate(
            [SMOOTH * 9, [0, -0.0, 1]])
        if target in ("u8", "u32"):
            values = abs(values)
        yield Case("convert", f"{source} {target}", lambda x, t=target: x.astype(DTYPES[t]), [cast(values, source)])
    for source, target in (("f32", "int32"), ("i32", "float32"), ("f64", "int64"), ("bf16", "int16"), ("f32", "uint8"),
            (
            "u32", "float32")):
        yield Case("bitcast", f"{source} {target}", lambda x, t=target: lax.bitcast_convert_type(x, jnp.dtype(t)),
                [cast(
            EDGES if source in FLOATS else WHOLE, source)])
    for exponent, mantissa in ((8, 7), (5, 10), (4, 3), (11, 23)):
        yield Case("reduce_precision", f"{exponent} {mantissa}", lambda x, e=exponent, m=mantissa: lax.reduce_precision(
            x, e, m), [cast(EDGES, "f32")])
    for name, function in (("rev", lambda x: lax.rev(x, (0, 1))), ("transpose", lambda x: lax.transpose(x, (1, 0))),
                           ("squeeze", lambda x: lax.squeeze(x[:1], (0,))), ("expand", lambda x: lax.expand_dims(x,
                           (1,))),
                           ("concatenate", lambda x: lax.concatenate([x, x[:0], x], 0)),
                           ("broadcast", lambda x: lax.broadcast(x, (2,))), ("slice", lambda x: lax.slice(x, (1, 0),
                           (4, 7), (2, 3))),
                           ("reshape", lambda x: lax.reshape(x, (7, 5), (1, 0))), ("tile", lambda x: jnp.tile(x, (2,
                           3))),
                           ("slice none", lambda x: (lax.slice(x, (5, 7), (5, 7)), x[5:], x[:, 7:]))):
        yield from shaped(name, function, ROWS, dtypes=("f32", "i32", "bool"))
    yield Case("iota", "all", lambda x: [lax.iota(jnp.dtype(t), 5) for t in ("int32", "float32", "uint8",
            "bfloat16")] + [
        jnp.linspace(0, x[0], 7), jnp.arange(0, 1, 0.3), jnp.eye(3, 4, 1), jnp.tri(3), jnp.logspace(0, 1, 4)],
        [draw(1)])


def list_random():
    key = numpy.array([0, 42], numpy.uint32)
    random = jax.random

    def make(name, function, dtype="f32"):
        return Case(f"random.{name}", dtype, lambda key: function(key), [key], scaled=True)

    for label in ("f32", "f64", "bf16"):
        dtype = jnp.dtype(DTYPES[label])
        for name in ("uniform", "normal", "gumbel", "exponential", "laplace", "logistic", "cauchy", "rademacher"):
            yield make(name, lambda key, f=getattr(random, name), d=dtype: f(key, (7, 3), d), label)
        yield make("truncated_normal", lambda key, d=dtype: random.truncated_normal(key, -1, 2, (20,), d), label)
    yield make("bernoulli", lambda key: random.bernoulli(key, 0.3, (9,)))
    yield make("bernoulli low", lambda key: random.bernoulli(key, jnp.array([0.0, 1.0, 0.5, NAN]), (4,)))
    yield make("categorical", lambda key: random.categorical(key, jnp.array([[0.0, 1, -INF], [3, 2, 1]]), shape=(5, 2)))
    yield make("choice", lambda key: random.choice(key, 10, (6,)))
    yield make("choice p", lambda key: random.choice(key, 4, (6,), p=jnp.array([0.1, 0.2, 0.3, 0.4])))
    yield make("choice distinct", lambda key: random.choice(key, 10, (6,), replace=False))
    yield make("choice distinct p", lambda key: random.choice(key, 4, (3,), replace=False, p=jnp.array([0.1, 0.2, 0.3,
            0.4])))
    yield make("permutation", lambda key: random.permutation(key, 20))
    yield make("permutation array", lambda key: random.permutation(key, jnp.arange(12.0).reshape(6, 2)))
    yield make("permutation independent", lambda key: random.permutation(key, jnp.arange(12.0).reshape(6, 2), axis=1,
                                                                        independent=True))
    yield make("randint", lambda key: random.randint(key, (9,), -5, 100))
    yield make("randint u8", lambda key: random.randint(key, (9,), 0, 255, jnp.uint8))
    yield make("bits", lambda key: [random.bits(key, (5,), jnp.dtype(t)) for t in ("uint8", "uint16", "uint32",
            "uint64")])
    yield make("split", lambda key: random.split(key, 3))
    yield make("fold_in", lambda key: random.fold_in(key, 7))
    yield make("wrap", lambda key: random.normal(random.wrap_key_data(key), (3,)))
    yield make("multivariate_normal", lambda key: random.multivariate_normal(key, jnp.zeros(2), jnp.array(
        [[2.0, 0.3], [0.3, 0.5]]), (4,)))
    yield make("gamma", lambda key: random.gamma(key, jnp.array([0.5, 2.0, 7.0])))
    yield make("loggamma", lambda key: random.loggamma(key, 0.7, (3,)))
    yield make("beta", lambda key: random.beta(key, 2.0, 3.0, (3,)))
    yield make("dirichlet", lambda key: random.dirichlet(key, jnp.array([1.0, 2, 3])))
    yield make("poisson", lambda key: random.poisson(key, 3.0, (5,)))
    yield make("binomial", lambda key: random.binomial(key, 10, 0.3, (5,)))
    yield make("t", lambda key: random.t(key, 3.0, (5,)))
    yield make("chisquare", lambda key: random.chisquare(key, 3.0, shape=(5,)))
    yield make("weibull", lambda key: random.weibull_min(key, 1.0, 2.0, (5,)))
    yield make("pareto", lambda key: random.pareto(key, 2.0, (5,)))
    yield make("ball", lambda key: random.ball(key, 3, shape=(2,)))
    yield make("orthogonal", lambda key: random.orthogonal(key, 3))
    yield make("dropout", lambda key: jnp.where(random.bernoulli(key, 0.9, (8,)), jnp.arange(8.0) / 0.9, 0))
    yield make("initializer", lambda key: [jax.nn.initializers.glorot_uniform()(key, (3, 4)),
            jax.nn.initializers.he_normal()(
        key, (3, 4)), jax.nn.initializers.truncated_normal()(key, (5,))])


LISTS = {"elementwise": list_elementwise, "reductions": list_reductions, "cumulative": list_cumulative,
         "indexing": list_indexing, "sorting": list_sorting, "windows": list_windows, "conversions": list_conversions,
         "random": list_random}


def list_cases(options):
    """Returns (kind, case) of all lists; a case whose arrays have gradients is of two kinds."""
    chosen = options.dtypes.split(",")
    found = []
    for case in itertools.chain(*(LISTS[name]() for name in options.lists.split(","))):
        if case.graded:
            found += [("step", case), ("grad", case)]
        elif case.label.split(" ")[0] in chosen or case.label.split(" ")[0] not in DTYPES:
            found.append(("op", case))
    return [(kind, case) for kind, case in found if re.search(options.filter, f"{kind}:{case.name}")]


def widen(value):
    value = numpy.asarray(value)
    return value.astype(numpy.float64) if jnp.issubdtype(value.dtype, jnp.floating) else value


def flatten(values):
    """Returns results as arrays of the host."""
    found = []
    for leaf in jax.tree.leaves(values, is_leaf=lambda leaf: isinstance(leaf, weir.Array)):
        found.append(leaf.numpy() if isinstance(leaf, weir.Array) else numpy.asarray(leaf))
    return found


def compare(found, near, wide, scaled, factor=1):
    """Returns what is wrong with a result, or ""; `wide` is the result of f64. `scaled`: errors may be relative to the
    largest element."""
    if found.dtype != near.dtype and near.dtype == jnp.bfloat16:
        found = found.view(jnp.bfloat16)
    if found.dtype != near.dtype or found.shape != near.shape:
        return f"is {found.dtype}{list(found.shape)}, expected {near.dtype}{list(near.shape)}"
    if not jnp.issubdtype(near.dtype, jnp.floating):
        bad = (found != near) & ((found != wide) if wide.dtype == near.dtype else True)
    else:
        eps = float(jnp.finfo(near.dtype).eps)
        rounded = wide.astype(near.dtype).astype(numpy.float64)
        got, own, far = (each.astype(numpy.float64) for each in (found, near, wide))
        finite = numpy.isfinite(far) & numpy.isfinite(own) & numpy.isfinite(rounded)
        size = numpy.abs(far[finite]).max(initial=0)
        error = numpy.where(finite, numpy.abs(own - far), 0)
        tolerance = 8 * (error.max(initial=0) if scaled else error) + (16 if eps > 1e-10 else 512) * eps * (
            size if scaled else numpy.abs(far) + 0.25 * min(size, 1))
        tolerance = factor * tolerance + float(jnp.finfo(near.dtype).tiny)
        same = (got == own) | (got == rounded) | (numpy.isnan(got) & (numpy.isnan(own) | numpy.isnan(far)))
        bad = ~same & ~(finite & (numpy.abs(got - far) <= tolerance))
    if not bad.any():
        return ""
    place = tuple(numpy.argwhere(bad)[0].tolist())
    return (f"{int(bad.sum())} of {bad.size} differ, at {list(place)}: got {found[place]}, expected {near[place]}"
            f" ({wide[place]})"), place


def explain(problem, case, index):
    if isinstance(problem, str):
        return f"result {index} {problem}"
    said, place = problem
    given = [str(each[place]) for each in case.arguments if numpy.shape(each) and numpy.ndim(each) == len(place)
             and all(p < n for p, n in zip(place, numpy.shape(each)))]
    return f"result {index} {said}, of {', '.join(given)}"


def run_jax(cases, wide):
    results = []
    for case in cases:
        arguments = [widen(each) if wide and not case.exact else each for each in case.arguments]
        results.append(flatten(jax.jit(case.function)(*map(jnp.asarray, arguments))))
    return results


def check_values(cases, device):
    """Returns the verdicts on cases as one artifact."""
    given = [each for case in cases for each in case.arguments]

    def call(*values):
        values = list(values)
        return [case.function(*(values.pop(0) for _ in case.arguments)) for case in cases]

    with weir.jax.compile(call, *given, device=device) as program:
        found = [flatten(one) for one in program(*given)]
    verdicts = []
    for case, got, near, wide in zip(cases, found, run_jax(cases, False), run_jax(cases, True), strict=True):
        problems = [explain(problem, case, i) for i, (a, b, c) in enumerate(zip(got, near, wide, strict=True))
                    if (problem := compare(a, b, c, case.scaled))]
        verdicts.append(("wrong", problems[0]) if problems else ("right", ""))
    return verdicts


def is_beside_edge(case, slope):
    """Returns where a slope of a function of elements is not compared: at NaNs and infinities, for which Weir has one
    rule for all front ends, and at poles."""
    hidden = ~numpy.isfinite(slope) if re.fullmatch(POLES, case.name) else numpy.zeros(slope.shape, bool)
    for each in case.arguments:
        hidden = hidden | ~numpy.isfinite(numpy.asarray(each, numpy.float64))
    return hidden


def check_gradients(cases, device, by_weir):
    """Returns the verdicts on the gradients of a sum of the cases' results with weights."""
    given = [[case.arguments[i] for i in case.graded] for case in cases]
    rest = [[each for i, each in enumerate(case.arguments) if i not in case.graded] for case in cases]
    # Trained values start at -0, which changes no number that they are added to.
    start = [[numpy.full(numpy.shape(each), -0.0) for each in one] for one in given]

    def loss(shifts, given, rest):
        total = jnp.float64(0)
        for case, moved, values, others in zip(cases, shifts, given, rest, strict=True):
            arguments = [each + shift for each, shift in zip(values, moved, strict=True)]
            others = list(others)
            arguments = [arguments.pop(0) if i in case.graded else others.pop(0) for i in range(len(case.arguments))]
            for k, leaf in enumerate(jax.tree.leaves(case.function(*arguments))):
                if jnp.issubdtype(leaf.dtype, jnp.floating):
                    weights = numpy.random.default_rng(7 + k).random(leaf.shape) + 0.5
                    total += (leaf * weights).sum()
        return total

    expected = jax.jit(jax.grad(loss))(start, given, rest)
    if by_weir:
        with weir.jax.compile_step(loss, start, given, rest, optimizer=weir.SGD(learning_rate=1.0),
        device=device) as step:
            step(given, rest)
            found = [[-each for each in one] for one in step.params]
    else:
        with weir.jax.compile(jax.grad(loss), start, given, rest, device=device) as program:
            found = [flatten(one) for one in program(start, given, rest)]
    verdicts = []
    for case, got, near in zip(cases, found, expected, strict=True):
        problems = []
        for i, (a, b) in enumerate(zip(got, map(numpy.asarray, near), strict=True)):
            if by_weir and case.label == "gradient":
                a = numpy.where(is_beside_edge(case, b), b, a)
            if problem := compare(a, b, b, case.scaled, 16 if "digamma" in case.name else 4):
                problems.append(explain(problem, case, f"gradient {i}"))
        verdicts.append(("wrong", problems[0]) if problems else ("right", ""))
    return verdicts


def runs_in_jax(kind, case):
    try:
        run_jax([case], kind != "op")
        if kind != "op":  # some have no rule
            jax.eval_shape(lambda *values: jax.vjp(lambda *some: case.function(*[
                some[case.graded.index(i)] if i in case.graded else each for i, each in enumerate(case.arguments)]), *values)[0],
                *(case.arguments[i] for i in case.graded))
    except Exception:  # noqa: BLE001
        return False
    return True


def work(kind, cases, options, waiting, say):
    """Says the verdict on each of the cases `waiting`, by its index: all at once, or by halves."""
    check = {"op": check_values, "step": lambda some, device: check_gradients(some, device, True),
             "grad": lambda some, device: check_gradients(some, device, False)}[kind]

    def attempt(places):
        say({"start": places})
        try:
            verdicts = check([cases[i] for i in places], options.device)
        except Exception as error:  # noqa: BLE001
            if len(places) > 1:
                middle = len(places) // 2
                attempt(places[:middle])
                attempt(places[middle:])
                return
            text = str(error)
            is_refusal = isinstance(error, (weir.jax.ExportError, weir.CompileError))
            is_raw = "does not lower" in text or "Traceback" in text or "internal error" in text or len(text) > 800
            verdicts = [("refused" if is_refusal and not is_raw else "raised",
                         text[:1500] if is_refusal else
                         f"{type(error).__name__}: {text}"[:800] + traceback.format_exc()[-300:])]
        for i, verdict in zip(places, verdicts, strict=True):
            say({"index": i, "verdict": verdict})

    able = []
    for i in waiting:
        if (reason := find_reason(kind, cases[i])) is not None:
            say({"index": i, "verdict": ("not compared", reason)})
        elif runs_in_jax(kind, cases[i]):
            able.append(i)
        else:
            say({"index": i, "verdict": ("not compared", "JAX refuses it")})
    if able:
        attempt(able)


def run_bundle(kind, cases, options):
    """Returns the verdicts on cases, run in one process. A case that ends the process is run again alone."""
    verdicts = {}
    groups = [list(range(len(cases)))]
    while groups:
        waiting = groups.pop(0)
        lines, status = run_apart(kind, cases, options, waiting)
        started = waiting
        for line in lines:
            if "start" in line:
                started = line["start"]
            else:
                verdicts[line["index"]] = tuple(line["verdict"])
        left = [i for i in waiting if i not in verdicts]
        if len(waiting) == 1 and left:
            verdicts[waiting[0]] = ("raised", f"the process ended with status {status}")
        elif left:
            alone = [i for i in started if i in left]
            others = [i for i in left if i not in alone]
            middle = (len(alone) + 1) // 2
            groups += [part for part in (alone[:middle], alone[middle:], others) if part]
    return [verdicts[i] for i in range(len(cases))]


def run_apart(kind, cases, options, waiting):
    """Returns what a process of its own said about cases, and its status."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.close(reader)
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(0, signal.SIGKILL))
        signal.alarm(options.timeout)
        with os.fdopen(writer, "w", buffering=1) as stream:
            def say(message):
                stream.write(json.dumps(message) + "\n")
                stream.flush()
                signal.alarm(options.timeout)

            work(kind, cases, options, waiting, say)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        lines = [json.loads(line) for line in stream if line.endswith("\n")]
    _, status = os.waitpid(child, 0)
    return lines, status


def show(found):
    """Prints what is not right: a line by operation, verdict and message."""
    groups = collections.defaultdict(list)
    for name, label, verdict, said in found:
        if verdict not in ("right", "not compared"):
            groups[name, verdict, re.sub(r"[-\d.e+]+", "#", said)[:60]].append((label, said))
    for (name, verdict, _), entries in groups.items():
        labels = ", ".join(label for label,
        _ in entries[:3]) + (f" and {len(entries) - 3} more" if len(entries) > 3 else "")
        print(f"{verdict}: {name} [{labels}]: {' '.join(entries[0][1].split())[:300]}", flush=True)


def add_options(parser):
    parser.add_argument("--lists", default=",".join(LISTS), help="lists of cases (default all)")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="types (default all)")
    parser.add_argument("--timeout", type=int, default=240, help="seconds of one artifact (default 240)")


def main():
    options = parse_options(__doc__, add_options)
    cases = list_cases(options)[::options.every]
    results, began = [], time.monotonic()
    for kind in ("op", "step", "grad"):
        chosen = [case for one, case in cases if one == kind]
        for i in range(0, len(chosen), BUNDLE):
            bundle = chosen[i:i + BUNDLE]
            verdicts = run_bundle(kind, bundle, options)
            found = [(f"{kind}:{case.name}", case.label, *verdict) for case, verdict in zip(bundle, verdicts,
            strict=True)]
            show(found)
            results += found
    counts = collections.Counter(verdict for _, _, verdict, _ in results)
    print(f"{options.device}: {len(results)} cases, " + ", ".join(f"{counts[kind]} {kind}" for kind in VERDICTS)
          + f", {time.monotonic() - began:.0f} s")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    return 1 if counts["wrong"] or counts["raised"] else 0


if __name__ == "__main__":
    sys.exit(main())
