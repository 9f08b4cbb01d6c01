"""Shared by the tests of the Python packages: the packages themselves, and the tools of this build."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/release/bin"))
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
sys.path.insert(0, str(ROOT / "python"))


@pytest.fixture
def run_weir(tmp_path):
    """Runs `weir` in a folder of the test's own; returns what it printed."""

    def run(*arguments):
        done = subprocess.run([BIN / "weir", *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def python(tmp_path):
    """Runs Python in a folder of the test's own."""

    def run(*arguments):
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)

    return run


def run_blocks(page):
    """Runs a page's code in one session; returns the number of blocks, and the names that they leave."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    names = {"__name__": "page"}
    for i, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {i}", "exec"), names)
    return len(blocks), names
