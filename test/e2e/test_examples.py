"""The examples: right on Vulkan and on the reference, and nothing for the
synchronization validation to report."""

import subprocess
import sys

import pytest
from conftest import BIN


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


def test_gpt2_trains_like_pytorch(weir):
    """Every gradient, ten steps of AdamW, and every parameter updated in place."""
    done = subprocess.run([sys.executable, weir.examples / "gpt2_block_train/train.py", f"--weir={BIN / 'weir'}"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_model_from_jax(weir):
    folder = weir.examples / "from_jax"
    artifact = weir.compile(folder / "mixer.mlir", "a", "--grad=mixer", "--entry=mixer.grad")
    run = ["run", artifact, f"--input={folder}/inputs.safetensors", f"--compare={folder}/gradients.safetensors"]
    weir.run(*run, "--tolerance=1e-5", validated=True)
    weir.run(*run, "--tolerance=1e-12", status=1)


def test_wrong_expectations_are_noticed(weir):
    artifact = weir.compile(weir.examples / "mlp/mlp.mlir")
    weir.run("run", artifact, f"--input={weir.examples}/mlp/inputs.safetensors",
             f"--compare={weir.examples}/mlp/expected.safetensors", "--tolerance=1e-12", status=1)
