"""StableHLO's text: complex numbers, integers of 2 and 4 bits, sorts and what is written out, against NumPy."""

import numpy
import pytest

pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

import weir  # noqa: E402
import weir.stablehlo  # noqa: E402
from weir.building import run_compiler  # noqa: E402
from weir.graphs import ExportError, print_graph  # noqa: E402
from weir.runtime import open_device  # noqa: E402

RANDOM = numpy.random.default_rng(0)


def run(text, *arrays):
    """Returns the results of a module on the processor, in order."""
    path, _folder = run_compiler(print_graph(weir.stablehlo.lower(text, "main")), open_device("cpu"), None, [])
    named = {}
    for i, array in enumerate(arrays):
        if array.dtype.kind == "c":
            named |= {f"arg{i}.real": array.real.copy(), f"arg{i}.imag": array.imag.copy()}
        else:
            named[f"arg{i}"] = array.view(f"i{array.itemsize}") if array.dtype.kind == "u" else array
    with weir.load(path, device="cpu") as program:
        found = program(**named)
        found = {name: value.numpy() for name, value in found.items()} if isinstance(found, dict) else {
            "result0": found.numpy()}
    results = []
    while found:
        name = f"result{len(results)}"
        if name in found:
            results.append(found.pop(name))
        else:
            results.append(join(found.pop(f"{name}.real"), found.pop(f"{name}.imag")))
    return results


def join(real, imag):
    joined = numpy.empty(real.shape, numpy.result_type(real, numpy.complex64))
    joined.real, joined.imag = real, imag
    return joined


def spell(array):
    """Returns the type of an array in MLIR's text."""
    names = {"complex64": "complex<f32>", "complex128": "complex<f64>", "bool": "i1", "float16": "f16"}
    name = names.get(array.dtype.name, array.dtype.name.replace("uint", "ui").replace("int", "i").replace("float", "f"))
    return f"tensor<{''.join(f'{size}x' for size in array.shape)}{name}>"


def write(operations, *arrays, results):
    """Returns a module of operations, each one result `%0`, `%1` and so on of arguments `%a`, `%b`."""
    arguments = ", ".join(f"%{'abc'[i]}: {spell(array)}" for i, array in enumerate(arrays))
    lines = "\n".join(f"%{i} = {line}" for i, line in enumerate(operations))
    values = ", ".join(f"%{i}" for i in range(len(operations)))
    return (f"func.func @main({arguments}) -> ({', '.join(results)}) {{\n{lines}\nfunc.return {values} : "
            f"{', '.join(results)}\n}}")


def make_complex(dtype, count=500):
    """Returns numbers of many sizes, some close to the unit circle, and pairs of what is special in either part."""
    limits = numpy.finfo(dtype)
    large, tiny = float(limits.max), float(limits.tiny)
    special = [0.0, -0.0, 1, -1, 0.5, -2, numpy.inf, -numpy.inf, large, -large / 3, tiny, -8 * tiny, large**0.5, 30, -200]
    edges = join(*(part.ravel().astype(limits.dtype) for part in numpy.meshgrid(special, special)))
    sizes = numpy.exp(RANDOM.uniform(-12, 3, count)) * numpy.exp(1j * RANDOM.uniform(-3.1, 3.1, count))
    circle = (1 + 10.0 ** RANDOM.uniform(-6, -1, count)) * numpy.exp(1j * RANDOM.uniform(-3.1, 3.1, count))
    return numpy.concatenate([edges, sizes.astype(dtype), circle.astype(dtype)])


def check(found, expected, tolerance, label):
    """Compares complex numbers by their distance. Of others than finite ones parts that are no NaN must be equal."""
    limits = numpy.finfo(found.dtype)
    with numpy.errstate(all="ignore"):
        fits = numpy.isfinite(expected) & (abs(expected) < float(limits.max)) & (abs(expected) > 8 * float(limits.tiny))
        error = abs(found.astype(expected.dtype) - expected) / abs(expected)
        wrong = fits & ~(error <= tolerance)
        assert not wrong.any(), f"{label}: {found[wrong][:3]}, expected {expected[wrong][:3]}"
        open_ = (numpy.isinf(expected.real) | numpy.isinf(expected.imag)) & ~numpy.isnan(expected)
        for part in ("real", "imag"):
            one, other = getattr(found, part)[open_], getattr(expected, part)[open_]
            infinite = numpy.isinf(other)
            assert (one[infinite] == other[infinite].astype(one.dtype)).all(), f"{label}: {one}, expected {other}"
    assert fits.any()


FUNCTIONS = {
    "sqrt": numpy.sqrt, "exponential": numpy.exp, "log": numpy.log, "sine": numpy.sin, "cosine": numpy.cos,
    "tanh": numpy.tanh, "tan": numpy.tan, "negate": numpy.negative, "log_plus_one": numpy.log1p,
    "exponential_minus_one": numpy.expm1, "rsqrt": lambda z: 1 / numpy.sqrt(z), "cbrt": lambda z: z ** (1 / 3),
    "sign": lambda z: z / abs(z), "logistic": lambda z: 1 / (1 + numpy.exp(-z)),
    "chlo.asin": numpy.arcsin, "chlo.acos": numpy.arccos, "chlo.atan": numpy.arctan, "chlo.asinh": numpy.arcsinh,
    "chlo.acosh": numpy.arccosh, "chlo.atanh": numpy.arctanh, "chlo.sinh": numpy.sinh, "chlo.cosh": numpy.cosh,
}
# NumPy's own errors: log1p and expm1 lose digits, and powers by 1 / 3 overflow or end at infinities.
TAME = {"log_plus_one", "exponential_minus_one", "rsqrt", "cbrt", "sign", "logistic"}


@pytest.mark.parametrize("dtype", [numpy.complex64, numpy.complex128])
def test_functions_of_complex_numbers(dtype):
    z = make_complex(dtype)
    kind = spell(z)
    lines = [f"{name} %a : {kind} -> {kind}" if "chlo" in name else f"stablehlo.{name} %a : {kind}" for name in FUNCTIONS]
    size = spell(z.real)
    lines += [f"stablehlo.abs %a : ({kind}) -> {size}"]
    *found, absolute = run(write(lines, z, results=[kind] * len(FUNCTIONS) + [size]), z)
    wide = z.astype(numpy.complex128 if dtype == numpy.complex64 else numpy.clongdouble)
    with numpy.errstate(all="ignore"):
        for (name, function), value in zip(FUNCTIONS.items(), found, strict=True):
            is_tame = (abs(wide) < 20) & (abs(wide) > 1e-5) if name in TAME else numpy.ones(z.shape, bool)
            check(value[is_tame], function(wide[is_tame]), 100 * numpy.finfo(dtype).eps, name)
        numpy.testing.assert_allclose(absolute, abs(wide).astype(absolute.dtype), rtol=4 * numpy.finfo(dtype).eps)


def test_branch_cuts_and_signs_of_zeros():
    z = numpy.array([complex(-4, 0.0), complex(-4, -0.0), complex(-0.0, 0.0), complex(-0.0, -0.0), complex(0.0, -0.0)])
    kind = spell(z)
    names = ("sqrt", "log", "sine", "tanh", "chlo.asin", "chlo.acos", "chlo.acosh", "chlo.atanh")
    lines = [f"{name} %a : {kind} -> {kind}" if "chlo" in name else f"stablehlo.{name} %a : {kind}" for name in names]
    found = run(write(lines, z, results=[kind] * len(names)), z)
    functions = (numpy.sqrt, numpy.log, numpy.sin, numpy.tanh, numpy.arcsin, numpy.arccos, numpy.arccosh, numpy.arctanh)
    with numpy.errstate(all="ignore"):
        for function, value in zip(functions, found, strict=True):
            expected = function(z)
            numpy.testing.assert_allclose(value, expected, rtol=1e-14)
            for part in ("real", "imag"):
                assert (numpy.signbit(getattr(value, part)) == numpy.signbit(getattr(expected, part))).all(), function


@pytest.mark.parametrize("dtype", [numpy.complex64, numpy.complex128])
def test_complex_numbers_of_two(dtype):
    a, b = (RANDOM.permutation(make_complex(dtype)) for _ in range(2))
    kind, flags = spell(a), spell(numpy.zeros(a.shape, bool))
    names = ("add", "subtract", "multiply", "divide", "power", "maximum")
    lines = [f"stablehlo.{name} %a, %b : {kind}" for name in names]
    lines += [f"stablehlo.compare {way}, %a, %b : ({kind}, {kind}) -> {flags}" for way in ("EQ", "NE")]
    found = run(write(lines, a, b, results=[kind] * 6 + [flags] * 2), a, b)
    one, other = (x.astype(numpy.complex128 if dtype == numpy.complex64 else numpy.clongdouble) for x in (a, b))
    eps = numpy.finfo(dtype).eps
    finite = numpy.isfinite(a) & numpy.isfinite(b)
    with numpy.errstate(all="ignore"):
        for name, value, expected in zip(names, found, (one + other, one - other, one * other, one / other)):
            check(value[finite], expected[finite], 8 * eps, name)
        expected = one ** other
        tame = finite & (abs(numpy.log(one)) < 20) & (abs(other) < 3) & (abs(other) > 1e-4)
        check(found[4][tame], expected[tame], 400 * eps, "power")
        numbers = ~numpy.isnan(a) & ~numpy.isnan(b)
        assert (found[5][numbers] == numpy.maximum(a, b)[numbers]).all()
        assert (found[6] == (a == b)).all() and (found[7] == (a != b)).all()


def test_quotients_neither_overflow_nor_lose_digits():
    a = numpy.array([1e308 + 1e308j, 1e-300 + 1e-305j, 1 + 1j, 1e307 + 1e-307j, 3 + 4j])
    b = numpy.array([1e308 + 1e308j, 1e-290 + 1e-308j, 1e-308 + 2e-308j, 1e204 + 1e-204j, 0])
    [found] = run(write([f"stablehlo.divide %a, %b : {spell(a)}"], a, b, results=[spell(a)]), a, b)
    numpy.testing.assert_allclose(found[:4], [1, 1e-10 + 1e-15j - 1e-28j, 6e307 - 2e307j, 1e103 - 1e-305j], rtol=1e-14)
    assert numpy.isinf(found[4].real) and numpy.isinf(found[4].imag)


def test_shapes_reductions_products_and_loops_of_complex_numbers():
    a = (RANDOM.standard_normal((3, 4)) + 1j * RANDOM.standard_normal((3, 4))).astype(numpy.complex64)
    text = """func.func @main(%a: tensor<3x4xcomplex<f32>>, %count: tensor<i32>) -> (tensor<2x3xcomplex<f32>>,
        tensor<3xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<3x3xcomplex<f32>>, tensor<3x4xcomplex<f32>>,
        tensor<2x4xcomplex<f32>>, tensor<complex<f32>>) {
      %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
      %one = stablehlo.constant dense<(1.0, 0.0)> : tensor<complex<f32>>
      %half = stablehlo.constant dense<(0.5, -0.25)> : tensor<3x4xcomplex<f32>>
      %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<3x4xcomplex<f32>>) -> tensor<4x3xcomplex<f32>>
      %part = stablehlo.slice %t [1:4:2, 0:3] : (tensor<4x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
      %sum = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<3x4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<3xcomplex<f32>>
      %product = stablehlo.reduce(%a init: %one) applies stablehlo.multiply across dimensions = [0]
        : (tensor<3x4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
      %square = stablehlo.dot_general %a, %t, contracting_dims = [1] x [0]
        : (tensor<3x4xcomplex<f32>>, tensor<4x3xcomplex<f32>>) -> tensor<3x3xcomplex<f32>>
      %start = stablehlo.constant dense<0> : tensor<i32>
      %step = stablehlo.constant dense<1> : tensor<i32>
      %done, %grown = stablehlo.while(%i = %start, %x = %a) : tensor<i32>, tensor<3x4xcomplex<f32>>
      cond {
        %more = stablehlo.compare LT, %i, %count : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %next = stablehlo.add %i, %step : tensor<i32>
        %y = stablehlo.multiply %x, %half : tensor<3x4xcomplex<f32>>
        stablehlo.return %next, %y : tensor<i32>, tensor<3x4xcomplex<f32>>
      }
      %rows = stablehlo.constant dense<[[2], [0]]> : tensor<2x1xi32>
      %taken = "stablehlo.gather"(%a, %rows) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
        slice_sizes = array<i64: 1, 4>, indices_are_sorted = false}>
        : (tensor<3x4xcomplex<f32>>, tensor<2x1xi32>) -> tensor<2x4xcomplex<f32>>
      %is_odd = stablehlo.compare GT, %count, %step : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %chosen = "stablehlo.if"(%is_odd) ({
        stablehlo.return %one : tensor<complex<f32>>
      }, {
        stablehlo.return %zero : tensor<complex<f32>>
      }) : (tensor<i1>) -> tensor<complex<f32>>
      func.return %part, %sum, %product, %square, %grown, %taken, %chosen : tensor<2x3xcomplex<f32>>,
        tensor<3xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<3x3xcomplex<f32>>, tensor<3x4xcomplex<f32>>,
        tensor<2x4xcomplex<f32>>, tensor<complex<f32>>
    }"""
    found = run(text, a, numpy.array(3, numpy.int32))
    expected = (a.T[1:4:2], a.sum(1), a.prod(0), a @ a.T, a * (0.5 - 0.25j) ** 3, a[[2, 0]], 1)
    for value, wanted in zip(found, expected, strict=True):
        numpy.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sizes, count", [((3, 1), 1), ((2, 12), 1), ((2, 97), 1), ((2, 6, 90), 2), ((1, 2, 3, 5), 3)])
def test_transforms(sizes, count):
    z = RANDOM.standard_normal(sizes) + 1j * RANDOM.standard_normal(sizes)
    x = z.real.copy()
    axes, length = tuple(range(-count, 0)), f"length = [{', '.join(map(str, sizes[-count:]))}]"
    half = numpy.fft.rfftn(x, axes=axes)
    lines = [f"stablehlo.fft %a, type = {kind}, {length} : ({spell(z)}) -> {spell(z)}" for kind in ("FFT", "IFFT")]
    lines += [f"stablehlo.fft %b, type = RFFT, {length} : ({spell(x)}) -> {spell(half)}",
              f"stablehlo.fft %2, type = IRFFT, {length} : ({spell(half)}) -> {spell(x)}"]
    found = run(write(lines, z, x, results=[spell(z), spell(z), spell(half), spell(x)]), z, x)
    for value, wanted in zip(found, (numpy.fft.fftn(z, axes=axes), numpy.fft.ifftn(z, axes=axes), half, x), strict=True):
        numpy.testing.assert_allclose(value, wanted, rtol=1e-10, atol=1e-11)


def test_bits_of_complex_numbers():
    z = RANDOM.standard_normal(3) + 1j * RANDOM.standard_normal(3)
    pairs = z.view(numpy.complex64).reshape(3, 2)
    lines = [f"stablehlo.bitcast_convert %a : ({spell(z)}) -> {spell(pairs)}",
             f"stablehlo.bitcast_convert %0 : ({spell(pairs)}) -> {spell(z)}"]
    found = run(write(lines, z, results=[spell(pairs), spell(z)]), z)
    assert (found[0].view(numpy.uint64) == pairs.view(numpy.uint64)).all() and (found[1] == z).all()


def wrap(values, bits, is_signed):
    """Returns integers as those of fewer bits."""
    values = values & (2**bits - 1)
    return values - (values >> (bits - 1) << bits) if is_signed else values


@pytest.mark.parametrize("bits, is_signed", [(2, True), (2, False), (4, True), (4, False)])
def test_narrow_integers(bits, is_signed):
    low = -(2 ** (bits - 1)) if is_signed else 0
    a, b = (part.ravel() for part in numpy.meshgrid(*[numpy.arange(low, low + 2**bits)] * 2))
    kind = f"tensor<{a.size}x{'' if is_signed else 'u'}i{bits}>"
    plain, wide, flags = (f"tensor<{a.size}x{name}>" for name in ("f32", "i32", "i1"))
    u, shift = a & (2**bits - 1), b & (2**bits - 1)  # shifts and bits read unsigned numbers
    signed = wrap(a, bits, True)
    spread = [numpy.array([bin(value).count("1") for value in u]), bits - numpy.ceil(numpy.log2(u + 1)).astype(int)]
    two = {
        "add": a + b, "subtract": a - b, "multiply": a * b, "and": a & b, "or": a | b, "xor": a ^ b,
        "maximum": numpy.maximum(a, b), "minimum": numpy.minimum(a, b),
        "shift_left": numpy.where(shift < bits, u << shift, 0),
        "shift_right_logical": numpy.where(shift < bits, u >> shift, 0),
        "shift_right_arithmetic": signed >> numpy.minimum(shift, bits - 1),
        "power": numpy.array([int(x) ** int(y) if y >= 0 else {1: 1, -1: (-1) ** abs(int(y))}.get(int(x), 0)
                              for x, y in zip(a, b)]),
    }
    one = {"negate": -a, "not": ~a, "popcnt": spread[0], "count_leading_zeros": spread[1]}
    lines = [f"stablehlo.{name} %a, %b : {kind}" for name in two] + [f"stablehlo.{name} %a : {kind}" for name in one]
    lines += [f"stablehlo.compare LT, %a, %b : ({kind}, {kind}) -> {flags}",
              f"stablehlo.convert %a : ({kind}) -> {plain}", f"stablehlo.convert %a : ({kind}) -> {wide}"]
    lines += [f"stablehlo.convert %{len(lines) - 1} : ({wide}) -> {kind}"]
    other = kind.replace("xui", "xi") if "xui" in kind else kind.replace("xi", "xui")
    lines += [f"stablehlo.bitcast_convert %a : ({kind}) -> {other}"]
    results = [kind] * (len(two) + len(one)) + [flags, plain, wide, kind, other]
    text = write(lines, results=results)
    text = text.replace("@main()", f"@main(%a: {kind}, %b: {kind})")
    stored = numpy.int8 if is_signed else numpy.uint8
    found = run(text, a.astype(stored), b.astype(stored))
    wanted = [wrap(value, bits, is_signed) for value in (*two.values(), *one.values())]
    wanted += [a < b, a, a, a, wrap(a, bits, not is_signed)]
    for line, value, expected in zip(lines, found, wanted, strict=True):
        assert (value == expected).all(), f"{line}: {value}, expected {expected}"


def test_sums_and_products_of_narrow_integers():
    a = RANDOM.integers(-8, 8, (5, 6)).astype(numpy.int8)
    text = """func.func @main(%a: tensor<5x6xi4>) -> (tensor<5xi4>, tensor<5x5xi32>, tensor<5x5xi4>, tensor<40xi4>, tensor<4xi4>) {
      %zero = stablehlo.constant dense<0> : tensor<i4>
      %sum = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<5x6xi4>, tensor<i4>) -> tensor<5xi4>
      %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<5x6xi4>) -> tensor<6x5xi4>
      %wide = stablehlo.dot_general %a, %t, contracting_dims = [1] x [0] : (tensor<5x6xi4>, tensor<6x5xi4>) -> tensor<5x5xi32>
      %same = stablehlo.dot_general %a, %t, contracting_dims = [1] x [0] : (tensor<5x6xi4>, tensor<6x5xi4>) -> tensor<5x5xi4>
      %count = stablehlo.iota dim = 0 : tensor<40xi4>
      %fixed = stablehlo.constant dense<[7, -8, -1, 0]> : tensor<4xi4>
      func.return %sum, %wide, %same, %count, %fixed : tensor<5xi4>, tensor<5x5xi32>, tensor<5x5xi4>, tensor<40xi4>, tensor<4xi4>
    }"""
    wide = a.astype(int) @ a.T.astype(int)
    expected = (wrap(a.astype(int).sum(1), 4, True), wide, wrap(wide, 4, True), wrap(numpy.arange(40), 4, True), [7, -8, -1, 0])
    for value, wanted in zip(run(text, a), expected, strict=True):
        assert (value == wanted).all()


def test_sorts():
    x = numpy.array([[3, 0.0, numpy.nan, -0.0, -numpy.inf, 3, -1]], numpy.float32)
    i = numpy.array([[3, 1, 2, 2**31, 5, 0, 1]], numpy.uint32)
    order = numpy.arange(7, dtype=numpy.int32)[None]
    scalars = "%x: tensor<f32>, %y: tensor<f32>, %i: tensor<ui32>, %j: tensor<ui32>, %n: tensor<i32>, %m: tensor<i32>"
    comparisons = ["%r = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>",
                   "%r = stablehlo.compare GT, %i, %j, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>",
                   """%p = stablehlo.compare LT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
                   %q = stablehlo.compare EQ, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
                   %s = stablehlo.compare LT, %i, %j, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
                   %t = stablehlo.and %q, %s : tensor<i1>
                   %r = stablehlo.or %p, %t : tensor<i1>"""]
    kinds = [spell(value) for value in (x, i, order)]
    text = "\n".join(f'%{n}:3 = "stablehlo.sort"(%a, %b, %c) <{{dimension = 1 : i64, is_stable = true}}> ({{\n^bb0({scalars}):\n'
                     f"{body}\nstablehlo.return %r : tensor<i1>\n}}) : ({', '.join(kinds)}) -> ({', '.join(kinds)})"
                     for n, body in enumerate(comparisons))
    text = (f"func.func @main(%a: {kinds[0]}, %b: {kinds[1]}, %c: {kinds[2]}) -> ({', '.join([kinds[2]] * 3)}) {{\n{text}\n"
            f"func.return %0#2, %1#2, %2#2 : {', '.join([kinds[2]] * 3)}\n}}")
    found = run(text, x, i, order)
    assert [value[0].tolist() for value in found] == [
        [4, 6, 3, 1, 0, 5, 2], [3, 4, 0, 2, 1, 6, 5], [4, 6, 1, 3, 5, 0, 2]]
    with pytest.raises(ExportError, match="stablehlo.sort, "):
        run(text.replace("compare LT", "compare LE"), x, i, order)


def test_jaxs_comparison_of_floats_is_read():
    jax = pytest.importorskip("jax", reason="JAX is not installed: scripts/setup --torch")
    x = numpy.array([[3, 1], [numpy.nan, -0.0], [-1, 0.0], [numpy.inf, -numpy.inf]], numpy.float32)
    y = RANDOM.integers(0, 9, (4, 2)).astype(numpy.int32)

    def sort(x, y):
        return jax.lax.sort((x, y), dimension=0, num_keys=1)

    found = run(jax.jit(sort).lower(x, y).as_text(), x, y)
    for value, wanted in zip(found, sort(x, y), strict=True):
        numpy.testing.assert_array_equal(value, wanted)


def test_composites_powers_and_precisions():
    a, b = numpy.array([-3, -1, 2, 0, 7], numpy.int64), numpy.array([3, -3, -1, 0, 30], numpy.int64)
    x = numpy.array([numpy.nan, 1, 3, -numpy.inf, -5], numpy.float32)
    text = """
    func.func private @twice(%a: tensor<5xi64>) -> tensor<5xi64> {
      %0 = stablehlo.add %a, %a : tensor<5xi64>
      func.return %0 : tensor<5xi64>
    }
    func.func public @main(%a: tensor<5xi64>, %b: tensor<5xi64>, %x: tensor<5xf32>)
        -> (tensor<5xi64>, tensor<5xi64>, tensor<5xf32>) {
      %0 = stablehlo.composite "some.twice" %a {decomposition = @twice} : (tensor<5xi64>) -> tensor<5xi64>
      %1 = stablehlo.power %a, %b : tensor<5xi64>
      %2 = stablehlo.reduce_precision %x, format = e5m0 : tensor<5xf32>
      func.return %0, %1, %2 : tensor<5xi64>, tensor<5xi64>, tensor<5xf32>
    }"""
    twice, power, reduced = run(text, a, b, x)
    assert (twice == 2 * a).all()
    assert power.tolist() == [-27, -1, 0, 1, int(numpy.int64(7 ** 30 % 2**64 - (2**64 if 7 ** 30 % 2**64 >= 2**63 else 0)))]
    assert abs(reduced[0]) == numpy.inf and reduced[3] == -numpy.inf and reduced[1] == 1 and abs(reduced[4]) == 4


def test_sizes_that_are_constants():
    x = RANDOM.standard_normal((1, 4, 4, 1)).astype(numpy.float32)
    text = """func.func @main(%x: tensor<1x4x4x1xf32>, %i: tensor<2x1xi32>)
        -> (tensor<1x2x2x1xf32>, tensor<1x6x7x1xf32>, tensor<2x2x4xf32>) {
      %kernel = stablehlo.constant dense<1.0> : tensor<3x3x1x1xf32>
      %padding = stablehlo.constant dense<[[1, 0], [0, 1]]> : tensor<2x2xi64>
      %0 = "stablehlo.dynamic_conv"(%x, %kernel, %padding) {window_strides = array<i64: 2, 2>,
        dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, batch_group_count = 1 : i64,
        feature_group_count = 1 : i64} : (tensor<1x4x4x1xf32>, tensor<3x3x1x1xf32>, tensor<2x2xi64>) -> tensor<1x2x2x1xf32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %low = stablehlo.constant dense<[0, 1, -1, 0]> : tensor<4xi64>
      %high = stablehlo.constant dense<[0, 1, 1, 0]> : tensor<4xi64>
      %inner = stablehlo.constant dense<[0, 0, 1, 0]> : tensor<4xi64>
      %1 = stablehlo.dynamic_pad %x, %zero, %low, %high, %inner : (tensor<1x4x4x1xf32>, tensor<f32>, tensor<4xi64>,
        tensor<4xi64>, tensor<4xi64>) -> tensor<1x6x7x1xf32>
      %sizes = stablehlo.constant dense<[1, 2, 4, 1]> : tensor<4xi64>
      %2 = "stablehlo.dynamic_gather"(%x, %i, %sizes) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2],
        collapsed_slice_dims = [0, 3], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false}
        : (tensor<1x4x4x1xf32>, tensor<2x1xi32>, tensor<4xi64>) -> tensor<2x2x4xf32>
      func.return %0, %1, %2 : tensor<1x2x2x1xf32>, tensor<1x6x7x1xf32>, tensor<2x2x4xf32>
    }"""
    convolved, padded, taken = run(text, x, numpy.array([[2], [1]], numpy.int32))
    image = x[0, :, :, 0]
    wide = numpy.pad(image, ((1, 0), (0, 1)))
    sums = [[wide[i:i + 3, j:j + 3].sum() for j in (0, 2)] for i in (0, 2)]
    numpy.testing.assert_allclose(convolved[0, :, :, 0], sums, rtol=1e-5)
    spread = numpy.zeros((6, 9), numpy.float32)
    spread[1:5, 1:8:2] = image
    assert (padded[0, :, :, 0] == spread[:, 2:9]).all()
    assert (taken == numpy.stack([image[2:4], image[1:3]])).all()
    with pytest.raises(ExportError, match="stablehlo.dynamic_gather, "):
        run(text.replace("%i: tensor<2x1xi32>", "%i: tensor<2x1xi32>, %sizes: tensor<4xi64>").replace(
            "%sizes = stablehlo", "%other = stablehlo"))


@pytest.mark.parametrize("operation, sentence", [
    ("stablehlo.add %a, %a : tensor<4xf8E4M3FN>", "has the type tensor<4xf8E4M3FN>; Weir has the floats f16, bf16, f32, f64"),
    ("stablehlo.bitcast_convert %a : (tensor<4x2xi4>) -> tensor<4xi8>", "stablehlo.bitcast_convert, "),
    ('"stablehlo.rng_bit_generator"(%a) {rng_algorithm = #stablehlo<rng_algorithm DEFAULT>} : (tensor<2xui64>) -> '
     "(tensor<2xui64>, tensor<4xui4>)", "stablehlo.rng_bit_generator, "),
    ("stablehlo.fft %a, type = FFT, length = [1031] : (tensor<1031xcomplex<f32>>) -> tensor<1031xcomplex<f32>>",
     "stablehlo.fft, "),
    ('"stablehlo.map"(%a) ({\n^bb0(%x: tensor<complex<f32>>):\nstablehlo.return %x : tensor<complex<f32>>\n}) '
     "{dimensions = array<i64: 0>} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>", "stablehlo.map, "),
])
def test_what_has_no_form_is_refused(operation, sentence):
    kind = operation.partition(" : ")[2].strip("(").partition(")")[0] if " : (" in operation else operation.rpartition(" : ")[2]
    if "stablehlo.map" in operation:
        kind = "tensor<4xcomplex<f32>>"
    result = operation.rpartition("-> ")[2] if "-> " in operation else kind
    many = result.startswith("(")
    text = (f"func.func @main(%a: {kind}) -> {result} {{\n%0{':2' if many else ''} = {operation}\n"
            f"func.return {'%0#0, %0#1' if many else '%0'} : {result.strip('()')}\n}}")
    with pytest.raises(ExportError) as caught:
        weir.stablehlo.lower(text, "main")
    assert sentence in str(caught.value)
