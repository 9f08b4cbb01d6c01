"""Runs ONNX's own node tests through weir.onnx's backend interface, and counts them: right, wrong, refused.

    onnx_nodes.py [--device=cpu|sim|vulkan|cuda] [--profile=NAME] [--filter=REGEX] [--every=N] [--json=OUT.json]

--profile compiles for a built-in profile, such as minimum, in place of the device's own. VK_DRIVER_FILES names the
manifest of another Vulkan driver than the default one.

The tests come with the package onnx. Those count whose inputs and outputs are tensors of static shape, of floats,
integers or booleans. Each runs in a process of its own. A test is wrong if a result differs from ONNX's by more than
the test allows. It is rounded, not right, if that is at most 2 units in the last place of the largest element: tests
with types of 16 bits, and some that cancel, allow not one. It is refused if weir.onnx or the compiler says so by an
error of its own, and broken if anything else happens. The exit status is 1 if a test is wrong or broken, and 77 if onnx
is not installed.
"""

import sys
import warnings

warnings.filterwarnings("ignore")

from common import Simulation, can_import, parse_options, run_all, use_profile  # noqa: E402, I001

import numpy  # noqa: E402

if not can_import("onnx"):
    sys.exit(77)
import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from onnx.backend.test.case.node import collect_testcases  # noqa: E402

import weir  # noqa: E402
import weir.onnx  # noqa: E402
from weir.onnx.backend import Prepared  # noqa: E402

TYPES = {"FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32",
         "UINT64", "BOOL"}
MANTISSAS = {"bfloat16": 7, "float16": 10, "float32": 23}
REFUSALS = (weir.onnx.ExportError, weir.CompileError)


class _Value:
    def __init__(self, array):
        self._array = array

    def numpy(self):
        return self._array


class Simulated(Prepared):
    """A model on the simulator, from its code for Vulkan."""

    def _make(self, shapes, constants):
        exported = weir.onnx.export(self._model, shapes, constants=constants)
        simulation = Simulation(exported.text, exported.parameters)

        def call(**inputs):
            results = simulation.run(inputs)
            return {name: _Value(results[name].view(exported.dtypes.get(name, results[name].dtype)))
                    for name in exported.results}

        return call


def is_static(model):
    """Whether all inputs and outputs are tensors of known sizes and of types that count."""
    return all(
        value.type.HasField("tensor_type") and weir.onnx.models.get_shape(value) is not None
        and onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type) in TYPES
        for value in (*model.graph.input, *model.graph.output))


def run(case, device):
    """Returns the verdict on a test, and what was said."""
    prepare = Simulated if device == "sim" else weir.onnx.prepare
    try:
        for inputs, expected in case.data_sets:
            found = prepare(case.model, device).run(inputs)
            expected = [numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
                        for value in expected]
            if problem := compare(found, expected, case):
                return ("rounded", "") if problem == "rounded" else ("wrong", problem)
    except REFUSALS as error:
        return "refused", str(error)
    except BaseException as error:
        return "broken", f"{type(error).__name__}: {error}"
    return "right", ""


def compare(found, expected, case):
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        one, other = numpy.asarray(one), numpy.asarray(other)
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"output {i} is {one.dtype}{list(one.shape)}, expected {other.dtype}{list(other.shape)}"
        if one.dtype.name == "bfloat16":
            one, other = one.astype(numpy.float32), other.astype(numpy.float32)
        if not numpy.allclose(one, other, rtol=case.rtol, atol=case.atol, equal_nan=True):
            if max_units(found[i], expected[i]) <= 2:
                return "rounded"
            worst = numpy.nanmax(numpy.abs(one.astype(numpy.float64) - other.astype(numpy.float64)))
            return f"output {i} is off by up to {worst:.4g}"
    return ""


def max_units(one, other):
    """Returns the largest difference of floats in units of the last place of the largest element."""
    bits = MANTISSAS.get(one.dtype.name)
    if bits is None or not numpy.array_equal(numpy.isfinite(one), numpy.isfinite(other)):
        return numpy.inf
    finite = numpy.isfinite(other)
    one, other = one[finite].astype(numpy.float64), other[finite].astype(numpy.float64)
    unit = 2.0 ** (numpy.floor(numpy.log2(max(numpy.abs(other).max(initial=0), 1e-30))) - bits)
    return numpy.abs(one - other).max(initial=0) / unit


def main():
    options = parse_options(__doc__, lambda parser: parser.add_argument("--profile", help="a built-in profile"))
    if options.profile:
        use_profile(options.profile)
    cases = [(case.name, case) for case in collect_testcases(None) if is_static(case.model)]
    return run_all(cases, lambda case: run(case, options.device), options)


if __name__ == "__main__":
    sys.exit(main())
