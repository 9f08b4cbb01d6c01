"""Random graphs: compiled, verified, and run on Vulkan against the f64 reference."""

import pytest

from graphs import make_graph

# Relative to the largest expected magnitude of each result: values are of order
# one and at most a dozen operations deep.
BOUND = 1e-4


@pytest.mark.parametrize("seed", range(80))
def test_random_graph(weir, seed):
    text = make_graph(seed)
    artifact = weir.compile_text(text)
    inputs = [f"--random-inputs={seed}"]
    output = weir.compare(artifact, inputs, BOUND, validated=seed % 4 == 0)
    if seed % 4 == 1:  # placement must not change a bit
        pinned = weir.compile_text(text, "pinned", "--no-reuse")
        other = weir.folder / "pinned.safetensors"
        weir.run("run", pinned, *inputs, f"--output={other}")
        assert output.read_bytes() == other.read_bytes()


def test_contraction_of_one_product(weir):
    """Its domain has no dimension to sum over."""
    artifact = weir.compile_text("""
func.func @f(%a: tensor<5x1xf32>, %b: tensor<1x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5x8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x8xf32>) -> tensor<5x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<5x1xf32>, tensor<1x8xf32>) outs(%fill : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %c : tensor<5x8xf32>
}
""")
    weir.compare(artifact, ["--random-inputs=1"], 1e-6)


# Other habits than lavapipe's own, on the same device.
PROFILES = {
    "rows_of_workgroups": {"row_mapping": "workgroup", "workgroup_size": 64},
    "rows_of_lanes": {"row_mapping": "lane", "workgroup_size": 16},
    "scalars": {"vector_width": 1, "contraction_rows": 1},
    "short_loops_and_small_grids": {"max_loop_trips": 7, "max_grid": [3, 5, 65535]},
    "nothing_kept": {"private_row_bytes": 1},
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("seed", range(100, 112))
def test_random_graph_with_profile(weir, profile, seed):
    path = weir.profile(**PROFILES[profile])
    artifact = weir.compile_text(make_graph(seed), "a", f"--target=vulkan:{path}")
    weir.compare(artifact, [f"--random-inputs={seed}"], BOUND)
