"""Mutants of artifacts: what may change a result is found by `weir verify` and by the
simulator, what only the plan says wrongly by `weir verify`, and what is proved
equivalent by neither."""

import json
import re
import subprocess

import ptxas
import pytest

from case3 import make_graph as make_case3
from case6 import make_graph as make_case6
from conftest import BIN, ROOT, Weir
from mutants import judge, list_mutants, make_mutable_graph
from test_contractions import make_half_graph

MOST, MOST_CUDA = 10, 4  # mutants of one artifact, kind and class
GRAPHS = [*range(400, 415), 579, 584]  # the last two have barriers that may move in the plan alone


def replace_sizes(text, sizes):
    """Other sizes in all shapes."""
    def change(dims):
        return re.sub(r"\d+", lambda size: sizes.get(size[0], size[0]), dims[0])
    text = re.sub(r"(?<=tensor<)(\d+x)+", change, text)
    return re.sub(r"output_shape \[[^\]]*\]", change, text)


def read_example(name, sizes):
    return replace_sizes((ROOT / "examples" / name).read_text(), sizes)


ROWS = {"8192": "11", "512": "24", "1024": "40"}
WIDE = {"8192": "3", "1024": "300"}
# The mean of a row divides by its size.
MLP = read_example("mlp/mlp.mlir", {"64": "6", "256": "12", "1024": "20"}).replace("2.560000e+02", "1.200000e+01")
# name: (text, flags, changes of the profile)
SOURCES = {
    "layer_norm": (read_example("layer_norm.mlir", ROWS), [], {}),
    "layer_norm_vjp": (read_example("layer_norm_vjp.mlir", ROWS), [], {}),
    "background_case1": (read_example("background_case1.mlir", ROWS), ["--require-donation"], {}),
    "mlp": (MLP, [], {}),
    "mlp_train": (MLP, ["--train=adamw:mlp_loss", "--entry=mlp_loss.step"], {}),
    "case3": (make_case3(4, 8, 12), [], {}),
    "case6": (make_case6(24, 40), ["--vjp=f", "--entry=f.vjp"], {}),
    "two_queues": (make_case3(4, 8, 12), [], {"queues": 2}),
    "workgroups": (read_example("layer_norm.mlir", WIDE), [], {"row_mapping": "workgroup", "workgroup_size": 64}),
}
# Data decide when it ends, after six trips: it would be five if an element were NaN. Two values change places, one is read in all trips, and a kernel cannot
# write over what it reads.
LOOP = """func.func @f(%x: tensor<8xf32> {weir.name = "x", weir.donate}, %y: tensor<8xf32> {weir.name = "y", weir.donate})
    -> (tensor<8xf32> {weir.name = "p"}, tensor<8xf32> {weir.name = "q"}) {
  %e = tensor.empty() : tensor<8xf32>
  %first = arith.constant 0 : index
  %some = tensor.extract %x[%first] : tensor<8xf32>
  %strange = arith.cmpf uno, %some, %some : f32
  %begin = arith.extui %strange : i1 to i32
  %none = tensor.from_elements %begin : tensor<i32>
  %one = arith.constant 1 : i32
  %six = arith.constant 6 : i32
  %w = linalg.add ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r:3 = scf.while (%h = %x, %g = %y, %i = %none) : (tensor<8xf32>, tensor<8xf32>, tensor<i32>)
      -> (tensor<8xf32>, tensor<8xf32>, tensor<i32>) {
    %k = tensor.extract %i[] : tensor<i32>
    %go = arith.cmpi slt, %k, %six : i32
    scf.condition(%go) %h, %g, %i : tensor<8xf32>, tensor<8xf32>, tensor<i32>
  } do {
  ^bb0(%h: tensor<8xf32>, %g: tensor<8xf32>, %i: tensor<i32>):
    %t = linalg.tanh {weir.no_fuse} ins(%h : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (7 - d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
        iterator_types = ["parallel"]} ins(%t, %w : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %sum = arith.addf %p, %q : f32
      linalg.yield %sum : f32
    } -> tensor<8xf32>
    %k = tensor.extract %i[] : tensor<i32>
    %k1 = arith.addi %k, %one : i32
    %next = tensor.from_elements %k1 : tensor<i32>
    scf.yield %g, %s, %next : tensor<8xf32>, tensor<8xf32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}"""
SOURCES["loop"] = (LOOP, [], {})
# Of these also PTX: a kernel with workgroup memory, shuffles, several queues.
CUDA = {
    "rows": (read_example("layer_norm_vjp.mlir", {"512": "6", "1024": "300"}), [],
             {"row_mapping": "workgroup", "workgroup_size": 64}),
    "mlp": SOURCES["mlp"],
    "two_queues": SOURCES["two_queues"],
    "case6": SOURCES["case6"],
    "loop": SOURCES["loop"],
}
CUDA |= {f"graph{seed}": (make_mutable_graph(seed), [], {}) for seed in (3, 32, 138, 402)}
SOURCES |= {f"graph{seed}": (make_mutable_graph(seed), [], {}) for seed in GRAPHS}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    weir, mutants = Weir(tmp_path_factory.mktemp("mutants")), {}
    for name, (text, flags, changes) in SOURCES.items():
        (weir.folder / f"{name}.mlir").write_text(text)
        target = f"vulkan:{weir.profile(**changes)}" if changes else "vulkan"
        weir.run("compile", f"{name}.mlir", "-o", f"{name}.weir", f"--target={target}", *flags)
        mutants["vulkan", name] = judge(BIN, weir.folder / f"{name}.weir", weir.folder, MOST)
    for name in CUDA:
        mutants["cuda", name] = judge(BIN, compile_cuda(weir, name), weir.folder, MOST_CUDA)
    return mutants


def compile_cuda(weir, name):
    """Compiles a source for CUDA; returns the artifact's path."""
    text, flags, changes = CUDA[name]
    profile = weir.folder / "gpu.json"
    profile.write_text(json.dumps({"like": "sm_80", "name": "changed"} | changes))
    return weir.compile_text(text, name, f"--target=cuda:{profile}", *flags)


@pytest.mark.parametrize("target, name", [("vulkan", name) for name in SOURCES] + [("cuda", name) for name in CUDA])
def test_all_object_who_should(judged, target, name):
    wrong = [str(mutant) for mutant in judged[target, name] if not mutant.is_right()]
    assert not wrong, "\n".join(wrong)


# Of each target, the kinds of its code.
CODE = {"vulkan": {"drop-code-barrier", "weaken-code-barrier"},
        "cuda": {"drop-code-barrier", "weaken-code-barrier", "cut-shuffle-mask", "make-noncoherent", "shift-store",
                 "narrow-store", "negate-guard", "drop-guard"}}


@pytest.mark.parametrize("target", CODE)
def test_there_is_every_kind_and_class(judged, target):
    found = {(mutant.kind, mutant.is_of) for (of, _), mutants in judged.items() for mutant in mutants if of == target}
    behavior = {"drop-barrier", "weaken-barrier", "move-barrier", "shift-slot", "overlap-slot", "use-refused",
                "divert-write", "drop-wait", "swap-dispatches"}
    assert found >= {(kind, "behavior") for kind in behavior | CODE[target]}
    if target == "cuda":
        assert found >= {("make-noncoherent", "metadata"), ("make-noncoherent", "equivalent"),
                         ("renumber-code-barrier", "equivalent"), ("shrink-effect", "metadata")}
        return
    assert found >= {("shrink-lifetime", "metadata"), ("move-barrier", "metadata"), ("shrink-effect", "metadata")}
    assert found >= {("move-barrier", "equivalent"), ("shift-slot", "equivalent"), ("weaken-barrier", "equivalent")}


def test_loops_have_every_kind(judged):
    """Also a barrier between two trips is dropped."""
    for target in "vulkan", "cuda":
        mutants = judged[target, "loop"]
        found = {(mutant.kind, mutant.is_of) for mutant in mutants}
        assert {kind for kind, _ in found} >= {"drop-barrier", "move-barrier", "overlap-slot", "shrink-lifetime", "drop-carried",
                                               "swap-carried", "divert-carried", "swap-donation"}, found
        assert any(mutant.kind == "drop-barrier" and " of the next trip" in mutant.words for mutant in mutants)


def test_a_mutant_is_what_it_says(weir):
    """One barrier less, and all else as it was."""
    artifact = weir.compile_text(SOURCES["background_case1"][0], "a", "--target=vulkan")
    [first, *_] = [m["id"] for m in list_mutants(BIN, artifact) if m["kind"] == "drop-barrier"]
    subprocess.run([BIN / "weir-mutate", artifact, f"--apply={first}", "-o", weir.folder / "b.weir"], check=True)
    before, after = weir.inspect(artifact)["plans"], weir.inspect(weir.folder / "b.weir")["plans"]
    assert after[0].pop("barriers") == before[0].pop("barriers") - 1
    assert before == after


@pytest.mark.parametrize("stages", [2, 3])
def test_barriers_of_matrices(weir, stages):
    """Slabs in a loop, of which one is added while the next are copied asynchronously. Other mutants of so large a
    kernel are left out: to disprove what they state, `weir verify` would have to compare more executions than it
    does."""
    profile = weir.folder / "gpu.json"
    profile.write_text(json.dumps({"like": "sm_80", "name": "changed", "matrix_tile": 32, "matrix_stages": stages}))
    artifact = weir.compile_text(make_half_graph("nt", "bf16", 1, 128, 128, 256), "a", f"--target=cuda:{profile}")
    kinds = {"drop-code-barrier", "weaken-code-barrier", "renumber-code-barrier", "drop-copy-wait",
             "weaken-copy-wait"}
    mutants = judge(BIN, artifact, weir.folder, kinds=kinds)
    assert {(mutant.kind, mutant.is_of) for mutant in mutants} == {
        ("drop-code-barrier", "behavior"), ("weaken-code-barrier", "behavior"), ("drop-copy-wait", "behavior"),
        ("weaken-copy-wait", "behavior"), ("renumber-code-barrier", "equivalent")}
    wrong = [str(mutant) for mutant in mutants if not mutant.is_right()]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("form, columns, products, units", [("nt", 64, 320, 1), ("nn", 320, 192, 2)],
                         ids=["one-width", "two-widths"])
def test_copies_of_boxes(weir, form, columns, products, units):
    """Slabs that TMA brings for wgmma: what counts their bytes, waits for them, or orders who reads them."""
    profile = weir.folder / "gpu.json"
    profile.write_text(json.dumps({"like": "sm_90a", "name": "changed", "units": units}))
    artifact = weir.compile_text(make_half_graph(form, "bf16", 1, 64, columns, products), "a", f"--target=cuda:{profile}")
    kinds = {"drop-phase-wait", "turn-phase-wait", "expect-fewer", "drop-box", "drop-code-barrier", "drop-guard",
             "drop-proxy-fence"}
    mutants = judge(BIN, artifact, weir.folder, most=3, kinds=kinds)
    assert {(mutant.kind, mutant.is_of) for mutant in mutants} >= {(kind, "behavior") for kind in kinds}
    wrong = [str(mutant) for mutant in mutants if not mutant.is_right()]
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(not ptxas.PTXAS, reason="no ptxas")
def test_ptx_of_mutants_is_assembled(weir):
    left = CODE["cuda"] | {"renumber-code-barrier"}
    artifact = compile_cuda(weir, "rows")
    for mutant in list_mutants(BIN, artifact):
        if mutant["kind"] in left:
            left.remove(mutant["kind"])
            subprocess.run([BIN / "weir-mutate", artifact, f"--apply={mutant['id']}", "-o", weir.folder / "b.weir"],
                           check=True)
            ptxas.assemble_artifact(weir.folder / "b.weir", weir.folder)
    assert not left


def test_synchronization_validation_sees_what_lacks_a_barrier(weir):
    """And reports nothing of mutants that are proved equivalent."""
    artifact = weir.compile_text(SOURCES["case3"][0], "a", "--target=vulkan")
    mutants, mutant = list_mutants(BIN, artifact), weir.folder / "b.weir"
    lacking = [m["id"] for m in mutants if m["kind"] == "drop-barrier"]
    same = [m["id"] for m in mutants if m["class"] == "equivalent"]
    assert len(lacking) > 10 and len(same) > 2
    for id in lacking[::6] + same[:2]:
        subprocess.run([BIN / "weir-mutate", artifact, f"--apply={id}", "-o", mutant], check=True)
        done = subprocess.run([ROOT / "scripts/with-validation", BIN / "weir-device", "run", mutant,
                               "--random-inputs=1"], capture_output=True, text=True)
        errors = int(re.search(r"with-validation: 1 instances validated, (\d+) errors", done.stderr)[1])
        assert (errors > 0) == ("SYNC-HAZARD" in done.stderr) == (id in lacking), f"{id}\n{done.stderr}"
        assert done.returncode == (errors > 0)
