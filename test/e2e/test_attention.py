"""Attention as an op: against NumPy and against differences in f64, its gradients against those of the text that it is
raised from, and raised on devices."""

import numpy
import pytest
from safetensors.numpy import save_file

from test_norm_gradients import Graph, distance, tensor

LOWEST = numpy.finfo(numpy.float32).min

# Batches, queries, keys, elements of a key and of a value, shape of the bias, softcap.
CASES = [
    ((), 1, 1, 1, 1, None, None),
    ((), 7, 8, 4, 5, (7, 8), None),
    ((2,), 8, 7, 3, 2, (1, 1, 7), 2.0),
    ((2, 3), 7, 9, 4, 4, (1, 3, 7, 1), None),
    ((3,), 1, 129, 4, 3, (3, 1, 129), None),
    ((1, 2), 129, 5, 3, 4, (1, 1, 1, 1), 1.5),
    ((2,), 8, 8, 2, 2, None, 0.7),
]


class Attention:
    """The op with the types of one case, and what it computes."""

    def __init__(self, case, scale=0.6, element="f64", covers=False):
        batches, queries, keys, width, values, self.bias, self.cap = case
        self.shapes = [(*batches, queries, width), (*batches, keys, width), (*batches, keys, values)]
        self.scores, self.scale = (*batches, queries, keys), scale
        self.result, self.rows = (*batches, queries, values), (*batches, queries)
        self.element, self.wide = element, "f64" if element == "f64" else "f32"
        self.types = [tensor(shape, element) for shape in self.shapes]
        cap, covers = f", softcap = {self.cap} : f64" if self.cap else "", "bias_covers, " if covers else ""
        self.attributes = f"{{{covers}scale = {scale} : f64{cap}}}"

    def op(self, name, operands):
        """Returns the op, with its results' names and types behind it."""
        bias = f" bias(%b : {tensor(self.bias, self.wide)})" if self.bias else ""
        return (f"norm.{name} {operands}{bias} {self.attributes} : {', '.join(self.types)} "
                f"-> {tensor(self.result, self.element)}, {tensor(self.rows, self.wide)}")

    def arguments(self):
        names = [f"%{name}: {type}" for name, type in zip("qkv", self.types)]
        return ", ".join([*names, f"%b: {tensor(self.bias, self.wide)}"] if self.bias else names)

    def forward(self, name="f"):
        result = tensor(self.result, self.element)
        return f"""func.func @{name}({self.arguments()}) -> {result} {{
          %y, %m, %s = {self.op("attention", "%q, %k, %v")}
          return %y : {result}
        }}"""

    def both(self):
        """Returns a function of the operands and the cotangent, which gives all results and gradients."""
        results, rows = tensor(self.result, self.element), tensor(self.rows, self.wide)
        types = [results, rows, rows, *self.types]
        gradients = ["%dq", "%dk", "%dv"]
        dbias = ""
        if self.bias:
            types.append(tensor(self.bias, self.wide))
            gradients.append("%db")
            dbias = f", {types[-1]}"
        return f"""func.func @both({self.arguments()}, %dy: {results}) -> ({", ".join(types)}) {{
          %y, %m, %s = {self.op("attention", "%q, %k, %v")}
          {", ".join(gradients)} = {self.op("attention_vjp", "%dy, %q, %k, %v, %y, %m, %s")}{dbias}
          return %y, %m, %s, {", ".join(gradients)} : {", ".join(types)}
        }}"""

    def text(self, name="text"):
        """Returns the same function as front ends write it. Batches lead the bias, which is no argument if absent."""
        rank = len(self.scores)
        dims = [f"d{i}" for i in range(rank + 1)]
        batch, (i, j, d) = dims[:rank - 2], dims[rank - 2:]

        def of(*names):
            return f"affine_map<({', '.join(dims)}) -> ({', '.join([*batch, *names])})>"

        def of_points(names):
            return f"affine_map<({', '.join(dims[:rank])}) -> ({', '.join(names)})>"

        loops, points = '"parallel", ' * rank, ", ".join(['"parallel"'] * rank)
        scores, result = tensor(self.scores, self.wide), tensor(self.result, self.element)
        capped = f"""%c = arith.constant {self.cap} : {self.wide}
            %x1 = arith.divf %x0, %c : {self.wide}
            %x2 = math.tanh %x1 : {self.wide}
            %x3 = arith.mulf %x2, %c : {self.wide}""" if self.cap else ""
        x = "%x3" if self.cap else "%x0"
        operands, types, maps, block, added = "%p", scores, "", "", x
        if self.bias:
            where = [dim if size != 1 else "0" for dim, size in zip(dims, self.bias)]
            operands, types = "%p, %b", f"{scores}, {tensor(self.bias, self.wide)}"
            maps, block, added = f"{of_points(where)}, ", f", %bias: {self.wide}", "%x4"
            capped += f"\n%x4 = arith.addf {x}, %bias : {self.wide}"
        return f"""func.func @{name}({self.arguments()}) -> {result} {{
          %zero = arith.constant 0.0 : {self.wide}
          %e = tensor.empty() : {scores}
          %f = linalg.fill ins(%zero : {self.wide}) outs(%e : {scores}) -> {scores}
          %p = linalg.generic {{indexing_maps = [{of(i, d)}, {of(j, d)}, {of(i, j)}],
              iterator_types = [{loops}"reduction"]}} ins(%q, %k : {self.types[0]}, {self.types[1]})
              outs(%f : {scores}) {{
          ^bb0(%a: {self.element}, %h: {self.element}, %o: {self.wide}):
            %t = arith.mulf %a, %h : {self.element}
            %u = arith.addf %o, %t : {self.element}
            linalg.yield %u : {self.element}
          }} -> {scores}
          %x = linalg.generic {{indexing_maps = [{of_points(dims[:rank])}, {maps}{of_points(dims[:rank])}],
              iterator_types = [{points}]}} ins({operands} : {types}) outs(%e : {scores}) {{
          ^bb0(%a: {self.wide}{block}, %o: {self.wide}):
            %s = arith.constant {self.scale} : {self.wide}
            %x0 = arith.mulf %a, %s : {self.wide}
            {capped}
            linalg.yield {added} : {self.wide}
          }} -> {scores}
          %w = linalg.softmax dimension({rank - 1}) ins(%x : {scores}) outs(%e : {scores}) -> {scores}
          %g = tensor.empty() : {result}
          %z = linalg.fill ins(%zero : {self.wide}) outs(%g : {result}) -> {result}
          %y = linalg.generic {{indexing_maps = [{of(i, d)}, {of(d, j)}, {of(i, j)}],
              iterator_types = [{loops}"reduction"]}} ins(%w, %v : {scores}, {self.types[2]}) outs(%z : {result}) {{
          ^bb0(%a: {self.wide}, %h: {self.element}, %o: {self.element}):
            %t = arith.mulf %a, %h : {self.element}
            %u = arith.addf %o, %t : {self.element}
            linalg.yield %u : {self.element}
          }} -> {result}
          return %y : {result}
        }}"""

    def sample(self, seed):
        random = numpy.random.default_rng(seed)
        shapes = [*self.shapes, self.bias] if self.bias else self.shapes
        return [random.standard_normal(shape) for shape in shapes]

    def compute(self, q, k, v, bias=0.0):
        """Returns the result and the statistics."""
        x = self.scale * numpy.einsum("...id,...jd->...ij", q, k)
        if self.cap:
            x = self.cap * numpy.tanh(x / self.cap)
        x = x + bias
        largest = numpy.maximum(x.max(-1), numpy.finfo(numpy.float64).min)
        powers = numpy.exp(x - largest[..., None])
        sums = powers.sum(-1)
        share = numpy.divide(1, sums, out=numpy.zeros_like(sums), where=sums != 0)
        return numpy.einsum("...ij,...jc->...ic", powers * share[..., None], v), largest, share


@pytest.mark.parametrize("number", range(len(CASES)))
def test_values_and_gradients(weir, number):
    attention = Attention(CASES[number])
    operands = attention.sample(number)
    dy = numpy.random.default_rng(-number % 100).standard_normal(attention.result)
    graph = Graph(weir, attention.both())
    results = graph.run("both", *operands, dy)
    for found, expected in zip(results, attention.compute(*operands)):
        assert distance(found, expected) < 1e-13
    step, random = 2.0 ** -17, numpy.random.default_rng(17)
    for index, gradient in enumerate(results[3:]):
        direction = numpy.round(random.standard_normal(operands[index].shape) * 16) / 16
        ahead, behind = [[*operands[:index], operands[index] + sign * step * direction, *operands[index + 1:]]
                         for sign in (1, -1)]
        difference = (attention.compute(*ahead)[0] - attention.compute(*behind)[0]) / (2 * step)
        expected = (difference * dy).sum()
        assert abs((gradient * direction).sum() - expected) < 1e-8 * max(abs(gradient * direction).sum(), 1e-3)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_gradcheck(weir, number):
    source = weir.folder / "f.mlir"
    source.write_text(Attention(CASES[number]).forward())
    weir.run("gradcheck", source, "--entry=f")


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_gradients_are_those_of_the_text(weir, number):
    attention = Attention(CASES[number])
    operands = attention.sample(number)
    dy = numpy.random.default_rng(3).standard_normal(attention.result)
    op, text = (Graph(weir, source).run("both", *operands, dy) for source in (attention.both(), vjp_of(attention)))
    assert distance(op[0], text[0]) < 1e-14
    # The gradient of a bias that is the same for all keys is 0.
    for found, expected in zip(op[3:], text[1:], strict=True):
        assert distance(found, expected, floor=1) < 1e-13


def vjp_of(attention, text=True):
    """Returns `both` as the VJP of the text, or of the op."""
    result = tensor(attention.result, attention.element)
    types = [*attention.types, *([tensor(attention.bias, attention.wide)] if attention.bias else [])]
    names = ["%q", "%k", "%v", "%b"][:len(types)]
    results = ["%y", *(f"%d{name[1:]}" for name in names)]
    numbers = ", ".join(map(str, range(len(types))))
    function = attention.text("inner") if text else attention.forward("inner")
    return f"""{function.replace("func.func", "func.func private")}
      func.func @both({attention.arguments()}, %dy: {result}) -> ({", ".join([result, *types])}) {{
        {", ".join(results)} = autodiff.vjp @inner({", ".join(names)}) seeded [0] (%dy) wanted [{numbers}]
            : ({", ".join([*types, result])}) -> ({", ".join([result, *types])})
        return {", ".join(results)} : {", ".join([result, *types])}
      }}"""


def test_masked_rows(weir):
    """A row of -inf gives 0, also to gradients. One of the lowest finite number weighs all keys alike."""
    attention = Attention(((), 4, 6, 3, 5, (4, 6), None))
    q, k, v, bias = attention.sample(1)
    bias[1], bias[2], bias[3, 2:] = -numpy.inf, LOWEST, -numpy.inf
    dy = numpy.random.default_rng(2).standard_normal(attention.result)
    y, largest, share, dq, dk, dv, dbias = Graph(weir, attention.both()).run("both", q, k, v, bias, dy)
    assert not y[1].any() and share[1] == 0 and largest[1] == numpy.finfo(numpy.float64).min
    assert not dq[1].any() and not dbias[1].any()
    assert distance(y[2], v.mean(0)) < 1e-14
    assert distance(y[3], attention.compute(q, k, v, bias)[0][3]) < 1e-14
    others = [0, 2, 3]
    smaller = Attention(((), 3, 6, 3, 5, (3, 6), None))
    rest = Graph(weir, smaller.both()).run("both", q[others], k, v, bias[others], dy[others])
    for found, expected in zip((dq[others], dk, dv, dbias[others]), rest[3:]):
        assert distance(found, expected) < 1e-14


@pytest.mark.parametrize("element, tolerance", [("f32", 1e-5), ("f16", 2e-3), ("bf16", 1e-2)])
def test_devices(weir, element, tolerance):
    """Both directions on devices, from the graph on."""
    attention = Attention(((2, 3), 7, 9, 4, 5, (1, 3, 1, 9), 3.0), scale=0.5, element=element)
    artifact = weir.compile_text(attention.forward(), "a", "--vjp=f", "--entry=f.vjp")
    weir.compare(artifact, ["--random-inputs=5"], tolerance)


@pytest.mark.parametrize("masked, covers", [(False, False), (True, False), (True, True)])
def test_in_blocks(weir, masked, covers):
    """The same with scores for each sum, on Vulkan and the simulator; the reference has one tensor of them."""
    attention = Attention(((2, 3), 7, 9, 4, 5, (2, 1, 7, 9), 3.0), scale=0.5, element="f32", covers=covers)
    profile = weir.profile(attention_keys=9)
    artifact = weir.compile_text(attention.forward(), "a", "--vjp=f", "--entry=f.vjp", f"--target=vulkan:{profile}")
    operands = [operand.astype(numpy.float32) for operand in attention.sample(3)]
    if masked:
        operands[3][0, 0, 2], operands[3][1, 0, 3, 4:], operands[3][1, 0, 4] = -numpy.inf, -numpy.inf, LOWEST
    dy = numpy.random.default_rng(4).standard_normal(attention.result).astype(numpy.float32)
    inputs = weir.folder / "inputs.safetensors"
    names = [*(f"arg{index}" for index in range(4)), "cotangent.result0"]
    save_file(dict(zip(names, [*operands, dy])), inputs)
    weir.compare(artifact, [f"--input={inputs}"], 1e-5)


def test_covered_scores(weir):
    """A row whose scores the bias covers weighs all keys alike, and no gradient goes to its queries and keys."""
    attention = Attention(((), 4, 6, 3, 5, (4, 6), 2.0), covers=True)
    q, k, v, bias = attention.sample(1)
    bias[1], bias[3, 2:] = LOWEST, LOWEST
    dy = numpy.random.default_rng(2).standard_normal(attention.result)
    y, _, _, dq, dk, dv, dbias = Graph(weir, attention.both()).run("both", q, k, v, bias, dy)
    assert distance(y[1], v.mean(0)) < 1e-14 and not dq[1].any() and dbias[1].any()
    plain = Attention(((), 4, 6, 3, 5, (4, 6), 2.0))
    weights = dy.copy()
    weights[1] = 0
    others = Graph(weir, plain.both()).run("both", q, k, v, bias, weights)
    assert distance(dq, others[3]) < 1e-14 and distance(dk, others[4]) < 1e-14
    assert distance(dv, others[5] + dy[1] / 6) < 1e-14


@pytest.mark.parametrize("case", [((2,), 16, 16, 4, 4, (1, 16, 16), None), ((), 33, 31, 5, 7, (1, 31), 4.0)])
def test_raised_text(weir, case):
    attention = Attention(case, element="f32")
    graph = weir.folder / "graph.mlir"
    source = weir.folder / "text.mlir"
    source.write_text(attention.text())
    weir.run("compile", source, "--stop-after=graph", "-o", graph)
    assert "norm.attention" in graph.read_text() and "softmax" not in graph.read_text()
    artifact = weir.compile_text(attention.text(), "a", "--vjp=text", "--entry=text.vjp")
    weir.compare(artifact, ["--random-inputs=6"], 1e-5)


def test_second_derivatives(weir):
    """The VJP reads the statistics, so both are differentiated as their decompositions."""
    attention = Attention(((), 3, 4, 2, 2, (3, 4), 2.0))
    source = weir.folder / "f.mlir"
    source.write_text(vjp_of(attention, text=False))
    weir.run("gradcheck", source, "--entry=both")
