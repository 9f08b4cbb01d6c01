"""Integers in weir.torch: powers, common divisors, products, spaced numbers and constants of bytes, against eager."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from test_torch_edges import check_values  # noqa: E402

import weir.torch  # noqa: E402


def test_powers_and_divisors():
    x = torch.tensor([0, 1, -1, 2, -2, 3, -3, 7, 12, 0, 100, 81, 127, 89, 10], dtype=torch.int8)
    y = torch.tensor([0, -1, -3, 5, 3, -2, 40, 0, 18, 7, 75, 3, 126, 55, 2], dtype=torch.int8)
    check_values({
        "pow": torch.pow,
        "gcd": torch.gcd,
        "lcm": torch.lcm,
        "gcd_bytes": lambda x, y: torch.gcd(x.abs().to(torch.uint8) + 100, y.abs().to(torch.uint8)),
        "pow_bytes": lambda x, y: torch.pow(x.abs().to(torch.uint8), y.abs().to(torch.uint8)),
    }, x, y)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8, torch.bool])
def test_choices_and_distances(dtype):
    x, y = torch.tensor([0, 1, 1, 100, 7, 100]).to(dtype), torch.tensor([1, 1, 0, 101, 9, 100]).to(dtype)
    check_values({"larger": torch.fmax, "smaller": torch.fmin, "close": torch.isclose,
                  "closer": lambda x, y: torch.isclose(x, y, rtol=0.01, atol=0.5)}, x, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_products(dtype):
    a, b, v = (torch.randint(0, 9, shape).to(dtype) for shape in ((2, 3, 4), (2, 4, 5), (4,)))
    check_values({
        "addmv": lambda a, b, v: torch.addmv(a[0, :, 0], a[1], v, beta=2, alpha=3),
        "addmv_alone": lambda a, b, v: torch.addmv(a[0, :, 0], a[1], v, beta=0),
        "addbmm": lambda a, b, v: torch.addbmm(a[0, :, :1], a, b, beta=2, alpha=3),
    }, a, b, v)


def test_spaced_numbers_and_constants():
    check_values({
        "floats": lambda x: torch.linspace(-3, 17, 23),
        "integers": lambda x: torch.linspace(-3, 17, 23, dtype=torch.int64),
        "halves": lambda x: torch.linspace(1, 9, 7, dtype=torch.bfloat16),
        "logarithms": lambda x: torch.logspace(0, 5, 9, dtype=torch.int64),
        "tensors": lambda x: torch.linspace(x[0], 7, 9),
        "cut": lambda x: torch.linspace(x[0], x[0] + 7, 9, dtype=torch.int64),
        "bytes": lambda x: torch.arange(3, dtype=torch.uint8),
        "same_bytes": lambda x: torch.full((2, 3), 200, dtype=torch.uint8),
        "ones": lambda x: torch.ones_like(x, dtype=torch.uint8),
        "one_byte": lambda x: torch.ones((), dtype=torch.uint8),
        "no_byte": lambda x: torch.zeros(0, dtype=torch.uint8),
    }, torch.tensor([0.3, -0.1, 0.2]))


def test_running_results_keep_their_type():
    check_values({
        "sum": lambda x: x.cumsum(0, dtype=torch.int32),
        "sum_of_bytes": lambda x: x.abs().cumsum(0, dtype=torch.uint8),
        "product": lambda x: x.cumprod(0, dtype=torch.int16),
        "largest": lambda x: (x > 0).cummax(0).values,
        "place": lambda x: (x > 0).cummin(0).indices,
    }, torch.tensor([-3, 100, 90, -70, 0, 5], dtype=torch.int8))


def test_flags():
    places, source = torch.tensor([0, 2, 2, 4, 4]), torch.tensor([True, True, True, False, True])
    check_values({
        "square": torch.square,
        "power": lambda x: x**3,
        "add": lambda x: x.index_put((places,), source, accumulate=True),
        "amin": lambda x: x.scatter_reduce(0, places, source, "amin"),
        "amax": lambda x: x.scatter_reduce(0, places, source, "amax", include_self=False),
    }, torch.tensor([True, False, True, True, False]))
