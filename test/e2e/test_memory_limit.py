"""`weir compile --memory-limit`, `--checkpoint=auto` and `--pareto`: no bit of any result changes, the arena fits, and the
curve tells what limits make."""

import json
import re
import subprocess
import sys

import pytest
from conftest import BIN, ROOT
from graphs import make

sys.path.insert(0, str(ROOT / "python"))
from weir_check.__main__ import check as recheck  # noqa: E402

ENTRIES = [("mlp/mlp", ["--grad=mlp_loss", "--entry=mlp_loss.grad"]),
           ("mlp/mlp", ["--train=adamw:mlp_loss", "--entry=mlp_loss.step"]),
           ("layer_norm_vjp", []),
           ("background_case1", [])]
# Each layer's input is kept for its gradient, unless it is made again.
DEEP = """
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @f(%x: tensor<32x64xf32>, %w: tensor<64x64xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %scalar = tensor.empty() : tensor<f32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
LAYERS
  %loss = linalg.reduce { arith.addf } ins(%x5 : tensor<32x64xf32>) outs(%init : tensor<f32>) dimensions = [0, 1]
  return %loss : tensor<f32>
}
"""
LAYER = """
  %mI = linalg.matmul ins(%xP, %w : tensor<32x64xf32>, tensor<64x64xf32>) outs(%fill : tensor<32x64xf32>) -> tensor<32x64xf32>
  %xI = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%mI : tensor<32x64xf32>) outs(%empty : tensor<32x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    %e = math.erf %t : f32
    linalg.yield %e : f32
  } -> tensor<32x64xf32>
"""


def make_deep():
    layers = "".join(re.sub("P", "" if i == 1 else str(i - 1), LAYER.replace("I", str(i))) for i in range(1, 6))
    return DEEP.replace("LAYERS", layers)


def ask(weir, source, name, *flags):
    """Returns the status of a compilation and what it says."""
    done = subprocess.run([BIN / "weir", "compile", source, "-o", weir.folder / f"{name}.weir", *flags],
                          cwd=weir.folder, capture_output=True, text=True)
    return done.returncode, done.stderr


def get_smallest(text):
    """The smallest limit that fits all entries, of what the errors say."""
    assert all(line.startswith("error: ") for line in text.splitlines()), text
    return max(map(int, re.findall(r"the smallest limit that fits is (\d+)", text)))


def get_arenas(weir, artifact):
    return {plan["entry"]: plan["arena_bytes"] for plan in weir.inspect(artifact)["plans"]}


def check_limit(weir, source, flags, limit, expected, inputs):
    """Compiles with a limit that fits: no arena is larger, both checkers agree, and every
    result has the bits of `expected`."""
    status, text = ask(weir, source, "limited", *flags, f"--memory-limit={limit}")
    assert status == 0, text
    artifact = weir.folder / "limited.weir"
    assert all(bytes <= limit for bytes in get_arenas(weir, artifact).values())
    weir.run("verify", artifact)
    assert all(claim["holds"] for claim in recheck(artifact))
    output = weir.folder / "limited.safetensors"
    weir.run("run", artifact, *inputs, f"--output={output}", validated=True)
    assert output.read_bytes() == expected.read_bytes(), "a limit changed bits"
    weir.simulate(artifact, inputs, output)
    return text


def check(weir, source, flags, inputs):
    """Returns the arena as it is, in the best order, and at the least."""
    weir.run("compile", source, "-o", "a.weir", *flags, "--target=vulkan")
    expected = weir.folder / "expected.safetensors"
    weir.run("run", "a.weir", *inputs, f"--output={expected}")
    as_is = max(get_arenas(weir, weir.folder / "a.weir").values())
    if as_is == 0:
        return None
    text = check_limit(weir, source, flags, as_is, expected, inputs)
    assert "repeated" not in text and text.startswith(f"memory limit {as_is}, entry ")
    status, text = ask(weir, source, "b", *flags, "--memory-limit=1")
    assert status == 2 and "where most are live" in text
    smallest = get_smallest(text)
    assert smallest <= as_is
    text = check_limit(weir, source, flags, smallest, expected, inputs)
    status, error = ask(weir, source, "c", *flags, f"--memory-limit={smallest - 1}")
    assert status == 2 and get_smallest(error) == smallest
    assert not (weir.folder / "c.weir").exists()
    if smallest < as_is:
        assert "repeated" in text or "one dispatch a wave" in text or "moved" in text
    return as_is, smallest, text


@pytest.mark.parametrize("name, flags", ENTRIES)
def test_examples(weir, name, flags):
    as_is, smallest, _ = check(weir, weir.examples / f"{name}.mlir", flags, ["--random-inputs=1"])
    assert smallest < as_is or name != "mlp/mlp"


def test_values_are_made_again(weir):
    """Most values that are kept for the gradients can be computed again instead."""
    source = weir.folder / "deep.mlir"
    source.write_text(make_deep())
    flags = ["--grad=f", "--entry=f.grad"]
    as_is, smallest, text = check(weir, source, flags, ["--random-inputs=1"])
    assert smallest < 0.7 * as_is
    assert re.search(r"with \d+ dispatch(es)? repeated", text)
    # In between, as little as is enough.
    middle = (as_is + smallest) // 2
    text = check_limit(weir, source, flags, middle, weir.folder / "expected.safetensors", ["--random-inputs=1"])
    assert smallest <= int(re.search(r"(\d+) bytes$", text.strip())[1]) <= middle


@pytest.mark.parametrize("seed", range(400, 420))
def test_random_graphs(weir, seed):
    """At four fifths of what they take: an error, or the same bits in no more than that."""
    source, inputs = weir.folder / "a.mlir", [f"--random-inputs={seed}"]
    source.write_text(make(seed, differentiable=seed % 2 == 0).text())
    flags = ["--vjp=f", "--entry=f.vjp"] if seed % 2 == 0 else []
    weir.run("compile", source, "-o", "a.weir", *flags)
    limit = 4 * max(get_arenas(weir, weir.folder / "a.weir").values()) // 5
    if limit == 0:
        return
    status, text = ask(weir, source, "b", *flags, f"--memory-limit={limit}")
    assert status == 0 or get_smallest(text) > limit
    limit = limit if status == 0 else get_smallest(text)
    expected = weir.folder / "expected.safetensors"
    weir.run("run", "a.weir", *inputs, f"--output={expected}")
    check_limit(weir, source, flags, limit, expected, inputs)


def test_barriers_do_not_take_the_room_back(weir):
    """Another order for fewer barriers stays within the limit, too."""
    source = weir.folder / "deep.mlir"
    source.write_text(make_deep())
    flags = ["--grad=f", "--entry=f.grad", "--target=vulkan"]
    _, text = ask(weir, source, "a", *flags, "--memory-limit=1")
    smallest = get_smallest(text)
    for reorder in ("off", "safe", "100%"):
        status, text = ask(weir, source, "b", *flags, f"--memory-limit={smallest}", f"--reorder={reorder}")
        assert status == 0, text
        assert max(get_arenas(weir, weir.folder / "b.weir").values()) <= smallest


def test_two_queues(weir):
    """A repeated dispatch that reuses bytes waits for the other queue."""
    source, inputs = weir.folder / "deep.mlir", ["--random-inputs=1"]
    source.write_text(make_deep())
    flags = ["--grad=f", "--entry=f.grad", f"--target=vulkan:{weir.profile(queues=2)}"]
    weir.run("compile", source, "-o", "a.weir", *flags)
    expected = weir.folder / "expected.safetensors"
    weir.run("run", "a.weir", *inputs, f"--output={expected}")
    as_is = max(get_arenas(weir, weir.folder / "a.weir").values())
    smallest = get_smallest(ask(weir, source, "b", *flags, "--memory-limit=1")[1])
    assert smallest < 0.7 * as_is
    for limit in smallest, (as_is + smallest) // 2:
        check_limit(weir, source, flags, limit, expected, inputs)
    waits = weir.inspect(weir.folder / "limited.weir")["plans"][0]["waits"]
    assert waits > 0


def test_all_values_are_the_references(weir):
    """Values that are computed twice agree with the reference, too."""
    source = weir.folder / "deep.mlir"
    source.write_text(make_deep())
    flags = ["--grad=f", "--entry=f.grad"]
    _, text = ask(weir, source, "a", *flags, "--memory-limit=1")
    status, text = ask(weir, source, "b", *flags, f"--memory-limit={get_smallest(text)}")
    assert status == 0 and "repeated" in text
    answer = json.loads(weir.run("run", "b.weir", "--random-inputs=1", "--check-values", "--json", "--tolerance=1e-4"))
    assert answer["passes"]


@pytest.mark.parametrize("reorder", ["safe", "off"])
def test_the_curve_tells_what_limits_make(weir, reorder):
    source = weir.folder / "deep.mlir"
    source.write_text(make_deep())
    flags = ["--grad=f", "--entry=f.grad", f"--reorder={reorder}"]
    status, text = ask(weir, source, "a", *flags, "--pareto=curve.json")
    assert status == 0 and not text
    [curve] = json.loads((weir.folder / "curve.json").read_text())["entries"]
    assert len(curve["points"]) > 3 and (weir.folder / "curve.svg").read_text().count("<circle") == len(curve["points"])
    for point in curve["points"]:
        status, text = ask(weir, source, "b", *flags, f"--memory-limit={point['arena_bytes']}")
        assert status == 0
        [plan] = weir.inspect(weir.folder / "b.weir")["plans"]
        assert [plan[key] for key in ("arena_bytes", "dispatches", "barriers")] == [
            point[key] for key in ("arena_bytes", "dispatches", "barriers")]
        more = re.search(r"\((-?[0-9.]+)% more work\)", text)
        assert float(more[1] if more else 0) == pytest.approx(100 * (point["work"] - 1), abs=0.051)
    smallest = get_smallest(ask(weir, source, "b", *flags, "--memory-limit=1")[1])
    assert curve["points"][-1]["arena_bytes"] == smallest >= curve["points"][-1]["bound_bytes"]


def test_checkpoint_auto_takes_the_knee(weir):
    """Less bytes, the same bits; both checkers agree."""
    source, inputs = weir.folder / "deep.mlir", ["--random-inputs=1"]
    source.write_text(make_deep())
    flags = ["--grad=f", "--entry=f.grad", "--target=vulkan"]
    weir.run("compile", source, "-o", "a.weir", *flags)
    expected, output = weir.folder / "expected.safetensors", weir.folder / "auto.safetensors"
    weir.run("run", "a.weir", *inputs, f"--output={expected}")
    status, text = ask(weir, source, "auto", *flags, "--checkpoint=auto", "--pareto=curve.json")
    assert status == 0 and text.startswith("checkpoint auto, entry 'f.grad': ")
    [curve] = json.loads((weir.folder / "curve.json").read_text())["entries"]
    [knee] = [point for point in curve["points"] if point["knee"]]
    assert get_arenas(weir, weir.folder / "auto.weir") == {"f.grad": knee["arena_bytes"]}
    assert knee["work"] > 1 and knee["arena_bytes"] < curve["points"][0]["arena_bytes"]
    weir.run("verify", "auto.weir")
    assert all(claim["holds"] for claim in recheck(weir.folder / "auto.weir"))
    weir.run("run", "auto.weir", *inputs, f"--output={output}", validated=True)
    assert output.read_bytes() == expected.read_bytes()
    weir.simulate("auto.weir", inputs, output)
