"""Checks that every graph must pass, in pytest and in scripts/random-graphs. `weir` is conftest.py's.
A failure is an AssertionError."""

import re
import subprocess
import zipfile

import numpy
import spirv
from safetensors.numpy import load_file, save_file

from conftest import BIN, SECOND_DRIVER, drop_rounding

# Relative to the largest expected magnitude of each result: values are of order one and at
# most a dozen operations deep. Gradients are sums over all of them.
BOUND, GRADIENT_BOUND = 1e-4, 1e-3

# Profiles with other habits than lavapipe's own, for the same device.
PROFILES = {
    "rows_of_workgroups": {"row_mapping": "workgroup", "workgroup_size": 64},
    "rows_of_lanes": {"row_mapping": "lane", "workgroup_size": 16},
    "scalars": {"vector_width": 1, "contraction_rows": 1},
    "short_loops_and_small_grids": {"max_loop_trips": 60, "max_grid": [3, 5, 65535]},
    "nothing_kept": {"private_row_bytes": 1},
    "two_queues": {"queues": 2},
    "busy_units": {"units": 108, "column_parts": 512, "workgroup_size": 64, "row_mapping": "workgroup"},
}


def check_values(weir, graph, seed, profile=None, validated=False, pinned=False):
    """Compiles, which verifies, and compares Vulkan with the reference in f64, the simulator with Vulkan
    bit by bit, and the reference as written with that in f64. With `pinned`, also compares with a plan in
    which no values share bytes, bit by bit."""
    flags = [f"--target=vulkan:{weir.profile(**PROFILES[profile])}"] if profile else []
    artifact, inputs = weir.compile_text(graph.text(), "a", *flags), [f"--random-inputs={seed}"]
    output = weir.compare(artifact, inputs, BOUND, validated=validated, has_order_one=True)
    weir.run("run", artifact, "--device=reference", *inputs, f"--compare={weir.folder / 'expected.safetensors'}",
             f"--tolerance={BOUND}")
    if pinned:
        other = weir.folder / "pinned.safetensors"
        weir.run("run", weir.compile_text(graph.text(), "pinned", "--no-reuse", *flags), *inputs, f"--output={other}")
        assert output.read_bytes() == other.read_bytes(), "where values lie changed their bits"


def check_gradients(weir, graph, seed, validated=False):
    """Compares the gradients of all arguments with differences, and then everywhere as `check_values` does."""
    artifact = weir.compile_text(graph.text(), "a", "--vjp=f", "--entry=f.vjp")
    if graph.is_smooth():
        weir.run("gradcheck", "a.mlir", "--entry=f", f"--seed={seed}")
    weir.compare(artifact, [f"--random-inputs={seed}"], GRADIENT_BOUND, validated=validated, has_order_one=True)


def check_cuda(weir, graph, seed, *flags):
    """Compiles for CUDA, and compares the simulator with the reference in f64, and bit by bit with SPIR-V that has the
    same sums: from the profile of CUDA, and with fused multiply-adds that round once. It must report nothing.

    GELU by the error function has another form, with other bits, where the target itself has such multiply-adds. Where
    rows are copied ahead, columns may have parts of other lengths."""
    (weir.folder / "c.mlir").write_text(graph.text())
    inputs, expected, output = [f"--random-inputs={seed}"], weir.folder / "e.safetensors", weir.folder / "ptx.safetensors"
    weir.run("compile", "c.mlir", "--target=cuda", "-o", "c.weir")
    weir.run("run", "c.weir", "--device=reference", "--f64", *inputs, f"--output={expected}")
    weir.run("run", "c.weir", "--device=sim", *inputs, *flags, f"--compare={expected}", f"--tolerance={BOUND}",
             f"--output={output}")
    with zipfile.ZipFile(weir.folder / "c.weir") as archive:
        has_columns = any(re.match(r"code/cuda/(row_)?column_", name) for name in archive.namelist())
    if has_columns or re.search(r"norm\.gelu(_vjp)? [^{:]*:", graph.text()):
        return
    weir.run("compile", "c.mlir", f"--target=vulkan:{weir.profile_like_cuda('c.weir')}", "-o", "twin.weir")
    weir.simulate("twin.weir", inputs, output, "--sim-fma")


def check_drivers(weir, graph, seed, has_gradients):
    """Compiles one artifact for the default driver and the smallest profile. Compares the default driver and the second one
    with the reference in f64. Returns whether the smallest profile can have the graph: not all with f64."""
    source, artifact, expected = [weir.folder / name for name in ("a.mlir", "a.weir", "expected.safetensors")]
    source.write_text(graph.text())
    flags = ["--vjp=f", "--entry=f.vjp"] if has_gradients else []
    inputs, bound = [f"--random-inputs={seed}"], GRADIENT_BOUND if has_gradients else BOUND
    compare = [f"--compare={expected}", f"--tolerance={bound}"]
    command = [BIN / "weir", "compile", source, "--target=vulkan,vulkan:minimum", "-o", artifact, "--against-graph=never"]
    done = subprocess.run([*map(str, command), *flags], cwd=weir.folder, capture_output=True, text=True)
    fits = done.returncode == 0
    if not fits:
        assert done.returncode == 2 and "f64" in done.stderr + graph.text(), f"compile for minimum\n{done.stderr}"
        weir.run("compile", source, "-o", artifact, *flags)
    weir.run("run", artifact, "--device=reference", "--f64", *inputs, f"--output={expected}")
    drop_rounding(expected)
    output = weir.folder / "output.safetensors"
    for driver in [None, SECOND_DRIVER] if fits else [None]:
        try:
            weir.run("run", artifact, *inputs, *compare, f"--output={output}", driver=driver)
        except AssertionError:
            if not (output.exists() and differ_by_rounding(output, expected, bound)):
                raise
    return fits


def differ_by_rounding(output, expected, bound):
    """Whether results in f32 are as close to those in f64 as they can be where their values, of order one, cancel out: a
    result of 1e-5 has the errors of what it is the difference of."""
    results, exact = load_file(output), load_file(expected)

    def is_close(name):
        error = max(bound * numpy.abs(exact[name]).max(initial=0), 1e-6) if exact[name].dtype.kind == "f" else 0
        return numpy.allclose(results[name], exact[name], rtol=0, atol=error, equal_nan=True)

    return all(map(is_close, exact))


# Numbers of arguments: some are equal, two of them are 0, and two are denormal in f32.
EDGES = [numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1e-42, -1e-42, 1.0, 1.0, -1.0, 0.5]


def make_edges(graph, seed):
    """Returns arguments whose floats are edges, few or many of them, among numbers of order one."""
    generator = numpy.random.default_rng(seed)
    share, tensors = generator.choice([0.05, 0.3]), {}
    for place, argument in enumerate(graph.arguments.values()):
        if argument.element in ("f32", "f64", "f16"):
            dtype = numpy.dtype(f"float{argument.element[1:]}")
            values, edges = generator.standard_normal(argument.shape), generator.choice(EDGES, argument.shape)
            tensors[f"arg{place}"] = numpy.where(generator.random(argument.shape) < share, edges, values).astype(dtype)
        else:
            dtype = bool if argument.element == "i1" else f"int{argument.element[1:]}"
            tensors[f"arg{place}"] = generator.integers(0, 2, argument.shape).astype(dtype)
    return tensors


def check_edges(weir, graph, seed):
    """Compares Vulkan, the CPU and the reference as written with the reference in f64, on arguments with NaN, infinities and
    numbers near 0: each has the same NaNs and infinities, and finite numbers within the bound. The simulator has Vulkan's."""
    (weir.folder / "edges.mlir").write_text(graph.text())
    weir.run("compile", "edges.mlir", "--target=vulkan,cpu:native", "-o", "edges.weir")
    save_file(make_edges(graph, seed), weir.folder / "edges.safetensors")

    def run(device, *flags):
        output = weir.folder / f"edges.{device}.safetensors"
        weir.run("run", "edges.weir", f"--device={device}", *flags, "--input=edges.safetensors", f"--output={output}")
        return load_file(output)

    expected = run("reference", "--f64")
    results = {device: run(device) for device in ("reference", "vulkan", "cpu", "sim")}
    for name, right in expected.items():
        scale = numpy.abs(right[numpy.isfinite(right)]).max(initial=1.0)
        for device, found in results.items():
            found = found[name].astype(right.dtype)
            with numpy.errstate(invalid="ignore"):
                same = (found == right) | (numpy.isnan(found) & numpy.isnan(right)) | (numpy.abs(found - right) <= BOUND * scale)
            assert same.all(), f"{device} has other edges of {name}: {found[~same][:3]}, and the reference {right[~same][:3]}"
        vulkan, simulated = results["vulkan"][name], results["sim"][name]
        same = (vulkan == simulated) | ((vulkan != vulkan) & (simulated != simulated))
        assert same.all(), f"the simulator has other edges of {name}"


HAVE_FLOAT64 = ["nvidia", "rdna2", "rdna3", "gcn", "gen9"]


def list_families():
    """Returns the built-in profiles of families of Vulkan GPUs, and whether each has f64, by name."""
    text = subprocess.run([BIN / "weir", "devices", "--api=vulkan"], capture_output=True, text=True, check=True).stdout
    names = [name for name in re.findall(r"^  vulkan:(\w+)$", text, re.MULTILINE) if name != "lavapipe"]
    assert len(names) > 10, text
    return {name: name in HAVE_FLOAT64 for name in names}


def check_family(weir, source, family, has_float64, inputs, bound=BOUND, flags=()):
    """Compiles for a family of GPUs, of which none need be here. The code is valid, and right in the simulator. Returns
    None, or why the family cannot have the graph: "f64" or "buffers"."""
    command = [BIN / "weir", "compile", source, f"--target=vulkan:{family}", "-o", f"{family}.weir",
               "--against-graph=never", *flags]
    done = subprocess.run([*map(str, command)], cwd=weir.folder, capture_output=True, text=True)
    if done.returncode:
        assert done.returncode == 2 and done.stderr.startswith("error: "), f"{family}: {done.stderr}"
        if "f64" in done.stderr and not has_float64:
            return "f64"
        if re.search(rf"has \d+ operands; target {family} binds at most (4|8|16)$", done.stderr, re.MULTILINE):
            return "buffers"
        raise AssertionError(f"{family}: {done.stderr}")
    artifact, expected = weir.folder / f"{family}.weir", weir.folder / "expected.safetensors"
    spirv.validate(artifact, weir.folder)
    if not expected.exists():
        weir.run("run", artifact, "--device=reference", "--f64", *inputs, f"--output={expected}")
    weir.run("run", artifact, "--device=sim", *inputs, f"--compare={expected}", f"--tolerance={bound}")
    return None


def get_profile(seed):
    """Returns the name of a profile, or None for the device's own, which every other graph has."""
    return list(PROFILES)[seed // 2 % len(PROFILES)] if seed % 2 else None
