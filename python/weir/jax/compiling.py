"""Compiles JAX functions to programs and training steps: `weir.jax.compile`, `weir.jax.compile_step`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy
from jax import tree_util

from weir.arrays import Array
from weir.building import PREDICT, Call, StepOptions, build, build_step, name_entries, telling
from weir.graphs import Argument, ExportError, Exported, Result
from weir.jax.exporting import (
    export, finish, gather, get_stored_type, is_complex, list_leaves, name_parameters, name_results, spell_path, spread,
    to_array, to_tuple, trace,
)
from weir.programs import Compiled, Step
from weir.runtime import Device


def compile(
    function: Callable,
    *example: Any,
    examples: Sequence[tuple] | None = None,
    donate_argnums: int | Sequence[int] = (),
    static_argnums: int | Sequence[int] = (),
    device: str | Device = "auto",
    memory_limit: int | str | None = None,
    checkpoint: str = "off",
    precision: str | None = None,
) -> Compiled:
    """Compiles a JAX function for a device of this machine.

    `example`: the arguments of a call, nested as JAX allows. Only shapes and types matter.
    `examples`: several of them, each a tuple, in place of `example`: each makes an entry. The entries share constants, and
               a call picks the one that fits.
    `donate_argnums`: arguments whose bytes the results may take, as for jax.jit.
    `static_argnums`: arguments that become part of the program; a call must pass equal ones.
    `device`, `memory_limit`, `checkpoint`, `precision`: as for `weir.compile`.
    A call takes what the function takes, and returns what it returns, with a weir.Array in place of each array. It stays
    on the device until it is read; passed to another call, it is not copied.
    Errors: weir.jax.ExportError if the function has no graph; CompileError if the graph does not compile; weir.Error if
            there is no such device; what JAX raises when it traces the function.
    """
    if examples is not None and (example or not examples):
        raise TypeError("give the arguments of one call, or a list of examples, each a tuple, by examples=")
    given = [example] if examples is None else [tuple(one) for one in examples]
    names = name_entries(len(given))

    def make(one: tuple, entry: str) -> Call:
        exported = export(function, *one, donate_argnums=donate_argnums, static_argnums=static_argnums, entry=entry)
        static = {place % len(one) for place in to_tuple(static_argnums)}
        return Call(exported, make_bind(name_parameters(function, len(one)), one, static), make_rebuild(exported))

    with telling("exporting"):
        calls = [make(one, name) for one, name in zip(given, names)]
    return build(calls, names, device, memory_limit, checkpoint, precision)


def compile_step(
    loss: Callable,
    params: Any,
    *example: Any,
    has_aux: bool = False,
    predict: tuple | None = None,
    **options: Any,
) -> "JaxStep":
    """Compiles a training step: a loss, its gradient by Weir, and the optimizer's update in one run.

    `loss`:    called as `loss(params, *example)`; returns one float of rank 0, or with `has_aux` that and other results,
               which `Step.output` has.
    `params`:  the start of what is trained, nested as JAX allows. Arrays of integers stay as they are.
    `example`: the other arguments. Only shapes and types matter.
    `predict`: (function, *example) for `Step.predict`, called as `function(params, *example)`: an entry of the same
               artifact, with the same parameters.
    `options`: those of `weir.compile_step`: optimizer, groups, clip_norm, accumulate, loss_scale, ema, offload,
               check_values, device, memory_limit, checkpoint, precision, pieces, shards.
    A call takes the other arguments, and hyperparameters by name, and returns the loss.
    Errors: those of `compile`; ExportError, too, for functions with derivative rules of the user's own, which gradients
            by Weir would not use.
    """
    made = StepOptions(**options)
    start = _flatten_params(params)
    with telling("exporting"):
        exported = _export_step(loss, params, example, start, has_aux)
        predicted = None
        if predict is not None:
            function, *inputs = predict
            predicted = _make_predict(function, params, inputs, start)
    names = name_parameters(loss, 1 + len(example))[1:]
    call = Call(exported, make_bind(names, example), make_rebuild(exported))
    return build_step(call, made, own=list(start), predicted=predicted,
                      make=functools.partial(JaxStep, tree=tree_util.tree_structure(params)))


class JaxStep(Step):
    """A training step of a JAX loss."""

    def __init__(self, *arguments: Any, tree: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._tree = tree

    @property
    def params(self) -> Any:
        """The parameters as they are now, nested as the loss takes them, as arrays in host memory."""
        values = self.state_dict()
        return tree_util.tree_unflatten(self._tree, [values[name] for name in self._own])


def make_bind(names: Sequence[str], example: Sequence[Any], static: set[int] | frozenset = frozenset()) -> Callable:
    """Returns a function from a call to its arrays by name. It refuses other trees and other static arguments."""
    trees = [tree_util.tree_structure(argument) for argument in example]
    leaves = [[] if i in static else list_leaves(name, argument) for i, (name, argument) in enumerate(zip(names, example))]

    def bind(arguments: tuple, named: dict) -> dict[str, Any]:
        places = [*arguments, *(named.pop(name) for name in names[len(arguments):] if name in named)]
        if len(places) != len(names) or named:
            raise TypeError(f"a call takes {', '.join(names)}; {len(arguments) + len(named)} arguments are given")
        given: dict[str, Any] = {}
        for i, (argument, name) in enumerate(zip(places, names)):
            if i in static:
                if argument != example[i]:
                    raise ValueError(f"{name} is {argument!r}, but the program was compiled for {example[i]!r}")
                continue
            values, tree = tree_util.tree_flatten(argument)
            if tree != trees[i]:
                raise TypeError(f"{name} is nested as {tree}, but the program was compiled for {trees[i]}")
            for (path, leaf), value in zip(leaves[i], values):
                given |= spread(path, numpy.dtype(leaf.dtype), to_array(value))
        return given

    return bind


def make_rebuild(exported: Exported) -> Callable[[dict[str, Array], Any], Any]:
    """Returns a function from results by name to the tree that the function returns."""
    def rebuild(results: dict[str, Array], given: Any) -> Any:
        return tree_util.tree_map(lambda leaf: gather(leaf.name, results), exported.output)

    return rebuild


def _flatten_params(params: Any) -> dict[str, Any]:
    """Returns the arrays of parameters by their paths. Errors: ExportError."""
    found = tree_util.tree_flatten_with_path(params)[0]
    start = {spell_path("", path) or "params": numpy.asarray(to_array(leaf)) for path, leaf in found}
    for name, leaf in start.items():
        if is_complex(leaf.dtype):
            raise ExportError(f"{name} is {leaf.dtype}; a step holds parameters of floats and integers: give it the two "
                              "parts, and make complex numbers of them inside")
        start[name] = leaf.astype(get_stored_type(leaf.dtype), copy=False)
    if len(start) != len(found):
        raise ExportError("two parameters have the same path; rename one")
    return start


def _make_arguments(traced: Any, start: dict[str, Any]) -> tuple[list[Argument], list[str]]:
    """Returns the arguments, parameters first, and the names of those that are not trained."""
    arguments, frozen = [], []
    for place, name, leaf in traced.leaves:
        name = name or "params"
        is_trained = place == 0 and jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating)
        if place == 0 and not is_trained:
            frozen.append(name)
        arguments.append(Argument(name, "param" if is_trained else "input", leaf.shape, numpy.dtype(leaf.dtype)))
    return arguments, frozen


def _export_step(loss: Callable, params: Any, example: Sequence[Any], start: dict, has_aux: bool) -> Exported:
    names = ["", *name_parameters(loss, 1 + len(example))[1:]]
    traced = trace(loss, (params, *example), (), names)
    value, aux = traced.output if has_aux else (traced.output, None)
    leaves = tree_util.tree_leaves(value)
    if len(leaves) != 1 or leaves[0].shape or not jax.numpy.issubdtype(leaves[0].dtype, jax.numpy.floating):
        found = ", ".join(f"{leaf.dtype}{list(leaf.shape)}" for leaf in leaves) or "nothing"
        raise ExportError(f"the loss is {found}; it must be one float of rank 0: use .mean() or .sum()")
    arguments, frozen = _make_arguments(traced, start)
    taken = [argument.name for argument in arguments]
    if "loss" in taken:
        raise ExportError("an argument is named loss, as the result is; give it another name")
    rest = name_results(aux, "output", taken) if has_aux else None
    first = tree_util.tree_map(lambda _: Result("loss"), value)
    exported = finish(traced, arguments, (first, rest) if has_aux else first, "main", differentiated=True,
                      frozen=frozen)
    output = rest if has_aux else first
    return Exported(exported.text, exported.arguments, exported.results, {}, start, {}, output, exported.dtypes)


def _make_predict(function: Callable, params: Any, inputs: Sequence[Any], start: dict) -> Call:
    names = ["", *name_parameters(function, 1 + len(inputs))[1:]]
    traced = trace(function, (params, *inputs), (), names)
    arguments, frozen = _make_arguments(traced, start)
    results = name_results(traced.output, "output", [argument.name for argument in arguments])
    exported = finish(traced, arguments, results, PREDICT, frozen=frozen)
    return Call(exported, make_bind(names[1:], inputs), make_rebuild(exported))
