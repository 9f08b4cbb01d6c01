"""Control flow of StableHLO between tensors, as the graph level has it."""

from collections.abc import Sequence

from torch_mlir import ir

from weir.graphs import walk

WHILE, CASE, IF = "stablehlo.while", "stablehlo.case", "stablehlo.if"


def write_loops(module: ir.Module) -> None:
    """Writes `scf.while` for each loop, and `scf.if` for each choice."""
    with module.context:
        while op := next((op for op in walk(module.operation) if op.name in (WHILE, CASE, IF)), None):
            with op.location, ir.InsertionPoint(op):
                if op.name == WHILE:
                    results = _write_while(op)
                else:
                    results = _write_branches(op, [region.blocks[0] for region in op.regions], 0, op)
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


def _write_branches(op: ir.Operation, blocks: list[ir.Block], first: int, place: ir.Operation) -> Sequence[ir.Value]:
    """Writes the branches of `op` from the first on in front of `place`, one choice in the other."""
    if first == len(blocks) - 1:  # of an index out of range, too
        results = list(_get_end(blocks[first]).operands)
        for inner in list(blocks[first].operations)[:-1]:
            inner.operation.move_before(place)
        return results
    flag = ir.Operation.create("tensor.extract", [ir.IntegerType.get_signless(1)], [_test(op, first)]).result
    choice = ir.Operation.create("scf.if", [result.type for result in op.results], [flag], regions=2)
    for region, branches, start in zip(choice.regions, (blocks[:first + 1], blocks), (first, first + 1)):
        with ir.InsertionPoint(region.blocks.append()):
            end = ir.Operation.create("scf.yield", [], [])
        with ir.InsertionPoint(end):
            ir.Operation.create("scf.yield", [], list(_write_branches(op, branches, start, end)))
        end.erase()
    return list(choice.results)


def _test(op: ir.Operation, number: int) -> ir.Value:
    """Returns whether a branch of `op` is taken. The first one of an if is that of true."""
    return op.operands[0] if op.name == IF else _is_equal(op.operands[0], number)


def _is_equal(index: ir.Value, number: int) -> ir.Value:
    bit, word = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(32)
    taken = ir.Operation.create("tensor.extract", [word], [index]).result
    wanted = ir.Operation.create("arith.constant", [word], [], {"value": ir.IntegerAttr.get(word, number)}).result
    equal = ir.Operation.create("arith.cmpi", [bit], [taken, wanted],
                                {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}).result
    return ir.Operation.create("tensor.from_elements", [ir.RankedTensorType.get([], bit)], [equal]).result


def _get_end(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation
