"""check_trace.py TRACE PLANS ENTRY: the trace has every dispatch, one after the other."""

import json
import sys

events = json.load(open(sys.argv[1]))["traceEvents"]
plan = next(p for p in json.load(open(sys.argv[2]))["plans"] if p["entry"] == sys.argv[3])
dispatches = [event for event in events if event["ph"] == "X"]
assert [event["args"]["dispatch"] for event in dispatches] == list(range(plan["dispatches"]))
for event in dispatches:
    assert event["dur"] > 0 and event["name"] and event["args"]["source"], event
for first, second in zip(dispatches, dispatches[1:]):
    assert first["ts"] + first["dur"] <= second["ts"] + 1e-3
assert {event["name"] for event in events if event["ph"] == "M"} == {"process_name", "thread_name"}
