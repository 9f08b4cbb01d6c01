"""Checks the table of docs/command-line.md: check_verbs.py PAGE. It has every verb of `weir --help`, in the same order
and in the same words, and says which `weir-device` has."""

import pathlib
import re
import subprocess
import sys


def read_help(tool):
    """Maps the verbs of a tool to their descriptions."""
    text = subprocess.run([tool, "--help"], check=True, capture_output=True, text=True).stdout
    verbs = re.findall(r"^  ([a-z-]+) +(\S.*(?:\n   +\S.*)*)$", text.split("Verbs:")[1], re.MULTILINE)
    return {verb: " ".join(does.split()) for verb, does in verbs}


rows = re.findall(r"^\| `([a-z-]+)` \| (.*?) \| (yes|no) \|", pathlib.Path(sys.argv[1]).read_text(), re.MULTILINE)
with_compiler, without = read_help("weir"), read_help("weir-device")
assert "compile" in with_compiler and "compile" not in without and "run" in without
expected = [(verb, does, "yes" if verb in without else "no") for verb, does in with_compiler.items()]
assert rows == expected, f"the page has {sorted(set(rows) ^ set(expected))} otherwise than --help"
