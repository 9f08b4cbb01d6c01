"""Writes operators out by the functions that ONNX itself defines them by."""

from collections.abc import Mapping

import onnx

from weir.onnx.writing import Writer, rename_values, walk_nodes


def has_function(model: onnx.ModelProto, node: onnx.NodeProto) -> bool:
    """Whether ONNX defines a node's operator by others, for some operands at least."""
    version = next((opset.version for opset in model.opset_import if opset.domain == node.domain), 1)
    try:
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return False
    return schema.has_function or schema.has_context_dependent_function


def write_function(writer: Writer) -> bool:
    """Writes a node by the function of its operator. Returns whether ONNX has one for its operands."""
    node = writer.node
    try:
        schema = onnx.defs.get_schema(node.op_type, writer.opset_of(node.domain), node.domain)
    except onnx.defs.SchemaError:
        return False
    function = _find_function(writer, schema)
    if function is None:
        return False
    given = {one.name: one for one in node.attribute}
    defaults = {one.name: one for one in function.attribute_proto}
    defaults |= {name: one.default_value for name, one in schema.attributes.items() if one.default_value.type}
    names = dict(zip(function.input, (*node.input, *[""] * len(function.input))))
    results = dict(zip(function.output, (*node.output, *[""] * len(function.output))))
    names |= {name: result or f"{node.name}/{name}" for name, result in results.items()}
    own = {name for inner in function.node for name in inner.output if name}
    names |= {name: f"{node.name}/{name}" for name in own - set(function.output)}
    for i, inner in enumerate(function.node):
        new = rename_values(inner, lambda name: names.get(name, name))
        new.name = f"{node.name}/{inner.op_type}{i}"
        for part in (new, *(part for attribute in new.attribute if attribute.type == onnx.AttributeProto.GRAPH
                            for part in walk_nodes(attribute.g))):
            _give_attributes(part, given, defaults)
        writer.nodes.append(new)
    return True


def _find_function(writer: Writer, schema: onnx.defs.OpSchema) -> onnx.FunctionProto | None:
    function, node = onnx.FunctionProto(), writer.node
    if schema.has_function:
        version = max((one for one in schema.function_opset_versions if one <= writer.opset_of(node.domain)),
                      default=None)
        text = schema.function_body if version is None else schema.get_function_with_opset_version(version)
        function.ParseFromString(text if isinstance(text, bytes) else text.SerializeToString())
        return function if function.node else None
    if not schema.has_context_dependent_function:
        return None
    types = [writer.type(name).SerializeToString() for name in node.input]
    version = max((one for one in schema.context_dependent_function_opset_versions
                   if one <= writer.opset_of(node.domain)), default=None)
    if version is None:
        return None
    text = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), types)
    function.ParseFromString(text)
    return function if function.node else None


def _give_attributes(
    node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto], defaults: Mapping[str, onnx.AttributeProto]
) -> None:
    """Replaces attributes that name one of the function's by its value. Those without a value are left out."""
    kept = []
    for one in node.attribute:
        if not one.ref_attr_name:
            kept.append(one)
        elif (value := given.get(one.ref_attr_name) or defaults.get(one.ref_attr_name)) is not None:
            copy = onnx.AttributeProto.FromString(value.SerializeToString())
            copy.name = one.name
            kept.append(copy)
    kept = [onnx.AttributeProto.FromString(one.SerializeToString()) for one in kept]
    del node.attribute[:]
    node.attribute.extend(kept)
