"""Attention as people write it in JAX, ONNX and PyTorch: raised, right, and without a tensor of scores."""

import json
import re
import subprocess

import numpy
import pytest
from conftest import BIN

import weir

TOKENS = 32


@pytest.fixture
def raise_(tmp_path):
    """Returns the ops of attention that a graph gets."""
    def raise_(exported):
        source, graph = tmp_path / "f.mlir", tmp_path / "g.mlir"
        source.write_text(exported.text)
        run("compile", source, "--stop-after=graph", "-o", graph)
        return re.findall(r"norm\.(attention(?:_vjp)?) ", graph.read_text())

    return raise_


@pytest.fixture
def measure(tmp_path):
    """Returns the device bytes of a graph's plan, with attention in blocks."""
    profile = tmp_path / "profile.json"
    run("devices", f"--emit-profile={profile}")
    profile.write_text(json.dumps(json.loads(profile.read_text()) | {"name": "blocks", "attention_keys": TOKENS}))

    def measure(exported):
        source, artifact = tmp_path / "f.mlir", tmp_path / "a.weir"
        source.write_text(exported.text)
        run("compile", source, f"--target=vulkan:{profile}", "-o", artifact)
        [plan] = json.loads(run("inspect", artifact, "--json"))["plans"]
        return plan["device_bytes"]

    return measure


def run(*arguments):
    done = subprocess.run([BIN / "weir", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


RANDOM = numpy.random.default_rng(0)


def draw(shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


# ---------------------------------------------------------------------------------------------------------------------
# JAX
# ---------------------------------------------------------------------------------------------------------------------

try:
    import jax
    from jax import numpy as jnp
    from jax.nn import dot_product_attention

    import weir.jax
except ImportError:
    jax = None
needs_jax = pytest.mark.skipif(jax is None, reason="JAX or torch-mlir is not installed: scripts/setup --torch")


def write_flax(q, k, v, mask):
    """Attention as flax.linen's dot_product_attention writes it."""
    scores = jnp.einsum("...qhd,...khd->...hqk", q / jnp.sqrt(q.shape[-1]).astype(q.dtype), k)
    weights = jax.nn.softmax(jnp.where(mask, scores, jnp.finfo(scores.dtype).min)).astype(q.dtype)
    return jnp.einsum("...hqk,...khd->...qhd", weights, v)


def write_haiku(q, k, v, mask):
    """Attention as haiku's MultiHeadAttention writes it."""
    scores = jnp.einsum("...thd,...Thd->...htT", q, k) / numpy.sqrt(q.shape[-1])
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e30))
    return jnp.einsum("...htT,...Thd->...thd", weights, v)


def write_capped(q, k, v):
    """Attention with a softcap and a causal mask, as Gemma writes it."""
    scores = jnp.tanh(jnp.einsum("bthd,bshd->bhts", q, k) / 30) * 30
    scores = jnp.where(jnp.tri(q.shape[1], dtype=bool), scores, -2.3819763e38)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores, axis=-1), v)


# The function, the heads of keys, what it takes besides queries, keys and values, and the element type.
WRITTEN = {
    "plain": (lambda q, k, v: dot_product_attention(q, k, v), 4, "", "float32"),
    "causal": (lambda q, k, v: dot_product_attention(q, k, v, is_causal=True), 4, "", "float32"),
    "mask": (lambda q, k, v, m: dot_product_attention(q, k, v, mask=m), 4, "m", "float32"),
    "bias": (lambda q, k, v, b: dot_product_attention(q, k, v, bias=b, scale=0.4), 4, "b", "float32"),
    "shared heads": (lambda q, k, v: dot_product_attention(q, k, v, is_causal=True), 2, "", "float32"),
    "one head": (lambda q, k, v, m, b: dot_product_attention(q, k, v, b, m, is_causal=True), 1, "mb", "float32"),
    "causal window": (lambda q, k, v: dot_product_attention(q, k, v, local_window_size=7, is_causal=True), 2, "",
                      "float32"),
    "lengths": (lambda q, k, v, n, o: dot_product_attention(q, k, v, query_seq_lengths=n, key_value_seq_lengths=o), 4,
                "no", "float32"),
    "bf16": (lambda q, k, v: dot_product_attention(q, k, v, is_causal=True), 2, "", "bfloat16"),
    "flax": (write_flax, 4, "m", "float32"),
    "haiku": (write_haiku, 4, "m", "float32"),
    "capped": (write_capped, 4, "", "float32"),
}


def make_arguments(heads, others, dtype, tokens=TOKENS):
    queries, keys = (2, tokens, 4, 4), (2, tokens, heads, 4)
    mask = draw((2, 1, tokens, tokens)) < 0.5
    mask[0, 0, 3] = False  # a row that is masked as a whole
    given = {"m": mask, "b": draw((1, 4, tokens, tokens)), "n": numpy.int32([tokens - 9, tokens]),
             "o": numpy.int32([tokens, tokens - 11])}
    return [*(jnp.asarray(draw(shape), dtype) for shape in (queries, keys, keys)), *(given[one] for one in others)]


def differentiate(function, arguments):
    """Returns a function to the gradients of the queries, keys and values, and the result."""
    weights = draw(jax.eval_shape(function, *arguments).shape)

    def loss(*values):
        result = function(*values)
        return (result.astype(jnp.float32) * weights).sum(), result

    return lambda *values: jax.grad(loss, argnums=(0, 1, 2), has_aux=True)(*values)


@needs_jax
@pytest.mark.parametrize("name", WRITTEN)
def test_jax(raise_, name):
    function, *kinds = WRITTEN[name]
    arguments = make_arguments(*kinds)
    both = differentiate(function, arguments)
    with weir.jax.compile(both, *arguments, device="cpu") as program:
        found, expected = program(*arguments), jax.jit(both)(*arguments)
        assert len(jax.tree.leaves(found)) == 4
        for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            ours, theirs = widen(ours.numpy()), widen(numpy.asarray(theirs))
            assert numpy.abs(ours - theirs).max() <= (2e-2 if "bf16" in name else 5e-6) * numpy.abs(theirs).max()
    assert raise_(weir.jax.export(function, *arguments)) == ["attention"]
    assert raise_(weir.jax.export(both, *arguments)) == ["attention", "attention_vjp"]


def widen(values):
    """Returns an array as f32. weir.Array has the bits of bfloat16 as integers."""
    return values.view(jnp.bfloat16).astype(numpy.float32) if values.dtype.itemsize == 2 else values


@needs_jax
@pytest.mark.parametrize("name", ["shared heads", "lengths"])
def test_memory_is_linear(measure, name):
    def measure_at(tokens):
        function, *kinds = WRITTEN[name]
        arguments = make_arguments(*kinds, tokens=tokens)
        return measure(weir.jax.export(differentiate(function, arguments), *arguments))

    assert measure_at(2 * TOKENS) <= 2 * measure_at(TOKENS)


@needs_jax
def test_gradient_of_a_bias(raise_):
    """A bias of heads and positions, which samples share, as in T5: its gradient is a result of the op."""
    def attend(q, k, v, bias):
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / 2.0 + bias
        return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores, axis=-1), v)

    q, k, v = make_arguments(4, "", "float32")[:3]
    arguments = (q, k, v, draw((1, 4, q.shape[1], k.shape[1])))
    both = jax.value_and_grad(lambda *values: (attend(*values) ** 2).sum(), argnums=(0, 1, 2, 3))
    assert raise_(weir.jax.export(both, *arguments)) == ["attention", "attention_vjp"]
    with weir.jax.compile(both, *arguments, device="cpu") as program:
        found, expected = program(*arguments), jax.jit(both)(*arguments)
        for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            theirs = numpy.asarray(theirs)
            assert numpy.abs(ours.numpy() - theirs).max() <= 1e-5 * numpy.abs(theirs).max()


@needs_jax
def test_gradients_by_weir_are_those_of_jax():
    """A training step raises the attention before it differentiates."""
    q, k, v, mask = make_arguments(2, "m", "float32")

    def loss(params, v, mask):
        return (dot_product_attention(params["q"], params["k"], v, mask=mask) ** 2).sum()

    params = {"q": q, "k": k}
    options = {"optimizer": weir.SGD(learning_rate=1.0), "device": "cpu"}
    with weir.jax.compile_step(loss, params, v, mask, **options) as step:
        step(v, mask)
        found = step.params
    expected = jax.grad(loss)(params, v, mask)
    for name, start in params.items():
        change = numpy.asarray(start) - found[name]
        assert numpy.abs(change - expected[name]).max() <= 1e-5 * numpy.abs(expected[name]).max()


@needs_jax
def test_scores_that_others_use_stay(raise_):
    def attend(q, k, v):
        scores = jnp.einsum("bthd,bshd->bhts", q, k)
        weights = jax.nn.softmax(scores, axis=-1)
        return jnp.einsum("bhts,bshd->bthd", weights, v), weights

    q, k, v = make_arguments(4, "", "float32")
    assert raise_(weir.jax.export(attend, q, k, v)) == []
    summed = jax.grad(lambda *values: sum((part ** 2).sum() for part in attend(*values)), argnums=(0, 1, 2))
    assert raise_(weir.jax.export(summed, q, k, v)) == []


# ---------------------------------------------------------------------------------------------------------------------
# ONNX
# ---------------------------------------------------------------------------------------------------------------------

QUERIES, KEYS, PAST = (2, 4, TOKENS, 4), (2, 2, TOKENS, 4), (2, 2, 16, 4)
# Shapes of what the operator takes besides queries, keys and values, and its attributes.
OPERATORS = {
    "plain": ({}, {}),
    "causal": ({}, {"is_causal": 1, "scale": 0.3}),
    "capped": ({}, {"is_causal": 1, "softcap": 2.0}),
    "mask of floats": ({"attn_mask": (TOKENS, TOKENS)}, {}),
    "mask of booleans": ({"attn_mask": (2, 1, TOKENS, TOKENS)}, {"softcap": 2.0, "is_causal": 1}),
    "past": ({"past_key": PAST, "past_value": PAST}, {"is_causal": 1}),
    "past and mask": ({"attn_mask": (TOKENS, TOKENS + PAST[2]), "past_key": PAST, "past_value": PAST}, {}),
}


def make_operator(onnx, others, attributes, opset):
    """Returns a model of one operator, and values for its inputs."""
    shapes = {"Q": QUERIES, "K": KEYS, "V": KEYS} | others
    values = {name: draw(shape) for name, shape in shapes.items()}
    if len(others.get("attn_mask", ())) == 4:
        values["attn_mask"] = values["attn_mask"] < 0.5
        values["attn_mask"][..., 0] = True
    kinds = {name: onnx.helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in values.items()}
    inputs = [onnx.helper.make_tensor_value_info(name, kinds[name], shape) for name, shape in shapes.items()]
    names = ["Q", "K", "V", *(name if name in shapes else "" for name in ("attn_mask", "past_key", "past_value"))]
    results = ["Y", "present_key", "present_value"] if "past_key" in others else ["Y"]
    node = onnx.helper.make_node("Attention", names, results, **attributes)
    outputs = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in results]
    graph = onnx.helper.make_graph([node], "g", inputs, outputs)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10), values


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("name", OPERATORS)
def test_onnx(raise_, name, opset):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: scripts/setup --torch")
    weir_onnx = pytest.importorskip("weir.onnx", reason="torch-mlir is not installed: scripts/setup --torch")
    from onnx.reference import ReferenceEvaluator

    model, values = make_operator(onnx, *OPERATORS[name], opset)
    assert raise_(weir_onnx.export(model)) == ["attention"]
    if opset == 23:
        expected = ReferenceEvaluator(model).run(None, values)
        with weir_onnx.compile(model, device="cpu") as program:
            found = program(**values)
        found = found["Y"] if len(expected) > 1 else found
        numpy.testing.assert_allclose(found.numpy(), expected[0], rtol=0, atol=2e-6)


# ---------------------------------------------------------------------------------------------------------------------
# PyTorch
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads, options", [
    (4, {}), (2, {"is_causal": True}), (1, {"scale": 0.3}), (2, {"mask": True}), (4, {"bf16": True, "is_causal": True})])
def test_torch(raise_, heads, options):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
    weir_torch = pytest.importorskip("weir.torch", reason="torch-mlir is not installed: scripts/setup --torch")
    options = dict(options)
    kind = torch.bfloat16 if options.pop("bf16", False) else torch.float32
    q, k, v = (torch.from_numpy(draw((2, count, TOKENS, 4))).to(kind) for count in (4, heads, heads))
    mask = [torch.from_numpy(draw((2, 1, TOKENS, TOKENS)) < 0.5)] if options.pop("mask", False) else []

    class Attend(torch.nn.Module):
        def forward(self, q, k, v, *mask):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, *mask, enable_gqa=heads != 4, **options)

    assert raise_(weir_torch.export(Attend(), (q, k, v, *mask))) == ["attention"]


@pytest.mark.parametrize("model", ["Llama", "GPT2"])
def test_transformers(raise_, model):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
    weir_torch = pytest.importorskip("weir.torch", reason="torch-mlir is not installed: scripts/setup --torch")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: scripts/setup --torch")
    sizes = {"Llama": {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
                       "intermediate_size": 32},
             "GPT2": {"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": TOKENS}}[model]
    config = getattr(transformers, f"{model}Config")(
        vocab_size=64, bos_token_id=1, eos_token_id=1, attn_implementation="eager", use_cache=False, **sizes)
    network = getattr(transformers, f"{model}Model")(config).eval()

    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, tokens):
            return self.network(tokens).last_hidden_state

    assert raise_(weir_torch.export(Last(), (torch.zeros(2, TOKENS, dtype=torch.long),))) == ["attention"] * 2
