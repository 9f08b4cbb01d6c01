"""A seeded generator of graph-level functions of everything that the graph level takes:
sizes 0, 1 and primes, many readers, results that alias, broadcasts, windows, norms and
their gradients, f32 and f64, integers and 16 bits where they are exact.

A graph is a list of nodes that can be left out or made smaller one by one (shrink.py), so
a node says what it is and of which values; shapes follow from its operands.

Operations are chosen so that f32 and f64 stay close: values stay of order one, sums are
averages, and nothing is discontinuous."""

import copy
import dataclasses
import math
import random

from operations import OPERATIONS, SINCE, WEIGHTS
from operations.base import Writer, type_of
from operations.elementwise import KINKED

SIZES = [0, 1, 1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 31, 32, 64, 97, 128]


@dataclasses.dataclass
class Argument:
    shape: list
    element: str
    donate: bool = False
    kind: str = ""  # "param" and so on


@dataclasses.dataclass
class Node:
    kind: str
    operands: list  # values
    results: list  # values
    data: dict


class Graph:
    """A function `f`. Values are numbers; `arguments` has those of arguments."""

    def __init__(self, arguments, nodes, results):
        self.arguments, self.nodes, self.results = arguments, nodes, results

    def copy(self):
        return copy.deepcopy(self)

    def infer(self):
        """The type of every value. Raises Invalid."""
        types = {value: (argument.shape, argument.element) for value, argument in self.arguments.items()}
        for node in self.nodes:
            inferred = OPERATIONS[node.kind].infer([types[value] for value in node.operands], node.data)
            types |= dict(zip(node.results, inferred))
        return types

    def text(self):
        types, names, writer = self.infer(), {}, Writer()
        arguments = []
        for i, (value, argument) in enumerate(self.arguments.items()):
            names[value] = f"%a{i}"
            attributes = ["weir.donate"] * argument.donate
            attributes += [f'weir.kind = "{argument.kind}"'] if argument.kind else []
            said = f" {{{', '.join(attributes)}}}" if attributes else ""
            arguments.append(f"{names[value]}: {type_of(argument.shape, argument.element)}{said}")
        for node in self.nodes:
            operands = [(names[value], *types[value]) for value in node.operands]
            names |= dict(zip(node.results, OPERATIONS[node.kind].emit(writer, operands, node.data)))
        result_types = ", ".join(type_of(*types[value]) for value in self.results)
        return "\n".join([f"func.func @f({', '.join(arguments)}) -> ({result_types}) {{", *writer.lines,
                          f"  return {', '.join(names[value] for value in self.results)} : {result_types}", "}", ""])

    def is_smooth(self):
        """Whether gradients may be compared with differences."""
        return not any(node.kind == "Select" or {node.data.get("body"), node.data.get("op")} & set(KINKED)
                       for node in self.nodes)


class Maker:
    """Makes a graph, value by value."""

    def __init__(self, seed, sizes):
        self.random, self.sizes = random.Random(seed), sizes
        self.element = self.random.choice(["f32"] * 4 + ["f64"])
        self.arguments, self.nodes, self.types = {}, [], {}

    def pick_size(self):
        return self.random.choice(self.sizes)

    def get(self, value):
        return self.types[value]

    def pick(self, element=None):
        found = [value for value, type in self.types.items() if element in (None, type[1])]
        # New values and old ones: chains, and many readers of one.
        return self.random.choice(found[-3:] if self.random.random() < 0.4 else found) if found else None

    def argument(self, shape, element):
        value = len(self.types)
        self.arguments[value] = Argument(shape, element, self.random.random() < 0.25)
        self.types[value] = (shape, element)
        return value

    def pick_like(self, shape, element):
        """A value of this type, or a new argument."""
        equal = [value for value, type in self.types.items() if type == (shape, element)]
        return self.random.choice(equal) if equal and self.random.random() < 0.7 else self.argument(shape, element)

    def add(self, kind):
        proposed = OPERATIONS[kind].propose(self)
        if proposed is None:
            return
        operands, data = proposed
        inferred = OPERATIONS[kind].infer([self.types[value] for value in operands], data)
        # A tensor that is too large takes time and shows nothing.
        if any(math.prod(shape) > 2**15 for shape, _ in inferred):
            return
        results = list(range(len(self.types), len(self.types) + len(inferred)))
        self.types |= dict(zip(results, inferred))
        self.nodes.append(Node(kind, operands, results, data))


def make(seed, differentiable=False, sizes=SIZES, without=()):
    """The graph of a seed. `differentiable`: every op has a gradient rule. `without`: kinds of ops."""
    maker = Maker(seed, sizes)
    for _ in range(maker.random.randint(1, 3)):
        rank = maker.random.choice([0, 1, 2, 2, 2, 3, 3, 4])
        maker.argument([min(maker.pick_size(), 8) if rank == 4 else maker.pick_size() for _ in range(rank)],
                       maker.element)
    kinds = [kind for kind, operation in OPERATIONS.items()
             if (operation.has_gradient or not differentiable) and kind not in without and
             seed >= SINCE.get(kind, 0)]
    weights = [WEIGHTS.get(kind, 1) for kind in kinds]
    for _ in range(maker.random.randint(1, 12)):
        maker.add(maker.random.choices(kinds, weights)[0])
    values = list(maker.types)
    results = maker.random.sample(values, min(len(values), maker.random.randint(1, 4)))
    if values[-1] not in results:
        results.append(values[-1])
    if maker.random.random() < 0.1:
        results.append(results[0])  # two results that are one value
    return Graph(maker.arguments, maker.nodes, results)


def make_graph(seed, **options):
    """The text of a module with one function, `f`."""
    return make(seed, **options).text()
