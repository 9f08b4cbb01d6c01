"""A process group, and how its ranks agree: a problem of one becomes the same error on all."""

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence

import numpy
import torch
import torch.distributed as dist

from weir.runtime import Error


class FaultError(Error):
    """A collective that did not end: another rank was killed, stalled, or left. Start again from a checkpoint."""


class Ranks:
    """The ranks of a process group.

    Errors: Error if there is no group, or it has no backend for host memory.
    """

    def __init__(self, group: dist.ProcessGroup | None = None):
        if not dist.is_initialized():
            raise Error("there is no process group; call torch.distributed.init_process_group(\"gloo\") first, under "
                        "torchrun")
        self.group = group if group is not None else dist.group.WORLD
        if self.group == dist.GroupMember.NON_GROUP_MEMBER:
            raise Error("this process is no member of the group")
        backends = dist.get_backend_config(self.group)
        if not any(each.partition(":")[0] == "cpu" for each in backends.split(",")):
            raise Error(f"the process group has the backends {backends}, none of them for host memory, through which "
                        "gradients pass; make it with \"gloo\" or \"cpu:gloo,cuda:nccl\"")
        self.rank, self.size = dist.get_rank(self.group), dist.get_world_size(self.group)

    @contextlib.contextmanager
    def guard(self, what: str) -> Iterator[None]:
        """Turns what PyTorch raises where a rank is lost into one FaultError."""
        try:
            yield
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise FaultError(f"rank {self.rank} of {self.size}: {what} did not end: {reason}; another rank was killed, "
                             "stalled or left, so start again from the last checkpoint") from error

    def share(self, values: Sequence[int], what: str) -> list[list[int]]:
        """Returns the numbers of each rank, by rank."""
        mine = torch.tensor(values, dtype=torch.int64)
        if self.size == 1:
            return [mine.tolist()]
        all_values = torch.empty(self.size * len(values), dtype=torch.int64)
        with self.guard(what):
            dist.all_gather_into_tensor(all_values, mine, group=self.group)
        return all_values.view(self.size, -1).tolist()

    def agree(self, problem: str, what: str, values: Sequence[int] = ()) -> list[list[int]]:
        """Returns the numbers of each rank, unless a rank has a problem.

        Errors: on every rank an Error that has the problems of all.
        """
        rows = self.share([bool(problem), *values], what)
        if any(row[0] for row in rows):
            problems: list[str] = [""] * self.size
            if self.size == 1:
                problems = [problem]
            else:
                with self.guard(what):
                    dist.all_gather_object(problems, problem, group=self.group)
            if len(set(problems)) == 1:
                raise Error(problem)
            raise Error("; ".join(f"rank {rank}: {text}" for rank, text in enumerate(problems) if text))
        return [row[1:] for row in rows]

    def require_same(self, texts: Sequence[str | bytes], what: str, remedy: str) -> None:
        """Checks that all ranks give the same texts. Errors: Error on every rank, which names `what` and `remedy`."""
        digest = hashlib.sha256(b"\0".join(text.encode() if isinstance(text, str) else text for text in texts)).digest()
        rows = self.share([int.from_bytes(digest[:7], "big")], f"comparing {what}")
        if odd := [rank for rank, row in enumerate(rows) if row != rows[0]]:
            raise Error(f"ranks 0 and {odd[0]} have different {what}; {remedy}")


def to_tensor(value: numpy.ndarray) -> torch.Tensor:
    """Returns an array as a tensor on its bytes. bfloat16 stays 16 bits, which PyTorch sends and stores as integers."""
    return torch.from_numpy(value.view(numpy.int16) if value.dtype == numpy.uint16 else value)


def hash_tensors(values: Iterable[torch.Tensor]) -> str:
    """Returns a hash of the bits of tensors in host memory."""
    digest = hashlib.sha256()
    for value in values:
        digest.update(value.detach().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
