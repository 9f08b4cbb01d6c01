"""Writes ONNX's LSTM, GRU and RNN step by step, where torch-mlir lacks a direction, peepholes or lengths."""

import numpy
import onnx
from onnx import TensorProto, helper

from weir.onnx.writing import Value, Writer

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ACTIVATIONS = {"LSTM": [b"Sigmoid", b"Tanh", b"Tanh"], "GRU": [b"Sigmoid", b"Tanh"], "RNN": [b"Tanh"]}
KNOWN = {b"Sigmoid", b"Tanh", b"Relu"}
MAX_STEPS = 512


def is_plain(node: onnx.NodeProto) -> bool:
    """Whether torch-mlir lowers a recurrent operator to ONNX's values: it leaves out what this asks for."""
    given = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    kind, present = node.op_type, [bool(name) for name in node.input]
    has_more = any(present[4:5] + present[7:8])  # lengths, peepholes
    return not has_more and not any(given.get(name) for name in ("clip", "input_forget")) and \
        given.get("direction", b"forward") == b"forward" and \
        given.get("activations", ACTIVATIONS[kind]) == ACTIVATIONS[kind]


def unroll(writer: Writer) -> bool:
    """Writes a recurrent operator that is not plain. Returns whether it did."""
    kind = writer.node.op_type
    direction = writer.attribute("direction", b"forward")
    if is_plain(writer.node) or writer.attribute("clip", 0.0) or writer.attribute("input_forget", 0):
        return False
    count = 2 if direction == b"bidirectional" else 1
    activations = writer.attribute("activations", ACTIVATIONS[kind] * count)
    if not KNOWN.issuperset(activations) or writer.kind(writer.node.input[0]) != TensorProto.FLOAT:
        return False
    is_batch_first = writer.attribute("layout", 0) == 1
    x = writer.node.input[0]
    steps = writer.shape(0)[1 if is_batch_first else 0]
    if steps > MAX_STEPS:
        return False
    if is_batch_first:
        x = writer.add("Transpose", x, perm=[1, 0, 2])
    share = len(activations) // count
    made = []
    for d in range(count):
        backward = direction == b"reverse" or d == 1
        cell = _Cell(writer, d, activations[d * share:(d + 1) * share], is_batch_first)
        order = list(reversed(range(steps))) if backward else list(range(steps))
        made.append(cell.run(x, order))
    _finish(writer, made, steps, is_batch_first)
    return True


class _Cell:
    """One direction of a recurrent operator."""

    def __init__(self, writer: Writer, number: int, activations: list[bytes], is_batch_first: bool):
        self._writer, self._activations = writer, [name.decode() for name in activations]
        self._kind, self._gates = writer.node.op_type, GATES[writer.node.op_type]
        self._size = writer.shape(2)[2]

        def take(place: int, axis: int = 0) -> str:
            return writer.add("Gather", writer.node.input[place], writer.constant(number), axis=axis)

        self._weights = writer.add("Transpose", take(1), perm=[1, 0])
        self._recurrent = writer.add("Transpose", take(2), perm=[1, 0])
        width = self._gates * self._size
        biases = take(3) if writer.has(3) else writer.constant(numpy.zeros(2 * width), numpy.float32)
        self._bias, self._recurrent_bias = (self._cut(biases, start, start + width, 0) for start in (0, width))
        batch = writer.shape(0)[0 if is_batch_first else 1]
        zero = writer.constant(numpy.zeros((batch, self._size)), numpy.float32)
        self._h, self._c = (take(place, 1 if is_batch_first else 0) if writer.has(place) else zero for place in (5, 6))
        self._lengths = writer.operand(4).cast(TensorProto.INT64).reshape(batch, 1) if writer.has(4) else None
        self._peepholes = []
        if self._kind == "LSTM" and writer.has(7):
            whole = take(7)
            self._peepholes = [self._cut(whole, i * self._size, (i + 1) * self._size, 0) for i in range(3)]

    def run(self, x: str, order: list[int]) -> tuple[dict[int, str], str, str]:
        """Returns the state after each step, by step, and the last two states."""
        add = self._writer.add
        inputs = add("Add", add("MatMul", x, self._weights), self._bias)
        states = {}
        for step in order:
            given = add("Gather", inputs, self._writer.constant(step), axis=0)
            h, c = self._h, self._c
            {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self._kind](given)
            states[step] = self._h
            if self._lengths is not None:  # behind its end a sequence keeps its state, and has zeros
                inside = self._lengths > step
                new_h, new_c = (Value(self._writer, name, TensorProto.FLOAT) for name in (self._h, self._c))
                self._h, self._c = (inside.choose(new, Value(self._writer, old, TensorProto.FLOAT)).name
                                    for new, old in ((new_h, h), (new_c, c)))
                states[step] = inside.choose(new_h, 0).name
        return states, self._h, self._c

    def _cut(self, x: str, start: int, end: int, axis: int) -> str:
        constant = self._writer.constant
        return self._writer.add("Slice", x, constant([start]), constant([end]), constant([axis]))

    def _gate(self, x: str, number: int) -> str:
        return self._cut(x, number * self._size, (number + 1) * self._size, -1)

    def _recur(self, h: str) -> str:
        add = self._writer.add
        return add("Add", add("MatMul", h, self._recurrent), self._recurrent_bias)

    def _lstm(self, given: str) -> None:
        add, names = self._writer.add, self._activations
        whole = add("Add", given, self._recur(self._h))
        i, o, f, c = (self._gate(whole, number) for number in range(4))
        if self._peepholes:
            i, f = (add("Add", x, add("Mul", peephole, self._c)) for x, peephole in (
                (i, self._peepholes[0]), (f, self._peepholes[2])))
        i, f, c = add(names[0], i), add(names[0], f), add(names[1], c)
        self._c = add("Add", add("Mul", f, self._c), add("Mul", i, c))
        if self._peepholes:
            o = add("Add", o, add("Mul", self._peepholes[1], self._c))
        self._h = add("Mul", add(names[0], o), add(names[2], self._c))

    def _gru(self, given: str) -> None:
        add, names = self._writer.add, self._activations
        recurrent = self._recur(self._h)
        z, r = (add(names[0], add("Add", self._gate(given, i), self._gate(recurrent, i))) for i in (0, 1))
        if self._writer.attribute("linear_before_reset", 0):
            inner = add("Mul", r, self._gate(recurrent, 2))
        else:
            inner = self._gate(self._recur(add("Mul", r, self._h)), 2)
        hidden = add(names[1], add("Add", self._gate(given, 2), inner))
        # (1 - z) * hidden + z * h
        self._h = add("Add", hidden, add("Mul", z, add("Sub", self._h, hidden)))

    def _rnn(self, given: str) -> None:
        add = self._writer.add
        self._h = add(self._activations[0], add("Add", given, self._recur(self._h)))


def _finish(writer: Writer, made: list, steps: int, is_batch_first: bool) -> None:
    """Gives the results their names: all states, then the last ones."""
    results = [*writer.node.output, "", "", ""][:3]
    zero, one = writer.constant([0]), writer.constant([1])
    if results[0]:
        rows = []
        for states, *_ in made:  # steps, 1, batch, size
            row = [writer.add("Unsqueeze", states[step], zero) for step in range(steps)]
            rows.append(writer.add("Unsqueeze", writer.add("Concat", *row, axis=0), one))
        if is_batch_first:
            writer.add("Transpose", writer.add("Concat", *rows, axis=1), result=results[0], perm=[2, 0, 1, 3])
        else:
            writer.add("Concat", *rows, result=results[0], axis=1)
    for i in (1, 2):
        if results[i]:
            axis = 1 if is_batch_first else 0
            lasts = [writer.add("Unsqueeze", states[i], one if is_batch_first else zero) for states in made]
            writer.add("Concat", *lasts, result=results[i], axis=axis)
