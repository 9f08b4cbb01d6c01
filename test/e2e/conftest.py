"""Shared by the end-to-end tests: the tools of this build."""

import json
import os
import pathlib
import subprocess

import ptxas
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/release/bin"))


class Weir:
    """Runs `weir` in a folder of the test's own."""

    def __init__(self, folder):
        self.folder = folder
        self.examples = ROOT / "examples"

    def run(self, *arguments, validated=False, status=0):
        command = [str(BIN / "weir"), *map(str, arguments)]
        if validated:
            command.insert(0, str(ROOT / "scripts/with-validation"))
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == status, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def compile(self, source, name="a", *flags):
        artifact = self.folder / f"{name}.weir"
        self.run("compile", source, "-o", artifact, *flags)
        if ptxas.PTXAS and not any(str(flag).startswith("--target") for flag in flags):
            cuda = self.folder / "cuda.weir"
            self.run("compile", source, "-o", cuda, "--target=cuda", *flags)
            ptxas.assemble_artifact(cuda, self.folder)
        return artifact

    def compile_text(self, text, name="a", *flags):
        source = self.folder / f"{name}.mlir"
        source.write_text(text)
        return self.compile(source, name, *flags)

    def compare(self, artifact, inputs, tolerance, validated=False):
        """Runs on Vulkan against the f64 reference, and on the simulator; returns
        Vulkan's output file."""
        expected, output = self.folder / "expected.safetensors", self.folder / "output.safetensors"
        self.run("run", artifact, "--device=reference", "--f64", *inputs, f"--output={expected}")
        self.run("run", artifact, *inputs, f"--compare={expected}", f"--tolerance={tolerance}",
                 f"--output={output}", validated=validated)
        self.simulate(artifact, inputs, output)
        return output

    def simulate(self, artifact, inputs, expected, *flags):
        """Runs on the simulator, which has nothing to report and the same bits."""
        output = self.folder / "sim.safetensors"
        self.run("run", artifact, *inputs, "--device=sim", *flags, f"--output={output}")
        assert output.read_bytes() == expected.read_bytes(), "the simulator has other bits"

    def inspect(self, artifact):
        return json.loads(self.run("inspect", artifact, "--json"))

    def profile(self, **changes):
        """Writes the device's profile with some keys changed; returns its path."""
        path = self.folder / "profile.json"
        self.run("devices", f"--emit-profile={path}")
        profile = json.loads(path.read_text())
        assert not set(changes) - set(profile)
        path.write_text(json.dumps(profile | {"name": "changed"} | changes))
        return path


@pytest.fixture
def weir(tmp_path):
    return Weir(tmp_path)
