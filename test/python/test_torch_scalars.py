"""Reductions of tensors of rank 0, `narrow` from a tensor, and histograms of points."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import weir  # noqa: E402
import weir.torch  # noqa: E402


def _reduce(*values):
    results = []
    for options in ({}, {"dim": 0, "keepdim": True}, {"dim": -1}):
        for value in values[:-1]:
            results += [torch.all(value, **options), torch.any(value, **options)]
            if value.dtype != torch.bool:
                results += [function(value, **options)
                            for function in (torch.argmax, torch.argmin, torch.amax, torch.amin)]
    points = values[-1]
    results += [function(points > limit, dim=dims) for function in (torch.all, torch.any) for limit in (-2, 0)
                for dims in ((), (0,), (0, 1))]
    return [*results, *torch.max(values[0], 0), *torch.min(values[1], 0), torch.logsumexp(values[0], 0)]


def _find_boxes(points, weight, edges):
    results = []
    for options in ({}, {"density": True}, {"weight": weight}, {"range": [-1.0, 1, 0, 1, -0.5, 2]}):
        made = torch.histogramdd(points, [2, 3, 2], **options)
        results += [made.hist, *made.bin_edges]
    made = torch.histogramdd(points[:, :2], [edges, edges - 1], density=True)
    return [*results, made.hist, torch.histogram(points, 4).hist]


def test_rank_0_and_boxes():
    def compute(x, i, flag, start, points, weight, edges):
        narrowed = [torch.narrow(points, 1, start, 2), points.narrow(0, start - 3, 1)]
        return [*_reduce(x, i, flag, points), *narrowed, *_find_boxes(points, weight, edges)]

    generator = torch.Generator().manual_seed(1)
    arguments = (
        torch.tensor(-2.5), torch.tensor(3), torch.tensor(True), torch.tensor(1),
        torch.randn(40, 3, generator=generator), torch.rand(40, generator=generator), torch.tensor([-1, 0, 0.5]))
    found = weir.compile(compute, example=arguments, device="cpu")(*arguments)
    for one, other in zip(found, compute(*arguments), strict=True):
        torch.testing.assert_close(one, other)
