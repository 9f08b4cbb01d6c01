"""Finds Weir's library and programs, in this order:

1. the paths in WEIR_RUNTIME (the library) and WEIR_BIN (the folder of the programs);
2. the installed package `weir`, or build/release of the checkout that this file belongs to;
3. the installed package `weir-compiler`;
4. the folders of the system's loader, and PATH.
"""

import importlib.util
import os
import pathlib
import shutil
import sys
from collections.abc import Iterator

LIBRARY = "libweir_runtime.so.0"
PACKAGE = pathlib.Path(__file__).parent
BUILD = PACKAGE.parents[1] / "build/release"
REMEDIES = {
    "weir": "install weir[compiler], build it (scripts/build release weir), or set WEIR_BIN to its folder",
    "weir-device": "install the package weir, build it (scripts/build release weir-device), or set WEIR_BIN to its "
                   "folder",
}


def find_library() -> str:
    """Returns the path of libweir_runtime, or its name if only the system's loader may find it."""
    if path := os.environ.get("WEIR_RUNTIME"):
        return path
    for prefix in _find_prefixes():
        if (library := prefix / "lib" / LIBRARY).is_file():
            return str(library)
    return LIBRARY


def find_tool(name: str) -> str:
    """Returns the path of a program, such as `weir` or `weir-device`.

    Errors: FileNotFoundError, which says how to get it.
    """
    if folder := os.environ.get("WEIR_BIN"):
        if found := shutil.which(name, path=folder):
            return found
        raise FileNotFoundError(f"there is no program {name} in {folder}, which WEIR_BIN names")
    folders = [str(prefix / "bin") for prefix in _find_prefixes()]
    if found := shutil.which(name, path=os.pathsep.join(folders)) or shutil.which(name):
        return found
    remedy = REMEDIES.get(name, "install weir[compiler], or set WEIR_BIN to its folder")
    raise FileNotFoundError(f"the program {name} is not found; {remedy}")


def run_device() -> None:
    """Replaces this process by weir-device with the same arguments."""
    program = find_tool("weir-device")
    os.execv(program, [program, *sys.argv[1:]])


def _find_prefixes() -> Iterator[pathlib.Path]:
    """Yields the folders that may hold lib/ and bin/ of Weir, best first."""
    yield PACKAGE / "native"
    # Beside an installed package, a folder of this name belongs to somebody else.
    if (BUILD.parents[1] / "CMakePresets.json").is_file():
        yield BUILD
    compiler = importlib.util.find_spec("weir_compiler")
    if compiler and compiler.origin:
        yield pathlib.Path(compiler.origin).parent / "native"
