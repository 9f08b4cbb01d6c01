"""Failures of an artifact for the CPU: broken objects, too little memory, threads that do not start, signals.
Each is one sentence and the documented exit status, and no file is half written."""

import os
import random
import resource
import signal
import struct
import subprocess
import time
import zipfile

import pytest
from conftest import BIN

OBJECT = "code/cpu/kernels.so"
GRAPH = """
func.func @f(%a: tensor<8x16xf32> {weir.name = "a"}, %b: tensor<16x8xf32> {weir.name = "b"})
    -> (tensor<8x8xf32> {weir.name = "c"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %p = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = linalg.matmul ins(%p, %p : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}
"""
# The sum of an outer product with itself: a matrix of 256 MB between two kernels.
LARGE = """
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#all = affine_map<(i, j) -> (i, j)>
func.func @f(%a: tensor<8192x1xf32> {weir.name = "a"}) -> (tensor<8192x8192xf32> {weir.name = "c"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8192x8192xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  %b = tensor.collapse_shape %a [[0, 1]] : tensor<8192x1xf32> into tensor<8192xf32>
  %r = tensor.expand_shape %b [[0, 1]] output_shape [1, 8192] : tensor<8192xf32> into tensor<1x8192xf32>
  %p = linalg.matmul ins(%a, %r : tensor<8192x1xf32>, tensor<1x8192xf32>) outs(%z : tensor<8192x8192xf32>)
      -> tensor<8192x8192xf32>
  return %p : tensor<8192x8192xf32>
}
"""
IS_SANITIZED = b"__asan_init" in (BIN / "weir-device").read_bytes()


def start(weir, *arguments, **options):
    """Begins a run of `weir-device`, which is small enough for limits of memory."""
    return subprocess.Popen([BIN / "weir-device", *map(str, arguments)], cwd=weir.folder, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def run(weir, *arguments, **options):
    """Returns the exit status and what was written to standard error."""
    running = start(weir, *arguments, **options)
    return running.communicate()[1], running.returncode


def expect(weir, sentence, *arguments, **options):
    """Expects one sentence, status 2, and that the files of the folder are as before."""
    before = sorted(path.name for path in weir.folder.iterdir())
    error, status = run(weir, "run", *arguments, "--random-inputs=1", "--output=out.safetensors", **options)
    assert status == 2, error
    assert error.startswith("error: ") and error.count("\n") == 1 and sentence in error, error
    assert sorted(path.name for path in weir.folder.iterdir()) == before


def edit(artifact, edited, part, change):
    """Copies an artifact with other bytes in one part, and checksums that fit."""
    with zipfile.ZipFile(artifact) as source, zipfile.ZipFile(edited, "w") as copy:
        for name in source.namelist():
            data = bytearray(source.read(name))
            if name == part:
                data = change(data) or data
            copy.writestr(zipfile.ZipInfo(name), bytes(data))
    return edited


# ELF objects

class Elf:
    """Where the numbers of an object are."""

    HEADER = {"type": (16, "H"), "machine": (18, "H"), "phoff": (32, "Q"), "phentsize": (54, "H"), "phnum": (56, "H")}
    SEGMENT = {"type": (0, "I"), "flags": (4, "I"), "offset": (8, "Q"), "vaddr": (16, "Q"), "filesz": (32, "Q"),
               "memsz": (40, "Q")}
    LOAD, DYNAMIC = 1, 2
    SYMTAB, STRTAB, STRSZ, HASH = 6, 5, 10, 4

    def __init__(self, data):
        self.data = data

    def get(self, at, kind):
        return struct.unpack_from(f"<{kind}", self.data, at)[0]

    def put(self, at, kind, value):
        struct.pack_into(f"<{kind}", self.data, at, value)

    def put_header(self, key, value):
        self.put(*self.HEADER[key], value)

    def find_segments(self, kind):
        first, count = (self.get(*self.HEADER[key]) for key in ("phoff", "phnum"))
        places = [first + 56 * i for i in range(count)]
        return [place for place in places if self.get(place, "I") == kind]

    def put_segment(self, place, key, value):
        at, kind = self.SEGMENT[key]
        self.put(place + at, kind, value)

    def get_code(self):
        """The segment with the code, behind that with the tables."""
        return self.find_segments(self.LOAD)[1]

    def find_dynamic(self, tag):
        """The place of an entry of the dynamic section, whose addresses are offsets."""
        [segment] = self.find_segments(self.DYNAMIC)
        at = self.get(segment + 8, "Q")
        while self.get(at, "Q") != tag:
            at += 16
        return at

    def put_dynamic(self, tag, value):
        self.put(self.find_dynamic(tag) + 8, "Q", value)

    def get_symbol(self):
        """The place of the first function."""
        return self.get(self.find_dynamic(self.SYMTAB) + 8, "Q") + 24


def rename_tag(old, new):
    return lambda elf: elf.put(elf.find_dynamic(old), "Q", new)


def cut(share):
    return lambda elf: elf.data[:int(len(elf.data) * share)]


EDITS = {
    "one byte": (lambda elf: b"E", "is cut short: its header ends behind its 1 bytes"),
    "text": (lambda elf: elf.put(0, "B", 0x23), "is not an ELF object"),
    "32 bits": (lambda elf: elf.put(4, "B", 1), "is not a shared ELF object of 64 bits, little-endian"),
    "big-endian": (lambda elf: elf.put(5, "B", 2), "is not a shared ELF object of 64 bits, little-endian"),
    "program": (lambda elf: elf.put_header("type", 2), "is not a shared ELF object of 64 bits, little-endian"),
    "machine": (lambda elf: elf.put_header("machine", 243), "has code of ELF machine 243, and this is"),
    "header size": (lambda elf: elf.put_header("phentsize", 32), "has program headers of 32 bytes, expected 56"),
    "headers outside": (lambda elf: elf.put_header("phoff", 1 << 40), "is cut short: its program headers end"),
    "headers wrap": (lambda elf: elf.put_header("phoff", (1 << 64) - 56), "is cut short: its program headers end"),
    "too many headers": (lambda elf: elf.put_header("phnum", 0xffff), ""),
    "no headers": (lambda elf: elf.put_header("phnum", 0), "has no code"),
    "cut in half": (cut(0.5), "which leaves its"),
    "cut in the tables": (cut(0.01), "is cut short"),
    "writable code": (lambda elf: elf.put_segment(elf.get_code(), "flags", 7), "has a writable segment"),
    "writable tables": (lambda elf: elf.put_segment(elf.find_segments(Elf.LOAD)[0], "flags", 6),
                        "has a writable segment"),
    "code that cannot run": (lambda elf: elf.put_segment(elf.get_code(), "flags", 4), "outside of its code"),
    "overlap": (lambda elf: elf.put_segment(elf.get_code(), "vaddr", 0), "has segments that share a page"),
    "segment outside": (lambda elf: elf.put_segment(elf.get_code(), "offset", 1 << 20), "which leaves its"),
    "offset wraps": (lambda elf: elf.put_segment(elf.get_code(), "offset", (1 << 64) - 8), "which leaves its"),
    "moved in the file": (lambda elf: elf.put_segment(elf.get_code(), "offset", 0x10),
                          "does not lie in the file as in memory"),
    "tables as code": (lambda elf: elf.put_segment(elf.get_code(), "offset", 0), "share bytes of the file"),
    "variables": (lambda elf: elf.put_segment(elf.get_code(), "memsz", 1 << 20), "which leaves its"),
    "huge": (lambda elf: elf.put_segment(elf.get_code(), "vaddr", 1 << 50), "spans more than 1073741824 bytes"),
    "no tables": (lambda elf: elf.put_segment(elf.find_segments(Elf.DYNAMIC)[0], "type", 4), "has no code"),
    "dynamic section outside": (lambda elf: elf.put_segment(elf.find_segments(Elf.DYNAMIC)[0], "vaddr", 1 << 20),
                                "has its dynamic section outside of its segments"),
    "thread's variables": (lambda elf: elf.put_segment(elf.find_segments(0x6474e551)[0], "type", 7),
                           "has variables of each thread"),
    "interpreter": (lambda elf: elf.put_segment(elf.find_segments(0x6474e551)[0], "type", 3), "is a program"),
    "relocations": (rename_tag(11, 7), "has relocations"),
    "library": (rename_tag(11, 1), "has a library that it needs"),
    "code that runs first": (rename_tag(11, 12), "has code that runs first"),
    "no symbols": (rename_tag(Elf.SYMTAB, 0x6fffff00), "has no table of symbols"),
    "symbols outside": (lambda elf: elf.put_dynamic(Elf.SYMTAB, 1 << 20), "has its symbols outside of its segments"),
    "names outside": (lambda elf: elf.put_dynamic(Elf.STRTAB, 1 << 20), "has its names outside of its segments"),
    "too many names": (lambda elf: elf.put_dynamic(Elf.STRSZ, 1 << 20), "has its names outside of its segments"),
    "hash table outside": (lambda elf: elf.put_dynamic(Elf.HASH, 1 << 20), "has its hash table outside"),
    "too many symbols": (lambda elf: elf.put(elf.get(elf.find_dynamic(Elf.HASH) + 8, "Q") + 4, "I", 0xffffffff),
                         "has its symbols outside of its segments"),
    "symbol of elsewhere": (lambda elf: elf.put(elf.get_symbol() + 6, "H", 0), "which it does not have"),
    "name outside": (lambda elf: elf.put(elf.get_symbol(), "I", 1 << 20), "a symbol whose name is outside"),
    "another name": (lambda elf: elf.put(elf.get_symbol(), "I", 0), "has no function 'contraction"),
    "entry outside": (lambda elf: elf.put(elf.get_symbol() + 8, "Q", 1 << 20), "outside of its code"),
    "entry in the tables": (lambda elf: elf.put(elf.get_symbol() + 8, "Q", 0x40), "outside of its code"),
    "entry wraps": (lambda elf: elf.put(elf.get_symbol() + 8, "Q", (1 << 64) - 1), "outside of its code"),
    "end outside": (lambda elf: elf.put(elf.get_symbol() + 16, "Q", 1 << 20), "outside of its code"),
}


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cpu")
    (folder / "a.mlir").write_text(GRAPH)
    subprocess.run([BIN / "weir", "compile", "a.mlir", "--target=cpu", "-o", "a.weir"], cwd=folder, check=True)
    return folder / "a.weir"


def test_the_artifact_runs(weir, artifact):
    """As long as nothing is edited."""
    same = edit(artifact, weir.folder / "a.weir", OBJECT, lambda data: None)
    assert run(weir, "run", same, "--random-inputs=1") == ("", 0)


@pytest.mark.parametrize("name", EDITS)
def test_broken_object(weir, artifact, name):
    change, sentence = EDITS[name]
    broken = edit(artifact, weir.folder / "a.weir", OBJECT, lambda data: change(Elf(data)))
    (weir.folder / "out.safetensors").write_text("as before")
    expect(weir, sentence, broken)
    assert (weir.folder / "out.safetensors").read_text() == "as before"


def test_object_of_nothing(weir, artifact):
    with zipfile.ZipFile(artifact) as source, zipfile.ZipFile(weir.folder / "a.weir", "w") as copy:
        for name in source.namelist():
            copy.writestr(zipfile.ZipInfo(name), b"" if name == OBJECT else source.read(name))
    expect(weir, "is cut short: its header ends behind its 0 bytes", "a.weir")


def test_a_changed_byte_is_found_by_its_checksum(weir, artifact):
    """Anywhere in the file, the machine code too: the runtime refuses the file, or it means the same."""
    whole, rng = artifact.read_bytes(), random.Random(1)
    assert run(weir, "run", artifact, "--random-inputs=1", "--output=expected.safetensors")[1] == 0
    expected, refused = (weir.folder / "expected.safetensors").read_bytes(), 0
    with zipfile.ZipFile(artifact) as source:
        begin = whole.index(source.read(OBJECT))
        places = [begin + rng.randrange(source.getinfo(OBJECT).file_size) for _ in range(40)]
    for place in places + [rng.randrange(len(whole)) for _ in range(160)]:
        edited = bytearray(whole)
        edited[place] ^= 1 << rng.randrange(8)
        (weir.folder / "a.weir").write_bytes(edited)
        error, status = run(weir, "run", "a.weir", "--random-inputs=1", "--output=out.safetensors")
        assert status in (0, 2), f"byte {place}: {error}"
        assert run(weir, "verify", "a.weir")[1] == status
        if status == 0:
            assert (weir.folder / "out.safetensors").read_bytes() == expected, f"byte {place}"
        refused += status == 2
        assert error.count("\n") == (status == 2)
        if place in places:
            assert f'"{OBJECT}": CRC error' in error
    assert refused > 150


@pytest.mark.parametrize("seed", range(4))
def test_edited_manifests_and_headers(weir, artifact, seed):
    """Bytes of the manifest, or of the object's headers, with checksums that fit: nothing crashes."""
    rng, ended = random.Random(seed), set()

    def flip(data, places):
        for _ in range(rng.randrange(1, 4)):
            data[rng.choice(places)] = rng.choice([rng.randrange(256), ord(rng.choice('0123456789",[]{}-'))])

    with zipfile.ZipFile(artifact) as source:
        manifest = source.read("manifest.json")
    for _ in range(40):
        edit(artifact, weir.folder / "a.weir", "manifest.json", lambda data: flip(data, range(len(manifest))))
        for verb in (["run", "a.weir", "--random-inputs=1"], ["verify", "a.weir"]):
            error, status = run(weir, *verb)
            assert status in (0, 2) or (verb[0] == "verify" and status == 1), error
            assert "internal error" not in error
            ended.add((verb[0], status))
    assert ended >= {("run", 2), ("verify", 2)}
    for _ in range(40):
        edit(artifact, weir.folder / "a.weir", OBJECT, lambda data: flip(data, range(0x40)))
        error, status = run(weir, "run", "a.weir", "--random-inputs=1")
        assert status in (0, 2) and "internal error" not in error, error


# Too little memory, too few threads

def limit(bytes):
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (bytes, bytes))}


needs_limit = pytest.mark.skipif(IS_SANITIZED, reason="AddressSanitizer reserves terabytes")


@needs_limit
def test_too_little_memory(weir):
    """For the arena, and for a result."""
    weir.compile_text(LARGE, "result", "--target=cpu")
    expect(weir, "there is no memory for a buffer of 268435456 bytes", "result.weir", **limit(200 << 20),
           env=os.environ | {"WEIR_THREADS": "1"})
    two = LARGE.replace("return %p : tensor<8192x8192xf32>", """
  %s = tensor.empty() : tensor<8192x1xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%s : tensor<8192x1xf32>) -> tensor<8192x1xf32>
  %y = linalg.matmul ins(%p, %a : tensor<8192x8192xf32>, tensor<8192x1xf32>) outs(%sz : tensor<8192x1xf32>)
      -> tensor<8192x1xf32>
  return %y : tensor<8192x1xf32>""").replace('-> (tensor<8192x8192xf32> {', '-> (tensor<8192x1xf32> {')
    weir.compile_text(two, "arena", "--target=cpu")
    [plan] = weir.inspect(weir.folder / "arena.weir")["plans"]
    expect(weir, f"there is no memory for a buffer of {plan['arena_bytes']} bytes", "arena.weir", **limit(200 << 20),
           env=os.environ | {"WEIR_THREADS": "1"})


@needs_limit
def test_threads_that_do_not_start(weir, artifact):
    expect(weir, "of 1024 threads: Resource temporarily unavailable; set WEIR_THREADS to fewer", artifact,
           **limit(200 << 20), env=os.environ | {"WEIR_THREADS": "1024"})
    assert run(weir, "run", artifact, "--random-inputs=1", **limit(200 << 20),
               env=os.environ | {"WEIR_THREADS": "2"}) == ("", 0)


# Signals

LOOP = """
func.func @f(%x: tensor<f32> {weir.name = "x", weir.donate}) -> (tensor<f32> {weir.name = "x"},
                                                                  tensor<f32> {weir.name = "loss"}) {
  %one = arith.constant dense<1.0> : tensor<f32>
  %y = arith.addf %x, %one : tensor<f32>
  %z = arith.mulf %y, %y : tensor<f32>
  return %y, %z : tensor<f32>, tensor<f32>
}
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_while_steps_run(weir, number):
    """The signal ends the program, as a shell expects, and the old file stays."""
    weir.compile_text(LOOP, "a", "--target=cpu")
    (weir.folder / "out.safetensors").write_text("as before")
    files = sorted(path.name for path in weir.folder.iterdir())
    running = start(weir, "run", "a.weir", "--random-inputs=1", "--steps=1000000", "--output=out.safetensors")
    assert running.stdout.readline().startswith("step 1 ")
    running.send_signal(number)
    assert (running.wait(), running.stderr.read()) == (-number, "")
    running.stdout.close()
    assert sorted(path.name for path in weir.folder.iterdir()) == files
    assert (weir.folder / "out.safetensors").read_text() == "as before"


def get_size(path):
    """Returns the bytes of a file that another process may remove at any time."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_signal_while_a_file_is_written(weir):
    weir.compile_text(LARGE, "a", "--target=cpu")
    (weir.folder / "out.safetensors").write_text("as before")
    files = sorted(path.name for path in weir.folder.iterdir())
    for _ in range(20):
        running = start(weir, "run", "a.weir", "--random-inputs=1", "--output=out.safetensors")
        # A name alone is that of the check that the file can be written.
        while running.poll() is None and not any(
                get_size(path) > 0 for path in weir.folder.glob("out.safetensors.tmp.*")):
            time.sleep(0.001)
        running.terminate()
        running.communicate()
        if running.returncode == -signal.SIGTERM:
            break
    assert running.returncode == -signal.SIGTERM
    assert sorted(path.name for path in weir.folder.iterdir()) == files
    assert (weir.folder / "out.safetensors").read_text() == "as before"
