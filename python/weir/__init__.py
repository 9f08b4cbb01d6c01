"""Weir from Python: `weir.torch` writes graphs for `weir compile` from PyTorch modules, `weir.runtime` runs what it made."""
