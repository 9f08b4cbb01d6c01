#!/usr/bin/env python3
"""Times kernels of Weir beside PyTorch on the same device: beside_torch.py FOLDER [--device=cuda] [--model=h100].

FOLDER is what gather.py made. Each benchmark is computed by `weir run` and by PyTorch from the same arguments, and must
agree; then `weir bench` measures and predicts each of its kernels, and eager PyTorch, torch.compile and a copy of as many
bytes as the arguments and results have are measured. On a GPU all of them run one behind the other in a queue; `eager` is
also recorded as a CUDA graph, which takes the host's part away (`graph`), and torch.compile's is always. Prints a table
and writes FOLDER/results.json. Exits with 1 if a benchmark disagrees or fails.
Needs PyTorch and NumPy; times PyTorch on the processor where it has no GPU."""

import argparse
import functools
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
for place in (HERE / "peers", HERE.parent / "peers", HERE.parent / "compile"):
    sys.path.append(str(place))
import cases  # noqa: E402
import whole_models  # noqa: E402
import with_torch  # noqa: E402

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
SPELLINGS = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64"}
RESULTS = cases.ROW_KINDS | {"attention_vjp": ("dq", "dk", "dv")}
TOLERANCES = {"f32": 1e-4, "tf32": 1e-2, "bf16": 3e-2}  # of the largest element
CALLS = 50  # at most, of a round on a GPU
TITLES = ("benchmark", "kernel", "times", "predicted us", "measured us", "predicted / measured", "queued us", "eager us",
          "graph us", "compiled us", "queued / best of PyTorch", "copy us", "copy / queued")


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


def time_rounds(options, call, count):
    """Returns the seconds of one of `count` calls in the fastest round, by the device's clock if it is a GPU."""
    fastest = float("inf")
    for _ in range(options.rounds):
        if options.torch_device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(count):
                call()
            end.record()
            torch.cuda.synchronize()
            took = begin.elapsed_time(end) * 1e-3 / count
        else:
            start = time.perf_counter()
            call()
            took = time.perf_counter() - start
        fastest = min(fastest, took)
    return fastest


def time_call(options, make, as_graph=False):
    """Returns the seconds of a call of what `make` returns. On a GPU a round is many of them: the host submits the next
    one while one runs. With `as_graph`, which only a GPU has, a call is recorded, and the recording runs."""
    if options.torch_device != "cuda":
        call = make()
        for _ in range(3):
            call()
        return time_rounds(options, call, 1)
    # A gradient's kernels run on the stream of the forward ones, which therefore is that of the recording.
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call = make()
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        if as_graph:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                call()
            call = graph.replay
            call()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        count = max(1, min(CALLS, int(0.02 / (time.perf_counter() - start))))
        return time_rounds(options, call, count)


def keep(function):
    return function


class Twin:
    """The same computation in PyTorch."""

    def __init__(self, benchmark, device):
        self.kind, self.precision, self.device = benchmark["kind"], benchmark["precision"], device
        is_model = self.kind in whole_models.SIZES
        donated = whole_models.list_parameters(self.kind, benchmark["sizes"]) if is_model else ()
        self.case = case = cases.Case("", "", self.kind, benchmark["sizes"], donated=donated)
        dtype = TYPES[benchmark["type"]]
        self.inputs = {name: torch.from_numpy(numpy.asarray(value)) for name, value in case.make_inputs().items()}
        self.inputs = {name: (value.to(dtype) if value.is_floating_point() else value).to(device)
                       for name, value in self.inputs.items()}
        self.inputs |= {name: self.inputs[name].float() for name in ("largest", "share") if name in self.inputs}

    def make(self, compile):
        """Returns a function without arguments; `compile` is given what torch.compile would be, unless it is None."""
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = self.precision == "tf32"
        if self.case.is_model:
            # torch.compile sees the step as a whole, gradients and updates.
            setting = "eager" if compile is None else with_torch.WHOLE
            return with_torch.prepare_model(self.case, setting, compile or keep, self.device)
        compile = compile or keep
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
        made = self.make(None)()
        return list(made) if isinstance(made, (tuple, list)) else [made]


def compare(benchmark, twin, artifact, options, folder):
    """Returns the bytes of arguments and results. Errors: RuntimeError with the result that is wrong."""
    given = dict(twin.inputs)
    if twin.case.is_model:
        given |= {"learning_rate": torch.tensor(cases.LEARNING_RATE), "weight_decay": torch.tensor(0.0)}
    write_tensors(folder / "in.safetensors", given)
    run_weir(options, "run", artifact, f"--device={options.device}", f"--input={folder / 'in.safetensors'}",
             f"--output={folder / 'out.safetensors'}")
    results = read_tensors(folder / "out.safetensors")
    if twin.case.is_model:  # the parameters are compared with f64 by the tests
        results = {"loss": next(value for name, value in results.items() if name.endswith("loss"))}
    expected = dict(zip(RESULTS.get(twin.kind, tuple(results)), twin.compute()))
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
    return time_call(options, lambda: lambda: target.copy_(source), options.torch_device == "cuda")


def measure(benchmark, options, folder):
    """Returns a benchmark with its times. Errors: RuntimeError."""
    artifact, made = options.folder / f"{benchmark['name']}.weir", dict(benchmark)
    if "kind" in benchmark:
        twin = Twin(benchmark, options.torch_device)
        made["bytes"] = compare(benchmark, twin, artifact, options, folder)
        is_gpu, has_gradients = options.torch_device == "cuda", twin.case.is_model or twin.kind.endswith("_vjp")
        with torch.enable_grad() if has_gradients else torch.no_grad():
            made["eager_seconds"] = time_call(options, lambda: twin.make(None))
            try:
                made["graph_seconds"] = time_call(options, lambda: twin.make(None), True) if is_gpu else None
            except RuntimeError as error:  # a CUDA graph can't hold all that PyTorch does
                print(f"{benchmark['name']}: not recorded as a graph: {str(error).splitlines()[0]}", file=sys.stderr)
            torch._dynamo.reset()
            torch._functorch.config.donated_buffer = False  # or a backward could not be run twice
            compile = functools.partial(torch.compile, dynamic=False)
            made["compiled_seconds"] = time_call(options, lambda: twin.make(compile), is_gpu)
        made["copy_seconds"] = time_copy(options, made["bytes"])
    model = [f"--model={options.model}"] if options.model else []
    copy = [f"--copy={options.copy}"] if options.copy else []
    bench = json.loads(run_weir(options, "bench", artifact, f"--device={options.device}", "--json", *model, *copy))
    made["kernels"], made["seconds"] = bench["kernels"], bench["seconds"]["fastest"]
    made["queued_seconds"] = bench["seconds"]["queued"]
    predictions = [kernel.get("predicted_seconds") for kernel in bench["kernels"]]
    made["predicted_seconds"] = None if None in predictions else sum(predictions)
    return made


def divide(one, other):
    return f"{one / other:.2f}" if one and other else ""


def micro(seconds):
    return "" if seconds is None else f"{seconds * 1e6:.1f}"


def list_rows(made):
    """Yields a row of a benchmark as a whole, and one of each kernel."""
    measured, queued = made["seconds"], made["queued_seconds"]
    peers = [made.get(f"{name}_seconds") for name in ("eager", "graph", "compiled")]
    best, copy = min(filter(None, peers), default=None), made.get("copy_seconds")
    yield (made["name"], "", "", micro(made["predicted_seconds"]), micro(measured),
           divide(made["predicted_seconds"], measured), micro(queued), *map(micro, peers), divide(queued, best),
           micro(copy), divide(copy, queued))
    for kernel in made["kernels"]:
        predicted = kernel.get("predicted_seconds")
        yield ("", kernel["kernel"], str(kernel["dispatches"]), micro(predicted), micro(kernel["seconds"]),
               divide(predicted, kernel["seconds"]), *[""] * 6, f"{kernel['share_of_copy']:.2f}")


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
