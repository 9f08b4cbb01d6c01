"""Operations of JAX that torch-mlir's passes do not lower, written out by others."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import lax
from jax import numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from weir import running
from weir.jax import matrices
from weir.sorting import ARGSORT, ARGSORT_DESCENDING


def scatter(
    combine: str, operand: jax.Array, indices: jax.Array, updates: jax.Array, *, dimension_numbers: Any, mode: Any,
    **_: object,
) -> jax.Array:
    """Writes a scatter as a reduction over all updates for each element, in their order.

    Dimensions of `operand` that windows cover as a whole are walked with the element; the others make up its place.
    """
    numbers = dimension_numbers
    inserted = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    window_dims = [d for d in range(operand.ndim) if d not in inserted]
    sizes = dict.fromkeys(inserted, 1) | {
        d: updates.shape[u] for d, u in zip(window_dims, numbers.update_window_dims, strict=True)}
    count = math.prod(indices.shape[:-1])
    # The updates as count x windows.
    rest = [d for d in range(updates.ndim) if d not in numbers.update_window_dims]
    updates = lax.transpose(updates, (*rest, *numbers.update_window_dims))
    updates = updates.reshape(count, *(sizes[d] for d in window_dims))
    starts = _find_starts(operand, indices, numbers, count)
    bounds = {d: operand.shape[d] - sizes[d] for d in starts}
    is_clipped = mode in (lax.GatherScatterMode.CLIP, lax.GatherScatterMode.PROMISE_IN_BOUNDS)
    valid = jnp.ones((count,), bool)
    for d, start in starts.items():
        if is_clipped:
            starts[d] = jnp.clip(start, 0, bounds[d])
        else:
            valid &= (start >= 0) & (start <= bounds[d])
    whole = [d for d in window_dims if sizes[d] == operand.shape[d]]
    placed = [d for d in range(operand.ndim) if d not in whole]
    key, updates, valid = _flatten_windows(operand, updates, starts, valid, sizes, window_dims, whole, placed)
    order = (*placed, *whole)
    rows = lax.transpose(operand, order).reshape(math.prod(operand.shape[d] for d in placed), -1)
    made = _combine_rows(combine, rows, key, updates.reshape(updates.shape[0], rows.shape[1]), valid)
    made = made.reshape([operand.shape[d] for d in order])
    return lax.transpose(made, [order.index(d) for d in range(operand.ndim)])


def replace(operand: jax.Array, indices: jax.Array, updates: jax.Array, *, update_jaxpr: Any, update_consts: Any,
            **parameters: Any) -> jax.Array:
    """Writes updates, or applies a function to the elements at the indices, as often as they are named."""
    if update_jaxpr is None or update_jaxpr.outvars == update_jaxpr.invars[1:]:
        return scatter("replace", operand, indices, updates, **parameters)
    function = jaxpr_as_fun(ClosedJaxpr(update_jaxpr, update_consts))

    def apply(x: jax.Array) -> jax.Array:
        return jax.vmap(lambda value: function(value, value)[0])(x.reshape(-1)).reshape(x.shape)

    ones = jnp.ones(updates.shape, jnp.int32)
    count = scatter("add", jnp.zeros(operand.shape, jnp.int32), indices, ones, **parameters)
    if parameters["unique_indices"]:
        return jnp.where(count > 0, apply(operand), operand)
    return lax.while_loop(lambda state: state[1].any(), lambda state: (
        jnp.where(state[1] > 0, apply(state[0]), state[0]), jnp.maximum(state[1] - 1, 0)), (operand, count))[0]


def _find_starts(operand: jax.Array, indices: jax.Array, numbers: Any, count: int) -> dict[int, jax.Array]:
    """Returns the first place of each update, by the dimensions that indices give."""
    starts = {d: indices[..., k].reshape(count).astype(jnp.int32)
              for k, d in enumerate(numbers.scatter_dims_to_operand_dims)}
    for d, s in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims):
        starts[d] = lax.broadcasted_iota(jnp.int32, indices.shape[:-1], s).reshape(count)
    return starts


def _flatten_windows(operand, updates, starts, valid, sizes, window_dims, whole, placed):
    """Returns for each row of updates its place among `placed`, the row, and whether it is written."""
    partial = [d for d in window_dims if d not in whole]
    updates = lax.transpose(updates, (0, *(1 + window_dims.index(d) for d in (*partial, *whole))))
    shape = (updates.shape[0], *(sizes[d] for d in partial))
    key = jnp.zeros(shape, jnp.int32)
    for d in placed:
        place = lax.broadcasted_iota(jnp.int32, shape, 1 + partial.index(d)) if d in partial else jnp.zeros_like(key)
        if d in starts:
            place += starts[d].reshape(-1, *(1,) * len(partial))
        key = key * operand.shape[d] + place
    valid = jnp.broadcast_to(valid.reshape(-1, *(1,) * len(partial)), shape)
    return key.reshape(-1), updates.reshape(math.prod(shape), *(sizes[d] for d in whole)), valid.reshape(-1)


def _combine_rows(combine: str, rows, key, updates, valid):
    """Returns `rows` with each row of `updates` combined into the row of number `key`."""
    hit = (lax.broadcasted_iota(jnp.int32, (rows.shape[0], key.shape[0]), 0) == key) & valid
    if combine == "replace":
        number = lax.broadcasted_iota(jnp.int32, hit.shape, 1)
        last = jnp.where(hit, number, -1).max(1, initial=-1)
        taken = jnp.take(updates, jnp.maximum(last, 0), axis=0, mode="clip") if key.shape[0] else rows
        return jnp.where((last >= 0)[:, None], taken, rows)
    neutral, reduce, join = {
        "add": (0, jnp.sum, lax.add), "mul": (1, jnp.prod, lax.mul),
        "min": (_get_limit(rows.dtype, 1), jnp.min, lax.min), "max": (_get_limit(rows.dtype, -1), jnp.max, lax.max),
    }[combine]
    options = {"initial": neutral} if combine in ("min", "max") else {"dtype": rows.dtype}
    reduced = reduce(jnp.where(hit[:, :, None], updates[None], jnp.asarray(neutral, rows.dtype)), axis=1, **options)
    return join(rows, reduced.astype(rows.dtype))


def _get_limit(dtype: Any, sign: int) -> Any:
    if jnp.issubdtype(dtype, jnp.inexact):
        return sign * jnp.inf
    if dtype == jnp.bool_:
        return sign > 0
    return jnp.iinfo(dtype).max if sign > 0 else jnp.iinfo(dtype).min


def sort(*operands: jax.Array, dimension: int, num_keys: int, is_stable: bool) -> list[jax.Array]:
    """Sorts by the first operands; equal elements keep their order."""
    moved = [jnp.moveaxis(x, dimension, -1) for x in operands]
    order = _order(moved[:num_keys])
    return [jnp.moveaxis(jnp.take_along_axis(x, order, axis=-1, mode="clip"), -1, dimension) for x in moved]


def top_k(x: jax.Array, *, k: int, axis: int, largest: bool = True, **_: object) -> list[jax.Array]:
    """Returns the k largest or smallest elements and their places; of equal ones the first."""
    moved = jnp.moveaxis(x, axis, -1)
    order = _order([moved], k, descending=largest)
    values = jnp.take_along_axis(moved, order, axis=-1, mode="clip")
    return [jnp.moveaxis(values, -1, axis), jnp.moveaxis(order, -1, axis)]


def _order(keys: Sequence[jax.Array], count: int | None = None, descending: bool = False) -> jax.Array:
    """Returns the first `count` elements of the last dimension in sorted order, by their numbers."""
    shape = keys[0].shape if count is None else (*keys[0].shape[:-1], count)
    if 0 in shape:
        return jnp.zeros(shape, jnp.int32)
    target = ARGSORT_DESCENDING if descending else ARGSORT
    return jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(shape, jnp.int32))(*map(_to_signed, keys))


def _to_signed(key: jax.Array) -> jax.Array:
    """Returns signed integers in the order of unsigned ones, and other keys as they are."""
    if key.dtype in (jnp.int2, jnp.int4, jnp.uint2, jnp.uint4):
        return key.astype(jnp.int8)
    if not jnp.issubdtype(key.dtype, jnp.unsignedinteger):
        return key
    signed = jnp.dtype(f"int{8 * key.dtype.itemsize}")
    return lax.bitcast_convert_type(key, signed) ^ jnp.asarray(jnp.iinfo(signed).min, signed)


def cumulate(
    neutral: Callable[[Any], Any], reduce: Callable, combine: Callable, x: jax.Array, *, axis: int, reverse: bool,
) -> jax.Array:
    """Reduces over all elements up to each: n by n of them in a short row or a block."""
    def scan(rows: jax.Array) -> jax.Array:
        shape = (*rows.shape, rows.shape[-1])
        this, other = (lax.broadcasted_iota(jnp.int32, shape, len(shape) - d) for d in (2, 1))
        seen = other >= this if is_backward else other <= this
        return reduce(jnp.where(seen, rows[..., None, :], start), axis=-1).astype(rows.dtype)

    if x.size == 0:
        return x
    start, is_long = jnp.asarray(neutral(x.dtype), x.dtype), x.shape[axis] > running.LONGEST
    is_backward = reverse and not is_long
    moved = jnp.moveaxis(x, axis, -1)
    if is_long and reverse:
        moved = jnp.flip(moved, -1)
    is_narrow = is_long and x.dtype in (jnp.bfloat16, jnp.float16)
    made = running.accumulate(
        moved.astype(jnp.float32) if is_narrow else moved, scan, combine,
        lambda shape: jnp.full(shape, start, jnp.float32 if is_narrow else x.dtype),
        lambda parts: jnp.concatenate(parts, -1)).astype(x.dtype)
    return jnp.moveaxis(jnp.flip(made, -1) if is_long and reverse else made, -1, axis)


def select_and_scatter_add(
    source: jax.Array, operand: jax.Array, *, select_prim: Any, window_dimensions: Sequence[int],
    window_strides: Sequence[int], padding: Sequence[tuple[int, int]],
) -> jax.Array:
    """Adds each element of `source` to the element of `operand` that its window selects, the first of equal ones."""
    lowest = _get_limit(operand.dtype, -1 if select_prim.name == "ge" else 1)
    padded = lax.pad(operand, jnp.asarray(lowest, operand.dtype), [(*pad, 0) for pad in padding])
    offsets = list(itertools.product(*map(range, window_dimensions)))
    windows = [
        lax.slice(padded, offset, [o + (size - 1) * stride + 1
                                   for o, size, stride in zip(offset, source.shape, window_strides)], window_strides)
        for offset in offsets]
    better = lax.gt if select_prim.name == "ge" else lax.lt
    best, chosen = windows[0], jnp.zeros(source.shape, jnp.int32)
    for i, window in enumerate(windows[1:], 1):
        is_better = better(window, best)
        best, chosen = jnp.where(is_better, window, best), jnp.where(is_better, i, chosen)
    zero = jnp.zeros((), source.dtype)
    total = jnp.zeros(padded.shape, source.dtype)
    for i, offset in enumerate(offsets):
        part = jnp.where(chosen == i, source, zero)
        ends = [whole - o - (size - 1) * stride - 1
                for whole, o, size, stride in zip(padded.shape, offset, source.shape, window_strides)]
        total += lax.pad(part, zero, [(o, end, stride - 1) for o, end, stride in zip(offset, ends, window_strides)])
    return lax.slice(total, [low for low, _ in padding], [low + n for (low, _), n in zip(padding, operand.shape)])


def multiply(left: jax.Array, right: jax.Array, *, precision: Any, **parameters: Any) -> jax.Array:
    """Writes algorithms that round factors to 16 bits as conversions: torch-mlir lowers products without algorithms."""
    rounded = {lax.DotAlgorithmPreset.BF16_BF16_F32: jnp.bfloat16, lax.DotAlgorithmPreset.F16_F16_F32: jnp.float16}
    if precision in rounded and parameters["preferred_element_type"] == jnp.float32:
        left, right = (factor.astype(rounded[precision]) for factor in (left, right))
        precision = None
    return lax.dot_general_p.bind(left, right, precision=precision, **parameters)


def reduce(*operands: jax.Array, dimensions: Sequence[int], **parameters: Any) -> list[jax.Array]:
    """A reduction over no dimension leaves the elements as they are, without the number that it starts from."""
    if not dimensions:
        return list(operands[:len(operands) // 2])
    return lax.reduce_p.bind(*operands, dimensions=dimensions, **parameters)


def wave(function: Any, x: jax.Array, **parameters: Any) -> jax.Array:
    """Writes the sine or cosine of complex numbers. JAX's own chooses a constant on an axis, which has no gradient."""
    if not jnp.issubdtype(x.dtype, jnp.complexfloating):
        return function.bind(x, **parameters)
    a, b = x.real, x.imag
    large, small = jnp.cosh(b), jnp.sinh(b)
    is_lost = (a == 0) & jnp.isinf(large)  # 0 times infinity
    if function is lax.sin_p:
        return lax.complex(jnp.where(is_lost, a, jnp.sin(a) * large), jnp.cos(a) * small)
    return lax.complex(jnp.cos(a) * large, -jnp.where(is_lost, a, jnp.sin(a) * small))


def _bind(function: Callable, *first: Any) -> Callable:
    return lambda *operands, **parameters: function(*first, *operands, **parameters)


RULES: dict[str, Callable] = matrices.RULES | {
    "scatter": replace,
    "scatter-add": _bind(scatter, "add"),
    "scatter-mul": _bind(scatter, "mul"),
    "scatter-min": _bind(scatter, "min"),
    "scatter-max": _bind(scatter, "max"),
    "scatter_mul": _bind(scatter, "mul"),
    "scatter_min": _bind(scatter, "min"),
    "scatter_max": _bind(scatter, "max"),
    "dot_general": multiply,
    "reduce": reduce,
    "sort": sort,
    "top_k": top_k,
    "approx_top_k": lambda x, *, k, reduction_dimension, is_max_k, **_: top_k(
        x, k=k, axis=reduction_dimension, largest=is_max_k),
    "cumsum": _bind(cumulate, lambda dtype: 0, jnp.sum, jnp.add),
    "cumprod": _bind(cumulate, lambda dtype: 1, jnp.prod, jnp.multiply),
    "cummax": _bind(cumulate, lambda dtype: _get_limit(dtype, -1), jnp.max, jnp.maximum),
    "cummin": _bind(cumulate, lambda dtype: _get_limit(dtype, 1), jnp.min, jnp.minimum),
    "cumlogsumexp": _bind(cumulate, lambda dtype: -jnp.inf, jax.nn.logsumexp, jnp.logaddexp),
    "select_and_scatter_add": select_and_scatter_add,
    "square": lambda x: x * x,
    "sin": _bind(wave, lax.sin_p),
    "cos": _bind(wave, lax.cos_p),
}
