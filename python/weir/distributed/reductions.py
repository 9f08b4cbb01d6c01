"""Sums of a buffer over the ranks, bucket by bucket, while other buckets are still computed.

Each kind has `begin(bucket)`, which starts to send a range of the buffer, and `finish()`, after which the sums are there:
all of them, or with `owners` those that this rank owns.
"""

import collections
import dataclasses
from collections.abc import Iterable

import torch
import torch.distributed as dist

from weir.distributed.groups import Ranks

Bucket = tuple[int, int]  # elements [begin, end) of the buffer
IN_FLIGHT = 4  # messages whose bytes are beside those of the buffer, at most


class Ring:
    """PyTorch's own all_reduce, or a reduce to each owner. The order of a sum is that of the backend's algorithm."""

    def __init__(self, ranks: Ranks, buffer: torch.Tensor, owners: list[int] | None):
        self._ranks, self._buffer, self._owners = ranks, buffer, owners
        self._pending: list[dist.Work] = []

    def begin(self, bucket: Bucket) -> None:
        if self._owners is None:
            self._pending.append(dist.all_reduce(self._buffer[slice(*bucket)], group=self._ranks.group, async_op=True))
            return
        for rank, (begin, end) in enumerate(cut(bucket, self._owners)):
            if begin < end:
                self._pending.append(dist.reduce(self._buffer[begin:end], group=self._ranks.group, group_dst=rank,
                                                 async_op=True))

    def finish(self) -> None:
        pending, self._pending = self._pending, []
        for work in pending:
            work.wait()


class RankOrder:
    """Sums in the order of the ranks: ((0 + rank 0) + rank 1) + ..., as one process adds microbatches.

    Each rank gets its share of a bucket from all others, adds, and gives the sum to them, straight into the buffer. So as
    many bytes are sent as by a ring. Shares received wait for their sum: those of `IN_FLIGHT` buckets at most, so that
    memory does not grow with the buffer. `tag`: that of the first message; sums that are made at one time have others.
    """

    def __init__(self, ranks: Ranks, buffer: torch.Tensor, owners: list[int] | None, tag: int = 0):
        self._ranks, self._buffer, self._owners, self._tag = ranks, buffer, owners, tag
        self._others = [rank for rank in range(ranks.size) if rank != ranks.rank]
        self._count = 0  # of buckets
        self._pending: collections.deque[_Bucket] = collections.deque()  # that are not added up
        self._giving: list[dist.Work] = []

    def begin(self, bucket: Bucket) -> None:
        while len(self._pending) >= IN_FLIGHT:
            self._add()
        shares = cut(bucket, self._owners or self._divide(bucket))
        mine = self._buffer[slice(*shares[self._ranks.rank])]
        received = torch.empty(len(self._others), len(mine), dtype=mine.dtype)
        tag = self._tag + 2 * self._count
        self._count += 1
        works = [self._receive(part, rank, tag) for part, rank in zip(received, self._others)]
        works += [self._send(self._buffer[slice(*shares[rank])], rank, tag) for rank in self._others]
        self._pending.append(_Bucket(tag, shares, received, works))

    def finish(self) -> None:
        while self._pending:
            self._add()
        giving, self._giving = self._giving, []
        _wait(giving)

    def _add(self) -> None:
        """Adds up the oldest bucket, and gives the sum to the other ranks if they want it."""
        bucket = self._pending.popleft()
        _wait(bucket.works)
        own = self._buffer[slice(*bucket.shares[self._ranks.rank])]
        first, *others = [*bucket.received[:self._ranks.rank], own, *bucket.received[self._ranks.rank:]]
        first += 0  # makes 0.0 of -0.0, as a sum that starts at 0 does
        for other in others:
            first += other
        if first is not own:
            own.copy_(first)
        if self._owners is None:
            self._giving += [self._receive(self._buffer[slice(*bucket.shares[rank])], rank, bucket.tag + 1)
                             for rank in self._others]
            self._giving += [self._send(own, rank, bucket.tag + 1) for rank in self._others]

    def _receive(self, part: torch.Tensor, rank: int, tag: int) -> dist.Work | None:
        return dist.irecv(part, group=self._ranks.group, group_src=rank, tag=tag) if len(part) else None

    def _send(self, part: torch.Tensor, rank: int, tag: int) -> dist.Work | None:
        return dist.isend(part, group=self._ranks.group, group_dst=rank, tag=tag) if len(part) else None

    def _divide(self, bucket: Bucket) -> list[int]:
        """Returns where the shares of a bucket end, all of one size but the last ones."""
        share = -(-(bucket[1] - bucket[0]) // self._ranks.size)
        return [min(bucket[0] + share * (rank + 1), bucket[1]) for rank in range(self._ranks.size)]


@dataclasses.dataclass
class _Bucket:
    """A bucket whose shares are on their way: of each rank its share, and what this rank gets of the others for its own."""

    tag: int
    shares: list[Bucket]
    received: torch.Tensor
    works: list[dist.Work | None]


def _wait(works: Iterable[dist.Work | None]) -> None:
    for work in works:
        if work is not None:
            work.wait()


def cut(bucket: Bucket, ends: list[int]) -> list[Bucket]:
    """Returns the part of a bucket that each rank has, where rank r has the elements up to ends[r]."""
    shares, begin = [], bucket[0]
    for end in ends:
        end = min(max(end, begin), bucket[1])
        shares.append((begin, end))
        begin = end
    return shares


REDUCTIONS = {"ranks": RankOrder, "ring": Ring}
