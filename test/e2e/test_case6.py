"""Background case 6: the gradient of a table is joined from six sums that the backward of two norms leaves. Every byte
of it is written, and a sum that goes elsewhere is found before it runs."""

import re
import subprocess

import numpy
import pytest
from safetensors.numpy import load_file, save_file

from case6 import make_graph
from conftest import BIN
from mutants import list_mutants
from replays import check_replays
from test_weir_check import ask_check

SIZES = [(24, 40), (1, 5), (7, 13), (300, 5), (65, 129), (512, 96)]
FLAGS = ["--vjp=f", "--entry=f.vjp"]
PACKING = ["--weir-schedule", "--weir-donate-buffers", "--weir-plan-memory", "--weir-insert-barriers",
           "--weir-emit-spirv", "--weir-pack"]


def expect(x, table, dy):
    """The results in f64, by formulas written by hand."""
    def normalize(x):
        deviation = numpy.sqrt(x.var(1, keepdims=True) + numpy.float32(1e-5).astype(numpy.float64))
        return (x - x.mean(1, keepdims=True)) / deviation, deviation

    def pull(dn, n, deviation):
        return (dn - dn.mean(1, keepdims=True) - n * (dn * n).mean(1, keepdims=True)) / deviation

    shift1, scale1, gate1, shift2, scale2, gate2 = table
    n1, deviation1 = normalize(x)
    h1 = n1 * (1 + scale1) + shift1
    between = x + gate1 * h1
    n2, deviation2 = normalize(between)
    h2 = n2 * (1 + scale2) + shift2
    dh2 = dy * gate2
    dbetween = dy + pull(dh2 * (1 + scale2), n2, deviation2)
    dh1 = dbetween * gate1
    dtable = [dh1.sum(0), (dh1 * n1).sum(0), (dbetween * h1).sum(0), dh2.sum(0), (dh2 * n2).sum(0), (dy * h2).sum(0)]
    return {"y": between + gate2 * h2, "grad.x": dbetween + pull(dh1 * (1 + scale1), n1, deviation1),
            "grad.table": numpy.stack(dtable)}


def make_inputs(rows, width, seed=6):
    random = numpy.random.default_rng(seed)
    shapes = {"x": (rows, width), "table": (6, width), "cotangent.y": (rows, width)}
    return {name: random.standard_normal(shape).astype(numpy.float32) for name, shape in shapes.items()}


def check(found, inputs):
    for name, value in expect(*(tensor.astype(numpy.float64) for tensor in inputs.values())).items():
        assert numpy.abs(found[name] - value).max() < 1e-5 * numpy.abs(value).max(), name


@pytest.mark.parametrize("rows, width", SIZES)
def test_gradients_of_the_table(weir, rows, width):
    artifact, inputs = weir.compile_text(make_graph(rows, width), "a", *FLAGS), make_inputs(rows, width)
    save_file(inputs, weir.folder / "in.safetensors")
    check(load_file(weir.compare(artifact, ["--input=in.safetensors"], 1e-5, validated=True)), inputs)


def test_no_run_leaves_its_gradient_to_the_next(weir):
    """Bytes that a run does not write hold what the run before left there."""
    artifact = weir.compile_text(make_graph(24, 40), "a", *FLAGS)
    check_replays(weir, artifact, [make_inputs(24, 40, seed) for seed in range(3)])


def find_objections(weir, artifact):
    """Returns what the two checkers and the simulator say of an artifact: the claim, the verdict, the reports."""
    report = weir.run("verify", artifact, status=1)
    verdict = ask_check(artifact)
    claims = {claim for (_, _, claim), holds in verdict.items() if not holds}
    return report, claims, weir.run("run", artifact, "--random-inputs=1", "--device=sim", status=1)


@pytest.fixture
def dispatches(weir):
    """The lines of the dispatches level, and where the six views into the table's gradient are made."""
    path = weir.folder / "graph.mlir"
    path.write_text(make_graph(24, 40))
    weir.run("compile", path, *FLAGS, "--stop-after=dispatches", "-o", "dispatches.mlir")
    lines = (weir.folder / "dispatches.mlir").read_text().splitlines()
    return lines, [i for i, line in enumerate(lines) if re.search(r"memref.subview %arg5\[", line)]


def pack(weir, lines, name):
    """Packs the text of the dispatches level, whatever it computes."""
    path, artifact = weir.folder / f"{name}.mlir", weir.folder / f"{name}.weir"
    path.write_text("\n".join(lines))
    subprocess.run([BIN / "weir-opt", path, *PACKING, f"--weir-test-pack-unchecked=output={artifact}", "-o",
                    weir.folder / "out.mlir"], check=True)
    return artifact


def test_right_as_it_is(weir, dispatches):
    lines, views = dispatches
    assert len(views) == 6
    artifact, inputs = pack(weir, lines, "right"), make_inputs(24, 40)
    weir.run("verify", artifact)
    assert all(ask_check(artifact).values())
    save_file(inputs, weir.folder / "in.safetensors")
    weir.run("run", artifact, "--input=in.safetensors", "--device=sim", "--output=out.safetensors")
    check(load_file(weir.folder / "out.safetensors"), inputs)


@pytest.mark.parametrize("chunk", range(6))
def test_a_sum_under_a_new_name(weir, dispatches, chunk):
    """The mistake of PyTorch's compiler: the last sum is given a buffer of its own, and its view is never written."""
    lines, views = dispatches
    wrong = list(lines)
    wrong[views[chunk]] = ("    %other = memref.alloc() : memref<240xf32>\n"
                           + wrong[views[chunk]].replace("subview %arg5", "subview %other"))
    begin = 160 * chunk

    # The compiler refuses it and writes nothing.
    cut, artifact = weir.folder / "cut.mlir", weir.folder / "cut.weir"
    cut.write_text("\n".join(wrong))
    done = subprocess.run([BIN / "weir", "compile", cut, "--start-from=dispatches", "-o", artifact],
                          capture_output=True, text=True)
    assert done.returncode == 2 and not artifact.exists()
    lacks = rf'result "grad.table" is to be in bytes \[{begin}, {begin + 160}\) of result "grad.table" at the end'
    assert re.search(rf"contents: {lacks}, which nothing wrote before", done.stderr), done.stderr

    report, claims, reports = find_objections(weir, pack(weir, wrong, "packed"))
    assert re.search(rf"contents +FAILS +{lacks}", report), report
    assert claims == {"contents"}
    assert re.search(r'^sim: result: .*"grad.table"', reports, re.M), reports


def test_any_write_to_new_bytes(weir):
    """As mutants of the artifact: each operand that either kernel writes."""
    artifact, mutant = weir.compile_text(make_graph(24, 40), "a", *FLAGS), weir.folder / "mutant.weir"
    rows = [row for row in list_mutants(BIN, artifact) if row["kind"] == "divert-write"]
    assert len(rows) == 14 and {row["class"] for row in rows} == {"behavior"}
    for row in rows:
        subprocess.run([BIN / "weir-mutate", artifact, f"--apply={row['id']}", "-o", mutant], check=True)
        report, claims, reports = find_objections(weir, mutant)
        assert re.search("contents +FAILS", report) and "contents" in claims, row
        assert re.search("^sim: (dead|never written|result): ", reports, re.M), row
