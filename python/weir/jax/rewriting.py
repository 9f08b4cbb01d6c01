"""Evaluates a JAX program operation by operation, so that each has a form that torch-mlir's passes lower.

Calls are inlined, branches become choices, and short loops are unrolled. `weir.jax.rules` writes others out.
"""

import pathlib
import re
from collections.abc import Iterator
from typing import Any

import jax
from jax import lax
from jax import numpy as jnp
from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from weir.graphs import ExportError
from weir.jax.rules import RULES
from weir.hlo import STOP_GRADIENT

source_info_util.register_exclusion(str(pathlib.Path(__file__).parent))  # no line of this package is the user's
MAX_UNROLLED = 8  # trips of a loop; the compiler writes out longer ones where that is better than a loop
LIBRARY = jax.__path__[0]
# Calls by the name of the parameter that has what is called.
CALLS = {"jit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "checkpoint": "jaxpr",
         "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}
CALLBACKS = {"pure_callback", "io_callback", "debug_callback", "debug_print"}
# JAX's functions with a derivative rule of their own that Weir's gradient agrees with; kinks are those of the rule.
KINKS = {"relu": lambda x: jnp.where(x <= 0, jnp.zeros_like(x), x),
         "relu6": lambda x: jnp.where(x <= 0, jnp.zeros_like(x), jnp.where(x >= 6, jnp.full_like(x, 6), x))}
SMOOTH = {"logaddexp", "logaddexp2", "_det", "_slogdet_lu", "_slogdet_small"}


class Rewriter:
    """Evaluates programs. `differentiated`: whether Weir takes the result's gradient, so that `stop_gradient` is kept,
    and functions with derivative rules of the user's own are refused. `is_smooth`: whether the program is a smooth
    function made of kinks that cancel."""

    def __init__(self, differentiated: bool, is_smooth: bool = False):
        self._differentiated, self._is_smooth = differentiated, is_smooth

    def run(self, program: ClosedJaxpr, *arguments: jax.Array) -> list[jax.Array]:
        """Returns the results of a program, traced."""
        return self._evaluate(program.jaxpr, program.consts, arguments)

    def _evaluate(self, program: Jaxpr, constants: list, arguments: tuple) -> list[jax.Array]:
        values = dict(zip((*program.constvars, *program.invars), (*constants, *arguments), strict=True))

        def read(atom):
            return atom.val if isinstance(atom, Literal) else values[atom]

        for equation in program.eqns:
            source = equation.source_info
            names = source_info_util.current_name_stack() + source.name_stack
            with source_info_util.user_context(source.traceback, name_stack=names), equation.ctx.manager:
                results = self._apply(equation, [read(atom) for atom in equation.invars])
            values |= zip(equation.outvars, results, strict=True)
        return [read(atom) for atom in program.outvars]

    def _apply(self, equation: JaxprEqn, operands: list) -> list[jax.Array]:
        name, parameters = equation.primitive.name, equation.params
        if name in CALLS:
            if self._differentiated and name in ("custom_jvp_call", "custom_vjp_call"):
                known = self._check_rule(equation)
                if known in KINKS:
                    return [KINKS[known](*operands)]
                return Rewriter(True, is_smooth=True)._call(parameters[CALLS[name]], operands)
            return self._call(parameters[CALLS[name]], operands)
        if name == "cond":
            return self._choose(parameters["branches"], *operands)
        if name == "scan":
            short = parameters["length"] < MAX_UNROLLED
            return (self._unroll if short else self._scan)(operands, **parameters)
        if name == "while":
            return self._repeat(operands, **parameters)
        if name == "stop_gradient":
            return [_stop_gradient(operands[0]) if self._differentiated else operands[0]]
        if name == "custom_linear_solve":
            return self._solve(operands, **parameters)
        if name == "bitcast_convert_type" and self._differentiated:
            operands = [_stop_gradient(operands[0])]  # bits have no gradient, as in JAX
        is_kink = self._differentiated and not self._is_smooth
        if name == "abs" and is_kink and jnp.issubdtype(operands[0].dtype, jnp.floating):
            return [jnp.where(operands[0] >= 0, operands[0] + 0.0, -operands[0])]  # slope 1 at 0, as in JAX; -0 is 0
        if name == "clamp" and is_kink:
            return [_clamp(*operands)]
        if name == "optimization_barrier":
            return operands
        if name in CALLBACKS:
            raise ExportError(f"{name} calls Python while a program runs, which has no form here; leave it out of the "
                              f"function: {source_info_util.summarize(equation.source_info)}")
        if name in RULES:
            made = RULES[name](*operands, **parameters)
            return list(made) if equation.primitive.multiple_results else [made]
        made = equation.primitive.bind(*operands, **equation.primitive.get_bind_params(parameters))
        return list(made) if equation.primitive.multiple_results else [made]

    def _call(self, called: ClosedJaxpr | Jaxpr, operands: list) -> list[jax.Array]:
        if isinstance(called, ClosedJaxpr):
            return self._evaluate(called.jaxpr, called.consts, tuple(operands))
        return self._evaluate(called, [], tuple(operands))

    def _choose(self, branches: tuple[ClosedJaxpr, ...], index: jax.Array, *operands: jax.Array) -> list[jax.Array]:
        """Computes all branches: they have no effects, so only the choice shows. One that has a loop is left to be
        computed only if it is taken."""
        if any(_has_loop(branch.jaxpr) for branch in branches):
            return list(lax.switch(index, [lambda *values, branch=branch: tuple(self._call(branch, list(values)))
                                           for branch in branches], *operands))
        results = [self._call(branch, list(operands)) for branch in branches]
        clamped = lax.clamp(jnp.int32(0), index, jnp.int32(len(branches) - 1))
        made = []
        for values in zip(*results, strict=True):
            chosen = values[-1]
            for i in reversed(range(len(values) - 1)):
                chosen = lax.select(jnp.broadcast_to(clamped == i, jnp.shape(chosen)), values[i], chosen)
            made.append(chosen)
        return made

    def _scan(self, operands: list, *, jaxpr: ClosedJaxpr, length: int, num_consts: int, num_carry: int, reverse: bool,
              **_: object) -> list[jax.Array]:
        """Keeps a loop of known length, its step rewritten."""
        constants, carried, lists = (operands[:num_consts], operands[num_consts:num_consts + num_carry],
                                     operands[num_consts + num_carry:])

        def step(values: tuple, elements: tuple) -> tuple[tuple, tuple]:
            made = self._call(jaxpr, [*constants, *values, *elements])
            return tuple(made[:num_carry]), tuple(made[num_carry:])

        last, rows = lax.scan(step, tuple(carried), tuple(lists), length=length, reverse=reverse)
        return [*last, *rows]

    def _repeat(self, operands: list, *, cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr,
                body_nconsts: int, **_: object) -> list[jax.Array]:
        """Keeps a loop whose number of trips is not known here, its condition and its step rewritten."""
        asked, given = operands[:cond_nconsts], operands[cond_nconsts:cond_nconsts + body_nconsts]
        return list(lax.while_loop(
            lambda values: self._call(cond_jaxpr, [*asked, *values])[0],
            lambda values: tuple(self._call(body_jaxpr, [*given, *values])),
            tuple(operands[cond_nconsts + body_nconsts:])))

    def _solve(self, operands: list, *, const_lengths: Any, jaxprs: Any) -> list[jax.Array]:
        """Solves by what JAX was given to solve with.

        That reads a matrix through which no gradient flows. With Weir's gradients, what the solution does not solve, 0,
        is solved for and added: its gradient is that of the equation.
        """
        count = const_lengths.matvec
        matrix, after = operands[:count], operands[sum(const_lengths):]
        given = operands[count + const_lengths.vecmat:][:const_lengths.solve]
        made = self._call(jaxprs.solve, [*given, *after])
        if not self._differentiated:
            return made
        fixed = [_stop_gradient(x) for x in made]
        rest = [b - product for b, product in zip(after, self._call(jaxprs.matvec, [*matrix, *fixed]), strict=True)]
        more = self._call(jaxprs.solve, [*given, *(x - _stop_gradient(x) for x in rest)])
        return [x + y for x, y in zip(fixed, more, strict=True)]

    def _unroll(self, operands: list, *, jaxpr: ClosedJaxpr, length: int, num_consts: int, num_carry: int,
                reverse: bool, **_: object) -> list[jax.Array]:
        constants, carried, lists = (operands[:num_consts], operands[num_consts:num_consts + num_carry],
                                     operands[num_consts + num_carry:])
        rows = []
        for i in reversed(range(length)) if reverse else range(length):
            made = self._call(jaxpr, [*constants, *carried, *(lax.index_in_dim(x, i, keepdims=False) for x in lists)])
            carried = made[:num_carry]
            rows.append(made[num_carry:])
        if reverse:
            rows.reverse()
        if rows:
            return [*carried, *(jnp.stack(column) for column in zip(*rows, strict=True))]
        return [*carried, *(jnp.zeros((0, *atom.aval.shape), atom.aval.dtype)
                            for atom in jaxpr.jaxpr.outvars[num_carry:])]

    def _check_rule(self, equation: JaxprEqn) -> str:
        """Returns the name of a function of JAX's with a derivative rule. Refuses others: gradients are Weir's."""
        called = equation.params["call_jaxpr"]
        place = (called.jaxpr if isinstance(called, ClosedJaxpr) else called).debug_info.func_src_info or "a function"
        name = place.partition(" ")[0]
        if LIBRARY not in place or (name not in KINKS and name not in SMOOTH):
            raise ExportError(f"{place} has a derivative rule of its own, which gradients by Weir would not use; take "
                              "the gradient by jax.grad in a function for weir.jax.compile")
        return name


def _walk(program: Jaxpr) -> Iterator[JaxprEqn]:
    """Returns the equations of a program, each before those of what it calls."""
    for equation in program.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(inner, (Jaxpr, ClosedJaxpr)):
                    yield from _walk(getattr(inner, "jaxpr", inner))


def _has_loop(program: Jaxpr) -> bool:
    """Whether a program, or a program that it calls, has a loop that is not unrolled here."""
    return any(equation.primitive.name == "while" or (
        equation.primitive.name == "scan" and equation.params["length"] >= MAX_UNROLLED) for equation in _walk(program))


def explain_missing(program: ClosedJaxpr, error: NotImplementedError) -> str:
    """Returns the operation that JAX does not lower, by the message of its error, and the line that calls it."""
    if not (found := re.search(r"primitive '(\w+)'", str(error))):
        return str(error)
    equation = next((one for one in _walk(program.jaxpr) if one.primitive.name == found[1]), None)
    line = source_info_util.summarize(equation.source_info) if equation else ""  # empty for JAX's own functions
    return f"{found[1]}, {line}" if line else found[1]


def _clamp(low: jax.Array, x: jax.Array, high: jax.Array) -> jax.Array:
    """Clamps. At a limit no operand has the gradient, as in JAX."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return lax.clamp(low, x, high)
    inside = jnp.where((x > low) & (x < high), x, _stop_gradient(x))
    return jnp.where(low > x, low, jnp.where(high < x, high, inside))


def _stop_gradient(x: jax.Array) -> jax.Array:
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return lax.complex(_stop_gradient(x.real), _stop_gradient(x.imag))
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    return jax.ffi.ffi_call(STOP_GRADIENT, jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
