"""Runs the tests of StableHLO's interpreter, whose constants and expected results are in their text.

    stablehlo_interpret.py FOLDER [--device=cpu|sim|vulkan|cuda] [--filter=REGEX] [--every=N] [--json=OUT.json]

FOLDER is stablehlo/tests/interpret of a checkout of https://github.com/openxla/stablehlo, which is not part of Weir.
The constants of a test become arguments, or else it would be folded away; integers stay constants where sizes depend on
them. A test counts if it expects constants, and all its types are floats of 16 bits and more, complex numbers of f32 or
f64, integers or booleans; the others are counted apart. A result is right if it is equal, or where the test says
"almost", within 1e-3, each part of a complex number by itself. Without FOLDER it is what WEIR_STABLEHLO_TESTS names. The
exit status is 1 if a test is wrong or broken, and 77 if there is no folder, or torch-mlir is not installed.
"""

import collections
import os
import pathlib
import re
import sys

from common import Simulation, can_import, parse_options, run_all

if not can_import("torch_mlir.ir") or not can_import("ml_dtypes"):
    sys.exit(77)

import ml_dtypes  # noqa: E402
import numpy  # noqa: E402
from torch_mlir import ir  # noqa: E402

import weir  # noqa: E402
import weir.stablehlo  # noqa: E402
from weir.building import run_compiler  # noqa: E402
from weir.graphs import ExportError, print_graph  # noqa: E402
from weir.runtime import open_device  # noqa: E402

TYPE = r"tensor<(?:\d+x)*(?:bf16|f16|f32|f64|complex<f32>|complex<f64>|u?i(?:2|4|8|16|32|64)|i1)>"
CONSTANT = re.compile(rf"^ *(%[\w#]+) = stablehlo.constant (dense<.*>) : ({TYPE})\s*$", re.M)
EXPECTED = re.compile(rf"^ *check.expect_(almost_eq|eq)_const (%[\w#]+), (dense<.*>) : ({TYPE})\s*$", re.M)
HEAD = re.compile(r"^ *func\.func (?:public |private )?@([\w.]+)\(\)[^{\n]*\{", re.M)
FOREIGN = re.compile(r"(?:\b|x)f[468]E\w+|!quant|!stablehlo.token")


def parse(text, kind):
    """Returns the array of MLIR's text of a constant."""
    if "complex" in kind:
        real, imag = (parse(part, re.sub(r"complex<(\w+)>", r"\1", kind)) for part in split_pairs(text))
        return join(real, imag)
    sizes = [int(size) for size in re.findall(r"(\d+)x", kind)]
    name = re.search(r"(\w+)>$", kind).group(1).rpartition("x")[2]
    if name.lstrip("u") in ("i2", "i4"):
        spare = 8 - int(name[-1])
        values = parse(text, kind.replace(name, name[:-1] + "8"))
        return (values << spare).astype(values.dtype) >> spare
    dtype = {"f16": numpy.float16, "bf16": ml_dtypes.bfloat16, "f32": numpy.float32, "f64": numpy.float64,
             "i1": numpy.bool_}.get(name) or numpy.dtype(name.replace("ui", "uint") if name[0] == "u" else
                                                         name.replace("i", "int"))
    if name == "bf16":
        wide = re.sub(r"0x([0-9A-Fa-f]{4})\b", r"0x\g<1>0000", text)  # its bits are the upper half of f32's
        return parse(wide, kind.replace("bf16", "f32")).astype(dtype)
    with ir.Context(), ir.Location.unknown():
        attribute = ir.Attribute.parse(f"{text} : {kind.replace('ui', 'i')}")
        if name == "i1":
            values = numpy.array(list(ir.DenseIntElementsAttr(attribute)), bool)
        else:
            values = numpy.array(ir.DenseElementsAttr(attribute)).reshape(-1)
    if values.size == 1:  # the same everywhere
        values = numpy.full(sizes, values[0])
    return values.reshape(sizes).view(dtype)


def split_pairs(text):
    """Returns the texts of the real and of the imaginary parts of a constant."""
    return [re.sub(r"\(([^,()]*),([^,()]*)\)", rf"\{place}", text) for place in (1, 2)]


def join(real, imag):
    """Returns complex numbers. By arithmetic, infinite parts would become NaN."""
    joined = numpy.empty(real.shape, numpy.result_type(real, numpy.complex64))
    joined.real, joined.imag = real, imag
    return joined


def find_functions(chunk):
    """Yields the name, the place and the body of each function without arguments."""
    for head in HEAD.finditer(chunk):
        depth, end = 1, head.end()
        while depth and end < len(chunk):
            depth += {"{": 1, "}": -1}.get(chunk[end], 0)
            end += 1
        yield head.group(1), (head.start(), end), chunk[head.end():end - 1]


class Case:
    """A test function: its text with constants as arguments, their values, and what it expects."""

    def __init__(self, chunk, place, body):
        self.chunk, self.place, self.body = chunk, place, body
        self.expected = [(kind, value, parse(text, shape), shape) for kind, value, text, shape in EXPECTED.findall(body)]

    def write(self, keeps_integers):
        """Returns the module's text and the arguments by name."""
        body, arguments, names = self.body, {}, []
        for value, text, kind in CONSTANT.findall(body):
            if keeps_integers and re.search(r"[^b]i\d+>$", kind):
                continue
            values, name = parse(text, kind), f"arg{len(names)}"
            names.append(f"{value}: {kind}")
            if values.dtype.kind == "c":
                arguments |= {f"{name}.real": values.real.copy(), f"{name}.imag": values.imag.copy()}
            else:
                arguments[name] = values
        body = CONSTANT.sub(lambda found: "" if any(one.startswith(f"{found.group(1)}: ") for one in names)
                            else found.group(0), body)
        body = re.sub(r"^ *check\.expect.*\n", "", body, flags=re.M)
        body = re.sub(r"^ *(?:func\.)?return.*\n?", "", body, flags=re.M)
        kinds = ", ".join(shape for *_, shape in self.expected)
        values = ", ".join(value for _, value, *_ in self.expected)
        text = f"func.func public @main({', '.join(names)}) -> ({kinds}) {{\n{body}\n  func.return {values} : {kinds}\n}}"
        start, end = self.place
        others = re.sub(r"func\.func (?:public )?@", "func.func private @", self.chunk[:start] + self.chunk[end:])
        others = re.sub(r"^ *check\.expect.*\n", "", others, flags=re.M)
        return others + text, arguments


def list_cases(folder):
    """Yields the name and the case of each test that counts, and prints how many others there are."""
    others = collections.Counter()
    for path in sorted(pathlib.Path(folder).glob("*.mlir")):
        for i, chunk in enumerate(re.split(r"^.*// -----.*$", path.read_text(), flags=re.M)):
            chunk = re.sub(r"^ *//.*\n", "", chunk, flags=re.M)
            # A constant in one line.
            chunk = re.sub(r"dense<[^<>]*>", lambda found: re.sub(r"\s+", " ", found.group()), chunk)
            chunk = re.sub(r",\s*(?=dense<)", ", ", chunk)
            for name, place, body in find_functions(chunk):
                if FOREIGN.search(chunk):
                    others["of other types"] += 1
                elif not EXPECTED.search(body):
                    others["without constants that they expect"] += 1
                else:
                    yield f"{path.stem}.{i}.{name}", Case(chunk, place, body)
    print("not counted: " + ", ".join(f"{count} {what}" for what, count in others.items()))


def run(case, device):
    """Returns the verdict on a test, and what was said."""
    problem = ""
    for keeps_integers in (False, True):
        text, arguments = case.write(keeps_integers)
        try:
            results = execute(print_graph(weir.stablehlo.lower(text, "main")), arguments, device)
        except (ExportError, weir.CompileError) as error:
            problem = problem or str(error)
            continue
        except BaseException as error:
            return "broken", f"{type(error).__name__}: {error}"
        for i, (kind, _, expected, _) in enumerate(case.expected):
            if expected.dtype.kind == "c":
                found = join(results[f"result{i}.real"], results[f"result{i}.imag"])
            else:
                found = results[f"result{i}"]
            found = found.view(expected.dtype) if found.dtype != expected.dtype else found
            if not is_close(found, expected, 1e-3 if kind == "almost_eq" else 0):
                return "wrong", f"result {i} is {found.tolist()}, expected {expected.tolist()}"
        return "right", ""
    return "refused", problem


def execute(text, arguments, device):
    if device == "sim":
        return Simulation(text, {}).run(arguments)
    path, _folder = run_compiler(text, open_device(device), None, [])
    with weir.load(path, device=device) as program:
        signed = {name: value.view(f"i{value.itemsize}") if value.dtype.kind == "u" else value
                  for name, value in arguments.items()}
        results = program(**signed)
        named = results if isinstance(results, dict) else {"result0": results}
        return {name: value.numpy() for name, value in named.items()}


def is_close(found, expected, tolerance):
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind in "biu":
        return bool((found == expected).all())
    if expected.dtype.kind == "c":
        return all(is_close(getattr(found, part), getattr(expected, part), tolerance) for part in ("real", "imag"))
    one, other = found.astype(numpy.float64), expected.astype(numpy.float64)
    return bool(numpy.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True))


def main():
    options = parse_options(__doc__, lambda parser: parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", default=os.environ.get("WEIR_STABLEHLO_TESTS", "")))
    if not options.folder or not pathlib.Path(options.folder).is_dir():
        print("no folder of StableHLO's tests; name stablehlo/tests/interpret of a checkout")
        return 77
    return run_all(list_cases(options.folder), lambda case: run(case, options.device), options)


if __name__ == "__main__":
    sys.exit(main())
