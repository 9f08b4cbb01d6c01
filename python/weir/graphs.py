"""Graphs of linalg on tensors: what all front ends share. It needs torch-mlir, whose MLIR holds them.

Each front end writes one function, with Weir's attributes on arguments and results.
"""

import dataclasses
import json
import pathlib
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy
import safetensors
from torch_mlir import ir

from weir.runtime import DTYPES, to_host

# The dialects of the graph level: docs/graph-level.md says which operations of these.
DIALECTS = {"arith", "autodiff", "builtin", "cf", "func", "linalg", "math", "matrix", "norm", "scf", "tensor"}
GRID_OP, GRID = "shard.grid", "ranks"
BRANCHES = {"scf.execute_region", "scf.index_switch"}  # control flow between tensors


class ExportError(Exception):
    """A model that cannot be written as a graph. The message says why, and names the places of the user's source."""


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of the exported function, in order."""

    name: str
    kind: str  # "input", "target", "param" or "state"
    shape: tuple[int, ...]
    dtype: Any  # torch's or NumPy's type of the elements
    donated: bool = False


@dataclasses.dataclass(frozen=True)
class Exported:
    """A graph as text, with its arguments, its results and the values for a run."""

    text: str
    arguments: list[Argument]
    results: list[str]  # the loss, the output's tensors, then the state that is written
    inputs: dict[str, Any]  # by argument name, as are the others; targets, too
    parameters: dict[str, Any]  # frozen ones, too
    states: dict[str, Any]  # buffers; the seed and the step of random numbers
    output: Any  # as the module gave it, the names of results in place of tensors
    dtypes: dict[str, numpy.dtype] = dataclasses.field(default_factory=dict)  # unsigned ones, of arguments and results
    sharding: dict[str, Any] = dataclasses.field(default_factory=dict)  # how parameters differ by rank, of those that do
    ranks: int = 1  # that the graph is for; of several replicas those of one
    replicas: int = 1  # of these ranks
    private: Collection[str] = ()  # other arguments that differ by rank: batches, buffers, the seed
    fixed: Collection[str] = ()  # results through which no gradient flows
    written: Sequence[str] = ()  # inputs that the model writes to; results of their names are their new values

    def save(
        self,
        graph: str | pathlib.Path,
        parameters: str | pathlib.Path | None = None,
        inputs: str | pathlib.Path | None = None,
    ) -> None:
        """Writes the graph for `weir compile`, and safetensors files for `weir run --input`.

        `parameters`: the path for parameters and state; not written by default.
        `inputs`: the path for the example's inputs and targets; not written by default.
        """
        pathlib.Path(graph).write_text(self.text)
        if parameters is not None:
            write_tensors(parameters, self.parameters | self.states)
        if inputs is not None:
            write_tensors(inputs, self.inputs)


@dataclasses.dataclass(frozen=True)
class Result:
    """Stands for a result, by its name, in the nested values that a model returns."""

    name: str
    is_complex: bool = False  # the graph gives pairs of a real and an imaginary part


def write_tensors(path: str | pathlib.Path, values: Mapping[str, Any]) -> None:
    """Writes a safetensors file for `weir run --input`. Unsigned integers are written as signed ones of the same bits."""
    arrays, parts = {}, {}
    for name, value in values.items():
        array = numpy.ascontiguousarray(to_host(value)).reshape(numpy.shape(value))
        # `to_host` gives bfloat16 as its bits.
        is_bfloat16 = array.dtype == DTYPES["BF16"] and "bfloat16" in str(value.dtype)
        arrays[name] = array if is_bfloat16 else to_signed(array)
        parts[name] = safetensors.TensorSpec(
            dtype="bfloat16" if is_bfloat16 else arrays[name].dtype.name, shape=array.shape,
            data_ptr=arrays[name].ctypes.data, data_len=array.nbytes)
    safetensors.serialize_file(parts, str(path), None)


def to_signed(array: numpy.ndarray) -> numpy.ndarray:
    """Returns unsigned integers as signed ones of the same bits, which Weir's graphs have; others as they are."""
    return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array


def check_names(arguments: Sequence[Argument]) -> None:
    """Refuses arguments that share a name. Errors: ExportError."""
    names = [argument.name for argument in arguments]
    if shared := sorted({name for name in names if names.count(name) > 1}):
        raise ExportError(f"two arguments are named {shared[0]}; give the input or the target another name")


def set_attributes(
    lowered: ir.Module, arguments: Sequence[Argument], results: Sequence[str], frozen: Collection[str] = (),
    sharded: Mapping[str, Sequence[int] | str] | None = None,
    differing: Mapping[str, Sequence[int]] | None = None,
) -> None:
    """Sets weir.name, weir.kind, weir.donate, weir.frozen and weir.sharded, which torch-mlir does not know.

    `sharded`: of arguments that differ by rank the axes of the grid along which they do, or their unit; `differing`: the
               axes of results that differ.
    """
    [function] = lowered.body.operations

    def attributes(**values: str) -> dict[str, ir.Attribute]:
        return {f"weir.{key}": ir.StringAttr.get(value) for key, value in values.items()}

    with lowered.context as context:
        context.allow_unregistered_dialects = True
        donate, freeze = ({f"weir.{name}": ir.UnitAttr.get()} for name in ("donate", "frozen"))

        def shard(how: Sequence[int] | str | None) -> dict[str, ir.Attribute]:
            if not how:
                return {}
            return attributes(sharded=how) if isinstance(how, str) else {"weir.sharded": ir.DenseI64ArrayAttr.get(how)}

        function.attributes["arg_attrs"] = ir.ArrayAttr.get([
            ir.DictAttr.get(
                attributes(name=argument.name, kind=argument.kind)
                | (donate if argument.donated else {})
                | (freeze if argument.name in frozen else {})
                | shard((sharded or {}).get(argument.name))
            )
            for argument in arguments
        ])
        function.attributes["res_attrs"] = ir.ArrayAttr.get([
            ir.DictAttr.get(attributes(name=name) | shard((differing or {}).get(name))) for name in results])


def set_names(lowered: ir.Module, arguments: Sequence[str], results: Sequence[str]) -> None:
    """Sets the names of inputs and results."""
    set_attributes(lowered, [Argument(name, "input", (), None) for name in arguments], results)


def add_grid(lowered: ir.Module, shape: Sequence[int]) -> None:
    """Says of how many ranks along each axis the collectives of a module are."""
    with lowered.context as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        ir.Operation.create(GRID_OP, [], [], {"sym_name": ir.StringAttr.get(GRID), "shape": ir.DenseI64ArrayAttr.get(shape)},
                            ip=ir.InsertionPoint.at_block_begin(lowered.body))


def print_graph(lowered: ir.Module) -> str:
    """Returns a module as text, with locations."""
    text = lowered.operation.get_asm(enable_debug_info=True).rstrip() + "\n"
    return re.sub(r'dense<"0x([0-9A-F]+)"> : tensor<((?:\d+x)+)i1>', _list_bits, text)


def _list_bits(match: re.Match) -> str:
    """Writes constants of bits as words: as digits, torch-mlir's MLIR has a byte for each, and Weir's a bit."""
    shape = [int(size) for size in match[2].split("x")[:-1]]
    bits = numpy.frombuffer(bytes.fromhex(match[1]), numpy.uint8) != 0
    return f"dense<{json.dumps(bits.reshape(shape).tolist())}> : tensor<{match[2]}i1>"


def merge(texts: list[str]) -> str:
    """Returns one module with the functions of several. The functions' names must differ."""
    if len(texts) == 1:
        return texts[0]
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        modules = [ir.Module.parse(text) for text in texts]
        whole = modules[0]
        for module in modules[1:]:
            for op in module.body.operations:
                if op.operation.name != GRID_OP or all(other.operation.name != GRID_OP for other in whole.body.operations):
                    whole.body.append(op.operation.clone())
        return print_graph(whole)


def walk(operation: ir.Operation) -> Iterator[ir.Operation]:
    """Yields an operation and all within it."""
    yield operation
    for region in operation.regions:
        for block in region:
            for nested in block:
                yield from walk(nested.operation)


def list_values(op: ir.Operation) -> list[ir.Value]:
    """Returns the operands and results of an operation, and the arguments of its blocks."""
    inner = [value for region in op.regions for block in region for value in block.arguments]
    return [*op.operands, *op.results, *inner]


def find_foreign(module: ir.Module) -> list[ir.Operation]:
    """Returns the operations that the graph level has not, in order: of other dialects, and branches between tensors."""
    return [op for op in walk(module.operation) if op.name.split(".")[0] not in DIALECTS
            or (op.name in BRANCHES and op.parent.name == "func.func")]


def collect_errors(context: ir.Context) -> list[ir.DiagnosticInfo]:
    """Returns a list that takes the diagnostics of a context, which no longer go to standard error."""
    errors: list[Any] = []

    def take(diagnostic: ir.Diagnostic) -> bool:
        errors.append(diagnostic.message)
        return True

    context.attach_diagnostic_handler(take)
    return errors



def find_name(location: ir.Location) -> str:
    """Returns the name of a location, of the caller's for a call, or "" if it has none."""
    found = re.search(r'loc\((?:callsite\()?"((?:[^"\\]|\\.)*)"(?!:\d)', str(location))
    return found.group(1) if found else ""


class LoweringError(Exception):
    """A graph that torch-mlir does not lower. Each problem is the name of its location, or "", and a message."""

    def __init__(self, problems: list[tuple[str, str]]):
        super().__init__("; ".join(message for _, message in problems) or "torch-mlir gives no reason")
        self.problems = problems


def run_passes(text: str, pipeline: str, *options: str) -> str:
    """Returns the text of a module after torch-mlir's passes, with locations, in the form that any context reads.

    They run in a process of their own: some inputs end it. It has one thread, as the module has one function.
    Errors: LoweringError.
    """
    tool = pathlib.Path(ir.__file__).parent / "_mlir_libs/torch-mlir-opt"
    done = subprocess.run([tool, f"--pass-pipeline={pipeline}", "--mlir-print-debuginfo",
                           "--mlir-print-op-generic", "--mlir-disable-threading", *options],
                          input=text, capture_output=True, text=True)
    if done.returncode:
        errors = re.findall(r"\berror: (.*)", done.stderr)
        named = [re.fullmatch(r'loc\((?:callsite\()?"((?:[^"\\]|\\.)*)".*?\): (.*)', error) for error in errors]
        problems = [found.groups() if found else ("", error) for found, error in zip(named, errors)]
        crash = done.stderr.strip().splitlines()[:1] or [f"torch-mlir-opt ended with status {done.returncode}"]
        raise LoweringError(problems or [("", crash[0])])
    return done.stdout
