"""Running sums, products, maxima and minima: one walk over the elements in place of n sums of n, along any dimension,
from either end, with a place's own element or without it, and their gradients."""

import json
import zipfile

import numpy
import pytest
from check import BOUND
from safetensors.numpy import load_file, save_file

COMBINERS = {
    "add": ("addf", "0.0"), "mul": ("mulf", "1.0"), "max": ("maximumf", "0xFF800000"), "min": ("minimumf", "0x7F800000"),
}


def tensor(shape, kind="f32"):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{kind}>"


def running(shape, dim, predicate="sle", combine="addf", neutral="0.0", kind="f32", inner="", mask=None):
    """A reduction of [.., n, ..] over the elements that `predicate` chooses for each place of `dim`.

    inner: ops on %x that give %v. mask: the elements of a constant in place of the comparison.
    """
    rank = len(shape)
    names = [f"d{i}" for i in range(rank + 1)]  # the last loop is the element's
    element = [names[rank] if i == dim else names[i] for i in range(rank)]
    kinds = ", ".join(['"parallel"'] * rank + ['"reduction"'])
    loops = ", ".join(names)
    text = f"""
  %neutral = arith.constant {neutral} : {kind}
  %empty = tensor.empty() : {tensor(shape, kind)}
  %init = linalg.fill ins(%neutral : {kind}) outs(%empty : {tensor(shape, kind)}) -> {tensor(shape, kind)}"""
    masked = f"affine_map<({loops}) -> ({names[dim]}, {names[rank]})>, " if mask is not None else ""
    if mask is not None:
        text += f"\n  %mask = arith.constant dense<{json.dumps(mask)}> : {tensor((shape[dim], shape[dim]), 'i1')}"
    choice = "%m" if mask is not None else "%c"
    compare = "" if mask is not None else f"""
    %i = linalg.index {dim} : index
    %j = linalg.index {rank} : index
    %c = arith.cmpi {predicate}, %j, %i : index"""
    return text + f"""
  %r = linalg.generic {{iterator_types = [{kinds}], indexing_maps = [{masked}
      affine_map<({loops}) -> ({', '.join(element)})>, affine_map<({loops}) -> ({', '.join(names[:rank])})>]}}
      ins({'%mask, ' if masked else ''}%a : {tensor((shape[dim], shape[dim]), 'i1') + ', ' if masked else ''}{tensor(shape, kind)})
      outs(%init : {tensor(shape, kind)}) {{
  ^bb0({'%m: i1, ' if masked else ''}%x: {kind}, %o: {kind}):{compare}
    {inner or f'%v = arith.select {choice}, %x, %neutral : {kind}'}
    %s = arith.{combine} %o, %v : {kind}
    linalg.yield %s : {kind}
  }} -> {tensor(shape, kind)}"""


def graph(shape, *arguments, kind="f32", **options):
    return f"""
func.func @f(%a: {tensor(shape, kind)} {{weir.name = "a"}}) -> ({tensor(shape, kind)} {{weir.name = "r"}}) {{
  {running(shape, *arguments, kind=kind, **options)}
  return %r : {tensor(shape, kind)}
}}
"""


def get_kernels(weir, artifact, entry="f"):
    with zipfile.ZipFile(weir.folder / artifact) as archive:
        [plan] = [name for name in archive.namelist() if name.endswith(f"/{entry}.json") and name.startswith("plan/vulkan")]
        return [kernel["name"] for kernel in json.loads(archive.read(plan))["kernels"]]


def is_scan(names):
    return [name.split("_")[0] for name in names] == ["sequence"]


@pytest.mark.parametrize("predicate", ["sle", "slt", "sge", "sgt"])
@pytest.mark.parametrize("shape, dim", [((37,), 0), ((5, 23), 1), ((23, 5), 0), ((3, 19, 1, 7), 1), ((9, 17, 33), 0),
                                        ((2, 1, 100), 2), ((31, 64), 0)], ids=str)
def test_orders_and_dimensions(weir, shape, dim, predicate):
    artifact = weir.compile_text(graph(shape, dim, predicate))
    assert is_scan(get_kernels(weir, artifact))
    weir.compare(artifact, ["--random-inputs=1"], BOUND)
    weir.run("verify", artifact)


@pytest.mark.parametrize("name", COMBINERS)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_combiners(weir, name, kind):
    combine, neutral = COMBINERS[name]
    if kind == "f64":
        neutral = neutral.replace("0xFF8", "0xFFF").replace("0x7F8", "0x7FF").ljust(18, "0") if "x" in neutral else neutral
    artifact = weir.compile_text(graph((4, 21), 1, combine=combine, neutral=neutral, kind=kind))
    assert is_scan(get_kernels(weir, artifact))
    weir.compare(artifact, ["--random-inputs=2"], BOUND)


@pytest.mark.parametrize("kind", ["i32", "i64", "i8"])
def test_integers_have_all_bits(weir, kind):
    artifact = weir.compile_text(graph((6, 50), 1, combine="addi", neutral="0", kind=kind))
    assert is_scan(get_kernels(weir, artifact))
    weir.compare(artifact, ["--random-inputs=3"], 0)


def test_what_follows_a_nan_or_an_infinity_has_it(weir):
    artifact = weir.compile_text(graph((2, 16), 1))
    values = numpy.arange(32, dtype=numpy.float32).reshape(2, 16)
    values[0, 5], values[1, 9] = numpy.nan, numpy.inf
    save_file({"a": values}, weir.folder / "in.safetensors")
    weir.run("run", artifact, "--input=in.safetensors", "--output=out.safetensors")
    numpy.testing.assert_array_equal(load_file(weir.folder / "out.safetensors")["r"], numpy.cumsum(values, 1))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_constant_masks(weir, own, reverse):
    mask = numpy.tri(13, 13, 0 if own else -1, dtype=bool)
    artifact = weir.compile_text(graph((4, 13), 1, mask=(mask.T if reverse else mask).tolist()))
    assert is_scan(get_kernels(weir, artifact))
    weir.compare(artifact, ["--random-inputs=4"], BOUND)


def test_a_mask_with_one_element_more_stays_a_reduction(weir):
    mask = numpy.tri(13, 13, 0, dtype=bool)
    mask[2, 7] = True
    artifact = weir.compile_text(graph((4, 13), 1, mask=mask.tolist()))
    assert not any("sequence" in name for name in get_kernels(weir, artifact))
    weir.compare(artifact, ["--random-inputs=4"], BOUND)


@pytest.mark.parametrize("inner", [
    "%w = arith.mulf %x, %x : f32 \n %v = arith.select %c, %w, %neutral : f32",  # computed in the scan
    "%v = arith.select %c, %neutral, %x : f32",  # the other elements
])
def test_what_is_summed_may_be_computed(weir, inner):
    artifact = weir.compile_text(graph((5, 40), 1, inner=inner))
    assert is_scan(get_kernels(weir, artifact))
    weir.compare(artifact, ["--random-inputs=5"], BOUND)


@pytest.mark.parametrize("inner", [
    # A term that depends on the place, and a neutral element that is none.
    """%n = arith.index_cast %i : index to i32
    %p = arith.sitofp %n : i32 to f32
    %w = arith.mulf %x, %p : f32
    %v = arith.select %c, %w, %neutral : f32""",
    "%one = arith.constant 1.0 : f32 \n %v = arith.select %c, %x, %one : f32",
])
def test_other_reductions_stay(weir, inner):
    artifact = weir.compile_text(graph((5, 40), 1, inner=inner))
    assert not any("sequence" in name for name in get_kernels(weir, artifact))
    weir.compare(artifact, ["--random-inputs=5"], BOUND)


@pytest.mark.parametrize("predicate", ["sle", "sgt"])
@pytest.mark.parametrize("shape, dim", [((6, 30), 1), ((30, 6), 0)], ids=str)
def test_the_gradient_of_a_running_sum_is_one(weir, shape, dim, predicate):
    artifact = weir.compile_text(graph(shape, dim, predicate), "a", "--vjp=f")
    assert all("sequence" in name for name in get_kernels(weir, artifact, "f.vjp"))
    weir.compare(artifact, ["--entry=f.vjp", "--random-inputs=6"], BOUND)
    weir.run("gradcheck", "a.mlir", "--entry=f")


@pytest.mark.parametrize("size", [0, 1, 8])
def test_few_elements_stay_a_reduction(weir, size):
    artifact = weir.compile_text(graph((3, size), 1))
    assert not any("sequence" in name for name in get_kernels(weir, artifact))
    weir.compare(artifact, ["--random-inputs=7"], BOUND)


@pytest.mark.parametrize("predicate", ["sle", "slt", "sge", "sgt"])
@pytest.mark.parametrize("shape, dim", [((320,), 0), ((3, 80), 1), ((72, 5), 0), ((2, 96, 3), 1)], ids=str)
def test_parts_where_rows_are_few(weir, shape, dim, predicate):
    text = graph(shape, dim, predicate, inner="%w = arith.mulf %x, %x : f32 \n %v = arith.select %c, %w, %neutral : f32")
    artifact = weir.compile_text(text, "a", f"--target=vulkan:{weir.profile(units=4)}")
    assert len(get_kernels(weir, artifact)) == 3
    weir.compare(artifact, ["--random-inputs=8"], BOUND)
    weir.run("verify", artifact)


def test_sizes_without_equal_parts_are_one_walk(weir):
    artifact = weir.compile_text(graph((3, 89), 1), "a", f"--target=vulkan:{weir.profile(units=4)}")
    assert is_scan(get_kernels(weir, artifact))
    weir.compare(artifact, ["--random-inputs=8"], BOUND)


def test_what_comes_before_a_single_element_is_nothing(weir):
    """Its gradient is the same 0 everywhere, and is told by no operand."""
    artifact = weir.compile_text(graph((3, 1), 1, "slt"), "a", "--vjp=f")
    weir.compare(artifact, ["--entry=f.vjp", "--random-inputs=9"], 0)


@pytest.mark.parametrize("predicate", ["sle", "sgt"])
def test_a_donated_argument_is_overwritten_step_by_step(weir, predicate):
    text = graph((5, 33), 1, predicate).replace('{weir.name = "a"}', '{weir.name = "a", weir.donate}')
    artifact = weir.compile_text(text)
    [plan] = weir.inspect(artifact)["plans"]
    assert plan["donations"]
    weir.compare(artifact, ["--random-inputs=9"], BOUND)
    weir.run("verify", artifact)
