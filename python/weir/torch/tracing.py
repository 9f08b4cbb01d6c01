"""Traces a module to a graph of PyTorch's operators on tensors, by torch.export."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.export.graph_signature import OutputKind
from torch.fx import Node

from weir.apart import EndedError, call_apart
from weir.graphs import ExportError, Result
from weir.torch.calls import Held, bind, get_module, keep_lines, map_bound
from weir.torch.collectives import Collectives, Flat, find_axis, find_sharding, refuse_own_collectives
from weir.torch.complexes import keep_complex, refuse_complex, split_complex
from weir.torch.composites import Composing
from weir.torch.decompositions import get_table
from weir.torch.failures import explain, explain_decomposition, quiet
from weir.torch.folding import fold_constants, is_random
from weir.torch.functions import marking, refuse_hooks, refuse_marks
from weir.torch.gradients import find_flow, mark_stops
from weir.torch.lowering import refuse_fatal
from weir.torch.matrices import unchecked
from weir.torch.loops import inline_branches
from weir.torch.operators import Random, marked, uniform
from weir.torch.places import CALLED, find_line, list_calls, refuse
from weir.torch.trees import flatten, map_tensors, to_pairs
from weir.torch.unsigned import widen_bytes


class Tracing:
    """A call of a module with its loss as one function of tensors, in the order of `export`'s arguments."""

    def __init__(self, module: nn.Module | Callable, inputs: Sequence | Mapping, loss: Callable | None, targets: dict,
                 replicas: int = 1, gradients: bool = True):
        self._module = get_module(module)
        self._loss, self.targets, self._replicas, self._gradients = loss, targets, replicas, gradients
        keep_lines(loss)
        self._bound = bind(self._module, inputs)
        self.batch: dict[str, torch.Tensor] = {}
        map_bound(self._bound, lambda place, tensor: self.batch.setdefault(place, to_pairs(tensor)))
        if not self.batch:
            raise TypeError("the inputs hold no tensor; without one there is nothing to compute on")
        self._held = Held(self._module)
        self.parameters, self._buffers = self._held.parameters, self._held.buffers
        # Of parameters that are gathered before they are read. Ranks then have batches of their own.
        self._flat = {name: each for name, each in find_sharding(self._module, self.parameters).items()
                      if isinstance(each, Flat)}
        if self._flat and replicas > 1:
            raise ExportError("the module has parameters by fully_shard, whose ranks have batches of their own already; "
                              "leave replicas out")
        self.states: dict[str, torch.Tensor] = {}  # of the buffers, those that are arguments
        self.results: list[str] = []
        self.unsigned_results: list[str] = []
        self.fixed_results: set[str] = set()  # through which no gradient flows
        self.written: list[str] = []  # inputs that the module writes to
        self.output: Any = None

    @property
    def is_data_parallel(self) -> bool:
        """Whether ranks have batches of their own."""
        return bool(self._flat)

    def trace(self, keep_buffers: bool, write: Callable[[torch.export.ExportedProgram], Any]) -> Any:
        """Returns what `write` makes of the decomposed graph. Tracing shows which buffers are written; these become
        arguments.

        The graph is decomposed and written in a process of its own: PyTorch and torch-mlir keep tens of megabytes for
        that, and some graphs end torch-mlir's process.
        """
        if keep_buffers:
            kept = self._module.state_dict(keep_vars=True)
            self.states = {n: b for n, b in self._buffers.items() if n in kept and b.is_floating_point()}
        found, made = self._trace_once([], write)
        self.written = [name for name in self.batch if name in found]
        if self.written:
            more, made = self._trace_once([], write)
            found |= more
        if written := [name for name in self._buffers if name in found]:
            self.states = {name: b for name, b in self._buffers.items() if name in self.states or name in found}
            _, made = self._trace_once(written, write)
        return made

    def _trace_once(self, written: list[str], write: Callable) -> tuple[set[str], Any]:
        """Returns the names of the values that the graph writes, and what `write` makes of it: nothing if buffers that
        it writes are not in `written` yet."""
        constant = [name for name in self._buffers if name not in self.states]
        rebound: set[str] = set()

        def call(held: Sequence[torch.Tensor], *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
            value = iter(values)
            batch, targets, weights, states = (
                {name: next(value) for name in group}
                for group in (self.batch, self.targets, self.parameters, self.states)
            )
            buffers = dict(zip(constant, held)) | {
                name: state.clone() if name in written else state for name, state in states.items()
            }
            batch |= {name: batch[name].clone() for name in self.written}
            bound = map_bound(self._bound, lambda place, given: torch.view_as_complex(batch[place]) if given.is_complex()
                              else batch[place])
            weights = {name: self._flat[name].gather(weight) if name in self._flat else weight
                       for name, weight in weights.items()}
            for weight in weights.values():
                weight._is_param = True  # a container that is made of parameters, as a slice of one, keeps them
            with self._held.replaced(weights | buffers) as after:
                named = self._name_results(self._module(*bound.args, **bound.kwargs), targets)
            rebound.update(name for name in buffers if after[name] is not buffers[name])
            if taken := sorted(named.keys() & set(self.written)):
                raise ExportError(f"the module writes to its input {taken[0]}, and has an output of that name; give either "
                                  "another name")
            named |= {name: batch[name] for name in self.written}
            named |= {name: after[name] for name in written}
            self.results = list(named)
            self.unsigned_results = [name for name, value in named.items() if value.dtype == torch.uint8]
            return tuple(named.values())

        parts = (self.batch, self.targets, self.parameters, self.states)
        values = tuple(value.detach() for part in parts for value in part.values())
        try:
            with self._held.replaced(dict.fromkeys([*self.parameters, *self._buffers])), marking(), Composing():
                program = _trace(_Wrapper(call, self._module, [self._buffers[name] for name in constant]), values)
        finally:
            for part in self._module.modules():
                if isinstance(part, nn.RNNBase):
                    part._init_flat_weights()  # it keeps what it was called with
        if self.is_data_parallel:
            refuse_own_collectives(program)
        inline_branches(program)
        if dynamic := [node for node in list_calls(program) if _is_dynamic(node)]:
            refuse("results whose shapes depend on values", dynamic)
        # Gradients are of parameters where there is a loss, or else of any float.
        trained = [
            value.is_floating_point() and (self._loss is None or (part is self.parameters and value.requires_grad))
            for part in parts
            for value in part.values()
        ]
        flow = find_flow(program, trained)
        nodes = {node.name: node for node in program.graph.nodes}
        self.fixed_results = {name for name, output in zip(self.results, program.graph_signature.user_outputs, strict=True)
                              if nodes.get(output) not in flow}
        if self._loss is not None and any(trained) and "loss" in self.fixed_results:
            raise ExportError("no gradient flows from the loss to a parameter, so nothing would be trained")
        if self._gradients:
            refuse_hooks(self._module)
            refuse_marks(program, flow)
        mark_stops(program, trained)

        def finish() -> tuple[set[str], Any]:
            prepared = prepare(program, self._replicas, self._gradients)
            found = rebound | self._find_written(prepared, constant)
            return found, write(prepared) if written or not found & self._buffers.keys() else None

        try:
            return call_apart(finish, ExportError)
        except EndedError as error:
            call_apart(lambda: refuse_fatal(prepare(program, self._replicas)), ExportError)
            raise ExportError(f"the process that lowers the graph by torch-mlir was {error}") from None

    def _find_written(self, program: torch.export.ExportedProgram, constant: list[str]) -> set[str]:
        """Returns the names of the buffers that a graph writes: of those that it holds, and of its arguments."""
        arguments = [name for part in (self.batch, self.targets, self.parameters, self.states) for name in part]
        found = set()
        for spec in program.graph_signature.output_specs:
            if spec.kind == OutputKind.BUFFER_MUTATION:
                found.add(constant[int(spec.target.removeprefix("buffer"))])
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                name = arguments[program.graph_signature.user_inputs.index(spec.target)]
                if name not in self.states and (self._gradients or name not in self.batch):
                    node = next(node for node in program.graph.nodes if node.name == spec.arg.name)
                    operator = node.meta.get("torch_fn", ("", str(node.target)))[1].rpartition(".")[2]
                    raise ExportError(f"the module writes to its input {name}, through which no gradient would flow; copy "
                                      f"it first: {operator}, {find_line(node)}")
                found.add(name)
        return found

    def _name_results(self, output: Any, targets: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Returns the loss and the tensors of a module's output. None and numbers are left out."""
        named = flatten(output, "" if isinstance(output, Mapping) else "output")
        if not named and self._loss is None:
            raise ExportError("the module's output holds no tensor")
        named = {name: to_pairs(value) for name, value in named.items()}
        prefix = "" if isinstance(output, Mapping) else "output"
        self.output = map_tensors(output, lambda place, value: Result(place, value.is_complex()), prefix)
        if self._loss is not None:
            loss = self._loss(output, *targets.values())
            _check_loss(loss)
            if self.is_data_parallel or self._replicas > 1:  # the mean over those with batches of their own
                count = next(iter(self._flat.values())).ranks if self.is_data_parallel else self._replicas
                loss = torch.ops.weir.all_reduce(loss, count, 0) / count
            named = {"loss": loss} | {name: named[name] for name in named if name != "loss"}
        return named


def prepare(program: torch.export.ExportedProgram, replicas: int = 1, gradients: bool = True) -> torch.export.ExportedProgram:
    """Returns the operators of `program` decomposed for torch-mlir, those on constants evaluated, complex numbers as
    pairs."""
    table = keep_complex(get_table(gradients) | {marked: lambda x, what: x.clone()} | Random().get_table() |
                         Collectives(find_axis(replicas)).get_table())
    try:
        with warnings.catch_warnings(), unchecked():
            warnings.filterwarnings("ignore", category=FutureWarning, module="copyreg")
            program = program.run_decompositions(table)
    except Exception as error:  # of a decomposition, Weir's or PyTorch's
        raise ExportError(explain_decomposition(error)) from error
    widen_bytes(program)
    left = split_complex(program)
    fold_constants(program)
    refuse_complex(program, left)
    return program


def check_random(program: torch.export.ExportedProgram) -> None:
    if nodes := [node for node in list_calls(program) if is_random(node.target) and node.target is not uniform]:
        refuse("random operators that are made of no uniform numbers here", nodes)


def _trace(module: nn.Module, values: Sequence[torch.Tensor]) -> torch.export.ExportedProgram:
    try:
        with quiet(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The tensor attribute")  # of buffers and flat weights, which we restore
            warnings.filterwarnings("ignore", category=FutureWarning, module="copyreg")  # torch's own
            return torch.export.export(module, values, strict=False)
    except ExportError:
        raise
    except Exception as error:  # the module's own, and torch.export's of many kinds
        raise ExportError(f"torch.export cannot trace the module: {explain(error)}") from error


class _Wrapper(nn.Module):
    """A function of tensors as a module, as torch.export requires.

    It holds the buffers, so that torch.export tells which are written to, and the module that is called, so that
    torch.export tells which part of it made what.
    """

    def __init__(
        self, call: Callable[..., tuple[torch.Tensor, ...]], module: nn.Module, buffers: Sequence[torch.Tensor]
    ):
        super().__init__()
        self._call = call
        setattr(self, CALLED, module)
        self._count = len(buffers)
        for i, value in enumerate(buffers):
            self.register_buffer(f"buffer{i}", value)

    def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self._call([getattr(self, f"buffer{i}") for i in range(self._count)], *values)


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, torch.Tensor) or loss.dim() or not loss.is_floating_point():
        found = f"{loss.dtype} of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise ExportError(f"the loss is {found}; it must be one float of rank 0: use .mean() or .sum()")


def _is_dynamic(node: Node) -> bool:
    value = node.meta.get("val")
    parts = value if isinstance(value, (tuple, list)) else [value]
    return any(not isinstance(size, int) for part in parts if isinstance(part, torch.Tensor) for size in part.shape)
