#!/usr/bin/env python3
"""PyTorch's own settings of the optimizers that Weir has, as steps, beside PyTorch's updates in f64.

    test/suites/optimizers.py --filter='SGD.*f32'
"""

import copy
import sys
import types
import unittest

from common import can_import, parse_options, run_all

# The database imports expecttest for the base of its test cases only.
if not can_import("expecttest"):
    sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase)
if not all(map(can_import, ("torch", "torch_mlir", "torch.testing._internal.common_optimizers"))):
    print("skipped: needs torch and torch_mlir")
    sys.exit(77)

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.testing._internal.common_optimizers import optim_db  # noqa: E402

import weir  # noqa: E402

DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}
STEPS = 5
OURS = {"lr": "learning_rate", "d": "clip"}  # names of hyperparameters that differ
# Choices of PyTorch's own programs, which say nothing of results.
PROGRAMS = {"foreach", "fused", "capturable", "differentiable"}


class Model(nn.Module):
    """Parameters of ranks 0 to 4, one of which no gradient reaches in half of its elements."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(1.5))
        self.conv = nn.Conv2d(1, 3, 3)
        self.table = nn.Parameter(torch.randn(2, 3, 5))
        self.out = nn.Linear(5, 2)

    def forward(self, x):
        y = torch.tanh(self.conv(x)).mean((2, 3)) * self.gain
        return self.out(torch.einsum("bi,ij->bj", y, self.table[0]))


def measure(output, y):
    return ((output - y.to(output.dtype)) ** 2).mean()


def make_batch(number, dtype):
    generator = torch.Generator().manual_seed(number)
    return (torch.randn(4, 1, 5, 5, generator=generator).to(dtype), torch.randn(4, 2, generator=generator).to(dtype))


def make_ours(info, settings):
    """Returns Weir's optimizer by PyTorch's settings."""
    words = {}
    for name, value in settings.items():
        if name == "betas":
            words |= {"beta1": value[0], "beta2": value[1]}
        elif name not in PROGRAMS:
            words[OURS.get(name, name)] = float(value) if isinstance(value, torch.Tensor) else value
    return getattr(weir, info.optim_cls.__name__)(**words)


def train(module, optimizer, dtype):
    for number in range(STEPS):
        x, y = make_batch(number, dtype)
        optimizer.zero_grad()
        measure(module(x.to(module.gain.dtype)), y.to(module.gain.dtype)).backward()
        optimizer.step()
    return module.state_dict()


def check(info, settings, dtype, device):
    torch.manual_seed(1)
    module = Model().to(dtype)
    expected = train(wide := copy.deepcopy(module).double(), info.optim_cls(wide.parameters(), **settings), dtype)
    near = train(same := copy.deepcopy(module).float() if dtype == torch.bfloat16 else copy.deepcopy(module),
                 info.optim_cls(same.parameters(), **settings), dtype)
    x, y = make_batch(0, dtype)
    with weir.compile_step(module, measure, example=(x,), targets={"y": y}, optimizer=make_ours(info, settings),
                           device=device) as step:
        for number in range(STEPS):
            x, y = make_batch(number, dtype)
            step(x, y=y)
        found = step.state_dict()
    eps = torch.finfo(dtype).eps
    for name, value in expected.items():
        own = (near[name].double() - value).abs().max().item()
        allowed = 8 * own + (64 if eps > 1e-10 else 512) * eps * value.abs().max().item()
        if dtype == torch.bfloat16:  # each activation and gradient is rounded
            moved = (value - module.state_dict()[name].double()).abs().max().item()
            allowed = eps * value.abs().max().item() + 0.1 * moved
        error = (found[name].double() - value).abs().max().item()
        if not error <= allowed:
            return "wrong", f"{name} differs by {error:.3g}, {allowed:.3g} is allowed"
    return "right", ""


def main():
    options = parse_options(__doc__)
    torch.set_num_threads(1)
    cases = []
    for info in optim_db:
        if not hasattr(weir, info.optim_cls.__name__):
            continue
        for one in info.optim_inputs_func(device="cpu"):
            for label, dtype in DTYPES.items():
                cases.append((f"{info.optim_cls.__name__}: {one.desc}: {label}", (info, one.kwargs, dtype)))

    def run(case):
        info, settings, dtype = case
        try:
            return check(info, settings, dtype, options.device)
        except Exception as error:  # noqa: BLE001
            return "broken", f"{type(error).__name__}: {error}"[:500]

    return run_all(cases, run, options)


if __name__ == "__main__":
    sys.exit(main())
