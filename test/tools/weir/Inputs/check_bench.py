"""check_bench.py BENCH PLANS ENTRY: what `weir bench --json` prints fits the plan."""

import json
import sys

bench = json.load(open(sys.argv[1]))
plan = next(p for p in json.load(open(sys.argv[2]))["plans"] if p["entry"] == sys.argv[3])
assert bench["entry"] == sys.argv[3]
assert sum(kernel["dispatches"] for kernel in bench["kernels"]) == plan["dispatches"]
assert abs(sum(kernel["share"] for kernel in bench["kernels"]) - 1) < 1e-9
assert all(kernel["seconds"] > 0 and kernel["bytes"] > 0 for kernel in bench["kernels"])
assert bench["copy"]["bytes_per_second"] > 0
assert 0 < bench["seconds"]["fastest"] <= bench["seconds"]["median"]
