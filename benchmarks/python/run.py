"""Measures what a call from Python costs beside the run itself, and the time from an artifact to its first result.

    build/venv/bin/python benchmarks/python/run.py

Three programs are called in a loop that reads each result: one of a single kernel on four numbers, whose time is nearly
all Python's and the driver's; a training step of some 5 ms; and GPT-2 with 12 layers, 110 million parameters of random
values, loaded from its artifact and a checkpoint. `weir run`'s time of the same artifact stands beside the step's.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import numpy
import torch
from torch import nn
from torch.nn import functional

import weir
import weir.locations


def get_fastest(function, rounds: int) -> float:
    """Seconds of the fastest of some calls."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - begin)
    return best


def measure_call() -> None:
    program = weir.compile(lambda x: x + 1, example=(torch.zeros(4),))
    x = numpy.zeros(4, numpy.float32)
    [entry] = program.entries.values()
    inputs, outputs = ([weir.runtime.Buffer(program._execution.device, 16)] for _ in range(2))

    def run_alone() -> None:
        program._execution._program.submit(entry, inputs, outputs)
        outputs[0].wait()

    def call() -> None:
        program(x).numpy()

    for function in (run_alone, call):
        get_fastest(function, 200)
    alone, whole = get_fastest(run_alone, 2000), get_fastest(call, 2000)
    print(f"a call of one kernel: {whole * 1e6:.0f} us, its run alone {alone * 1e6:.0f} us: "
          f"{(whole - alone) * 1e6:.0f} us for Python, the input and the result")


def measure_step(folder: pathlib.Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 384), nn.Tanh(), nn.Linear(384, 384), nn.Tanh(), nn.Linear(384, 10))
    x, y = torch.randn(64, 256), torch.randint(0, 10, (64,))
    step = weir.compile_step(model, functional.cross_entropy, example=(x,), targets={"y": y})
    step.save_artifact(folder / "step.weir")
    get_fastest(lambda: float(step(x, y=y)), 30)
    whole = get_fastest(lambda: float(step(x, y=y)), 300)
    bench = subprocess.run([weir.locations.find_tool("weir"), "bench", folder / "step.weir", "--json", "--rounds=300"],
                           capture_output=True, text=True, check=True)
    alone = json.loads(bench.stdout)["seconds"]["fastest"]
    print(f"a training step: {whole * 1e3:.3f} ms, weir bench {alone * 1e3:.3f} ms: {whole / alone - 1:+.1%}")


def measure_load(folder: pathlib.Path) -> None:
    import transformers

    # Its own 50,257 tokens exceed what lavapipe binds at once, 128 MiB.
    config = transformers.GPT2Config(vocab_size=32000, bos_token_id=0, eos_token_id=0, use_cache=False)
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).eval()
    tokens = torch.randint(0, 32000, (1, 16))
    with weir.compile(model, example={"input_ids": tokens}) as program:
        program.save_artifact(folder / "gpt2.weir")
        program.save(folder / "gpt2.safetensors")
    # In a process of its own, which no library is open in, and with the files in the page cache but not on their way to
    # the disk.
    subprocess.run(["sync"], check=True)
    subprocess.run([sys.executable, __file__, "first", folder / "gpt2.weir", folder / "gpt2.safetensors"], check=True)


def measure_first_result(artifact: str, checkpoint: str) -> None:
    tokens = numpy.zeros((1, 16), numpy.int64)
    begin = time.perf_counter()
    with weir.load(artifact, checkpoint=checkpoint) as loaded:
        ready = time.perf_counter() - begin
        loaded(tokens).numpy()
        first = time.perf_counter() - begin
    print(f"GPT-2 of 12 layers: ready after {ready:.2f} s; first result after {first:.2f} s")


def main() -> None:
    if sys.argv[1:2] == ["first"]:
        measure_first_result(*sys.argv[2:])
        return
    with tempfile.TemporaryDirectory() as folder:
        measure_call()
        measure_step(pathlib.Path(folder))
        measure_load(pathlib.Path(folder))


if __name__ == "__main__":
    main()
