"""Writes nodes of ONNX in place of one."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy
import onnx
from onnx import helper, numpy_helper


DOMAINS = ("", "ai.onnx")  # of ONNX's own operators


class Writer:
    """Writes the nodes that replace one, and the constants that they read."""

    def __init__(self, model: onnx.ModelProto, node: onnx.NodeProto, values: Mapping[str, onnx.ValueInfoProto],
                 constants: Mapping[str, onnx.TensorProto]):
        self.model, self.node, self._values, self._constants = model, node, values, constants
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def add(self, kind: str, *inputs: str, result: str = "", **attributes: Any) -> str:
        """Adds a node and returns the name of its result."""
        result = result or f"{self.node.name}/{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [result], name=f"{self.node.name}/{kind}{len(self.nodes)}",
                                           **attributes))
        return result

    def constant(self, value: Any, dtype: Any = numpy.int64) -> str:
        """Adds a constant and returns its name."""
        name = f"{self.node.name}/constant{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(numpy.asarray(value, dtype), name))
        return name

    def has(self, place: int) -> bool:
        """Whether the node has an operand there."""
        return place < len(self.node.input) and bool(self.node.input[place])

    def shape(self, place: int) -> tuple[int, ...]:
        """Returns the shape of an operand."""
        return self.shape_of(self.node.input[place]) or ()

    def shape_of(self, name: str) -> tuple[int, ...] | None:
        """Returns the shape of a value, or None if it is not known."""
        if name in self._constants:
            return tuple(self._constants[name].dims)
        if name not in self._values or not self._values[name].type.tensor_type.HasField("shape"):
            return None
        sizes = self._values[name].type.tensor_type.shape.dim
        return tuple(size.dim_value for size in sizes) if all(size.HasField("dim_value") for size in sizes) else None

    def kind(self, name: str) -> int:
        """Returns the type of a value's elements, as ONNX numbers them."""
        if name in self._constants:
            return self._constants[name].data_type
        return self._values[name].type.tensor_type.elem_type

    def type(self, name: str) -> onnx.TypeProto:
        """Returns a value's type; an empty one for an operand that is left out."""
        if name in self._constants:
            return helper.make_tensor_type_proto(self._constants[name].data_type, self._constants[name].dims)
        return self._values[name].type if name in self._values else onnx.TypeProto()

    def number(self, place: int) -> int | None:
        """Returns an operand that is one constant integer, or else None."""
        array = self.array(place)
        return None if array is None else int(array.reshape(()))

    def array(self, place: int) -> numpy.ndarray | None:
        """Returns an operand that is constant, or else None."""
        name = self.node.input[place]
        return numpy_helper.to_array(self._constants[name]) if name in self._constants else None

    @property
    def opset(self) -> int:
        """The version of ONNX's operators."""
        return self.opset_of("")

    def opset_of(self, domain: str) -> int:
        """Returns the version of a domain's operators; the empty one and "ai.onnx" are the same."""
        domains = DOMAINS if domain in DOMAINS else (domain,)
        return next((opset.version for opset in self.model.opset_import if opset.domain in domains), 1)

    def attribute(self, name: str, default: Any) -> Any:
        """Returns an attribute of the node."""
        found = [one for one in self.node.attribute if one.name == name]
        return helper.get_attribute_value(found[0]) if found else default


def walk_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yields the nodes of a graph, those of branches and loops included."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from walk_nodes(attribute.g)


def rename_values(node: onnx.NodeProto, rename: Callable[[str], str]) -> onnx.NodeProto:
    """Returns a node with other names of values, in its branches, too."""
    new = onnx.NodeProto.FromString(node.SerializeToString())
    graphs = [attribute.g for attribute in new.attribute if attribute.type == onnx.AttributeProto.GRAPH]
    for inner in (new, *(inner for graph in graphs for inner in walk_nodes(graph))):
        inner.input[:] = [rename(name) if name else "" for name in inner.input]
    new.output[:] = [rename(name) if name else "" for name in new.output]
    for graph in graphs:
        for value in graph.output:
            value.name = rename(value.name)
    return new
