"""Runs artifacts on a device from Python: NumPy arrays in and out, by ctypes over weir.h.

    with weir.runtime.Program("mlp.weir") as program:
        results = program.run({"x": x, "weight": weight})

Arguments may be anything with `__dlpack__` in host memory, such as PyTorch tensors;
`torch.from_dlpack` takes results. `weir.load` keeps values on the device between calls.
"""

import ctypes
import dataclasses
import functools
import json
import os
import sys
import weakref
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from weir import locations

# As safetensors spells them; NumPy has no bfloat16: its 16 bits are given as an integer.
DTYPES = {
    "BOOL": numpy.bool_, "I8": numpy.int8, "I16": numpy.int16, "I32": numpy.int32, "I64": numpy.int64,
    "F16": numpy.float16, "BF16": numpy.uint16, "F32": numpy.float32, "F64": numpy.float64,
}
APIS = ("cuda", "vulkan", "cpu")  # GPUs first
VERSION = "0.1.0"  # of this package and of the library


class Error(Exception):
    """A call that the runtime refused, or a run that failed. The message is one sentence."""


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An argument or a result of an entry."""

    name: str
    dtype: numpy.dtype
    shape: tuple[int, ...]
    # Of arguments: "input", "target", "param", "state" or "", and whether a run may take its bytes.
    kind: str = dataclasses.field(default="", compare=False)
    donated: bool = dataclasses.field(default=False, compare=False)
    spelling: str = dataclasses.field(default="", compare=False)  # of the dtype, as safetensors has it
    # Of state, before the first step: the argument whose value it has, or else the number in each element.
    starts_as: str = dataclasses.field(default="", compare=False)
    starts_at: float = dataclasses.field(default=0.0, compare=False)
    # Whether its buffer should lie in the host's memory: state that was offloaded, and its next value.
    in_host: bool = dataclasses.field(default=False, compare=False)

    @property
    def bytes(self) -> int:
        """The number of bytes of all elements."""
        return self.dtype.itemsize * int(numpy.prod(self.shape, dtype=numpy.int64))

    def __str__(self) -> str:
        dtype = "bfloat16" if self.spelling == "BF16" else str(self.dtype)
        return f"{self.name}: {dtype}[{', '.join(map(str, self.shape))}]"


@dataclasses.dataclass(frozen=True)
class Entry:
    """A function of an artifact that can be run: its name, and its arguments and results in order."""

    name: str
    arguments: list[Tensor]
    results: list[Tensor]
    # What the numbers of the result weir.status stand for, from 1 on: indices out of range.
    checks: list[str] = dataclasses.field(default_factory=list, compare=False)


class _TensorInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_size_t),
        ("bytes", ctypes.c_int64),
        ("donated", ctypes.c_int),
        ("memory", ctypes.c_int),
    ]


_WATCHER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


class _Handle:
    """An object of the runtime's, closed once, at the latest with this one."""

    def __init__(self, close: str, create: str, *arguments: Any):
        handle = ctypes.c_void_p()
        _call(create, *arguments, ctypes.byref(handle))
        self._handle = handle
        self._finalizer = weakref.finalize(self, getattr(_load_library(), f"weir_{close}"), handle)

    def close(self) -> None:
        """Frees its memory on the device. It cannot be used afterwards."""
        self._finalizer()

    @property
    def handle(self) -> ctypes.c_void_p:
        """The pointer that weir.h's functions take. Errors: Error if it is closed."""
        if not self._finalizer.alive:
            raise Error(f"the {type(self).__name__.lower()} is closed")
        return self._handle


class Device(_Handle):
    """A device of this machine. It stays open until its last buffer and program are gone."""

    def __init__(self, api: str = "vulkan", index: int = 0):
        """Opens device number `index` of an API, "vulkan", "cuda" or "cpu", best first.

        "cpu:x86-64-v3" is the processor as if it had no better instruction set.
        Errors: Error if there is none.
        """
        super().__init__("device_close", "device_open", api.encode(), ctypes.c_size_t(index))
        self.api = api.partition(":")[0]
        self.spelling = api  # as `weir run --device` takes it, which knows the first of an API
        self.name = _load_library().weir_device_name(self._handle).decode()
        self.is_gpu = bool(_load_library().weir_device_is_gpu(self._handle))

    @functools.cached_property
    def profile(self) -> str:
        """The target profile that fits the device, as JSON, for `weir compile --target=vulkan:FILE`."""
        text = ctypes.c_char_p()
        _call("device_profile", self.handle, ctypes.byref(text))
        try:
            return text.value.decode()
        finally:
            _load_library().weir_string_free(text)

    def wait(self) -> None:
        """Waits for everything that was submitted to the device."""
        _call("device_wait", self.handle)


class Buffer(_Handle):
    """Bytes in a device's memory, undefined until written."""

    def __init__(self, device: Device, size: int, in_host: bool = False):
        """Allocates `size` bytes; `in_host`: in the host's memory, which a GPU reads and writes over the bus.

        Errors: Error if there is no room for them.
        """
        super().__init__("buffer_destroy", "buffer_create_in", device.handle, ctypes.c_int(in_host),
                         ctypes.c_int64(size))
        self.device, self.size = device, size

    @classmethod
    def adopt(cls, device: Device, values: numpy.ndarray) -> "Buffer":
        """Makes a buffer of the bytes of a contiguous array. Runs read and write them there, and nothing is copied.

        The buffer keeps the array.
        Errors: Error if the device has memory of its own, as all but "cpu" have; ValueError if the array has gaps.
        """
        if not values.flags.c_contiguous:
            raise ValueError("the array has gaps, or another order than rows; copy it by numpy.ascontiguousarray")
        buffer = cls.__new__(cls)
        super(Buffer, buffer).__init__("buffer_destroy", "buffer_adopt", device.handle,
                                       ctypes.c_void_p(values.ctypes.data), ctypes.c_int64(values.nbytes))
        buffer.device, buffer.size, buffer._values = device, values.nbytes, values
        return buffer

    def write(self, values: numpy.ndarray) -> None:
        """Copies a contiguous array of the buffer's size to the device, after the runs that use the buffer."""
        self.write_from(values.ctypes.data)

    def write_from(self, address: int) -> None:
        """Copies as many bytes as the buffer has from host memory to the device, after the runs that use the buffer."""
        _call("buffer_write", self.handle, ctypes.c_int64(0), ctypes.c_void_p(address), ctypes.c_int64(self.size))

    def read(self, values: numpy.ndarray) -> None:
        """Copies the bytes to a contiguous array of the buffer's size, after the runs that use the buffer."""
        _call("buffer_read", self.handle, ctypes.c_int64(0), values.ctypes.data_as(ctypes.c_void_p),
              ctypes.c_int64(values.nbytes))

    def wait(self) -> None:
        """Waits for the runs that use the buffer."""
        _call("buffer_wait", self.handle)

    def map(self) -> ctypes.Array | None:
        """Returns the bytes if device and host share memory, else None. Call `wait` before each access."""
        address = ctypes.c_void_p()
        _call("buffer_map", self.handle, ctypes.byref(address))
        if not address.value:
            return None
        mapped = (ctypes.c_char * self.size).from_address(address.value)
        mapped.owner = self  # lives as long as a view of it
        return mapped


def make_buffer(device: Device, tensor: Tensor) -> Buffer:
    """Allocates a buffer for a tensor, in the memory that it should lie in. Errors: those of Buffer."""
    return Buffer(device, tensor.bytes, tensor.in_host)


class Program(_Handle):
    """The entries of an artifact, loaded on a device.

    Close it, or use it in a `with` statement, to free the device's memory early.
    """

    def __init__(self, path: str | os.PathLike, *, api: str = "vulkan", device: int | Device = 0):
        """Loads an artifact.

        `api`:    "vulkan", "cuda" or "cpu"; see `Device`.
        `device`: the device's number there, best first, or an open device.
        Errors: Error if the file is no artifact, or the device lacks what it requires.
        """
        artifact = _Handle("artifact_close", "artifact_open", os.fsencode(path))
        try:
            self.entries = {entry.name: entry for entry in _read_entries(artifact.handle, path)}
            self.device = device if isinstance(device, Device) else Device(api, device)
            super().__init__("program_unload", "program_load", self.device.handle, artifact.handle)
        finally:
            artifact.close()
        # The artifact's target that runs, "cpu" or "cpu.x86-64-v4".
        self.target = _load_library().weir_program_target(self.handle).decode()
        self._buffers: dict[tuple[str, str], list[Buffer]] = {}
        self._calls: dict[tuple, tuple] = {}  # by entry and buffers: what the C ABI is given, and the buffers

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees the program's memory on the device. It cannot run afterwards."""
        super().close()
        for buffers in self._buffers.values():
            for buffer in buffers:
                buffer.close()
        self._buffers.clear()
        self._calls.clear()

    def run(self, arguments: Mapping[str, Any], entry: str | None = None) -> dict[str, numpy.ndarray]:
        """Runs an entry with arguments by name and returns its results by name. Donated arguments stay as they are.

        `entry`: the entry's name, required if there are several.
        Shapes: those of the entry; no shape or type is converted.
        Errors: ValueError for other names, shapes and types; Error if the run fails, or the program is closed.
        """
        _ = self.handle
        wanted = self.find_entry(entry)
        values = _check_arguments(wanted, arguments)
        inputs, outputs = (self._get_buffers(wanted, side) for side in ("arguments", "results"))
        for buffer, value in zip(inputs, values):
            buffer.write(value)
        self.submit(wanted, inputs, outputs)
        results = {}
        for buffer, tensor in zip(outputs, wanted.results):
            value = results[tensor.name] = numpy.empty(tensor.shape, tensor.dtype)
            buffer.read(value)
        return results

    def submit(self, entry: Entry, arguments: Sequence[Buffer], results: Sequence[Buffer]) -> None:
        """Begins a run on buffers in the entry's order. Reading one of them waits for the run."""
        key = (entry.name, *map(id, arguments), *map(id, results))
        if not (call := self._calls.get(key)):
            if len(self._calls) >= 16:
                self._calls.clear()
            given, made = ((ctypes.c_void_p * len(side))(*(buffer.handle for buffer in side))
                           for side in (arguments, results))
            # It keeps the buffers, so that their numbers stay theirs.
            call = self._calls[key] = (
                (entry.name.encode(), given, ctypes.c_size_t(len(given)), made, ctypes.c_size_t(len(made))),
                (*arguments, *results),
            )
        _call("program_submit", self.handle, *call[0])

    def watch(
        self, entry: Entry, arguments: Sequence[Buffer], results: Sequence[Buffer], waves: Sequence[int],
        reach: Callable[[int], None],
    ) -> None:
        """Runs an entry as `submit` does, and calls `reach` with each of `waves`, in rising order, once all dispatches
        up to it have ended. `reach` must not use the device. Returns when the run has ended.

        Errors: Error; what `reach` raises, once the run has ended: it is not called again then.
        """
        raised: list[BaseException] = []

        def call(_: Any, wave: int) -> None:
            try:
                if not raised:
                    reach(wave)
            except BaseException as error:  # ctypes would print it and go on
                raised.append(error)

        given, made = ((ctypes.c_void_p * len(side))(*(buffer.handle for buffer in side))
                       for side in (arguments, results))
        _call("program_watch", self.handle, entry.name.encode(), given, ctypes.c_size_t(len(given)), made,
              ctypes.c_size_t(len(made)), (ctypes.c_int64 * len(waves))(*waves), ctypes.c_size_t(len(waves)),
              _WATCHER(call), None)
        if raised:
            raise raised[0]

    def get_donations(self, entry: Entry) -> dict[str, str]:
        """Returns the name of the result that takes a donated argument's bytes, for each argument that has one."""
        found = {}
        for i, argument in enumerate(entry.arguments):
            result = ctypes.c_int64()
            _call("program_donation", self.handle, entry.name.encode(), ctypes.c_size_t(i), ctypes.byref(result))
            if result.value >= 0:
                found[argument.name] = entry.results[result.value].name
        return found

    def find_entry(self, name: str | None) -> Entry:
        """Returns the entry called `name`, by default the only one.

        Errors: ValueError if there is no such entry, or several and no name.
        """
        if name is None and len(self.entries) == 1:
            [entry] = self.entries.values()
            return entry
        if name not in self.entries:
            raise ValueError(f"there is no entry {name}; the artifact has {', '.join(self.entries)}" if name else
                             f"the artifact has several entries, name one: {', '.join(self.entries)}")
        return self.entries[name]

    def _get_buffers(self, entry: Entry, side: str) -> list[Buffer]:
        """Returns buffers for an entry's arguments or results, made once."""
        key = (entry.name, side)
        if key not in self._buffers:
            self._buffers[key] = [make_buffer(self.device, tensor) for tensor in getattr(entry, side)]
        return self._buffers[key]


def open_device(device: str | Device = "auto") -> Device:
    """Opens a device by its name: "vulkan" or "cuda" for the best one, "cuda:1" for the second; "cpu", or
    "cpu:x86-64-v3" for the processor as if it had no better instruction set.

    "auto" opens the first CUDA GPU, or else the best GPU of Vulkan, or else the processor. An open device is returned
    as it is.
    Errors: ValueError for other words; Error if there is no such device.
    """
    if isinstance(device, Device):
        return device
    if device == "auto":
        for api in ("cuda", "vulkan"):
            try:
                found = Device(api)
            except Error:
                continue
            if found.is_gpu:
                return found
            found.close()
        try:
            return Device("cpu")
        except Error:  # a processor that no profile is for
            return Device("vulkan")
    api, _, number = str(device).partition(":")
    if api == "cpu" and number and not number.isdecimal():
        return Device(device)
    if api not in APIS or (number and not number.isdecimal()):
        raise ValueError(f"there is no device {device!r}; name auto, vulkan, cuda or cpu, or a number of them, as vulkan:1")
    return Device(api, int(number or 0))


def to_host(value: Any) -> numpy.ndarray:
    """Returns the values of anything array-like as a NumPy array; bfloat16 as its 16 bits.

    Errors: ValueError for tensors that are not in host memory.
    """
    if isinstance(value, numpy.ndarray):
        array = value
    elif type(value).__module__.partition(".")[0] == "torch":
        if value.device.type != "cpu":
            raise ValueError(f"a tensor on {value.device}; move it to host memory by .cpu()")
        torch = sys.modules["torch"]
        if value.requires_grad or value.is_neg():
            value = value.detach().resolve_neg()
        if value.dtype is torch.bfloat16:
            return value.contiguous().view(torch.int16).numpy().view(numpy.uint16)
        array = value.numpy()
    elif hasattr(value, "__array__") or not hasattr(value, "__dlpack__"):
        array = numpy.asarray(value)
    else:
        array = numpy.from_dlpack(value)
    is_bfloat16 = array.dtype.kind == "V" and array.dtype.name == "bfloat16"  # of ml_dtypes, JAX's
    return array.view(numpy.uint16) if is_bfloat16 else array


def _read_entries(artifact: ctypes.c_void_p, path: str | os.PathLike) -> list[Entry]:
    library, entries = _load_library(), []
    arguments, checks = _read_facts(path)
    for i in map(ctypes.c_size_t, range(library.weir_artifact_entry_count(artifact))):
        name = library.weir_artifact_entry_name(artifact, i).decode()
        tensors = {}
        for side in ("argument", "result"):
            count = getattr(library, f"weir_artifact_{side}_count")(artifact, i)
            tensors[f"{side}s"] = [
                _read_tensor(side, artifact, i, index, arguments[name] if side == "argument" else {})
                for index in range(count)
            ]
        entries.append(Entry(name, **tensors, checks=checks.get(name, [])))
    return entries


def _read_facts(path: str | os.PathLike) -> tuple[dict[str, dict[str, dict]], dict[str, list[str]]]:
    """Returns what the C ABI does not give, by entry: the manifest's arguments by name, and the checks of indices.

    The artifact is read and checked already.
    """
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        notes = [json.loads(archive.read(name)) for name in archive.namelist() if name.startswith("notes/")]
    arguments = {entry["name"]: {argument["name"]: argument for argument in entry["arguments"]}
                 for entry in manifest["entries"]}
    checks = {entry["entry"]: [each["texts"][i] for i in entry.get("checks", [])]
              for each in notes for entry in each["entries"]}
    return arguments, checks


def _read_tensor(
    side: str, artifact: ctypes.c_void_p, entry: ctypes.c_size_t, index: int, facts: dict[str, dict]
) -> Tensor:
    info = _TensorInfo()
    _call(f"artifact_{side}", artifact, entry, ctypes.c_size_t(index), ctypes.byref(info))
    name, spelling = info.name.decode(), info.dtype.decode()
    fact = facts.get(name, {})
    return Tensor(name, numpy.dtype(DTYPES[spelling]), tuple(info.shape[: info.rank]), fact.get("kind", ""),
                  bool(info.donated), spelling, fact.get("starts_as", ""), float(fact.get("starts_at", 0)),
                  bool(info.memory))


def _check_arguments(entry: Entry, arguments: Mapping[str, Any]) -> list[numpy.ndarray]:
    """Returns the values in the entry's order, contiguous."""
    names = [tensor.name for tensor in entry.arguments]
    problems = [f"{name} is missing" for name in names if name not in arguments]
    problems += [f"there is no argument {name}" for name in arguments if name not in names]
    values = []
    for tensor in entry.arguments:
        if tensor.name not in arguments:
            continue
        value = to_host(arguments[tensor.name])
        if value.dtype != tensor.dtype or value.shape != tensor.shape:
            problems.append(f"{tensor.name} is {value.dtype} of shape {value.shape}, not {tensor.dtype} of shape "
                            f"{tensor.shape}")
        values.append(numpy.ascontiguousarray(value).reshape(value.shape))
    if problems:
        raise ValueError(f"arguments of {entry.name}: {'; '.join(problems)}")
    return values


def _call(function: str, *arguments: Any) -> None:
    if _find_function(function)(*arguments):
        raise Error(_load_library().weir_last_error().decode(errors="replace"))


@functools.cache
def _find_function(name: str) -> Any:
    return getattr(_load_library(), f"weir_{name}")


@functools.cache
def _load_library() -> ctypes.CDLL:
    """Opens the library that `weir.locations` finds."""
    try:
        library = ctypes.CDLL(locations.find_library())
    except OSError as error:
        raise Error(f"{error}; build Weir, or set WEIR_RUNTIME to the path of {locations.LIBRARY}") from error
    remedy = f"install both of one version, or set WEIR_RUNTIME to the path of {locations.LIBRARY}"
    if not hasattr(library, "weir_version"):
        raise Error(f"{library._name} is no runtime of Weir, or older than this package; {remedy}")
    library.weir_version.restype = ctypes.c_char_p
    if (version := library.weir_version().decode()) != VERSION:
        raise Error(f"{library._name} is of version {version}, this package of {VERSION}; {remedy}")
    for name in ("last_error", "artifact_entry_name", "device_name", "program_target"):
        getattr(library, f"weir_{name}").restype = ctypes.c_char_p
    for name in ("artifact_entry_count", "artifact_argument_count", "artifact_result_count"):
        getattr(library, f"weir_{name}").restype = ctypes.c_size_t
    for name in ("artifact_close", "device_close", "program_unload", "buffer_destroy", "string_free"):
        getattr(library, f"weir_{name}").restype = None
    return library
