"""count_kernels.py OPS[xTIMES]...: the kernels of a module, in order, hold so many
`linalg.generic` each."""

import sys

expected = []
for argument in sys.argv[1:]:
    ops, _, times = argument.partition("x")
    expected += [int(ops)] * int(times or 1)
found = []
for line in sys.stdin:
    if "schedule.kernel" in line:
        found.append(0)
    elif "linalg.generic" in line:
        found[-1] += 1
assert found == expected, (found, expected)
