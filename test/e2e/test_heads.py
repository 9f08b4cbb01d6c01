"""Random attention, whose heads reshapes and transposes move about: the compiler takes these
into the maps of the contractions (passes/kernels/MoveReshapes.cpp), and the reference does not."""

import pytest

from models import Attention


@pytest.mark.parametrize("seed", range(16))
def test_values(weir, seed):
    artifact = weir.compile_text(Attention(seed).text(), "a")
    weir.compare(artifact, [f"--random-inputs={seed}"], 1e-5)


@pytest.mark.parametrize("seed", range(100, 106))
def test_gradients(weir, seed):
    artifact = weir.compile_text(Attention(seed).text(), "a", "--vjp=f", "--entry=f.vjp")
    weir.compare(artifact, [f"--random-inputs={seed}"], 1e-4)
