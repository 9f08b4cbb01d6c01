"""Cuts a module into the stages of a pipeline."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from torch import fx, nn
from torch.distributed.pipelining import Pipe, SplitPoint, pipeline

from weir.graphs import ExportError


def split(model: nn.Module, split_points: Sequence[str], args: tuple, kwargs: Mapping[str, Any]) -> Pipe:
    """Cuts a module before each of `split_points`, names of submodules, as it runs on `args` and `kwargs`.

    A stage gets values from the one before it alone.
    Errors: ExportError for split points that the module has not, or that are called several times.
    """
    modules = dict(model.named_modules(remove_duplicate=False))
    for name in split_points:
        if name not in modules or not name:
            raise ExportError(f"there is no submodule {name!r} to begin a stage with; name one of "
                              f"{', '.join(sorted(filter(None, modules))[:5])}...")
        if others := [other for other, module in modules.items() if module is modules[name] and other != name]:
            raise ExportError(f"{name} and {others[0]} are one module, whose state would be that of several stages; split "
                              "where a module is called once")
    if len(set(split_points)) < len(split_points):
        raise ExportError("a split point is named twice; name each once")
    # PyTorch marks a split by another `forward`, which the module is not to keep.
    before = {name: dict(modules[name].__dict__) for name in split_points}
    try:
        pipe = pipeline(model, args, dict(kwargs), split_spec={name: SplitPoint.BEGINNING for name in split_points})
    except RuntimeError as error:
        raise ExportError(f"PyTorch cannot cut the module: {error.__cause__ or error}".splitlines()[0]) from error
    finally:
        for name, attributes in before.items():
            modules[name].__dict__.clear()
            modules[name].__dict__.update(attributes)
    if pipe.num_stages != len(split_points) + 1:
        raise ExportError(f"{len(split_points)} split points make {pipe.num_stages} stages: one begins the module, is never "
                          "called, or is called several times, with one state; split where a module is called once")
    _pass_on(pipe.split_gm)
    return pipe


def _pass_on(whole: fx.GraphModule) -> None:
    """Lets each stage between pass on what a later one reads, so that values come from the stage before alone.

    PyTorch's schedules send from one stage to the next. What goes further is refused by most of them, and the others
    wait without end on three ranks and more where a send ends when its receiver asks, as gloo's do.
    """
    stages = [node for node in whole.graph.nodes if node.op == "call_module"]
    places = {stage: place for place, stage in enumerate(stages)}
    for place, stage in enumerate(stages[:-1]):
        for value in list(stage.users) if _is_tuple(whole, stage) else [stage]:
            after = {user for user in value.users if places.get(user, len(stages)) > place + 1}
            if after:
                passed = _pass_through(whole, stages[place + 1], value)
                for user in after:
                    user.replace_input_with(value, passed)
    whole.recompile()


def _pass_through(whole: fx.GraphModule, stage: fx.Node, value: fx.Node) -> fx.Node:
    """Gives a value to a stage, if it does not get it, and returns what the stage gives for it."""
    part = whole.get_submodule(stage.target)
    inputs = [node for node in part.graph.nodes if node.op == "placeholder"]
    if value not in stage.args:
        with part.graph.inserting_after(inputs[-1]):
            inputs.append(part.graph.placeholder(f"passed_{value.name}"))
        inputs[-1].meta["val"] = _find_example(whole, value)
        stage.args = (*stage.args, value)
    given = inputs[stage.args.index(value)]
    is_tuple = _is_tuple(whole, stage)
    end = next(node for node in part.graph.nodes if node.op == "output")
    [old] = end.args
    end.args = ((*old, given) if is_tuple else (old, given),)
    part.recompile()
    users = list(stage.users)
    with whole.graph.inserting_after(users[-1] if is_tuple else stage):
        if not is_tuple:
            only = whole.graph.call_function(operator.getitem, (stage, 0))
            for user in users:
                user.replace_input_with(stage, only)
    with whole.graph.inserting_after(users[-1] if is_tuple else only):
        return whole.graph.call_function(operator.getitem, (stage, len(old) if is_tuple else 1))


def _is_tuple(whole: fx.GraphModule, stage: fx.Node) -> bool:
    """Whether a stage gives several values."""
    end = next(node for node in whole.get_submodule(stage.target).graph.nodes if node.op == "output")
    return isinstance(end.args[0], (tuple, list))


def _find_example(whole: fx.GraphModule, value: fx.Node) -> Any:
    """Returns what a stage gave when the module was traced."""
    stage, place = (value.args[0], value.args[1]) if value.op == "call_function" else (value, None)
    end = next(node for node in whole.get_submodule(stage.target).graph.nodes if node.op == "output")
    return (end.args[0] if place is None else end.args[0][place]).meta["val"]
