"""PyTorch modules as graphs for `weir compile`: see docs/pytorch.md.

    exported = weir.torch.export(model, {"tokens": tokens}, loss=cross_entropy, targets={"next": next_tokens})
    exported.save("model.mlir", "parameters.safetensors")

or, on the command line, `python -m weir.torch package.module:factory`.
"""

try:
    import safetensors.torch  # noqa: F401
    import torch  # noqa: F401
    import torch_mlir.fx  # noqa: F401
except ImportError as missing:
    raise ImportError(
        f"weir.torch needs the package {(missing.name or 'torch').split('.')[0].replace('_', '-')}; install "
        "scripts/python-torch-packages.txt, or run scripts/setup --torch"
    ) from missing

from weir.graphs import Argument, Exported, ExportError
from weir.torch.exporting import export

__all__ = ["Argument", "ExportError", "Exported", "Module", "export"]


def __getattr__(name: str):
    # It needs the compiler's side, which needs this package.
    if name == "Module":
        from weir.torch.modules import Module

        return Module
    raise AttributeError(f"module 'weir.torch' has no attribute {name!r}")
