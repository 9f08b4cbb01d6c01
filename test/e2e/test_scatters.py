"""Scatters on a processor: each update goes once, in order, to the row that it names, so results have the bits of the
same steps in NumPy; in the bytes of a donated argument no others are written."""

import json
import zipfile

import numpy
import pytest
from edits import edit_plan, run_checkers
from safetensors.numpy import load_file, save_file

COMBINERS = {
    "add": ("arith.addf", "arith.addi", -0.0, numpy.add), "mul": ("arith.mulf", "arith.muli", 1, numpy.multiply),
    "max": ("arith.maximumf", "arith.maxsi", -numpy.inf, numpy.maximum),
    "min": ("arith.minimumf", "arith.minsi", numpy.inf, numpy.minimum),
}
NAMES = {"f32": "float32", "f64": "float64", "f16": "float16", "i32": "int32", "i64": "int64", "i8": "int8"}


def tensor(shape, kind):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{kind}>"


def constant(value, kind):
    if kind.startswith("i"):
        limits = numpy.iinfo(NAMES[kind])
        return str({numpy.inf: limits.max, -numpy.inf: limits.min}.get(value) or int(value))
    if numpy.isinf(value):
        bits = numpy.array(value, NAMES[kind]).view(f"uint{kind[1:]}")
        return f"0x{int(bits):0{int(kind[1:]) // 4}X}"
    return str(float(value))


def make_scatter(shape, updates, names, dim=0, combine="add", kind="f32", index="i32", init="%init", at="%i", given="%u",
                 result="%r", order=("t",)):
    """A reduction over `updates`, a size for each loop of `order`, of those that name the row in `dim`.

    names: dimensions of the result that names vary with, too."""
    rank = len(shape)
    dims = [f"d{number}" for number in range(rank)]
    loops = ", ".join([*dims, *order])
    own = [d for number, d in enumerate(dims) if number != dim]
    before = [d for number, d in enumerate(dims) if number < dim]
    named = [*(d for d in before if int(d[1:]) in names), *order, *(d for d in own if d not in before and int(d[1:]) in names)]
    taken = [*before, *order, *(d for d in own if d not in before)]
    sizes = dict(zip([*dims, *order], [*shape, *updates]))
    types = [tensor([sizes[d] for d in named], index), tensor([sizes[d] for d in taken], kind), tensor(shape, kind)]
    kinds = ", ".join(['"parallel"'] * rank + ['"reduction"'] * len(order))
    maps = ", ".join(f"affine_map<({loops}) -> ({', '.join(to)})>" for to in (named, taken, dims))
    op, neutral = COMBINERS[combine][kind.startswith("i")], constant(COMBINERS[combine][2], kind)
    text = f"""
  {result}_none = arith.constant {neutral} : {kind}
  {result} = linalg.generic {{iterator_types = [{kinds}], indexing_maps = [{maps}]}}
      ins({at}, {given} : {types[0]}, {types[1]}) outs({init} : {types[2]}) {{
  ^bb0(%n: {index}, %x: {kind}, %o: {kind}):
    %d = linalg.index {dim} : index
    %row = arith.index_cast %d : index to {index}
    %is = arith.cmpi eq, %n, %row : {index}
    %taken = arith.select %is, %x, {result}_none : {kind}
    %s = {op} %o, %taken : {kind}
    linalg.yield %s : {kind}
  }} -> {types[2]}"""
    return text, types


def make_graph(shape, updates, names=(), donates=True, body="", results=("%r",), **options):
    text, (indices, values, whole) = make_scatter(shape, updates, names, **options)
    given = " {weir.name = \"init\"" + (", weir.donate" if donates else "") + "}"
    named = [f"{whole} {{weir.name = \"{'init' if i == 0 and donates else f'r{i}'}\"}}" for i in range(len(results))]
    return f"""
func.func @f(%init: {whole}{given}, %i: {indices} {{weir.name = "i"}}, %u: {values} {{weir.name = "u"}})
    -> ({', '.join(named)}) {{{text}{body}
  return {', '.join(results)} : {', '.join([whole] * len(results))}
}}""", (indices, values, whole)


def parse(type):
    *shape, kind = type.removeprefix("tensor<").removesuffix(">").split("x")
    return tuple(map(int, shape)), numpy.dtype(NAMES[kind])


def draw(types, rows, seed=0):
    """Rows that some updates name twice and more, and none; updates that name no row."""
    random = numpy.random.default_rng(seed)
    (indices, at), (values, kind), (whole, _) = map(parse, types)
    place = random.integers(-2, rows + 3, indices)
    place[random.random(indices) < 0.2] = rows // 2
    place[random.random(indices) < 0.05] = numpy.iinfo(at).min

    def numbers(shape):
        if kind.kind == "i":
            return random.integers(-3, 4, shape).astype(kind)
        return random.standard_normal(shape).astype(kind)
    return {"init": numbers(whole), "i": place.astype(at), "u": numbers(values)}


def compute(inputs, dim, names, combine, loops=1):
    """Takes the updates one after the other."""
    result, place, updates = inputs["init"].copy(), inputs["i"], inputs["u"]
    function = COMBINERS[combine][3]
    before = len([d for d in range(dim) if d in names])
    count = place.shape[before:before + loops]
    if before == 0 and place.ndim == loops:
        place = place.reshape(-1)
        updates = updates.reshape(*updates.shape[:dim], -1, *updates.shape[dim + loops:])
        for number, row in enumerate(place):
            if 0 <= row < result.shape[dim]:
                to = (slice(None),) * dim + (row,)
                result[to] = function(result[to], updates[(slice(None),) * dim + (number,)])
        return result
    assert loops == 1
    own = [d for d in range(result.ndim) if d != dim]
    for number in range(*count):
        for at in numpy.ndindex(*(result.shape[d] for d in own)):
            ofDim = dict(zip(own, at))
            row = place[(*(ofDim[d] for d in own if d < dim and d in names), number,
                         *(ofDim[d] for d in own if d > dim and d in names))]
            if 0 <= row < result.shape[dim]:
                to = tuple(row if d == dim else ofDim[d] for d in range(result.ndim))
                from_ = (*(ofDim[d] for d in own if d < dim), number, *(ofDim[d] for d in own if d > dim))
                result[to] = function(result[to], updates[from_])
    return result


def get_plan(artifact):
    with zipfile.ZipFile(artifact) as archive:
        return json.loads(archive.read("plan/cpu/f.json"))


def get_updated(plan):
    """The operands that dispatches update, and the dispatches' kernels."""
    return [(operand, plan["kernels"][command["kernel"]]["name"]) for command in plan["commands"]
            for operand, own in zip(command.get("operands", []), plan["kernels"][command["kernel"]]["operands"]
                                    if command["command"] == "dispatch" else []) if own["access"] == "update"]


def count_dispatches(plan):
    return sum(command["command"] == "dispatch" for command in plan["commands"])


def run(weir, artifact, inputs, *flags):
    save_file(inputs, weir.folder / "in.safetensors")
    weir.run("run", artifact, "--device=cpu", "--input=in.safetensors", "--output=out.safetensors", *flags)
    return load_file(weir.folder / "out.safetensors")


def check(weir, text, inputs, expected, scatters=1, dispatches=None):
    artifact = weir.compile_text(text, "a", "--target=cpu")
    plan = get_plan(artifact)
    assert len(get_updated(plan)) == scatters
    assert all(len(operand) == 6 for operand, _ in get_updated(plan))  # into a value that is named
    if dispatches is not None:
        assert count_dispatches(plan) == dispatches
    for done in run_checkers(artifact):
        assert done.returncode == 0, done.stdout + done.stderr
    for name, found in run(weir, artifact, inputs).items():
        assert found.dtype == expected[name].dtype
        assert numpy.array_equal(found, expected[name], equal_nan=found.dtype.kind == "f"), name
    return artifact


# The result, the updates, the dimensions that names vary with, and the rows' dimension.
SHAPES = {
    "numbers": ((300,), (500,), (), 0), "rows_of_3": ((300, 3), (400,), (), 0), "rows_of_15": ((600, 15), (300,), (), 0),
    "columns": ((3, 300), (400,), (), 1), "batches": ((3, 300), (400,), (0,), 1),
    "long_rows": ((600, 150), (3000,), (), 0), "a_name_for_each": ((300, 40), (400,), (1,), 0), "around": ((2, 300, 3), (400,), (), 1),
    "some_names": ((2, 300, 4, 3), (400,), (0, 2), 1), "unit_dims": ((1, 300, 1, 3), (400,), (), 1),
}


@pytest.mark.parametrize("donates", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(weir, shape, donates):
    whole, updates, names, dim = SHAPES[shape]
    text, types = make_graph(whole, updates, names, donates, dim=dim)
    inputs = draw(types, whole[dim])
    expected = compute(inputs, dim, names, "add")
    check(weir, text, inputs, {"init" if donates else "r0": expected}, dispatches=1 if donates else 2)


@pytest.mark.parametrize("index", ["i32", "i64"])
@pytest.mark.parametrize("kind", ["f32", "f64", "i32", "i64", "i8"])
@pytest.mark.parametrize("combine", COMBINERS)
def test_combiners_and_types(weir, combine, kind, index):
    text, types = make_graph((300, 2), (400,), combine=combine, kind=kind, index=index)
    inputs = draw(types, 300)
    check(weir, text, inputs, {"init": compute(inputs, 0, (), combine)}, dispatches=1)


def test_updates_of_two_dimensions(weir):
    text, types = make_graph((400, 2), (20, 25), order=("s", "t"))
    inputs = draw(types, 400)
    check(weir, text, inputs, {"init": compute(inputs, 0, (), "add", loops=2)}, dispatches=1)


@pytest.mark.parametrize("count, scatters", [(0, 0), (1, 0), (12, 1)])
def test_few_updates(weir, count, scatters):
    """None, one, and the fewest that are worth a kernel of their own, all of one row."""
    text, types = make_graph((70000,), (count,))
    inputs = draw(types, 70000)
    inputs["i"][:] = 77
    check(weir, text, inputs, {"init": compute(inputs, 0, (), "add")}, scatters)


def test_only_named_elements_of_an_argument_are_written(weir):
    """Elements that no update names keep their bytes, a signaling NaN's and those of -0 too."""
    text, types = make_graph((3000,), (500,))
    inputs = draw(types, 3000)
    inputs["init"].view(numpy.uint32)[:] = numpy.where(numpy.arange(3000) % 2, 0x7F800001, 0x80000000)
    inputs["i"][:] = numpy.where(inputs["i"] % 7 == 3, inputs["i"], -1)
    artifact = weir.compile_text(text, "a", "--target=cpu")
    found = run(weir, artifact, inputs)["init"].view(numpy.uint32)
    kept = numpy.ones(3000, dtype=bool)
    kept[inputs["i"][inputs["i"] >= 0]] = False
    assert numpy.array_equal(found[kept], inputs["init"].view(numpy.uint32)[kept])


def test_an_argument_that_is_read_elsewhere_is_copied(weir):
    body = """
  %e = tensor.empty() : tensor<3000xf32>
  %y = linalg.exp ins(%init : tensor<3000xf32>) outs(%e : tensor<3000xf32>) -> tensor<3000xf32>"""
    text, types = make_graph((3000,), (500,), body=body, results=("%r", "%y"))
    inputs = draw(types, 3000)
    artifact = weir.compile_text(text, "a", "--target=cpu")
    found = run(weir, artifact, inputs)
    assert numpy.array_equal(found["init"], compute(inputs, 0, (), "add"))
    assert numpy.allclose(found["r1"], numpy.exp(inputs["init"]), rtol=1e-6)
    assert len(get_updated(get_plan(artifact))) == 1


def test_zeros_and_what_is_computed(weir):
    """Into zeros, into what a kernel makes, and into what another scatter made; read by others, and returned twice."""
    scatter, (indices, values, whole) = make_scatter((3000,), (500,), (), init="%zeros", result="%a")
    second, _ = make_scatter((3000,), (500,), (), init="%twice", result="%b")
    third, _ = make_scatter((3000,), (500,), (), init="%b", result="%c", combine="max")
    text = f"""
func.func @f(%i: {indices} {{weir.name = "i"}}, %u: {values} {{weir.name = "u"}}, %init: {whole} {{weir.name = "init"}})
    -> ({whole} {{weir.name = "a"}}, {whole} {{weir.name = "again"}}, {whole} {{weir.name = "c"}}, {whole} {{weir.name = "sum"}}) {{
  %zeros = arith.constant dense<0.0> : {whole}
  %empty = tensor.empty() : {whole}
  %twice = linalg.add ins(%init, %init : {whole}, {whole}) outs(%empty : {whole}) -> {whole}{scatter}{second}{third}
  %sum = linalg.add ins(%a, %c : {whole}, {whole}) outs(%empty : {whole}) -> {whole}
  return %a, %a, %c, %sum : {whole}, {whole}, {whole}, {whole}
}}"""
    inputs = draw((indices, values, whole), 3000)
    a = compute(inputs | {"init": numpy.zeros(3000, numpy.float32)}, 0, (), "add")
    b = compute(inputs | {"init": inputs["init"] * 2}, 0, (), "add")
    c = compute(inputs | {"init": b}, 0, (), "max")
    check(weir, text, inputs, {"a": a, "again": a, "c": c, "sum": a + c}, scatters=3)


GATHER = """
func.func @f(%table: tensor<3000x4xf32> {weir.name = "table"}, %i: tensor<500xi64> {weir.name = "i"},
             %w: tensor<500x4xf32> {weir.name = "w"}) -> (tensor<f32> {weir.name = "loss"}) {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %e = tensor.empty() : tensor<500x4xf32>
  %x = linalg.generic {iterator_types = ["parallel", "parallel"], indexing_maps = [
      affine_map<(t, c) -> (t)>, affine_map<(t, c) -> (t, c)>]} ins(%i : tensor<500xi64>) outs(%e : tensor<500x4xf32>) {
  ^bb0(%n: i64, %o: f32):
    %row = arith.index_cast %n : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %table[%row, %c] : tensor<3000x4xf32>
    linalg.yield %v : f32
  } -> tensor<500x4xf32>
  %p = linalg.mul ins(%x, %w : tensor<500x4xf32>, tensor<500x4xf32>) outs(%e : tensor<500x4xf32>) -> tensor<500x4xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<500x4xf32>) outs(%zero : tensor<f32>) dimensions = [0, 1]
  return %s : tensor<f32>
}"""


def test_gradient_of_a_gather(weir):
    artifact = weir.compile_text(GATHER, "a", "--target=cpu", "--grad=f")
    with zipfile.ZipFile(artifact) as archive:
        assert len(get_updated(json.loads(archive.read("plan/cpu/f.grad.json")))) == 1
    random = numpy.random.default_rng(1)
    inputs = {"table": random.standard_normal((3000, 4)).astype(numpy.float32), "i": random.integers(0, 40, 500) * 70,
              "w": random.standard_normal((500, 4)).astype(numpy.float32)}
    expected = numpy.zeros((3000, 4), numpy.float32)
    numpy.add.at(expected, inputs["i"], inputs["w"])
    assert numpy.array_equal(run(weir, artifact, inputs, "--entry=f.grad")["grad.table"], expected)


def test_parts_of_a_concatenation(weir):
    """A scatter that is a part of a concatenation, and one into a concatenation."""
    first, (indices, values, whole) = make_scatter((3000,), (500,), (), result="%a")
    second, (_, _, both) = make_scatter((6000,), (500,), (), init="%joined", result="%b")
    text = f"""
func.func @f(%init: {whole} {{weir.name = "init"}}, %i: {indices} {{weir.name = "i"}}, %u: {values} {{weir.name = "u"}})
    -> ({both} {{weir.name = "b"}}) {{{first}
  %joined = tensor.concat dim(0) %a, %init : ({whole}, {whole}) -> {both}{second}
  return %b : {both}
}}"""
    inputs = draw((indices, values, whole), 3000)
    a = compute(inputs, 0, (), "add")
    b = compute(inputs | {"init": numpy.concatenate([a, inputs["init"]])}, 0, (), "add")
    check(weir, text, inputs, {"b": b}, scatters=2)


def test_updates_in_a_loop(weir):
    """Values that a loop carries are updated in place, trip after trip."""
    scatter, (indices, values, whole) = make_scatter((3000,), (500,), (), init="%h")
    text = f"""
func.func @f(%init: {whole} {{weir.name = "init"}}, %i: {indices} {{weir.name = "i"}}, %u: {values} {{weir.name = "u"}})
    -> ({whole} {{weir.name = "r"}}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 3000 : index
  %r = scf.for %k = %zero to %many step %one iter_args(%h = %init) -> ({whole}) {{{scatter.replace("%r ", "%s ").replace("%r_", "%s_")}
    scf.yield %s : {whole}
  }}
  return %r : {whole}
}}"""
    inputs = draw((indices, values, whole), 3000)
    inputs["u"] = numpy.round(inputs["u"] * 8) / 8  # so that sums are exact
    once = compute(inputs | {"init": numpy.zeros(3000, numpy.float32)}, 0, (), "add")
    artifact = weir.compile_text(text, "a", "--target=cpu")
    inputs["init"] = numpy.round(inputs["init"] * 8) / 8
    for done in run_checkers(artifact):
        assert done.returncode == 0, done.stdout + done.stderr
    assert numpy.array_equal(run(weir, artifact, inputs)["r"], inputs["init"] + 3000 * once)


def test_any_schedule_has_the_same_bits(weir, monkeypatch):
    text, types = make_graph((2, 300, 4, 3), (400,), (0, 2), donates=False, dim=1)
    inputs = draw(types, 300)
    artifact = weir.compile_text(text, "a", "--target=cpu")
    expected = compute(inputs, 1, (0, 2), "add")
    for seed in range(1, 6):
        monkeypatch.setenv("WEIR_SCHEDULE_SEED", str(seed))
        monkeypatch.setenv("WEIR_THREADS", "3")
        assert numpy.array_equal(run(weir, artifact, inputs)["r0"], expected)


@pytest.mark.parametrize("wrong", ["before", "access", "barrier", "order"])
def test_both_checkers_see_a_wrong_update(weir, wrong):
    """The value before is not the one that the bytes hold, the kernel is said to write alone, or nothing orders it behind
    the kernel that makes what it updates."""
    text, types = make_graph((3000,), (500,), donates=False)
    artifact = weir.compile_text(text, "a", "--target=cpu")
    plan = get_plan(artifact)
    [(operand, name)] = get_updated(plan)
    if wrong == "before":
        operand[5] = operand[3]
    elif wrong == "access":
        [kernel] = [kernel for kernel in plan["kernels"] if kernel["name"] == name]
        [own] = [own for own in kernel["operands"] if own["access"] == "update"]
        own["access"] = "read"
    elif wrong == "order":
        del operand[5]
    else:
        plan["commands"] = [command for command in plan["commands"] if command["command"] != "barrier"]
    edited = weir.folder / "edited.weir"
    edit_plan(edited, artifact, plan, "cpu")
    for done in run_checkers(edited):
        assert done.returncode == 1, done.stdout + done.stderr
