"""Carries operators through torch-mlir's lowering that it does not know: Weir's own, and bit casts.

Before it, each result of such an operator becomes an argument of the function, a hole, and each operand a result.
Behind it, where all is linalg on tensors, an op of Weir's graph level takes the hole's place.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator

from torch_mlir import ir

from weir.graphs import GRID

SEED, STEP = "random.seed", "random.step"
FOREIGN = "torch.operator"
OPS = {"weir.argsort": "norm.argsort", "weir.bitcast": "arith.bitcast", "weir.stop_gradient": "autodiff.stop_gradient"}
# PyTorch's collectives are along the first dimension.
COLLECTIVES = {"weir.all_reduce": ("shard.all_reduce", ""), "weir.all_gather": ("shard.all_gather", "gather_axis"),
               "weir.reduce_scatter": ("shard.reduce_scatter", "scatter_axis")}

UNIFORM, LIMIT = "weir.uniform", "weir.limit"


@dataclasses.dataclass(frozen=True)
class _Matrices:
    """An op of `matrix`: the number of its tensors, and the flags that its integers are, which others than these have
    told by the types of results."""

    name: str
    operands: int = 1
    flags: tuple[str, ...] = ()


MATRICES = {
    "weir.cholesky": _Matrices("matrix.cholesky"),
    "weir.triangular_solve": _Matrices("matrix.triangular_solve", 2, ("upper", "transposed", "unit_diagonal")),
    "weir.solve": _Matrices("matrix.solve", 2, ("transposed",)),
    "weir.lu": _Matrices("matrix.lu"),
    "weir.householder": _Matrices("matrix.householder"),
    "weir.qr": _Matrices("matrix.qr"),
    "weir.eigh": _Matrices("matrix.eigh", flags=("upper",)),
    "weir.svd": _Matrices("matrix.svd"),
}


@dataclasses.dataclass(frozen=True)
class Hole:
    """An operator that was taken out. Its tensors, which all but `weir.uniform` have, are results.

    `numbers`: its operands that are integers, in order. `operands`, `results`: the numbers of its tensors.
    """

    name: str
    numbers: tuple[int, ...]
    operands: int
    results: int


def open_holes(module: ir.Module) -> list[Hole]:
    """Takes Weir's operators out of a module of torch-mlir's torch dialect, in place; returns them in order."""
    [function] = module.body.operations
    block = function.regions[0].blocks[0]
    old = block.operations[len(block.operations) - 1]
    found = [op for op in block.operations if op.operation.name == FOREIGN and _get_name(op).startswith("weir.")]
    holes, tensors = [], []
    for op in found:
        makers = [operand.owner.operation for operand in op.operands if not isinstance(operand.owner, ir.Block)]
        numbers = [ir.IntegerAttr(maker.attributes["value"]).value for maker in makers
                   if maker.name == "torch.constant.int"]
        count = 0 if _get_name(op) == UNIFORM else MATRICES[_get_name(op)].operands if _get_name(op) in MATRICES else 1
        holes.append(Hole(_get_name(op), tuple(numbers), count, len(op.results)))
        for result in op.results:
            result.replace_all_uses_with(block.add_argument(result.type, op.location))
    # Now no operand is the result of another operator that goes.
    tensors = [op.operands[i] for op, hole in zip(found, holes) for i in range(hole.operands)]
    close_function(function, block, old, [*old.operands, *tensors])
    for op in found:
        op.operation.erase()
    return holes


def fill_holes(module: ir.Module, holes: list[Hole]) -> bool:
    """Puts Weir's ops into the holes of a module of linalg on tensors, in place.

    Where there are random numbers, the function gets two arguments of rank 0 behind its own, the seed and the step,
    and a result, the next step. Returns whether it does.
    """
    [function] = module.body.operations
    block = function.regions[0].blocks[0]
    old = block.operations[len(block.operations) - 1]
    arguments = list(block.arguments)[len(block.arguments) - sum(hole.results for hole in holes) :]
    count = sum(hole.operands for hole in holes)
    own = len(old.operands) - count
    # Not the values themselves: one may be a hole, which changes as that is filled.
    tensors = iter(range(own, own + count))
    with module.context as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        counter = ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))
        is_random = any(hole.name == UNIFORM for hole in holes)
        if is_random:
            seed, step = (block.add_argument(counter, function.location) for _ in range(2))
        filled = iter(arguments)
        for hole in holes:
            argument, *others = itertools.islice(filled, hole.results)
            attributes = {}
            if hole.name == UNIFORM:
                name, operands = "random.uniform", [seed, step]
                attributes = {"stream": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), hole.numbers[0])}
            elif hole.name in COLLECTIVES:
                (name, axis), operands = COLLECTIVES[hole.name], [old.operands[next(tensors)]]
                attributes = {"grid": ir.FlatSymbolRefAttr.get(GRID),
                              "grid_axes": ir.Attribute.parse(f"array<i16: {hole.numbers[1]}>")}
                if axis:
                    attributes[axis] = ir.IntegerAttr.get(ir.IndexType.get(), 0)
            elif hole.name in MATRICES:
                name, flags = MATRICES[hole.name].name, MATRICES[hole.name].flags
                operands = [old.operands[next(tensors)] for _ in range(hole.operands)]
                attributes = {flag: ir.UnitAttr.get() for flag, number in zip(flags, hole.numbers) if number}
            elif hole.name == LIMIT:
                argument.replace_all_uses_with(_reduce(old.operands[next(tensors)], argument, *hole.numbers, old))
                continue
            else:
                name, operands = OPS[hole.name], [old.operands[next(tensors)]]
                if name == "arith.bitcast" and operands[0].type == argument.type:  # of integers that differ in sign
                    argument.replace_all_uses_with(operands[0])
                    continue
                if hole.name == "weir.argsort" and hole.numbers[0]:
                    attributes = {"descending": ir.UnitAttr.get()}
            made = [argument, *others]
            op = ir.Operation.create(name, [each.type for each in made], operands, attributes, loc=argument.location,
                                     ip=ir.InsertionPoint(old))
            for each, result in zip(made, op.results, strict=True):
                each.replace_all_uses_with(result)
        results = list(old.operands)[:own]
        if is_random:
            one = ir.DenseElementsAttr.get_splat(counter, ir.IntegerAttr.get(counter.element_type, 1))
            here = ir.InsertionPoint(old)
            one = ir.Operation.create("arith.constant", [counter], [], {"value": one}, ip=here)
            results.append(ir.Operation.create("arith.addi", [counter], [step, one.result], ip=here).result)
        for argument in reversed(arguments):
            block.erase_argument(argument.arg_number)
        close_function(function, block, old, results)
        if holes:
            sort_ops(block)
    return is_random


def _reduce(operand: ir.Value, result: ir.Value, largest: int, dims: int, before: ir.Operation) -> ir.Value:
    """Returns the largest or smallest elements along the dimensions whose bits are set in `dims`: a reduction whose
    gradient is shared among equal elements."""
    here, kind = ir.InsertionPoint(before), result.type
    limit = ir.FloatAttr.get(kind.element_type, -math.inf if largest else math.inf)
    start = ir.Operation.create("arith.constant", [kind], [], {"value": ir.DenseElementsAttr.get_splat(kind, limit)},
                                loc=result.location, ip=here)
    rank = len(ir.RankedTensorType(operand.type).shape)
    kept = [ir.AffineDimExpr.get(d) for d in range(rank) if not dims >> d & 1]
    maps = [ir.AffineMap.get_identity(rank), ir.AffineMap.get(rank, 0, kept)]
    kinds = ", ".join(f"#linalg.iterator_type<{'reduction' if dims >> d & 1 else 'parallel'}>" for d in range(rank))
    op = ir.Operation.create("linalg.generic", [kind], [operand, start.result], {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps]),
        "iterator_types": ir.Attribute.parse(f"[{kinds}]"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])}, regions=1, loc=result.location, ip=here)
    block = op.regions[0].blocks.append(kind.element_type, kind.element_type)
    inside = ir.InsertionPoint(block)
    made = ir.Operation.create("arith.maximumf" if largest else "arith.minimumf", [kind.element_type],
                               list(block.arguments), loc=result.location, ip=inside)
    ir.Operation.create("linalg.yield", [], [made.result], loc=result.location, ip=inside)
    return op.result


def _get_name(op: ir.OpView) -> str:
    return ir.StringAttr(op.attributes["name"]).value.removeprefix("torch.")


def close_function(function: ir.OpView, block: ir.Block, old: ir.OpView, results: list[ir.Value]) -> None:
    """Makes the function return `results`."""
    ir.Operation.create(old.operation.name, [], results, loc=old.location, ip=ir.InsertionPoint(old))
    old.operation.erase()
    with function.context:
        inputs = [argument.type for argument in block.arguments]
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(inputs, [result.type for result in results])
        )


def sort_ops(block: ir.Block) -> None:
    """Moves each op behind the ops that make its operands, and keeps the order otherwise."""
    ops = [op.operation for op in block.operations]
    place = {op: i for i, op in enumerate(ops)}
    done: set[int] = set()
    order: list[ir.Operation] = []
    for start in range(len(ops)):
        stack = [start]
        while stack:
            i = stack[-1]
            if i in done:
                stack.pop()
                continue
            makers = {place[maker] for maker in _find_makers(ops[i]) if maker in place}
            if waiting := sorted((maker for maker in makers if maker not in done and maker != i), reverse=True):
                stack += waiting
                continue
            done.add(i)
            order.append(ops[i])
            stack.pop()
    for op in order[:-1]:
        op.move_before(order[-1])


def _find_makers(op: ir.Operation) -> Iterator[ir.Operation]:
    """Returns the ops whose results `op` reads, also in its regions."""
    for operand in op.operands:
        if isinstance(operand.owner, ir.Operation):
            yield operand.owner
        elif not isinstance(operand.owner, ir.Block):
            yield operand.owner.operation
    for region in op.regions:
        for block in region:
            for inner in block.operations:
                yield from _find_makers(inner.operation)
