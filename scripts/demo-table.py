"""Compiles the examples for Vulkan and for processors, runs them on the default device (a GPU, or
else the processor), and prints a table; then trains one of them. Exits 1 when a result is further from what is expected than
its bound."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR = ROOT / "build/release/bin/weir"
OUT = ROOT / "build/demo"

# Max error, relative to the largest expected magnitude of each result. In f32
# one rounding is 6e-8; the longest sums here have 1,024 elements.
BOUND = 1e-5


def weir(*arguments):
    """Runs `weir` and returns what it prints; a failure ends the demo."""
    done = subprocess.run([WEIR, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    if done.returncode == 2 or (done.returncode and "--compare" not in arguments):
        sys.exit(done.returncode)
    return done.stdout


def say(text):
    print(f"demo: {text}", file=sys.stderr, flush=True)


def run_example(name, source, inputs, expected, flags=()):
    """Returns a row of the table. Without expected values, compares with the f64
    reference on the same inputs."""
    artifact = OUT / f"{name}.weir"
    say(f"compiling {source.relative_to(ROOT)}")
    weir("compile", source, *flags, "--target=vulkan,cpu", "-o", artifact)
    if expected is None:
        say(f"running the f64 reference of {name}")
        expected = OUT / f"{name}.expected.safetensors"
        weir("run", artifact, "--device=reference", "--f64", *inputs, f"--output={expected}")
    say(f"running {name}")
    compare = ["--compare", expected, f"--tolerance={BOUND}"]
    run = json.loads(weir("run", artifact, *inputs, *compare, "--steps=5", "--json"))
    plans = json.loads(weir("inspect", artifact, "--json"))["plans"]
    plan = next(plan for plan in plans if plan["target"] == run["device"])
    return run["passes"], [
        run["entry"],
        plan["dispatches"],
        plan["barriers"],
        plan["slots"],
        f"{plan['arena_bytes']:,}",
        f"{plan['pinned_bytes']:,}",
        f"{max(result['relative_error'] for result in run['results']):.1e}",
        f"{run['device_seconds'] * 1e3:.1f} ms",
    ]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    examples = ROOT / "examples"
    rows = [
        run_example("layer_norm", examples / "layer_norm.mlir", ["--random-inputs=1"], None),
        run_example("layer_norm_vjp", examples / "layer_norm_vjp.mlir", ["--random-inputs=1"], None),
        run_example("background_case1", examples / "background_case1.mlir", ["--random-inputs=1"], None),
        run_example(
            "mlp",
            examples / "mlp/mlp.mlir",
            [f"--input={examples / 'mlp/inputs.safetensors'}"],
            examples / "mlp/expected.safetensors",
        ),
        run_example(
            "from_jax",
            examples / "from_jax/mixer.mlir",
            [f"--input={examples / 'from_jax/inputs.safetensors'}"],
            examples / "from_jax/gradients.safetensors",
            ["--grad=mixer", "--entry=mixer.grad"],
        ),
    ]
    table = [
        ["entry", "dispatches", "barriers", "slots", "peak bytes", "all pinned", "largest error", "time"],
        *(row for _, row in rows),
    ]
    widths = [max(len(str(row[i])) for row in table) for i in range(len(table[0]))]
    for row in table:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())
    print(f"\nErrors are relative to the largest expected magnitude, bound {BOUND:.0e}; expected values are f64.")
    say("training mlp, 20 steps of SGD and of AdamW")
    print(flush=True)
    trained = subprocess.run([sys.executable, examples / "mlp_train/train.py", f"--weir={WEIR}"])
    say("training two GPT-2 blocks, 10 steps of AdamW")
    print(flush=True)
    gpt2 = subprocess.run([sys.executable, examples / "gpt2_block_train/train.py", f"--weir={WEIR}"])
    passes = all(passes for passes, _ in rows) and trained.returncode == 0 and gpt2.returncode == 0
    return 0 if passes else 1


if __name__ == "__main__":
    sys.exit(main())
