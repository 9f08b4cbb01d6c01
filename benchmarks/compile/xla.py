"""Prints the CPU seconds in which XLA makes code of a Llama's training step for the CPU: the step that graphs.py's llama
is with --tied and --train=sgd. Needs jax; nothing is run."""

import argparse
import inspect
import json
import sys
import time

import graphs

try:
    import jax
    from jax import numpy
except ImportError:
    print(f"{sys.executable} has no jax, so there are no figures of XLA; install it with pip install jax", file=sys.stderr)
    sys.exit(2)


def make_loss(sizes):
    heads, kv_heads, sequence = sizes["heads"], sizes["kv_heads"], sizes["sequence"]
    size = sizes["hidden"] // heads
    angles = numpy.outer(numpy.arange(sequence), 10000.0 ** (-2 * (numpy.arange(size) % (size // 2)) / size))
    cosines, sines = numpy.cos(angles), numpy.sin(angles)
    mask = numpy.triu(numpy.full((sequence, sequence), numpy.finfo(numpy.float32).min), 1)

    def rms_norm(x, weight):
        return weight * (x * jax.lax.rsqrt(numpy.mean(x ** 2, -1, keepdims=True) + 1e-5))

    def split(x, count):
        return x.reshape(*x.shape[:2], count, size).swapaxes(1, 2)

    def rotate(x):
        first, second = numpy.split(x, 2, -1)
        return x * cosines + numpy.concatenate([-second, first], -1) * sines

    def attention(q, k, v):
        k, v = (numpy.repeat(x, heads // kv_heads, 1) for x in (k, v))
        weights = jax.nn.softmax(q @ k.swapaxes(2, 3) * size ** -0.5 + mask, -1)
        mixed = (weights @ v).swapaxes(1, 2)
        return mixed.reshape(*mixed.shape[:2], heads * size)

    def loss(weights, tokens, targets):
        x = weights["embed"][tokens]
        for layer in weights["layers"]:
            y = rms_norm(x, layer["input_norm"])
            q, k, v = (split(y @ layer[name].T, n) for name, n in (("q", heads), ("k", kv_heads), ("v", kv_heads)))
            x = x + attention(rotate(q), rotate(k), v) @ layer["o"].T
            y = rms_norm(x, layer["post_norm"])
            x = x + (jax.nn.silu(y @ layer["gate"].T) * (y @ layer["up"].T)) @ layer["down"].T
        logs = jax.nn.log_softmax(rms_norm(x, weights["norm"]) @ weights["embed"].T, -1)
        used = targets != -100
        picked = numpy.take_along_axis(logs, numpy.where(used, targets, 0)[..., None], -1)[..., 0]
        return -numpy.sum(numpy.where(used, picked, 0)) / numpy.sum(used)

    return loss


def list_shapes(sizes):
    """Returns the weights' shapes."""
    hidden, intermediate = sizes["hidden"], sizes["intermediate"]
    shared = hidden // sizes["heads"] * sizes["kv_heads"]
    shapes = {"input_norm": (hidden,), "q": (hidden, hidden), "k": (shared, hidden), "v": (shared, hidden),
              "o": (hidden, hidden), "post_norm": (hidden,), "gate": (intermediate, hidden), "up": (intermediate, hidden),
              "down": (hidden, intermediate)}
    layer = {name: jax.ShapeDtypeStruct(shape, numpy.float32) for name, shape in shapes.items()}
    return {"embed": jax.ShapeDtypeStruct((sizes["vocabulary"], hidden), numpy.float32),
            "norm": jax.ShapeDtypeStruct((hidden,), numpy.float32), "layers": [layer] * sizes["layers"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for parameter in inspect.signature(graphs.llama).parameters.values():
        if parameter.name not in ("tied", "rank"):
            parser.add_argument(f"--{parameter.name.replace('_', '-')}", type=int, default=parameter.default, help=" ")
    sizes = vars(parser.parse_args())
    jax.config.update("jax_platforms", "cpu")
    loss = make_loss(sizes)

    def step(weights, tokens, targets, learning_rate, weight_decay):
        value, gradients = jax.value_and_grad(loss)(weights, tokens, targets)
        return value, jax.tree.map(lambda w, g: w - learning_rate * (g + weight_decay * w), weights, gradients)

    tokens = jax.ShapeDtypeStruct((sizes["batch"], sizes["sequence"]), numpy.int32)
    number = jax.ShapeDtypeStruct((), numpy.float32)
    begin = time.process_time()
    traced = jax.jit(step, donate_argnums=0).trace(list_shapes(sizes), tokens, tokens, number, number)
    lowered = traced.lower()
    traced_seconds = time.process_time() - begin
    lowered.compile()
    print(json.dumps({"seconds": round(time.process_time() - begin, 2), "tracing_seconds": round(traced_seconds, 2)}))


if __name__ == "__main__":
    main()
