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
    import jax_models
    from jax import numpy
except ImportError:
    print(f"{sys.executable} has no jax, so there are no figures of XLA; install it with pip install jax", file=sys.stderr)
    sys.exit(2)


def list_shapes(sizes):
    """Returns the weights' shapes by their names in the graph."""
    hidden, intermediate = sizes["hidden"], sizes["intermediate"]
    shared = hidden // sizes["heads"] * sizes["kv_heads"]
    layer = {"input_norm": (hidden,), "q": (hidden, hidden), "k": (shared, hidden), "v": (shared, hidden),
             "o": (hidden, hidden), "post_norm": (hidden,), "gate": (intermediate, hidden),
             "up": (intermediate, hidden), "down": (hidden, intermediate)}
    shapes = {f"layers.{i}.{name}": shape for i in range(sizes["layers"]) for name, shape in layer.items()}
    shapes |= {"embed": (sizes["vocabulary"], hidden), "norm": (hidden,)}
    return {f"{name}.weight": jax.ShapeDtypeStruct(shape, numpy.float32) for name, shape in shapes.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for parameter in inspect.signature(graphs.llama).parameters.values():
        if parameter.name not in ("tied", "rank"):
            parser.add_argument(f"--{parameter.name.replace('_', '-')}", type=int, default=parameter.default, help=" ")
    sizes = vars(parser.parse_args())
    jax.config.update("jax_platforms", "cpu")

    def step(weights, tokens, targets, learning_rate, weight_decay):
        def loss(weights):
            return jax_models.llama(weights | {"tokens": tokens, "next": targets}, **sizes)

        value, gradients = jax.value_and_grad(loss)(weights)
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
