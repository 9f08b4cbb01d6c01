"""Weir inside PyTorch: a module whose forward and backward Weir computes, and a backend of torch.compile."""

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
import torch
from functorch.compile import make_boxed_func
from torch import nn
from torch._dynamo.backends.common import aot_autograd

from weir.building import CompileError, run_compiler
from weir.compiling import make_bind, make_rebuild
from weir.execution import Execution
from weir.graphs import Exported, ExportError
from weir.runtime import Device, open_device
from weir.torch.exporting import export
from weir.holes import SEED, STEP


class Module(nn.Module):
    """A module whose forward and backward Weir computes, for a training loop and an optimizer of PyTorch's.

    It has the parameters of `module`, which stay in host memory and are copied for each call; `weir.compile_step` keeps
    them on the device. Dropout draws its seed from PyTorch's generator. Backward computes forward again. There is no
    second derivative.
    """

    def __init__(
        self,
        module: nn.Module,
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
        self.module = module
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
        self._execution = Execution(path, device)
        self.names = [argument.name for argument in exported.arguments]
        self.results = exported.results
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
                                      if not value.is_floating_point() or name in program.written))
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
    A graph that is refused runs in PyTorch, and a warning says what was refused.
    """
    compiler = functools.partial(_compile_or_keep, options=options or {})
    decompositions = torch._decomp.core_aten_decompositions()
    return aot_autograd(fw_compiler=compiler, bw_compiler=compiler, decompositions=decompositions)(graph, inputs)


def _compile_or_keep(graph: torch.fx.GraphModule, inputs: Sequence, options: Mapping[str, Any]) -> Callable:
    """Returns a function that runs a graph of tensors without gradients."""
    if not any(isinstance(value, torch.Tensor) for value in inputs):
        return make_boxed_func(graph.forward)
    try:
        if other := [value for value in inputs if not isinstance(value, torch.Tensor)]:
            raise ExportError(f"an input is {type(other[0]).__name__}: shapes that change; compile with dynamic=False")
        examples = tuple(torch.empty_like(value, device="cpu") for value in inputs)
        exported = export(graph, examples, copies=False)
        program = _Program(exported, open_device(options.get("device", "auto")), options.get("memory_limit"),
                           options.get("precision"), [])
    except (ExportError, CompileError, TypeError) as error:
        reason = "; ".join(str(error).splitlines()[:2])
        warnings.warn(f"weir leaves a graph to PyTorch: {reason}", stacklevel=2)
        return make_boxed_func(graph.forward)
    rebuild = make_rebuild(exported)
    names = [argument.name for argument in exported.arguments if argument.kind == "input"]

    def run(*values: torch.Tensor) -> Any:
        given = dict(zip(names, values, strict=True)) | _draw_seed(program.names)
        return rebuild(program.run("main", given), None)

    return make_boxed_func(run)


torch._dynamo.register_backend(compile_graph, name="weir")
