"""The VJPs of the norm dialect, all in f64: against central differences of the
forward ops, every element of every gradient, and against NumPy's long doubles by
formulas of another form."""

import math
import re

import numpy
import pytest
from conftest import ROOT
from safetensors.numpy import load_file, save_file

EPS = 1e-5
ROUNDED_EPS = numpy.longdouble(numpy.float32(EPS))  # `eps` has the type of x


def tensor(shape, element="f32"):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


class Graph:
    """Functions of one module, run by the reference in f64."""

    def __init__(self, weir, text):
        self.weir = weir
        self.artifact = weir.compile_text(text)

    def run(self, entry, *arguments):
        inputs, output = self.weir.folder / "inputs.safetensors", self.weir.folder / "results.safetensors"
        save_file({f"arg{i}": numpy.asarray(value, order="C") for i, value in enumerate(arguments)}, inputs)
        self.weir.run("run", self.artifact, f"--entry={entry}", "--device=reference", "--f64",
                      f"--input={inputs}", f"--output={output}")
        results = load_file(output)
        return [results[f"result{i}"] for i in range(len(results))]


class Sample:
    """Random values on a grid that steps do not leave, so that the points of a
    central difference are exactly where they should be."""

    def __init__(self, seed, offset):
        self.random = numpy.random.default_rng(seed)
        self.offset = offset
        # Far from 0 the last digits of a mean weigh more against a step.
        self.step = 2.0 ** (-13 if offset else -17)

    def normal(self, shape, offset=0.0):
        return offset + numpy.round(self.random.standard_normal(shape) * 2**20) / 2**20

    def x(self, shape):
        return self.normal(shape, self.offset)


def distance(found, expected, floor=1e-6):
    """Returns the distance of the two, relative to the norm of `expected` or to `floor`."""
    assert found.shape == expected.shape
    found, expected = found.astype(numpy.longdouble), expected.astype(numpy.longdouble)
    return float(numpy.linalg.norm(found - expected) / max(numpy.linalg.norm(expected), floor))


def steps(x, position, step):
    """Copies of x: with `step` added, then subtracted, at one index of the
    dimensions from `position` on, for each such index."""
    rows, columns = x.shape[:position], x.shape[position:]
    length = int(numpy.prod(columns))
    moves = numpy.concatenate([numpy.eye(length), -numpy.eye(length)]).reshape(2 * length, *columns) * step
    return x + moves.reshape(2 * length, *[1] * len(rows), *columns)


def difference(y, dy, columns, step):
    """The gradient by the forward op's results `y` at `steps`, of rows that do
    not depend on each other."""
    change = (y * dy).reshape(*y.shape[: y.ndim - len(columns)], -1).sum(-1)
    plus, minus = numpy.split(change, 2)
    gradient = (plus - minus) / (2 * step)
    return numpy.moveaxis(gradient, 0, -1).reshape(dy.shape)


# Shape of x, how many of its last dimensions are normalised, and where x lies.
NORMS = [((5, 7), 1, 0.0), ((5, 7), 1, 1e4), ((1, 13), 1, 0.0), ((4, 1), 1, 0.0), ((17, 31), 1, 0.0),
         ((17, 31), 1, 1e4), ((2, 3, 5), 2, 0.0), ((3, 4), 2, 1e4), ((1,), 1, 0.0), ((6, 2), 1, 0.0)]


def check_norm(weir, name, shape, axes, offset, has_gamma):
    """Checks layer_norm or rms_norm, which both have gamma and trailing axes."""
    columns = shape[-axes:]
    copies = 2 * int(numpy.prod(columns))
    has_beta = name == "layer_norm"
    attributes = f"{{axes = {axes} : i64, eps = {EPS:.1e} : f64}}"
    gamma = f"gamma(%gamma : {tensor(columns)})" if has_gamma else ""
    beta = f"beta(%beta : {tensor(columns)})" if has_beta else ""
    batch, x, weight = tensor((copies, *shape)), tensor(shape), tensor(columns)
    results = f"{x}, {weight}" + (f", {weight}" if has_beta else "")
    graph = Graph(weir, f"""
func.func @forward(%x: {batch}, %gamma: {weight}, %beta: {weight}) -> {batch} {{
  %y = norm.{name} %x {gamma} {beta} {attributes} : {batch}
  return %y : {batch}
}}
func.func @vjp(%dy: {x}, %x: {x}, %gamma: {weight}) -> ({results}) {{
  %g:{3 if has_beta else 2} = norm.{name}_vjp %dy, %x {gamma} {attributes} : {x}, {weight}
  return %g#0, %g#1{", %g#2" if has_beta else ""} : {results}
}}
""")
    sample = Sample(seed=len(shape) + axes, offset=offset)
    x, dy = sample.x(shape), sample.normal(shape)
    gamma, beta = sample.normal(columns), sample.normal(columns)
    gradients = graph.run("vjp", dy, x, gamma)

    step = sample.step
    position = len(shape) - axes
    differences = [difference(graph.run("forward", steps(x, position, step), gamma, beta)[0], dy, columns, step)]
    rows = tuple(range(position))
    still = numpy.broadcast_to(x, (copies, *shape))
    for index in range(1, len(gradients)):
        plus, minus = [gamma, beta], [gamma, beta]
        plus[index - 1], minus[index - 1] = plus[index - 1] + step, minus[index - 1] - step
        if has_gamma or index == 2:
            change = graph.run("forward", still, *plus)[0][0] - graph.run("forward", still, *minus)[0][0]
            differences.append((change * dy).sum(rows) / (2 * step))
        else:  # at gamma = 1 the change by gamma is the norm itself
            base = graph.run("forward", still, gamma, numpy.zeros(columns))[0][0]
            differences.append((base * dy).sum(rows))
    # In a row of one or two elements nearly all of dx cancels: what is left is
    # compared with what there was.
    floor = numpy.linalg.norm(dy) if copies <= 4 else 1e-6
    for found, expected in zip(gradients, differences, strict=True):
        assert distance(found, expected, floor) < 1e-7

    formula = layer_norm_by_chain_rule if has_beta else rms_norm_by_chain_rule
    wide = [value.astype(numpy.longdouble) for value in (dy, x, gamma if has_gamma else numpy.ones(columns))]
    for found, expected in zip(gradients, formula(*wide, axes), strict=True):
        assert distance(found, expected, floor) < (1e-10 if offset else 1e-13)


def layer_norm_by_chain_rule(dy, x, gamma, axes, eps=ROUNDED_EPS):
    """Through the variance and the mean, as if they were inputs."""
    last, rows = tuple(range(-axes, 0)), tuple(range(x.ndim - axes))
    count = numpy.prod(x.shape[-axes:])
    centered = x - x.mean(last, keepdims=True)
    variance = (centered**2).mean(last, keepdims=True) + eps
    dn = dy * gamma
    dvariance = (dn * centered).sum(last, keepdims=True) * -0.5 * variance**-1.5
    dmean = -(dn / numpy.sqrt(variance)).sum(last, keepdims=True)
    dx = dn / numpy.sqrt(variance) + dvariance * 2 * centered / count + dmean / count
    return dx, (dy * centered / numpy.sqrt(variance)).sum(rows), dy.sum(rows)


def rms_norm_by_chain_rule(dy, x, gamma, axes, eps=ROUNDED_EPS):
    last, rows = tuple(range(-axes, 0)), tuple(range(x.ndim - axes))
    count = numpy.prod(x.shape[-axes:])
    square = (x**2).mean(last, keepdims=True) + eps
    dn = dy * gamma
    dsquare = (dn * x).sum(last, keepdims=True) * -0.5 * square**-1.5
    return dn / numpy.sqrt(square) + dsquare * 2 * x / count, (dy * x / numpy.sqrt(square)).sum(rows)


@pytest.mark.parametrize("shape, axes, offset", NORMS)
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_norm(weir, name, shape, axes, offset):
    check_norm(weir, name, shape, axes, offset, has_gamma=True)


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_norm_without_gamma(weir, name):
    check_norm(weir, name, (5, 7), 1, 0.0, has_gamma=False)


@pytest.mark.parametrize("shape, axis, offset", [((5, 7), 1, 1e4), ((5, 7), 0, 0.0), ((2, 3, 5), 1, 0.0),
                                                 ((3, 1), 1, 0.0), ((1, 31), 1, 0.0)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(weir, name, shape, axis, offset):
    copies = 2 * shape[axis]
    batch, x = tensor((copies, *shape)), tensor(shape)
    forward = f"norm.log_softmax %x {{axis = {axis + 1} : i64}} : {batch}"
    if name == "softmax":
        forward = (f"linalg.softmax dimension({axis + 1}) ins(%x : {batch}) outs(%empty : {batch}) -> {batch}")
    graph = Graph(weir, f"""
func.func @forward(%x: {batch}) -> {batch} {{
  %empty = tensor.empty() : {batch}
  %y = {forward}
  return %y : {batch}
}}
func.func @vjp(%dy: {x}, %y: {x}) -> {x} {{
  %dx = norm.{name}_vjp %dy, %y {{axis = {axis} : i64}} : {x}
  return %dx : {x}
}}
""")
    sample = Sample(seed=3, offset=offset)
    x, dy = sample.x(shape), sample.normal(shape)
    still = numpy.broadcast_to(x, (copies, *shape))
    y = graph.run("forward", still)[0][0]
    found = graph.run("vjp", dy, y)[0]

    last = lambda value: numpy.moveaxis(value, axis, -1)
    moved = steps(last(x), len(shape) - 1, sample.step)
    changed = numpy.moveaxis(graph.run("forward", numpy.moveaxis(moved, -1, axis + 1))[0], axis + 1, -1)
    differences = difference(changed, last(dy), (shape[axis],), sample.step)
    assert distance(last(found), differences) < 1e-7

    # By the whole Jacobian, from x.
    wide = last(x).astype(numpy.longdouble)
    powers = numpy.exp(wide - wide.max(-1, keepdims=True))
    p = powers / powers.sum(-1, keepdims=True)
    identity = numpy.eye(shape[axis])
    jacobian = p[..., :, None] * (identity - p[..., None, :])
    if name == "log_softmax":
        jacobian = identity - p[..., None, :]
    expected = numpy.einsum("...i,...ij->...j", last(dy).astype(numpy.longdouble), jacobian)
    assert distance(last(found), expected) < 1e-12


@pytest.mark.parametrize("shape, axis, offset", [((5, 7), 1, 1e4), ((5, 7), 0, 0.0), ((2, 3, 5), 1, 0.0),
                                                 ((3, 1), 1, 0.0), ((31,), 0, 0.0)])
def test_logsumexp(weir, shape, axis, offset):
    copies = 2 * shape[axis]
    batch, x = tensor((copies, *shape)), tensor(shape)
    rows = shape[:axis] + shape[axis + 1:]
    graph = Graph(weir, f"""
func.func @forward(%x: {batch}) -> {tensor((copies, *rows))} {{
  %y = norm.logsumexp %x {{axis = {axis + 1} : i64}} : {batch} -> {tensor((copies, *rows))}
  return %y : {tensor((copies, *rows))}
}}
func.func @vjp(%dy: {tensor(rows)}, %x: {x}) -> {x} {{
  %dx = norm.logsumexp_vjp %dy, %x {{axis = {axis} : i64}} : {tensor(rows)}, {x}
  return %dx : {x}
}}
""")
    sample = Sample(seed=13, offset=offset)
    x, dy = sample.x(shape), sample.normal(rows)
    found = graph.run("vjp", dy, x)[0]

    last = lambda value: numpy.moveaxis(value, axis, -1)
    moved = steps(last(x), len(shape) - 1, sample.step)
    changed = graph.run("forward", numpy.moveaxis(moved, -1, axis + 1))[0]
    plus, minus = numpy.split(changed * dy, 2)
    differences = numpy.moveaxis((plus - minus) / (2 * sample.step), 0, -1)
    assert distance(last(found), differences) < 1e-7

    wide = last(x).astype(numpy.longdouble)
    y = numpy.log(numpy.exp(wide - offset).sum(-1)) + offset
    assert distance(last(found), numpy.exp(wide - y[..., None]) * dy[..., None]) < 1e-12


@pytest.mark.parametrize("device", ["reference", "vulkan"])
def test_logsumexp_of_infinities(weir, device):
    """As PyTorch: what is not finite stays in its row, and a finite row next to -inf is as without it."""
    artifact = weir.compile_text("""
func.func @f(%x: tensor<5x3xf32>) -> tensor<5xf32> {
  %y = norm.logsumexp %x {axis = 1 : i64} : tensor<5x3xf32> -> tensor<5xf32>
  return %y : tensor<5xf32>
}
""", "a", "--vjp=f")
    inf, nan = numpy.inf, numpy.nan
    x = numpy.array([[0, inf, 1], [-inf, -inf, -inf], [1, -inf, 1], [0, nan, inf], [1e30, 3e38, -3e38]], numpy.float32)
    save_file({"arg0": x, "cotangent.result0": numpy.ones(5, numpy.float32)}, weir.folder / "inputs.safetensors")
    weir.run("run", artifact, "--entry=f.vjp", f"--device={device}", "--input=inputs.safetensors",
             "--output=results.safetensors")
    found = load_file(weir.folder / "results.safetensors")
    numpy.testing.assert_allclose(found["result0"], [inf, -inf, 1 + numpy.log(2), nan, 3e38], rtol=1e-6)
    numpy.testing.assert_allclose(
        found["grad.arg0"], [[0, nan, 0], [nan] * 3, [0.5, 0, 0.5], [nan] * 3, [0, 1, 0]], rtol=1e-6)


@pytest.mark.parametrize("shape, offset", [((6, 5), 1e4), ((2, 3, 7), 0.0), ((3, 1), 0.0)])
@pytest.mark.parametrize("reduction, smoothing", [("none", 0.0), ("sum", 0.0), ("mean", 0.0), ("none", 0.25), ("mean", 0.25)])
def test_cross_entropy(weir, reduction, smoothing, shape, offset):
    rows, classes = shape[:-1], shape[-1]
    copies = 2 * classes
    batch, logits = tensor((copies, *shape)), tensor(shape)
    integers, batch_integers = tensor(rows, "i64"), tensor((copies, *rows), "i64")
    dloss_shape = rows if reduction == "none" else ()
    loss, losses = tensor(dloss_shape), tensor((copies, *rows))
    smoothed = f"{{label_smoothing = {smoothing} : f64}}"
    graph = Graph(weir, f"""
func.func @losses(%x: {batch}, %t: {batch_integers}) -> {losses} {{
  %y = norm.softmax_cross_entropy none %x, %t {smoothed} : {batch}, {batch_integers} -> {losses}
  return %y : {losses}
}}
func.func @loss(%x: {logits}, %t: {integers}) -> {loss} {{
  %y = norm.softmax_cross_entropy {reduction} %x, %t {smoothed} : {logits}, {integers} -> {loss}
  return %y : {loss}
}}
func.func @vjp(%d: {loss}, %x: {logits}, %t: {integers}) -> {logits} {{
  %dx = norm.softmax_cross_entropy_vjp {reduction} %d, %x, %t {smoothed} : {loss}, {logits}, {integers}
  return %dx : {logits}
}}
""")
    sample = Sample(seed=5, offset=offset)
    x, dloss = sample.x(shape), sample.normal(dloss_shape)
    targets = sample.random.integers(classes, size=rows)
    targets.flat[1] = -100  # ignored
    found = graph.run("vjp", dloss, x, targets)[0]

    # What a row's own loss weighs, taken from the forward op as it reduces.
    still = numpy.broadcast_to(targets, (copies, *rows)).copy()
    own = graph.run("losses", numpy.broadcast_to(x, (copies, *shape)), still)[0][0]
    total = graph.run("loss", x, targets)[0]
    weights = numpy.broadcast_to(dloss if reduction == "none" else dloss * (total / own.sum() if own.sum() else 1), rows)
    moved = graph.run("losses", steps(x, len(rows), sample.step), still)[0]
    plus, minus = numpy.split(moved * weights, 2)
    differences = numpy.moveaxis((plus - minus) / (2 * sample.step), 0, -1)
    assert distance(found, differences) < 1e-7

    # The derivative of log(sum) - picked, by the sum's own derivative.
    wide = x.astype(numpy.longdouble)
    shifted = numpy.exp(wide - wide.max(-1, keepdims=True))
    kept = targets != -100
    scale = {"none": dloss, "sum": dloss, "mean": dloss / kept.sum()}[reduction] * kept
    # In f32, as the weights are rounded.
    each, rest = (numpy.float32(value) for value in (smoothing / classes, 1 - smoothing))
    expected = (shifted / shifted.sum(-1, keepdims=True) - each) * numpy.expand_dims(scale, -1)
    for row in numpy.ndindex(rows):
        if kept[row]:
            expected[row][targets[row]] -= rest * scale[row]
    assert distance(found, expected) < 1e-12
    assert not found[~kept].any()


def test_cross_entropy_of_no_class_is_loud_and_of_ignored_rows_silent(weir):
    """NaN where a target is no class, exactly 0 where it is ignored, whatever the logits."""
    graph = Graph(weir, """
func.func @f(%d: tensor<f32>, %x: tensor<4x3xf32>, %t: tensor<4xi32>) -> tensor<4x3xf32> {
  %dx = norm.softmax_cross_entropy_vjp mean %d, %x, %t {ignore_index = 7 : i64}
      : tensor<f32>, tensor<4x3xf32>, tensor<4xi32>
  return %dx : tensor<4x3xf32>
}
""")
    x = numpy.ones((4, 3))
    x[1] = numpy.nan
    found = graph.run("f", numpy.array(3.0), x, numpy.array([-1, 7, 3, 1], numpy.int32))[0]
    assert numpy.isnan(found[[0, 2]]).all()
    assert (found[1] == 0).all()
    numpy.testing.assert_allclose(found[3], [1 / 3, -2 / 3, 1 / 3], rtol=1e-15)
    # Nothing counts: the loss is 0 / 0, its gradient is of no row.
    assert (graph.run("f", numpy.array(3.0), x, numpy.full(4, 7, numpy.int32))[0] == 0).all()


def batch_norm_by_chain_rule(dy, dmean, dvariance, x, gamma, axis):
    """Through the variance and the mean, as if they were inputs."""
    others = tuple(i for i in range(x.ndim) if i != axis)
    wide = lambda value: numpy.expand_dims(value, others)
    count = x.size // x.shape[axis]
    centered = x - x.mean(others, keepdims=True)
    variance = (centered**2).mean(others, keepdims=True) + ROUNDED_EPS
    normal, dn = centered / numpy.sqrt(variance), dy * wide(gamma)
    dvariance = wide(dvariance) + (dn * centered).sum(others, keepdims=True) * -0.5 * variance**-1.5
    dmean = wide(dmean) - (dn / numpy.sqrt(variance)).sum(others, keepdims=True)
    dx = dn / numpy.sqrt(variance) + dvariance * 2 * centered / count + dmean / count
    return dx, (dy * normal).sum(others), dy.sum(others)


@pytest.mark.parametrize("shape, axis, offset", [((4, 3, 5), 1, 0.0), ((4, 3, 5), 1, 1e4), ((7, 5), 1, 0.0),
                                                 ((3, 2, 2, 5), 3, 0.0), ((3, 5), 0, 0.0), ((2, 1, 3), 1, 0.0)])
@pytest.mark.parametrize("full", [True, False])
def test_batch_norm(weir, shape, axis, offset, full):
    x, channels = tensor(shape), tensor((shape[axis],))
    attributes = f"{{axis = {axis} : i64, eps = {EPS:.1e} : f64}} : {x}, {channels}"
    given = "".join(f"{name}(%{name} : {channels}) " for name in ["gamma", "dmean", "dvariance"]) if full else ""
    weights = f"gamma(%gamma : {channels}) beta(%beta : {channels}) " if full else ""
    graph = Graph(weir, f"""
func.func @forward(%x: {x}, %gamma: {channels}, %beta: {channels}) -> ({x}, {channels}, {channels}, {x}) {{
  %y, %mean, %variance = norm.batch_norm %x {weights}{attributes}
  %z = norm.batch_norm_inference %x, %mean, %variance {weights}{attributes}
  return %y, %mean, %variance, %z : {x}, {channels}, {channels}, {x}
}}
func.func @vjp(%dy: {x}, %x: {x}, %gamma: {channels}, %dmean: {channels}, %dvariance: {channels})
    -> ({x}, {channels}, {channels}) {{
  %g:3 = norm.batch_norm_vjp %dy, %x {given}{attributes}
  return %g#0, %g#1, %g#2 : {x}, {channels}, {channels}
}}
""")
    sample = Sample(seed=axis, offset=offset)
    values = [sample.normal(shape), *(sample.normal(shape[axis]) for _ in range(4)), sample.x(shape)]
    dy, gamma, beta, dmean, dvariance, x = values
    if not full:
        gamma, beta, dmean, dvariance = (value * 0 + (value is gamma) for value in (gamma, beta, dmean, dvariance))
    close = 1e-10 if offset else 1e-13
    wide = [value.astype(numpy.longdouble) for value in (dy, dmean, dvariance, x, gamma)]
    for found, expected in zip(graph.run("vjp", dy, x, gamma, dmean, dvariance),
                               batch_norm_by_chain_rule(*wide, axis), strict=True):
        assert distance(found, expected) < close
    others = tuple(i for i in range(len(shape)) if i != axis)
    x = x.astype(numpy.longdouble)
    mean, variance = x.mean(others), x.var(others)
    spread = lambda value: numpy.expand_dims(value, others)
    y = (x - spread(mean)) / numpy.sqrt(spread(variance) + ROUNDED_EPS) * spread(gamma) + spread(beta)
    for found, expected in zip(graph.run("forward", x.astype(numpy.float64), gamma, beta), (y, mean, variance, y), strict=True):
        assert distance(found, expected) < close


def normal_share(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def gelu_by_tanh(x):
    t = math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    return 0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t) * (1 + t) * slope


def silu(x):
    share = 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))
    rest = 1 / (1 + math.exp(x)) if x < 0 else math.exp(-x) / (1 + math.exp(-x))
    return x * share, share * (1 + x * rest)


# Value and derivative.
ACTIVATIONS = {
    "gelu": lambda x: (x * normal_share(x), normal_share(x) + x * math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)),
    "gelu {tanh_factor = 0.79788456080286541 : f64}": gelu_by_tanh, "silu": silu}


@pytest.mark.parametrize("flags", [["--device=reference"], []])
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(weir, name, element, flags):
    """Relative to each value, so in the tails, too; but where the tanh is 1 but for some digits."""
    x = numpy.concatenate([numpy.linspace(-9, 9, 301), [-600, -100, -20, 20, 100, 1e4]])
    op, *attributes = name.split(" ", 1)
    type, attributes = tensor(x.shape, element), " ".join(attributes)
    artifact = weir.compile_text(f"""
func.func @f(%x: {type}, %dy: {type}) -> ({type}, {type}) {{
  %y = norm.{op} %x {attributes} : {type}
  %dx = norm.{op}_vjp %dy, %x {attributes} : {type}
  return %y, %dx : {type}, {type}
}}""")
    x = x.astype({"f32": numpy.float32, "f64": numpy.float64}[element])
    save_file({"arg0": x, "arg1": numpy.full_like(x, 2)}, weir.folder / "inputs.safetensors")
    weir.run("run", artifact, *flags, "--input=inputs.safetensors", "--output=results.safetensors")
    results = load_file(weir.folder / "results.safetensors")
    y, dx = numpy.array([ACTIVATIONS[name](float(value)) for value in x]).T
    epsilon = numpy.finfo(x.dtype).eps
    absolute = 40 * epsilon if "tanh" in name else numpy.finfo(x.dtype).tiny
    numpy.testing.assert_allclose(results["result0"], y, rtol=100 * epsilon, atol=absolute)
    # The gradient passes 0, where two terms cancel.
    cancelled = 100 * epsilon * numpy.where(numpy.abs(x) < 3, 1, 0)
    assert (numpy.abs(results["result1"] - 2 * dx) <= 300 * epsilon * numpy.abs(dx) + absolute + cancelled).all()


# The test of each VJP, and why an op without one needs none.
TESTS = {"layer_norm": test_norm, "rms_norm": test_norm, "batch_norm": test_batch_norm, "softmax": test_softmax,
         "log_softmax": test_softmax, "logsumexp": test_logsumexp, "softmax_cross_entropy": test_cross_entropy,
         "gelu": test_activations, "silu": test_activations}
IN_OTHER_FILES = {"attention": "test_attention.py"}
WITHOUT_VJP = {"batch_norm_inference": "is elementwise: differentiated as its decomposition is",
               "argsort": "returns places, which have no gradient"}


def test_every_vjp_is_tested():
    """A new op of `norm` is in one of the tables."""
    ops = set(re.findall(r'Norm_Op<"(\w+)"', (ROOT / "dialects/Norm/Norm.td").read_text()))
    vjps = {op for op in ops if op.endswith("_vjp")}
    assert vjps == {f"{name}_vjp" for name in {*TESTS, *IN_OTHER_FILES}}
    assert ops - vjps == {*TESTS, *IN_OTHER_FILES, *WITHOUT_VJP} - {"softmax"}, "softmax is an op of linalg"


@pytest.mark.parametrize("flags", [["--device=reference"], []])
def test_graphs_of_f64_are_f64_throughout(weir, flags):
    """On the reference as written, and on Vulkan."""
    full, weights = tensor((6, 5), "f64"), tensor((5,), "f64")
    graph = weir.compile_text(f"""
func.func @f(%dy: {full}, %x: {full}, %gamma: {weights})
    -> ({full}, {weights}, {weights}, {full}, {weights}) {{
  %a:3 = norm.layer_norm_vjp %dy, %x gamma(%gamma : {weights})
      {{axes = 1 : i64, eps = {EPS:.1e} : f64}} : {full}, {weights}
  %b:2 = norm.rms_norm_vjp %dy, %x gamma(%gamma : {weights})
      {{axes = 1 : i64, eps = {EPS:.1e} : f64}} : {full}, {weights}
  return %a#0, %a#1, %a#2, %b#0, %b#1
      : {full}, {weights}, {weights}, {full}, {weights}
}}
""")
    random = numpy.random.default_rng(11)
    dy, x, gamma = (random.standard_normal(size) for size in ((6, 5), (6, 5), (5,)))
    save_file({"arg0": dy, "arg1": x, "arg2": gamma}, weir.folder / "inputs.safetensors")
    weir.run("run", graph, *flags, "--input=inputs.safetensors", "--output=results.safetensors")
    found = load_file(weir.folder / "results.safetensors")
    wide = [value.astype(numpy.longdouble) for value in (dy, x, gamma)]
    eps = numpy.longdouble(EPS)
    expected = [*layer_norm_by_chain_rule(*wide, 1, eps), *rms_norm_by_chain_rule(*wide, 1, eps)]
    for index, value in enumerate(expected):
        assert distance(found[f"result{index}"], value) < 1e-13
