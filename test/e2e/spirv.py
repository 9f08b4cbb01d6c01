"""Checks and edits SPIR-V of artifacts. Instructions on cooperative matrices need SPIRV-Tools of 2023.3 or later, which
`scripts/setup` installs."""

import pathlib
import shutil
import struct
import subprocess
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Numbers of the SPIR-V specification.
CONSTANT, VARIABLE, LOAD, ACCESS_CHAIN, DECORATE, CONTROL_BARRIER = 43, 59, 61, 65, 71, 224
WORKGROUP = 4  # a storage class
MATRIX_LOAD, MATRIX_STORE, MATRIX_PRODUCT = 4457, 4458, 4459


def find_validator():
    """The path of spirv-val: of `scripts/setup`, else of this machine."""
    installed = ROOT.glob("build/venv/lib/python*/site-packages/cmeel.prefix/bin/spirv-val")
    return next(map(str, installed), None) or shutil.which("spirv-val")


VALIDATOR = find_validator()


def read_code(artifact):
    """Returns the words of each of an artifact's modules by name."""
    with zipfile.ZipFile(artifact) as archive:
        return {name: list(struct.unpack(f"<{len(data) // 4}I", data))
                for name in archive.namelist() if name.endswith(".spv") for data in [archive.read(name)]}


def validate(artifact, folder):
    for name, words in read_code(artifact).items():
        code = folder / pathlib.Path(name).name
        code.write_bytes(struct.pack(f"<{len(words)}I", *words))
        done = subprocess.run([VALIDATOR, "--target-env", "vulkan1.3", code], capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"


def find(words, opcode):
    """Returns the indices of the first words of instructions."""
    found, at = [], 5
    while at < len(words):
        if words[at] & 0xFFFF == opcode:
            found.append(at)
        at += words[at] >> 16
    return found


def write_code(path, artifact, name, words):
    """Writes `artifact` with other words for one module."""
    with zipfile.ZipFile(artifact) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as new:
        for entry in old.infolist():
            is_code = entry.filename == name
            new.writestr(entry, struct.pack(f"<{len(words)}I", *words) if is_code else old.read(entry.filename))
