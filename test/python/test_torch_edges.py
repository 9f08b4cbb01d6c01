"""weir.torch at the edges of operators: NaN, infinities, ties, scalars that round; values and gradients against eager."""

import itertools
import math

import numpy
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import weir.torch  # noqa: E402

EDGES = [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, -0.1, 0.3, 1.0, -1.0, 2.0, -2.0, 3.0, 5.0, 1e-42, 3e38, -7.5]


class Many(nn.Module):
    """Calls many functions on the same operands: one compilation for all."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *operands):
        return {name: function(*operands) for name, function in self.functions.items()}


def check_values(functions, *operands, atol=0):
    """Compares the results of many functions, bit by bit but for NaNs and the last place of floats."""
    made = weir.compile(Many(functions), example=operands, device="cpu")(*operands)
    for name, function in functions.items():
        expected = function(*operands)
        found = torch.as_tensor(made[name])
        assert found.dtype == expected.dtype, name
        limits = {"rtol": 2e-6, "atol": atol} if expected.dtype == torch.float32 else {}
        torch.testing.assert_close(found, expected, **limits, equal_nan=True, msg=lambda text: f"{name}: {text}")


def check_gradients(functions, *operands):
    """Compares the gradients by parameters of the sum of each function's results with eager's in f64."""
    class Sums(nn.Module):
        def __init__(self, dtype):
            super().__init__()
            self.parts = nn.ParameterDict({f"{name}_{i}": nn.Parameter(value.to(dtype, copy=True))
                                           for name in functions for i, value in enumerate(operands)})

        def forward(self, x):
            made = [function(*(self.parts[f"{name}_{i}"] for i in range(len(operands))))
                    for name, function in functions.items()]
            return torch.stack([(part * torch.arange(1, part.numel() + 1, dtype=part.dtype).reshape(part.shape)).sum()
                                for part in made]) * x

    eager = Sums(torch.float64)
    eager(torch.ones((), dtype=torch.float64)).sum().backward()
    module = weir.torch.Module(Sums(torch.float32), example=(torch.ones(()),), device="cpu")
    module(torch.ones(())).sum().backward()
    found = dict(module.module.named_parameters())
    for name, value in eager.named_parameters():
        expected = torch.zeros_like(value) if value.grad is None else value.grad
        given = found[name].grad
        given = torch.zeros_like(value) if given is None else given.double()
        torch.testing.assert_close(given, expected, rtol=1e-5, atol=1e-6, equal_nan=True, msg=lambda text: f"{name}: {text}")


def test_many_masks_of_one_shape():
    generator = torch.Generator().manual_seed(0)
    masks = [torch.rand(3, 3, generator=generator) > 0.5 for _ in range(200)]
    x = torch.arange(9.0).reshape(3, 3)
    made = weir.compile(lambda x: torch.stack([torch.where(mask, x, -x) for mask in masks]), example=(x,), device="cpu")(x)
    torch.testing.assert_close(torch.as_tensor(made), torch.stack([torch.where(mask, x, -x) for mask in masks]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_division_and_limits(dtype):
    # Eager's fmod is NaN where the quotient overflows, which the exact one is not.
    pairs = torch.tensor([(x, y) for x, y in itertools.product(EDGES, EDGES)
                          if not (0 < abs(y) < 1e-40 or (math.isfinite(x) and abs(x) > 1e38 and abs(y) < 1))], dtype=dtype)
    check_values({
        "fmod": torch.fmod,
        "remainder": torch.remainder,
        "floor_divide": lambda a, b: a // b,
        "div_floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
        "div_trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        "maximum": torch.maximum,
        "minimum": torch.minimum,
        "fmax": torch.fmax,
        "fmin": torch.fmin,
        "clamp_tensors": lambda a, b: torch.clamp(a, b, b + 1),
        "clamp": lambda a, b: a.clamp(-1, 0.3),
        "clamp_nan": lambda a, b: a.clamp(min=math.nan),
        "clamp_min": lambda a, b: a.clamp_min(0.1),
        "clamp_max": lambda a, b: a.clamp_max(b),
        "fmod_number": lambda a, b: torch.fmod(a.clamp(-9, 9), 0.5),
        "floor_number": lambda a, b: a // 2.0,
        "relu": lambda a, b: torch.relu(a),
        "hardtanh": lambda a, b: functional.hardtanh(a),
        "relu6": lambda a, b: functional.relu6(a),
        "hardshrink": lambda a, b: functional.hardshrink(a, 0.3),
        "softshrink": lambda a, b: functional.softshrink(a, 0.25),
        "threshold": lambda a, b: functional.threshold(a, 0.3, 7.0),
        "amax": lambda a, b: torch.stack([a, b]).amax(0),
        "max": lambda a, b: torch.stack([a, b]).max(0).values,
        "argmax": lambda a, b: torch.stack([a, b]).argmax(0),
        "argmin": lambda a, b: torch.stack([a, b]).argmin(0),
        "sign": lambda a, b: torch.sign(a),
        "round": lambda a, b: torch.round(a),
    }, *(part.contiguous() for part in pairs.T))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_comparisons_with_numbers(dtype):
    x = torch.cat([(torch.arange(10) / 10).to(dtype), torch.tensor(EDGES, dtype=dtype)])
    check_values({
        "eq": lambda x: x == 0.3,
        "ne": lambda x: x != 0.7,
        "lt": lambda x: x < 0.6,
        "le": lambda x: x <= 0.1,
        "gt": lambda x: x > 0.9,
        "ge": lambda x: x >= 0.7,
        "where": lambda x: torch.where(x == 0.1, x, 0.2),
        "of_integers": lambda x: torch.arange(27) == 3.0,
    }, x)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers(dtype):
    limits = torch.iinfo(dtype)
    x = torch.tensor([limits.min, limits.max, 0, 1, -1, 7, -7, limits.max - 1, limits.min + 1], dtype=dtype)
    y = torch.tensor([3, -3, 5, 7, 2, -2, 2, 2, 3], dtype=dtype)
    check_values({
        "neg": lambda x, y: -x,
        "abs": lambda x, y: x.abs(),
        "floor": lambda x, y: x // y,
        "fmod": torch.fmod,
        "remainder": lambda x, y: x % y,
        "maximum": torch.maximum,
        "clamp": lambda x, y: x.clamp(-3, 3),
        "compare": lambda x, y: x > 2.5,
        "sign": lambda x, y: x.sign(),
    }, x, y)


def test_gradients_of_limits():
    x = torch.tensor([1.0, 2.0, 2.0, -3.0, 0.5, -0.5, 5.5])
    y = torch.tensor([1.0, 1.0, 3.0, -3.0, 0.5, 2.0, 2.0])
    check_gradients({
        "maximum": torch.maximum,
        "minimum": torch.minimum,
        "fmax": torch.fmax,
        "fmin": torch.fmin,
        "clamp": lambda x, y: x.clamp(-3, 2) * y,
        "clamp_tensors": lambda x, y: torch.clamp(x, y, y + 1),
        "clamp_min": lambda x, y: torch.clamp(x, min=y),
        "fmod": torch.fmod,
        "threshold": lambda x, y: functional.threshold(x, 0.5, 7.0) * y,
        "softshrink": lambda x, y: functional.softshrink(x, 0.5) * y,
    }, x, y)


def test_gradients_of_reductions():
    x = torch.tensor([[1.0, 2.0, 2.0, -3.0], [0.5, 0.5, 0.5, 0.5], [-4.0, 1.0, 0.0, 4.0]])
    index = torch.tensor([[0, 0, 1, 1], [2, 2, 2, 0], [1, 0, 1, 2]])
    check_gradients({
        "amax": lambda x: x.amax(1),
        "amin": lambda x: x.amin((0, 1)),
        "amax_keepdim": lambda x: x.amax(0, keepdim=True),
        "max": lambda x: x.max(),
        "max_dim": lambda x: x.max(1).values,
        "aminmax": lambda x: torch.stack(torch.aminmax(x, dim=1)),
        "norm": lambda x: torch.linalg.vector_norm(x, math.inf, 1),
        "scatter_amax": lambda x: torch.zeros(3, 4).to(x.dtype).scatter_reduce(0, index, x, "amax"),
        "scatter_own": lambda x: x.scatter_reduce(0, index, x.detach(), "amax"),
        "scatter_amin": lambda x: x.scatter_reduce(1, index, x * 1, "amin"),
        "bags": lambda x: functional.embedding_bag(index.flatten() % 3, x, torch.tensor([0, 3, 3, 8]), mode="mean"),
        "bags_max": lambda x: functional.embedding_bag(index % 3, x, mode="max", padding_idx=1),
    }, x)


def test_losses_and_bags():
    x = torch.tensor([[0.1, 0.2, 0.4, 0.8], [0.3, -0.5, 2.0, 0.0]])
    target = torch.tensor([[3, 0, -1, 1], [1, -1, 0, 2]])
    index, offsets = torch.tensor([1, 0, 1, 1, 0, 1]), torch.tensor([0, 2, 2, 5])
    weights = torch.tensor([1.0, 10.0, 100.0, 2.0, 3.0, 5.0])
    check_values({
        "multilabel": lambda x: functional.multilabel_margin_loss(x, target),
        "multilabel_none": lambda x: functional.multilabel_margin_loss(x, target, reduction="none"),
        "multilabel_row": lambda x: functional.multilabel_margin_loss(x[0], target[0], reduction="sum"),
        "var": lambda x: torch.var(x, 1, correction=4),
        "var_beyond": lambda x: torch.var(x, 1, correction=9),
        "std_beyond": lambda x: torch.std(x, correction=9),
        "var_of_one": lambda x: x[:, :1].var(1),
        "bags": lambda x: functional.embedding_bag(index, x, offsets, mode="sum", per_sample_weights=weights),
        "bags_mean": lambda x: functional.embedding_bag(index, x, offsets, mode="mean", padding_idx=0),
        "bags_max": lambda x: functional.embedding_bag(index, x, offsets, mode="max"),
        "bags_last": lambda x: functional.embedding_bag(index, x, torch.tensor([0, 2, 2, 5, 6]), include_last_offset=True, mode="sum"),
        "bags_2d": lambda x: functional.embedding_bag(index.reshape(2, 3), x, per_sample_weights=weights.reshape(2, 3), mode="sum"),
    }, x)


@pytest.mark.parametrize("flags", [False, True])
def test_rows_that_a_mask_hides(flags):
    generator = torch.Generator().manual_seed(0)
    mask = torch.rand(5, 7, generator=generator) > 0.4
    mask[1], mask[4] = False, False
    given = mask if flags else torch.where(mask, 0.5, -math.inf)

    def attend(q, k):
        bias = given if flags else given.to(q.dtype)
        return functional.scaled_dot_product_attention(q, k, k * 2, attn_mask=bias)

    q, k = torch.randn(2, 5, 4, generator=generator), torch.randn(2, 7, 4, generator=generator)
    check_gradients({"attend": attend}, q, k)
    check_values({"attend": attend}, q, k, atol=1e-6)


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, g):
        return g


class Called(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.3, -1.2, 2.6]))
        self.function = function

    def forward(self, x):
        return self.function(self.w) * x


def hooked(w):
    y = w * 2
    y.register_hook(lambda g: g * 3)
    return y.sin()


@pytest.mark.parametrize("function, what", [(lambda w: Straight.apply(w), "Straight, a torch.autograd.Function"),
                                            (hooked, "a hook of a tensor")])
def test_own_gradients_are_refused(function, what):
    x = torch.ones(3)
    with pytest.raises(weir.torch.ExportError, match=what) as error:
        weir.compile_step(Called(function), lambda y: y.sum(), example=(x,))
    assert "test_torch_edges.py" in str(error.value)
    with pytest.raises(weir.torch.ExportError, match=what):
        weir.torch.Module(Called(function), example=(x,))
    made = weir.compile(Called(function), example=(x,), device="cpu")(x)  # no gradient is asked for
    torch.testing.assert_close(torch.as_tensor(made), Called(function)(x).detach())
    weir.compile_step(Called(lambda w: w + (function(w) - w).detach()), lambda y: y.sum(), example=(x,), device="cpu")


def test_hooks_of_modules_are_refused():
    for hook in (lambda m: m.w.register_hook(lambda g: g), lambda m: m.register_full_backward_hook(lambda *_: None)):
        module = Called(torch.sin)
        hook(module)
        with pytest.raises(weir.torch.ExportError, match="hooks on gradients would not be called"):
            weir.compile_step(module, lambda y: y.sum(), example=(torch.ones(3),))


def test_reentrant_checkpoints_train():
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(3)
    for reentrant in (True, False):
        module = Called(lambda w: checkpoint(lambda z: torch.tanh(z * 2), w, use_reentrant=reentrant))
        step = weir.compile_step(module, lambda y: y.square().sum(), example=(x,), optimizer=weir.SGD(learning_rate=0.1), device="cpu")
        step(x)
        module(x).square().sum().backward()
        torch.testing.assert_close(step.state_dict()["w"], (module.w - 0.1 * module.w.grad).detach())


def test_norms_and_deviations_of_large_numbers():
    """Squares leave the range of f32, the results don't."""
    functions = {
        "layer": lambda x, w: functional.layer_norm(x, (37,), w),
        "rms": lambda x, w: functional.rms_norm(x, (37,), w, 1e-6),
        "group": lambda x, w: functional.group_norm(x.reshape(5, 37, 1), 1, w),
        "batch": lambda x, w: functional.batch_norm(x, None, None, w, training=True),
        "std": lambda x, w: torch.std(x, -1, keepdim=True) * w,
        "std_mean": lambda x, w: torch.std_mean(x)[0] * w,
    }
    generator = torch.Generator().manual_seed(1)
    x, w = torch.randn(5, 37, generator=generator), torch.randn(37, generator=generator)
    compiled = weir.compile(Many(functions), example=(x, w), device="cpu")
    for scale in (1e-30, 1e-3, 1.0, 1e19, 1e25, 1e30):
        for name, made in compiled(x * scale, w).items():
            expected = functions[name]((x * scale).double(), w.double())
            torch.testing.assert_close(torch.as_tensor(made).double(), expected, rtol=1e-5, atol=1e-6 * float(expected.abs().max()),
                                       msg=lambda text: f"{name} of {scale}: {text}")
    for scale in (1e19, 1e25):
        check_gradients({"layer": lambda v, w: functional.layer_norm(v * scale, (37,), w),
                         "rms": lambda v, w: functional.rms_norm(v * scale, (37,), w, 1e-6),
                         "batch": lambda v, w: functional.batch_norm(v * scale, None, None, w, training=True) / 1000,
                         "std": lambda v, w: torch.std(v * scale, -1) / scale}, x[:4], w)


def test_nan_is_not_equal_to_itself():
    x = torch.tensor(EDGES)
    check_values({"same": lambda x: x == x, "copy": lambda x: x.eq(x.clone()), "other": lambda x: x != x, "below": lambda x: x <= x,
                  "replaced": lambda x: torch.where(x == x, x, torch.zeros_like(x)), "rest": lambda x: x - x}, x)


def test_casts_of_doubles_to_halves():
    """Numbers that f32 rounds to 0 were NaN; those near a tie of f16 are rounded once."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randn(3000, generator=generator, dtype=torch.float64) * 2.0 ** torch.randint(-160, 20, (3000,), generator=generator)
    halves = torch.arange(-1000, 1000, dtype=torch.float64) * 2.0**-24
    given = torch.cat([sizes, halves + 2.0**-25, (halves + 2.0**-25) * (1 + 2.0**-40), torch.tensor([5e-324, -5e-324, 1e-310, 65519.99, 65520.0])])
    for device in ("cpu", "vulkan"):
        made = weir.compile(lambda x: x.half(), example=(given,), device=device)(given)
        with numpy.errstate(over="ignore"):
            expected = torch.from_numpy(given.numpy().astype(numpy.float16))
        assert torch.equal(torch.as_tensor(made), expected)


def test_tensors_without_elements():
    x = torch.randn(0, 3, 4)
    check_values({
        "roll": lambda x: x.roll((1, 2), (0, 1)),
        "unfold": lambda x: functional.unfold(x.reshape(0, 3, 2, 2), 2),
        "pool": lambda x: functional.adaptive_avg_pool1d(x, 3),
        "glu": lambda x: functional.glu(x),
        "eye": lambda x: torch.eye(0, 3),
        "linspace": lambda x: torch.linspace(0, 1, 0),
        "lgamma": torch.lgamma,
        "sum": lambda x: x.sum(0),
        "cat": lambda x: torch.cat([x, torch.ones(1, 3, 4)]),
        "held": lambda x: torch.zeros(0) * 2,
    }, x)


def test_hidden_rows_of_safe_softmax():
    x = torch.randn(3, 4)
    x[1] = -math.inf
    x[2, 1] = -math.inf
    functions = {"softmax": lambda x: torch.ops.aten._safe_softmax(x, -1)}
    check_values(functions, x)
    check_gradients(functions, x)


def test_results_through_which_no_gradient_flows():
    def forward(x):
        made, mean, rstd = torch.native_layer_norm(x, (4,), None, None, 1e-5)
        return made, mean, x.detach() * 2, rstd + x, torch.complex(x, x[0]).abs(), torch.complex(x, x).detach().real

    x = torch.randn(3, 4, requires_grad=True)
    module = weir.torch.Module(forward, example=(torch.randn(3, 4),), device="cpu")
    for inner, outer in zip(forward(x), module(x), strict=True):
        assert inner.requires_grad == outer.requires_grad
        if inner.requires_grad:
            [expected], [found] = (torch.autograd.grad(each.sum(), x, retain_graph=True, allow_unused=True)
                                   for each in (inner, outer))
            torch.testing.assert_close(found, torch.zeros_like(x) if expected is None else expected, rtol=1e-5, atol=1e-5)


def test_refusals_of_decompositions_name_the_line():
    with pytest.raises(weir.torch.ExportError, match=r"aten.index_put.default, .*test_torch_edges.py:\d+: "):
        weir.torch.export(lambda x, y: x.index_put((x > 0,), y), (torch.randn(3), torch.randn(2)))
    with pytest.raises(weir.torch.ExportError, match=r"writes to its input m, .*: batch_norm, .*test_torch_edges.py:\d+: "):
        weir.torch.Module(lambda x, m, v: functional.batch_norm(x, m, v, training=True),
                          (torch.randn(2, 3, 4), torch.zeros(3), torch.ones(3)))


def test_angles_and_log_sums_at_their_edges():
    """PyTorch's angle has no NaN in its gradient at the origin; its logarithm of a sum has one beside an infinity."""
    y, x = torch.tensor([0.0, 0.0, -0.0, -0.0, 1.0, 0.0]), torch.tensor([0.0, -0.0, 0.0, -0.0, 0.0, -2.0])
    check_values({"angle": torch.atan2}, y, x)
    check_gradients({"angle": torch.atan2}, y, x)
    rows = torch.tensor([[-math.inf] * 3, [math.inf, 1, 2], [math.nan, 1, 1], [1, 2, 3]])
    check_gradients({"sum": lambda x: x.logsumexp(1)}, rows)


def test_modules_write_to_their_inputs():
    class Normed(nn.Module):
        def forward(self, x, mean, variance, rows, z):
            rows[0][:, 1] = x[0, 0, :2]
            z.mul_(2j)
            return functional.batch_norm(x, mean, variance, training=True), rows[0].add_(1)

    def make():
        generator = torch.Generator().manual_seed(3)
        x = torch.randn(4, 3, 5, generator=generator)
        return x, torch.zeros(3), torch.ones(3), [torch.zeros(2, 2, dtype=torch.float64)], torch.tensor([1 + 2j, 3j])

    module = Normed()
    with weir.compile(module, example=make(), device="cpu") as program:
        found, eager, arrays = make(), make(), make()
        for made, expected in zip(program(*found), module(*eager)):
            torch.testing.assert_close(made, expected, rtol=1e-5, atol=1e-6)
        lazy = program(*(value.numpy() if isinstance(value, torch.Tensor) else [value[0].numpy()] for value in arrays))
        for given in (found, arrays):
            for value, expected in zip((*given[:3], *given[3], given[4]), (*eager[:3], *eager[3], eager[4]), strict=True):
                torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-6)
        with pytest.raises(TypeError, match=r"writes to its input rows.0; give a PyTorch tensor or a NumPy array that is writable"):
            program(*make()[:3], [lazy[1]], make()[4])
    with pytest.raises(weir.torch.ExportError, match="writes to its input x, and has an output of that name"):
        weir.compile(lambda x: {"x": x.add_(1)}, example=(torch.ones(2),))


def test_gradient_of_neighbours():
    check_gradients({"next": torch.nextafter}, torch.tensor([1.0, 2.0, 1.0, -3.0, 0.0]), torch.tensor([2.0, 1.0, 1.0, 0.0, 1.0]))


def test_containers_of_parameters_train():
    """A slice or a copy of one wraps in parameters what is none, which ended their gradients."""
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.ParameterList([nn.Parameter(torch.full((3,), float(i))) for i in range(1, 4)])
            self.named = nn.ParameterDict({"a": nn.Parameter(torch.ones(3)), "b": nn.Parameter(torch.full((3,), 2.0))})

        def forward(self, x):
            for row in [*self.rows[1:], *nn.ParameterList(list(self.rows))]:
                x = x * row
            for value in [*self.named.copy().values(), *nn.ParameterDict(dict(self.named)).values()]:
                x = x + value * value
            return x, (x > 60).to(torch.uint8) * 200

    eager, module = Layers(), weir.torch.Module(Layers(), example=(torch.ones(3),), device="cpu")
    results = [function(torch.arange(3.0)) for function in (module, eager)]
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)
        if found.requires_grad:
            found.sum().backward()
            expected.sum().backward()
    for found, expected in zip(module.module.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad)


def test_sums_of_16_bits_on_the_way():
    """They may be infinite where the result is not; and RMSNorm has an epsilon of its own without one."""
    functions = {
        "mean": lambda x: x.mean(), "mean_dim": lambda x: x.mean(1, keepdim=True), "var_mean": lambda x: torch.var_mean(x, 1)[1],
        "std_mean": lambda x: torch.std_mean(x, 1)[1], "norm_3": lambda x: torch.linalg.vector_norm(x, 3, 1),
        "norm": lambda x: torch.norm(x, dim=1), "l1": lambda x: functional.l1_loss(x, -x),
        "pool": lambda x: functional.adaptive_avg_pool1d(x.unsqueeze(0), 1), "distance": lambda x: functional.pairwise_distance(x, -x),
        "rms_norm": lambda x: functional.rms_norm(x, (300,)), "rms_norm_eps": lambda x: functional.rms_norm(x, (300,), eps=0.5),
        "group_norm": lambda x: functional.group_norm(x, 2), "normalize": lambda x: functional.normalize(x, dim=1),
    }
    generator = torch.Generator().manual_seed(3)
    for scale in (1e-4, 600.0):
        for dtype in (torch.float16, torch.bfloat16, torch.float32):
            x = (torch.rand(4, 300, generator=generator) * scale + scale).to(dtype)
            made = weir.compile(Many(functions), example=(x,), device="cpu")(x)
            for name, function in functions.items():
                expected = function(x.double() if name != "rms_norm" else x.float()).double()
                limits = {"rtol": 4 * torch.finfo(dtype).eps, "atol": 2 * torch.finfo(dtype).tiny}
                if name == "group_norm":
                    limits["atol"] = 16 * torch.finfo(dtype).eps
                torch.testing.assert_close(torch.as_tensor(made[name]).double(), expected, **limits,
                                           msg=lambda text: f"{name} of {dtype}, {scale}: {text}")


def test_infinities_and_nans_stay_where_they_are():
    """Neighbours that are interpolated, windows of NaNs, places of a grid, distances that count, alignments."""
    x = torch.arange(64.0).reshape(1, 1, 8, 8)
    x[0, 0, 0, 2], x[0, 0, 5, 5], x[0, 0, 3, :3] = math.inf, -math.inf, math.nan
    x[0, 0, 6:, :4] = -math.inf
    grid = torch.tensor([[-0.9, 0.3], [math.nan, 0.1], [math.inf, 0.0], [-0.2, -2.0], [1.5, math.nan]]).reshape(1, 1, 5, 2)
    rows, other = torch.tensor([[1.0, math.nan], [2.0, 0.0]]), torch.tensor([[1.0, 0.0], [2.0, 0.0]])
    close = torch.tensor([math.nan, math.inf, -math.inf, 1.0, math.inf]), torch.tensor([math.nan, math.inf, math.inf, 1.0, 1.0])
    scores = torch.log_softmax(torch.arange(24.0).reshape(4, 1, 6) % 5, 2)
    scores[1, 0, 2] = math.nan
    targets = torch.tensor([[2, 3]]), torch.tensor([4]), torch.tensor([2])
    functions = {
        "linear": lambda x: functional.interpolate(x[0], scale_factor=2, mode="linear"),
        "bilinear": lambda x: functional.interpolate(x, scale_factor=2.5, mode="bilinear"),
        "bilinear corners": lambda x: functional.interpolate(x, (5, 13), mode="bilinear", align_corners=True),
        "trilinear": lambda x: functional.interpolate(torch.stack([x, x], 2).expand(1, 5, 2, 8, 8), (3, 5, 12), mode="trilinear"),
        "max": lambda x: functional.max_pool2d(x, 2), "max and place": lambda x: functional.max_pool2d(x, 2, return_indices=True)[1],
        "place in padding": lambda x: functional.max_pool2d(x, 3, 2, 1, return_indices=True)[1],
        "place in rows": lambda x: functional.max_pool1d(x[0], 2, return_indices=True)[1],
        "grid": lambda x: functional.grid_sample(x, grid, align_corners=False),
        "nearest in grid": lambda x: functional.grid_sample(x, grid, mode="nearest", align_corners=True),
        "distance 0": lambda x: torch.cdist(rows + 0 * x[0, 0, 7, 7], other, p=0),
        "close": lambda x: torch.isclose(close[0] + 0 * x[0, 0, 7, 7], close[1]),
        "close NaN": lambda x: torch.isclose(close[0] + 0 * x[0, 0, 7, 7], close[1], equal_nan=True),
        "alignment": lambda x: functional.ctc_loss(scores + 0 * x[0, 0, 7, 7], *targets, zero_infinity=True),
        "zeta": lambda x: torch.special.zeta(torch.tensor([1.0, math.nan]) + 0 * x[0, 0, 7, 7], torch.tensor([math.nan, 0.0])),
    }
    check_values(functions, x, atol=1e-5)


def test_gradients_flow_through_what_is_written_in_place():
    class Filling(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Linear(4, 3)

        def forward(self, x):
            made, other = torch.zeros(2, 5), torch.zeros(6)
            made[:, :3].copy_(self.line(x))
            made[:, 3:] += 1
            other[0] = made.sum()
            return made * 2, other.detach(), other[1:].sum()

    module, x = Filling(), torch.randn(2, 4)
    found = weir.torch.Module(module, example=(x,), device="cpu")(x)
    assert [each.requires_grad for each in found] == [each.requires_grad for each in module(x)] == [True, False, True]
    [gradient], [expected] = (torch.autograd.grad(results[0].sum(), [module.line.weight]) for results in (found, module(x)))
    torch.testing.assert_close(gradient, expected)
