"""`weir verify` against kernels' code: all of what compiles is proved from it, and plans that say
less than it does are refused."""

import json
import re
import struct
import subprocess
import sys
import time

import pytest

from conftest import BIN, ROOT
from edits import read_documents, write_documents
from graphs import make_graph
from mutants import judge

# What a plan may say in place of the truth so that hazards go unseen.
WEAKER = {"read": ["none", "write"], "write": ["none", "read"], "update": ["none", "read", "write"]}


def verify(path):
    done = subprocess.run([BIN / "weir", "verify", path, "--json"], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def find(answer, name):
    return [claim for claim in answer["claims"] if claim["claim"] == name]


@pytest.mark.parametrize("name", ["background_case1", "layer_norm", "layer_norm_vjp", "mlp/mlp", "gpt2_block_train/gpt2",
                                  "from_jax/mixer"])
def test_examples_are_proved(weir, name):
    answer = verify(weir.compile(weir.examples / f"{name}.mlir"))
    assert answer["holds"] and answer["proved_from_code"] > 0
    assert answer["taken_from_compiler"] == 0, answer


def test_a_llamas_step_is_proved(weir):
    """Rotary embeddings set bits of sums, and the embedding's gradient divides 64-bit counters."""
    made = subprocess.run([sys.executable, weir.examples.parent / "benchmarks/compile/graphs.py", "llama", "--layers=2",
                           "--tied"], capture_output=True, text=True, check=True)
    answer = verify(weir.compile_text(made.stdout, "a", "--train=sgd:main", "--entry=main.step", "--target=cuda"))
    assert answer["holds"] and answer["taken_from_compiler"] == 0, answer


@pytest.mark.parametrize("columns", [2052, 4100])
def test_rests_of_long_rows_are_proved(weir, columns):
    """LLVM leaves an invocation's number in the loop over the rows, behind which the columns' parts are stored. What
    mutants do there is no longer proved."""
    text = (weir.examples / "layer_norm_vjp.mlir").read_text()
    text = text.replace("512x1024x", f"20x{columns}x").replace("<1024x", f"<{columns}x")
    artifact = weir.compile_text(text, "a", "--target=cuda:sm_90")
    answer = verify(artifact)
    assert answer["holds"] and answer["taken_from_compiler"] == 0, answer
    if columns == 2052:
        judged = judge(BIN, artifact, weir.folder, most=2, kinds=["drop-guard", "negate-guard", "shift-store", "narrow-store"])
        assert len(judged) > 4 and all(mutant.is_right() for mutant in judged), "\n".join(map(str, judged))


@pytest.mark.parametrize("seed", range(100, 112))
@pytest.mark.parametrize("profile", [
    {}, {"row_mapping": "workgroup", "workgroup_size": 64}, {"row_mapping": "lane", "workgroup_size": 16},
    {"max_loop_trips": 60, "max_grid": [3, 5, 65535]}, {"private_row_bytes": 1}])
def test_random_graphs_are_proved(weir, seed, profile):
    path = weir.profile(**profile)
    answer = verify(weir.compile_text(make_graph(seed), "a", f"--target=vulkan:{path}"))
    assert answer["holds"] and answer["taken_from_compiler"] == 0, answer


def get_plans(documents):
    return [document for name, document in documents.items() if name.startswith("plan/")]


def test_understated_effects_are_refused(weir):
    documents, rest = read_documents(weir.compile(weir.examples / "layer_norm_vjp.mlir", "a", "--target=vulkan,cuda"))
    edited = weir.folder / "edited.weir"
    for plan in get_plans(documents):
        for kernel in plan["kernels"]:
            for operand in kernel["operands"]:
                before = dict(operand)
                pairs = kernel.pop("in_place", None)  # which such effects may not have
                for access in WEAKER[operand["access"]]:
                    operand.update(access=access, covers_all=before["covers_all"] and access == "write")
                    write_documents(edited, documents, rest)
                    answer = verify(edited)
                    assert not all(claim["holds"] for claim in find(answer, "effects")), (kernel["name"], before, access)
                operand.update(before)
                if pairs:
                    kernel["in_place"] = pairs


def test_shrunk_views_are_refused(weir):
    documents, rest = read_documents(weir.compile(weir.examples / "layer_norm_vjp.mlir"))
    edited = weir.folder / "edited.weir"
    (plan,) = get_plans(documents)
    for number, kernel in enumerate(plan["kernels"]):
        for i, operand in enumerate(kernel["operands"]):
            views = [c["operands"][i] for c in plan["commands"] if c.get("kernel") == number]
            operand["bytes"] -= 16
            for view in views:
                view[2] -= 16
            write_documents(edited, documents, rest)
            (bounds,) = find(verify(edited), "bounds")
            assert not bounds["holds"] and f"of the {operand['bytes']} of operand {i}" in bounds["detail"], bounds
            operand["bytes"] += 16
            for view in views:
                view[2] += 16


TRANSPOSED = """
func.func @f(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %empty = tensor.empty() : tensor<64x64xf32>
  %t = linalg.transpose ins(%a : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>) permutation = [1, 0]
  return %t : tensor<64x64xf32>
}
"""


def test_pairs_that_the_code_forbids_are_refused(weir):
    documents, rest = read_documents(weir.compile_text(TRANSPOSED))
    (plan,) = get_plans(documents)
    (kernel,) = plan["kernels"]
    assert "in_place" not in kernel
    kernel["in_place"] = [[0, 1]]
    edited = weir.folder / "edited.weir"
    write_documents(edited, documents, rest)
    (permissions,) = find(verify(edited), "permissions")
    assert not permissions["holds"] and "but its code may read byte" in permissions["detail"], permissions


def edit_code(folder, documents, rest, edit):
    """Returns verify's answer about an artifact whose PTX is edited, and what it took."""
    edited = folder / "edited.weir"
    (name,) = [name for name in rest if name.endswith(".ptx")]
    text = rest[name].decode()
    assert edit(text) != text
    write_documents(edited, documents, rest | {name: edit(text).encode()})
    begin = time.monotonic()
    done = subprocess.run([BIN / "weir", "verify", edited, "--json"], capture_output=True, text=True)
    seconds = time.monotonic() - begin
    assert done.returncode in (0, 1), done.stderr
    return done, name, seconds


BEFORE_END = "\tret;"


@pytest.mark.parametrize("edit, why", [
    (lambda text: text.replace(BEFORE_END, "\tfrobnicate.b32 \t%r1, %r2;\n\tret;"), "'frobnicate.b32' is not known"),
    (lambda text: text.replace("mov.u32 \t%r", ".reg .pred %q;\n\tsetp.eq.b32 \t%q, 1, 1;\n\t@%q bra INSIDE;\nAGAIN:\n"
                                               "\tsetp.eq.b32 \t%q, 1, 1;\nINSIDE:\n\t@%q bra AGAIN;\n"
                                               "\tmov.u32 \t%r", 1), "jumped into"),
    (lambda text: re.sub(r"st\.global(\S+) *\t\[%rd\d+\]", r"st.global\1 \t[4096]", text), "operand"),
    (lambda text: text.replace("ld.param.b64", "// ld.param.b64"), "operand"),
    (lambda text: text.replace(".version ", ".version 9"), "PTX version 9"),
    (lambda text: text.replace(BEFORE_END, "".join(f"L{i}:\n" for i in range(1_000_000)) + BEFORE_END), "more than 131072 labels"),
], ids=["instruction", "jump_into_a_loop", "address_from_nowhere", "never_written", "version", "labels"])
def test_edited_ptx_is_refused_or_taken(weir, edit, why):
    documents, rest = read_documents(weir.compile_text(TRANSPOSED, "a", "--target=cuda"))
    done, name, seconds = edit_code(weir.folder, documents, rest, edit)
    answer = json.loads(done.stdout) if done.stdout else None
    text = done.stdout + done.stderr
    assert why in text and (answer is None or not answer["holds"] or answer["taken_from_compiler"] > 0), text
    assert seconds < 1, seconds


SELECTED = """func.func @f(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) -> tensor<2x4xf32> {{
  %p = tensor.empty() : tensor<2x4xi1>
  %e = tensor.empty() : tensor<2x4xf32>
  %m = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], weir.no_fuse}} ins(%x : tensor<2x4xf32>) outs(%p : tensor<2x4xi1>) {{
  ^bb0(%a: f32, %o: i1):
    %z = arith.constant 0.0 : f32
    %r = arith.cmpf ogt, %a, %z : f32
    linalg.yield %r : i1
  }} -> tensor<2x4xi1>
  %s = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%m, %y : tensor<2x4xi1>, tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) {{
  ^bb0(%c: i1, %b: f32, %o: f32):
    %z = arith.constant 0.0 : f32
    %k = arith.select %c, %b, %z : f32
    %l = arith.select %c, %z, %b : f32
    %r = {sum} : f32
    linalg.yield %r : f32
  }} -> tensor<2x4xf32>
  return %s : tensor<2x4xf32>
}}
"""


@pytest.mark.parametrize("sum, proved, taken", [("arith.addf %k, %l", 0, 1), ("arith.subf %k, %l", 1, 0)])
def test_loads_that_a_code_generator_drops(weir, sum, proved, taken):
    """b + 0 and 0 + b are one number, so LLVM loads no mask. The barrier was there before."""
    artifact = weir.compile_text(SELECTED.format(sum=sum), "a", "--target=cuda")
    claims = json.loads(weir.run("verify", artifact, "--json"))["claims"]
    [needs] = [claim for claim in claims if claim["claim"] == "needs"]
    assert (needs["proved_from_code"], needs["taken_from_compiler"]) == (proved, taken)


@pytest.mark.parametrize("trips, holds", [(834, True), (833, False)])
def test_loops_that_a_device_ends_early(weir, trips, holds):
    """Rows of 1024 take a subgroup 834 trips and ends of loops."""
    text = (ROOT / "examples/layer_norm.mlir").read_text()
    documents, rest = read_documents(weir.compile_text(text, "a", "--target=vulkan"))
    documents["manifest.json"]["targets"][0]["max_loop_trips"] = trips
    write_documents(weir.folder / "b.weir", documents, rest)
    claims = json.loads(weir.run("verify", "b.weir", "--json", status=0 if holds else 1))["claims"]
    [loops] = [claim for claim in claims if claim["claim"] == "loops"]
    assert (loops["holds"], loops["taken_from_compiler"]) == (holds, 0)
    if not holds:
        assert re.fullmatch(r"an invocation of @\w+ makes 834 trips of loops, the end of each counted as one, "
                            r"profile 'lavapipe' ends all loops after 833", loops["detail"])


def drop_decoration(code, decoration):
    """Returns SPIR-V without the first OpDecorate or OpMemberDecorate of a kind."""
    words = memoryview(code).cast("I").tolist()
    place = 5
    while (op := words[place] & 0xffff) not in (71, 72) or words[place + op - 69] != decoration:
        place += words[place] >> 16
    del words[place:place + (words[place] >> 16)]
    return struct.pack(f"={len(words)}I", *words)


@pytest.mark.parametrize("name, decoration, missing", [
    ("DescriptorSet", 34, "the buffer"), ("Binding", 33, "the buffer"), ("Block", 2, "the buffer"),
    ("ArrayStride", 6, "the array"), ("Offset", 35, "member 0 of the struct")])
def test_decorations_that_vulkan_demands(weir, name, decoration, missing):
    documents, rest = read_documents(weir.compile_text(make_graph(3), "a", "--target=vulkan"))
    code = next(path for path in rest if path.endswith(".spv"))
    write_documents(weir.folder / "b.weir", documents, rest | {code: drop_decoration(rest[code], decoration)})
    claims = json.loads(weir.run("verify", "b.weir", "--json", status=1))["claims"]
    [effects] = [claim for claim in claims if not claim["holds"] and claim["claim"] == "effects"]
    assert re.search(rf"is none that Vulkan takes: {missing} %\d+.* has no {name}$", effects["detail"]), effects
