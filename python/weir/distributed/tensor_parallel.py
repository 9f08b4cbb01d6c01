"""Tensor parallel training: each rank has a part of large layers, and ranks add or gather what they computed.

A graph with collectives is compiled to sections, which run one after the other with exchanges in between.
"""

import hashlib
import itertools
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed import _functional_collectives as functional
from torch.nn import functional as F

from weir.arrays import Array
from weir.distributed import folders
from weir.distributed.groups import Ranks, hash_tensors, to_tensor
from weir.distributed.reductions import RankOrder
from weir.programs import Signature, Step
from weir.runtime import Entry, Error, to_host
from weir.sections import Collective, read_collective
from weir.torch.collectives import SHARDING, Flat, Sharding

NARROW = (torch.float16, torch.bfloat16)  # added in f32
ADDING = ("all_reduce", "reduce_scatter")


class ColumnLinear(nn.Module):
    """A linear layer of which each rank computes some of the outputs.

    Its outputs differ by rank, so behind it come ops on single outputs, or on heads, and then a `RowLinear`.
    """

    def __init__(self, linear: nn.Linear, *, parts: int = 1, heads: int | None = None,
                 group: dist.ProcessGroup | None = None):
        """Takes this rank's part of a layer, which all ranks have with the same values.

        `parts`: the number of layers that are one: 3 for queries, keys and values. Each rank has a part of each.
        `heads`: the number of heads of each layer, which stay whole.
        Errors: ValueError if the outputs, or the heads, do not divide among the ranks.
        """
        super().__init__()
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        if linear.out_features % (parts * (heads or 1)):
            raise ValueError(f"{linear.out_features} outputs do not divide among {parts} parts of {heads or 1} heads")
        if heads is not None and heads % size:
            raise ValueError(f"{heads} heads do not divide among {size} ranks")
        sharding = Sharding(0, size, parts)
        self.weight = nn.Parameter(sharding.cut(linear.weight.detach(), rank), linear.weight.requires_grad)
        self.bias = None
        if linear.bias is not None:
            self.bias = nn.Parameter(sharding.cut(linear.bias.detach(), rank), linear.bias.requires_grad)
        setattr(self, SHARDING, {"weight": sharding, "bias": sharding})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns this rank's outputs for an input that all ranks have."""
        return F.linear(x, self.weight, self.bias)


class RowLinear(nn.Module):
    """A linear layer of which each rank has some of the inputs, as a `ColumnLinear` gives them. The ranks add what they
    make of these; the bias, which all have, comes behind the sum."""

    def __init__(self, linear: nn.Linear, *, group: dist.ProcessGroup | None = None):
        """Takes this rank's part of a layer, which all ranks have with the same values.

        Errors: ValueError if the inputs do not divide among the ranks.
        """
        super().__init__()
        sharding = Sharding(1, dist.get_world_size(group))
        self._group = (group or dist.group.WORLD).group_name
        self.weight = nn.Parameter(sharding.cut(linear.weight.detach(), dist.get_rank(group)), linear.weight.requires_grad)
        self.bias = linear.bias
        setattr(self, SHARDING, {"weight": sharding})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the outputs, on all ranks, for this rank's inputs. PyTorch itself has no gradient of the sum."""
        total = functional.all_reduce(F.linear(x, self.weight), "sum", self._group)
        return total if self.bias is None else total + self.bias


Results = Callable[[], dict[Collective, torch.Tensor]]  # waits for what collectives give


class TensorParallel:
    """A training step in sections, one graph that the ranks of a process group compute together.

    Each rank makes the same `weir.compile_step` of its part of the module, and calls this instead. One thread may call it.
    """

    _has_own_batches = False  # whether arguments of a call differ by rank

    def __init__(self, step: Step, group: dist.ProcessGroup | DeviceMesh | None = None):
        """Checks that all ranks have the same step, and the same values of what they share.

        `group`: that of the module's collectives, by default the whole world. It has a backend for host memory. For a step
                 with `replicas` a mesh of all ranks with two dimensions: the replicas, and the ranks of each.
        Errors: weir.Error, the same on every rank.
        """
        self._step, self._execution = step, step._execution
        is_mesh = isinstance(group, DeviceMesh)
        self._ranks = Ranks(None if is_mesh else group)  # all that take part
        problem = f"the mesh has {group.ndim} dimensions and {group.size()} of {self._ranks.size} ranks; give one of " \
                  "all ranks with two dimensions, the replicas first" \
            if is_mesh and (group.ndim != 2 or group.size() != self._ranks.size) else ""
        self._ranks.agree(problem, "comparing the ranks")
        self._mesh = group if is_mesh else DeviceMesh.from_group(self._ranks.group, "cpu")
        # Ranks along each axis of the step's grid.
        self._axes = [Ranks(group.get_group(axis)) for axis in (0, 1)] if is_mesh else [self._ranks]
        self._axes = self._axes[-1:] if step._num_replicas == 1 else self._axes
        # Of each rank the first one of its replica, which has the same batch.
        own = dist.get_process_group_ranks(self._axes[-1].group)[0] if is_mesh else 0
        self._firsts = [row[0] for row in self._ranks.share([own], "comparing the ranks")]
        self._ranks.agree(self._find_problem(), "comparing the ranks")
        self._ranks.require_same([step._path.read_bytes()], "artifacts", "compile one module with the same options, for "
                                 "processors or GPUs of one kind")
        shared = [name for name in self._execution.held if not self._is_part(name)]
        self._ranks.require_same([*shared, self._hash(shared)], "values of what all share",
                                 "seed them alike, or load one checkpoint")
        if len(self._axes) > 1:
            self._compare_replicas([name for name in self._execution.held if name not in shared])
        self._execution.exchange = self._exchange

    @property
    def step(self) -> Step:
        """The step of this rank. Call this object in its place."""
        return self._step

    @property
    def steps(self) -> int:
        """The number of steps done, including those before a loaded checkpoint."""
        return self._step.steps

    def __call__(self, *arguments: Any, **named: Any) -> Array:
        """Does one step and returns the loss. The arguments are those of a call of the step, the same on every rank.

        Errors: weir.Error, on every rank, if the arguments of one do not fit, or are others than rank 0's; FaultError if a
                rank is lost. What a rank holds is then undefined.
        """
        signature = self._step._signatures[0]
        return self._call(self._step, self._step.entries[signature.entry], signature, arguments, named)

    def accumulate(self, *arguments: Any, **named: Any) -> Array:
        """Adds the gradients of a microbatch to those that the next step takes, and returns the loss.

        Errors: those of a call; ValueError if the step was compiled without `accumulate=True`.
        """
        if not self._step._accumulator:
            raise ValueError("the step was compiled without accumulate=True")
        return self._call(self._step.accumulate, self._step._accumulator, self._step._signatures[0], arguments, named)

    def predict(self, *arguments: Any, **named: Any) -> Any:
        """Returns what the module would return in evaluation mode. Errors: those of a call, and of `Step.predict`."""
        if not self._step._predictor:
            raise ValueError("the step was compiled without predict=EXAMPLE, an example of a call")
        signature = self._step._predictor
        return self._call(self._step.predict, self._step.entries[signature.entry], signature, arguments, named)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Returns what the step's `state_dict` does, with whole parameters, on every rank. Errors: FaultError."""
        values = self._step.state_dict()
        for name, value in values.items():
            if sharding := self._find_sharding(name):
                with self._ranks.guard(f"gathering {name}"):
                    values[name] = sharding.join(gather(self._axes[-1], value))
        return values

    def load_state_dict(self, values: Mapping[str, Any]) -> None:
        """Sets parameters and the module's state by name, each whole; a rank takes its parts. State of the optimizer
        starts anew where that starts as a parameter.

        Errors: ValueError for missing names, and for other shapes or types; nothing is changed then.
        """
        rank = self._axes[-1].rank
        self._step.load_state_dict({
            name: sharding.cut(torch.as_tensor(value), rank) if (sharding := self._find_sharding(name)) else value
            for name, value in values.items()})

    def save(self, folder: str | os.PathLike) -> pathlib.Path:
        """Writes a checkpoint of all ranks as `step-N` in `folder`, which all ranks must see, and returns its path.

        It is there as a whole or not at all. `load` may read it with another number of ranks.
        Errors: OSError; weir.Error, on every rank, if one cannot write; FaultError if a rank is lost.
        """
        self._step._check_steps()
        values = {name: self._distribute(name, to_tensor(value)) for name, value in self._execution.read().items()}
        return folders.save(self._ranks, pathlib.Path(folder), values,
                            {"steps": self._step.steps, "accumulated": self._step._accumulated})

    def load(self, folder: str | os.PathLike) -> int:
        """Reads the last whole checkpoint in `folder`, and returns its number of steps; 0 if there is none.

        Errors: weir.CheckpointError, on every rank, if it belongs to another step; FaultError if a rank is lost.
        """
        own = {name: to_tensor(numpy.empty(tensor.shape, tensor.dtype)) for name, tensor in self._execution.held.items()}
        found = folders.load(self._ranks, pathlib.Path(folder),
                             lambda _: {name: self._distribute(name, value) for name, value in own.items()})
        if found is None:
            return 0
        self._execution.hold({name: value.numpy().view(self._execution.held[name].dtype) for name, value in own.items()})
        self._step._steps, self._step._accumulated = found[1]["steps"], found[1]["accumulated"]
        return self._step.steps

    def _distribute(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Returns a value, or the whole one of which this rank has a part, on the same bytes."""
        part = self._find_part(name)
        return self._step._sharding[part].distribute(value, self._mesh) if part else value

    def _find_sharding(self, name: str) -> Sharding | Flat | None:
        """Returns how a value of the module is shared out, None if all ranks have it."""
        return self._step._sharding.get(self._step._names.get(name, name))

    def _find_problem(self) -> str:
        """Returns why this rank cannot take part, or ""."""
        step, size = self._step, self._axes[-1].size
        if not self._execution.sections:
            return "the step has no collectives; put ColumnLinear and RowLinear in its module"
        if not self._has_own_batches and any(isinstance(each, Flat) for each in step._sharding.values()):
            return "the step's ranks have batches of their own; call it by FullySharded"
        if step._num_ranks != size:
            return f"the step is for {step._num_ranks} ranks, and the group has {size}"
        if step._num_replicas != (replicas := self._ranks.size // size):
            return f"the step has {step._num_replicas} replicas, and the ranks have {replicas}; compile it with " \
                   "replicas=N, and give TensorParallel the mesh"
        if step._check_values:
            return "the step checks values, which one process does by itself; compile it without check_values"
        return ""

    def _hash(self, names: list[str]) -> str:
        values = self._execution.read(names)
        return hash_tensors(to_tensor(values[name]) for name in names)

    def _compare_replicas(self, parts: list[str]) -> None:
        """Checks that the replicas have the same values of parts. Errors: Error on every rank."""
        digest = int(self._hash(parts)[:14], 16)
        rows = self._axes[0].share([digest], "comparing the replicas")
        problem = "replicas have different values of parts; seed them alike, or load one checkpoint"
        self._ranks.agree(problem if any(row != rows[0] for row in rows) else "", "comparing the replicas")

    def _find_part(self, name: str) -> str | None:
        """Returns the parameter of which a value is a part, or the optimizer's state of a part; None if all share it."""
        return next((part for part in self._step._sharding if name == part or name.startswith(f"{part}.")), None)

    def _is_part(self, name: str) -> bool:
        """Whether a value may differ by rank."""
        return self._find_part(name) is not None

    def _call(self, function: Callable, entry: Entry, signature: Signature, arguments: tuple, named: dict) -> Any:
        """Calls a function of the step, which runs an entry, once all ranks have the same arguments for it."""
        step, problem, what = self._step, "", f"step {self.steps + 1}"
        batch, rest = hashlib.sha256(), hashlib.sha256()
        taken = {tensor.name for tensor in entry.arguments}
        try:
            step._check_oldest()
            given = {name: value for name, value in named.items() if name not in step._rates}
            rates = {name: named[name] for name in named.keys() - given.keys()}
            bound = signature.bind(arguments, given)
            own = {name: value for name, value in (step._evaluate(dict(rates)) | {"microbatches": 1.0}).items()
                   if name in taken}
            problem = step._find_mismatch(entry, bound | own)
            for digest, values in ((batch, {} if self._has_own_batches else bound), (rest, own)):
                for name, value in sorted(values.items()):
                    digest.update(name.encode() + numpy.ascontiguousarray(to_host(value)).tobytes())
        except (Error, TypeError, ValueError) as error:
            problem = str(error)
        rows = self._ranks.agree(problem, what, [step.steps, step._accumulated,
                                                 *(int.from_bytes(each.digest()[:7], "big") for each in (rest, batch))])
        for rank, (row, first) in enumerate(zip(rows, self._firsts)):
            if row[:-1] != rows[0][:-1] or row[-1] != rows[first][-1]:
                raise Error(f"rank {rank} has other arguments than rank {first}, or is at another step; give all the same")
        with self._ranks.guard(what):
            return function(*arguments, **named)

    def _exchange(self, sent: Mapping[str, Array]) -> Callable[[], dict[str, numpy.ndarray]]:
        """Begins to compute collectives of what each rank gives, and returns what waits for their results."""
        given = {read_collective(name): _read(array) for name, array in sent.items()}
        tags = itertools.count(step=2)
        begun = [*self._add_all({key: value for key, value in given.items() if key.kind == "all_reduce"}, tags),
                 *self._scatter_all({key: value for key, value in given.items() if key.kind == "reduce_scatter"}, tags)]
        begun += [self._compute(key, value) for key, value in given.items() if key.kind not in ADDING]

        def finish() -> dict[str, numpy.ndarray]:
            results: dict[Collective, torch.Tensor] = {}
            for each in begun:
                results |= each()
            return {key.received: (value.view(torch.uint16) if value.dtype == torch.bfloat16 else value).contiguous()
                    .numpy() for key, value in results.items()}

        return finish

    def _add_all(self, given: Mapping[Collective, torch.Tensor], tags: Iterator[int]) -> Iterator[Results]:
        """Begins sums, those that are alike by one exchange."""
        for along, alike in _list_alike(given):
            add = _add(self._axes[along], torch.cat([value.reshape(-1) for value in alike.values()]), None, next(tags))

            def finish(alike=alike, add=add) -> dict[Collective, torch.Tensor]:
                parts = add().split([value.numel() for value in alike.values()])
                return {key: part.view(value.shape) for part, (key, value) in zip(parts, alike.items())}

            yield finish

    def _scatter_all(self, given: Mapping[Collective, torch.Tensor], tags: Iterator[int]) -> Iterator[Results]:
        """Begins sums of which this rank gets its part, those that are alike by one exchange."""
        for along, alike in _list_alike(given):
            rank, size = self._axes[along].rank, self._axes[along].size
            # Of each rank its parts of all sums.
            pieces = [value.unflatten(key.axis, (size, value.shape[key.axis] // size)).movedim(key.axis, 0)
                      for key, value in alike.items()]
            rows = torch.cat([piece.flatten(1) for piece in pieces], 1)
            count = rows.shape[1]
            add = _add(self._axes[along], rows, count, next(tags))
            own, shapes = slice(count * rank, count * (rank + 1)), [piece.shape[1:] for piece in pieces]

            def finish(alike=alike, add=add, own=own, shapes=shapes) -> dict[Collective, torch.Tensor]:
                parts = add()[own].split([shape.numel() for shape in shapes])
                return {key: part.reshape(shape) for key, part, shape in zip(alike, parts, shapes)}

            yield finish

    def _compute(self, collective: Collective, value: torch.Tensor) -> Results:
        axis, ranks = collective.axis, self._axes[collective.along]
        if collective.kind == "all_slice":
            return lambda: {collective: value.chunk(ranks.size, axis)[ranks.rank].clone()}
        if collective.kind == "all_gather":
            parts = begin_gather(ranks, value)
            return lambda: {collective: torch.cat(parts(), axis)}
        raise Error(f"the artifact has the collective {collective.kind}, which this version does not know")


def _list_alike(given: Mapping[Collective, torch.Tensor]) -> Iterable[tuple[int, dict[Collective, torch.Tensor]]]:
    """Returns the values along one axis of the grid and of one type, each with that axis."""
    alike: dict[tuple, dict[Collective, torch.Tensor]] = {}
    for key, value in given.items():
        alike.setdefault((key.along, value.dtype), {})[key] = value
    return [(along, values) for (along, _), values in alike.items()]


def _add(ranks: Ranks, value: torch.Tensor, share: int | None, tag: int) -> Callable[[], torch.Tensor]:
    """Begins the sum over ranks, in their order, and returns what waits for it, as one row; with `share` only this rank's
    share of it is right.

    `value` is used up: the sum may have its bytes. `tag` and the number behind it belong to this sum alone.
    """
    total = value.reshape(-1).to(torch.float32 if value.dtype in NARROW else value.dtype)
    ends = None if share is None else [share * (rank + 1) for rank in range(ranks.size)]
    sums = RankOrder(ranks, total, ends, tag) if ranks.size > 1 and len(total) else None
    if sums:
        sums.begin((0, len(total)))

    def finish() -> torch.Tensor:
        if sums:
            sums.finish()
        return total.to(value.dtype)

    return finish


def gather(ranks: Ranks, value: torch.Tensor) -> list[torch.Tensor]:
    """Returns the values of all ranks."""
    return begin_gather(ranks, value)()


def begin_gather(ranks: Ranks, value: torch.Tensor) -> Callable[[], list[torch.Tensor]]:
    """Begins to gather the values of all ranks, and returns what waits for them. The value may not change until then."""
    if ranks.size == 1 or not value.numel():
        return lambda: [value] * ranks.size
    mine = value.contiguous().reshape(-1).view(torch.uint8)
    everyone = torch.empty(ranks.size * len(mine), dtype=torch.uint8)
    sent = mine, dist.all_gather_into_tensor(everyone, mine, group=ranks.group, async_op=True)

    def finish() -> list[torch.Tensor]:
        sent[1].wait()
        return [part.view(value.dtype).view(value.shape) for part in everyone.chunk(ranks.size)]

    return finish


def _read(array: Array) -> torch.Tensor:
    """Returns a result as a tensor. An index out of range is told later: here it would stop one rank alone."""
    array._buffer.wait()
    if (mapped := array._buffer.map()) is not None and array._tensor.bytes:
        value = numpy.frombuffer(mapped, array.dtype).reshape(array.shape)
    else:
        value = numpy.empty(array.shape, array.dtype)
        array._buffer.read(value)
    made = to_tensor(value)
    return made.view(torch.bfloat16) if array._tensor.spelling == "BF16" else made
