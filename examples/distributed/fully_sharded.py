"""Trains a small GPT of which each rank holds a part of every parameter and of the optimizer's state.

    torchrun --nproc-per-node=2 fully_sharded.py [--checkpoint=FOLDER] [--compare]

With --checkpoint it goes on from the last one, of any number of ranks. With --compare all ranks train by DataParallel,
too, and rank 0 reports the largest difference of a parameter and the bytes that a rank holds.
"""

import argparse
import sys

import torch.distributed as dist

import model
import weir
import weir.distributed


def share_out(gpt):
    """Makes each block a unit, and the rest another."""
    for block in gpt.blocks:
        weir.distributed.fully_shard(block)
    return weir.distributed.fully_shard(gpt)


def compile_step(arguments, gpt, **options):
    tokens, target = model.draw(0, 0)
    return weir.compile_step(gpt, model.loss, example=(tokens,), targets={"target": target},
                             optimizer=weir.AdamW(learning_rate=3e-3), device=arguments.device, **options)


def train(arguments, step, start=0):
    for number in range(start, arguments.steps):
        tokens, target = model.draw(number, dist.get_rank())
        loss = float(step(tokens, target=target))
        if isinstance(step, weir.distributed.FullySharded):
            if dist.get_rank() == 0:
                print(f"step {number + 1}  loss {loss:.6f}", flush=True)
            if arguments.checkpoint and (number + 1) % arguments.every == 0:
                step.save(arguments.checkpoint)


def count_held(step):
    return sum(tensor.bytes for tensor in step._execution.held.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--checkpoint", help="a folder of checkpoints that all ranks see")
    parser.add_argument("--every", type=int, default=2, help="the number of steps between checkpoints (default 2)")
    parser.add_argument("--compare", action="store_true", help="train by DataParallel, too, and compare")
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    sharded = weir.distributed.FullySharded(compile_step(arguments, share_out(model.make(arguments.blocks))))
    train(arguments, sharded, sharded.load(arguments.checkpoint) if arguments.checkpoint else 0)
    difference = 0.0
    if arguments.compare:
        step = compile_step(arguments, model.make(arguments.blocks), pieces=True)
        train(arguments, weir.distributed.DataParallel(step))
        mine, whole = sharded.state_dict(), step.state_dict()
        difference = max(float((mine[name] - whole[name]).abs().max()) for name in mine)
        if dist.get_rank() == 0:
            print(f"largest difference from data parallel: {difference:.1e}")
            print(f"a rank holds {count_held(sharded.step)} bytes instead of {count_held(step)}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    return 1 if difference > 1e-4 else 0


if __name__ == "__main__":
    sys.exit(main())
