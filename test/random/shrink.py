"""Makes a graph that fails smaller, as long as it fails."""

from graphs import Argument
from operations.base import Invalid


def remove_unused(graph):
    """Nodes and arguments that no result needs go."""
    used = set(graph.results)
    for node in reversed(graph.nodes):
        if used & set(node.results):
            used |= set(node.operands)
    graph.nodes = [node for node in graph.nodes if used & set(node.results)]
    graph.arguments = {value: argument for value, argument in graph.arguments.items() if value in used}
    return graph


def replace(graph, old, new):
    for node in graph.nodes:
        node.operands = [new if value == old else value for value in node.operands]
    graph.results = [new if value == old else value for value in graph.results]


def make_smaller(graph):
    """Yields graphs with less to them, the largest steps first. Some don't fit together."""
    types = graph.infer()
    for keep in graph.results:  # one result alone
        if len(graph.results) > 1:
            other = graph.copy()
            other.results = [keep]
            yield other
    for i in range(len(graph.results)):
        if len(graph.results) > 1:
            other = graph.copy()
            del other.results[i]
            yield other
    for i in reversed(range(len(graph.nodes))):  # without a node: its results are given, or are an operand
        for give in [None, *graph.nodes[i].operands]:
            other = graph.copy()
            node = other.nodes.pop(i)
            for value in node.results:
                if give is not None:
                    replace(other, value, give)
                else:
                    shape, element = types[value]
                    other.arguments[value] = Argument(shape, element)
            yield other
    for size in sorted({size for argument in graph.arguments.values() for size in argument.shape}, reverse=True):
        for less in sorted({1, 2, 3, size // 2, size - 1}):
            if 0 < less < size:
                other = graph.copy()
                for argument in other.arguments.values():
                    argument.shape = [less if s == size else s for s in argument.shape]
                for node in other.nodes:
                    if node.data.get("size") == size:
                        node.data["size"] = less
                yield other
    for value, argument in graph.arguments.items():
        for i, size in enumerate(argument.shape):
            if size > 1:
                other = graph.copy()
                other.arguments[value].shape[i] = 1
                yield other
        if argument.donate:
            other = graph.copy()
            other.arguments[value].donate = False
            yield other
    for i, node in enumerate(graph.nodes):
        if node.data.get("alone"):
            other = graph.copy()
            other.nodes[i].data["alone"] = False
            yield other
        if node.kind == "Unary" and node.data["body"] != "negf":
            other = graph.copy()
            other.nodes[i].data["body"] = "negf"
            yield other


def shrink(graph, fails, most=300):
    """Returns the smallest graph found for which `fails`, after at most so many tries."""
    tries, seen = 0, set()
    while True:
        for other in make_smaller(graph):
            try:
                text = remove_unused(other).text()
            except Invalid:
                continue
            if text in seen:
                continue
            seen.add(text)
            tries += 1
            if tries > most:
                return graph
            if fails(other):
                graph = other
                break
        else:
            return graph
