"""Functions of workers.py on parameters that fully_shard has shared out."""

import contextlib
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional_collectives

import models
import weir
import weir.distributed
from weir.distributed import fully_sharded as parts
from weir.distributed.groups import hash_tensors

ROWS = 4  # of a batch


class Odd(nn.Module):
    """Sizes that no number of ranks divides, some of them below it; a number as a parameter, and a batch norm."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(models.TOKENS, 7)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(7, 13), nn.Tanh(), nn.Linear(13, 7)) for _ in range(2))
        self.scale, self.shift = nn.Parameter(torch.tensor(0.5)), nn.Parameter(torch.zeros(1))
        self.norm = nn.BatchNorm1d(7)
        self.head = nn.Linear(7, models.TOKENS)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = x + self.scale * block(x) + self.shift
        return self.head(self.norm(x.transpose(1, 2)).transpose(1, 2))


def make(kind, seed):
    torch.manual_seed(seed)
    if kind == "odd":
        return Odd()
    if kind == "heads":
        return models.make_heads(2, seed, shared_out=False)
    return models.Language(3, kind)


def share_out(module, whole=True):
    for block in module.blocks:
        weir.distributed.fully_shard(block)
    return weir.distributed.fully_shard(module) if whole else module


def compile_step(module, **options):
    tokens, target = models.draw(ROWS)
    return weir.compile_step(module, models.cross_entropy, example=(tokens,), targets={"target": target}, device="cpu",
                             optimizer=options.pop("optimizer", None) or weir.AdamW(learning_rate=0.01), **options)


def draw(step, rank):
    return models.draw(ROWS, seed=1000 * step + rank)


def compare(values, others):
    """Returns whether tensors have the same bits, and the largest difference relative to the largest element."""
    assert values.keys() == others.keys()
    errors = [float((values[name] - others[name]).abs().max() / others[name].abs().max().clamp(min=1e-3)) for name in values]
    return all(torch.equal(values[name], others[name]) for name in values), max(errors)


def hash_parameters(sharded):
    """Returns a hash of whole parameters. Buffers are each rank's own."""
    return hash_tensors(value for name, value in sharded.state_dict().items() if name not in sharded.step._private)


def train(call, steps, rank):
    losses = []
    for number in range(steps):
        tokens, target = draw(number, rank)
        losses.append(float(call(tokens, target=target)))
    return losses


def fully_sharded(kinds, steps=3, whole=True, seeds=False, descent=False):
    """Trains models of which each rank has parts, and whole ones by DataParallel, from what rank 0 draws.

    `descent`: by plain gradient descent. AdamW would make steps of the rounding errors of gradients that are 0, as before
    a batch norm.
    """
    options = {"optimizer": weir.SGD(learning_rate=0.5)} if descent else {}
    rank, size = dist.get_rank(), dist.get_world_size()
    found = {}
    for kind in kinds:
        step = compile_step(share_out(make(kind, rank if whole else 0), whole), **options)
        sharded = weir.distributed.FullySharded(step)
        alone = compile_step(make(kind, rank if whole else 0), pieces=True, **options)
        parallel = weir.distributed.DataParallel(alone)
        for each in (step, alone) if seeds else ():
            each.seed(rank)
        losses = train(sharded, steps, rank)
        means = torch.tensor(train(parallel, steps, rank))
        dist.all_reduce(means)
        values = sharded.state_dict()
        same, error = compare(values, alone.state_dict())
        found[kind] = {
            "losses": losses, "means": (means / size).tolist(), "same": same, "error": error,
            "bits": hash_parameters(sharded),
            "held": sum(tensor.bytes for tensor in step._execution.held.values()),
            "whole": sum(tensor.bytes for tensor in alone._execution.held.values()),
            "sections": len(step._execution.sections["main.step"])}
    return found


def broken(steps=2):
    """Trains one block by plain gradient descent: rightly, with parts gathered in another order, and with gradients that
    count twice. Returns the largest error of each."""
    rank = dist.get_rank()
    step = compile_step(share_out(models.make(1)), optimizer=weir.SGD(learning_rate=0.5))
    start = weir.distributed.FullySharded(step).state_dict()
    alone = compile_step(models.make(1), pieces=True, optimizer=weir.SGD(learning_rate=0.5))
    train(weir.distributed.DataParallel(alone), steps, rank)
    found = {}
    for name, change in {"right": contextlib.nullcontext, "order": gather_reversed, "twice": scatter_twice}.items():
        sharded = weir.distributed.FullySharded(step)
        sharded.load_state_dict(start)
        with change():
            train(sharded, steps, rank)
        found[name] = compare(sharded.state_dict(), alone.state_dict())[1]
    return found


def gather_reversed():
    begin = parts.begin_gather

    def begin_reversed(ranks, value):
        finish = begin(ranks, value)
        return lambda: finish()[::-1]

    return mock.patch.object(parts, "begin_gather", begin_reversed)


def scatter_twice():
    scatter = parts.FullySharded._scatter_all

    def scatter_all(*arguments):
        for finish in scatter(*arguments):
            yield lambda finish=finish: {key: 2 * value for key, value in finish().items()}

    return mock.patch.object(parts.FullySharded, "_scatter_all", scatter_all)


CLIPPED = {"clip_norm": 0.1, "loss_scale": True}


def accumulated(steps=2):
    """Trains with a microbatch beside each step, and with moving averages; and clipped, too. Rank 0 trains alone, too."""
    rank, size = dist.get_rank(), dist.get_world_size()
    found, unclipped = {}, None
    for kind, more in {"plain": {}, "clipped": CLIPPED}.items():
        options = {"accumulate": True, "ema": 0.5, "predict": (models.draw(ROWS)[0],), **more}
        step = compile_step(share_out(models.make(1, "tied")), optimizer=weir.SGD(learning_rate=0.5), **options)
        sharded = weir.distributed.FullySharded(step)
        for number in range(steps):
            for function, microbatch in ((sharded.accumulate, 0), (sharded, 1)):
                tokens, target = draw(number, size * microbatch + rank)
                function(tokens, target=target)
        own = {"averages": sorted(sharded.averages()), "output": sharded.predict(models.draw(ROWS)[0]).tolist()}
        values, averages = sharded.state_dict(), sharded.averages()
        unclipped = unclipped or values
        if rank == 0:
            alone = compile_step(models.make(1, "tied"), optimizer=weir.SGD(learning_rate=0.5), **options)
            for number in range(steps):
                *others, last = [draw(number, microbatch) for microbatch in range(2 * size)]
                for tokens, target in others:
                    alone.accumulate(tokens, target=target)
                alone(last[0], target=last[1])
            own |= {"error": compare(values, alone.state_dict())[1], "moved": compare(values, unclipped)[1],
                    "average error": compare(averages, {name: torch.from_numpy(value)
                                                        for name, value in alone.averages().items()})[1],
                    "alone": alone.predict(models.draw(ROWS)[0]).tolist()}
        found[kind] = own
    return found


class Rooted(nn.Module):
    """Has an infinite gradient of the last element of a parameter where that is 0, and of no other one."""

    def __init__(self, last):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 3)])
        self.scale = nn.Parameter(torch.tensor([1.0, 1.0, 1.0, last]))

    def forward(self, x):
        return self.blocks[0](x * torch.sqrt(self.scale))


def skipped_parts():
    """Does a step for which the last rank alone has a gradient that is not finite; and one without."""
    found = {}
    for name, last in {"skipped": 0.0, "done": 1.0}.items():
        torch.manual_seed(1)
        x = torch.rand(2, 4) + 1
        step = weir.compile_step(share_out(Rooted(last)), torch.nn.functional.mse_loss, example=(x,),
                                 targets={"target": torch.zeros(2, 3)}, device="cpu", loss_scale=True,
                                 optimizer=weir.SGD(learning_rate=0.1))
        sharded = weir.distributed.FullySharded(step)
        before = sharded.state_dict()
        loss = float(sharded(x, target=torch.zeros(2, 3)))
        found[name] = {"loss": loss, "scale": float(step._execution.read(["loss_scale"])["loss_scale"]),
                       "same": compare(sharded.state_dict(), before)[0]}
    return found


def checkpointed_parts(folder, steps, every=0):
    """Goes on from the last checkpoint. Returns the hashes of whole parameters, by the number of steps done."""
    rank = dist.get_rank()
    sharded = weir.distributed.FullySharded(compile_step(share_out(make("odd", 1), whole=True)))
    found = {"start": sharded.load(folder)}
    found[found["start"]] = hash_parameters(sharded)
    for number in range(found["start"], steps):
        tokens, target = draw(number, rank)
        sharded(tokens, target=target)
        found[number + 1] = hash_parameters(sharded)
        if every and (number + 1) % every == 0:
            sharded.save(folder)
    return found


class Summing(nn.Module):
    """Adds over the ranks by itself."""

    def __init__(self):
        super().__init__()
        self.inner = models.make(1)

    def forward(self, tokens):
        return functional_collectives.all_reduce(self.inner(tokens), "sum", dist.group.WORLD.group_name)


def refuse_parts(cases):
    """Returns the error of each case on each rank."""
    made = compile_step(share_out(models.make(1)))
    found = {}
    for case in cases:
        try:
            refuse_case(case, dist.get_rank(), made)
            found[case] = ""
        except Exception as error:
            found[case] = f"{type(error).__name__}: {error}"
    return found


def refuse_case(case, rank, made):
    if case == "no units":
        weir.distributed.FullySharded(compile_step(models.make(1)))
    elif case == "twice":
        share_out(share_out(models.make(1)))
    elif case == "other parameters":
        share_out(models.make(1, "tied" if rank else "plain"))
    elif case == "columns":
        module = models.make(1)
        module.head = weir.distributed.ColumnLinear(module.head)
        share_out(module)
    elif case == "collectives":
        module = Summing()
        share_out(module.inner)
        compile_step(module)
    elif case == "replicas":
        compile_step(share_out(models.make(1)), replicas=2)
    elif case == "pieces":
        compile_step(share_out(models.make(1)), pieces=True)
    elif case == "adafactor":
        compile_step(share_out(models.make(1)), optimizer=weir.Adafactor())
    elif case == "artifacts":
        weir.distributed.FullySharded(compile_step(share_out(models.make(1)), ema=0.9 if rank else None))
    elif case == "tensor parallel":
        weir.distributed.TensorParallel(made)
    elif case == "alone":
        tokens, target = models.draw(ROWS)
        made(tokens, target=target)
    elif case == "group":
        groups = [dist.new_group([each]) for each in range(dist.get_world_size())]
        weir.distributed.FullySharded(made, groups[rank])
    elif case == "rates":
        tokens, target = models.draw(ROWS)
        weir.distributed.FullySharded(made)(tokens, target=target, learning_rate=0.1 * (rank + 1))
    elif case == "shape":
        tokens, target = models.draw(ROWS + rank)
        weir.distributed.FullySharded(made)(tokens, target=target)
