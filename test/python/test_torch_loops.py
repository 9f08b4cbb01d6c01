"""PyTorch's while_loop through weir.torch, against PyTorch itself."""

import subprocess

import pytest
from safetensors.numpy import load_file

torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
pytest.importorskip("torch_mlir", reason="torch-mlir is not installed: scripts/setup --torch")

from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

import weir.torch  # noqa: E402
from weir.locations import find_tool  # noqa: E402


class Search(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(4) * 1.5)

    def forward(self, x, limit):
        return while_loop(lambda i, y: (y.sum() < 100.0) & (i < limit), lambda i, y: (i + 1, y @ self.weight),
                          (torch.zeros((), dtype=torch.int64), x))


def test_while_loop(tmp_path):
    module, x = Search().requires_grad_(False), torch.linspace(0.1, 1, 8).reshape(2, 4)
    for limit in (0, 3, 50):
        exported = weir.torch.export(module, (x, torch.tensor(limit)))
        exported.save(tmp_path / "g.mlir", tmp_path / "p.safetensors", tmp_path / "i.safetensors")
        for command in (["compile", "g.mlir", "--target=cpu", "-o", "g.weir"],
                        ["run", "g.weir", "--device=cpu", "--input=p.safetensors", "--input=i.safetensors",
                         "--output=o.safetensors"]):
            subprocess.run([find_tool("weir"), *command], cwd=tmp_path, check=True)
        found = load_file(tmp_path / "o.safetensors")
        count, last = module(x, torch.tensor(limit))
        assert found["output.0"] == count
        torch.testing.assert_close(torch.as_tensor(found["output.1"]), last, rtol=1e-5, atol=1e-5)
