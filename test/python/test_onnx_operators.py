"""ONNX's operators that weir.onnx writes out, on shapes that ONNX's own tests lack: against ONNX's reference."""

import numpy
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed: scripts/setup --torch")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:onnx.*")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

import conftest  # noqa: E402, F401
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import weir  # noqa: E402
import weir.onnx  # noqa: E402

RANDOM = numpy.random.default_rng(0)
LEARNED, TRAINING = "ai.onnx.ml", "ai.onnx.preview.training"


def normal(*shape, dtype=numpy.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def make_model(kind, inputs, count=1, opset=22, domain="", version=1, **attributes):
    """Returns a model of one node, and its inputs by name. An input of None is left out."""
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    results = [f"y{i}" for i in range(count)]
    given = {name: numpy.asarray(value) for name, value in zip(names, inputs) if name}
    graph = helper.make_graph(
        [helper.make_node(kind, names, results, name="node", domain=domain, **attributes)], "graph",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
         for name, value in given.items()],
        [helper.make_value_info(name, onnx.TypeProto()) for name in results])
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, version)] if domain else [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return onnx.shape_inference.infer_shapes(model, data_prop=True), given


def check(kind, inputs, count=1, tolerance=1e-5, **options):
    """Compares a node's results with those of ONNX's reference."""
    model, given = make_model(kind, inputs, count, **options)
    found = weir.onnx.prepare(model).run(given)
    for one, other in zip(found, ReferenceEvaluator(model).run(None, given), strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        one, other = one.astype(numpy.float64), other.astype(numpy.float64)
        numpy.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grids_sample_images(mode, padding):
    """Places reach several sizes of the image outside, where reflections repeat."""
    grid = RANDOM.uniform(-3.5, 3.5, (2, 3, 2, 2)).astype(numpy.float32)
    for align in 0, 1:
        check("GridSample", [normal(2, 3, 5, 2), grid], mode=mode, padding_mode=padding, align_corners=align)


def test_grids_of_other_ranks_and_types():
    grid = RANDOM.uniform(-1.5, 1.5, (1, 2, 1, 3, 3))
    check("GridSample", [normal(1, 2, 3, 1, 4, dtype=numpy.float64), grid], tolerance=1e-6, padding_mode="reflection")
    check("GridSample", [normal(2, 1, 7), grid.reshape(2, 9, 1).astype(numpy.float32)], padding_mode="border")
    # ONNX's reference computes places in f16, which Weir does not; these are exact in it.
    places = RANDOM.integers(-6, 7, (1, 5, 1, 2)) / 4
    check("GridSample", [normal(1, 2, 4, 2, dtype=numpy.float16), places.astype(numpy.float16)], tolerance=2e-3)
    check("GridSample", [RANDOM.integers(-9, 9, (1, 2, 4, 3)), places.astype(numpy.float32)], mode="nearest")
    # The older names of modes, which ONNX's reference lacks.
    inputs = [normal(1, 2, 4, 3), places.astype(numpy.float32)]
    one, other = (weir.onnx.run_model(*make_model("GridSample", inputs, opset=opset, mode=mode))[0]
                  for opset, mode in ((16, "bilinear"), (22, "linear")))
    assert (one == other).all()


def test_places_that_are_no_numbers_read_nothing_outside():
    grid = numpy.array([[[[numpy.inf, 0], [1e30, -1e30], [0, 0]]]], numpy.float32)
    model, given = make_model("GridSample", [normal(1, 1, 2, 2), grid], mode="nearest")
    assert (weir.onnx.prepare(model).run(given)[0] == [[[[0, 0, given["x0"][0, 0, 0, 0]]]]]).all()


@pytest.mark.parametrize("padding", ["zeros", "reflection"])
def test_gradients_of_grids(padding):
    """The image and the grid are trained by one step of rate 1, against PyTorch's gradients."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
    image, weight = normal(2, 3, 4, 5), normal(2, 3, 3, 2)
    grid = RANDOM.uniform(-1.3, 1.3, (2, 3, 2, 2)).astype(numpy.float32)
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 22]>
    train (float[2, 3, 3, 2] weight, float zero) => (float loss) {{
      x = Add(image, zero)
      places = Add(grid, zero)
      y = GridSample <padding_mode = "{padding}"> (x, places)
      z = Mul(y, weight)
      loss = ReduceSum <keepdims = 0> (z)
    }}""")
    model.graph.initializer.extend([numpy_helper.from_array(image, "image"), numpy_helper.from_array(grid, "grid")])
    with weir.onnx.compile(model, train="loss", optimizer=weir.SGD(learning_rate=1.0), device="cpu") as step:
        step(weight, numpy.float32(0))
        found = {name: before - step.state_dict()[name] for name, before in (("image", image), ("grid", grid))}
    x, places = (torch.tensor(value, requires_grad=True) for value in (image, grid))
    y = torch.nn.functional.grid_sample(x, places, padding_mode=padding, align_corners=False)
    (y * torch.tensor(weight)).sum().backward()
    numpy.testing.assert_allclose(found["image"], x.grad, rtol=1e-4, atol=1e-5)
    numpy.testing.assert_allclose(found["grid"], places.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
def test_regions_are_pooled(mode, transformation):
    regions = numpy.array([[0, 0, 4, 3], [1, 0.5, 6, 5.5], [2, 2, 2.2, 2.1], [-9, -9, -3, 30]], numpy.float32)
    check("RoiAlign", [normal(2, 3, 7, 5), regions, numpy.array([0, 1, 1, 0])], opset=16, mode=mode, output_height=2,
          output_width=3, sampling_ratio=2, spatial_scale=0.75, coordinate_transformation_mode=transformation)


def test_regions_with_samples_by_their_size_are_refused():
    model, _ = make_model("RoiAlign", [normal(1, 1, 4, 4), normal(2, 4), numpy.array([0, 0])])
    with pytest.raises(weir.onnx.ExportError, match="RoiAlign, node node: with sampling_ratio 0"):
        weir.onnx.export(model)


def test_deformed_convolutions():
    """Two groups, three of offsets, which lead outside, other steps for each axis, a mask and a bias."""
    x, weight, bias = normal(2, 6, 5, 7), normal(4, 3, 3, 2), normal(4)
    check("DeformConv", [x, weight, normal(2, 36, 4, 3), bias, normal(2, 18, 4, 3)], tolerance=1e-4, group=2,
          offset_group=3, pads=[1, 0, 0, 1], strides=[1, 2], dilations=[1, 2])
    check("DeformConv", [normal(1, 1, 3, 4, dtype=numpy.float64), normal(2, 1, 2, 2, dtype=numpy.float64),
                         normal(1, 8, 2, 3, dtype=numpy.float64)], opset=19, kernel_shape=[2, 2])


@pytest.mark.parametrize("shape, sizes, kernel, options", [
    ((2, 18, 20), (5, 7), (2, 3), {}),
    ((1, 12, 6), (7, 5), (3, 2), {"strides": [2, 2], "pads": [1, 0, 0, 1], "dilations": [1, 2]}),
    ((1, 6, 6), (8,), (3,), {}),
    ((1, 4, 24), (4, 4, 3), (2, 1, 2), {}),
])
def test_columns_become_images(shape, sizes, kernel, options):
    check("Col2Im", [normal(*shape), numpy.array(sizes), numpy.array(kernel)], opset=18, **options)


def test_bits_are_kept():
    words = RANDOM.integers(-2**31, 2**31, 5).astype(numpy.int32)
    check("BitCast", [words], opset=26, to=TensorProto.UINT32)
    check("BitCast", [words.view(numpy.uint32)], opset=26, to=TensorProto.INT32)
    check("BitCast", [normal(1, 3, dtype=numpy.float16)], opset=26, to=TensorProto.INT16)
    check("BitCast", [numpy.array([0, 1, 1], numpy.int8)], opset=26, to=TensorProto.BOOL)
    # Twice, with arithmetic between: what is cast is a result of the program, and the cast an operand.
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 26]>
    flip (float[4] x) => (float[4] y) {
      sum = Add(x, x)
      bits = BitCast <to = 6> (sum)
      sign = Constant <value: tensor = int32 {-2147483648}> ()
      flipped = Add(bits, sign)
      y = BitCast <to = 1> (flipped)
    }""")
    x = normal(4)
    assert (weir.onnx.run_model(model, [x])[0] == -2 * x).all()


@pytest.mark.parametrize("matrices", [normal(3, 5, 5), normal(1, 1), numpy.zeros((2, 3, 3), numpy.float32),
                                      numpy.array([[0, 2, 1], [0, 0, 3], [4, 1, 1]], numpy.float32),
                                      normal(2, 1, 7, 7, dtype=numpy.float64),
                                      normal(40, 40, dtype=numpy.float64)], ids=lambda value: str(value.shape))
def test_determinants(matrices):
    check("Det", [matrices])


@pytest.mark.parametrize("time", [0, 1, 7])
def test_optimizers(time):
    """Two tensors each; the first step corrects nothing."""
    x, gradient, mean = ([normal(3, 2), normal(5)] for _ in range(3))
    squares = [abs(normal(3, 2)), abs(normal(5))]
    start = [numpy.float32(0.1), numpy.int64(time)]
    check("Adam", [*start, *x, *gradient, *mean, *squares], 6, domain=TRAINING, alpha=0.95, beta=0.85, epsilon=1e-2,
          norm_coefficient=0.001, norm_coefficient_post=0.01)
    check("Adagrad", [*start, *x, *gradient, *squares], 4, domain=TRAINING, decay_factor=0.1, epsilon=1e-3)
    for mode in "standard", "nesterov":
        check("Momentum", [*start, *x, *gradient, *mean], 4, domain=TRAINING, alpha=0.9, beta=0.8, mode=mode,
              norm_coefficient=0.01)


def test_windows_over_the_end():
    for options in {"pads": [1, 0, 1, 1]}, {"count_include_pad": 1}:
        check("AveragePool", [normal(2, 3, 9, 8)], kernel_shape=[2, 3], dilations=[2, 2], strides=[3, 2], ceil_mode=1,
              **options)
    check("AveragePool", [normal(1, 2, 7, 5, 6, dtype=numpy.float16)], opset=19, tolerance=2e-3, kernel_shape=[3, 2, 2],
          dilations=[2, 1, 3], strides=[2, 2, 2], ceil_mode=1)


def test_norms_of_windows():
    check("LpPool", [normal(2, 3, 5, 6)], kernel_shape=[2, 3], strides=[2, 1], pads=[1, 0, 0, 1], p=3)
    check("LpPool", [normal(1, 2, 7, dtype=numpy.float16)], tolerance=4e-3, kernel_shape=[3], dilations=[2], p=1)
    check("LpPool", [normal(1, 1, 5, 4)], kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER")


def test_blocks_have_scales():
    """The last block is shorter, along either axis."""
    bytes_ = RANDOM.integers(-128, 128, (4, 7)).astype(numpy.int8)
    for axis, shape in ((1, (4, 3)), (0, (2, 7))):
        scale = RANDOM.uniform(0.5, 2, shape).astype(numpy.float32)
        zero = RANDOM.integers(-9, 9, shape).astype(numpy.int8)
        full, low = (numpy.repeat(one, 3, axis)[:4, :7] for one in (scale, zero))
        for kind, x, right in (("DequantizeLinear", bytes_, (bytes_ - low.astype(numpy.float32)) * full),
                               ("QuantizeLinear", full * bytes_ / 2, None)):
            model, given = make_model(kind, [x, scale, zero], axis=axis, block_size=3)
            found = weir.onnx.prepare(model).run(given)[0]
            if right is None:
                right = numpy.clip(numpy.rint(x / full) + low, -128, 127)
            numpy.testing.assert_array_equal(found, right)


def test_integers_are_padded_by_their_zero_point():
    def draw(*shape):
        return RANDOM.integers(0, 256, shape).astype(numpy.uint8)

    check("ConvInteger", [draw(1, 2, 5, 6), draw(3, 2, 3, 2), numpy.uint8(7)], opset=10, pads=[1, 0, 2, 1])
    check("ConvInteger", [draw(1, 2, 5), draw(2, 1, 3), None, numpy.uint8(3)], opset=10, auto_pad="SAME_UPPER",
          strides=[2], group=2)
    check("ConvInteger", [draw(2, 2, 4, 5), draw(3, 2, 2, 2), numpy.uint8(9), draw(3)], opset=10, pads=[0, 1, 1, 0])


def test_pools_are_undone():
    places = RANDOM.permutation(24)[:12].reshape(1, 2, 2, 3)
    check("MaxUnpool", [normal(1, 2, 2, 3), places], kernel_shape=[2, 1], strides=[2, 1])
    check("MaxUnpool", [normal(1, 2, 2, 3), places, numpy.array([1, 2, 5, 7])], kernel_shape=[2, 1], strides=[2, 1])


def test_spectra_of_frames():
    check("STFT", [normal(2, 23, 1), numpy.int64(5), normal(7)], opset=17)
    check("STFT", [normal(1, 23, 2), numpy.int64(3), None, numpy.int64(6)], opset=20, onesided=0)


def test_features_and_thresholds():
    check("ArrayFeatureExtractor", [normal(3, 7), numpy.array([0, 6, 3])], domain=LEARNED)
    check("ArrayFeatureExtractor", [normal(5), numpy.array([[4, 1]])], domain=LEARNED)
    check("Binarizer", [normal(3, 7)], domain=LEARNED, threshold=0.25)


@pytest.mark.parametrize("function", [0, 1])
def test_trees(function):
    """Two trees of other depths, one of which is inside of the other; a feature that is missing."""
    def tensor(values, dtype=numpy.float32):
        return numpy_helper.from_array(numpy.array(values, dtype))

    x = normal(11, 3)
    x[2, 1] = numpy.nan
    check("TreeEnsemble", [x], domain=LEARNED, version=5, aggregate_function=function, n_targets=2, tree_roots=[0, 3],
          nodes_featureids=[0, 1, 2, 1], nodes_splits=tensor([0.1, -0.2, 0.3, 0.5]),
          nodes_modes=tensor([0, 3, 1, 5], numpy.uint8), nodes_truenodeids=[1, 0, 2, 5], nodes_trueleafs=[0, 1, 1, 1],
          nodes_falsenodeids=[2, 1, 3, 4], nodes_falseleafs=[0, 1, 0, 1], nodes_missing_value_tracks_true=[0, 1, 0, 0],
          leaf_targetids=[0, 1, 0, 1, 1, 0], leaf_weights=tensor([1.5, 2, -3, 4, 0.25, 7]))


@pytest.mark.parametrize("kind, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_sequences_of_their_own_lengths(kind, gates, direction):
    """Each is as it is alone: ONNX's reference has no lengths."""
    size, lengths = 5, [4, 1, 3]
    x, rows = normal(4, 3, 2), gates * size
    weights = [normal(1, rows, 2), normal(1, rows, size), normal(1, 2 * rows)]
    count = 3 if kind == "LSTM" else 2
    model, given = make_model(kind, [x, *weights, numpy.array(lengths, numpy.int32)], count, hidden_size=size,
                              direction=direction)
    rows, *last = weir.onnx.prepare(model).run(given)
    turn = slice(None, None, -1) if direction == "reverse" else slice(None)
    for i, length in enumerate(lengths):
        alone, values = make_model(kind, [x[:length, i:i + 1][turn], *weights], 2, hidden_size=size)
        expected, state = ReferenceEvaluator(alone).run(None, values)
        numpy.testing.assert_allclose(rows[:length, :, i:i + 1], expected[turn], rtol=1e-5, atol=1e-5)
        numpy.testing.assert_allclose(last[0][:, i:i + 1], state, rtol=1e-5, atol=1e-5)
        assert not rows[length:, :, i].any()


@pytest.mark.parametrize("options", [{"input_forget": 1}, {"clip": 0.5},
                                     {"activations": ["HardSigmoid", "Tanh", "Tanh"]}])
def test_recurrences_that_torch_mlir_has_other_values_for_are_refused(options):
    model, _ = make_model("LSTM", [normal(2, 1, 2), normal(1, 12, 2), normal(1, 12, 3)], hidden_size=3, **options)
    with pytest.raises(weir.onnx.ExportError, match="LSTM, node node"):
        weir.onnx.export(model)
