"""Exports a module as a graph of linalg on tensors, with its parameters as arguments."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy
import torch
from torch import nn

from weir.graphs import Argument, Exported, ExportError, add_grid, check_names, print_graph, set_attributes
from weir.holes import SEED, STEP
from weir.torch.collectives import Flat, Sharding, count_ranks, find_axis, find_sharding
from weir.torch.lowering import lower
from weir.torch.tracing import Tracing, check_random

UNSIGNED = {torch.uint16, torch.uint32, torch.uint64}  # that torch-mlir has no types for


def _check_tensor(name: str, value: torch.Tensor) -> None:
    """Errors: ExportError for an input or a target that has no form in a graph."""
    if value.layout != torch.strided:
        raise ExportError(f"{name} is of layout {value.layout}, which has no form here; give it as by .to_dense()")
    if value.is_quantized:
        raise ExportError(f"{name} is quantized, which has no form here; give its numbers, by .dequantize()")
    if value.dtype in UNSIGNED:
        raise ExportError(f"{name} is {value.dtype}, which torch-mlir does not lower; convert it, as by .int()")
    if value.is_floating_point() and value.dtype.itemsize == 1:
        raise ExportError(f"{name} is {value.dtype}, which has no form here; convert it, as by .float()")


def export(
    module: nn.Module | Callable,
    inputs: Sequence | Mapping,
    *,
    loss: Callable[..., torch.Tensor] | None = None,
    targets: Mapping[str, torch.Tensor] | None = None,
    entry: str = "main",
    keep_buffers: bool = False,
    replicas: int = 1,
    copies: bool = True,
    gradients: bool = True,
) -> Exported:
    """Returns `module`, or a function of tensors, as one function `entry` on tensors of static shape.

    Arguments: `inputs`, in order or by name, of which shapes and types count; numbers, flags and None among them
               become part of the graph. Then `targets`; then each parameter once, tied ones too, under its name in
               the module. Parameters that require no gradient are of kind "input" and frozen: there is no gradient by
               them. Buffers that the module writes are of kind "state" and donated. Other buffers become constants; with `keep_buffers`, those of floats in the
               module's state_dict become arguments of kind "state". Where random numbers are drawn, "random.seed" and
               "random.step" follow.
               Complex numbers are pairs of their parts, along a last dimension of 2, as inputs and as results.
    Results:   the loss, if given: `loss(output, *targets.values())`, one float of rank 0, named "loss".
               Then the tensors of the module's output, named "output", "output.0", ... or by their keys; then the
               inputs and the state that are written, under their names.
    `replicas`: the number of groups of ranks that share the module out: the first axis of the grid of ranks, along which
               inputs, targets and outputs differ. The loss is the mean over them.
    `copies`: whether the values of parameters and state are copies, and not the module's own tensors.
    `gradients`: whether there may be gradients of the graph. Then a custom `torch.autograd.Function` and hooks on
               gradients are refused, since Weir's gradients would not use them.
    Errors:    ExportError for operators without a form in linalg, all at once, each with the line that calls it; for
               modules that write to their inputs, if there are `gradients`; for names that two arguments share. TypeError for inputs that hold
               no tensor, for targets without a loss, and for a loss with parameters of its own.
    """
    targets = dict(targets or {})
    if targets and loss is None:
        raise TypeError("targets are what loss is given; there is no loss")
    if isinstance(loss, nn.Module) and any(True for _ in loss.parameters()):
        raise TypeError("the loss has parameters of its own; make it a part of the module")
    tracing = Tracing(module, inputs, loss, targets, replicas, gradients)
    for name, value in (tracing.batch | targets).items():
        _check_tensor(name, value)
    for name, value in (targets | tracing.parameters).items():
        if value.is_complex():
            raise ExportError(f"{name} is {value.dtype}, but a graph has parameters and targets of real numbers; give "
                              f"torch.view_as_real({name})")
    sharding = find_sharding(module, tracing.parameters)
    text, is_random, ranks = tracing.trace(
        keep_buffers, lambda program: _write(program, entry, tracing, sharding, replicas))
    arguments, results = _describe(tracing, is_random)
    check_names(arguments)
    states = tracing.states | {name: torch.zeros((), dtype=torch.int64) for name in (SEED, STEP) if is_random}
    private, _ = _find_private(tracing, arguments, replicas)
    dtypes = dict.fromkeys((each.name for each in arguments if each.dtype == torch.uint8), numpy.dtype("u1"))
    dtypes |= dict.fromkeys(tracing.unsigned_results, numpy.dtype("u1"))
    return Exported(text, arguments, results, _take(tracing.batch | targets, copies), _take(tracing.parameters, copies),
                    _take(states, copies), tracing.output, dtypes, sharding, ranks or 1, replicas, private,
                    tracing.fixed_results, tracing.written)


def _write(program: torch.export.ExportedProgram, entry: str, tracing: Tracing, sharding: Mapping[str, Sharding | Flat],
           replicas: int) -> tuple[str, bool, int]:
    """Returns a graph as text, whether it draws random numbers, and its number of ranks, 0 if it is for one process."""
    check_random(program)
    ranks, axis = count_ranks(program, sharding, replicas), find_axis(replicas)
    lowered, is_random = lower(program, entry)
    arguments, results = _describe(tracing, is_random)
    private, kept = _find_private(tracing, arguments, replicas)
    frozen = {name for name, value in tracing.parameters.items() if not value.requires_grad}
    sharded = {name: each.unit or [axis] for name, each in sharding.items()} | dict.fromkeys(private, [0])
    set_attributes(lowered, arguments, results, frozen, sharded, {name: [0] for name in results if name not in kept})
    if ranks:
        add_grid(lowered, [replicas, ranks][1 - axis:])
    return print_graph(lowered), is_random, ranks


def _describe(tracing: Tracing, is_random: bool) -> tuple[list[Argument], list[str]]:
    """Returns the arguments and the names of the results, with those of random numbers if there are any."""
    results = [*tracing.results, STEP] if is_random else tracing.results
    arguments = _list_arguments(tracing)
    arguments += [Argument(name, "state", (), torch.int64) for name in (SEED, STEP) if is_random]
    return [dataclasses.replace(argument, donated=argument.kind == "state" and argument.name in results)
            for argument in arguments], results


def _find_private(tracing: Tracing, arguments: Sequence[Argument], replicas: int) -> tuple[list[str], set[str]]:
    """Returns the arguments beside parameters of which each rank, or replica, has its own; and the results that all share."""
    if tracing.is_data_parallel:
        return [each.name for each in arguments if each.name not in {*tracing.parameters, STEP}], {"loss", STEP}
    if replicas > 1:
        return [*tracing.batch, *tracing.targets], {"loss", *tracing.states, SEED, STEP}
    return [], set(tracing.results) | {STEP}


def _list_arguments(tracing: Tracing) -> list[Argument]:
    groups = [
        ("input", tracing.batch), ("target", tracing.targets), ("param", tracing.parameters), ("state", tracing.states)
    ]
    return [
        Argument(name, kind if kind != "param" or value.requires_grad else "input", tuple(value.shape), value.dtype)
        for kind, group in groups
        for name, value in group.items()
    ]


def _take(values: Mapping[str, torch.Tensor], copies: bool) -> dict[str, torch.Tensor]:
    """Returns the values; copies share no bytes, as safetensors requires."""
    return {name: value.detach().clone(memory_format=torch.contiguous_format) if copies else value.detach()
            for name, value in values.items()}
