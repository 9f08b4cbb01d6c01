"""Contractions in f32 and f64 whose slabs are copied asynchronously: PTX that is proved, assembles without spills, and
computes in the simulator what tiles of one subgroup do, bit by bit."""

import json
import re

import ptxas
import pytest

from test_contractions import FORMS, make_graph
from test_matrices import check_bits, get_stages, read_ptx

# Batches, rows, columns, products: of whole tiles and three slabs; of parts of tiles, with a slab that is not whole
# and as many slabs as are in memory; of odd lines and slabs behind the last round; of large tiles; of a tile
# and a half of columns, whose last rows and columns stand for those behind the end.
SIZES = [(1, 256, 256, 48), (3, 130, 260, 53), (1, 259, 257, 133), (1, 1024, 2048, 40), (5, 192, 96, 50)]
EACH, VECTOR = "cp.async.ca", "cp.async.cg"


def compile_both(weir, text, **changes):
    """Returns the artifact that copies slabs, and one without slabs."""
    artifacts = []
    for name, slabs in {"copies": changes, "none": {"contraction_slab": 0}}.items():
        (weir.folder / f"{name}.json").write_text(json.dumps({"like": "sm_80", "name": name} | slabs))
        artifacts.append(weir.compile_text(text, name, f"--target=cuda:{weir.folder / name}.json"))
    assert "cp.async" not in read_ptx(weir, artifacts[1])
    if ptxas.PTXAS:
        ptxas.assemble_artifact(artifacts[0], weir.folder)
    return artifacts


def check(weir, artifacts, tolerance=2e-5):
    check_bits(weir, artifacts, tolerance, "--f64")


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: "x".join(map(str, sizes)))
@pytest.mark.parametrize("form", FORMS)
def test_both_factors(weir, form, sizes):
    artifacts = compile_both(weir, make_graph(form, *sizes).replace("ins(%twice,", "ins(%a,"))
    text = read_ptx(weir, artifacts[0])
    assert EACH in text or form == "tn"
    # Rows or columns that lie side by side are copied as vectors, products one by one.
    whole = [size % 4 == 0 for size in sizes[1:3]]
    assert (VECTOR in text) == ((form[0] == "t" and whole[0]) or (form[1] == "n" and whole[1]))
    check(weir, artifacts)


@pytest.mark.parametrize("form", FORMS)
def test_a_computed_factor_is_stored(weir, form):
    """Beside one that is copied, to as many slabs."""
    artifacts = compile_both(weir, make_graph(form, 1, 259, 260, 69))
    text = read_ptx(weir, artifacts[0])
    assert "cp.async" in text and "st.shared" in text
    check(weir, artifacts)


# Slabs on their way when the last round ends: none, some, as many as there are.
@pytest.mark.parametrize("products", [32, 48, 64, 80, 85, 96, 112, 160, 165, 176])
@pytest.mark.parametrize("stages", [2, 3])
def test_stages(weir, stages, products):
    text = make_graph("nn", 1, 256, 256, products).replace("ins(%twice,", "ins(%a,")
    artifacts = compile_both(weir, text, matrix_stages=stages)
    assert get_stages(read_ptx(weir, artifacts[0])) == min(stages, products // 16)
    check(weir, artifacts)


def test_f64_is_copied_one_by_one(weir):
    text = make_graph("tn", 1, 260, 260, 50).replace("ins(%twice,", "ins(%a,").replace("f32", "f64")
    artifacts = compile_both(weir, text)
    text = read_ptx(weir, artifacts[0])
    assert re.search(r"cp\.async\.ca[^;]*, 8;", text) and VECTOR not in text
    check(weir, artifacts, 1e-12)
