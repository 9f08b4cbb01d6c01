"""Builds programs from graphs that a front end exported: runs the compiler, and sets a step up."""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weir.arrays import Array
from weir.execution import HELD_KINDS, make_start
from weir.locations import find_tool
from weir.optimizers import AdamW, Group, Optimizer, Rate, get_hyperparameters, get_options
from weir.programs import Compiled, Signature, Step
from weir.runtime import Device, open_device

if TYPE_CHECKING:
    from weir.graphs import Exported

PREDICT = "predict"  # the entry of a step that evaluates


class CompileError(Exception):
    """A graph that the compiler refused. The message has a sentence for each problem."""


@dataclasses.dataclass(frozen=True)
class StepOptions:
    """The options that `compile_step` has in every front end; `weir.compile_step` says what they mean."""

    optimizer: Optimizer | None = None
    groups: Mapping[str, Group] | None = None
    clip_norm: Rate | None = None
    accumulate: bool = False
    loss_scale: bool = False
    ema: Rate | None = None
    offload: str | None = None
    check_values: bool = False
    device: str | Device = "auto"
    memory_limit: int | str | None = None
    checkpoint: str = "off"
    precision: str | None = None
    pieces: bool = False
    shards: int = 1

    def __post_init__(self) -> None:
        if self.offload not in (None, "state"):
            raise ValueError(f"offload is {self.offload!r}; expected None or \"state\"")


@dataclasses.dataclass(frozen=True)
class Call:
    """One way to call a program: a graph, and what translates a call in Python to its tensors and back."""

    exported: "Exported"
    bind: Callable[[tuple, dict], dict[str, Any]]
    rebuild: Callable[[dict[str, Array], Any], Any]


def name_entries(count: int) -> list[str]:
    """Returns the names of the entries for that many examples."""
    return ["main"] if count == 1 else [f"main.{i}" for i in range(count)]


def build(
    calls: Sequence[Call],
    names: Sequence[str],
    device: str | Device,
    memory_limit: int | str | None,
    checkpoint: str,
    precision: str | None,
) -> Compiled:
    """Compiles graphs, whose functions are called `names`, to a program with an entry for each.

    Errors: CompileError; weir.Error if there is no such device; FileNotFoundError if the compiler is not installed.
    """
    from weir.graphs import merge

    opened = open_device(device)
    path, folder = run_compiler(merge([call.exported.text for call in calls]), opened, memory_limit,
                                [f"--checkpoint={checkpoint}"], precision)
    values = {name: value for call in calls
              for name, value in (call.exported.parameters | call.exported.states).items()}
    signatures = [Signature(name, call.bind, call.rebuild, tuple(call.exported.written))
                  for name, call in zip(names, calls)]
    dtypes = {name: dtype for call in calls for name, dtype in call.exported.dtypes.items()}
    return Compiled(path, opened, values, signatures, folder, dtypes)


def build_step(
    call: Call,
    options: StepOptions,
    *,
    own: Sequence[str],
    targets: Sequence[str] = (),
    predicted: Call | None = None,
    make: Callable[..., Step] = Step,
) -> Step:
    """Compiles a graph whose first result is the loss to a step, with the optimizer's update.

    `own`:     the names of the values that `state_dict` has.
    `targets`: the arguments of a call by name that `call.bind` does not know.
    `make`:    the class of the step.
    Errors: weir.ExportError if there is nothing to train, or a name is taken; those of `build`.
    """
    from weir.graphs import ExportError, merge

    exported, optimizer = call.exported, AdamW() if options.optimizer is None else options.optimizer
    if not any(argument.kind == "param" for argument in exported.arguments):
        raise ExportError("no parameter of the module requires a gradient, so there is nothing to train")
    rates = get_hyperparameters(optimizer, options.groups)
    rates |= {name: rate for name, rate in (("max_norm", options.clip_norm), ("ema_decay", options.ema))
              if rate is not None}
    names = [argument.name for argument in exported.arguments]
    if shared := [name for name in rates if name in names]:
        raise ExportError(f"{shared[0]} is an argument of the module and a hyperparameter of the optimizer; "
                          "give the argument another name")
    opened = open_device(options.device)
    flags = {"--clip-norm": options.clip_norm is not None, "--accumulate": options.accumulate,
             "--maximize": getattr(optimizer, "maximize", False),
             "--loss-scale": options.loss_scale, "--ema": options.ema is not None,
             "--offload=state": options.offload is not None, "--pieces": options.pieces,
             f"--shards={options.shards}": options.shards != 1}
    texts, words = [exported.text], [f"--train={optimizer.name}:main", "--entry=main.step",
                                     *get_options(options.groups)]
    values, dtypes, predictor = exported.parameters | exported.states, dict(exported.dtypes), None
    if predicted:
        texts.append(predicted.exported.text)
        words.append(f"--entry={PREDICT}")
        predictor = Signature(PREDICT, predicted.bind, predicted.rebuild)
        values = predicted.exported.parameters | predicted.exported.states | values
        dtypes |= predicted.exported.dtypes
    path, folder = run_compiler(merge(texts), opened, options.memory_limit,
                                [*words, f"--checkpoint={options.checkpoint}",
                                 *(flag for flag, is_set in flags.items() if is_set)], options.precision)

    bind = call.bind  # alone: a call has the values of all parameters

    def bind_all(arguments: tuple, named: dict) -> dict[str, Any]:
        if missing := [name for name in targets if name not in named]:
            raise TypeError(f"the target {missing[0]} is missing")
        given = {name: named[name] for name in (*targets, *rates, "microbatches") if name in named}
        return bind(arguments, {name: value for name, value in named.items() if name not in given}) | given

    step = make(
        path, opened, values, [Signature("main.step", bind_all, lambda results, given: results)], folder, dtypes,
        rates=rates, own=list(own), rebuild=call.rebuild, predictor=predictor, check_values=options.check_values,
    )
    step._sharding, step._private = exported.sharding, set(exported.private)
    step._num_ranks, step._num_replicas = exported.ranks, exported.replicas
    entry = step.entries["main.step"]
    if unset := [tensor.name for tensor in entry.arguments if tensor.kind == "input"
                 and tensor.name not in (*names, *rates, "microbatches")]:
        raise TypeError(f"{optimizer.name} has the hyperparameter {unset[0]}, which was not given")
    tensors = {tensor.name: tensor for each in step.entries.values() for tensor in each.arguments}
    held = step._execution.held
    for name, tensor in tensors.items():  # one by one: together they are as large as the state on the device
        if tensor.kind in HELD_KINDS and name not in held:
            step._execution.hold({name: make_start(tensor, tensors, values)})
    return step


def is_array(value: Any) -> bool:
    """Whether a value is an array of any library."""
    return isinstance(value, Array) or hasattr(value, "__dlpack__") or hasattr(value, "__array__")


def run_compiler(
    text: str,
    device: Device,
    memory_limit: int | str | None,
    options: list[str],
    precision: str | None = None,
) -> tuple[pathlib.Path, tempfile.TemporaryDirectory]:
    """Compiles a graph for the device; returns the artifact's path and its temporary folder.

    Errors: CompileError; ValueError if there is no such precision.
    """
    if precision not in (None, "f32", "tf32"):
        raise ValueError(f"precision is {precision!r}; expected None, \"f32\" or \"tf32\"")
    folder = tempfile.TemporaryDirectory(prefix="weir-")
    place = pathlib.Path(folder.name)
    (place / "graph.mlir").write_text(text)
    (place / "profile.json").write_text(device.profile)
    command = [find_tool("weir"), "compile", str(place / "graph.mlir"), "--check-indices", *options,
               f"--target={device.api}:{place / 'profile.json'}", f"--output={place / 'program.weir'}"]
    if memory_limit is not None:
        command.append(f"--memory-limit={memory_limit}")
    if precision is not None:
        command.append(f"--precision={precision}")
    with telling("compiling"):
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    if done.returncode:
        problems = [line.removeprefix("error: ").replace(f"{place}/", "") for line in done.stderr.splitlines() if line]
        raise CompileError("\n".join(problems) or f"the compiler ended with status {done.returncode}")
    return place / "program.weir", folder


@contextlib.contextmanager
def telling(what: str) -> Iterator[None]:
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
