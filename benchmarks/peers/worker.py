"""The process of one contender. Between its turns it is stopped, so that none of its threads spins in another's."""

import ctypes
import gc
import importlib
import multiprocessing
import os
import signal
import time

PR_SET_PDEATHSIG = 1


class Failure(Exception):
    """A contender's failure, in one line."""


def measure(run, seconds):
    """Returns the seconds of the fastest of the calls that fit in a time, behind one that brings its data near."""
    run()
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        run()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now >= end:
            return best


def read_status(name):
    """Returns the bytes that /proc/self/status has under a name."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


def get_peak(run):
    """Returns the most bytes that are resident in a call, without what compiling has freed."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # forget the peak
    run()
    return read_status("VmHWM")


def shorten(error):
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}{'...' if len(text) > 200 else ''}"


def serve(connection, module, argument, options):
    """Answers the parent's requests, each with an outcome or a failure's text, until it has no more."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options["threads"]])
    runs = {}  # by setting

    def prepare(case, setting):
        before, results = read_status("VmRSS"), []
        run, read, facts = adapter.prepare(case, setting, options)
        for _ in range(case.steps):
            run()
            results += read()
        if case.is_model:
            facts["peak_bytes"] = get_peak(run) - before
        runs[setting] = run
        return results, facts

    requests = {
        "list": lambda case: adapter.list_settings(case, argument),
        "prepare": prepare,
        "measure": lambda setting, seconds: measure(runs[setting], seconds),
        "clear": runs.clear,
    }
    try:
        adapter = importlib.import_module(module)
    except Exception as error:
        connection.send((None, shorten(error)))
        return
    connection.send((None, None))
    gc.disable()
    while True:
        try:
            name, *arguments = connection.recv()
        except EOFError:
            return
        try:
            connection.send((requests[name](*arguments), None))
        except Exception as error:
            connection.send((None, shorten(error)))
        if name == "clear":
            gc.collect()


class Worker:
    """A contender's process, as the parent sees it."""

    def __init__(self, module, argument, options, limit):
        """Starts the process. Errors: Failure if it cannot import what it needs."""
        self.limit = limit
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, module, argument, options), daemon=True)
        self.process.start()
        theirs.close()
        try:
            self._receive()
        except Failure:
            self.kill()  # it may be stopped, and would never end
            raise

    def ask(self, *request):
        """Returns the answer to a request. Errors: Failure, also if the process dies or takes too long."""
        os.kill(self.process.pid, signal.SIGCONT)
        try:
            self.connection.send(request)
        except OSError:
            self._fail()
        return self._receive()

    def is_alive(self):
        return self.process.is_alive()

    def kill(self):
        self.process.kill()
        self.process.join()

    def _receive(self):
        if not self.connection.poll(self.limit):
            self.kill()
            raise Failure(f"takes longer than {self.limit:g} s")
        try:
            answer, problem = self.connection.recv()
        except (EOFError, OSError):
            self._fail()
        if self.process.is_alive():
            os.kill(self.process.pid, signal.SIGSTOP)
        if problem:
            raise Failure(problem)
        return answer

    def _fail(self):
        self.process.join(5)  # it is about to end, with a status of its own
        self.kill()
        raise Failure(f"its process ended with status {self.process.exitcode}")
