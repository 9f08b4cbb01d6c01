"""onnxruntime: the cases as models, without those that it has no operators for."""

import cases
import numpy
import onnxruntime
from onnx import TensorProto, helper

TYPES = {numpy.dtype(numpy.float32): TensorProto.FLOAT, numpy.dtype(numpy.int64): TensorProto.INT64}


def list_settings(case, _):
    return ["default"] if case.kind in NODES else []


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def chains(chains, length, **_):
    return [node("MatMul", f"{f'v{chain}_{link - 1}' if link else f'x{chain}'} w",
                 f"v{chain}_{link}" if link + 1 < length else f"y{chain}")
            for chain in range(chains) for link in range(length)]


def product_bt(batch=(), **_):
    if not batch:
        return [node("Gemm", "a b", "y", transB=1)]
    return [node("Transpose", "b", "c", perm=[0, 2, 1]), node("MatMul", "a c", "y")]  # made one by its optimizer


NODES = {
    "copy": lambda **_: [node("Identity", "x", "y")],
    "layer_norm": lambda **_: [node("LayerNormalization", "x gamma beta", "y", epsilon=cases.EPSILON)],
    "rms_norm": lambda **_: [node("RMSNormalization", "x gamma", "y", epsilon=cases.EPSILON)],
    "softmax": lambda **_: [node("Softmax", "x", "y")],
    "cross_entropy": lambda **_: [node("SoftmaxCrossEntropyLoss", "logits targets", "loss")],
    "gelu_bias": lambda **_: [node("Add", "x bias", "z"), node("Gelu", "z", "y")],
    "product": lambda **_: [node("MatMul", "a b", "y")],
    "product_bt": product_bt,
    "mlp": lambda **_: [node("Gemm", "x w1 b1", "z", transB=1), node("Gelu", "z", "h"),
                        node("Gemm", "h w2 b2", "y", transB=1)],
    "add_one": lambda **_: [helper.make_node("Constant", [], ["one"], value_float=1.0), node("Add", "x one", "y")],
    "chains": chains,
}


def prepare(case, setting, options):
    """Returns a function that runs a case once, one that returns its results, and no facts."""
    inputs = case.make_inputs()
    given = [helper.make_tensor_value_info(name, TYPES[value.dtype], value.shape) for name, value in inputs.items()]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in case.results]
    model = helper.make_model(helper.make_graph(NODES[case.kind](**case.sizes), "case", given, made),
                              opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options["threads"]
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value) for name, value in inputs.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    # The first run makes the results that all others write.
    for name in case.results:
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    for name, value in zip(case.results, binding.get_outputs()):
        binding.bind_ortvalue_output(name, value)
    return (lambda: session.run_with_iobinding(binding)), binding.copy_outputs_to_cpu, {}
