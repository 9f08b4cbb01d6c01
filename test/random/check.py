"""Checks that every graph must pass, in pytest and in scripts/random-graphs. `weir` is conftest.py's.
A failure is an AssertionError."""

# Relative to the largest expected magnitude of each result: values are of order one and at
# most a dozen operations deep. Gradients are sums over all of them.
BOUND, GRADIENT_BOUND = 1e-4, 1e-3

# Profiles with other habits than lavapipe's own, for the same device.
PROFILES = {
    "rows_of_workgroups": {"row_mapping": "workgroup", "workgroup_size": 64},
    "rows_of_lanes": {"row_mapping": "lane", "workgroup_size": 16},
    "scalars": {"vector_width": 1, "contraction_rows": 1},
    "short_loops_and_small_grids": {"max_loop_trips": 7, "max_grid": [3, 5, 65535]},
    "nothing_kept": {"private_row_bytes": 1},
    "two_queues": {"queues": 2},
    "busy_units": {"units": 108, "column_parts": 512, "workgroup_size": 64, "row_mapping": "workgroup"},
}


def check_values(weir, graph, seed, profile=None, validated=False, pinned=False):
    """Compiles, which verifies, and compares Vulkan with the reference in f64, the simulator with Vulkan
    bit by bit, and the reference as written with that in f64. With `pinned`, also compares with a plan in
    which no values share bytes, bit by bit."""
    if "arith.remf" in graph.text() and "max_loop_trips" in PROFILES.get(profile, {}):
        profile = None  # its loop is longer, and the compiler says so
    flags = [f"--target=vulkan:{weir.profile(**PROFILES[profile])}"] if profile else []
    artifact, inputs = weir.compile_text(graph.text(), "a", *flags), [f"--random-inputs={seed}"]
    output = weir.compare(artifact, inputs, BOUND, validated=validated)
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
    weir.compare(artifact, [f"--random-inputs={seed}"], GRADIENT_BOUND, validated=validated)


def check_cuda(weir, graph, seed, *flags):
    """Compiles for CUDA, and compares the simulator with the reference in f64, and bit by bit with SPIR-V that has the
    same sums: from the profile of CUDA, and with fused multiply-adds that round once. It must report nothing."""
    (weir.folder / "c.mlir").write_text(graph.text())
    inputs, expected, output = [f"--random-inputs={seed}"], weir.folder / "e.safetensors", weir.folder / "ptx.safetensors"
    weir.run("compile", "c.mlir", "--target=cuda", "-o", "c.weir")
    weir.run("run", "c.weir", "--device=reference", "--f64", *inputs, f"--output={expected}")
    weir.run("run", "c.weir", "--device=sim", *inputs, *flags, f"--compare={expected}", f"--tolerance={BOUND}",
             f"--output={output}")
    weir.run("compile", "c.mlir", f"--target=vulkan:{weir.profile_like_cuda('c.weir')}", "-o", "twin.weir")
    weir.simulate("twin.weir", inputs, output, "--sim-fma")


def get_profile(seed):
    """Returns the name of a profile, or None for the device's own, which every other graph has."""
    return list(PROFILES)[seed // 2 % len(PROFILES)] if seed % 2 else None
