"""weir.runtime: artifacts run from Python on the default Vulkan device and on the CPU."""

import gc

import numpy
import pytest

import weir.runtime

GRAPH = """
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @scale(%x: tensor<2x3xf32> {weir.name = "x"}, %n: tensor<i64> {weir.name = "n"})
    -> (tensor<2x3xf32> {weir.name = "y"}, tensor<i64> {weir.name = "n"}) {
  %e = tensor.empty() : tensor<2x3xf32>
  %y = linalg.generic {indexing_maps = [#map, affine_map<(d0, d1) -> ()>, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %n : tensor<2x3xf32>, tensor<i64>) outs(%e : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: i64, %o: f32):
    %f = arith.sitofp %b : i64 to f32
    %r = arith.mulf %a, %f : f32
    linalg.yield %r : f32
  } -> tensor<2x3xf32>
  return %y, %n : tensor<2x3xf32>, tensor<i64>
}
func.func @add(%x: tensor<2x3xf32> {weir.donate, weir.name = "x"}, %m: tensor<0x3xi1> {weir.name = "m"})
    -> (tensor<2x3xf32> {weir.name = "x"}, tensor<0x3xi1> {weir.name = "m"}) {
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<2x3xf32>) outs(%x : tensor<2x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<2x3xf32>
  return %y, %m : tensor<2x3xf32>, tensor<0x3xi1>
}
"""
X = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
N = numpy.array(3)


@pytest.fixture
def artifact(run_weir, tmp_path):
    (tmp_path / "graph.mlir").write_text(GRAPH)
    run_weir("compile", "graph.mlir", "-o", "a.weir", "--target=vulkan,cpu")
    return tmp_path / "a.weir"


@pytest.fixture(params=["vulkan", "cpu"])
def program(request, artifact):
    with weir.runtime.Program(artifact, api=request.param) as program:
        yield program


def test_entries(program):
    tensor = weir.runtime.Tensor
    assert list(program.entries) == ["scale", "add"]
    assert program.entries["scale"].arguments == [
        tensor("x", numpy.dtype("float32"), (2, 3)), tensor("n", numpy.dtype("int64"), ())]
    assert program.entries["add"].results[1] == tensor("m", numpy.dtype("bool"), (0, 3))


def test_run(program):
    for n in (3, -2):  # the second run has the buffers of the first
        results = program.run({"n": numpy.array(n), "x": X}, "scale")
        numpy.testing.assert_array_equal(results["y"], X * n)
        assert results["n"] == n


def test_results_are_independent(program):
    first = program.run({"n": N, "x": X}, "scale")["y"]
    program.run({"n": N, "x": X + 1}, "scale")
    numpy.testing.assert_array_equal(first, X * 3)


def test_donated_arguments_stay(program):
    x, m = X.copy(), numpy.zeros((0, 3), bool)
    results = program.run({"x": x, "m": m}, "add")
    numpy.testing.assert_array_equal(results["x"], X * 2)
    numpy.testing.assert_array_equal(x, X)
    assert results["m"].shape == (0, 3)


class Exporter:
    """A tensor of another library."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_strided_and_foreign_values(program):
    strided = numpy.asfortranarray(X)
    for value in (strided, Exporter(X), Exporter(X.T.copy().T)):
        numpy.testing.assert_array_equal(program.run({"n": N, "x": value}, "scale")["y"], X * 3)


@pytest.mark.parametrize("arguments, message", [
    ({"n": N}, "x is missing"),
    ({"n": N, "x": X, "z": X}, "there is no argument z"),
    ({"n": N, "x": X.astype(numpy.float64)}, "x is float64 of shape"),
    ({"n": N, "x": X.T}, r"x is float32 of shape \(3, 2\), not float32 of shape \(2, 3\)"),
    ({"n": N[None], "x": X}, r"n is int64 of shape \(1,\)"),
    ({"x": X.T}, "n is missing; x is float32"),
])
def test_wrong_arguments_are_refused(program, arguments, message):
    with pytest.raises(ValueError, match=message):
        program.run(arguments, "scale")


def test_entries_are_checked(program):
    with pytest.raises(ValueError, match="several entries, name one: scale, add"):
        program.run({})
    with pytest.raises(ValueError, match="no entry none; the artifact has scale, add"):
        program.run({}, "none")


def test_the_only_entry_needs_no_name(run_weir, artifact):
    run_weir("compile", "graph.mlir", "--entry=scale", "-o", "one.weir")
    with weir.runtime.Program(artifact.parent / "one.weir") as program:
        numpy.testing.assert_array_equal(program.run({"n": N, "x": X})["y"], X * 3)


def test_errors_of_the_library_are_raised(artifact, tmp_path):
    with pytest.raises(weir.runtime.Error, match="none.weir"):
        weir.runtime.Program(tmp_path / "none.weir")
    (tmp_path / "bad.weir").write_bytes(artifact.read_bytes()[:100])
    with pytest.raises(weir.runtime.Error, match="bad.weir"):
        weir.runtime.Program(tmp_path / "bad.weir")
    with pytest.raises(weir.runtime.Error, match="none.weir"):
        weir.runtime.Program(b"\xff none.weir")
    with pytest.raises(weir.runtime.Error):
        weir.runtime.Program(artifact, device=1000)


def test_a_closed_program_is_refused(artifact):
    program = weir.runtime.Program(artifact)
    program.close()
    program.close()
    with pytest.raises(weir.runtime.Error, match="closed"):
        program.run({"n": N, "x": X}, "scale")


def test_programs_end_with_their_last_name(artifact):
    programs = [weir.runtime.Program(artifact) for _ in range(3)]
    for program in programs:
        program.run({"n": N, "x": X}, "scale")
    finalizers = [program._finalizer for program in programs]
    del program, programs
    gc.collect()
    assert not any(finalizer.alive for finalizer in finalizers)


def test_a_missing_library_is_told(python):
    done = python("-c", "import os; os.environ['WEIR_RUNTIME'] = '/none.so'\n"
                  "import weir.runtime; weir.runtime.Program('a.weir')")
    assert "Error: /none.so" in done.stderr and "set WEIR_RUNTIME" in done.stderr
