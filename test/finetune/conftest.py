"""Shared by the tests of fine-tuning: the packages, and the model of the example."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/smollm2")]
