"""The simulator on whole graphs: silent where all is well, with Vulkan's bits, and
heard where a barrier is cut, whatever the schedule. `Weir.compare` runs it on all
other graphs of the suite."""

import pathlib
import re
import struct
import subprocess
import zipfile

import pytest

from conftest import BIN
from edits import read_documents, write_documents
from graphs import make_graph

STRATEGIES = ["random", "recorded", "latest-first", "writer-first", "split"]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(200, 206))
def test_any_strategy_computes_the_same(weir, strategy, seed):
    artifact = weir.compile_text(make_graph(seed))
    inputs, output = [f"--random-inputs={seed}"], weir.folder / "vulkan.safetensors"
    weir.run("run", artifact, *inputs, f"--output={output}")
    weir.simulate(artifact, inputs, output, f"--sim-strategy={strategy}")


def test_mlp(weir):
    artifact = weir.compile(weir.examples / "mlp/mlp.mlir")
    inputs, output = [f"--input={weir.examples}/mlp/inputs.safetensors"], weir.folder / "vulkan.safetensors"
    weir.run("run", artifact, *inputs, f"--output={output}")
    weir.simulate(artifact, inputs, output)


def cut(weir, barrier):
    """Compiles case 1, small, and leaves out one barrier, unless it is None. Returns
    the artifact and the hazard that forced that barrier."""
    text = (weir.examples / "background_case1.mlir").read_text()
    graph, ordered = weir.folder / "graph.mlir", weir.folder / "ordered.mlir"
    graph.write_text(text.replace("512x1024xf32", "24x40xf32").replace("1024xf32", "40xf32"))
    weir.run("compile", graph, "--require-donation", "--stop-after=ordered", "-o", ordered)
    lines = ordered.read_text().splitlines()
    places = [i for i, line in enumerate(lines) if "schedule.barrier" in line]
    assert len(places) == 2
    hazard = None
    if barrier is not None:
        hazard = re.search(r"hazard<(\w+), (\d+) operand \d+ -> (\d+) ", lines[places[barrier]]).groups()
        del lines[places[barrier]]
    source, artifact = weir.folder / "cut.mlir", weir.folder / "cut.weir"
    source.write_text("\n".join(lines))
    subprocess.run([BIN / "weir-opt", source, "--weir-emit-spirv", "--weir-pack",
                    f"--weir-test-pack-unchecked=output={artifact}", "-o", weir.folder / "out.mlir"],
                   check=True)
    return artifact, hazard


def test_case_1_has_no_race(weir):
    artifact, _ = cut(weir, None)
    for strategy in STRATEGIES:
        weir.run("run", artifact, "--random-inputs=1", "--device=sim", f"--sim-strategy={strategy}")


@pytest.mark.parametrize("barrier", range(2))
def test_case_1_without_a_barrier(weir, barrier):
    """In one run, whatever the seed."""
    artifact, (kind, first, second) = cut(weir, barrier)
    schedules = [f"--sim-strategy={strategy}" for strategy in STRATEGIES[1:]]
    schedules += [f"--sim-seed={seed}" for seed in range(50)]
    for schedule in schedules:
        report = weir.run("run", artifact, "--random-inputs=1", "--device=sim", schedule, status=1)
        assert re.search(rf"^sim: {kind.upper()}: dispatch {second} \(@.* byte \d+ of .*, which dispatch "
                         rf"{first} \(@.*; no barrier or wait orders the two", report, re.M), report


def remove_barrier(artifact, copy, kernel, number):
    """Copies an artifact, one OpControlBarrier of a kernel replaced by OpNops. False
    when there are not so many."""
    OP_CONTROL_BARRIER, NOP = 224, 1 << 16
    found = False
    with zipfile.ZipFile(artifact) as source, zipfile.ZipFile(copy, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == kernel:
                words, at = list(struct.unpack(f"<{len(data) // 4}I", data)), 5
                while at < len(words):
                    count = words[at] >> 16
                    if words[at] & 0xFFFF == OP_CONTROL_BARRIER:
                        if number == 0:
                            words[at : at + count], found = [NOP] * count, True
                        number -= 1
                    at += count
                data = struct.pack(f"<{len(words)}I", *words)
            target.writestr(zipfile.ZipInfo(name), data)
    return found


LAYER_NORM = """
func.func @f(%x: tensor<5x300xf32>, %g: tensor<300xf32>, %b: tensor<300xf32>) -> tensor<5x300xf32> {
  %y = norm.layer_norm %x gamma(%g : tensor<300xf32>) beta(%b : tensor<300xf32>)
      {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<5x300xf32>
  return %y : tensor<5x300xf32>
}
"""


def test_no_barrier_in_a_kernel_can_be_left_out(weir):
    path = weir.profile(row_mapping="workgroup", workgroup_size=64)
    artifact = weir.compile_text(LAYER_NORM, "a", f"--target=vulkan:{path}")
    weir.compare(artifact, ["--random-inputs=1"], 1e-5)
    with zipfile.ZipFile(artifact) as archive:
        kernels = [name for name in archive.namelist() if name.startswith("code/vulkan/")]
    cut, barriers = weir.folder / "cut.weir", 0
    for kernel in kernels:
        number = 0
        while remove_barrier(artifact, cut, kernel, number):
            report = weir.run("run", cut, "--random-inputs=1", "--device=sim", status=1)
            assert re.search(r"^sim: (RAW|WAR): in dispatch 0 \(@.*, \S*a.mlir:3\), thread \d+ of workgroup \d+ at "
                             r"a.mlir:3:\d+ (reads|writes) byte \d+ of workgroup memory, which thread \d+ of "
                             r"workgroup \d+ at a.mlir:3:\d+ (reads|writes); no barrier in the kernel orders the two",
                             report, re.M), report
            number += 1
        barriers += number
    assert barriers > 1


FUSED = """#all = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> ()>
func.func @f(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>, %u: tensor<13x5xf32>) -> tensor<13x5xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %a = linalg.exp ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %b = linalg.mul ins(%a, %y : tensor<8x64xf32>, tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  %s = linalg.reduce { arith.addf } ins(%b : tensor<8x64xf32>) outs(%z : tensor<f32>) dimensions = [0, 1]
  %o = tensor.empty() : tensor<13x5xf32>
  %c = linalg.abs ins(%u : tensor<13x5xf32>) outs(%o : tensor<13x5xf32>) -> tensor<13x5xf32>
  %d = linalg.generic {indexing_maps = [#all, #one, #all], iterator_types = ["parallel", "parallel"]}
      ins(%c, %s : tensor<13x5xf32>, tensor<f32>) outs(%o : tensor<13x5xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<13x5xf32>
  return %d : tensor<13x5xf32>
}
"""


def read_lines(artifact):
    """The files and lines of each kernel, by the first word of its name."""
    OP_STRING, OP_LINE = 7, 8
    found = {}
    with zipfile.ZipFile(artifact) as archive:
        for name in archive.namelist():
            if not name.startswith("code/vulkan/"):
                continue
            data = archive.read(name)
            words, at, lines, files = struct.unpack(f"<{len(data) // 4}I", data), 5, [], []
            while at < len(words):
                count, opcode = words[at] >> 16, words[at] & 0xFFFF
                if opcode == OP_STRING:
                    files.append(data[4 * at + 8 : 4 * (at + count)].rstrip(b"\0"))
                if opcode == OP_LINE:
                    lines.append(words[at + 2])
                at += count
            found[pathlib.Path(name).name.split("_")[0]] = files, set(lines)
    return found


def test_code_names_lines(weir):
    """Each load and store has the line of the operation that it is for; files are named without a folder."""
    (weir.folder / "a.mlir").write_text(FUSED)
    weir.run("compile", weir.folder / "a.mlir", "-o", "a.weir")
    lines = read_lines(weir.folder / "a.weir")
    # The kernel and x, y, the result; the kernel and u, the sum and the result.
    assert read_lines(weir.folder / "a.weir") == {"row": ([b"a.mlir"], {5, 6, 8}), "map": ([b"a.mlir"], {10, 11})}


def test_race_names_lines_of_both(weir):
    """The lines are those of the store and the load, not those at which the kernels begin."""
    artifact = weir.compile_text(FUSED)
    documents, rest = read_documents(artifact)
    [plan] = [document for name, document in documents.items() if name.startswith("plan/")]
    plan["commands"] = [c for c in plan["commands"] if c["command"] != "barrier"]
    write_documents(artifact, documents, rest)
    for seed in range(8):
        report = weir.run("run", artifact, "--random-inputs=1", "--device=sim", f"--sim-seed={seed}", status=1)
        assert re.search(r"^sim: RAW: dispatch 1 \(@map\w*, \S*a.mlir:10\), thread \d+ of workgroup \d+ at a.mlir:11:8, "
                         r"reads byte \d+ of the arena, which dispatch 0 \(@row\w*, \S*a.mlir:5\), thread \d+ of "
                         r"workgroup \d+ at a.mlir:8:8, writes; no barrier or wait orders the two", report, re.M), report


EQUAL = """func.func @f(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %a = linalg.exp {weir.no_fuse} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %b = linalg.exp {weir.no_fuse} ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  return %b : tensor<64xf32>
}
"""


def test_equal_kernels_have_the_first_ones_lines(weir):
    """Reports say so for the others."""
    artifact = weir.compile_text(EQUAL)
    documents, rest = read_documents(artifact)
    [plan] = [document for name, document in documents.items() if name.startswith("plan/")]
    assert len(plan["kernels"]) == 1
    plan["commands"] = [c for c in plan["commands"] if c["command"] != "barrier"]
    write_documents(artifact, documents, rest)
    report = weir.run("run", artifact, "--random-inputs=1", "--device=sim", status=1)
    assert re.search(r"^sim: RAW: dispatch 1 \(@\w+, \S*a.mlir:4\), thread \d+ of workgroup \d+ at a.mlir:3:\d+ of an "
                     r"equal kernel, reads byte \d+ of result \"result0\", which dispatch 0 \(@\w+, \S*a.mlir:3\), thread \d+ of "
                     r"workgroup \d+ at a.mlir:3:\d+, writes; ", report, re.M), report
