"""Exports a small JAX model: mixer.mlir, its inputs, and its gradients in double precision.

RMSNorm, causal attention with one head, gated MLP, cross-entropy over rows of an embedding.
JAX gives StableHLO of the forward function, torch-mlir's tool linalg; gradients are Weir's
own. Writes inputs.safetensors, and gradients.safetensors, which JAX computes: the loss and
every gradient of it:

    weir compile mixer.mlir --grad=mixer --entry=mixer.grad -o mixer.weir
    weir run mixer.weir --input=inputs.safetensors --compare=gradients.safetensors --tolerance=1e-4

Needs the packages of requirements.txt. The outputs are committed: nobody has to run this to
build or test.
"""

import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy
from jax import lax
from safetensors.numpy import save_file
from torch_mlir import ir

FOLDER = pathlib.Path(__file__).resolve().parent
VOCABULARY, WIDTH, LENGTH, BATCH = 32, 24, 12, 3
PIPELINE = "builtin.module(inline,stablehlo-legalize-to-linalg,canonicalize,cse)"


def normalize(x, scale):
    # Not jnp.square: that stays an operation of the dialect chlo, which the tool does not lower.
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def attend(x, weights):
    query, key, value = (x @ weights[name] for name in ("query", "key", "value"))
    scores = jnp.einsum("bqd,bkd->bqk", query, key) / numpy.sqrt(WIDTH)
    seen = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    return jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)) @ value


def loss_of(weights, tokens, following):
    x = weights["embed"][tokens]
    x = x + attend(normalize(x, weights["scale1"]), weights)
    y = normalize(x, weights["scale2"])
    x = x + (jax.nn.silu(y @ weights["gate"]) * (y @ weights["up"])) @ weights["down"]
    logits = jax.nn.log_softmax(x @ weights["embed"].T)
    return -jnp.take_along_axis(logits, following[..., None], -1).mean()


def make_inputs():
    random = numpy.random.default_rng(0)
    shapes = {"embed": (VOCABULARY, WIDTH), "query": (WIDTH, WIDTH), "key": (WIDTH, WIDTH), "value": (WIDTH, WIDTH),
              "gate": (WIDTH, 2 * WIDTH), "up": (WIDTH, 2 * WIDTH), "down": (2 * WIDTH, WIDTH)}
    weights = {name: random.standard_normal(shape) / numpy.sqrt(shape[0]) for name, shape in shapes.items()}
    weights |= {name: random.uniform(0.5, 1.5, WIDTH) for name in ("scale1", "scale2")}
    weights = {name: value.astype(numpy.float32) for name, value in weights.items()}
    text = random.integers(0, VOCABULARY, (BATCH, LENGTH + 1), dtype=numpy.int32)
    return weights, numpy.ascontiguousarray(text[:, :-1]), numpy.ascontiguousarray(text[:, 1:])


def lower(*arguments):
    """The text of `loss_of` in linalg, its arguments and result named for Weir."""
    text = jax.jit(loss_of).lower(*arguments).as_text()
    tool = pathlib.Path(sys.executable).parent / "torch-mlir-opt"
    linalg = subprocess.run([tool, f"--pass-pipeline={PIPELINE}"], input=text, capture_output=True, text=True, check=True)
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(arguments)[0]]
    named = [("input", "tokens"), ("target", "next")]
    named = [("param", path[1].key) if len(path) > 1 else named[path[0].idx - 1] for path in paths]
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(linalg.stdout)
        [function] = module.body.operations

        def attributes(**values):
            return ir.DictAttr.get({f"weir.{key}": ir.StringAttr.get(value) for key, value in values.items()})

        function.attributes["sym_name"] = ir.StringAttr.get("mixer")
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([attributes(name=name, kind=kind) for kind, name in named])
        function.attributes["res_attrs"] = ir.ArrayAttr.get([attributes(name="loss")])
        return module.operation.get_asm().rstrip() + "\n"


def main():
    weights, tokens, following = make_inputs()
    (FOLDER / "mixer.mlir").write_text(lower(weights, tokens, following))
    save_file({"tokens": tokens, "next": following, **weights}, FOLDER / "inputs.safetensors")
    with jax.enable_x64(True):
        double = {name: jnp.asarray(value, jnp.float64) for name, value in weights.items()}
        loss, gradients = jax.value_and_grad(loss_of)(double, tokens, following)
    values = {"loss": loss, **{f"grad.{name}": value for name, value in gradients.items()}}
    save_file({name: numpy.asarray(value, numpy.float32) for name, value in values.items()},
              FOLDER / "gradients.safetensors")


if __name__ == "__main__":
    main()
