"""Data parallel training of which each rank holds a part of every parameter, and of the optimizer's state (ZeRO-3, FSDP).

The graph gathers parameters unit by unit, before the ops that read them, and scatters the sums of gradients. Sections and
exchanges are those of tensor parallel; batches differ by rank.
"""

import itertools
import math
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping

import numpy
import torch
import torch.distributed as dist
from torch import nn

from weir.distributed import folders
from weir.distributed.data_parallel import SEEDS
from weir.distributed.groups import Ranks, to_tensor
from weir.distributed.tensor_parallel import TensorParallel, begin_gather, gather
from weir.programs import Step
from weir.runtime import Buffer, Tensor
from weir.torch.collectives import SHARDING, UNIT, Flat, Sharding

_PART = "_weir_part"  # an attribute of a parameter: the one that took its place, with its Flat
_units = itertools.count()


def fully_shard(module: nn.Module, *, group: dist.ProcessGroup | None = None) -> nn.Module:
    """Replaces the parameters of a module by this rank's parts, and returns the module. All ranks call it.

    They are one unit, which is gathered at once, without those that are parts already. So call it for each block first,
    and then for the whole module. Tied parameters belong to the first unit that has them. All ranks get the values of
    rank 0. PyTorch cannot call the module any more; `weir.compile_step` compiles it.
    Errors: weir.Error, the same on every rank, if the ranks have other parameters, or there are none left.
    """
    ranks = Ranks(group)
    found = [(part, key, value) for part in module.modules() for key, value in part._parameters.items()
             if value is not None and not isinstance(getattr(part, SHARDING, {}).get(key), Flat)]
    fresh = {id(value): value for _, _, value in found if not hasattr(value, _PART)}
    ranks.agree(_find_problem(module, found), "sharing out parameters")
    firsts = {id(value): index for index, (_, _, value) in reversed(list(enumerate(found)))}  # tells what is tied
    ranks.require_same([f"{key} {tuple(value.shape)} {value.dtype} {value.requires_grad} {firsts[id(value)]} "
                        f"{id(value) in fresh}" for _, key, value in found],
                       "parameters", "give fully_shard the same module")
    unit = f"{next(_units)}"
    setattr(module, UNIT, unit)
    for value in fresh.values():
        flat = Flat(tuple(value.shape), ranks.size, unit)
        with ranks.guard("sending the parameters"):
            whole = _send(ranks, value)
        part = nn.Parameter(flat.cut(whole, ranks.rank), value.requires_grad)
        setattr(value, _PART, (part, flat))
    for part, key, value in found:
        part._parameters[key], flat = getattr(value, _PART)
        setattr(part, SHARDING, getattr(part, SHARDING, {}) | {key: flat})
    return module


def _find_problem(module: nn.Module, found: list) -> str:
    if any(isinstance(each, Sharding) for part in module.modules() for each in getattr(part, SHARDING, {}).values()):
        return "the module has parts by ColumnLinear or RowLinear, and fully_shard would cut them again; leave one out"
    if not found:
        return "the module has no parameters that are not parts already"
    if empty := [key for _, key, value in found if not value.numel()]:
        return f"the parameter {empty[0]} has no elements to share out"
    return ""


def _send(ranks: Ranks, value: nn.Parameter) -> torch.Tensor:
    """Returns the value that rank 0 has."""
    whole = value.detach().cpu().contiguous()
    if ranks.size > 1:
        dist.broadcast(whole.reshape(-1).view(torch.uint8), group=ranks.group, group_src=0)
    return whole


class FullySharded(TensorParallel):
    """A training step of a module whose parameters `fully_shard` has shared out. The loss is the mean over the ranks.

    Each rank makes the same `weir.compile_step`, and calls this instead, with batches of its own. One thread may call it.
    """

    _has_own_batches = True

    def __init__(self, step: Step, group: dist.ProcessGroup | None = None):
        """Checks that all ranks have the same step, and gives them rank 0's buffers.

        `group`: that of `fully_shard`, by default the whole world. It has a backend for host memory.
        Errors: weir.Error, the same on every rank.
        """
        super().__init__(step, group)
        self._execution.gather = self._gather_parts
        if self._ranks.size > 1:
            values = self._execution.read(self._list_buffers())
            with self._ranks.guard("sending the buffers"):
                for value in values.values():
                    dist.broadcast(_to_bytes(value), group=self._ranks.group, group_src=0)
            self._execution.hold(values)

    def averages(self) -> dict[str, torch.Tensor]:
        """Returns the moving averages of the parameters, whole, on every rank.

        Errors: ValueError if the step was compiled without `ema`; FaultError.
        """
        averages = {name: torch.from_numpy(value) for name, value in self._step.averages().items()}
        with self._ranks.guard("gathering averages"):
            return {name: flat.join(gather(self._ranks, value)) if (flat := self._step._sharding.get(name)) else value
                    for name, value in averages.items()}

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
            return {key: to_tensor(numpy.empty(shape, tensor.dtype))
                    for name, tensor in self._execution.held.items()
                    for key, shape, _, _ in self._list_pieces(name, tensor, notes["ranks"])}

        found = folders.load(self._ranks, pathlib.Path(folder), choose)
        if found is None:
            return 0
        pieces, notes = found
        values = {}
        for name, tensor in self._execution.held.items():
            values[name] = numpy.zeros(tensor.shape, tensor.dtype)
            for key, _, target, source in self._list_pieces(name, tensor, notes["ranks"]):
                values[name][target] = pieces[key].numpy().view(tensor.dtype)[source]
        self._execution.hold(values)
        self._step._steps, self._step._accumulated = notes["steps"], notes["accumulated"]
        return notes["steps"]

    def _find_flat(self, name: str) -> Flat | None:
        """Returns how a parameter, or the optimizer's state of one, is shared out; None for all others."""
        flat = self._step._sharding.get(self._find_part(name))
        return flat if flat and self._execution.held[name].shape == (flat.length,) else None

    def _get_key(self, name: str, rank: int) -> str:
        """Returns the name of a value in a checkpoint."""
        return f"part{rank}.{name}" if self._find_flat(name) else f"rank{rank}.{name}" if self._is_part(name) else name

    def _list_pieces(self, name: str, tensor: Tensor, ranks: int) -> Iterator[tuple[str, tuple, slice, slice]]:
        """Yields the values of a checkpoint of some number of ranks that this rank needs for a value of its own: the key,
        the shape, where it goes, and the range of it."""
        if not (flat := self._find_flat(name)):
            yield self._get_key(name, min(self._ranks.rank, ranks - 1)), tensor.shape, ..., ...
            return
        length, begin = -(-math.prod(flat.shape) // ranks), flat.length * self._ranks.rank
        for rank in range(begin // length, min(ranks, -(-(begin + flat.length) // length))):
            first, last = max(begin, length * rank), min(begin + flat.length, length * (rank + 1))
            yield (self._get_key(name, rank), (length,), slice(first - begin, last - begin),
                   slice(first - length * rank, last - length * rank))

    def _list_buffers(self) -> list[str]:
        """Returns the state of the model itself, which each rank has for itself."""
        return [name for name in self._execution.held if name in self._step._private and name not in SEEDS]

    def _find_problem(self) -> str:
        if not any(isinstance(each, Flat) for each in self._step._sharding.values()):
            return "the step has no parameters of units; call weir.distributed.fully_shard before compile_step"
        return super()._find_problem()

    def _is_part(self, name: str) -> bool:
        return name in self._step._private or super()._is_part(name)

    def _gather_parts(self, wanted: list[tuple[int, str]]) -> Callable[[list[Buffer]], None]:
        """Begins to gather arguments of all ranks, each along a dimension, by one message, and returns what writes them
        to buffers."""
        mine = self._execution.read(list(dict.fromkeys(name for _, name in wanted)))
        gathered = begin_gather(self._ranks, torch.cat([_to_bytes(value) for value in mine.values()]))
        begins = dict(zip(mine, itertools.accumulate((value.nbytes for value in mine.values()), initial=0)))

        def finish(buffers: list[Buffer]) -> None:
            rows = [row.numpy() for row in gathered()]
            for (axis, name), buffer in zip(wanted, buffers):
                value, begin = mine[name], begins[name]
                parts = [row[begin:begin + value.nbytes].view(value.dtype).reshape(value.shape) for row in rows]
                buffer.wait()
                if not axis and (mapped := buffer.map()) is not None:
                    numpy.concatenate(parts, out=numpy.frombuffer(mapped, value.dtype).reshape(-1, *value.shape[1:]))
                else:
                    buffer.write(numpy.concatenate(parts, axis))

        return finish


def _to_bytes(value: numpy.ndarray) -> torch.Tensor:
    return torch.from_numpy(value.reshape(-1).view(numpy.uint8))
