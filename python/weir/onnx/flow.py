"""Lowers the loops and branches that `weir.onnx.regions` keeps to `scf.for`, `scf.while` and `scf.if` on tensors.

Before torch-mlir's passes each result of such a node becomes an input of the model and each operand an output. Behind
them an op takes the node's place, whose regions are the node's bodies, lowered on their own.
"""

from collections.abc import Callable, Sequence

import onnx
from onnx import helper, numpy_helper
from torch_mlir import ir

from weir.holes import close_function, sort_ops
from weir.onnx.elements import ELEMENTS
from weir.onnx.regions import is_kept
from weir.onnx.scalars import build

DYNAMIC = -2**63  # stands for an offset that is an operand
Lower = Callable[[onnx.ModelProto, str], ir.Module]


def cut(model: onnx.ModelProto) -> tuple[onnx.ModelProto, list[onnx.NodeProto]]:
    """Returns the model without its loops and branches, and these."""
    kept = [node for node in model.graph.node if is_kept(node)]
    if not kept:
        return model, kept
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    types = {value.name: value.type for value in (*model.graph.input, *model.graph.value_info, *model.graph.output)}
    types |= {tensor.name: helper.make_tensor_type_proto(tensor.data_type, tensor.dims) for tensor in graph.initializer}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    nodes, ends = [], []
    for node in graph.node:
        if not is_kept(node):
            nodes.append(node)
            continue
        for k, name in enumerate(node.output):
            if name:
                graph.input.append(helper.make_value_info(f"{node.name}/hole{k}", types[name]))
                nodes.append(helper.make_node("Identity", [graph.input[-1].name], [name], name=graph.input[-1].name))
        for k, name in enumerate(node.input):
            if name in constants and (bits := _take_bits(constants[name])) is not None:
                bits.name = name = f"{node.name}/bits{k}"
                graph.initializer.append(bits)
                types[name] = helper.make_tensor_type_proto(bits.data_type, bits.dims)
            if name:
                graph.output.append(helper.make_value_info(f"{node.name}/operand{k}", types[name]))
                ends.append(helper.make_node("Identity", [name], [graph.output[-1].name], name=graph.output[-1].name))
    del graph.node[:]
    graph.node.extend([*nodes, *ends])
    return copy, kept


def _take_bits(tensor: onnx.TensorProto) -> onnx.TensorProto | None:
    """Returns an unsigned constant as a signed one: torch-mlir reads no unsigned ones of rank 0, and graphs have neither.
    Returns None for other constants."""
    value = numpy_helper.to_array(tensor)
    return numpy_helper.from_array(value.view(f"i{value.dtype.itemsize}")) if value.dtype.kind == "u" else None


def fill(module: ir.Module, kept: Sequence[onnx.NodeProto], lower: Lower) -> None:
    """Puts loops and branches where `cut` took them from, in place. `lower` lowers a body."""
    if not kept:
        return
    [function] = module.body.operations
    block = function.regions[0].blocks[0]
    old = block.operations[len(block.operations) - 1]
    count = sum(bool(name) for node in kept for name in node.output)
    holes = list(block.arguments)[len(block.arguments) - count:]
    own = len(old.operands) - sum(bool(name) for node in kept for name in node.input)
    # Not the values themselves: one may be a hole, which changes as that is filled.
    places, hole = iter(range(own, len(old.operands))), iter(holes)
    with module.context as context:
        context.allow_unregistered_dialects = True
        for node in kept:
            given = [old.operands[next(places)] if name else None for name in node.input]
            with ir.Location.name(node.name), ir.InsertionPoint(old):
                results = _Node(node, lower, old).build(given)
            for name, result in zip(node.output, results, strict=True):
                if name:
                    next(hole).replace_all_uses_with(result)
        results = list(old.operands)[:own]
        for argument in reversed(holes):
            block.erase_argument(argument.arg_number)
        close_function(function, block, old, results)
        sort_ops(block)


class _Node:
    """Builds the op of one node at the insertion point."""

    def __init__(self, node: onnx.NodeProto, lower: Lower, place: ir.OpView):
        self._node, self._lower, self._place = node, lower, place
        self._given = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        self._bit, self._long, self._index = (
            ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64), ir.IndexType.get())

    def build(self, operands: list[ir.Value | None]) -> list[ir.Value]:
        """Returns the results. `operands`: None for those that are left out."""
        if self._node.op_type == ELEMENTS:
            return [build(self._given["form"].decode(), operands, self._given["kinds"])]
        if self._node.op_type == "If":
            return self._choose(operands[0], operands[1:])
        trips = self._given["trips"]
        if trips < 0:
            return self._repeat(operands)
        return self._count(trips, operands if self._node.op_type == "Scan" else operands[2:])

    def _choose(self, flag: ir.Value, captured: list[ir.Value]) -> list[ir.Value]:
        blocks = [self._read(body) for body in self._given["bodies"]]
        types = [operand.type for operand in _get_end(blocks[0]).operands]
        choice = ir.Operation.create("scf.if", types, [self._take(flag)], regions=2)
        first = self._given["then"]
        for region, body, values in zip(choice.regions, blocks, (captured[:first], captured[first:])):
            end = _open(region.blocks.append())
            _close(end, "scf.yield", _inline(body, values, end))
        return list(choice.results)

    def _repeat(self, operands: list[ir.Value | None]) -> list[ir.Value]:
        """Builds a loop that a count or a condition ends, or both."""
        count = self._given["carried"]
        limit, start = operands[:2]
        inits = [self._wrap(self._number(0, self._long)),
                 self._wrap(self._number(1, self._bit) if start is None else self._take(start)), *operands[2:2 + count]]
        types = [value.type for value in inits]
        loop = ir.Operation.create("scf.while", types, inits, regions=2)
        asked, body = (region.blocks.append(*types, arg_locs=[loop.location] * len(types)) for region in loop.regions)
        end = _open(asked)
        with ir.InsertionPoint(end):
            go_on = self._take(asked.arguments[1])
            if limit is not None:
                less = self._compute("arith.cmpi", self._bit, self._take(asked.arguments[0]), self._take(limit),
                                     predicate=ir.IntegerAttr.get(self._long, 2))  # signed, less
                go_on = self._compute("arith.andi", self._bit, go_on, less)
        _close(end, "scf.condition", [go_on, *asked.arguments])
        end = _open(body)
        made = _inline(self._read(self._given["bodies"][0]), [*body.arguments, *operands[2 + count:]], end)
        with ir.InsertionPoint(end):
            number = self._compute("arith.addi", self._long, self._take(body.arguments[0]), self._number(1, self._long))
            # Without a condition at the start only the count ends a loop.
            goes_on = body.arguments[1] if start is None else self._wrap(self._take(made[0]))
            number = self._wrap(number)
        _close(end, "scf.yield", [number, goes_on, *made[1:]])
        return list(loop.results)[2:]

    def _count(self, trips: int, operands: list[ir.Value]) -> list[ir.Value]:
        """Builds a loop of known length."""
        carried, lists = self._given["carried"], self._given.get("lists", 0)
        is_loop = self._node.op_type == "Loop"
        body = self._read(self._given["bodies"][0])
        rows = [operand.type for operand in _get_end(body).operands][carried + is_loop:]
        axes = self._given.get("axes", [0] * len(rows))
        backward = self._given.get("backward", [0] * len(axes))
        stacks = []
        for row, axis in zip(rows, axes[lists:]):
            shape = list(ir.ShapedType(row).shape)
            kind = ir.RankedTensorType.get([*shape[:axis], trips, *shape[axis:]], ir.ShapedType(row).element_type)
            stacks.append(ir.Operation.create("tensor.empty", [kind]).result)
        inits = [*operands[:carried], *stacks]
        types = [value.type for value in inits]
        bounds = [self._number(number, self._index) for number in (0, trips, 1)]
        loop = ir.Operation.create("scf.for", types, [*bounds, *inits], regions=1)
        block = loop.regions[0].blocks.append(self._index, *types, arg_locs=[loop.location] * (1 + len(types)))
        counter, *values = block.arguments
        end = _open(block)
        with ir.InsertionPoint(end):
            places = [counter] * len(axes)
            if any(backward):
                mirrored = self._compute("arith.subi", self._index, self._number(trips - 1, self._index), counter)
                places = [mirrored if one else counter for one in backward]
            given = [_slice(one, axis, place) for one, axis, place in zip(
                operands[carried:carried + lists], axes, places)]
            if is_loop:
                number = self._compute("arith.index_cast", self._long, counter)
                given = [self._wrap(number), self._wrap(self._number(1, self._bit))]
            given = [*given, *values[:carried]] if is_loop else [*values[:carried], *given]
        made = _inline(body, [*given, *operands[carried + lists:]], end)[is_loop:]
        with ir.InsertionPoint(end):
            grown = [_insert(row, stack, axis, place) for row, stack, axis, place in zip(
                made[carried:], values[carried:], axes[lists:], places[lists:])]
        _close(end, "scf.yield", [*made[:carried], *grown])
        return list(loop.results)

    def _read(self, body: bytes) -> ir.Block:
        """Returns the block of a body's function. It lives as long as the module around it, which `_inline` empties."""
        lowered = self._lower(onnx.ModelProto.FromString(body), "body")
        text = lowered.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
        self._module = ir.Module.parse(text, self._place.context)
        [function] = self._module.body.operations
        # In the module that is built, so that its ops go with the others.
        function.operation.move_before(self._place)
        return function.regions[0].blocks[0]

    def _number(self, value: int, kind: ir.Type) -> ir.Value:
        return ir.Operation.create("arith.constant", [kind], [], {"value": ir.IntegerAttr.get(kind, value)}).result

    def _compute(self, name: str, kind: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
        return ir.Operation.create(name, [kind], list(operands), attributes).result

    def _wrap(self, value: ir.Value) -> ir.Value:
        return self._compute("tensor.from_elements", ir.RankedTensorType.get([], value.type), value)

    def _take(self, tensor: ir.Value) -> ir.Value:
        """Returns the only element of a tensor."""
        kind = ir.ShapedType(tensor.type)
        return self._compute("tensor.extract", kind.element_type, tensor,
                             *(self._number(0, self._index) for _ in kind.shape))


def _get_end(block: ir.Block) -> ir.OpView:
    return block.operations[len(block.operations) - 1]


def _open(block: ir.Block) -> ir.Operation:
    """Returns an end of a block for the time that it is built."""
    return ir.Operation.create("scf.yield", [], [], ip=ir.InsertionPoint(block))


def _close(end: ir.Operation, name: str, values: Sequence[ir.Value]) -> None:
    ir.Operation.create(name, [], list(values), ip=ir.InsertionPoint(end))
    end.erase()


def _inline(body: ir.Block, values: Sequence[ir.Value], place: ir.Operation) -> list[ir.Value]:
    """Moves the ops of a function in front of `place`, and erases it. Returns its results for the arguments `values`."""
    for argument, value in zip(body.arguments, values, strict=True):
        argument.replace_all_uses_with(value)
    end = _get_end(body)
    results = list(end.operands)
    for op in list(body.operations)[:-1]:
        op.operation.move_before(place)
    function = body.owner
    end.operation.erase()
    function.operation.erase()
    return results


def _describe(kind: ir.ShapedType, axis: int, segments: Sequence[int]) -> dict[str, ir.Attribute]:
    sizes = [1 if d == axis else size for d, size in enumerate(kind.shape)]
    return {"static_offsets": ir.DenseI64ArrayAttr.get([DYNAMIC if d == axis else 0 for d in range(len(sizes))]),
            "static_sizes": ir.DenseI64ArrayAttr.get(sizes),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(sizes)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(list(segments))}


def _slice(whole: ir.Value, axis: int, place: ir.Value) -> ir.Value:
    """Returns one row of a tensor, without the axis."""
    kind = ir.ShapedType(whole.type)
    row = ir.RankedTensorType.get([size for d, size in enumerate(kind.shape) if d != axis], kind.element_type)
    return ir.Operation.create("tensor.extract_slice", [row], [whole, place],
                               _describe(kind, axis, (1, 1, 0, 0))).result


def _insert(row: ir.Value, whole: ir.Value, axis: int, place: ir.Value) -> ir.Value:
    return ir.Operation.create("tensor.insert_slice", [whole.type], [row, whole, place],
                               _describe(ir.ShapedType(whole.type), axis, (1, 1, 1, 0, 0))).result
