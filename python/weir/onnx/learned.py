"""Writes operators of ai.onnx.ml on tensors of numbers."""

from collections.abc import Sequence

import numpy
from onnx import TensorProto, helper, numpy_helper

from weir.onnx.writing import Value, Writer

DOMAIN = "ai.onnx.ml"
MAX_DEPTH = 128  # of a tree, each level of which is written out
SUM, AVERAGE, MIN, MAX = 1, 0, 2, 3  # how the trees' results are joined
MEMBER = 6  # the test whether a feature is one of a set
TESTS = {0: "LessOrEqual", 1: "Less", 2: "GreaterOrEqual", 3: "Greater", 4: "Equal", 5: "NotEqual", MEMBER: ""}
TRANSFORMS = {0: "Identity", 1: "Softmax", 2: "Sigmoid"}


def _take_features(writer: Writer) -> bool:
    """Takes columns, of a vector those of its one row."""
    shape, x = writer.shape(0), writer.operand(0)
    x = x.reshape(1, -1) if len(shape) == 1 else x
    x.apply("Gather", writer.operand(1).reshape(-1).name, axis=-1).finish()
    return True


def _compare(writer: Writer) -> bool:
    """Writes 1 for elements above a threshold, 0 for others."""
    x = writer.operand(0)
    (x > writer.attribute("threshold", 0.0)).cast(x.kind).finish()
    return True


def _walk_trees(writer: Writer) -> bool:
    """Walks all trees at once, a level after the other, from places of nodes to those of their children. Leaves have
    places behind the nodes and are their own children. Returns whether it did."""
    trees = _Trees(writer)
    depth = trees.find_depth()
    transform = writer.attribute("post_transform", 0)
    if depth is None or not set(TESTS).issuperset(trees.modes) or transform not in TRANSFORMS or 0 in writer.shape(0):
        return False
    rows = writer.shape(0)[0]
    place = Value(writer, writer.constant(numpy.tile(trees.roots, (rows, 1))), TensorProto.INT64)
    for _ in range(depth):
        place = trees.step(place)
    made = trees.join(place).apply(TRANSFORMS[transform])
    made.finish()
    return True


class _Trees:
    """The attributes of a TreeEnsemble."""

    def __init__(self, writer: Writer):
        self._writer, self._x = writer, writer.operand(0)
        self.roots = numpy.array(writer.attribute("tree_roots", ()))
        self.modes = self._read("nodes_modes")
        self._count, self._leaves = len(self.modes), len(self._read("leaf_weights"))
        yes, no = (numpy.array(writer.attribute(f"nodes_{branch}nodeids", ())) + self._count *
                   numpy.array(writer.attribute(f"nodes_{branch}leafs", ())) for branch in ("true", "false"))
        own = numpy.arange(self._count, self._count + self._leaves)
        self._yes, self._no = numpy.concatenate([yes, own]), numpy.concatenate([no, own])

    def _read(self, name: str) -> numpy.ndarray:
        return numpy_helper.to_array(self._writer.attribute(name, None))

    def find_depth(self) -> int | None:
        """Returns the number of levels, or None if there are too many."""
        places = set(self.roots.tolist())
        for depth in range(MAX_DEPTH):
            if min(places) >= self._count:
                return depth
            places = {int(child) for place in places for child in (self._yes[place], self._no[place])}
        return None

    def step(self, place: Value) -> Value:
        """Returns the children that the features choose."""
        feature = self._at(place, self._pad(self._writer.attribute("nodes_featureids", ())), TensorProto.INT64)
        value = self._x.apply("GatherElements", feature.name, axis=1)
        chosen = None
        for mode in sorted(set(self.modes.tolist())):
            passed = self._test_members(place, value) if mode == MEMBER else self._test(place, value, TESTS[mode])
            is_mode = self._at(place, self._pad(self.modes == mode), TensorProto.BOOL)
            chosen = passed if chosen is None else Value(self._writer, self._writer.add(
                "Where", is_mode.name, passed.name, chosen.name), TensorProto.BOOL)
        missing = self._writer.attribute("nodes_missing_value_tracks_true", ())
        if any(missing):
            is_missing = Value(self._writer, self._writer.add("IsNaN", value.name), TensorProto.BOOL)
            chosen = chosen | (is_missing & self._at(place, self._pad(numpy.array(missing) != 0), TensorProto.BOOL))
        yes, no = (self._at(place, children, TensorProto.INT64) for children in (self._yes, self._no))
        return chosen.choose(yes, no)

    def _test(self, place: Value, value: Value, operator: str) -> Value:
        split = self._at(place, self._pad(self._read("nodes_splits")), self._x.kind)
        kind = "Equal" if operator == "NotEqual" else operator
        passed = Value(self._writer, self._writer.add(kind, value.name, split.name), TensorProto.BOOL)
        return ~passed if operator == "NotEqual" else passed

    def _test_members(self, place: Value, value: Value) -> Value:
        sets: list[list[float]] = [[]]
        for number in self._read("membership_values").tolist():
            if numpy.isnan(number):
                sets.append([])
            else:
                sets[-1].append(number)
        table = numpy.full((self._count + self._leaves, max(1, *map(len, sets))), numpy.nan)
        for node, members in zip(numpy.flatnonzero(self.modes == MEMBER), sets):
            table[node, :len(members)] = members
        last = self._writer.constant([2])
        hits = value.apply("Unsqueeze", last).equal(self._at(place, table, self._x.kind)).cast(TensorProto.INT64)
        return hits.apply("ReduceSum", last, keepdims=0) > 0

    def join(self, place: Value) -> Value:
        """Returns the joined weights of leaves, for each row and target."""
        targets = self._writer.attribute("n_targets", 1)
        function, kind = self._writer.attribute("aggregate_function", SUM), self._x.kind
        none = numpy.zeros(self._count)
        weights = numpy.concatenate([none, self._read("leaf_weights")])
        own = numpy.concatenate([none, self._writer.attribute("leaf_targetids", ())])
        limits = numpy.finfo(helper.tensor_dtype_to_np_dtype(kind))
        neutral = {MIN: limits.max, MAX: limits.min}.get(function, 0)
        last = self._writer.constant([2])
        target = self._at(place, own, TensorProto.INT64).apply("Unsqueeze", last)
        numbers = Value(self._writer, self._writer.constant(numpy.arange(targets)), TensorProto.INT64)
        given = target.equal(numbers).choose(self._at(place, weights, kind).apply("Unsqueeze", last), neutral)
        reduce = {MIN: "ReduceMin", MAX: "ReduceMax"}.get(function, "ReduceSum")
        made = given.reduce(reduce, [1])
        return made / len(self.roots) if function == AVERAGE else made

    def _pad(self, numbers: Sequence[float]) -> numpy.ndarray:
        """Returns numbers of nodes with 0 for the leaves."""
        return numpy.concatenate([numpy.asarray(numbers), numpy.zeros(self._leaves, numpy.asarray(numbers).dtype)])

    def _at(self, place: Value, table: numpy.ndarray, kind: int) -> Value:
        """Returns the entries of a table at places."""
        name = self._writer.constant(table, helper.tensor_dtype_to_np_dtype(kind))
        return Value(self._writer, self._writer.add("Gather", name, place.name, axis=0), kind)


RULES = {(DOMAIN, "ArrayFeatureExtractor"): _take_features, (DOMAIN, "Binarizer"): _compare,
         (DOMAIN, "TreeEnsemble"): _walk_trees}
