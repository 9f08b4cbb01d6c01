"""Steps of one model in several ways: fused, with other plans, and with backward in two passes."""

import pathlib

import numpy
import torch
from model import compute_loss
from torch import nn

import weir
from weir.building import run_compiler
from weir.execution import HELD_KINDS, Execution, make_start
from weir.runtime import Entry, open_device
from weir.torch import Exported, export

# The text to train on: the same in every commit, so that losses are, too.
TEXT = (pathlib.Path(__file__).resolve().parents[2] / "LICENSE").read_text()


class Loss(nn.Module):
    """A language model that returns its loss alone."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        return compute_loss(self.model(ids), following)


def have_same_bits(one: numpy.ndarray, other: numpy.ndarray) -> bool:
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


class Steps:
    """Training steps by an optimizer, AdamW with clipping, compiled with options of the command line."""

    def __init__(self, exported: Exported, device: str, rates: dict[str, float], options: list[str]):
        self._rates = {"max_norm": 1.0} | rates
        path, self._folder = run_compiler(exported.text, open_device(device), None, [
            "--train=adamw:main", "--clip-norm", "--entry=main.step", *options])
        self.path = path
        self._execution = Execution(path, open_device(device))
        self._entry = self._execution.entries["main.step"]
        hold_start(self._execution, self._entry, exported)
        self.trained = [argument.name for argument in exported.arguments if argument.kind == "param"]

    def __call__(self, **given: torch.Tensor) -> numpy.ndarray:
        """Does one step and returns the loss."""
        return self._execution.call(self._entry, given | self._rates)["output"].numpy()

    def read(self) -> dict[str, numpy.ndarray]:
        """Returns the trained parameters."""
        return self._execution.read(self.trained)


def hold_start(execution: Execution, entry: Entry, exported: Exported) -> None:
    """Uploads the parameters, and the state of the optimizer before the first step."""
    values = exported.parameters | exported.states
    execution.hold(values)
    tensors = {tensor.name: tensor for tensor in entry.arguments}
    execution.hold({tensor.name: make_start(tensor, tensors, values) for tensor in execution.get_missing(entry)
                    if tensor.kind in HELD_KINDS})


class SplitBackward:
    """Forward, input pass and weight pass of a module's loss, and its whole backward, with the same parameters."""

    PARTS = ["main.forward", "main.backward_input", "main.backward_weight"]

    def __init__(self, exported: Exported, device: str):
        path, self._folder = run_compiler(exported.text, open_device(device), None,
                                          ["--vjp=main", "--split=main", "--entry=main.vjp"])
        self._execution = Execution(path, open_device(device))
        self._execution.hold(exported.parameters | exported.states)
        self.entries = self._execution.entries
        self.sums = {tensor.name: tensor for tensor in self.entries[self.PARTS[2]].arguments
                     if tensor.name.startswith("grad.")}
        self.check_tape()

    def check_tape(self) -> None:
        """Checks that each value between the parts is made by one, and consumed by one, the last that reads it."""
        made, consumed, readers = [], [], {}
        for part in self.PARTS:
            made += [tensor.name for tensor in self.entries[part].results]
            for tensor in self.entries[part].arguments:
                if is_handed(tensor.name):
                    readers[tensor.name] = part
                    if tensor.donated:
                        consumed.append((tensor.name, part))
        self.handed = sorted(filter(is_handed, made))
        assert self.handed == sorted(name for name, _ in consumed) and len(set(self.handed)) == len(self.handed)
        assert dict(consumed) == readers

    def _call(self, name: str, known: dict) -> dict:
        entry = self.entries[name]
        names = {tensor.name for tensor in entry.arguments}
        return self._execution.call(entry, {key: value for key, value in known.items() if key in names})

    def run_whole(self, **given: torch.Tensor) -> dict[str, numpy.ndarray]:
        """Returns the loss and the gradients that `main.vjp` gives."""
        results = self._call("main.vjp", given | {"cotangent.output": 1.0})
        return {name: value.numpy() for name, value in results.items()}

    def run_parts(self, **given: torch.Tensor) -> dict[str, numpy.ndarray]:
        """Returns the same by the three parts, with sums that begin at -0.0: -0.0 + x is x, bit by bit."""
        self._execution.hold({name: numpy.full(tensor.shape, -0.0, tensor.dtype) for name, tensor in self.sums.items()})
        known = dict(given)
        for part in self.PARTS:
            known |= self._call(part, known | {"cotangent.output": 1.0})
        for name in self.handed:
            try:
                known.pop(name).numpy()
            except weir.Error:
                continue
            raise AssertionError(f"{name} was not consumed")
        return {name: value.numpy() for name, value in known.items() if name not in given} | (
            self._execution.read(list(self.sums)))

    def hold(self, parameters: dict[str, numpy.ndarray]) -> None:
        self._execution.hold(parameters)


def is_handed(name: str) -> bool:
    return name.startswith(("tape.", "saved."))


class Dot(nn.Module):
    """The sum of all products of a parameter with its gradient: its gradients are what it is given."""

    def __init__(self, parameters: dict[str, torch.Tensor]):
        super().__init__()
        self.names = list(parameters)
        self.values = nn.ParameterList([nn.Parameter(value.clone()) for value in parameters.values()])

    def forward(self, gradients: list[torch.Tensor]) -> torch.Tensor:
        return sum((value * gradient).sum() for value, gradient in zip(self.values, gradients))


class SplitSteps:
    """The same steps as `Steps`, with backward in two passes, and the optimizer in an entry of its own."""

    def __init__(self, exported: Exported, device: str, rates: dict[str, float], options: list[str]):
        assert not options
        self._backward = SplitBackward(exported, device)
        self.trained = [argument.name for argument in exported.arguments if argument.kind == "param"]
        dot = Dot({name: exported.parameters[name] for name in self.trained})
        gradients = [torch.zeros(value.shape) for value in dot.values]
        self._update = Steps(export(dot, (gradients,)), device, rates, [])
        [sample] = [tensor.name for tensor in self._update._entry.arguments if tensor.name.endswith("gradients.0")] or [""]
        self._prefix = sample.removesuffix("0")

    def __call__(self, **given: torch.Tensor) -> numpy.ndarray:
        results = self._backward.run_parts(**given)
        self._update(**{f"{self._prefix}{i}": results[f"grad.{name}"] for i, name in enumerate(self.trained)})
        self._backward.hold(self.read())
        return results["output"]

    def read(self) -> dict[str, numpy.ndarray]:
        values = self._update.read()
        return {name: values[f"values.{i}"] for i, name in enumerate(self.trained)}
