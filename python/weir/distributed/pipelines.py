"""Stages of a pipeline that Weir computes, under the schedules of torch.distributed.pipelining."""

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.pipelining import Pipe
from torch.distributed.pipelining.stage import _PipelineStage
from torch.fx import Interpreter

from weir.distributed.cutting import split
from weir.distributed.groups import Ranks, hash_tensors
from weir.distributed.stage_programs import Record, StageProgram
from weir.graphs import ExportError
from weir.runtime import Device, Error, open_device
from weir.torch.calls import bind
from weir.torch.exporting import export
from weir.holes import SEED
from weir.torch.modules import Module


def stages(
    model: nn.Module,
    loss: Callable[..., torch.Tensor],
    split_points: Sequence[str],
    *,
    example: Sequence | Mapping,
    group: dist.ProcessGroup | None = None,
    device: str | Device = "auto",
    memory_limit: int | str | None = None,
    precision: str | None = None,
) -> "Stages":
    """Cuts a module into stages, of which each rank compiles its own.

    `loss`:         called as `loss(output, target)`; returns one float of rank 0.
    `split_points`: names of submodules, such as "blocks.2"; each begins a stage.
    `example`:      the arguments of a call with one microbatch, by name in a dict or in order in a tuple.
    `group`:        the process group of the pipeline, by default the whole world.
    `device`, `memory_limit`, `precision`: as for `weir.compile`.
    Errors: weir.torch.ExportError for split points that the module has not, or that are called several times.
    """
    return Stages(model, loss, split_points, example, Ranks(group), open_device(device), memory_limit, precision)


class Stages:
    """The stages of a module. `stage` makes those of this rank, for a schedule of torch.distributed.pipelining."""

    def __init__(self, model: nn.Module, loss: Callable, split_points: Sequence[str], example: Sequence | Mapping,
                 ranks: Ranks, device: Device, memory_limit: int | str | None, precision: str | None):
        self._ranks, self._device, self._options = ranks, device, (memory_limit, precision)
        self._loss, self._compiled_loss = loss, None
        problem = ""
        try:
            bound = bind(model, example)
            pipe = split(model, split_points, bound.args, bound.kwargs)
            self._calls = _trace_calls(pipe, bound.args, bound.kwargs)
        except (ExportError, TypeError) as error:
            problem = str(error)
        ranks.agree(problem, "comparing stages")
        # Graphs refer to the modules that have them, and so to the values of all stages; copies do not.
        self._info = dataclasses.replace(pipe.info(), graph=copy.deepcopy(pipe.split_gm.graph))
        self._parts = {index: pipe.get_stage_module(index) for index in range(pipe.num_stages)}  # not compiled yet
        # For the stages that are to be compiled. Of values under several names, such as tied embeddings, the first counts.
        self._own = dict(model.named_parameters(remove_duplicate=False)) | \
            dict(model.named_buffers(remove_duplicate=False))
        first: dict[int, str] = {}
        self._names = {name: first.setdefault(id(value), name) for name, value in self._own.items()}
        self._made: dict[int, tuple[StageModule, Any]] = {}
        self._users = self._find_tied()
        ranks.require_same([self._describe()], "stages", "cut one model, at the same points, with one example")
        ranks.require_same([hash_tensors(self._own[name] for name in self._users)], "values of tied parameters",
                           "seed them alike, or load one checkpoint")

    def __len__(self) -> int:
        """The number of stages."""
        return self._info.num_stages

    def stage(self, index: int) -> Any:
        """Compiles a stage and returns it as a stage of torch.distributed.pipelining, for its schedules.

        Its `submod.parameters()` are for an optimizer of PyTorch's. Asked again, the same program gets a new stage, for
        another schedule.
        Errors: those of `weir.compile`; ValueError if there is no such stage.
        """
        if not 0 <= index < len(self):
            raise ValueError(f"there is no stage {index}; there are {len(self)}")
        module = self._made[index][0] if index in self._made else self._compile(index)
        made = _Stage(module, index, self._info, torch.device("cpu"), self._ranks.group)
        made.dw_builder = module.take_weighting
        self._made.pop(index, None)
        self._made[index] = (module, made)  # the last one
        return made

    def _compile(self, index: int) -> "StageModule":
        arguments, _ = self._calls[index]
        part = self._restore(self._parts[index])
        exported = export(part, arguments, keep_buffers=True, copies=False)
        values = exported.parameters | exported.states
        if SEED in values:
            values[SEED] = torch.tensor(index)  # stages draw different numbers
        made = StageModule(StageProgram(exported, self._device, values, *self._options), copy.deepcopy(part.graph))
        # The program has values of its own.
        del self._parts[index]
        left = set().union(*map(_list_used, self._parts.values()))
        self._own = {name: value for name, value in self._own.items() if name in left}
        return made

    def _restore(self, part: nn.Module) -> nn.Module:
        """Gives a stage the module's own values in place of copies, and takes those that it does not use."""
        used = _list_used(part)
        for name in [name for name, _ in (*part.named_parameters(remove_duplicate=False),
                                          *part.named_buffers(remove_duplicate=False))]:
            path, _, key = name.rpartition(".")
            owner = part.get_submodule(path)
            for place in (owner._parameters, owner._buffers):
                if key in place and name not in used:
                    del place[key]
                elif key in place and name in self._own:
                    place[key] = self._own[name]
        return part

    def loss(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Computes the loss of a microbatch, on the device; it is the `loss_fn` of a schedule."""
        if isinstance(output, FakeTensor) or output.device.type == "meta":
            return self._loss(output, target)
        if self._compiled_loss is None:
            self._compiled_loss = Module(_Loss(self._loss), (output.detach(), target), device=self._device,
                                         precision=self._options[1])
        return self._compiled_loss(output, target)

    def reduce_tied(self) -> None:
        """Gives parameters that several stages share the sum of their gradients, in the order of the stages.

        Call it on every rank after each step of the schedule, before the optimizer's. It does nothing if none is shared.
        Errors: FaultError if a rank is lost.
        """
        if not self._users:
            return
        if not self._made:
            raise Error("this rank has no stage; make it by stage() before")
        places = list(self._made.values())[-1][1].stage_index_to_group_rank  # which its schedule has set
        for name, users in self._users.items():
            own = {index: self._find_gradient(index, name) for index in users if places[index] == self._ranks.rank}
            with self._ranks.guard(f"adding the gradients of {name}"):
                self._add_tied(own, users, places)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Returns copies of the parameters and the state of this rank's stages, by their names in the module."""
        found: dict[str, torch.Tensor] = {}
        for module, _ in self._made.values():
            found |= {name: value for name, value in module.read().items() if name in self._names}
        return found

    def load_state_dict(self, values: Mapping[str, torch.Tensor]) -> None:
        """Sets the parameters and the state of this rank's stages, by their names in the module.

        Errors: ValueError for missing names, and for other shapes or types.
        """
        own = {name for module, _ in self._made.values() for name in module.read() if name in self._names}
        if missing := sorted(own - values.keys()):
            raise ValueError(f"there is no value for {', '.join(missing[:3])}")
        for module, _ in self._made.values():
            module.write(values)

    def _describe(self) -> str:
        """Returns what is the same on all ranks, if they have one model."""
        graphs = [str(self._info.graph), str(self._users)]
        for part in self._parts.values():
            used = _list_used(part)
            graphs.append(str(part.graph) + str([(name, tuple(value.shape), value.dtype, value.requires_grad)
                                                 for name, value in part.named_parameters() if name in used]))
        return "\n".join(graphs)

    def _find_tied(self) -> dict[str, list[int]]:
        """Returns the stages that use each trained parameter that several use, in order."""
        users: dict[str, list[int]] = {}
        for index, part in self._parts.items():
            used = {self._names[name] for name in _list_used(part) if name in self._names}
            for name in sorted(used):
                if (value := self._own[name]).is_floating_point() and value.requires_grad:
                    users.setdefault(name, []).append(index)
        return {name: found for name, found in users.items() if len(found) > 1}

    def _find_gradient(self, index: int, name: str) -> torch.Tensor:
        gradient = self._made[index][0].find_gradient(self._names, name)
        if gradient is None:
            raise Error(f"{name} of stage {index} has no gradient; call reduce_tied after a step of the schedule")
        return gradient

    def _add_tied(self, gradients: Mapping[int, torch.Tensor], users: list[int], places: Mapping[int, int]) -> None:
        """Adds gradients at the first stage, in the order of the stages, and gives the sum to the others."""
        home, *others = users
        me, group = self._ranks.rank, self._ranks.group
        for index in others:
            if places[home] == me:
                other = gradients.get(index)
                if other is None:
                    other = torch.empty_like(gradients[home])
                    dist.recv(other, group=group, group_src=places[index])
                gradients[home].add_(other)
            elif index in gradients:
                dist.send(gradients[index], group=group, group_dst=places[home])
        for index in others:
            if places[home] != me and index in gradients:
                dist.recv(gradients[index], group=group, group_src=places[home])
            elif places[home] == me and index in gradients:
                gradients[index].copy_(gradients[home])
            elif places[home] == me:
                dist.send(gradients[home], group=group, group_dst=places[index])


class _Stage(_PipelineStage):
    """A stage of torch.distributed.pipelining, also beside its neighbour on one rank, as V-shaped schedules have them."""

    def _get_init_p2p_neighbors_ops(self) -> list[dist.P2POp]:
        # A rank cannot connect to itself, and need not.
        return [op for op in super()._get_init_p2p_neighbors_ops() if op.group_peer != self.group_rank]


class StageModule(nn.Module):
    """A stage as a module of PyTorch's: calls are differentiable, and `take_weighting` defers the parameters' gradients."""

    def __init__(self, program: StageProgram, graph: torch.fx.Graph):
        super().__init__()
        self._program = program
        self.graph = graph  # whose inputs and outputs PyTorch's stage reads
        for name, weight in program.weights.items():
            *path, key = name.split(".")
            owner = self
            for part in path:
                if part not in owner._modules:
                    owner.add_module(part, nn.Module())
                owner = owner._modules[part]
            owner.register_parameter(key, weight.parameter)
        # A first stage has no input that autograd would follow.
        self._anchor = torch.zeros(0, requires_grad=True)
        self._done: list[Record] = []

    def forward(self, *inputs: torch.Tensor) -> Any:
        outputs = _Run.apply(self, self._anchor, *inputs)
        return outputs if len(outputs) > 1 else outputs[0]

    def take_weighting(self) -> Callable[[], None]:
        """Returns what adds the parameters' gradients of the microbatch whose backward ran last."""
        if not self._done:
            return lambda: None
        record = self._done.pop()
        return lambda: self._program.add_weights(record)

    def find_gradient(self, names: Mapping[str, str], name: str) -> torch.Tensor | None:
        """Returns the gradient of the parameter that `names` maps to `name`."""
        return next(weight.parameter.grad for own, weight in self._program.weights.items() if names[own] == name)

    def read(self) -> dict[str, torch.Tensor]:
        """Returns copies of the parameters and the state."""
        return {name: value.detach().clone() for name, value in self.named_parameters()} | self._program.read_states()

    def write(self, values: Mapping[str, torch.Tensor]) -> None:
        """Sets parameters and state by name; other names are ignored. Errors: ValueError for other shapes or types."""
        with torch.no_grad():
            for name, value in self.named_parameters():
                if name in values:
                    if values[name].shape != value.shape or values[name].dtype != value.dtype:
                        raise ValueError(f"{name} is {values[name].dtype}{list(values[name].shape)}, expected "
                                         f"{value.dtype}{list(value.shape)}")
                    value.copy_(values[name])
        self._program.write_states(values)


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, module: StageModule, anchor: torch.Tensor, *inputs: torch.Tensor) -> tuple:
        outputs, ctx.record = module._program.forward([value.detach() for value in inputs])
        ctx.module = module
        ctx.mark_non_differentiable(*(value for value in outputs if not value.is_floating_point()))
        return tuple(outputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple:
        gradients = ctx.module._program.backward(ctx.record, cotangents)
        ctx.module._done.append(ctx.record)
        return (None, None, *gradients)


class _Loss(nn.Module):
    def __init__(self, function: Callable):
        super().__init__()
        self._function = function

    def forward(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self._function(output, target)


class _Calls(Interpreter):
    """Runs the stages one after the other, and keeps what each was given."""

    def __init__(self, module: torch.fx.GraphModule):
        super().__init__(module)
        self.found: list[tuple[tuple, dict]] = []

    def call_module(self, target: Any, args: tuple, kwargs: dict) -> Any:
        self.found.append((args, kwargs))
        return super().call_module(target, args, kwargs)


def _list_used(part: nn.Module, prefix: str = "") -> set[str]:
    """Returns the names of the values that a stage reads. PyTorch leaves values of other stages in it."""
    used: set[str] = set()
    for node in part.graph.nodes:
        if node.op == "get_attr" and node.users:
            used.add(prefix + node.target)
        elif node.op == "call_module":
            used |= _list_used(part.get_submodule(node.target), f"{prefix}{node.target}.")
    return used


def _trace_calls(pipe: Pipe, args: tuple, kwargs: Mapping[str, Any]) -> list[tuple[tuple, dict]]:
    calls = _Calls(pipe.split_gm)
    with torch.no_grad():
        calls.run(*args, *kwargs.values())
    return calls.found
