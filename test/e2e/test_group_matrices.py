"""Contractions by products of four warps (wgmma, sm_90a) of factors that TMA copies: PTX that is proved and assembles
without spills, and computes in the simulator what mma.sync does, bit by bit. What orders them cannot be left out."""

import json
import re
import subprocess
import zipfile

import numpy
import ptxas
import pytest
from safetensors.numpy import load_file, save_file

from conftest import BIN
from test_contractions import make_half_graph
from test_matrices import check, make_half_matrices, make_product, read_ptx


def compile_both(weir, text, *flags, units=1):
    """For sm_90a and sm_90; with few units, so that small products have large tiles and are not cut in parts."""
    for name in ("sm_90a", "sm_90"):
        (weir.folder / f"{name}.json").write_text(json.dumps({"like": name, "name": name, "units": units}))
    return [weir.compile_text(text, name.replace("_", ""), f"--target=cuda:{weir.folder / name}.json", *flags)
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


# Whole tiles; rows and columns that no tile divides, an odd number of them; two rows of tiles; several wide fills.
@pytest.mark.parametrize("form, half, sizes, units, widths", [
    ("nn", "bf16", (1, 128, 640, 448), 2, {64, 256}), ("nt", "f16", (1, 128, 600, 256), 2, {48, 256}),
    ("tn", "bf16", (1, 248, 568, 192), 4, {64, 256}), ("tt", "bf16", (1, 128, 589, 320), 2, {40, 256}),
    ("tt", "bf16", (1, 192, 845, 256), 3, {32, 256}), ("nn", "f16", (1, 64, 584, 200), 2, {64, 128})])
def test_narrow_tiles_fill_the_units(weir, form, half, sizes, units, widths):
    """Where tiles of one width leave most units idle at the end, the last columns have narrower ones."""
    artifacts = compile_both(weir, make_half_graph(form, half, *sizes), units=units)
    found = set(map(int, re.findall(r"wgmma\.mma_async\S*\.m64n(\d+)k16", read_ptx(weir, artifacts[0]))))
    assert found == widths
    assert ", 0 taken" in weir.run("verify", artifacts[0])
    if ptxas.PTXAS:
        ptxas.assemble_artifact(artifacts[0], weir.folder)
    check(weir, artifacts, half, "--f64")


def round_to_tf32(array):
    """To nearest, ties to even: 13 of 23 bits are cut."""
    bits = array.view(numpy.uint32)
    return ((bits + 0xfff + (bits >> 13 & 1)) & 0xFFFFE000).view(numpy.float32)


# Whole tiles and parts of them, batches; a slab has 32 products.
@pytest.mark.parametrize("sizes", [(1, 256, 256, 224), (1, 151, 137, 172), (3, 64, 72, 200)], ids=lambda sizes: "x".join(map(str, sizes)))
def test_tf32(weir, sizes):
    """The exact product of factors that are rounded where boxes are copied, to the rounding of sums in f32."""
    text, shapes = make_product("nt", *sizes)
    artifact, other = compile_both(weir, text, "--precision=tf32")
    assert "k8.f32.tf32.tf32" in read_ptx(weir, artifact) and "wgmma" not in read_ptx(weir, other)
    assert "mma.sync" not in read_ptx(weir, artifact)
    assert ", 0 taken" in weir.run("verify", artifact)
    if ptxas.PTXAS:
        ptxas.assemble_artifact(artifact, weir.folder)
    random = numpy.random.default_rng(1)
    factors = [random.standard_normal(shape).astype(numpy.float32) for shape in shapes]
    for factor in factors:  # ties, of which half are rounded up
        factor.view(numpy.uint32)[..., ::2] = factor.view(numpy.uint32)[..., ::2] & 0xFFFFE000 | 0x1000
    save_file(dict(zip(("arg0", "arg1"), factors)), weir.folder / "in.safetensors")
    weir.run("run", artifact, "--device=sim", f"--input={weir.folder}/in.safetensors",
             f"--output={weir.folder}/out.safetensors")
    [found] = load_file(weir.folder / "out.safetensors").values()
    a, b = (round_to_tf32(factor).astype(numpy.float64) for factor in factors)
    bound = sizes[3] * 2.0**-24 * (abs(a) @ abs(b).swapaxes(1, 2))
    assert (abs(found - a @ b.swapaxes(1, 2)) <= bound).all()


# Both factors, one of them, rows and products that no tile divides, batches.
@pytest.mark.parametrize("form, sizes, transposes", [("nn", (1, 256, 256, 224), 1), ("tn", (1, 256, 256, 224), 2),
                                                     ("tt", (1, 151, 137, 172), 1), ("nn", (3, 64, 72, 200), 1)])
def test_tf32_is_transposed(weir, form, sizes, transposes):
    """The instruction takes factors of tf32 along the products alone. Others are transposed before, by kernels of their
    own, and the bits are those of a product of the transposes."""
    text, shapes = make_product(form, *sizes)
    random = numpy.random.default_rng(1)
    a, b = (random.standard_normal(shape).astype(numpy.float32) for shape in shapes)

    def run(artifact, **factors):
        save_file({name: numpy.ascontiguousarray(factor) for name, factor in factors.items()},
                  weir.folder / "in.safetensors")
        weir.run("run", artifact, "--device=sim", f"--input={weir.folder}/in.safetensors",
                 f"--output={weir.folder}/out.safetensors")
        return (weir.folder / "out.safetensors").read_bytes()

    along, _ = compile_both(weir, make_product("nt", *sizes)[0], "--precision=tf32")
    expected = run(along, arg0=a.swapaxes(1, 2) if form[0] == "t" else a,
                   arg1=b.swapaxes(1, 2) if form[1] == "n" else b)
    artifact, other = compile_both(weir, text, "--precision=tf32")
    [plan], [whole] = (weir.inspect(each)["plans"] for each in (artifact, other))
    assert plan["dispatches"] == whole["dispatches"] + transposes
    with zipfile.ZipFile(artifact) as archive:
        code = "".join(archive.read(name).decode() for name in archive.namelist() if name.endswith(".ptx"))
    assert "wgmma" in code and "mma.sync" not in code
    # That a product of boxes needs what the transpose wrote is the compiler's word; safety is not.
    assert all("needs" in line for line in weir.run("verify", artifact).splitlines() if "taken from compiler" in line)
    assert run(artifact, arg0=a, arg1=b) == expected


def test_small_tf32_is_not_transposed(weir):
    """With all units of a device, so small a product is done before its factor were transposed."""
    artifact = weir.compile_text(make_product("nn", 1, 256, 256, 224)[0], "a", "--target=cuda:sm_90a",
                                 "--precision=tf32")
    assert "wgmma" not in read_ptx(weir, artifact) and "mma.sync" in read_ptx(weir, artifact)


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


# Boxes of fewer or more rows than the code expects bytes of; a tensor that no file may state.
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
