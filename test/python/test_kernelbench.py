"""scripts/kernelbench, on modules like those of the suite."""

import csv
import json
import os

import pytest
from conftest import BIN, ROOT
from safetensors.numpy import load_file, save_file

pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

HEAD = """
import torch
from torch import nn

rows, columns = 2048 + 3, 64

def get_inputs():
    return [torch.rand(rows, columns)]
"""
MODULES = {
    "level1/1_Scale.py": HEAD.replace("columns)]", "columns), 3.0]") + """
class Model(nn.Module):
    def forward(self, x, factor):
        return x * factor + 100
""",
    "level1/2_Argmax.py": HEAD + """
class Model(nn.Module):
    def forward(self, x):
        return torch.argmax(x, 1)
""",
    "level2/1_Linear.py": HEAD + """
class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.linear = nn.Linear(columns, 3)

    def forward(self, x):
        return torch.tanh(self.linear(x))

def get_init_inputs():
    return [columns]
""",
    "level2/2_Refused.py": HEAD + """
class Model(nn.Module):
    def forward(self, x):
        return x + torch.randperm(columns)
""",
}


@pytest.fixture
def checkout(tmp_path):
    for name, text in MODULES.items():
        path = tmp_path / "KernelBench" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.fixture
def kernelbench(python):
    return lambda *arguments, weir=BIN / "weir": python(ROOT / "test/kernelbench/run.py", f"--weir={weir}", *arguments)


def test_every_module_has_its_row(kernelbench, checkout):
    done = kernelbench(checkout, "--run", "--keep=kept", "--json=rows.json", "--csv=rows.csv")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((checkout / "rows.json").read_text())
    scale, argmax, linear, refused = rows
    assert [row["module"] for row in rows] == ["level1_1_Scale", "level1_2_Argmax", "level2_1_Linear", "level2_2_Refused"]
    for row in scale, linear:
        assert 0 < row["seconds"] < 60 and row["vjp_seconds"] > 0 and row["peak_mb"] > 1
        assert 0 <= row["error"] < 1e-6 and 0 <= row["vjp_error"] < 1e-6
    assert argmax["error"] == 0 and "vjp_seconds" not in argmax
    assert not refused["exported"] and "random operators" in refused["refused"]
    assert "4 modules, 3 exported" in done.stdout and "forward: 3 of 3 compile" in done.stdout
    # The sizes are small, the numbers of the model its own.
    text = (checkout / "kept/level1_1_Scale.mlir").read_text()
    assert "tensor<35x32xf32>" in text and "1.000000e+02" in text
    [header, *lines] = csv.reader((checkout / "rows.csv").read_text().splitlines())
    assert header[:3] == ["module", "exported", "seconds"] and len(lines) == 4


def test_full_size(kernelbench, checkout):
    done = kernelbench(checkout, "--full-size", "--only=Linear", "--forward", "--keep=kept", "--json=rows.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tensor<2051x64xf32>" in (checkout / "kept/level2_1_Linear.mlir").read_text()
    [row] = json.loads((checkout / "rows.json").read_text())
    assert row["seconds"] > 0 and "vjp_seconds" not in row and "error" not in row


def test_what_is_kept_is_not_exported_again(kernelbench, checkout):
    kernelbench(checkout, "--only=Scale", "--keep=kept")
    (checkout / "KernelBench/level1/1_Scale.py").write_text("raise SystemExit('is read again')")
    done = kernelbench(checkout, "--only=Scale", "--keep=kept")
    assert done.returncode == 0 and "1 modules, 1 exported" in done.stdout


def test_wrong_results_and_crashes_fail(kernelbench, checkout):
    assert kernelbench(checkout, "--only=Linear", "--run", "--target=cpu", "--keep=kept").returncode == 0
    path = checkout / "kept/level2_1_Linear.expected.safetensors"
    values = load_file(path)
    values["grad.linear.weight"] = values["grad.linear.weight"] * 1.01
    save_file(values, path)
    done = kernelbench(checkout, "--only=Linear", "--run", "--keep=kept")
    assert done.returncode == 1 and "wrong: level2_1_Linear" in done.stdout

    (checkout / "weir").write_text("#!/bin/sh\nkill -SEGV $$\n")
    os.chmod(checkout / "weir", 0o755)
    done = kernelbench(checkout, "--only=Linear", "--keep=kept", weir=checkout / "weir")
    assert done.returncode == 1 and "0 of 1 compile" in done.stdout and "exit status -11" in done.stdout


def test_without_a_checkout(kernelbench, tmp_path):
    done = kernelbench()
    assert done.returncode == 0 and "skipped" in done.stdout
    done = kernelbench(tmp_path)
    assert done.returncode == 1 and "has no modules" in done.stderr


def test_without_pytorch(python, checkout):
    code = f"import sys, runpy; sys.modules['torch_mlir'] = None; sys.argv = ['kernelbench', {str(checkout)!r}]; "
    code += f"runpy.run_path({str(ROOT / 'test/kernelbench/run.py')!r}, run_name='__main__')"
    done = python("-c", code)
    assert done.returncode == 0 and "torch_mlir is not installed" in done.stdout, done.stderr
