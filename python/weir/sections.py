"""Entries in sections: of several ranks each runs a section, then they exchange values, and go on with the next one.

The compiler says by names what crosses (docs/distributed.md): `sent.N.COLLECTIVE` or `sent.N.COLLECTIVE.DIMENSION` is
given to a collective, whose result is `received.N`; `kept.N` is for later sections of the same rank. COLLECTIVE ends
with @1 if it is along the second axis of a grid of ranks.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from weir.runtime import Entry

SECTION = re.compile(r"(.*)\.section\.(\d+)")
SENT, RECEIVED, KEPT = "sent.", "received.", "kept."


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
    arguments = {}
    for part in parts:
        for tensor in part.arguments:
            if not tensor.name.startswith((RECEIVED, KEPT)):
                known = arguments.get(tensor.name, tensor)
                arguments[tensor.name] = dataclasses.replace(tensor, donated=tensor.donated or known.donated)
    results = [tensor for part in parts for tensor in part.results if not tensor.name.startswith((SENT, KEPT))]
    return Entry(name, list(arguments.values()), results, checks=next((part.checks for part in parts if part.checks), []))
