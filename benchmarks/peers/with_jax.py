"""XLA: the cases in JAX, by jax.jit. with_iree.py compiles the same functions."""

import functools
import time

import cases
import jax
import numpy
from jax import numpy as jnp

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_enable_async_dispatch", False)  # else a call pays for a thread's waking

OPTIONS = {"default": None, "512-bit vectors": {"xla_cpu_prefer_vector_width": "512"}}


def list_settings(case, _):
    return list(OPTIONS)


def layer_norm(x, gamma, beta):
    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered ** 2).mean(-1, keepdims=True) + cases.EPSILON) * gamma + beta


def rms_norm(x, gamma):
    return x * jax.lax.rsqrt((x ** 2).mean(-1, keepdims=True) + cases.EPSILON) * gamma


def cross_entropy(logits, targets):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits, -1), targets[:, None], -1).mean()


def gelu_bias(x, bias):
    return jax.nn.gelu(x + bias, approximate=False)


def mlp(x, w1, b1, w2, b2):
    return jax.nn.gelu(x @ w1.T + b1, approximate=False) @ w2.T + b2


def get_loss(parameters, x, t):
    for weight, bias in zip(parameters[::2], parameters[1::2]):
        x = jnp.tanh(x @ weight.T + bias)
    return ((x - t) ** 2).mean()


def mlp_step(x, t, *parameters):
    loss, gradients = jax.value_and_grad(get_loss)(parameters, x, t)
    return loss, *(p - cases.LEARNING_RATE * g for p, g in zip(parameters, gradients))


def chains(*arguments, length):
    *values, w = arguments
    for _ in range(length):
        values = [value @ w for value in values]
    return tuple(values)


FUNCTIONS = {
    "copy": lambda x: x.copy(),
    "layer_norm": layer_norm,
    "layer_norm_vjp": lambda dy, x, gamma: jax.vjp(layer_norm, x, gamma, jnp.zeros_like(gamma))[1](dy),
    "rms_norm": rms_norm,
    "rms_norm_vjp": lambda dy, x, gamma: jax.vjp(rms_norm, x, gamma)[1](dy),
    "softmax": lambda x: jax.nn.softmax(x, -1),
    "softmax_vjp": lambda dy, y: y * (dy - (dy * y).sum(-1, keepdims=True)),
    "cross_entropy": cross_entropy,
    "cross_entropy_vjp": lambda dloss, logits, targets: jax.vjp(
        functools.partial(cross_entropy, targets=targets), logits)[1](dloss),
    "gelu_bias": gelu_bias,
    "gelu_bias_vjp": lambda dy, x, bias: jax.vjp(gelu_bias, x, bias)[1](dy),
    "product": lambda a, b: a @ b,
    "product_bt": lambda a, b: a @ b.swapaxes(-1, -2),
    "mlp": mlp,
    "mlp_step": mlp_step,
    "add_one": lambda x: x + 1,
}


def get_function(case):
    if case.kind == "chains":
        return functools.partial(chains, length=case.sizes["length"])
    return FUNCTIONS[case.kind]


def get_inputs(case):
    """Returns the inputs as JAX has them: indices are i32."""
    return [value.astype(numpy.int32) if value.dtype == numpy.int64 else value for value in case.make_inputs().values()]


def prepare_model(case, setting):
    """Returns a function that runs a step, one that returns its loss, and facts of its compilation."""
    import jax_models

    family = jax_models.FAMILIES[case.kind]
    names = list(case.make_inputs())
    # Copies, since JAX does not reuse memory of NumPy's.
    inputs = {name: jnp.array(value, copy=True) for name, value in zip(names, get_inputs(case))}
    state = {name: inputs.pop(name) for name in case.donated}

    def step(state, inputs):
        loss, gradients = jax.value_and_grad(lambda values: family(values | inputs, **case.sizes))(state)
        return loss, jax.tree.map(lambda p, g: p - cases.LEARNING_RATE * g, state, gradients)

    begin = time.perf_counter()
    compiled = jax.jit(step, donate_argnums=0).lower(state, inputs).compile(OPTIONS[setting])
    facts = {"compile_seconds": time.perf_counter() - begin}
    kept = [None, state]

    def run():
        kept[:] = compiled(kept[1], inputs)
        jax.block_until_ready(kept)

    return run, lambda: [numpy.array(kept[0])], facts


def prepare(case, setting, options):
    """Returns a function that runs a case once, one that returns its results, and facts of its compilation."""
    if case.is_model:
        return prepare_model(case, setting)
    names = list(case.make_inputs())
    donated = [names.index(name) for name in case.donated]
    function = jax.jit(get_function(case), donate_argnums=donated, compiler_options=OPTIONS[setting])
    inputs = [jax.device_put(value) for value in get_inputs(case)]
    results = []

    def run():
        made = function(*inputs)
        jax.block_until_ready(made)
        results[:] = made if isinstance(made, tuple) else (made,)
        for position, name in zip(donated, case.donated):
            inputs[position] = results[case.results.index(name)]

    return run, lambda: [numpy.array(result) for result in results], {}
