"""Complex numbers in PyTorch modules, as pairs of real ones: values and gradients against PyTorch's."""

import numpy
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from torch import fft  # noqa: E402

import weir  # noqa: E402
from weir.graphs import ExportError  # noqa: E402

real = torch.view_as_real


def normal(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


X, Y = normal(2, 3, 8), normal(2, 3, 8) + 0.1
Z = torch.view_as_complex(normal(3, 8, 2))  # a constant


def measure_rotary(x, y):
    """As in Llama 4 and DeepSeek-V2."""
    turns = torch.polar(torch.ones(3, 4), torch.arange(12.0).view(3, 4))
    return real(torch.view_as_complex(x.view(2, 3, 4, 2)) * turns).flatten(2)


def filter_modes(x, y):
    """A layer of a Fourier neural operator."""
    modes = torch.zeros(2, 3, 5, dtype=torch.cfloat)
    weights = torch.complex(y[0, :, :3], y[1, :, :3])
    modes[:, :, :3] = torch.einsum("bix,io->box", fft.rfft(x)[:, :, :3], weights)
    return fft.irfft(modes, n=8)


def measure_spectrum(x, y):
    window = torch.hann_window(8)
    spectrum = torch.stft(x.view(2, 24), n_fft=8, hop_length=4, window=window, return_complex=True)
    return spectrum.abs(), torch.istft(spectrum, n_fft=8, hop_length=4, window=window)


def insert(z, x):
    z = z.clone()
    z[:, 1:] = x[:, 1:]
    z[:, 0] = x[:, 0]
    return z


FUNCTIONS = {
    "products": lambda z, w: z * w * (1 - 2j) * 3 * Z,
    "sums": lambda z, w: z - 2 * w + z.real - (1 - 2j) + 1,
    "differences from numbers": lambda z, w: 1 - z,
    "quotients": lambda z, w: z / w / (1 - 2j) / 3,
    "reciprocal": lambda z, w: 1 / w,
    "conjugate": lambda z, w: z.conj() * w,
    "powers": lambda z, w: z**2 + w**3,
    "exponential and logarithm": lambda z, w: torch.exp(z) + torch.log(w),
    "matrices": lambda z, w: z @ w.transpose(-1, -2),
    "places": lambda z, w: torch.cat([z[:, 1:].flip(-1), w[:, :1].roll(1, -1)], 1).permute(1, 0, 2).sum(-1),
    "choice": lambda z, w: torch.where(z.real > 0, z, w).mean(-1),
    "real and complex": lambda z, w: torch.cat([z, w.real], -1).mean(-1),
    "real into complex": lambda z, w: insert(z * w, w.real),
    "conversion": lambda z, w: z.real.to(torch.complex64) * w,
    "fft": lambda z, w: fft.fft(z),
    "inverse of two dimensions": lambda z, w: fft.ifft2(z, norm="ortho"),
    "transform cut and padded": lambda z, w: fft.fft2(z, s=(4, 5)),
    "shifted": lambda z, w: fft.fftshift(fft.fft(z)),
}


def compare(function, *values):
    """Compares results, and gradients of a sum with weights, with PyTorch's."""

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.values = torch.nn.ParameterList([torch.nn.Parameter(value.clone()) for value in values])

        def forward(self, one):
            made = function(*(value * one for value in self.values))
            return made if isinstance(made, tuple) else (made,)

    module, one = Module(), torch.ones(())
    wanted = module(one)
    weights = [normal(*result.shape) for result in wanted]

    def loss(results):
        return sum((result * weight).sum() for result, weight in zip(results, weights))

    gradients = torch.autograd.grad(loss(wanted), list(module.values), allow_unused=True)
    for found, result in zip(weir.compile(module, (one,), device="cpu")(one), wanted, strict=True):
        torch.testing.assert_close(found, result.detach(), rtol=1e-5, atol=1e-5)
    step = weir.compile_step(module, loss, example=(one,), optimizer=weir.SGD(learning_rate=1.0), device="cpu")
    step(one)
    after = step.state_dict()
    for number, (value, gradient) in enumerate(zip(values, gradients)):
        gradient = torch.zeros_like(value) if gradient is None else gradient
        found = value - after[f"values.{number}"]
        torch.testing.assert_close(found, gradient, rtol=1e-5, atol=1e-5 * max(1.0, gradient.abs().max().item()))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    compare(lambda x, y: real(FUNCTIONS[name](torch.complex(x, y), torch.complex(y, x + 2))), X, Y)


@pytest.mark.parametrize("function", [
    measure_rotary, filter_modes, measure_spectrum,
    lambda x, y: torch.complex(x, y).angle(),
    lambda x, y: real(fft.rfft(x)),
    lambda x, y: fft.irfft(torch.complex(x, y)),
    lambda x, y: fft.irfft(torch.complex(x, y), n=9),
    lambda x, y: fft.irfft2(torch.complex(x, y)),
    lambda x, y: fft.irfft(fft.rfft(x, n=16) * fft.rfft(y, n=16), n=16)[..., :8],
], ids=["rotary", "modes", "spectrum", "angle", "rfft", "irfft", "irfft odd", "irfft2", "convolution"])
def test_real_results(function):
    compare(function, X, Y)


def test_a_choice_between_real_and_complex():  # of which PyTorch has no gradient
    def choose(x, y):
        return real(torch.where(x > 0, torch.complex(x, y), y))

    torch.testing.assert_close(weir.compile(choose, (X, Y), device="cpu")(X, Y), choose(X, Y))


@pytest.mark.parametrize("length", [1, 30, 37, 74])
def test_lengths(length):
    compare(lambda x: real(fft.fft(x)), normal(2, length))


def test_absolute_values_do_not_overflow_and_have_a_gradient_of_0_at_0():
    x, y = torch.tensor([3e30, -1e-30, 0.0, float("inf"), 0.0]), torch.tensor([4e30, 0.0, 0.0, 1.0, -2.0])
    absolute = lambda x, y: torch.complex(x, y).abs()  # noqa: E731
    found = weir.compile(absolute, (x, y), device="cpu")(x, y)
    torch.testing.assert_close(found, absolute(x, y), rtol=1e-6, atol=0)
    compare(lambda x: absolute(x, x), torch.tensor([0.0, 1.0, -2.0]))


def parts(values):
    """Returns complex results as real ones with a last dimension of 2."""
    values = values if isinstance(values, (tuple, list)) else [values]
    return tuple(real(value.resolve_conj()) if value.is_complex() else value for value in values)


def run(function, *values):
    """Compiles a function of complex tensors, and returns its results, with complex ones by their parts."""
    given = [real(value) for value in values]
    return weir.compile(lambda *given: parts(function(*map(torch.view_as_complex, given))), example=tuple(given),
                        device="cpu")(*given)


def draw(*shape):
    return torch.view_as_complex(normal(*shape, 2))


ELEMENTARY = ("acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 reciprocal rsqrt sgn sigmoid "
              "sin sinh sqrt tan tanh").split()


def test_elementary_functions():
    """Near zeros, branch points and cuts, and far away, beside PyTorch's of complex128."""
    z = draw(40)
    z = torch.cat([z, z * 20, z * 1e-3, 1 + z * 1e-3, -1 + z * 1e-3, 1j + z * 1e-3, z * 1e10,
                   torch.complex(z.real, z.imag * 1e-9), torch.complex(z.real * 1e-9, z.imag)])
    ends = torch.tensor([complex(x, y) for x in (-2, -0.0, 0.0, 0.5) for y in (0.0, -0.0)])  # on the cuts

    def compute(z):
        return [getattr(torch, name)(z) for name in ELEMENTARY]

    found = run(compute, torch.cat([z, ends]))
    expected, own = compute(torch.cat([z, ends]).to(torch.complex128)), compute(torch.cat([z, ends]))
    for name, one, other, near in zip(ELEMENTARY, found, expected, own, strict=True):
        one = torch.view_as_complex(one).to(torch.complex128)
        is_number = torch.isfinite(other) & torch.isfinite(near)
        error = ((one - other).abs() <= 2e-6 * other.abs())[is_number]
        assert error.all(), (name, torch.cat([z, ends])[is_number][~error][0])


def test_gradients_of_elementary_functions():
    compare(lambda x, y: tuple(part for name in ELEMENTARY for part in parts(getattr(torch, name)(torch.complex(x, y)))),
            torch.tensor([0.3, -0.7, 1.5, -2.0, 0.1]), torch.tensor([0.5, -0.2, 0.7, 1.1, -0.9]))


def test_gradients_on_cuts_and_at_zero():
    """They are those of the side that a zero's sign names, as the values are, where PyTorch's own may be the other side's.
    At 0, those of the functions that have one."""
    sides = [(x, zero) for x in (-2.0, -0.5, 0.5, 2.0) for zero in (0.0, -0.0)]
    cuts = torch.tensor(sides + [side[::-1] for side in sides])
    zeros = torch.tensor([(x, y) for x in (0.0, -0.0) for y in (0.0, -0.0)])

    def compute(cuts, zeros):
        cuts, zeros = map(torch.view_as_complex, (cuts, zeros))
        made = [getattr(torch, name)(cuts) for name in ELEMENTARY] + [cuts**1.7, cuts**cuts, cuts.log() / cuts]
        smooth = ("asin", "asinh", "atan", "atanh", "cos", "exp", "sigmoid", "sin", "tan", "tanh")
        made += [getattr(torch, name)(zeros) for name in smooth] + [2**zeros, zeros**2]
        return torch.cat([real(each) for each in made])

    def differentiate(function, *values):
        values = [value.clone().requires_grad_() for value in values]
        made = function(*values)
        return torch.autograd.grad((made * normal(*made.shape)).sum(), values)

    found = differentiate(weir.torch.Module(compute, example=(cuts, zeros), device="cpu"), cuts, zeros)
    beside = (torch.where(each == 0, torch.copysign(torch.tensor(1e-12), each), each.double()) for each in (cuts, zeros))
    for one, other in zip(found, differentiate(compute, *beside), strict=True):
        torch.testing.assert_close(one, other.float(), rtol=2e-5, atol=1e-5)


REDUCTIONS = {
    "norms": lambda z, w: (torch.linalg.vector_norm(z, 3, 1), torch.linalg.norm(z, dim=(0, 2)), z.norm(), (z - w).norm(2, 0)),
    "moments": lambda z, w: (z.var(0), z.std(), *torch.var_mean(w, (0, 2), correction=0), *torch.std_mean(w), z.mean()),
    "products": lambda z, w: (z.prod(), w.prod(1, True), z.cumprod(-1), z.cumsum(0), z[:0].prod(0)),
    "logarithms": lambda z, w: (torch.logcumsumexp(z, 1), torch.logaddexp(z, w), torch.log(w) / torch.log(z)),
    "powers": lambda z, w: (z**w, z**-2, z**0.5, 2**z, z**1.7, z**0, torch.ldexp(z, torch.tensor([1.0, -2.0]))),
    "places": lambda z, w: (
        z.gather(1, torch.tensor([[[0, 2]], [[1, 1]]])), *w.split([1, 2], 1), z.unfold(1, 2, 1), torch.full_like(z, 2 - 1j) * w,
        torch.scatter(z, 1, torch.tensor([[[0, 2], [1, 0], [2, 1]]] * 2), w), z.index_put((torch.tensor([1]), torch.tensor([0])), w[0, 0]),
        torch.diff(z, dim=1), z.unsqueeze(0).squeeze((0, 1))),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    x, y = normal(2, 3, 2) + 0.3, normal(2, 2, 3).mT + 0.1
    compare(lambda x, y: tuple(torch.atleast_1d(each) for each in parts(
        REDUCTIONS[name](torch.complex(x, y), torch.complex(y, x + 2)))), x, y)


def test_mixed_types():
    """A real operand that an option converts has an imaginary part of 0. PyTorch has no gradient of that."""
    def compute(z):
        return (z.real.sum(dtype=torch.complex64), z.real.cumsum(0, dtype=torch.complex64), z.float_power(2), z.float_power(0.5),
                torch.arange(1, 9) ** 1j, z ** torch.arange(1, 9), torch.arange(1, 9) ** z)

    for found, expected in zip(run(compute, Z), parts(compute(Z)), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_comparisons():
    nan, inf = float("nan"), float("inf")
    z = torch.tensor([0, 1, 1j, complex(nan, 1), complex(1, inf), 1 + 2j, -0.0, 1 + 1e-7j])
    w = torch.tensor([0, 1j, 1j, complex(nan, 1), complex(1, inf), 1 + 3j, 0, 1])

    def compute(z, w):
        return (z == w, z != w, z == 1, z != 1j, torch.isclose(z, w), torch.isclose(z, w, equal_nan=True), torch.isnan(z),
                torch.isinf(z), torch.isfinite(z), torch.logical_and(z, w), torch.logical_not(z), torch.logical_xor(z, w),
                z.all(), z[:1].any(), z.view(2, 4).all(1), torch.count_nonzero(z))

    for found, expected in zip(run(compute, z, w), compute(z, w), strict=True):
        assert found.dtype == expected.dtype and torch.equal(found, expected)


def test_matrices_of_one_row():
    """The imaginary part of a constant of one element has another stride than PyTorch's views of bytes take."""
    torch.testing.assert_close(run(lambda z: torch.diff(z, prepend=torch.ones(1, dtype=z.dtype)), Z[0])[0],
                               real(torch.diff(Z[0], prepend=torch.ones(1, dtype=Z.dtype))))


linalg = torch.linalg
A, TALL, B = draw(2, 4, 4), draw(2, 5, 3), draw(2, 4, 3)
HERMITIAN = A @ A.mH + torch.eye(4)
MATRICES = {
    "equations": (lambda a, b: (linalg.solve(a, b), linalg.solve(a, b.mT, left=False), linalg.inv(a), linalg.matrix_power(a, -2),
                                linalg.solve_triangular(a, b, upper=True), linalg.matrix_exp(a),
                                linalg.solve_triangular(a, b.mT, upper=False, left=False, unitriangular=True)), A, B),
    "lu": (lambda a, b: (*linalg.lu(a), linalg.det(a), *linalg.slogdet(a), *linalg.inv_ex(a), linalg.lu_factor(a)[1],
                         linalg.lu_solve(*linalg.lu_factor(a), b, adjoint=True)), A, B),
    "cholesky": (lambda a, b: (linalg.cholesky(a), linalg.cholesky(a, upper=True), *linalg.cholesky_ex(a),
                               torch.cholesky_solve(b, linalg.cholesky(a))), HERMITIAN, B),
    "qr": (lambda a: (*linalg.qr(a), *linalg.qr(a.mT), *linalg.qr(a, "complete"), *torch.geqrf(a),
                      torch.ormqr(*torch.geqrf(a), a, transpose=True)), TALL),
    "least squares": (lambda a, b: (linalg.lstsq(a, b)[0], linalg.pinv(a), linalg.pinv(b @ b.mH, hermitian=True)),
                      TALL, draw(2, 5, 2)),
    "values": (lambda a: (linalg.svdvals(a), linalg.eigvalsh(a @ a.mH), linalg.cond(a), linalg.matrix_norm(a, "nuc"),
                          linalg.matrix_rank(a[..., :2] @ a[:, :2])), A),
}


def apply_to_eigenvalues(a):
    values, vectors = linalg.eigh(a + a.mH)
    return vectors * torch.tanh(values).unsqueeze(-2) @ vectors.mH


def apply_to_singular_values(a):
    u, values, vh = linalg.svd(a, full_matrices=False)
    return u * torch.tanh(values).unsqueeze(-2) @ vh


MATRICES["eigenvectors"] = (lambda a: (apply_to_eigenvalues(a), linalg.eigh(a)[1].abs(), linalg.eigh(a, "U")[0],
                                       apply_to_eigenvalues(torch.eye(4, dtype=a.dtype) + a * 0)), A)
MATRICES["singular vectors"] = (lambda a: (apply_to_singular_values(a), apply_to_singular_values(a.mH),
                                           linalg.svd(a, full_matrices=False)[2].abs(),
                                           apply_to_singular_values(a[..., :1] @ a.mH[:, :1])), TALL)


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name):
    function, *values = MATRICES[name]
    for found, expected in zip(run(function, *values), parts(function(*values)), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=3e-5)


def test_gradients_of_matrices():
    """Eigenvalues and vectors of a Hermitian matrix, also of a real one: a change gives its vectors imaginary parts."""
    def compute(a, b, h):
        a, b, h = map(torch.view_as_complex, (a, b, h))
        made = [linalg.solve(a, b), linalg.det(a), linalg.cholesky(a @ a.mH + torch.eye(4)), sum(linalg.qr(a)), linalg.pinv(b),
                linalg.pinv(a, hermitian=True), linalg.lstsq(a[..., :2], b)[0], torch.matrix_exp(a), linalg.eigvalsh(a),
                linalg.solve_triangular(a, b, upper=True, unitriangular=True), linalg.svdvals(b), apply_to_eigenvalues(a),
                linalg.eigh(a, "U")[1].abs(), apply_to_singular_values(b), apply_to_singular_values(b.mT),
                linalg.svd(a)[2].abs(), apply_to_eigenvalues(h)]
        made.sort(key=lambda each: not each.is_complex())  # PyTorch's gradient of view_as_real takes no odd offset
        return torch.cat([real(each).flatten() if each.is_complex() else each.flatten() for each in made])

    def differentiate(function, dtype):
        values = [value.to(dtype).requires_grad_() for value in given]
        made = function(*values)
        return torch.autograd.grad((made * normal(*made.shape).to(dtype)).sum(), values)

    given = [real(A[0]), real(B[0]), real(torch.tensor([[0, 1], [1, 0j]]))]
    found = differentiate(weir.torch.Module(compute, example=tuple(given), device="cpu"), torch.float32)
    for one, other in zip(found, differentiate(compute, torch.float64), strict=True):
        torch.testing.assert_close(one, other.float(), rtol=1e-4, atol=1e-5 * other.abs().max().item())


@pytest.mark.parametrize("function, name", [
    (lambda z: linalg.eigvals(z).real, "torch.linalg.eigvals"),
    (lambda z: linalg.ldl_factor(z)[0].real, "torch.linalg.ldl_factor"),
    (lambda z: linalg.svd(z[..., :3].sin())[0].real, "torch.linalg.svd"),
    (lambda z: fft.fft(z.repeat(1, 1, 1031)[..., :1031]).real, "torch.fft.fft"),
    (lambda z: linalg.qr(z.repeat(1, 9, 12))[0].real, "torch.linalg.qr"),
])
def test_what_has_no_form_is_refused_by_its_own_name(function, name):
    with pytest.raises(ExportError, match="without a form for complex numbers") as refusal:
        run(function, A)
    assert f"  {name}" in str(refusal.value) and "sin" not in str(refusal.value).split("/")[0]


class Complex(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = torch.nn.Parameter(torch.ones(8, dtype=torch.cfloat))

    def forward(self, x):
        return (self.turn * x).real


def test_complex_inputs_and_results():
    """They come as PyTorch's, as NumPy's and as an earlier result, and go as either."""
    def compute(z, x):
        return {"turned": z.conj() * x, "sizes": [z.abs(), (z * 2j).sum()]}

    z, x = Z[:, :5].conj(), normal(3, 5)
    expected = compute(z, x)
    with weir.compile(compute, example=(z, x), device="cpu") as program:
        for given in ((z, x), (Z[:, :5].conj().clone(), x)):
            made = program(*given)
            torch.testing.assert_close(made["turned"], expected["turned"].resolve_conj())
            torch.testing.assert_close(made["sizes"], expected["sizes"])
        lazy = program(z.resolve_conj().numpy(), x.numpy())
        turned = lazy["turned"]
        assert turned.shape == (3, 5) and turned.dtype == numpy.complex64 and "complex" in repr(turned)
        numpy.testing.assert_allclose(turned.numpy(), expected["turned"].resolve_conj().numpy(), rtol=1e-6)
        numpy.testing.assert_allclose(complex(lazy["sizes"][1].item()), expected["sizes"][1].item(), rtol=1e-5)
        again = program(turned, x.numpy())["turned"].torch()
        torch.testing.assert_close(again, (expected["turned"].conj() * x).resolve_conj())
        with pytest.raises(TypeError, match="z is float32, but the program was compiled for complex numbers"):
            program(x, x)
    empty = weir.compile(lambda z: z + 1, example=(Z[:0],), device="cpu")(Z[:0])
    assert empty.shape == (0, 8) and empty.dtype == torch.complex64


def test_gradients_by_complex_inputs():
    def compute(z):
        return z**2 * (1 - 2j), z.abs()

    module = weir.torch.Module(compute, example=(Z,), device="cpu")
    found, eager = (Z.clone().requires_grad_() for _ in range(2))
    for z, function in ((found, module), (eager, compute)):
        square, size = function(z)
        (real(square).sum() + (size * 3).sum()).backward()
    torch.testing.assert_close(found.grad, eager.grad)


def test_complex_graphs_of_torch_compile():
    def compute(z, x):
        return torch.exp(z) * x, z.real + x

    for made, expected in zip(torch.compile(compute, backend="weir", options={"device": "cpu"})(Z, X[0]), compute(Z, X[0])):
        torch.testing.assert_close(made, expected)


def test_complex_parameters_are_refused():
    with pytest.raises(ExportError, match=r"turn is torch.complex64, but a graph has parameters .*; give torch.view_as_real\(turn\)"):
        weir.torch.export(Complex(), (X,))
