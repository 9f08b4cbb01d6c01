"""Copies an artifact without the barriers of its plans: without_barriers.py IN OUT."""

import json
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as source, zipfile.ZipFile(sys.argv[2], "w") as copy:
    for name in source.namelist():
        data = source.read(name)
        if name.startswith("plan/"):
            plan = json.loads(data)
            plan["commands"] = [c for c in plan["commands"] if "barrier" not in json.dumps(c)]
            data = json.dumps(plan).encode()
        copy.writestr(zipfile.ZipInfo(name), data)
