"""The model of devices: what it says of kernels of Weir's, and of kernels whose times are published."""

import json
import subprocess
import sys

import pytest

import ptxas
from conftest import BIN, ROOT

sys.path.append(str(ROOT / "benchmarks/peers"))
import weir_graphs  # noqa: E402

KERNELS = ROOT / "test/model/kernels.ptx"
MATRIX = 4096 * 4096 * 4
needs_ptxas = pytest.mark.skipif(not ptxas.PTXAS, reason="there is no ptxas; run scripts/setup")


def bench(*arguments, assembler=ptxas.PTXAS):
    command = [BIN / "weir", "bench", *map(str, arguments), "--json"]
    if assembler:
        command.append(f"--ptxas={assembler}")
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def refuse(*arguments):
    done = subprocess.run([BIN / "weir", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 2 and not done.stdout
    [sentence] = done.stderr.splitlines()
    return sentence


@pytest.fixture
def model(tmp_path):
    def model(name, *sizes, device="h100", flags=(), **options):
        graph, artifact = tmp_path / "graph.mlir", tmp_path / f"{name}.weir"
        graph.write_text(getattr(weir_graphs, name)(*sizes))
        subprocess.run([BIN / "weir", "compile", graph, "--target=cuda", *flags, "-o", artifact], check=True)
        return bench(artifact, f"--model={device}", **options)
    return model


@needs_ptxas
def test_layer_norm(model):
    result = model("layer_norm", 8192, 1024)
    [kernel] = result["kernels"]
    once = 2 * 8192 * 1024 * 4 + 2 * 1024 * 4
    assert kernel["bytes_once"] == once
    assert kernel["dram_bytes"] == pytest.approx(once, rel=1e-3)  # the weights a few times
    assert kernel["bound"]["by"] == kernel["terms"][0]["name"] == "memory"
    assert kernel["bound"]["seconds"] == pytest.approx(once / 3352e9)
    assert kernel["sectors_used"] == 1 and kernel["conflict_ways"] == 1
    assert {access["width"] for access in kernel["accesses"] if access["memory"].startswith("operand")} == {16}
    assert kernel["resources"]["spilled_bytes"] == 0 < kernel["resources"]["registers"]
    assert kernel["seconds"] > kernel["bound"]["seconds"]
    assert result["seconds"] == pytest.approx(kernel["seconds"] + result["launch_seconds"])
    # Twin: half the rows take half the memory's time.
    [half] = model("layer_norm", 4096, 1024)["kernels"]
    assert half["dram_bytes"] == pytest.approx(once / 2, rel=1e-3)
    assert half["seconds"] < 0.6 * kernel["seconds"]


@needs_ptxas
def test_mlp_reads_transposed_weights_by_columns(model):
    result = model("mlp", 32, 128, 192)
    assert len(result["kernels"]) == 2 and result["dispatches_not_known"] == 0
    assert all(kernel["sectors_used"] < 0.5 for kernel in result["kernels"])
    # Twins: a product whose right factor is as it is read, and workgroups that share slabs of such weights.
    [product] = model("product", 32, 128, 192)["kernels"]
    assert product["sectors_used"] == 1
    shared = model("mlp", 512, 128, 192)["kernels"]
    assert len(shared) == 2 and all(kernel["sectors_used"] == 1 for kernel in shared)


@needs_ptxas
def test_matmul(model):
    def find_product(size, **options):
        """The kernel that multiplies: the first, which takes longest. Another adds up its parts, if there are some."""
        kernel = model("product", size, size, size, **options)["kernels"][0]
        assert kernel["kernel"].startswith("contraction")
        return kernel

    kernel = find_product(1024)
    assert kernel["flops"] == 2 * 1024**3 and kernel["matrix_flops"] == 0
    assert kernel["bound"]["by"] == "fma"
    assert kernel["fills"] < 1  # too few tiles for the device
    # Twins: on another device, and a larger product.
    assert find_product(1024, device="a100")["seconds"] > kernel["seconds"]
    larger = find_product(2048)
    assert larger["fills"] > kernel["fills"]
    assert larger["bound"]["seconds"] / larger["seconds"] > kernel["bound"]["seconds"] / kernel["seconds"]


def make_ptx(name, size, registers, code):
    """Returns a kernel of workgroups of `size`, with %rd1 and %rd2 at its two operands."""
    return f""".version 8.0
.target sm_80
.address_size 64
.visible .entry {name}(.param .u64 from, .param .u64 to)
.reqntid {size}, 1, 1
{{
{registers}  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
{code}}}
"""


BRANCH = make_ptx("branch", 32, """\
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
""", """\
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.b32 %r2, [%rd4];
  setp.ne.b32 %p1, %r2, 5;
  @%p1 bra $L_end;
  add.s64 %rd5, %rd2, %rd3;
  st.global.b32 [%rd5], %r2;
$L_end:
  ret;
""")


@pytest.mark.parametrize("comparison, stores, words", [("ne.b32", 0, "they are assumed to differ"),
                                                       ("ge.s32", 1, "assumed to be taken into the selection")])
def test_branches_on_loaded_data(tmp_path, comparison, stores, words):
    """Loaded numbers equal no other, but may well be less."""
    code = tmp_path / "branch.ptx"
    code.write_text(BRANCH.replace("ne.b32", comparison))
    result = bench(code, "--model=h100", "--entry=branch", "--grid=1", "--workgroup=32", "--bytes=128,128")
    [kernel] = result["kernels"]
    assert sum(access["requests"] for access in kernel["accesses"] if access["kind"] == "store") == stores
    assert any(words in text for text in kernel["assumptions"])


PHASES = """\
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.s32 %r3, %r2, SIZE, %r1;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.f32 %f1, [%rd4];
BARRIER
COMPUTE
  add.s64 %rd5, %rd2, %rd3;
  st.global.f32 [%rd5], %f1;
  ret;
"""


def test_barriers_end_rounds(tmp_path):
    """One of two workgroups of a unit waits for memory before a barrier and computes behind it: both take their time.
    Without the barrier, and with smaller workgroups, of which one computes while another waits, they overlap."""
    def predict(barrier, size):
        code = tmp_path / "phases.ptx"
        compute = "  fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 60
        body = PHASES.replace("SIZE", str(size)).replace("BARRIER", barrier).replace("COMPUTE", compute)
        code.write_text(make_ptx("phases", size, "  .reg .b32 %r<4>;\n  .reg .f32 %f<3>;\n", body))
        result = bench(code, "--model=h200", "--entry=phases", f"--grid={(1 << 24) // size}", f"--workgroup={size}",
                       f"--bytes={1 << 26},{1 << 26}")
        return result["kernels"][0]["seconds"]

    whole = predict("  bar.sync 0;", 1024) / predict("", 1024)
    assert 1.2 < whole < 2
    assert predict("  bar.sync 0;", 64) / predict("", 64) < 1 + (whole - 1) / 4


def test_registers_are_not_known_without_ptxas(model, tmp_path):
    [kernel] = model("copy", 64, 64, assembler=tmp_path / "none")["kernels"]
    assert "is not there" in kernel["resources"]
    assert kernel["seconds"] > 0


@needs_ptxas
@pytest.mark.parametrize("device,entry,grid,workgroup,measured", [
    ("h200", "copy4", "262144", "256", 2 * (1 << 30) / 4300e9),
    ("a6000", "tiled", "128,128", "1024", 2 * 4096**3 / 2980.3e9),
    ("a6000", "vector8", "32,32", "256", 2 * 4096**3 / 18237.3e9),
])
def test_published_times(device, entry, grid, workgroup, measured):
    bytes = f"{1 << 30},{1 << 30}" if entry == "copy4" else f"{MATRIX},{MATRIX},{MATRIX}"
    result = bench(KERNELS, f"--model={device}", f"--entry={entry}", f"--grid={grid}", f"--workgroup={workgroup}",
                   f"--bytes={bytes}")
    assert result["kernels"][0]["seconds"] == pytest.approx(measured, rel=0.3)


def test_devices_are_listed():
    devices = bench("--model=list", assembler=None)
    assert {"a100", "h100", "h200", "l4", "rtx4090"} <= {device["model"] for device in devices}
    for device in devices:
        for figure in device["figures"].values():
            assert figure["source"]
            assert figure["number"] is None or figure["source"] != "not published"


def test_inspect_has_a_column(tmp_path):
    artifact = tmp_path / "a.weir"
    subprocess.run([BIN / "weir", "compile", ROOT / "examples/layer_norm.mlir", "--target=vulkan,cuda", "-o", artifact],
                   check=True)

    def inspect(*options):
        done = subprocess.run([BIN / "weir", "inspect", artifact, *options], capture_output=True, text=True, check=True)
        return done.stdout
    assert "us on h100" in inspect("--model=h100") and "us on" not in inspect()
    plans = {plan["target"]: plan for plan in json.loads(inspect("--model=h100", "--json"))["plans"]}
    assert plans["cuda"]["modelled_seconds"] > 0 and "modelled_seconds" not in plans["vulkan"]


def test_refusals(tmp_path):
    vulkan, newest, both = (tmp_path / f"{name}.weir" for name in ("vulkan", "newest", "both"))
    for target, artifact in (("vulkan", vulkan), ("cuda:sm_90", newest), ("vulkan,cuda", both)):
        subprocess.run([BIN / "weir", "compile", ROOT / "examples/layer_norm.mlir", f"--target={target}", "-o",
                        artifact], check=True)
    names = ", ".join(device["model"] for device in bench("--model=list", assembler=None))
    assert refuse("bench", vulkan, "--model=h10") == (
        f'error: no model of a device is called "h10"; there are {names}')
    assert refuse("bench", vulkan, "--model=h100") == (
        f"error: --model=h100: {vulkan} has no code for cuda; compile it with --target=cuda")
    assert refuse("inspect", vulkan, "--model=h100") == refuse("bench", vulkan, "--model=h100")
    assert refuse("bench", both, "--model=h100", "--device=vulkan") == (
        "error: --model=h100 computes times of code for cuda, and --device=vulkan runs that for vulkan; measure it "
        "without --model")
    assert refuse("bench", both, "--model=h100", "--device=vulkan", "--accesses") == (
        "error: --accesses, --grid, --workgroup and --bytes are for --model without --device")
    assert refuse("bench", newest, "--model=a100") == (
        f"error: --model=a100: the code of {newest} needs a newer GPU than NVIDIA A100 SXM 80 GB; compile it with "
        "--target=cuda:sm_80")
    assert refuse("bench", vulkan, "--model=m1max") == (
        f"error: --model=m1max: the code of {vulkan} is for subgroups of 8 invocations, and Apple M1 Max, 32 cores has "
        "those of 32; compile it for a profile that has such a subgroup_size")
    assert refuse("bench", KERNELS, "--model=h100") == (
        f"error: {KERNELS} is PTX, which has no grid; say --grid=X[,Y[,Z]]")
    assert refuse("bench", KERNELS, "--model=h100", "--grid=1") == (
        f"error: {KERNELS} has 8 entries; name one with --entry=E")
    assert "has no entry point \"none\"" in refuse("bench", KERNELS, "--model=h100", "--grid=1", "--entry=none")
    assert refuse("bench", newest, "--model=h100", "--grid=1") == (
        f"error: --grid, --workgroup and --bytes are for a PTX file; {newest} has its own")
    assert refuse("bench", newest, "--accesses") == "error: --accesses requires --model; see weir bench --help"
    assert refuse("bench") == "error: artifact is required; see weir bench --help"


def test_vulkan(tmp_path):
    """SPIR-V is read as PTX is; what no document says of a device is named, and its registers are not known."""
    artifact = tmp_path / "a.weir"
    subprocess.run([BIN / "weir", "compile", ROOT / "examples/layer_norm.mlir", "-o", artifact], check=True)
    [kernel] = bench(artifact, "--model=a770", assembler=None)["kernels"]
    assert kernel["sectors_used"] == 1 and kernel["assumptions"] == []
    assert kernel["bytes_once"] == 2 * 8192 * 1024 * 4 + 2 * 1024 * 4
    assert kernel["bound"]["seconds"] == pytest.approx(kernel["bytes_once"] / 560e9)
    assert "latencies" in kernel["unknown"] and "SPIR-V" in kernel["resources"]
    # Twin: a product reads one factor by rows that are far apart.
    graph = tmp_path / "graph.mlir"
    graph.write_text(weir_graphs.product_bt(64, 64, 64))
    subprocess.run([BIN / "weir", "compile", graph, "-o", artifact], check=True)
    [product] = bench(artifact, "--model=a770", assembler=None)["kernels"]
    assert product["sectors_used"] < 1 and product["flops"] == 2 * 64**3
