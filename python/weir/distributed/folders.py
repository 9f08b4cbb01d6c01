"""Checkpoints of all ranks: folders `step-N` by torch.distributed.checkpoint, each there as a whole or not at all."""

import contextlib
import os
import pathlib
import re
import shutil
from collections.abc import Callable, Mapping

import torch
import torch.distributed.checkpoint as dcp

from weir.checkpoints import CheckpointError
from weir.distributed.groups import Ranks, to_tensor
from weir.programs import Step

NOTES = "weir.notes"  # of a checkpoint: what `save` was given, as a tensor each


def save(ranks: Ranks, folder: pathlib.Path, values: Mapping[str, torch.Tensor], notes: Mapping[str, int]) -> pathlib.Path:
    """Writes a checkpoint of what each rank gives, a value of one name once, and returns its folder."""
    final = folder / f"step-{notes['steps']:012}"
    partial = folder / f".{final.name}.partial"
    problem = ""
    if ranks.rank == 0:
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
        except OSError as error:
            problem = str(error)
    ranks.agree(problem, "writing a checkpoint")
    state = dict(values) | {f"{NOTES}.{name}": torch.tensor(number) for name, number in notes.items()}
    with ranks.guard("writing a checkpoint"), _explain(f"{final} cannot be written"):
        dcp.save(state, storage_writer=dcp.FileSystemWriter(partial, sync_files=True), process_group=ranks.group)
    if ranks.rank == 0:
        try:
            _replace(partial, final)
        except OSError as error:
            problem = str(error)
    ranks.agree(problem, "writing a checkpoint")
    return final


def save_pieces(ranks: Ranks, folder: pathlib.Path, step: Step, get_key: Callable[[str, int], str]) -> pathlib.Path:
    """Writes a checkpoint of what a step holds on each rank, and returns its folder.

    `get_key`: returns the name of a value of a rank, that of rank 0 for one that all share.
    """
    step._check_steps()
    values = {get_key(name, ranks.rank): to_tensor(value) for name, value in step._execution.read().items()}
    return save(ranks, folder, values, {"steps": step.steps, "accumulated": step._accumulated, "ranks": ranks.size})


def load(
    ranks: Ranks, folder: pathlib.Path, choose: Callable[[Mapping[str, int]], dict[str, torch.Tensor]]
) -> tuple[dict[str, torch.Tensor], dict[str, int]] | None:
    """Reads the last checkpoint, or returns None if there is none.

    `choose`: returns the tensors to fill, for the notes of the checkpoint.
    Errors: CheckpointError, on every rank, if the checkpoint has other values.
    """
    found = sorted(path for path in folder.glob("step-*") if re.fullmatch(r"step-\d+", path.name))
    steps = int(found[-1].name.removeprefix("step-")) if found else -1
    rows = ranks.share([steps], "looking for a checkpoint")
    if odd := [rank for rank, row in enumerate(rows) if row != rows[0]]:
        raise CheckpointError(f"ranks 0 and {odd[0]} find different checkpoints in {folder}; give all the same folder")
    if not found:
        return None
    problem, state, notes = "", {}, {}
    try:
        reader = dcp.FileSystemReader(found[-1])
        known = reader.read_metadata().state_dict_metadata
        notes = {name.removeprefix(f"{NOTES}."): torch.zeros((), dtype=torch.int64) for name in known
                 if name.startswith(f"{NOTES}.")}
        dcp.load({f"{NOTES}.{name}": value for name, value in notes.items()}, storage_reader=reader, no_dist=True)
        state = choose({name: int(value) for name, value in notes.items()})
        problem = _compare(state, known)
    except CheckpointError as error:
        problem = str(error)
    except Exception as error:  # of any kind: files are cut short, or are none of torch's
        problem = f"it cannot be read: {error}".splitlines()[0]
    with _as_checkpoint_error(found[-1]):
        ranks.agree(problem, "reading a checkpoint")
    with ranks.guard("reading a checkpoint"), _explain(f"{found[-1]} cannot be read"):
        dcp.load(state, storage_reader=dcp.FileSystemReader(found[-1]), process_group=ranks.group)
    return state, {name: int(value) for name, value in notes.items()}


def _compare(state: Mapping[str, torch.Tensor], known: Mapping) -> str:
    problems = [f"it has no {name}" for name in state if name not in known]
    for name, tensor in state.items():
        if name in known and (known[name].size, known[name].properties.dtype) != (tensor.shape, tensor.dtype):
            problems.append(f"{name} is {known[name].properties.dtype}{list(known[name].size)}, expected "
                            f"{tensor.dtype}{list(tensor.shape)}")
    return "; ".join(problems[:3])


def _replace(partial: pathlib.Path, final: pathlib.Path) -> None:
    """Gives a folder its final name, and makes sure that the disk has both."""
    if final.exists():  # a restart wrote it again: its values are the same
        shutil.rmtree(partial)
        return
    for path in (partial, final.parent):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
            if path == partial:
                os.rename(partial, final)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _as_checkpoint_error(path: pathlib.Path):
    from weir.distributed.groups import FaultError
    from weir.runtime import Error

    try:
        yield
    except FaultError:
        raise
    except Error as error:
        raise CheckpointError(f"{path} is of another step: {error}; load a checkpoint of this step") from None


@contextlib.contextmanager
def _explain(what: str):
    """Turns the exception of torch.distributed.checkpoint, which has a traceback for each rank, into one sentence."""
    try:
        yield
    except dcp.api.CheckpointException as error:
        reasons = "; ".join(f"rank {rank}: {reason[0]}" for rank, reason in error.failures.items())
        raise CheckpointError(f"{what}: {reasons}") from None
