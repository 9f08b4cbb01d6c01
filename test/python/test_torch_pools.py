"""Pooling by weir.torch that torch-mlir lacks: values, places and gradients against eager."""

import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from test_torch_edges import check_gradients, check_values  # noqa: E402
from torch.nn import functional  # noqa: E402

import weir.torch  # noqa: E402


def test_values():
    x = torch.randn(1, 2, 5, 6, 7)
    x[0, 0, 1, 2, 3], x[0, 1, 0, 0, 0], x[0, 1, 4] = math.nan, math.inf, -math.inf
    check_values({
        "max": lambda x: functional.max_pool3d(x, 3, 2, 1, ceil_mode=True),
        "max_places": lambda x: functional.max_pool3d(x, 3, 2, 1, return_indices=True)[1],
        "max_dilated": lambda x: functional.max_pool3d(x, (2, 1, 3), 1, 0, (1, 1, 2), return_indices=True)[1],
        "max_integers": lambda x: functional.max_pool3d((x.nan_to_num(0, 9, -9) * 9).long(), 2, padding=1),
        "max_2d_integers": lambda x: functional.max_pool2d((x[0].nan_to_num(0, 9, -9) * 9).long(), 3, 2, 1),
        "max_2d_ties": lambda x: functional.max_pool2d(torch.ones_like(x[0]).long(), 3, 2, 1, return_indices=True)[1],
        "avg": lambda x: functional.avg_pool3d(x, 3, 2, 1, ceil_mode=True),
        "avg_counted": lambda x: functional.avg_pool3d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        "avg_divided": lambda x: functional.avg_pool3d(x, 2, divisor_override=-3),
        "avg_2d_divided": lambda x: functional.avg_pool2d(x[0], 2, divisor_override=3),
        "avg_2d_unbatched": lambda x: functional.avg_pool2d(x[0, 0], 2),
        "adaptive": lambda x: functional.adaptive_avg_pool3d(x, (2, 3, 5)),
        "adaptive_unbatched": lambda x: functional.adaptive_avg_pool3d(x[0], (5, 4, 1)),
        "adaptive_2d_unbatched": lambda x: functional.adaptive_avg_pool2d(x[0, 0], (None, None)),
    }, x, atol=1e-6)


def test_narrow_values():
    check_values({"max": lambda x: functional.max_pool3d(x, 2, 1, 1)}, torch.randn(1, 2, 4, 4, 4).bfloat16())


def test_gradients():
    ties = torch.randint(0, 3, (1, 1, 4, 4, 5)).float()
    check_gradients({
        "max": lambda x: functional.max_pool3d(x, 3, 1, 1),
        "avg": lambda x: functional.avg_pool3d(x, 2, 1, 1),
        "adaptive": lambda x: functional.adaptive_avg_pool3d(x, (3, 4, 2)),
    }, ties)
    places = torch.tensor([[[[0, 5, 5, 2, 5, 0]]]])
    check_gradients({"unpool": lambda x: functional.max_unpool2d(x, places, (1, 2), output_size=(1, 12))},
                    torch.randn(1, 1, 1, 6))


def test_unpooled_values():
    x = torch.tensor([[[[1.0, math.inf, 3.0, math.nan, 5.0, 5.0]]]])
    places = torch.tensor([[[[0, 1, 4, 2, 5, 5]]]])
    check_values({"unpool": lambda x: functional.max_unpool2d(x, places, (1, 2), output_size=(1, 12))}, x)


def test_interpolation_of_bytes_is_refused():
    with pytest.raises(weir.torch.ExportError, match="upsample_bilinear2d of torch.uint8 .*: aten.upsample_bilinear2d"):
        weir.torch.export(lambda x: functional.interpolate(x, scale_factor=1.7, mode="bilinear"),
                          (torch.zeros(1, 2, 3, 3, dtype=torch.uint8),))
    check_values({"floats": lambda x: functional.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=True)},
                 torch.randn(1, 2, 3, 3), atol=1e-6)
