"""Sorts, top-k, scatters and grouped products of weir.torch: the values and gradients of PyTorch's own operators."""

import inspect
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from safetensors.torch import load_file, save_file  # noqa: E402

import weir.torch  # noqa: E402
from weir.graphs import ExportError  # noqa: E402
from weir.torch import ordering, scattering  # noqa: E402

TIED = torch.tensor([[3.0, -1.0, 3.0, float("nan"), -0.0, 0.0, float("inf"), -1.0, float("nan")],
                     [2.0, 2.0, 2.0, 1.0, float("-inf"), 5.0, 5.0, 0.5, 2.0]])


def equal(mine, theirs):
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("values", [TIED, torch.randint(-3, 3, (4, 11)), torch.randint(0, 2, (3, 5)).bool(), torch.randn(1, 1), torch.zeros(2, 0)], ids=str)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, -1])
def test_sort_keeps_the_order_of_equal_elements(values, descending, dim):
    equal(ordering.sort(values, dim, descending), torch.sort(values, dim=dim, descending=descending, stable=True))


def test_sort_of_a_scalar():
    equal(ordering.sort(torch.tensor(3.0)), torch.sort(torch.tensor(3.0)))


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [0, 1, 3, 9])
def test_top_k_are_the_first_of_a_stable_sort(k, largest):
    values, places = ordering.top_k(TIED, k, -1, largest)
    expected = torch.sort(TIED, dim=-1, descending=largest, stable=True)
    equal((values, places), [part[:, :k] for part in expected])


@pytest.mark.parametrize("keepdim", [False, True])
def test_kth_value(keepdim):
    values = torch.randperm(35).reshape(5, 7).float()
    equal(ordering.kth_value(values, 3, 0, keepdim), torch.kthvalue(values, 3, 0, keepdim))


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("values", [TIED, torch.randint(-3, 3, (4, 11)), torch.tensor(2.0)], ids=str)
def test_running_limits_are_the_last_of_equal_ones(values, largest):
    theirs = torch.cummax if largest else torch.cummin
    for dim in range(-1, max(values.dim() - 1, 0)):
        equal(ordering.running_limit(largest)(values, dim), theirs(values, dim))


@pytest.mark.parametrize("bins, low, high", [(4, 0, 3), (7, -2, 2), (1, 0, 1)])
def test_histc(bins, low, high):
    values = torch.tensor([0.0, 1, 1, 2, 3, 3, -5, 9, -2, 2, 0.5])
    torch.testing.assert_close(ordering.count_in_bins(values, bins, low, high), torch.histc(values, bins, low, high))


@pytest.mark.parametrize("values", [torch.tensor([0.5, -1, 2, 2, 1]), torch.full((3,), 2.0), torch.zeros(0)], ids=str)
def test_histc_takes_limits_of_the_values(values):
    torch.testing.assert_close(ordering.count_in_bins(values, 4), torch.histc(values, 4))


class Sorts(torch.nn.Module):
    def forward(self, x, y, z, u):
        results = []
        for values in (x, y, z, u):
            results += [*torch.sort(values, stable=True), *torch.sort(values, descending=True, stable=True)]
        return (*results, *torch.topk(x, 50), *torch.topk(x, 7, largest=False), *torch.topk(y, 1000))


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_many_elements_are_merged_in_runs(device):
    """Of sizes that runs divide, and do not; with NaN, infinities and zeros of both signs among equal elements."""
    torch.manual_seed(0)
    x = torch.randint(-40, 40, (2, 2049)) / 8.0
    for value in ("nan", "inf", "-inf", "-0.0"):
        x = torch.where(torch.rand(x.shape) < 0.05, float(value), x)
    inputs = (x, torch.randint(-40, 40, (3000,)), torch.randint(0, 2, (2, 4096)).bool(),
              torch.randint(-128, 128, (3, 65)).to(torch.int8))
    with weir.compile(Sorts(), example=inputs, device=device) as program:
        found = program(*inputs)
    expected = list(Sorts()(*inputs)[:16])  # PyTorch's top-k takes any of equal elements
    for part, count, largest in ((x, 50, True), (x, 7, False), (inputs[1], 1000, True)):
        expected += [half[..., :count] for half in torch.sort(part, descending=largest, stable=True)]
    equal([torch.from_numpy(part.numpy()).to(want.dtype) for part, want in zip(found, expected)], expected)


CHOSEN = [(0, 1), (0, 40), (1, 3), (2, 5), (3, 7), (4, 2), (5, 9)]  # arguments of Firsts, and numbers of elements


class Firsts(torch.nn.Module):
    def forward(self, *inputs):
        return [half for number, k in CHOSEN for largest in (True, False)
                for half in torch.topk(inputs[number], k, largest=largest)]


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_few_of_many_elements_are_chosen_from_blocks(device):
    """Of sizes that blocks divide, and do not; equal elements in several blocks, rows of NaN and of infinities, and so many
    elements that blocks are chosen from blocks."""
    torch.manual_seed(1)
    x = torch.randint(-40, 40, (3, 4099)) / 8.0
    for value in ("nan", "inf", "-inf", "-0.0"):
        x = torch.where(torch.rand(x.shape) < 0.004, float(value), x)
    ends = torch.full((4, 1021), float("nan"))
    ends[1], ends[2], ends[3, 1:] = float("-inf"), float("inf"), 0.0
    inputs = (x, torch.randint(-400, 400, (2, 2048)), torch.randint(-128, 128, (2, 1000)).to(torch.int8), ends,
              torch.randint(0, 2, (1999,)).bool(), torch.randint(-3000, 3000, (70001,)).half())
    with weir.compile(Firsts(), example=inputs, device=device) as program:
        found = program(*inputs)
    expected = [half[..., :k] for number, k in CHOSEN for largest in (True, False)
                for half in torch.sort(inputs[number], descending=largest, stable=True)]
    equal([torch.from_numpy(part.numpy()).to(want.dtype) for part, want in zip(found, expected)], expected)



def unique_index(shape, dim, size):
    """An index that names no place twice along `dim`."""
    rows = torch.rand(*[size if d == dim else n for d, n in enumerate(shape)]).argsort(dim)
    return rows.narrow(dim, 0, shape[dim])


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("smaller", [False, True])
def test_scatter(dim, smaller):
    own, source = torch.randn(4, 5, 6), torch.randn(4, 5, 6)
    index = unique_index((3, 2, 4) if smaller else own.shape, dim % 3, own.shape[dim])
    equal([scattering.scatter(own, dim, index, source)], [own.scatter(dim, index, source)])
    equal([scattering.scatter_value(own, dim, index, 7.5)], [own.scatter(dim, index, 7.5)])


def test_of_several_that_replace_an_element_the_last_one_does():
    own, index = torch.zeros(3), torch.tensor([2, 0, 2, 2])
    made = scattering.scatter(own, 0, index, torch.tensor([1.0, 2, 3, 4]))
    assert made.tolist() == [2, 0, 4]


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.int32])
@pytest.mark.parametrize("dim", [0, 1])
def test_scatter_reduce(reduce, include_self, dtype, dim):
    own, source = ((torch.randn(5, 4) * 9).to(dtype) for _ in range(2))
    index = torch.randint(0, own.shape[dim], (5, 4))
    expected = own.scatter_reduce(dim, index, source, reduce, include_self=include_self)
    torch.testing.assert_close(scattering.scatter_reduce(own, dim, index, source, reduce, include_self=include_self),
                               expected)


def test_scatter_add_and_scalars():
    own, index, source = torch.randn(7, dtype=torch.float64), torch.tensor([1, 1, 6, 0]), torch.randn(4).double()
    torch.testing.assert_close(scattering.scatter_add(own, 0, index, source), own.scatter_add(0, index, source))
    scalar = torch.tensor(2.0)
    equal([scattering.scatter_add(scalar, 0, torch.tensor(0), torch.tensor(3.0))], [torch.tensor(5.0)])


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("indices", [
    [torch.tensor([3, -1, 0])], [None, torch.tensor([2, 0])], [torch.tensor([[1, 2], [0, -2]]), None, torch.tensor([1, 3])],
    [torch.tensor([1, 2]), torch.tensor([0, -1])], [None, torch.tensor([[1], [0]]), torch.tensor([3, 0])],
], ids=str)
def test_index_put(indices, accumulate):
    own = torch.randn(4, 3, 5, dtype=torch.float64)
    values = torch.randn(own[tuple(slice(None) if i is None else i for i in indices)].shape, dtype=torch.float64)
    for given in (values, torch.tensor(2.5, dtype=torch.float64)):
        torch.testing.assert_close(scattering.index_put(own, indices, given, accumulate),
                                   torch.ops.aten.index_put(own, indices, given, accumulate))


def test_index_put_by_a_mask():
    own = torch.randn(4, 3)
    mask = own[:, 0] > 0
    equal([scattering.index_put(own, [mask], torch.tensor(1.0))], [torch.ops.aten.index_put(own, [mask], torch.tensor(1.0))])
    with pytest.raises(ExportError, match="use torch.where"):
        scattering.index_put(own, [own > 0], torch.randn(3))


@pytest.mark.parametrize("dim", [0, 1])
def test_index_add_copy_fill(dim):
    own, index = torch.randn(4, 6, dtype=torch.float64), torch.tensor([2, 0, 3])
    source = torch.randn((3, 6) if dim == 0 else (4, 3), dtype=torch.float64)
    torch.testing.assert_close(scattering.index_add(own, dim, index, source, alpha=2), own.index_add(dim, index, source, alpha=2))
    equal([scattering.index_copy(own, dim, index, source)], [own.index_copy(dim, index, source)])
    equal([scattering.index_fill(own, dim, index, 3)], [own.index_fill(dim, index, 3)])


@pytest.mark.parametrize("ends", [[2, 5, 7], [0, 0, 7], [3, 3, 4]])
def test_grouped_mm(ends):
    x, weight = torch.randn(7, 4), torch.randn(3, 4, 5)
    x[6] = float("inf") if ends[-1] < 7 else x[6]  # a row that no group has
    made = scattering.grouped_mm(x, weight, torch.tensor(ends))
    expected, start = torch.zeros(7, 5), 0
    for group, end in enumerate(ends):
        expected[start:end], start = x[start:end] @ weight[group], end
    torch.testing.assert_close(made, expected)


class Routed(torch.nn.Module):
    """A mixture of experts as transformers writes it: top-k, a sort by experts, grouped products, an index_put."""

    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(6, 4, bias=False)
        self.experts = torch.nn.Parameter(torch.randn(4, 6, 6))

    def forward(self, x):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
        expert, order = torch.sort(chosen.reshape(-1))
        ends = torch.histc(expert.float(), 4, 0, 3).cumsum(0, dtype=torch.int32)
        made = torch.ops.transformers.grouped_mm_fallback(x[order // 2], self.experts, ends) * weights.reshape(-1)[order].unsqueeze(-1)
        back = torch.empty_like(order)
        back[order] = torch.arange(order.numel())
        return made[back].reshape(*x.shape[:-1], 2, 6).sum(-2).square().mean()


class Expected(Routed):
    """The same in f64, which _grouped_mm does not take."""

    def forward(self, x):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
        made = torch.einsum("sk,stkn->stn", x, self.experts[chosen])
        return (made * weights.unsqueeze(-1)).sum(1).square().mean()


class Places(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.randn(3, 10))

    def forward(self, index):
        x = self.x
        ordered, _ = torch.sort(x, descending=True)
        added = torch.zeros_like(x).scatter_add(1, index, x * x)
        put = x.index_copy(0, torch.tensor([2, 0]), x[:2] * 3)
        return (ordered * torch.arange(1.0, x.shape[1] + 1)).sum() + (added * x).sum() + (put**3).sum()


def check_gradients(run_weir, module, expected, inputs, tolerance=2e-6):
    """Compares a loss and the gradients of all parameters with PyTorch's in f64."""
    graph = weir.torch.export(module, inputs)
    Path("g.mlir").write_text(graph.text)
    run_weir("compile", "g.mlir", "--grad=main", "--entry=main.grad", "--target=cpu:native", "-o", "a.weir")
    given = {name: value for name, value in zip(inspect.signature(module.forward).parameters, inputs)}
    save_file({k: v.detach().contiguous() for k, v in {**module.state_dict(), **given}.items()}, "in.safetensors")
    run_weir("run", "a.weir", "--device=cpu", "--input=in.safetensors", "--output=out.safetensors")
    made = load_file("out.safetensors")
    wanted = expected.double()(*[i.double() if i.is_floating_point() else i for i in inputs])
    wanted.backward()
    pairs = [(made["output"], wanted)] + [(made[f"grad.{name}"], p.grad) for name, p in expected.named_parameters()]
    for mine, theirs in pairs:
        scale = theirs.detach().abs().max().item()
        torch.testing.assert_close(mine.double(), theirs.detach(), rtol=0, atol=tolerance * scale)


def test_a_mixture_of_experts(run_weir, tmp_path, monkeypatch):
    pytest.importorskip("transformers.integrations.moe", reason="transformers is not installed")
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    module, expected = Routed(), Expected()
    expected.load_state_dict(module.state_dict())
    check_gradients(run_weir, module, expected, (torch.randn(9, 6),))


def test_gradients_flow_through_places(run_weir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    module, expected = Places(), Places()
    expected.load_state_dict(module.state_dict())
    check_gradients(run_weir, module, expected, (torch.randint(0, 10, (3, 10)),))


class ManyUpdates(torch.nn.Module):
    """Scatters for which the compiler sorts the updates: rows of one element, of some, and with a place for each."""

    def forward(self, own, to, x, table, rows, y, index, z):
        return (own.index_add(0, to, x), own.index_copy(0, to, x), own.scatter_reduce(0, to, x, "amax"),
                own.scatter_reduce(0, to, x, "mean"), table.index_add(0, rows, y),
                torch.zeros(2, 3000, dtype=z.dtype).scatter_add(1, index, z), torch.ones(3000, dtype=torch.int64).index_add(0, to % 3000, to))


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_many_updates_are_sorted(device):
    """Places that several updates name, one in three of them all, and places that none does."""
    torch.manual_seed(0)
    own, to, x = torch.randn(20000), torch.randint(0, 19000, (9000,)), torch.randn(9000)
    to = torch.where(torch.arange(9000) % 3 == 0, 77, to)
    table, rows, y = torch.randn(30000, 3), torch.randint(0, 30000, (5000,)), torch.randn(5000, 3)
    index, z = torch.randint(0, 3000, (2, 7000)), torch.randn(2, 7000)
    inputs = (own, to, x, table, rows, y, index, z)
    graph = weir.torch.export(ManyUpdates(), inputs)
    assert graph.text.count("norm.argsort") == 0  # they are the compiler's
    with weir.compile(ManyUpdates(), example=inputs, device=device) as program:
        found = program(*inputs)
    expected = ManyUpdates()(*(part.double() if part.is_floating_point() else part for part in inputs))
    for part, want in zip(found, expected):
        tolerance = {} if not want.is_floating_point() else {"rtol": 1e-5, "atol": 1e-4}
        torch.testing.assert_close(torch.from_numpy(part.numpy()).to(want.dtype), want, **tolerance)


class Pools(torch.nn.Module):
    """Of integers below 3, so that most windows have several elements that are as large."""

    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.randint(0, 3, (1, 2, 6, 6, 6)).float())

    def forward(self, weight):
        return (torch.nn.functional.max_pool3d(self.x, 3, 2, 1) * weight).sum()


def test_a_pool_of_three_dimensions_gives_its_gradient_to_the_first_of_equal_elements(run_weir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    module, expected = Pools(), Pools()
    expected.load_state_dict(module.state_dict())
    check_gradients(run_weir, module, expected, (torch.randn(1, 2, 3, 3, 3),))


def write_at_places(x, index, rows, source):
    return (x.scatter_add(0, index, source), x.index_add(0, rows, source), x.index_put((rows, rows - 1), source[:, 0]),
            x.index_fill(0, rows - 5, 2.0), x.scatter_reduce(1, index.T % 4, source.T, "amax"))


def test_writes_out_of_range_are_told():
    torch.manual_seed(2)
    x, source = torch.randn(5, 4), torch.randn(6, 4)
    index, rows = torch.randint(0, 5, (6, 4)), torch.tensor([0, 4, 1, 2, 2, 3])
    with weir.compile(write_at_places, example=(x, index, rows, source), device="cpu") as program:
        given = (x, index, rows, source)
        for mine, theirs in zip(program(*given), write_at_places(*given), strict=True):
            torch.testing.assert_close(mine, theirs)
        for place, value in ((index, 5), (index, -1), (rows, 5)):
            given = [part.clone() for part in (x, index, rows, source)]
            given[1 if place is index else 2][3] = value
            what = "scatter_add" if place is index else "index_add|index_put"
            with pytest.raises(weir.Error, match=rf"({what}) \(test_torch_places.py:\d+\) uses an index that is not in \[0, [45]\)"):
                program(*given)


def test_a_constant_index_out_of_range_is_refused():
    rows = torch.tensor([0, 5])
    with pytest.raises(ExportError, match=r"(?s)out of bounds for dimension 0 with size 5.*test_torch_places.py:\d+: .*index_add"):
        weir.torch.export(lambda x: x.index_add(0, rows, x[:2]), (torch.ones(5, 2),))
