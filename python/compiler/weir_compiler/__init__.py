"""The compiler's programs, which `pip install weir[compiler]` puts beside Python's."""

import os
import pathlib
import sys

BIN = pathlib.Path(__file__).parent / "native/bin"


def run() -> None:
    """Becomes the program by whose name it was called."""
    os.environ.setdefault("WEIR_PYTHON", sys.executable)  # for models that the front ends read
    program = BIN / pathlib.Path(sys.argv[0]).name
    os.execv(program, [str(program), *sys.argv[1:]])
