"""ONNX models as graphs for `weir compile`, and as programs: see docs/onnx.md.

    classify = weir.onnx.compile("model.onnx", shapes={"batch": 8})
    scores = classify(images)

or, on the command line, `python -m weir.onnx model.onnx -o model.mlir`. `prepare`, `run_model`, `run_node`,
`supports_device` and `is_compatible` are ONNX's backend interface.
"""

try:
    import onnx  # noqa: F401
    import torch_mlir.ir  # noqa: F401
except ImportError as missing:
    raise ImportError(
        f"weir.onnx needs the package {(missing.name or 'onnx').split('.')[0].replace('_', '-')}; install weir[onnx], "
        "or run scripts/setup --torch"
    ) from missing

from weir.graphs import Argument, Exported, ExportError
from weir.onnx.backend import Prepared, is_compatible, prepare, run_model, run_node, supports_device
from weir.onnx.compiling import compile
from weir.onnx.exporting import export

__all__ = [
    "Argument", "ExportError", "Exported", "Prepared", "compile", "export", "is_compatible", "prepare", "run_model",
    "run_node", "supports_device",
]
