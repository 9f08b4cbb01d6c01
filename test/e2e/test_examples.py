"""The examples: right on Vulkan and on the reference, and nothing for the
synchronization validation to report."""

import pytest


def test_layer_norm(weir):
    artifact = weir.compile(weir.examples / "layer_norm.mlir")
    weir.compare(artifact, ["--random-inputs=1"], 1e-5, validated=True)


def test_layer_norm_vjp(weir):
    """Planned and pinned alike, though dy is given away."""
    outputs = []
    for name, flags in ("planned", []), ("pinned", ["--no-reuse"]):
        artifact = weir.compile(weir.examples / "layer_norm_vjp.mlir", name, *flags)
        output = weir.compare(artifact, ["--random-inputs=1"], 1e-5, validated=True)
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1], "where values lie changed their bits"


@pytest.mark.parametrize("device", [["--device=reference"], ["--device=reference", "--f64"]])
def test_mlp_on_the_reference(weir, device):
    artifact = weir.compile(weir.examples / "mlp/mlp.mlir")
    weir.run("run", artifact, *device, f"--input={weir.examples}/mlp/inputs.safetensors",
             f"--compare={weir.examples}/mlp/expected.safetensors", "--tolerance=1e-5")


def test_mlp_on_vulkan(weir):
    inputs = f"--input={weir.examples}/mlp/inputs.safetensors"
    outputs = []
    for name, flags in ("planned", []), ("pinned", ["--no-reuse"]):
        artifact = weir.compile(weir.examples / "mlp/mlp.mlir", name, *flags)
        output = weir.folder / f"{name}.safetensors"
        weir.run("run", artifact, inputs, "--steps=3", f"--output={output}",
                 f"--compare={weir.examples}/mlp/expected.safetensors", "--tolerance=1e-5",
                 validated=True)
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1], "where values lie changed their bits"


def test_wrong_expectations_are_noticed(weir):
    artifact = weir.compile(weir.examples / "mlp/mlp.mlir")
    weir.run("run", artifact, f"--input={weir.examples}/mlp/inputs.safetensors",
             f"--compare={weir.examples}/mlp/expected.safetensors", "--tolerance=1e-12", status=1)
