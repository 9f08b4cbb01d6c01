"""f64 inside of a graph of f32, on a device that has none: pairs of f32 on Vulkan and the simulator, against
NumPy's f64, and what is refused."""

import json
import re
import subprocess
import zipfile

import numpy
import ptxas
import pytest
from conftest import BIN
from safetensors.numpy import load_file, save_file

def make_variance(rows, columns, axis, one_pass):
    """The variance of each row or column, as torch-mlir writes it: extended, in two passes, rounded at
    its end; or the mean of the squares less the square of the mean. Then the mean."""
    n = columns if axis else rows
    kept = rows if axis else columns
    whole, wide, sums = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}x{columns}xf64>", f"tensor<{kept}xf64>"
    letter = "i" if axis else "j"
    kinds = '"parallel", "reduction"' if axis else '"reduction", "parallel"'

    def reduce(name, value):
        return f"""
  {name} = linalg.generic {{indexing_maps = [#all, #kept], iterator_types = [{kinds}]}}
      ins({value} : {wide}) outs(%zeros : {sums}) {{
  ^bb0(%v: f64, %o: f64):
    %s = arith.addf %v, %o : f64
    linalg.yield %s : f64
  }} -> {sums}"""

    def map_kept(name, values, body, result="f64"):
        maps = ", ".join(["#each"] * (len(values) + 1))
        types = ", ".join([sums] * len(values))
        inputs = ", ".join(f"%v{i}: f64" for i in range(len(values)))
        out = "%narrow" if result == "f32" else "%sums"
        return f"""
  {name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins({", ".join(values)} : {types}) outs({out} : tensor<{kept}x{result}>) {{
  ^bb0({inputs}, %o: {result}):
    {body}
  }} -> tensor<{kept}x{result}>"""

    def square(name, value, mean=None):
        ins, types, block = value, wide, "%v: f64"
        body = "%p = arith.mulf %v, %v : f64"
        maps = "#all, #all"
        if mean:
            ins, types, block, maps = f"{value}, {mean}", f"{wide}, {sums}", "%v: f64, %m: f64", "#all, #kept, #all"
            body = "%d = arith.subf %v, %m : f64\n    %p = arith.mulf %d, %d : f64"
        return f"""
  {name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins({ins} : {types}) outs(%wide : {wide}) {{
  ^bb0({block}, %o: f64):
    {body}
    linalg.yield %p : f64
  }} -> {wide}"""

    divide = "%q = arith.divf %v0, %n : f64\n    linalg.yield %q : f64"
    truncate = "%t = arith.truncf %v0 : f64 to f32\n    linalg.yield %t : f32"
    text = f"""#all = affine_map<(i, j) -> (i, j)>
#kept = affine_map<(i, j) -> ({letter})>
#each = affine_map<(i) -> (i)>
func.func @f(%x: {whole}) -> (tensor<{kept}xf32>, tensor<{kept}xf32>) {{
  %n = arith.constant {n}.0 : f64
  %zeros = arith.constant dense<0.0> : {sums}
  %wide = tensor.empty() : {wide}
  %sums = tensor.empty() : {sums}
  %narrow = tensor.empty() : tensor<{kept}xf32>
  %e = linalg.generic {{indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%x : {whole}) outs(%wide : {wide}) {{
  ^bb0(%v: f32, %o: f64):
    %w = arith.extf %v : f32 to f64
    linalg.yield %w : f64
  }} -> {wide}"""
    text += reduce("%sum", "%e") + map_kept("%mean", ["%sum"], divide)
    text += square("%squares", "%e", None if one_pass else "%mean")
    text += reduce("%total", "%squares") + map_kept("%second", ["%total"], divide)
    text += map_kept("%var", ["%second", "%mean"], "%p = arith.mulf %v1, %v1 : f64\n    %d = arith.subf %v0, %p : f64\n"
                     "    linalg.yield %d : f64") if one_pass else ""
    text += map_kept("%r", ["%var" if one_pass else "%second"], truncate, "f32")
    text += map_kept("%m", ["%mean"], truncate, "f32")
    return text + f"\n  return %r, %m : tensor<{kept}xf32>, tensor<{kept}xf32>\n}}\n"


def compile_narrow(weir, text, *flags, **profile):
    artifact = weir.compile_text(text, "a", f"--target=vulkan:{weir.profile(float64=False, **profile)}", *flags)
    weir.run("verify", artifact)
    return artifact


def run(weir, artifact, *flags):
    """On Vulkan and, with the same bits, on the simulator."""
    output = weir.folder / "out.safetensors"
    weir.run("run", artifact, *flags, "--input=in.safetensors", f"--output={output}")
    weir.simulate(artifact, [*flags, "--input=in.safetensors"], output)
    return load_file(output)


SHAPES = [(3, 1, 1), (4, 7, 1), (5, 1000, 1), (1, 100_003, 1), (1000, 6, 0)]


@pytest.mark.parametrize("mean", [0, 1000])
@pytest.mark.parametrize("rows, columns, axis", SHAPES)
def test_variance(weir, rows, columns, axis, mean):
    """Off by less than f32 rounds, where its terms cancel, too."""
    random = numpy.random.default_rng(rows + columns)
    x = (mean + 1e-2 * random.standard_normal((rows, columns))).astype(numpy.float32)
    save_file({"arg0": x}, weir.folder / "in.safetensors")
    x = x.astype(numpy.float64)
    expected = {"result0": x.var(axis), "result1": x.mean(axis)}
    for one_pass in False, True:
        artifact = compile_narrow(weir, make_variance(rows, columns, axis, one_pass))
        found = run(weir, artifact)
        for name, wanted in expected.items():
            error = abs(found[name] - wanted).max() / (abs(wanted).max() or 1)
            # What cancels in one pass are squares, 10^10 times the variance.
            bound = 1e-2 if one_pass and mean and name == "result0" else 1e-7
            assert error < bound, (name, one_pass, error)


@pytest.mark.parametrize("rows, columns, axis", [(4, 7, 1), (5, 1000, 1), (1000, 6, 0)])
def test_gradient(weir, rows, columns, axis):
    random = numpy.random.default_rng(3)
    x = (1000 + 1e-2 * random.standard_normal((rows, columns))).astype(numpy.float32)
    kept = rows if axis else columns
    dv, dm = random.standard_normal((2, kept)).astype(numpy.float32)
    save_file({"arg0": x, "cotangent.result0": dv, "cotangent.result1": dm}, weir.folder / "in.safetensors")
    artifact = compile_narrow(weir, make_variance(rows, columns, axis, False), "--vjp=f", "--entry=f.vjp")
    found = run(weir, artifact)["grad.arg0"]
    n = columns if axis else rows
    wide = x.astype(numpy.float64)
    expand = (slice(None), None) if axis else (None, slice(None))
    expected = (2 * dv[expand] * (wide - wide.mean(axis, keepdims=True)) + dm[expand]) / n
    assert abs(found - expected).max() < 1e-7 * abs(expected).max()
    weir.run("run", artifact, "--input=in.safetensors", "--check-values")


def test_other_profiles(weir):
    """Elements one by one, long loops cut, buffers without words of 64 bits, rows of a workgroup."""
    x = (1000 + 1e-2 * numpy.random.default_rng(1).standard_normal((3, 1000))).astype(numpy.float32)
    save_file({"arg0": x}, weir.folder / "in.safetensors")
    expected = x.astype(numpy.float64).var(1)
    for changes in ({"vector_width": 1}, {"max_loop_trips": 60}, {"int64": False, "words64": False},
                    {"row_mapping": "workgroup", "workgroup_size": 64}):
        found = run(weir, compile_narrow(weir, make_variance(3, 1000, 1, False), **changes))["result0"]
        assert abs(found - expected).max() < 1e-7 * expected.max(), changes


@pytest.mark.parametrize("m, n, k", [(8, 12, 20), (5, 7, 33)])
def test_contraction(weir, m, n, k):
    """A product of matrices in f64, of rows that nearly cancel, and a running sum that one invocation walks."""
    extend = """linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
      ins({0} : tensor<{1}xf32>) outs({2} : tensor<{1}xf64>) {{
  ^bb0(%v: f32, %o: f64):
    %w = arith.extf %v : f32 to f64
    linalg.yield %w : f64
  }} -> tensor<{1}xf64>"""
    text = f"""#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<{m}x{k}xf32>, %y: tensor<{k}x{n}xf32>) -> (tensor<{m}x{n}xf32>, tensor<{m}xf32>) {{
  %ex = tensor.empty() : tensor<{m}x{k}xf64>
  %ey = tensor.empty() : tensor<{k}x{n}xf64>
  %er = tensor.empty() : tensor<{m}x{n}xf32>
  %es = tensor.empty() : tensor<{m}xf32>
  %a = {extend.format("%x", f"{m}x{k}", "%ex")}
  %b = {extend.format("%y", f"{k}x{n}", "%ey")}
  %zeros = arith.constant dense<0.0> : tensor<{m}x{n}xf64>
  %c = linalg.matmul ins(%a, %b : tensor<{m}x{k}xf64>, tensor<{k}x{n}xf64>) outs(%zeros : tensor<{m}x{n}xf64>)
      -> tensor<{m}x{n}xf64>
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%c : tensor<{m}x{n}xf64>) outs(%er : tensor<{m}x{n}xf32>) {{
  ^bb0(%v: f64, %o: f32):
    %t = arith.truncf %v : f64 to f32
    linalg.yield %t : f32
  }} -> tensor<{m}x{n}xf32>
  %start = arith.constant dense<0.0> : tensor<{m}xf64>
  %d = linalg.generic {{indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%a : tensor<{m}x{k}xf64>) outs(%start : tensor<{m}xf64>) {{
  ^bb0(%v: f64, %o: f64):
    %p = arith.subf %v, %o : f64
    linalg.yield %p : f64
  }} -> tensor<{m}xf64>
  %s = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%d : tensor<{m}xf64>) outs(%es : tensor<{m}xf32>) {{
  ^bb0(%v: f64, %o: f32):
    %t = arith.truncf %v : f64 to f32
    linalg.yield %t : f32
  }} -> tensor<{m}xf32>
  return %r, %s : tensor<{m}x{n}xf32>, tensor<{m}xf32>
}}"""
    random = numpy.random.default_rng(5)
    x, y = (random.standard_normal(shape).astype(numpy.float32) for shape in ((m, k), (k, n)))
    x[:, 1], y[1] = -x[:, 0] * numpy.float32(1 + 2**-20), y[0]
    x[:, :2] *= 1000
    save_file({"arg0": x, "arg1": y}, weir.folder / "in.safetensors")
    found = run(weir, compile_narrow(weir, text))
    a, b = x.astype(numpy.float64), y.astype(numpy.float64)
    signs = (-1.0)**numpy.arange(k)[::-1]
    assert abs(found["result0"] - a @ b).max() < 1e-7 * abs(a @ b).max()
    assert abs(found["result1"] - a @ signs).max() < 1e-7 * abs(a @ signs).max()


# Of wide %a and %b; in NumPy.
OPERATIONS = {"add": ("%y = arith.addf %a, %b : f64", numpy.add),
              "sub": ("%y = arith.subf %a, %b : f64", numpy.subtract),
              "mul": ("%y = arith.mulf %a, %b : f64", numpy.multiply),
              "div": ("%y = arith.divf %a, %b : f64", numpy.divide),
              "neg": ("%y = arith.negf %a : f64", lambda a, b: -a),
              "abs": ("%y = math.absf %a : f64", lambda a, b: abs(a)),
              "sqrt": ("%p = math.absf %a : f64  %y = math.sqrt %p : f64", lambda a, b: numpy.sqrt(abs(a))),
              "rsqrt": ("%p = math.absf %a : f64  %y = math.rsqrt %p : f64", lambda a, b: 1 / numpy.sqrt(abs(a))),
              "fma": ("%y = math.fma %a, %b, %a : f64", lambda a, b: a * b + a),
              "cube": ("%n = arith.constant 3 : i32  %y = math.fpowi %a, %n : f64, i32", lambda a, b: a**3),
              "inverse": ("%n = arith.constant -2 : i32  %y = math.fpowi %a, %n : f64, i32", lambda a, b: a**-2.0),
              "maximum": ("%y = arith.maximumf %a, %b : f64", numpy.maximum),
              "minimum": ("%y = arith.minimumf %a, %b : f64", numpy.minimum),
              "maxnum": ("%y = arith.maxnumf %a, %b : f64", numpy.fmax),
              "minnum": ("%y = arith.minnumf %a, %b : f64", numpy.fmin),
              "tenth": ("%t = arith.constant 0.1 : f64  %y = arith.mulf %a, %t : f64", lambda a, b: a * 0.1),
              "select": ("%c = arith.cmpf ult, %a, %b : f64  %y = arith.select %c, %b, %a : f64",
                         lambda a, b: numpy.where(~(a >= b), b, a)),
              "f16": ("%h = arith.truncf %a : f64 to f16  %y = arith.extf %h : f16 to f64",
                      lambda a, b: a.astype(numpy.float16).astype(numpy.float64)),
              "floor": ("%k = arith.constant 1.0e+06 : f64  %s = arith.mulf %a, %k : f64  %y = math.floor %s : f64",
                        lambda a, b: numpy.floor(a * 1e6)),
              "ceil": ("%k = arith.constant 1.0e+06 : f64  %s = arith.mulf %a, %k : f64  %y = math.ceil %s : f64",
                       lambda a, b: numpy.ceil(a * 1e6)),
              "trunc": ("%k = arith.constant 1.0e+06 : f64  %s = arith.mulf %a, %k : f64  %y = math.trunc %s : f64",
                        lambda a, b: numpy.trunc(a * 1e6)),
              "i32": ("%k = arith.constant 1.0e+03 : f64  %s = arith.mulf %a, %k : f64  "
                      "%i = arith.fptosi %s : f64 to i32  %y = arith.sitofp %i : i32 to f64", lambda a, b: numpy.trunc(a * 1000))}


EXACT = ["neg", "abs", "maximum", "minimum", "maxnum", "minnum", "select", "f16", "floor", "ceil", "trunc", "i32"]


def make_operations(size):
    """Each operation of x + 2^-26 y and its neighbour; as the nearest f32 and what is left."""
    narrow = f"tensor<{size}xf32>"
    ops = []
    for name, (body, _) in OPERATIONS.items():
        lines = body.replace("  %", "\n    %")
        ops.append(f"""
  %{name}:2 = linalg.generic {{indexing_maps = [#id, #id, #id, #id, #id, #id], iterator_types = ["parallel"]}}
      ins(%x, %dx, %z, %dz : {narrow}, {narrow}, {narrow}, {narrow}) outs(%e, %e : {narrow}, {narrow}) {{
  ^bb0(%a0: f32, %a1: f32, %b0: f32, %b1: f32, %o0: f32, %o1: f32):
    %u = arith.constant 0x3e50000000000000 : f64
    %a2 = arith.extf %a0 : f32 to f64
    %a3 = arith.extf %a1 : f32 to f64
    %a4 = arith.mulf %a3, %u : f64
    %a = arith.addf %a2, %a4 : f64
    %b2 = arith.extf %b0 : f32 to f64
    %b3 = arith.extf %b1 : f32 to f64
    %b4 = arith.mulf %b3, %u : f64
    %b = arith.addf %b2, %b4 : f64
    {lines}
    %high = arith.truncf %y : f64 to f32
    %back = arith.extf %high : f32 to f64
    %rest = arith.subf %y, %back : f64
    %low = arith.truncf %rest : f64 to f32
    linalg.yield %high, %low : f32, f32
  }} -> ({narrow}, {narrow})""")
    arguments = ", ".join(f"%{name}: {narrow}" for name in ["x", "dx", "z", "dz"])
    results = ", ".join(f"%{name}#0, %{name}#1" for name in OPERATIONS)
    types = ", ".join([narrow] * 2 * len(OPERATIONS))
    return f"""#id = affine_map<(i) -> (i)>
func.func @f({arguments}) -> ({types}) {{
  %e = tensor.empty() : {narrow}
  {"".join(ops)}
  return {results} : {types}
}}"""


@pytest.mark.parametrize("size", [1024, 1025])
def test_operations(weir, size):
    """To 2^-43, in vectors and alone."""
    random = numpy.random.default_rng(size)
    numbers = random.uniform(-1, 1, (4, size)) * numpy.exp2(random.integers(-4, 5, (4, size)))
    x, z, dx, dz = numbers.astype(numpy.float32)
    z[:128] = x[:128] * numpy.float32(1 + 2**-20)  # near, and the same
    z[128:256] = x[128:256]
    x[256:320] = 1 + (2 * numpy.arange(64) + 1) * 2.0**-11  # between two of f16: the rest decides
    save_file({"arg0": x, "arg1": dx, "arg2": z, "arg3": dz}, weir.folder / "in.safetensors")
    found = run(weir, compile_narrow(weir, make_operations(size)))
    a, b = x + numpy.float64(2.0**-26) * dx, z + numpy.float64(2.0**-26) * dz
    for number, (name, (_, function)) in enumerate(OPERATIONS.items()):
        result = found[f"result{2 * number}"] + found[f"result{2 * number + 1}"].astype(numpy.float64)
        expected = function(a, b)
        scale = abs(expected)
        if name in ("add", "sub", "fma"):  # what cancels is off by the operands' last bits
            scale = scale + 2.0**-4 * numpy.maximum(abs(a), abs(b))
        error = (abs(result - expected) / numpy.where(scale == 0, 1, scale)).max()
        assert error <= (0 if name in EXACT else 2.0**-43), (name, error)


def test_special_values(weir):
    """Infinities and NaNs come out as of one float."""
    special = numpy.array([0, 1, -2, numpy.inf, -numpy.inf, numpy.nan, 3e38, 1e-30], numpy.float32)
    x, z = numpy.repeat(special, 8), numpy.tile(special, 8)
    none = numpy.zeros(64, numpy.float32)
    save_file({"arg0": x, "arg1": none, "arg2": z, "arg3": none}, weir.folder / "in.safetensors")
    found = run(weir, compile_narrow(weir, make_operations(64)))
    with numpy.errstate(all="ignore"):
        for number, (name, (_, function)) in enumerate(OPERATIONS.items()):
            if name in ("i32", "floor", "ceil", "trunc"):  # of no integer, or too large
                continue
            kind = numpy.float32 if name == "fma" else numpy.float64  # its product has no more range
            expected = function(x.astype(kind), z.astype(kind)).astype(numpy.float32)
            result = found[f"result{2 * number}"]
            # What is below the least normal number may be a zero.
            same = (numpy.isnan(result) & numpy.isnan(expected)) | numpy.isclose(result, expected, 1e-6, 2e-38)
            assert same.all(), (name, x[~same], z[~same], result[~same], expected[~same])


def test_integers(weir):
    """All bits of 32, and of 64 as many as a pair has."""
    text = """#id = affine_map<(i) -> (i)>
func.func @f(%x: tensor<8xi32>, %y: tensor<8xi64>) -> (tensor<8xi32>, tensor<8xi32>, tensor<8xi64>) {
  %e = tensor.empty() : tensor<8xi32>
  %e64 = tensor.empty() : tensor<8xi64>
  %r:3 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<8xi32>, tensor<8xi64>) outs(%e, %e, %e64 : tensor<8xi32>, tensor<8xi32>, tensor<8xi64>) {
  ^bb0(%a: i32, %b: i64, %o: i32, %p: i32, %q: i64):
    %s = arith.sitofp %a : i32 to f64
    %t = arith.fptosi %s : f64 to i32
    %u = arith.uitofp %a : i32 to f64
    %v = arith.fptoui %u : f64 to i32
    %w = arith.sitofp %b : i64 to f64
    %z = arith.fptosi %w : f64 to i64
    linalg.yield %t, %v, %z : i32, i32, i64
  } -> (tensor<8xi32>, tensor<8xi32>, tensor<8xi64>)
  return %r#0, %r#1, %r#2 : tensor<8xi32>, tensor<8xi32>, tensor<8xi64>
}"""
    x = numpy.array([0, 1, -1, 2**31 - 1, -2**31, 123456789, -987654321, 2**24 + 1], numpy.int32)
    y = numpy.array([0, 1, -1, 2**46 - 1, -2**46 + 1, 2**40 + 1, -2**62, 123456789012345], numpy.int64)
    save_file({"arg0": x, "arg1": y}, weir.folder / "in.safetensors")
    found = run(weir, compile_narrow(weir, text))
    assert (found["result0"] == x).all() and (found["result1"] == x).all()
    assert (found["result2"] == y).all(), found["result2"] - y


SCALE = """func.func @f(%x: tensor<8x{0}>) -> tensor<8x{1}> {{
  %e = tensor.empty() : tensor<8x{1}>
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%x : tensor<8x{0}>) outs(%e : tensor<8x{1}>) {{
  ^bb0(%a: {0}, %o: {1}):
    {2}
  }} -> tensor<8x{1}>
  return %r : tensor<8x{1}>
}}"""


@pytest.mark.parametrize("text, sentence", [
    (SCALE.format("f64", "f32", "%r = arith.truncf %a : f64 to f32\n    linalg.yield %r : f32"),
     "argument 0 holds 'f64', profile 'changed' lacks that type"),
    (SCALE.format("f32", "f64", "%r = arith.extf %a : f32 to f64\n    linalg.yield %r : f64"),
     "argument 1 holds 'f64', profile 'changed' lacks that type"),
    (SCALE.format("f32", "f32", "%w = arith.extf %a : f32 to f64\n    %s = math.exp %w : f64\n"
                  "    %r = arith.truncf %s : f64 to f32\n    linalg.yield %r : f32"),
     "kernel @map_8 computes in f64, which the target lacks, and math.exp has no form in pairs of f32")])
def test_what_stays_of_f64_is_refused(weir, text, sentence):
    (weir.folder / "a.mlir").write_text(text)
    target = f"--target=vulkan:{weir.profile(float64=False)}"
    done = subprocess.run([BIN / "weir", "compile", weir.folder / "a.mlir", target, "-o", weir.folder / "a.weir"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and sentence in done.stderr, done.stderr
    assert not (weir.folder / "a.weir").exists()


def test_with_f64_nothing_is_narrowed(weir):
    """The same artifact as ever where the device has f64."""
    text = make_variance(5, 40, 1, False)
    modules = {}
    for name, has in {"with": True, "without": False}.items():
        artifact = weir.compile_text(text, name, f"--target=vulkan:{weir.profile(float64=has)}")
        with zipfile.ZipFile(artifact) as archive:
            code = [archive.read(file) for file in archive.namelist() if file.endswith(".spv")]
        modules[name] = any(declares_float64(words) for words in code)
    assert modules == {"with": True, "without": False}


def test_for_cuda(weir):
    """Each sum and product rounds by itself, and none is of f64."""
    text = make_variance(5, 40, 1, False)
    with zipfile.ZipFile(weir.compile_text(text, "a", "--target=cuda")) as archive:
        profile = json.loads(archive.read("manifest.json"))["targets"][0]
    (weir.folder / "without.json").write_text(json.dumps(profile | {"name": "without", "float64": False}))
    artifact = weir.compile_text(text, "b", f"--target=cuda:{weir.folder / 'without.json'}")
    with zipfile.ZipFile(artifact) as archive:
        code = "".join(archive.read(file).decode() for file in archive.namelist() if file.endswith(".ptx"))
    assert "add.rn.f32" in code and "mul.rn.f32" in code and not re.search(r"f64|(add|sub|mul)\.f32", code)
    if ptxas.PTXAS:
        ptxas.assemble_artifact(artifact, weir.folder)


def declares_float64(words):
    words = numpy.frombuffer(words, numpy.uint32)[5:]
    while words[0] & 0xffff == 17:  # OpCapability
        if words[1] == 10:  # Float64
            return True
        words = words[2:]
    return False
