"""Operators of weir.torch with a module of their own: values, and gradients beside those of f64, with ties and NaN."""

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch.nn import functional  # noqa: E402

import weir.torch  # noqa: E402

NAN, INF = math.nan, math.inf


def flatten(values):
    return [value for value in torch.utils._pytree.tree_leaves(values) if isinstance(value, torch.Tensor)]


class Cases(torch.nn.Module):
    """Functions of inputs of their own, of which the floats are parameters."""

    def __init__(self, cases, dtype):
        super().__init__()
        self.cases = cases
        self.values = torch.nn.ParameterList(
            torch.nn.Parameter(value.to(dtype)) for _, *given in cases for value in given if value.is_floating_point())

    def forward(self, _, *others):
        values, others = iter(self.values), iter(others)
        return [flatten(function(*[next(values) * 1 if part.is_floating_point() else next(others) for part in given]))
                for function, *given in self.cases]


def pull(module, results):
    """Returns the gradients of a weighted sum of results."""
    total = 0
    for k, value in enumerate(value for value in flatten(results) if value.requires_grad):
        weight = (torch.arange(value.numel(), dtype=torch.float64) * 0.37 + k).cos().reshape(value.shape) + 1.5
        total = total + (value.double() * weight).where(value.detach().double().isfinite(), 0).sum()
    total.backward()
    return [torch.zeros_like(value) if value.grad is None else value.grad for value in module.values]


def check(*cases, gradients=True, tolerance=2e-5):
    """Compares functions of inputs, (function, inputs...), with PyTorch's: all values in one artifact, all gradients in
    another."""
    others = [value for _, *given in cases for value in given if not value.is_floating_point()]
    eager = Cases(cases, torch.float32)
    if not gradients:
        eager.requires_grad_(False)
    arguments = (torch.zeros(1), *others)
    if gradients:
        module = weir.torch.Module(Cases(cases, torch.float32), example=arguments, device="cpu")
        found = module(*arguments)
    else:
        found = weir.compile(eager, example=arguments, device="cpu")(*arguments)
    for mine, theirs in zip(flatten(found), flatten(eager(*arguments)), strict=True):
        torch.testing.assert_close(mine.detach(), theirs.detach(), rtol=tolerance, atol=1e-5, equal_nan=True)
    if gradients:
        wide = Cases(cases, torch.float64)
        expected = pull(wide, wide(*arguments))
        for mine, theirs in zip(pull(module.module, found), expected, strict=True):
            torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=2e-5, equal_nan=True)


def test_medians():
    ties = torch.tensor([[3.0, 1, 2, 2, 5], [0, 1, 2, 2, 0], [INF, -INF, INF, 0, -0.0]])
    holes = torch.tensor([[NAN, 1, NAN, 2, 0], [NAN, NAN, 4, 4, NAN], [NAN] * 5])
    numbers = torch.tensor([[1, 5, 5, 2, 2, 0], [3, 3, 1, 1, 0, 9]])
    check((lambda x: (x.median(), x[0].nanmedian(), x.median(1), x.median(0, True), x.nanmedian(1)), ties),
          (lambda x: (x.median(), x.nanmedian(), x[2].nanmedian(), x[:2].median(1), x[:2].nanmedian(1)), holes),
          (lambda x: (x.median(), x.median(1), x.nanmedian(0), x.mode(1), x.mode(0), x.mode(1, True)), numbers),
          (lambda x: x.mode(1), ties[:2]))


def test_searches():
    bounds, values = torch.tensor([0.0, 1, 1, 2, 5]), torch.tensor([[-1.0, 0, 1, 1.5], [5, 6, NAN, INF]])
    numbers = torch.tensor([[4, 1, 3, 1], [0, 7, 7, 2]])
    check((lambda s, v: (torch.searchsorted(s, v), torch.searchsorted(s, v, side="right"), torch.searchsorted(s, 3.0),
                         torch.bucketize(v, s, right=True, out_int32=True)), bounds, values),
          (lambda i: (torch.searchsorted(i.sort().values, i), torch.searchsorted(i, i, sorter=i.argsort()),
                      torch.searchsorted(i, i)), numbers),
          (lambda v: (torch.histogram(v, 5), torch.histogram(v, 4, range=(-1.0, 1.0)), torch.histogram(v[:0], 2),
                      torch.histogram(v, v.sort().values, weight=v.abs(), density=True)),
           torch.tensor([-1.0, 0.3, 2, 1, 1, 0.5])), gradients=False)


def test_writes():
    torch.manual_seed(0)
    x, mask = torch.randn(3, 5), torch.rand(3, 5) > 0.5
    places, rows = torch.tensor([0, -1, 4, 4, 7]), torch.tensor([0, 2, 2, 4])
    own, source = torch.tensor([[2.5, -1.5, 3.5, 0.5, 1.5]] * 2), torch.tensor([[2.0, 4, 3, -2], [1, 3, 3, -2]])
    check((lambda x, m, s: (x.masked_scatter(m, s), x.masked_scatter(m[0], s)), x, mask, torch.randn(15)),
          (lambda x, i, s: (x.put(i, s, accumulate=True), x.put(i[:3], s[:3])), x, places, torch.randn(5)),
          (lambda x, i, s: [x.index_reduce(1, i, s, kind, include_self=own) for kind in ("prod", "mean", "amax", "amin")
                            for own in (True, False)], own, rows, source),
          (lambda x, i: (x.take(i), x.take(i[0])), x, places),
          (lambda x, s: (x.diagonal_scatter(s[:3]), x.t().diagonal_scatter(s[:3], -2), x.diagonal_scatter(s[:3], 1)),
           x, torch.randn(5)))


def test_segments():
    rows, lengths = torch.tensor([[0.0, 2], [1, 2], [2, 2], [2, 1], [1, 0], [0, 0]]), torch.tensor([2, 0, 3, 1])
    check(*[(lambda d, n, kind=kind: (
        torch.segment_reduce(d, kind, lengths=n, axis=0, unsafe=True),
        torch.segment_reduce(d, kind, offsets=torch.cat([n[:1] * 0, n.cumsum(0)]), axis=0, initial=1, unsafe=True)),
        rows, lengths) for kind in ("sum", "mean", "max", "min", "prod")])


def test_strides():
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    check((lambda x: (x.as_strided((2, 3), (1, 2)), x.t().as_strided((3, 4), (2, 1), 3), torch.as_strided_copy(x, (2, 2), (5, 1), 2),
                      torch.permute_copy(x, (1, 0)), torch.unbind_copy(x, 1), torch.narrow_copy(x, 1, 1, 2)), x))
    check((lambda x, s: (x.as_strided_scatter(s, (2, 3), (1, 2)), x.t().as_strided_scatter(s, (2, 3), (10, 2), 1)), x, x[:2, :3]),
          gradients=False)
    with pytest.raises(weir.torch.ExportError, match="as_strided of a view that skips elements.*contiguous"):
        weir.torch.export(lambda x: x[:, :2].as_strided((2, 2), (1, 1)), (x,))


def test_distances():
    torch.manual_seed(1)
    x, y = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    y[0, 1], y[1, 2, :2] = x[0, 2], x[1, 1, :2]
    kinds = (0, 0.5, 1, 1.5, 2, 3, INF)
    rows = torch.cat([x[0], x[0, :1]])
    check((lambda x, y: [torch.cdist(x, y, p=p) for p in kinds], x, y),
          (lambda x: [functional.pdist(x, p=p) for p in kinds[2:]], rows),
          (lambda x, y: torch.cdist(x, y), torch.randn(30, 4), torch.randn(26, 4)),
          (lambda x, y: [torch.dist(x, each, p) for p in (1, 2, 3, INF) for each in (y, x.clone())], x[0], y[0, :3]),
          (lambda x, y: torch.hypot(x, y), torch.tensor([3.0, 1e30, 1e-30, 2]), torch.tensor([4.0, 1e30, 1e-30, 0])))
    check((lambda x, y: torch.hypot(x, y), torch.tensor([INF, NAN, 0, NAN]), torch.tensor([NAN, 1.0, 0, -INF])), gradients=False)


def test_bits():
    x = torch.tensor([1.0, -3.5, 0, -0.0, INF, -INF, NAN, 1e-40, -1e-45, 3e38, 0.5, 2.0**-126])
    y = torch.tensor([1.0, 0, INF, -1, 5])
    check((lambda x: (torch.frexp(x)[0], torch.frexp(x[:4].half()), torch.frexp(x[7:].double() * 1e-270)), x),
          (lambda x: (torch.frexp(x[:4]), torch.frexp(x[7:])), x),
          (lambda x, y: [torch.nextafter(x.to(t).unsqueeze(1), y.to(t)) for t in (torch.float32, torch.bfloat16, torch.float64)],
           x, y), (lambda x: (x.view(torch.int32), (x.view(torch.int32) & 0x7FFFFFFF).view(torch.float32)), x), gradients=False,
          tolerance=0)
    check((lambda x: torch.frexp(x), torch.tensor([1.0, -3.5, 0.25, 100])))


def test_matrix_exponentials():
    torch.manual_seed(2)
    turn = torch.randn(4, 4) * 20
    check((lambda x: torch.matrix_exp(x), torch.randn(2, 3, 3) * 0.1), (lambda x: torch.matrix_exp(x), torch.randn(4, 4) * 2),
          (lambda x: torch.matrix_exp(x - x.t()), turn), (lambda x: torch.linalg.matrix_exp(x), torch.zeros(3, 3)))


def test_resampling():
    torch.manual_seed(3)
    image, volume, grid = torch.randn(1, 2, 11, 9), torch.randn(2, 2, 4, 5, 3), torch.randn(2, 2, 3, 2, 3)
    sizes = [(5, 3), (20, 13), (1, 1)]
    resize = functional.interpolate
    check((lambda x: [resize(x, size=size, mode=mode, antialias=True, align_corners=corners) for size in sizes
                      for mode in ("bilinear", "bicubic") for corners in (False, True)], image),
          (lambda x: resize(x, scale_factor=0.37, mode="bicubic", antialias=True), image),
          (lambda x, g: [functional.grid_sample(x, g, mode, padding, align_corners=corners) for mode in ("bilinear", "nearest")
                         for padding in ("zeros", "border", "reflection") for corners in (False, True)], volume, grid),
          (lambda x: (functional.adaptive_max_pool2d(x[0], (3, 2), return_indices=True),
                      functional.adaptive_max_pool3d(x, (3, 4, 2), return_indices=True),
                      functional.adaptive_max_pool1d(x[0, 0], 2, return_indices=True)), volume.round()))
    endless = image.clone()
    endless[0, 0, 4, 4], endless[0, 1, 2, 2] = INF, NAN
    check((lambda x: resize(x, size=(5, 3), mode="bilinear", antialias=True), endless), gradients=False)


def test_statistics():
    torch.manual_seed(4)
    x, counts, weights = torch.randn(3, 4), torch.tensor([1, 2, 1, 3]), torch.rand(4)
    variance = torch.tensor([[0.5, 0, 1e-9, 2]] * 3)
    check((lambda x, n, w: (torch.cov(x), x.cov(correction=0), torch.cov(x, fweights=n, aweights=w), torch.cov(x[0]),
                            torch.corrcoef(x), torch.corrcoef(x[0])), x, counts, weights),
          (lambda x: (torch.combinations(x[0]), torch.combinations(x[1], 3, True), torch.combinations(x[1], 5)), x),
          (lambda x, v: (functional.gaussian_nll_loss(x, x * 0, v, full=True), torch.nn.GaussianNLLLoss(eps=0.1)(x, x * 2, v)),
           x * 1e-3, variance))


def test_alignments():
    torch.manual_seed(5)
    scores, targets = torch.randn(12, 3, 5), torch.randint(1, 5, (3, 4))
    targets[0] = 2
    inputs, lengths = torch.tensor([12, 10, 7]), torch.tensor([4, 3, 0])
    loss = functional.ctc_loss
    check((lambda x, y, n, m: (
        loss(x.log_softmax(2), y, n, m), torch.nn.CTCLoss()(x.log_softmax(2), y, n, m),
        loss(x.log_softmax(2), y, (12, 10, 12), (4, 2, 1), reduction="none"),
        loss(x.log_softmax(2), y.flatten()[:10], n, m + 1, reduction="sum"),
        loss(x[:5].log_softmax(2), y, (5, 5, 5), (4, 4, 4), zero_infinity=True, reduction="none"),
        loss(x[:, 0].log_softmax(-1), y[0], (12,), (4,), reduction="none", blank=3), loss(x * 0.3, y, n, m)),
        scores, targets, inputs, lengths))


def test_branches_are_computed_and_chosen():
    """With gradients that the branch which is not chosen cannot spoil, and places in it that are out of range."""
    x, k = torch.tensor([-1.0, 0, 4, -3]), torch.tensor([1, 0, 2, 9])
    check((lambda x, k: (
        torch.cond(k.sum() > 90, lambda x: x.sqrt(), lambda x: x * 2, (x,)),
        torch.cond(x.sum() > 100, lambda x, k: (x[k].log(), x.sin()), lambda x, k: (x[k.clamp(max=3)] * 3, x * k), (x, k)),
        torch.cond(k[0] == 1, lambda x: torch.cond(x.sum() > 0, lambda x: x.exp(), lambda x: x.cos(), (x,)),
                   lambda x: x * 1, (x,)),
        torch.cond(k[0] > 100, lambda x, k: x[k - 200] * 1, lambda x, k: x[k % 4] * 2, (x, k))), x, k))


def test_integers():
    k, s = torch.tensor([0, -4, 6, 9, -12, 7, 2**62, 701408733, 1134903170]), torch.tensor([[0], [1], [-1], [31], [63], [64]])
    check((lambda k: (torch.gcd(k, k.unsqueeze(1)), torch.lcm(k[:6], k[:6].unsqueeze(1)),
                      torch.gcd(k[:6].to(torch.int8), k[:6].to(torch.int8).unsqueeze(1))), k),
          (lambda k, s: (k << s[:4].clamp(max=8), k >> s, k << 3, k >> 2, k.int() << s.int(), k.to(torch.int8) >> s.to(torch.int8)),
           k, s), gradients=False)


def test_transposed_convolutions_of_groups():
    torch.manual_seed(6)
    image, deep, wide = torch.randn(2, 4, 5, 5), torch.randn(4, 1, 3, 3), torch.randn(4, 3, 2, 2)
    transpose = functional.conv_transpose2d
    check((lambda x, w, v: (transpose(x, w, stride=2, padding=1, output_padding=1, groups=4), transpose(x, v, groups=2, dilation=2),
                            transpose(x, w, padding=3, stride=(3, 1), groups=4),
                            functional.conv_transpose1d(x[:, :, 0], w[:, :, 0], groups=4, bias=v[:, 0, 0, 0])), image, deep, wide))


def test_logarithms():
    x = torch.tensor([0.0, -0.0, 1, -1, INF, -INF, NAN, 2.5, -3, 0.5])
    check((lambda x: [function(x, x.unsqueeze(1)) for function in (torch.logaddexp, torch.logaddexp2, torch.xlogy,
                                                                   torch.special.xlog1py)], x),
          (lambda x: (torch.xlogy(2, x), torch.xlogy(x, 0)), x),
          gradients=False)
    check((lambda x, y: (torch.logaddexp(x, y), torch.logaddexp2(x, y)), torch.tensor([INF, 1.0, 2, -INF, 3]),
           torch.tensor([0.0, -INF, 3, 1, 3])),
          (lambda x, y: (torch.xlogy(x, y), torch.special.xlog1py(x, y)), torch.tensor([0.0, 2, 3, 0]), torch.tensor([2, 0.5, 1, 3])))
