"""Peak bytes of a rank, of Weir's data parallel and pipeline steps and of PyTorch's.

    python benchmarks/distributed/memory.py [--ranks=2] [--blocks=8] [--width=256] [--only=TEXT]

Each system trains examples/distributed/model.py in processes of its own, over gloo. Of rank 0:

- made: memory behind the making of a step, above that of a process that has imported all libraries and has a group.
- resident: the most memory in training steps, above the same.
- tensors: the most bytes of tensors at once. Of Weir buffers of the runtime and the program's arena, without what an
  exchange receives; of PyTorch the storages that operators made, with parameters and the optimizer's state.
"""

import argparse
import ctypes
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import weakref
import zipfile

os.environ.setdefault("WEIR_THREADS", "1")

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import Schedule1F1B, SplitPoint, pipeline
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/distributed")]

import model  # noqa: E402
import weir  # noqa: E402
import weir.distributed  # noqa: E402
import weir.torch.lowering  # noqa: E402, F401  (the libraries that an export needs)
from weir.runtime import Buffer, Program  # noqa: E402

STEPS = 3


class Resident:
    """Memory of this process, in bytes."""

    @staticmethod
    def read(key):
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))

    @staticmethod
    def settle():
        """Gives what is free back to the system, and lets the peak begin anew."""
        gc.collect()
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        pathlib.Path("/proc/self/clear_refs").write_text("5")


class Buffers:
    """Counts the buffers of Weir's runtime, and the arenas of programs."""

    def __init__(self):
        self.now = self.peak = 0
        make_buffer, make_program = Buffer.__init__, Program.__init__

        def count(owner, size):
            self.now += size
            self.peak = max(self.peak, self.now)
            weakref.finalize(owner, self.give, size)

        def init_buffer(buffer, device, size, *rest):
            make_buffer(buffer, device, size, *rest)
            count(buffer, size)

        def init_program(program, path, *rest, **named):
            make_program(program, path, *rest, **named)
            count(program, read_arena(path))

        Buffer.__init__, Program.__init__ = init_buffer, init_program

    def give(self, size):
        self.now -= size


class Storages(TorchDispatchMode):
    """Counts the bytes of PyTorch's tensors that live, behind each operator."""

    def __init__(self, tensors):
        super().__init__()
        self._live, self.peak = WeakIdKeyDictionary(), 0
        self._add(tensors)

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        if DTensor in types:  # which calls operators on its local tensors
            return NotImplemented
        result = function(*arguments, **(named or {}))
        self._add(result)
        return result

    def _add(self, values):
        for value in tree_leaves(values):
            if isinstance(value, torch.Tensor):
                local = value.to_local() if isinstance(value, DTensor) else value
                self._live[local.untyped_storage()] = True
        self.peak = max(self.peak, sum(storage.nbytes() for storage in self._live.keys()))


def list_tensors(module, optimizer):
    """Returns parameters, gradients, buffers and the optimizer's state."""
    values = [*module.parameters(), *module.buffers()]
    values += [value.grad for value in values if value.grad is not None]
    return values + [value for state in optimizer.state.values() for value in tree_leaves(state)]


def read_arena(path):
    """Returns the bytes of an artifact's arena, which all entries share."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("plan/") and name.endswith(".json")]
        return max(json.loads(archive.read(name))["arena_bytes"] for name in names)


def make_gpt(options):
    torch.manual_seed(0)
    return model.Gpt(options["blocks"], options["width"], heads=4, length=options["length"])


def draw(options):
    return model.draw(0, dist.get_rank(), options["rows"], options["length"])


def make_data_parallel(options, sharded):
    tokens, target = draw(options)
    split = {"shards": dist.get_world_size()} if sharded else {"pieces": True}
    step = weir.compile_step(make_gpt(options), model.loss, example=(tokens,), targets={"target": target}, device="cpu",
                             optimizer=weir.AdamW(learning_rate=1e-3), **split)
    parallel = weir.distributed.DataParallel(step, sharded=sharded)
    return lambda: float(parallel(tokens, target=target)), ()


def make_fully_sharded(options):
    tokens, target = draw(options)
    gpt = make_gpt(options)
    for module in [*gpt.blocks, gpt]:
        weir.distributed.fully_shard(module)
    step = weir.compile_step(gpt, model.loss, example=(tokens,), targets={"target": target}, device="cpu",
                             optimizer=weir.AdamW(learning_rate=1e-3))
    parallel = weir.distributed.FullySharded(step)
    return lambda: float(parallel(tokens, target=target)), ()


def make_torch_parallel(options, how):
    tokens, target = draw(options)
    gpt = make_gpt(options)
    if how == "fsdp2":
        for block in gpt.blocks:
            fully_shard(block)
        fully_shard(gpt)
        trained = gpt
    else:
        trained = torch.nn.parallel.DistributedDataParallel(gpt, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(trained.parameters(), lr=1e-3)

    def run():
        loss = model.loss(trained(tokens), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss)

    return run, (gpt, optimizer)


def make_stages(options, is_weir):
    """Trains two stages by 1F1B, with an optimizer of PyTorch."""
    tokens, target = model.draw(0, 0, options["rows"] * options["microbatches"], options["length"])
    micro, rank, size = tokens[:options["rows"]], dist.get_rank(), dist.get_world_size()
    points = [f"blocks.{options['blocks'] * index // size}" for index in range(1, size)]
    if is_weir:
        parts = weir.distributed.stages(make_gpt(options), model.loss, points, example=(micro,), device="cpu")
        stage, loss = parts.stage(rank), parts.loss
    else:
        pipe = pipeline(make_gpt(options), (micro,), split_spec={point: SplitPoint.BEGINNING for point in points})
        stage, loss = pipe.build_stage(rank, torch.device("cpu")), model.loss
    schedule = Schedule1F1B(stage, n_microbatches=options["microbatches"], loss_fn=loss)
    optimizer = torch.optim.AdamW(stage.submod.parameters(), lr=1e-3)

    def run():
        losses = []
        schedule.step(*([tokens] if rank == 0 else []), **({"target": target, "losses": losses} if rank == size - 1 else {}))
        if is_weir:
            parts.reduce_tied()
        optimizer.step()
        optimizer.zero_grad()
        return float(sum(losses))

    return run, (stage.submod, optimizer)


SYSTEMS = {
    "data parallel": lambda options: make_data_parallel(options, False),
    "data parallel, sharded state": lambda options: make_data_parallel(options, True),
    "fully sharded": make_fully_sharded,
    "PyTorch's DistributedDataParallel": lambda options: make_torch_parallel(options, "ddp"),
    "PyTorch's fully_shard": lambda options: make_torch_parallel(options, "fsdp2"),
    "pipeline, 1F1B": lambda options: make_stages(options, True),
    "PyTorch's pipeline, 1F1B": lambda options: make_stages(options, False),
}


def run_rank(system, options):
    """Trains, and prints what this rank used."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{options['group']}", rank=int(os.environ["RANK"]),
                            world_size=options["ranks"])
    dist.barrier()
    buffers = Buffers()
    Resident.settle()
    baseline = Resident.read("VmRSS")
    run, tracked = SYSTEMS[system](options)
    Resident.settle()
    made = Resident.read("VmRSS") - baseline
    losses = [run() for _ in range(STEPS)]
    resident = Resident.read("VmHWM") - baseline
    tensors = buffers.peak
    if system.startswith("PyTorch"):
        with Storages(list_tensors(*tracked)) as storages:
            run()
        tensors = storages.peak
    elif system.startswith("pipeline"):  # beside them, the state of PyTorch's optimizer
        tensors += sum(value.nbytes for state in tracked[1].state.values() for value in state.values())
    print(json.dumps({"made": made, "resident": resident, "tensors": tensors, "losses": losses}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def measure(system, options):
    """Returns what rank 0 printed."""
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps(options | {"group": f"{folder}/group"})
        ranks = [subprocess.Popen([sys.executable, "-W", "ignore", __file__, f"--run={system}", f"--options={text}"],
                                  env={**os.environ, "RANK": str(rank), "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE,
                                  text=True) for rank in range(options["ranks"])]
        outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit(f"{system}: a rank failed")
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in {"ranks": 2, "blocks": 8, "width": 256, "rows": 4, "length": 64, "microbatches": 8}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--only", default="", help="part of the names of systems (default all)")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--options", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run_rank(arguments.run, json.loads(arguments.options))
        return
    options = {name: getattr(arguments, name) for name in ("ranks", "blocks", "width", "rows", "length", "microbatches")}
    weights = sum(value.nbytes for value in make_gpt(options).parameters())
    print(f"parameters {weights / 1e6:.1f} MB; of rank 0 and the others, in multiples of these:")
    for system in (name for name in SYSTEMS if arguments.only in name):
        found = measure(system, options)
        parts = [f"{key} " + ", ".join(f"{rank[key] / weights:.2f}" for rank in found)
                 for key in ("made", "resident", "tensors")]
        print(f"{system:34} {'; '.join(parts)}; last loss {max(rank['losses'][-1] for rank in found):.4f}", flush=True)


if __name__ == "__main__":
    main()
