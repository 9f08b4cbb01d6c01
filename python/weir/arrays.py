"""Results that stay on the device until they are read."""

from __future__ import annotations  # a method is named numpy, too

import sys
from typing import Any

import numpy
from numpy.lib.mixins import NDArrayOperatorsMixin

from weir.runtime import Buffer, Error, Tensor


class Array(NDArrayOperatorsMixin):
    """A result of a run, on the device. Reading it waits for the run and copies it to the host, once.

    NumPy takes it as an array (`numpy.asarray`, arithmetic), and so do libraries that know DLPack
    (`torch.from_dlpack`). With one element it is a number, too (`float`, `int`, `bool`). Passed to another call on the
    same device, it is not copied. NumPy gets bfloat16 as its 16 bits, a uint16; `torch()` gives the real type.
    Errors: Error if the array was donated to a run, which took its bytes.
    """

    def __init__(self, tensor: Tensor, buffer: Buffer):
        self._tensor = tensor
        self._buffer: Buffer | None = buffer
        self._values: numpy.ndarray | None = None
        self._donated_to = ""
        self._status: Status | Statuses | None = None  # of the run

    @property
    def name(self) -> str:
        """The result's name in the entry."""
        return self._tensor.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self._tensor.shape

    @property
    def dtype(self) -> numpy.dtype:
        """The type of the elements; uint16 for bfloat16."""
        return self._tensor.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def numpy(self) -> numpy.ndarray:
        """Returns the values as a read-only array. Reading again returns the same array."""
        self._check()
        if self._status is not None:
            self._status.check()
        return self._fetch()

    def torch(self) -> Any:
        """Returns a copy of the values as a PyTorch tensor in host memory."""
        import torch

        tensor = torch.from_numpy(self.numpy().copy())
        return tensor.view(torch.bfloat16) if self._tensor.spelling == "BF16" else tensor

    def item(self) -> Any:
        """Returns the only element as a Python number. Errors: ValueError if there are several, or none."""
        if self._tensor.spelling == "BF16":
            return (self.numpy().astype(numpy.uint32) << 16).view(numpy.float32).item()
        return self.numpy().item()

    def wait(self) -> "Array":
        """Waits for the run and returns this array; the values stay on the device."""
        self._check()
        if self._buffer is not None:
            self._buffer.wait()
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray:
        values = self.numpy()
        return numpy.array(values, dtype=dtype) if copy else numpy.asarray(values, dtype=dtype)

    def __array_ufunc__(self, function: numpy.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        values = [value.numpy() if isinstance(value, Array) else value for value in inputs]
        return getattr(function, method)(*values, **options)

    __hash__ = object.__hash__

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().copy().__dlpack__(**options)  # NumPy exports no array that is read-only

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # the host's memory

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        return self.numpy().__index__()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __len__(self) -> int:
        return len(self.numpy())

    def __getitem__(self, key: Any) -> Any:
        return self.numpy()[key]

    def __format__(self, specification: str) -> str:
        return format(self.item() if not self.shape else self.numpy(), specification)

    def __repr__(self) -> str:
        if self._donated_to:
            return f"<weir.Array {self._tensor}, donated to {self._donated_to}>"
        if self._values is None:
            return f"<weir.Array {self._tensor}, on {self._buffer.device.name}>"
        return f"<weir.Array {self._tensor}: {self._values}>"

    def _fetch(self) -> numpy.ndarray:
        """Copies the values to the host, also if an index was out of range."""
        if self._values is None:
            values = numpy.empty(self.shape, self.dtype)
            self._buffer.read(values)
            values.flags.writeable = False
            self._values, self._buffer = values, None
        return self._values

    def _check(self) -> None:
        if self._donated_to:
            raise Error(f"the array {self.name} was donated to a run of {self._donated_to} and is gone; use that run's "
                        "result, or give the run a copy")

    def _donate(self, entry: str) -> None:
        self._donated_to, self._buffer, self._values = entry, None, None


class ComplexArray(Array):
    """A result of complex numbers: on the device, pairs of their real and imaginary parts."""

    def __init__(self, pairs: Array):
        super().__init__(pairs._tensor, pairs._buffer)
        self.pairs = pairs  # with a last dimension of 2

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self._tensor.shape[:-1]

    @property
    def dtype(self) -> numpy.dtype:
        """The type of the elements, complex64 or complex128."""
        return numpy.result_type(self._tensor.dtype, numpy.complex64)

    def numpy(self) -> numpy.ndarray:
        """Returns the values as a read-only array. Reading again returns the same array."""
        return self.pairs.numpy().view(self.dtype)[..., 0]

    def torch(self) -> Any:
        """Returns a copy of the values as a PyTorch tensor in host memory."""
        import torch

        return torch.from_numpy(self.numpy().copy())

    def wait(self) -> "ComplexArray":
        """Waits for the run and returns this array; the values stay on the device."""
        self.pairs.wait()
        return self

    def __repr__(self) -> str:
        return f"<complex {self.pairs!r}>"


def split_parts(name: str, value: Any) -> Any:
    """Returns complex numbers, of any library, as pairs of their parts along a last dimension of 2.

    Errors: TypeError for other numbers.
    """
    if isinstance(value, ComplexArray):
        return value.pairs
    torch = sys.modules.get("torch")
    if torch and isinstance(value, torch.Tensor) and value.is_complex():
        return torch.view_as_real(value.resolve_conj())
    array = numpy.asarray(value)
    if array.dtype.kind != "c":
        raise TypeError(f"{name} is {array.dtype}, but the program was compiled for complex numbers")
    return numpy.asarray(array, order="C")[..., None].view(array.real.dtype)


class Status:
    """The result of a run that says whether an index was out of range. It is read with the others."""

    def __init__(self, array: Array, entry: str, checks: list[str]):
        self._array, self._entry, self._checks = array, entry, checks

    def check(self) -> None:
        """Raises Error if an index was out of range; waits for the run."""
        if number := self._array.item():
            what = self._checks[number - 1] if number <= len(self._checks) else "an operator uses an index that is out of range"
            raise Error(f"{self._entry}: {what}; reads took the nearest element, writes were dropped")


class Statuses:
    """The statuses of the parts of a run."""

    def __init__(self, parts: list[Status]):
        self._parts = parts

    def check(self) -> None:
        """Raises Error if an index was out of range in one of them; waits for the run."""
        for part in self._parts:
            part.check()


def like(value: Array, given: Any) -> Any:
    """Returns `value` as a PyTorch tensor if `given` is one, else unchanged."""
    torch = sys.modules.get("torch")
    return value.torch() if torch and isinstance(given, torch.Tensor) else value
