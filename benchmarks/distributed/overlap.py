"""Times data parallel steps whose buckets are sent as they become final against those sent at the end.

    torchrun --nproc-per-node=2 benchmarks/distributed/overlap.py [--sharded] [--blocks=6] [--width=256] [--rounds=30]

One step of examples/distributed/model.py, called in turn: with overlap; with the same buckets sent behind the run; and by
groups of one rank, which send nothing. PyTorch's DistributedDataParallel trains the same model beside it, by itself and
in groups of one rank. Of each the shortest and the median time of rank 0. Hidden is the part of the exchange's time by
which overlap shortens the step.

With --sharded steps of fully sharded parameters, beside PyTorch's fully_shard (FSDP2); each also in groups of one rank.

A loopback's bytes are copied by the processors that compute, which leaves nothing to hide. Give it the rate of a network
first: tc qdisc add dev lo root tbf rate 2gbit burst 256kb latency 50ms.
"""

import argparse
import os
import pathlib
import statistics
import sys
import time
from unittest import mock

os.environ.setdefault("WEIR_THREADS", "1")

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/distributed")]

import model  # noqa: E402
import weir  # noqa: E402
import weir.distributed  # noqa: E402
from weir.distributed import fully_sharded  # noqa: E402


def make_calls(arguments):
    """Returns functions that make a step in different ways, and the number and bytes of buckets."""
    torch.manual_seed(0)
    gpt = model.Gpt(arguments.blocks, arguments.width, heads=4, length=arguments.length)
    tokens, target = model.draw(0, dist.get_rank(), arguments.rows, arguments.length)
    step = weir.compile_step(gpt, model.loss, example=(tokens,), targets={"target": target}, pieces=True,
                             optimizer=weir.SGD(learning_rate=1e-3), device=arguments.device)
    parallel = weir.distributed.DataParallel
    overlapped, late = (parallel(step, bucket_bytes=arguments.bucket_bytes) for _ in range(2))
    late._exchange.reach = lambda wave: None  # of a run, so that all is sent behind it
    groups = [dist.new_group([rank]) for rank in range(dist.get_world_size())]
    own = groups[dist.get_rank()]
    alone = parallel(step, group=own, bucket_bytes=arguments.bucket_bytes)
    exchange = overlapped._exchange
    size = sum(end - begin for _, (begin, end) in exchange._buckets) * exchange._dtype.itemsize
    ways = {"overlapped": overlapped, "at the end": late, "not sent": alone}
    calls = {f"Weir, {name}": make_call(way, tokens, target) for name, way in ways.items()}
    calls["PyTorch, overlapped"] = make_torch_call(arguments, None, tokens, target)
    calls["PyTorch, not sent"] = make_torch_call(arguments, own, tokens, target)
    return calls, len(exchange._buckets), size


def make_call(parallel, tokens, target):
    """Returns a function that makes one of Weir's steps and waits for it."""

    def run():
        parallel(tokens, target=target)
        parallel.step._execution.device.wait()

    return run


def make_torch_call(arguments, group, tokens, target):
    """Returns a function that makes a step by PyTorch's DistributedDataParallel, with buckets of as many bytes."""
    gpt = model.Gpt(arguments.blocks, arguments.width, heads=4, length=arguments.length)
    gpt = torch.nn.parallel.DistributedDataParallel(gpt, process_group=group, gradient_as_bucket_view=True,
                                                    bucket_cap_mb=arguments.bucket_bytes / 2**20)
    return make_torch_run(gpt, torch.optim.SGD(gpt.parameters(), lr=1e-3), tokens, target)


def make_torch_run(module, optimizer, tokens, target):
    def run():
        optimizer.zero_grad()
        model.loss(module(tokens), target).backward()
        optimizer.step()

    return run


def make_sharded_calls(arguments):
    """Returns functions that make a step of fully sharded parameters in different ways."""
    tokens, target = model.draw(0, dist.get_rank(), arguments.rows, arguments.length)
    own = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]

    def make_gpt():
        torch.manual_seed(0)
        return model.Gpt(arguments.blocks, arguments.width, heads=4, length=arguments.length)

    def make_sharded(group, waits=False):
        gpt = make_gpt()
        for each in [*gpt.blocks, gpt]:
            weir.distributed.fully_shard(each, group=group)
        step = weir.compile_step(gpt, model.loss, example=(tokens,), targets={"target": target},
                                 optimizer=weir.SGD(learning_rate=1e-3), device=arguments.device)
        call = make_call(weir.distributed.FullySharded(step, group=group), tokens, target)
        return with_waits(call, step._execution) if waits else call

    def make_torch(group):
        gpt, mesh = make_gpt(), DeviceMesh.from_group(group, "cpu")
        for each in [*gpt.blocks, gpt]:
            fully_shard(each, mesh=mesh)
        return make_torch_run(gpt, torch.optim.SGD(gpt.parameters(), lr=1e-3), tokens, target)

    return {"Weir, overlapped": make_sharded(None), "Weir, in turn": make_sharded(None, waits=True),
            "Weir, not sent": make_sharded(own),
            "PyTorch, overlapped": make_torch(dist.group.WORLD), "PyTorch, not sent": make_torch(own)}


def with_waits(call, execution):
    """Returns a call in which each exchange ends before the next section begins."""
    begin_exchange, begin_gather = execution.exchange, fully_sharded.begin_gather

    def wait_for(begin):
        def run(*arguments):
            result = begin(*arguments)()
            return lambda: result

        return run

    execution.exchange = wait_for(begin_exchange)

    def run():
        with mock.patch.object(fully_sharded, "begin_gather", wait_for(begin_gather)):
            call()

    return run


def measure(call):
    """Returns the milliseconds of a step, which all ranks begin together."""
    dist.barrier()
    begin = time.perf_counter()
    call()
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
    parser.add_argument("--sharded", action="store_true", help="fully sharded parameters, not whole ones")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    calls, buckets, size = (make_sharded_calls(arguments), 0, 0) if arguments.sharded else make_calls(arguments)
    times = {name: [] for name in calls}
    for number in range(arguments.rounds + 2):
        for name, call in calls.items():
            taken = measure(call)
            if number > 1:
                times[name].append(taken)
    if dist.get_rank() == 0:
        if buckets:
            print(f"{size / 1e6:.1f} MB of gradients in {buckets} buckets, {dist.get_world_size()} ranks")
        for name, each in times.items():
            print(f"{name:19} shortest {min(each):.1f} ms, median {statistics.median(each):.1f} ms")
        for what, pick in (("shortest", min), ("median", statistics.median)):
            overlapped, late, alone, *torchs = (pick(each) for each in times.values())
            print(f"{what}: the exchange adds {late - alone:.1f} ms, overlapped {overlapped - alone:.1f} ms: "
                  f"{(late - overlapped) / (late - alone):.0%} of it is hidden; PyTorch's adds {torchs[0] - torchs[1]:.1f} ms")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
