"""check_timing.py table TABLE | trace TRACE NAME...: what --timing gave holds together.

Parts of a step, which a table indents, add up to the step, steps to the total, and each pass
begins with the ops that the one before left. Events of a trace lie within one another, and
there is one of each NAME.
"""

import json
import sys


def check_table(path):
    lines = open(path).read().splitlines()
    head = lines.index(next(line for line in lines if line.startswith("step ")))
    names = lines[head]
    columns = [names.index(name) for name in ("step", "seconds", "share", "ops before", "ops after")]
    columns.append(names.index("peak MB"))
    rows = []
    for line in lines[head + 1 :]:
        cells = [line[a:b].rstrip() for a, b in zip(columns, columns[1:] + [None])]
        rows.append((cells[0], float(cells[1]), cells[3], cells[4]))
    total = rows.pop()
    assert total[0] == "total", total
    steps = [row for row in rows if not row[0].startswith(" ")]
    half = 0.0005  # of the last digit: each number is rounded
    assert abs(sum(row[1] for row in steps) - total[1]) <= half * (len(steps) + 1), (steps, total)
    for at, step in enumerate(rows):
        parts = []
        for row in rows[at + 1 :]:
            if not row[0].startswith(" "):
                break
            parts.append(row)
        if step in parts or not parts or step[0].startswith(" "):
            continue
        assert abs(sum(row[1] for row in parts) - step[1]) <= half * (len(parts) + 1), (step, parts)
        passes = [row for row in parts if row[2]]
        for before, after in zip(passes, passes[1:]):
            assert before[3] == after[2], (before, after)
        if passes:
            assert (passes[0][2], passes[-1][3]) == step[2:], (step, passes)


def check_trace(path, wanted):
    events = json.load(open(path))["traceEvents"]
    total, *steps = events
    assert total["name"] == "total" and total["args"]["peak memory in MB"] > 1, total
    open_steps = [total]
    for event in steps:
        assert event["ph"] == "X" and event["pid"] == 0 and event["tid"] == 0, event
        assert event["cat"] in ("pass", "level", "step"), event
        if event["cat"] == "pass":
            assert event["args"]["ops before"] >= 0 and event["args"]["ops after"] > 0, event
        assert event["ts"] >= 0 and event["dur"] >= 0, event
        slack = 1  # microseconds: the total is measured outside
        while event["ts"] >= open_steps[-1]["ts"] + open_steps[-1]["dur"] and open_steps[1:]:
            open_steps.pop()
        outer = open_steps[-1]
        end = outer["ts"] + outer["dur"]
        assert event["ts"] + event["dur"] <= end + slack, (event, outer)
        open_steps.append(event)
    names = [event["name"] for event in events]
    for name in wanted:
        assert names.count(name) == 1, (name, names)


if sys.argv[1] == "table":
    check_table(sys.argv[2])
else:
    check_trace(sys.argv[2], sys.argv[3:])
