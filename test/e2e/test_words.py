"""Integers and halves that a device lacks, in words of 32 bits: the same bits as NumPy's and as of a device that has
them, on Vulkan, on the simulator and on a second driver, which has none of them."""

import json
import pathlib
import subprocess

import numpy
import pytest
from check import BOUND
from conftest import BIN, SECOND_DRIVER
from graphs import make
from safetensors.numpy import load_file, save_file

WIDTHS = {"i8": numpy.int8, "i16": numpy.int16, "i64": numpy.int64}
MAPS = "affine_map<(i) -> (i)>"


def make_map(types, results, body, size):
    """An elementwise graph: `types` of %v0, %v1 ..., `results` of what the body yields."""
    tensors = lambda names: ", ".join(f"tensor<{size}x{name}>" for name in names)
    arguments = ", ".join(f"%a{i}: tensor<{size}x{name}>" for i, name in enumerate(types))
    empties = "\n".join(f"  %e{i} = tensor.empty() : tensor<{size}x{name}>" for i, name in enumerate(results))
    inner = ", ".join([f"%v{i}: {name}" for i, name in enumerate(types)] +
                      [f"%o{i}: {name}" for i, name in enumerate(results)])
    ins = ", ".join(f"%a{i}" for i in range(len(types)))
    outs = ", ".join(f"%e{i}" for i in range(len(results)))
    returned = ", ".join(f"%r#{i}" for i in range(len(results))) if len(results) > 1 else "%r"
    return f"""func.func @f({arguments}) -> ({tensors(results)}) {{
{empties}
  %r{f":{len(results)}" if len(results) > 1 else ""} = linalg.generic {{indexing_maps = [{", ".join([MAPS] * (len(types) + len(results)))}],
      iterator_types = ["parallel"]}} ins({ins} : {tensors(types)}) outs({outs} : {tensors(results)}) {{
  ^bb0({inner}):
{body}
  }} -> ({tensors(results)})
  return {returned} : {tensors(results)}
}}
"""


def compile_small(weir, text, *flags):
    """Compiles for the smallest profile, and for it with the subgroups of the device of these tests."""
    (weir.folder / "a.mlir").write_text(text)
    own = json.loads(weir.profile().read_text())
    (weir.folder / "small.json").write_text(json.dumps({
        "like": "minimum", "name": "small",
        **{key: own[key] for key in ("subgroup_size", "workgroup_size", "max_loop_trips")}}))
    weir.run("compile", "a.mlir", "--target=vulkan:minimum", "-o", "minimum.weir", *flags)
    weir.run("compile", "a.mlir", "--target=vulkan:small.json", "-o", "small.weir", *flags)


def run_everywhere(weir, *inputs, read=load_file):
    """Yields results of all devices: of code with the device's subgroups and with the smallest profile's."""
    runs = [("small.weir", "vulkan", None), ("small.weir", "sim", None), ("minimum.weir", "sim", None)]
    if SECOND_DRIVER:
        runs.append(("minimum.weir", "vulkan", SECOND_DRIVER))
    for artifact, device, driver in runs:
        weir.run("run", artifact, f"--device={device}", *inputs, "--output=out.safetensors", driver=driver)
        yield f"{artifact} on {driver or device}", read(weir.folder / "out.safetensors")


def check_all_proved(weir):
    assert " 0 taken from the compiler." in weir.run("verify", "minimum.weir")


def get_edges(dtype):
    """Pairs of an integer type's numbers: its ends, those about them and about words, and others."""
    info = numpy.iinfo(dtype)
    some = {0, 1, -1, 2, 3, -3, 7, 10, -100, info.min, info.max, info.min + 1, info.max - 1}
    for bits in (7, 8, 15, 16, 24, 31, 32, 33, 47, 62):
        some |= {sign * (1 << bits) + step for sign in (1, -1) for step in (-1, 0, 1)}
    numbers = numpy.array(sorted(number for number in some if info.min <= number <= info.max), dtype=dtype)
    random = numpy.random.default_rng(1).integers(info.min, info.max, 40, dtype=dtype)
    numbers = numpy.concatenate([numbers, random])
    x, y = numpy.meshgrid(numbers, numbers)
    return x.ravel(), y.ravel()


@pytest.mark.parametrize("element", WIDTHS)
def test_integer_arithmetic(weir, element):
    dtype = WIDTHS[element]
    x, y = get_edges(dtype)
    unsigned = numpy.dtype(dtype).str.replace("i", "u")
    bits = 8 * numpy.dtype(dtype).itemsize
    by = (y & (bits - 1)).astype(dtype)
    # Neither by zero, nor what has no quotient.
    divisor = numpy.where((y == 0) | ((x == numpy.iinfo(dtype).min) & (y == -1)), dtype(3), y)
    quotient = numpy.array([int(abs(int(a)) // abs(int(b))) * (1 if (a < 0) == (b < 0) else -1)
                            for a, b in zip(x, divisor)], dtype=dtype)
    with numpy.errstate(over="ignore"):
        cases = {
            "addi": x + y, "subi": x - y, "muli": x * y, "andi": x & y, "ori": x | y, "xori": x ^ y,
            "minsi": numpy.minimum(x, y), "maxsi": numpy.maximum(x, y),
            "minui": numpy.minimum(x.view(unsigned), y.view(unsigned)).view(dtype),
            "maxui": numpy.maximum(x.view(unsigned), y.view(unsigned)).view(dtype),
            "shli": x << by, "shrsi": x >> by, "shrui": (x.view(unsigned) >> by.view(unsigned)).view(dtype),
            "divsi": quotient, "remsi": x - quotient * divisor,
            "divui": (x.view(unsigned) // divisor.view(unsigned)).view(dtype),
            "remui": (x.view(unsigned) % divisor.view(unsigned)).view(dtype)}
        compares = {"eq": x == y, "ne": x != y, "slt": x < y, "sle": x <= y, "sgt": x > y, "sge": x >= y,
                    "ult": x.view(unsigned) < y.view(unsigned), "ule": x.view(unsigned) <= y.view(unsigned),
                    "ugt": x.view(unsigned) > y.view(unsigned), "uge": x.view(unsigned) >= y.view(unsigned)}
    operand = {"shli": "%v2", "shrsi": "%v2", "shrui": "%v2", "divsi": "%v3", "remsi": "%v3", "divui": "%v3",
               "remui": "%v3"}
    lines = [f"    %r{i} = arith.{op} %v0, {operand.get(op, '%v1')} : {element}" for i, op in enumerate(cases)]
    lines += [f"    %r{len(cases) + i} = arith.cmpi {op}, %v0, %v1 : {element}" for i, op in enumerate(compares)]
    results = [element] * len(cases) + ["i1"] * len(compares)
    count = 8  # of results of a kernel
    names, expected = [*cases, *compares], [*cases.values(), *compares.values()]
    for first in range(0, len(names), count):
        last = min(first + count, len(names))
        body = lines[first:last]
        body.append(f"    linalg.yield {', '.join(f'%r{i}' for i in range(first, last))} : {', '.join(results[first:last])}")
        compile_small(weir, make_map([element] * 4, results[first:last], "\n".join(body), len(x)))
        save_file({"arg0": x, "arg1": y, "arg2": by, "arg3": divisor}, weir.folder / "in.safetensors")
        for where, found in run_everywhere(weir, "--input=in.safetensors"):
            for i in range(first, last):
                same = found[f"result{i - first}"] == expected[i]
                assert same.all(), f"{names[i]} of {x[~same][0]}, {y[~same][0]} on {where}"
    check_all_proved(weir)


@pytest.mark.parametrize("element", WIDTHS)
def test_extended_arithmetic(weir, element):
    """Results with more bits than an operand."""
    dtype = WIDTHS[element]
    x, y = get_edges(dtype)
    bits = 8 * numpy.dtype(dtype).itemsize
    ones = (1 << bits) - 1
    fold = lambda numbers: numpy.array([(number & ones) - ((number & ones) >> (bits - 1) << bits) for number in numbers], dtype)
    pairs = [(int(a), int(b)) for a, b in zip(x, y)]
    unsigned = [(a & ones, b & ones) for a, b in pairs]
    expected = [fold(a + b for a, b in unsigned), numpy.array([a + b > ones for a, b in unsigned]),
                fold(a * b for a, b in unsigned), fold(a * b >> bits for a, b in unsigned),
                fold(a * b for a, b in pairs), fold(a * b >> bits for a, b in pairs)]
    body = f"""    %s, %c = arith.addui_extended %v0, %v1 : {element}, i1
    %ul, %uh = arith.mului_extended %v0, %v1 : {element}
    %sl, %sh = arith.mulsi_extended %v0, %v1 : {element}
    linalg.yield %s, %c, %ul, %uh, %sl, %sh : {element}, i1, {element}, {element}, {element}, {element}"""
    compile_small(weir, make_map([element] * 2, [element, "i1", *[element] * 4], body, len(x)))
    save_file({"arg0": x, "arg1": y}, weir.folder / "in.safetensors")
    for where, found in run_everywhere(weir, "--input=in.safetensors"):
        for i, values in enumerate(expected):
            same = found[f"result{i}"] == values
            assert same.all(), f"result {i} of {x[~same][0]}, {y[~same][0]} on {where}"


@pytest.mark.parametrize("element", WIDTHS)
def test_integers_and_floats(weir, element):
    """Ties, and numbers on both sides of one, are rounded once; floats are cut."""
    dtype = WIDTHS[element]
    x = numpy.unique(numpy.concatenate(get_edges(dtype)))
    if element == "i64":
        ties = [(1 << 62) + (1 << 38) + step for step in (-1, 0, 1)] + [(3 << 39) + (1 << 17) + step for step in (-1, 0, 1)]
        x = numpy.concatenate([x, ties, [-tie for tie in ties]]).astype(dtype)
    limit = 2.0 ** (8 * numpy.dtype(dtype).itemsize - 1)
    f = numpy.concatenate([x.astype(numpy.float32), numpy.float32([0.99, -0.99, 1e-42, -0.0, 2.5, -77.7])])
    f = f[(f < limit) & (f >= -limit)]
    f = numpy.resize(f, len(x))
    body = f"""    %r0 = arith.sitofp %v0 : {element} to f32
    %r1 = arith.uitofp %v0 : {element} to f32
    %r2 = arith.fptosi %v1 : f32 to {element}
    linalg.yield %r0, %r1, %r2 : f32, f32, {element}"""
    compile_small(weir, make_map([element, "f32"], ["f32", "f32", element], body, len(x)))
    save_file({"arg0": x, "arg1": f}, weir.folder / "in.safetensors")
    unsigned = x.view(numpy.dtype(dtype).str.replace("i", "u"))
    expected = [x.astype(numpy.float32), unsigned.astype(numpy.float32), f.astype(dtype)]
    for where, found in run_everywhere(weir, "--input=in.safetensors"):
        for i, values in enumerate(expected):
            same = found[f"result{i}"] == values
            assert same.all(), f"result {i} of {x[~same][0]}, {f[~same][0]} on {where}"


@pytest.mark.parametrize("size", [1, 2, 3, 101, 128, 4099])
def test_ends_of_words(weir, size):
    """Elements behind the last whole word, with and without vectors, through a buffer in between."""
    text = make_map(["i8", "i16", "f16", "i1"], ["i8", "i16", "f16", "i1"], """    %r0 = arith.addi %v0, %v0 : i8
    %r1 = arith.subi %v1, %v1 : i16
    linalg.yield %r0, %r1, %v2, %v3 : i8, i16, f16, i1""", size)
    compile_small(weir, text)
    random = numpy.random.default_rng(size)
    values = {"arg0": random.integers(-128, 128, size, dtype=numpy.int8),
              "arg1": random.integers(-(1 << 15), 1 << 15, size, dtype=numpy.int16),
              "arg2": random.integers(0, 0x7C00, size, dtype=numpy.uint16).view(numpy.float16),
              "arg3": random.integers(0, 2, size).astype(bool)}
    save_file(values, weir.folder / "in.safetensors")
    for where, found in run_everywhere(weir, "--input=in.safetensors"):
        assert (found["result0"] == values["arg0"] + values["arg0"]).all(), where
        assert (found["result1"] == 0).all(), where
        assert (found["result2"] == values["arg2"]).all(), where
        assert (found["result3"] == values["arg3"]).all(), where
    check_all_proved(weir)


@pytest.mark.parametrize("element", ["f16", "bf16", "i8"])
def test_rows_in_place(weir, element):
    """Rows of an odd number of elements, inserted at computed places into an argument that gives its bytes away."""
    compile_small(weir, f"""func.func @f(%all: tensor<9x7x{element}> {{weir.donate}}, %new: tensor<1x7x{element}>, %at: tensor<i64>)
    -> tensor<9x7x{element}> {{
  %i = tensor.extract %at[] : tensor<i64>
  %n = arith.index_cast %i : i64 to index
  %r = tensor.insert_slice %new into %all[%n, 0] [1, 7] [1, 1] : tensor<1x7x{element}> into tensor<9x7x{element}>
  return %r : tensor<9x7x{element}>
}}""")
    weir.run("run", "small.weir", "--device=reference", "--random-inputs=3", "--output=expected.safetensors")
    expected = (weir.folder / "expected.safetensors").read_bytes()
    for where, found in run_everywhere(weir, "--random-inputs=3", read=pathlib.Path.read_bytes):
        assert found == expected, where


STEPS = """func.func @f(%x: tensor<5x7xf16>) -> (tensor<5xf16>) {
  %e = tensor.empty() : tensor<5x7xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(a,b)->(a,b)>, affine_map<(a,b)->(a,b)>], iterator_types=["parallel","parallel"]} ins(%x : tensor<5x7xf16>) outs(%e : tensor<5x7xf32>) attrs = {weir.no_fuse} {
  ^bb0(%i: f16, %o: f32):
    %a = arith.extf %i : f16 to f32
    linalg.yield %a : f32
  } -> tensor<5x7xf32>
  %z = arith.constant dense<0.0> : tensor<5xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a,b)->(a,b)>, affine_map<(a,b)->(a)>], iterator_types=["parallel","reduction"]} ins(%w : tensor<5x7xf32>) outs(%z : tensor<5xf32>) {
  ^bb0(%i: f32, %o: f32):
    %a = arith.addf %i, %o : f32
    linalg.yield %a : f32
  } -> tensor<5xf32>
  %e2 = tensor.empty() : tensor<5xf16>
  %t = linalg.generic {indexing_maps = [affine_map<(a)->(a)>, affine_map<(a)->(a)>], iterator_types=["parallel"]} ins(%s : tensor<5xf32>) outs(%e2 : tensor<5xf16>) {
  ^bb0(%i: f32, %o: f16):
    %a = arith.truncf %i : f32 to f16
    linalg.yield %a : f16
  } -> tensor<5xf16>
  %e3 = tensor.empty() : tensor<5xf16>
  %u = linalg.generic {indexing_maps = [affine_map<(a)->(a)>, affine_map<(a)->(a)>], iterator_types=["parallel"]} ins(%t : tensor<5xf16>) outs(%e3 : tensor<5xf16>) attrs = {weir.no_fuse} {
  ^bb0(%i: f16, %o: f16):
    %a = arith.negf %i : f16
    linalg.yield %a : f16
  } -> tensor<5xf16>
  return %u : tensor<5xf16>
}
"""


@pytest.mark.parametrize("device", ["vulkan", "sim"])
def test_values_of_words(weir, device):
    """Tools find the elements in words: right ones, and the first infinity."""
    compile_small(weir, STEPS)
    assert "values: all 3 that dispatches write are the reference's" in \
        weir.run("run", "small.weir", f"--device={device}", "--random-inputs=1", "--check-values")
    x = numpy.zeros((5, 7), numpy.float16)
    x[3] = 60000
    save_file({"arg0": x}, weir.folder / "in.safetensors")
    text = weir.run("run", "small.weir", f"--device={device}", "--input=in.safetensors", "--check-values",
                    status=1)
    assert "element 3 is inf" in text and "the first that deviates from the reference, in 'value1'" in text, text


@pytest.mark.parametrize("seed", [*range(6, 14), 22, 27])
def test_random_graphs(weir, seed):
    text = make(seed, differentiable=seed % 2 == 0).text()
    if "f64" in text:
        pytest.skip("f64 is refused")
    compile_small(weir, text)
    weir.run("run", "small.weir", "--device=reference", "--f64", f"--random-inputs={seed}", "--output=expected.safetensors")
    for artifact, device, driver in [("small.weir", "vulkan", None), ("small.weir", "sim", None), ("minimum.weir", "sim", None),
                                     *([("minimum.weir", "vulkan", SECOND_DRIVER)] if SECOND_DRIVER else [])]:
        weir.run("run", artifact, f"--device={device}", f"--random-inputs={seed}", "--compare=expected.safetensors",
                 f"--tolerance={BOUND}", driver=driver)
    check_all_proved(weir)


RACE = """#g = #gpu.address_space<global>
module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%x: memref<8xi32, #g> {schedule.effect = #schedule.effect<read>},
                %y: memref<2xi32, #g> {schedule.effect = #schedule.effect<write, covers_all = true>})
        kernel attributes {known_block_size = array<i32: 8, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : i32
      %zero = arith.constant 0 : index
      %two = arith.constant 2 : index
      %word = WORD
      %a = memref.load %x[%i] : memref<8xi32, #g>
      %rest = arith.remui %i, %c4 : index
      %number = arith.index_castui %rest : index to i32
      %by = arith.muli %number, %c8 : i32
      %byte = arith.shli %a, %by : i32
      %inside = arith.cmpi ult, %word, %two : index
      scf.if %inside {
        memref.store %byte, %y[%word] : memref<2xi32, #g>
      }
      gpu.return
    }
  }
  func.func @f(%x: memref<8xi32>, %y: memref<2xi32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@k [1, 1, 1] (%x, %y) : (memref<8xi32>, memref<2xi32>)
    }
    return
  }
}
"""


@pytest.mark.parametrize("word, is_race", [("arith.divui %i, %c4 : index", True), ("arith.addi %i, %zero : index", False)])
def test_bytes_of_one_word_are_a_race(weir, word, is_race):
    """Invocations that write other bytes of one word write the word."""
    (weir.folder / "a.mlir").write_text(RACE.replace("WORD", word))
    command = [BIN / "weir-opt", "--weir-set-profile=profile=minimum", "a.mlir", "-o", "b.mlir"]
    subprocess.run(command, cwd=weir.folder, check=True)
    done = subprocess.run([BIN / "weir", "compile", "b.mlir", "--start-from=dispatches", "-o", "b.weir"],
                          cwd=weir.folder, capture_output=True, text=True)
    assert ("write the same bytes by this instruction" in done.stderr) == is_race, done.stderr
    assert (done.returncode != 0) == is_race, done.stderr


@pytest.mark.skipif(not SECOND_DRIVER, reason="there is no second driver; Debian's package is chromium-common")
def test_a_device_is_named(weir):
    """Of two drivers either one, by a part of its device's name."""
    compile_small(weir, make_map(["i64"], ["i64"], "    linalg.yield %v0 : i64", 5))
    first = weir.run("devices", "--api=vulkan").splitlines()[1]
    own = json.loads(weir.run("devices", "--api=vulkan", "--json"))[0]["name"]
    second = json.loads(weir.run("devices", "--api=vulkan", "--json", driver=SECOND_DRIVER))[0]["name"]
    assert own in first and own != second
    both = f"{SECOND_DRIVER}:{':'.join(map(str, pathlib.Path('/usr/share/vulkan/icd.d').glob('lvp_icd*.json')))}"
    weir.run("run", "minimum.weir", f"--device=vulkan:{second[:8].upper()}", "--random-inputs=1", driver=both)
    weir.run("run", "small.weir", f"--device=vulkan:{own[:8].upper()}", "--random-inputs=1", driver=both)
    # Nothing in this code tells how large a subgroup is.
    weir.run("run", "small.weir", f"--device=vulkan:{second[:8]}", "--random-inputs=1", driver=both)
    weir.run("run", "small.weir", "--device=vulkan:neither", "--random-inputs=1", driver=both, status=2)
