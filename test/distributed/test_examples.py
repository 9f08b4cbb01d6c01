"""The examples, by torchrun."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT


def run(script, *options, expected=0):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-backend=c10d",
         "--rdzv-endpoint=localhost:0", str(ROOT / "examples/distributed" / script), "--blocks=2", "--device=cpu",
         *options], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout


def test_data_parallel(tmp_path):
    text = run("data_parallel.py", "--compare", "--steps=2")
    assert "step 2  loss " in text and "largest difference from one process: 0.0e+00" in text


def test_data_parallel_goes_on(tmp_path):
    whole = run("data_parallel.py", "--sharded", "--steps=4", f"--checkpoint={tmp_path / 'a'}")
    run("data_parallel.py", "--sharded", "--steps=2", f"--checkpoint={tmp_path / 'b'}")
    rest = run("data_parallel.py", "--sharded", "--steps=4", f"--checkpoint={tmp_path / 'b'}")
    assert rest.splitlines() == whole.splitlines()[2:]


def test_tensor_parallel():
    text = run("tensor_parallel.py", "--compare", "--steps=2", "--blocks=1")
    assert "step 2  loss " in text and "largest relative difference of a loss from one process: " in text


@pytest.mark.parametrize("schedule", ["1F1B", "DualPipeV"])
def test_pipeline(schedule):
    text = run("pipeline.py", "--blocks=4", "--compare", f"--schedule={schedule}", "--steps=2")
    assert "step 2  loss " in text and text.count("largest error of a gradient") == 2


def test_fully_sharded(tmp_path):
    text = run("fully_sharded.py", "--compare", "--steps=2", "--blocks=1", f"--checkpoint={tmp_path}")
    assert "step 2  loss " in text and "largest difference from data parallel: " in text
    assert not run("fully_sharded.py", "--steps=2", "--blocks=1", f"--checkpoint={tmp_path}")
