"""Trains a small GPT of which each rank has some heads and some columns.

    torchrun --nproc-per-node=2 tensor_parallel.py [--compare]

With --compare rank 0 trains the whole model alone, too, and reports the largest difference of a loss.
"""

import argparse
import sys

import torch.distributed as dist

import model
import weir
import weir.distributed


def share_out(gpt, size):
    """Replaces the large layers by this rank's parts."""
    for block in gpt.blocks:
        block.qkv = weir.distributed.ColumnLinear(block.qkv, parts=3, heads=block.heads)
        block.out = weir.distributed.RowLinear(block.out)
        block.up, block.down = weir.distributed.ColumnLinear(block.up), weir.distributed.RowLinear(block.down)
        block.heads //= size
    return gpt


def compile_step(arguments, gpt):
    tokens, target = model.draw(0, 0)
    return weir.compile_step(gpt, model.loss, example=(tokens,), targets={"target": target},
                             optimizer=weir.AdamW(learning_rate=3e-3), device=arguments.device)


def train(arguments, step):
    losses = []
    for number in range(arguments.steps):
        tokens, target = model.draw(number, 0)
        losses.append(float(step(tokens, target=target)))
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--compare", action="store_true", help="train the whole model alone, too, and compare")
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    step = weir.distributed.TensorParallel(compile_step(arguments, share_out(model.make(arguments.blocks), size)))
    losses, error = train(arguments, step), 0.0
    for number, loss in enumerate(losses if rank == 0 else []):
        print(f"step {number + 1}  loss {loss:.6f}", flush=True)
    if arguments.compare and rank == 0:
        alone = compile_step(arguments, model.make(arguments.blocks))
        error = max(abs(a / b - 1) for a, b in zip(losses, train(arguments, alone)))
        print(f"largest relative difference of a loss from one process: {error:.1e}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    return 1 if error > 1e-5 else 0


if __name__ == "__main__":
    sys.exit(main())
