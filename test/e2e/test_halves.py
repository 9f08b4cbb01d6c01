"""f16 and bf16: storage of 16 bits, arithmetic in f32, every rounding of the graph kept; i16."""

import json
import struct
import subprocess
import sys
import zipfile

import numpy
import pytest
from conftest import BIN, ROOT
from safetensors import deserialize

sys.path.append(str(ROOT / "benchmarks/peers"))
import weir_graphs  # noqa: E402

F32 = numpy.float32


def to_bf16(values):
    """The bits of f32 values to the nearest bf16, ties to even."""
    bits = values.view(numpy.uint32).astype(numpy.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return numpy.where(numpy.isnan(values), bits >> 16 | 0x40, rounded).astype(numpy.uint16)


def from_bf16(bits):
    return (bits.astype(numpy.uint32) << 16).view(F32)


def get_bits(values, element):
    """Returns f32 values as they are stored."""
    if element == "bf16":
        return to_bf16(values)
    with numpy.errstate(over="ignore"):
        return values.astype(numpy.float16).view(numpy.uint16)


def get_values(bits, element):
    return from_bf16(bits) if element == "bf16" else bits.view(numpy.float16).astype(F32)


@pytest.mark.parametrize("rows, columns", [(20, 1028), (7, 131), (9, 36), (1, 1), (12, 2048)])
def test_rows_on_cuda(weir, rows, columns):
    """Vectors of 16-bit elements, and rows that have none."""
    wide, narrow = (f"tensor<{rows}x{columns}x{element}>" for element in ("f32", "bf16"))
    same = "affine_map<(i, j) -> (i, j)>"

    def convert(name, source, operation, before, after):
        have, want = ("bf16", "f32") if operation == "extf" else ("f32", "bf16")
        return f"""
  %e{name} = tensor.empty() : {after}
  %{name} = linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = ["parallel", "parallel"]}}
      ins({source} : {before}) outs(%e{name} : {after}) {{
  ^bb0(%a: {have}, %o: {want}):
    %r = arith.{operation} %a : {have} to {want}
    linalg.yield %r : {want}
  }} -> {after}"""

    text = f"""func.func @f(%x: {narrow}) -> {narrow} {{{convert("wide", "%x", "extf", narrow, wide)}
  %e = tensor.empty() : {wide}
  %s = linalg.softmax dimension(1) ins(%wide : {wide}) outs(%e : {wide}) -> {wide}
  {convert("y", "%s", "truncf", wide, narrow)}
  return %y : {narrow}
}}"""
    artifact = weir.compile_text(text, "a", "--target=cuda")
    weir.run("run", artifact, "--device=reference", "--f64", "--random-inputs=1", "--output=expected.safetensors")
    weir.run("run", artifact, "--device=sim", "--random-inputs=1", "--compare=expected.safetensors", "--tolerance=0.004")
    with zipfile.ZipFile(artifact) as archive:
        [code] = [archive.read(name).decode() for name in archive.namelist() if name.endswith(".ptx")]
    # Words of two: eight elements at a time, or four.
    assert ("ld.global.v4.b32" in code) == (columns % 8 == 0)
    assert ("ld.global.v2.b32" in code) == (columns % 8 == 4)


@pytest.mark.parametrize("name", ["layer_norm_vjp", "rms_norm_vjp", "softmax_vjp", "cross_entropy_vjp", "gelu_bias",
                                  "gelu_bias_vjp"])
def test_eight_elements_at_once(weir, name):
    """Loads and stores of 128 bits on CUDA, where all tensors of the kernel's size have 16 bits."""
    text = weir_graphs.store_as("bf16", getattr(weir_graphs, name)(24, 512))
    artifact = weir.compile_text(text, "a", "--target=cuda")
    weir.run("run", artifact, "--device=reference", "--f64", "--random-inputs=1", "--output=expected.safetensors")
    weir.run("run", artifact, "--device=sim", "--random-inputs=1", "--compare=expected.safetensors", "--tolerance=0.008")
    with zipfile.ZipFile(artifact) as archive:
        code = "".join(archive.read(entry).decode() for entry in archive.namelist() if entry.endswith(".ptx"))
    assert "ld.global.v4.b32" in code and ".global.v4.b16" not in code
    answer = weir.run("verify", artifact)
    assert "0 taken from the compiler" in answer, answer


def cast(source, target, size):
    op = "extf" if source in ("f16", "bf16") and target in ("f32", "f64") else "truncf"
    return f"""func.func @f(%x: tensor<{size}x{source}>) -> tensor<{size}x{target}> {{
  %e = tensor.empty() : tensor<{size}x{target}>
  %y = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%x : tensor<{size}x{source}>) outs(%e : tensor<{size}x{target}>) {{
  ^bb0(%a: {source}, %o: {target}):
    %b = arith.{op} %a : {source} to {target}
    linalg.yield %b : {target}
  }} -> tensor<{size}x{target}>
  return %y : tensor<{size}x{target}>
}}"""


def run(weir, text, inputs, *flags, devices=("vulkan", "sim")):
    """The results on each device, which must be the same bits. An input is (dtype, array)."""
    write(weir.folder / "in.safetensors", inputs)
    artifact = weir.compile_text(text)
    outputs = []
    for device in devices:
        output = weir.folder / f"{device}.safetensors"
        weir.run("run", artifact, f"--device={device}", f"--input={weir.folder / 'in.safetensors'}",
                 f"--output={output}", *flags)
        outputs.append(read(output))
    for name, value in outputs[0].items():
        for other in outputs[1:]:
            assert (other[name] == value).all(), name
    return outputs[0]


def write(path, tensors):
    """A file of {name: (dtype, array)}; NumPy has no bf16, and safetensors' own writer takes NumPy's types."""
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        offsets = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": offsets}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read(path):
    """{name: the bits}, as unsigned integers."""
    widths = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I16": 2}
    return {name: numpy.frombuffer(tensor["data"], f"u{widths[tensor['dtype']]}").reshape(tensor["shape"])
            for name, tensor in deserialize(path.read_bytes())}


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_all_values_are_extended(weir, element):
    bits = numpy.arange(1 << 16, dtype=numpy.uint16)
    found = run(weir, cast(element, "f32", 1 << 16), {"arg0": (element.upper(), bits)})["result0"].view(F32)
    expected = get_values(bits, element)
    assert (numpy.isnan(found) == numpy.isnan(expected)).all()
    numbers = ~numpy.isnan(expected)
    assert (found.view(numpy.uint32) == expected.view(numpy.uint32))[numbers].all()


def get_hard_values(element):
    """All values of the type, what lies halfway between neighbours, what is next to that, and any bits."""
    all_bits = numpy.arange(1 << 16, dtype=numpy.uint16)
    values = get_values(all_bits, element)
    random = numpy.random.default_rng(3)
    step = 12 if element == "f16" else 15
    near = values[:, None].view(numpy.uint32) + numpy.array([0, 1 << step, (1 << step) - 1, (1 << step) + 1], numpy.uint32)
    return numpy.concatenate([near.reshape(-1), random.integers(0, 1 << 32, 1 << 16, dtype=numpy.uint32)]).view(F32)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_truncations_round_to_even(weir, element):
    values = get_hard_values(element)
    found = run(weir, cast("f32", element, values.size), {"arg0": ("F32", values)}, devices=["vulkan"])["result0"]
    expected = get_bits(values, element)
    is_nan = numpy.isnan(values)
    assert (found == expected)[~is_nan].all()
    assert numpy.isnan(get_values(found, element)[is_nan]).all()


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_truncations_of_f64_round_once(weir, element):
    """A step through f32 that rounds would land on ties that were none."""
    wide = get_hard_values(element)
    wide = wide[numpy.isfinite(wide) & (numpy.abs(wide) > 1e-30) & (numpy.abs(wide) < 1e30)].astype(numpy.float64)
    wide = numpy.concatenate([wide * (1 + 2.0**-40), wide * (1 - 2.0**-40), wide])
    if element == "f16":
        with numpy.errstate(over="ignore"):
            expected = wide.astype(numpy.float16).view(numpy.uint16)
    else:
        # Exactly, by the neighbours of the value in bf16.
        low = wide.astype(F32).view(numpy.uint32) & 0xFFFF0000
        around = numpy.stack([low - 0x10000, low, low + 0x10000]).astype(numpy.uint32).view(F32)
        distance = numpy.abs(around.astype(numpy.float64) - wide)
        is_odd = around.view(numpy.uint32) >> 16 & 1
        best = numpy.lexsort(numpy.stack([is_odd, distance]), axis=0)[0]
        expected = (around[best, numpy.arange(wide.size)].view(numpy.uint32) >> 16).astype(numpy.uint16)
    found = run(weir, cast("f64", element, wide.size), {"arg0": ("F64", wide)}, devices=["vulkan", "reference"])["result0"]
    assert (found == expected).all()


CHAIN = """func.func @f(%x: tensor<4096xE>, %y: tensor<4096xE>) -> tensor<4096xE> {
  %e = tensor.empty() : tensor<4096xE>
  %s = linalg.add ins(%x, %y : tensor<4096xE>, tensor<4096xE>) outs(%e : tensor<4096xE>) -> tensor<4096xE>
  %m = linalg.mul ins(%s, %y : tensor<4096xE>, tensor<4096xE>) outs(%e : tensor<4096xE>) ATTRIBUTE -> tensor<4096xE>
  %d = linalg.sub ins(%m, %x : tensor<4096xE>, tensor<4096xE>) outs(%e : tensor<4096xE>) -> tensor<4096xE>
  return %d : tensor<4096xE>
}"""


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_every_op_rounds_fused_or_not(weir, element):
    random = numpy.random.default_rng(1)
    x, y = (get_bits(random.standard_normal(4096).astype(F32), element) for _ in range(2))

    def step(values):
        return get_values(get_bits(values, element), element)
    a, b = get_values(x, element), get_values(y, element)
    expected = get_bits(step(step(a + b) * b) - a, element)
    inputs = {"arg0": (element.upper(), x), "arg1": (element.upper(), y)}
    # The twin: without the roundings between, other bits come out.
    assert (get_bits((a + b) * b - a, element) != expected).any()
    for attribute in ["", "{weir.no_fuse}"]:
        text = CHAIN.replace("xE>", f"x{element}>").replace("ATTRIBUTE", attribute)
        assert (run(weir, text, inputs)["result0"] == expected).all()


MODEL = """
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
#bias = affine_map<(i, j) -> (j)>
func.func @f(%x: tensor<37x300xE> {weir.name = "x"}, %w: tensor<300x23xE> {weir.name = "w"},
             %b: tensor<23xE> {weir.name = "b"}) -> tensor<37xE> {
  %zero = arith.constant 0.0 : E
  %e = tensor.empty() : tensor<37x23xE>
  %init = linalg.fill ins(%zero : E) outs(%e : tensor<37x23xE>) -> tensor<37x23xE>
  %h = linalg.matmul ins(%x, %w : tensor<37x300xE>, tensor<300x23xE>) outs(%init : tensor<37x23xE>) -> tensor<37x23xE>
  %t = linalg.generic {indexing_maps = [#all, #bias, #all], iterator_types = ["parallel", "parallel"]}
      ins(%h, %b : tensor<37x23xE>, tensor<23xE>) outs(%e : tensor<37x23xE>) {
  ^bb0(%p: E, %q: E, %o: E):
    %s = arith.addf %p, %q : E
    %y = math.tanh %s : E
    linalg.yield %y : E
  } -> tensor<37x23xE>
  %e1 = tensor.empty() : tensor<37xE>
  %init1 = linalg.fill ins(%zero : E) outs(%e1 : tensor<37xE>) -> tensor<37xE>
  %r = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%t : tensor<37x23xE>) outs(%init1 : tensor<37xE>) {
  ^bb0(%p: E, %o: E):
    %s = arith.addf %p, %o : E
    linalg.yield %s : E
  } -> tensor<37xE>
  return %r : tensor<37xE>
}
"""


@pytest.mark.parametrize("element, tolerance", [("f16", 2e-3), ("bf16", 1.6e-2)])
def test_models_and_gradients(weir, element, tolerance):
    text = MODEL.replace("xE>", f"x{element}>").replace(": E", f": {element}")
    artifact = weir.compile_text(text, "a", "--vjp=f")
    for entry in ["f", "f.vjp"]:
        weir.compare(artifact, [f"--entry={entry}", "--random-inputs=5"], tolerance, validated=True)
    # The long sums are of f32: what rounded at each step would be far off.
    weir.run("run", artifact, "--entry=f.vjp", "--random-inputs=5", "--check-values")
    answer = weir.run("verify", artifact)
    assert "0 taken from the compiler" in answer, answer


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_gradient_of_the_first_largest(weir, element):
    """With its place, as PyTorch's max along a dimension: all of it to the first of ties."""
    lowest = {"f16": "0xFC00", "bf16": "0xFF80"}[element]
    artifact = weir.compile_text(f"""func.func @f(%x: tensor<3x5x{element}>) -> tensor<3x{element}> {{
  %z = arith.constant dense<{lowest}> : tensor<3x{element}>
  %n = arith.constant dense<0> : tensor<3xi64>
  %r:2 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}} ins(%x : tensor<3x5x{element}>) outs(%z, %n : tensor<3x{element}>, tensor<3xi64>) {{
  ^bb0(%a: {element}, %o: {element}, %p: i64):
    %i = linalg.index 1 : index
    %k = arith.index_cast %i : index to i64
    %m = arith.maximumf %a, %o : {element}
    %g = arith.cmpf ogt, %a, %o : {element}
    %s = arith.select %g, %k, %p : i64
    linalg.yield %m, %s : {element}, i64
  }} -> (tensor<3x{element}>, tensor<3xi64>)
  return %r#0 : tensor<3x{element}>
}}
""", "a", "--vjp=f")
    with zipfile.ZipFile(artifact) as archive:
        entries = json.loads(archive.read("manifest.json"))["entries"]
    x, dy = next(entry for entry in entries if entry["name"] == "f.vjp")["arguments"]
    values = numpy.array([[1, 7, 3, 7, 2], [-1, -2, -3, -1, -1], [0, 0, 0, 0, 0]], F32)
    write(weir.folder / "in.safetensors", {
        x["name"]: (element.upper(), get_bits(values, element)),
        dy["name"]: (element.upper(), get_bits(numpy.array([2, 3, 4], F32), element))})
    for device in "vulkan", "sim", "reference":
        weir.run("run", artifact, "--entry=f.vjp", f"--device={device}", "--input=in.safetensors", "--output=out.safetensors")
        found = [get_values(bits, element) for bits in read(weir.folder / "out.safetensors").values() if bits.ndim == 2]
        assert (found == numpy.array([[0, 2, 0, 0, 0], [3, 0, 0, 0, 0], [4, 0, 0, 0, 0]])).all(), device


def test_integers_of_16_bits(weir):
    text = """func.func @f(%x: tensor<101xi16>, %y: tensor<101xi16>) -> (tensor<101xi16>, tensor<101xf32>) {
      %e = tensor.empty() : tensor<101xi16>
      %e1 = tensor.empty() : tensor<101xf32>
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                                              affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%x, %y : tensor<101xi16>, tensor<101xi16>) outs(%e, %e1 : tensor<101xi16>, tensor<101xf32>) {
      ^bb0(%a: i16, %b: i16, %o: i16, %o1: f32):
        %p = arith.muli %a, %b : i16
        %m = arith.maxsi %p, %a : i16
        %f = arith.sitofp %m : i16 to f32
        linalg.yield %m, %f : i16, f32
      } -> (tensor<101xi16>, tensor<101xf32>)
      return %r#0, %r#1 : tensor<101xi16>, tensor<101xf32>
    }"""
    random = numpy.random.default_rng(2)
    x, y = (random.integers(-(1 << 15), 1 << 15, 101, dtype=numpy.int16) for _ in range(2))
    found = run(weir, text, {"arg0": ("I16", x), "arg1": ("I16", y)})
    expected = numpy.maximum(x * y, x)
    assert (found["result0"].view(numpy.int16) == expected).all()
    assert (found["result1"].view(F32) == expected).all()


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_a_profile_without_16_bits_has_the_same_bits(weir, element):
    """Of all halves to f32, and of as many floats, around each half and in the middle between two, to halves."""
    halves = numpy.arange(1 << 16, dtype=numpy.uint16)
    middles = (get_values(halves, element).view(numpy.uint32) + (1 << (15 if element == "bf16" else 12))).view(F32)
    write(weir.folder / "halves.safetensors", {"arg0": (element.upper(), halves)})
    write(weir.folder / "middles.safetensors", {"arg0": ("F32", middles)})
    for number, (source, target) in enumerate([(element, "f32"), ("f32", element)]):
        inputs = f"--input={'halves' if number == 0 else 'middles'}.safetensors"
        outputs = []
        for has in (True, False):
            target_profile = f"--target=vulkan:{weir.profile(storage16=has)}"
            artifact = weir.compile_text(cast(source, target, 1 << 16), "a", target_profile)
            weir.run("run", artifact, inputs, "--output=out.safetensors")
            outputs.append((weir.folder / "out.safetensors").read_bytes())
        assert outputs[0] == outputs[1]


def test_casts_that_the_hosts_compiler_makes(weir):
    """LLVM finds that f32 does where the text has f64, and calls for the cast of that to bf16."""
    type, maps = "tensor<10x8x12x{}>", "affine_map<(i, j, k) -> (i, j, k)>"
    kinds = '"parallel", "parallel", "parallel"'
    artifact = weir.compile_text(f"""func.func @f(%a: {type.format('f64')}) -> {type.format('f64')} {{
      %e = tensor.empty() : {type.format('bf16')}
      %n = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} outs(%e : {type.format('bf16')}) {{
      ^bb0(%o: bf16):
        %i = linalg.index 0 : index
        %p = arith.index_cast %i : index to i32
        %most = arith.constant 9 : i32
        %m = arith.remui %p, %most : i32
        %q = arith.uitofp %m : i32 to f64
        %k = arith.constant 0.125 : f64
        %s = arith.mulf %q, %k : f64
        %r = arith.truncf %s : f64 to bf16
        linalg.yield %r : bf16
      }} -> {type.format('bf16')}
      %z = tensor.empty() : {type.format('f64')}
      %m = linalg.generic {{indexing_maps = [{maps}, {maps}, {maps}], iterator_types = [{kinds}]}}
          ins(%n, %a : {type.format('bf16')}, {type.format('f64')}) outs(%z : {type.format('f64')}) {{
      ^bb0(%x: bf16, %y: f64, %o: f64):
        %t = arith.extf %x : bf16 to f64
        %r = arith.mulf %t, %y : f64
        linalg.yield %r : f64
      }} -> {type.format('f64')}
      return %m : {type.format('f64')}
    }}""")
    output = weir.compare(artifact, ["--random-inputs=1"], 0)
    weir.run("run", artifact, "--device=reference", "--random-inputs=1", "--output=written.safetensors")
    assert (weir.folder / "written.safetensors").read_bytes() == output.read_bytes()
