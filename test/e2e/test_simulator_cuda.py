"""The simulator on PTX: silent where all is well, with the reference's numbers, heard where a
barrier is cut whatever the schedule, and not slow to refuse what was edited."""

import json
import re
import subprocess
import time
import zipfile

import pytest

from check import check_cuda
from conftest import BIN
from edits import edit_code, read_documents, write_documents
from graphs import make

STRATEGIES = ["random", "recorded", "latest-first", "writer-first", "split"]


def check(weir, artifact, inputs, *flags, tolerance=1e-5):
    expected = weir.folder / "expected.safetensors"
    weir.run("run", artifact, "--device=reference", "--f64", *inputs, f"--output={expected}")
    return weir.run("run", artifact, "--device=sim", *inputs, *flags, f"--compare={expected}",
                    f"--tolerance={tolerance}")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_layer_norm_vjp(weir, strategy):
    text = (weir.examples / "layer_norm_vjp.mlir").read_text().replace("512x1024", "256x256").replace("1024x", "256x")
    artifact = weir.compile_text(text.replace("tensor<1024x", "tensor<256x"), "a", "--target=cuda")
    check(weir, artifact, ["--random-inputs=1"], f"--sim-strategy={strategy}")


def test_mlp(weir):
    artifact = weir.compile(weir.examples / "mlp/mlp.mlir", "a", "--target=cuda")
    check(weir, artifact, [f"--input={weir.examples}/mlp/inputs.safetensors"])


def test_model_from_jax(weir):
    folder = weir.examples / "from_jax"
    artifact = weir.compile(folder / "mixer.mlir", "a", "--grad=mixer", "--entry=mixer.grad", "--target=cuda")
    check(weir, artifact, [f"--input={folder}/inputs.safetensors"])


def test_gpt2_step(weir):
    artifact = weir.compile(weir.examples / "gpt2_block_train/gpt2.mlir", "a", "--train=adamw:gpt2",
                            "--entry=gpt2.step", "--require-donation", "--target=cuda")
    check(weir, artifact, ["--random-inputs=1"], tolerance=1e-3)


# The last one has kernels that choose among the addresses of sixteen operands.
@pytest.mark.parametrize("seed", [*range(700, 712), 1250127])
def test_random_graph(weir, seed):
    """The bits of SPIR-V from the same sums."""
    check_cuda(weir, make(seed, differentiable=seed % 2 == 0), seed, f"--sim-strategy={STRATEGIES[seed % 5]}")


def test_target_is_chosen(weir):
    """The code for Vulkan, if there is some and nothing else is asked for."""
    (weir.folder / "a.mlir").write_text(make(3).text())
    weir.run("compile", "a.mlir", "--target=vulkan,cuda", "-o", "both.weir")
    weir.run("compile", "a.mlir", "--target=cuda", "-o", "cuda.weir")
    documents, rest = read_documents(weir.folder / "both.weir")
    rest = {name: b"" if name.startswith("code/cuda/") else data for name, data in rest.items()}
    write_documents(weir.folder / "both.weir", documents, rest)
    inputs = ["--random-inputs=1", "--device=sim"]
    weir.run("run", "both.weir", *inputs)
    weir.run("run", "both.weir", *inputs, "--target=cuda", status=2)
    weir.run("run", "cuda.weir", *inputs)
    weir.run("run", "cuda.weir", *inputs, "--target=vulkan", status=2)
    weir.run("run", "cuda.weir", "--random-inputs=1", "--device=reference", "--target=cuda", status=2)


def cut_case1(weir, barrier):
    """Compiles case 1, small, and leaves out one barrier, unless it is None. Returns the artifact and the hazards
    that forced that barrier."""
    text = (weir.examples / "background_case1.mlir").read_text()
    graph, ordered = weir.folder / "graph.mlir", weir.folder / "ordered.mlir"
    graph.write_text(text.replace("512x1024xf32", "64x256xf32").replace("1024xf32", "256xf32"))
    weir.run("compile", graph, "--require-donation", "--target=cuda", "--stop-after=ordered", "-o", ordered)
    lines = ordered.read_text().splitlines()
    places = [i for i, line in enumerate(lines) if "schedule.barrier" in line]
    assert len(places) == 2
    hazards = None
    if barrier is not None:
        hazards = re.findall(r"hazard<(\w+), (\d+) operand \d+ -> (\d+) ", lines[places[barrier]])
        del lines[places[barrier]]
    source, artifact = weir.folder / "cut.mlir", weir.folder / "cut.weir"
    source.write_text("\n".join(lines))
    subprocess.run([BIN / "weir-opt", source, "--weir-emit-ptx", "--weir-pack",
                    f"--weir-test-pack-unchecked=output={artifact}", "-o", weir.folder / "out.mlir"], check=True)
    return artifact, hazards


def test_case_1_has_no_race(weir):
    artifact, _ = cut_case1(weir, None)
    for strategy in STRATEGIES:
        weir.run("run", artifact, "--random-inputs=1", "--device=sim", f"--sim-strategy={strategy}")


def test_case_1_without_a_barrier(weir):
    artifact, hazards = cut_case1(weir, 0)
    assert ("war", "0", "2") in hazards
    schedules = [f"--sim-strategy={strategy}" for strategy in STRATEGIES[1:]]
    schedules += [f"--sim-seed={seed}" for seed in range(20)]
    for schedule in schedules:
        report = weir.run("run", artifact, "--random-inputs=1", "--device=sim", schedule, status=1)
        for kind, first, second in hazards:
            assert re.search(rf"^sim: {kind.upper()}: dispatch {second} \(@.* at code/cuda/\w+.ptx:\d+, \w+ byte \d+ of "
                             rf".*, which dispatch {first} \(@.*; no barrier or wait orders the two", report, re.M), report


LAYER_NORM = """
func.func @f(%x: tensor<5x300xf32>, %g: tensor<300xf32>, %b: tensor<300xf32>) -> tensor<5x300xf32> {
  %y = norm.layer_norm %x gamma(%g : tensor<300xf32>) beta(%b : tensor<300xf32>)
      {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<5x300xf32>
  return %y : tensor<5x300xf32>
}
"""


@pytest.mark.parametrize("with_another", [False, True])
def test_no_barrier_in_a_kernel_can_be_left_out(weir, with_another):
    """Nor be made one of the warp."""
    artifact = weir.compile_text(LAYER_NORM, "a", "--target=cuda")
    weir.run("run", artifact, "--random-inputs=1", "--device=sim")
    number = 0
    while True:
        def edit(text):
            parts = text.split("bar.sync \t0;")
            if number + 1 >= len(parts):
                return text
            between = "bar.warp.sync \t-1;" if with_another else ""
            return "bar.sync \t0;".join(parts[: number + 1]) + between + "bar.sync \t0;".join(parts[number + 1 :])
        cut, name = edit_code(weir, artifact, edit)
        done = subprocess.run([BIN / "weir", "run", cut, "--random-inputs=1", "--device=sim"], capture_output=True,
                              text=True)
        if done.returncode == 0:
            break
        assert re.search(rf"^sim: (RAW|WAR): in dispatch 0 \(@.*, thread \d+ of workgroup \d+ at {name}:\d+ "
                         r"(reads|writes) byte \d+ of workgroup memory, which thread \d+ of workgroup \d+ at "
                         rf"{name}:\d+ (reads|writes); no barrier in the kernel orders the two", done.stdout, re.M)
        number += 1
    assert number > 1


EDITS = {
    "an unknown instruction": (lambda text: text.replace("\tret;", "\tfrobnicate.b32 %r1, %r1;\n\tret;"),
                               "'frobnicate.b32' is not known"),
    "a register never written": (lambda text: text.replace("\tret;", "\tadd.s32 %r1, %nothing, 1;\n\tret;").replace(
        ".reg .b32 \t%r<", ".reg .b32 \t%nothing, %r<"), "reads a register that nothing has written"),
    "10 MB of labels": (lambda text: text.replace("\tret;", "".join(f"L{i}:\n" for i in range(1_100_000)) + "\tret"),
                        "has more than 131072 labels"),
    "a version from the future": (lambda text: re.sub(r"\.version \S+", ".version 99.0", text), "PTX version 99"),
    "an address from nowhere": (lambda text: text.replace("\tret;", "\tst.global.b32 [1234], 1;\n\tret;"),
                                "is made of no parameter or variable"),
    "a jump to nowhere": (lambda text: text.replace("\tret;", "\tbra.uni nowhere;\n\tret;"), "which is not there"),
    "nothing": (lambda text: "", "has no entry"),
    "half of it": (lambda text: text[: len(text) // 2], ""),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_code_is_refused(weir, edit):
    artifact = weir.compile_text(LAYER_NORM, "a", "--target=cuda")
    change, reason = EDITS[edit]
    edited, name = edit_code(weir, artifact, change)
    start = time.monotonic()
    done = subprocess.run([BIN / "weir", "run", edited, "--random-inputs=1", "--device=sim"], capture_output=True, text=True)
    assert time.monotonic() - start < 3, "seconds; under one where nothing else runs"
    assert done.returncode == 2 and name in done.stderr and reason in done.stderr, done.stderr
