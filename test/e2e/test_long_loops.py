"""Invocations that make more trips than Mesa's driver for CPUs, which leaves out the rest and says nothing. Without
weir-limit-loop-trips these kernels are refused."""

import json

WEIGHTS = """
func.func @f(%x: tensor<1x1x300x302xf32>, %w: tensor<1x1x1x3xf32>) -> tensor<1x1x300x300xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x1x300x300xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1x300x300xf32>) -> tensor<1x1x300x300xf32>
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x1x300x302xf32>, tensor<1x1x1x3xf32>)
    outs(%i : tensor<1x1x300x300xf32>) -> tensor<1x1x300x300xf32>
  return %r : tensor<1x1x300x300xf32>
}
"""

# A row for each invocation: 70,001 trips, which no factor divides.
ROWS = """
func.func @f(%x: tensor<3x70001xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %r = linalg.reduce ins(%x : tensor<3x70001xf32>) outs(%i : tensor<3xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      %s = arith.addf %b, %a : f32
      linalg.yield %s : f32
    }
  return %r : tensor<3xf32>
}
"""


def check(weir, artifact, inputs):
    weir.compare(artifact, inputs, 1e-3)
    claims = json.loads(weir.run("verify", artifact, "--json"))["claims"]
    loops = [claim for claim in claims if claim["claim"] == "loops"]
    assert loops and all(claim["holds"] and claim["taken_from_compiler"] == 0 for claim in loops)
    assert any(claim["proved_from_code"] for claim in loops)


def test_gradient_of_weights_by_90000_places(weir):
    artifact = weir.compile_text(WEIGHTS, "a", "--vjp=f", "--entry=f.vjp")
    check(weir, artifact, ["--random-inputs=1"])


def test_rows_of_invocations(weir):
    profile = weir.profile(row_mapping="lane", vector_width=1)
    artifact = weir.compile_text(ROWS, "a", f"--target=vulkan:{profile}")
    check(weir, artifact, ["--random-inputs=2"])
