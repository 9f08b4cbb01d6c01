"""Compiled programs: what `weir.load`, `weir.compile` and `weir.compile_step` return."""

import dataclasses
import html
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from weir import checkpoints
from weir.arrays import Array, Status, Statuses, like
from weir.execution import HELD_KINDS, Execution, NotFiniteError, Watcher, check_value, describe_mismatch, make_start
from weir.locations import find_tool
from weir.optimizers import Rate
from weir.runtime import APIS, Device, Entry, Error, open_device


@dataclasses.dataclass(frozen=True)
class Signature:
    """Translates a call in Python to a run of an entry, and its results to what the module would return."""

    entry: str
    bind: Callable[[tuple, dict], dict[str, Any]]  # arguments of the call to tensors by name
    rebuild: Callable[[dict[str, Array], Any], Any]  # results, and one of the inputs
    written: tuple[str, ...] = ()  # inputs that get new values, which are results of their names

    def check_writable(self, given: Mapping[str, Any]) -> None:
        """Checks that inputs can be written to. Errors: TypeError."""
        for name in self.written:
            if isinstance(given[name], Array) or not getattr(getattr(given[name], "flags", None), "writeable", True):
                raise TypeError(f"the module writes to its input {name}; give a PyTorch tensor or a NumPy array that is writable")

    def write_back(self, results: Mapping[str, Array], given: Mapping[str, Any]) -> None:
        """Gives inputs their new values."""
        for name in self.written:
            if isinstance(given[name], numpy.ndarray):
                given[name][...] = results[name].numpy()
            else:
                given[name].detach().copy_(results[name].torch())


class Compiled:
    """The entries of an artifact on a device, with the parameters and the state that stay there.

    `weir.compile` and `weir.load` make it. `with` closes it. One thread at a time may call it.
    """

    _kind = "Compiled"

    def __init__(
        self, path: str | os.PathLike, device: Device, values: Mapping[str, Any], signatures: list[Signature],
        folder: Any = None, dtypes: Mapping[str, numpy.dtype] | None = None,
    ):
        self._path, self._folder = pathlib.Path(path), folder  # of the artifact; kept as long as this
        self._execution = Execution(path, device, dtypes)
        self._signatures = signatures
        self._execution.hold(values)

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Waits for the runs and frees the device's memory. Arrays that were read stay; calls are refused."""
        self._execution.close()

    @property
    def device(self) -> str:
        """The name of the device."""
        return self._execution.device.name

    @property
    def entries(self) -> dict[str, Entry]:
        """The entries by name, with their arguments and results."""
        return self._execution.entries

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Runs the entry that fits the shapes and types of the arguments, and returns what the module would return.

        The arguments are those of the module. What it writes to, PyTorch tensors or NumPy arrays, has its new values
        then. Each result is a weir.Array, which stays on the device until it is read;
        or a PyTorch tensor, read at once, if the first argument is one.
        Errors: TypeError for a call that the module does not take; ValueError if no entry fits, with a reason for
                each entry; weir.Error if the run fails, the program is closed, or another thread is in a call.
                Parameters and state are then as before.
        """
        entry, given, signature = self._choose(arguments, named)
        signature.check_writable(given)
        results = self._execution.call(entry, given)
        signature.write_back(results, given)
        return signature.rebuild(results, next(iter(given.values()), None))

    def empty(self, name: str, entry: str | None = None) -> numpy.ndarray:
        """Returns an uninitialized array for the input `name`, in the device's memory if the host can address that.

        A call does not copy it. Fill it again only after reading the results of that call. On a device with memory of
        its own it is an ordinary array, which a call copies.
        `entry`: the entry that has the input, by default the first one.
        Errors: ValueError for names that do not exist.
        """
        found = self._find_entry(entry)
        [tensor] = [tensor for tensor in found.arguments if tensor.name == name] or [None]
        if tensor is None:
            raise ValueError(f"{found.name} has no argument {name}; it has "
                             f"{', '.join(str(argument) for argument in self._execution.get_missing(found))}")
        array = self._execution.make_input(found, name)
        return numpy.empty(tensor.shape, tensor.dtype) if array is None else array

    def state_dict(self) -> dict[str, Any]:
        """Returns the parameters and the module's state by name, as arrays in host memory."""
        return self._execution.read()

    def load_state_dict(self, values: Mapping[str, Any]) -> None:
        """Uploads parameters and state by name, such as the module's `state_dict`; other names are ignored.

        Errors: ValueError for missing names, and for other shapes or types; nothing is changed then.
        """
        if missing := [name for name in self._get_own() if name not in values]:
            raise ValueError(f"there is no value for {', '.join(missing)}")
        held = {name: values[name] for name in self._execution.held if name in values}
        self._execution.hold(held | self._start_anew(held))

    def save(self, path: str | os.PathLike) -> None:
        """Writes a checkpoint: one safetensors file with all parameters and state, by their names in the module.

        The file is written under another name, synced and renamed, so a crash leaves the old file or the new one.
        Errors: OSError.
        """
        checkpoints.save(path, self._execution.held, self._execution.read(), self._get_notes())

    def load(self, path: str | os.PathLike) -> None:
        """Reads a checkpoint that `save` wrote, or a safetensors file with the module's values.

        Errors: weir.CheckpointError if the file is cut short, or belongs to another model; nothing is changed then.
                OSError.
        """
        values, notes = checkpoints.load(path)
        held = self._execution.held
        problems = [f"it has no {name}" for name in held if name not in values and self._is_needed(name, notes)]
        problems += [f"it has {name}, which the program has not" for name in values if name not in held]
        for name, tensor in held.items():
            if name in values:
                try:
                    check_value(tensor, values[name])
                except ValueError as error:
                    # NumPy's uint16 is bfloat16 here: Weir has no other type of that kind.
                    problems.append(str(error).replace("uint16", "bfloat16"))
        if problems:
            more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
            raise checkpoints.CheckpointError(f"{path} is of another model: {'; '.join(problems[:3])}{more}; load a "
                                              "checkpoint of this module, with its shapes and types")
        self._execution.hold(values | self._start_anew(values))
        self._take_notes(notes)

    def save_artifact(self, path: str | os.PathLike) -> None:
        """Writes the artifact, without parameters and state, for `weir.load` and the command line. Errors: OSError."""
        target = pathlib.Path(path)
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            shutil.copyfile(self._path, temporary)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    def explain(self) -> "Explanation":
        """Returns why the program is as it is: its memory over time, barriers, donations and kernels.

        `print` shows it as a summary, a notebook as a page; its `save(path)` writes the page.
        Errors: weir.Error; FileNotFoundError if weir-device is not installed.
        """
        return Explanation(self._path)

    def __repr__(self) -> str:
        if self._execution._is_closed:
            return f"<weir.{self._kind}, closed>"
        held = self._execution.held.values()
        lines = [f"<weir.{self._kind} on {self.device}; holds {_print_bytes(sum(tensor.bytes for tensor in held))}"]
        if offloaded := sum(tensor.bytes for tensor in held if tensor.in_host):
            lines[0] += f", {_print_bytes(offloaded)} of it in host memory"
        for entry in self.entries.values():
            facts = self._read_facts(entry.name)
            arguments = ", ".join(str(tensor) for tensor in self._execution.get_missing(entry))
            lines.append(f"  {entry.name}({arguments}): {facts['dispatches']} dispatches, {facts['barriers']} barriers, "
                         f"peak {_print_bytes(facts['arena'])}")
        return "\n".join(lines) + ">"

    def _start_anew(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the state that starts as one of `values`, and is not among them."""
        tensors = {tensor.name: tensor for entry in self.entries.values() for tensor in entry.arguments}
        return {name: make_start(tensor, tensors, values) for name, tensor in tensors.items()
                if tensor.starts_as in values and name not in values}

    # `Step` overrides the next four.
    def _get_own(self) -> list[str]:
        return list(self._execution.held)

    def _is_needed(self, name: str, notes: Mapping[str, str]) -> bool:
        return True

    def _get_notes(self) -> dict[str, str]:
        return {}

    def _take_notes(self, notes: Mapping[str, str]) -> None:
        pass

    def _find_entry(self, name: str | None) -> Entry:
        if name is None:
            return next(iter(self.entries.values()))
        if name not in self.entries:
            raise ValueError(f"there is no entry {name}; there are {', '.join(self.entries)}")
        return self.entries[name]

    def _choose(self, arguments: tuple, named: dict) -> tuple[Entry, dict[str, Any], Signature]:
        """Returns the entry that fits a call, and the call's tensors by name."""
        refused = []
        for signature in self._signatures:
            entry = self.entries[signature.entry]
            try:
                given = signature.bind(arguments, named)
            except TypeError as error:
                if len(self._signatures) == 1:
                    raise
                refused.append(f"{entry.name}: {error}")
                continue
            # Where there is one entry, the call itself says what does not fit.
            if len(self._signatures) == 1 or not (problem := self._find_mismatch(entry, given)):
                return entry, given, signature
            refused.append(f"{entry.name}: {problem}")
        raise ValueError("no entry takes these arguments; " + "; ".join(refused))

    def _find_mismatch(self, entry: Entry, given: Mapping[str, Any]) -> str:
        """Returns why a call does not fit the entry, or None."""
        for tensor in self._execution.get_missing(entry):
            if tensor.name not in given:
                return f"{tensor.name} is missing"
            value = given[tensor.name]
            if isinstance(value, Array):
                if (value.dtype, value.shape) != (tensor.dtype, tensor.shape):
                    return describe_mismatch(tensor, value)
                continue
            try:
                check_value(tensor, value)
            except ValueError as error:
                return str(error)
        names = {tensor.name for tensor in entry.arguments}
        return next((f"there is no argument {name}" for name in given if name not in names), "")

    def _read_facts(self, entry: str) -> dict[str, int]:
        names = [section.name for section in self._execution.sections.get(entry, [])] or [entry]
        with zipfile.ZipFile(self._path) as archive:
            plans = [json.loads(archive.read(f"plan/{self._execution.target}/{name}.json")) for name in names]
        kinds = [command["command"] for plan in plans for command in plan["commands"]]
        return {"dispatches": kinds.count("dispatch"), "barriers": kinds.count("barrier"),
                "arena": max(plan["arena_bytes"] for plan in plans)}


class Step(Compiled):
    """A training step: forward, loss, backward and the optimizer in one run; parameters and state stay on the device.

    `weir.compile_step` makes it.
    """

    _kind = "Step"

    def __init__(self, *arguments: Any, rates: Mapping[str, Rate], own: list[str], rebuild: Callable,
                 predictor: Signature | None = None, check_values: bool = False, **options: Any):
        super().__init__(*arguments, **options)
        self._check_values = check_values
        self._predictor = predictor
        # The entry that adds gradients to those before, if the step has it.
        self._accumulator = self.entries.get(self._signatures[0].entry.removesuffix(".step") + ".accumulate")
        taken = {tensor.name for entry in self.entries.values() for tensor in entry.arguments}
        self._rates = {name: rate for name, rate in rates.items() if name in taken}
        self._own = own
        self._sharding: Mapping[str, Any] = {}  # of parameters that differ by rank: a Sharding, or a Flat
        self._private: set[str] = set()  # other arguments that differ by rank
        self._num_ranks = self._num_replicas = 1
        self._rebuild = rebuild
        self._accumulated = 0  # microbatches since the last step
        self._results: dict[str, Array] = {}
        self._unchecked: list[tuple[int, Status | Statuses]] = []
        self._steps = 0

    @property
    def steps(self) -> int:
        """The number of steps done, including those before a loaded checkpoint."""
        return self._steps

    @property
    def output(self) -> Any:
        """The module's output in the last step, computed before the update."""
        return self._rebuild(self._results, None)

    def __call__(self, *arguments: Any, **named: Any) -> Array:
        """Does one step and returns the loss, a weir.Array of rank 0, without waiting for the device.

        The arguments are the module's inputs, the targets by name, and hyperparameters by name for this step only.
        Errors: those of a call of Compiled; parameters and state are then as before.
        """
        given_rates = {name: named.pop(name) for name in list(named) if name in self._rates}
        rates = self._evaluate(given_rates)
        if self._accumulator:
            rates["microbatches"] = self._accumulated + 1.0
        entry, given, _ = self._choose(arguments, named | rates)
        return self._run(entry, given, self._count_step)

    def accumulate(self, *arguments: Any, **named: Any) -> Array:
        """Adds the gradients of a microbatch to those that the next step takes, and returns the loss.

        The next call of the step, which has a microbatch of its own, updates by the mean over all of them. The
        arguments are the module's inputs, and the targets by name.
        Errors: those of a call; ValueError if the step was compiled without `accumulate=True`.
        """
        if not self._accumulator:
            raise ValueError("the step was compiled without accumulate=True")
        given = self._signatures[0].bind(arguments, named)
        return self._run(self._accumulator, given, self._count_microbatch)

    def predict(self, *arguments: Any, **named: Any) -> Any:
        """Returns what the module would return in evaluation mode, with the parameters as they are now.

        Errors: those of a call; ValueError if the step was compiled without `predict=EXAMPLE`.
        """
        if not self._predictor:
            raise ValueError("the step was compiled without predict=EXAMPLE, an example of a call")
        given = self._predictor.bind(arguments, named)
        results = self._execution.call(self.entries[self._predictor.entry], given)
        return self._predictor.rebuild(results, next(iter(given.values()), None))

    def averages(self) -> dict[str, Any]:
        """Returns the moving averages of the parameters by the parameters' names, as arrays in host memory.

        Errors: ValueError if the step was compiled without `ema`.
        """
        names = {tensor.name: tensor.starts_as for tensor in self._execution.held.values()
                 if tensor.name == f"{tensor.starts_as}.ema"}
        if not names:
            raise ValueError("the step was compiled without ema")
        self._check_steps()
        return {names[name]: value for name, value in self._execution.read(list(names)).items()}

    def _run(
        self, entry: Entry, given: dict[str, Any], count: Callable[[], None], watcher: Watcher | None = None
    ) -> Array:
        self._check_oldest()
        try:
            self._results = self._execution.call(entry, given, count, self._check_values, watcher)
        except NotFiniteError as error:
            raise Error(f"step {self._steps + 1}: {self._explain_not_finite(entry, given) or error}; parameters and "
                        "state are as before") from None
        if self._execution.status:
            self._unchecked.append((self._steps, self._execution.status))
        return self._results["loss"]

    def _explain_not_finite(self, entry: Entry, given: Mapping[str, Any]) -> str:
        """Returns what `weir run --check-values` says of a run, or "" if it cannot repeat it."""
        tensors = {tensor.name: tensor for tensor in entry.arguments}
        values = self._execution.read([name for name in tensors if name not in given])
        values |= {name: check_value(tensors[name], value) for name, value in given.items() if name in tensors}
        with tempfile.TemporaryDirectory(prefix="weir-") as folder:
            inputs = pathlib.Path(folder) / "inputs.safetensors"
            checkpoints.save(inputs, tensors, values, {})
            done = subprocess.run(
                [find_tool("weir"), "run", str(self._path), f"--entry={entry.name}", f"--input={inputs}", "--steps=1",
                 "--check-values", "--json", f"--device={self._execution.device.spelling}"],
                capture_output=True, text=True)
        try:
            return json.loads(done.stdout)["not_finite"].removeprefix("step 1: ")
        except (ValueError, KeyError):
            return ""

    def state_dict(self) -> dict[str, Any]:
        """Returns the module's parameters and buffers as PyTorch tensors, for `model.load_state_dict`."""
        self._check_steps()
        return self._as_module(self._execution.read(self._own))

    def save(self, path: str | os.PathLike) -> None:
        """Writes a checkpoint, as `Compiled.save`. Errors: weir.Error if a step read out of range."""
        self._check_steps()
        super().save(path)

    def _check_oldest(self) -> None:
        # The status of a run is read two runs later, when nobody waits for it any more.
        if len(self._unchecked) > 1:
            step, status = self._unchecked.pop(0)
            _check_step(step, status)

    def _check_steps(self) -> None:
        while self._unchecked:
            step, status = self._unchecked.pop(0)
            _check_step(step, status)

    def seed(self, seed: int) -> None:
        """Sets the seed of dropout and noise (default 0).

        Errors: ValueError for a step that draws no random numbers.
        """
        if "random.seed" not in self._execution.held:
            raise ValueError("the step draws no random numbers")
        self._execution.hold({"random.seed": seed})

    def _count_step(self) -> None:
        self._steps += 1
        self._accumulated = 0

    def _count_microbatch(self) -> None:
        self._accumulated += 1

    def _as_module(self, values: dict[str, numpy.ndarray]) -> dict[str, Any]:
        return values

    def _evaluate(self, given: Mapping[str, Rate]) -> dict[str, Any]:
        rates = {}
        for name, rate in {**self._rates, **given}.items():
            value = rate(self._steps) if callable(rate) else rate
            try:
                rates[name] = float(value)
            except (TypeError, ValueError):
                raise ValueError(f"{name} is {value!r}; expected a number, or a function of the number of steps") from None
        return rates

    def _get_own(self) -> list[str]:
        return self._own

    def _is_needed(self, name: str, notes: Mapping[str, str]) -> bool:
        # A file of the module's values alone starts the optimizer anew.
        return name in self._own or notes.get("weir") == "checkpoint"

    def _get_notes(self) -> dict[str, str]:
        notes = {"steps": str(self._steps)}
        return notes | {"microbatches": str(self._accumulated)} if self._accumulator else notes

    def _take_notes(self, notes: Mapping[str, str]) -> None:
        texts = [notes.get(name, "0") for name in ("steps", "microbatches")]
        self._steps, self._accumulated = (int(text) if text.isdecimal() else 0 for text in texts)


def _check_step(step: int, status: Status | Statuses) -> None:
    try:
        status.check()
    except Error as error:
        raise Error(f"step {step}: {error}") from None


def load(
    path: str | os.PathLike, *, checkpoint: str | os.PathLike | None = None, device: str | Device = "auto"
) -> Compiled:
    """Loads an artifact, with parameters and state from `checkpoint`, a safetensors file.

    State that the checkpoint does not have is 0. A call takes inputs by name or in the entry's order. It returns one
    array for one result, a tuple for results named output.0, output.1 and so on, or else a dict by name.
    `device`: as for `weir.compile`; "auto" takes a GPU that the artifact has code for, or else the processor.
    Errors: weir.Error if the file is no artifact, or no device fits; weir.CheckpointError if the checkpoint
            lacks a parameter or belongs to another model; OSError.
    """
    opened = open_for(path, device)
    loaded = Compiled(path, opened, {}, [])
    values, notes = checkpoints.load(checkpoint) if checkpoint is not None else ({}, {})
    tensors = {tensor.name: tensor for entry in loaded.entries.values() for tensor in entry.arguments}
    for name, tensor in tensors.items():
        if name in values:
            try:
                check_value(tensor, values[name])
            except ValueError as error:
                raise checkpoints.CheckpointError(f"{checkpoint} is of another model: {error}; load a checkpoint of the "
                                                  "module that was compiled") from None
        elif tensor.kind == "param":
            raise checkpoints.CheckpointError(
                f"{checkpoint} has no {name}" if checkpoint is not None else
                f"{path} takes parameters, {name} and others; give their values by checkpoint=FILE.safetensors")
    for name, tensor in tensors.items():
        if tensor.kind in HELD_KINDS and name not in values:
            values[name] = make_start(tensor, tensors, values)
    loaded._execution.hold({name: value for name, value in values.items() if name in tensors})
    loaded._signatures = [_make_signature(loaded, entry) for entry in loaded.entries.values()]
    return loaded


def open_for(path: str | os.PathLike, device: str | Device) -> Device:
    """Opens a device. "auto" opens one that the artifact has code for."""
    if device != "auto":
        return open_device(device)
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            apis = {target["target"].partition(".")[0] for target in manifest["targets"]}
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile):
        return open_device("auto")  # opening the artifact says what is wrong
    problems = []
    driver = None
    for api in filter(apis.__contains__, APIS):
        try:
            found = open_device(api)
        except Error as error:
            problems.append(str(error))
            continue
        if found.is_gpu or api == "cpu":
            return found
        driver = found  # on the processor, for which code of its own is better
    if driver:
        return driver
    raise Error(f"no device runs {path}: {'; '.join(problems)}")


def _make_signature(loaded: Compiled, entry: Entry) -> Signature:
    """Arguments by name, or in the entry's order; results by their names."""
    def bind(arguments: tuple, named: dict) -> dict[str, Any]:
        missing = [tensor.name for tensor in loaded._execution.get_missing(entry)]
        free = [name for name in missing if name not in named]
        if len(arguments) > len(free):
            raise TypeError(f"{entry.name} takes {', '.join(missing)}; {len(arguments) + len(named)} arguments are given")
        return dict(zip(free, arguments)) | named

    def rebuild(results: dict[str, Array], given: Any) -> Any:
        values = {name: like(value, given) for name, value in results.items()}
        places = [f"output.{i}" for i in range(len(values))]
        if list(values) == places:
            return tuple(values.values())
        return next(iter(values.values())) if len(values) == 1 else values

    return Signature(entry.name, bind, rebuild)


def _print_bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"


class Explanation:
    """The output of `weir explain` for an artifact: the summary as text, in a notebook the page."""

    def __init__(self, artifact: pathlib.Path):
        tool = find_tool("weir-device")
        with tempfile.TemporaryDirectory(prefix="weir-") as folder:
            page = pathlib.Path(folder) / "page.html"
            done = subprocess.run([tool, "explain", str(artifact), f"--html={page}"], capture_output=True, text=True)
            if done.returncode:
                raise Error(done.stderr.removeprefix("error: ").strip())
            self.html = page.read_text()
        self.text = subprocess.run([tool, "explain", str(artifact)], capture_output=True, text=True, check=True).stdout

    def save(self, path: str | os.PathLike) -> None:
        """Writes the page, which needs no other file."""
        pathlib.Path(path).write_text(self.html)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="800" style="border:0"></iframe>'
