"""Evaluates operators on constants by ONNX's own reference."""

from collections.abc import Mapping

import numpy
import onnx
import onnx.reference
from onnx import numpy_helper


def run_node(
    model: onnx.ModelProto, node: onnx.NodeProto, inputs: Mapping[str, onnx.TensorProto]
) -> list[onnx.TensorProto] | None:
    """Returns a node's results in the opset of `model`, or None if the reference lacks the operator."""
    names = [name for name in node.output if name]
    graph = onnx.helper.make_graph(
        [node], "one", [onnx.helper.make_tensor_value_info(name, tensor.data_type, tensor.dims)
                        for name, tensor in inputs.items()],
        [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in names])
    alone = onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    try:
        found = onnx.reference.ReferenceEvaluator(alone).run(
            None, {name: numpy_helper.to_array(tensor) for name, tensor in inputs.items()})
        return [numpy_helper.from_array(numpy.asarray(value), name) for name, value in zip(names, found, strict=True)]
    except Exception:  # of any kind: the reference checks little
        return None
