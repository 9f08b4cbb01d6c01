"""Runs a command and passes its output through: expect_status.py STATUS COMMAND...
Fails, and says so in the output, when the status is another."""

import subprocess
import sys

status = subprocess.run(sys.argv[2:]).returncode
if status != int(sys.argv[1]):
    print(f"expected status {sys.argv[1]}, got {status}")
    sys.exit(1)
