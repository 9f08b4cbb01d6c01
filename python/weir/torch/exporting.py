"""From a module to a graph of linalg on tensors, its parameters as arguments."""

import dataclasses
import inspect
import linecache
import operator
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from torch.export.graph_signature import OutputKind
from torch.fx import Node
from torch_mlir import fx, ir
from torch_mlir.dialects.torch import register_dialect
from torch_mlir.extras.fx_importer import FxImporter

from weir.torch.decompositions import get_table
from weir.torch.folding import fold_constants, is_random
from weir.torch.gradients import find_stops

# What the graph level can hold: docs/graph-level.md says which operations of these.
DIALECTS = {"arith", "builtin", "cf", "func", "linalg", "math", "tensor"}
LIBRARIES = (str(pathlib.Path(torch.__file__).parent), str(pathlib.Path(__file__).parent))


class ExportError(Exception):
    """A module that has no graph; the message says why, and where in the user's source."""


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of the exported function, in order: parameters come last."""

    name: str
    kind: str  # "input", "target" or "param"
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclasses.dataclass(frozen=True)
class Exported:
    """A graph as text, and what it takes and gives."""

    text: str
    arguments: list[Argument]
    results: list[str]
    inputs: dict[str, torch.Tensor]  # by argument name, as are parameters; targets, too
    parameters: dict[str, torch.Tensor]  # frozen ones, too

    def save(
        self,
        graph: str | pathlib.Path,
        parameters: str | pathlib.Path | None = None,
        inputs: str | pathlib.Path | None = None,
    ) -> None:
        """Writes the graph, for `weir compile`, and values, for `weir run --input`."""
        pathlib.Path(graph).write_text(self.text)
        if parameters is not None:
            save_file(self.parameters, parameters)
        if inputs is not None:
            save_file(self.inputs, inputs)


def export(
    module: nn.Module,
    inputs: Sequence[torch.Tensor] | Mapping[str, torch.Tensor],
    *,
    loss: Callable[..., torch.Tensor] | None = None,
    targets: Mapping[str, torch.Tensor] | None = None,
    entry: str = "main",
) -> Exported:
    """Returns `module` as one function on tensors of static shape.

    Arguments: `inputs`, positional or by name, of which shapes and types count; then `targets`; then each
               parameter once, tied ones too, under its name in the module. Parameters that require no
               gradient are of kind "input". Buffers become constants.
    Results:   the loss, where given: `loss(output, *targets.values())`, one float of rank 0, named "loss".
               Then the tensors of the module's output, named "output", "output.0", ... or by their keys.
    Errors:    ExportError for operators that linalg has no form of, all at once, each with the line that
               calls it; for random ones, for buffers that are written to, for names that two arguments
               share; with `loss`, for what stops its gradient. TypeError for inputs that are no tensors.
    """
    batch = _name_inputs(module, inputs)
    targets = dict(targets or {})
    if targets and loss is None:
        raise TypeError("targets are what loss is given; there is no loss")
    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    arguments = _list_arguments(batch, targets, parameters)
    results: list[str] = []

    def call(held: Sequence[torch.Tensor], *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        value = iter(values)
        given, wanted, weights = ({name: next(value) for name in group} for group in (batch, targets, parameters))
        output = torch.func.functional_call(module, weights | dict(zip(buffers, held)), (), given, tie_weights=True)
        named = _name_results(output)
        if loss is not None:
            named = {"loss": loss(output, *wanted.values())} | {name: named[name] for name in named if name != "loss"}
            _check_loss(named["loss"])
        results[:] = named
        return tuple(named.values())

    values = (*batch.values(), *targets.values(), *(value.detach() for value in parameters.values()))
    program = _trace(_Wrapper(call, list(buffers.values())), values)
    if dynamic := [node for node in _list_calls(program) if _is_dynamic(node)]:
        _refuse("results whose shapes depend on values", dynamic)
    trained = [argument.kind == "param" for argument in arguments]
    if loss is not None and (stops := find_stops(program, trained)):
        _refuse("stops of gradients, which a graph cannot say; leave detach, no_grad and padding_idx out", stops)
    program = prepare(program)
    _check_outputs(program, list(buffers))
    _check_random(program)

    lowered = _lower(program, entry)
    _set_attributes(lowered, arguments, results)
    text = lowered.operation.get_asm().rstrip() + "\n"
    return Exported(text, arguments, results, _copy(batch | targets), _copy(parameters))


def _trace(module: nn.Module, values: Sequence[torch.Tensor]) -> torch.export.ExportedProgram:
    try:
        return torch.export.export(module, values, strict=False)
    except ExportError:
        raise
    except Exception as error:  # the module's own, and torch.export's of many kinds
        reason = str(error).strip().split("\n\n")[0] or type(error).__name__
        raise ExportError(f"torch.export cannot trace the module: {reason}") from error


def prepare(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Returns the operators of `program` decomposed for torch-mlir, those on constants evaluated."""
    program = program.run_decompositions(get_table())
    fold_constants(program)
    return program


class _Wrapper(nn.Module):
    """A function of tensors as a module, which torch.export wants.

    It holds the buffers, so that torch.export tells which are written to; the parameters it must not hold, or
    they would be constants.
    """

    def __init__(self, call: Callable[..., tuple[torch.Tensor, ...]], buffers: Sequence[torch.Tensor]):
        super().__init__()
        self._call = call
        for i, value in enumerate(buffers):
            self.register_buffer(f"buffer{i}", value)

    def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self._call(list(self.buffers()), *values)


def _copy(values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Values of their own bytes, which safetensors wants."""
    return {name: value.detach().clone(memory_format=torch.contiguous_format) for name, value in values.items()}


def _name_results(output: Any) -> dict[str, torch.Tensor]:
    """The tensors of a module's output; what is None or a number is left out."""
    leaves, _ = torch.utils._pytree.tree_flatten_with_path(output)
    named = {}
    for path, leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            keys = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", "")))) for key in path]
            named[".".join(keys if isinstance(output, Mapping) else ["output", *keys])] = leaf
    if not named:
        raise ExportError("the module's output holds no tensor")
    return named


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, torch.Tensor) or loss.dim() or not loss.is_floating_point():
        found = f"{loss.dtype} of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise ExportError(f"the loss is {found}; it must be one float of rank 0: use .mean() or .sum()")


def _name_inputs(module: nn.Module, inputs: Sequence | Mapping) -> dict[str, torch.Tensor]:
    """The inputs by the names that the module's `forward` has for them."""
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    if not isinstance(inputs, Mapping):
        signature = inspect.signature(module.forward)
        inputs = signature.bind(*inputs).arguments
    for name, value in inputs.items():
        if not isinstance(value, torch.Tensor):
            raise TypeError(
                f"input {name} is of type {type(value).__name__}, not a tensor; bind it in a wrapper module"
            )
    return dict(inputs)


def _list_arguments(batch: Mapping, targets: Mapping, parameters: Mapping) -> list[Argument]:
    groups = [("input", batch), ("target", targets), ("param", parameters)]
    arguments = [
        Argument(name, kind if kind != "param" or value.requires_grad else "input", tuple(value.shape), value.dtype)
        for kind, group in groups
        for name, value in group.items()
    ]
    names = [argument.name for argument in arguments]
    if shared := sorted({name for name in names if names.count(name) > 1}):
        raise ExportError(f"two arguments are named {shared[0]}; give the input or the target another name")
    return arguments


def _check_outputs(program: torch.export.ExportedProgram, buffers: list[str]) -> None:
    for spec in program.graph_signature.output_specs:
        if spec.kind == OutputKind.BUFFER_MUTATION:
            raise ExportError(
                f"the module writes to its buffer {buffers[int(spec.target.removeprefix('buffer'))]}, which a graph "
                "cannot; export it after .eval(), or, of a norm, with track_running_stats=False"
            )
        if spec.kind == OutputKind.USER_INPUT_MUTATION:
            raise ExportError(f"the module writes to its input {spec.target}, which a graph cannot; copy it first")


def _list_calls(program: torch.export.ExportedProgram) -> list[Node]:
    return [node for node in program.graph.nodes if node.op == "call_function"]


def _is_dynamic(node: Node) -> bool:
    value = node.meta.get("val")
    parts = value if isinstance(value, (tuple, list)) else [value]
    return any(not isinstance(size, int) for part in parts if isinstance(part, torch.Tensor) for size in part.shape)


def _check_random(program: torch.export.ExportedProgram) -> None:
    if nodes := [node for node in _list_calls(program) if is_random(node.target)]:
        _refuse("random operators; export after .eval(), or with dropout 0", nodes)


def _lower(program: torch.export.ExportedProgram, entry: str) -> ir.Module:
    """Returns linalg on tensors. Where there is none, each operator is tried alone, to name all that have none."""
    # Nodes now: the import replaces the constants among them by their values.
    nodes = [node for node in _list_calls(program) if "val" in node.meta and node.target is not operator.getitem]
    calls = {_describe_call(node): node for node in reversed(nodes)}
    alone = {key: _isolate(node) for key, node in calls.items()}
    lowered, reason = _try_lowering(
        lambda **options: fx.export_and_import(program, func_name=entry, decomposition_table={}, **options)
    )
    if lowered is not None:
        return lowered
    refused = {
        key for key, module in alone.items()
        if _try_lowering(lambda **options: fx.stateless_fx_import(module, **options))[0] is None
    }
    if not refused:
        raise ExportError(f"torch-mlir does not lower the graph: {reason}")
    _refuse("operators without a form in linalg", [node for node in nodes if _describe_call(node) in refused])


def _try_lowering(lower: Callable[..., ir.Module]) -> tuple[ir.Module | None, str]:
    """Returns the module, or None and why there is none."""
    context, errors = ir.Context(), []
    register_dialect(context)

    def take(diagnostic: ir.Diagnostic) -> bool:
        errors.append(diagnostic.message)
        return True  # not on standard error, too

    context.attach_diagnostic_handler(take)
    try:
        lowered = lower(output_type="linalg-on-tensors", fx_importer=FxImporter(context=context))
    except Exception as error:  # torch-mlir raises plain Exception, too
        return None, errors[0] if errors else str(error).strip() or repr(error)
    names = {operation.name for operation in _walk(lowered.operation)}
    foreign = sorted(name for name in names if name.split(".")[0] not in DIALECTS)
    return (None, f"{foreign[0]} is left") if foreign else (lowered, "")


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


def _find_line(node: Node) -> str:
    """The innermost line of the user's that made the node, with its text."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    frames = [(file, int(line)) for file, line in frames if not file.startswith(LIBRARIES)]
    if not frames:
        return "at no known place"
    file, line = frames[-1]
    return f"{file}:{line}: {linecache.getline(file, line).strip()}"


def _set_attributes(lowered: ir.Module, arguments: list[Argument], results: list[str]) -> None:
    """Sets weir.name and weir.kind, which torch-mlir knows nothing of."""
    [function] = lowered.body.operations

    def attributes(**values: str) -> ir.DictAttr:
        return ir.DictAttr.get({f"weir.{key}": ir.StringAttr.get(value) for key, value in values.items()})

    with lowered.context as context:
        context.allow_unregistered_dialects = True
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [attributes(name=argument.name, kind=argument.kind) for argument in arguments])
        function.attributes["res_attrs"] = ir.ArrayAttr.get([attributes(name=name) for name in results])
