"""Two checkers that share no code, `weir verify` and `python -m weir_check`, claim by claim."""

import json
import random
import subprocess
import sys

import pytest

from case3 import make_graph as make_case3
from conftest import BIN, ROOT, Weir
from edits import edit, read_documents, write_documents
from graphs import make_graph
from test_case2 import write_packed

sys.path.insert(0, str(ROOT / "python"))
from weir_check.__main__ import check  # noqa: E402
from weir_check.claims import CLAIMS  # noqa: E402
from weir_check.read import Unreadable  # noqa: E402

EDITS = 300
GRAPHS = range(300, 318)

# With constants, and a step that updates w and its state in place.
LOSS = """
func.func @loss(%x: tensor<64xf32> {weir.name = "x", weir.kind = "input"},
                %w: tensor<64xf32> {weir.name = "w", weir.kind = "param"}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %c = arith.constant dense<VALUES> : tensor<64xf32>
  %empty = tensor.empty() : tensor<64xf32>
  %scalar = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
  %y = linalg.mul ins(%x, %w : tensor<64xf32>, tensor<64xf32>) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %z = linalg.mul ins(%y, %c : tensor<64xf32>, tensor<64xf32>) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.reduce { arith.addf } ins(%z : tensor<64xf32>) outs(%init : tensor<f32>) dimensions = [0]
  return %sum : tensor<f32>
}
""".replace("VALUES", str([float(i) for i in range(64)]))


# Two rows into a donated argument, one after the other.
CACHE = """
func.func @cache(%c: tensor<16x8xf32> {weir.name = "c", weir.donate}, %x: tensor<1x8xf32>, %y: tensor<1x8xf32>,
                 %k: tensor<i64>) -> (tensor<16x8xf32> {weir.name = "c"}, tensor<16x8xf32>) {
  %n = tensor.extract %k[] : tensor<i64>
  %p = arith.index_cast %n : i64 to index
  %b = tensor.insert_slice %x into %c[%p, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<16x8xf32>
  %d = tensor.insert_slice %y into %b[5, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<16x8xf32>
  %empty = tensor.empty() : tensor<16x8xf32>
  %e = linalg.exp ins(%d : tensor<16x8xf32>) outs(%empty : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %d, %e : tensor<16x8xf32>, tensor<16x8xf32>
}
"""


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    """Compiles the examples, random graphs, and one for two queues."""
    weir = Weir(tmp_path_factory.mktemp("check"))
    sources = {path.stem: [path] for path in sorted(weir.examples.glob("*.mlir"))}
    sources["mlp"] = [weir.examples / "mlp/mlp.mlir", "--target=vulkan,cuda"]
    sources["packed"] = [write_packed(weir, 12, 12), "--start-from=dispatches"]
    texts = {"step": LOSS, "cache": CACHE, "case3": make_case3(4, 24, 48)} | {f"graph{s}": make_graph(s) for s in GRAPHS}
    for name, text in texts.items():
        source = weir.folder / f"{name}.mlir"
        source.write_text(text)
        sources[name] = [source] + ["--train=momentum:loss"] * (name == "step")
    for name, (source, *flags) in sources.items():
        weir.run("compile", source, "-o", f"{name}.weir", *flags)
    return {name: weir.folder / f"{name}.weir" for name in sources}


def ask_verify(path):
    """Returns {(entry, target, claim): whether it holds}, None where the file is refused."""
    done = subprocess.run([BIN / "weir", "verify", path, "--json"], capture_output=True, text=True)
    assert done.returncode in (0, 1, 2), done.stderr
    return None if done.returncode == 2 else get_verdict(json.loads(done.stdout)["claims"])


def ask_check(path):
    try:
        return get_verdict(check(path))
    except Unreadable:
        return None


def get_verdict(rows):
    """Of the claims that are about the plan alone."""
    return {(row["entry"], row["target"], row["claim"]): row["holds"] for row in rows if row["claim"] in CLAIMS}


def is_refused(verdict):
    return verdict is None or not all(holds for (_, _, claim), holds in verdict.items() if claim == "ranges")


def test_both_say_that_all_claims_hold(artifacts):
    for name, path in artifacts.items():
        verdict = ask_check(path)
        assert verdict and all(verdict.values()), f"{name}: {check(path)}"
        assert verdict == ask_verify(path), name


def test_both_say_the_same_of_edits(artifacts, tmp_path):
    bases = {False: [], True: []}  # by whether it is a random graph, which is small
    for name, artifact in artifacts.items():
        base = read_documents(artifact)
        if any(document.get("commands") for document in base[0].values()):
            bases[name.startswith("graph")].append(base)
    path, failed, held, refused = tmp_path / "a.weir", set(), 0, 0
    for seed in range(EDITS):
        choices = random.Random(seed)
        documents, rest = choices.choice(bases[seed % 4 == 0])
        documents, names = edit(choices, documents)
        write_documents(path, documents, rest)
        expected, verdict = ask_verify(path), ask_check(path)
        if is_refused(expected) and is_refused(verdict):
            refused += 1
            continue
        assert verdict == expected, f"seed {seed}, edits {names}"
        failed |= {claim for (_, _, claim), holds in verdict.items() if not holds}
        held += all(verdict.values())
    # What never differs proves nothing.
    assert held and refused and failed >= {"order", "barriers", "waves", "slots", "contents"}, failed


def test_module(artifacts, tmp_path):
    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "weir_check", *arguments], capture_output=True,
                              text=True, cwd=ROOT / "python")

    path = artifacts["layer_norm_vjp"]
    done = run(path)
    assert done.returncode == 0 and "FAILS" not in done.stdout, done.stdout
    documents, rest = read_documents(path)
    plan = next(d for name, d in documents.items() if name.startswith("plan/"))
    plan["commands"] = [c for c in plan["commands"] if c["command"] != "barrier"]
    broken = tmp_path / "broken.weir"
    write_documents(broken, documents, rest)
    done = run(broken, "--json")
    claims = json.loads(done.stdout)["claims"]
    order = next(row for row in claims if row["claim"] == "order")
    assert done.returncode == 1 and not order["holds"] and len(claims) == len(CLAIMS)
    assert "dispatch" in order["detail"] and "operand" in order["detail"] and "bytes [" in order["detail"]


def test_any_file_is_one_sentence(artifacts, tmp_path):
    path, data = tmp_path / "cut.weir", artifacts["layer_norm"].read_bytes()
    choices = random.Random(1)
    files = [b"", b"PK", data[:-1], data[: len(data) // 2], data + b"x"]
    for _ in range(200):
        changed = bytearray(data)
        for _ in range(choices.choice([1, 3])):
            at = choices.choice([choices.randrange(len(data)), -choices.randrange(1, 600)])
            changed[at] = choices.randrange(256)
        files.append(bytes(changed))
    for file in files:
        path.write_bytes(file)
        verdict = ask_check(path)
        assert verdict is None or all(verdict.values()), "the bytes of a graph that changed"
    done = subprocess.run([sys.executable, "-m", "weir_check", tmp_path], capture_output=True,
                          text=True, cwd=ROOT / "python")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
