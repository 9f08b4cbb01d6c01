"""Compiles PyTorch modules and functions of tensors to programs: `weir.compile`, `weir.compile_step`."""

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from weir.arrays import Array, ComplexArray, like, split_parts
from weir.building import PREDICT, Call, StepOptions, build, build_step, is_array, name_entries, telling
from weir.graphs import Exported, Result
from weir.optimizers import Group, Optimizer, Rate
from weir.programs import Compiled, Step
from weir.runtime import Device
from weir.torch.calls import bind, get_module, map_bound
from weir.torch.exporting import export
from weir.torch.trees import map_leaves

Example = Sequence | Mapping


def compile(
    module: nn.Module | Callable,
    example: Example | list[Example],
    *,
    device: str | Device = "auto",
    memory_limit: int | str | None = None,
    checkpoint: str = "off",
    precision: str | None = None,
) -> Compiled:
    """Compiles a module, or a function of tensors, for a device of this machine, and uploads its parameters.

    `example`: the arguments of a call, by name in a dict or in order in a tuple. Only shapes and types matter;
               numbers, flags and None become part of the graph. A list of examples makes an entry for each. The
               entries share parameters, state and constants, and a call picks the one that fits.
    `device`:  "auto" for the best one; "vulkan", "cuda" or "cpu"; "vulkan:1" for the second one; or an open weir.Device.
    `memory_limit`: max bytes of the arena, which holds the values between kernels, such as 10_000_000 or "10MB".
               To fit, values are computed again instead of kept.
    `checkpoint`: "auto" computes values again without a limit, as long as that saves a larger share of the arena than
               it adds to the work.
    `precision`: "tf32" lets products of float32 round their factors to 10 bits behind the point, for the matrix
               instructions of CUDA; "f32" does not. None is what the device's profile says: "f32", if it was not changed.
    The module is compiled in its current mode, training or evaluation. Buffers that it writes stay on the device.
    Errors: weir.torch.ExportError if the module has no graph; CompileError if the graph does not compile;
            weir.Error if there is no such device; FileNotFoundError if the compiler is not installed.
    """
    examples = example if isinstance(example, list) else [example]
    if not examples:
        raise TypeError("there is no example of a call")
    names = name_entries(len(examples))
    with telling("exporting"):
        calls = [_make_call(module, given, export(module, given, entry=name, keep_buffers=True, copies=False, gradients=False))
                 for given, name in zip(examples, names)]
    return build(calls, names, device, memory_limit, checkpoint, precision)


def compile_step(
    module: nn.Module | Callable,
    loss: Callable[..., torch.Tensor],
    *,
    example: Example,
    targets: Mapping[str, torch.Tensor] | None = None,
    optimizer: Optimizer | None = None,
    groups: Mapping[str, Group] | None = None,
    clip_norm: Rate | None = None,
    accumulate: bool = False,
    loss_scale: bool = False,
    ema: Rate | None = None,
    predict: Example | None = None,
    offload: str | None = None,
    check_values: bool = False,
    device: str | Device = "auto",
    memory_limit: int | str | None = None,
    checkpoint: str = "off",
    precision: str | None = None,
    pieces: bool = False,
    shards: int = 1,
    replicas: int = 1,
) -> Step:
    """Compiles a training step: forward, loss, backward and the optimizer's update in one run.

    `loss`:    called as `loss(output, *targets.values())`; returns one float of rank 0. For a module that computes its
               own loss: `lambda output: output.loss`.
    `example`: the arguments of a call, as for `compile`, but one example only.
    `targets`: the other arguments of the loss, by the names that a call uses.
    `optimizer`: weir.SGD(...), Adam, AdamW, Lion, Adafactor, or weir.Rule("rule.mlir", ...); AdamW() by default.
    `groups`:  parameters with hyperparameters of their own, by name: {"no_decay": weir.Group("*.bias", weight_decay=0)}.
    `clip_norm`: the largest norm of all gradients together; they are scaled down to it.
    `accumulate`: whether `Step.accumulate` may add gradients of further microbatches before a step.
    `loss_scale`: whether the loss is scaled against underflow in float16. A step with a gradient that is not finite
               changes no parameter and halves the scale.
    `ema`:     the decay of a moving average of each parameter, which `Step.averages` returns.
    `predict`: an example of a call of the module in evaluation mode, for `Step.predict`: an entry of the same artifact,
               with the same parameters.
    `offload`: "state" keeps state of the optimizer in host memory, where the step reads and updates it.
    `check_values`: whether each call waits for its run and raises weir.Error if the loss, a new parameter or new state is
               NaN or infinite, or the output holds a NaN. The error names the first dispatch that made one; parameters,
               state and `steps` are as before the call. It takes a second copy of parameters and state.
    `device`:  as for `compile`; so are `memory_limit`, `checkpoint` and `precision`.
    `pieces`:  whether the step can be taken apart, for `weir.distributed.DataParallel`: entries that give gradients and
               that update by them, beside the step.
    `shards`:  the number of parts that parameters are updated in, for DataParallel(step, sharded=True).
    `replicas`: the number of groups of ranks that share the module out, each with a batch of its own, for
               weir.distributed.TensorParallel(step, mesh). The loss is the mean over all.
    Parameters that require no gradient stay as they are.
    Errors: those of `compile`; weir.torch.ExportError, too, if no parameter requires a gradient, or the loss is not
            one float of rank 0.
    """
    options = StepOptions(optimizer, groups, clip_norm, accumulate, loss_scale, ema, offload, check_values, device,
                          memory_limit, checkpoint, precision, pieces, shards)
    if targets is not None and not isinstance(targets, Mapping):
        raise TypeError(f"targets is {type(targets).__name__}; expected a dict by the names that a call uses, "
                        'as {"y": y}')
    targets = dict(targets or {})
    if isinstance(module, nn.Module) and not module.training:
        warnings.warn("the module is in evaluation mode, in which the step will train it: without dropout, and with the "
                      "statistics that it has; call module.train() first", stacklevel=2)
    with telling("exporting"):
        exported = export(module, example, loss=loss, targets=targets, keep_buffers=True, copies=False, replicas=replicas)
        predicted = None if predict is None else _make_call(module, predict,
                                                            _export_evaluated(module, predict, replicas))
    made = get_module(module)
    own = [*exported.parameters, *(name for name in exported.states if name in dict(made.named_buffers()))]
    return build_step(_make_call(module, example, exported), options, own=own, targets=list(targets),
                      predicted=predicted, make=functools.partial(_ModuleStep, module=made))


def _make_call(module: nn.Module | Callable, example: Example, exported: Exported) -> Call:
    return Call(exported, make_bind(module, example), make_rebuild(exported))


def _export_evaluated(module: nn.Module | Callable, example: Example, replicas: int) -> Exported:
    """Exports a module in evaluation mode, and leaves it in its own."""
    modes = {part: part.training for part in module.modules()} if isinstance(module, nn.Module) else {}
    for part in modes:
        part.training = False
    try:
        return export(module, example, entry=PREDICT, keep_buffers=True, copies=False, replicas=replicas, gradients=False)
    finally:
        for part, mode in modes.items():
            part.training = mode


class _ModuleStep(Step):
    """A step whose `state_dict` is the module's: tied parameters under all their names, constant buffers included."""

    def __init__(self, *arguments: Any, module: nn.Module, **options: Any):
        super().__init__(*arguments, **options)
        first: dict[int, str] = {}
        for name, value in (*module.named_parameters(), *module.named_buffers()):
            first.setdefault(id(value), name)
        kept = module.state_dict(keep_vars=True)
        self._names = {name: first.get(id(value)) for name, value in kept.items()}
        self._constants = {name: value.detach().clone() for name, value in kept.items()
                           if isinstance(value, torch.Tensor) and self._names[name] not in self._own}
        self._trained = [(name, weakref.ref(value), value.requires_grad) for name, value in module.named_parameters()]

    def __call__(self, *arguments: Any, **named: Any) -> Array:
        self._tell_of_changes()
        return super().__call__(*arguments, **named)

    __call__.__doc__ = Step.__call__.__doc__

    def _tell_of_changes(self) -> None:
        """Warns once of parameters that were frozen, or freed, since the step was compiled."""
        for name, find, was_trained in self._trained:
            parameter = find()
            if parameter is not None and parameter.requires_grad != was_trained:
                self._trained = []
                warnings.warn(f"{name}.requires_grad is {parameter.requires_grad} now; the step was compiled while it was "
                              f"{was_trained}, and keeps to that: compile it again", stacklevel=3)
                return

    def _as_module(self, values: dict) -> dict[str, torch.Tensor]:
        tensors = self._execution.held
        made = {name: _to_torch(value, tensors[name].spelling) for name, value in values.items()}
        return {name: made[own] if own in made else self._constants[name].clone()
                for name, own in self._names.items()}


def _to_torch(value: Any, spelling: str) -> torch.Tensor:
    tensor = torch.from_numpy(value)
    return tensor.view(torch.bfloat16) if spelling == "BF16" else tensor


def make_bind(module: nn.Module | Callable, example: Example) -> Callable[[tuple, dict], dict[str, Any]]:
    """Returns a function from a call to its tensors by name. It refuses other numbers and flags than the example's."""
    made = get_module(module)
    kept = _list_constants(bind(made, example))
    signature = inspect.signature(made.forward)
    # The names of the tensors of a call that has nothing else, by the number of its arguments in order and the names of
    # the others: asking `inspect` takes longer than a small run.
    known: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    are_complex: list[str] = []
    map_bound(bind(made, example), lambda name, value: are_complex.append(name) if value.is_complex() else None)

    def pair(given: dict[str, Any]) -> dict[str, Any]:
        return given | {name: split_parts(name, given[name]) for name in are_complex if name in given}

    def make(arguments: tuple, named: dict) -> dict[str, Any]:
        values = (*arguments, *named.values())
        are_tensors = all(isinstance(value, torch.Tensor) or is_array(value) for value in values)
        key = (len(arguments), tuple(named))
        if are_tensors and (names := known.get(key)):
            return pair(dict(zip(names, values)))
        bound = signature.bind(*arguments, **named)
        given: dict[str, Any] = {}
        map_bound(bound, lambda name, value: given.setdefault(name, value), is_leaf=is_array)
        constants = _list_constants(bound)
        for name in constants | kept:
            if (value := constants.get(name)) != kept.get(name):
                raise ValueError(f"{name} is {value!r}, but the program was compiled for {kept.get(name)!r}")
        if are_tensors:
            names = {id(value): name for name, value in given.items()}
            if len(names) == len(values):  # one tensor given twice tells not which is which
                known[key] = [names[id(value)] for value in values]
        return pair(given)

    return make


def _list_constants(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Returns the numbers, flags and strings of a call by place, defaults included."""
    bound.apply_defaults()
    found: dict[str, Any] = {}
    map_bound(bound, lambda name, value: found.setdefault(name, value),
              is_leaf=lambda value: isinstance(value, (bool, int, float, str)))
    return found


def make_rebuild(exported: Exported) -> Callable[[dict[str, Array], Any], Any]:
    """Returns a function from results by name to the nested values that the module returns."""
    output = exported.output  # alone: a graph has the values of all parameters

    def rebuild(results: dict[str, Array], given: Any) -> Any:
        return map_leaves(output, lambda place, leaf: find(results[leaf.name], leaf, given),
                          lambda value: isinstance(value, Result))

    def find(value: Any, leaf: Result, given: Any) -> Any:
        value = like(value, given)
        if not leaf.is_complex:
            return value
        return torch.complex(*value.unbind(-1)) if isinstance(value, torch.Tensor) else ComplexArray(value)

    return rebuild
