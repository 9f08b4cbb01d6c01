"""Bad input of a training step: checkpoints of something else, and losses that are NaN. One sentence each."""

import numpy
import pytest
from safetensors.numpy import load_file, save_file

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import weir  # noqa: E402

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
