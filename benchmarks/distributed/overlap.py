"""Times data parallel steps whose buckets are sent as they become final against those sent at the end.

    torchrun --nproc-per-node=2 benchmarks/distributed/overlap.py [--blocks=6] [--width=256] [--rounds=30]

One step of examples/distributed/model.py, called in turn: with overlap; with the same buckets sent behind the run; and by
groups of one rank, which send nothing. Of each the shortest and the median time of rank 0. What overlap hides is its
share of the time that the exchange adds.
"""

import argparse
import os
import pathlib
import statistics
import sys
import time

os.environ.setdefault("WEIR_THREADS", "1")

import torch
import torch.distributed as dist

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/distributed")]

import model  # noqa: E402
import weir  # noqa: E402
import weir.distributed  # noqa: E402


def make_steps(arguments):
    """Returns the ways to call one step, and the bytes of its gradients."""
    torch.manual_seed(0)
    gpt = model.Gpt(arguments.blocks, arguments.width, heads=4, length=arguments.length)
    tokens, target = model.draw(0, 0, arguments.rows, arguments.length)
    step = weir.compile_step(gpt, model.loss, example=(tokens,), targets={"target": target}, pieces=True,
                             optimizer=weir.SGD(learning_rate=1e-3), device=arguments.device)
    parallel = weir.distributed.DataParallel
    overlapped, late = (parallel(step, bucket_bytes=arguments.bucket_bytes) for _ in range(2))
    late._exchange.reach = lambda wave: None  # of a run, so that all is sent behind it
    groups = [dist.new_group([rank]) for rank in range(dist.get_world_size())]
    alone = parallel(step, group=groups[dist.get_rank()], bucket_bytes=arguments.bucket_bytes)
    exchange = overlapped._exchange
    size = sum(end - begin for _, (begin, end) in exchange._buckets) * exchange._dtype.itemsize
    return {"overlapped": overlapped, "at the end": late, "not sent": alone}, len(exchange._buckets), size


def measure(parallel, batch):
    """Returns the milliseconds of a step, which all ranks begin together."""
    dist.barrier()
    begin = time.perf_counter()
    parallel(batch[0], target=batch[1])
    parallel.step._execution.device.wait()
    return (time.perf_counter() - begin) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--bucket-bytes", type=int, default=4 << 20)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    ways, buckets, size = make_steps(arguments)
    batch = model.draw(0, dist.get_rank(), arguments.rows, arguments.length)
    times = {name: [] for name in ways}
    for number in range(arguments.rounds + 2):
        for name, parallel in ways.items():
            taken = measure(parallel, batch)
            if number > 1:
                times[name].append(taken)
    if dist.get_rank() == 0:
        print(f"{size / 1e6:.1f} MB of gradients in {buckets} buckets, {dist.get_world_size()} ranks")
        for name, each in times.items():
            print(f"{name:11} shortest {min(each):.1f} ms, median {statistics.median(each):.1f} ms")
        for what, pick in (("shortest", min), ("median", statistics.median)):
            overlapped, late, alone = (pick(each) for each in times.values())
            print(f"{what}: the exchange adds {late / alone - 1:.0%}, overlapped {overlapped / alone - 1:.0%}: "
                  f"{(late - overlapped) / (late - alone):.0%} of it is hidden")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
