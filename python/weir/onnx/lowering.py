"""Lowers an ONNX model to linalg on tensors, by torch-mlir."""

import warnings

import onnx
from torch_mlir import ir
from torch_mlir.dialects.torch import register_dialect
from torch_mlir.extras.onnx_importer import Config, ModelInfo, NodeImporter

from weir.graphs import ExportError, LoweringError, find_foreign, find_name, run_passes, walk
from weir.holes import FOREIGN, Hole, fill_holes, open_holes
from weir.onnx.determinants import LU
from weir.onnx.flow import cut, fill
from weir.onnx.models import RANDOM, expand, open_writer
from weir.onnx.regions import CONTROL, explain
from weir.onnx.rewrites import is_wrong

PIPELINE = ("builtin.module(torch-onnx-to-torch-backend-pipeline,"
            "torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true})")

# Operators that torch-mlir does not know, by their names in `weir.holes`.
OWN = {"BitCast": "torch.weir.bitcast", LU: "torch.weir.lu"}
# Reasons why some operators have no form.
REASONS = {
    **dict.fromkeys(("Compress", "NonMaxSuppression", "NonZero", "Unique"), "the size of its result depends on values"),
    **dict.fromkeys(RANDOM, "it has no seed that a program could take"),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), "torch-mlir lowers clip, input_forget and activations other than Sigmoid, "
                                            "Tanh and Relu to other values"),
    "AveragePool": "torch-mlir lowers dilations with ceil_mode to other values",
    "Det": "square matrices of one row or more have one",
    "RoiAlign": "with sampling_ratio 0 the number of samples depends on the regions; set it to 1 or more",
}


def lower(model: onnx.ModelProto, entry: str) -> ir.Module:
    """Returns linalg on tensors. `model` is one of `models.specialize`.

    Operators that torch-mlir has no lowering of are written out where ONNX defines them by others.
    Errors: ExportError with all nodes that have none.
    """
    model.graph.name = entry
    _refuse(model, [node for node in model.graph.node if is_wrong(node)])
    while True:
        try:
            return _lower_once(model)
        except LoweringError as error:
            kinds = {node.name: node.op_type for node in model.graph.node}
            operators = {kinds[name] for name, _ in error.problems if name in kinds}
            expanded = expand(model, operators) if operators else None
            if expanded is None:
                expanded = _expand_or_refuse(model, error)
        model = expanded


def _lower_once(model: onnx.ModelProto) -> ir.Module:
    """Returns linalg on tensors, if all operators have it as they are. Errors: LoweringError, ExportError."""
    flat, kept = cut(model)
    text, holes = _bring_in(flat)
    module = _parse(run_passes(text, PIPELINE))
    fill_holes(module, holes)
    fill(module, kept, lower)
    return module


def _parse(text: str) -> ir.Module:
    """Returns the module of a text. Errors: LoweringError for operations that the graph level has not."""
    context = ir.Context()
    register_dialect(context)
    context.allow_unregistered_dialects = True
    module = ir.Module.parse(text, context)
    if foreign := find_foreign(module):
        raise LoweringError([(find_name(op.location), f"{op.name} is left") for op in foreign])
    return module


def _bring_in(model: onnx.ModelProto) -> tuple[str, list[Hole]]:
    """Returns the text of a model in torch-mlir's torch dialect, and the operators that were taken out of it."""
    context = ir.Context()
    register_dialect(context)
    # Functions are written out by `expand`, on which the names of nodes depend.
    info = ModelInfo(model, config=Config(function_expansion_allowlists_by_domain={}))
    module = info.create_module(context=context)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importer = NodeImporter.define_function(info.main_graph, module.operation)
            importer.import_all()
        except Exception as error:  # the importer's own, and KeyError for types
            raise ExportError(f"torch-mlir does not read the model: {str(error).strip() or repr(error)}") from None
    with context:
        for op in walk(module.operation):
            name = ir.StringAttr(op.attributes["name"]).value.rpartition("onnx.")[2] if op.name == FOREIGN else ""
            if name in OWN:
                op.attributes["name"] = ir.StringAttr.get(OWN[name])
    holes = open_holes(module)
    return module.operation.get_asm(enable_debug_info=True), holes


def _expand_or_refuse(model: onnx.ModelProto, error: LoweringError) -> onnx.ModelProto:
    """Returns the model with all operators written out that do not lower alone. Errors: ExportError if there is none."""
    refused = _find_refused(model)
    if refused and (expanded := expand(model, {node.op_type for node in refused})):
        return expanded
    _refuse(model, refused)
    places = [f"{message} (node {name})" if name else message for name, message in error.problems]
    raise ExportError(f"torch-mlir does not lower the model: {'; '.join(places)}")


def _refuse(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> None:
    if nodes:
        write = open_writer(model)
        reasons = [explain(write(node)) if node.op_type in CONTROL else REASONS.get(node.op_type, "") for node in nodes]
        lines = [f"  {node.op_type}, node {node.name}{reason and ': '}{reason}" for node, reason in zip(nodes, reasons)]
        raise ExportError("\n".join(["the model has operators without a form in linalg:", *lines]))


def _find_refused(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Returns the nodes that do not lower alone."""
    lowers: dict[bytes, bool] = {}
    refused = []
    for node in model.graph.node:
        alone = _isolate(model, node)
        key = _describe(alone)
        if key not in lowers:
            lowers[key] = _lowers(alone)
        if not lowers[key]:
            refused.append(node)
    return refused


def _lowers(model: onnx.ModelProto) -> bool:
    try:
        _lower_once(model)
    except (LoweringError, ExportError):
        return False
    return True


def _isolate(model: onnx.ModelProto, node: onnx.NodeProto) -> onnx.ModelProto:
    """Returns a model of one node, with the constants that it reads."""
    graph = model.graph
    values = {value.name: value for value in (*graph.input, *graph.value_info, *graph.output)}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    names = list(dict.fromkeys(name for name in node.input if name))
    alone = onnx.helper.make_graph(
        [node], graph.name, [values[name] for name in names if name not in constants and name in values],
        [values[name] for name in node.output if name in values],
        [constants[name] for name in names if name in constants])
    return onnx.helper.make_model(alone, opset_imports=model.opset_import, ir_version=model.ir_version)


def _describe(alone: onnx.ModelProto) -> bytes:
    """Returns a key that is equal for models of one node that lower the same way."""
    copy = onnx.ModelProto()
    copy.CopyFrom(alone)
    [node] = copy.graph.node
    names = {name: str(i) for i, name in enumerate(dict.fromkeys((*node.input, *node.output))) if name}
    node.name = ""
    node.input[:] = [names.get(name, "") for name in node.input]
    node.output[:] = [names.get(name, "") for name in node.output]
    for value in (*copy.graph.input, *copy.graph.output, *copy.graph.initializer):
        value.name = names.get(value.name, value.name)
    return copy.SerializeToString(deterministic=True)
