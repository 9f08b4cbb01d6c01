"""JAX functions and training steps through weir.jax, against JAX itself."""

import functools

import numpy
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from conftest import run_blocks  # noqa: E402
from jax import lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

import weir  # noqa: E402
import weir.jax  # noqa: E402
import weir.stablehlo  # noqa: E402
from weir.building import run_compiler  # noqa: E402
from weir.graphs import print_graph  # noqa: E402
from weir.runtime import open_device  # noqa: E402

RANDOM = numpy.random.default_rng(0)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


def compare(function, *arguments, rtol=2e-5, atol=2e-6, **options):
    """Compares a function's results on the processor with JAX's, element types and nesting included."""
    with weir.jax.compile(function, *arguments, device="cpu", **options) as program:
        found, expected = program(*arguments), jax.jit(function, **options)(*arguments)
        assert jax.tree.structure(found) == jax.tree.structure(expected)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
            assert one.dtype == other.dtype or other.dtype == jnp.bfloat16
            numpy.testing.assert_allclose(one.numpy(), numpy.asarray(other), rtol=rtol, atol=atol)


def test_nested_arguments_and_results_keep_their_nesting():
    params = {"dense": {"kernel": normal(4, 5), "bias": normal(5)}, "scale": (normal(5), normal(5))}

    def apply(params, x, *rest):
        y = jax.nn.gelu(x @ params["dense"]["kernel"] + params["dense"]["bias"], approximate=False)
        return {"y": y * params["scale"][0], "rest": [jnp.square(rest[0]), None]}

    compare(apply, params, normal(3, 4), normal(2))
    exported = weir.jax.export(apply, params, normal(3, 4), normal(2))
    assert [argument.name for argument in exported.arguments] == [
        "params.dense.bias", "params.dense.kernel", "params.scale.0", "params.scale.1", "x", "rest.0"]
    assert exported.results == ["output.rest.0", "output.y"]
    assert "\"test_jax.py\"" in exported.text


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_optax_trains_inside_the_function(device):
    optax = pytest.importorskip("optax", reason="optax is not installed: scripts/setup --torch")
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))
    params = {"embed": normal(11, 6), "w": normal(6, 7)}
    tokens, labels = (RANDOM.integers(0, high, size).astype(numpy.int32) for high, size in ((11, (8, 3)), (7, 8)))

    def update(params, state, tokens, labels):
        def loss(params):
            scores = jnp.tanh(params["embed"][tokens].mean(1) @ params["w"])
            return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()

        value, gradients = jax.value_and_grad(loss)(params)
        changes, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, changes), state, value

    ours = theirs = (params, optimizer.init(params))
    with weir.jax.compile(update, *ours, tokens, labels, donate_argnums=(0, 1), device=device) as program:
        donated = {tensor.name for tensor in program.entries["main"].arguments if tensor.donated}
        assert {"params.embed", "params.w", "state.1.0.mu.embed"} <= donated
        for _ in range(4):
            *ours, value = program(*ours, tokens, labels)
            *theirs, expected = jax.jit(update)(*theirs, tokens, labels)
            assert float(value) == pytest.approx(float(expected), rel=1e-5)
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)):
            numpy.testing.assert_allclose(one.numpy(), other, rtol=1e-4, atol=1e-5)
        with pytest.raises(weir.Error, match="was donated to a run of main"):
            kept = ours[0]["w"]
            program(*ours, tokens, labels)
            kept.numpy()


def test_step_trains_by_gradients_of_weir():
    params, x, y = {"w": normal(6, 4), "b": normal(4), "count": numpy.int32(3)}, normal(5, 6), normal(5, 4)

    def loss(params, x, y):
        scores = x @ params["w"] + params["b"] + lax.stop_gradient(params["b"]) * params["count"]
        return jnp.mean((jax.nn.relu(scores) - y) ** 2), {"scores": scores}

    step = weir.jax.compile_step(loss, params, x, y, has_aux=True, optimizer=weir.SGD(learning_rate=0.1), device="cpu",
                                 predict=(lambda params, x: x @ params["w"], x[:2]))
    trained = {name: params[name] for name in ("w", "b")}
    for _ in range(3):
        (expected, aux), gradients = jax.value_and_grad(
            lambda part: loss(part | {"count": params["count"]}, x, y), has_aux=True)(trained)
        assert float(step(x, y)) == pytest.approx(float(expected), rel=1e-5)
        numpy.testing.assert_allclose(step.output["scores"].numpy(), aux["scores"], rtol=1e-5, atol=1e-5)
        trained = {name: trained[name] - 0.1 * gradients[name] for name in trained}
    assert step.params["count"] == 3 and step.steps == 3
    for name, value in trained.items():
        numpy.testing.assert_allclose(step.params[name], value, rtol=1e-4, atol=1e-5)
    numpy.testing.assert_allclose(step.predict(x[:2]).numpy(), x[:2] @ step.params["w"], rtol=1e-4, atol=1e-5)


def test_checkpoint_of_a_step_continues_it(tmp_path):
    params, x = {"w": normal(3, 3)}, normal(2, 3)
    make = functools.partial(weir.jax.compile_step, lambda params, x: jnp.sum((x @ params["w"]) ** 2), params, x,
                             optimizer=weir.AdamW(learning_rate=0.1), device="cpu")
    with make() as step, make() as resumed:
        step(x)
        step.save(tmp_path / "checkpoint.safetensors")
        resumed.load(tmp_path / "checkpoint.safetensors")
        assert resumed.steps == 1 and resumed(x).item() == step(x).item()


def test_rules_of_the_users_own_are_refused_where_gradients_are_weirs():
    @jax.custom_vjp
    def clipped(x):
        return x * 2

    clipped.defvjp(lambda x: (clipped(x), None), lambda _, g: (jnp.clip(g, -1, 1),))
    with pytest.raises(weir.jax.ExportError, match=r"clipped at .*test_jax.py.* derivative rule of its own"):
        weir.jax.compile_step(lambda params, x: (clipped(params) * x).sum(), normal(3), normal(3), device="cpu")
    compare(jax.grad(lambda x: clipped(x).sum()), normal(3))


NUMBERS = numpy.array([[3, -1, numpy.nan, 0.0, -0.0, 7], [2, numpy.inf, -numpy.inf, 2, 5, -3]], numpy.float32)


@pytest.mark.parametrize("function", [
    lambda x: jnp.sort(x), lambda x: jnp.argsort(x, axis=0), lambda x: jnp.argsort(x, descending=True),
    lambda x: lax.top_k(x, 3), lambda x: lax.sort((x > 0, x, -x), num_keys=2), lambda x: jnp.argmax(x, 1),
], ids=["sort", "argsort", "descending", "top_k", "keys", "argmax"])
def test_sorting_orders_nan_and_equal_elements_as_jax_does(function):
    compare(function, NUMBERS)


@pytest.mark.parametrize("keys", [
    (normal(2, 2500),), (numpy.tile(NUMBERS.reshape(-1), 200),), (numpy.arange(3000, dtype=numpy.int32) * 7 % 5, normal(3000)),
], ids=["floats", "ties", "two"])
def test_long_rows_are_merged(keys):
    def sort(*keys):
        numbers = lax.broadcasted_iota(jnp.int32, keys[0].shape, keys[0].ndim - 1)
        return lax.sort((*keys, numbers), num_keys=len(keys)), lax.top_k(keys[-1], 40)

    compare(sort, *keys, rtol=0, atol=0)


@pytest.mark.parametrize("function", [
    jnp.cumsum, jnp.cumprod, lambda x: lax.cummax(x, 1), lambda x: lax.cummin(x, 0, reverse=True),
    lambda x: lax.cumlogsumexp(x, 1), lambda x: jnp.cumsum(x.astype(jnp.int32), 1),
], ids=["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "integers"])
def test_cumulative_operations(function):
    compare(function, normal(3, 5))


PLACES = numpy.array([4, 0, 4, -1, 9, 2], numpy.int32)


@pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds"])
@pytest.mark.parametrize("kind", ["add", "multiply", "min", "max", "set"])
def test_scatters(kind, mode):
    places = numpy.array([1, 0, 1, 3], numpy.int32) if mode == "promise_in_bounds" else PLACES
    compare(lambda x, u: getattr(x.at[places], kind)(u, mode=mode), normal(5, 3), normal(len(places), 3))
    compare(lambda x, u: getattr(x.at[1, places], kind)(u, mode=mode), normal(2, 5), normal(len(places)))


@pytest.mark.parametrize("function", [
    lambda x, i: x.at[i, i].add(1.0), lambda x, i: x.at[:, i].set(2.0), lambda x, i: x.at[1:3, 2:].add(x[:2, 2:]),
    lambda x, i: lax.dynamic_update_slice(x, x[:2, :2], (i[0], i[1])),
    lambda x, i: jax.vmap(lambda row, k: row.at[k].add(5.0))(x, i[:5]),
    lambda x, i: jax.grad(lambda x: (x[i] ** 2).sum())(x),
    lambda x, i: lax.scatter_add(x, i[:2, None], x[:2, :2, None].transpose(0, 2, 1), lax.ScatterDimensionNumbers(
        update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(1,)), mode="drop"),
], ids=["diagonal", "columns", "slice", "update_slice", "batched", "gather_gradient", "windows"])
def test_scatters_of_other_shapes(function):
    compare(function, normal(5, 5), numpy.array([3, 1, 0, 4, 2], numpy.int32))


def test_gradient_of_max_pooling():
    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2), (1, 2, 1), ((0, 0), (1, 1), (0, 1)))

    x = numpy.round(normal(2, 7, 5))  # with equal elements
    compare(pool, x)
    compare(lambda x: jax.grad(lambda x: (pool(x) * jnp.arange(5.0)).sum())(x), x)


def test_loops_of_known_length_and_branches():
    def scanned(x):
        last, all_ = lax.scan(lambda carry, row: (jnp.tanh(carry + row), carry * 2), x[0], x, reverse=True)
        return last, all_, lax.fori_loop(0, 5, lambda i, y: y * 0.5 + i, x)

    compare(scanned, normal(4, 3))
    compare(jax.grad(lambda x: scanned(x)[1].sum()), normal(4, 3))
    branches = [lambda x: x * 2, lambda x: x - 1, lambda x: x + x[0]]
    for i in (-1, 0, 2, 5):
        compare(lambda i, x: lax.switch(i, branches, x), numpy.int32(i), normal(3))


def test_long_loops_stay_loops():
    def scanned(x, rows):
        def step(carry, row):
            hidden = jnp.tanh(carry["h"] * 0.9 + row)
            return {"h": hidden, "n": carry["n"] + 1}, hidden * 2

        last, all_ = lax.scan(step, {"h": x, "n": 0}, rows)
        return last, all_, lax.fori_loop(0, 1500, lambda i, y: y * 0.5 + i % 3, x)

    x, rows = normal(3), normal(600, 3)
    compare(scanned, x, rows)
    compare(jax.grad(lambda x, rows: scanned(x, rows)[1].sum(), argnums=(0, 1)), x, rows)
    compare(lambda x, rows: lax.scan(lambda a, b: (a + b, None), x, rows, reverse=True, unroll=4)[0], x, rows)


def test_loops_decided_by_data():
    def search(x, limit):
        return lax.while_loop(lambda y: y[0].sum() < limit, lambda y: (y[0] * 2, y[1] + 1), (x, 0))

    for limit in (0, 10, 1000):
        compare(search, numpy.ones(3, numpy.float32), numpy.float32(limit))
    compare(lambda n, x: lax.fori_loop(0, n, lambda i, y: lax.switch(i % 3, [jnp.sin, jnp.cos, jnp.tanh], y), x),
            numpy.int32(5), normal(4))
    with pytest.raises(weir.jax.ExportError) as error:
        weir.jax.compile(lambda x: jnp.linalg.eig(x)[0].real, numpy.eye(3, dtype=numpy.float32), device="cpu")
    assert "without a form in linalg" in str(error.value)
    assert "eig, " in str(error.value) and "test_jax.py:" in str(error.value)


def test_branches_with_loops_inside():
    """Only the branch that is taken is computed: the others may not end."""
    def search(y):
        return lax.while_loop(lambda y: y.sum() != 12, lambda y: y + 1, y)

    def scanned(y):
        return lax.scan(lambda h, row: (jnp.tanh(h * y + row), h.sum()), y, ROWS)[0]

    ROWS = normal(40, 3)
    compare(lambda p, x: lax.cond(p, search, lambda y: y * 2, x), numpy.bool_(False), normal(3))
    compare(lambda p, x: lax.cond(p, search, lambda y: y * 2, x), numpy.bool_(True), numpy.ones(3, numpy.float32))
    for i in (-1, 0, 1, 5):
        compare(lambda i, x: lax.switch(i, [scanned, lambda y: y - 1, lambda y: scanned(lax.cond(
            y[0] > 0, scanned, lambda z: z, y))], x), numpy.int32(i), normal(3))
    for p in (False, True):
        compare(jax.grad(lambda x, p: lax.cond(p, scanned, jnp.exp, x).sum()), normal(3), numpy.bool_(p))


def test_gradients_by_weir_of_branches_with_loops_inside():
    def loss(parameters, x, p):
        return lax.cond(p, lambda w: lax.scan(lambda h, row: (jnp.tanh(h * w + row), None), w, x)[0],
                        lambda w: w * 3, parameters["w"]).sum()

    w, x = normal(3), normal(40, 3)
    for p in (False, True):
        step = weir.jax.compile_step(loss, {"w": w}, x, numpy.bool_(p), optimizer=weir.SGD(learning_rate=0.5), device="cpu")
        step(x, numpy.bool_(p))
        expected = w - 0.5 * jax.grad(loss)({"w": w}, x, p)["w"]
        numpy.testing.assert_allclose(step.params["w"], expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(weir.CompileError, match="data decide its number of trips"):
        weir.jax.compile_step(lambda parameters, x, p: lax.cond(p, lambda w: lax.while_loop(
            lambda h: h.sum() < 9, lambda h: h * 2, w), lambda w: w, parameters["w"]).sum(), {"w": w}, x, numpy.bool_(p),
            optimizer=weir.SGD(learning_rate=0.5), device="cpu")


def test_a_nan_of_a_branch_with_a_loop_names_its_trip():
    """The branch is a loop of one trip; the step that failed is undone."""
    def loss(parameters, x, p):
        return lax.cond(p, lambda w: lax.scan(lambda h, row: (jnp.tanh(h * w + row), None), jnp.log(w), x)[0],
                        lambda w: w * 3, parameters["w"]).sum()

    w, x = numpy.full(3, -1, numpy.float32), normal(40, 3)
    step = weir.jax.compile_step(loss, {"w": w}, x, numpy.bool_(False), optimizer=weir.SGD(learning_rate=0.0),
                                 check_values=True, device="cpu")
    step(x, numpy.bool_(False))
    with pytest.raises(weir.Error, match=r"step 2: loss is NaN: dispatch .* in trip 1.* is the first that makes a NaN, in '"):
        step(x, numpy.bool_(True))
    step(x, numpy.bool_(False))
    assert step.steps == 2 and (step.params["w"] == w).all()


@pytest.mark.parametrize("is_left", [False, True])
@pytest.mark.parametrize("options", [{}, {"lower": True}, {"transpose_a": True}, {"lower": True, "unit_diagonal": True}],
                         ids=str)
def test_triangular_matrices_are_solved(is_left, options):
    """The other triangle is not read."""
    a = normal(2, 5, 5) + 4 * numpy.eye(5, dtype=numpy.float32)
    compare(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=is_left, **options), a,
            normal(2, 5, 3) if is_left else normal(2, 3, 5), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("index, sign", [(-1, 1.0), (0, -2.0), (1, 0.0), (9, 5.0)])
def test_stablehlo_chooses_among_computed_branches(index, sign):
    """An index that is out of range takes the last one, as StableHLO says."""
    text = """func.func @main(%index: tensor<i32>, %x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %first = stablehlo.slice %x [0:1] : (tensor<3xf32>) -> tensor<1xf32>
      %scalar = stablehlo.reshape %first : (tensor<1xf32>) -> tensor<f32>
      %is_more = stablehlo.compare GT, %scalar, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %kept, %same = stablehlo.optimization_barrier %x, %is_more : tensor<3xf32>, tensor<i1>
      %one = "stablehlo.if"(%same) ({
        %sum = stablehlo.add %kept, %kept : tensor<3xf32>
        %again = "stablehlo.case"(%index) ({
          stablehlo.return %sum : tensor<3xf32>
        }, {
          stablehlo.return %kept : tensor<3xf32>
        }) : (tensor<i32>) -> tensor<3xf32>
        stablehlo.return %again : tensor<3xf32>
      }, {
        stablehlo.return %kept : tensor<3xf32>
      }) : (tensor<i1>) -> tensor<3xf32>
      %two = "stablehlo.case"(%index) ({
        stablehlo.return %kept : tensor<3xf32>
      }, {
        %negative = stablehlo.negate %kept : tensor<3xf32>
        stablehlo.return %negative : tensor<3xf32>
      }, {
        %square = stablehlo.multiply %kept, %kept : tensor<3xf32>
        stablehlo.return %square : tensor<3xf32>
      }) : (tensor<i32>) -> tensor<3xf32>
      return %one, %two : tensor<3xf32>, tensor<3xf32>
    }"""
    x = numpy.array([sign, 2, 3], numpy.float32)
    graph = print_graph(weir.stablehlo.lower(text, "main"))
    path, _folder = run_compiler(graph, open_device("cpu"), None, [])
    with weir.load(path, device="cpu") as program:
        found = program(numpy.array(index, numpy.int32), x)
    one = 2 * x if sign > 0 and index == 0 else x
    two = {0: x, 1: -x}.get(index, x * x)
    for value, wanted in zip(found.values(), (one, two), strict=True):
        assert (value.numpy() == wanted).all()


def test_random_numbers_are_jaxs():
    def draw(key, x):
        return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0), jax.random.bits(key, (3,))

    compare(draw, jax.random.PRNGKey(3), normal(4, 5), rtol=0, atol=0)
    with pytest.raises(weir.jax.ExportError, match="key is a typed key"):
        weir.jax.export(draw, jax.random.key(0), normal(2))


def test_complex_numbers():
    def transform(x, factors, y):
        z = jnp.fft.fft2(x * factors["a"]) + jnp.exp(1j * y)
        return {"z": jnp.sqrt(z), "size": jnp.abs(z).sum(), "product": jnp.prod(x, axis=1), "square": x @ x.T.conj(),
                "added": x.at[jnp.array([0, 2])].add(x[:2]), "smooth": jnp.fft.irfft(jnp.fft.rfft(y) * 0.5),
                "windows": lax.reduce_window(x, numpy.complex64(0), lax.add, (2, 3), (1, 1), "VALID"),
                "convolved": jnp.convolve(x[0], x[1]), "angles": jnp.arcsin(x) + jnp.angle(x)}

    x = (normal(4, 6) + 1j * normal(4, 6)).astype(numpy.complex64)
    factors, y = {"a": numpy.complex64(2 - 1j)}, normal(4, 6)
    with weir.jax.compile(transform, x, factors, y, device="cpu") as program:
        found, expected = program(x, factors, y), jax.jit(transform)(x, factors, y)
        assert jax.tree.structure(found) == jax.tree.structure(expected)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
            assert one.dtype == other.dtype
            numpy.testing.assert_allclose(numpy.asarray(one), numpy.asarray(other), rtol=1e-4, atol=1e-4)
        with pytest.raises(TypeError, match="x is float32, but the program was compiled for complex64"):
            program(y, factors, y)
    exported = weir.jax.export(transform, x, factors, y)
    assert [argument.name for argument in exported.arguments] == [
        "x.real", "x.imag", "factors.a.real", "factors.a.imag", "y"]
    assert "output.z.imag" in exported.results and "output.size" in exported.results
    with pytest.raises(weir.jax.ExportError, match="a is complex64; a step holds parameters of floats"):
        weir.jax.compile_step(lambda p, y: jnp.abs(p["a"] * y).mean(), factors, y, device="cpu")


def test_gradients_through_complex_numbers_are_weirs():
    functions = (jnp.sqrt, jnp.exp, jnp.log, jnp.sin, jnp.cos, jnp.tanh, jnp.tan, jnp.expm1, jnp.log1p, jnp.arctanh,
                 jnp.arcsin, jnp.arctan, jnp.square, jnp.abs, lax.rsqrt, lax.logistic,
                 lambda z: (2 + 1j) / z, lambda z: z / (z + 1), lambda z: z ** (1.5 - 0.5j), lambda z: lax.stop_gradient(z) * z)

    def loss(params, weights):
        z = lax.complex(params["x"], params["y"])
        parts = [jnp.sum(jnp.real(function(row) * weights)) for function, row in zip(functions, z, strict=True)]
        return sum(parts) + jnp.mean(jnp.abs(jnp.fft.rfft(params["x"])) ** 2)

    # On both axes, where a formula by absolute values has no slope, on diagonals, and inside of the circle and outside.
    x = numpy.array([0.25, 0.0, 1.0, 0.0, -0.5, 0.5, -0.75, 1.5], numpy.float32)
    y = numpy.array([0.0, 0.75, 1.0, -1.5, 0.5, -0.5, 0.25, -0.125], numpy.float32)
    params = {"x": numpy.tile(x, (len(functions), 1)), "y": numpy.tile(y, (len(functions), 1))}
    weights = (normal(8) + 1j * normal(8)).astype(numpy.complex64)
    with weir.jax.compile_step(loss, params, weights, optimizer=weir.SGD(learning_rate=1.0), device="cpu") as step:
        expected = jax.grad(loss)(params, weights)
        assert float(step(weights)) == pytest.approx(float(loss(params, weights)), rel=1e-5)
        for name, value in params.items():
            numpy.testing.assert_allclose(value - step.params[name], expected[name], rtol=1e-3, atol=1e-4)


def test_integers_of_4_bits():
    def scale(q, s, x):
        return x @ (q.astype(jnp.float32) * s), q + jnp.int4(3), jnp.sum(q, axis=0, dtype=jnp.int32), q > 2

    q = jnp.asarray(RANDOM.integers(-8, 8, (6, 5)), jnp.int4)
    s, x = numpy.float32(0.1), normal(2, 6)
    with weir.jax.compile(scale, q, s, x, device="cpu") as program:
        found, expected = program(q, s, x), jax.jit(scale)(q, s, x)
        assert [value.dtype for value in found] == [numpy.float32, numpy.int8, numpy.int32, numpy.bool_]
        for one, other in zip(found, expected):
            numpy.testing.assert_allclose(one.numpy(), numpy.asarray(other.astype(jnp.float32)), rtol=1e-5)
        program(found[1], s, x)  # bytes are taken, too


def test_unsigned_integers():
    image = RANDOM.integers(0, 256, (4, 4)).astype(numpy.uint8)
    compare(lambda x: (x + x, x // 3, x % 7, x > 200, x.astype(jnp.float32), jnp.maximum(x, 128), x >> 1), image)
    compare(lambda x: (x * x, x // 5, x.max(), jnp.sort(x, axis=1)), image.astype(numpy.uint32) * 2**24)


def test_bfloat16_is_given_as_its_bits():
    with weir.jax.compile(lambda x: x * 2, jnp.ones(3, jnp.bfloat16), device="cpu") as program:
        result = program(jnp.arange(3, dtype=jnp.bfloat16))
        assert (result.numpy().view(jnp.bfloat16) == jnp.array([0, 2, 4], jnp.bfloat16)).all()


def test_calls_that_do_not_fit_are_refused():
    def power(tree, n):
        return jax.tree.map(lambda x: x**n, tree)

    tree = {"a": normal(2), "b": normal(3)}
    compare(power, tree, 3, static_argnums=1)
    with weir.jax.compile(power, tree, 3, static_argnums=1, device="cpu") as program:
        with pytest.raises(ValueError, match="n is 2, but the program was compiled for 3"):
            program(tree, 2)
        with pytest.raises(TypeError, match="tree is nested as"):
            program({"a": tree["a"]}, 3)
        with pytest.raises(TypeError, match="a call takes tree, n; 1 arguments are given"):
            program(tree)
        with pytest.raises(ValueError, match=r"tree.a is float32\[3\], expected float32\[2\]"):
            program({"a": tree["b"], "b": tree["b"]}, 3)


def test_several_examples_are_entries():
    def scale(tree, n):
        return jax.tree.map(lambda x: x * n, tree)

    first, second = {"a": normal(2), "b": normal(3)}, {"a": normal(7)}
    with weir.jax.compile(scale, examples=[(first, 3), (second, 4)], static_argnums=1, device="cpu") as program:
        assert list(program.entries) == ["main.0", "main.1"]
        numpy.testing.assert_array_equal(program(second, 4)["a"].numpy(), second["a"] * 4)
        numpy.testing.assert_array_equal(program(first, 3)["b"].numpy(), first["b"] * 3)
        with pytest.raises(ValueError, match=r"no entry takes these arguments; main.0: tree is nested as .*; "
                                             r"main.1: tree.a is float32\[2\], expected float32\[7\]"):
            program({"a": first["a"]}, 4)
    for wrong in ({"examples": []}, {"examples": [(first, 3)]}):
        with pytest.raises(TypeError, match="give the arguments of one call, or a list of examples"):
            weir.jax.compile(scale, *((first, 3) if wrong["examples"] else ()), **wrong, device="cpu")


def test_precisions_that_a_device_has_not_are_refused():
    x = normal(3, 3)
    with pytest.raises(weir.CompileError, match="--precision=tf32: profile .* has no instructions on matrices"):
        weir.jax.compile(jnp.dot, x, x, device="cpu", precision="tf32")
    with pytest.raises(weir.CompileError, match="--precision=tf32: profile .* has no instructions on matrices"):
        weir.jax.compile_step(lambda w, x: jnp.dot(w, x).sum(), x, x, device="cpu", precision="tf32")


def test_loss_must_be_one_float():
    with pytest.raises(weir.jax.ExportError, match=r"the loss is float32\[3\]; it must be one float of rank 0"):
        weir.jax.compile_step(lambda params: params * 2, normal(3), device="cpu")


def test_page(tmp_path, monkeypatch):
    pytest.importorskip("optax", reason="optax is not installed: scripts/setup --torch")
    monkeypatch.chdir(tmp_path)
    count, names = run_blocks("jax.md")
    assert count == 3 and names["step"].steps == 3
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint.safetensors"}


def test_booleans_add_as_logic():
    flags = numpy.array([[True, True, False], [False, True, False]])
    compare(lambda x: (jnp.add(x, x), jnp.multiply(x, x[::-1]), x.sum(0), x.any(0), x.all(1)), flags)


def test_gradients_at_kinks_are_jaxs():
    params = {"w": numpy.array([-1, 0, -0.0, 2, 6, 7], numpy.float32)}
    x = numpy.arange(1, 7, dtype=numpy.float32)

    def loss(params, x):
        return ((jax.nn.relu(params["w"]) + jax.nn.relu6(params["w"]) * 3 + jnp.abs(params["w"]) * 5
                 + jax.lax.clamp(-1.0, params["w"], 6.0) * 7
                 + jax.nn.softplus(params["w"]) + jnp.logaddexp2(params["w"], 0) + jnp.copysign(params["w"] + 0.5, -x)) * x).sum()

    with weir.jax.compile_step(loss, params, x, optimizer=weir.SGD(learning_rate=1.0), device="cpu") as step:
        step(x)
        expected = params["w"] - jax.grad(loss)(params, x)["w"]
        numpy.testing.assert_allclose(step.params["w"], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(weir.jax.ExportError, match="derivative rule of its own"):
        weir.jax.compile_step(lambda w: jax.scipy.special.xlogy(w, w).sum(), x, device="cpu")
