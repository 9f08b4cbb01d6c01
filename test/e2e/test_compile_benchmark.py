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
    "resnet": ("resnet", dict(layers=18, width=4, stages=2, classes=3, resolution=16, batch=2)),
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
    "resnet": dict(width=2, resolution=8, stages=1),
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


def make_watched_model(read):
    """Returns the class of PyTorch's models that adds the name of each argument to `read`."""
    import torch_models

    class Watched(torch_models.Model):
        def __getitem__(self, name):
            read.add(name)
            return super().__getitem__(name)

    return Watched


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
    values = {name: torch.from_numpy(value) for name, value in arguments.items()}
    read = set()
    model = make_watched_model(read)({name: x.double() if x.is_floating_point() else x for name, x in values.items()})
    expected = getattr(model, family)(**sizes).item()
    assert read == set(arguments), "the models differ in their parameters"
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
