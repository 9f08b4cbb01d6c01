"""Trains a small GPT in stages, under a schedule of torch.distributed.pipelining.

    torchrun --nproc-per-node=2 pipeline.py --schedule=ZBVZeroBubble [--compare]

With --compare each rank compares the gradients of the first step with PyTorch's in f64.
"""

import argparse
import sys

import torch
import torch.distributed as dist
from torch.distributed.pipelining.schedules import PipelineScheduleSingle, get_schedule_class

import model
import weir.distributed


def choose_stages(schedule, rank, size, count):
    """Returns the stages of a rank: those of schedules like ZBVZeroBubble lie as a V."""
    if schedule in ("ZBVZeroBubble", "DualPipeV"):
        return [rank, 2 * size - 1 - rank]
    return list(range(rank, count, size))


def compare(arguments, stages):
    """Returns the largest error of a gradient of the first step, relative to its largest element in f64."""
    exact = model.make(arguments.blocks).double()
    tokens, target = draw(arguments, 0)
    model.loss(exact(tokens), target).backward()
    expected = {name: value.grad for name, value in exact.named_parameters(remove_duplicate=False)}
    return max(float((value.grad - expected[name]).abs().max() / expected[name].abs().max())
               for stage in stages for name, value in stage.submod.named_parameters())


def draw(arguments, step):
    batches = [model.draw(step, number) for number in range(arguments.microbatches)]
    return torch.cat([tokens for tokens, _ in batches]), torch.cat([target for _, target in batches])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedule", default="1F1B")
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--microbatches", type=int, default=4)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--compare", action="store_true", help="compare the first step's gradients with PyTorch's in f64")
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    schedule = get_schedule_class(arguments.schedule)
    count = size if issubclass(schedule, PipelineScheduleSingle) else 2 * size
    points = [f"blocks.{arguments.blocks * index // count}" for index in range(1, count)]
    parts = weir.distributed.stages(model.make(arguments.blocks), model.loss, points, example=model.draw(0, 0)[:1],
                                    device=arguments.device)
    stages = [parts.stage(index) for index in choose_stages(arguments.schedule, rank, size, count)]
    run = schedule(stages[0] if count == size else stages, n_microbatches=arguments.microbatches, loss_fn=parts.loss)
    optimizer = torch.optim.AdamW([value for stage in stages for value in stage.submod.parameters()], lr=3e-3)
    error = 0.0
    for number in range(arguments.steps):
        tokens, target = draw(arguments, number)
        losses = []
        given = {"target": target, "losses": losses} if any(stage.is_last for stage in stages) else {}
        run.step(*((tokens,) if any(stage.is_first for stage in stages) else ()), **given)
        parts.reduce_tied()
        if losses:
            print(f"step {number + 1}  loss {sum(losses) / len(losses):.6f}", flush=True)
        if arguments.compare and number == 0:
            error = compare(arguments, stages)
            print(f"rank {rank}: largest error of a gradient {error:.1e}", flush=True)
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()
    dist.destroy_process_group()
    return 1 if error > 1e-5 else 0


if __name__ == "__main__":
    sys.exit(main())
