"""Weir inside PyTorch: a module whose forward and backward Weir computes, and a backend of torch.compile."""

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import torch
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses import FakeTensorMode

from weir.building import CompileError, run_compiler
from weir.compiling import make_bind, make_rebuild
from weir.execution import Execution
from weir.graphs import Exported, ExportError
from weir.holes import SEED, STEP
from weir.runtime import Device, open_device
from weir.torch.calls import get_module
from weir.torch.exporting import export
from weir.torch.trees import to_pairs

aten = torch.ops.aten
OPTIONS = {"device", "memory_limit", "precision"}  # of torch.compile's backend
MOST = 32  # programs that are made of one graph for other shapes


class Module(nn.Module):
    """A module whose forward and backward Weir computes, for a training loop and an optimizer of PyTorch's.

    It has the parameters of `module`, which stay in host memory and are copied for each call; `weir.compile_step` keeps
    them on the device. Dropout draws its seed from PyTorch's generator. Backward computes forward again. There is no
    second derivative.
    """

    def __init__(
        self,
        module: nn.Module | Callable,
        example: Sequence | Mapping,
        *,
        device: str | Device = "auto",
        memory_limit: int | str | None = None,
        precision: str | None = None,
    ):
        """Compiles a module with its gradients.

        The arguments and errors are those of `weir.compile`, but with one example only.
        """
        super().__init__()
        self.module = module = get_module(module)
        exported = export(module, example, keep_buffers=True, copies=False)
        self._program = _Program(exported, open_device(device), memory_limit, precision,
                                 ["--vjp=main", "--entry=main.vjp"])
        self._bind = make_bind(module, example)
        self._rebuild = make_rebuild(exported)

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """Returns PyTorch tensors, through which gradients flow.

        The arguments are those of the module, of the shapes and types of the example.
        Errors: those of a call of `weir.Compiled`.
        """
        given = self._bind(arguments, named)
        own = dict(self.module.named_parameters()) | dict(self.module.named_buffers())
        given |= {name: own[name] for name in self._program.names if name in own}
        given |= _draw_seed(self._program.names)
        written = [name for name in self._program.written if name in own]
        given |= {name: given[name].detach().clone() for name in written}  # backward reads what forward did
        results = _Run.apply(self._program, list(given), *given.values())
        named_results = dict(zip(self._program.results, results))
        with torch.no_grad():
            for name in written:
                own[name].copy_(named_results[name])
        return self._rebuild(named_results, None)


class _Program:
    """A graph and its gradients on a device."""

    def __init__(
        self,
        exported: Exported,
        device: Device,
        memory_limit: int | str | None,
        precision: str | None,
        options: list[str],
    ):
        path, self._folder = run_compiler(exported.text, device, memory_limit, ["--entry=main", *options],
                                          precision)
        self._execution = Execution(path, device, exported.dtypes)
        self.names = [argument.name for argument in exported.arguments]
        self.results, self.fixed = exported.results, set(exported.fixed)
        self.written = [argument.name for argument in exported.arguments
                        if argument.kind == "state" and argument.name in exported.results]
        vjp = self._execution.entries.get("main.vjp")
        self.cotangents = {argument.name.removeprefix("cotangent."): argument for argument in vjp.arguments
                           if argument.name.startswith("cotangent.")} if vjp else {}

    def run(self, entry: str, given: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        results = self._execution.call(self._execution.entries[entry], given)
        return {name: value.torch() for name, value in results.items()}


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, program: _Program, names: list[str], *values: torch.Tensor) -> tuple:
        ctx.program, ctx.names = program, names
        ctx.save_for_backward(*values)
        results = program.run("main", dict(zip(names, values)))
        made = tuple(results[name] for name in program.results)
        ctx.mark_non_differentiable(*(value for name, value in zip(program.results, made)
                                      if not value.is_floating_point() or name in program.fixed | set(program.written)))
        return made

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple:
        program = ctx.program
        given = dict(zip(ctx.names, ctx.saved_tensors))
        for name, cotangent in zip(program.results, cotangents):
            if like := program.cotangents.get(name):
                is_flowing = cotangent is not None and name not in program.written
                given[f"cotangent.{name}"] = cotangent.contiguous() if is_flowing else numpy.zeros(like.shape, like.dtype)
        gradients = program.run("main.vjp", given)
        return (None, None,
                *(gradients.get(f"grad.{name}") if needed else None
                  for name, needed in zip(ctx.names, ctx.needs_input_grad[2:])))


def _draw_seed(names: Sequence[str]) -> dict[str, torch.Tensor]:
    """Returns a seed from PyTorch's generator if random numbers are drawn."""
    if SEED not in names:
        return {}
    return {SEED: torch.randint(1 << 62, ()), STEP: torch.zeros((), dtype=torch.int64)}


def compile_graph(
    graph: torch.fx.GraphModule, inputs: Sequence[torch.Tensor], *, options: Mapping[str, Any] | None = None
) -> Callable:
    """Compiles a graph and its backward for `torch.compile(module, backend="weir")`.

    `options`: what `torch.compile` is given as `options`: device, memory_limit and precision, as for `weir.compile`.
    A graph is compiled at its first call with tensors of other shapes: Weir's programs have static ones. One that is
    refused runs in PyTorch, and a warning says what was refused.
    Errors: TypeError for other options.
    """
    options = dict(options or {})
    if unknown := sorted(set(options) - OPTIONS):
        raise TypeError(f"the backend weir has no option {unknown[0]!r}; it has {', '.join(sorted(OPTIONS))}")
    compiler = functools.partial(_Graph, options=options)
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):  # the others' backward has no decomposition
        return aot_autograd(fw_compiler=compiler, bw_compiler=compiler, decompositions=_get_table())(graph, inputs)


@functools.cache
def _get_table() -> dict:
    """Returns the decompositions of the graphs that PyTorch makes of a module and its gradients."""
    table = torch._decomp.core_aten_decompositions()
    return table | torch._decomp.get_decompositions([aten.embedding_dense_backward, aten.nll_loss2d_backward])


class _Graph:
    """A graph of tensors without gradients, and its programs, one for each set of shapes that it was called with."""

    def __init__(self, graph: torch.fx.GraphModule, inputs: Sequence, *, options: Mapping[str, Any]):
        self._graph, self._options = graph, options
        self._runs: dict[tuple, Callable] = {}
        self._rest: Callable | None = None  # what runs other shapes once there are too many
        self._boxed_call = True  # AOTAutograd calls it with one list, which it may empty; wrappers copy what `self` has

    @torch._dynamo.disable
    def __call__(self, given: list) -> Any:
        values = tuple(given)
        given.clear()
        key = tuple((value.shape, value.stride(), value.dtype) if isinstance(value, torch.Tensor) else (type(value), value)
                    for value in values)
        if key not in self._runs:
            if len(self._runs) < MOST:
                self._runs[key] = self._compile(values)
            elif self._rest is None:
                self._rest = self._keep(f"it was called with {MOST} sets of sizes and numbers; pad what changes at each call")
        return self._runs.get(key, self._rest)(*values)

    def _keep(self, reason: str) -> Callable:
        warnings.warn(f"weir leaves a graph to PyTorch: {reason}", stacklevel=4)
        return self._graph.forward

    def _compile(self, values: Sequence) -> Callable:
        """Returns a function that runs the graph for the shapes and numbers of `values`."""
        if not any(isinstance(value, torch.Tensor) for value in values):
            return self._graph.forward
        try:
            examples = tuple(torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
                             if isinstance(value, torch.Tensor) else value for value in values)
            # In a thread of its own, which has none of the modes in which PyTorch calls a compiled graph.
            with ThreadPoolExecutor(1) as thread:
                exported, strides = thread.submit(self._export, examples).result()
            program = _Program(exported, open_device(self._options.get("device", "auto")),
                               self._options.get("memory_limit"), self._options.get("precision"), [])
        except (ExportError, CompileError) as error:
            return self._keep("; ".join(str(error).splitlines()[:2]))
        rebuild = make_rebuild(exported)
        names = [argument.name for argument in exported.arguments if argument.kind == "input"]

        def run(*values: Any) -> Any:
            tensors = (to_pairs(value) for value in values if isinstance(value, torch.Tensor))
            results = rebuild(program.run("main", dict(zip(names, tensors, strict=True)) | _draw_seed(program.names)), None)
            return [_lay_out(result, stride) for result, stride in zip(results, strides, strict=True)]

        return run

    @torch.no_grad()
    def _export(self, examples: Sequence) -> tuple[Exported, list[tuple[int, ...] | None]]:
        """Returns the graph, and the strides of its results in PyTorch, which takes views of them by strides."""
        exported = export(self._graph, examples, copies=False)
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            results = self._graph(*(mode.from_tensor(value) if isinstance(value, torch.Tensor) else value
                                    for value in examples))
        return exported, [value.stride() if isinstance(value, torch.Tensor) else None for value in results]


def _lay_out(value: Any, stride: tuple[int, ...] | None) -> Any:
    if stride is None or value.stride() == stride or not value.numel():
        return value
    once = value[tuple(slice(None) if step else slice(1) for step in stride)]  # of what is broadcast
    made = torch.empty_strided(once.shape, stride, dtype=value.dtype, device=value.device)
    return made.copy_(once).expand(value.shape)


if "weir" not in torch._dynamo.list_backends(exclude_tags=()):  # an installed package has an entry point for it
    torch._dynamo.register_backend(compile_graph, name="weir")
