"""Starts the ranks of a test: processes that run a function of workers.py."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")


def pytest_configure(config):
    config.addinivalue_line("markers", "full: takes minutes, for scripts/test --full")


class Ranks:
    """The processes of a group, and what each of their functions returned."""

    def __init__(self, folder, function, size, timeout, options):
        self.folder, self.timeout = folder, timeout
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1",
                       "GLOO_SOCKET_IFNAME": "lo", "GROUP_FILE": str(folder / "group")}
        self.processes = [
            subprocess.Popen([sys.executable, "-W", "ignore", str(pathlib.Path(__file__).parent / "workers.py"), function,
                              json.dumps(options)], cwd=folder, env={**environment, "RANK": str(rank)},
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for rank in range(size)]

    def wait(self):
        """Returns the exit status and the output of each rank. Kills those that do not end."""
        try:
            outputs = [process.communicate(timeout=self.timeout)[0] for process in self.processes]
        finally:
            for process in self.processes:
                process.kill()
        return [process.returncode for process in self.processes], outputs

    def results(self):
        """Returns what each rank's function returned, once all have ended well."""
        codes, outputs = self.wait()
        assert not any(codes), "\n".join(f"rank {rank} ended with {code}:\n{output}"
                                         for rank, (code, output) in enumerate(zip(codes, outputs)) if code)
        return [json.loads((self.folder / f"result.{rank}").read_text()) for rank in range(len(codes))]


@pytest.fixture(scope="session")
def launch(tmp_path_factory):
    """Starts ranks that run a function of workers.py with options, and returns them."""
    def start(function, size=2, timeout=300, **options):
        return Ranks(tmp_path_factory.mktemp(function), function, size, timeout, options)

    return start
