"""Trains a small GPT on several ranks, each with batches of its own.

    torchrun --nproc-per-node=2 data_parallel.py [--sharded] [--reduction=ring] [--checkpoint=FOLDER] [--compare]

With --checkpoint it goes on from the last one, as torchrun --max-restarts=N makes it do after a fault. With --compare
rank 0 trains alone, too, by accumulating the batches of all ranks, and reports the largest difference.
"""

import argparse
import sys

import torch
import torch.distributed as dist

import model
import weir
import weir.distributed


def compile_step(arguments, size, **options):
    tokens, target = model.draw(0, 0)
    return weir.compile_step(model.make(arguments.blocks), model.loss, example=(tokens,), targets={"target": target},
                             optimizer=weir.AdamW(learning_rate=3e-3), device=arguments.device, **options)


def train(arguments, rank, size):
    options = {"shards": size} if arguments.sharded else {"pieces": True}
    step = compile_step(arguments, size, **options)
    parallel = weir.distributed.DataParallel(step, sharded=arguments.sharded, reduction=arguments.reduction)
    start = parallel.load(arguments.checkpoint) if arguments.checkpoint else 0
    for number in range(start, arguments.steps):
        tokens, target = model.draw(number, rank)
        loss = float(parallel(tokens, target=target))
        mean = torch.tensor(loss / size)
        dist.all_reduce(mean)
        if rank == 0:
            print(f"step {number + 1}  loss {mean:.6f}", flush=True)
        if arguments.checkpoint and (number + 1) % arguments.every == 0:
            parallel.save(arguments.checkpoint)
    return step


def train_alone(arguments, size):
    step = compile_step(arguments, size, accumulate=size > 1)
    for number in range(arguments.steps):
        *others, last = [model.draw(number, rank) for rank in range(size)]
        for tokens, target in others:
            step.accumulate(tokens, target=target)
        step(last[0], target=last[1])
    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--sharded", action="store_true", help="each rank keeps the optimizer's state of its shard alone")
    parser.add_argument("--reduction", choices=["ranks", "ring"], default="ranks")
    parser.add_argument("--checkpoint", help="a folder of checkpoints that all ranks see")
    parser.add_argument("--every", type=int, default=2, help="the number of steps between checkpoints (default 2)")
    parser.add_argument("--compare", action="store_true", help="train alone, too, and compare")
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    step = train(arguments, rank, size)
    difference = 0.0
    if arguments.compare and rank == 0:
        mine, alone = step.state_dict(), train_alone(arguments, size).state_dict()
        difference = max(float((mine[name] - alone[name]).abs().max()) for name in mine)
        print(f"largest difference from one process: {difference:.1e}")
    dist.barrier()
    dist.destroy_process_group()
    return 1 if difference > (0.0 if arguments.reduction == "ranks" else 1e-4) else 0


if __name__ == "__main__":
    sys.exit(main())
