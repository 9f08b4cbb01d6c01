"""Copies small.weir with the arguments of `scale` donated: donating.py IN OUT.

Its plan becomes one that doubles x in place, which y then is, and doubles n in
place before it computes m, which then is 4 n.
"""

import json
import sys
import zipfile


def edit_manifest(manifest):
    (scale,) = [entry for entry in manifest["entries"] if entry["name"] == "scale"]
    for argument in scale["arguments"]:
        argument["donate"] = True


def edit_plan(plan):
    kernels = {kernel["name"]: i for i, kernel in enumerate(plan["kernels"])}
    for kernel in plan["kernels"]:
        kernel["in_place"] = [[0, 1]]
    plan["allocations"] = [
        {"kind": "argument", "index": 0, "bytes": 24, "result": 0},
        {"kind": "argument", "index": 1, "bytes": 16},
        {"kind": "result", "index": 1, "bytes": 16},
    ]
    sizes = {"x": 24, "n": 16, "y": 24, "n2": 16, "m": 16}
    plan["values"] = list(sizes.items())
    plan["argument_values"] = [0, 1]
    plan["result_values"] = [2, 4]

    def dispatch(kernel, wave, *operands):
        return {"command": "dispatch", "kernel": kernels[kernel], "grid": [1, 1, 1], "wave": wave,
                "operands": operands, "location": ""}

    hazard = ["raw", 1, 1, 2, 0]
    plan["commands"] = [
        dispatch("map_6", 0, [0, 0, 24, 0, 0], [0, 0, 24, 2, 0]),
        dispatch("map_2", 0, [1, 0, 16, 1, 0], [1, 0, 16, 3, 0]),
        {"command": "barrier", "hazards": [hazard], "memory": [[1, 0, 16]]},
        dispatch("map_2", 1, [1, 0, 16, 3, 0], [2, 0, 16, 4, 0]),
    ]


with zipfile.ZipFile(sys.argv[1]) as source, zipfile.ZipFile(sys.argv[2], "w") as copy:
    for name in source.namelist():
        data = source.read(name)
        for path, edit in ("manifest.json", edit_manifest), ("plan/vulkan/scale.json", edit_plan):
            if name == path:
                content = json.loads(data)
                edit(content)
                data = json.dumps(content).encode()
        copy.writestr(zipfile.ZipInfo(name), data)
