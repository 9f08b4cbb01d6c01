"""Trains two GPT-2 blocks for 10 steps of AdamW on the default Vulkan device.

Compares every gradient of the first step, the loss of each step and the parameters after the
last with PyTorch's in double (make.py). Exits 1 where one differs by more than 1e-4 of the
largest magnitude there is.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
from safetensors.numpy import load_file, save_file

FOLDER = pathlib.Path(__file__).resolve().parent
BOUND = 1e-4


def find_error(found, expected):
    """The largest difference, of the largest magnitude of all."""
    largest = max(numpy.abs(value).max() for value in expected.values())
    return float(max(numpy.abs(found[name] - value).max() for name, value in expected.items()) / largest)


def drop_key_biases(parameters):
    """Their gradient is 0 in theory, as softmax does not see them: AdamW makes whole steps of its rounding."""
    return {name: numpy.delete(value, numpy.s_[len(value) // 3 : 2 * len(value) // 3]) if "qkv.bias" in name else value
            for name, value in parameters.items()}


def compare_gradients(weir, folder):
    artifact, output = folder / "gradients.weir", folder / "gradients.safetensors"
    weir("compile", FOLDER / "gpt2.mlir", "--grad=gpt2", "--entry=gpt2.grad", "-o", artifact)
    weir("run", artifact, f"--input={FOLDER / 'inputs.safetensors'}", f"--output={output}")
    expected = load_file(FOLDER / "gradients.safetensors")
    del expected["loss"]
    return find_error(load_file(output), expected)


def train(weir, folder):
    """Returns each step's loss, and the parameters after the last step."""
    artifact, state, output = (folder / name for name in ("train.weir", "state.safetensors", "after.safetensors"))
    weir("compile", FOLDER / "gpt2.mlir", "--train=adamw:gpt2", "--entry=gpt2.step", "--require-donation", "-o",
         artifact)
    steps = json.loads((FOLDER / "steps.json").read_text())
    values = load_file(FOLDER / "inputs.safetensors")
    parameters = [name for name in values if name not in ("tokens", "next")]
    values |= {f"{name}.{moment}": numpy.zeros_like(values[name])
               for name in parameters for moment in ("first_moment", "second_moment")}
    values |= {name: numpy.array(rate, numpy.float32) for name, rate in steps["hyperparameters"].items()}
    values["step"] = numpy.zeros((), numpy.float32)
    losses = []
    for _ in steps["losses"]:
        save_file(values, state)
        weir("run", artifact, f"--input={state}", f"--output={output}")
        found = load_file(output)
        losses.append(float(found["loss"]))
        values |= {name: value for name, value in found.items() if name in values}
    return losses, steps["losses"], {name: values[name] for name in parameters}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default=FOLDER.parents[1] / "build/release/bin/weir")
    args = parser.parse_args()

    def weir(*arguments):
        subprocess.run([args.weir, *arguments], check=True, stdout=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as folder:
        gradients = compare_gradients(weir, pathlib.Path(folder))
        losses, expected, parameters = train(weir, pathlib.Path(folder))
    print(f"{'step':>4} {'loss':>12} {'PyTorch':>12}")
    for step, (loss, reference) in enumerate(zip(losses, expected), 1):
        print(f"{step:>4} {loss:12.8f} {reference:12.8f}")
    errors = {
        "gradients": gradients,
        "losses": find_error({"": numpy.array(losses)}, {"": numpy.array(expected)}),
        "parameters": find_error(
            drop_key_biases(parameters), drop_key_biases(load_file(FOLDER / "trained.safetensors"))),
    }
    for name, error in errors.items():
        print(f"{name} off by {error:.1e} of the largest")
    return 0 if max(errors.values()) <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
