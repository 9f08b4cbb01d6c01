"""benchmarks/compile: its graphs are the models that they say, and its table is what was measured."""

import json
import math
import subprocess
import sys

import numpy
import pytest
from conftest import BIN, ROOT
from safetensors.numpy import load_file, save_file

FOLDER = ROOT / "benchmarks/compile"
sys.path.insert(0, str(FOLDER))
import graphs  # noqa: E402
import run as benchmark  # noqa: E402

LLAMA = dict(layers=1, hidden=8, heads=4, kv_heads=2, intermediate=6, vocabulary=7, sequence=4, batch=2)
TINY = {
    "llama": ("llama", LLAMA | {"tied": True}),
    "llama-lora": ("llama", LLAMA | {"rank": 2}),
    "gpt2": ("gpt2", dict(layers=1, hidden=8, heads=2, vocabulary=7, sequence=4, batch=2)),
    "vit": ("vit", dict(layers=1, hidden=6, heads=2, patch=4, classes=5, resolution=8, batch=2)),
    "resnet": ("resnet", dict(layers=18, width=4, stages=1, classes=3, resolution=16, batch=2)),
    "resnet-bottleneck": ("resnet", dict(layers=50, width=2, stages=1, classes=3, resolution=12, batch=2)),
    "mobilenet-v1": ("mobilenet", dict(width=4, stages=2, classes=3, resolution=12, batch=2)),
    "mobilenet-v2": ("mobilenet", dict(version=2, width=8, stages=2, classes=3, resolution=12, batch=2)),
    "unet": ("unet", dict(levels=2, width=4, groups=2, blocks=1, resolution=4, batch=2)),
}


# Differences are taken of every element, so these are smaller still; bottlenecks have the ops of other blocks.
SMALLER = {
    "llama": dict(batch=1, sequence=3, vocabulary=5, intermediate=4),
    "llama-lora": dict(batch=1, sequence=3, vocabulary=5, intermediate=4),
    "gpt2": dict(hidden=4, batch=1, sequence=3, vocabulary=5),
    "vit": dict(hidden=4),
    "resnet": dict(width=2, resolution=8),
    "mobilenet-v1": dict(width=2, resolution=8),
    "mobilenet-v2": dict(width=4, resolution=8, stages=1),
    "unet": dict(blocks=0, width=2, groups=2, batch=1),
}


@pytest.mark.parametrize("name", SMALLER)
def test_gradients_of_each_family(weir, name):
    family, sizes = TINY[name]
    sizes = sizes | SMALLER[name]
    graph = weir.folder / "graph.mlir"
    graph.write_text(graphs.FAMILIES[family](**sizes))
    # A bias in front of a norm has next to no gradient, and so fewer digits.
    weir.run("gradcheck", graph, "--entry=main", "--tolerance=1e-4")


class Model:
    """The models of graphs.py in PyTorch, of f64, on arguments by name."""

    def __init__(self, torch, arguments):
        self.torch, self.functional = torch, torch.nn.functional
        self.values = {name: torch.from_numpy(value) for name, value in arguments.items()}
        self.values = {name: x.double() if x.is_floating_point() else x for name, x in self.values.items()}
        self.read = set()

    def __getitem__(self, name):
        self.read.add(name)
        return self.values[name]

    def linear(self, x, name):
        bias = self[f"{name}.bias"] if f"{name}.bias" in self.values else None
        return self.functional.linear(x, self[f"{name}.weight"], bias)

    def conv(self, x, name, stride=1, padding=None):
        weight = self[f"{name}.weight"]
        bias = self[f"{name}.bias"] if f"{name}.bias" in self.values else None
        padding = weight.shape[-1] // 2 if padding is None else padding
        return self.functional.conv2d(x, weight, bias, stride, padding, groups=x.shape[1] // weight.shape[1])

    def conv_norm(self, x, name, stride=1):
        x = self.conv(x, f"{name}.conv", stride)
        return self.functional.batch_norm(x, None, None, self[f"{name}.norm.weight"], self[f"{name}.norm.bias"], True)

    def layer_norm(self, x, name):
        return self.functional.layer_norm(x, x.shape[-1:], self[f"{name}.weight"], self[f"{name}.bias"])

    def rms_norm(self, x, name):
        return self.functional.rms_norm(x, x.shape[-1:], self[f"{name}.weight"], 1e-5)

    def split(self, x, heads):
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    def attention(self, q, k, v, causal):
        mixed = self.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        return mixed.transpose(1, 2).flatten(2)

    def cross_entropy(self, scores, targets):
        return self.functional.cross_entropy(scores.flatten(0, -2), targets.flatten())

    def llama(self, layers, heads, kv_heads, sequence, hidden, tied=False, **_):
        torch, size = self.torch, hidden // heads
        rates = 10000.0 ** (-torch.arange(size // 2).double() * 2 / size)
        angles = torch.outer(torch.arange(sequence).double(), rates).repeat(1, 2)

        def rotate(x):
            first, second = x.chunk(2, -1)
            return x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()

        def project(x, name):
            y = self.linear(x, name)
            if f"{name}.up" in self.values:
                y = y + 2 * (x @ self[f"{name}.down"].T @ self[f"{name}.up"].T)
            return y

        x = self["embed.weight"][self["tokens"]]
        for i in range(layers):
            name = f"layers.{i}"
            y = self.rms_norm(x, f"{name}.input_norm")
            q = rotate(self.split(project(y, f"{name}.q"), heads))
            k = rotate(self.split(project(y, f"{name}.k"), kv_heads))
            v = self.split(project(y, f"{name}.v"), kv_heads)
            x = x + project(self.attention(q, k, v, True), f"{name}.o")
            y = self.rms_norm(x, f"{name}.post_norm")
            x = x + project(self.functional.silu(project(y, f"{name}.gate")) * project(y, f"{name}.up"), f"{name}.down")
        x = self.rms_norm(x, "norm")
        return self.cross_entropy(x @ self["embed.weight"].T if tied else self.linear(x, "head"), self["next"])

    def block(self, x, name, heads, activation, causal):
        q, k, v = (self.split(part, heads) for part in
                   self.linear(self.layer_norm(x, f"{name}.attention_norm"), f"{name}.qkv").chunk(3, -1))
        x = x + self.linear(self.attention(q, k, v, causal), f"{name}.mix")
        return x + self.linear(activation(self.linear(self.layer_norm(x, f"{name}.mlp_norm"), f"{name}.up")), f"{name}.down")

    def gpt2(self, layers, heads, **_):
        def activation(x):
            return self.functional.gelu(x, approximate="tanh")

        x = self["embed.weight"][self["tokens"]] + self["place.weight"]
        for i in range(layers):
            x = self.block(x, f"blocks.{i}", heads, activation, True)
        return self.cross_entropy(self.layer_norm(x, "norm") @ self["embed.weight"].T, self["next"])

    def vit(self, layers, heads, patch, batch, **_):
        x = self.conv(self["images"], "patches", patch, 0).flatten(2).transpose(1, 2)
        x = self.torch.cat([self["token"].expand(batch, -1, -1), x], 1) + self["places"]
        for i in range(layers):
            x = self.block(x, f"blocks.{i}", heads, self.functional.gelu, False)
        return self.cross_entropy(self.linear(self.layer_norm(x, "norm")[:, 0], "head"), self["classes"])

    def classify(self, x):
        return self.cross_entropy(self.linear(x.mean((2, 3)), "head"), self["classes"])

    def resnet(self, layers, **_):
        relu = self.torch.relu
        x = self.functional.max_pool2d(relu(self.conv_norm(self["images"], "stem", 2)), 3, 2, 1)
        i = 0
        while f"stages.0.{i}.0.conv.weight" in self.values:
            name = f"stages.0.{i}"
            y = x
            for part in range(last := 2 if layers >= 50 else 1):
                y = relu(self.conv_norm(y, f"{name}.{part}"))
            y = self.conv_norm(y, f"{name}.{last}")
            x = relu(y + (self.conv_norm(x, f"{name}.shortcut") if x.shape != y.shape else x))
            i += 1
        assert i == (3 if layers >= 50 else 2)
        return self.classify(x)

    def mobilenet(self, version=1, **_):
        relu = self.torch.relu if version == 1 else self.functional.relu6
        x = relu(self.conv_norm(self["images"], "stem", 2))
        if version == 1:
            for stage, stride in (0, 1), (1, 2):
                x = relu(self.conv_norm(x, f"stages.{stage}.0.0", stride))
                x = relu(self.conv_norm(x, f"stages.{stage}.0.1"))
            return self.classify(x)
        for name, stride in ("0.0", 1), ("1.0", 2), ("1.1", 1):
            name, y = f"stages.{name}", x
            if f"{name}.0.conv.weight" in self.values:
                y = relu(self.conv_norm(y, f"{name}.0"))
            y = self.conv_norm(relu(self.conv_norm(y, f"{name}.1", stride)), f"{name}.2")
            x = x + y if x.shape == y.shape else y
        return self.classify(relu(self.conv_norm(x, "last")))

    def unet(self, groups, **_):
        def norm(x, name):
            return self.functional.silu(
                self.functional.group_norm(x, groups, self[f"{name}.weight"], self[f"{name}.bias"]))

        def block(x, name):
            y = self.conv(norm(x, f"{name}.norm0"), f"{name}.conv0")
            y = self.conv(norm(y, f"{name}.norm1"), f"{name}.conv1")
            return y + (self.conv(x, f"{name}.shortcut") if x.shape != y.shape else x)

        top = block(self.conv(self["images"], "first"), "down.0.0")
        low = block(self.conv(top, "down.0.half", 2), "down.1.0")
        x = block(self.torch.cat([block(low, "middle"), low], 1), "up.1.0")
        x = self.conv(self.functional.interpolate(x, scale_factor=2, mode="nearest"), "up.1.twice")
        x = block(self.torch.cat([x, top], 1), "up.0.0")
        return self.functional.mse_loss(self.conv(norm(x, "last.norm"), "last.conv"), self["targets"])


@pytest.mark.parametrize("name", TINY)
def test_loss_is_that_of_pytorch(weir, name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: scripts/setup --torch")
    family, sizes = TINY[name]
    artifact = weir.folder / "a.weir"
    (weir.folder / "graph.mlir").write_text(graphs.FAMILIES[family](**sizes))
    weir.run("compile", "graph.mlir", "-o", artifact)
    random, arguments = numpy.random.default_rng(1), {}
    for argument in weir.inspect(artifact)["entries"][0]["arguments"]:
        shape = argument["shape"]
        if argument["dtype"] == "I64":
            below = sizes.get("vocabulary") or sizes["classes"]
            arguments[argument["name"]] = random.integers(0, below, shape)
        else:
            arguments[argument["name"]] = random.normal(0, 1, shape).astype(numpy.float32)
    if "next" in arguments:
        arguments["next"][0, 0] = -100  # is left out of the mean
    save_file(arguments, weir.folder / "in.safetensors")
    weir.run("run", artifact, "--device=reference", "--f64", "--input=in.safetensors", "--output=out.safetensors")
    [loss] = load_file(weir.folder / "out.safetensors").values()
    model = Model(torch, arguments)
    expected = getattr(model, family)(**sizes).item()
    assert model.read == set(arguments), "the models differ in their parameters"
    # The tables of angles are of f32.
    assert math.isclose(loss, expected, rel_tol=1e-6)


def test_size_of_a_graph_follows_its_depth():
    texts = [graphs.llama(**LLAMA | {"layers": layers}) for layers in (1, 2, 3)]
    first, second = (len(more) - len(less) for less, more in zip(texts, texts[1:]))
    assert first > 10000 and abs(second - first) < first / 20
    # No weights in the text: four times the parameters are as many bytes.
    assert abs(len(graphs.llama(**LLAMA | {"vocabulary": 28})) - len(texts[0])) < 200


def test_command_line_prints_the_graph():
    command = [sys.executable, FOLDER / "graphs.py", "llama", *(f"--{k.replace('_', '-')}={v}" for k, v in LLAMA.items())]
    done = subprocess.run([*command, "--tied"], capture_output=True, text=True, check=True)
    assert done.stdout == graphs.llama(**LLAMA, tied=True)
    wrong = subprocess.run([sys.executable, FOLDER / "graphs.py", "resnet", "--layers=19"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "no ResNet has 19 layers" in wrong.stderr


def test_run_measures_and_compares(tmp_path):
    command = [sys.executable, FOLDER / "run.py", f"--weir={BIN / 'weir'}", "--only=^layer_norm"]
    subprocess.run([*command, f"--json={tmp_path / 'a.json'}"], check=True, stdout=subprocess.PIPE)
    rows = json.loads((tmp_path / "a.json").read_text())["cases"]
    assert [row["name"] for row in rows] == ["layer_norm", "layer_norm_vjp"]
    assert all(0 < row["seconds"] < 60 and row["peak_mb"] > 1 for row in rows)
    for row in rows:
        row["seconds"] *= 1000
    (tmp_path / "a.json").write_text(json.dumps({"cases": rows}))
    for against in tmp_path / "a.json", BIN / "weir":
        done = subprocess.run([*command, f"--against={against}"], check=True, stdout=subprocess.PIPE, text=True)
        header, _, *lines = done.stdout.strip().split("\n")
        ratios = [float(line.split("|")[header.split("|").index(" ratio ")]) for line in lines]
        assert all(ratio < 0.1 for ratio in ratios) == (against.suffix == ".json")


def test_growth_and_levels(tmp_path, capsys):
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"traceEvents": [
        {"name": "graph", "cat": "level", "ph": "X", "ts": 0, "dur": 500000},
        {"name": "weir-raise-norms", "cat": "pass", "ph": "X", "ts": 0, "dur": 400000},
        {"name": "ordered", "cat": "level", "ph": "X", "ts": 500000, "dur": 1500000}]}))
    levels = benchmark.read_levels(trace)
    assert levels == {"graph": 0.5, "ordered": 1.5}
    rows = [{"name": "llama-6", "seconds": 2.0, "peak_mb": 10, "levels": levels},
            {"name": "llama-30", "seconds": 8.0, "peak_mb": 20, "levels": {}},
            {"name": "unet", "problem": "longer than 1 s"}]
    benchmark.add_growth(rows)
    benchmark.print_table(rows)
    assert capsys.readouterr().out.split("\n")[:-1] == [
        "| | s | growth | MB | graph | ordered |", "| --- | --- | --- | --- | --- | --- |",
        "| llama-6 | 2.00 |  | 10 | 0.50 | 1.50 |", "| llama-30 | 8.00 | 4.00 of llama-6 | 20 |  |  |",
        "| unet | longer than 1 s |"]


def test_run_says_what_failed(tmp_path):
    slow = tmp_path / "weir"
    slow.write_text("#!/bin/sh\ncase \"$2\" in --help) exit 0;; esac\nexec sleep 60\n")
    slow.chmod(0o755)
    command = [sys.executable, FOLDER / "run.py", f"--weir={slow}", "--only=^layer_norm$", "--limit=0.5"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "longer than 0.5 s" in done.stdout


def test_xla_is_timed_for_llamas_alone(tmp_path, capsys):
    llama, vit = (next(case for case in benchmark.CASES if case.name == name) for name in ("llama-6", "vit-12"))
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho \"$@\" > arguments\necho '{\"seconds\": 1.5}'\n".replace(
        "arguments", str(tmp_path / "arguments")))
    python.chmod(0o755)
    assert benchmark.measure_xla(vit, python, 60) is None and not (tmp_path / "arguments").exists()
    assert benchmark.measure_xla(llama, python, 60) == 1.5
    assert "xla.py --layers=6" in (tmp_path / "arguments").read_text()
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    assert benchmark.measure_xla(llama, python, 0.2) is None
    assert "longer than 0.2 s" in capsys.readouterr().err


def test_xla_without_jax(tmp_path):
    command = [sys.executable, "-c", "import sys; sys.modules['jax'] = None; import runpy; "
               f"sys.path.insert(0, {str(FOLDER)!r}); runpy.run_path({str(FOLDER / 'xla.py')!r}, run_name='__main__')"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "has no jax" in done.stderr
