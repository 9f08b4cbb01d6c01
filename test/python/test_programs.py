"""weir.compile and weir.compile_step: what they compute, keep and refuse, beside PyTorch."""

import copy
import dataclasses
import os
import random
import re
import signal
import subprocess
import sys
import threading

import numpy
import pytest
from conftest import BIN, ENVIRONMENT

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import weir  # noqa: E402


class Convolutional(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(dropout)
        self.score = nn.Linear(4 * 9, 5)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.norm(self.conv(x))), 2)
        return self.score(self.drop(x.flatten(1)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 5, batch_first=True)
        self.score = nn.Linear(5, 5)

    def forward(self, tokens):
        return self.score(self.lstm(self.embed(tokens))[0][:, -1])


class Transforming(nn.Module):
    """Tied weights, layer norm, attention."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.score = nn.Linear(8, 9, bias=False)
        self.score.weight = self.embed.weight

    def forward(self, tokens):
        return self.score(self.layer(self.embed(tokens))).mean(1)


def images(count=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 1, 7, 7, generator=generator), torch.randint(0, 5, (count,), generator=generator)


def tokens(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 9, (6, 4), generator=generator), torch.randint(0, 5, (6,), generator=generator)


def make_step(module, data=images, **options):
    x, y = data()
    return weir.compile_step(module, functional.cross_entropy, example=(x,), targets={"y": y}, **options)


OPTIMIZERS = [
    # With PyTorch's epsilon a gradient that is 0 but for rounding moves its parameter by the whole learning rate.
    (weir.AdamW(learning_rate=1e-2, epsilon=1e-3), lambda p: torch.optim.AdamW(p, lr=1e-2, eps=1e-3)),
    (weir.SGD(learning_rate=0.1, weight_decay=0.01), lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01)),
    (weir.SGD(learning_rate=0.1, momentum=0.9), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
    (weir.Adam(weight_decay=0.1, epsilon=1e-3), lambda p: torch.optim.Adam(p, weight_decay=0.1, eps=1e-3)),
    (weir.Adafactor(weight_decay=0.1, epsilon1=1e-2),
     lambda p: torch.optim.Adafactor(p, weight_decay=0.1, eps=(1e-2, 1e-3))),
]


@pytest.mark.parametrize("ours, theirs", OPTIMIZERS, ids=["adamw", "sgd", "momentum", "adam", "adafactor"])
@pytest.mark.parametrize("make, data", [(Convolutional, images), (Recurrent, tokens), (Transforming, tokens)])
def test_training_is_pytorchs(make, data, ours, theirs):
    torch.manual_seed(1)
    module = make()
    reference = copy.deepcopy(module).double()
    optimizer = theirs(reference.parameters())
    with make_step(module, data, optimizer=ours) as step:
        for i in range(5):
            x, y = data(seed=i)
            loss = step(x, y=y)
            optimizer.zero_grad()
            expected = functional.cross_entropy(reference(x.double() if x.is_floating_point() else x), y)
            expected.backward()
            optimizer.step()
            assert abs(float(loss) - expected.item()) < 2e-5 * abs(expected.item()), i
        assert step.steps == 5
        trained = step.state_dict()
    assert list(trained) == list(module.state_dict())
    for name, value in reference.state_dict().items():
        assert trained[name].dtype == module.state_dict()[name].dtype
        torch.testing.assert_close(trained[name].to(value.dtype), value, rtol=2e-3, atol=2e-5)
    module.load_state_dict(trained)


def test_frozen_parameters_stay_and_cost_nothing():
    module = Convolutional()
    module.conv.requires_grad_(False)
    before = module.conv.weight.clone()
    with make_step(module) as step:
        [entry] = step.entries.values()
        assert not [argument.name for argument in entry.arguments if argument.name.startswith("conv.weight.")]
        step(*images()[:1], y=images()[1])
        assert torch.equal(step.state_dict()["conv.weight"], before)
    with pytest.raises(weir.torch.ExportError, match="nothing to train"):
        make_step(Convolutional().requires_grad_(False))


def test_predictions_of_several_shapes_share_parameters():
    torch.manual_seed(2)
    module = Convolutional().eval()
    examples = [(images(count)[0],) for count in (6, 1)]
    with weir.compile(module, example=examples) as predict:
        assert list(predict.entries) == ["main.0", "main.1"]
        for [x] in examples:
            torch.testing.assert_close(predict(x), module(x))
            torch.testing.assert_close(predict(x=x), module(x))
        other = Convolutional().eval()
        predict.load_state_dict(other.state_dict())
        for [x] in examples:
            torch.testing.assert_close(predict(x), other(x))
        with pytest.raises(ValueError, match=r"no entry takes these arguments; main\.0: x is float32\[2, 1, 7, 7\], "
                                             r"expected float32\[6, 1, 7, 7\]; main\.1: x is"):
            predict(images(2)[0])


def test_functions_and_nested_values():
    @dataclasses.dataclass
    class Result:
        total: torch.Tensor
        parts: tuple

    def compute(x, more, *, scale=2.0, flag=True):
        return Result(x * scale if flag else x, (more["a"] + x, [more["b"], None, "word"]))

    x, a, b = torch.randn(3), torch.randn(3), torch.randn(3)
    with weir.compile(compute, example={"x": x, "more": {"a": a, "b": b}, "scale": 3.0}) as compiled:
        result = compiled(x=x, more={"a": a, "b": b}, scale=3.0)
        assert isinstance(result, Result) and result.parts[1][1:] == [None, "word"]
        torch.testing.assert_close(result.total, x * 3)
        torch.testing.assert_close(result.parts[0], a + x)
        with pytest.raises(ValueError, match="scale is 2.0, but the program was compiled for 3.0"):
            compiled(x=x, more={"a": a, "b": b})
        with pytest.raises(TypeError, match="missing a required argument: 'more'"):
            compiled(x=x)


def test_results_stay_on_the_device_until_they_are_read():
    with weir.compile(lambda x: (x * 2, x + 1), example=(torch.zeros(3),)) as compiled:
        values = numpy.arange(3, dtype=numpy.float32)
        runs = [compiled(values + i) for i in range(6)]  # more than there are buffers
        for i, (double, more) in enumerate(runs):
            assert isinstance(double, weir.Array) and double.shape == (3,)
            numpy.testing.assert_array_equal(double, (values + i) * 2)
            numpy.testing.assert_array_equal(torch.from_dlpack(more).numpy(), values + i + 1)
        chained = compiled(compiled(values)[0])[0]  # not copied to the host between
        numpy.testing.assert_array_equal(chained, values * 4)
        assert "on " in repr(compiled(values)[0])
    numpy.testing.assert_array_equal(chained, values * 4)  # was read before
    assert (1 + chained[1] == 5) and (chained - values)[2] == 6 and f"{chained}" == "[0. 4. 8.]"


def test_inputs_in_the_devices_memory_are_not_copied(monkeypatch):
    with weir.compile(lambda x: x * 2, example=(torch.zeros(5),)) as compiled:
        x = compiled.empty("x")
        if x.base is None:
            pytest.skip("the device has memory of its own")
        written = []
        monkeypatch.setattr(weir.runtime.Buffer, "write", lambda self, values: written.append(values))
        for i in range(3):
            x[:] = i
            numpy.testing.assert_array_equal(compiled(x).numpy(), numpy.full(5, 2 * i))
            numpy.testing.assert_array_equal(compiled(torch.from_numpy(x)), numpy.full(5, 2 * i))
        assert not written
        with pytest.raises(ValueError, match="no argument z; it has x: float32"):
            compiled.empty("z")


def test_large_inputs_are_not_copied_on_the_cpu(monkeypatch):
    with weir.compile(lambda x: x * 2, example=(torch.zeros(1 << 18),), device="cpu") as compiled:
        write, written = weir.runtime.Buffer.write, []
        monkeypatch.setattr(weir.runtime.Buffer, "write", lambda self, values: written.append(values))
        other = torch.arange(1 << 18, dtype=torch.float32)
        for i, x in enumerate([torch.zeros(1 << 18), other, other, other.clone()]):
            x += i
            assert torch.equal(compiled(x), 2 * x)
        values = other.numpy()
        assert numpy.array_equal(compiled(values).numpy(), 2 * values)
        assert not written
        # Other results than arrays of floats are read another way.
        monkeypatch.setattr(weir.runtime.Buffer, "write", write)
        shifted = numpy.zeros(values.nbytes + 1, numpy.uint8)[1:].view(numpy.float32)
        shifted[:] = values
        assert numpy.array_equal(compiled(shifted).numpy(), 2 * values)
        assert numpy.array_equal(compiled(values[::-1]).numpy(), 2 * values[::-1])


def test_dropout_is_the_same_under_every_limit():
    torch.manual_seed(3)
    layers = [layer for _ in range(5) for layer in (nn.Linear(24, 24), nn.Tanh(), nn.Dropout(0.5))]
    module = nn.Sequential(*layers)
    x, y = torch.randn(32, 24), torch.randn(32, 24)

    def make(**options):
        return weir.compile_step(module, functional.mse_loss, example=(x,), targets={"y": y}, **options)

    whole = make()
    [peak] = re.findall(r"peak ([\d.]+) kB", repr(whole))
    small = make(memory_limit=int(float(peak) * 950))
    chosen = make(checkpoint="auto")
    with pytest.raises(weir.CompileError, match="--checkpoint=often is none of off and auto"):
        make(checkpoint="often")
    losses = []
    for step in (whole, small, chosen):
        step.seed(11)
        losses.append([step(x, y=y).item() for i in range(4)])
    assert losses[0] == losses[1] == losses[2] and len(set(losses[0])) == 4
    values = [step.state_dict() for step in (whole, small, chosen)]
    assert all(torch.equal(values[0][name], other[name]) for name in values[0] for other in values[1:])
    small.seed(12)
    assert whole(x, y=y).item() != small(x, y=y).item()
    with pytest.raises(ValueError, match="draws no random numbers"):
        make_step(Convolutional()).seed(1)


TRAIN = """
import sys, torch, weir
sys.path.insert(0, {here!r})
from test_programs import Convolutional, images, make_step
torch.manual_seed(4)
step = make_step(Convolutional(dropout=0.3), optimizer=weir.AdamW(learning_rate=lambda done: 0.01 / (done + 1)))
if {resume}:
    step.load("c.safetensors")
for i in range({begin}, {end}):
    loss = step(images(seed=i)[0], y=images(seed=i)[1])
print(loss.item().hex())
step.save({save!r})
import os, signal
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_resumed_training_is_that_without_a_break(tmp_path):
    def train(begin, end, resume, save):
        code = TRAIN.format(here=os.path.dirname(__file__), begin=begin, end=end, resume=resume, save=save)
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        return done.stdout

    whole = train(0, 10, False, "whole.safetensors")
    train(0, 5, False, "c.safetensors")
    assert train(5, 10, True, "c.safetensors") == whole
    (values, notes), (expected, expected_notes) = (
        weir.checkpoints.load(tmp_path / f"{name}.safetensors") for name in ("c", "whole"))
    assert notes == expected_notes == {"weir": "checkpoint", "steps": "10"} and values.keys() == expected.keys()
    assert all(values[name].tobytes() == expected[name].tobytes() for name in values)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.safetensors", "whole.safetensors"]


def test_bad_checkpoints_change_nothing(tmp_path):
    step, other = make_step(Convolutional()), make_step(Recurrent(), tokens)
    step(images()[0], y=images()[1])
    step.save(tmp_path / "good.safetensors")
    other.save(tmp_path / "other.safetensors")
    good = (tmp_path / "good.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(good[:-5])
    (tmp_path / "empty.safetensors").write_bytes(b"")
    (tmp_path / "text.safetensors").write_text("no tensors at all, but long enough for a header")
    before = step.state_dict()
    for name, message in [("cut", "cut short"), ("empty", "cut short"), ("text", "no safetensors file"),
                          ("other", "of another model: it has no conv.weight")]:
        with pytest.raises(weir.CheckpointError, match=message) as refused:
            step.load(tmp_path / f"{name}.safetensors")
        assert f"{name}.safetensors" in str(refused.value) and "\n" not in str(refused.value)
    with pytest.raises(OSError):
        step.save(tmp_path / "none" / "c.safetensors")
    assert step.steps == 1
    after = step.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    step.load(tmp_path / "good.safetensors")


def test_a_checkpoint_is_whole_when_writing_fails(tmp_path, monkeypatch):
    step = make_step(Convolutional())
    step.save(tmp_path / "c.safetensors")
    good = (tmp_path / "c.safetensors").read_bytes()
    step(images()[0], y=images()[1])
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        step.save(tmp_path / "c.safetensors")
    assert (tmp_path / "c.safetensors").read_bytes() == good
    assert [path.name for path in tmp_path.iterdir()] == ["c.safetensors"]


def test_the_modules_values_alone_start_the_optimizer_anew(tmp_path):
    from safetensors.torch import save_file

    module = Convolutional()
    step = make_step(module)
    save_file(module.state_dict(), tmp_path / "model.safetensors")
    first = step(images()[0], y=images()[1]).item()
    step.load(tmp_path / "model.safetensors")
    assert step.steps == 0 and step(images()[0], y=images()[1]).item() == first


def test_hyperparameters_of_a_call():
    torch.manual_seed(5)
    module = Convolutional()
    seen = []

    def schedule(done):
        seen.append(done)
        return 0.1

    a = make_step(module, optimizer=weir.SGD(learning_rate=schedule))
    b = make_step(module, optimizer=weir.SGD(learning_rate=7.0))
    for i in range(3):
        x, y = images(seed=i)
        assert a(x, y=y).item() == b(x, y=y, learning_rate=0.1).item()
    assert seen == [0, 1, 2]
    with pytest.raises(ValueError, match="learning_rate is 'fast'; expected a number"):
        b(x, y=y, learning_rate="fast")


def test_modules_that_compute_their_own_loss():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(6)
    config = transformers.GPT2Config(vocab_size=20, n_positions=8, n_embd=12, n_layer=1, n_head=2)
    module = transformers.GPT2LMHeadModel(config)
    inputs = torch.randint(0, 20, (2, 8))
    reference = copy.deepcopy(module).eval()
    module.eval()
    step = weir.compile_step(module, lambda output: output.loss, example={"input_ids": inputs, "labels": inputs})
    loss = step(input_ids=inputs, labels=inputs)
    expected = reference(input_ids=inputs, labels=inputs)
    assert abs(loss.item() - expected.loss.item()) < 1e-5
    assert type(step.output) is type(expected)
    torch.testing.assert_close(step.output.logits.torch(), expected.logits)


@pytest.fixture(scope="module")
def step():
    torch.manual_seed(7)
    return make_step(Convolutional())


X, Y = images()


@pytest.mark.parametrize("arguments, named, message", [
    ((X[:2],), {"y": Y}, r"main.step: x is float32\[2, 1, 7, 7\], expected float32\[6, 1, 7, 7\]"),
    ((X.double(),), {"y": Y}, r"x is float64\[6, 1, 7, 7\], expected float32"),
    ((X,), {"y": Y.float()}, r"y is float32\[6\], expected int64\[6\]"),
    ((X,), {"y": Y.to("meta")}, "y is a tensor on meta; move it to host memory"),
    ((X.to("meta"),), {"y": Y}, "x is a tensor on meta"),
    ((X,), {"y": "abc"}, "y is <U3"),
])
def test_bad_arguments_change_nothing(step, arguments, named, message):
    before, steps = step.state_dict(), step.steps
    with pytest.raises(ValueError, match=message):
        step(*arguments, **named)
    after = step.state_dict()
    assert step.steps == steps and all(torch.equal(before[name], after[name]) for name in before)


def test_bad_calls(step):
    for call, message in [(lambda: step(X), "the target y is missing"),
                          (lambda: step(y=Y), "missing a required argument: 'x'"),
                          (lambda: step(X, y=Y, z=1), "unexpected keyword argument 'z'")]:
        with pytest.raises(TypeError, match=message):
            call()


def test_strided_and_overlapping_inputs_are_read_as_they_are(step):
    start = {name: value.clone() for name, value in step.state_dict().items()}
    losses = []
    expanded = X[:1].expand(6, 1, 7, 7)
    for x in (X.transpose(2, 3), X.transpose(2, 3).contiguous(), expanded, expanded.contiguous()):
        step.load_state_dict(start)
        losses.append(step(x, y=Y, learning_rate=0.0, weight_decay=0.0).item())
    assert losses[0] == losses[1] and losses[2] == losses[3] and losses[0] != losses[2]


def test_a_closed_step_is_refused():
    step = make_step(Convolutional())
    loss = step(X, y=Y)
    value = loss.item()
    step.close()
    step.close()
    assert loss.item() == value and "closed" in repr(step)
    for use in (lambda: step(X, y=Y), step.state_dict, lambda: step.save("never.safetensors")):
        with pytest.raises(weir.Error, match="closed"):
            use()
    assert not os.path.exists("never.safetensors")


def test_a_second_thread_is_refused(step, monkeypatch):
    inside, go_on, problems = threading.Event(), threading.Event(), []
    submit = weir.runtime.Program.submit

    def wait(*arguments):
        inside.set()
        go_on.wait(30)
        return submit(*arguments)

    monkeypatch.setattr(weir.runtime.Program, "submit", wait)
    first = threading.Thread(target=lambda: step(X, y=Y))
    first.start()
    inside.wait(30)
    before = step.steps
    with pytest.raises(weir.Error, match="another thread is in a call"):
        step(X, y=Y)
    go_on.set()
    first.join()
    assert step.steps == before + 1 and not problems


def test_interrupts_come_before_or_after_a_step(monkeypatch):
    """Ctrl-C at any place of a call: the step was done as a whole, or it was not."""
    torch.manual_seed(8)
    step = make_step(Convolutional())
    whole = make_step(Convolutional().requires_grad_(True))
    whole.load_state_dict(step.state_dict())
    submit = weir.runtime.Program.submit

    def interrupted(*arguments):
        submit(*arguments)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(weir.runtime.Program, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        step(X, y=Y)
    monkeypatch.setattr(weir.runtime.Program, "submit", submit)
    whole(X, y=Y)
    assert step.steps == 1
    ours, theirs = step.state_dict(), whole.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    write = weir.runtime.Buffer.write

    def early(*arguments):
        write(*arguments)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(weir.runtime.Buffer, "write", early)
    with pytest.raises(KeyboardInterrupt):
        step(X, y=Y)
    monkeypatch.setattr(weir.runtime.Buffer, "write", write)
    assert step.steps == 1 and all(torch.equal(ours[name], value) for name, value in step.state_dict().items())


def test_interrupts_while_steps_run_on_the_cpu():
    """Ctrl-C from another thread at any time: each step was done as a whole, or not at all."""
    torch.manual_seed(10)
    step = make_step(Convolutional(), device="cpu")
    whole = make_step(Convolutional(), device="cpu")
    whole.load_state_dict(step.state_dict())
    generator = random.Random(1)
    interrupted = 0
    for _ in range(20):
        timer = threading.Timer(generator.uniform(0.001, 0.02), lambda: os.kill(os.getpid(), signal.SIGINT))
        try:
            timer.start()
            while True:
                step(X, y=Y)
        except KeyboardInterrupt:
            interrupted += 1
            timer.join()
    assert interrupted == 20 and step.steps > 20
    for _ in range(step.steps):
        whole(X, y=Y)
    ours, theirs = step.state_dict(), whole.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_artifacts_are_loaded_without_pytorch(tmp_path):
    torch.manual_seed(9)
    module = Convolutional().eval()
    with weir.compile(module, example=(X,)) as predict:
        predict.save_artifact(tmp_path / "m.weir")
        predict.save(tmp_path / "m.safetensors")
    numpy.save(tmp_path / "x.npy", X.numpy())
    numpy.save(tmp_path / "y.npy", module(X).detach().numpy())
    code = """
import sys
sys.modules["torch"] = None
import numpy, weir
with weir.load("m.weir", checkpoint="m.safetensors") as predict:
    x = numpy.load("x.npy")
    for result in (predict(x), predict(x=x)):
        numpy.testing.assert_allclose(result, numpy.load("y.npy"), rtol=1e-4, atol=1e-5)
for options, message in [({}, "takes parameters"), ({"checkpoint": "x.npy"}, "no safetensors file")]:
    try:
        weir.load("m.weir", **options)
    except weir.CheckpointError as error:
        assert message in str(error), error
    else:
        raise AssertionError("not refused")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_donated_arrays_are_gone(run_weir, tmp_path):
    (tmp_path / "g.mlir").write_text("""
func.func @add(%x: tensor<4xf32> {weir.donate, weir.name = "x"}) -> (tensor<4xf32> {weir.name = "y"}) {
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}""")
    run_weir("compile", "g.mlir", "-o", "a.weir")
    x = numpy.arange(4, dtype=numpy.float32)
    with weir.load(tmp_path / "a.weir") as add:
        first = add(x)
        second = add(first)
        numpy.testing.assert_array_equal(second, x * 4)
        with pytest.raises(weir.Error, match="the array y was donated to a run of add and is gone"):
            first.numpy()
        with pytest.raises(weir.Error, match="was donated to a run"):
            add(first)
        numpy.testing.assert_array_equal(add(x), x * 2)  # an array of the host's stays
        numpy.testing.assert_array_equal(x, numpy.arange(4))


def test_what_the_compiler_refuses_is_told():
    class Wide(nn.Module):
        def forward(self, x):
            return torch.igamma(x.double(), x.double())

    with pytest.raises((weir.CompileError, weir.torch.ExportError)) as refused:
        weir.compile(Wide(), example=(torch.rand(3),))
    assert "test_programs.py" in str(refused.value)


def test_devices_are_checked():
    for device, message in [("gpu", "there is no device 'gpu'; name auto, vulkan, cuda"),
                            ("vulkan:first", "there is no device 'vulkan:first'")]:
        with pytest.raises(ValueError, match=message):
            weir.compile(lambda x: x + 1, example=(torch.zeros(2),), device=device)
    with pytest.raises(weir.Error, match="no Vulkan device 99"):
        weir.compile(lambda x: x + 1, example=(torch.zeros(2),), device="vulkan:99")


def test_factors_are_rounded_on_request_alone(tmp_path):
    """On a driver that records calls: what is asked for is in the code, and nothing else is."""
    script = tmp_path / "precisions.py"
    script.write_text("""
import sys, zipfile
import torch, weir, weir.torch.modules

module, x = torch.nn.Linear(256, 256), torch.zeros(256, 256)
modules = weir.torch.modules
made = {
    "plain": weir.compile(module, example=(x,), device="cuda"),
    "f32": weir.compile(module, example=(x,), device="cuda", precision="f32"),
    "tf32": weir.compile(module, example=(x,), device="cuda", precision="tf32"),
    "step": weir.compile_step(module, lambda y: y.square().mean(), example=(x,), device="cuda", precision="tf32",
                              optimizer=weir.SGD(learning_rate=0.1)),
    "module": modules.Module(module, (x,), device="cuda", precision="tf32")._program,
}
for name, program in made.items():
    with zipfile.ZipFile(f"{program._folder.name}/program.weir") as artifact:
        code = "".join(artifact.read(name).decode() for name in artifact.namelist() if name.endswith(".ptx"))
    print(name, ".tf32" in code)
""")
    fake = BIN.parent / "test/fake-cuda"
    if not (fake / "libcuda.so.1").exists():
        pytest.skip("the driver that records calls is not built")
    done = subprocess.run([sys.executable, script], env={**ENVIRONMENT, "LD_LIBRARY_PATH": str(fake)},
                          capture_output=True, text=True)
    assert done.stdout.split() == ["plain", "False", "f32", "False", "tf32", "True", "step", "True", "module", "True"], \
        done.stderr


REFUSED = "--precision=tf32: profile .* of target cpu has no instructions on matrices of tf32; compile for cuda"


def test_precisions_that_a_device_has_not_are_refused():
    module, x = nn.Linear(3, 2), torch.zeros(2, 3)
    with pytest.raises(weir.CompileError, match=REFUSED):
        weir.compile(module, example=(x,), device="cpu", precision="tf32")
    with pytest.raises(weir.CompileError, match=REFUSED):
        weir.compile_step(module, torch.sum, example=(x,), device="cpu", precision="tf32")
    with pytest.raises(weir.CompileError, match=REFUSED):
        weir.torch.Module(module, (x,), device="cpu", precision="tf32")
    with pytest.warns(UserWarning, match=f"weir leaves a graph to PyTorch: {REFUSED}"):
        torch.compile(module, backend="weir", options={"device": "cpu", "precision": "tf32"})(x)
    with pytest.raises(ValueError, match='precision is \'f16\'; expected None, "f32" or "tf32"'):
        weir.compile(module, example=(x,), device="cpu", precision="f16")


def test_names_of_the_optimizer_are_not_the_modules():
    with pytest.raises(weir.torch.ExportError, match="epsilon is an argument of the module and a hyperparameter"):
        weir.compile_step(nn.Linear(3, 1), lambda output, epsilon: (output - epsilon).square().mean(),
                          example=(torch.zeros(2, 3),), targets={"epsilon": torch.zeros(2, 1)})


def test_programs_explain_themselves(tmp_path):
    with weir.compile(Convolutional().eval(), example=(X,)) as predict:
        explanation = predict.explain()
        assert "main" in repr(explanation) and "barriers" in repr(explanation)
        explanation.save(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert page.startswith("<!") and "conv (test_programs.py:" in page
        assert explanation._repr_html_().startswith("<iframe srcdoc=") and "<script" not in explanation._repr_html_()


def test_indices_out_of_range_are_told(tmp_path):
    torch.manual_seed(10)
    bad = tokens()[0].clone()
    bad[2, 1] = 9
    message = r"main: embed \(test_programs.py:\d+\) uses an index that is not in \[0, 9\)"
    module = Recurrent().eval()
    with weir.compile(module, example=(bad,)) as predict:
        with pytest.raises(weir.Error, match=message):
            predict(bad)
        torch.testing.assert_close(predict(tokens()[0]), module(tokens()[0]))
        with weir.compile(lambda x: x + 1, example=(torch.zeros(2),)) as other:
            assert other._execution.status is None and other(torch.ones(2))[0] == 2
    step = make_step(Recurrent(), tokens)
    x, y = tokens()
    step(x, y=y)
    loss = step(bad, y=y)
    with pytest.raises(weir.Error, match=message.replace("main", "main.step")):
        loss.item()
    with pytest.raises(weir.Error, match="step 2: " + message.replace("main", "main.step")):
        step.save(tmp_path / "never.safetensors")
    assert not list(tmp_path.iterdir())
    step(x, y=y).item()
    step(bad, y=y)
    step(x, y=y)
    with pytest.raises(weir.Error, match="step 4: "):  # nobody read the loss
        step(x, y=y)


def test_values_of_16_bits(tmp_path):
    torch.manual_seed(11)
    module = nn.Linear(3, 4).to(torch.bfloat16)
    x = torch.randn(2, 3, dtype=torch.bfloat16)
    with weir.compile(module, example=(x,)) as compiled:
        result = compiled(x)
        assert result.dtype == torch.bfloat16
        torch.testing.assert_close(result, module(x))
        compiled.save(tmp_path / "c.safetensors")
        compiled.load(tmp_path / "c.safetensors")
        torch.testing.assert_close(compiled(x), module(x))
        compiled.load_state_dict(nn.Linear(3, 4).to(torch.bfloat16).state_dict())
        assert not torch.equal(compiled(x), result)


def test_code_for_processors_is_preferred_to_a_driver_on_one(run_weir, tmp_path):
    (tmp_path / "g.mlir").write_text(
        'func.func @f(%x: tensor<4xf32> {weir.name = "x"}) -> (tensor<4xf32> {weir.name = "y"}) {\n'
        "  return %x : tensor<4xf32>\n}\n")
    run_weir("compile", "g.mlir", "-o", "a.weir", "--target=vulkan,cpu:x86-64-v3,cpu:aarch64")
    x = numpy.arange(4, dtype=numpy.float32)
    processor = weir.runtime.open_device("cpu")
    with weir.load(tmp_path / "a.weir") as copy_of:
        assert copy_of.device == processor.name or weir.runtime.open_device().is_gpu
        numpy.testing.assert_array_equal(copy_of(x), x)
        assert "dispatches" in repr(copy_of) or "1 dispatch" in repr(copy_of)
    with weir.load(tmp_path / "a.weir", device="vulkan") as copy_of:
        numpy.testing.assert_array_equal(copy_of(x), x)
