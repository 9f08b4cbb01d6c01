"""Times what a stage adds to its runs: adapters.py [--blocks=2] [--rounds=300] [--device=cpu]

A stage of examples/distributed/model.py computes a microbatch, forward, input pass and weight pass, once as a schedule of
torch.distributed.pipelining calls it, and once as bare runs of the three entries on the same buffers. Both in turn; of
each the shortest and the median time. What is between them are copies to and from host memory, the parameters' checks and
PyTorch's autograd.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/distributed")]

import model  # noqa: E402
import weir.distributed  # noqa: E402
from weir.runtime import Program  # noqa: E402


class Recorder:
    """Remembers the runs that a program was asked for, with their buffers."""

    def __init__(self):
        self.runs, self._submit = [], Program.submit

    def __enter__(self):
        def submit(program, entry, arguments, results):
            self.runs.append((program, entry, list(arguments), list(results)))
            self._submit(program, entry, arguments, results)

        Program.submit = submit
        return self

    def __exit__(self, *_):
        Program.submit = self._submit


def run_adapted(module, value, cotangent):
    value = value.detach().requires_grad_()
    module(value).backward(cotangent)
    module.take_weighting()()
    return next(iter(module.parameters())).grad


def run_bare(runs):
    for program, entry, arguments, results in runs:
        program.submit(entry, arguments, results)
    for buffer in runs[-1][3]:
        buffer.wait()


def measure(function, times):
    begin = time.perf_counter()
    function()
    times.append((time.perf_counter() - begin) * 1e3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=2, help="blocks of the stage (default 2)")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=0, world_size=1)
        points = ["blocks.1", f"blocks.{1 + arguments.blocks}"]
        parts = weir.distributed.stages(model.make(2 + arguments.blocks), model.loss, points, example=model.draw(0, 0)[:1],
                                        device=arguments.device)
        module = parts.stage(1).submod
        value, cotangent = torch.randn(4, 32, 64), torch.randn(4, 32, 64)
        with Recorder() as recorder:
            run_adapted(module, value, cotangent)
        adapted, bare = [], []
        for _ in range(arguments.rounds):
            measure(lambda: run_adapted(module, value, cotangent), adapted)
            measure(lambda: run_bare(recorder.runs), bare)
        dist.destroy_process_group()
    print("runs  ", ", ".join(entry.name for _, entry, _, _ in recorder.runs))
    for name, times in (("stage", adapted), ("bare", bare)):
        print(f"{name:6} shortest {min(times):.3f} ms, median {statistics.median(times):.3f} ms")
    print(f"stage / bare: shortest {min(adapted) / min(bare):.2f}, median "
          f"{statistics.median(adapted) / statistics.median(bare):.2f}")


if __name__ == "__main__":
    main()
