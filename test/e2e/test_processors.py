"""Other processors than this one, by Debian's qemu-user: code for aarch64 against the reference and against x86, and
what x86 processors without AVX-512 and without AVX take of an artifact."""

import json
import pathlib
import platform
import shutil
import struct
import subprocess
import zipfile

import numpy
import pytest
from conftest import BIN
from safetensors.numpy import load_file, save_file

CLANG = shutil.which("clang-22") or shutil.which("clang")

DTYPES = {"F32": numpy.float32, "F16": numpy.float16}
# Each with a tolerance against the reference in f64, and whether x86 has the same bits, as it has where no sum's order
# depends on the profile.
GRAPHS = {
    "map": ("""
func.func @f(%x: tensor<1003xf32> {weir.name = "x"}) -> (tensor<1003xf32> {weir.name = "y"}) {
  %e = tensor.empty() : tensor<1003xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<1003xf32>) outs(%e : tensor<1003xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = math.tanh %a : f32
    %c = math.exp %b : f32
    %d = math.roundeven %a : f32
    %r = arith.addf %c, %d : f32
    linalg.yield %r : f32
  } -> tensor<1003xf32>
  return %y : tensor<1003xf32>
}""", 1e-6, True),
    "halves": ("""
func.func @f(%x: tensor<70x5xf16> {weir.name = "x"}) -> (tensor<70x5xf16> {weir.name = "y"}) {
  %e = tensor.empty() : tensor<70x5xf16>
  %y = linalg.add ins(%x, %x : tensor<70x5xf16>, tensor<70x5xf16>) outs(%e : tensor<70x5xf16>) -> tensor<70x5xf16>
  return %y : tensor<70x5xf16>
}""", 0, True),
    "row": ("""
func.func @f(%x: tensor<13x261xf32> {weir.name = "x"}) -> (tensor<13x261xf32> {weir.name = "y"}) {
  %e = tensor.empty() : tensor<13x261xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<13x261xf32>) outs(%e : tensor<13x261xf32>) -> tensor<13x261xf32>
  return %y : tensor<13x261xf32>
}""", 2e-6, False),
    "product": ("""
func.func @f(%x: tensor<45x70xf32> {weir.name = "x"}, %w: tensor<70x51xf32> {weir.name = "w"})
    -> (tensor<45x51xf32> {weir.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<45x51xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<45x51xf32>) -> tensor<45x51xf32>
  %p = linalg.matmul ins(%x, %w : tensor<45x70xf32>, tensor<70x51xf32>) outs(%z : tensor<45x51xf32>) -> tensor<45x51xf32>
  %y = linalg.exp ins(%p : tensor<45x51xf32>) outs(%e : tensor<45x51xf32>) -> tensor<45x51xf32>
  return %y : tensor<45x51xf32>
}""", 2e-5, False),
}


def find_emulator(name):
    """Returns the path of an emulator. Skips the test if there is none."""
    return shutil.which(name) or shutil.which(f"{name}-static") or pytest.skip(f"there is no {name} (Debian's qemu-user)")


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    emulator = find_emulator("qemu-aarch64")
    if not CLANG:
        pytest.skip("there is no clang, which compiles for aarch64")
    program = tmp_path_factory.mktemp("runner") / "run_kernels"
    done = subprocess.run([CLANG, "--target=aarch64-linux-gnu", "-O1", "-ffreestanding", "-nostdlib", "-static",
                           "-fuse-ld=lld", pathlib.Path(__file__).with_name("run_kernels.c"), "-o", program],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [emulator, str(program)]


def load_object(data):
    """Returns the object in memory, and its functions by name."""
    assert struct.unpack_from("<H", data, 18)[0] == 183, "the object is not for aarch64"
    header, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    memory, dynamic = bytearray(), {}
    for place in range(header, header + 56 * count, 56):
        kind, offset, address, size = *struct.unpack_from("<I4xQQ", data, place), struct.unpack_from("<Q", data, place + 32)[0]
        if kind == 1:  # a segment to load
            memory.extend(bytes(max(0, address + size - len(memory))))
            memory[address:address + size] = data[offset:offset + size]
        if kind == 2:
            dynamic = dict(struct.iter_unpack("<QQ", data[offset:offset + size]))
    symbols, strings, hashes = dynamic[6], dynamic[5], dynamic[4]
    functions = {}
    for i in range(struct.unpack_from("<I", memory, hashes + 4)[0]):
        name, address = struct.unpack_from("<I4xQ", memory, symbols + 24 * i)
        begin = strings + name
        functions[bytes(memory[begin:memory.index(0, begin)]).decode()] = address
    return memory, functions


def run(runner, artifact, inputs):
    """Runs the entry f, whose commands are dispatches and barriers, in the recorded order."""
    with zipfile.ZipFile(artifact) as archive:
        [entry] = json.loads(archive.read("manifest.json"))["entries"]
        plan = json.loads(archive.read("plan/cpu/f.json"))
        memory, functions = load_object(archive.read("code/cpu/kernels.so"))
    bases = []
    for allocation in plan["allocations"]:
        memory.extend(bytes(-len(memory) % 256))
        bases.append(len(memory))
        memory.extend(bytes(allocation["bytes"]))
        if allocation["kind"] == "argument":
            data = inputs[entry["arguments"][allocation["index"]]["name"]].tobytes()
            memory[bases[-1]:] = data
    words = []
    for command in plan["commands"]:
        if command["command"] == "dispatch":
            operands = [bases[operand[0]] + operand[1] for operand in command["operands"]]
            function = functions[plan["kernels"][command["kernel"]]["name"]]
            words += [function, *command["grid"], numpy.prod(command["grid"]), len(operands), *operands]
    job = struct.pack(f"<{2 + len(words)}q", len(memory), len(words), *words) + memory
    done = subprocess.run(runner, input=job, capture_output=True)
    assert done.returncode == 0 and len(done.stdout) == len(memory), done.stderr
    results = {}
    for allocation, base in zip(plan["allocations"], bases):
        if allocation["kind"] == "result":
            tensor = entry["results"][allocation["index"]]
            data = done.stdout[base:base + allocation["bytes"]]
            results[tensor["name"]] = numpy.frombuffer(data, DTYPES[tensor["dtype"]]).reshape(tensor["shape"])
    return results


@pytest.mark.parametrize("name", GRAPHS)
def test_aarch64(weir, runner, name):
    text, tolerance, has_same_bits = GRAPHS[name]
    (weir.folder / "g.mlir").write_text(text)
    for target in "aarch64", "x86-64-v3":
        weir.run("compile", "g.mlir", "-o", f"{target}.weir", f"--target=cpu:{target}")
    random = numpy.random.default_rng(3)
    inputs = {tensor["name"]: random.normal(size=tensor["shape"], scale=0.5).astype(DTYPES[tensor["dtype"]])
              for tensor in weir.inspect(weir.folder / "aarch64.weir")["entries"][0]["arguments"]}
    save_file(inputs, weir.folder / "in.safetensors")
    for flags in ["--device=reference", "--f64"], ["--device=cpu:x86-64-v3"]:
        weir.run("run", "x86-64-v3.weir", *flags, "--input=in.safetensors", f"--output={flags[-1]}.safetensors")
    exact, x86 = (load_file(weir.folder / f"{flag}.safetensors")["y"] for flag in ("--f64", "--device=cpu:x86-64-v3"))
    found = run(runner, weir.folder / "aarch64.weir", inputs)["y"]
    numpy.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance)
    assert (found.tobytes() == x86.tobytes()) or not has_same_bits


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the tools are not for x86-64")
@pytest.mark.parametrize("processor, isa", [("Nehalem", "x86-64-v2"), ("Haswell", "x86-64-v3")])
def test_older_processors_take_what_they_run(weir, processor, isa):
    """Bits are those that this machine's processor computes with the same profile."""
    (weir.folder / "g.mlir").write_text(GRAPHS["product"][0])
    targets = "cpu:x86-64-v2,cpu:x86-64-v3,cpu:x86-64-v4,cpu:aarch64"
    weir.run("compile", "g.mlir", "-o", "all.weir", f"--target={targets}")
    weir.run("compile", "g.mlir", "-o", "one.weir", f"--target=cpu:{isa}")
    weir.run("run", "one.weir", f"--device=cpu:{isa}", "--random-inputs=1", "--output=one.safetensors")
    emulated = [find_emulator("qemu-x86_64"), "-cpu", processor, str(BIN / "weir-device")]

    def run(*arguments, status=0):
        done = subprocess.run([*emulated, *arguments], cwd=weir.folder, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        return done.stderr if status else done.stdout

    [device] = json.loads(run("devices", "--api=cpu", "--json"))
    assert device["profile"]["isa"] == isa
    run("run", "all.weir", "--device=cpu", "--random-inputs=1", "--output=all.safetensors")
    assert (weir.folder / "all.safetensors").read_bytes() == (weir.folder / "one.safetensors").read_bytes()
    weir.run("compile", "g.mlir", "-o", "newer.weir", "--target=cpu:x86-64-v4")
    told = run("run", "newer.weir", "--device=cpu", "--random-inputs=1", status=2)
    assert f"it needs the instruction set x86-64-v4 where the device has {isa};" in told


def test_gradients_of_windows_with_gaps(weir):
    """A row whose terms are windows: its loads are of a loop within a trip, and none is made ahead for the next row."""
    x, padded, y = "tensor<1x1x8x8x32xf32>", "tensor<1x1x10x10x34xf32>", "tensor<1x1x2x2x14xf32>"
    artifact = weir.compile_text(f"""
func.func @f(%x: {x}) -> {y} {{
  %lowest = arith.constant 0xFF800000 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1, 1] high[0, 0, 1, 1, 1] {{
  ^bb0(%a: index, %b: index, %c: index, %d: index, %e: index):
    tensor.yield %lowest : f32
  }} : {x} to {padded}
  %empty = tensor.empty() : {y}
  %init = linalg.fill ins(%lowest : f32) outs(%empty : {y}) -> {y}
  %window = tensor.empty() : tensor<3x3x3xf32>
  %y = linalg.generic {{
      indexing_maps = [affine_map<(n, c, i, j, k, p, q, r) -> (n, c, i * 2 + p * 3, j * 2 + q * 3, k * 2 + r * 3)>,
                       affine_map<(n, c, i, j, k, p, q, r) -> (p, q, r)>,
                       affine_map<(n, c, i, j, k, p, q, r) -> (n, c, i, j, k)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}}
      ins(%padded, %window : {padded}, tensor<3x3x3xf32>) outs(%init : {y}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.maximumf %a, %o : f32
    linalg.yield %m : f32
  }} -> {y}
  return %y : {y}
}}
""", "a", f"--target=cpu:{write_profile(weir, streamed_bytes=1)}", "--vjp=f")
    inputs = ["--entry=f.vjp", "--random-inputs=1"]
    weir.run("run", artifact, "--device=reference", "--f64", *inputs, "--output=expected.safetensors")
    weir.run("run", artifact, "--device=cpu", *inputs, "--compare=expected.safetensors", "--tolerance=1e-6")


def write_profile(weir, **changes):
    path = weir.folder / "own.json"
    path.write_text(json.dumps({"like": "x86-64-v3", "name": "own", **changes}))
    return path
