"""One stage of a pipeline on a device: its forward, the gradients of its inputs, and later those of its parameters.

Several microbatches are under way at once. Each has a record of the buffers that its backward passes read.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy
import torch
from torch import nn

from weir.building import run_compiler
from weir.execution import check_value
from weir.graphs import Exported
from weir.runtime import Buffer, Device, Entry, Program, Tensor, make_buffer

TYPES = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32, "F64": torch.float64}


class Pool:
    """Buffers of microbatches, which are used again once a microbatch is done."""

    def __init__(self, device: Device):
        self._device = device
        self._free: dict[int, list[Buffer]] = defaultdict(list)

    def take(self, tensor: Tensor) -> Buffer:
        free = self._free[tensor.bytes]
        return free.pop() if free else make_buffer(self._device, tensor)

    def give(self, buffer: Buffer) -> None:
        self._free[buffer.size].append(buffer)


@dataclasses.dataclass
class Record:
    """A microbatch under way: the buffers of its arguments by name, and the names of those that it owns."""

    values: dict[str, Buffer]
    owned: set[str] = dataclasses.field(default_factory=set)


class Weight:
    """A parameter on the device and, if it is trained, the sum of its gradients there.

    On a processor PyTorch's parameter and its gradient are these very bytes. Otherwise they are copied where they changed.
    """

    def __init__(self, device: Device, tensor: Tensor, value: torch.Tensor, is_trained: bool, sums: Tensor | None):
        self._tensor = tensor
        self.buffer = make_buffer(device, tensor)
        self.buffer.write(check_value(tensor, value))
        self._is_shared = device.api == "cpu"
        self.parameter = nn.Parameter(_show(self.buffer, tensor) if self._is_shared else value.detach().clone(),
                                      requires_grad=is_trained)
        self._version = self.parameter._version
        self.sums = make_buffer(device, sums) if sums else None
        self._shown = _show(self.sums, sums) if sums and self._is_shared else None
        self._sum_tensor, self._sum_version = sums, -1

    def upload(self) -> None:
        """Gives the device what an optimizer made of the parameter."""
        if not self._is_shared and self.parameter._version != self._version:
            self.buffer.write(check_value(self._tensor, self.parameter))
            self._version = self.parameter._version

    def begin_sum(self) -> None:
        """Makes the sum what the parameter's gradient is, or -0.0 if it has none, which no addition changes."""
        gradient = self.parameter.grad
        if gradient is None:
            gradient = torch.full(self._sum_tensor.shape, -0.0, dtype=TYPES[self._sum_tensor.spelling])
        elif gradient is self._shown or (gradient._version == self._sum_version and not self._is_shared):
            return
        self.sums.write(check_value(self._sum_tensor, gradient))

    def end_sum(self) -> None:
        """Makes the parameter's gradient what the sum is."""
        if self._is_shared:
            self.parameter.grad = self._shown
            return
        self.parameter.grad = _read(self.sums, self._sum_tensor)
        self._sum_version = self.parameter.grad._version


class StageProgram:
    """The entries of a stage, its parameters and its state.

    `values`: of parameters and state, by name. A stage without parameters that are trained computes its forward again
    for its backward.
    Errors: those of `weir.compile`.
    """

    def __init__(self, exported: Exported, device: Device, values: Mapping[str, torch.Tensor],
                 memory_limit: int | str | None = None, precision: str | None = None):
        splits = any(argument.kind == "param" for argument in exported.arguments)
        derived = ["--split=main"] if splits else ["--vjp=main", "--entry=main"]
        self.path, self._folder = run_compiler(exported.text, device, memory_limit, derived, precision)
        self._program = Program(self.path, device=device)
        entries = self._program.entries
        self._forward = entries["main.forward" if splits else "main"]
        self._backward = entries["main.backward_input" if splits else "main.vjp"]
        self._weighting = entries["main.backward_weight"] if splits else None
        self._donors = {entry.name: {result: argument for argument, result in self._program.get_donations(entry).items()}
                        for entry in entries.values()}
        self._pool = Pool(device)
        self._arguments = {tensor.name: tensor for tensor in self._forward.arguments}
        self._inputs = [name for name in self._arguments if name not in values]
        self._outputs = [tensor for tensor in self._forward.results
                         if tensor.name in exported.results and tensor.name not in values]
        sums = {tensor.name.removeprefix("grad."): tensor
                for tensor in (self._weighting.results if self._weighting else [])}
        kinds = {argument.name: argument.kind for argument in exported.arguments}
        self.weights: dict[str, Weight] = {}
        self._states: dict[str, Buffer] = {}
        for name, tensor in self._arguments.items():
            if name not in values:
                continue
            if kinds[name] == "state":
                self._states[name] = make_buffer(device, tensor)
                self._states[name].write(check_value(tensor, values[name]))
            else:
                self.weights[name] = Weight(device, tensor, values[name], name in sums, sums.get(name))

    def forward(self, inputs: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Record]:
        """Returns the outputs, in host memory, and the record of the microbatch."""
        for weight in self.weights.values():
            weight.upload()
        record = Record({name: weight.buffer for name, weight in self.weights.items()} | self._states)
        for name, value in zip(self._inputs, inputs, strict=True):
            self._write(record, self._arguments[name], value)
        made = self._run(self._forward, record)
        self._states |= {name: made.pop(name) for name in self._states if name in made}
        outputs = [_read(made[tensor.name], tensor) for tensor in self._outputs]
        for tensor in self._outputs:
            self._pool.give(made.pop(tensor.name))
        self._keep(record, made)  # the tape
        return outputs, record

    def backward(self, record: Record, cotangents: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """Returns the gradient of each input, None for those of integers."""
        for tensor, cotangent in zip(self._outputs, cotangents, strict=True):
            if tensor.spelling in TYPES:
                name = f"cotangent.{tensor.name}"
                value = torch.zeros(tensor.shape, dtype=TYPES[tensor.spelling]) if cotangent is None else cotangent
                self._write(record, dataclasses.replace(tensor, name=name), value.contiguous())
        made = self._run(self._backward, record)
        gradients: dict[str, torch.Tensor] = {}
        for tensor in self._backward.results:
            if tensor.name.startswith("grad."):
                gradients[tensor.name.removeprefix("grad.")] = _read(made[tensor.name], tensor)
            if not tensor.name.startswith("saved."):
                self._pool.give(made.pop(tensor.name))
        self._keep(record, made)
        return [gradients.get(name) for name in self._inputs]

    def add_weights(self, record: Record) -> None:
        """Adds the gradients of the parameters to theirs. The record is done then."""
        if self._weighting:
            trained = {f"grad.{name}": weight for name, weight in self.weights.items() if weight.sums}
            for name, weight in trained.items():
                weight.begin_sum()
                record.values[name] = weight.sums
            self._run(self._weighting, record)
            for weight in trained.values():
                weight.end_sum()
        for name in record.owned:
            self._pool.give(record.values[name])
        record.values.clear()
        record.owned.clear()

    def read_states(self) -> dict[str, torch.Tensor]:
        """Returns copies of the state by name."""
        return {name: _read(buffer, self._arguments[name]) for name, buffer in self._states.items()}

    def write_states(self, values: Mapping[str, torch.Tensor]) -> None:
        """Sets state by name; other names are ignored. Errors: ValueError for other shapes or types."""
        for name, buffer in self._states.items():
            if name in values:
                buffer.write(check_value(self._arguments[name], values[name]))

    def _run(self, entry: Entry, record: Record) -> dict[str, Buffer]:
        """Runs an entry on the values of a record, and returns its results. What it is given away leaves the record."""
        donors = self._donors[entry.name]
        results = {tensor.name: record.values[donors[tensor.name]] if tensor.name in donors else self._pool.take(tensor)
                   for tensor in entry.results}
        self._program.submit(entry, [record.values[tensor.name] for tensor in entry.arguments], list(results.values()))
        taken = set(donors.values())
        for tensor in entry.arguments:
            if tensor.donated and tensor.name in record.owned:
                record.owned.remove(tensor.name)
                buffer = record.values.pop(tensor.name)
                if tensor.name not in taken:
                    self._pool.give(buffer)
        return results

    def _keep(self, record: Record, made: Mapping[str, Buffer]) -> None:
        record.values |= made
        record.owned |= made.keys()

    def _write(self, record: Record, tensor: Tensor, value: torch.Tensor) -> None:
        buffer = self._pool.take(tensor)
        buffer.write(check_value(tensor, value))
        self._keep(record, {tensor.name: buffer})


def _show(buffer: Buffer, tensor: Tensor) -> torch.Tensor:
    """Returns a tensor on the bytes of a buffer of the processor's."""
    flat = torch.frombuffer(buffer.map(), dtype=TYPES[tensor.spelling]) if buffer.size else \
        torch.empty(0, dtype=TYPES[tensor.spelling])
    return flat.view(tensor.shape)


def _read(buffer: Buffer, tensor: Tensor) -> torch.Tensor:
    """Returns a copy of a buffer, after the runs that use it."""
    values = numpy.empty(tensor.shape, tensor.dtype)
    buffer.read(values)
    made = torch.from_numpy(values)
    return made.view(torch.bfloat16) if tensor.spelling == "BF16" else made
