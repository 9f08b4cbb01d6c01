"""Contractions by products of four warps (wgmma, sm_90a) of factors that TMA copies: PTX that is proved and assembles
without spills, and computes in the simulator what mma.sync does, bit by bit. What orders them cannot be left out."""

import json
import re
import subprocess
import zipfile

import ptxas
import pytest

from conftest import BIN
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


# All transposes, rows and products that no tile divides, batches, an epilogue; four stages, a round of them, and slabs
# behind the last one; tiles of one, two and three groups of warps.
@pytest.mark.parametrize("form, half, sizes", [("nn", "bf16", (1, 256, 256, 448)), ("nt", "f16", (1, 200, 264, 256)),
                                               ("tn", "bf16", (3, 136, 128, 192)), ("tt", "bf16", (1, 64, 136, 320)),
                                               ("nt", "bf16", (1, 151, 137, 256)), ("nt", "f16", (3, 64, 72, 200)),
                                               ("tn", "f16", (1, 136, 200, 168)), ("nn", "bf16", (1, 192, 256, 648))])
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


WAIT = r"waits(\d+):\n\tmbarrier\.try_wait\.parity[^\n]*\n[^\n]*bra[ \t]+waits\1;\n"


# Each change is of all such places, if there is no number of them.
@pytest.mark.parametrize("pattern, change, count", [
    (r"\tfence\.proxy\.async[^\n]*\n", "", 0),
    (r"\twgmma\.wait_group\.sync\.aligned[ \t]+0;\n", "", 0),
    (r"\twgmma\.wait_group\.sync\.aligned[ \t]+1;\n", "", 0),
    (r"(\twgmma\.wait_group\.sync\.aligned[ \t]+)1;", r"\g<1>2;", 0),
    (r"\twgmma\.fence\.sync\.aligned;\n", "", 0),
    (WAIT, "", 0),
    (WAIT, "", 1),
    (r"(mbarrier\.try_wait\.parity[^\n]*\], )0;", r"\g<1>1;", 1),
    (r"(mbarrier\.try_wait\.parity[^\n]*\], )1;", r"\g<1>0;", 1),
    (r"(expect_tx[^\n]*\], )\d+;", r"\g<1>8192;", 1),
    (r"(expect_tx[^\n]*\], )\d+;", r"\g<1>999424;", 1),
    (r"\tcp\.async\.bulk[^\n]*\n", "", 1),
    (r"\tbar(rier)?\.sync[^\n]*\n", "", 0)],
    ids=["drop-proxy-fence", "drop-last-wait", "drop-wait", "weaken-wait", "drop-fence", "drop-copy-waits",
         "drop-a-copy-wait", "wrong-parity", "wrong-odd-parity", "expect-too-few", "expect-too-many", "drop-copy",
         "drop-barriers"])
def test_order_cannot_be_left_out(weir, pattern, change, count):
    artifact, _ = compile_both(weir, make_half_graph("nn", "bf16", 1, 128, 128, 512))

    def edit(files):
        name, = (name for name, data in files.items() if b"wgmma" in data)
        text = files[name].decode()
        assert re.search(pattern, text)
        files[name] = re.sub(pattern, change, text, count=count).encode()

    refuse(weir, artifact, edit)


# Boxes of fewer or more rows than the code expects bytes of; and a tensor that no file may state.
@pytest.mark.parametrize("key, at, value, status", [("box", 0, 64, 1), ("box", 0, 256, 1), ("shape", 0, 1 << 20, 2)],
                         ids=["short-box", "long-box", "beyond-the-operand"])
def test_tensor_maps_are_checked(weir, key, at, value, status):
    artifact, _ = compile_both(weir, make_half_graph("nt", "bf16", 1, 128, 128, 512))

    def edit(files):
        name, = (name for name in files if name.startswith("plan/"))
        plan = json.loads(files[name])
        kernel, = (kernel for kernel in plan["kernels"] if "tensor_maps" in kernel)
        kernel["tensor_maps"][0][key][at] = value
        files[name] = json.dumps(plan).encode()

    refuse(weir, artifact, edit, status)


def refuse(weir, artifact, edit, status=1):
    """Edits the files of an artifact, which then neither the verifier nor the simulator takes: with 2, no reader does."""
    path = weir.folder / artifact
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    edit(files)
    with zipfile.ZipFile(path, "w") as archive:
        for each, data in files.items():
            archive.writestr(zipfile.ZipInfo(each), data)
    verified, simulated = (subprocess.run([BIN / "weir", *command], capture_output=True, text=True)
                           for command in (["verify", path], ["run", path, "--device=sim", "--random-inputs=1"]))
    assert verified.returncode == status, verified.stdout + verified.stderr
    assert simulated.returncode == status, simulated.stdout + simulated.stderr
