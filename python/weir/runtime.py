"""Runs artifacts on a GPU from Python: NumPy arrays in and out, by ctypes over weir.h.

    with weir.runtime.Program("mlp.weir") as program:
        results = program.run({"x": x, "weight": weight})

Anything with `__dlpack__` in host memory, such as a PyTorch tensor, is taken, too, and
`torch.from_dlpack` takes a result.
"""

import contextlib
import ctypes
import dataclasses
import functools
import os
import weakref
from collections.abc import Mapping
from typing import Any

import numpy

from weir import locations

# As safetensors spells them; NumPy has no bfloat16: its 16 bits are given as an integer.
DTYPES = {
    "BOOL": numpy.bool_, "I8": numpy.int8, "I16": numpy.int16, "I32": numpy.int32, "I64": numpy.int64,
    "F16": numpy.float16, "BF16": numpy.uint16, "F32": numpy.float32, "F64": numpy.float64,
}


class Error(Exception):
    """What libweir_runtime refused or failed at, in its own words."""


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An argument or a result of an entry."""

    name: str
    dtype: numpy.dtype
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Entry:
    """What can be run: its arguments and results in order."""

    name: str
    arguments: list[Tensor]
    results: list[Tensor]


class _TensorInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_size_t),
        ("bytes", ctypes.c_int64),
        ("donated", ctypes.c_int),
    ]


class Program:
    """The entries of an artifact, loaded on a device.

    `api` is "vulkan" or "cuda", `device` its number there, best first. Raises Error where the artifact is none,
    or the device lacks what it requires. Close it, or use it in a `with` statement, to free the device's memory
    early.
    """

    def __init__(self, path: str | os.PathLike, *, api: str = "vulkan", device: int = 0):
        self._library = _load_library()
        self._stack = contextlib.ExitStack()
        self._finalizer = weakref.finalize(self, self._stack.close)
        self._buffers: dict[tuple[str, str], list[ctypes.c_void_p]] = {}
        try:
            with contextlib.ExitStack() as opened:
                artifact = self._open("artifact_close", "artifact_open", os.fsencode(path), stack=opened)
                self.entries = {entry.name: entry for entry in self._read_entries(artifact)}
                self._device = self._open("device_close", "device_open", api.encode(), ctypes.c_size_t(device))
                self._program = self._open("program_unload", "program_load", self._device, artifact)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees what the program has on the device; it cannot run any more."""
        self._finalizer()

    def run(self, arguments: Mapping[str, Any], entry: str | None = None) -> dict[str, numpy.ndarray]:
        """Returns the results of one run, by name; arguments that are donated stay as they are.

        Shapes: those of the entry, whose name is needed where there are several.
        Errors: ValueError for names, shapes and types that are not the entry's; nothing is converted. Error
                where the run fails, or the program is closed.
        """
        if not self._finalizer.alive:
            raise Error("the program is closed")
        wanted = self._find_entry(entry)
        values = _check_arguments(wanted, arguments)
        inputs, outputs = (self._get_buffers(wanted, side) for side in ("arguments", "results"))
        for buffer, value in zip(inputs, values):
            self._call("buffer_write", buffer, ctypes.c_int64(0), value.ctypes.data_as(ctypes.c_void_p),
                       ctypes.c_int64(value.nbytes))
        self._call("program_invoke", self._program, wanted.name.encode(), _make_array(inputs),
                   ctypes.c_size_t(len(inputs)), _make_array(outputs), ctypes.c_size_t(len(outputs)), None)
        results = {}
        for buffer, tensor in zip(outputs, wanted.results):
            value = results[tensor.name] = numpy.empty(tensor.shape, tensor.dtype)
            self._call("buffer_read", buffer, ctypes.c_int64(0), value.ctypes.data_as(ctypes.c_void_p),
                       ctypes.c_int64(value.nbytes))
        return results

    def _find_entry(self, name: str | None) -> Entry:
        if name is None and len(self.entries) == 1:
            [entry] = self.entries.values()
            return entry
        if name not in self.entries:
            raise ValueError(f"there is no entry {name}; the artifact has {', '.join(self.entries)}" if name else
                             f"the artifact has several entries, name one: {', '.join(self.entries)}")
        return self.entries[name]

    def _read_entries(self, artifact: ctypes.c_void_p) -> list[Entry]:
        library, entries = self._library, []
        for i in map(ctypes.c_size_t, range(library.weir_artifact_entry_count(artifact))):
            tensors = {}
            for side in ("argument", "result"):
                count = getattr(library, f"weir_artifact_{side}_count")(artifact, i)
                tensors[f"{side}s"] = [self._read_tensor(side, artifact, i, index) for index in range(count)]
            entries.append(Entry(library.weir_artifact_entry_name(artifact, i).decode(), **tensors))
        return entries

    def _read_tensor(self, side: str, artifact: ctypes.c_void_p, entry: ctypes.c_size_t, index: int) -> Tensor:
        info = _TensorInfo()
        self._call(f"artifact_{side}", artifact, entry, ctypes.c_size_t(index), ctypes.byref(info))
        dtype = numpy.dtype(DTYPES[info.dtype.decode()])
        return Tensor(info.name.decode(), dtype, tuple(info.shape[: info.rank]))

    def _get_buffers(self, entry: Entry, side: str) -> list[ctypes.c_void_p]:
        """Buffers for an entry's arguments or results, made once."""
        key = (entry.name, side)
        if key not in self._buffers:
            sizes = [tensor.dtype.itemsize * int(numpy.prod(tensor.shape, dtype=numpy.int64))
                     for tensor in getattr(entry, side)]
            self._buffers[key] = [
                self._open("buffer_destroy", "buffer_create", self._device, ctypes.c_int64(size)) for size in sizes
            ]
        return self._buffers[key]

    def _open(self, close: str, create: str, *arguments: Any, stack: contextlib.ExitStack | None = None):
        """Makes a handle, its last argument, that is closed with the program or with `stack`."""
        handle = ctypes.c_void_p()
        self._call(create, *arguments, ctypes.byref(handle))
        (stack or self._stack).callback(getattr(self._library, f"weir_{close}"), handle)
        return handle

    def _call(self, function: str, *arguments: Any) -> None:
        if getattr(self._library, f"weir_{function}")(*arguments):
            raise Error(self._library.weir_last_error().decode())


def _check_arguments(entry: Entry, arguments: Mapping[str, Any]) -> list[numpy.ndarray]:
    """The values in the entry's order, contiguous."""
    names = [tensor.name for tensor in entry.arguments]
    problems = [f"{name} is missing" for name in names if name not in arguments]
    problems += [f"there is no argument {name}" for name in arguments if name not in names]
    values = []
    for tensor in entry.arguments:
        if tensor.name not in arguments:
            continue
        value = arguments[tensor.name]
        if not isinstance(value, numpy.ndarray) and hasattr(value, "__dlpack__"):
            value = numpy.from_dlpack(value)
        value = numpy.asarray(value)
        if value.dtype != tensor.dtype or value.shape != tensor.shape:
            problems.append(f"{tensor.name} is {value.dtype} of shape {value.shape}, not {tensor.dtype} of shape "
                            f"{tensor.shape}")
        values.append(numpy.ascontiguousarray(value).reshape(value.shape))
    if problems:
        raise ValueError(f"arguments of {entry.name}: {'; '.join(problems)}")
    return values


def _make_array(handles: list[ctypes.c_void_p]) -> ctypes.Array:
    return (ctypes.c_void_p * len(handles))(*handles)


@functools.cache
def _load_library() -> ctypes.CDLL:
    """Opens the library, wherever `weir.locations` finds it."""
    try:
        library = ctypes.CDLL(locations.find_library())
    except OSError as error:
        raise Error(f"{error}; build Weir, or set WEIR_RUNTIME to the path of {locations.LIBRARY}") from error
    for name in ("last_error", "artifact_entry_name"):
        getattr(library, f"weir_{name}").restype = ctypes.c_char_p
    for name in ("artifact_entry_count", "artifact_argument_count", "artifact_result_count"):
        getattr(library, f"weir_{name}").restype = ctypes.c_size_t
    for name in ("artifact_close", "device_close", "program_unload", "buffer_destroy"):
        getattr(library, f"weir_{name}").restype = None
    return library
