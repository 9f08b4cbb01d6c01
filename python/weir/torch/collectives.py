"""PyTorch's functional collectives in graphs, and parameters of which each rank has a part."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from torch import nn

from weir.graphs import ExportError
from weir.torch.operators import COLLECTIVES

SHARDING = "weir_sharding"  # an attribute of modules: a Sharding or a Flat by the name of each parameter that is a part
UNIT = "weir_unit"  # an attribute of modules that are units: what their parameters have as a unit


@dataclasses.dataclass(frozen=True)
class Sharding:
    """A rank's part of a parameter: dimension `axis` is cut in `parts`, each of which is shared out among `ranks`."""

    axis: int
    ranks: int
    parts: int = 1
    unit: ClassVar[str] = ""

    def cut(self, whole: torch.Tensor, rank: int) -> torch.Tensor:
        """Returns the part of a rank. Errors: ValueError if the dimension does not divide."""
        size, count = whole.shape[self.axis], self.parts * self.ranks
        if size % count:
            raise ValueError(f"{size} of dimension {self.axis} do not divide among {self.ranks} ranks"
                             + (f", in {self.parts} parts" if self.parts > 1 else ""))
        return torch.cat(whole.chunk(count, self.axis)[rank::self.ranks], self.axis)

    def join(self, shards: list[torch.Tensor]) -> torch.Tensor:
        """Returns the whole of all ranks' parts."""
        pieces = zip(*(shard.chunk(self.parts, self.axis) for shard in shards))
        return torch.cat([piece for part in pieces for piece in part], self.axis)

    def distribute(self, shard: torch.Tensor, mesh: "torch.distributed.device_mesh.DeviceMesh") -> torch.Tensor:
        """Returns a DTensor of the whole on this rank's bytes, which is shared out along the last dimension of the mesh.
        Several parts are a dimension of their own, so that each is shared out evenly."""
        from torch.distributed.tensor import DTensor, Replicate, Shard

        axis = self.axis
        if self.parts > 1:
            shard, axis = shard.unflatten(axis, (self.parts, -1)), axis + 1
        return DTensor.from_local(shard, mesh, [*[Replicate()] * (mesh.ndim - 1), Shard(axis)], run_check=False)


@dataclasses.dataclass(frozen=True)
class Flat:
    """A rank's part of a parameter of any shape: of its elements in a row, with zeros behind them so that all have as many.

    Before it is read, it is gathered, together with others of its unit.
    """

    shape: tuple[int, ...]
    ranks: int
    unit: str

    @property
    def length(self) -> int:
        """The number of elements of a part."""
        return -(-math.prod(self.shape) // self.ranks)

    def cut(self, whole: torch.Tensor, rank: int) -> torch.Tensor:
        """Returns the part of a rank. Errors: ValueError if `whole` has another shape."""
        if tuple(whole.shape) != self.shape:
            raise ValueError(f"the value has shape {list(whole.shape)}, expected {list(self.shape)}")
        part = torch.zeros(self.length, dtype=whole.dtype)
        own = whole.reshape(-1)[self.length * rank:self.length * (rank + 1)]
        part[:len(own)] = own
        return part

    def join(self, parts: list[torch.Tensor]) -> torch.Tensor:
        """Returns the whole of all ranks' parts."""
        return torch.cat(parts)[:math.prod(self.shape)].view(self.shape)

    def gather(self, part: torch.Tensor) -> torch.Tensor:
        """Returns the whole, in a graph."""
        row = torch.ops.weir.all_gather(part, self.ranks, 0)
        count = math.prod(self.shape)
        return (row if count == self.length * self.ranks else row[:count]).view(self.shape)


def refuse_own_collectives(program: torch.export.ExportedProgram) -> None:
    """Refuses collectives that a module calls itself. Errors: ExportError."""
    if any(str(node.target).startswith("_c10d_functional.") for node in program.graph.nodes):
        raise ExportError("the module exchanges values with other ranks, and has parameters by fully_shard; leave one out: "
                          "ranks of the one have the same batches, and those of the other their own")


class Collectives:
    """Decompositions of functional collectives into Weir's operators, which have the number of ranks, and the axis of the
    grid that these are along, in place of a group.

    Errors: ExportError for a reduction that is no sum, and for a second group.
    """

    def __init__(self, axis: int) -> None:
        self._group, self._axis = "", axis

    def get_table(self) -> dict[torch._ops.OpOverload, Callable]:
        if not torch.distributed.is_available():
            return {}
        functional = torch.ops._c10d_functional
        return {
            functional.all_reduce.default: lambda x, how, group: torch.ops.weir.all_reduce(x, *self._find(group, how)),
            functional.all_gather_into_tensor.default:
                lambda x, ranks, group: torch.ops.weir.all_gather(x, *self._find(group)),
            functional.reduce_scatter_tensor.default:
                lambda x, how, ranks, group: torch.ops.weir.reduce_scatter(x, *self._find(group, how)),
            functional.wait_tensor.default: lambda x: x.clone(),
        }

    def _find(self, group: str, how: str = "sum") -> tuple[int, int]:
        """Returns the number of ranks of a group, and its axis."""
        if how != "sum":
            raise ExportError(f"the module has a collective that computes {how!r}; ranks add, so use \"sum\"")
        if self._group not in ("", group):
            raise ExportError("the module has collectives of two process groups; use one")
        self._group = group
        return torch.distributed.distributed_c10d._resolve_process_group(group).size(), self._axis


def find_sharding(module: nn.Module | Callable, parameters: Mapping[str, torch.Tensor]) -> dict[str, Sharding | Flat]:
    """Returns how parameters are parts, by their names among `parameters`. Units have the names of their modules."""
    parts = dict(module.named_modules()) if isinstance(module, nn.Module) else {}
    found = {id(getattr(part, name)): sharding for part in parts.values()
             for name, sharding in getattr(part, SHARDING, {}).items() if getattr(part, name) is not None}
    units = {getattr(part, UNIT): name or "root" for name, part in parts.items() if hasattr(part, UNIT)}
    known = {name: found[id(value)] for name, value in parameters.items() if id(value) in found}
    for each in known.values():
        if each.unit:
            units.setdefault(each.unit, f"unit.{len(units)}")
    return {name: dataclasses.replace(each, unit=units[each.unit]) if each.unit else each for name, each in known.items()}


def count_ranks(program: torch.export.ExportedProgram, sharding: Mapping[str, Sharding | Flat], replicas: int) -> int:
    """Returns the number of ranks that a graph is for, of replicas those of one; 0 if it is for one process.

    Errors: ExportError if parts and collectives are for different numbers, or there are replicas of one process.
    """
    counts = {node.args[1] for node in program.graph.nodes if node.target in COLLECTIVES and
              node.args[2] == find_axis(replicas)}
    counts |= {each.ranks for each in sharding.values()}
    if len(counts) > 1:
        raise ExportError(f"parameters and collectives are for {' and '.join(map(str, sorted(counts)))} ranks; use one "
                          "process group")
    if replicas > 1 and not counts:
        raise ExportError("the module has no collectives, of which there could be replicas; put ColumnLinear and RowLinear "
                          "in it, or use weir.distributed.DataParallel")
    return next(iter(counts), 0)


def find_axis(replicas: int) -> int:
    """Returns the axis of the grid along which ranks share out a module: replicas of that are along another before it."""
    return int(replicas > 1)
