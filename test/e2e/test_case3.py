"""Background case 3: many gradients alive at once, and operands that are read
again after the VJP of a norm. Where values lie must not change a bit."""

import numpy
import pytest
from safetensors.numpy import save_file

from case3 import make_graph

# f32 through 30 layers, relative to the largest magnitude of each result.
BOUND = 1e-5


def make_inputs(layers, rows, width):
    random = numpy.random.default_rng(7)
    inputs = {"x": random.standard_normal((rows, width)), "dy": random.standard_normal((rows, width))}
    for layer in range(layers):
        inputs[f"w{layer}"] = random.standard_normal((width, width))
        inputs[f"gamma{layer}"] = random.uniform(0.5, 1.5, width)
        inputs[f"b{layer}"] = 0.1 * random.standard_normal(width)
    return {name: value.astype(numpy.float32) for name, value in inputs.items()}


def expect(inputs, layers):
    """The results in f64, by NumPy, the norm's VJP through its root as an input."""
    values = {name: value.astype(numpy.float64) for name, value in inputs.items()}
    x, g = values["x"], values["dy"]
    scale, eps = (float(numpy.float32(value)) for value in (x.shape[1] ** -0.5, 1e-2))
    tape = []
    for layer in range(layers):
        root = numpy.sqrt((x**2).mean(1, keepdims=True) + eps)
        n = x / root * values[f"gamma{layer}"] + values[f"b{layer}"]
        h = n @ values[f"w{layer}"] * scale
        tape.append((x, root, n, h))
        x = x + h / (1 + numpy.exp(-h))
    results, kept, mirror = {"y": x}, {}, numpy.zeros_like(x)
    for layer in reversed(range(layers)):
        x, root, n, h = tape[layer]
        sigmoid, gamma = 1 / (1 + numpy.exp(-h)), values[f"gamma{layer}"]
        dh = g * (sigmoid + h * sigmoid * (1 - sigmoid)) * scale
        kept[layer] = dn = dh @ values[f"w{layer}"].T
        droot = -(dn * gamma * x).sum(1, keepdims=True) / root**2
        results |= {f"dw{layer}": n.T @ dh, f"dgamma{layer}": (dn * x / root).sum(0), f"db{layer}": dn.sum(0)}
        g = g + dn * gamma / root + droot * x / (x.shape[1] * root)
        if layer < layers - 1 - layer:
            mirror = mirror + dn * kept[layers - 1 - layer]
    return results | {"dx": g, "mirror": mirror}


def save(path, tensors):
    save_file({name: numpy.ascontiguousarray(value) for name, value in tensors.items()}, path)


@pytest.fixture
def case3(weir):
    """Writes graph, inputs and expected values of so many layers."""
    def write(layers, rows=24, width=48):
        inputs = make_inputs(layers, rows, width)
        save(weir.folder / "inputs.safetensors", inputs)
        save(weir.folder / "expected.safetensors", expect(inputs, layers))
        return make_graph(layers, rows, width)
    return write


COMPARISON = ["--input=inputs.safetensors", "--compare=expected.safetensors", f"--tolerance={BOUND}"]


def test_planned_and_pinned_are_the_same_bits(weir, case3):
    text = case3(30)
    outputs, sizes = [], []
    for name, flags in ("planned", []), ("pinned", ["--no-reuse"]):
        artifact = weir.compile_text(text, name, *flags)
        sizes.append(weir.inspect(artifact)["plans"][0]["arena_bytes"])
        output = weir.folder / f"{name}.safetensors"
        # Twice: the second run meets what the first left in the arena.
        weir.run("run", artifact, *COMPARISON, "--steps=2", f"--output={output}")
        weir.simulate(artifact, COMPARISON, output)
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1], "where values lie changed their bits"
    assert sizes[0] < sizes[1], "nothing shared memory, so nothing was tested"


@pytest.mark.parametrize("layers, rows, width", [(1, 1, 4), (2, 3, 5), (3, 24, 48)])
def test_the_reference_agrees(weir, case3, layers, rows, width):
    artifact = weir.compile_text(case3(layers, rows, width))
    weir.run("run", artifact, "--device=reference", "--f64", "--input=inputs.safetensors",
             "--compare=expected.safetensors", "--tolerance=1e-12")
    weir.run("run", artifact, *COMPARISON, validated=layers == 3)
