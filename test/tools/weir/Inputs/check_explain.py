"""Checks that the lists of `weir explain --json` say the same of a plan as its counts do: check_explain.py ALL.json"""

import json
import sys

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
    for value in memory["peak"]:
        for saving in value["repeat_saves"], value["move_saves"]:
            assert saving is None or 0 <= saving <= value["bytes"]
