"""Weir from Python: PyTorch modules compiled ahead of time, trained and run on Vulkan or CUDA. `weir.jax` and
`weir.onnx` are for functions of JAX and models of ONNX.

    step = weir.compile_step(model, loss, example={"x": x}, targets={"y": y}, optimizer=weir.AdamW(learning_rate=3e-4))
    for x, y in batches:
        loss = step(x=x, y=y)
    model.load_state_dict(step.state_dict())
    predict = weir.compile(model, example={"x": x})

docs/python.md is the guide. `weir.load` needs only NumPy, the others also PyTorch and torch-mlir.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weir.arrays import Array
    from weir.checkpoints import CheckpointError
    from weir.building import CompileError
    from weir.compiling import compile, compile_step
    from weir.optimizers import SGD, Adafactor, Adam, AdamW, Group, Lion, Rule
    from weir.programs import Compiled, Step, load
    from weir.runtime import Device, Error

# Each is imported when it is first used: most need NumPy, those of `compiling` PyTorch.
_PLACES = {
    "arrays": ["Array"],
    "checkpoints": ["CheckpointError"],
    "building": ["CompileError"],
    "compiling": ["compile", "compile_step"],
    "optimizers": ["SGD", "Adafactor", "Adam", "AdamW", "Group", "Lion", "Rule"],
    "programs": ["Compiled", "Step", "load"],
    "runtime": ["Device", "Error"],
}
_PACKAGES = ("distributed", "jax", "onnx", "torch")
__all__ = [
    "SGD", "Adafactor", "Adam", "AdamW", "Array", "CheckpointError", "CompileError", "Compiled", "Device", "Error",
    "Group", "Lion", "Rule", "Step", "compile", "compile_step", "load",
]


def __getattr__(name: str) -> Any:
    for place, names in _PLACES.items():
        if name in names or name == place:
            module = importlib.import_module(f"weir.{place}")
            return module if name == place else getattr(module, name)
    if name in _PACKAGES:
        return importlib.import_module(f"weir.{name}")
    if name == "__version__":
        return importlib.import_module("weir.runtime").VERSION
    raise AttributeError(f"module 'weir' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Returns the public names, which a shell completes."""
    return sorted([*__all__, *_PACKAGES, "__doc__", "__name__", "__path__", "__version__"])
