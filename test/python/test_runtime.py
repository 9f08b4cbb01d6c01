"""weir.runtime: artifacts run from Python on the default Vulkan device and on the CPU."""

import ctypes
import gc
import json

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


@pytest.fixture
def cpu(artifact):
    with weir.runtime.Program(artifact, api="cpu") as program:
        yield program


def adopt(program, *arrays):
    return [weir.runtime.Buffer.adopt(program.device, array) for array in arrays]


def test_runs_use_the_callers_memory(cpu):
    """Arguments and results are the caller's arrays: nothing is copied."""
    x, n, y, m = X.copy(), N.copy(), numpy.zeros_like(X), numpy.zeros_like(N)
    given, made = adopt(cpu, x, n), adopt(cpu, y, m)
    for factor in (3, 4):
        n[...] = factor
        x += 1
        cpu.submit(cpu.entries["scale"], given, made)
        numpy.testing.assert_array_equal(y, x * factor)
        assert m == factor
    assert ctypes.addressof(given[0].map()) == x.ctypes.data


def test_donation_in_the_callers_memory(cpu):
    """With one buffer for both, the result is in the argument's place; with two, the argument stays."""
    x, y, empty = X.copy(), numpy.zeros_like(X), numpy.zeros((0, 3), bool)
    assert cpu.get_donations(cpu.entries["add"]) == {"x": "x"}
    (place, other), (nothing, none) = adopt(cpu, x, y), adopt(cpu, empty, empty.copy())
    for times in (2, 4):
        cpu.submit(cpu.entries["add"], [place, nothing], [place, none])
        numpy.testing.assert_array_equal(x, X * times)
    cpu.submit(cpu.entries["add"], [place, nothing], [other, none])
    numpy.testing.assert_array_equal(x, X * 4)
    numpy.testing.assert_array_equal(y, X * 8)


def test_bytes_of_the_caller_that_do_not_fit_are_refused(cpu, artifact):
    entry, whole = cpu.entries["scale"], numpy.arange(20, dtype=numpy.float32)
    apart, n, m = numpy.zeros_like(X), N.copy(), N.copy()

    def submit(x, y):
        cpu.submit(entry, adopt(cpu, x, n), adopt(cpu, y, m))

    before = whole.copy()
    with pytest.raises(weir.runtime.Error, match="argument 'x' and result 'y' share bytes"):
        submit(whole[:6], whole[5:11])
    with pytest.raises(weir.runtime.Error, match="result 'y' and argument 'x' share bytes"):
        submit(whole[5:11], whole[:6])
    odd = numpy.zeros(40, numpy.uint8)[1:25].view(numpy.float32)
    with pytest.raises(weir.runtime.Error, match="the address of argument 'x' is no multiple of 4"):
        submit(odd, apart)
    numpy.testing.assert_array_equal(whole, before)
    submit(whole[:6], whole[6:12])  # neighbours
    numpy.testing.assert_array_equal(whole[6:12], whole[:6] * N)
    with pytest.raises(ValueError, match="gaps"):
        adopt(cpu, whole[::2])
    with weir.runtime.Program(artifact) as vulkan, pytest.raises(weir.runtime.Error, match="has memory of its own"):
        adopt(vulkan, whole)


def test_large_results_lie_at_any_address(run_weir, tmp_path):
    """Stores past the caches need aligned addresses; where the caller's are not, others make the same bits."""
    (tmp_path / "graph.mlir").write_text(GRAPH.replace("2x3", "64x8"))
    profile = json.loads(weir.runtime.Device("cpu").profile) | {"streamed_bytes": 1024}
    (tmp_path / "streams.json").write_text(json.dumps(profile))
    run_weir("compile", "graph.mlir", "--entry=scale", "--target=cpu:streams.json", "-o", "streams.weir")
    with weir.runtime.Program(tmp_path / "streams.weir", api="cpu") as program:
        memory, n, m = numpy.zeros(2048, numpy.float32), N.copy(), N.copy()
        line = -memory.ctypes.data // 4 % 16
        x = numpy.arange(512, dtype=numpy.float32)
        for begin in (0, 1, 4, 8, 15, 16):
            memory[:] = 7
            y = memory[line + begin:][:512]
            program.submit(program.entries["scale"], adopt(program, x, n), adopt(program, y, m))
            numpy.testing.assert_array_equal(y, x * N)
            assert (memory[:line + begin] == 7).all() and (memory[line + begin + 512:] == 7).all()


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


def test_a_processor_takes_the_best_profile_or_the_named_one(run_weir, tmp_path):
    (tmp_path / "graph.mlir").write_text(GRAPH)
    for name, target in (("both", "cpu:x86-64-v3,cpu:x86-64-v4"), ("native", "cpu:native"), ("v3", "cpu:x86-64-v3")):
        run_weir("compile", "graph.mlir", "-o", f"{name}.weir", f"--target={target}")

    def run(name, isa=""):
        device = weir.runtime.open_device(f"cpu:{isa}" if isa else "cpu")
        isa = json.loads(device.profile)["isa"]
        with weir.runtime.Program(tmp_path / f"{name}.weir", device=device) as program:
            assert program.device.api == "cpu"
            assert program.target == {"both": f"cpu.{isa}"}.get(name, "cpu")
            return program.run({"x": X, "n": N}, "scale")["y"].tobytes()

    assert run("both") == run("native")
    assert run("both", "x86-64-v3") == run("v3", "x86-64-v3")
    with pytest.raises(weir.runtime.Error, match="there is no device 'cpu:z80': this processor has x86-64-v2, x86-64-v3"):
        weir.runtime.open_device("cpu:z80")
