"""Measures training steps of an MLP: memory, compile time, and a step's time on the default
Vulkan device. With --torch, PyTorch's eager step on as many threads, too."""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

from graph import make_graph

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIB = 1 << 20


def get_bytes(tensors):
    total = 0
    for tensor in tensors:
        size = 4
        for extent in tensor["shape"]:
            size *= extent
        total += size
    return total


def get_max_live(slots):
    """The most bytes of the arena that are in use in one wave."""
    waves = range(1 + max((slot["last_wave"] for slot in slots), default=0))
    return max(sum(slot["bytes"] for slot in slots if slot["first_wave"] <= wave <= slot["last_wave"])
               for wave in waves)


def measure_weir(weir, folder, optimizer, layers, width, batch, steps):
    graph, artifact = folder / "graph.mlir", folder / "step.weir"
    graph.write_text(make_graph(layers, width, batch))
    begin = time.monotonic()
    subprocess.run([weir, "compile", graph, f"--train={optimizer}:loss", "--entry=loss.step", "--require-donation",
                    "-o", artifact], check=True, stderr=subprocess.DEVNULL)
    compile_seconds = time.monotonic() - begin
    seen = json.loads(subprocess.run([weir, "inspect", artifact, "--json"], check=True, stdout=subprocess.PIPE).stdout)
    plan, entry = seen["plans"][0], seen["entries"][0]
    run = json.loads(subprocess.run([weir, "run", artifact, "--random-inputs=1", f"--steps={steps}", "--json"],
                                    check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    trained = [argument for argument in entry["arguments"] if argument.get("donate")]
    print(f"{layers} layers of width {width}, batch {batch}, {optimizer}")
    print(f"  parameters and state  {get_bytes(trained) / MIB:9.2f} MiB, {len(trained)} donated, "
          f"{sum(d['argument'] == d['result'] for d in plan['donations'])} updated in place")
    print(f"  arena                 {plan['arena_bytes'] / MIB:9.2f} MiB; most live {get_max_live(plan['slot_values']) / MIB:.2f}, "
          f"pinned {plan['pinned_bytes'] / MIB:.2f}")
    print(f"  {plan['dispatches']} dispatches of {plan['kernels']} kernels, {plan['barriers']} barriers")
    print(f"  compile               {compile_seconds:9.2f} s")
    print(f"  step                  {run['device_seconds'] * 1e3:9.2f} ms, fastest of {steps}, without the first")


def measure_torch(optimizer, layers, width, batch, steps):
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(1)
    modules = [module for _ in range(layers) for module in (torch.nn.Linear(width, width), torch.nn.Tanh())]
    model = torch.nn.Sequential(*modules)
    make = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW,
            "momentum": lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9)}[optimizer]
    optimizer = make(model.parameters(), lr=1e-3)
    x, t = torch.randn(batch, width), torch.randn(batch, width)
    best = float("inf")
    for _ in range(steps):
        begin = time.monotonic()
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), t).backward()
        optimizer.step()
        best = min(best, time.monotonic() - begin)
    print(f"  PyTorch {torch.__version__} eager, {torch.get_num_threads()} threads: {best * 1e3:.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default=ROOT / "build/release/bin/weir")
    parser.add_argument("--layers", type=int, nargs="+", default=[4, 30])
    parser.add_argument("--width", type=int, default=576)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--optimizer", choices=["sgd", "momentum", "adamw"], default="sgd")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--torch", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for layers in args.layers:
            shape = (args.optimizer, layers, args.width, args.batch, args.steps)
            measure_weir(args.weir, pathlib.Path(folder), *shape)
            if args.torch:
                measure_torch(*shape)


if __name__ == "__main__":
    main()
