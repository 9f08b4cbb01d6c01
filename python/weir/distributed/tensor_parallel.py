"""Tensor parallel training: each rank has a part of large layers, and ranks add or gather what they computed.

A graph with collectives is compiled to sections, which run one after the other with exchanges in between.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional
from torch.nn import functional as F

from weir.arrays import Array
from weir.distributed.groups import Ranks, hash_tensors
from weir.distributed.reductions import RankOrder
from weir.programs import Signature, Step
from weir.runtime import Entry, Error, to_host
from weir.sections import Collective, read_collective
from weir.torch.collectives import SHARDING, Sharding

NARROW = (torch.float16, torch.bfloat16)  # added in f32


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


class TensorParallel:
    """A training step in sections, one graph that the ranks of a process group compute together.

    Each rank makes the same `weir.compile_step` of its part of the module, and calls this instead. One thread may call it.
    """

    _has_own_batches = False  # whether arguments of a call differ by rank

    def __init__(self, step: Step, group: dist.ProcessGroup | None = None):
        """Checks that all ranks have the same step, and the same values of what they share.

        `group`: that of the module's collectives, by default the whole world. It has a backend for host memory.
        Errors: weir.Error, the same on every rank.
        """
        self._step, self._ranks, self._execution = step, Ranks(group), step._execution
        self._ranks.agree(self._find_problem(), "comparing the ranks")
        self._ranks.require_same([step._path.read_bytes()], "artifacts", "compile one module with the same options, for "
                                 "processors or GPUs of one kind")
        shared = [name for name in self._execution.held if not self._is_part(name)]
        values = self._execution.read(shared)
        self._ranks.require_same([*shared, hash_tensors(_to_tensor(values[name]) for name in shared)],
                                 "values of what all share", "seed them alike, or load one checkpoint")
        self._execution.exchange = self._exchange

    @property
    def step(self) -> Step:
        """The step of this rank. Call this object in its place."""
        return self._step

    @property
    def steps(self) -> int:
        """The number of steps done."""
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
                    values[name] = sharding.join(self._gather(value))
        return values

    def load_state_dict(self, values: Mapping[str, Any]) -> None:
        """Sets parameters and the module's state by name, each whole; a rank takes its parts. State of the optimizer
        starts anew where that starts as a parameter.

        Errors: ValueError for missing names, and for other shapes or types; nothing is changed then.
        """
        self._step.load_state_dict({
            name: sharding.cut(torch.as_tensor(value), self._ranks.rank) if (sharding := self._find_sharding(name)) else value
            for name, value in values.items()})

    def _find_sharding(self, name: str) -> Sharding | None:
        """Returns how a value of the module is shared out, None if all ranks have it."""
        return self._step._sharding.get(self._step._names.get(name, name))

    def _find_problem(self) -> str:
        """Returns why this rank cannot take part, or ""."""
        step = self._step
        if not self._execution.sections:
            return "the step has no collectives; put ColumnLinear and RowLinear in its module"
        if step._private and not self._has_own_batches:
            return "the step's ranks have batches of their own; call it by FullySharded"
        if step._num_ranks != self._ranks.size:
            return f"the step is for {step._num_ranks} ranks, and the group has {self._ranks.size}"
        if step._check_values:
            return "the step checks values, which one process does by itself; compile it without check_values"
        return ""

    def _is_part(self, name: str) -> bool:
        """Whether a value differs by rank: a part of a parameter, or the optimizer's state of one."""
        return any(name == part or name.startswith(f"{part}.") for part in self._step._sharding)

    def _call(self, function: Callable, entry: Entry, signature: Signature, arguments: tuple, named: dict) -> Any:
        """Calls a function of the step, which runs an entry, once all ranks have the same arguments for it."""
        step, digest, problem, what = self._step, hashlib.sha256(), "", f"step {self.steps + 1}"
        taken = {tensor.name for tensor in entry.arguments}
        try:
            step._check_oldest()
            given = {name: value for name, value in named.items() if name not in step._rates}
            rates = {name: named[name] for name in named.keys() - given.keys()}
            bound = signature.bind(arguments, given)
            own = {name: value for name, value in (step._evaluate(dict(rates)) | {"microbatches": 1.0}).items()
                   if name in taken}
            problem = step._find_mismatch(entry, bound | own)
            for name, value in sorted((own if self._has_own_batches else bound | own).items()):
                digest.update(name.encode() + numpy.ascontiguousarray(to_host(value)).tobytes())
        except (Error, TypeError, ValueError) as error:
            problem = str(error)
        rows = self._ranks.agree(problem, what, [step.steps, step._accumulated,
                                                 int.from_bytes(digest.digest()[:7], "big")])
        if odd := [rank for rank, row in enumerate(rows) if row != rows[0]]:
            raise Error(f"rank {odd[0]} has other arguments than rank 0, or is at another step; give all the same")
        with self._ranks.guard(what):
            return function(*arguments, **named)

    def _exchange(self, sent: Mapping[str, Array]) -> dict[str, numpy.ndarray]:
        """Returns the results of collectives, by the names of what each rank gives."""
        received = {}
        for name, array in sent.items():
            collective = read_collective(name)
            value = _to_tensor(array.numpy(), array._tensor.spelling)
            result = self._compute(collective, value).contiguous()
            received[collective.received] = (result.view(torch.uint16) if result.dtype == torch.bfloat16
                                             else result).numpy()
        return received

    def _compute(self, collective: Collective, value: torch.Tensor) -> torch.Tensor:
        axis, rank, size = collective.axis, self._ranks.rank, self._ranks.size
        if collective.kind == "all_slice":
            return value.chunk(size, axis)[rank]
        if collective.kind == "all_gather":
            return torch.cat(self._gather(value), axis)
        if collective.kind == "all_reduce":
            return self._add(value, None).view(value.shape)
        if collective.kind == "reduce_scatter":
            pieces = value.chunk(size, axis)
            count = pieces[0].numel()
            total = self._add(torch.cat([piece.reshape(-1) for piece in pieces]), count)
            return total[count * rank:count * (rank + 1)].view(pieces[0].shape)
        raise Error(f"the artifact has the collective {collective.kind}, which this version does not know")

    def _add(self, value: torch.Tensor, share: int | None) -> torch.Tensor:
        """Returns the sum over the ranks, in their order, as one row; with `share` only this rank's share of it is right."""
        total = value.reshape(-1).to(torch.float32 if value.dtype in NARROW else value.dtype, copy=True)
        if self._ranks.size > 1 and len(total):
            ends = None if share is None else [share * (rank + 1) for rank in range(self._ranks.size)]
            sums = RankOrder(self._ranks, total, ends)
            sums.begin((0, len(total)))
            sums.finish()
        return total.to(value.dtype)

    def _gather(self, value: torch.Tensor) -> list[torch.Tensor]:
        """Returns the values of all ranks."""
        if self._ranks.size == 1 or not value.numel():
            return [value] * self._ranks.size
        mine = value.contiguous().reshape(-1).view(torch.uint8)
        everyone = torch.empty(self._ranks.size * len(mine), dtype=torch.uint8)
        dist.all_gather_into_tensor(everyone, mine, group=self._ranks.group)
        return [part.view(value.dtype).view(value.shape) for part in everyone.chunk(self._ranks.size)]


def _to_tensor(value: numpy.ndarray, spelling: str = "") -> torch.Tensor:
    """Returns an array as a tensor on a copy of its bytes."""
    made = torch.from_numpy(numpy.array(value))
    return made.view(torch.bfloat16) if spelling == "BF16" else made
