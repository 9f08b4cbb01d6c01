"""Measures what a rank of data parallel training takes: planned.py [--ranks=2] [--blocks=8] [--width=256] [--steps=3]

examples/distributed/model.py is trained by DataParallel with whole and with sharded state, and by FullySharded; each by
processes of its own over gloo. Reported of rank 0: *planned*, the bytes of what the step holds, of values between its
sections or entries, and of the arena; and *process*, the largest resident memory during the steps, beyond that of the
process before it had a model. The parameters of PyTorch's module are in neither if a rank frees them, as here.
"""

import argparse
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/distributed")]
KINDS = {"DataParallel": {"pieces": True}, "DataParallel, sharded=True": {"shards": None}, "FullySharded": {}}


def read_status(key):
    """Returns bytes of this process, as the kernel counts them."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))


def count_held(execution):
    return sum(held.buffer.size + (held.spare.size if held.spare else 0) for held in execution._held.values())


def count_between(execution, entry):
    """Returns the most bytes of values that are there during a section, or of an entry's results."""
    sections = execution.sections.get(entry.name, [entry])
    last = {tensor.name: index for index, section in enumerate(sections) for tensor in section.arguments}
    alive, most = {}, 0
    for index, section in enumerate(sections):
        # Gathered values that are not read here are dropped, and gathered again later.
        alive = {name: size for name, size in alive.items()
                 if last.get(name, -1) >= index and not name.startswith("gathered.")}
        alive |= {tensor.name: tensor.bytes for tensor in section.arguments if tensor.name not in execution.held}
        made = {tensor.name: tensor.bytes for tensor in section.results if tensor.name not in execution.held}
        most = max(most, sum((alive | made).values()))
        alive |= made
    return most


def count_planned(step):
    execution = step._execution
    with zipfile.ZipFile(step._path) as archive:
        arena = max(json.loads(archive.read(name))["arena_bytes"] for name in archive.namelist()
                    if name.startswith(f"plan/{execution.target}/"))
    # Without those of other ranks, and the one that does all at once, which is not run in pieces.
    entries = [entry for entry in execution.entries.values()
               if all(tensor.name in execution.held for tensor in entry.arguments if tensor.kind in ("param", "state"))
               and (execution.sections or not entry.name.endswith(".step"))]
    return count_held(execution) + max(count_between(execution, entry) for entry in entries) + arena


def work(arguments):
    import torch.distributed as dist

    import model
    import weir
    import weir.distributed

    dist.init_process_group("gloo", init_method=f"file://{arguments.group}", rank=arguments.rank,
                            world_size=arguments.ranks)
    before = read_status("VmRSS")
    gpt = model.Gpt(arguments.blocks, arguments.width, heads=8)
    is_fully = arguments.kind == "FullySharded"
    for module in [*gpt.blocks, gpt] if is_fully else ():
        weir.distributed.fully_shard(module)
    options = {name: value or arguments.ranks for name, value in KINDS[arguments.kind].items()}
    tokens, target = model.draw(0, 0, arguments.rows)
    step = weir.compile_step(gpt, model.loss, example=(tokens,), targets={"target": target}, device="cpu", **options)
    for value in gpt.parameters():
        value.data = value.data.new_empty(0)
    parallel = (weir.distributed.FullySharded(step) if is_fully else
                weir.distributed.DataParallel(step, sharded="sharded" in arguments.kind))
    gc.collect()
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    for number in range(arguments.steps):
        tokens, target = model.draw(number, arguments.rank, arguments.rows)
        float(parallel(tokens, target=target))
    if arguments.rank == 0:
        print(json.dumps({"parameters": sum(t.bytes for t in step._execution.held.values() if t.kind == "param"),
                          "planned": count_planned(step), "process": read_status("VmHWM") - before}))
    dist.barrier()
    dist.destroy_process_group()


def launch(arguments, kind):
    """Returns what rank 0 reports."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        options = [f"--{name}={getattr(arguments, name)}" for name in ("ranks", "blocks", "width", "rows", "steps")]
        processes = [
            subprocess.Popen([sys.executable, "-W", "ignore", __file__, *options, f"--kind={kind}", f"--rank={rank}",
                              f"--group={folder}/group"], env=environment, stdout=subprocess.PIPE, text=True)
            for rank in range(arguments.ranks)]
        outputs = [process.communicate()[0] for process in processes]
        if any(process.returncode for process in processes):
            sys.exit(f"{kind}: a rank failed")
        return json.loads(outputs[0].splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in {"ranks": 2, "blocks": 8, "width": 256, "rows": 2, "steps": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"default {value}")
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--group", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.kind:
        work(arguments)
        return
    print(f"{arguments.ranks} ranks, {arguments.blocks} blocks of width {arguments.width}, {arguments.rows} rows")
    for kind in KINDS:
        found = launch(arguments, kind)
        print(f"{kind:28}" + "".join(f"{name} {value / 1e6:8.1f} MB   " for name, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
