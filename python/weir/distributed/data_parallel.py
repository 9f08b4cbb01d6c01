"""Data parallel training: each rank computes the gradients of its own batch, and all update by their mean."""

import collections
import contextlib
import itertools
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy
import torch
import torch.distributed as dist

from weir.arrays import Array
from weir.checkpoints import CheckpointError
from weir.distributed import folders
from weir.distributed.exchange import BUFFER, Exchange, find_buffer, make_buckets, read_parts
from weir.distributed.groups import Ranks, to_tensor
from weir.distributed.reductions import IN_FLIGHT, REDUCTIONS
from weir.execution import Execution
from weir.programs import Step
from weir.runtime import Entry, Error, Tensor

SEEDS = ("random.seed", "random.step")


class DataParallel:
    """A training step whose gradients are the mean over the batches of all ranks of a process group.

    Each rank makes the same `weir.compile_step(..., pieces=True)`, and calls this instead. One thread may call it.
    """

    def __init__(
        self, step: Step, group: dist.ProcessGroup | None = None, *, reduction: str = "ranks",
        bucket_bytes: int = 4 << 20, sharded: bool = False,
    ):
        """Checks that all ranks have the same step, and gives them the parameters and the state of rank 0.

        `group`:     a process group with a backend for host memory, by default the whole world.
        `reduction`: "ranks" adds gradients in the order of the ranks: the bits are those of one process that accumulates
                     the ranks' batches. "ring" is the backend's own all_reduce, whose order is its algorithm's.
        `bucket_bytes`: gradients are sent as soon as so many bytes of neighbours are there.
        `sharded`:   whether each rank keeps the optimizer's state of some parameters only, updates these, and sends them
                     to the others (ZeRO-1). It needs a step of `shards=N`, with N a multiple of the number of ranks.
        Errors: weir.Error, the same on every rank.
        """
        self._step, self._ranks = step, Ranks(group)
        self._execution: Execution = step._execution
        name = step._signatures[0].entry.removesuffix(".step")
        shards = sorted((entry for entry in step.entries.values() if entry.name.startswith(f"{name}.update.")),
                        key=lambda entry: int(entry.name.rpartition(".")[2]))
        problem = self._find_problem(step, f"{name}.grad", shards, reduction, bucket_bytes, sharded)
        self._ranks.agree(problem, "comparing the ranks")
        self._ranks.require_same([step._path.read_bytes()], "artifacts", "compile one module with the same options, for "
                                 "processors or GPUs of one kind")
        self._ranks.require_same([reduction, str(bucket_bytes), str(sharded)], "options of DataParallel", "give the same")
        self._gradient, self._updates = step.entries[f"{name}.grad"], [step.entries[f"{name}.update"]]
        # The model's own state and what is accumulated are each rank's own.
        self._private = {tensor.name for tensor in self._gradient.arguments
                         if tensor.kind == "state" and tensor.name != "loss_scale"}
        self._bucket_bytes = bucket_bytes
        self._send_start()
        ends, self._range = None, (0, find_buffer(self._gradient).shape[0])
        if sharded:
            ends = self._keep_own(shards)
        self._owned: list[tuple[int, list[str]]] = []  # what each rank updates for all, in groups, by turns
        if sharded:
            by_rank = [self._group(_list_parameters(part)) for part in _divide(shards, self._ranks.size)]
            self._owned = [(rank, part) for turn in itertools.zip_longest(*by_rank) for rank, part in enumerate(turn)
                           if part]
        buffer = find_buffer(self._gradient)
        parts = read_parts(step._path, self._execution.target, self._gradient)
        buckets = make_buckets(parts, buffer.shape[0], bucket_bytes // buffer.dtype.itemsize)
        self._exchange = Exchange(self._ranks, buffer, buckets, reduction, ends)
        self._is_accumulating = False

    @property
    def step(self) -> Step:
        """The step of this rank. Its `state_dict`, `predict` and `output` are as ever; call this object in its place."""
        return self._step

    @property
    def steps(self) -> int:
        """The number of steps done, including those before a loaded checkpoint."""
        return self._step.steps

    def __call__(self, *arguments: Any, **named: Any) -> Array:
        """Does one step by the mean of all ranks' gradients, and returns the loss of this rank's batch.

        The arguments are those of a call of the step. Under `no_sync` it adds gradients for the next step instead.
        Errors: weir.Error, on every rank, if the arguments of one do not fit; FaultError if a rank is lost.
        """
        step = self._step
        if self._is_accumulating:
            return step.accumulate(*arguments, **named)
        given, rates, problem = self._bind(arguments, named)
        what = f"step {step.steps + 1}"
        rows = self._ranks.agree(problem, what, [step.steps, step._accumulated + 1])
        if odd := [rank for rank, row in enumerate(rows) if row[0] != rows[0][0]]:
            raise Error(f"rank {odd[0]} is at step {rows[odd[0]][0]}, rank 0 at {rows[0][0]}; load one checkpoint on all")
        rates["microbatches"] = float(sum(row[1] for row in rows))
        with self._ranks.guard(what):
            loss = step._run(self._gradient, given, lambda: None, self._exchange)
            self._exchange.finish()
        self._update(step._results.pop(BUFFER), rates)
        with self._ranks.guard(what):
            self._send_own()
        step._count_step()
        return loss

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Makes calls add the gradients of their batches to those of the next call outside, without the other ranks.

        Errors: ValueError if the step was compiled without `accumulate=True`.
        """
        if not self._step._accumulator:
            raise ValueError("the step was compiled without accumulate=True, which no_sync needs")
        self._is_accumulating = True
        try:
            yield
        finally:
            self._is_accumulating = False

    def save(self, folder: str | os.PathLike) -> pathlib.Path:
        """Writes a checkpoint of all ranks as `step-N` in `folder`, which all ranks must see, and returns its path.

        It is there as a whole or not at all. `load` may read it with another number of ranks.
        Errors: OSError; weir.Error, on every rank, if one cannot write; FaultError if a rank is lost.
        """
        return folders.save_pieces(self._ranks, pathlib.Path(folder), self._step, self._get_key)

    def load(self, folder: str | os.PathLike) -> int:
        """Reads the last whole checkpoint in `folder`, and returns its number of steps; 0 if there is none.

        Errors: weir.CheckpointError, on every rank, if it belongs to another step; FaultError if a rank is lost.
        """
        def choose(notes: Mapping[str, int]) -> dict[str, torch.Tensor]:
            if notes["accumulated"] and notes["ranks"] != self._ranks.size:
                raise CheckpointError(f"it was written between microbatches, by {notes['ranks']} ranks; load it with as "
                                      f"many, not {self._ranks.size}")
            rank = min(self._ranks.rank, notes["ranks"] - 1)  # of ranks that are new, the last one's
            return {self._get_key(name, rank): to_tensor(numpy.empty(tensor.shape, tensor.dtype))
                    for name, tensor in self._execution.held.items()}

        found = folders.load(self._ranks, pathlib.Path(folder), choose)
        if found is None:
            return 0
        values, notes = found
        rank = min(self._ranks.rank, notes["ranks"] - 1)
        self._execution.hold({name: values[self._get_key(name, rank)].numpy().view(tensor.dtype)
                              for name, tensor in self._execution.held.items()})
        self._step._steps, self._step._accumulated = notes["steps"], notes["accumulated"]
        return notes["steps"]

    def _find_problem(
        self, step: Step, gradient: str, shards: list[Entry], reduction: str, bucket_bytes: int, sharded: bool
    ) -> str:
        """Returns why this rank cannot take part, or ""."""
        if gradient not in step.entries:
            return "the step has no pieces; compile it with pieces=True"
        if step._check_values:
            return "the step checks values, which one process does by itself; compile it without check_values"
        if reduction not in REDUCTIONS:
            return f"reduction is {reduction!r}; expected \"ranks\" or \"ring\""
        if bucket_bytes < 1:
            return f"bucket_bytes is {bucket_bytes}; expected a positive number"
        if sharded and (not shards or len(shards) % self._ranks.size):
            return f"{len(shards)} shards do not divide among {self._ranks.size} ranks; compile the step with shards=N, " \
                   "a multiple of the number of ranks"
        return ""

    def _bind(self, arguments: tuple, named: dict) -> tuple[dict[str, Any], dict[str, Any], str]:
        """Returns the tensors of a call, the hyperparameters, and what is wrong with it, or ""."""
        step = self._step
        rates = {name: named.pop(name) for name in list(named) if name in step._rates}
        try:
            step._check_oldest()
            given = step._signatures[0].bind(arguments, named)
            return given, step._evaluate(rates), step._find_mismatch(self._gradient, given)
        except (Error, TypeError, ValueError) as error:
            return {}, {}, str(error)

    def _send_start(self) -> None:
        """Gives all ranks what rank 0 holds, but for the seeds of random numbers."""
        names = [name for name in self._execution.held if name not in SEEDS]
        with self._ranks.guard("sending the parameters"):
            self._send([(0, part) for part in self._group(names)])

    def _keep_own(self, shards: list[Entry]) -> list[int]:
        """Keeps the state of this rank's shards alone. Returns where each rank's range of the buffer ends."""
        by_rank = _divide(shards, self._ranks.size)
        sizes = [sum(_count_gradients(entry) for entry in part) for part in by_rank]
        ends = [sum(sizes[:rank + 1]) for rank in range(self._ranks.size)]
        self._updates = by_rank[self._ranks.rank]
        self._range = (ends[self._ranks.rank] - sizes[self._ranks.rank], ends[self._ranks.rank])
        step = self._step
        needed = [self._gradient, *self._updates, step._accumulator,
                  step.entries[step._predictor.entry] if step._predictor else None]
        kept = {tensor.name for entry in needed if entry for tensor in entry.arguments}
        self._execution.release([name for name in self._execution.held if name not in kept])
        return ends

    def _update(self, buffer: Array, rates: Mapping[str, Any]) -> None:
        begin = self._range[0]
        for entry in self._updates:
            count = _count_gradients(entry)
            gradients = buffer if count == buffer.shape[0] else self._exchange.values[begin:begin + count]
            begin += count
            given = {name: rate for name, rate in rates.items() if any(name == each.name for each in entry.arguments)}
            self._execution.call(entry, {**given, BUFFER: gradients})

    def _send_own(self) -> None:
        """Gives the parameters that each rank has updated to all others."""
        self._send(self._owned)

    def _group(self, names: list[str]) -> list[list[str]]:
        """Returns names of held values in groups of as many bytes as a bucket, or one larger value."""
        groups, size, held = [], self._bucket_bytes, self._execution.held
        for name in names:
            if size + held[name].bytes > self._bucket_bytes or not groups:
                groups.append([])
                size = 0
            groups[-1].append(name)
            size += held[name].bytes
        return groups

    def _send(self, groups: list[tuple[int, list[str]]]) -> None:
        """Gives all ranks what one of them holds, in the order of the groups, a few of them at once: each is copied."""
        if self._ranks.size == 1:
            return
        held, pending = self._execution.held, collections.deque()
        for rank, names in groups:
            if len(pending) == IN_FLIGHT:
                self._take(*pending.popleft())
            tensors = [held[name] for name in names]
            if rank == self._ranks.rank:
                sent = torch.cat([_to_bytes(value) for value in self._execution.read(names).values()])
            else:
                sent = torch.empty(sum(tensor.bytes for tensor in tensors), dtype=torch.uint8)
            work = dist.broadcast(sent, group=self._ranks.group, group_src=rank, async_op=True)
            pending.append((rank, tensors, sent, work))
        while pending:
            self._take(*pending.popleft())

    def _take(self, rank: int, tensors: list[Tensor], sent: torch.Tensor, work: dist.Work) -> None:
        """Holds what another rank has sent."""
        work.wait()
        if rank != self._ranks.rank:
            pieces = sent.split([tensor.bytes for tensor in tensors])
            self._execution.hold({tensor.name: piece.numpy().view(tensor.dtype).reshape(tensor.shape)
                                  for tensor, piece in zip(tensors, pieces)})

    def _get_key(self, name: str, rank: int) -> str:
        """Returns the name of a value in a checkpoint."""
        return f"rank{rank}.{name}" if name in self._private else name


def _divide(shards: list[Entry], ranks: int) -> list[list[Entry]]:
    """Returns the shards of each rank."""
    number = len(shards) // ranks
    return [shards[rank * number:(rank + 1) * number] for rank in range(ranks)]


def _list_parameters(entries: list[Entry]) -> list[str]:
    return [tensor.name for entry in entries for tensor in entry.arguments if tensor.kind == "param"]


def _count_gradients(entry: Entry) -> int:
    """Returns the number of elements of the buffer that an update takes."""
    return next(tensor.shape[0] for tensor in entry.arguments if tensor.name == BUFFER)


def _to_bytes(value: numpy.ndarray) -> torch.Tensor:
    return torch.from_numpy(value.reshape(-1).view(numpy.uint8))
