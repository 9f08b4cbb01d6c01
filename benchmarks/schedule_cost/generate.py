"""Prints a module at the dispatches level: generate.py DISPATCHES.

Chains of eight dispatches over 64 kernels. Every tenth fans out to eight readers of the
chain's end, whose results nobody reads; each chain's end is the next one's beginning.
"""

import sys

KERNELS, BYTES = 64, 256
TYPE = f"memref<{BYTES // 4}xf32>"
GLOBAL = f"memref<{BYTES // 4}xf32, #gpu.address_space<global>>"


def main():
    count = int(sys.argv[1])
    print("module attributes {gpu.container_module} {")
    for kernel in range(KERNELS):
        print(f"""  gpu.module @k{kernel} {{
    gpu.func @k{kernel}(%x: {GLOBAL} {{schedule.effect = #schedule.effect<read>}},
        %y: {GLOBAL} {{schedule.effect = #schedule.effect<write, covers_all = true>}}) kernel
        attributes {{known_block_size = array<i32: 64, 1, 1>}} {{
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : {GLOBAL}
      %s = arith.constant {kernel}.0 : f32
      %w = arith.addf %v, %s : f32
      memref.store %w, %y[%i] : {GLOBAL}
      gpu.return
    }}
  }}""")
    allocs, dispatches = [], []

    def add(source):
        number = len(dispatches)
        target = "%y" if number + 1 == count else f"%v{number}"
        if target != "%y":
            allocs.append(f"    {target} = memref.alloc() : {TYPE}")
        kernel = number * 7 % KERNELS
        dispatches.append(f"      schedule.dispatch @k{kernel}::@k{kernel} [1, 1, 1] "
                          f"({source}, {target}) : ({TYPE}, {TYPE})")
        return target

    end = "%x"
    while len(dispatches) < count:
        for step in range(8):
            if len(dispatches) < count:
                end = add(end)
        if len(dispatches) // 8 % 10 == 0:
            for reader in range(8):
                if len(dispatches) + 1 < count:
                    add(end)
    print(f"  func.func @f(%x: {TYPE}, %y: {TYPE} {{weir.result}}) attributes {{weir.entry}} {{")
    print("\n".join(allocs))
    print("    schedule.commands {")
    print("\n".join(dispatches))
    print("    }\n    return\n  }\n}")


main()
