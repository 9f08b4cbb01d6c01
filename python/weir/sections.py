"""Entries in sections: of several ranks each runs a section, then they exchange values, and go on with the next one.

The compiler says by names what crosses (docs/distributed.md): `sent.N.COLLECTIVE` or `sent.N.COLLECTIVE.DIMENSION` is
given to a collective, whose result is `received.N`; `kept.N` is for later sections of the same rank. COLLECTIVE ends
with @1 if it is along the second axis of a grid of ranks. `gathered.DIMENSION.NAME` is the argument NAME of all ranks.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weir.arrays import Array
from weir.runtime import Buffer, Device, Entry, Tensor, make_buffer

SECTION = re.compile(r"(.*)\.section\.(\d+)")
SENT, RECEIVED, KEPT, GATHERED = "sent.", "received.", "kept.", "gathered."


@dataclasses.dataclass(frozen=True)
class Collective:
    """An exchange of a value among ranks: its number in the entry, "all_reduce" and so on, the axis of the grid of ranks,
    and the dimension of the value that it is along."""

    number: int
    kind: str
    along: int = 0
    axis: int = 0

    @property
    def received(self) -> str:
        """The name of the result."""
        return f"{RECEIVED}{self.number}"


def read_collective(name: str) -> Collective:
    """Returns what a result `sent.*` is for."""
    _, number, kind, *axis = name.split(".")
    kind, _, along = kind.partition("@")
    return Collective(int(number), kind, int(along or 0), *map(int, axis))


def read_gathered(name: str) -> tuple[int, str]:
    """Returns the dimension and the argument of which `gathered.*` is that of all ranks."""
    _, axis, argument = name.split(".", 2)
    return int(axis), argument


def join_sections(entries: Mapping[str, Entry]) -> tuple[dict[str, Entry], dict[str, list[Entry]]]:
    """Returns the entries with one in place of all its sections, and by its name the sections in their order."""
    sections: dict[str, list[tuple[int, Entry]]] = {}
    joined: dict[str, Entry] = {}
    for name, entry in entries.items():
        if found := SECTION.fullmatch(name):
            sections.setdefault(found[1], []).append((int(found[2]), entry))
            joined[found[1]] = entry  # where the first one stands
        else:
            joined[name] = entry
    ordered = {name: [entry for _, entry in sorted(parts, key=lambda part: part[0])] for name, parts in sections.items()}
    for name, parts in ordered.items():
        joined[name] = _join(name, parts)
    return joined, ordered


def _join(name: str, parts: Sequence[Entry]) -> Entry:
    """Returns what sections take and give together, without what crosses from one to another."""
    arguments: dict[str, Tensor] = {}
    for part in parts:
        for tensor in part.arguments:
            if not tensor.name.startswith((RECEIVED, KEPT, GATHERED)):
                known = arguments.get(tensor.name, tensor)
                arguments[tensor.name] = dataclasses.replace(tensor, donated=tensor.donated or known.donated)
    results = [tensor for part in parts for tensor in part.results if not tensor.name.startswith((SENT, KEPT))]
    return Entry(name, list(arguments.values()), results, checks=next((part.checks for part in parts if part.checks), []))


class Pool:
    """Buffers of what crosses sections. One that is given back is the next one of its size."""

    def __init__(self, device: Device):
        self._device = device
        self._free: dict[int, list[Buffer]] = {}
        self.bytes = 0  # of all its buffers

    def take(self, tensor: Tensor) -> Buffer:
        """Returns a buffer for a tensor."""
        if free := self._free.get(tensor.bytes):
            return free.pop()
        self.bytes += tensor.bytes
        return make_buffer(self._device, tensor)

    def give(self, buffer: Buffer) -> None:
        """Takes a buffer back once no call will name it. Runs that were begun may still use it."""
        self._free.setdefault(buffer.size, []).append(buffer)


Received = Callable[[], Mapping[str, Any]]  # waits for an exchange, and returns what collectives gave, by its names


class Run:
    """A run of all sections of an entry, with an exchange between two of them.

    `call` runs a section. `exchange` begins to exchange values, and `gather` to write arguments of all ranks, each
    along a dimension, to the buffers that it is given later: both return what waits for the end. All ranks begin the
    same ones in one order. A section runs while the next one's arguments are gathered, and while what the one before
    sent is exchanged, unless it reads what comes of that.
    """

    def __init__(
        self, sections: Sequence[Entry], pool: Pool, call: Callable[[Entry, dict[str, Any]], dict[str, Array]],
        exchange: Callable[[dict[str, Array]], Received],
        gather: Callable[[list[tuple[int, str]]], Callable[[list[Buffer]], None]],
    ):
        self._sections, self._pool, self._call, self._exchange, self._gather = sections, pool, call, exchange, gather
        self._last = {tensor.name: index for index, section in enumerate(sections) for tensor in section.arguments}
        self._values: dict[str, Any] = {}
        self._coming: tuple[list[Tensor], Callable[[list[Buffer]], None]] | None = None  # that is being gathered
        self._sent: dict[str, Array] = {}  # by the section before

    def do(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """Returns the results."""
        self._values, results = dict(given), {}
        self._begin_gather(0)
        for index, section in enumerate(self._sections):
            names = {tensor.name for tensor in section.arguments}
            self._drop(name for name in list(self._values) if name.startswith(GATHERED) and name not in names)
            self._finish_gather()
            received = self._exchange(self._sent) if self._sent else None
            if received and any(read_collective(name).received in names for name in self._sent):
                self._receive(received, index)
                received = None
            self._begin_gather(index + 1)
            taken = {name: self._values[name] for name in names if name in self._values}
            # One that is donated may be lent again as a result.
            ending = {name: value._buffer for name, value in taken.items()
                      if name.startswith((RECEIVED, KEPT)) and self._last[name] == index}
            made = self._call(section, taken)
            lent = {id(array._buffer) for array in made.values()}
            for name, buffer in ending.items():
                del self._values[name]
                if id(buffer) not in lent:
                    self._pool.give(buffer)
            if received:
                self._receive(received, index + 1)
            self._values |= {name: made.pop(name) for name in list(made) if name.startswith(KEPT)}
            self._sent = {name: made.pop(name) for name in list(made) if name.startswith(SENT)}
            results |= made
        self._drop(name for name in list(self._values) if name.startswith(GATHERED))
        return results

    def _begin_gather(self, index: int) -> None:
        """Begins to gather what a section reads and the one before has not."""
        if index == len(self._sections):
            return
        wanted = [tensor for tensor in self._sections[index].arguments
                  if tensor.name.startswith(GATHERED) and tensor.name not in self._values]
        if wanted:
            self._coming = wanted, self._gather([read_gathered(tensor.name) for tensor in wanted])

    def _finish_gather(self) -> None:
        if self._coming is None:
            return
        tensors, finish = self._coming
        self._coming = None
        buffers = [self._pool.take(tensor) for tensor in tensors]
        self._values |= {tensor.name: Array(tensor, buffer) for tensor, buffer in zip(tensors, buffers)}
        finish(buffers)

    def _receive(self, received: Received, index: int) -> None:
        """Waits for an exchange, and keeps what sections from `index` on read of it."""
        values = received()
        for array in self._sent.values():
            self._pool.give(array._buffer)
        self._sent = {}
        tensors = {tensor.name: tensor for section in self._sections[index:] for tensor in section.arguments
                   if tensor.name in values}
        for name, tensor in tensors.items():
            buffer = self._pool.take(tensor)
            buffer.write(values[name])
            self._values[name] = Array(tensor, buffer)

    def _drop(self, names: Any) -> None:
        for name in list(names):
            self._pool.give(self._values.pop(name)._buffer)
