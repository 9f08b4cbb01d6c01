"""Graphs of thousands of elementwise ops, and such whose values have many paths to the inputs."""

import numpy
import pytest
from safetensors.numpy import save_file

BODIES = ["arith.addf {0}, {1}", "math.tanh {0}", "arith.mulf {0}, {1}", "arith.subf {0}, {1}"]


def chain(count, type, far=60):
    """Each op is of the one before, every tenth of one far before, too, else of %x."""
    values = ["%x"]
    for i in range(count):
        other = values[-far] if i % 10 == 0 and i > far else "%x"
        body = BODIES[i % len(BODIES)].format(values[-1], other)
        values.append(f"%v{i}")
        yield f"    {values[-1]} = {body} : {type}\n"


def write(lines, last, type):
    return f"func.func @f(%x: {type} {{weir.name = \"x\"}}) -> ({type} {{weir.name = \"y\"}}) {{\n{''.join(lines)}    return {last} : {type}\n}}\n"


def compute(count, x, far=60):
    """The chain by NumPy, in f64."""
    values = [x]
    for i in range(count):
        a, b = values[-1], values[-far] if i % 10 == 0 and i > far else x
        values.append([a + b, numpy.tanh(a), a * b, a - b][i % len(BODIES)])
    return values[-1]


def check(weir, artifact, inputs, expected, tolerance):
    """On Vulkan, and with the same bits on the simulator."""
    paths = [weir.folder / name for name in ("x.safetensors", "expected.safetensors", "output.safetensors")]
    save_file(inputs, paths[0])
    save_file(expected, paths[1])
    weir.run("run", artifact, f"--input={paths[0]}", f"--compare={paths[1]}", f"--tolerance={tolerance}", f"--output={paths[2]}")
    weir.simulate(artifact, [f"--input={paths[0]}"], paths[2])


def test_thousands_of_ops(weir):
    count, type = 2000, "tensor<6x6xf32>"
    artifact = weir.compile_text(write(chain(count, type), f"%v{count - 1}", type))
    [plan] = weir.inspect(artifact)["plans"]
    assert plan["dispatches"] == -(-count // 64)
    x = numpy.random.default_rng(1).uniform(-1, 1, (6, 6)).astype(numpy.float32)
    check(weir, artifact, {"x": x}, {"y": compute(count, x.astype(numpy.float64)).astype(numpy.float32)}, 1e-4)


def test_gradient_of_hundreds(weir):
    count, type = 300, "tensor<6x6xf64>"
    artifact = weir.compile_text(write(chain(count, type), f"%v{count - 1}", type), "a", "--vjp=f", "--entry=f.vjp", "--target=vulkan")
    rng = numpy.random.default_rng(2)
    x, cotangent, step = rng.uniform(-1, 1, (6, 6)), rng.uniform(-1, 1, (6, 6)), 1e-6
    slope = (compute(count, x + step) - compute(count, x - step)) / (2 * step)
    check(weir, artifact, {"x": x, "cotangent.y": cotangent}, {"y": compute(count, x), "grad.x": slope * cotangent}, 1e-6)


# 36 elements: four neighbours cross the ends of rows. 64: they don't.
@pytest.mark.parametrize("size", [6, 8])
def test_many_paths(weir, size):
    """Each op reads the two before it: to the first lead more paths than one could walk."""
    count, type = 60, f"tensor<{size}x{size}xf32>"
    lines = [f"    %half = arith.constant dense<0.5> : {type}\n"]
    values = ["%x", "%x"]
    for i in range(count):
        lines.append(f"    %s{i} = arith.addf {values[-1]}, {values[-2]} : {type}\n    %v{i} = arith.mulf %s{i}, %half : {type}\n")
        values.append(f"%v{i}")
    artifact = weir.compile_text(write(lines, values[-1], type))
    x = numpy.arange(size * size, dtype=numpy.float32).reshape(size, size)
    check(weir, artifact, {"x": x}, {"y": x}, 0)  # the mean of equals, exactly
