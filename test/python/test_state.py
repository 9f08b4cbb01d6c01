"""State and random numbers in training: running statistics, averages of parameters, dropout and noise. The same bits
however the step is compiled and wherever it runs, as docs/same-bits.md says."""

import numpy
import pytest
from safetensors.numpy import load_file, save_file

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import weir  # noqa: E402
import weir.runtime  # noqa: E402
from weir.graphs import merge  # noqa: E402
from weir.torch.exporting import export  # noqa: E402

STEPS = 10


class Noisy(nn.Module):
    """Batch norm, dropout, and noise of both distributions."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 16)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(16, 4)

    def forward(self, x):
        x = self.drop(functional.relu(self.norm(self.first(x))))
        x = x + 0.1 * torch.randn(x.shape) * torch.rand_like(x)
        return self.last(x)


def make_batch(number):
    generator = torch.Generator().manual_seed(number)
    return torch.randn(8, 6, generator=generator), torch.randint(0, 4, (8,), generator=generator)


def make_module():
    torch.manual_seed(2)
    return Noisy()


def make_step(**options):
    x, y = make_batch(0)
    return weir.compile_step(make_module(), functional.cross_entropy, example=(x,), targets={"y": y}, ema=0.9,
                             optimizer=weir.AdamW(learning_rate=0.01), **options)


def train(**options):
    """Returns the losses of all steps, and all parameters and state after them."""
    with make_step(**options) as step:
        step.seed(5)
        losses = []
        for number in range(STEPS):
            x, y = make_batch(number)
            losses.append(step(x, y=y).item())
        return losses, step._execution.read()


def assert_same(one, other):
    assert one[0] == other[0]
    assert one[1].keys() == other[1].keys()
    for name, value in one[1].items():
        assert value.tobytes() == other[1][name].tobytes(), name


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_every_way_of_compiling_trains_the_same(device):
    losses, values = first = train(device=device)
    assert {"norm.running_mean", "first.weight.ema", "first.weight.first_moment", "random.step"} <= values.keys()
    assert values["norm.num_batches_tracked"] == STEPS and len(set(losses)) == STEPS
    assert_same(first, train(device=device))
    assert_same(first, train(device=device, memory_limit=3400))
    assert_same(first, train(device=device, offload="state"))
    assert_same(first, train(device=device, check_values=True))


def test_the_simulator_trains_as_vulkan_does(run_weir, tmp_path):
    """From the command line: the same artifact, batches from files, statistics and counters from the step before."""
    with make_step(device="vulkan") as step:
        step.seed(5)
        step.save_artifact(tmp_path / "step.weir")
        step.save(tmp_path / "start.safetensors")
        (tmp_path / "batches").mkdir()
        for number in range(STEPS):
            x, y = make_batch(number)
            save_file({"x": x.numpy(), "y": y.numpy()}, tmp_path / f"batches/{number:02}.safetensors")
            step(x, y=y)
        expected = step._execution.read()
    rates = weir.AdamW(learning_rate=0.01)
    options = [f"--set={name}={getattr(rates, name)}" for name in
               ("learning_rate", "weight_decay", "beta1", "beta2", "epsilon")] + ["--set=ema_decay=0.9"]
    for device in "vulkan", "sim":
        run_weir("run", "step.weir", "--entry=main.step", "--input=start.safetensors", "--batches=batches", *options,
                 f"--device={device}", f"--output={device}.safetensors")
        found = load_file(tmp_path / f"{device}.safetensors")
        for name, value in expected.items():
            if name in found:
                assert value.tobytes() == found[name].tobytes(), (device, name)
        assert {"norm.running_var", "last.bias.ema", "random.step"} <= found.keys()


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_split_backward_trains_as_the_whole(device, run_weir, tmp_path):
    """Forward, input pass and weight pass, and an update on the host, against the whole backward and the same update."""
    x, y = make_batch(0)
    module = make_module()
    exported = export(module, (x,), loss=functional.cross_entropy, targets={"y": y}, keep_buffers=True)
    (tmp_path / "graph.mlir").write_text(merge([exported.text]))
    run_weir("compile", "graph.mlir", "--vjp=main", "--split=main", "--entry=main.vjp", f"--target={device}",
             "-o", "split.weir")
    start = {name: numpy.asarray(value.detach() if hasattr(value, "detach") else value)
             for name, value in (exported.parameters | exported.states).items()}

    def follow(entries):
        values = dict(start)
        with weir.runtime.Program(tmp_path / "split.weir", api=device) as program:
            for number in range(STEPS):
                x, y = make_batch(number)
                known = values | {"x": x.numpy(), "y": y.numpy(), "cotangent.loss": numpy.float32(1)}
                for entry in entries:
                    arguments = program.entries[entry].arguments
                    for tensor in arguments:
                        if tensor.name.startswith("cotangent.") and tensor.name not in known:
                            known[tensor.name] = numpy.zeros(tensor.shape, tensor.dtype)
                        if tensor.name.startswith("grad.") and tensor.name not in known:
                            known[tensor.name] = numpy.full(tensor.shape, -0.0, tensor.dtype)
                    known |= program.run({tensor.name: known[tensor.name] for tensor in arguments}, entry)
                for name in exported.parameters:
                    values[name] = values[name] - numpy.float32(0.1) * known[f"grad.{name}"]
                values |= {name: known[name] for name in exported.states}
        return values

    whole = follow(["main.vjp"])
    parts = follow(["main.forward", "main.backward_input", "main.backward_weight"])
    for name, value in whole.items():
        assert numpy.asarray(value).tobytes() == numpy.asarray(parts[name]).tobytes(), name
    assert any(not numpy.array_equal(whole[name], start[name]) for name in exported.parameters)
    assert not numpy.array_equal(whole["norm.running_mean"], start["norm.running_mean"])
