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


class Run:
    """A run of all sections of an entry, with an exchange between two of them.

    `call` runs a section; `exchange` returns what collectives make of values, by the names of their results; `gather`
    writes arguments of all ranks, each along a dimension, to buffers.
    """

    def __init__(
        self, sections: Sequence[Entry], pool: Pool, call: Callable[[Entry, dict[str, Any]], dict[str, Array]],
        exchange: Callable[[dict[str, Array]], Mapping[str, Any]],
        gather: Callable[[list[tuple[str, int, Tensor, Buffer]]], None],
    ):
        self._sections, self._pool, self._call, self._exchange, self._gather = sections, pool, call, exchange, gather
        self._last = {tensor.name: index for index, section in enumerate(sections) for tensor in section.arguments}
        self._values: dict[str, Any] = {}

    def do(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """Returns the results."""
        self._values, results = dict(given), {}
        for index, section in enumerate(self._sections):
            self._gather_for(section)
            taken = {tensor.name: self._values[tensor.name] for tensor in section.arguments
                     if tensor.name in self._values}
            # One that is donated may be lent again as a result.
            ending = {name: value._buffer for name, value in taken.items()
                      if name.startswith((RECEIVED, KEPT)) and self._last[name] == index}
            made = self._call(section, taken)
            lent = {id(array._buffer) for array in made.values()}
            for name, buffer in ending.items():
                del self._values[name]
                if id(buffer) not in lent:
                    self._pool.give(buffer)
            self._values |= {name: made.pop(name) for name in list(made) if name.startswith(KEPT)}
            self._send({name: made.pop(name) for name in list(made) if name.startswith(SENT)}, index)
            results |= made
        self._drop(name for name in list(self._values) if name.startswith(GATHERED))
        return results

    def _gather_for(self, section: Entry) -> None:
        """Drops what the section before has gathered and this one does not read, and gathers what else it reads."""
        read = [tensor for tensor in section.arguments if tensor.name.startswith(GATHERED)]
        names = {tensor.name for tensor in read}
        self._drop(name for name in list(self._values) if name.startswith(GATHERED) and name not in names)
        wanted = []
        for tensor in read:
            if tensor.name not in self._values:
                axis, argument = read_gathered(tensor.name)
                buffer = self._pool.take(tensor)
                wanted.append((argument, axis, tensor, buffer))
                self._values[tensor.name] = Array(tensor, buffer)
        if wanted:
            self._gather(wanted)

    def _send(self, sent: dict[str, Array], index: int) -> None:
        """Exchanges what a section gives, and keeps what later ones read of it."""
        if not sent:
            return
        buffers = [array._buffer for array in sent.values()]
        received = self._exchange(sent)
        for buffer in buffers:
            self._pool.give(buffer)
        tensors = {tensor.name: tensor for section in self._sections[index + 1:] for tensor in section.arguments
                   if tensor.name in received}
        for name, tensor in tensors.items():
            buffer = self._pool.take(tensor)
            buffer.write(received[name])
            self._values[name] = Array(tensor, buffer)

    def _drop(self, names: Any) -> None:
        for name in list(names):
            self._pool.give(self._values.pop(name)._buffer)
