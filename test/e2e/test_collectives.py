"""Gradients of graphs with collectives: sections of several ranks, exchanged here, against differences of the whole."""

import numpy
import pytest
from safetensors.numpy import load_file, save_file

RANKS = 3
GRID = (2, 3)

# Every collective, and every way in which a value that all ranks share meets one that differs: x is read whole and in
# slices, w twice, g by one rank and by all. n is gathered, and read by one rank and by all.
TEXT = """
shard.grid @ranks(shape = 3)
func.func @f(%x: tensor<6x4xf64> {weir.name = "x"},
             %w: tensor<4x2xf64> {weir.name = "w", weir.sharded},
             %v: tensor<2x4xf64> {weir.name = "v", weir.sharded},
             %g: tensor<4xf64> {weir.name = "g"},
             %n: tensor<2xf64> {weir.name = "n", weir.sharded = "unit"}) -> (tensor<6x4xf64> {weir.name = "y"}) {
  %zero = arith.constant 0.0 : f64
  %e2 = tensor.empty() : tensor<6x2xf64>
  %e4 = tensor.empty() : tensor<6x4xf64>
  %er = tensor.empty() : tensor<2x4xf64>
  %z2 = linalg.fill ins(%zero : f64) outs(%e2 : tensor<6x2xf64>) -> tensor<6x2xf64>
  %z4 = linalg.fill ins(%zero : f64) outs(%e4 : tensor<6x4xf64>) -> tensor<6x4xf64>
  %h = linalg.matmul ins(%x, %w : tensor<6x4xf64>, tensor<4x2xf64>) outs(%z2 : tensor<6x2xf64>) -> tensor<6x2xf64>
  %t = linalg.tanh ins(%h : tensor<6x2xf64>) outs(%e2 : tensor<6x2xf64>) -> tensor<6x2xf64>
  %row = shard.all_gather %n on @ranks grid_axes = [0] gather_axis = 0 : tensor<2xf64> -> tensor<6xf64>
  %column = tensor.expand_shape %row [[0, 1]] output_shape [6, 1] : tensor<6xf64> into tensor<6x1xf64>
  %i = linalg.matmul ins(%t, %v : tensor<6x2xf64>, tensor<2x4xf64>) outs(%z4 : tensor<6x4xf64>) -> tensor<6x4xf64>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%i, %column : tensor<6x4xf64>, tensor<6x1xf64>) outs(%e4 : tensor<6x4xf64>) {
  ^bb0(%a: f64, %b: f64, %out: f64):
    %1 = arith.mulf %a, %b : f64
    linalg.yield %1 : f64
  } -> tensor<6x4xf64>
  %s = shard.reduce_scatter %p on @ranks grid_axes = [0] scatter_axis = 0 : tensor<6x4xf64> -> tensor<2x4xf64>
  %own = shard.all_slice %x on @ranks grid_axes = [0] slice_axis = 0 : tensor<6x4xf64> -> tensor<2x4xf64>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                                        affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%s, %own, %g : tensor<2x4xf64>, tensor<2x4xf64>, tensor<4xf64>) outs(%er : tensor<2x4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64, %out: f64):
    %1 = arith.mulf %a, %c : f64
    %2 = arith.mulf %1, %b : f64
    linalg.yield %2 : f64
  } -> tensor<2x4xf64>
  %u = shard.all_gather %r on @ranks grid_axes = [0] gather_axis = 0 : tensor<2x4xf64> -> tensor<6x4xf64>
  %k = linalg.matmul ins(%u, %w : tensor<6x4xf64>, tensor<4x2xf64>) outs(%z2 : tensor<6x2xf64>) -> tensor<6x2xf64>
  %q = linalg.matmul ins(%k, %v : tensor<6x2xf64>, tensor<2x4xf64>) outs(%z4 : tensor<6x4xf64>) -> tensor<6x4xf64>
  %sum = shard.all_reduce %q on @ranks grid_axes = [0] : tensor<6x4xf64> -> tensor<6x4xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                                        affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%sum, %x, %g, %row : tensor<6x4xf64>, tensor<6x4xf64>, tensor<4xf64>, tensor<6xf64>)
      outs(%e4 : tensor<6x4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64, %d: f64, %out: f64):
    %1 = arith.mulf %b, %c : f64
    %2 = arith.mulf %1, %d : f64
    %3 = arith.addf %a, %2 : f64
    linalg.yield %3 : f64
  } -> tensor<6x4xf64>
  return %y : tensor<6x4xf64>
}
"""


# A grid: x differs along its first axis, w and v along its second one, and g is the same everywhere.
GRID_TEXT = """
shard.grid @ranks(shape = 2x3)
func.func @f(%x: tensor<6x4xf64> {weir.name = "x", weir.sharded = array<i64: 0>},
             %w: tensor<4x2xf64> {weir.name = "w", weir.sharded = array<i64: 1>},
             %v: tensor<2x4xf64> {weir.name = "v", weir.sharded = array<i64: 1>},
             %g: tensor<4xf64> {weir.name = "g"}) -> (tensor<6x4xf64> {weir.name = "y"}) {
  %zero = arith.constant 0.0 : f64
  %e2 = tensor.empty() : tensor<6x2xf64>
  %e4 = tensor.empty() : tensor<6x4xf64>
  %z2 = linalg.fill ins(%zero : f64) outs(%e2 : tensor<6x2xf64>) -> tensor<6x2xf64>
  %z4 = linalg.fill ins(%zero : f64) outs(%e4 : tensor<6x4xf64>) -> tensor<6x4xf64>
  %h = linalg.matmul ins(%x, %w : tensor<6x4xf64>, tensor<4x2xf64>) outs(%z2 : tensor<6x2xf64>) -> tensor<6x2xf64>
  %t = linalg.tanh ins(%h : tensor<6x2xf64>) outs(%e2 : tensor<6x2xf64>) -> tensor<6x2xf64>
  %p = linalg.matmul ins(%t, %v : tensor<6x2xf64>, tensor<2x4xf64>) outs(%z4 : tensor<6x4xf64>) -> tensor<6x4xf64>
  %own = shard.reduce_scatter %p on @ranks grid_axes = [1] scatter_axis = 0 : tensor<6x4xf64> -> tensor<2x4xf64>
  %s = shard.all_gather %own on @ranks grid_axes = [1] gather_axis = 0 : tensor<2x4xf64> -> tensor<6x4xf64>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                                        affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%s, %x, %g : tensor<6x4xf64>, tensor<6x4xf64>, tensor<4xf64>) outs(%e4 : tensor<6x4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64, %out: f64):
    %1 = arith.addf %a, %b : f64
    %2 = arith.mulf %1, %c : f64
    linalg.yield %2 : f64
  } -> tensor<6x4xf64>
  %y = shard.all_reduce %r on @ranks grid_axes = [0] : tensor<6x4xf64> -> tensor<6x4xf64>
  return %y : tensor<6x4xf64>
}
"""


def compute(x, w, v, g, n):
    """The graph, with w, v and n of all ranks."""
    rows = n.reshape(-1, 1)
    products = sum(numpy.tanh(x @ a) @ b * rows for a, b in zip(w, v))
    return sum(products * x * g @ a @ b for a, b in zip(w, v)) + x * g * rows


def compute_grid(x, w, v, g):
    """The graph of the grid, with x, w and v along their axes."""
    return sum((sum(numpy.tanh(each @ a) @ b for a, b in zip(w, v)) + each) * g for each in x)


def take_differences(values, cotangent, compute=compute):
    """Returns the gradients of all values."""
    found = {}
    for name, value in values.items():
        found[name] = numpy.zeros_like(value)
        for place in numpy.ndindex(value.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = value.copy()
                moved[place] += step
                ends.append(numpy.sum(cotangent * compute(**values | {name: moved})))
            found[name][place] = (ends[0] - ends[1]) / 2e-5
    return found


def exchange(kind, axis, values):
    """Returns what each rank receives."""
    ranks = len(values)
    if kind == "all_slice":
        return [numpy.split(value, ranks, axis)[rank] for rank, value in enumerate(values)]
    if kind == "all_gather":
        return [numpy.concatenate(values, axis)] * ranks
    total = sum(values)
    return [total] * ranks if kind == "all_reduce" else numpy.split(total, ranks, axis)


class Ranks:
    """The sections of f.vjp, run for all ranks of a grid in one process."""

    def __init__(self, weir, text=TEXT, shape=(RANKS,)):
        self.weir = weir
        self.places = numpy.arange(numpy.prod(shape)).reshape(shape)
        self.artifact = weir.compile_text(text, "collectives", "--vjp=f", "--entry=f.vjp")
        self.entries = sorted(weir.inspect(self.artifact)["entries"],
                              key=lambda entry: int(entry["name"].rpartition(".")[2]))
        assert [entry["name"] for entry in self.entries] == [f"f.vjp.section.{i}" for i in range(len(self.entries))]

    def run(self, known, exchange=exchange, device="reference"):
        """Returns the results of each rank for the arguments of each."""
        for entry in self.entries:
            for name in (tensor["name"] for tensor in entry["arguments"]):
                if name.startswith("gathered."):
                    _, axis, own = name.split(".")
                    for values, value in zip(known, exchange("all_gather", int(axis), [each[own] for each in known])):
                        values[name] = value
            made = [self.run_one(entry, values, device) for values in known]
            for values, results in zip(known, made):
                values |= results
            for name in made[0]:
                if name.startswith("sent."):
                    _, number, kind, *axis = name.split(".")
                    kind, _, along = kind.partition("@")
                    lines = numpy.moveaxis(self.places, int(along or 0), -1)
                    for line in lines.reshape(-1, lines.shape[-1]):
                        received = exchange(kind, *map(int, axis or [0]), [made[rank][name] for rank in line])
                        for rank, value in zip(line, received):
                            known[rank][f"received.{number}"] = value
            for values in known:  # what is donated is gone
                for tensor in entry["arguments"]:
                    if tensor.get("donate"):
                        del values[tensor["name"]]
        return known

    def run_one(self, entry, values, device):
        needed = {tensor["name"]: numpy.ascontiguousarray(values[tensor["name"]]) for tensor in entry["arguments"]}
        save_file(needed, self.weir.folder / "in.safetensors")
        self.weir.run("run", self.artifact, f"--entry={entry['name']}", f"--device={device}", "--input=in.safetensors",
                      "--output=out.safetensors")
        return load_file(self.weir.folder / "out.safetensors")


@pytest.fixture(scope="module")
def case():
    random = numpy.random.default_rng(3)
    values = {name: random.standard_normal(shape) for name, shape in
              {"x": (6, 4), "w": (RANKS, 4, 2), "v": (RANKS, 2, 4), "g": (4,), "n": (RANKS, 2)}.items()}
    cotangent = random.standard_normal((6, 4))
    known = [values | {name: values[name][rank] for name in "wvn"} | {"cotangent.y": cotangent}
             for rank in range(RANKS)]
    return values, cotangent, known


def measure(made, expected):
    """Returns the largest error of a gradient, relative to the largest element."""
    errors = {}
    for name, gradient in expected.items():
        for rank in range(RANKS):
            wanted = gradient[rank] if name in "wvn" else gradient
            errors[name, rank] = numpy.abs(made[rank][f"grad.{name}"] - wanted).max() / numpy.abs(gradient).max()
    return max(errors.values())


@pytest.mark.parametrize("device", ["reference", "vulkan"])
def test_each_gradient_is_counted_once(weir, case, device):
    values, cotangent, known = case
    made = Ranks(weir).run([dict(each) for each in known], device=device)
    for results in made:
        numpy.testing.assert_allclose(results["y"], compute(**values), rtol=1e-12)
        for name in ("y", "grad.x", "grad.g"):  # the same bits on all ranks
            assert (results[name] == made[0][name]).all()
    assert measure(made, take_differences(values, cotangent)) < 1e-8


@pytest.mark.parametrize("kind", ["all_reduce", "reduce_scatter", "all_gather", "all_slice"])
def test_a_wrong_exchange_is_seen(weir, case, kind):
    """The twin: a rank gets its own value in place of a sum, or the slice of another."""
    def wrong(which, axis, values):
        if which != kind:
            return exchange(which, axis, values)
        return {"all_reduce": lambda: values,
                "reduce_scatter": lambda: [numpy.split(value, RANKS, axis)[rank] for rank, value in enumerate(values)],
                "all_gather": lambda: exchange(which, axis, values[::-1]),
                "all_slice": lambda: [numpy.split(value, RANKS, axis)[0] for value in values]}[kind]()

    values, cotangent, known = case
    made = Ranks(weir).run([dict(each) for each in known], wrong)
    assert measure(made, take_differences(values, cotangent)) > 1e-3


def test_a_grid_of_two_axes(weir):
    random = numpy.random.default_rng(5)
    values = {name: random.standard_normal(shape) for name, shape in
              {"x": (GRID[0], 6, 4), "w": (GRID[1], 4, 2), "v": (GRID[1], 2, 4), "g": (4,)}.items()}
    cotangent = random.standard_normal((6, 4))
    known = [{"x": values["x"][i], "w": values["w"][j], "v": values["v"][j], "g": values["g"], "cotangent.y": cotangent}
             for i in range(GRID[0]) for j in range(GRID[1])]
    made = Ranks(weir, GRID_TEXT, GRID).run(known)
    expected = take_differences(values, cotangent, compute_grid)
    for rank, results in enumerate(made):
        numpy.testing.assert_allclose(results["y"], compute_grid(**values), rtol=1e-12)
        for name, wanted in {"x": expected["x"][rank // GRID[1]], "w": expected["w"][rank % GRID[1]],
                             "v": expected["v"][rank % GRID[1]], "g": expected["g"]}.items():
            numpy.testing.assert_allclose(results[f"grad.{name}"], wanted, rtol=1e-6, atol=1e-8)
        # The same bits along the axes that a value does not differ along.
        assert (results["y"] == made[0]["y"]).all() and (results["grad.g"] == made[0]["grad.g"]).all()
        assert (results["grad.x"] == made[rank // GRID[1] * GRID[1]]["grad.x"]).all()
        assert (results["grad.w"] == made[rank % GRID[1]]["grad.w"]).all()
