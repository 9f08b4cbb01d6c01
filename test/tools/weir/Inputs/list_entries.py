"""Prints what `weir inspect --json` says of each argument and result, one a line: list_entries.py < JSON"""

import json
import sys

for entry in json.load(sys.stdin)["entries"]:
    for what in "argument", "result":
        for tensor in entry[what + "s"]:
            shape = "x".join(map(str, tensor["shape"])) or "scalar"
            donated = "(donated)" if tensor.get("donate") else ""
            print(entry["name"], what, tensor["name"], tensor["dtype"], shape, tensor.get("kind", ""), donated)
