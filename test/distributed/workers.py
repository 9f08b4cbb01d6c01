"""The functions that the ranks of a test run: python workers.py FUNCTION OPTIONS."""

import datetime
import functools
import gc
import json
import os
import pathlib
import signal
import sys
import time
import weakref

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

import models
import weir
import weir.distributed
from sharded import CLIPPED, accumulated, broken, checkpointed_parts, fully_sharded, refuse_parts, skipped_parts  # noqa: F401
from weir.distributed import folders, reductions
from weir.distributed.groups import Ranks, hash_tensors
from weir.distributed.stage_programs import Record, StageProgram
from torch.distributed import _functional_collectives as functional_collectives
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining.schedules import get_schedule_class

V_SHAPED = ("ZBVZeroBubble", "DualPipeV")
REVERSED = ("LoopedBFS",)  # adds the gradients of the last microbatch first


def place(schedule, ranks, stages):
    """Returns the stages of each rank."""
    if schedule in V_SHAPED:
        return [[rank, stages - 1 - rank] for rank in range(ranks)]
    return [list(range(rank, stages, ranks)) for rank in range(ranks)]


def cut(model, blocks, device):
    return weir.distributed.stages(model, models.cross_entropy, [f"blocks.{i}" for i in range(1, blocks)],
                                   example=(models.draw(2)[0],), device=device)


def run_alone(parts, made, tokens, target, count, is_reversed):
    """Computes all stages one after the other, a microbatch at a time. Returns the gradients, and the mean loss."""
    reset_seeds(made)
    losses = []
    batches = list(zip(tokens.chunk(count), target.chunk(count)))
    for inputs, wanted in reversed(batches) if is_reversed else batches:
        values, calls = (inputs,), []
        for stage in made:
            given = [value.detach().requires_grad_(value.is_floating_point()) for value in values]
            output = stage.submod(*given)
            values = output if isinstance(output, tuple) else (output,)
            calls.append((given, values))
        losses.append(parts.loss(values[0], wanted))
        gradients = torch.autograd.grad(losses[-1], values)
        for stage, (given, values) in zip(reversed(made), reversed(calls)):
            torch.autograd.backward(values, gradients)
            stage.submod.take_weighting()()
            gradients = [value.grad for value in given]
    for stage in made:
        stage.scale_grads(count)
    parts.reduce_tied()
    return take_gradients(made), (sum(reversed(losses) if is_reversed else losses) / count).item()


def take_gradients(made):
    """Returns the gradients by stage and name, and forgets them."""
    found = {(stage.stage_index, name): value.grad.clone() for stage in made
             for name, value in stage.submod.named_parameters() if value.grad is not None}
    for stage in made:
        stage.submod.zero_grad()
    return found


def reset_seeds(made):
    """Lets stages draw the same random numbers again."""
    for stage in made:
        stage.submod.write({"random.step": torch.tensor(0)})


def run_schedule(parts, schedule, made, tokens, target, count):
    """Returns the gradients of all ranks, and the mean loss."""
    reset_seeds(made)
    run = get_schedule_class(schedule)(made if len(made) > 1 else made[0], n_microbatches=count, loss_fn=parts.loss)
    losses = []
    inputs = (tokens,) if any(stage.is_first for stage in made) else ()
    run.step(*inputs, **({"target": target, "losses": losses} if any(stage.is_last for stage in made) else {}))
    parts.reduce_tied()
    ranks = [None] * dist.get_world_size()
    dist.all_gather_object(ranks, (take_gradients(made), (sum(losses) / count).item() if losses else None))
    return {key: value for gradients, _ in ranks for key, value in gradients.items()}, max(loss or 0 for _, loss in ranks)


def run_exactly(kind, blocks, tokens, target, count):
    """Returns PyTorch's gradients and loss, in f64."""
    exact = models.make(blocks, kind).double()
    loss = sum(models.cross_entropy(exact(a), b) for a, b in zip(tokens.chunk(count), target.chunk(count))) / count
    loss.backward()
    return {name: value.grad for name, value in exact.named_parameters(remove_duplicate=False)}, loss.item()


def pipeline(schedules, kinds, blocks, device="cpu", microbatches=4, wrong=False):
    """Runs schedules. Rank 0 compares with the stages one after the other, and with PyTorch in f64."""
    found = {}
    if wrong:
        count_twice()
    rank, size = dist.get_rank(), dist.get_world_size()
    tokens, target = models.draw(2 * microbatches)
    for kind in kinds:
        parts = cut(models.make(blocks, kind), blocks, device)
        runs = {schedule: run_schedule(parts, schedule, [parts.stage(i) for i in place(schedule, size, blocks)[rank]],
                                       tokens, target, microbatches) for schedule in schedules}
        whole = cut(models.make(blocks, kind), blocks, device)
        if rank:
            continue
        alone = [whole.stage(index) for index in range(blocks)]
        for stage in alone:
            stage.stage_index_to_group_rank = dict.fromkeys(range(blocks), rank)
        orders = {order: run_alone(whole, alone, tokens, target, microbatches, order)
                  for order in {schedule in REVERSED for schedule in schedules}}
        expected, loss = run_exactly(kind, blocks, tokens, target, microbatches)
        for schedule, (gradients, measured) in runs.items():
            same, mean = orders[schedule in REVERSED]
            errors = [float((value - expected[name]).abs().max() / expected[name].abs().max())
                      for (_, name), value in gradients.items()]
            found[f"{kind} {schedule}"] = {
                "bits": gradients.keys() == same.keys() and all(torch.equal(gradients[key], same[key]) for key in same),
                "missing": sorted({name for name in expected if expected[name] is not None} - {name for _, name in same}),
                "error": 0.0 if kind == "dropped" else max(errors), "losses": [measured, mean, loss]}
    return found


def count_twice():
    """Breaks the weight pass as a splitter would that counts each use of a weight twice."""
    once = StageProgram.add_weights

    def twice(program, record):
        once(program, Record(dict(record.values)))
        once(program, record)

    StageProgram.add_weights = twice


OPTIMIZERS = {"adamw": lambda: weir.AdamW(learning_rate=0.01), "momentum": lambda: weir.SGD(momentum=0.9),
              "adafactor": weir.Adafactor}
ROWS = 4  # of a batch


@functools.cache
def compile_once(**options):
    return compile_step(**options)


def compile_step(seed=0, kind="tied", optimizer="adamw", dtype="float32", device="cpu", **options):
    """Compiles a step of a model. Ranges of a "grouped" one have rates of their own."""
    module = models.make(2, kind, seed).to(getattr(torch, dtype))
    if options.pop("grouped", False):
        options["groups"] = {"no_decay": weir.Group("*.bias", "*norm*", weight_decay=0.0)}
    tokens, target = models.draw(ROWS)
    return weir.compile_step(module, models.cross_entropy, example=(tokens,), targets={"target": target},
                             optimizer=OPTIMIZERS[optimizer](), device=device, **options)


def read_bits(step):
    """Returns a hash of each parameter and of the state that the step holds."""
    return {name: hash_tensors([torch.from_numpy(value.view(f"u{value.itemsize}").astype("int64"))])
            for name, value in step._execution.read().items()}


def draw_batch(step, microbatch):
    return models.draw(ROWS, seed=1000 * step + microbatch)


def data_parallel(steps=3, microbatches=1, reference=False, batches=None, parallel=None, **options):
    """Trains for some steps. Returns the losses and the hashes of what is held; `reference`: those of one process."""
    rank, size = dist.get_rank(), dist.get_world_size()
    step = compile_step(seed=rank, **options)
    trained = weir.distributed.DataParallel(step, **(parallel or {}))
    losses = []
    for number in range(steps):
        for microbatch in range(microbatches - 1):
            with trained.no_sync():
                tokens, target = draw_batch(number, rank * microbatches + microbatch)
                trained(tokens, target=target)
        tokens, target = draw_batch(number, rank * microbatches + microbatches - 1)
        losses.append(float(trained(tokens, target=target)))
    [ring] = [ring for key, ring in step._execution._rings.items() if key[1:] == ("result", "gradients")]
    found = {"losses": losses, "bits": read_bits(step),
             "values": {name: value.tolist() for name, value in step.state_dict().items()},
             "buffers": sum(buffer is not None for buffer in ring._buffers)}
    if reference and rank == 0:
        found["alone"] = train_alone(steps, size * microbatches, options)
    return found


def add_up(length, step, owners=None):
    """Sums a buffer in the order of the ranks, bucket by bucket. Returns whether the bits are right, and the most shares
    that were there at once, of the number of buckets."""
    live, peak = 0, 0

    def count(change):
        nonlocal live, peak
        live += change
        peak = max(peak, live)

    class Counted(reductions._Bucket):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            count(1)
            weakref.finalize(self.received, count, -1)

    reductions._Bucket = Counted
    ranks = Ranks()
    given = [torch.randn(length, generator=torch.Generator().manual_seed(rank)) for rank in range(ranks.size)]
    for value in given:
        value[:3] = -0.0  # of which the sum is 0.0
    total = torch.zeros(length)
    for value in given:
        total += value
    buffer = given[ranks.rank].clone()
    sums = reductions.RankOrder(ranks, buffer, owners)
    buckets = [(begin, min(begin + step, length)) for begin in range(0, length, step)]
    for bucket in buckets:
        sums.begin(bucket)
    sums.finish()
    own = slice(0, length) if owners is None else slice([0, *owners][ranks.rank], owners[ranks.rank])
    return {"same": hash_tensors([buffer[own]]) == hash_tensors([total[own]]), "peak": peak, "live": live,
            "buckets": len(buckets)}


def forget(blocks):
    """Compiles all stages of a model on one rank. Returns the parameters that live although the user has dropped them."""
    model = models.make(blocks, "tied")
    values = {name: weakref.ref(value) for name, value in model.named_parameters()}
    parts = cut(model, blocks, "cpu")
    del model
    for index in range(blocks):
        parts.stage(index)
    gc.collect()
    return {"alive": [name for name, value in values.items() if value() is not None], "all": len(values),
            "read": sorted(parts.state_dict())}


def train_all(cases):
    """Does data_parallel with the options of each case."""
    return {name: data_parallel(**options) for name, options in cases.items()}


def train_alone(steps, count, options):
    """Trains in this process, by accumulating the batches of all ranks in their order."""
    step = compile_step(**options | {"accumulate": count > 1})
    losses = []
    for number in range(steps):
        batches = [draw_batch(number, microbatch) for microbatch in range(count)]
        losses.append([float(step.accumulate(tokens, target=target)) for tokens, target in batches[:-1]])
        losses[-1].append(float(step(batches[-1][0], target=batches[-1][1])))
    return {"losses": losses, "bits": read_bits(step),
            "values": {name: value.tolist() for name, value in step.state_dict().items()}}


def compile_heads(seed=0, shared_out=True, blocks=1, change=None, group=None, **options):
    """Compiles a step of a model with attention, of which this rank has its part. `change` may alter that first."""
    module = models.make_heads(blocks, seed, shared_out, group)
    if change:
        change(module)
    tokens, target = models.draw(ROWS)
    return weir.compile_step(module, models.cross_entropy, example=(tokens,), targets={"target": target}, device="cpu",
                             optimizer=options.pop("optimizer", None) or weir.SGD(learning_rate=0.02, momentum=0.9),
                             **options)


def list_values(values):
    return {name: torch.as_tensor(value).tolist() for name, value in values.items()}


def train_parts(parallel, steps, replica=0):
    """Trains with a microbatch beside each step, both of a replica, and returns the losses and whole values."""
    losses = []
    for number in range(steps):
        for function, microbatch in ((parallel.accumulate, 0), (parallel, 1)):
            tokens, target = draw_batch(number, 2 * replica + microbatch)
            losses.append(float(function(tokens, target=target)))
    return {"losses": losses, "values": list_values(parallel.state_dict())}


def hash_shared(parallel):
    shared = [key for key in parallel.step._execution.held if not parallel._find_part(key)]
    return hash_tensors(map(torch.from_numpy, parallel.step._execution.read(shared).values()))


def tensor_parallel(steps):
    """Trains parts of a model. Rank 0 trains the whole as well, and a model whose bias is counted on each rank."""
    found = {}
    for name, options in {"right": {}, "wrong": {"change": add_bias_twice}, "clipped": CLIPPED}.items():
        parallel = weir.distributed.TensorParallel(compile_heads(accumulate=True, **options))
        found[name] = train_parts(parallel, steps)
        found[f"{name} shared"] = hash_shared(parallel)
        if name == "right":
            own = parallel.step.state_dict()
            found["own"] = {key: list(value.shape) for key, value in own.items()}
            parallel.load_state_dict({key: torch.tensor(value) for key, value in found[name]["values"].items()})
            found["same"] = all((parallel.step.state_dict()[key] == value).all() for key, value in own.items())
    if dist.get_rank() == 0:
        for name, options in {"right": {}, "clipped": CLIPPED}.items():
            found[f"{name} alone"] = train_parts(compile_heads(shared_out=False, accumulate=True, **options), steps)
    return found


def skipped_step():
    """Does a step for which one column's scale has an infinite gradient, on the last rank alone; and one without."""
    found = {}
    for name in "skipped", "done":
        @torch.no_grad()
        def change(module):
            up = module.blocks[0].up
            up.bias.fill_(1)
            if name == "skipped" and dist.get_rank() == dist.get_world_size() - 1:
                up.bias[0] = 0
            up.forward = lambda x: torch.nn.functional.linear(x, up.weight) * torch.sqrt(up.bias)

        step = compile_heads(change=change, loss_scale=True)
        before = read_bits(step)
        tokens, target = draw_batch(0, 0)
        loss = float(weir.distributed.TensorParallel(step)(tokens, target=target))
        found[name] = {"loss": loss, "scale": float(step._execution.read(["loss_scale"])["loss_scale"]),
                       "changed": sorted(key for key, value in read_bits(step).items() if value != before[key])}
    return found


def replicas(count, steps, folder):
    """Trains parts of a model in replicas with batches of their own. Rank 0 trains the whole by their mean."""
    mesh = init_device_mesh("cpu", (count, dist.get_world_size() // count))
    options = {"accumulate": True, "clip_norm": 0.1}
    make = functools.partial(compile_heads, group=mesh.get_group(1), replicas=count, **options)
    parallel = weir.distributed.TensorParallel(make(), mesh)
    found = train_parts(parallel, steps, mesh.get_local_rank(0)) | {"shared": hash_shared(parallel)}
    parallel.save(folder)
    again = weir.distributed.TensorParallel(make(), mesh)
    found["same"] = again.load(folder) == steps and list_values(again.state_dict()) == found["values"]
    tokens, target = models.draw(ROWS, seed=int(dist.get_rank() == 1))
    found["refused"] = catch(lambda: again(tokens, target=target))
    if dist.get_rank() == 0:
        step, losses = compile_heads(shared_out=False, **options), []
        for number in range(steps):
            *rest, last = (draw_batch(number, batch) for batch in range(2 * count))
            each = [float(step.accumulate(tokens, target=target)) for tokens, target in rest]
            each.append(float(step(last[0], target=last[1])))
            losses += [sum(each[microbatch::2]) / count for microbatch in (0, 1)]
        found["alone"] = {"losses": losses, "values": list_values(step.state_dict())}
    return found


def catch(function):
    """Returns the error of a call, "" if it has none."""
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def add_bias_twice(module):
    """Makes a layer by rows add its bias on each rank, before the sum."""
    down = module.blocks[0].down
    down.bias, down.own_bias = None, down.bias
    down.forward = lambda x: functional_collectives.all_reduce(
        torch.nn.functional.linear(x, down.weight, down.own_bias), "sum", down._group)


def forget_sum(module):
    down = module.blocks[0].down
    down.forward = lambda x: torch.nn.functional.linear(x, down.weight, down.bias)


def add_twice(module):
    down, once = module.blocks[0].down, module.blocks[0].down.forward
    down.forward = lambda x: functional_collectives.all_reduce(once(x), "sum", down._group)


def checkpointed(folder, steps, every, how="data", pause=0.0, parallel=None, stall=None, die=None, **options):
    """Trains from the last checkpoint on, and writes one every few steps. Reports each step in a file.

    `how`: by data or tensor parallel.
    `die`: a rank, a number of steps, and the part of the checkpoint behind which the rank kills itself.
    """
    rank = dist.get_rank()
    if how == "data":
        trained = weir.distributed.DataParallel(compile_step(seed=rank, **options), **(parallel or {}))
    else:
        trained = weir.distributed.TensorParallel(compile_heads(**options))
    start, losses, hashes = trained.load(folder), [], {}
    for number in range(start, steps):
        if stall is not None and stall == [rank, number]:
            time.sleep(3600)
        tokens, target = draw_batch(number, rank if how == "data" else 0)
        losses.append(float(trained(tokens, target=target)))
        hashes[number] = hash_tensors(trained.step.state_dict().values())
        with open(f"progress.{rank}", "a") as file:
            file.write(f"{number}\n")
        time.sleep(pause)
        if die is not None and die[:2] == [rank, number + 1]:
            die_behind(die[2])
        if (number + 1) % every == 0:
            trained.save(folder)
    return {"start": start, "hashes": hashes, "bits": read_bits(trained.step), "losses": losses,
            "values": list_values(trained.state_dict()) if how == "tensor" else {}}


def move_parts(folder, steps, every):
    """Trains by both ranks; and again from the first checkpoint on, by rank 0 alone, and then by both."""
    def train(start, end, group=None, folder=None):
        if group == dist.GroupMember.NON_GROUP_MEMBER:
            return [], {}
        trained = weir.distributed.TensorParallel(compile_heads(group=group, accumulate=True), group)
        assert not folder or trained.load(folder) == start
        losses = []
        for number in range(start, end):
            tokens, target = draw_batch(number, 0)
            losses.append(float(trained(tokens, target=target)))
            if folder or number + 1 == every:
                trained.save(folder or first)
        return losses, list_values(trained.state_dict())

    first = f"{folder}/moved"
    whole = train(0, steps)
    one = train(every, 2 * every, dist.new_group([0]), first)
    dist.barrier()
    two = train(2 * every, steps, None, first)
    read = train(steps, steps, dist.new_group([0]), first)
    return {"whole": whole, "losses": one[0] + two[0], "values": two[1], "read": read[1]}


def die_behind(part):
    """Makes this rank kill itself once it has written its data, or all but the final name of the folder."""
    def kill(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    write = dcp.FileSystemWriter.write_data
    if part == "data":
        dcp.FileSystemWriter.write_data = lambda *arguments: kill(write(*arguments).wait())
    else:
        folders._replace = kill


def refuse(cases):
    """Returns the error of each case, a call that does not fit, on each rank."""
    found = {}
    for case in cases:
        found[case] = catch(lambda: refuse_case(case, dist.get_rank()))
    return found


def refuse_case(case, rank):
    make = weir.distributed.DataParallel
    if case == "artifacts":
        make(compile_once(pieces=True, ema=0.9 if rank else None))
    elif case == "options":
        make(compile_once(pieces=True), reduction="ring" if rank else "ranks")
    elif case == "pieces":
        make(compile_once())
    elif case == "shards":
        make(compile_once(shards=3), sharded=True)
    elif case == "reduction":
        make(compile_once(pieces=True), reduction="tree")
    elif case == "device":
        make(compile_once(pieces=True), group=dist.new_group(backend="cuda:gloo"))
    elif case == "values":
        make(compile_once(pieces=True, check_values=True))
    elif case == "shape":
        trained = make(compile_once(pieces=True))
        tokens, target = models.draw(ROWS + rank)
        trained(tokens, target=target)
    elif case == "missing":
        trained = make(compile_once(pieces=True))
        tokens, target = models.draw(ROWS)
        trained(tokens, **{} if rank else {"target": target})
    elif case == "no_sync":
        with make(compile_once(pieces=True)).no_sync():
            pass
    elif case == "split":
        cut(models.make(2, "plain"), 3 + rank, "cpu")
    elif case == "models":
        cut(models.make(2, "tied" if rank else "plain"), 2, "cpu")
    elif case == "tied":
        cut(models.make(2, "tied", seed=rank), 2, "cpu")
    elif case == "twice":
        module = models.make(2)
        module.blocks[1] = module.blocks[0]
        cut(module, 2, "cpu")
    else:
        refuse_parallel(case, rank)


def refuse_parallel(case, rank):
    make = weir.distributed.TensorParallel
    if case == "heads":
        models.Heads(heads=1).share_out()
    elif case == "columns":
        weir.distributed.ColumnLinear(torch.nn.Linear(4, 5))
    elif case == "rows":
        weir.distributed.RowLinear(torch.nn.Linear(5, 4))
    elif case == "forgotten sum":
        compile_heads(change=forget_sum)
    elif case == "sum of a sum":
        compile_heads(change=add_twice)
    elif case == "pieces of parts":
        compile_heads(pieces=True)
    elif case == "replicas of the whole":
        compile_step(replicas=2)
    elif case == "replicas without a mesh":
        group = init_device_mesh("cpu", (2, 1)).get_group(1)
        make(compile_heads(group=group, replicas=2), group)
    elif case == "a mesh of one dimension":
        make(compile_heads(), init_device_mesh("cpu", (2,)))
    elif case == "parts of replicas":
        mesh = init_device_mesh("cpu", (2, 1))
        make(compile_heads(group=mesh.get_group(1), replicas=2, change=lambda module: torch.nn.init.constant_(
            module.blocks[0].up.bias, rank)), mesh)
    elif case == "adafactor of parts":
        compile_heads(optimizer=weir.Adafactor())
    elif case == "no collectives":
        make(compile_once())
    elif case == "parallel artifacts":
        make(compile_heads(ema=0.9 if rank else None))
    elif case == "parallel values":
        make(compile_heads(seed=rank))
    elif case == "batches":
        tokens, target = models.draw(ROWS, seed=rank)
        make(compile_heads())(tokens, target=target)
    elif case == "without ranks":
        tokens, target = models.draw(ROWS)
        compile_heads()(tokens, target=target)


def main():
    torch.set_num_threads(1)
    name, options = sys.argv[1], json.loads(sys.argv[2])
    timeout = datetime.timedelta(seconds=options.pop("group_timeout", 120))
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{os.environ['GROUP_FILE']}", rank=rank, world_size=size,
                            timeout=timeout)
    result = globals()[name](**options)
    pathlib.Path(f"result.{rank}").write_text(json.dumps(result))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
