"""Writes the graph of an ONNX model: python -m weir.onnx model.onnx -o model.mlir."""

import sys

from weir.importing import main

if __name__ == "__main__":
    sys.exit(main("python -m weir.onnx", (".onnx",)))
