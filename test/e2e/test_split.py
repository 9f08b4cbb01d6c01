"""Backward in two passes: input pass and weight pass make the bits of the whole backward,
on the reference, on Vulkan and on the simulator, and count no use of a weight twice."""

import random

import numpy
import pytest
from graphs import make
from models import Model
from safetensors.numpy import load_file, save_file

DTYPES = {"F32": numpy.float32, "F64": numpy.float64, "I64": numpy.int64, "I32": numpy.int32, "BOOL": numpy.bool_}
ENTRIES = ["f.vjp", "f.forward", "f.backward_input", "f.backward_weight"]


def have_same_bits(one, other):
    """But for signs and payloads of NaNs."""
    if one.dtype.kind != "f":
        return (one == other).all()
    same = (one == other) & (numpy.signbit(one) == numpy.signbit(other))
    return numpy.where(numpy.isnan(one), numpy.isnan(other), same).all()


class Split:
    """A graph with f.vjp and its three parts."""

    def __init__(self, weir, text, *flags, validated=False):
        self.weir, self.validated = weir, validated
        self.artifact = weir.compile_text(text, "split", "--vjp=f", "--split=f", "--entry=f.vjp", *flags)
        seen = weir.inspect(self.artifact)
        self.entries = {entry["name"]: entry for entry in seen["entries"]}
        self.plans = {plan["entry"]: plan for plan in seen["plans"]}
        assert sorted(self.entries) == sorted(ENTRIES)

    def arguments(self, entry):
        return {tensor["name"]: tensor for tensor in self.entries[entry]["arguments"]}

    def results(self, entry):
        return [tensor["name"] for tensor in self.entries[entry]["results"]]

    def make_inputs(self, seed):
        """The arguments of f.vjp."""
        random = numpy.random.default_rng(seed)
        return {name: (random.integers(0, 2, tensor["shape"]) if tensor["dtype"][0] in "IB"
                       else random.standard_normal(tensor["shape"])).astype(DTYPES[tensor["dtype"]])
                for name, tensor in self.arguments("f.vjp").items()}

    def run(self, entry, tensors, device="vulkan"):
        needed = {name: numpy.asarray(tensors[name], order="C") for name in self.arguments(entry)}
        save_file(needed, self.weir.folder / "in.safetensors")
        self.weir.run("run", self.artifact, f"--entry={entry}", f"--device={device}", "--input=in.safetensors",
                      "--output=out.safetensors", validated=self.validated and device == "vulkan")
        made = load_file(self.weir.folder / "out.safetensors")
        if device == "vulkan":
            for name, tensor in self.run(entry, tensors, "sim").items():
                assert have_same_bits(tensor, made[name]), f"sim has other bits of {name}"
        return made

    def run_parts(self, inputs, device="vulkan", accumulators=None):
        """Runs forward, input pass and weight pass, and returns their results. Each tape and each saved
        value is given to the entry that consumes it, and to none after that."""
        known = dict(inputs)
        for name, tensor in self.arguments("f.backward_weight").items():
            if name.startswith("grad."):  # -0.0 + x is x, bit by bit
                known[name] = numpy.full(tensor["shape"], -0.0, DTYPES[tensor["dtype"]])
        known |= accumulators or {}
        for entry in ENTRIES[1:]:
            made = self.run(entry, known, device)
            for name, tensor in self.arguments(entry).items():
                if tensor.get("donate"):
                    del known[name]
            assert not set(made) & {name for name in known if not name.startswith("grad.")} - set(inputs)
            known |= made
        handed = [name for name in known if name.split(".")[0] in ("tape", "saved") and name not in inputs]
        assert not handed, "handed on and never consumed"
        return known

    def check_law(self, seed):
        """The whole backward is its parts, bit by bit; returns what they give on Vulkan."""
        inputs = self.make_inputs(seed)
        for device in "reference", "vulkan":
            whole, parts = self.run("f.vjp", inputs, device), self.run_parts(inputs, device)
            for name, tensor in whole.items():
                assert have_same_bits(tensor, parts[name]), f"{device} has other bits of {name}"
        self.weir.run("verify", self.artifact)
        return parts


def type_of(shape, element="f32"):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


class Writer:
    """A function of x and w, of matrices."""

    def __init__(self, x, w, other=""):
        self.shapes, self.lines, self.count, self.other = {"%x": x, "%w": w}, [], 0, other

    def add(self, text, shape):
        self.count += 1
        name = f"%v{self.count}"
        self.shapes[name] = shape
        self.lines.append(f"  {name} = {text}")
        return name

    def matmul(self, a, b):
        shape = [self.shapes[a][0], self.shapes[b][1]]
        empty = self.add(f"tensor.empty() : {type_of(shape)}", shape)
        zeros = self.add(f"linalg.fill ins(%zero : f32) outs({empty} : {type_of(shape)}) -> {type_of(shape)}", shape)
        return self.add(f"linalg.matmul ins({a}, {b} : {type_of(self.shapes[a])}, {type_of(self.shapes[b])}) "
                        f"outs({zeros} : {type_of(shape)}) -> {type_of(shape)}", shape)

    def pointwise(self, body, *operands):
        shape = self.shapes[operands[0]]
        empty, type = self.add(f"tensor.empty() : {type_of(shape)}", shape), type_of(shape)
        maps = ", ".join(["affine_map<(i, j) -> (i, j)>"] * (len(operands) + 1))
        arguments = ", ".join(f"%a{i}: f32" for i in range(len(operands)))
        return self.add(f"""linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins({', '.join(operands)} : {', '.join([type] * len(operands))}) outs({empty} : {type}) {{
  ^bb0({arguments}, %o: f32):
    {body}
    linalg.yield %r : f32
  }} -> {type}""", shape)

    def relu(self, value):
        return self.pointwise("%r = arith.maximumf %a0, %zero : f32", value)

    def text(self, *results):
        types = ", ".join(type_of(self.shapes[result]) for result in results)
        named = ", ".join(f'{type_of(self.shapes[result])} {{weir.name = "y{i or ""}"}}'
                          for i, result in enumerate(results))
        lines = "\n".join(self.lines)
        return f"""
func.func @f(%x: {type_of(self.shapes["%x"])} {{weir.name = "x", weir.kind = "input"}},
             %w: {type_of(self.shapes["%w"])} {{weir.name = "w", weir.kind = "param"}}{self.other}) -> ({named}) {{
  %zero = arith.constant 0.0 : f32
{lines}
  return {', '.join(results)} : {types}
}}
"""


X, W = numpy.float32([[1.1, -0.7]]), numpy.float32([[0.4, -0.2], [0.7, 0.3]])
INNER, OUTER = [[0.22, 1.10], [-0.14, -0.70]], [[-0.05, -0.05], [-0.43, -0.43]]
RIGHT, TWICE = [[0.17, 1.05], [-0.57, -1.13]], [[0.39, 2.15], [-0.71, -1.83]]


def close(found, expected):
    return numpy.allclose(found, numpy.float32(expected), rtol=0, atol=1e-6)


@pytest.fixture
def case5(weir):
    writer = Writer([1, 2], [2, 2])
    return Split(weir, writer.text(writer.matmul(writer.matmul("%x", "%w"), "%w")), validated=True)


@pytest.mark.parametrize("device", ["reference", "vulkan", "sim"])
def test_background_case5(case5, device):
    inputs = {"x": X, "w": W, "cotangent.y": numpy.ones_like(X)}
    forward = case5.run("f.forward", inputs, device)
    assert close(forward["y"], [[-0.321, -0.119]])
    first = case5.run("f.backward_input", inputs | forward, device)
    assert close(first["grad.x"], [[-0.12, 0.44]])
    # The weight pass has what each use of w adds by itself, and nothing else.
    assert close(X.T @ first["saved.0"], INNER) and close(forward["tape.0"].T @ inputs["cotangent.y"], OUTER)
    for preset in 0.0, 0.5:
        sums = {"grad.w": numpy.full_like(W, preset)}
        found = case5.run("f.backward_weight", inputs | forward | first | sums, device)["grad.w"]
        assert close(found, numpy.array(RIGHT) + preset)
        for wrong in TWICE, INNER, OUTER:
            assert not close(found, numpy.array(wrong) + preset)
        assert not preset or not close(found, RIGHT), "overwritten"


def test_law_of_case5(case5):
    case5.check_law(1)


def test_two_microbatches_accumulate(case5):
    """The second adds to the sums of the first."""
    first, second = case5.make_inputs(1), case5.make_inputs(2)
    second["w"] = first["w"]
    alone = [case5.run_parts(inputs)["grad.w"] for inputs in (first, second)]
    both = case5.run_parts(second, accumulators={"grad.w": alone[0]})["grad.w"]
    assert (both == alone[0] + alone[1]).all() and not (both == alone[1]).all()


def test_argument_of_passes(case5):
    """The arguments and results of each entry, and the donated arguments."""
    assert case5.results("f.forward") == ["y", "tape.0"]
    assert list(case5.arguments("f.backward_input")) == ["w", "cotangent.y"]
    assert case5.results("f.backward_input") == ["grad.x", "saved.0"]
    weight = case5.arguments("f.backward_weight")
    assert list(weight) == ["x", "tape.0", "saved.0", "cotangent.y", "grad.w"]
    assert [name for name in weight if weight[name].get("donate")] == ["tape.0", "saved.0", "grad.w"]
    assert case5.results("f.backward_weight") == ["grad.w"]


def chain(writer, *factors):
    """x W W W: a product from the left."""
    value = "%x"
    for factor in factors:
        value = writer.matmul(value, factor)
    return value


def get_variants():
    def square(writer):
        return [writer.matmul("%x", writer.matmul("%w", "%w"))]

    def three(writer):
        return [chain(writer, "%w", "%w", "%w")]

    def relu(writer):
        return [writer.matmul(writer.relu(writer.matmul("%x", "%w")), "%w")]

    def parallel(writer):
        left, right = writer.matmul("%x", "%w"), writer.matmul(writer.relu("%x"), "%w")
        return [writer.pointwise("%r = arith.mulf %a0, %a1 : f32", left, right)]

    def seen_twice(writer):
        hidden = writer.matmul("%x", "%w")
        return [writer.matmul(hidden, "%w"), hidden]

    def weight_itself(writer):
        return [writer.matmul("%x", "%w"), writer.relu("%w"), "%w"]

    return [square, three, relu, parallel, seen_twice, weight_itself]


@pytest.mark.parametrize("sizes", [(1, 1), (3, 5), (0, 3), (2, 0)], ids=str)
@pytest.mark.parametrize("build", get_variants(), ids=lambda build: build.__name__)
def test_law_of_variants(weir, build, sizes):
    rows, width = sizes
    writer = Writer([rows, width], [width, width])
    Split(weir, writer.text(*build(writer))).check_law(rows + width)


@pytest.mark.parametrize("build, dx, dw", [
    (0, [[-0.12, 0.44]], RIGHT),
    (1, [[-0.136, 0.048]], [[-0.463, 0.113], [-0.121, -0.857]])], ids=["square", "three"])
def test_numbers_of_variants(weir, build, dx, dw):
    writer = Writer([1, 2], [2, 2])
    split = Split(weir, writer.text(*get_variants()[build](writer)))
    found = split.run_parts({"x": X, "w": W, "cotangent.y": numpy.ones_like(X)})
    assert close(found["grad.x"], dx) and close(found["grad.w"], dw)


def test_norm_and_product_share_a_weight(weir):
    """gamma scales a norm, whose VJP is the input pass's, and is a factor behind it."""
    text = """
func.func @f(%x: tensor<5x7xf32> {weir.name = "x"}, %gamma: tensor<7xf32> {weir.name = "gamma", weir.kind = "param"},
             %beta: tensor<7xf32> {weir.name = "beta", weir.kind = "param"}) -> tensor<5xf32> {
  %h = norm.layer_norm %x gamma(%gamma : tensor<7xf32>) beta(%beta : tensor<7xf32>)
       {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<5x7xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<5xf32>) -> tensor<5xf32>
  %y = linalg.matvec ins(%h, %gamma : tensor<5x7xf32>, tensor<7xf32>) outs(%zeros : tensor<5xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}
"""
    split = Split(weir, text)
    split.check_law(3)
    # What the product adds is a contraction of the weight pass; beta's sum is complete.
    assert "saved.1" in split.arguments("f.backward_weight")


def test_stage_with_integer_inputs(weir):
    """The input pass has no gradient to give, only what the weight pass needs."""
    text = """
func.func @f(%i: tensor<5xi32> {weir.name = "i"}, %w: tensor<5xf32> {weir.name = "w", weir.kind = "param"})
    -> (tensor<5xf32> {weir.name = "y"}) {
  %empty = tensor.empty() : tensor<5xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
      ins(%i, %w : tensor<5xi32>, tensor<5xf32>) outs(%empty : tensor<5xf32>) {
  ^bb0(%n: i32, %a: f32, %o: f32):
    %f = arith.sitofp %n : i32 to f32
    %p = arith.mulf %f, %a : f32
    linalg.yield %p : f32
  } -> tensor<5xf32>
  %y = linalg.mul ins(%h, %w : tensor<5xf32>, tensor<5xf32>) outs(%empty : tensor<5xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}
"""
    split = Split(weir, text)
    split.check_law(5)
    assert split.results("f.backward_input") == ["saved.0"]


def test_mlp(weir):
    """The example with its norm: sums are the weight pass's, the norm the input pass's; what
    no later pass reads is consumed in place."""
    source = (weir.examples / "mlp/mlp.mlir").read_text().replace("@mlp_loss(", "@f(")
    split = Split(weir, source, validated=True)
    split.check_law(4)
    weights = [name for name, tensor in split.arguments("f.vjp").items() if tensor.get("kind") == "param"]
    assert split.results("f.backward_weight") == [f"grad.{name}" for name in weights] and len(weights) == 6
    donated = {d["argument"]: d["result"] for d in split.plans["f.backward_weight"]["donations"]}
    assert {f"grad.{name}" for name in weights} <= set(donated), "sums are in place"
    assert split.plans["f.backward_weight"]["arena_bytes"] < 1024 * 256 * 4, "room for the largest gradient"


@pytest.mark.parametrize("seed", range(12))
def test_random_models(weir, seed):
    """Layers that share weights, with norms."""
    Split(weir, Model(seed).text()).check_law(seed)


@pytest.mark.parametrize("seed", range(0, 48, 2))
def test_random_graphs(weir, seed):
    graph, choose = make(seed, differentiable=True), random.Random(seed)
    for argument in graph.arguments.values():
        argument.kind = choose.choice(["param", "param", "input"])
    if not any(argument.kind == "param" for argument in graph.arguments.values()):
        next(iter(graph.arguments.values())).kind = "param"
    Split(weir, graph.text(), validated=seed % 16 == 0).check_law(seed)
