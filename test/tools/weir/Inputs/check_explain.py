"""Checks that the lists of `weir explain --json` say the same of a plan as its counts do: check_explain.py ALL.json"""

import json
import sys


def repeat_saves(memory, value):
    """Returns what `repeat_saves` must be, with the live bytes of each wave counted again."""
    slot = [other for other in memory["values"] if other["slot"] == value["slot"]]
    used = {wave[i] for other in slot for i in other["written_by"] + other["read_by"]}
    peak = memory["peak_wave"]
    if peak in used or max(used) < peak:
        return None
    gap = range(max(w for w in used if w < peak) + 1, min(w for w in used if w > peak))
    live = [bytes_ - (value["bytes"] if number in gap else 0) for number, bytes_ in zip(memory["waves"], memory["live_bytes"])]
    return max(memory["live_bytes"]) - max(live)


for plan in json.load(open(sys.argv[1]))["plans"]:
    summary, dispatches, memory = plan["summary"], plan["dispatches"], plan["memory"]
    assert summary["dispatches"] == len(dispatches)
    assert summary["barriers"] == len(plan["barriers"])
    assert summary["donated"] == len(plan["donation"])
    assert summary["donations_accepted"] == sum(row["result"] is not None for row in plan["donation"])
    assert summary["most_live_bytes"] == max(memory["live_bytes"]) == sum(value["bytes"] for value in memory["peak"])
    assert summary["values_at_peak"] == len(memory["peak"])
    assert memory["waves"] == sorted({row["wave"] for row in dispatches})
    assert memory["live_bytes"][memory["waves"].index(memory["peak_wave"])] == summary["most_live_bytes"]
    assert max(value["offset"] + value["bytes"] for value in memory["values"]) <= summary["arena_bytes"]
    for value in memory["values"]:
        writers = [dispatches[i] for i in value["written_by"]]
        readers = [dispatches[i] for i in value["read_by"]]
        assert all(value["value"] in row["writes"] for row in writers) and writers
        assert all(value["value"] in row["reads"] for row in readers)
        uses = [row["wave"] for row in writers + readers]
        assert (value["first_wave"], value["last_wave"]) == (min(uses), max(uses))
    for barrier in plan["barriers"]:
        first, second = dispatches[barrier["from"]], dispatches[barrier["to"]]
        assert first["kernel"] in barrier["why"] and second["kernel"] in barrier["why"]
        assert barrier["kind"] in barrier["why"] and f"{barrier['bytes']} bytes" in barrier["why"]
        assert first["dispatch"] < barrier["before_dispatch"] <= second["dispatch"] and barrier["bytes"] > 0
    wave = [row["wave"] for row in dispatches]
    for value in memory["peak"]:
        assert value["repeat_saves"] == repeat_saves(memory, memory["values"][value["of_values"]]), value
        assert value["move_saves"] is None or 0 <= value["move_saves"] <= value["bytes"]
