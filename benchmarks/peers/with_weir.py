"""Weir: the artifact that `weir compile` makes of a case, by the C ABI."""

import ctypes
import itertools
import pathlib
import subprocess
import sys
import tempfile
import time
import zipfile

import cases
import numpy
import weir_graphs

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import weir.runtime  # noqa: E402


def list_settings(case, api):
    return ["cpu:native" if api == "cpu" else api]


def get_code_bytes(artifact):
    with zipfile.ZipFile(artifact) as files:
        return sum(each.file_size for each in files.infolist() if each.filename.startswith("code/"))


def prepare(case, setting, options):
    """Returns a function that runs a case once, one that returns its results, and facts of the artifact."""
    with tempfile.TemporaryDirectory() as name:
        graph, artifact = pathlib.Path(name, "graph.mlir"), pathlib.Path(name, "case.weir")
        graph.write_text(weir_graphs.make_graph(case))
        begin = time.perf_counter()
        done = subprocess.run([options["weir"], "compile", graph, f"--target={setting}", "-o", artifact,
                               *weir_graphs.FLAGS.get(case.kind, ())], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or f"weir compile exits with {done.returncode}")
        facts = {"compile_seconds": time.perf_counter() - begin, "artifact_bytes": artifact.stat().st_size,
                 "code_bytes": get_code_bytes(artifact)}
        program = weir.runtime.Program(artifact, api=setting.partition(":")[0])
    facts["device"] = program.device.name
    entry = program.find_entry(None)
    inputs = case.make_inputs() | {
        "learning_rate": numpy.array(cases.LEARNING_RATE, numpy.float32),
        "weight_decay": numpy.array(0, numpy.float32)}
    buffers = {tensor.name: weir.runtime.Buffer(program.device, tensor.bytes)
               for tensor in (*entry.arguments, *entry.results)}
    for tensor in entry.arguments:
        buffers[tensor.name].write(inputs[tensor.name])
    # A value that is not updated in place has two buffers, which change their places after each call.
    updated = {tensor.name for tensor in entry.arguments} - set(program.get_donations(entry))
    others = buffers | {tensor.name: weir.runtime.Buffer(program.device, tensor.bytes)
                        for tensor in entry.results if tensor.name in updated}

    # One call of the C ABI, as a program in C makes it: it runs the entry and waits for it.
    def make_call(before, after):
        sides = []
        for tensors, held in (entry.arguments, before), (entry.results, after):
            handles = (ctypes.c_void_p * len(tensors))(*(held[tensor.name].handle for tensor in tensors))
            sides += [handles, ctypes.c_size_t(len(tensors))]
        return program.handle, entry.name.encode(), *sides, None

    library = weir.runtime._load_library()
    invoke = library.weir_program_invoke
    calls = itertools.cycle([make_call(buffers, others), make_call(others, buffers)])

    def run():
        if invoke(*next(calls)):
            raise RuntimeError(library.weir_last_error().decode())

    run.kept = program, buffers, others  # which are freed when nothing holds them

    def read():
        results = {tensor.name: numpy.empty(tensor.shape, tensor.dtype) for tensor in entry.results
                   if tensor.name in case.results}
        for name, value in results.items():
            buffers[name].read(value)
        return [results[name] for name in case.results]

    return run, read, facts
