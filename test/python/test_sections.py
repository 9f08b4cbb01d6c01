"""weir.sections.Run: the order in which sections are computed, and values are gathered and exchanged."""

import numpy
import pytest

from weir.arrays import Array
from weir.runtime import Entry, Tensor
from weir.sections import Run


class FakeBuffer:
    """Bytes of the host, by a number."""

    def __init__(self, number):
        self.number, self.values = number, None

    def write(self, values):
        self.values = values


class FakePool:
    def __init__(self):
        self.free, self.made = [], 0

    def take(self, tensor):
        if not self.free:
            self.made += 1
            self.free.append(FakeBuffer(self.made))
        return self.free.pop()

    def give(self, buffer):
        assert buffer not in self.free
        self.free.append(buffer)


def make(number, reads, gives):
    def list_tensors(names):
        return [Tensor(name, numpy.dtype("float32"), (1,)) for name in names]

    return Entry(f"f.section.{number}", list_tensors(reads), list_tensors(gives))


def run(sections, given=()):
    """Returns what happened, in its order, the results, and the buffers that were made."""
    events, pool = [], FakePool()

    def call(section, taken):
        assert taken.keys() == {tensor.name for tensor in section.arguments}
        events.append(f"run {section.name[-1]}")
        return {tensor.name: Array(tensor, pool.take(tensor)) for tensor in section.results}

    def exchange(sent):
        events.append(f"send {' '.join(sent)}")

        def finish():
            events.append(f"receive {' '.join(sent)}")
            return {f"received.{name.split('.')[1]}": numpy.zeros(1, numpy.float32) for name in sent}

        return finish

    def gather(wanted):
        names = " ".join(name for _, name in wanted)
        events.append(f"ask for {names}")

        def finish(buffers):
            assert len(buffers) == len(wanted)
            events.append(f"have {names}")

        return finish

    results = Run(sections, pool, call, exchange, gather).do(dict.fromkeys(given, 0))
    return events, results, pool.made


def test_units_and_sums_are_on_their_way_while_a_section_is_computed():
    """Two units forward; backward the last one stays. Its sum is read behind the next section."""
    events, results, _ = run([
        make(0, ["x", "gathered.0.u"], ["kept.0"]),
        make(1, ["kept.0", "gathered.0.v"], ["sent.0.reduce_scatter.0", "kept.1"]),
        make(2, ["kept.1", "gathered.0.u"], ["sent.1.reduce_scatter.0"]),
        make(3, ["received.0", "received.1"], ["y"])], given=["x"])
    assert events == [
        "ask for u", "have u", "ask for v", "run 0", "have v", "ask for u", "run 1",
        "have u", "send sent.0.reduce_scatter.0", "run 2", "receive sent.0.reduce_scatter.0",
        "send sent.1.reduce_scatter.0", "receive sent.1.reduce_scatter.0", "run 3"]
    assert list(results) == ["y"]


def test_what_the_next_section_reads_is_waited_for():
    """The twin: it has no time on its way."""
    events, results, made = run([make(0, ["x"], ["sent.0.all_reduce"]), make(1, ["received.0"], ["sent.1.all_reduce"]),
                                 make(2, ["received.1"], ["y"])], given=["x"])
    assert events == ["run 0", "send sent.0.all_reduce", "receive sent.0.all_reduce", "run 1", "send sent.1.all_reduce",
                      "receive sent.1.all_reduce", "run 2"]
    assert made <= 3


@pytest.mark.parametrize("stays", [True, False])
def test_a_unit_stays_only_for_the_next_section(stays):
    middle = ["kept.0", "gathered.0.u"] if stays else ["kept.0"]
    events, _, _ = run([make(0, ["gathered.0.u"], ["kept.0"]), make(1, middle, ["kept.1"]),
                        make(2, ["kept.1", "gathered.0.u"], ["y"])])
    assert events.count("ask for u") == events.count("have u") == (1 if stays else 2)
