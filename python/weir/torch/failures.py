"""Says in one sentence what of a module PyTorch could not trace, and where."""

import contextlib
import linecache
import logging
import re
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from torch import nn
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from weir.graphs import ExportError
from weir.torch.places import LIBRARIES

LOGGERS = ("torch.fx.experimental.symbolic_shapes", "torch.export._trace", "torch._subclasses.fake_tensor")
DEPENDS = ("a number that depends on values decides what is computed; keep it a tensor, as by torch.where, or make it a "
           "number that the call is given")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps from the terminal what PyTorch prints and logs of a trace that fails: graphs of pages. What the module prints
    itself is let through."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(_drop)
    try:
        with contextlib.redirect_stderr(_Filtering(sys.stderr)) if sys.stderr is not None else contextlib.nullcontext():
            yield
    finally:
        for logger in loggers:
            logger.removeFilter(_drop)


def explain(error: Exception) -> str:
    """Returns what was wrong, the operator, and the line of the user's module, or else of PyTorch's."""
    frames = _list_frames(error)
    texts = [frame.f_code.co_filename for frame in frames]
    own = [i for i, file in enumerate(texts) if not file.startswith((*LIBRARIES, "<"))]
    library = [i for i, file in enumerate(texts) if "/torch/nn/" in file and "nn/modules/module.py" not in file]
    name = next((each for frame in frames[own[-1] + 1 if own else 0:] if (each := _get_name(frame))), None)
    reason = str(error).strip().split("\n\n")[0] or type(error).__name__
    if isinstance(error, GuardOnDataDependentSymNode):
        reason = DEPENDS
    elif "must be tuple of ints,but got FakeTensor" in reason:
        reason = f"a size depends on values; give sizes as numbers, and mask what is padded ({reason})"
    place = ""
    if found := own or library:
        frame, line = frames[found[-1]], _list_lines(error)[found[-1]]
        place = f", {frame.f_code.co_filename}:{line}: {linecache.getline(frame.f_code.co_filename, line).strip()}"
    return f"{name}: {reason}{place}" if name else reason + place


def explain_decomposition(error: Exception) -> str:
    """Returns what was wrong with an operator that was decomposed, and its line. torch.fx tells both below the error."""
    reason, _, graph = str(error).partition("\n\nWhile executing ")
    target = re.search(r"target=torch\.ops\.([\w.]+)", graph)
    operator = target.group(1) if target else "an operator"
    if not isinstance(error, ExportError):
        reason = f"{operator} has no form for these operands ({type(error).__name__}: {reason.splitlines()[0] if reason else ''})"
    places = [(file, int(line)) for file, line in re.findall(r'File "([^"]+)", line (\d+)', graph)
              if not file.startswith(LIBRARIES)]
    if not places:
        return f"{reason}: {operator}" if graph else reason
    file, line = places[-1]
    return f"{reason}: {operator}, {file}:{line}: {linecache.getline(file, line).strip()}"


def _walk(error: Exception) -> Iterator[Any]:
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _list_frames(error: Exception) -> list[FrameType]:
    return [trace.tb_frame for trace in _walk(error)]


def _list_lines(error: Exception) -> list[int]:
    return [trace.tb_lineno for trace in _walk(error)]


def _get_name(frame: FrameType) -> str | None:
    """Returns the name of a module's class or of a function of torch.nn, if that is what the frame runs."""
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    if name == "forward" and isinstance(module := frame.f_locals.get("self"), nn.Module) and "/torch/nn/" in file:
        return type(module).__name__
    return name if "/torch/nn/" in file and "/nn/modules/module.py" not in file and not name.startswith("_") else None


def _drop(record: logging.LogRecord) -> bool:
    return False


class _Filtering:
    """A stream without the graphs that PyTorch prints."""

    def __init__(self, stream: Any):
        self._stream, self._was_dropped = stream, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        is_dropped = "def forward(self" in text and "torch.ops." in text
        if not is_dropped and not (self._was_dropped and text == "\n"):
            self._stream.write(text)
        self._was_dropped = is_dropped
        return len(text)
