"""Exports a module as a graph of linalg on tensors, with its parameters as arguments."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from torch_mlir import ir

from weir.torch.holes import SEED, STEP
from weir.torch.lowering import lower
from weir.torch.places import ExportError
from weir.torch.tracing import Tracing, check_random

UNSIGNED = {torch.uint8, torch.uint16, torch.uint32, torch.uint64}


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of the exported function, in order: parameters and then state come last."""

    name: str
    kind: str  # "input", "target", "param" or "state"
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclasses.dataclass(frozen=True)
class Exported:
    """A graph as text, with its arguments, its results and the values for a run."""

    text: str
    arguments: list[Argument]
    results: list[str]  # the loss, the output's tensors, then the state that is written
    inputs: dict[str, torch.Tensor]  # by argument name, as are the others; targets, too
    parameters: dict[str, torch.Tensor]  # frozen ones, too
    states: dict[str, torch.Tensor]  # buffers; the seed and the step of random numbers
    output: Any  # as the module gave it, the names of results in place of tensors

    def save(
        self,
        graph: str | pathlib.Path,
        parameters: str | pathlib.Path | None = None,
        inputs: str | pathlib.Path | None = None,
    ) -> None:
        """Writes the graph for `weir compile`, and safetensors files for `weir run --input`.

        `parameters`: the path for parameters and state; not written by default.
        `inputs`: the path for the example's inputs and targets; not written by default.
        """
        pathlib.Path(graph).write_text(self.text)
        if parameters is not None:
            save_file(self.parameters | self.states, parameters)
        if inputs is not None:
            save_file(self.inputs, inputs)


def export(
    module: nn.Module | Callable,
    inputs: Sequence | Mapping,
    *,
    loss: Callable[..., torch.Tensor] | None = None,
    targets: Mapping[str, torch.Tensor] | None = None,
    entry: str = "main",
    keep_buffers: bool = False,
) -> Exported:
    """Returns `module`, or a function of tensors, as one function `entry` on tensors of static shape.

    Arguments: `inputs`, in order or by name, of which shapes and types count; numbers, flags and None among them
               become part of the graph. Then `targets`; then each parameter once, tied ones too, under its name in
               the module. Parameters that require no gradient are of kind "input" and frozen: there is no gradient by
               them. Buffers that the module writes are of kind "state" and donated. Other buffers become constants; with `keep_buffers`, those of floats in the
               module's state_dict become arguments of kind "state". Where random numbers are drawn, "random.seed" and
               "random.step" follow.
    Results:   the loss, if given: `loss(output, *targets.values())`, one float of rank 0, named "loss".
               Then the tensors of the module's output, named "output", "output.0", ... or by their keys; then the
               state that is written, under its names.
    Errors:    ExportError for operators without a form in linalg, all at once, each with the line that calls it; for
               modules that write to their inputs; for names that two arguments share. TypeError for inputs that hold
               no tensor, for targets without a loss, and for a loss with parameters of its own.
    """
    targets = dict(targets or {})
    if targets and loss is None:
        raise TypeError("targets are what loss is given; there is no loss")
    if isinstance(loss, nn.Module) and any(True for _ in loss.parameters()):
        raise TypeError("the loss has parameters of its own; make it a part of the module")
    tracing = Tracing(module, inputs, loss, targets)
    for name, value in (tracing.batch | targets).items():
        if value.dtype in UNSIGNED:
            raise ExportError(f"{name} is {value.dtype}, but Weir has no unsigned integers; convert it, as by .int()")
    program = tracing.trace(keep_buffers)
    check_random(program)
    arguments = _list_arguments(tracing)

    lowered, is_random = lower(program, entry)
    states = dict(tracing.states)
    results = tracing.results
    if is_random:
        results = [*results, STEP]
        for name in (SEED, STEP):
            arguments.append(Argument(name, "state", (), torch.int64))
            states[name] = torch.zeros((), dtype=torch.int64)
    _check_names(arguments)
    frozen = {name for name, value in tracing.parameters.items() if not value.requires_grad}
    _set_attributes(lowered, arguments, frozen, results)
    text = lowered.operation.get_asm(enable_debug_info=True).rstrip() + "\n"
    return Exported(text, arguments, results, _copy(tracing.batch | targets), _copy(tracing.parameters), _copy(states),
                    tracing.output)


def _list_arguments(tracing: Tracing) -> list[Argument]:
    groups = [
        ("input", tracing.batch), ("target", tracing.targets), ("param", tracing.parameters), ("state", tracing.states)
    ]
    return [
        Argument(name, kind if kind != "param" or value.requires_grad else "input", tuple(value.shape), value.dtype)
        for kind, group in groups
        for name, value in group.items()
    ]


def _check_names(arguments: list[Argument]) -> None:
    names = [argument.name for argument in arguments]
    if shared := sorted({name for name in names if names.count(name) > 1}):
        raise ExportError(f"two arguments are named {shared[0]}; give the input or the target another name")


def _set_attributes(lowered: ir.Module, arguments: list[Argument], frozen: set[str], results: list[str]) -> None:
    """Sets weir.name, weir.kind, weir.donate and weir.frozen, which torch-mlir does not know."""
    [function] = lowered.body.operations

    def attributes(**values: str) -> dict[str, ir.Attribute]:
        return {f"weir.{key}": ir.StringAttr.get(value) for key, value in values.items()}

    with lowered.context as context:
        context.allow_unregistered_dialects = True
        donate, freeze = {"weir.donate": ir.UnitAttr.get()}, {"weir.frozen": ir.UnitAttr.get()}
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([
            ir.DictAttr.get(
                attributes(name=argument.name, kind=argument.kind)
                | (donate if argument.kind == "state" and argument.name in results else {})
                | (freeze if argument.name in frozen else {})
            )
            for argument in arguments
        ])
        function.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(attributes(name=n)) for n in results])


def _copy(values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns the values as copies that share no bytes, as safetensors requires."""
    return {name: value.detach().clone(memory_format=torch.contiguous_format) for name, value in values.items()}
