"""Writes nodes of ONNX in place of one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


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

    def find_constant(self, name: str) -> onnx.TensorProto | None:
        """Returns a constant by its name, or None if there is none."""
        return self._constants.get(name)

    def set_type(self, name: str, kind: onnx.TypeProto) -> None:
        """Says of what type a result is, which ONNX does not infer for operators of Weir's own."""
        if name not in self._values:
            self.model.graph.value_info.append(helper.make_value_info(name, kind))
        else:
            self._values[name].type.CopyFrom(kind)

    def forget_shape(self) -> None:
        """Has the shape of the node's result inferred again, for operators that ONNX infers wrongly."""
        self._values[self.node.output[0]].type.tensor_type.ClearField("shape")

    def operand(self, place: int) -> "Value":
        """Returns an operand for arithmetic."""
        return Value(self, self.node.input[place], self.kind(self.node.input[place]))

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


class Value:
    """A value with Python's arithmetic, which adds nodes to a writer. Numbers become constants of its type.

    `kind`: the type of its elements, as ONNX numbers them.
    """

    def __init__(self, writer: Writer, name: str, kind: int):
        self.writer, self.name, self.kind = writer, name, kind

    def __add__(self, other: "Value | float") -> "Value":
        return self._join("Add", other)

    def __sub__(self, other: "Value | float") -> "Value":
        return self._join("Sub", other)

    def __rsub__(self, other: float) -> "Value":
        return self._spell(other) - self

    def __mul__(self, other: "Value | float") -> "Value":
        return self._join("Mul", other)

    def __truediv__(self, other: "Value | float") -> "Value":
        return self._join("Div", other)

    def __pow__(self, other: "Value | float") -> "Value":
        return self._join("Pow", other)

    def __rpow__(self, other: float) -> "Value":
        return self._spell(other) ** self

    __radd__, __rmul__ = __add__, __mul__

    def __and__(self, other: "Value") -> "Value":
        return self._join("And", other)

    def __or__(self, other: "Value") -> "Value":
        return self._join("Or", other)

    def __invert__(self) -> "Value":
        return self.apply("Not")

    def __lt__(self, other: "Value | float") -> "Value":
        return self._join("Less", other, TensorProto.BOOL)

    def __gt__(self, other: "Value | float") -> "Value":
        return self._join("Greater", other, TensorProto.BOOL)

    def equal(self, other: "Value | float") -> "Value":
        """Returns where both are equal."""
        return self._join("Equal", other, TensorProto.BOOL)

    def choose(self, yes: "Value | float", no: "Value | float") -> "Value":
        """Returns the elements of `yes` where this is true, or else those of `no`, one of which is a value."""
        typed = yes if isinstance(yes, Value) else no
        name = self.writer.add("Where", self.name, typed._spell(yes).name, typed._spell(no).name)
        return Value(self.writer, name, typed.kind)

    def apply(self, operator: str, *operands: str, **attributes: Any) -> "Value":
        """Returns the result of an operator that keeps the type."""
        return Value(self.writer, self.writer.add(operator, self.name, *operands, **attributes), self.kind)

    def cast(self, kind: int) -> "Value":
        """Returns the elements in another type."""
        if kind == self.kind:
            return self
        return Value(self.writer, self.writer.add("Cast", self.name, to=kind), kind)

    def reshape(self, *shape: int) -> "Value":
        """Returns the elements, in their order, in another shape."""
        return self.apply("Reshape", self.writer.constant(shape))

    def reduce(self, operator: str, axes: Sequence[int]) -> "Value":
        """Returns a reduction over axes, which go."""
        if operator == "ReduceSum" or self.writer.opset >= 18:
            return self.apply(operator, self.writer.constant(axes), keepdims=0)
        return self.apply(operator, axes=axes, keepdims=0)

    def finish(self, place: int = 0) -> None:
        """Makes this a result of the node that the writer replaces, if that has it."""
        if place < len(self.writer.node.output) and self.writer.node.output[place]:
            self.writer.add("Identity", self.name, result=self.writer.node.output[place])

    def _join(self, operator: str, other: "Value | float", kind: int | None = None) -> "Value":
        name = self.writer.add(operator, self.name, self._spell(other).name)
        return Value(self.writer, name, kind or self.kind)

    def _spell(self, other: "Value | float") -> "Value":
        if isinstance(other, Value):
            return other
        return Value(self.writer, self.writer.constant(other, helper.tensor_dtype_to_np_dtype(self.kind)), self.kind)


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
