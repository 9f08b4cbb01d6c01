"""ONNX's backend interface: `prepare(model).run(inputs)`, as `onnx.backend.base` describes it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import onnx
from onnx import numpy_helper

from weir.onnx.compiling import compile
from weir.onnx.models import Model, NeedsValues, load
from weir.programs import Compiled
from weir.runtime import Device, Error, open_device

DEVICES = {"CPU": "cpu", "CUDA": "cuda", "GPU": "auto", "VULKAN": "vulkan"}  # ONNX's names and one of Weir's own


class Prepared:
    """A model that is compiled when it is first run, and again for inputs of other shapes.

    Inputs whose values decide sizes or axes become part of a program: other values make another one.
    """

    def __init__(self, model: Model, device: str | Device = "auto", **options: Any):
        self._model, self._device, self._options = load(model), device, options
        given = {tensor.name for tensor in self._model.graph.initializer}
        self._names = [value.name for value in self._model.graph.input if value.name not in given]
        self._fixed: list[str] = []  # the inputs that are constants
        self._programs: dict[Any, Compiled] = {}

    def run(self, inputs: Sequence[Any] | Mapping[str, Any] | Any, **_: Any) -> tuple[numpy.ndarray, ...]:
        """Returns the outputs in order. `inputs`: arrays or onnx.TensorProto by name, or in the model's order.

        Errors: those of `weir.onnx.compile` and of a call.
        """
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            values = inputs if isinstance(inputs, (list, tuple)) else [inputs]
            if len(values) > len(self._names):
                raise TypeError(f"the model takes {', '.join(self._names)}; {len(values)} inputs are given")
            given = dict(zip(self._names, values))
        given = {name: numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else numpy.asarray(value)
                 for name, value in given.items()}
        program = self._get_program(given)
        results = program(**{name: value for name, value in given.items() if name not in self._fixed})
        kinds = {value.name: onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
                 for value in self._model.graph.output}
        named = results if isinstance(results, dict) else dict.fromkeys(kinds, results)
        return tuple(_spell(named[name].numpy(), kind) for name, kind in kinds.items())

    def _get_program(self, given: Mapping[str, numpy.ndarray]) -> Compiled:
        while True:
            constants = {name: given[name] for name in self._fixed}
            shapes = {name: value.shape for name, value in given.items() if name not in constants}
            key = (tuple(shapes.items()),
                   tuple((name, value.dtype.str, value.shape, value.tobytes()) for name, value in constants.items()))
            if key in self._programs:
                return self._programs[key]
            try:
                self._programs[key] = self._make(shapes, constants)
            except NeedsValues as error:
                if not all(name in given for name in error.names):
                    raise
                self._fixed += error.names

    def _make(self, shapes: Mapping[str, Sequence[int]], constants: Mapping[str, numpy.ndarray]) -> Compiled:
        return compile(self._model, shapes, constants=constants, device=self._device, **self._options)


def prepare(model: Model, device: str | Device = "CPU", **options: Any) -> Prepared:
    """Returns a model whose `run(inputs)` returns its outputs as arrays.

    `device`: ONNX's names, "CPU" and "CUDA", or Weir's. `options`: those of `weir.onnx.compile`.
    """
    return Prepared(model, _spell_device(device), **options)


def run_model(model: Model, inputs: Any, device: str | Device = "CPU", **options: Any) -> tuple[numpy.ndarray, ...]:
    """Returns the outputs of one run of a model."""
    return prepare(model, device, **options).run(inputs)


def run_node(node: onnx.NodeProto, inputs: Any, device: str | Device = "CPU", **_: Any) -> tuple[numpy.ndarray, ...]:
    """Returns the results of one operator of the newest opset on arrays."""
    values = inputs if isinstance(inputs, Mapping) else dict(zip((name for name in node.input if name), inputs))
    arrays = {name: numpy.asarray(value) for name, value in values.items()}
    graph = onnx.helper.make_graph(
        [node], "node",
        [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
         for name, value in arrays.items()],
        [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in node.output if name])
    inferred = onnx.shape_inference.infer_shapes(onnx.helper.make_model(graph), data_prop=True)
    return run_model(inferred, arrays, device)


def supports_device(device: str) -> bool:
    """Whether this machine has a device, by ONNX's name, "CPU" or "CUDA", or by Weir's."""
    try:
        open_device(_spell_device(device))
    except (Error, ValueError):
        return False
    return True


def is_compatible(model: Model, device: str = "CPU", **_: Any) -> bool:
    """Whether to try a model: all are, since what Weir cannot compile is refused with reasons."""
    return True


def _spell_device(device: str | Device) -> str | Device:
    """Returns Weir's name of a device for ONNX's, such as CUDA:1."""
    if not isinstance(device, str):
        return device
    name, colon, rest = device.partition(":")
    return DEVICES.get(name.upper(), name) + colon + rest


def _spell(array: numpy.ndarray, kind: numpy.dtype) -> numpy.ndarray:
    """Returns bfloat16 as the type that ONNX has, in place of its bits."""
    return array.view(kind) if kind.name == "bfloat16" else array
