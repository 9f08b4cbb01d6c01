"""Bad input of a training step: checkpoints of something else, and losses that are NaN. One sentence each."""

import re
import warnings

import numpy
import pytest
from safetensors.numpy import load_file, save_file

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import weir  # noqa: E402
import weir.torch  # noqa: E402

X, Y = torch.linspace(-1, 1, 12).reshape(2, 6), torch.tensor([1, 3])


def make_module(width=9):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 4))


def make_step(module, loss=functional.cross_entropy, **options):
    return weir.compile_step(module, loss, example=(X,), targets={"y": Y}, **options)


def read_all(step):
    return {name: value.copy() for name, value in step._execution.read().items()}


def assert_same(values, others):
    assert values.keys() == others.keys()
    for name in values:
        assert numpy.array_equal(values[name], others[name]), name


@pytest.fixture(scope="module")
def trained():
    """A step after two calls."""
    with make_step(make_module()) as step:
        for _ in range(2):
            step(X, y=Y)
        yield step


def spoil_shape(values):
    values["0.weight"] = numpy.zeros((10, 6), numpy.float32)


def spoil_type(values):
    values["2.bias"] = values["2.bias"].astype(numpy.float16)


def spoil_name(values):
    values["2.offset"] = values.pop("2.bias")


def spoil_state(values):
    del values["0.weight.first_moment"]


@pytest.mark.parametrize("spoil, sentence", [
    (spoil_shape, r"0\.weight is float32\[10, 6\], expected float32\[9, 6\]"),
    (spoil_type, r"2\.bias is float16\[4\], expected float32\[4\]"),
    (spoil_name, r"it has no 2\.bias; it has 2\.offset, which the program has not"),
    (spoil_state, r"it has no 0\.weight\.first_moment"),
])
def test_a_checkpoint_of_another_model_is_refused(trained, tmp_path, spoil, sentence):
    """By a sentence with file, tensor and remedy; the step stays as it was."""
    path = tmp_path / "other.safetensors"
    trained.save(path)
    values = load_file(path)
    spoil(values)
    save_file(values, path, {"weir": "checkpoint", "steps": "7"})
    before = read_all(trained)
    with pytest.raises(weir.CheckpointError, match=sentence) as refused:
        trained.load(path)
    assert str(refused.value).startswith(f"{path} is of another model: ")
    assert str(refused.value).endswith("; load a checkpoint of this module, with its shapes and types")
    assert_same(before, read_all(trained))
    assert trained.steps == 2


def test_bfloat16_has_its_name(trained, tmp_path):
    from safetensors.torch import save_file as save_tensors

    path = tmp_path / "half.safetensors"
    save_tensors({name: value.bfloat16() for name, value in make_module().state_dict().items()}, path)
    with pytest.raises(weir.CheckpointError, match=r"0\.weight is bfloat16\[9, 6\], expected float32\[9, 6\]"):
        trained.load(path)


@pytest.mark.parametrize("cut", [0, 6, 100, -1])
def test_a_checkpoint_that_is_cut_short_is_refused(trained, tmp_path, cut):
    path = tmp_path / "cut.safetensors"
    trained.save(path)
    path.write_bytes(path.read_bytes()[:cut])
    before = read_all(trained)
    with pytest.raises(weir.CheckpointError, match="is no safetensors file, or cut short: ") as refused:
        trained.load(path)
    assert str(refused.value).startswith(str(path))
    assert str(refused.value).endswith("; copy it again, or load an earlier checkpoint")
    assert_same(before, read_all(trained))
    assert trained.steps == 2


class Positive(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(6, 4)

    def forward(self, x):
        scores = functional.relu(self.score(x)) + 1e-3
        return scores - 2.0 * (x[:, :1] > 5)  # below 0 for some inputs


def logarithm(output, y):
    return functional.nll_loss(output.log(), y)  # NaN for what is below 0


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_a_loss_that_is_nan_names_its_dispatch(device):
    """The step that failed is undone, and the next one is as if it had not been."""
    torch.manual_seed(3)
    module = Positive()
    options = dict(loss=logarithm, optimizer=weir.AdamW(learning_rate=1e-3), ema=0.9, device=device)
    with make_step(module, check_values=True, **options) as checked, make_step(module, **options) as plain:
        for _ in range(3):
            assert float(checked(X, y=Y)) == float(plain(X, y=Y))
        before = read_all(checked)
        assert_same(before, read_all(plain))
        with pytest.raises(weir.Error) as failed:
            checked(torch.full_like(X, float("nan")), y=Y)
        assert str(failed.value) == ("step 4: loss is NaN: argument 'x' at [0, 0] is NaN before the run; parameters and "
                                     "state are as before")
        with pytest.raises(weir.Error) as failed:
            checked(torch.where(torch.arange(6) == 0, 6.0, -6.0).expand(2, 6), y=Y)
        message = str(failed.value)
        assert message.startswith("step 4: loss is NaN: dispatch ") and "(kernel " in message
        assert " is the first that makes a NaN, in '" in message and "; what it reads is finite: " in message
        assert message.endswith("; parameters and state are as before")
        assert checked.steps == 3
        assert_same(before, read_all(checked))
        assert float(checked(X, y=Y)) == float(plain(X, y=Y))
        assert_same(read_all(checked), read_all(plain))


def test_infinities_of_the_output_are_no_problem():
    """As of masked scores; a NaN is one, also if the loss is finite."""
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.score = nn.Linear(6, 4)

        def forward(self, x, keep):
            return torch.where(keep, self.score(x), torch.tensor(-float("inf")))

    loss = lambda output, y: functional.cross_entropy(output, y)
    keep = torch.tensor([[True, True, True, True], [False, True, True, True]])
    with weir.compile_step(Masked(), loss, example=(X, keep), targets={"y": Y}, check_values=True) as step:
        step(X, keep, y=Y)
        assert numpy.isneginf(step.output.numpy()).any()


def accumulate(x):
    from torch._higher_order_ops.scan import scan

    return scan(lambda total, y: (total + y, (total * y).clone()), torch.zeros(6), x, dim=0)


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(6, 3, batch_first=True)

    def forward(self, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 2]), batch_first=True)
        return self.layer(packed)[0].data


def measure(x):
    return x * 2 if x.sum() > 0 else x


def misfit(x):
    return x @ x.new_zeros(5, 2)


@pytest.mark.parametrize("module, inputs, sentence", [
    (accumulate, (X,), r"(?s)a loop of Python.*scan, "),
    (Packed(), (torch.ones(2, 4, 6),), r"LSTM: a size depends on values; .*test_bad_input.py:\d+: return self.layer"),
    (nn.BatchNorm1d(6, momentum=None), (X,), r"BatchNorm1d: a number that depends on values .*keep it a tensor.*batchnorm.py"),
    (measure, (X,), r"a number that depends on values .*test_bad_input.py:\d+: return x \* 2 if"),
    (lambda x: x * torch.allclose(x, x), (X,), r"allclose gives a number to Python; .*isclose.*test_bad_input.py:\d+"),
    (misfit, (X,), r"cannot trace the module: .*test_bad_input.py:\d+: return x @ x.new_zeros"),
    (torch.jit.script(nn.Linear(6, 2)), (X,), "Linear is compiled by torch.jit already; give the module"),
    (lambda x: x @ x, (torch.ones(2, 4),), r"cannot trace the module: a and b must have .*test_bad_input.py:\d+: "),
    (lambda x: x, (X.to_sparse(),), r"x is of layout torch.sparse_coo, .*\.to_dense\(\)"),
    (lambda x: x, (X.to(torch.float8_e4m3fn),), r"x is torch.float8_e4m3fn, .*\.float\(\)"),
    (lambda x: x, (torch.ones(3, dtype=torch.uint16),), r"x is torch.uint16, .*\.int\(\)"),
    (torch.mul, (X, X), "the inputs of mul, which is built in, have no names; give a function that calls it"),
])
def test_what_has_no_graph_is_refused_in_a_sentence(module, inputs, sentence, capfd):
    """With the operator, the user's line and a remedy, and nothing on the terminal."""
    with pytest.raises(weir.torch.ExportError, match=sentence):
        weir.torch.export(module, inputs)
    assert capfd.readouterr().err == ""


def test_a_process_that_dies_names_its_operators(monkeypatch):
    """The one that ends the process, not those beside it."""
    import os
    import signal

    from weir.torch import lowering

    bring = lowering.FxImporter.import_frozen_program, lowering.FxImporter.import_stateless_graph

    def die(graph):
        if any("tan.default" in str(node.target) for node in graph.nodes):
            os.kill(os.getpid(), signal.SIGSEGV)

    monkeypatch.setattr(lowering.FxImporter, "import_frozen_program",
                        lambda self, program, **given: die(program.graph) or bring[0](self, program, **given))
    monkeypatch.setattr(lowering.FxImporter, "import_stateless_graph",
                        lambda self, graph, **given: die(graph) or bring[1](self, graph, **given))
    with pytest.raises(weir.torch.ExportError, match="end the process of torch-mlir; write") as refused:
        weir.torch.export(lambda x: x.sin().tan(), (X,))
    assert "tan.default, " in str(refused.value) and "sin.default" not in str(refused.value)


def test_bytes_beside_numbers():
    """torch-mlir ends its process on signed ones; results wrap as PyTorch's do."""
    def compute(x):
        return x * 3, x - 1, 1 - x, x // 3, x % 3, -7 // x.clamp(min=1), x > 5, x / 3, x * 0.5, x.clamp(2, 5), x + True

    for dtype in (torch.int8, torch.uint8, torch.int16):
        x = torch.tensor([-128, -127, -7, -1, 0, 1, 5, 127], dtype=torch.int8).view(
            torch.uint8 if dtype == torch.uint8 else torch.int8).to(dtype)
        for got, right in zip(weir.compile(compute, (x,), device="cpu")(x), compute(x), strict=True):
            torch.testing.assert_close(got, right)


def test_parameters_that_freeze_after_compilation_are_told():
    module = make_module()
    with make_step(module, device="cpu") as step:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            step(X, y=Y)
        name, parameter = next(iter(module.named_parameters()))
        parameter.requires_grad_(False)
        with pytest.warns(UserWarning, match=rf"{re.escape(name)}.requires_grad is False now; .* compile it again"):
            step(X, y=Y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            step(X, y=Y)


def test_a_step_in_evaluation_mode_is_told():
    with pytest.warns(UserWarning, match=r"in evaluation mode, .*call module.train\(\) first"):
        make_step(make_module().eval(), device="cpu").close()


@pytest.mark.parametrize("options, error, sentence", [
    ({"optimizer": "sgd"}, TypeError, r"optimizer is 'sgd'; expected one of Weir's, as weir.SGD\(learning_rate=0.1\)"),
    ({"optimizer": torch.optim.SGD(nn.Linear(1, 1).parameters())}, TypeError, "optimizer is a torch.optim.sgd.SGD; expected"),
    ({"targets": [Y]}, TypeError, "targets is list; expected a dict by the names that a call uses"),
    ({"loss": lambda output, y: torch.tensor(1.0)}, weir.torch.ExportError, "no gradient flows from the loss to a parameter"),
    ({"loss": lambda output, y: output.detach().mean()}, weir.torch.ExportError, "no gradient flows from the loss"),
])
def test_a_step_that_would_train_nothing_is_refused(options, error, sentence):
    words = {"loss": functional.cross_entropy, "targets": {"y": Y}} | options
    with pytest.raises(error, match=sentence):
        weir.compile_step(nn.Linear(6, 2), words.pop("loss"), example=(X,), **words)


@pytest.mark.parametrize("call", ["jax.debug.print('{}', x)", "jax.pure_callback(lambda y: y, x, x)"])
def test_calls_of_python_by_jax_are_refused(call):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    import weir.jax

    function = eval(f"lambda x: ({call}, x)", {"jax": jax})
    with pytest.raises(weir.jax.ExportError, match="calls Python while a program runs"):
        weir.jax.compile(function, numpy.ones(3, numpy.float32))


def test_a_name_of_two_results_is_refused():
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    import weir.onnx

    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    nodes = [onnx.helper.make_node(kind, ["x"], ["y"], name=kind) for kind in ("Relu", "Neg")]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "twice", [x], [y]))
    with pytest.raises(weir.onnx.ExportError, match="y is the result of two nodes: Relu 'Relu' and Neg 'Neg'"):
        weir.onnx.compile(model)
