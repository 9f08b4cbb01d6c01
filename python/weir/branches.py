"""Control flow of StableHLO between tensors, as the graph level has it."""

from collections.abc import Sequence

from torch_mlir import ir

from weir.graphs import walk

WHILE, CASE, IF, RETURN = "stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.return"


def write_loops(module: ir.Module) -> None:
    """Writes `scf.while` for each loop, and for each choice all its branches, one of whose results is selected."""
    with module.context:
        while op := next((op for op in walk(module.operation) if op.name in (WHILE, CASE, IF)), None):
            with op.location, ir.InsertionPoint(op):
                results = _write_while(op) if op.name == WHILE else _write_choice(op)
            for old, new in zip(op.results, results, strict=True):
                old.replace_all_uses_with(new)
            op.erase()


def _write_while(op: ir.Operation) -> Sequence[ir.Value]:
    types = [result.type for result in op.results]
    loop = ir.Operation.create("scf.while", types, list(op.operands), regions=2)
    for old, new in zip(op.regions, loop.regions):
        old.blocks[0].append_to(new)
    asked, body = (region.blocks[0] for region in loop.regions)
    end = _get_end(asked)
    with end.location, ir.InsertionPoint(end):
        go_on = ir.Operation.create("tensor.extract", [ir.IntegerType.get_signless(1)], list(end.operands)).result
        ir.Operation.create("scf.condition", [], [go_on, *asked.arguments])
    end.erase()
    end = _get_end(body)
    with end.location, ir.InsertionPoint(end):
        ir.Operation.create("scf.yield", [], list(end.operands))
    end.erase()
    return list(loop.results)


def _write_choice(op: ir.Operation) -> Sequence[ir.Value]:
    """Moves the branches in front of `op`: they have no effects, so only the choice shows."""
    branches = []
    for region in op.regions:
        for inner in list(region.blocks[0].operations):
            if inner.operation.name == RETURN:
                branches.append(list(inner.operands))
            else:
                inner.operation.move_before(op)
    if op.name == IF:  # the first branch is that of true
        return [_select(op.operands[0], first, second) for first, second in zip(*branches, strict=True)]
    results = branches[-1]  # of an index out of range, too
    for number, branch in reversed(list(enumerate(branches[:-1]))):
        results = [_select(_is_equal(op.operands[0], number), one, other)
                   for one, other in zip(branch, results, strict=True)]
    return results


def _is_equal(index: ir.Value, number: int) -> ir.Value:
    bit, word = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(32)
    taken = ir.Operation.create("tensor.extract", [word], [index]).result
    wanted = ir.Operation.create("arith.constant", [word], [], {"value": ir.IntegerAttr.get(word, number)}).result
    equal = ir.Operation.create("arith.cmpi", [bit], [taken, wanted],
                                {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}).result
    return ir.Operation.create("tensor.from_elements", [ir.RankedTensorType.get([], bit)], [equal]).result


def _select(condition: ir.Value, first: ir.Value, second: ir.Value) -> ir.Value:
    """Writes a choice between two tensors by one boolean."""
    rank = len(ir.ShapedType(first.type).shape)
    scalar, each = ir.AffineMap.get(rank, 0, []), ir.AffineMap.get_identity(rank)
    element = ir.ShapedType(first.type).element_type
    out = ir.Operation.create("tensor.empty", [first.type]).result
    chosen = ir.Operation.create("linalg.generic", [first.type], [condition, first, second, out], {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in (scalar, each, each, each)]),
        "iterator_types": ir.Attribute.parse(f"[{', '.join(['#linalg.iterator_type<parallel>'] * rank)}]"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([3, 1]),
    }, regions=1)
    block = chosen.regions[0].blocks.append(ir.IntegerType.get_signless(1), element, element, element,
                                            arg_locs=[chosen.location] * 4)
    with ir.InsertionPoint(block):
        value = ir.Operation.create("arith.select", [element], list(block.arguments)[:3]).result
        ir.Operation.create("linalg.yield", [], [value])
    return chosen.result


def _get_end(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation
