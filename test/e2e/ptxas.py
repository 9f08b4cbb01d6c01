"""Assembles PTX with NVIDIA's ptxas, which `scripts/setup` installs."""

import pathlib
import re
import shutil
import subprocess
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPUS = ("sm_80", "sm_90")


def find():
    """The path of ptxas, or None: of `scripts/setup`, else of this machine."""
    installed = ROOT.glob("build/venv/lib/python*/site-packages/nvidia/cu13/bin/ptxas")
    return next(map(str, installed), None) or shutil.which("ptxas")


PTXAS = find()
assembled = set()  # texts, so that equal kernels cost nothing


def assemble(text, folder):
    """Asserts that every GPU's ptxas takes `text`, and with it that it names no
    symbol of elsewhere."""
    if text in assembled:
        return
    source = folder / "kernel.ptx"
    source.write_text(text)
    exact = re.search(r"\.target (sm_\d+a)", text)  # runs on no other
    for gpu in [exact[1]] if exact else GPUS:
        if not exact and f".target {GPUS[1]}" in text and gpu != GPUS[1]:
            continue  # what is for a newer GPU
        done = subprocess.run([PTXAS, f"-arch={gpu}", "-o", folder / "kernel.cubin", source],
                              capture_output=True, text=True)
        assert done.returncode == 0, f"ptxas -arch={gpu}:\n{done.stdout}{done.stderr}\n{text}"
    assembled.add(text)


def assemble_artifact(path, folder):
    """Assembles all kernels for CUDA; returns how many there are."""
    with zipfile.ZipFile(path) as artifact:
        kernels = [name for name in artifact.namelist() if name.endswith(".ptx")]
        for name in kernels:
            assemble(artifact.read(name).decode(), folder)
    return len(kernels)
