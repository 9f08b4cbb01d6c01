"""Every function of `math`, of f32 and of f64, on Vulkan and on each instruction set of the processor against the
reference, which takes the host's, and for CUDA as far as ptxas. The unit tests measure the errors; here the targets'
arithmetic is at work."""

import numpy
import pytest
from conftest import list_isas
from safetensors.numpy import load_file, save_file

ALL, POSITIVE, INSIDE, ABOVE_ONE = (-30, 30), (0, 1e5), (-1, 1), (1, 1e3)
UNARY = {"absf": ALL, "acos": INSIDE, "acosh": ABOVE_ONE, "asin": INSIDE, "asinh": ALL, "atan": ALL, "atanh": INSIDE,
         "cbrt": ALL, "ceil": ALL, "cos": (-1e6, 1e6), "cosh": (-5, 5), "erf": (-7, 7), "erfc": (-7, 9),
         "exp": (-60, 5), "exp2": (-60, 5), "expm1": (-60, 2), "floor": ALL, "log": POSITIVE, "log10": POSITIVE,
         "log1p": (-1, 100), "log2": POSITIVE, "round": ALL, "roundeven": ALL, "rsqrt": (0.01, 1e5),
         "sin": (-1e6, 1e6), "sinh": (-5, 5), "sqrt": POSITIVE, "tan": (-1.5, 1.5), "tanh": ALL, "trunc": ALL}
CLASSES = ["isfinite", "isinf", "isnan", "isnormal"]
SEVERAL = {"atan2": ("%y = math.atan2 %a, %b : E", 2), "powf": ("%p = math.absf %a : E  %y = math.powf %p, %b : E", 2),
           "remf": ("%y = arith.remf %a, %b : E", 2), "copysign": ("%y = math.copysign %a, %b : E", 2),
           "fma": ("%y = math.fma %a, %b, %a : E", 2),
           "clampf": ("%m = math.absf %b : E  %l = arith.negf %m : E  %y = math.clampf %a to [%l, %m] : E", 2),
           "sincos": ("%s, %c = math.sincos %a : E  %y = arith.subf %s, %c : E", 2),
           "fpowi": ("%n = arith.fptosi %b : E to i32  %y = math.fpowi %a, %n : E, i32", 2),
           "fpowi_wide": ("%n = arith.fptosi %b : E to i64  %y = math.fpowi %a, %n : E, i64", 2),
           "fpowi_narrow": ("%n = arith.fptosi %b : E to i8  %y = math.fpowi %a, %n : E, i8", 2),
           "fpowi_large": ("%n = arith.constant 65 : i32  %y = math.fpowi %a, %n : E, i32", 1)}


def make_graph(cases, element, size):
    """A function with a result per (name, body, number of arguments); the body makes %y of
    the scalars %a and %b."""
    tensor = f"tensor<{size}x{element}>"
    ops, arguments = [], []
    for name, body, number in cases:
        letters = "ab"[:number]
        arguments += [f'%{name}_{i}: {tensor} {{weir.name = "{name}.{i}"}}' for i in letters]
        maps = ", ".join(["affine_map<(i) -> (i)>"] * (number + 1))
        ops.append(f"""
  %{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins({", ".join(f"%{name}_{i}" for i in letters)} : {", ".join([tensor] * number)}) outs(%empty : {tensor}) {{
  ^bb0({", ".join(f"%{i}: {element}" for i in letters)}, %out: {element}):
    {body.replace("  %", chr(10) + "    %").replace(": E", f": {element}")}
    linalg.yield %y : {element}
  }} -> {tensor}""")
    results = ", ".join(f"%{name}" for name, _, _ in cases)
    return f"""func.func @f({", ".join(arguments)}) -> ({", ".join([tensor] * len(cases))}) {{
  %empty = tensor.empty() : {tensor}
  {"".join(ops)}
  return {results} : {", ".join([tensor] * len(cases))}
}}"""


def compare(weir, cases, domains, element, size=61):
    """Each function over its domain, at the ends of it and at zeros."""
    kind = numpy.float32 if element == "f32" else numpy.float64
    inputs, random = {}, numpy.random.default_rng(7)
    for name, _, number in cases:
        for letter in "ab"[:number]:
            low, high = domains.get(name, ALL)
            values = random.uniform(low, high, size).astype(kind)
            values[:3] = low, high, max(low, 0)
            inputs[f"{name}.{letter}"] = values
    save_file(inputs, weir.folder / "in.safetensors")
    weir.cpus = list_isas()
    artifact = weir.compile_text(make_graph(cases, element, size))
    weir.compare(artifact, ["--input=in.safetensors"], "1e-13" if element == "f64" else "2e-6")


@pytest.mark.parametrize("size", [61, 80])
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_functions_of_one_number(weir, element, size):
    """On single elements, and on vectors where the target has some."""
    compare(weir, [(name, f"%y = math.{name} %a : E", 1) for name in UNARY], UNARY, element, size)


def test_powers_have_the_same_bits_on_each_processor(weir):
    """AVX-512 scales by an instruction that the others lack: down to denormals, and beyond all numbers."""
    x = numpy.concatenate([numpy.linspace(-105, -85, 240), numpy.linspace(88, 89, 16), [-numpy.inf, numpy.inf] * 8])
    save_file({"exp.a": x.astype(numpy.float32)}, weir.folder / "in.safetensors")
    (weir.folder / "a.mlir").write_text(make_graph([("exp", "%y = math.exp %a : E", 1)], "f32", len(x)))
    found = []
    for isa in list_isas():
        if isa == "x86-64-v2":
            continue  # rounds an fma twice
        weir.compile("a.mlir", "a", f"--target=cpu:{isa}")
        weir.run("run", "a.weir", "--device=cpu", "--input=in.safetensors", "--output=out.safetensors")
        found += load_file(weir.folder / "out.safetensors").values()
    with numpy.errstate(over="ignore"):
        expected = numpy.exp(x.astype(numpy.float32).astype(numpy.float64)).astype(numpy.float32)
    assert (numpy.abs(found[0].view(numpy.int32) - expected.view(numpy.int32)) <= 1).all()
    assert all(found[0].tobytes() == other.tobytes() for other in found)


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_rounding_at_ties(weir, element):
    kind, widest = (numpy.float32, 2.0**23) if element == "f32" else (numpy.float64, 2.0**52)
    half = numpy.array([0.5, numpy.nextafter(kind(0.5), kind(0)), 1.5, 2.5, 3.5, widest - 0.5, widest + 1, numpy.inf], kind)
    weir.cpus = list_isas()
    names = ["ceil", "floor", "round", "roundeven", "trunc"]
    cases = [(name, f"%y = math.{name} %a : E", 1) for name in names]
    save_file({f"{name}.a": numpy.concatenate([half, -half]) for name in names}, weir.folder / "in.safetensors")
    weir.compare(weir.compile_text(make_graph(cases, element, 16)), ["--input=in.safetensors"], "0")


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_other_functions(weir, element):
    cases = [(name, body, number) for name, (body, number) in SEVERAL.items()]
    compare(weir, cases, {"powf": (-9, 9), "fpowi": (-3, 9), "fpowi_wide": (-3, 9), "fpowi_narrow": (-3, 9),
                          "fpowi_large": (-1.1, 1.1)}, element)


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_classes(weir, element):
    """On the device and by the reference, as written."""
    cases = [(name, f"%t = math.{name} %a : E  %y = arith.uitofp %t : i1 to {element}", 1) for name in CLASSES]
    kind = numpy.finfo(numpy.float32 if element == "f32" else numpy.float64)
    inf, nan = numpy.inf, numpy.nan
    values = numpy.array([0, -0.0, 1, -kind.max, kind.tiny, kind.tiny / 4, inf, -inf, nan], kind.dtype)
    save_file({f"{name}.a": values for name in CLASSES}, weir.folder / "in.safetensors")
    artifact = weir.compile_text(make_graph(cases, element, len(values)))
    finite = numpy.isfinite(values)
    expected = [finite, numpy.isinf(values), numpy.isnan(values), finite & (abs(values) >= kind.tiny)]
    for device in ["vulkan", "reference"]:
        weir.run("run", artifact, f"--device={device}", "--input=in.safetensors", "--output=out.safetensors")
        for result, one in zip(sorted(load_file(weir.folder / "out.safetensors").items()), expected, strict=True):
            assert (result[1] == one).all(), (device, result)


def test_functions_of_f64_need_integers(weir):
    """A device without 64-bit integers takes f64, but no function of it."""
    profile = weir.profile(int64=False, words64=False)
    graph = make_graph([("exp", "%y = math.exp %a : E", 1)], "f64", 4)
    (weir.folder / "a.mlir").write_text(graph)
    weir.run("compile", "a.mlir", "-o", "a.weir", f"--target=vulkan:{profile}", status=2)
    (weir.folder / "b.mlir").write_text(graph.replace("math.exp", "math.floor"))
    weir.run("compile", "b.mlir", "-o", "b.weir", f"--target=vulkan:{profile}")
