"""Compiles ONNX models to programs and to training steps: `weir.onnx.compile`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy

from weir.arrays import Array, like
from weir.building import Call, StepOptions, build, build_step, name_entries, telling
from weir.graphs import Exported, Result
from weir.onnx.exporting import export
from weir.onnx.models import Model
from weir.programs import Compiled
from weir.runtime import Device


Shapes = Mapping[str, Sequence[int] | int]


def compile(
    model: Model,
    shapes: Shapes | list[Shapes] | None = None,
    *,
    constants: Mapping[str, numpy.ndarray] | None = None,
    train: str | None = None,
    trained: Collection[str] = ("*",),
    device: str | Device = "auto",
    memory_limit: int | str | None = None,
    checkpoint: str = "off",
    precision: str | None = None,
    **options: Any,
) -> Compiled:
    """Compiles an ONNX model for a device of this machine, and uploads its initializers.

    `model`:     the path of an .onnx file, whose external data is read, too; bytes; or an onnx.ModelProto.
    `shapes`:    the shape of an input by its name, {"x": (8, 3, 224, 224)}, or a size by the name that the model has
                 for it, {"batch": 8}. A list of such dicts makes an entry for each: they share the initializers, and
                 a call picks the one that fits.
    `constants`: values of inputs, which become part of the program: those that decide sizes and axes have to.
    `train`:     the output that is the loss, one float of rank 0. The result is then a weir.Step, which trains the
                 initializers; `options` are those of `weir.compile_step`: optimizer, groups, clip_norm and so on.
    `trained`:   patterns of the initializers that are trained, by default all floats but batch norm's statistics.
    `device`, `memory_limit`, `checkpoint`, `precision`: as for `weir.compile`.
    A call takes the model's inputs by name or in order. It returns the output, or a dict of outputs by name.
    Errors: weir.onnx.ExportError if the model has no graph; those of `weir.compile`.
    """
    if options and train is None:
        raise TypeError(f"{next(iter(options))} is an option of a step; name the output that is the loss by train=")
    given = shapes if isinstance(shapes, list) else [shapes]
    if not given:
        raise TypeError("the list of shapes is empty")
    if len(given) > 1 and train is not None:
        raise TypeError("a step has one entry; give the shapes of one call")
    names = name_entries(len(given))
    with telling("exporting"):
        exported = [export(model, each, constants=constants, train=train, trained=trained, entry=name)
                    for each, name in zip(given, names)]
    calls = [Call(each, make_bind(each), make_rebuild(each)) for each in exported]
    if train is None:
        return build(calls, names, device, memory_limit, checkpoint, precision)
    step = StepOptions(**options, device=device, memory_limit=memory_limit, checkpoint=checkpoint,
                       precision=precision)
    return build_step(calls[0], step, own=list(exported[0].parameters))


def make_bind(exported: Exported) -> Callable[[tuple, dict], dict[str, Any]]:
    """Returns a function from a call to its tensors by name."""
    names = [argument.name for argument in exported.arguments if argument.name not in exported.parameters]

    def bind(arguments: tuple, named: dict) -> dict[str, Any]:
        free = [name for name in names if name not in named]
        if len(arguments) > len(free):
            raise TypeError(f"the model takes {', '.join(names) or 'nothing'}; {len(arguments) + len(named)} arguments "
                            "are given")
        return dict(zip(free, arguments)) | named

    return bind


def make_rebuild(exported: Exported) -> Callable[[dict[str, Array], Any], Any]:
    """Returns a function from results by name to the output, or to a dict of several outputs."""
    def rebuild(results: dict[str, Array], given: Any) -> Any:
        values = {name: like(results[name], given) for name in exported.results}
        return next(iter(values.values())) if isinstance(exported.output, Result) else values

    return rebuild
