"""Contractions by products of four warps (wgmma, sm_90a): PTX that is proved and assembles without spills, and computes
in the simulator what mma.sync does, bit by bit. What orders them cannot be left out."""

import json

import ptxas
import pytest

from conftest import BIN
from mutants import judge
from test_contractions import make_half_graph
from test_matrices import check, make_half_matrices, read_ptx


def compile_both(weir, text):
    """For sm_90a and sm_90; with one unit, so that small products have large tiles and are not cut in parts."""
    for name in ("sm_90a", "sm_90"):
        (weir.folder / f"{name}.json").write_text(json.dumps({"like": name, "name": name, "units": 1}))
    return [weir.compile_text(text, name.replace("_", ""), f"--target=cuda:{weir.folder / name}.json")
            for name in ("sm_90a", "sm_90")]


def test_only_the_exact_profile_has_them(weir):
    own, other = compile_both(weir, make_half_graph("nn", "bf16", 1, 256, 256, 256))
    assert "wgmma.mma_async" in read_ptx(weir, own) and ".target sm_90a" in read_ptx(weir, own)
    assert "wgmma" not in read_ptx(weir, other)


# All transposes, rows that no tile divides, batches, an epilogue; four stages, and slabs behind the last round.
@pytest.mark.parametrize("form, half, sizes", [("nn", "bf16", (1, 256, 256, 448)), ("nt", "f16", (1, 200, 264, 256)),
                                               ("tn", "bf16", (2, 136, 128, 192)), ("tt", "bf16", (1, 64, 136, 320)),
                                               ("nt", "bf16", (1, 151, 137, 256))])
def test_product(weir, form, half, sizes):
    artifacts = compile_both(weir, make_half_graph(form, half, *sizes))
    assert "wgmma.mma_async" in read_ptx(weir, artifacts[0])
    assert ", 0 taken" in weir.run("verify", artifacts[0])
    if ptxas.PTXAS:
        ptxas.assemble_artifact(artifacts[0], weir.folder)
    check(weir, artifacts, half, "--f64")


def test_prologues_and_short_sums_stay(weir):
    for text in (make_half_matrices("nn", "bf16", 1, 256, 256, 256), make_half_graph("nn", "bf16", 1, 256, 256, 72)):
        artifact, _ = compile_both(weir, text)
        assert "wgmma" not in read_ptx(weir, artifact)


def test_order_cannot_be_left_out(weir):
    """What orders products and the copies that they read. A wait may be left out where a later one comes early enough."""
    artifact, _ = compile_both(weir, make_half_graph("nn", "bf16", 1, 128, 128, 256))
    kinds = {"drop-code-barrier", "weaken-code-barrier", "drop-copy-wait", "weaken-copy-wait", "drop-product-wait",
             "weaken-product-wait", "drop-product-fence", "drop-proxy-fence"}
    mutants = judge(BIN, weir.folder / artifact, weir.folder, 2, kinds=kinds)
    assert {mutant.kind for mutant in mutants if mutant.is_of == "behavior"} == kinds
    wrong = [str(mutant) for mutant in mutants if not mutant.is_right()]
    assert not wrong, "\n".join(wrong)
