"""The cases: what is computed, on which sizes, from which inputs, and what is right in f64."""

import collections.abc
import dataclasses
import functools
import math

import numpy
import whole_models

EPSILON = 1e-5
LEARNING_RATE = 1e-3
MLP_STEP = {"layers": 4, "rows": 64, "width": 576}


@dataclasses.dataclass(frozen=True)
class Case:
    """A computation, which every contender has under the name `kind`, for one choice of sizes."""

    name: str
    group: str
    kind: str
    sizes: dict
    results: tuple = ("y",)
    tolerance: float = 3e-5  # of the largest expected element
    donated: tuple = ()  # inputs that become the results of their names
    steps: int = 1  # calls whose results are compared, one after the other

    @property
    def is_model(self) -> bool:
        """Whether this is a step of a whole model, which each setting runs in a process of its own."""
        return self.kind in whole_models.SIZES

    def make_inputs(self) -> dict[str, numpy.ndarray]:
        """Returns the arguments by name, in order, the same ones in every process."""
        return (INPUTS | GPU_INPUTS)[self.kind](numpy.random.default_rng(1), **self.sizes)

    def get_expected(self) -> list[numpy.ndarray] | None:
        """Returns the results in f64, or None for a model, whose losses are compared with another contender's."""
        if self.is_model:
            return None
        exact = {name: value.astype(numpy.float64) if value.dtype.kind == "f" else value
                 for name, value in self.make_inputs().items()}
        found = REFERENCES[self.kind](*exact.values(), **self.sizes)
        return list(found) if isinstance(found, tuple) else [found]

    def find_problem(self, results: list[numpy.ndarray], expected: list[numpy.ndarray]) -> str | None:
        """Returns which result is wrong and by how much, or None."""
        for name, found, right in zip(self.results * self.steps, results, expected, strict=True):
            if found.shape != right.shape:
                return f"{name} has shape {found.shape}, not {right.shape}"
            error = float(numpy.max(numpy.abs(found - right))) / float(numpy.max(numpy.abs(right)))
            if not error <= self.tolerance:
                return f"{name} is off by {error:.1e} of its largest element, more than {self.tolerance:.0e}"
        return None


def draw(random, *shape):
    return random.standard_normal(shape, numpy.float32)


def make_orthogonal(random, size):
    return numpy.linalg.qr(random.standard_normal((size, size)))[0].astype(numpy.float32)


def make_classes(random, rows, columns):
    return {"logits": draw(random, rows, columns), "targets": random.integers(0, columns, rows)}


def make_mlp_step(random, layers, rows, width):
    inputs = {"x": draw(random, rows, width), "t": draw(random, rows, width)}
    for layer in range(layers):
        inputs[f"{layer}.weight"] = draw(random, width, width) / numpy.float32(math.sqrt(width))
        inputs[f"{layer}.bias"] = draw(random, width)
    return inputs


def softmax(x):
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def make_attention_vjp(random, heads, tokens, size):
    """Returns a cotangent, the operands, and what forward leaves: the result, the largest score of each row and one over
    the sum of its powers."""
    dy, q, k, v = (draw(random, *heads, tokens, size) for _ in range(4))
    scores = q @ k.swapaxes(-1, -2) * numpy.float32(size ** -0.5)
    largest = scores.max(-1)
    powers = numpy.exp(scores - largest[..., None])
    share = 1 / powers.sum(-1)
    return {"dy": dy, "q": q, "k": k, "v": v, "y": powers * share[..., None] @ v, "largest": largest, "share": share}


INPUTS = {
    "copy": lambda r, rows, columns: {"x": draw(r, rows, columns)},
    "layer_norm": lambda r, rows, columns: {
        "x": draw(r, rows, columns), "gamma": draw(r, columns), "beta": draw(r, columns)},
    "layer_norm_vjp": lambda r, rows, columns: {
        "dy": draw(r, rows, columns), "x": draw(r, rows, columns), "gamma": draw(r, columns)},
    "rms_norm": lambda r, rows, columns: {"x": draw(r, rows, columns), "gamma": draw(r, columns)},
    "rms_norm_vjp": lambda r, rows, columns: {
        "dy": draw(r, rows, columns), "x": draw(r, rows, columns), "gamma": draw(r, columns)},
    "softmax": lambda r, rows, columns: {"x": draw(r, rows, columns)},
    "softmax_vjp": lambda r, rows, columns: {"dy": draw(r, rows, columns), "y": softmax(draw(r, rows, columns))},
    "cross_entropy": make_classes,
    "cross_entropy_vjp": lambda r, rows, columns: {"dloss": numpy.array(1.5, numpy.float32),
                                                   **make_classes(r, rows, columns)},
    "gelu_bias": lambda r, rows, columns: {"x": draw(r, rows, columns), "bias": draw(r, columns)},
    "gelu_bias_vjp": lambda r, rows, columns: {
        "dy": draw(r, rows, columns), "x": draw(r, rows, columns), "bias": draw(r, columns)},
    "product": lambda r, m, k, n, batch=(): {"a": draw(r, *batch, m, k), "b": draw(r, *batch, k, n)},
    "product_bt": lambda r, m, k, n, batch=(): {"a": draw(r, *batch, m, k), "b": draw(r, *batch, n, k)},
    "mlp": lambda r, rows, width, hidden: {
        "x": draw(r, rows, width), "w1": draw(r, hidden, width) / numpy.float32(math.sqrt(width)),
        "b1": draw(r, hidden), "w2": draw(r, width, hidden) / numpy.float32(math.sqrt(hidden)), "b2": draw(r, width)},
    "mlp_step": make_mlp_step,
    "add_one": lambda r, count: {"x": draw(r, count)},
    "chains": lambda r, chains, length, size: {
        **{f"x{i}": draw(r, size, size) for i in range(chains)}, "w": make_orthogonal(r, size)},
    **{family: functools.partial(whole_models.make_inputs, family=family) for family in whole_models.SIZES},
}

# Inputs of cases that benchmarks/gpu alone measures, beside PyTorch.
GPU_INPUTS = {
    "attention": lambda r, heads, tokens, size: {name: draw(r, *heads, tokens, size) for name in "qkv"},
    "attention_vjp": make_attention_vjp,
}


def normalize(x):
    """Returns the normalised rows of LayerNorm and their factors."""
    centered = x - x.mean(-1, keepdims=True)
    factor = 1 / numpy.sqrt((centered ** 2).mean(-1, keepdims=True) + EPSILON)
    return centered * factor, factor


def normalize_square(x):
    factor = 1 / numpy.sqrt((x ** 2).mean(-1, keepdims=True) + EPSILON)
    return x * factor, factor


def layer_norm_vjp(dy, x, gamma, **_):
    n, factor = normalize(x)
    a = dy * gamma
    dx = factor * (a - a.mean(-1, keepdims=True) - n * (a * n).mean(-1, keepdims=True))
    return dx, (dy * n).sum(0), dy.sum(0)


def rms_norm_vjp(dy, x, gamma, **_):
    n, factor = normalize_square(x)
    a = dy * gamma
    return factor * (a - n * (a * n).mean(-1, keepdims=True)), (dy * n).sum(0)


def cross_entropy(logits, targets, **_):
    return -numpy.log(softmax(logits))[numpy.arange(len(targets)), targets].mean()


def cross_entropy_vjp(dloss, logits, targets, **_):
    y = softmax(logits)
    y[numpy.arange(len(targets)), targets] -= 1
    return y * dloss / len(targets)


def get_normal_share(x):
    """Returns the normal distribution's share below x."""
    return numpy.frompyfunc(lambda each: math.erfc(-each / math.sqrt(2)) / 2, 1, 1)(x).astype(numpy.float64)


def gelu(x):
    return x * get_normal_share(x)


def gelu_bias_vjp(dy, x, bias, **_):
    z = x + bias
    dx = dy * (get_normal_share(z) + z * numpy.exp(-z * z / 2) / math.sqrt(2 * math.pi))
    return dx, dx.sum(0)


def mlp_step(x, t, *parameters, layers, **_):
    weights, biases, values = parameters[::2], parameters[1::2], [x]
    for weight, bias in zip(weights, biases):
        values.append(numpy.tanh(values[-1] @ weight.T + bias))
    error = values[-1] - t
    gradient, updated = 2 * error / error.size, []
    for layer in reversed(range(layers)):
        gradient = gradient * (1 - values[layer + 1] ** 2)
        updated += [biases[layer] - LEARNING_RATE * gradient.sum(0),
                    weights[layer] - LEARNING_RATE * gradient.T @ values[layer]]
        gradient = gradient @ weights[layer]
    return (error ** 2).mean(), *reversed(updated)


def chains(*arguments, length, **_):
    *values, w = arguments
    return tuple(x @ numpy.linalg.matrix_power(w, length) for x in values)


REFERENCES: dict[str, collections.abc.Callable] = {
    "copy": lambda x, **_: x,
    "layer_norm": lambda x, gamma, beta, **_: normalize(x)[0] * gamma + beta,
    "layer_norm_vjp": layer_norm_vjp,
    "rms_norm": lambda x, gamma, **_: normalize_square(x)[0] * gamma,
    "rms_norm_vjp": rms_norm_vjp,
    "softmax": lambda x, **_: softmax(x),
    "softmax_vjp": lambda dy, y, **_: y * (dy - (dy * y).sum(-1, keepdims=True)),
    "cross_entropy": cross_entropy,
    "cross_entropy_vjp": cross_entropy_vjp,
    "gelu_bias": lambda x, bias, **_: gelu(x + bias),
    "gelu_bias_vjp": gelu_bias_vjp,
    "product": lambda a, b, **_: a @ b,
    "product_bt": lambda a, b, **_: a @ b.swapaxes(-1, -2),
    "mlp": lambda x, w1, b1, w2, b2, **_: gelu(x @ w1.T + b1) @ w2.T + b2,
    "mlp_step": mlp_step,
    "add_one": lambda x, **_: x + 1,
    "chains": chains,
}

ROWS = ((4096, 1024), (1024, 4096), (512, 8192))
ROW_KINDS = {
    "layer_norm": ("y",), "layer_norm_vjp": ("dx", "dgamma", "dbeta"),
    "rms_norm": ("y",), "rms_norm_vjp": ("dx", "dgamma"),
    "softmax": ("y",), "softmax_vjp": ("dx",),
    "cross_entropy": ("loss",), "cross_entropy_vjp": ("dlogits",),
    "gelu_bias": ("y",), "gelu_bias_vjp": ("dx", "dbias"),
}
PRODUCTS = ((512, 512, 512), (1024, 1024, 1024), (64, 576, 1536), (1, 4096, 4096))


def list_cases() -> list[Case]:
    cases = [Case(f"copy-{rows}x{columns}", "copy", "copy", {"rows": rows, "columns": columns})
             for rows, columns in ROWS]
    cases += [Case(f"{kind}-{rows}x{columns}", "vjps" if kind.endswith("_vjp") else "norms", kind,
                   {"rows": rows, "columns": columns}, results)
              for kind, results in ROW_KINDS.items() for rows, columns in ROWS]
    for m, k, n in PRODUCTS:
        cases.append(Case(f"product-{m}x{k}x{n}", "products", "product", {"m": m, "k": k, "n": n}))
    for m, k, n in PRODUCTS:
        cases.append(Case(f"product_bt-{m}x{k}x{n}", "products", "product_bt", {"m": m, "k": k, "n": n}))
    for rows in (128, 256, 512):
        cases += [Case(f"attention-qk-{rows}", "attention", "product_bt",
                       {"m": rows, "k": 64, "n": rows, "batch": (12,)}),
                  Case(f"attention-pv-{rows}", "attention", "product", {"m": rows, "k": rows, "n": 64, "batch": (12,)})]
    parameters = tuple(f"{layer}.{name}" for layer in range(MLP_STEP["layers"]) for name in ("weight", "bias"))
    return cases + [
        Case("mlp-512x576x1536", "mlp", "mlp", {"rows": 512, "width": 576, "hidden": 1536}),
        Case("mlp_step-4x64x576", "mlp", "mlp_step", MLP_STEP, ("loss", *parameters), donated=parameters),
        Case("call-1024", "small", "add_one", {"count": 1024}),
        Case("dispatches-1x1300", "small", "chains", {"chains": 1, "length": 1300, "size": 16}, ("y0",),
             tolerance=1e-3),
        Case("dispatches-26x50", "small", "chains", {"chains": 26, "length": 50, "size": 16},
             tuple(f"y{i}" for i in range(26)), tolerance=1e-4),
        *(Case(f"{family}-step", "models", family, sizes, ("loss",), steps=whole_models.STEPS,
               donated=whole_models.list_parameters(family, sizes)) for family, sizes in whole_models.SIZES.items()),
    ]


CASES = {case.name: case for case in list_cases()}
