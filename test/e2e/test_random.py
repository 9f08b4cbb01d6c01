"""Random graphs on everything that runs or checks them: see test/random."""

import re

import pytest
import run
from check import check_drivers, check_edges, check_gradients, check_values, get_profile
from conftest import ROOT, SECOND_DRIVER
from graphs import OPERATIONS, make
from shrink import remove_unused, shrink

SEEDS = [*range(188), *range(100000, 100012), *range(200000, 200006),
         *range(1000000, 1000006), *range(1100000, 1100006), *range(1200000, 1200006)]  # some kinds are drawn from a later seed on


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graph(weir, seed):
    graph = make(seed, differentiable=seed % 2 == 0)
    check_values(weir, graph, seed, get_profile(seed), validated=seed % 8 == 0, pinned=seed % 4 == 1)


@pytest.mark.parametrize("seed", SEEDS[3::8])
def test_edges_of_random_graph(weir, seed):
    check_edges(weir, make(seed), seed)


@pytest.mark.parametrize("seed", SEEDS[2::8])
def test_gradients_of_random_graph(weir, seed):
    check_gradients(weir, make(seed, differentiable=True), seed, validated=seed % 16 == 2)


@pytest.mark.skipif(not SECOND_DRIVER, reason="no second driver")
@pytest.mark.parametrize("seed, has_gradients, fits", [(700001, False, True), (700000, True, False), (800008, True, True),
                                                         (1200006, True, True), (1000005, False, True)],
                         ids=["values", "f64", "zero gradients", "loop", "loop that data decide"])
def test_random_graph_on_both_drivers(weir, seed, has_gradients, fits):
    """A slice of `scripts/random-graphs --drivers`. The third's softmax of one element has a gradient of 0."""
    graph = make(seed, differentiable=seed % 2 == 0)
    assert check_drivers(weir, graph, seed, has_gradients) == fits


def test_graphs_have_everything():
    """Every kind of operation, among the seeds above; the same for the same seed."""
    graphs = [make(seed, differentiable=seed % 2 == 0) for seed in SEEDS]
    assert {node.kind for graph in graphs for node in graph.nodes} == set(OPERATIONS)
    shapes = [shape for graph in graphs for shape, _ in graph.infer().values()]
    assert {0, 1, 97} <= {size for shape in shapes for size in shape}
    assert any(len(set(graph.results)) < len(graph.results) for graph in graphs), "no two results that are one"
    assert any(set(graph.results) & set(graph.arguments) for graph in graphs), "no result that is an argument"
    assert any(argument.donate for graph in graphs for argument in graph.arguments.values())
    assert make(7).text() == make(7).text() != make(8).text()


def test_ops_that_are_not_drawn_have_a_reason():
    """docs/verification.md counts the ops by dialect, and names those that no graph has."""
    taken, graphs = run.count_ops(range(4000))
    expected, section = {}, (ROOT / "docs/verification.md").read_text().split("## Random graphs")[1]
    for op in taken:
        dialect, name = op.split(".")
        row = expected.setdefault(dialect, [0, 0, set()])
        row[0] += 1
        if op in graphs:
            row[1] += 1
        else:
            row[2].add(name)
    rows = re.findall(r"^\| `?(\w+)`? \| (\d+) \| (\d+) \|(.*)\|$", section, re.MULTILINE)
    found = {dialect: [int(all_ops), int(drawn), set(re.findall(r"`(\w+)`", reason))]
             for dialect, all_ops, drawn, reason in rows}
    assert found.pop("all")[:2] == [len(taken), len(graphs)]
    assert found == expected


def test_what_fails_is_made_smaller(weir):
    """To the one op that is to blame, on values of few elements."""
    def fails(graph):
        return "math.rsqrt" in graph.text()
    graph = next(graph for graph in map(remove_unused, map(make, range(10000)))
                 if len(graph.nodes) > 5 and fails(graph))
    smaller = shrink(graph, fails)
    [node] = smaller.nodes
    assert node.data["body"] == "rsqrt" and len(smaller.results) == 1
    assert all(size <= 1 for shape, _ in smaller.infer().values() for size in shape)
    weir.compile_text(smaller.text())


def test_what_fails_is_a_lit_test(weir, capsys):
    run.print_lit_test(make(3), 3, "weir run a.weir --random-inputs=3\nresult0 is wrong")
    text = capsys.readouterr().out
    assert "weir run a.weir" in text and "result0 is wrong" in text
    commands = re.findall(r"// RUN: (.*)", text)
    assert len(commands) == 6
    assert weir.compile_text(text)


def test_contraction_of_one_product(weir):
    """Its domain has no dimension to sum over."""
    artifact = weir.compile_text("""
func.func @f(%a: tensor<5x1xf32>, %b: tensor<1x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5x8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x8xf32>) -> tensor<5x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<5x1xf32>, tensor<1x8xf32>) outs(%fill : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %c : tensor<5x8xf32>
}
""")
    weir.compare(artifact, ["--random-inputs=1"], 1e-6)
