"""weir.apart: functions in a process of their own, and exports, which have their graph from one."""

import os
import signal
import time

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

import weir.torch  # noqa: E402
from weir.apart import EndedError, call_apart  # noqa: E402


class Known(Exception):
    pass


def test_values_come_back_and_changes_do_not():
    changed = []

    def work():
        changed.append(1)
        return os.getpid(), torch.arange(3)

    process, values = call_apart(work, Known)
    assert process != os.getpid() and values.tolist() == [0, 1, 2] and not changed


def test_large_results():
    assert call_apart(lambda: "x" * (1 << 22), Known) == "x" * (1 << 22)


def test_no_room_for_a_fork(monkeypatch):
    def refuse():
        raise OSError("Cannot allocate memory")

    monkeypatch.setattr(os, "fork", refuse)
    assert call_apart(os.getpid, Known) == os.getpid()


def test_known_errors_are_passed_on():
    processes = []

    def work():
        processes.append(os.getpid())
        raise Known("no form in linalg")

    with pytest.raises(Known, match="no form in linalg"):
        call_apart(work, Known)
    assert not processes


def test_other_errors_are_raised_here():
    def work():
        raise ZeroDivisionError(os.getpid())

    with pytest.raises(ZeroDivisionError) as raised:
        call_apart(work, Known)
    assert raised.value.args == (os.getpid(),)


@pytest.fixture
def children(monkeypatch):
    """The processes that are made."""
    made, fork = [], os.fork

    def note():
        if child := fork():
            made.append(child)
        return child

    monkeypatch.setattr(os, "fork", note)
    return made


def check_gone(children):
    [child] = children
    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)


def test_a_process_that_is_ended(children):
    with pytest.raises(EndedError, match="ended by SIGKILL"):
        call_apart(lambda: os.kill(os.getpid(), signal.SIGKILL), Known)
    check_gone(children)


def test_a_process_that_waits_for_ever_is_replaced(children, monkeypatch):
    """As one does that needs a lock of a thread that it has not."""
    monkeypatch.setattr("weir.apart.PATIENCE", 0.3)
    parent = os.getpid()
    assert call_apart(lambda: os.getpid() if os.getpid() == parent else signal.pause(), Known) == parent
    check_gone(children)


def test_a_process_that_works_for_long_is_waited_for(monkeypatch):
    monkeypatch.setattr("weir.apart.PATIENCE", 0.3)

    def work():
        begin = time.process_time()
        while time.process_time() < begin + 1.5:
            pass
        return os.getpid()

    assert call_apart(work, Known) != os.getpid()


def test_processes_whose_end_is_ignored():
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert call_apart(lambda: 3, Known) == 3
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_ctrl_c_ends_it(children):
    parent = os.getpid()

    def work():
        time.sleep(0.3)
        os.kill(parent, signal.SIGINT)
        signal.pause()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            call_apart(work, Known)
    finally:
        signal.signal(signal.SIGINT, before)
    check_gone(children)


def test_an_export_whose_process_is_ended(monkeypatch):
    monkeypatch.setattr("weir.torch.exporting.lower", lambda program, entry: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(weir.torch.ExportError, match="the process that lowers the graph .* was ended by SIGKILL"):
        weir.torch.export(torch.nn.Linear(2, 3), (torch.randn(4, 2),))
