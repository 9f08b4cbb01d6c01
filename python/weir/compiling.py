"""Compiles PyTorch modules and functions of tensors to programs: `weir.compile`, `weir.compile_step`."""

import contextlib
import inspect
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from weir.arrays import Array, like
from weir.execution import HELD_KINDS, make_start
from weir.locations import find_tool
from weir.optimizers import AdamW, Group, Optimizer, Rate, get_hyperparameters, get_options
from weir.programs import Compiled, Signature, Step
from weir.runtime import Device, open_device
from weir.torch.calls import bind, get_module, map_bound
from weir.torch.exporting import Exported, export
from weir.torch.merging import merge
from weir.torch.places import ExportError
from weir.torch.tracing import Result
from weir.torch.trees import map_leaves

Example = Sequence | Mapping
PREDICT = "predict"  # the entry of a step that evaluates


class CompileError(Exception):
    """A graph that the compiler refused. The message has a sentence for each problem."""


def compile(
    module: nn.Module | Callable,
    example: Example | list[Example],
    *,
    device: str | Device = "auto",
    memory_limit: int | str | None = None,
    checkpoint: str = "off",
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
    The module is compiled in its current mode, training or evaluation. Buffers that it writes stay on the device.
    Errors: weir.torch.ExportError if the module has no graph; CompileError if the graph does not compile;
            weir.Error if there is no such device; FileNotFoundError if the compiler is not installed.
    """
    examples = example if isinstance(example, list) else [example]
    if not examples:
        raise TypeError("there is no example of a call")
    names = ["main"] if len(examples) == 1 else [f"main.{i}" for i in range(len(examples))]
    with _telling("exporting"):
        exports = [
            export(module, given, entry=name, keep_buffers=True) for given, name in zip(examples, names)
        ]
    opened = open_device(device)
    path, folder = run_compiler(merge([exported.text for exported in exports]), opened, memory_limit,
                                [f"--checkpoint={checkpoint}"])
    values = {name: value for exported in exports for name, value in (exported.parameters | exported.states).items()}
    signatures = [
        Signature(name, make_bind(module, given), make_rebuild(exported))
        for name, given, exported in zip(names, examples, exports)
    ]
    return Compiled(path, opened, values, signatures, folder)


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
    `device`:  as for `compile`; so are `memory_limit` and `checkpoint`.
    Parameters that require no gradient stay as they are.
    Errors: those of `compile`; weir.torch.ExportError, too, if no parameter requires a gradient, or the loss is not
            one float of rank 0.
    """
    if offload not in (None, "state"):
        raise ValueError(f"offload is {offload!r}; expected None or \"state\"")
    optimizer = AdamW() if optimizer is None else optimizer
    targets = dict(targets or {})
    with _telling("exporting"):
        exported = export(module, example, loss=loss, targets=targets, keep_buffers=True)
        predicted = None if predict is None else _export_evaluated(module, predict)
    if not any(argument.kind == "param" for argument in exported.arguments):
        raise ExportError("no parameter of the module requires a gradient, so there is nothing to train")
    rates = get_hyperparameters(optimizer, groups)
    rates |= {name: rate for name, rate in (("max_norm", clip_norm), ("ema_decay", ema)) if rate is not None}
    names = [argument.name for argument in exported.arguments]
    if shared := [name for name in rates if name in names]:
        raise ExportError(f"{shared[0]} is an argument of the module and a hyperparameter of the optimizer; "
                                     "give the argument another name")
    opened = open_device(device)
    flags = {"--clip-norm": clip_norm is not None, "--accumulate": accumulate, "--loss-scale": loss_scale,
             "--ema": ema is not None, "--offload=state": offload is not None}
    texts, options = [exported.text], [f"--train={optimizer.name}:main", "--entry=main.step", *get_options(groups)]
    predictor = None
    if predicted:
        texts.append(predicted.text)
        options.append(f"--entry={PREDICT}")
        predictor = Signature(PREDICT, make_bind(module, predict), make_rebuild(predicted))
    path, folder = run_compiler(merge(texts), opened, memory_limit,
                                [*options, f"--checkpoint={checkpoint}",
                                 *(flag for flag, is_set in flags.items() if is_set)])
    bind_inputs = make_bind(module, example)

    def bind_all(arguments: tuple, named: dict) -> dict[str, Any]:
        if missing := [name for name in targets if name not in named]:
            raise TypeError(f"the target {missing[0]} is missing")
        own = {name: named[name] for name in (*targets, *rates, "microbatches") if name in named}
        return bind_inputs(arguments, {name: value for name, value in named.items() if name not in own}) | own

    made = get_module(module)
    own = [*exported.parameters, *(name for name in exported.states if name in dict(made.named_buffers()))]
    values = exported.parameters | exported.states
    if predicted:
        values = predicted.parameters | predicted.states | values
    step = _ModuleStep(
        path, opened, values, [Signature("main.step", bind_all, lambda results, given: results)],
        rates=rates, own=own, rebuild=make_rebuild(exported), folder=folder, module=made,
        predictor=predictor, check_values=check_values,
    )
    entry = step.entries["main.step"]
    if unset := [tensor.name for tensor in entry.arguments if tensor.kind == "input"
                 and tensor.name not in (*names, *rates, "microbatches")]:
        raise TypeError(f"{optimizer.name} has the hyperparameter {unset[0]}, which was not given")
    tensors = {tensor.name: tensor for tensor in entry.arguments}
    state = [tensor for tensor in step._execution.get_missing(entry) if tensor.kind in HELD_KINDS]
    step._execution.hold({tensor.name: make_start(tensor, tensors, values) for tensor in state})
    return step


def _export_evaluated(module: nn.Module | Callable, example: Example) -> Exported:
    """Exports a module in evaluation mode, and leaves it in its own."""
    modes = {part: part.training for part in module.modules()} if isinstance(module, nn.Module) else {}
    for part in modes:
        part.training = False
    try:
        return export(module, example, entry=PREDICT, keep_buffers=True)
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

    def make(arguments: tuple, named: dict) -> dict[str, Any]:
        values = (*arguments, *named.values())
        are_tensors = all(isinstance(value, torch.Tensor) or _is_array(value) for value in values)
        key = (len(arguments), tuple(named))
        if are_tensors and (names := known.get(key)):
            return dict(zip(names, values))
        bound = signature.bind(*arguments, **named)
        given: dict[str, Any] = {}
        map_bound(bound, lambda name, value: given.setdefault(name, value), is_leaf=_is_array)
        constants = _list_constants(bound)
        for name in constants | kept:
            if (value := constants.get(name)) != kept.get(name):
                raise ValueError(f"{name} is {value!r}, but the program was compiled for {kept.get(name)!r}")
        if are_tensors:
            names = {id(value): name for name, value in given.items()}
            if len(names) == len(values):  # one tensor given twice tells not which is which
                known[key] = [names[id(value)] for value in values]
        return given

    return make


def _is_array(value: Any) -> bool:
    return isinstance(value, Array) or hasattr(value, "__dlpack__") or hasattr(value, "__array__")


def _list_constants(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Returns the numbers, flags and strings of a call by place, defaults included."""
    bound.apply_defaults()
    found: dict[str, Any] = {}
    map_bound(bound, lambda name, value: found.setdefault(name, value),
              is_leaf=lambda value: isinstance(value, (bool, int, float, str)))
    return found


def make_rebuild(exported: Exported) -> Callable[[dict[str, Array], Any], Any]:
    """Returns a function from results by name to the nested values that the module returns."""
    def rebuild(results: dict[str, Array], given: Any) -> Any:
        return map_leaves(exported.output, lambda place, leaf: like(results[leaf.name], given),
                          lambda value: isinstance(value, Result))

    return rebuild


def run_compiler(
    text: str, device: Device, memory_limit: int | str | None, options: list[str]
) -> tuple[pathlib.Path, tempfile.TemporaryDirectory]:
    """Compiles a graph for the device; returns the artifact's path and its temporary folder.

    Errors: CompileError.
    """
    folder = tempfile.TemporaryDirectory(prefix="weir-")
    place = pathlib.Path(folder.name)
    (place / "graph.mlir").write_text(text)
    (place / "profile.json").write_text(device.profile)
    command = [find_tool("weir"), "compile", str(place / "graph.mlir"), "--check-indices", *options,
               f"--target={device.api}:{place / 'profile.json'}", f"--output={place / 'program.weir'}"]
    if memory_limit is not None:
        command.append(f"--memory-limit={memory_limit}")
    with _telling("compiling"):
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    if done.returncode:
        problems = [line.removeprefix("error: ").replace(f"{place}/", "") for line in done.stderr.splitlines() if line]
        raise CompileError("\n".join(problems) or f"the compiler ended with status {done.returncode}")
    return place / "program.weir", folder


@contextlib.contextmanager
def _telling(what: str) -> Iterator[None]:
    """Says on a terminal what takes time, once it has taken a second."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()

    def tell() -> None:
        seconds = 1
        while not over.wait(1):
            print(f"\rweir: {what}: {seconds} s", end="", file=sys.stderr, flush=True)
            seconds += 1
        if seconds > 1:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
