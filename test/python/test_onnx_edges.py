"""ONNX's operators at the edges of their types: NaN, infinities, -0, denormals, the smallest integers, unsigned ones."""

import numpy
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed: scripts/setup --torch")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

import conftest  # noqa: E402, F401
from onnx import helper  # noqa: E402

import weir  # noqa: E402
import weir.onnx  # noqa: E402

TYPES = [numpy.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16",
                                        "float32", "float64")]


class Bundle:
    """A model of many nodes, each with the result that is expected."""

    def __init__(self):
        self._nodes, self._given, self._expected = [], {}, []

    def add(self, kind, operands, *expected, **attributes):
        """Adds a node. `expected`: its results; an operand of None is left out."""
        place = len(self._nodes)
        names = [f"x{place}_{i}" if value is not None else "" for i, value in enumerate(operands)]
        results = [f"y{place}_{i}" for i in range(len(expected))]
        self._given |= {name: numpy.asarray(value) for name, value in zip(names, operands) if name}
        self._nodes.append(helper.make_node(kind, names, results, name=f"{kind}{place}", **attributes))
        types = [numpy.asarray(value).dtype for value in operands if value is not None]
        self._expected += [(f"{kind} of {types}, {attributes}", name, numpy.asarray(value))
                           for name, value in zip(results, expected)]

    def check(self, opset=20):
        def describe(name, value):
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)

        graph = helper.make_graph(self._nodes, "bundle", [describe(*one) for one in self._given.items()],
                                  [describe(name, value) for _, name, value in self._expected])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        for (what, _, right), found in zip(self._expected, weir.onnx.run_model(model, self._given), strict=True):
            assert found.dtype == right.dtype
            numpy.testing.assert_array_equal(found, right, err_msg=what)
            if right.dtype.kind == "f" and "cast" in what.lower():
                assert (numpy.signbit(found) == numpy.signbit(right))[right == right].all(), what


def make_edges(kind):
    if kind.kind == "f":
        limits = numpy.finfo(kind)
        values = [1, numpy.nan, -0.0, 0, numpy.inf, -numpy.inf, limits.max, limits.tiny, limits.smallest_subnormal, -1, 5, -5,
                  0.1, 2.5, -3.5, 3]
        return numpy.array(values, kind)
    limits = numpy.iinfo(kind)
    values = [limits.min, limits.max, 0, 1, 7, 5, 100, 3, limits.max // 2 + 1, limits.max - 1, 200, 250, -1, -7, -100]
    return numpy.array([value for value in values if limits.min <= value <= limits.max], kind)


def make_pairs(kind):
    values = make_edges(kind)
    one, other = numpy.repeat(values, len(values)), numpy.tile(values, len(values))
    if kind.kind != "f":  # of these quotients neither ONNX nor a processor says anything
        kept = (other != 0) & ~((other == numpy.array(-1).astype(kind)) & (kind.kind == "i"))
        one, other = one[kept], other[kept]
    return one, other


def cast(values, kind):
    """Returns floats within the limits of integers, 0 of NaN; others wrap, or become floats."""
    if values.dtype.kind != "f" or kind.kind == "f":
        return values.astype(kind)
    limits = numpy.iinfo(kind)
    return numpy.array([0 if x != x else limits.max if x >= limits.max else limits.min if x <= limits.min else int(x)
                        for x in values.astype(numpy.float64)], kind)


def divide(one, other):
    if one.dtype.kind == "f":
        return one / other
    return numpy.array([abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)
                        for x, y in zip(one, other)], one.dtype)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_elements(kind):
    bundle, values, pair = Bundle(), make_edges(kind), make_pairs(kind)
    for name, function in [
            ("Add", numpy.add), ("Sub", numpy.subtract), ("Mul", numpy.multiply), ("Div", divide), ("Max", numpy.maximum),
            ("Min", numpy.minimum), ("Less", numpy.less), ("LessOrEqual", numpy.less_equal), ("Greater", numpy.greater),
            ("GreaterOrEqual", numpy.greater_equal), ("Equal", numpy.equal)]:
        bundle.add(name, pair, function(*pair))
    bundle.add("Mod", pair, numpy.fmod(*pair), fmod=1)
    bundle.add("Max", [values[:, None], values[:3], values[:1]],
               numpy.maximum(numpy.maximum(values[:, None], values[:3]), values[0]))
    bundle.add("Abs", [values], abs(values))
    bundle.add("Sign", [values], numpy.sign(values))
    low, high = numpy.array(5, kind), numpy.array(min(250, numpy.iinfo(kind).max) if kind.kind != "f" else 250, kind)
    bundle.add("Clip", [values, low, high], numpy.clip(values, low, high))
    bundle.add("Clip", [values, None, low], numpy.minimum(values, low))
    bundle.add("Clip", [values, high, low], numpy.where(values != values, values, low))
    bundle.add("Clip", [values[:0], low], values[:0])
    bundle.add("Mod", pair, numpy.mod(*pair))
    if kind.kind != "u":
        bundle.add("Neg", [values], -values)
        bundle.add("Relu", [values], numpy.where(values != values, values, numpy.maximum(values, 0)))
    else:
        distance = pair[1] % (8 * kind.itemsize)
        bundle.add("BitShift", [pair[0], distance], pair[0] >> distance, direction="RIGHT")
        bundle.add("BitShift", [pair[0], distance], pair[0] << distance, direction="LEFT")
        if kind.itemsize > 2:
            bundle.add("PRelu", [values, values], values)
    for other in TYPES:
        if other != kind:
            bundle.add("Cast", [values], cast(values, other), to=helper.np_dtype_to_tensor_dtype(other))
    bundle.check()


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_reductions(kind):
    """One row each with no NaN, some, and infinities in front."""
    bundle, values = Bundle(), make_edges(kind)
    if kind.kind == "f":
        rows = numpy.stack([numpy.where(values == values, values, 2), values, numpy.roll(values, 5)]).astype(kind)
    else:
        rows = numpy.stack([values, values[::-1], numpy.roll(values, 5)])
    axis, ties = numpy.array([1]), numpy.concatenate([rows, rows], 1)
    for name, function in ("ReduceMax", numpy.max), ("ReduceMin", numpy.min):
        bundle.add(name, [rows, axis], function(rows, axis=1), keepdims=0)
    for name, function in ("ArgMax", numpy.argmax), ("ArgMin", numpy.argmin):
        bundle.add(name, [ties], function(ties, axis=1), axis=1, keepdims=0)
        bundle.add(name, [ties], (ties.shape[1] - 1 - function(ties[:, ::-1], axis=1))[:, None], axis=1, select_last_index=1)
    count = values.size + 2  # NaN is larger than all numbers; of equal ones the first comes first
    order = numpy.argsort(ties, axis=1, kind="stable")
    back = ties.shape[1] - 1 - numpy.argsort(ties[:, ::-1], axis=1, kind="stable")[:, ::-1]
    for largest, places in (0, order[:, :count]), (1, back[:, :count]):
        bundle.add("TopK", [ties, numpy.array([count])], numpy.take_along_axis(ties, places, 1), places, largest=largest)
    if kind.kind != "f":
        with numpy.errstate(over="ignore"):
            bundle.add("ReduceSum", [rows, axis], rows.sum(1, dtype=kind), keepdims=0)
            bundle.add("ReduceProd", [rows, axis], rows.prod(1, dtype=kind), keepdims=0)
            bundle.add("ReduceSumSquare", [rows, axis], (rows * rows).sum(1, dtype=kind), keepdims=0)
            if kind.kind == "u":
                bundle.add("ReduceL1", [rows, axis], rows.sum(1, dtype=kind), keepdims=0)
    if kind.itemsize > 2 and kind.kind != "f":
        small = numpy.minimum(rows, 1000)
        small = numpy.maximum(small, -1000) if kind.kind == "i" else small
        wide = small.astype(numpy.float64)
        bundle.add("ReduceMean", [small, axis], numpy.trunc(wide.mean(1)).astype(kind), keepdims=0)
        bundle.add("ReduceL2", [small], numpy.sqrt((wide ** 2).sum(keepdims=True)).astype(kind))
    if kind.itemsize == 1:
        bundle.add("MaxPool", [ties[None]], numpy.maximum(ties[None, :, :-1], ties[None, :, 1:]), kernel_shape=[2])
    bundle.check()


def test_constants_of_rank_0():
    """A constant divisor is an initializer of the model."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
    halve (uint32[3] x, uint8[] y) => (uint32[3] a, uint8[] b) <uint32 two = {2}, uint8 three = {3}> {
      a = Div(x, two)
      b = Mod(y, three)
    }""")
    halves, rest = weir.onnx.run_model(model, [numpy.array([2**32 - 1, 5, 0], numpy.uint32), numpy.uint8(200)])
    assert (halves == [2**31 - 1, 2, 0]).all() and rest == 2


def test_quantized_convolutions():
    """Weights have scales and zero points of their own, and a bias, which is added before they scale."""
    random, bundle = numpy.random.default_rng(0), Bundle()
    for kind, padding, groups, scales in ((numpy.int8, 0, 1, 3), (numpy.uint8, 1, 3, 3), (numpy.int8, 1, 1, 1)):
        x, bias = random.integers(0, 256, (2, 3, 4, 5)).astype(numpy.uint8), random.integers(-9999, 9999, 3).astype(numpy.int32)
        limits = numpy.iinfo(kind)
        w = random.integers(limits.min, limits.max + 1, (3, 3 // groups, 2, 3)).astype(kind)
        scale = random.uniform(0.01, 0.02, scales).astype(numpy.float32)
        zero = random.integers(-3 if limits.min else 120, 3 if limits.min else 136, scales).astype(kind)
        operands = [x, numpy.float32(0.5), numpy.uint8(120), w, scale, zero, numpy.float32(5), numpy.uint8(100), bias]
        image = numpy.pad(x.astype(float) - 120, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
        kernel = (w - zero.astype(float).reshape(-1, 1, 1, 1))
        windows = numpy.lib.stride_tricks.sliding_window_view(image, (2, 3), (2, 3))
        parts = numpy.stack([numpy.einsum("nchwij,cij->nhw", windows[:, i // (4 - groups):][:, :3 // groups] if groups == 1
                                          else windows[:, i:i + 1], kernel[i]) for i in range(3)], 1)
        factor = (numpy.float32(0.5) * scale).reshape(-1, 1, 1)
        y = numpy.clip(numpy.rint((parts + bias.reshape(-1, 1, 1)) * factor / 5) + 100, 0, 255).astype(numpy.uint8)
        bundle.add("QLinearConv", operands, y, group=groups, pads=[padding] * 4)
    bundle.check()


def test_windows_over_padding_count_it():
    bundle, x = Bundle(), numpy.full((1, 1, 3, 3), 9, numpy.float32)
    right = [[2.25, 4.5], [4.5, 9]]  # the last windows have elements of the image and its padding alone
    bundle.add("AveragePool", [x], numpy.array([[right]], numpy.float32), kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1,
               pads=[1, 1, 0, 0], count_include_pad=1)
    bundle.add("AveragePool", [x], numpy.full((1, 1, 2, 2), 9, numpy.float32), kernel_shape=[2, 2], strides=[2, 2],
               ceil_mode=1, count_include_pad=1)
    bundle.check()


@pytest.mark.parametrize("index", [-5, 4, 2**31 + 1])
def test_scatters_outside_are_reported(index):
    """As gathers are; the smallest and the largest index that are inside, and constants."""
    def make(kind, *constants):
        text = "ScatterElements <axis = 0> (x, i, v)" if kind == "elements" else "ScatterND(x, j, v)"
        return onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]>
        write (float[4] x, float[2] v, int64[2] i) => (float[4] y) <int64[2] shape = {{2, 1}}> {{
          j = Reshape(i, shape)
          y = {text}
        }}""")

    x, v = numpy.arange(4, dtype=numpy.float32), numpy.array([10, 20], numpy.float32)
    for kind in "elements", "nd":
        prepared = weir.onnx.prepare(make(kind))
        assert (prepared.run([x, v, numpy.array([-4, 3])])[0] == [10, 1, 2, 20]).all()
        with pytest.raises(weir.Error, match=r"index that is not in \[0, 4\)"):
            prepared.run([x, v, numpy.array([0, index])])
        with pytest.raises(weir.onnx.ExportError, match="node Scatter.*writes at an index that is not in"):
            weir.onnx.export(make(kind), constants={"i": numpy.array([index, 0])})


def test_sizes_that_keep_the_aspect_ratio():
    from onnx.reference import ReferenceEvaluator

    x = numpy.random.default_rng(0).standard_normal((1, 2, 7, 5)).astype(numpy.float32)
    nodes, sizes = [], []
    for mode in ("nearest", "linear", "cubic"):
        for policy, bounds in (("not_larger", (4, 9)), ("not_smaller", (3, 2)), ("not_smaller", (10, 11))):
            place = len(nodes)
            sizes.append(onnx.numpy_helper.from_array(numpy.array(bounds), f"sizes{place}"))
            nodes.append(helper.make_node("Resize", ["x", "", "", f"sizes{place}"], [f"y{place}"], mode=mode, axes=[2, 3],
                                          keep_aspect_ratio_policy=policy))
    results = [helper.make_tensor_value_info(f"y{place}", onnx.TensorProto.FLOAT, None) for place in range(len(nodes))]
    graph = helper.make_graph(nodes, "resizes", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)], results, sizes)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    for right, found in zip(ReferenceEvaluator(model).run(None, {"x": x}), weir.onnx.run_model(model, {"x": x}), strict=True):
        numpy.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def pool(x, kernel, steps, pads, dilations, order):
    """Returns maxima and their places, by trying each. `pads`: before and behind each axis."""
    sizes = [(x.shape[2 + d] + sum(pads[d]) - dilations[d] * (kernel[d] - 1) - 1) // steps[d] + 1 for d in range(2)]
    made = numpy.zeros((*x.shape[:2], *sizes), x.dtype), numpy.zeros((*x.shape[:2], *sizes), numpy.int64)
    for n, c, i, j in numpy.ndindex(made[0].shape):
        places = [(i * steps[0] - pads[0][0] + a * dilations[0], j * steps[1] - pads[1][0] + b * dilations[1])
                  for a, b in numpy.ndindex(*kernel)]
        places = [(h, w) for h, w in places if 0 <= h < x.shape[2] and 0 <= w < x.shape[3]]
        h, w = places[numpy.argmax([x[n, c, h, w] for h, w in places])]  # the first of equal ones, or of NaNs
        made[0][n, c, i, j] = x[n, c, h, w]
        made[1][n, c, i, j] = (n * x.shape[1] + c) * x.shape[2] * x.shape[3] + (h + w * x.shape[2] if order else h * x.shape[3] + w)
    return made


def test_places_of_maxima():
    bundle, rng = Bundle(), numpy.random.default_rng(0)
    for dtype in (numpy.float32, numpy.uint8):
        x = rng.integers(0, 4, (2, 3, 7, 5)).astype(dtype)
        if dtype == numpy.float32:
            x[0, 0, 2, 2], x[1, 2, 0, 0], x[1, 1] = numpy.nan, numpy.nan, -numpy.inf
        for steps, pads, dilations, order in (((1, 1), ((0, 0), (0, 0)), (1, 1), 0), ((2, 3), ((1, 1), (1, 0)), (1, 1), 0),
                                              ((2, 1), ((0, 1), (1, 1)), (2, 2), 1)):
            expected = pool(x, (3, 2), steps, pads, dilations, order)
            bundle.add("MaxPool", [x], *expected, kernel_shape=[3, 2], strides=steps, dilations=dilations, storage_order=order,
                       pads=[pads[0][0], pads[1][0], pads[0][1], pads[1][1]])
    bundle.check()


def test_nan_is_not_equal_to_itself():
    x = make_edges(numpy.dtype("float32"))
    result = helper.make_tensor_value_info("y", onnx.TensorProto.BOOL, x.shape)
    given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)
    graph = helper.make_graph([helper.make_node("Equal", ["x", "x"], ["y"])], "same", [given], [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    [found] = weir.onnx.run_model(model, {"x": x})
    numpy.testing.assert_array_equal(found, x == x)


def test_sums_of_16_bits_on_the_way():
    """They may be infinite where the result is not."""
    x = (numpy.random.default_rng(3).random((1, 3, 16, 16)) * 600 + 100).astype(numpy.float16)
    wide, axes, bundle = x.astype(numpy.float64), numpy.array([2, 3]), Bundle()
    mean, norm = wide.mean((2, 3), keepdims=True), numpy.sqrt((wide * wide).sum((2, 3), keepdims=True))
    bundle.add("ReduceMean", (x, axes), mean.astype(numpy.float16))
    bundle.add("ReduceL2", (x, axes), norm.astype(numpy.float16))
    bundle.add("GlobalAveragePool", (x,), mean.astype(numpy.float16))
    bundle.add("AveragePool", (x,), mean.astype(numpy.float16), kernel_shape=[16, 16])
    bundle.add("GlobalLpPool", (x,), norm.astype(numpy.float16), p=2)
    bundle.check()
