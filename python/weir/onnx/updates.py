"""Writes the optimizers of ai.onnx.preview.training: one step for each of several tensors."""

import math
from collections.abc import Callable

import numpy

from weir.onnx.writing import Value, Writer

DOMAIN = "ai.onnx.preview.training"


def _for_each(tensors: int, step: Callable[..., tuple[Value, ...]]) -> Callable[[Writer], bool]:
    """Returns a rule that calls `step` with the writer, the rate, the number of steps before, and each parameter, its
    gradient and its state, `tensors` in all. Operands and results have all tensors of a sort one after the other."""
    def write(writer: Writer) -> bool:
        count = (len(writer.node.input) - 2) // tensors
        rate, time = (writer.operand(place).reshape() for place in (0, 1))
        for i in range(count):
            given = [writer.operand(2 + sort * count + i) for sort in range(tensors)]
            made = step(writer, rate.cast(given[0].kind), time.cast(given[0].kind), *given)
            for sort, value in enumerate(made):
                value.finish(sort * count + i)
        return True

    return write


def _adagrad(writer: Writer, rate: Value, time: Value, x: Value, gradient: Value, squares: Value) -> tuple[Value, ...]:
    rate = rate / (time * writer.attribute("decay_factor", 0.0) + 1)
    gradient = _regularize(writer, x, gradient)
    squares = squares + gradient * gradient
    root = squares.apply("Sqrt") + writer.attribute("epsilon", 0.0)
    return x - rate * gradient / root, squares


def _momentum(
    writer: Writer, rate: Value, time: Value, x: Value, gradient: Value, velocity: Value
) -> tuple[Value, ...]:
    alpha = writer.attribute("alpha", 0.0)
    gradient = _regularize(writer, x, gradient)
    velocity = velocity * alpha + (time > 0).choose(gradient * writer.attribute("beta", 0.0), gradient)
    is_nesterov = writer.attribute("mode", b"standard") == b"nesterov"
    return x - rate * (gradient + velocity * alpha if is_nesterov else velocity), velocity


def _adam(
    writer: Writer, rate: Value, time: Value, x: Value, gradient: Value, mean: Value, squares: Value
) -> tuple[Value, ...]:
    alpha, beta = writer.attribute("alpha", 0.9), writer.attribute("beta", 0.999)
    gradient = _regularize(writer, x, gradient)
    mean = mean * alpha + gradient * (1 - alpha)
    squares = squares * beta + gradient * gradient * (1 - beta)
    root = squares.apply("Sqrt") + writer.attribute("epsilon", 0.0)
    corrected = rate * _complement(beta, time).apply("Sqrt") / _complement(alpha, time)
    x = x - (time > 0).choose(corrected, rate) * (mean / root)
    return x * (1 - writer.attribute("norm_coefficient_post", 0.0)), mean, squares


def _regularize(writer: Writer, x: Value, gradient: Value) -> Value:
    return gradient + x * writer.attribute("norm_coefficient", 0.0)


def _complement(base: float, power: Value) -> Value:
    """Returns 1 - base ** power, for a base from 0 to 1.

    It is 2 t / (1 + t) with the hyperbolic tangent t of -power log(base) / 2, which keeps the digits that the
    difference from 1 loses.
    """
    half = -math.log(base) / 2 if base > 0 else numpy.inf
    tangent = (power * half).apply("Tanh")
    return tangent * 2 / (tangent + 1)


RULES = {(DOMAIN, "Adagrad"): _for_each(3, _adagrad), (DOMAIN, "Adam"): _for_each(4, _adam),
         (DOMAIN, "Momentum"): _for_each(3, _momentum)}
