"""Compares two artifacts, all but what stands under ir/ and notes/."""

import sys
import zipfile


def read(path):
    with zipfile.ZipFile(path) as archive:
        return {n: archive.read(n) for n in archive.namelist() if not n.startswith(("ir/", "notes/"))}


first, second = read(sys.argv[1]), read(sys.argv[2])
assert first.keys() == second.keys(), (first.keys(), second.keys())
for name in first:
    assert first[name] == second[name], name
