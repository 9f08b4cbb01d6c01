"""weir.torch: what graphs it writes, and that they compute what PyTorch does."""

import dataclasses
import json
import re
import runpy
import zipfile

import pytest
from conftest import ROOT

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from safetensors.torch import load_file, save_file  # noqa: E402
from torch import nn  # noqa: E402
from torch.export.graph_signature import InputKind  # noqa: E402
from torch.nn import functional  # noqa: E402

import weir.torch  # noqa: E402
from weir.torch.tracing import prepare  # noqa: E402


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Tied(nn.Module):
    """A bigram model: one matrix embeds and scores."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.norm = nn.LayerNorm(4)
        self.score = nn.Linear(4, 7, bias=False)
        self.score.weight = self.embed.weight

    def forward(self, tokens):
        return self.score(self.norm(self.embed(tokens)))


@pytest.fixture
def run(run_weir, tmp_path):
    """Runs an exported graph on the reference; returns its results by name."""

    def run(exported, device="reference"):
        paths = [tmp_path / name for name in ("graph.mlir", "parameters.safetensors", "inputs.safetensors")]
        exported.save(*paths)
        run_weir("compile", paths[0], "-o", "a.weir")
        run_weir("run", "a.weir", f"--device={device}", *(f"--input={path}" for path in paths[1:]),
             "--output=out.safetensors")
        return load_file(tmp_path / "out.safetensors")

    return run


def evaluate(function, x):
    """Returns the results of the operators that torch-mlir is given."""
    program = prepare(torch.export.export(Function(function), (x,)))
    held = [program.constants[spec.target] for spec in program.graph_signature.input_specs
            if spec.kind == InputKind.CONSTANT_TENSOR]
    [result] = torch.fx.Interpreter(program.graph_module).run(*held, x)
    return result


def check(function, x):
    torch.testing.assert_close(evaluate(function, x), function(x), equal_nan=True)
    weir.torch.export(Function(function), (x,))


def refuse(module, *inputs, **options):
    with pytest.raises(weir.torch.ExportError) as error:
        weir.torch.export(module, inputs, **options)
    return str(error.value)


def test_parameters_are_named_arguments(run):
    module, x = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2)), torch.randn(5, 3)
    module[0].bias.requires_grad_(False)
    exported = weir.torch.export(module, (x,))
    assert [(argument.name, argument.kind) for argument in exported.arguments] == [
        ("input", "input"), ("0.weight", "param"), ("0.bias", "input"), ("2.weight", "param"), ("2.bias", "param")]
    assert exported.arguments[1].shape == (4, 3) and exported.arguments[1].dtype == torch.float32
    assert 'tensor<4x3xf32> {weir.kind = "param", weir.name = "0.weight"}' in exported.text
    torch.testing.assert_close(run(exported)["output"], module(x))


def test_tied_parameters_are_one_argument():
    tokens = torch.randint(0, 7, (2, 3))
    exported = weir.torch.export(Tied(), (tokens,))
    assert list(exported.parameters) == ["embed.weight", "norm.weight", "norm.bias"]
    assert exported.text.count("tensor<7x4xf32> {weir.kind") == 1


def test_loss_comes_first(run):
    module, x, target = nn.Linear(3, 4), torch.randn(5, 3), torch.randint(0, 4, (5,))
    exported = weir.torch.export(module, (x,), loss=functional.cross_entropy, targets={"target": target}, entry="train")
    assert exported.results == ["loss", "output"] and "func.func @train(" in exported.text
    assert [argument.kind for argument in exported.arguments] == ["input", "target", "param", "param"]
    torch.testing.assert_close(run(exported)["loss"], functional.cross_entropy(module(x), target))


def test_loss_trains(run_weir, tmp_path):
    exported = weir.torch.export(nn.Linear(3, 4), (torch.randn(5, 3),), loss=functional.mse_loss,
                                 targets={"target": torch.randn(5, 4)})
    exported.save(tmp_path / "graph.mlir")
    run_weir("compile", "graph.mlir", "--train=sgd:main", "--entry=main.step", "--require-donation", "-o", "a.weir")


def test_inputs_and_results_by_name(run):
    class Named(nn.Module):
        def forward(self, x, *, scale):
            return {"y": x * scale, "more": {"z": x + scale}, "none": None}

    x, scale = torch.randn(2, 3), torch.randn(())
    exported = weir.torch.export(Named(), {"scale": scale, "x": x})
    assert [argument.name for argument in exported.arguments] == ["x", "scale"]  # as in forward
    assert exported.results == ["y", "more.z"]
    torch.testing.assert_close(run(exported)["more.z"], x + scale)


def test_buffers_are_constants(run):
    module = nn.BatchNorm1d(3).eval()
    module.running_mean.uniform_()
    exported = weir.torch.export(module, (torch.randn(4, 3),))
    assert [argument.name for argument in exported.arguments] == ["input", "weight", "bias"]
    assert "dense_resource" in exported.text or "dense<" in exported.text


def test_constants_are_folded(run):
    def shift(x):
        places = torch.ones(x.shape[1], dtype=torch.long).cumsum(0) - 1
        decay = torch.where(places > 1, places.double().exp(), 3.0).float()
        return x * decay

    x = torch.randn(2, 4)
    exported = weir.torch.export(Function(shift), (x,))
    assert exported.text.count("linalg.generic") == 1
    torch.testing.assert_close(run(exported)["output"], shift(x))


def test_uniform_constants_are_fills_and_broadcasts_stay_small():
    def add(x):
        return x + torch.arange(3.0)[:, None].expand(3, 1000) + torch.ones(3, 1000).cumsum(1).clamp(0, 1)

    text = weir.torch.export(Function(add), (torch.randn(3, 1000),)).text
    assert max(map(len, text.splitlines())) < 1000
    assert "tensor<3x1xf32>" in text


def test_what_is_filled_by_another_shape_is_constant(run):
    """torch-mlir evaluates `ones != 1` to true."""
    x = torch.tensor([3.0, -2.0])
    function = Function(lambda x: torch.where(torch.ones_like(x) != 1, x * 2, x) + x.new_full((1,), 2.0) * x.new_zeros(2))
    assert run(weir.torch.export(function, {"x": x}))["output"].tolist() == [3.0, -2.0]
    check(lambda x: functional.hinge_embedding_loss(x, torch.ones_like(x), reduction="none"), x)


def test_equal_constants_are_one():
    def add_twice(x):
        return (x + torch.arange(3.0).exp()) * torch.arange(3.0).exp()

    def constants(function):
        program = prepare(torch.export.export(Function(function), (torch.randn(3),)))
        return program.graph_signature.lifted_tensor_constants

    assert len(constants(add_twice)) == 1
    assert len(constants(lambda x: (x + torch.arange(3.0).exp()) * torch.arange(3.0).sin())) == 2


def test_zeros_of_two_signs_are_not_uniform():
    assert torch.signbit(evaluate(lambda x: x * (torch.arange(2.0) * torch.tensor([-1.0, 1.0]) * 0), torch.ones(2))[0])


def test_a_folded_constant_in_a_list():
    check(lambda x: torch.stack([x, torch.arange(3.0).exp()]).sum(0), torch.randn(3))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
@pytest.mark.parametrize("dim", [0, -1])
def test_running_results(name, dim):
    check(lambda x: getattr(torch, name)(x, dim), torch.randn(3, 5))


def test_running_sum_keeps_what_is_before_an_infinity():
    check(lambda x: x.cumsum(0), torch.tensor([1.0, 2.0, float("inf"), 3.0]))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(run, approximate):
    module, x = nn.GELU(approximate), torch.linspace(-6, 6, 101)
    result = run(weir.torch.export(module, (x,)))["output"]
    torch.testing.assert_close(result.double(), module(x.double()), rtol=0, atol=1e-6)


ACTIVATIONS = {
    "sigmoid": torch.sigmoid, "silu": functional.silu, "logsigmoid": functional.logsigmoid,
    "softplus": lambda x: functional.softplus(x, beta=2.0), "mish": functional.mish, "elu": functional.elu,
    "elu_of_2": lambda x: functional.elu(x, 2.0), "selu": functional.selu, "celu": lambda x: functional.celu(x, 1.5),
    "leaky_relu": functional.leaky_relu, "relu": functional.relu, "relu6": functional.relu6,
    "hardtanh": functional.hardtanh, "hardsigmoid": functional.hardsigmoid, "hardswish": functional.hardswish,
    "clamp": lambda x: x.clamp(-1, 1), "maximum": lambda x: torch.maximum(x, torch.zeros_like(x)), "tanh": torch.tanh,
    "gelu": functional.gelu, "gelu_by_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "glu": lambda x: functional.glu(torch.stack([x, x]), 0), "logaddexp": lambda x: torch.logaddexp(x, x * 0),
    "binary_cross_entropy": lambda x: functional.binary_cross_entropy_with_logits(x, x.abs() * 0 + 0.3,
                                                                                  reduction="none"),
    "std": lambda x: torch.stack([x, x]).std(0) + torch.std_mean(x.reshape(2, -1) * 0, 1, keepdim=True)[0].sum() + x,
    "normalize": lambda x: functional.normalize(torch.stack([x * 0, x * 0]), dim=0)[0] + x,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_far_out_and_at_kinks(run_weir, tmp_path, name):
    """Values and gradients as PyTorch's, where exponentials overflow, too, and on either side of a kink or at it."""
    edges = torch.tensor([0.0, 0.5, 1, 2, 3, 7, 20.5, 60, 89, 100, 1000, 1e4])
    x = torch.cat([-edges, edges]).requires_grad_()
    exported = weir.torch.export(Function(ACTIVATIONS[name]), {"x": x.detach()})
    exported.save(tmp_path / "graph.mlir", tmp_path / "parameters.safetensors")
    y = ACTIVATIONS[name](x)
    y.sum().backward()
    save_file({"x": x.detach(), "cotangent.output": torch.ones_like(y)}, tmp_path / "in.safetensors")
    run_weir("compile", "graph.mlir", "--vjp=main", "--entry=main.vjp", "-o", "a.weir")
    run_weir("run", "a.weir", "--device=reference", "--input=in.safetensors", "--output=out.safetensors")
    found = load_file(tmp_path / "out.safetensors")
    torch.testing.assert_close(found["output"], y.detach(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found["grad.x"], x.grad, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(run, affine):
    module, x = nn.GroupNorm(2, 6, affine=affine), 10 + torch.randn(3, 6, 2, 5)
    if affine:
        nn.init.normal_(module.weight)
        nn.init.normal_(module.bias)
    result = run(weir.torch.export(module, (x,)))["output"]
    torch.testing.assert_close(result.double(), module.double()(x.double()), rtol=0, atol=1e-5)


def test_finite():
    check(torch.isfinite, torch.tensor([1.0, float("inf"), float("-inf"), float("nan")]))
    check(torch.isfinite, torch.tensor([1, 2]))


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}])
def test_attention(options):
    """Attention of more than one row, with the heads' results viewed as one: both need PyTorch's own layout."""
    def attend(x):
        parts = x.view(2, 5, 3, 4).transpose(1, 2)
        mixed = functional.scaled_dot_product_attention(parts, parts * 2, parts + 1, **options)
        return mixed.transpose(1, 2).reshape(2, 5, 12).view(10, 12)

    check(attend, torch.randn(2, 5, 12))


class Unsupported(nn.Module):
    def forward(self, x):
        first = torch.igamma(x, x)
        return torch.linalg.ldl_factor(first)[0] + torch.igamma(x * 2, x)


def test_unsupported_operators_are_told_at_once():
    message = refuse(Unsupported(), torch.randn(3, 3))
    assert re.findall(r"aten\.(\w+)\.\w+, .*test_torch\.py:\d+: (\w+)", message) == [
        ("igamma", "first"), ("igamma", "return"), ("linalg_ldl_factor_ex", "return")]
    assert "mul" not in message


def test_random_operators_without_uniform_numbers_are_refused():
    message = refuse(Function(lambda x: torch.randperm(4) * x), torch.randn(4))
    assert "random operators" in message and "aten.randperm" in message and "test_torch.py" in message


def philox(counter, key):
    """A block of Philox4x32-10: Salmon et al., section 3.3."""
    for turn in range(10):
        if turn:
            key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [second >> 32 ^ counter[1] ^ key[0], second % 2**32, first >> 32 ^ counter[3] ^ key[1], first % 2**32]
    return counter


def uniform(shape, seed, step, stream):
    """Returns what random.uniform gives, by its definition."""
    count = torch.Size(shape).numel()
    words = [word for block in range(-(-count // 4))
             for word in philox([block, stream, step % 2**32, step >> 32], [seed % 2**32, seed >> 32])]
    return torch.tensor([(word >> 8) * 2.0**-24 for word in words[:count]]).reshape(shape)


def test_philox_gives_the_published_block():
    """Random123's kat_vectors."""
    counter, key = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]
    assert philox(counter, key) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def set_counter(exported, seed, step):
    exported.states.update({"random.seed": torch.tensor(seed), "random.step": torch.tensor(step)})


@pytest.mark.parametrize("device", ["reference", "vulkan", "sim"])
@pytest.mark.parametrize("shape, seed, step", [((5, 7), 0, 0), ((3,), 2**40 + 5, 2**33 + 1), ((1, 13, 2), 7, 1), ((), 1, 2)])
def test_random_numbers_are_those_of_the_counter(run, device, shape, seed, step):
    x = torch.zeros(shape)
    exported = weir.torch.export(Function(lambda x: (torch.rand_like(x) + x, torch.rand_like(x) - x)), (x,))
    assert [argument.name for argument in exported.arguments] == ["x", "random.seed", "random.step"]
    assert exported.results == ["output.0", "output.1", "random.step"]
    set_counter(exported, seed, step)
    results = run(exported, device)
    for stream in (0, 1):
        assert torch.equal(results[f"output.{stream}"], uniform(shape, seed, step, stream))
    assert results["random.step"] == step + 1


def test_dropout_keeps_and_scales(run):
    x = torch.randn(40, 25)
    exported = weir.torch.export(nn.Dropout(0.3), (x,))
    set_counter(exported, 3, 4)
    kept = uniform(x.shape, 3, 4, 0) >= 0.3
    assert torch.equal(run(exported)["output"], torch.where(kept, x * (1 / 0.7), 0.0))
    assert 0.65 < kept.float().mean() < 0.75


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_dropout_of_nothing_and_all_draws_nothing(run, p):
    x = torch.randn(4, 5)
    exported = weir.torch.export(nn.Dropout(p), (x,))
    assert "random.uniform" not in exported.text and not exported.states
    assert torch.equal(run(exported)["output"], x * (1 - p))


def test_dropout_in_eval_draws_nothing():
    assert "random.uniform" not in weir.torch.export(nn.Dropout().eval(), (torch.randn(3),)).text


@pytest.mark.parametrize("draw, mean, deviation", [
    (torch.randn_like, 0, 1),
    (lambda x: torch.normal(x + 3, 2.0), 3, 2),
    (lambda x: torch.bernoulli(torch.full_like(x, 0.25)), 0.25, 0.1875**0.5),
    (lambda x: torch.empty_like(x).uniform_(-1, 3), 1, (16 / 12) ** 0.5),
    (lambda x: torch.empty_like(x).exponential_(2.0), 0.5, 0.5),
    (lambda x: torch.randint(2, 6, x.shape) + x, 3.5, 1.25**0.5),
    (lambda x: functional.dropout2d(x[:, :, None, None] + 1, 0.5).reshape(x.shape), 1, 1),
])
def test_distributions(run, draw, mean, deviation):
    exported = weir.torch.export(Function(draw), (torch.zeros(200, 100),))
    values = run(exported)["output"]
    assert abs(values.mean() - mean) < 6 * deviation / 20000**0.5
    assert abs(values.std() / deviation - 1) < 0.05


class Stopped(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))

    def forward(self, x):
        x = x.detach() * self.weight  # of an input: no gradient is asked for
        larger = x.detach() > 0  # of a comparison: there is none
        with torch.no_grad():
            scale = x * 2
        return torch.where(larger, x, 0.0) * scale + x.detach()


@pytest.fixture
def check_gradients(run_weir, tmp_path):
    """Compares the gradients of an exported loss, on the reference, with PyTorch's."""

    def check(module, inputs, loss, **targets):
        exported = weir.torch.export(module, inputs, loss=loss, targets=targets)
        exported.save(tmp_path / "g.mlir", tmp_path / "p.safetensors", tmp_path / "i.safetensors")
        run_weir("compile", "g.mlir", "--grad=main", "--entry=main.grad", "-o", "a.weir")
        run_weir("run", "a.weir", "--device=reference", "--input=p.safetensors", "--input=i.safetensors",
                 "--output=out.safetensors")
        found = load_file(tmp_path / "out.safetensors")
        loss(module(*inputs), *targets.values()).backward()
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(found[f"grad.{name}"], parameter.grad)
        for name, buffer in module.named_buffers():
            torch.testing.assert_close(found[name], buffer)
        return exported

    return check


def test_stops_of_gradients(check_gradients):
    exported = check_gradients(Stopped(), (torch.randn(2, 3),), lambda output: output.mean())
    assert exported.text.count("autodiff.stop_gradient") == 2  # the values of no_grad and of the last detach
    frozen = weir.torch.export(
        Stopped().requires_grad_(False), (torch.randn(2, 3),), loss=lambda output: output.mean())
    assert "autodiff.stop_gradient" not in frozen.text


def test_a_stop_far_from_its_use(check_gradients):
    class Straight(nn.Module):
        """A straight-through estimator, whose stop is of what other ops make behind its first use."""

        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 4)

        def forward(self, x):
            y = self.layer(x)
            return torch.tanh(y + (torch.round(y) - y).detach()) * y.detach().sum()

    check_gradients(Straight(), (torch.randn(2, 3),), lambda output: output.square().mean())


def test_padding_of_embeddings_has_no_gradient(check_gradients):
    class Embedded(nn.Module):
        def __init__(self, padding):
            super().__init__()
            self.embed = nn.Embedding(5, 3, padding_idx=padding)

        def forward(self, tokens):
            return self.embed(tokens)

    def loss(output):  # whose gradient at 0, which the padding's row begins with, is not 0
        return output.exp().mean()

    tokens = torch.tensor([[1, 2, 2], [4, 1, 0]])
    check_gradients(Embedded(1), (tokens,), loss)
    without = check_gradients(Embedded(None), (tokens,), loss)
    assert "autodiff.stop_gradient" not in without.text


def test_batch_norm_writes_its_state(check_gradients):
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.BatchNorm1d(4, momentum=0.5))
    exported = check_gradients(module, (torch.randn(6, 3),), lambda output: output.square().mean())
    states = {argument.name for argument in exported.arguments if argument.kind == "state"}
    assert states == {f"{n}.{name}" for n in (1, 3) for name in ("running_mean", "running_var", "num_batches_tracked")}
    assert exported.text.count("weir.donate") == 6


def test_batch_norm_in_eval_writes_nothing():
    module = nn.BatchNorm1d(3).eval()
    assert "weir.donate" not in weir.torch.export(module, (torch.randn(4, 3),)).text
    kept = weir.torch.export(module, (torch.randn(4, 3),), keep_buffers=True)
    assert [argument.name for argument in kept.arguments if argument.kind == "state"] == ["running_mean", "running_var"]


def test_buffers_that_are_put_anew(run):
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("average", torch.ones(3))
            self.register_buffer("constant", torch.full((3,), 0.5))

        def forward(self, x):
            self.average = self.average * self.constant + x
            return self.average * 2

    module, x = Average(), torch.randn(3)
    exported = weir.torch.export(module, (x,))
    assert [argument.name for argument in exported.arguments] == ["x", "average"]
    assert torch.equal(module.average, torch.ones(3))  # tracing leaves the module as it was
    results = run(exported)
    torch.testing.assert_close(results["average"], 0.5 + x)
    torch.testing.assert_close(results["output"], 1 + 2 * x)


def test_a_result_that_is_a_stop_of_gradients(run):
    class Detached(nn.Module):
        def forward(self, x):
            first = torch.tanh(x).detach()
            return first, (first * 2).detach()

    x = torch.randn(3)
    results = run(weir.torch.export(Detached(), (x,)))
    torch.testing.assert_close(results["output.0"], torch.tanh(x))
    torch.testing.assert_close(results["output.1"], torch.tanh(x) * 2)


def test_writes_to_inputs_are_refused():
    assert "writes to its input x" in refuse(Function(lambda x: x.add_(1)), torch.randn(3))


def test_what_cannot_be_traced_is_refused():
    def negate(x):
        return x if x.sum() > 0 else -x

    assert "a number that depends on values decides what is computed" in refuse(Function(negate), torch.randn(3))
    assert "must have same reduction dim" in refuse(nn.Linear(3, 4), torch.randn(2, 5))


def test_shapes_that_depend_on_values_are_refused():
    message = refuse(Function(lambda x: x[x > 0] * 2), torch.randn(3))
    assert "shapes depend on values" in message and "aten.index.Tensor" in message


def test_what_is_no_loss_is_refused():
    assert "shape (2, 4)" in refuse(nn.Linear(3, 4), torch.randn(2, 3), loss=lambda output: output)
    assert "int64" in refuse(nn.Linear(3, 4), torch.randn(2, 3), loss=lambda output: output.argmax())


def test_a_name_of_two_arguments_is_refused():
    target = {"weight": torch.randn(2, 4)}
    assert "named weight" in refuse(
        nn.Linear(3, 4), torch.randn(2, 3), loss=functional.mse_loss, targets=target)


def test_inputs_without_tensors_are_refused():
    with pytest.raises(TypeError, match="the inputs hold no tensor"):
        weir.torch.export(nn.Linear(3, 4), (3,))
    with pytest.raises(TypeError, match="missing a required argument: 'input'"):
        weir.torch.export(nn.Linear(3, 4), {})


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    rest: dict


def test_nested_inputs_and_outputs(run):
    def compute(x, *more, flag=False, **named):
        total = x["a"] + more[0][1] if flag else x["a"]
        return Pair(total * named["scale"], {"n": 3, "list": [named["scale"], None]})

    a, b, scale = torch.randn(3), torch.randn(3), torch.randn(3)

    class Nested(nn.Module):
        forward = staticmethod(compute)

    exported = weir.torch.export(Nested(), {"x": {"a": a}, "flag": False, "scale": scale})
    assert [argument.name for argument in exported.arguments] == ["x.a", "scale"]
    assert exported.results == ["output.first", "output.rest.list.0"]
    assert exported.output.rest["n"] == 3 and exported.output.first.name == "output.first"
    torch.testing.assert_close(run(exported)["output.first"], a * scale)
    by_place = weir.torch.export(lambda x, more: x["a"] + more[1], ({"a": a}, (None, b)))
    assert [argument.name for argument in by_place.arguments] == ["x.a", "more.1"]
    torch.testing.assert_close(run(by_place)["output"], a + b)


def test_lines_and_names_of_the_module(run_weir, tmp_path):
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 4)

        def forward(self, x):
            return torch.tanh(self.first(x)).sum(0)

    exported = weir.torch.export(Named(), (torch.randn(5, 3),))
    assert re.search(r'loc\("first"\(#loc\d*\)\)', exported.text) and 'loc("sum"(' in exported.text
    assert re.search(r'loc\("test_torch.py":\d+:0\)', exported.text)
    exported.save(tmp_path / "g.mlir")
    run_weir("compile", "g.mlir", "-o", "a.weir")
    with zipfile.ZipFile(tmp_path / "a.weir") as archive:
        plan = json.loads(archive.read("plan/vulkan/main.json"))
    places = [command["location"] for command in plan["commands"] if command["command"] == "dispatch"]
    name = r"first \(test_torch.py:\d+\), tanh \(test_torch.py:\d+\)"
    assert re.fullmatch(name, places[0])
    run_weir("run", "a.weir", "--random-inputs=1", "--profile=trace.json")
    events = [event for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if event["ph"] == "X"]
    assert re.fullmatch(name, events[0]["name"]) and events[0]["args"]["kernel"].startswith("contraction")
    assert re.search(name, run_weir("bench", "a.weir", "--rounds=1"))


def test_the_example_is_as_exported():
    """The committed graph is what the pinned release writes; where that changes, make.py runs again."""
    folder = ROOT / "examples/gpt2_block_train"
    make = runpy.run_path(str(folder / "make.py"))
    model, tokens, following = make["start"]()
    exported = weir.torch.export(
        model, {"tokens": tokens}, loss=make["loss_of"], targets={"next": following}, entry="gpt2")
    assert exported.text == (folder / "gpt2.mlir").read_text()
    given = load_file(folder / "inputs.safetensors")
    assert all(torch.equal(value, given[name]) for name, value in (exported.inputs | exported.parameters).items())


FACTORY = """
import torch

def make():
    return {"module": torch.nn.Linear(3, 4), "inputs": (torch.zeros(2, 3),), "entry": "forward"}

def make_unsupported():
    class Gamma(torch.nn.Module):
        def forward(self, x):
            return torch.igamma(x, x)
    return {"module": Gamma(), "inputs": (torch.zeros(2, 3),)}

def make_nothing():
    return 3
"""


def test_command_line(python, run_weir, tmp_path):
    (tmp_path / "factory.py").write_text(FACTORY)
    done = python("-m", "weir.torch", "factory:make", "-o", "graph.mlir", "--parameters=parameters.safetensors",
                  "--inputs=inputs.safetensors")
    assert done.returncode == 0, done.stderr
    assert set(load_file(tmp_path / "parameters.safetensors")) == {"weight", "bias"}
    run_weir("compile", "graph.mlir", "--entry=forward", "-o", "a.weir")
    run_weir("run", "a.weir", "--input=parameters.safetensors", "--input=inputs.safetensors")


@pytest.mark.parametrize("factory, message", [
    ("factory:make_unsupported", "factory.py:10: return torch.igamma(x, x)"),
    ("factory:make_nothing", "must return a dict"),
    ("factory:none", "has no attribute 'none'"),
    ("nowhere:make", "No module named 'nowhere'"),
    ("factory", "is no package.module:factory"),
])
def test_command_line_refuses(python, tmp_path, factory, message):
    (tmp_path / "factory.py").write_text(FACTORY)
    done = python("-m", "weir.torch", factory, "-o", "graph.mlir")
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "graph.mlir").exists()
