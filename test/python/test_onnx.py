"""ONNX models through weir.onnx: its backend interface, parameters, training, and what is refused."""

import importlib
import subprocess
import sys

import numpy
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed: scripts/setup --torch")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:onnx.*")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from conftest import BIN, ENVIRONMENT  # noqa: E402
from onnx import helper, numpy_helper, parser  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

import weir  # noqa: E402
import weir.onnx  # noqa: E402

RANDOM = numpy.random.default_rng(0)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


def make_model(text, **initializers):
    """Returns a model from ONNX's text."""
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]>\n{text}')
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in initializers.items())
    return model


DENSE = """dense (float[batch, 6] x) => (float[batch, 4] y, float[batch, 4] z) {
  h = MatMul(x, weight)
  y = Add(h, bias)
  z = Tanh(y)
}"""


def make_dense():
    model = make_model(DENSE, weight=normal(6, 4), bias=normal(4))
    for node, tensor in zip(model.graph.node, model.graph.initializer):
        tensor.name = node.input[1] = f"layer.{tensor.name}"
    return model


@pytest.mark.parametrize("count", [40, 10001])
@pytest.mark.parametrize("options", ["", "<exclusive=1, reverse=1>"])
def test_running_sums_of_long_rows(options, count):
    """The compiler makes scans of rows of 40, whose masks are so large that MLIR prints them in hexadecimal. Rows of 10,001
    are added in steps."""
    model = make_model(f"running (float[3, {count}] x) => (float[3, {count}] y) {{ y = CumSum{options}(x, axis) }}",
                       axis=numpy.array(1))
    x = normal(3, count)
    [made] = weir.onnx.prepare(model, device="cpu").run([x])
    expected = numpy.cumsum(x, 1) if not options else numpy.cumsum(x[:, ::-1], 1)[:, ::-1] - x
    numpy.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5 if count == 40 else 1e-3)


def test_initializers_are_parameters_and_sizes_have_names(tmp_path):
    model, x = make_dense(), normal(3, 6)
    weight, bias = map(numpy_helper.to_array, model.graph.initializer)
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, size_threshold=0, location="weights.bin")
    with weir.onnx.compile(tmp_path / "model.onnx", shapes={"batch": 3}, device="cpu") as program:
        for result in (program(x), program(x=x)):
            numpy.testing.assert_allclose(result["y"].numpy(), x @ weight + bias, rtol=1e-5, atol=1e-5)
            numpy.testing.assert_allclose(result["z"].numpy(), numpy.tanh(x @ weight + bias), rtol=1e-5, atol=1e-5)
        assert set(program.state_dict()) == {"layer.weight", "layer.bias"}
        with pytest.raises(TypeError, match="the model takes x; 2 arguments are given"):
            program(x, x)
    with pytest.raises(weir.onnx.ExportError, match=r"inputs of unknown size: x: batch, 6; give them as shapes="):
        weir.onnx.export(model)
    with pytest.raises(weir.onnx.ExportError, match="shapes has bach, which is neither an input nor a size of one"):
        weir.onnx.export(model, {"bach": 3})


def test_several_shapes_are_entries_that_share_parameters():
    model = make_dense()
    weight, bias = map(numpy_helper.to_array, model.graph.initializer)
    with weir.onnx.compile(model, [{"batch": 1}, {"x": (5, 6)}], device="cpu") as program:
        assert list(program.entries) == ["main.0", "main.1"]
        for count in (5, 1):
            x = normal(count, 6)
            numpy.testing.assert_allclose(program(x)["y"].numpy(), x @ weight + bias, rtol=1e-5, atol=1e-5)
        program.load_state_dict({"layer.weight": weight * 2, "layer.bias": bias})
        for count in (5, 1):
            x = normal(count, 6)
            numpy.testing.assert_allclose(program(x)["y"].numpy(), x @ weight * 2 + bias, rtol=1e-5, atol=1e-5)
        with pytest.raises(ValueError, match=r"no entry takes these arguments; main.0: x is float32\[2, 6\], expected "
                                             r"float32\[1, 6\]; main.1: x is float32\[2, 6\], expected float32\[5, 6\]"):
            program(normal(2, 6))
    with pytest.raises(TypeError, match="a step has one entry; give the shapes of one call"):
        weir.onnx.compile(model, [{"batch": 1}, {"batch": 2}], train="y", device="cpu")
    with pytest.raises(TypeError, match="the list of shapes is empty"):
        weir.onnx.compile(model, [], device="cpu")


def test_training_updates_what_the_patterns_name():
    model = make_model("""train (float[5, 6] x, float[5, 4] target) => (float loss, float[5, 4] y) {
      y = Gemm(x, weight, bias)
      difference = Sub(y, target)
      square = Mul(difference, difference)
      loss = ReduceMean <keepdims: int = 0> (square)
    }""", weight=normal(6, 4), bias=normal(4))
    weight, bias = map(numpy_helper.to_array, model.graph.initializer)
    x, target = normal(5, 6), normal(5, 4)
    with weir.onnx.compile(model, train="loss", trained=["w*"], optimizer=weir.SGD(learning_rate=0.5),
                           device="cpu") as step:
        for _ in range(2):
            difference = x @ weight + bias - target
            assert float(step(x, target)) == pytest.approx(float((difference**2).mean()), rel=1e-5)
            numpy.testing.assert_allclose(step.output["y"].numpy(), x @ weight + bias, rtol=1e-4, atol=1e-5)
            weight = weight - 0.5 * 2 * x.T @ difference / difference.size
        numpy.testing.assert_allclose(step.state_dict()["weight"], weight, rtol=1e-4, atol=1e-5)
        assert (step.state_dict()["bias"] == bias).all()
    with pytest.raises(weir.onnx.ExportError, match="the loss y is float32.* must be one float of rank 0"):
        weir.onnx.compile(model, train="y", device="cpu")
    with pytest.raises(TypeError, match="optimizer is an option of a step"):
        weir.onnx.compile(model, optimizer=weir.SGD(), device="cpu")
    for options in {}, {"train": "loss"}:
        with pytest.raises(weir.CompileError, match="--precision=tf32: profile .* has no instructions on matrices"):
            weir.onnx.compile(model, device="cpu", precision="tf32", **options)


def test_trained_initializers_keep_their_names_behind_operators_on_constants():
    model = make_model("""folded (float[5, 6] x) => (float loss) {
      turned = Transpose (weight)
      halved = Mul(turned, half)
      shape = Constant <value_ints = [6, 4]> ()
      square = Reshape(halved, shape)
      y = MatMul(x, square)
      loss = ReduceMean <keepdims: int = 0> (y)
    }""", weight=normal(4, 6), half=numpy.float32([0.5]))
    weight, x = numpy_helper.to_array(model.graph.initializer[0]), normal(5, 6)
    with weir.onnx.compile(model, train="loss", trained=["w*"], optimizer=weir.SGD(learning_rate=0.5),
                           device="cpu") as step:
        assert float(step(x)) == pytest.approx(float((x @ weight.T / 2).mean()), rel=1e-5, abs=1e-6)
        expected = weight - 0.5 * numpy.broadcast_to(x.sum(0) / 2 / 20, (4, 6))
        numpy.testing.assert_allclose(step.state_dict()["weight"], expected, rtol=1e-4, atol=1e-5)
    exported = weir.onnx.export(model, train="loss", trained=["half"])
    assert [argument.name for argument in exported.arguments] == ["x", "half", "turned"]
    assert [argument.name for argument in weir.onnx.export(model).arguments] == ["x", "square"]


def test_all_operators_that_do_not_lower_are_named():
    model = make_model("""bad (float[0, 0] x, float[5, 1, 2] steps, float[1, 6, 2] w, float[1, 6, 2] r) =>
                              (float d, float[5, 1, 1, 2] s, int64[2, n] places) {
      [first] y = Det(x)
      d = Identity(y)
      [second] s = GRU <hidden_size: int = 2, clip: float = 0.5> (steps, w, r)
      places = NonZero(x)
    }""")
    with pytest.raises(weir.onnx.ExportError, match="the size of places depends on values"):
        weir.onnx.export(model)
    del model.graph.output[2]
    with pytest.raises(weir.onnx.ExportError) as error:
        weir.onnx.export(model)
    lines = str(error.value).splitlines()
    assert lines[0] == "the model has operators without a form in linalg:"
    assert lines[1] == "  Det, node first: square matrices of one row or more have one"
    assert lines[2].startswith("  GRU, node second: torch-mlir lowers clip, ") and len(lines) == 3


def test_operators_of_others_and_other_types_are_refused():
    model = make_dense()
    model.graph.node[1].domain = "com.example"
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(weir.onnx.ExportError, match=r"not ONNX's own: .* \(com.example.Add\)"):
        weir.onnx.export(model, {"batch": 1})
    text = make_model("agraph (string[2] x) => (string[2] y) { y = Identity(x) }")
    with pytest.raises(weir.onnx.ExportError, match="x is of type STRING, which Weir has not"):
        weir.onnx.export(text)
    with pytest.raises(weir.onnx.ExportError, match="the bytes are no ONNX model"):
        weir.onnx.export(b"no model")


def test_sizes_that_inputs_give_are_constants_of_a_program():
    model = make_model("agraph (float[n] x, int64[k] shape) => (float[a, b] y) { y = Reshape(x, shape) }")
    x, shape = normal(6), numpy.array([2, 3])
    with pytest.raises(weir.onnx.ExportError, match="sizes or axes depend on the values of shape"):
        weir.onnx.export(model, {"x": (6,), "shape": (2,)})
    prepared = weir.onnx.prepare(model)
    assert (prepared.run([x, shape])[0] == x.reshape(2, 3)).all()
    assert (prepared.run({"x": x, "shape": shape[::-1].copy()})[0] == x.reshape(3, 2)).all()
    assert (prepared.run([normal(4), numpy.array([-1, 1])])[0].shape) == (4, 1)


def test_backend_interface():
    assert weir.onnx.supports_device("CPU") and not weir.onnx.supports_device("TPU")
    assert weir.onnx.is_compatible(make_dense())
    node = helper.make_node("Add", ["a", "b"], ["c"])
    assert (weir.onnx.run_node(node, [numpy.arange(3), numpy.arange(3)])[0] == [0, 2, 4]).all()


def test_loops_of_known_length_are_unrolled():
    model = make_model("""agraph (float[3] x) => (float[3] last, float[4, 3] all) {
      trips = Constant <value: tensor = int64 {4}> ()
      go = Constant <value: tensor = bool {1}> ()
      last, all = Loop (trips, go, x) <body: graph = body (int64 i, bool c, float[3] a) => (bool d, float[3] b, float[3] s) {
        d = Identity(c)
        j = Cast <to: int = 1> (i)
        b = Add(a, j)
        s = Mul(b, b)
      }>
    }""")
    x = normal(3)
    last, rows = weir.onnx.run_model(model, [x])
    expected = [x + sum(range(i + 1)) for i in range(4)]
    numpy.testing.assert_allclose(last, expected[-1], rtol=1e-6)
    numpy.testing.assert_allclose(rows, numpy.square(expected), rtol=1e-6)


def test_long_loops_stay_loops():
    model = make_model("""agraph (float[3] x) => (float[3] last) {
      trips = Constant <value: tensor = int64 {4200}> ()
      go = Constant <value: tensor = bool {1}> ()
      last = Loop (trips, go, x) <body: graph = body (int64 i, bool c, float[3] a) => (bool d, float[3] b) {
        d = Identity(c)
        half = Constant <value: tensor = float {0.5}> ()
        h = Mul(a, half)
        b = Add(h, x)
      }>
    }""")
    x = normal(3)
    expected = x
    for _ in range(4200):
        expected = expected * numpy.float32(0.5) + x
    numpy.testing.assert_allclose(weir.onnx.run_model(model, [x])[0], expected, rtol=1e-6)


def run_reference(model, *inputs):
    names = [value.name for value in model.graph.input]
    return onnx.reference.ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))


def compare(model, *inputs, loops):
    """Runs a model whose graph has so many loops and branches, and compares with ONNX's reference."""
    text = weir.onnx.export(model).text
    found = {name: text.count(f"scf.{name} ") for name in ("for", "while", "if")}
    assert {name: count for name, count in found.items() if count} == loops, text
    for value, wanted in zip(weir.onnx.run_model(model, list(inputs)), run_reference(model, *inputs), strict=True):
        assert value.dtype == wanted.dtype and value.shape == wanted.shape
        numpy.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


SEARCH = """agraph (float[3] x, float limit) => (float[3] last, int64 count) {
  trips = Constant <value: tensor = int64 {40}> ()
  go = Constant <value: tensor = bool {1}> ()
  none = Constant <value: tensor = int64 {0}> ()
  last, count = Loop (TRIPS, go, x, none) <body: graph = body (int64 i, bool c, float[3] a, int64 k) => (bool d, float[3] b, int64 m) {
    b = Add(a, a)
    one = Constant <value: tensor = int64 {1}> ()
    m = Add(k, one)
    norm = ReduceSum <keepdims: int = 0> (b)
    d = Less(norm, limit)
  }>
}"""


@pytest.mark.parametrize("trips", ["trips", ""])
def test_loops_that_a_condition_ends(trips):
    model = make_model(SEARCH.replace("TRIPS", trips))
    for limit in (0.0, 9.0, 1000.0, 1e30 if trips else 1e6):
        compare(model, numpy.ones(3, numpy.float32), numpy.float32(limit), loops={"while": 1})


@pytest.mark.parametrize("condition", ["go", "p"])
def test_loops_that_a_computed_count_ends(condition):
    model = make_model("""agraph (float[3] x, int64 n, bool p, float[1, 3] w) => (float[3] last) {
      go = Constant <value: tensor = bool {1}> ()
      one = Constant <value: tensor = int64 {1}> ()
      trips = Add(n, one)
      last = Loop (trips, %s, x) <body: graph = body (int64 i, bool c, float[3] a) => (bool d, float[3] b) {
        d = Identity(c)
        j = Cast <to: int = 1> (i)
        h = Mul(a, x)
        axis = Constant <value: tensor = int64[1] {0}> ()
        v = Squeeze(w, axis)
        g = Add(h, v)
        b = Add(g, j)
      }>
    }""" % condition)
    for n, p in ((-1, True), (0, True), (6, True), (6, False)):
        compare(model, normal(3), numpy.int64(n), numpy.bool_(p or condition == "go"), normal(1, 3), loops={"while": 1})


def test_long_loops_and_scans_collect_rows():
    model = make_model("""agraph (float[3] x, float[300, 3] xs) => (float[3] last, float[300, 3] rows, float[3] end, float[300] sums) {
      trips = Constant <value: tensor = int64 {300}> ()
      go = Constant <value: tensor = bool {1}> ()
      last, rows = Loop (trips, go, x) <body: graph = body (int64 i, bool c, float[3] a) => (bool d, float[3] b, float[3] r) {
        d = Identity(c)
        j = Cast <to: int = 1> (i)
        b = Sin(a)
        r = Add(b, j)
      }>
      end, sums = Scan <num_scan_inputs: int = 1, body: graph = body (float[3] a, float[3] row) => (float[3] b, float s) {
        h = Add(a, row)
        b = Tanh(h)
        s = ReduceSum <keepdims: int = 0> (b)
      }> (x, rows)
    }""")
    # vstack, by which ONNX's reference joins the rows of a Loop, has them as these are.
    compare(model, normal(3), normal(300, 3), loops={"for": 2})


def test_scans_backward_along_other_axes():
    """ONNX's reference has neither."""
    model = make_model("""agraph (float[3] x, float[3, 100] xs) => (float[3] last, float[3, 100] rows) {
      last, rows = Scan <num_scan_inputs: int = 1, scan_input_axes: ints = [1], scan_input_directions: ints = [1],
                         scan_output_axes: ints = [-1], scan_output_directions: ints = [1],
                         body: graph = body (float[3] a, float[3] row) => (float[3] b, float[3] s) {
        half = Constant <value: tensor = float {0.5}> ()
        h = Mul(a, half)
        b = Add(h, row)
        s = Sub(b, x)
        unused = Neg(b)
      }> (x, xs)
    }""")
    x, xs = normal(3), normal(3, 100)
    assert weir.onnx.export(model).text.count("scf.for ") == 1
    last, rows = weir.onnx.run_model(model, [x, xs])
    h, expected = x, numpy.zeros((3, 100), numpy.float32)
    for i in reversed(range(100)):
        h = h * numpy.float32(0.5) + xs[:, i]
        expected[:, i] = h - x
    numpy.testing.assert_allclose(last, h, rtol=1e-5, atol=1e-6)
    numpy.testing.assert_allclose(rows, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("p", [False, True])
def test_branches_that_data_decide(p):
    """A branch reads from outside, has a loop, or operators that torch-mlir has other values for."""
    model = make_model("""agraph (float[3] x, bool p, int64 n) => (float[3] last, float[1, 2] other) {
      go = Constant <value: tensor = bool {1}> ()
      twice = Add(x, x)
      last, other = If (p) <then_branch: graph = yes () => (float[3] a, float[1, 2] b) {
        a = Loop (n, go, twice) <body: graph = body (int64 i, bool c, float[3] a) => (bool d, float[3] b) {
          d = Identity(c)
          same = If (p) <then_branch: graph = yes () => (float[3] s) { s = Sin(a) },
                         else_branch: graph = no () => (float[3] s) { s = Cos(a) }>
          b = Add(same, x)
        }>
        b = Constant <value: tensor = float[1, 2] {1, 2}> ()
      }, else_branch: graph = no () => (float[3] a, float[1, 2] b) {
        t = Abs(x)
        a = Sqrt(t)
        shape = Constant <value: tensor = int64[4] {1, 1, 1, 3}> ()
        image = Reshape(x, shape)
        pooled = AveragePool <kernel_shape: ints = [1, 2], ceil_mode: int = 1, strides: ints = [1, 2]> (image)
        two = Constant <value: tensor = int64[2] {1, 2}> ()
        b = Reshape(pooled, two)
      }>
    }""")
    compare(model, normal(3), numpy.bool_(p), numpy.int64(5), loops={"while": 1, "if": 2})


def test_initializers_that_a_loop_reads_are_parameters():
    model = make_model("""agraph (float[3] x, int64 n) => (float[3] last) {
      go = Constant <value: tensor = bool {1}> ()
      last = Loop (n, go, x) <body: graph = body (int64 i, bool c, float[3] a) => (bool d, float[3] b) {
        d = Identity(c)
        h = MatMul(a, w)
        b = Tanh(h)
      }>
    }""", w=normal(3, 3))
    assert list(weir.onnx.export(model).parameters) == ["w"]
    compare(model, normal(3), numpy.int64(4), loops={"while": 1})


@pytest.mark.parametrize("text, reason", [
    ("""agraph (float[3] x, float limit) => (float[3] last, float[N, 3] rows) {
      trips = Constant <value: tensor = int64 {4}> ()
      go = Constant <value: tensor = bool {1}> ()
      [search] last, rows = Loop (trips, go, x) <body: graph = body (int64 i, bool c, float[3] a) => (bool d, float[3] b, float[3] r) {
        b = Add(a, a)
        r = Identity(b)
        norm = ReduceSum <keepdims: int = 0> (b)
        d = Less(norm, limit)
      }>
    }""", "Loop, node search: it collects a row in each trip, and data decide how many"),
    ("""agraph (float[3] x, float limit) => (float[N] last) {
      trips = Constant <value: tensor = int64 {4}> ()
      go = Constant <value: tensor = bool {1}> ()
      [search] last = Loop (trips, go, x) <body: graph = body (int64 i, bool c, float[N] a) => (bool d, float[M] b) {
        b = Concat <axis: int = 0> (a, a)
        norm = ReduceSum <keepdims: int = 0> (b)
        d = Less(norm, limit)
      }>
    }""", r"Loop, node search: it carries x, which is float\[3\] before a trip and float\[6\] behind it"),
], ids=["rows", "shapes"])
def test_loops_of_unknown_sizes_are_refused(text, reason):
    with pytest.raises(weir.onnx.ExportError, match=reason):
        weir.onnx.export(make_model(text))


COUNTED = """agraph (float[3] x, int64 n, float[5, 3] xs) => (float[3] last, int64 total, float[3] end, float[5] sums) {
  none = Constant <value: tensor = int64 {0}> ()
  go = Constant <value: tensor = bool {1}> ()
  last, total = Loop (n, go, x, none) <body: graph = body (int64 i, bool c, float[3] a, int64 k) => (bool d, float[3] b, int64 m) {
    limit = Constant <value: tensor = int64 {9000000000}> ()
    m = Add(k, limit)
    e = Greater(i, limit)
    d = Not(e)
    j = Cast <to: int = 1> (i)
    b = Add(a, j)
  }>
  CHOICE
  end, sums = Scan <num_scan_inputs: int = 1, body: graph = body (float[3] a, float[3] row) => (float[3] b, float s) {
    h = Add(a, row)
    b = Tanh(h)
    s = ReduceSum <keepdims: int = 0> (b)
  }> (y, xs)
}"""


CHOICE = """few = Constant <value: tensor = int64 {2}> ()
  p = Less(n, few)
  y = If (p) <then_branch: graph = yes () => (float[3] s) { s = Sin(x) },
              else_branch: graph = no () => (float[3] s) {
    s = Loop (n, go, x) <body: graph = body (int64 i, bool c, float[3] a) => (bool d, float[3] b) {
      d = Identity(c)
      b = Tanh(a)
    }>
  }>"""


@pytest.mark.parametrize("profile, device, choice", [
    *((profile, "sim", "y = Sin(x)") for profile in ("minimum", "adreno7", "v3d", "vulkan13")),
    ("vulkan13", "vulkan", CHOICE)], ids=lambda value: value.split()[0])
def test_loops_on_devices_without_wide_integers(tmp_path, profile, device, choice):
    """Counts are i64 and conditions bool; totals need more than 32 bits. The simulator runs no loop in a branch."""
    model = make_model(COUNTED.replace("CHOICE", choice))
    (tmp_path / "a.mlir").write_text(weir.onnx.export(model).text)

    def run(*words):
        done = subprocess.run([BIN / "weir", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    run("compile", "a.mlir", f"--target=vulkan:{profile}", "-o", "a.weir")
    x, xs = normal(3), normal(5, 3)
    for n in 0, 1, 6:
        save_file({"x": x, "n": numpy.array(n), "xs": xs}, tmp_path / "in.safetensors")
        expected = run_reference(model, x, numpy.int64(n), xs)
        save_file({value.name: numpy.asarray(wanted) for value, wanted in zip(model.graph.output, expected, strict=True)},
                  tmp_path / "expected.safetensors")
        run("run", "a.weir", f"--device={device}", "--input=in.safetensors", "--compare=expected.safetensors", "--tolerance=1e-5")


def test_branches_of_other_shapes_are_refused():
    model = make_model("""agraph (float[3] x) => (float[N] y) {
      sum = ReduceSum <keepdims: int = 0> (x)
      zero = Constant <value: tensor = float {0}> ()
      flag = Less(sum, zero)
      [choice] y = If (flag) <then_branch: graph = yes () => (float[3] a) { a = Neg(x) },
                              else_branch: graph = no () => (float[6] a) { a = Concat <axis: int = 0> (x, x) }>
    }""")
    with pytest.raises(weir.onnx.ExportError, match=r"choice"):
        weir.onnx.export(model)


def test_branches_on_constants_and_functions_are_inlined():
    model = make_model("""agraph (float[3] x) => (float[3] y) {
      rank = Shape(x)
      three = Constant <value: tensor = int64[1] {3}> ()
      is_three = Equal(rank, three)
      none = Constant <value: tensor = int64[0] {}> ()
      flag = Reshape(is_three, none)
      y = If (flag) <then_branch: graph = yes () => (float[3] a) { t = Neg(x) a = Exp(t) },
                     else_branch: graph = no () => (float[3] a) { t = Abs(x) a = Sqrt(t) }>
    }""")
    x = normal(3)
    numpy.testing.assert_allclose(weir.onnx.run_model(model, [x])[0], numpy.exp(-x), rtol=1e-5)


# One of each of those that torch-mlir lacks, or has other values for; test/suites/onnx_nodes.py runs all.
NODES = [
    "test_convtranspose_autopad_same", "test_einsum_scalar", "test_reshape_allowzero_reordered",
    "test_training_dropout_zero_ratio_mask",
    "test_attention_4d", "test_bitshift_right_int8_negative_shift", "test_center_crop_pad_crop", "test_cumsum_1d_reverse_exclusive",
    "test_dequantizelinear_axis", "test_depthtospace_crd_mode_example", "test_gelu_tanh_2", "test_l2normalization_axis_0",
    "test_dft_rfft", "test_gru_bidirectional", "test_lstm_reverse", "test_nllloss_NCd1d2_with_weight",
    "test_qlinearmatmul_2D_uint8_float32",
    "test_quantizelinear_axis", "test_resize_downsample_scales_cubic_antialias",
    "test_resize_tf_crop_and_resize_extrapolation_value", "test_reversesequence_batch", "test_rms_normalization_2d_axis0",
    "test_scan9_sum", "test_scatter_elements_with_duplicate_indices", "test_scatter_elements_with_axis",
    "test_scatternd", "test_scatternd_max", "test_simple_rnn_reverse", "test_sce_mean_weight",
    "test_slice_neg_steps", "test_tensorscatter_circular", "test_top_k_smallest", "test_wrap_pad",
]


@pytest.fixture(scope="module")
def node_cases():
    return {case.name: case for case in importlib.import_module("onnx.backend.test.case.node").collect_testcases(None)}


@pytest.mark.parametrize("name", NODES)
def test_nodes(name, node_cases):
    case = node_cases[name]
    for inputs, expected in case.data_sets:
        for found, value in zip(weir.onnx.prepare(case.model).run(inputs), expected, strict=True):
            assert found.dtype == value.dtype and found.shape == numpy.shape(value)
            numpy.testing.assert_allclose(found, value, rtol=case.rtol, atol=case.atol)


def test_command_line_takes_models(tmp_path):
    model, x = make_dense(), normal(2, 6)
    onnx.save(model, tmp_path / "model.onnx")
    weight, bias = map(numpy_helper.to_array, model.graph.initializer)

    def run(*words, status=0):
        done = subprocess.run([BIN / "weir", *map(str, words)], cwd=tmp_path, capture_output=True, text=True,
                              env=ENVIRONMENT | {"WEIR_PYTHON": sys.executable})
        assert done.returncode == status, done.stderr
        return done.stderr

    run("compile", "model.onnx", "--shape=batch=2", "--parameters=p.safetensors", "--target=cpu", "-o", "a.weir")
    with weir.load(tmp_path / "a.weir", checkpoint=tmp_path / "p.safetensors", device="cpu") as program:
        numpy.testing.assert_allclose(program(x)["y"].numpy(), x @ weight + bias, rtol=1e-5, atol=1e-5)
    assert "model.onnx: inputs of unknown size: x: batch, 6" in run("compile", "model.onnx", "-o", "b.weir", status=2)
    assert not (tmp_path / "b.weir").exists()
    assert "bad.onnx is no ONNX model" in (
        (tmp_path / "bad.onnx").write_text("no"), run("compile", "bad.onnx", "-o", "b.weir", status=2))[1]
    assert "--shape: graph.mlir is a graph, not a model" in run("compile", "graph.mlir", "--shape=x=1", "-o", "b.weir",
                                                               status=2)
    stablehlo = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %y = stablehlo.add %x, %x : tensor<3xf32>
      return %y : tensor<3xf32>
    }"""
    (tmp_path / "double.stablehlo.mlir").write_text(stablehlo)
    run("compile", "double.stablehlo.mlir", "--target=cpu", "-o", "c.weir")
    with weir.load(tmp_path / "c.weir", device="cpu") as program:
        assert (program(x[0, :3]).numpy() == 2 * x[0, :3]).all()
    done = subprocess.run([sys.executable, "-m", "weir.onnx", "model.onnx", "--shape=x=2,6", "-o", "m.mlir"],
                          cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0 and "weir.name = \"layer.weight\"" in (tmp_path / "m.mlir").read_text()


def test_command_line_takes_programs_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
    module, x = torch.nn.Linear(4, 3), torch.randn(2, 4)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "model.pt2")
    done = subprocess.run([BIN / "weir", "compile", "model.pt2", "--parameters=p.safetensors", "--target=cpu", "-o",
                           "a.weir"], cwd=tmp_path, capture_output=True, text=True,
                          env=ENVIRONMENT | {"WEIR_PYTHON": sys.executable})
    assert done.returncode == 0, done.stderr
    with weir.load(tmp_path / "a.weir", checkpoint=tmp_path / "p.safetensors", device="cpu") as program:
        numpy.testing.assert_allclose(program(x.numpy()).numpy(), module(x).detach().numpy(), rtol=1e-5, atol=1e-5)


def test_missing_python_is_said(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    done = subprocess.run([BIN / "weir", "compile", "model.onnx", "-o", "a.weir"], cwd=tmp_path, capture_output=True,
                          text=True, env=ENVIRONMENT | {"WEIR_PYTHON": "/nowhere/python"})
    assert done.returncode == 2
    assert "/nowhere/python is not there; install Python, or set WEIR_PYTHON to its path" in done.stderr


def test_missing_package_is_named(python):
    done = python("-c", "import sys; sys.modules['onnx'] = None; import weir.onnx")
    assert done.returncode == 1 and "weir.onnx needs the package onnx; install weir[onnx]" in done.stderr
    done = python("-c", "import sys; sys.modules['jax'] = None; import weir.jax")
    assert done.returncode == 1 and "weir.jax needs the package jax; install weir[jax]" in done.stderr
