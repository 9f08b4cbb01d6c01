"""The buffer of gradients between the run that fills it and the runs that update by it."""

import dataclasses
import json
import pathlib
import zipfile
from collections.abc import Mapping, Sequence

import torch

from weir.distributed.groups import Ranks
from weir.distributed.reductions import REDUCTIONS, Bucket
from weir.execution import Watcher
from weir.runtime import Buffer, Entry, Tensor

BUFFER = "gradients"
DTYPES = {"F32": torch.float32, "F64": torch.float64}  # that updates are computed in


@dataclasses.dataclass(frozen=True)
class Part:
    """A parameter's gradient in the buffer: its elements, and the wave of the run after which nothing writes them."""

    name: str
    begin: int
    end: int
    wave: int


def find_buffer(entry: Entry) -> Tensor:
    """Returns the result of an entry that has all gradients."""
    return next(tensor for tensor in entry.results if tensor.name == BUFFER)


def read_parts(artifact: pathlib.Path, target: str, entry: Entry) -> list[Part]:
    """Returns the parts of an entry's buffer, in their order there."""
    with zipfile.ZipFile(artifact) as archive:
        plan = json.loads(archive.read(f"plan/{target}/{entry.name}.json"))
    size = find_buffer(entry).dtype.itemsize
    return [Part(name, begin // size, (begin + count) // size, wave) for name, _, begin, count, wave in plan["parts"]]


def make_buckets(parts: Sequence[Part], length: int, smallest: int) -> list[tuple[int, Bucket]]:
    """Returns the ranges that make up a buffer of `length` elements, with their waves, the earliest first.

    Each has at least `smallest` elements, but for the last one in the buffer. Gaps belong to the part before.
    """
    buckets, begin, wave = [], 0, 0
    for part, end in zip(parts, [*(part.begin for part in parts[1:]), length]):
        wave = max(wave, part.wave)
        if end - begin >= smallest or end == length:
            buckets.append((wave, (begin, end)))
            begin, wave = end, 0
    return sorted(buckets)


class Exchange(Watcher):
    """Adds up the buffers of all ranks: each bucket is sent as soon as the run has made it.

    Updates read the sums before the next run fills the buffer again.
    """

    used_up = (BUFFER,)

    def __init__(
        self, ranks: Ranks, tensor: Tensor, buckets: list[tuple[int, Bucket]], reduction: str, owners: list[int] | None
    ):
        self._ranks, self._dtype, self._buckets = ranks, DTYPES[tensor.spelling], buckets
        self._reduction, self._owners = REDUCTIONS[reduction], owners
        self.values = torch.empty(0)  # of the buffer, in host memory

    def start(self, results: Mapping[str, Buffer]) -> None:
        self._buffer = results[BUFFER]
        mapped = self._buffer.map()
        # A GPU with memory of its own is read when the run has ended.
        self._is_mapped, self.waves = mapped is not None, []
        if self._is_mapped:
            self.values = torch.frombuffer(mapped, dtype=self._dtype)
            self.waves = sorted({wave for wave, _ in self._buckets}) if self._ranks.size > 1 else []
        else:
            self.values = torch.empty(self._buffer.size // self._dtype.itemsize, dtype=self._dtype)
        self._sums = self._reduction(self._ranks, self.values, self._owners)
        self._left = list(self._buckets)

    def reach(self, wave: int) -> None:
        while self._left and self._left[0][0] <= wave:
            self._sums.begin(self._left.pop(0)[1])

    def finish(self) -> None:
        """Waits until the sums are in the buffer and in `values`."""
        if not self._is_mapped:
            self._buffer.read(self.values.numpy())
        if self._ranks.size == 1:
            return
        for _, bucket in self._left:
            self._sums.begin(bucket)
        self._sums.finish()
        if not self._is_mapped:
            self._buffer.write(self.values.numpy())
