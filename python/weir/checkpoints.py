"""Checkpoints: values by name in a safetensors file, which is replaced as a whole or not at all."""

import os
import pathlib
import tempfile
from collections.abc import Mapping

import numpy
import safetensors

from weir.runtime import DTYPES, Tensor

KIND = "checkpoint"  # under "weir" in the notes of files that `save` writes


class CheckpointError(Exception):
    """A file that cannot be read as a checkpoint, or that belongs to another model. The message names the file."""


def save(
    path: str | os.PathLike,
    tensors: Mapping[str, Tensor],
    values: Mapping[str, numpy.ndarray],
    notes: Mapping[str, str],
) -> None:
    """Writes values and notes to a temporary file beside `path`, waits until the disk has it, and renames it.

    Errors: OSError; what was at `path` is then as before.
    """
    path = pathlib.Path(path)
    parts = {
        name: safetensors.TensorSpec(
            dtype="bfloat16" if tensor.spelling == "BF16" else tensor.dtype.name,
            shape=tensor.shape,
            data_ptr=values[name].ctypes.data,
            data_len=tensor.bytes,
        )
        for name, tensor in tensors.items()
    }
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        _write(temporary, parts, {"weir": KIND, **notes})
        os.chmod(temporary, 0o666 & ~_get_umask())
        _sync(temporary)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync(path.parent)


def load(path: str | os.PathLike) -> tuple[dict[str, numpy.ndarray], dict[str, str]]:
    """Returns the values, bfloat16 as its 16 bits, and the notes.

    Errors: CheckpointError for what is no safetensors file, is cut short or has types that Weir has not. OSError.
    """
    open(path, "rb").close()  # OSError, in the system's words
    values = {}
    try:
        with safetensors.safe_open(path, "np") as file:
            notes = file.metadata() or {}
            dtypes = {name: file.get_slice(name).get_dtype() for name in file.keys()}
            for name, dtype in dtypes.items():
                if dtype not in DTYPES:
                    raise CheckpointError(f"{path}: {name} is of type {dtype}, which Weir has not; convert it before")
                if dtype != "BF16":  # NumPy has no such type
                    values[name] = file.get_tensor(name)
        if len(values) < len(dtypes):
            for name, part in safetensors.deserialize(pathlib.Path(path).read_bytes()):
                if part["dtype"] == "BF16":
                    values[name] = numpy.frombuffer(part["data"], numpy.uint16).reshape(part["shape"])
    except CheckpointError:
        raise
    except Exception as error:  # SafetensorError, and OverflowError for some headers
        raise CheckpointError(f"{path} is no safetensors file, or cut short: {error}; copy it again, or load an earlier "
                              "checkpoint") from None
    return values, notes


def _write(path: str, parts: dict, notes: dict[str, str]) -> None:
    try:
        safetensors.serialize_file(parts, path, notes)
    except safetensors.SafetensorError as error:  # wraps what the system said
        raise OSError(f"{path} cannot be written: {error}") from None


def _get_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync(path: str | os.PathLike) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
