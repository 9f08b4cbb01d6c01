"""Sums of a buffer over the ranks, bucket by bucket, while other buckets are still computed.

Each kind has `begin(bucket)`, which starts to send a range of the buffer, and `finish()`, after which the sums are there:
all of them, or with `owners` those that this rank owns.
"""

import torch
import torch.distributed as dist

from weir.distributed.groups import Ranks

Bucket = tuple[int, int]  # elements [begin, end) of the buffer


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

    Each rank gets its share of a bucket from all, adds, and gives the sum to all. So as many bytes are sent as by a ring.
    """

    def __init__(self, ranks: Ranks, buffer: torch.Tensor, owners: list[int] | None):
        self._ranks, self._buffer, self._owners = ranks, buffer, owners
        self._pending: list[tuple[Bucket, list[Bucket], torch.Tensor, dist.Work]] = []

    def begin(self, bucket: Bucket) -> None:
        shares = cut(bucket, self._owners or self._divide(bucket))
        mine = shares[self._ranks.rank][1] - shares[self._ranks.rank][0]
        received = torch.empty(mine * self._ranks.size, dtype=self._buffer.dtype)
        work = dist.all_to_all_single(received, self._buffer[slice(*bucket)],
                                      output_split_sizes=[mine] * self._ranks.size,
                                      input_split_sizes=[end - begin for begin, end in shares],
                                      group=self._ranks.group, async_op=True)
        self._pending.append((bucket, shares, received, work))

    def finish(self) -> None:
        pending, self._pending = self._pending, []
        gathers = []
        for bucket, shares, received, work in pending:
            work.wait()
            begin, end = shares[self._ranks.rank]
            total = torch.zeros(end - begin, dtype=self._buffer.dtype)
            for part in received.view(self._ranks.size, -1):
                total += part
            if self._owners is None:
                gathers.append((bucket, *self._gather(bucket, total)))
            else:
                self._buffer[begin:end] = total
        for bucket, whole, work in gathers:
            work.wait()
            self._buffer[slice(*bucket)] = whole[:bucket[1] - bucket[0]]

    def _divide(self, bucket: Bucket) -> list[int]:
        """Returns where the shares of a bucket end, all of one size but the last ones."""
        share = -(-(bucket[1] - bucket[0]) // self._ranks.size)
        return [min(bucket[0] + share * (rank + 1), bucket[1]) for rank in range(self._ranks.size)]

    def _gather(self, bucket: Bucket, total: torch.Tensor) -> tuple[torch.Tensor, dist.Work]:
        share = -(-(bucket[1] - bucket[0]) // self._ranks.size)
        padded = torch.zeros(share, dtype=total.dtype)
        padded[:len(total)] = total
        whole = torch.empty(share * self._ranks.size, dtype=total.dtype)
        return whole, dist.all_gather_into_tensor(whole, padded, group=self._ranks.group, async_op=True)


def cut(bucket: Bucket, ends: list[int]) -> list[Bucket]:
    """Returns the part of a bucket that each rank has, where rank r has the elements up to ends[r]."""
    shares, begin = [], bucket[0]
    for end in ends:
        end = min(max(end, begin), bucket[1])
        shares.append((begin, end))
        begin = end
    return shares


REDUCTIONS = {"ranks": RankOrder, "ring": Ring}
