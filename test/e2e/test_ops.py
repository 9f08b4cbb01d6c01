"""Every registered op of the dialects that graphs are made of: it runs, on Vulkan against the
reference and on the simulator, or is refused with a sentence that names it."""

import re
import subprocess

import numpy
import pytest
from conftest import BIN, KEEP, get_cuda, get_hopper
from safetensors.numpy import load_file, save_file
from test_math import ALL, UNARY

DIALECTS = ["arith", "cf", "linalg", "math", "tensor"]
NUMPY = {"f32": numpy.float32, "f64": numpy.float64, "i1": numpy.bool_, "i8": numpy.int8, "i32": numpy.int32,
         "i64": numpy.int64}
INTEGERS, FLOATS = ["i8", "i32", "i64"], ["f32", "f64"]
RNG = numpy.random.default_rng(11)


def tensor(shape, element):
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def draw(type, low, high):
    *shape, element = re.match(r"tensor<(.*)>", type)[1].split("x")
    shape = [int(size) for size in shape]
    if element == "i1":
        return RNG.integers(0, 2, shape).astype(bool)
    if element in FLOATS:
        return RNG.uniform(low, high, shape).astype(NUMPY[element])
    return RNG.integers(low, high, shape, endpoint=True).astype(NUMPY[element])


class Case:
    """A graph of one result: `text` makes %r of type `result` of what `arguments` names. The
    domain of an argument is that of its name, or (-2, 2); what it must give is what `expected`
    makes of the arguments, or what the reference does."""

    def __init__(self, op, arguments, result, text, domains=None, expected=None):
        assert re.search(rf"\b{re.escape(op)}\b", text), (op, text)
        self.op, self.arguments, self.result, self.text, self.expected = op, arguments, result, text, expected
        self.domains = domains or {}

    def resize(self, size):
        arguments = {name: type.replace(f"<{SIZE}x", f"<{size}x") for name, type in self.arguments.items()}
        return Case(self.op, arguments, self.result.replace(f"<{SIZE}x", f"<{size}x"),
                    self.text.replace(f"<{SIZE}x", f"<{size}x"), self.domains, self.expected)

    def make_inputs(self):
        return {name: draw(type, *self.domains.get(name, (-2, 2))) for name, type in self.arguments.items()}


def make_graph(cases, entry):
    """A function with a result for each case; names are marked with the case's number."""
    arguments, results, text = [], [], ""
    for number, case in enumerate(cases):
        for name, type in case.arguments.items():
            arguments.append(f'%c{number}_{name}: {type} {{weir.name = "{number}.{name}"}}')
        results.append(case.result)
        text += "  " + re.sub(r"%(\w+)", rf"%c{number}_\1", case.text).strip() + "\n"
    named = ", ".join(f'{type} {{weir.name = "{number}"}}' for number, type in enumerate(results))
    return f"""func.func @{entry}({", ".join(arguments)}) -> ({named}) {{
{text}  return {", ".join(f"%c{number}_r" for number in range(len(cases)))} : {", ".join(results)}
}}
"""


# ---- arith

BINARY_INTEGERS = {op: {} for op in ["addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "maxui", "minsi", "minui"]}
BINARY_INTEGERS |= {op: {"b": (1, 9)} for op in ["divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui",
                                                 "floordivsi"]}
BINARY_INTEGERS |= {op: {"b": (0, 7)} for op in ["shli", "shrsi", "shrui"]}
BINARY_FLOATS = ["addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf"]
COMPARISONS = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
FLOAT_COMPARISONS = ["false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une",
                     "uno", "true"]
SIZE, VECTORS = 13, 8  # one of which kernels compute with vectors


def with_vectors(cases):
    return cases + [case.resize(VECTORS) for case in cases if not re.search("xi8|xi64|xf64", case.text)]


def elementwise(op, types, result, text=None, **more):
    """An op of tensors of 13 elements, of `types`."""
    arguments = {name: tensor([SIZE], type) for name, type in zip("abc", types)}
    text = text or f"%r = {op} {', '.join(f'%{name}' for name in arguments)} : {tensor([SIZE], types[0])}"
    return Case(op, arguments, tensor([SIZE], result), text, **more)


def make_arith():
    cases = []
    for type in ["i1", *INTEGERS]:
        for name, domains in BINARY_INTEGERS.items():
            if type == "i1" and domains:
                continue  # a division by 0, or a shift by all bits
            cases.append(elementwise(f"arith.{name}", [type] * 2, type, domains={"a": (-100, 100)} | domains))
        for predicate in COMPARISONS if type in ("i1", "i32") else ["sle", "ult"]:
            cases.append(elementwise("arith.cmpi", [type] * 2, "i1",
                                     f"%r = arith.cmpi {predicate}, %a, %b : {tensor([SIZE], type)}"))
    for type in INTEGERS:  # negative divisors
        for name in ["divsi", "remsi", "ceildivsi", "floordivsi"]:
            cases.append(elementwise(f"arith.{name}", [type] * 2, type, domains={"a": (-100, 100), "b": (-9, -2)}))
    for name in ["addui_extended", "mulsi_extended", "mului_extended"]:
        for type in ["i32", "i64"]:  # the simulator has none of fewer bits
            both, other = tensor([SIZE], type), tensor([SIZE], "i1" if name == "addui_extended" else type)
            types = f"{both}, {other}" if name == "addui_extended" else both
            for index in range(2):
                text = f"%v:2 = arith.{name} %a, %b : {types}\n  %e = tensor.empty() : {[both, other][index]}\n" \
                       f"  %r = linalg.copy ins(%v#{index} : {[both, other][index]}) " \
                       f"outs(%e : {[both, other][index]}) -> {[both, other][index]}"
                cases.append(Case(f"arith.{name}", {"a": both, "b": both}, [both, other][index], text,
                                  {"a": (-100, 100), "b": (-100, 100)}))
    for type in FLOATS:
        for name in BINARY_FLOATS:
            cases.append(elementwise(f"arith.{name}", [type] * 2, type))
        cases.append(elementwise("arith.negf", [type], type))
        for predicate in FLOAT_COMPARISONS if type == "f32" else ["one", "ult"]:
            cases.append(elementwise("arith.cmpf", [type] * 2, "i1",
                                     f"%r = arith.cmpf {predicate}, %a, %b : {tensor([SIZE], type)}"))

    def convert(name, old, new, domain=(-100, 100), **more):
        cases.append(elementwise(f"arith.{name}", [old], new,
                                 f"%r = arith.{name} %a : {tensor([SIZE], old)} to {tensor([SIZE], new)}",
                                 domains={"a": domain}, **more))

    widths = ["i1", *INTEGERS]
    for low in range(len(widths)):
        for high in range(low + 1, len(widths)):
            convert("extsi", widths[low], widths[high])
            convert("extui", widths[low], widths[high])
            convert("trunci", widths[high], widths[low])
    for new in FLOATS:
        for old in widths:
            convert("sitofp", old, new)
            convert("uitofp", old, new, (0, 100))
            if old != "i1":
                convert("fptosi", new, old)
                convert("fptoui", new, old, (0, 100))
    convert("extf", "f32", "f64")
    convert("truncf", "f64", "f32")
    for old, new in [("f32", "i32"), ("i32", "f32"), ("f64", "i64"), ("i64", "f64")]:
        domain = (0, 2**30) if old[0] == "i" else (-9, 9)
        convert("bitcast", old, new, domain, expected=lambda a, new=new: a.view(NUMPY[new]))
    for type in ["i1", *INTEGERS, *FLOATS]:
        both = tensor([SIZE], type)
        cases.append(elementwise("arith.select", ["i1", type, type], type,
                                 f"%r = arith.select %a, %b, %c : {tensor([SIZE], 'i1')}, {both}"))
        numbers = {"i1": "true, false, true"}.get(type, "3.5, -1.0, 0.0" if type in FLOATS else "3, -1, 0")
        cases.append(Case("arith.constant", {}, tensor([3], type),
                          f"%r = arith.constant dense<[{numbers}]> : {tensor([3], type)}"))
    for name in ["index_cast", "index_castui"]:
        for type in INTEGERS:
            cases.append(Case(f"arith.{name}", {"a": tensor([SIZE], type)}, tensor([SIZE], type), in_body(
                ["a"], type, SIZE, f"%n = arith.{name} %va : {type} to index\n    %j = linalg.index 0 : index\n"
                f"    %s = arith.addi %n, %j : index\n    %o = arith.{name} %s : index to {type}", "%o"),
                {"a": (0, 100)}))
    return with_vectors(cases)


def in_body(names, type, size, text, result):
    """A `linalg.generic` over vectors; the elements of %a are %va."""
    whole = tensor([size], type)
    maps = ", ".join(["affine_map<(i) -> (i)>"] * (len(names) + 1))
    return f"""%e = tensor.empty() : {whole}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins({", ".join(f"%{name}" for name in names)} : {", ".join([whole] * len(names))}) outs(%e : {whole}) {{
  ^bb0({", ".join(f"%v{name}: {type}" for name in names)}, %vo: {type}):
    {text}
    linalg.yield {result} : {type}
  }} -> {whole}"""


# ---- math

def make_math():
    cases = []
    for type in FLOATS:
        whole = tensor([SIZE], type)
        for name, domain in UNARY.items():
            cases.append(elementwise(f"math.{name}", [type], type, domains={"a": domain}))
        for name, domain in [("atan2", ALL), ("copysign", ALL), ("powf", (0.1, 9))]:
            cases.append(elementwise(f"math.{name}", [type] * 2, type, domains={"a": domain}))
        cases.append(elementwise("math.fma", [type] * 3, type))
        cases.append(elementwise("math.clampf", [type] * 3, type, f"%r = math.clampf %a to [%b, %c] : {whole}",
                                 domains={"b": (-1, 0), "c": (0, 1)}))
        cases.append(elementwise("math.fpowi", [type, "i32"], type,
                                 f"%r = math.fpowi %a, %b : {whole}, {tensor([SIZE], 'i32')}", domains={"b": (-3, 9)}))
        for index in range(2):
            cases.append(Case("math.sincos", {"a": whole}, whole, in_body(
                ["a"], type, SIZE, f"%t:2 = math.sincos %va : {type}", f"%t#{index}")))
        for name in ["isfinite", "isinf", "isnan", "isnormal"]:
            cases.append(elementwise(f"math.{name}", [type], "i1", f"%r = math.{name} %a : {whole}"))
    for type in INTEGERS:
        cases.append(elementwise("math.absi", [type], type, domains={"a": (-100, 100)}))
    cases.append(elementwise("math.ctlz", ["i32"], "i32", domains={"a": (-100, 100)}))
    return with_vectors(cases)


# ---- linalg

SIZES = {"b": 2, "m": 5, "n": 7, "k": 11, "M": 2, "N": 3, "K": 2, "x": 3, "y": 5, "z": 2}
# What each operand's dimensions are, by letters; the last is the result's.
CONTRACTIONS = {"matmul": "mk,kn,mn", "batch_matmul": "bmk,bkn,bmn", "batch_reduce_matmul": "bmk,bkn,mn",
                "matvec": "mk,k,m", "vecmat": "k,kn,n", "batch_matvec": "bmk,bk,bm", "batch_vecmat": "bk,bkn,bn",
                "dot": "k,k,", "mmt4d": "MKxz,NKyz,MNxy", "batch_mmt4d": "bMKxz,bNKyz,bMNxy",
                "quantized_matmul": "mk,kn,mn", "quantized_batch_matmul": "bmk,bkn,bmn", "contract": "mbk,kbn,nbm"}
ALSO_TRANSPOSED = {"matmul": ["km,kn,mn", "mk,nk,mn"], "batch_matmul": ["bkm,bkn,bmn", "bmk,bnk,bmn"],
                   "batch_reduce_matmul": ["bmk,bnk,mn"]}


def get_type(letters, element, sizes=SIZES):
    return tensor([sizes[letter] for letter in letters], element)


def named(name, inputs, result, attributes="", scalars=None, start="zero", domains=None, inner=None):
    """`inputs` are types by name; the result starts from an argument or a constant, `scalars`
    are constants after the inputs."""
    element = result.split("x")[-1].split("<")[-1][:-1]
    zero = "0" if element[0] == "i" else "0.0"
    values = {"zero": f"%z = arith.constant dense<{zero}> : {result}", "argument": "",
              "empty": f"%z = tensor.empty() : {result}"}
    start_text = values.get(start, f"%z = arith.constant dense<{start}> : {result}")
    text = "".join(f"%s{i} = arith.constant {value} : i32\n  " for i, value in enumerate(scalars or []))
    text += start_text + "\n  " if start_text else ""
    operands = [*(f"%{one}" for one in inputs), *(f"%s{i}" for i in range(len(scalars or [])))]
    types = [*inputs.values(), *["i32"] * len(scalars or [])]
    arguments = dict(inputs)
    if start == "argument":
        arguments["z"] = result
    text += f"%r = linalg.{name} {attributes} ins({', '.join(operands)} : {', '.join(types)}) " \
            f"outs(%z : {result}) -> {result}"
    return Case(f"linalg.{name}", arguments, result, text, domains)


def make_contractions():
    cases = []
    for name, letters in CONTRACTIONS.items():
        quantized = name.startswith("quantized")
        for dims in [letters, *ALSO_TRANSPOSED.get(name, [])]:
            lhs, rhs, result = dims.split(",")
            attributes = ""
            if dims != letters or name == "contract":
                loops = ", ".join(sorted(set(lhs + rhs), key="bmnk".index))
                maps = ", ".join(f"affine_map<({loops}) -> ({', '.join(one)})>" for one in (lhs, rhs, result))
                attributes = f"indexing_maps = [{maps}]"
            pairs = [("i8", "i32")] if quantized else [("f32", "f32"), ("f64", "f64"), ("i32", "i32"), ("i8", "i32"),
                                                       ("f32", "f64")]
            for old, new in pairs:
                cases.append(named(name, {"a": get_type(lhs, old), "b": get_type(rhs, old)}, get_type(result, new),
                                   attributes, [3, -5] if quantized else None,
                                   "zero" if new == "f32" else "argument",
                                   {"a": (-100, 100), "b": (-100, 100)} if old == "i8" else None))
    return cases


WINDOW = {"n": 2, "c": 3, "f": 5, "g": 2, "m": 2, "d": 2, "h": 3, "w": 5}
KERNEL = {"d": 2, "h": 3, "w": 2}
CONVOLUTIONS = ["nwc_wcf", "ncw_fcw", "nhwc_hwcf", "nhwc_fhwc", "nhwc_hwcf_q", "nhwc_fhwc_q", "nchw_fchw_q",
                "nchw_fchw", "ngchw_fgchw", "ngchw_gfchw", "nhwgc_gfhwc", "nhwgc_gfhwc_q", "ngchw_gfchw_q",
                "ndhwc_dhwcf", "ndhwc_dhwcf_q", "ncdhw_fcdhw"]
DEPTHWISE = ["nwc_wc", "ncw_cw", "nwc_wcm", "nhwc_hwc", "nchw_chw", "nhwc_hwc_q", "nhwc_hwcm", "nhwc_hwcm_q",
             "ndhwc_dhwc", "ncdhw_cdhw", "ndhwc_dhwcm"]
POOLINGS = ["nhwc_sum", "nchw_sum", "nhwc_max", "nhwc_max_unsigned", "nchw_max", "nhwc_min", "nhwc_min_unsigned",
            "nwc_sum", "ncw_sum", "nwc_max", "nwc_max_unsigned", "ncw_max", "nwc_min", "nwc_min_unsigned",
            "ndhwc_sum", "ndhwc_max", "ndhwc_min"]


def make_windows(layout, kernel, result, name, quantized=False, start="zero", types=None):
    """A convolution or pooling with strides and dilations that differ where there are two."""
    places = [letter for letter in "dhw" if letter in layout]
    strides, dilations = [1, 2, 1][:len(places)], [2, 1, 3][:len(places)]
    plain = name in ("conv_1d", "conv_2d", "conv_3d")
    if plain:
        strides = dilations = [1] * len(places)
    sizes = {letter: (WINDOW[letter] - 1) * stride + (KERNEL[letter] - 1) * dilation + 1
             for letter, stride, dilation in zip(places, strides, dilations)}
    attributes = "" if plain else (f"{{dilations = dense<{dilations}> : tensor<{len(places)}xi64>, "
                                   f"strides = dense<{strides}> : tensor<{len(places)}xi64>}}")
    pairs = types or ([("i8", "i32")] if quantized else [("f32", "f32"), ("i8", "i32")])
    for old, new in pairs:
        first = start(new) if callable(start) else start
        yield named(name, {"a": get_type(layout, old, WINDOW | sizes), "b": get_type(kernel, old, WINDOW | KERNEL)},
                    get_type(result, new, WINDOW), attributes, [3, -5] if quantized else None, first,
                    {"a": (-100, 100), "b": (-100, 100)} if old[0] == "i" else None)


def make_convolutions():
    cases = []
    for places in ["w", "hw", "dhw"]:
        cases += make_windows(places, places, places, f"conv_{len(places)}d")
    for layouts in CONVOLUTIONS:
        layout, kernel, *quantized = layouts.split("_")
        result = layout.replace("c", "f")
        if "g" in layout and layout.index("g") > layout.index("h"):
            result = "nhwgf"
        count = sum(letter in "dhw" for letter in layout)
        cases += make_windows(layout, kernel, result, f"conv_{count}d_{layouts}", bool(quantized))
    for layouts in DEPTHWISE:
        layout, kernel, *quantized = layouts.split("_")
        result = layout + ("m" if "m" in kernel else "")
        count = sum(letter in "dhw" for letter in layout)
        cases += make_windows(layout, kernel, result, f"depthwise_conv_{count}d_{layouts}", bool(quantized))
    return cases


def make_poolings():
    cases = []
    for name in POOLINGS:
        layout, kind, *_ = name.split("_")
        starts = {"sum": lambda type: "0.0" if type[0] == "f" else "0",
                  "max": lambda type: "-3.0e38" if type[0] == "f" else "0" if "unsigned" in name else "-1000",
                  "min": lambda type: "3.0e38" if type[0] == "f" else "-1" if "unsigned" in name else "1000"}
        kernel = "".join(letter for letter in layout if letter in "dhw")
        types = [("i32", "i32"), ("i8", "i32")] + ([] if "unsigned" in name else [("f32", "f32"), ("f64", "f64")])
        cases += make_windows(layout, kernel, layout, f"pooling_{name}", start=starts[kind], types=types)
    return cases


POSITIVE_UNARY = {"log": (0.1, 9), "sqrt": (0, 9), "rsqrt": (0.1, 9), "reciprocal": (0.5, 9)}


def make_named_elementwise():
    cases, shape = [], [3, 5]
    for name in ["abs", "ceil", "erf", "exp", "floor", "log", "negf", "reciprocal", "round", "rsqrt", "sqrt", "square",
                 "tanh"]:
        for type in FLOATS:
            cases.append(named(name, {"a": tensor(shape, type)}, tensor(shape, type), start="empty",
                               domains={"a": POSITIVE_UNARY.get(name, (-3, 3))}))
    for name in ["add", "sub", "mul", "div", "max", "min", "powf", "div_unsigned"]:
        types = FLOATS if name == "powf" else INTEGERS if name == "div_unsigned" else [*FLOATS, *INTEGERS]
        for type in types + (["i1"] if name in ("add", "mul") else []):
            cases.append(named(name, {"a": tensor(shape, type), "b": tensor(shape, type)}, tensor(shape, type),
                               start="empty", domains={"a": (1, 90), "b": (1, 9)} if type[0] == "i"
                               else {"a": (0.1, 3)}))
    for type in [*FLOATS, *INTEGERS]:
        both = tensor(shape, type)
        cases.append(named("select", {"a": tensor(shape, "i1"), "b": both, "c": both}, both, start="empty"))
        cases.append(named("copy", {"a": both}, both, start="empty"))
        one = tensor([], type)
        cases.append(Case("linalg.fill", {"a": one}, both, f"""%s = tensor.extract %a[] : {one}
  %e = tensor.empty() : {both}
  %r = linalg.fill ins(%s : {type}) outs(%e : {both}) -> {both}"""))
        cases.append(Case("linalg.broadcast", {"a": tensor([5], type)}, both, f"""%e = tensor.empty() : {both}
  %r = linalg.broadcast ins(%a : {tensor([5], type)}) outs(%e : {both}) dimensions = [0]"""))
        cases.append(Case("linalg.transpose", {"a": tensor([5, 3], type)}, both, f"""%e = tensor.empty() : {both}
  %r = linalg.transpose ins(%a : {tensor([5, 3], type)}) outs(%e : {both}) permutation = [1, 0]"""))
        add = "arith.addf" if type in FLOATS else "arith.addi"
        cases.append(Case("linalg.map", {"a": both, "b": both}, both, f"""%e = tensor.empty() : {both}
  %r = linalg.map {{ {add} }} ins(%a, %b : {both}, {both}) outs(%e : {both})"""))
        cases.append(Case("linalg.reduce", {"a": tensor([3, 7, 5], type), "z": both}, both,
                          f"%r = linalg.reduce {{ {add} }} ins(%a : {tensor([3, 7, 5], type)}) outs(%z : {both}) "
                          "dimensions = [1]"))
        cases.append(named("elementwise", {"a": both, "b": both}, both,
                           "kind=#linalg.elementwise_kind<mul>", start="empty"))
    for old, new in [("i8", "i32"), ("f32", "f64"), ("i32", "f32"), ("f64", "f32")]:
        cases.append(named("copy", {"a": tensor(shape, old)}, tensor(shape, new), start="empty"))
    for type in FLOATS:
        both = tensor(shape, type)
        cases.append(named("elementwise", {"a": both}, both, "kind=#linalg.elementwise_kind<tanh>", start="empty"))
        for dim in range(2):
            cases.append(Case("linalg.softmax", {"a": both}, both, f"""%e = tensor.empty() : {both}
  %r = linalg.softmax dimension({dim}) ins(%a : {both}) outs(%e : {both}) -> {both}"""))
        cases.append(Case("linalg.generic", {"a": tensor([SIZE], type)}, tensor([SIZE], type), in_body(
            ["a"], type, SIZE, f"%t = arith.mulf %va, %va : {type}", "%t")))
        cases.append(Case("linalg.fill_rng_2d", {}, both, f"""%low = arith.constant -3.0 : f64
  %high = arith.constant 5.0 : f64
  %seed = arith.constant 42 : i32
  %e = tensor.empty() : {both}
  %r = linalg.fill_rng_2d ins(%low, %high, %seed : f64, f64, i32) outs(%e : {both}) -> {both}"""))
    cases.append(Case("linalg.index", {"a": tensor([SIZE], "i64")}, tensor([SIZE], "i64"), in_body(
        ["a"], "i64", SIZE, "%j = linalg.index 0 : index\n    %t = arith.index_cast %j : index to i64", "%t")))
    cases.append(Case("linalg.yield", {"a": tensor([SIZE], "i8")}, tensor([SIZE], "i8"), in_body(
        ["a"], "i8", SIZE, "", "%va")))
    return cases


# ---- tensor

def make_tensor():
    cases = []
    for type in ["i1", *INTEGERS, *FLOATS]:
        t = lambda *shape: tensor(shape, type)

        def add(name, arguments, result, text, domains=None):
            cases.append(Case(f"tensor.{name}", arguments, result, text, domains))

        add("cast", {"a": t(3, 5)}, t(3, 5), f"""%c = tensor.cast %a : {t(3, 5)} to {t(3, '?')}
  %r = tensor.cast %c : {t(3, '?')} to {t(3, 5)}""")
        add("collapse_shape", {"a": t(3, 5, 2)}, t(15, 2),
            f"%r = tensor.collapse_shape %a [[0, 1], [2]] : {t(3, 5, 2)} into {t(15, 2)}")
        add("expand_shape", {"a": t(15, 2)}, t(3, 5, 2), f"%r = tensor.expand_shape %a [[0, 1], [2]] "
            f"output_shape [3, 5, 2] : {t(15, 2)} into {t(3, 5, 2)}")
        add("concat", {"a": t(3, 2), "b": t(3, 5)}, t(3, 7),
            f"%r = tensor.concat dim(1) %a, %b : ({t(3, 2)}, {t(3, 5)}) -> {t(3, 7)}")
        add("empty", {"a": t(3, 5)}, t(3, 5), f"""%e = tensor.empty() : {t(3, 5)}
  %r = linalg.copy ins(%a : {t(3, 5)}) outs(%e : {t(3, 5)}) -> {t(3, 5)}""")
        add("extract", {"a": t(3, 5)}, t(7), f"""%i = arith.constant 1 : index
  %j = arith.constant 4 : index
  %s = tensor.extract %a[%i, %j] : {t(3, 5)}
  %r = tensor.splat %s : {t(7)}""")
        add("splat", {"a": t()}, t(7), f"%s = tensor.extract %a[] : {t()}\n  %r = tensor.splat %s : {t(7)}")
        add("extract_slice", {"a": t(7, 5)}, t(3, 4),
            f"%r = tensor.extract_slice %a[2, 1] [3, 4] [2, 1] : {t(7, 5)} to {t(3, 4)}")
        add("insert_slice", {"a": t(3, 4), "b": t(7, 5)}, t(7, 5),
            f"%r = tensor.insert_slice %a into %b[2, 1] [3, 4] [2, 1] : {t(3, 4)} into {t(7, 5)}")
        add("reshape", {"a": t(6, 2)}, t(4, 3), f"""%s = arith.constant dense<[4, 3]> : tensor<2xi64>
  %r = tensor.reshape %a(%s) : ({t(6, 2)}, tensor<2xi64>) -> {t(4, 3)}""")
        add("from_elements", {"a": t(2)}, t(3), f"""%i = arith.constant 0 : index
  %j = arith.constant 1 : index
  %s = tensor.extract %a[%i] : {t(2)}
  %t = tensor.extract %a[%j] : {t(2)}
  %r = tensor.from_elements %t, %s, %t : {t(3)}""")
        for name in ["generate", "yield"]:
            add(name, {"a": t(5, 3)}, t(3, 5), f"""%r = tensor.generate {{
  ^bb0(%i: index, %j: index):
    %v = tensor.extract %a[%j, %i] : {t(5, 3)}
    tensor.yield %v : {type}
  }} : {t(3, 5)}""")
        add("insert", {"a": t(), "b": t(3, 5)}, t(3, 5), f"""%i = arith.constant 1 : index
  %s = tensor.extract %a[] : {t()}
  %r = tensor.insert %s into %b[%i, %i] : {t(3, 5)}""")
        add("pad", {"a": t(3, 5), "p": t()}, t(4, 8), f"""%s = tensor.extract %p[] : {t()}
  %r = tensor.pad %a low[1, 0] high[0, 3] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %s : {type}
  }} : {t(3, 5)} to {t(4, 8)}""")
    for name, axis in ("dim", ", %z"), ("rank", ""):
        cases.append(Case(f"tensor.{name}", {"a": tensor([5, 3], "i32")}, tensor([5, 3], "i32"), f"""%z = arith.constant 0 : index
  %d = tensor.{name} %a{axis} : {tensor([5, 3], "i32")}
  %s = arith.index_cast %d : index to i32
  %b = tensor.splat %s : {tensor([5, 3], "i32")}
  %r = arith.addi %a, %b : {tensor([5, 3], "i32")}"""))
    return cases


ASSERT = """%z = arith.constant 0 : index
  %s = tensor.extract %a[%z] : tensor<13xi32>
  %k = arith.cmpi eq, %s, %s : i32
  cf.assert %k, "is what it is"
  %r = arith.addi %a, %a : tensor<13xi32>"""


def make_cf():
    return [Case("cf.assert", {"a": "tensor<13xi32>"}, "tensor<13xi32>", ASSERT)]


FAMILIES = {"arith": make_arith, "math": make_math, "contractions": make_contractions,
            "convolutions": make_convolutions, "poolings": make_poolings, "elementwise": make_named_elementwise,
            "tensor": make_tensor, "cf": make_cf}


GATE = "is not supported at the graph level"
V, M = "tensor<4xf32>", "tensor<4x6xf32>"
# Arguments, result, body, and what the error says.
REFUSED = {
    "arith.scaling_extf": (f"%a: {V}", V, f"""%s = arith.constant dense<1.0> : {V}
  %h = arith.truncf %a : {V} to tensor<4xf16>
  %r = arith.scaling_extf %h, %s : tensor<4xf16>, {V} to {V}""", "is not supported; multiply by the scale"),
    "arith.scaling_truncf": (f"%a: {V}", V, f"""%s = arith.constant dense<1.0> : {V}
  %h = arith.scaling_truncf %a, %s : {V}, {V} to tensor<4xf16>
  %r = arith.extf %h : tensor<4xf16> to {V}""", "is not supported; multiply by the scale"),
    "cf.br": (f"%a: {V}", V, f"cf.br ^bb1\n^bb1:\n  %r = arith.addf %a, %a : {V}", "a graph is one block"),
    "cf.cond_br": (f"%a: {V}", V, f"""%k = arith.constant true
  cf.cond_br %k, ^bb1, ^bb2
^bb1:
  cf.br ^bb2
^bb2:
  %r = arith.addf %a, %a : {V}""", "a graph is one block"),
    "cf.switch": (f"%a: {V}", V, f"""%k = arith.constant 1 : i32
  cf.switch %k : i32, [
    default: ^bb1,
    1: ^bb1
  ]
^bb1:
  %r = arith.addf %a, %a : {V}""", "a graph is one block"),
    "linalg.pack": (f"%a: {M}", "tensor<2x2x2x3xf32>", f"""%e = tensor.empty() : tensor<2x2x2x3xf32>
  %r = linalg.pack %a inner_dims_pos = [0, 1] inner_tiles = [2, 3] into %e : {M} -> tensor<2x2x2x3xf32>""", GATE),
    "linalg.unpack": ("%a: tensor<2x2x2x3xf32>", M, f"""%e = tensor.empty() : {M}
  %r = linalg.unpack %a inner_dims_pos = [0, 1] inner_tiles = [2, 3] into %e : tensor<2x2x2x3xf32> -> {M}""", GATE),
    "linalg.winograd_filter_transform": ("%a: tensor<2x3x3x5xf32>", "tensor<6x6x5x2xf32>",
                                         """%e = tensor.empty() : tensor<6x6x5x2xf32>
  %r = linalg.winograd_filter_transform fmr(F_4_3) ins(%a : tensor<2x3x3x5xf32>) outs(%e : tensor<6x6x5x2xf32>)
      -> tensor<6x6x5x2xf32>""", GATE),
    "linalg.winograd_input_transform": ("%a: tensor<2x6x6x5xf32>", "tensor<6x6x1x1x2x5xf32>",
                                        """%e = tensor.empty() : tensor<6x6x1x1x2x5xf32>
  %r = linalg.winograd_input_transform fmr(F_4_3) ins(%a : tensor<2x6x6x5xf32>)
      outs(%e : tensor<6x6x1x1x2x5xf32>) -> tensor<6x6x1x1x2x5xf32>""", GATE),
    "linalg.winograd_output_transform": ("%a: tensor<6x6x1x1x2x2xf32>", "tensor<2x4x4x2xf32>",
                                         """%e = tensor.empty() : tensor<2x4x4x2xf32>
  %r = linalg.winograd_output_transform fmr(F_4_3) ins(%a : tensor<6x6x1x1x2x2xf32>)
      outs(%e : tensor<2x4x4x2xf32>) -> tensor<2x4x4x2xf32>""", GATE),
    "tensor.bitcast": ("%a: tensor<4xi32>", "tensor<4xi32>", """%u = tensor.bitcast %a : tensor<4xi32> to tensor<4xui32>
  %r = tensor.bitcast %u : tensor<4xui32> to tensor<4xi32>""", GATE),
    "tensor.gather": (f"%a: {M}, %i: tensor<3x1xi32>", "tensor<3x1x6xf32>", f"""%x = arith.constant 0 : index
  %r = tensor.gather %a[%i] gather_dims([0]) : ({M}, tensor<3x1xi32>) -> tensor<3x1x6xf32>""", GATE),
    "tensor.scatter": (f"%a: {M}, %u: tensor<3x1x6xf32>, %i: tensor<3x1xi32>", M, f"""%r = tensor.scatter %u into
      %a[%i] scatter_dims([0]) unique : (tensor<3x1x6xf32>, {M}, tensor<3x1xi32>) -> {M}""", GATE),
    "tensor.parallel_insert_slice": (f"%a: {V}, %b: tensor<2x4xf32>", "tensor<2x4xf32>",
                                     f"""%n = arith.constant 2 : index
  %r = scf.forall (%i) in (%n) shared_outs(%o = %b) -> (tensor<2x4xf32>) {{
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %a into %o[%i, 0] [1, 4] [1, 1] : {V} into tensor<2x4xf32>
    }}
  }}""", GATE),
}

for op, type in [("ctlz", "i8"), ("ctlz", "i64"),
                 *((op, type) for op in ["ctpop", "cttz", "ipowi"] for type in INTEGERS)]:
    whole = tensor([SIZE], type)
    REFUSED[f"math.{op} {type}"] = (f"%a: {whole}", whole,
                                    f"%r = math.{op} %a{', %a' if op == 'ipowi' else ''} : {whole}",
                                    f"math.{op} of {type} has no exact lowering")


def test_every_op_has_a_case():
    """An op without one is an op that nobody looked at."""
    done = subprocess.run([BIN / "list-ops", *DIALECTS], capture_output=True, text=True, check=True)
    registered = set(done.stdout.split())
    tested = {case.op for make in FAMILIES.values() for case in make()} | {op.split()[0] for op in REFUSED}
    assert len(registered) > 200
    assert not registered - tested, "ops without a case"
    assert not tested - registered, "cases of no op"


def save_inputs(weir, cases):
    inputs = {f"{number}.{name}": value for number, case in enumerate(cases)
              for name, value in case.make_inputs().items()}
    save_file(inputs, weir.folder / "in.safetensors")
    return inputs


def compile_for_all(weir, text):
    """For CUDA, too, but not by ptxas, which takes its time for so many kernels."""
    artifact = weir.compile_text(text, "a", "--target=vulkan")
    targets = "vulkan,cuda" if KEEP else "cuda"
    weir.run("compile", "a.mlir", "-o", get_cuda(artifact), f"--target={targets}")
    if KEEP:
        weir.run("compile", "a.mlir", "-o", get_hopper(artifact), "--target=cuda:sm_90a")
    return artifact


@pytest.mark.parametrize("family", FAMILIES)
def test_ops_run(weir, family):
    """An entry for some, since the host's compiler takes its time for long functions."""
    cases = FAMILIES[family]()
    compared = [case for case in cases if case.expected is None]
    entries = [compared[first:first + 16] for first in range(0, len(compared), 16)]
    text = "".join(make_graph(some, f"f{number}") for number, some in enumerate(entries))
    artifact = compile_for_all(weir, text)
    for number, some in enumerate(entries):
        save_inputs(weir, some)
        weir.compare(artifact, [f"--entry=f{number}", "--input=in.safetensors"], "1e-5")


@pytest.mark.parametrize("family", ["arith"])
def test_ops_without_a_reference(weir, family):
    """Ops that f64 cannot stand in for are compared with NumPy."""
    cases = [case for case in FAMILIES[family]() if case.expected is not None]
    artifact = compile_for_all(weir, make_graph(cases, "f"))
    inputs = save_inputs(weir, cases)
    weir.run("run", artifact, "--input=in.safetensors", "--output=out.safetensors")
    weir.simulate(artifact, ["--input=in.safetensors"], weir.folder / "out.safetensors")
    found = load_file(weir.folder / "out.safetensors")
    for number, case in enumerate(cases):
        wanted = case.expected(*(inputs[f"{number}.{name}"] for name in case.arguments))
        assert numpy.array_equal(found[str(number)], wanted), case.text


@pytest.mark.parametrize("op", REFUSED)
def test_ops_are_refused(weir, op):
    arguments, result, text, sentence = REFUSED[op]
    (weir.folder / "a.mlir").write_text(f"func.func @f({arguments}) -> {result} {{\n  {text}\n"
                                        f"  return %r : {result}\n}}\n")
    done = subprocess.run([BIN / "weir", "compile", "a.mlir", "-o", "a.weir"], cwd=weir.folder, capture_output=True,
                          text=True)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr, done.stderr
    # One line a problem, and no stack.
    assert all(line.startswith("error: ") for line in done.stderr.splitlines()), done.stderr
    assert not (weir.folder / "a.weir").exists()
