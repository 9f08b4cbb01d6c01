"""From a module to a graph of linalg on tensors, its parameters as arguments."""

import contextlib
import dataclasses
import inspect
import linecache
import operator
import pathlib
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from torch.export.graph_signature import OutputKind
from torch.fx import Node
from torch_mlir import ir
from torch_mlir.dialects.torch import register_dialect
from torch_mlir.extras.fx_importer import ContextCache, FxImporter
from torch_mlir.passmanager import PassManager

from weir.torch.decompositions import get_table
from weir.torch.folding import fold_constants, is_random
from weir.torch.gradients import mark_stops
from weir.torch.holes import SEED, STEP, fill_holes, open_holes
from weir.torch.operators import Random, stop_gradient, uniform
from weir.torch.trees import flatten, map_leaves, map_tensors

# What the graph level can hold: docs/graph-level.md says which operations of these.
DIALECTS = {"arith", "builtin", "cf", "func", "linalg", "math", "tensor"}
LOWERING = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline)",
    "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true})",
)
LIBRARIES = (str(pathlib.Path(torch.__file__).parent), str(pathlib.Path(__file__).parent))


class ExportError(Exception):
    """A module that has no graph; the message says why, and where in the user's source."""


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of the exported function, in order: parameters and then state come last."""

    name: str
    kind: str  # "input", "target", "param" or "state"
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclasses.dataclass(frozen=True)
class Exported:
    """A graph as text, and what it takes and gives."""

    text: str
    arguments: list[Argument]
    results: list[str]  # the loss, the output's tensors, then the state that is written
    inputs: dict[str, torch.Tensor]  # by argument name, as are the others; targets, too
    parameters: dict[str, torch.Tensor]  # frozen ones, too
    states: dict[str, torch.Tensor]  # buffers; the seed and the step of random numbers
    output: Any  # as the module gave it, the names of results in place of tensors

    def save(
        self,
        graph: str | pathlib.Path,
        parameters: str | pathlib.Path | None = None,
        inputs: str | pathlib.Path | None = None,
    ) -> None:
        """Writes the graph, for `weir compile`, and values, for `weir run --input`: state with the parameters."""
        pathlib.Path(graph).write_text(self.text)
        if parameters is not None:
            save_file(self.parameters | self.states, parameters)
        if inputs is not None:
            save_file(self.inputs, inputs)


def export(
    module: nn.Module | Callable,
    inputs: Sequence | Mapping,
    *,
    loss: Callable[..., torch.Tensor] | None = None,
    targets: Mapping[str, torch.Tensor] | None = None,
    entry: str = "main",
    keep_buffers: bool = False,
) -> Exported:
    """Returns `module`, or a function of tensors, as one function on tensors of static shape.

    Arguments: `inputs`, positional or by name, of which shapes and types count; numbers, flags and None among them
               become part of the graph. Then `targets`; then each parameter once, tied ones too, under its name in
               the module. Parameters that require no gradient are of kind "input". Buffers that the module writes are
               of kind "state" and donated; the others become constants, or with `keep_buffers`, those of floats that
               belong to the module's state, arguments of kind "state". Where random numbers are drawn, "random.seed"
               and "random.step" follow.
    Results:   the loss, where given: `loss(output, *targets.values())`, one float of rank 0, named "loss".
               Then the tensors of the module's output, named "output", "output.0", ... or by their keys; then the
               state that is written, under its names.
    Errors:    ExportError for operators that linalg has no form of, all at once, each with the line that
               calls it; for modules that write to their inputs, for names that two arguments share.
               TypeError for inputs that hold no tensor.
    """
    targets = dict(targets or {})
    if targets and loss is None:
        raise TypeError("targets are what loss is given; there is no loss")
    if isinstance(loss, nn.Module) and any(True for _ in loss.parameters()):
        raise TypeError("the loss has parameters of its own; make it a part of the module")
    tracing = _Tracing(module, inputs, loss, targets)
    program = tracing.trace(keep_buffers)
    _check_random(program)
    arguments = _list_arguments(tracing)

    lowered, is_random = _lower(program, entry)
    states = dict(tracing.states)
    results = tracing.results
    if is_random:
        results = [*results, STEP]
        for name in (SEED, STEP):
            arguments.append(Argument(name, "state", (), torch.int64))
            states[name] = torch.zeros((), dtype=torch.int64)
    _check_names(arguments)
    _set_attributes(lowered, arguments, results)
    text = lowered.operation.get_asm(enable_debug_info=True).rstrip() + "\n"
    return Exported(text, arguments, results, _copy(tracing.batch | targets), _copy(tracing.parameters), _copy(states),
                    tracing.output)


class _Tracing:
    """A call of a module with its loss as one function of tensors, in the order of `export`'s arguments."""

    def __init__(self, module: nn.Module | Callable, inputs: Sequence | Mapping, loss: Callable | None, targets: dict):
        self._module = get_module(module)
        self._loss, self.targets = loss, targets
        self._bound = bind(self._module, inputs)
        self.batch: dict[str, torch.Tensor] = {}
        map_bound(self._bound, lambda place, tensor: self.batch.setdefault(place, tensor))
        if not self.batch:
            raise TypeError("the inputs hold no tensor; without one there is nothing to compute on")
        self._held = _Held(self._module)
        self.parameters, self._buffers = self._held.parameters, self._held.buffers
        self.states: dict[str, torch.Tensor] = {}  # of the buffers, those that are arguments
        self.results: list[str] = []
        self.output: Any = None

    def trace(self, keep_buffers: bool) -> torch.export.ExportedProgram:
        """Returns the graph, decomposed. Which buffers are written shows by tracing; then they become arguments."""
        if keep_buffers:
            kept = self._module.state_dict(keep_vars=True)
            self.states = {n: b for n, b in self._buffers.items() if n in kept and b.is_floating_point()}
        program, found = self._trace_once([])
        if written := [name for name in self._buffers if name in found]:
            self.states = {name: b for name, b in self._buffers.items() if name in self.states or name in found}
            program, _ = self._trace_once(written)
        return program

    def _trace_once(self, written: list[str]) -> tuple[torch.export.ExportedProgram, set[str]]:
        """Returns the graph, and the names of the buffers that it writes, `written` and others."""
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
            bound = map_bound(self._bound, lambda place, _: batch[place])
            with self._held.replaced(weights | buffers) as after:
                named = self._name_results(self._module(*bound.args, **bound.kwargs), targets)
            rebound.update(name for name in buffers if after[name] is not buffers[name])
            named |= {name: after[name] for name in written}
            self.results = list(named)
            return tuple(named.values())

        parts = (self.batch, self.targets, self.parameters, self.states)
        values = tuple(value.detach() for part in parts for value in part.values())
        with self._held.replaced(dict.fromkeys([*self.parameters, *self._buffers])):
            program = _trace(_Wrapper(call, self._module, [self._buffers[name] for name in constant]), values)
        for part in self._module.modules():
            if isinstance(part, nn.RNNBase):
                part._init_flat_weights()  # it keeps what it was called with
        if dynamic := [node for node in _list_calls(program) if _is_dynamic(node)]:
            _refuse("results whose shapes depend on values", dynamic)
        # Gradients are of parameters where there is a loss, or else of any float.
        mark_stops(program, [
            value.is_floating_point() and (self._loss is None or (part is self.parameters and value.requires_grad))
            for part in parts
            for value in part.values()
        ])
        program = prepare(program)
        for spec in program.graph_signature.output_specs:
            if spec.kind == OutputKind.BUFFER_MUTATION:
                rebound.add(constant[int(spec.target.removeprefix("buffer"))])
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                users = program.graph_signature.user_inputs
                name = [name for part in parts for name in part][users.index(spec.target)]
                if name not in self.states:
                    raise ExportError(f"the module writes to its input {name}, which a graph cannot; copy it first")
                rebound.add(name)
        return program, rebound

    def _name_results(self, output: Any, targets: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The loss, and the tensors of a module's output; what is None or a number is left out."""
        named = flatten(output, "" if isinstance(output, Mapping) else "output")
        if not named and self._loss is None:
            raise ExportError("the module's output holds no tensor")
        prefix = "" if isinstance(output, Mapping) else "output"
        self.output = map_tensors(output, lambda place, _: Result(place), prefix)
        if self._loss is not None:
            loss = self._loss(output, *targets.values())
            _check_loss(loss)
            named = {"loss": loss} | {name: named[name] for name in named if name != "loss"}
        return named


@dataclasses.dataclass(frozen=True)
class Result:
    """The place of a result, by its name, in what a module gives."""

    name: str


class _Function(nn.Module):
    """A function as a module without parameters."""

    def __init__(self, function: Callable):
        super().__init__()
        self._function = function
        self.forward = function  # whose signature names the inputs


class _Held:
    """What a module holds: parameters and buffers, each under its first name in the module."""

    def __init__(self, module: nn.Module):
        self.parameters, self.buffers = dict(module.named_parameters()), dict(module.named_buffers())
        names = {id(value): name for group in (self.parameters, self.buffers) for name, value in group.items()}
        self._places = [
            (places, key, names[id(value)])
            for part in module.modules()
            for places in (part._parameters, part._buffers)
            for key, value in places.items()
            if value is not None
        ]

    @contextlib.contextmanager
    def replaced(self, values: Mapping[str, torch.Tensor | None]) -> Iterator[dict[str, torch.Tensor]]:
        """Has the module hold other values for a while, in every place; in the end the dict has what it then holds.

        A module may put a new tensor in the place of a buffer, which torch.func.functional_call would lose.
        """
        places = [(place, key, name) for place, key, name in self._places if name in values]
        before = [place[key] for place, key, _ in places]
        after: dict[str, torch.Tensor] = {}
        try:
            for place, key, name in places:
                place[key] = values[name]
            yield after
            after.update({name: place[key] for place, key, name in reversed(places)})
        finally:
            for (place, key, _), value in zip(places, before):
                place[key] = value


def bind(module: nn.Module, inputs: Sequence | Mapping) -> inspect.BoundArguments:
    """Returns `inputs` by the names that the module's `forward` has for them. Errors: TypeError where they don't fit."""
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    signature = inspect.signature(module.forward)
    try:
        bound = signature.bind(**inputs) if isinstance(inputs, Mapping) else signature.bind(*inputs)
    except TypeError as error:
        raise TypeError(f"forward{signature} cannot be called with these inputs: {error}") from None
    return bound


def map_bound(
    bound: inspect.BoundArguments,
    function: Callable[[str, Any], Any],
    is_leaf: Callable[[Any], bool] = lambda value: isinstance(value, torch.Tensor),
) -> inspect.BoundArguments:
    """Returns a call with every leaf, a tensor, replaced by `function(name, leaf)`.

    What **kwargs takes goes by its own name.
    """
    kinds = bound.signature.parameters
    return inspect.BoundArguments(bound.signature, {
        name: map_leaves(value, function, is_leaf, "" if kinds[name].kind == inspect.Parameter.VAR_KEYWORD else name)
        for name, value in bound.arguments.items()
    })


def get_module(module: nn.Module | Callable) -> nn.Module:
    """Returns a function as a module without parameters; a module as it is."""
    return module if isinstance(module, nn.Module) else _Function(module)


def _trace(module: nn.Module, values: Sequence[torch.Tensor]) -> torch.export.ExportedProgram:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The tensor attribute")  # of buffers and flat weights, which we restore
            warnings.filterwarnings("ignore", category=FutureWarning, module="copyreg")  # torch's own
            return torch.export.export(module, values, strict=False)
    except ExportError:
        raise
    except Exception as error:  # the module's own, and torch.export's of many kinds
        reason = str(error).strip().split("\n\n")[0] or type(error).__name__
        raise ExportError(f"torch.export cannot trace the module: {reason}") from error


def prepare(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Returns the operators of `program` decomposed for torch-mlir, those on constants evaluated."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="copyreg")
        program = program.run_decompositions(get_table() | Random().get_table())
    fold_constants(program)
    return program


class _Wrapper(nn.Module):
    """A function of tensors as a module, which torch.export wants.

    It holds the buffers, so that torch.export tells which are written to, and the module that is called, so that
    torch.export tells which part of it made what.
    """

    CALLED = "called"

    def __init__(
        self, call: Callable[..., tuple[torch.Tensor, ...]], module: nn.Module, buffers: Sequence[torch.Tensor]
    ):
        super().__init__()
        self._call = call
        setattr(self, self.CALLED, module)
        self._count = len(buffers)
        for i, value in enumerate(buffers):
            self.register_buffer(f"buffer{i}", value)

    def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self._call([getattr(self, f"buffer{i}") for i in range(self._count)], *values)


def _copy(values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Values of their own bytes, which safetensors wants."""
    return {name: value.detach().clone(memory_format=torch.contiguous_format) for name, value in values.items()}


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, torch.Tensor) or loss.dim() or not loss.is_floating_point():
        found = f"{loss.dtype} of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise ExportError(f"the loss is {found}; it must be one float of rank 0: use .mean() or .sum()")


def _list_arguments(tracing: _Tracing) -> list[Argument]:
    groups = [
        ("input", tracing.batch), ("target", tracing.targets), ("param", tracing.parameters), ("state", tracing.states)
    ]
    return [
        Argument(name, kind if kind != "param" or value.requires_grad else "input", tuple(value.shape), value.dtype)
        for kind, group in groups
        for name, value in group.items()
    ]


def _check_names(arguments: list[Argument]) -> None:
    names = [argument.name for argument in arguments]
    if shared := sorted({name for name in names if names.count(name) > 1}):
        raise ExportError(f"two arguments are named {shared[0]}; give the input or the target another name")


def _list_calls(program: torch.export.ExportedProgram) -> list[Node]:
    return [node for node in program.graph.nodes if node.op == "call_function"]


def _is_dynamic(node: Node) -> bool:
    value = node.meta.get("val")
    parts = value if isinstance(value, (tuple, list)) else [value]
    return any(not isinstance(size, int) for part in parts if isinstance(part, torch.Tensor) for size in part.shape)


def _check_random(program: torch.export.ExportedProgram) -> None:
    if nodes := [node for node in _list_calls(program) if is_random(node.target) and node.target is not uniform]:
        _refuse("random operators that are made of no uniform numbers here", nodes)


def _lower(program: torch.export.ExportedProgram, entry: str) -> tuple[ir.Module, bool]:
    """Returns linalg on tensors, and whether it draws random numbers.

    Where there is no such form, each operator is tried alone, to name all that have none.
    """
    # Nodes now: the import replaces the constants among them by their values.
    nodes = [node for node in _list_calls(program) if "val" in node.meta and node.target is not operator.getitem]
    nodes = [node for node in nodes if node.target not in (stop_gradient, uniform)]
    calls = {_describe_call(node): node for node in reversed(nodes)}
    alone = {key: _isolate(node) for key, node in calls.items()}
    lowered, reason = _try_lowering(lambda importer: importer.import_frozen_program(program, func_name=entry))
    if lowered is not None:
        return lowered
    refused = {
        key for key, module in alone.items()
        if _try_lowering(lambda importer: importer.import_stateless_graph(module.graph))[0] is None
    }
    if not refused:
        raise ExportError(f"torch-mlir does not lower the graph: {reason}")
    _refuse("operators without a form in linalg", [node for node in nodes if _describe_call(node) in refused])


def _try_lowering(bring_in: Callable[[FxImporter], Any]) -> tuple[tuple[ir.Module, bool] | None, str]:
    """Returns the module and whether it draws random numbers, or None and why there is none."""
    context, errors = ir.Context(), []
    register_dialect(context)

    def take(diagnostic: ir.Diagnostic) -> bool:
        errors.append(diagnostic.message)
        return True  # not on standard error, too

    context.attach_diagnostic_handler(take)
    importer = FxImporter(context=context)
    importer._cc = _Locating(context, py_attr_tracker=importer._py_attr_tracker)
    try:
        bring_in(importer)
        lowered = importer.module
        holes = open_holes(lowered)
        for pipeline in LOWERING:
            with context:
                PassManager.parse(pipeline).run(lowered.operation)
        names = {operation.name for operation in _walk(lowered.operation)}
        if foreign := sorted(name for name in names if name.split(".")[0] not in DIALECTS):
            return None, f"{foreign[0]} is left"
        return (lowered, fill_holes(lowered, holes)), ""
    except Exception as error:  # torch-mlir raises plain Exception, too
        return None, errors[0] if errors else str(error).strip() or repr(error)


class _Locating(ContextCache):
    """Gives each op the user's line, named by the part of the module that made it, or else by the operator.

    torch-mlir gives all lines of the call, and no names.
    """

    __slots__ = ()

    def get_node_location(self, node: Node) -> ir.Location:
        location = ir.Location.unknown(self._c)
        if place := _find_place(node):
            location = ir.Location.file(pathlib.Path(place[0]).name, place[1], 0, self._c)
        modules = list((node.meta.get("nn_module_stack") or {}).values())
        name = modules[-1][0].removeprefix(_Wrapper.CALLED).removeprefix(".") if modules else ""
        name = name or getattr(node.target, "_opname", "")
        return ir.Location.name(name, location, self._c) if name else location


def _walk(operation: ir.Operation):
    yield operation
    for region in operation.regions:
        for block in region:
            for nested in block:
                yield from _walk(nested.operation)


def _isolate(node: Node) -> torch.fx.GraphModule:
    """A graph of one call, with the types that its operands have."""
    graph = torch.fx.Graph()

    def take(operand: Node) -> Node:
        new = graph.placeholder(operand.name)
        new.meta = {"val": operand.meta["val"]}
        return new

    taken = {operand: take(operand) for operand in node.all_input_nodes}
    copy, value = graph.node_copy(node, taken.__getitem__), node.meta["val"]
    results = [copy]
    if isinstance(value, (tuple, list)):
        results = [graph.call_function(operator.getitem, (copy, i)) for i in range(len(value))]
        for result, part in zip(results, value):
            result.meta = {"val": part}
    graph.output(tuple(results))
    return torch.fx.GraphModule(nn.Module(), graph)


def _describe_call(node: Node) -> str:
    """The same for calls that lower alike."""
    def describe(operand: Node) -> str:
        value = operand.meta.get("val")
        return f"{value.dtype}{list(value.shape)}" if isinstance(value, torch.Tensor) else str(value)

    return str((str(node.target), torch.fx.node.map_arg((node.args, node.kwargs), describe)))


def _refuse(what: str, nodes: list[Node]) -> None:
    places: dict[str, list[str]] = {}
    for node in nodes:
        line = _find_line(node)
        if line not in (known := places.setdefault(str(node.target), [])):
            known.append(line)
    lines = [f"  {target}, {line}" for target, known in places.items() for line in known]
    raise ExportError("\n".join([f"the module has {what}:", *lines]))


def _find_place(node: Node) -> tuple[str, int] | None:
    """The file and the line, the innermost of the user's, that made the node."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    frames = [(file, int(line)) for file, line in frames if not file.startswith(LIBRARIES)]
    return frames[-1] if frames else None


def _find_line(node: Node) -> str:
    """The line that made the node, with its text."""
    if not (place := _find_place(node)):
        return "at no known place"
    file, line = place
    return f"{file}:{line}: {linecache.getline(file, line).strip()}"


def _set_attributes(lowered: ir.Module, arguments: list[Argument], results: list[str]) -> None:
    """Sets weir.name, weir.kind and weir.donate, which torch-mlir knows nothing of."""
    [function] = lowered.body.operations

    def attributes(**values: str) -> dict[str, ir.Attribute]:
        return {f"weir.{key}": ir.StringAttr.get(value) for key, value in values.items()}

    with lowered.context as context:
        context.allow_unregistered_dialects = True
        donate = {"weir.donate": ir.UnitAttr.get()}
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([
            ir.DictAttr.get(
                attributes(name=argument.name, kind=argument.kind)
                | (donate if argument.kind == "state" and argument.name in results else {})
            )
            for argument in arguments
        ])
        function.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(attributes(name=n)) for n in results])
