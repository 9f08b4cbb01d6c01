"""Rows that a workgroup owns one after the other, each copied to workgroup memory while the one before is computed, on the
simulator: bit by bit as code that loads each row where it reads it, in place as well, proved without the compiler's word.
Code that does not wait, or copies another row, is refused."""

import json
import re
import subprocess
import sys

import pytest
from conftest import BIN, ROOT
from edits import edit_code, read_documents

sys.path.append(str(ROOT / "benchmarks/peers"))
import weir_graphs  # noqa: E402

COLUMNS = 1104  # trips of all invocations and a rest, of four elements and of eight

GRAPHS = ("softmax", "softmax_vjp", "layer_norm", "rms_norm", "cross_entropy", "cross_entropy_vjp")


def compile_graph(weir, name, graph, rows, element="f32", columns=COLUMNS, workgroup_size=128, **changes):
    """Compiles for a GPU of two units, of which each holds a few workgroups. The first argument is donated."""
    profile = weir.folder / f"{name}.json"
    profile.write_text(json.dumps({"like": "sm_80", "name": name, "units": 2, "max_workgroup_size": workgroup_size,
                                   "workgroup_size": 128} | changes))
    text = getattr(weir_graphs, graph)(rows, columns)
    if element != "f32":
        text = weir_graphs.store_as(element, text)
    if graph.startswith("softmax"):
        text = text.replace("{weir.name", "{weir.donate, weir.name", 1)
    return weir.compile_text(text, name, f"--target=cuda:{profile}")


def count_copies(artifact):
    """Returns the instructions that copy to workgroup memory."""
    code = "".join(data.decode() for name, data in read_documents(artifact)[1].items() if name.endswith(".ptx"))
    return code.count("cp.async.cg.shared.global")


def compare(weir, graph, rows, element, has_copies, **changes):
    """Compares bit by bit with the same code where workgroup memory holds no row, and in f32 with the reference."""
    results = []
    for name, limits in (("copies", {}), ("loads", {"workgroup_memory": 2900})):
        artifact = compile_graph(weir, name, graph, rows, element, **(changes | limits))
        assert (count_copies(artifact) > 0) == (has_copies and name == "copies")
        weir.run("run", artifact, "--device=sim", "--random-inputs=5", f"--output={name}.safetensors")
        assert "0 taken from the compiler" in weir.run("verify", artifact)
        results.append((weir.folder / f"{name}.safetensors").read_bytes())
    assert results[0] == results[1]
    if element == "f32":
        weir.run("run", artifact, "--device=reference", "--f64", "--random-inputs=5", "--output=expected.safetensors")
        weir.run("run", artifact, "--device=sim", "--random-inputs=5", "--compare=expected.safetensors", "--tolerance=1e-5")


# Seven rows are no multiple of the rows that a workgroup owns.
@pytest.mark.parametrize("rows", [7, 8])
@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_bits_are_those_of_loads(weir, graph, element, rows):
    # A function of each element of two bytes takes longer than its way from memory.
    compare(weir, graph, rows, element, (graph, element) != ("cross_entropy", "bf16"))


# Of two operands in f32, workgroup memory of 17,000 bytes has no room for the last trip.
@pytest.mark.parametrize("columns, workgroup_memory", [(COLUMNS, 49152), (2560, 17000)])
@pytest.mark.parametrize("rows", [7, 8])
@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_rows_stay_in_workgroup_memory(weir, graph, element, rows, columns, workgroup_memory):
    """Registers do not hold a row: each pass reads it where it was copied, and the last one copies the next row there."""
    compare(weir, graph, rows, element, True, private_row_bytes=32 if element == "f32" else 16, columns=columns,
            workgroup_memory=workgroup_memory)


def test_registers_have_what_workgroup_memory_has_no_room_for(weir):
    counts = [count_copies(compile_graph(weir, "a", "softmax_vjp", 7, columns=2560, private_row_bytes=32,
                                         workgroup_memory=size)) for size in (17000, 49152)]
    assert counts == [16, 20]  # the first row's, and the next one's


@pytest.mark.parametrize("rows, columns", [(24, 1024), (23, 1024), (24, COLUMNS)])
@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("graph", ["layer_norm_vjp", "rms_norm_vjp"])
def test_rows_beside_columns(weir, graph, element, rows, columns):
    """A workgroup owns the rows of a part, if all parts have as many, and rows no rest."""
    compare(weir, graph, rows, element, (rows, columns) == (24, 1024), columns=columns, workgroup_size=256)


@pytest.mark.parametrize("graph", ["softmax", "softmax_vjp"])
def test_rows_are_computed_in_place(weir, graph):
    """A row is read while the one before is written, in the same bytes."""
    artifact = compile_graph(weir, "a", graph, 7)
    [plan] = weir.inspect(artifact)["plans"]
    text = weir.run("verify", artifact)
    assert re.search(r"in place +holds +1 operand written over in place", text), text
    assert re.search(r"permissions +holds +\d facts? proved from code\n", text), text
    assert plan["dispatches"] == 1


@pytest.mark.parametrize("private_row_bytes", [32, 128])
def test_wait_cannot_be_left_out(weir, private_row_bytes):
    artifact = compile_graph(weir, "a", "softmax", 7, private_row_bytes=private_row_bytes)
    edited, _ = edit_code(weir, artifact, lambda text: text.replace("cp.async.wait_group \t0;", ""))
    done = subprocess.run([BIN / "weir", "run", edited, "--random-inputs=1", "--device=sim"], capture_output=True, text=True)
    assert done.returncode == 1 and "it has not waited for the copy" in done.stdout, done.stdout
    done = subprocess.run([BIN / "weir", "verify", edited], capture_output=True, text=True)
    assert done.returncode == 1 and re.search(r"races +FAILS", done.stdout), done.stdout


def test_copy_behind_the_last_row_is_refused(weir):
    artifact = compile_graph(weir, "a", "softmax", 8)

    def edit(text):
        # The condition of the last trip, behind the wait.
        begin, rest = text.split("cp.async.wait_group \t0;")
        changed, count = re.subn(r"(setp\.eq\.b32 \t%p\d+, %r\d+, )\d+;", r"\g<1>1;", rest, count=1)
        assert count == 1
        return begin + "cp.async.wait_group \t0;" + changed

    edited, _ = edit_code(weir, artifact, edit)
    done = subprocess.run([BIN / "weir", "verify", edited], capture_output=True, text=True)
    assert done.returncode == 1 and re.search(r"bounds +FAILS .* operand 0", done.stdout), done.stdout
