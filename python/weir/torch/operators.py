"""Operators of Weir's graph level that PyTorch has no functional form of, and random operators made of them.

They pass through torch.export and torch-mlir unknown, and become ops of Weir's graph level: `weir.holes`.
"""

import math
from collections.abc import Callable, Sequence

import torch

aten = torch.ops.aten

_library = torch.library.Library("weir", "DEF")
_library.define("stop_gradient(Tensor x) -> Tensor")
_library.define("marked(Tensor x, str what) -> Tensor")
_library.define("limit(Tensor x, int largest, int dims) -> Tensor")
_library.define("uniform(int[] size, int stream, *, Device? device=None) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
_library.define("bitcast(Tensor x, ScalarType dtype) -> Tensor")
_library.define("argsort(Tensor key, int descending, int count) -> Tensor")
_library.impl("stop_gradient", lambda x: x.clone(), "CompositeExplicitAutograd")
_library.impl("marked", lambda x, what: x.clone(), "CompositeExplicitAutograd")
_library.impl("bitcast", lambda x, dtype: x.view(dtype).clone(), "CompositeExplicitAutograd")
# Along the dimensions whose bits are set in `dims`.
_library.impl(
    "limit",
    lambda x, largest, dims: (torch.amax if largest else torch.amin)(x, [d for d in range(x.dim()) if dims >> d & 1]),
    "CompositeExplicitAutograd",
)
_library.impl("uniform", lambda size, stream, device=None: torch.rand(size, device=device), "CompositeExplicitAutograd")
_library.impl(
    "argsort",
    lambda key, descending, count: torch.argsort(key, dim=-1, descending=bool(descending), stable=True)[..., :count].to(torch.int32),
    "CompositeExplicitAutograd",
)

# The ranks along an axis exchange values; each has one operand of its own. A shape is all that tracing asks for.
_library.define("all_reduce(Tensor x, int ranks, int axis) -> Tensor")
_library.define("all_gather(Tensor x, int ranks, int axis) -> Tensor")
_library.define("reduce_scatter(Tensor x, int ranks, int axis) -> Tensor")
_library.impl("all_reduce", lambda x, ranks, axis: x.clone(), "CompositeExplicitAutograd")
_library.impl("all_gather", lambda x, ranks, axis: torch.cat([x] * ranks), "CompositeExplicitAutograd")
_library.impl("reduce_scatter", lambda x, ranks, axis: x[: x.shape[0] // ranks].clone(), "CompositeExplicitAutograd")

stop_gradient = torch.ops.weir.stop_gradient.default
marked = torch.ops.weir.marked.default
limit = torch.ops.weir.limit.default
uniform = torch.ops.weir.uniform.default
bitcast = torch.ops.weir.bitcast.default
argsort = torch.ops.weir.argsort.default
COLLECTIVES = (torch.ops.weir.all_reduce.default, torch.ops.weir.all_gather.default, torch.ops.weir.reduce_scatter.default)


def widen(x: torch.Tensor) -> torch.Tensor:
    """Returns floats of 16 bits as f32, in which PyTorch computes them, and others as they are."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


class Random:
    """Decompositions of random operators into uniform numbers; each call has the next stream.

    So a number depends on how many random operators come before it in the graph.
    """

    def __init__(self) -> None:
        self._streams = 0

    def get_table(self) -> dict[torch._ops.OpOverload, Callable]:
        return {
            aten.dropout.default: self._dropout,
            aten.native_dropout.default: self._native_dropout,
            aten.bernoulli.default: lambda x: (self._draw(x) < x).to(x.dtype),
            aten.bernoulli.p: lambda x, p: (self._draw(x) < p).to(x.dtype),
            aten.uniform.default: lambda x, low=0.0, high=1.0: (self._draw(x) * (high - low) + low).to(x.dtype),
            aten.normal_functional.default: lambda x, mean=0.0, std=1.0: self._normal(x.shape, x.dtype) * std + mean,
            aten.normal.Tensor_Tensor: lambda mean, std: self._normal_like(mean + std) * std + mean,
            aten.normal.Tensor_float: lambda mean, std=1.0: self._normal_like(mean) * std + mean,
            aten.exponential.default: lambda x, rate=1.0: (-torch.log1p(-self._draw(x)) / rate).to(x.dtype),
            aten.rand.default: lambda size, **options: self._rand(size, options.get("dtype")),
            aten.rand_like.default: lambda x, **options: self._rand(x.shape, options.get("dtype") or x.dtype),
            aten.randn.default: lambda size, **options: self._normal(size, options.get("dtype")),
            aten.randn_like.default: lambda x, **options: self._normal(x.shape, options.get("dtype") or x.dtype),
            aten.randint.default: lambda high, size, **options: self._integers(0, high, size, options),
            aten.randint.low: lambda low, high, size, **options: self._integers(low, high, size, options),
            aten.randint_like.default: lambda x, high, **options: self._integers(0, high, x.shape, options, x.dtype),
            aten.randint_like.low_dtype: lambda x, low, high, **options: self._integers(
                low, high, x.shape, options, x.dtype
            ),
        }

    def _uniform(self, size: Sequence[int]) -> torch.Tensor:
        self._streams += 1
        return uniform(list(size), self._streams - 1)

    def _draw(self, like: torch.Tensor) -> torch.Tensor:
        return self._uniform(like.shape)

    def _rand(self, size: Sequence[int], dtype: torch.dtype | None) -> torch.Tensor:
        return self._uniform(size).to(dtype or torch.get_default_dtype())

    def _normal(self, size: Sequence[int], dtype: torch.dtype | None) -> torch.Tensor:
        """Box and Muller's transform of two uniform numbers."""
        radius = torch.sqrt(-2 * torch.log1p(-self._uniform(size)))  # of 1 - u, which is never 0
        return (radius * torch.cos(2 * math.pi * self._uniform(size))).to(dtype or torch.get_default_dtype())

    def _normal_like(self, like: torch.Tensor) -> torch.Tensor:
        return self._normal(like.shape, like.dtype)

    def _integers(
        self, low: int, high: int, size: Sequence[int], options: dict, dtype: torch.dtype = torch.int64
    ) -> torch.Tensor:
        if high - low > 1 << 24:
            raise NotImplementedError(f"random integers of {low} to {high}: more than 2^24 of them")
        return (self._uniform(size) * (high - low)).floor().to(options.get("dtype") or dtype) + low

    def _native_dropout(self, x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
        if train is False or p == 0:
            return x.clone(), torch.ones_like(x, dtype=torch.bool)
        if p == 1:
            return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
        kept = self._draw(x) >= p
        return torch.where(kept, x * (1 / (1 - p)), torch.zeros((), dtype=x.dtype)), kept

    def _dropout(self, x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
        return self._native_dropout(x, p, train)[0]
