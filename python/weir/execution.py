"""Runs the entries of an artifact with values that stay on the device between calls.

Values that are held are known by name: parameters and state. All entries share them. A run that updates one writes it in
place where the plan proves that it may, or else into a second buffer; in either case a call is done as a whole or not
at all.
"""

import contextlib
import dataclasses
import os
import signal
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy

from weir.arrays import Array, Status, Statuses
from weir.runtime import Buffer, Device, Entry, Error, Program, Tensor, make_buffer, to_host
from weir.sections import KEPT, SENT, Pool, Received, Run, join_sections

# From this number of bytes on, a run on the processor reads an array where it is. Smaller ones are copied: that is
# faster than preparing a run for an address.
MIN_ADOPTED = 1 << 20
HELD_KINDS = ("param", "state")
STATUS = "weir.status"


def make_start(tensor: Tensor, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> numpy.ndarray:
    """Returns what a state holds before the first step. `values`: of the arguments that states start as.

    Errors: ValueError if such a value is missing, or does not fit.
    """
    if not tensor.starts_as:
        return numpy.full(tensor.shape, tensor.starts_at, tensor.dtype)
    source = tensors[tensor.starts_as]
    if source.name not in values:
        raise ValueError(f"there is no value for {source.name}, as which {tensor.name} starts")
    value = check_value(source, values[source.name])
    if source.spelling == "BF16":
        value = (value.astype(numpy.uint32) << 16).view(numpy.float32)
    return value.astype(tensor.dtype)


class Held:
    """A value on the device: its buffer, and a second one for its next value if that is not made in place."""

    def __init__(self, tensor: Tensor, device: Device):
        self.tensor = tensor
        self.buffer = make_buffer(device, tensor)
        self.spare: Buffer | None = None


class Ring:
    """Two buffers of an argument or a result, in turn: the host fills or reads one while a run uses the other."""

    def __init__(self, tensor: Tensor, device: Device):
        self._tensor, self._device = tensor, device
        self._buffers: list[Buffer | None] = [None, None]
        self._readers: list[weakref.ref | None] = [None, None]
        self._turn = 0

    def take(self, turns: bool = True) -> Buffer:
        """Returns a buffer that no array needs any more. If an array still needs it, that is read first.

        `turns`: whether it is the other one than last time. A value that is used up before the next run needs one alone.
        """
        self._turn ^= turns
        reader = self._readers[self._turn]
        if reader and (array := reader()) is not None and array._buffer is self._buffers[self._turn]:
            array._fetch()
        if self._buffers[self._turn] is None:
            self._buffers[self._turn] = make_buffer(self._device, self._tensor)
        return self._buffers[self._turn]

    def lend(self) -> Array:
        """Returns an array on the buffer that was taken last."""
        array = Array(self._tensor, self._buffers[self._turn])
        self._readers[self._turn] = weakref.ref(array)
        return array

    def give_away(self) -> Buffer:
        """Gives away the buffer that was taken last; a new one will replace it."""
        taken, self._buffers[self._turn] = self._buffers[self._turn], None
        return taken


class _CallPlan:
    """The parts of a call that are the same for every call of an entry."""

    def __init__(self, program: Program, entry: Entry):
        self.places = {tensor.name: i for i, tensor in enumerate(entry.arguments)}
        self.donated = [tensor.name for tensor in entry.arguments if tensor.donated]
        self.donors = {result: argument for argument, result in program.get_donations(entry).items()}
        self.numbers: dict[str, tuple[float, Buffer]] = {}  # by argument: the last number, and the buffer that has it
        # Of the last call: the arguments that it gave, and those that are held, by their places.
        self.given: Set[str] | None = None
        self.held: list[tuple[int, Held]] = []
        self.results: list[tuple[Tensor, Held | None, str | None]] = []  # what is held under the name, and the donor

    def keep(self, entry: Entry, inputs: list[Buffer]) -> list[tuple[Buffer, numpy.ndarray]]:
        """Returns copies of the donated arguments that no result holds: a run may leave anything in their bytes."""
        kept = []
        for name in set(self.donated) - set(self.donors.values()):
            tensor = entry.arguments[self.places[name]]
            kept.append((inputs[self.places[name]], numpy.empty(tensor.shape, tensor.dtype)))
            kept[-1][0].read(kept[-1][1])
        return kept

    def match(self, entry: Entry, given: Set[str], held: Mapping[str, Held]) -> list[str]:
        """Prepares for calls with these arguments, and returns a list of problems with them."""
        problems = [f"there is no argument {name}" for name in given if name not in self.places]
        problems += [f"{name} is missing" for name in self.places if name not in given and name not in held]
        if not problems:
            self.held = [(i, held[name]) for name, i in self.places.items() if name not in given]
            self.results = [(tensor, held.get(tensor.name) if tensor.name in self.donated else None,
                             self.donors.get(tensor.name)) for tensor in entry.results]
            self.given = frozenset(given)
        return problems


class NotFiniteError(Error):
    """A run whose results hold a NaN, or an infinity where there may be none."""


def find_not_finite(entry: Entry, buffers: list[Buffer]) -> str:
    """Returns what is wrong with the results of a run, or "". Only arrays that no argument becomes may be infinite."""
    names = {tensor.name for tensor in entry.arguments if tensor.donated}
    for tensor, buffer in zip(entry.results, buffers):
        if tensor.spelling[0] not in "FB" or tensor.spelling == "BOOL":
            continue
        values = numpy.empty(tensor.shape, tensor.dtype)
        buffer.read(values)
        if tensor.spelling == "BF16":
            values = (values.astype(numpy.uint32) << 16).view(numpy.float32)
        is_next = tensor.name in names
        is_nan = bool(numpy.isnan(values).any())
        if is_nan or ((is_next or not tensor.shape) and numpy.isinf(values).any()):
            what = f"the new {tensor.name}" if is_next else tensor.name
            return f"{what} {'holds' if tensor.shape else 'is'} {'NaN' if is_nan else 'an infinity'}"
    return ""


class Watcher:
    """Is told how far a run is. `waves` are those that it is told of, in rising order.

    `used_up`: the results that nobody needs when the next run begins. Each has one buffer, and not two in turn.
    """

    waves: Sequence[int] = ()
    used_up: Collection[str] = ()

    def start(self, results: Mapping[str, Buffer]) -> None:
        """Is given the buffers of the results by name, before the run begins."""

    def reach(self, wave: int) -> None:
        """Is told that all dispatches up to a wave have ended. It must not use the device."""


class Execution:
    """An artifact on a device, the values that it holds, and its runs. One thread at a time.

    `dtypes`: unsigned types of arguments and results by name; the artifact has signed ones of the same bits.
    Errors: weir.runtime.Error if the artifact is none or the device lacks what it requires.
    """

    def __init__(self, path: str | os.PathLike, device: Device, dtypes: Mapping[str, numpy.dtype] | None = None):
        self.device = device
        self._program = Program(path, device=device)
        for entry in self._program.entries.values() if dtypes else []:
            for tensors in (entry.arguments, entry.results):
                tensors[:] = [dataclasses.replace(tensor, dtype=dtypes.get(tensor.name, tensor.dtype))
                              for tensor in tensors]
        self.target = self._program.target
        # Of an entry in sections: the sections. Who runs them for several ranks sets `exchange` and `gather`.
        self.entries, self.sections = join_sections(self._program.entries)
        self._arguments = {tensor.name: tensor for entry in self.entries.values() for tensor in entry.arguments}
        self.exchange: Callable[[dict[str, Array]], Received] | None = None
        self.gather: Callable[[list[tuple[int, str]]], Callable[[list[Buffer]], None]] | None = None
        self.pool = Pool(device)  # of what crosses sections
        self._plans = {name: _CallPlan(self._program, entry) for name, entry in self._program.entries.items()}
        self._held: dict[str, Held] = {}
        self._rings: dict[tuple[str, str, str], Ring] = {}
        # By entry and argument: the address of the array of the last call, and its buffer.
        self._adopted: dict[tuple[str, str], tuple[int, Buffer]] = {}
        self.status: Status | Statuses | None = None  # of the last run, where its entry checks indices
        self._lock = threading.Lock()
        self._is_closed = False

    def hold(self, values: Mapping[str, Any]) -> None:
        """Uploads values by name, so that calls need not give them. Names that no entry has are ignored.

        Errors: ValueError if one does not fit; nothing is changed then.
        """
        with self.exclusive():
            checked = {name: check_value(self._arguments[name], value) for name, value in values.items()
                       if name in self._arguments}
            for name, value in checked.items():
                if name not in self._held:
                    self._held[name] = Held(self._arguments[name], self.device)
                    for plan in self._plans.values():
                        plan.given = None
                self._held[name].buffer.write(value)

    @property
    def held(self) -> dict[str, Tensor]:
        return {name: held.tensor for name, held in self._held.items()}

    def release(self, names: Iterable[str]) -> None:
        """Forgets values and frees their memory. Entries that take them can be called again once they are held."""
        with self.exclusive():
            self.device.wait()
            for name in names:
                self._held.pop(name, None)
            for plan in self._plans.values():
                plan.given, plan.held, plan.results = None, [], []

    def read(self, names: list[str] | None = None) -> dict[str, numpy.ndarray]:
        """Returns held values, after all runs that were begun."""
        with self.exclusive():
            values = {}
            for name in self._held if names is None else names:
                held = self._held[name]
                values[name] = numpy.empty(held.tensor.shape, held.tensor.dtype)
                held.buffer.read(values[name])
            return values

    def get_missing(self, entry: Entry) -> list[Tensor]:
        """Returns the arguments that a call must give."""
        return [tensor for tensor in entry.arguments if tensor.name not in self._held]

    def make_input(self, entry: Entry, name: str) -> numpy.ndarray | None:
        """Returns an array for an input in the device's memory, if the host can address that. A call does not copy it.

        Fill it only when the runs that it was given to have ended.
        """
        [tensor] = [tensor for tensor in entry.arguments if tensor.name == name]
        buffer = Buffer(self.device, tensor.bytes)
        if (mapped := buffer.map()) is None:
            return None
        array = numpy.frombuffer(mapped, tensor.dtype).reshape(tensor.shape)
        _shared[array.ctypes.data] = weakref.ref(mapped)
        return array

    def call(
        self, entry: Entry, given: Mapping[str, Any], commit: Callable[[], None] = lambda: None, checks: bool = False,
        watcher: Watcher | None = None,
    ) -> dict[str, Array]:
        """Begins a run and returns its results that are not held; `commit` is called if and only if it began.

        `checks`: whether to wait for the run and look at its results. Nothing is then updated in place.
        `watcher`: is told of the run, which ends before the call does. What it raises, the call raises at the end.
        Errors: ValueError for names, shapes and types that are not the entry's; Error if the run fails; NotFiniteError
                if `checks`, and a result holds what it may not. The values that are held are then as before; those of
                an entry in sections, whose exchanges may fail, are undefined.
        """
        if entry.name in self.sections:
            return self._call_sections(entry, given, commit)
        self._enter()
        try:
            plan = self._plans[entry.name]
            problems = [] if given.keys() == plan.given else plan.match(entry, given.keys(), self._held)
            inputs: list[Buffer | None] = [None] * len(plan.places)
            for name, value in given.items():
                if (place := plan.places.get(name)) is None:
                    continue
                is_number = type(value) is float
                if is_number and (known := plan.numbers.get(name)) and known[0] == value:
                    inputs[place] = known[1]  # it is there, as a learning rate mostly is
                    continue
                plan.numbers.pop(name, None)  # its buffer may be the one that is written next
                try:
                    inputs[place] = self._take_input(entry, entry.arguments[place], value)
                except ValueError as error:
                    problems.append(str(error))
                    continue
                if is_number:
                    plan.numbers[name] = (value, inputs[place])
            if problems:
                raise ValueError(f"{entry.name}: {'; '.join(problems)}")
            for place, held in plan.held:
                inputs[place] = held.buffer
            outputs, swapped, lent = [], [], {}
            for tensor, held, donor in plan.results:
                if held:
                    if donor == tensor.name and not checks:
                        outputs.append(held.buffer)
                        continue
                    held.spare = held.spare or make_buffer(self.device, held.tensor)
                    outputs.append(held.spare)
                    swapped.append(held)
                elif donor and isinstance(given.get(donor), Array) and not checks:
                    outputs.append(inputs[plan.places[donor]])
                    lent[tensor.name] = Array(tensor, outputs[-1])
                elif tensor.name.startswith((KEPT, SENT)):
                    outputs.append(self.pool.take(tensor))
                    lent[tensor.name] = Array(tensor, outputs[-1])
                else:
                    ring = self._get_ring(entry, "result", tensor)
                    outputs.append(ring.take(not watcher or tensor.name not in watcher.used_up))
                    lent[tensor.name] = ring.lend()
            with _Uninterrupted():
                kept = plan.keep(entry, inputs) if checks else []
                if watcher:
                    watcher.start(dict(zip((tensor.name for tensor in entry.results), outputs)))
                    self._program.watch(entry, inputs, outputs, watcher.waves, watcher.reach)
                else:
                    self._program.submit(entry, inputs, outputs)
                if checks and (problem := find_not_finite(entry, outputs)):
                    for buffer, value in kept:
                        buffer.write(value)
                    raise NotFiniteError(problem)
                for held in swapped:
                    held.buffer, held.spare = held.spare, held.buffer
                for name in plan.donated:
                    if isinstance(given.get(name), Array):
                        given[name]._donate(entry.name)
                commit()
            if (status := lent.pop(STATUS, None)) is not None:
                self.status = Status(status, entry.name, entry.checks)
                for array in lent.values():
                    array._status = self.status
            return lent
        finally:
            self._lock.release()

    def _call_sections(self, entry: Entry, given: Mapping[str, Any], commit: Callable[[], None]) -> dict[str, Array]:
        """Runs the sections of an entry, with an exchange behind each but the last."""
        if self.exchange is None:
            raise Error(f"{entry.name} exchanges values with other ranks; call it by weir.distributed.TensorParallel, or "
                        "FullySharded")
        arguments = {tensor.name for tensor in entry.arguments}
        problems = [f"there is no argument {name}" for name in given if name not in arguments]
        for tensor in self.get_missing(entry):
            try:
                if tensor.name not in given:
                    raise ValueError(f"{tensor.name} is missing")
                check_value(tensor, given[tensor.name])
            except ValueError as error:
                problems.append(str(error))
        if problems:
            raise ValueError(f"{entry.name}: {'; '.join(problems)}")
        statuses = []

        def call(section: Entry, taken: dict[str, Any]) -> dict[str, Array]:
            self.status = None
            made = self.call(section, taken)
            if self.status is not None:
                statuses.append(self.status)
            return made

        results = Run(self.sections[entry.name], self.pool, call, self.exchange, self.gather).do(given)
        if statuses:
            self.status = Statuses(statuses)
            for array in results.values():
                array._status = self.status
        commit()
        return results

    def close(self) -> None:
        """Waits for the runs and frees the device's memory. Arrays that were read stay."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self.device.wait()
                self._program.close()
                self._held.clear()
                self._rings.clear()
                self._adopted.clear()

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Refuses calls by a second thread and calls after closing."""
        self._enter()
        try:
            yield
        finally:
            self._lock.release()

    def _enter(self) -> None:
        """Takes the lock, or raises Error."""
        if not self._lock.acquire(blocking=False):
            raise Error("another thread is in a call of this program; give each thread its own, or take turns by a lock")
        if self._is_closed:
            self._lock.release()
            raise Error("the program is closed")

    def _take_input(self, entry: Entry, tensor: Tensor, value: Any) -> Buffer:
        """Returns a buffer with the value: its own if it is on this device already. Errors: ValueError."""
        if isinstance(value, Array):
            value._check()
            if value._buffer is not None and value._buffer.device is self.device:
                if (value.dtype, value.shape) != (tensor.dtype, tensor.shape):
                    raise ValueError(describe_mismatch(tensor, value))
                return value._buffer
        array = check_value(tensor, value)
        if _shared and (mapped := _shared.get(array.ctypes.data)) and (owner := mapped()) is not None:
            if owner.owner.device is self.device:
                return owner.owner
        # A run may leave anything in the bytes of a donated argument, so it gets a copy.
        if self.device.api == "cpu" and array.nbytes >= MIN_ADOPTED and array.flags.aligned and not tensor.donated:
            key, address = (entry.name, tensor.name), array.ctypes.data
            if key not in self._adopted or self._adopted[key][0] != address:
                self._adopted[key] = (address, Buffer.adopt(self.device, array))
            return self._adopted[key][1]
        buffer = self._get_ring(entry, "argument", tensor).take()
        buffer.write(array)
        return buffer

    def _get_ring(self, entry: Entry, side: str, tensor: Tensor) -> Ring:
        key = (entry.name, side, tensor.name)
        if key not in self._rings:
            self._rings[key] = Ring(tensor, self.device)
        return self._rings[key]


_shared: dict[int, weakref.ref] = {}  # buffers that arrays show, by the address of their bytes


def describe_mismatch(tensor: Tensor, value: Any) -> str:
    return f"{tensor.name} is {value.dtype}{list(value.shape)}, expected {tensor.dtype}{list(tensor.shape)}"


def check_value(tensor: Tensor, value: Any) -> numpy.ndarray:
    """Returns a value as a contiguous array of the tensor's type. Only Python numbers are converted.

    Errors: ValueError if type or shape are others.
    """
    if isinstance(value, (bool, int, float)) and not tensor.shape:
        if tensor.dtype.kind == "f":
            return numpy.array(value, tensor.dtype)
        array = numpy.array(value)
        converted = array.astype(tensor.dtype)
        if converted != array:
            raise ValueError(f"{tensor.name} is {value}, which is no {tensor.dtype}")
        return converted
    try:
        array = to_host(value)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{tensor.name} is {error}") from None
    if array.dtype != tensor.dtype or array.shape != tensor.shape:
        raise ValueError(describe_mismatch(tensor, array))
    return numpy.ascontiguousarray(array).reshape(array.shape)


# Without the wrapper that makes enumerations of signals and handlers, 40 us when caches are cold.
_set_handler = getattr(signal.signal, "__wrapped__", signal.signal)
_get_handler = getattr(signal.getsignal, "__wrapped__", signal.getsignal)


class _Uninterrupted:
    """Delays Ctrl-C until after the block, so that the block happens as a whole.

    The handler is put off, not the signal: any thread of the process may receive that.
    """

    def __enter__(self) -> None:
        self._received: tuple | None = None
        self._handler = None
        # One that Python did not set could not be put back.
        if threading.current_thread() is threading.main_thread() and _get_handler(signal.SIGINT) is not None:
            self._handler = _set_handler(signal.SIGINT, self._receive)

    def __exit__(self, *_: object) -> None:
        if self._handler is None:
            return
        _set_handler(signal.SIGINT, self._handler)
        if self._received and callable(self._handler):
            self._handler(*self._received)

    def _receive(self, *signal_and_frame: Any) -> None:
        self._received = signal_and_frame
