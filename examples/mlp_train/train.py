"""Trains the MLP of ../mlp for 20 steps on the default Vulkan device, and compares loss and
parameters with PyTorch's in double (expected.json) on the way. Exits 1 where they differ by
more than 1e-4 of the largest magnitude of a tensor."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
from safetensors.numpy import load_file, save_file

FOLDER = pathlib.Path(__file__).resolve().parent
MLP = FOLDER.parent / "mlp"
BOUND = 1e-4
# State begins at 0.
STATES = {"sgd": [], "adamw": ["first_moment", "second_moment"]}


def make_inputs(optimizer, hyperparameters):
    inputs = load_file(MLP / "inputs.safetensors")
    parameters = [name for name in inputs if name not in ("x", "target")]
    inputs |= {f"{name}.{state}": numpy.zeros_like(inputs[name]) for name in parameters for state in STATES[optimizer]}
    if optimizer == "adamw":
        inputs["step"] = numpy.zeros((), numpy.float32)
    return inputs | {name: numpy.array(rate, numpy.float32) for name, rate in hyperparameters.items()}


def compare(found, expected):
    """Returns the largest error of the loss and of any parameter, relative."""
    errors = {"loss": abs(found["loss"] - expected["loss"]) / abs(expected["loss"])}
    for name, tensor in expected.items():
        if name == "loss":
            continue
        flat, values = found[name].reshape(-1), numpy.array(tensor["values"])
        places = [i * (len(flat) - 1) // (len(values) - 1) for i in range(len(values))]
        errors[name] = numpy.abs(flat[places] - values).max() / tensor["largest"]
    return float(errors.pop("loss")), float(max(errors.values()))


def train(weir, optimizer, flags, folder, output):
    """Returns the rows of the table, and writes the last step's results to `output`."""
    expected = json.loads((FOLDER / "expected.json").read_text())[optimizer]
    artifact, state = folder / f"{optimizer}.weir", folder / f"{optimizer}.inputs.safetensors"
    subprocess.run([weir, "compile", MLP / "mlp.mlir", f"--train={optimizer}:mlp_loss", "--entry=mlp_loss.step",
                    "-o", artifact, *flags], check=True)
    values = make_inputs(optimizer, expected["hyperparameters"])
    rows, done = [], 0
    for step, kept in expected["after"].items():
        save_file(values, state)
        subprocess.run([weir, "run", artifact, f"--steps={int(step) - done}", f"--input={state}",
                        f"--output={output}"], check=True, stdout=subprocess.DEVNULL)
        found, done = load_file(output), int(step)
        values |= {name: value for name, value in found.items() if name in values}
        rows.append([optimizer, step, float(found["loss"]), kept["loss"], *compare(found, kept)])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default=FOLDER.parents[1] / "build/release/bin/weir")
    parser.add_argument("--optimizer", choices=STATES, action="append", help="default: each")
    parser.add_argument("--no-reuse", action="store_true", help="give every value bytes of its own")
    parser.add_argument("--output", type=pathlib.Path, help="a folder for OPTIMIZER.safetensors, the last results")
    args = parser.parse_args()
    # A parameter that is not updated in place is an error.
    flags = ["--no-reuse"] if args.no_reuse else ["--require-donation"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for optimizer in args.optimizer or STATES:
            output = (args.output or pathlib.Path(folder)) / f"{optimizer}.safetensors"
            rows += train(args.weir, optimizer, flags, pathlib.Path(folder), output)
    print(f"{'optimizer':10} {'step':>4} {'loss':>12} {'PyTorch':>12} {'loss off':>9} {'parameters off':>15}")
    for optimizer, step, loss, expected, loss_error, error in rows:
        print(f"{optimizer:10} {step:>4} {loss:12.8f} {expected:12.8f} {loss_error:9.1e} {error:15.1e}")
    return 0 if all(max(row[4:]) <= BOUND for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
