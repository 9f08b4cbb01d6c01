"""Two checkers that share no code, `weir verify` and `python -m weir_check`, claim by claim."""

import collections
import json
import random
import re
import subprocess
import sys
import zipfile

import pytest

from case3 import make_graph as make_case3
from conftest import BIN, ROOT, Weir
from edits import edit, read_documents, run_checkers, write_documents
from graphs import make_graph
from mutants import list_mutants
from test_case2 import write_packed
from test_mutants import SOURCES

sys.path.insert(0, str(ROOT / "python"))
from weir_check.__main__ import check  # noqa: E402
from weir_check.claims import CLAIMS  # noqa: E402
from weir_check.read import SCHEMA_VERSION, Unreadable  # noqa: E402

EDITS = 300
GRAPHS = range(300, 318)
CODE_CLAIMS = {"validity", "effects", "bounds", "permissions", "races", "uniform barriers", "loops", "needs"}
MUTATED = ["background_case1", "case3", "case6", "two_queues", "mlp_train"]
MUTANTS = 4  # of one artifact, kind and class

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
    sources["pieces"] = [weir.examples / "mlp/mlp.mlir", "--train=sgd:mlp_loss", "--pieces"]
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
    """Returns whether each claim about the plan alone holds."""
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


@pytest.mark.parametrize("edit_parts, claim", [
    (lambda parts, last: last.__setitem__(4, last[4] + 1), "parts"),
    (lambda parts, last: last.__setitem__(4, last[4] - 1), "parts"),
    (lambda parts, last: parts.append(["other", *last[1:]]), "parts"),
    (lambda parts, last: last.__setitem__(1, 0), "ranges"),
    (lambda parts, last: last.__setitem__(3, 1 << 30), "ranges"),
    (lambda parts, last: parts.append(last), "ranges"),
], ids=["late", "early", "overlap", "result", "beyond", "name"])
def test_parts_of_results(artifacts, tmp_path, edit_parts, claim):
    documents, rest = read_documents(artifacts["pieces"])
    plan = documents["plan/vulkan/mlp_loss.grad.json"]
    last = max(plan["parts"], key=lambda part: part[4])
    assert last[4] > min(plan["parts"], key=lambda part: part[4])[4] > 0
    edit_parts(plan["parts"], last)
    write_documents(tmp_path / "a.weir", documents, rest)
    for verdict in ask_verify(tmp_path / "a.weir"), ask_check(tmp_path / "a.weir"):
        if claim == "ranges":
            assert is_refused(verdict)
        else:
            assert not verdict["mlp_loss.grad", "vulkan", "parts"] and verdict["mlp_loss.grad", "vulkan", "contents"]


def test_claims_are_those_of_the_page(artifacts):
    """`weir_check` makes every claim of docs/certificate.md that needs no code, `weir verify` all of them."""
    page = (ROOT / "docs/certificate.md").read_text()
    plan, code = (re.findall(r"^\*\*(.*)\.\*\*", part, re.MULTILINE) for part in page.split("## The claims about code"))
    assert plan == list(CLAIMS) and set(code) == CODE_CLAIMS
    [(all_claims, without_code)] = re.findall(r"(\d+) claims about those statements, (\d+) of which need no code", page)
    assert [int(all_claims), int(without_code)] == [len(plan) + len(code), len(plan)]
    done = subprocess.run([BIN / "weir", "verify", artifacts["layer_norm"], "--json"], capture_output=True, text=True)
    assert {row["claim"] for row in json.loads(done.stdout)["claims"]} == {*plan, *code}


def test_schema_version_is_that_of_the_page(artifacts):
    page = (ROOT / "docs/artifact.md").read_text()
    stated = re.findall(r"schema version (\d+)$|^\| `schema_version` \| (\d+)|of Weir reads (\d+);", page, re.MULTILINE)
    assert len(stated) == 5 and {int("".join(number)) for number in stated} == {SCHEMA_VERSION}
    with zipfile.ZipFile(artifacts["layer_norm"]) as archive:
        assert json.loads(archive.read("manifest.json"))["schema_version"] == SCHEMA_VERSION


def test_keys_of_a_profile_are_those_of_the_page(artifacts):
    page = (ROOT / "docs/artifact.md").read_text()
    table = page.split("\n## Profiles\n")[1].split("\n#")[0]
    stated = [key for row in re.findall(r"^\|([^|]*)\|", table, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)]
    with zipfile.ZipFile(artifacts["layer_norm"]) as archive:
        [profile] = json.loads(archive.read("manifest.json"))["targets"]
    assert [key for key in stated if key not in ("sm", "sm_exact", "isa")] == list(profile)  # those of one target each


def test_both_say_the_same_of_mutants(weir):
    """Whatever changes a result and is in the plan, `weir_check` finds alone. What is equivalent it lets pass."""
    found, silent = collections.Counter(), collections.Counter()
    for name in MUTATED:
        text, flags, changes = SOURCES[name]
        target = f"vulkan:{weir.profile(**changes)}" if changes else "vulkan"
        artifact, mutant = weir.compile_text(text, name, f"--target={target}", *flags), weir.folder / "mutant.weir"
        seen = collections.Counter()
        for row in list_mutants(BIN, artifact):
            kind = row["kind"], row["class"]
            seen[kind] += 1
            if "code" in row["kind"] or seen[kind] > MUTANTS:
                continue
            subprocess.run([BIN / "weir-mutate", artifact, f"--apply={row['id']}", "-o", mutant], check=True)
            verdict = ask_check(mutant)
            assert verdict == ask_verify(mutant), f"{name}: {row}"
            holds = verdict is not None and all(verdict.values())
            assert row["class"] == "metadata" or holds == (row["class"] == "equivalent"), f"{name}: {row}"
            (silent if holds else found)[kind] += 1
    behavior = {kind for kind, what in found if what == "behavior"}
    assert behavior >= {"drop-barrier", "drop-wait", "weaken-barrier", "move-barrier", "shift-slot", "overlap-slot",
                        "divert-write", "use-refused", "swap-dispatches"}
    assert {kind for kind, what in silent if what == "equivalent"} >= {"move-barrier", "shift-slot"}


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


# Fields of the headers of a ZIP by their first byte: before a file, in the directory, at the end.
LOCAL, DIRECTORY, END = (4, 6, 8, 10, 12, 14, 18, 22, 26, 28, 30), (6, 8, 10, 12, 14, 16, 20, 24, 28, 30, 32, 42, 46), \
    (4, 6, 8, 10, 12, 16, 20)


def test_headers_are_those_of_an_artifact(artifacts, tmp_path):
    """Headers that contradict each other, or state what no artifact needs, are refused by both checkers."""
    data = artifacts["layer_norm"].read_bytes()
    edits = [data + b"!", b"!" + data]
    for begin, fields in ((0, LOCAL), (data.find(b"PK\1\2"), DIRECTORY), (data.rfind(b"PK\5\6"), END)):
        for place in (begin + field for field in fields):
            edits += [data[:place] + bytes([data[place] ^ change]) + data[place + 1:] for change in (0x41, 0x08)]
    edited = tmp_path / "edited.weir"
    for number, edit in enumerate(edits):
        edited.write_bytes(edit)
        assert [done.returncode for done in run_checkers(edited)] == [2, 2], number
