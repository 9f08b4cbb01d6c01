"""Tries proofs of lib/PtxReader against test/ptx/oracle.py, which runs the PTX invocation by
invocation: PTX that Weir emits, and small kernels, each with a wrong variant that must not be proved."""

import json
import subprocess
import sys

import pytest

from conftest import BIN, ROOT
from edits import read_documents
from graphs import make_graph

sys.path.insert(0, str(ROOT / "test/ptx"))
import oracle  # noqa: E402

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry main(.param .u64 a, .param .u64 b)
.reqntid 64, 1, 1
{
  .reg .pred %p<9>;
  .reg .b32 %t, %g, %i, %r<40>;
  .reg .b64 %a, %b, %d<40>;
  .shared .align 16 .b8 tile[256];
  ld.param.b64 %a, [a];
  ld.param.b64 %b, [b];
  mov.u32 %t, %tid.x;
  mov.u32 %g, %ctaid.x;
  mad.lo.s32 %i, %g, 64, %t;
"""

# By name: a body, what is changed in it, and the claim that must not be made any more.
KERNELS = {
    "own_element": ("mul.wide.u32 %d1, %i, 4; add.s64 %d2, %a, %d1; st.global.b32 [%d2], %t;",
                    ("%i, 4", "%g, 4"), "races"),
    "halves": ("shr.u32 %r1, %i, 1; mul.wide.u32 %d1, %r1, 8; and.b32 %r2, %i, 1; mul.wide.u32 %d2, %r2, 4;\n"
               "add.s64 %d3, %a, %d1; add.s64 %d4, %d3, %d2; st.global.b32 [%d4], %t;", ("%r1, 8", "%r1, 4"), "races"),
    "neighbour": ("shl.b32 %r1, %t, 2; mov.b32 %r2, tile; add.s32 %r3, %r2, %r1; st.shared.b32 [%r3], %t;\n"
                  "bar.sync 0; xor.b32 %r4, %r1, 4; add.s32 %r5, %r2, %r4; ld.shared.b32 %r6, [%r5];",
                  ("bar.sync 0;", "bar.warp.sync -1;"), "shared"),
    "tree": ("shl.b32 %r1, %t, 2; mov.b32 %r2, tile; add.s32 %r3, %r2, %r1; st.shared.b32 [%r3], %t; bar.sync 0;\n"
             "setp.ge.u32 %p1, %t, 32; @%p1 bra next; ld.shared.b32 %r7, [%r3+128]; st.shared.b32 [%r3], %r7;\n"
             "next: bar.sync 0; setp.ge.u32 %p2, %t, 16; @%p2 bra end; ld.shared.b32 %r8, [%r3+64];\n"
             "st.shared.b32 [%r3], %r8;\nend:", ("setp.ge.u32 %p1, %t, 32", "setp.ge.u32 %p1, %t, 33"), "shared"),
    "early_return": ("setp.gt.u32 %p1, %g, 1; @%p1 ret; bar.sync 0;", ("%p1, %g", "%p1, %t"), "barriers"),
    "choice": ("add.s32 %r1, %i, -40; setp.lt.u32 %p1, %r1, 8; selp.b32 %r2, 7, %t, %p1; min.u32 %r3, %r2, 50;\n"
               "mul.wide.u32 %d1, %r3, 4; add.s64 %d2, %a, %d1; ld.global.b32 %r4, [%d2];", ("%r2, 50", "%r2, 70"), "reach"),
    "turned": ("xor.b32 %r1, %t, 21; mad.lo.s32 %r2, %g, 64, %r1; mul.wide.u32 %d1, %r2, 4; add.s64 %d2, %a, %d1;\n"
               "st.global.b32 [%d2], %t;", ("mad.lo.s32 %r2, %g, 64", "mad.lo.s32 %r2, %g, 32"), "races"),
}


def read(folder, text, grid=3):
    path = folder / "k.ptx"
    path.write_text(text)
    done = subprocess.run([BIN / "read-ptx", path, str(grid), "64"], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def try_claims(text, entry, grid=3, scalars=(0, 100)):
    for each in scalars:
        accesses, barriers = oracle.run(text, entry["entry"], grid, 64, each, each)
        assert oracle.find_objection(entry, accesses, barriers) is None, entry


def is_claimed(entry, claim):
    parameter = entry["parameters"]["0"]
    return {"races": lambda: parameter["free_of_races"] == "yes", "shared": lambda: entry["shared_free_of_races"] == "yes",
            "barriers": lambda: entry["uniform_barriers"] == "yes",
            "reach": lambda: parameter["reach"] is not None and parameter["reach"][1] <= 204}[claim]()


@pytest.mark.parametrize("name", KERNELS)
def test_wrong_variants_are_not_proved(tmp_path, name):
    body, (right, wrong), claim = KERNELS[name]
    text = HEAD + body + "\n  ret;\n}\n"
    (entry,) = read(tmp_path, text)
    assert entry["problem"] == "" and is_claimed(entry, claim), entry
    try_claims(text, entry)
    assert body.count(right) == 1
    text = HEAD + body.replace(right, wrong) + "\n  ret;\n}\n"
    (entry,) = read(tmp_path, text)
    assert not entry["problem"] and not is_claimed(entry, claim), entry
    try_claims(text, entry)


def test_the_oracle_objects(tmp_path):
    """A claim that is made up is found to be false."""
    body, (right, wrong), _ = KERNELS["own_element"]
    text = HEAD + body.replace(right, wrong) + "\n  ret;\n}\n"
    (entry,) = read(tmp_path, text)
    entry["parameters"]["0"]["free_of_races"] = "yes"
    accesses, barriers = oracle.run(text, "main", 3, 64, 0, 0)
    assert "a race" in oracle.find_objection(entry, accesses, barriers)
    entry["parameters"]["0"].update(free_of_races=None, reach=[0, 8])
    assert "not in [0, 8]" in oracle.find_objection(entry, accesses, barriers)


@pytest.mark.parametrize("seed", [10, 184, 224])
def test_emitted_code(weir, seed, tmp_path):
    documents, rest = read_documents(weir.compile_text(make_graph(seed), "a", "--target=cuda"))
    texts = [data.decode() for name, data in rest.items() if name.endswith(".ptx")]
    assert texts
    tried = 0
    for text in texts:
        for entry in read(tmp_path, text, grid=1):
            assert entry["problem"] == "", entry
            try:
                try_claims(text, entry, grid=1, scalars=(0,))
                tried += 1
            except oracle.Unknown:
                pass
    assert tried > 0
