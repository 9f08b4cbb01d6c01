"""Calls a function in a process of its own, whose memory goes back to the system with it."""

import ctypes
import gc
import os
import pickle
import select
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

PR_SET_PDEATHSIG = 1  # of prctl: the signal that a process gets when its parent ends
PATIENCE = 20.0  # seconds in which a process that works uses the processor


class EndedError(Exception):
    """A process that a signal ended before it had a result. The message names the signal."""


def call_apart(function: Callable[[], Any], passed_on: type[Exception]) -> Any:
    """Returns what a function returns, computed in a fork of this process; in this one elsewhere than on Linux, and
    where the system has no room for a fork.

    The function works on values in host memory alone: it must not use a device, or another process. What it changes in
    this process' objects is lost.
    A fork lacks the other threads. If one of them had a lock that the function needs, the fork waits for ever: it is
    ended, and the function runs in this process.
    Errors: EndedError; exceptions of the type `passed_on` that the function raises. After any other one it runs again in
            this process, to raise that here.
    """
    if sys.platform != "linux":
        return function()
    reader, writer = os.pipe()
    for stream in (sys.stdout, sys.stderr):  # or else both processes print what is there
        if stream is not None:
            stream.flush()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are other threads: the child needs none
            child = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        return function()
    if not child:
        _work(function, passed_on, reader, writer)
    os.close(writer)
    try:
        with open(reader, "rb") as file:
            is_stuck = not _wait_for_data(reader, child)
            data = b"" if is_stuck else file.read()
        if is_stuck:
            os.kill(child, signal.SIGKILL)
        is_done, value = pickle.loads(data) if data else (False, None)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        status = _wait(child)
    if is_done:
        return value
    if isinstance(value, passed_on):
        raise value
    if os.WIFSIGNALED(status) and not is_stuck:
        raise EndedError(f"ended by {signal.Signals(os.WTERMSIG(status)).name}")
    return function()


def _wait_for_data(reader: int, child: int) -> bool:
    """Returns whether a child has sent something or ended; false if it has used no processor for a while."""
    used = None
    ready = select.poll()
    ready.register(reader, select.POLLIN)
    while not ready.poll(PATIENCE * 1000):
        before, used = used, _read_processor_time(child)
        if used == before:
            return False
    return True


def _read_processor_time(process: int) -> list[str]:
    """Returns the clock ticks that a process has used, in its code and in the system's; nothing if it is gone."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[11:13]  # utime and stime, proc(5)
    except OSError:
        return []


def _work(function: Callable[[], Any], passed_on: type[Exception], reader: int, writer: int) -> None:
    """Sends what a function returns or raises, and ends this process without clean-up: what it has is the parent's."""
    try:
        gc.disable()  # it would free buffers of devices, which the parent uses
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.close(reader)
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(1)  # the others are not here
        try:
            found = (True, function())
        except passed_on as error:
            found = (False, error)
        with open(writer, "wb") as file:
            file.write(pickle.dumps(found))
    finally:
        os._exit(0)


def _wait(child: int) -> int:
    """Returns the status of a child that has ended; 0 if the process ignores the end of its children."""
    try:
        return os.waitpid(child, 0)[1]
    except ChildProcessError:
        return 0
