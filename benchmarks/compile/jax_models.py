"""Models of graphs.py in JAX: functions of arrays by the names of a graph's arguments, which return the loss."""

import jax
import numpy
from jax import numpy as jnp


def linear(values, x, name):
    y = x @ values[f"{name}.weight"].T
    return y + values[f"{name}.bias"] if f"{name}.bias" in values else y


def rms_norm(values, x, name):
    return values[f"{name}.weight"] * (x * jax.lax.rsqrt(jnp.mean(x ** 2, -1, keepdims=True) + 1e-5))


def normalize(x, axes):
    centered = x - x.mean(axes, keepdims=True)
    return centered * jax.lax.rsqrt((centered ** 2).mean(axes, keepdims=True) + 1e-5)


def layer_norm(values, x, name):
    return normalize(x, -1) * values[f"{name}.weight"] + values[f"{name}.bias"]


def split(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def attention(q, k, v):
    """Returns the causal attention of (batch, heads, sequence, size). Consecutive heads of q share one of k and v."""
    k, v = (jnp.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    mask = numpy.triu(numpy.full((q.shape[2], q.shape[2]), numpy.finfo(numpy.float32).min), 1)
    weights = jax.nn.softmax(q @ k.swapaxes(2, 3) * q.shape[3] ** -0.5 + mask, -1)
    mixed = (weights @ v).swapaxes(1, 2)
    return mixed.reshape(*mixed.shape[:2], -1)


def cross_entropy(scores, targets):
    """The mean of the losses but those whose target is -100."""
    logs, used = jax.nn.log_softmax(scores, -1), targets != -100
    picked = jnp.take_along_axis(logs, jnp.where(used, targets, 0)[..., None], -1)[..., 0]
    return -jnp.sum(jnp.where(used, picked, 0)) / jnp.sum(used)


def llama(values, layers, hidden, heads, kv_heads, sequence, **_):
    size = hidden // heads
    angles = numpy.outer(numpy.arange(sequence), 10000.0 ** (-2 * (numpy.arange(size) % (size // 2)) / size))
    cosines, sines = (table(angles).astype(numpy.float32) for table in (numpy.cos, numpy.sin))

    def rotate(x):
        first, second = jnp.split(x, 2, -1)
        return x * cosines + jnp.concatenate([-second, first], -1) * sines

    x = values["embed.weight"][values["tokens"]]
    for i in range(layers):
        name = f"layers.{i}"
        y = rms_norm(values, x, f"{name}.input_norm")
        q, k, v = (split(linear(values, y, f"{name}.{part}"), count)
                   for part, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)))
        x = x + linear(values, attention(rotate(q), rotate(k), v), f"{name}.o")
        y = rms_norm(values, x, f"{name}.post_norm")
        y = jax.nn.silu(linear(values, y, f"{name}.gate")) * linear(values, y, f"{name}.up")
        x = x + linear(values, y, f"{name}.down")
    return cross_entropy(rms_norm(values, x, "norm") @ values["embed.weight"].T, values["next"])


def gpt2(values, layers, heads, **_):
    x = values["embed.weight"][values["tokens"]] + values["place.weight"]
    for i in range(layers):
        name = f"blocks.{i}"
        joint = linear(values, layer_norm(values, x, f"{name}.attention_norm"), f"{name}.qkv")
        x = x + linear(values, attention(*(split(part, heads) for part in jnp.split(joint, 3, -1))), f"{name}.mix")
        y = jax.nn.gelu(linear(values, layer_norm(values, x, f"{name}.mlp_norm"), f"{name}.up"), approximate=True)
        x = x + linear(values, y, f"{name}.down")
    return cross_entropy(layer_norm(values, x, "norm") @ values["embed.weight"].T, values["next"])


def resnet(values, layers, stages=4, **_):
    """A ResNet of basic blocks: 18 or 34 layers."""
    def conv_norm(x, name, stride=1):
        weight = values[f"{name}.conv.weight"]
        padding = [(weight.shape[2] // 2,) * 2] * 2
        x = jax.lax.conv_general_dilated(x, weight, (stride, stride), padding)
        scale, shift = (values[f"{name}.norm.{part}"][:, None, None] for part in ("weight", "bias"))
        return normalize(x, (0, 2, 3)) * scale + shift

    x = jax.nn.relu(conv_norm(values["images"], "stem", 2))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), [(0, 0), (0, 0), (1, 1), (1, 1)])
    for stage in range(stages):
        i = 0
        while f"stages.{stage}.{i}.0.conv.weight" in values:
            name, stride = f"stages.{stage}.{i}", 2 if stage and not i else 1
            y = jax.nn.relu(conv_norm(x, f"{name}.0", stride))
            y = conv_norm(y, f"{name}.1")
            has_shortcut = f"{name}.shortcut.conv.weight" in values
            x = jax.nn.relu(y + (conv_norm(x, f"{name}.shortcut", stride) if has_shortcut else x))
            i += 1
    return cross_entropy(linear(values, x.mean((2, 3)), "head"), values["classes"])


FAMILIES = {family.__name__: family for family in (llama, gpt2, resnet)}
