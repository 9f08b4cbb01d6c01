"""Checks a file of `weir compile --pareto`: check_curve.py FILE.json KNEE, where KNEE is the number of the point that
--checkpoint=auto takes. Prints a line for each point."""

import json
import sys

[curve] = json.load(open(sys.argv[1]))["entries"]
points = curve["points"]
for before, point in zip(points, points[1:]):
    assert point["arena_bytes"] < before["arena_bytes"] and point["work"] >= before["work"], points
    assert point["bound_bytes"] <= before["bound_bytes"], points
for point in points:
    assert point["bound_bytes"] <= point["live_bytes"] <= point["arena_bytes"], point
assert points[0]["work"] == 1
assert [point["knee"] for point in points].index(True) == int(sys.argv[2]), points
assert sum(point["knee"] for point in points) == 1
for point in points:
    print(curve["entry"], curve["target"], *(point[name] for name in ("arena_bytes", "bound_bytes", "dispatches")))
