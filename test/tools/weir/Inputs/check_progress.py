"""check_progress.py IN.mlir terminal|file: what `weir compile` says while it goes on.

The graph comes through a pipe. For a terminal it comes once progress shows, whenever that is;
for a file after two seconds, in which progress would have shown.
"""

import os
import pty
import re
import subprocess
import sys
import time

command = ["weir", "compile", "-", "-o", "progress.weir"]
graph = open(sys.argv[1], "rb").read()


def read(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


if sys.argv[2] == "terminal":
    terminal, end = pty.openpty()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=end)
    os.close(end)
    shown = b""
    while b"s)" not in shown:
        more = read(terminal)
        assert more, shown
        shown += more
    process.stdin.write(graph)
    process.stdin.close()
    while more := read(terminal):
        shown += more
    assert process.wait() == 0
    assert re.match(rb"\r\x1b\[Kcompiling: read \(\d+ s\)", shown), shown
    assert shown.endswith(b"\r\x1b[K") and b"\n" not in shown, shown
else:
    with open("stderr", "wb") as stderr:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=stderr)
        time.sleep(2)
        process.stdin.write(graph)
        process.stdin.close()
        assert process.wait() == 0
    assert os.path.getsize("stderr") == 0
