#!/usr/bin/env python3
"""Random buffers in the CSV of `weir plan`: generate.py COUNT [SEED] [--kind=KIND].

uniform: begins, lives and sizes of no order. layers: as a network trains; what a
layer leaves for its backward pass lives long, the rest a few waves.
"""

import argparse
import random


def make_uniform(count, rng):
    for i in range(count):
        begin = rng.randrange(2 * count)
        life = min(2 * count - begin, 1 + int(rng.expovariate(1 / 60)))
        yield begin, begin + life, 64 * rng.randint(1, 4096)


def make_layers(count, rng):
    layers = max(1, count // 8)
    sizes = [64 * rng.randint(64, 4096) for _ in range(8)]
    for i in range(count):
        layer = i // 8 % layers
        begin, mirror = 4 * layer, 8 * layers - 4 * layer
        size = sizes[i % 8] // rng.choice([1, 1, 2, 4])
        if i % 8 == 0 and layer % 64 == 0:
            yield begin, mirror, size
        elif i % 2:
            yield begin + i % 4, begin + i % 4 + rng.randint(1, 12), size
        else:
            yield mirror, mirror + rng.randint(1, 12), size


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--kind", choices=["uniform", "layers"], default="uniform")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    make = make_uniform if options.kind == "uniform" else make_layers
    print("id,lower,upper,size")
    for i, (lower, upper, size) in enumerate(make(options.count, rng)):
        print(f"b{i},{lower},{upper},{size}")


if __name__ == "__main__":
    main()
