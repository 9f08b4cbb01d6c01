#!/usr/bin/env python3
"""Times kernels of Weir beside PyTorch on the same device: beside_torch.py FOLDER [--device=cuda] [--model=h100].

FOLDER is what gather.py made. Each benchmark is computed by `weir run` and by PyTorch from the same arguments, and must
agree; then `weir bench` measures and predicts each of its kernels, and eager PyTorch, torch.compile and a copy of as many
bytes as the arguments and results have are measured. Prints a table and writes FOLDER/results.json. Exits with 1 if a
benchmark disagrees or fails.
Needs PyTorch and NumPy; times PyTorch on the processor where it has no GPU."""

import argparse
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
for place in (HERE / "peers", HERE.parent / "peers"):
    sys.path.append(str(place))
import cases  # noqa: E402
import with_torch  # noqa: E402

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
SPELLINGS = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64"}
TOLERANCES = {"f32": 1e-4, "tf32": 1e-2, "bf16": 3e-2}  # of the largest element
CALLS = 20  # of a round on a GPU
TITLES = ("benchmark", "kernel", "times", "predicted us", "measured us", "predicted / measured", "eager us",
          "measured / eager", "compiled us", "measured / compiled", "copy us", "copy / measured")


def write_tensors(path, tensors):
    """Writes a safetensors file."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().cpu()
        raw = (raw.view(torch.int16) if raw.dtype == torch.bfloat16 else raw).numpy().tobytes()
        header[name] = {"dtype": SPELLINGS[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)


def read_tensors(path):
    """Reads a safetensors file. Returns its tensors by name, in order."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    found, types = {}, {spelling: dtype for dtype, spelling in SPELLINGS.items()}
    for name, tensor in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            made = torch.frombuffer(bytearray(raw[8 + size + begin:8 + size + end]), dtype=types[tensor["dtype"]])
            found[name] = made.reshape(tensor["shape"])
    return found


def run_weir(options, *arguments):
    """Returns what `weir` prints. Errors: RuntimeError with what it says."""
    done = subprocess.run([str(options.weir), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"weir ended with status {done.returncode}")
    return done.stdout


def time_call(options, call):
    """Returns the seconds of a call in the fastest round, by the device's clock if it is a GPU.

    There a round is many calls: the host submits the next one while one runs."""
    for _ in range(3):
        call()
    fastest = float("inf")
    for _ in range(options.rounds):
        if options.torch_device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            torch.cuda.synchronize()
            took = begin.elapsed_time(end) * 1e-3 / CALLS
        else:
            start = time.perf_counter()
            call()
            took = time.perf_counter() - start
        fastest = min(fastest, took)
    return fastest


class Twin:
    """The same computation in PyTorch."""

    def __init__(self, benchmark, device):
        self.kind, self.precision = benchmark["kind"], benchmark["precision"]
        case = cases.Case("", "", self.kind, benchmark["sizes"])
        dtype = TYPES[benchmark["type"]]
        self.inputs = {name: torch.from_numpy(numpy.asarray(value)) for name, value in case.make_inputs().items()}
        self.inputs = {name: (value.to(dtype) if value.is_floating_point() else value).to(device)
                       for name, value in self.inputs.items()}

    def make(self, compile):
        """Returns a function without arguments; `compile` is given what torch.compile would be."""
        torch.backends.cuda.matmul.allow_tf32 = self.precision == "tf32"
        values = list(self.inputs.values())
        if not self.kind.endswith("_vjp"):
            forward = compile(with_torch.FORWARDS[self.kind])
            return lambda: forward(*values)
        forward = with_torch.FORWARDS[self.kind.removesuffix("_vjp")]
        given = with_torch.OPERANDS.get(self.kind, lambda *operands: operands)(*values[1:])
        wanted = [value.detach().requires_grad_() if value.is_floating_point() else value for value in given]
        y = compile(forward)(*wanted)
        floats = [value for value in wanted if value.is_floating_point()]
        return lambda: torch.autograd.grad(y, floats, values[0], retain_graph=True)

    def compute(self):
        made = self.make(lambda function: function)()
        return list(made) if isinstance(made, (tuple, list)) else [made]


def compare(benchmark, twin, artifact, options, folder):
    """Returns the bytes of arguments and results. Errors: RuntimeError with the result that is wrong."""
    write_tensors(folder / "in.safetensors", twin.inputs)
    run_weir(options, "run", artifact, f"--device={options.device}", f"--input={folder / 'in.safetensors'}",
             f"--output={folder / 'out.safetensors'}")
    results = read_tensors(folder / "out.safetensors")
    expected = dict(zip(cases.ROW_KINDS.get(twin.kind, ("y",)), twin.compute()))
    limit = TOLERANCES[benchmark["precision"] if benchmark["precision"] != "f32" else benchmark["type"]]
    for name, found in results.items():
        right = expected[name].detach().cpu().double()
        error = float((found.double() - right).abs().max() / right.abs().max())
        if not options.unchecked and not error <= limit:
            raise RuntimeError(f"{name} differs from PyTorch's by {error:.1e} of its largest element, more than "
                               f"{limit:.0e}")
    return sum(value.numel() * value.element_size() for value in (*twin.inputs.values(), *results.values()))


def time_copy(options, size):
    source = torch.zeros(max(1, size // 2), dtype=torch.uint8, device=options.torch_device)
    target = torch.empty_like(source)
    return time_call(options, lambda: target.copy_(source))


def measure(benchmark, options, folder):
    """Returns a benchmark with its times. Errors: RuntimeError."""
    artifact, made = options.folder / f"{benchmark['name']}.weir", dict(benchmark)
    if "kind" in benchmark:
        twin = Twin(benchmark, options.torch_device)
        made["bytes"] = compare(benchmark, twin, artifact, options, folder)
        with torch.no_grad() if not twin.kind.endswith("_vjp") else torch.enable_grad():
            made["eager_seconds"] = time_call(options, twin.make(lambda function: function))
            torch._dynamo.reset()
            torch._functorch.config.donated_buffer = False  # or a backward could not be run twice
            compiled = twin.make(lambda function: torch.compile(function, dynamic=False))
            made["compiled_seconds"] = time_call(options, compiled)
        made["copy_seconds"] = time_copy(options, made["bytes"])
    model = [f"--model={options.model}"] if options.model else []
    copy = [f"--copy={options.copy}"] if options.copy else []
    bench = json.loads(run_weir(options, "bench", artifact, f"--device={options.device}", "--json", *model, *copy))
    made["kernels"], made["seconds"] = bench["kernels"], bench["seconds"]["fastest"]
    predictions = [kernel.get("predicted_seconds") for kernel in bench["kernels"]]
    made["predicted_seconds"] = None if None in predictions else sum(predictions)
    return made


def divide(one, other):
    return f"{one / other:.2f}" if one and other else ""


def micro(seconds):
    return "" if seconds is None else f"{seconds * 1e6:.1f}"


def list_rows(made):
    """Yields a row of a benchmark as a whole, and one of each kernel."""
    measured = made["seconds"]
    eager, compiled, copy = (made.get(name) for name in ("eager_seconds", "compiled_seconds", "copy_seconds"))
    yield (made["name"], "", "", micro(made["predicted_seconds"]), micro(measured),
           divide(made["predicted_seconds"], measured), micro(eager), divide(measured, eager), micro(compiled),
           divide(measured, compiled), micro(copy), divide(copy, measured))
    for kernel in made["kernels"]:
        predicted = kernel.get("predicted_seconds")
        yield ("", kernel["kernel"], str(kernel["dispatches"]), micro(predicted), micro(kernel["seconds"]),
               divide(predicted, kernel["seconds"]), "", "", "", "", "", f"{kernel['share_of_copy']:.2f}")


def print_row(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cuda", help="of weir")
    parser.add_argument("--model", default="", help="that predicts the times; none by default")
    parser.add_argument("--weir", default=HERE / "weir", help="the program")
    parser.add_argument("--copy", default="", help="an artifact that copies, for weir bench")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="", help="benchmarks whose name this regular expression finds")
    parser.add_argument("--unchecked", action="store_true", help="don't compare results: for a driver that computes nothing")
    options = parser.parse_args()
    options.torch_device = "cuda" if options.device == "cuda" and torch.cuda.is_available() else "cpu"
    device = torch.cuda.get_device_name() if options.torch_device == "cuda" else "the processor"
    print(f"PyTorch {torch.__version__} on {device}\n")
    print_row(TITLES)
    print_row(["---"] * len(TITLES))
    results, failed = [], 0
    with tempfile.TemporaryDirectory() as name:
        for benchmark in json.loads((options.folder / "benchmarks.json").read_text()):
            if not re.search(options.only, benchmark["name"]):
                continue
            try:
                made = measure(benchmark, options, pathlib.Path(name))
            except Exception as error:  # of PyTorch or of weir: the others are still measured
                failed += 1
                made = dict(benchmark, problem=str(error))
                print(f"FAILED {benchmark['name']}: {error}", flush=True)
            else:
                for row in list_rows(made):
                    print_row(row)
            results.append(made)
    (options.folder / "results.json").write_text(json.dumps(
        {"pytorch": torch.__version__, "pytorch_device": device, "device": options.device, "model": options.model,
         "benchmarks": results}, indent=1) + "\n")
    print(f"\n{len(results) - failed} benchmarks measured, {failed} failed on {options.device}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
