"""Contractions by instructions on matrices: PTX that is proved, assembles without spills, and computes in the
simulator what contractions of subgroups do, bit by bit."""

import json
import re
import subprocess
import zipfile

import numpy
import ptxas
import pytest
from safetensors.numpy import load_file, save_file

from conftest import BIN
from edits import edit_plan
from test_contractions import FORMS, make_half_graph

# Batches, rows, columns, products: of whole tiles, of parts of one with slabs that are not whole, of odd rows and
# columns, of lines that are loaded one by one.
SIZES = [(1, 256, 256, 96), (4, 150, 136, 104), (1, 259, 257, 72), (3, 128, 192, 75)]


def make_half_matrices(form, half, batches, rows, columns, products):
    """tanh(bias + (2 a) b), rounded: a prologue in f32 whose result is rounded to 16 bits, and an epilogue."""
    size = {"b": batches, "i": rows, "j": columns, "k": products}
    wide, a, b = (f"tensor<{'x'.join(str(size[dim]) for dim in dims.split(', '))}x{element}>" for dims, element in
                  zip((FORMS[form][0], *FORMS[form]), ("f32", half, half)))
    c, narrow = (f"tensor<{batches}x{rows}x{columns}x{element}>" for element in ("f32", half))
    whole = "affine_map<(d0, d1, d2) -> (d0, d1, d2)>"
    maps = ", ".join(f"affine_map<(b, i, j, k) -> ({dims})>" for dims in (*FORMS[form], "b, i, j"))
    return f"""func.func @f(%a: {wide}, %b: {b}, %bias: tensor<{columns}xf32>) -> {narrow} {{
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %ea = tensor.empty() : {a}
  %e = tensor.empty() : {c}
  %en = tensor.empty() : {narrow}
  %zeros = linalg.fill ins(%zero : f32) outs(%e : {c}) -> {c}
  %twice = linalg.generic {{indexing_maps = [{whole}, {whole}], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%a : {wide}) outs(%ea : {a}) {{
  ^bb0(%x: f32, %o: {half}):
    %t = arith.mulf %x, %two : f32
    %r = arith.truncf %t : f32 to {half}
    linalg.yield %r : {half}
  }} -> {a}
  %sums = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%twice, %b : {a}, {b}) outs(%zeros : {c}) {{
  ^bb0(%x: {half}, %y: {half}, %o: f32):
    %v = arith.extf %x : {half} to f32
    %w = arith.extf %y : {half} to f32
    %p = arith.mulf %v, %w : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  }} -> {c}
  %rounded = linalg.generic {{indexing_maps = [{whole}, affine_map<(d0, d1, d2) -> (d2)>, {whole}],
                             iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%sums, %bias : {c}, tensor<{columns}xf32>) outs(%en : {narrow}) {{
  ^bb0(%x: f32, %y: f32, %o: {half}):
    %s = arith.addf %x, %y : f32
    %h = math.tanh %s : f32
    %n = arith.truncf %h : f32 to {half}
    linalg.yield %n : {half}
  }} -> {narrow}
  return %rounded : {narrow}
}}
"""


def read_ptx(weir, artifact):
    with zipfile.ZipFile(weir.folder / artifact) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".ptx")]
        return archive.read(name).decode()


def compile_both(weir, text, tile=64):
    """Returns the artifact by instructions on matrices, and one without."""
    artifacts = []
    for name, matrix_tile in {"matrices": tile, "none": 0}.items():
        (weir.folder / f"{name}.json").write_text(
            json.dumps({"like": "sm_80", "name": name, "matrix_tile": matrix_tile}))
        artifacts.append(weir.compile_text(text, name, f"--target=cuda:{weir.folder / name}.json"))
        assert weir.inspect(artifacts[-1])["plans"][0]["dispatches"] == 1
        assert ("mma.sync" in read_ptx(weir, artifacts[-1])) == (matrix_tile > 0)
    if ptxas.PTXAS:
        ptxas.assemble_artifact(artifacts[0], weir.folder)
    return artifacts


def check_bits(weir, artifacts, tolerance, *reference):
    """All of the code is proved. Results are those of the reference, and of all artifacts bit by bit."""
    facts = re.search(r"(\d+) facts are proved from it, (\d+) taken", weir.run("verify", artifacts[0]))
    assert int(facts[1]) > 0 and int(facts[2]) == 0
    expected = weir.folder / "expected.safetensors"
    weir.run("run", artifacts[0], "--device=reference", *reference, "--random-inputs=1", f"--output={expected}")
    outputs = []
    for artifact in artifacts:
        output = artifact.with_suffix(".safetensors")
        weir.run("run", artifact, "--device=sim", "--random-inputs=1", f"--compare={expected}",
                 f"--tolerance={tolerance}", f"--output={output}")
        outputs.append(output.read_bytes())
    assert len(set(outputs)) == 1


def check(weir, artifacts, half, *reference):
    """Results are those of the reference, to the rounding of a result, and have the bits of contractions without
    instructions on matrices."""
    check_bits(weir, artifacts, {"f16": 2**-10, "bf16": 2**-7}[half], *reference)  # the distance of numbers near 1


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: "x".join(map(str, sizes)))
@pytest.mark.parametrize("form", FORMS)
def test_product(weir, form, sizes):
    half = "bf16" if sizes[3] % 2 else "f16"
    check(weir, compile_both(weir, make_half_graph(form, half, *sizes)), half, "--f64")


# As written: the f64 reference does not round the factor that the prologue makes.
@pytest.mark.parametrize("form", ["nt", "tn"])
def test_prologue_and_epilogue(weir, form):
    check(weir, compile_both(weir, make_half_matrices(form, "bf16", 2, 130, 256, 96), tile=32), "bf16")


def get_stages(text):
    """The number of slabs that copies go to."""
    return max(map(int, re.findall(r"cp\.async\.wait_group \t?(\d+);", text))) + 2


# A slab that is not whole, then rounds of whole slabs, and some behind the last round. Lines have two, four or eight
# runs.
@pytest.mark.parametrize("slab, stages, form", [(16, 4, "nt"), (16, 2, "tn"), (32, 4, "nn"), (32, 3, "tt"),
                                                (32, 2, "nt"), (64, 3, "tn")])
def test_stages(weir, form, slab, stages):
    text = make_half_graph(form, "bf16", 1, 264, 256, 9 * slab + 8)
    artifacts = []
    for name, changes in {"a": {"matrix_slab": slab, "matrix_stages": stages}, "none": {"matrix_tile": 0}}.items():
        (weir.folder / f"{name}.json").write_text(json.dumps({"like": "sm_80", "name": name} | changes))
        artifacts.append(weir.compile_text(text, name, f"--target=cuda:{weir.folder / name}.json"))
    assert get_stages(read_ptx(weir, artifacts[0])) == stages
    if ptxas.PTXAS:
        ptxas.assemble_artifact(artifacts[0], weir.folder)
    check(weir, artifacts, "bf16", "--f64")


def test_copies_need_aligned_runs(weir):
    """A factor with a prologue is stored beside one that is copied; one of odd lines is not copied."""
    both = weir.compile_text(make_half_matrices("nn", "bf16", 1, 256, 256, 96), "both", "--target=cuda")
    text = read_ptx(weir, both)
    assert "cp.async" in text and "st.shared" in text
    odd = weir.compile_text(make_half_graph("nn", "bf16", 1, 259, 257, 75), "odd", "--target=cuda")
    assert "mma.sync" in read_ptx(weir, odd) and "cp.async" not in read_ptx(weir, odd)


# Lines of 128 columns have sixteen runs.
def test_large_tiles(weir):
    artifact = weir.compile_text(make_half_graph("tn", "bf16", 1, 1024, 1024, 104), "a", "--target=cuda")
    assert get_stages(read_ptx(weir, artifact)) == 3
    assert ".extern .shared" not in read_ptx(weir, artifact)
    check(weir, [artifact], "bf16", "--f64")


# Eight subgroups, whose lines of columns have up to 32 runs. A factor that is not copied leaves them four, and so does
# a tile that is not whole.
@pytest.mark.parametrize("form", ["nt", "tn"])
def test_wide_tiles(weir, form):
    profile = weir.folder / "p.json"
    profile.write_text(json.dumps({"like": "sm_80", "name": "small", "units": 8}))
    artifact = weir.compile_text(make_half_graph(form, "bf16", 1, 1024, 2048, 104), "a", f"--target=cuda:{profile}")
    assert ".reqntid 256, 1, 1" in read_ptx(weir, artifact)
    if ptxas.PTXAS:
        ptxas.assemble_artifact(artifact, weir.folder)
    check(weir, [artifact], "bf16", "--f64")
    for name, text in {"b": make_half_matrices(form, "bf16", 1, 1024, 2048, 64),
                       "c": make_half_graph(form, "bf16", 1, 1024, 2056, 64)}.items():
        other = weir.compile_text(text, name, f"--target=cuda:{profile}")
        assert ".reqntid 128, 1, 1" in read_ptx(weir, other)


def test_large_grids_are_proved(weir):
    artifact = weir.compile_text(make_half_graph("nn", "bf16", 1, 4096, 4096, 4096), "a", "--target=cuda:sm_90")
    assert ".reqntid 256, 1, 1" in read_ptx(weir, artifact)
    assert ", 0 taken" in weir.run("verify", artifact)


def test_slabs_beyond_workgroup_memory(weir):
    (weir.folder / "a.mlir").write_text(make_half_graph("nn", "bf16", 1, 1024, 1024, 128))
    (weir.folder / "p.json").write_text(json.dumps({"like": "sm_80", "name": "large", "matrix_slab": 64,
                                                      "workgroup_memory": 49152}))
    command = [BIN / "weir", "compile", "a.mlir", "-o", "a.weir", "--target=cuda:p.json"]
    done = subprocess.run(command, cwd=weir.folder, capture_output=True, text=True)
    assert done.returncode == 2
    assert "@contraction_1024x1024x128 takes 65536 bytes of workgroup memory, profile 'large' allows 49152" in done.stderr


# More than code may declare: the launch states the size, and all slabs are parts of one variable.
@pytest.mark.parametrize("form", ["nt", "tn"])
def test_launch_states_workgroup_memory(weir, form):
    profile = weir.folder / "p.json"
    profile.write_text(json.dumps({"like": "sm_80", "name": "deep", "matrix_slab": 64}))
    artifact = weir.compile_text(make_half_graph(form, "bf16", 1, 512, 1024, 520), "a", f"--target=cuda:{profile}")
    assert ".extern .shared .align 1024 .b8" in read_ptx(weir, artifact)
    with zipfile.ZipFile(weir.folder / artifact) as file:
        plan = json.loads(file.read("plan/cuda/f.json"))
    kernel, = plan["kernels"]
    assert kernel["workgroup_memory"] == 3 * (64 + 128) * 64 * 2
    assert ", 0 taken" in weir.run("verify", artifact)
    if ptxas.PTXAS:
        ptxas.assemble_artifact(artifact, weir.folder)
    check(weir, [artifact], "bf16", "--f64")
    # A launch with less: the plan is refused, or what it says is no longer proved.
    for name, bytes, problem in (("none", 0, "the plan states none"),
                                 ("few", 49152, "the bounds of the workgroup memory of @"),
                                 ("many", 163 * 1024 + 1, "is launched with 166913 bytes of workgroup memory")):
        kernel["workgroup_memory"] = bytes
        if not bytes:
            del kernel["workgroup_memory"]
        edited = weir.folder / f"{name}.weir"
        edit_plan(edited, weir.folder / artifact, plan, "cuda")
        done = subprocess.run([BIN / "weir", "verify", edited], capture_output=True, text=True)
        assert problem in done.stdout + done.stderr, done.stdout + done.stderr
        assert done.returncode == (0 if name == "few" else 1)


def make_product(form, batches, rows, columns, products):
    """The product of factors in f32, and those factors' shapes."""
    size = {"b": batches, "i": rows, "j": columns, "k": products}
    shapes = [[size[dim] for dim in dims.split(", ")] for dims in FORMS[form]]
    a, b = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in shapes)
    c = f"tensor<{batches}x{rows}x{columns}xf32>"
    maps = ", ".join(f"affine_map<(b, i, j, k) -> ({dims})>" for dims in (*FORMS[form], "b, i, j"))
    return f"""func.func @f(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {c}
  %zeros = linalg.fill ins(%zero : f32) outs(%e : {c}) -> {c}
  %sums = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%a, %b : {a}, {b}) outs(%zeros : {c}) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  }} -> {c}
  return %sums : {c}
}}
""", shapes


def round_to_tf32(array):
    """To nearest, ties away from zero: 13 of 23 bits are cut."""
    return ((array.view(numpy.uint32) + 0x1000) & 0xFFFFE000).view(numpy.float32)


@pytest.mark.parametrize("sizes", [(1, 256, 256, 56), (2, 130, 256, 67)], ids=lambda sizes: "x".join(map(str, sizes)))
@pytest.mark.parametrize("form", FORMS)
def test_tf32(weir, form, sizes):
    """The exact product of the rounded factors, to the rounding of sums in f32. Without the option there are no
    instructions on matrices."""
    text, shapes = make_product(form, *sizes)
    plain = weir.compile_text(text, "plain", "--target=cuda")
    assert "mma.sync" not in read_ptx(weir, plain)
    artifact = weir.compile_text(text, "a", "--target=cuda", "--precision=tf32")
    assert ".tf32.tf32." in read_ptx(weir, artifact)
    assert "round their factors to tf32" in weir.run("inspect", artifact)
    assert "tf32" not in weir.run("inspect", plain)
    if ptxas.PTXAS:
        ptxas.assemble_artifact(artifact, weir.folder)
    facts = re.search(r"(\d+) facts are proved from it, (\d+) taken", weir.run("verify", artifact))
    assert int(facts[1]) > 0 and int(facts[2]) == 0

    random = numpy.random.default_rng(1)
    factors = [random.standard_normal(shape).astype(numpy.float32) for shape in shapes]
    save_file(dict(zip(("arg0", "arg1"), factors)), weir.folder / "in.safetensors")
    weir.run("run", artifact, "--device=sim", f"--input={weir.folder}/in.safetensors",
             f"--output={weir.folder}/out.safetensors")
    [found] = load_file(weir.folder / "out.safetensors").values()
    a, b = (round_to_tf32(factor).astype(numpy.float64) for factor in factors)
    a = a.swapaxes(1, 2) if form[0] == "t" else a
    b = b.swapaxes(1, 2) if form[1] == "t" else b
    bound = sizes[3] * 2.0**-24 * (abs(a) @ abs(b))
    assert (abs(found - a @ b) <= bound).all()
