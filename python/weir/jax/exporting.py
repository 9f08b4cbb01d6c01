"""Exports a JAX function as a graph of linalg on tensors, with names from the paths of its arguments."""

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy
from jax import numpy as jnp
from jax import tree_util

from weir.complexes import name_parts
from weir.graphs import Argument, Exported, ExportError, Result, check_names, print_graph, set_attributes
from weir.jax.rewriting import Rewriter, explain_missing
from weir.stablehlo import lower

NARROW = {"int2": numpy.int8, "int4": numpy.int8, "uint2": numpy.uint8, "uint4": numpy.uint8}
PLATFORM = "tpu"  # JAX's lowering with the fewest calls of libraries and loops; nothing runs there


def export(
    function: Callable,
    *example: Any,
    donate_argnums: int | Sequence[int] = (),
    static_argnums: int | Sequence[int] = (),
    entry: str = "main",
) -> Exported:
    """Returns a JAX function as one function `entry` on tensors of static shape.

    `example`: the arguments, nested as JAX allows; arrays, numbers or jax.ShapeDtypeStruct.
    `donate_argnums`, `static_argnums`: as for jax.jit.
    Arguments: each array of the example, named by the function's parameter and the path, `params.dense.kernel`.
    Results:   the arrays that it returns, "output", or "output.0" and so on by their paths.
    Errors:    ExportError for operations without a form in linalg, all at once, each with the line that made it; what
               JAX raises when it traces the function.
    """
    donated = to_tuple(donate_argnums)
    traced = trace(function, example, to_tuple(static_argnums))
    names = [name for _, name, _ in traced.leaves]
    arguments = [
        Argument(name, "input", leaf.shape, numpy.dtype(leaf.dtype), place in donated)
        for place, name, leaf in traced.leaves
    ]
    return finish(traced, arguments, name_results(traced.output, "output", names), entry)


class Traced:
    """A function's program, the leaves of its arguments, each with its place and name, and the tree that it returns."""

    def __init__(self, program: Any, leaves: list[tuple[int, str, Any]], output: Any):
        self.program, self.leaves, self.output = program, leaves, output


def trace(function: Callable, example: Sequence[Any], static: Sequence[int] = (), names: Sequence[str] = ()) -> Traced:
    """Traces a function. `names`: of the arguments by place; "" for one whose paths are names already."""
    static = {place % len(example) for place in static} if example else set()
    names = names or name_parameters(function, len(example))
    traced = jax.jit(function, static_argnums=sorted(static), keep_unused=True).trace(*example)
    leaves = []
    for place, argument in enumerate(example):
        if place not in static:
            leaves += [(place, name, leaf) for name, leaf in list_leaves(names[place], argument)]
    for _, name, leaf in leaves:
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended):
            raise ExportError(f"{name} is a typed key, {leaf.dtype}, which is no array; give jax.random.key_data of it, "
                              "and wrap_key_data inside")
    return Traced(traced.jaxpr, leaves, traced.out_info)


def finish(
    traced: Traced, arguments: list[Argument], results: Any, entry: str, *, differentiated: bool = False,
    frozen: Sequence[str] = (),
) -> Exported:
    """Lowers a traced function. `results`: the tree that it returns, a `Result` in place of each array."""
    leaves = tree_util.tree_leaves(results)
    names = [leaf.name for leaf in leaves]
    kinds = {argument.name: argument.dtype for argument in arguments}
    for name, leaf in zip(names, tree_util.tree_leaves(traced.output), strict=True):
        if kinds.setdefault(name, numpy.dtype(leaf.dtype)) != leaf.dtype:
            raise ExportError(f"an argument and a result of other types are named {name}; give the argument another name")
    if not names:
        raise ExportError("the function returns no array")
    shapes = [jax.ShapeDtypeStruct(argument.shape, argument.dtype) for argument in arguments]

    def evaluate(*values: jax.Array) -> list[jax.Array]:
        return Rewriter(differentiated).run(traced.program, *values)

    try:
        text = jax.jit(evaluate, keep_unused=True).trace(*shapes).lower(lowering_platforms=(PLATFORM,)).as_text(
            debug_info=True)
    except NotImplementedError as error:  # a primitive that JAX has as a call of a library alone
        raise ExportError("the function has operations without a form in linalg:\n  "
                          f"{explain_missing(traced.program, error)}") from None
    lowered = lower(text, entry)
    arguments = [dataclasses.replace(argument, name=name, dtype=get_stored_type(argument.dtype))
                 for argument in arguments for name in name_parts(argument.name, is_complex(argument.dtype))]
    check_names(arguments)
    names = [part for name in names for part in name_parts(name, is_complex(kinds[name]))]
    set_attributes(lowered, arguments, names, frozen)
    stored = {name: get_stored_type(kind) for name, kind in kinds.items()}
    dtypes = {name: kind for name, kind in stored.items() if kind.kind == "u"}
    return Exported(print_graph(lowered), arguments, names, {}, {}, {}, results, dtypes)


def is_complex(dtype: numpy.dtype) -> bool:
    return dtype.kind == "c"


def get_stored_type(dtype: numpy.dtype) -> numpy.dtype:
    """Returns the type of the tensors that stand for an array: floats for complex numbers, bytes for 2 or 4 bits."""
    if is_complex(dtype):
        return numpy.dtype(f"f{dtype.itemsize // 2}")
    return numpy.dtype(NARROW.get(dtype.name, dtype))


def spread(name: str, dtype: numpy.dtype, value: Any) -> dict[str, Any]:
    """Returns the tensors that stand for an array in a call, by name. `dtype`: the type that was compiled for."""
    if not is_complex(dtype):
        is_narrow = dtype.name in NARROW and getattr(value, "dtype", None) == dtype
        return {name: numpy.asarray(value).astype(get_stored_type(dtype)) if is_narrow else value}
    array = numpy.asarray(value)
    if array.dtype != dtype:
        raise TypeError(f"{name} is {array.dtype}, but the program was compiled for {dtype}")
    return dict(zip(name_parts(name, True), (array.real.copy(), array.imag.copy())))


def gather(name: str, results: dict[str, Any]) -> Any:
    """Returns a result: the array of that name, or the complex numbers that two arrays stand for, which are read."""
    if name in results:
        return results[name]
    real, imag = (results[part].numpy() for part in name_parts(name, True))
    joined = numpy.empty(real.shape, numpy.result_type(real, numpy.complex64))
    joined.real, joined.imag = real, imag
    return joined


def list_leaves(name: str, argument: Any) -> list[tuple[str, Any]]:
    """Returns the names of an argument's arrays, with their shapes and types."""
    return [(spell_path(name, path), leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf))
            for path, leaf in tree_util.tree_flatten_with_path(argument)[0]]


def name_parameters(function: Callable, count: int) -> list[str]:
    """Returns the names of a function's first parameters; of *args by place."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in parameters if parameter.kind in kinds]
    rest = next((p.name for p in parameters if p.kind == inspect.Parameter.VAR_POSITIONAL), "argument")
    return [names[i] if i < len(names) else f"{rest}.{i - len(names)}" for i in range(count)]


def spell_path(name: str, path: Sequence[Any]) -> str:
    """Returns a leaf's name, `params.dense.kernel`."""
    def spell(key: Any) -> str:
        for attribute in ("key", "name", "idx"):
            if hasattr(key, attribute):
                return str(getattr(key, attribute))
        return str(key)

    return ".".join(part for part in (name, *map(spell, path)) if part)


def name_results(output: Any, name: str, taken: Sequence[str]) -> Any:
    """Returns a tree with a `Result` in place of each array. Names that arguments have get a mark."""
    def make(path: Sequence[Any], _: Any) -> Result:
        spelled = spell_path(name, path)
        return Result(f"{spelled}'" if spelled in taken else spelled)

    return tree_util.tree_map_with_path(make, output)


def to_array(value: Any) -> Any:
    """Returns a leaf as JAX would take it: numbers as arrays of JAX's types."""
    return jnp.asarray(value) if isinstance(value, (bool, int, float, complex)) else value


def to_tuple(places: int | Sequence[int]) -> tuple[int, ...]:
    """Returns the places of arguments as JAX takes them: one or several."""
    return (places,) if isinstance(places, int) else tuple(places)
