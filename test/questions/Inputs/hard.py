"""Prints a kernel that is built to be hard: accesses whose addresses are nested quotients and rests of sums with factors
that have nothing in common, and strides that only the launch knows. hard.py [accesses]"""

import sys

PRIMES = [7919, 104729, 1299709, 611953, 15485863, 32452843, 49979687, 67867967]


def main(accesses):
    print('gpu.module @kernels {')
    print("gpu.func @hard(%a: memref<?xf32>, %stride: index, %x: f32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {")
    print("  %t = gpu.thread_id x\n  %b = gpu.block_id x\n  %n = gpu.block_id y")
    made = 0

    def emit(text):
        nonlocal made
        made += 1
        print(f"  %v{made} = {text} : index")
        return f"%v{made}"

    for k in range(accesses):
        value = "%t"
        for depth in range(4):
            factor = print_constant(emit, PRIMES[(k + depth) % 8] + k)
            divisor = print_constant(emit, PRIMES[(k * 3 + depth) % 5] // (depth * 5 + 2) + 3 * k)
            value = emit(f"arith.muli {value}, {factor}")
            value = emit(f"arith.addi {value}, {'%b' if depth % 2 else '%n'}")
            quotient = emit(f"arith.divui {value}, {divisor}")
            rest = emit(f"arith.remui {value}, {divisor}")
            value = emit(f"arith.addi {quotient}, {rest}")
        if k % 4 == 0:
            value = emit(f"arith.muli {value}, %stride")
        if k % 2:
            print(f"  %l{k} = memref.load %a[{value}] : memref<?xf32>")
        else:
            print(f"  memref.store %x, %a[{value}] : memref<?xf32>")
    print("  gpu.return\n}\n}")


def print_constant(emit, value):
    return emit(f"arith.constant {value}")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
