"""Lowers StableHLO, as JAX and others print it, to linalg on tensors, by torch-mlir's passes."""

import linecache
import pathlib
import re

from torch_mlir import ir

from weir import hlo
from weir.bodies import BODIES, write_body
from weir.branches import write_loops
from weir.complexes import find_unsplit, split_complex, split_constants
from weir.expansions import RULES, expand
from weir.graphs import ExportError, LoweringError, find_foreign, list_values, run_passes, set_names, walk
from weir.hlo import MATRIX, STOP_GRADIENT
from weir.narrow import widen
from weir.sorting import ARGSORT, ARGSORT_DESCENDING

READ = "builtin.module(symbol-dce)"
INLINE = "builtin.module(inline,symbol-dce)"
LOWERING = "builtin.module(stablehlo-legalize-to-linalg,stablehlo-convert-to-signless,canonicalize,cse,symbol-dce)"
THREEFRY = "weir.threefry2x32"  # the target of a custom call
# Operations of the dialect chlo that torch-mlir does not lower, and Weir has.
MATH = {
    "chlo.acos": "math.acos", "chlo.acosh": "math.acosh", "chlo.asin": "math.asin", "chlo.asinh": "math.asinh",
    "chlo.atan": "math.atan", "chlo.atanh": "math.atanh", "chlo.cosh": "math.cosh", "chlo.erf": "math.erf",
    "chlo.erfc": "math.erfc", "chlo.sinh": "math.sinh", "chlo.square": "arith.mulf", "chlo.tan": "math.tan",
    "stablehlo.tan": "math.tan",
}
# On booleans, arithmetic is logic.
LOGIC = {"stablehlo.add": "stablehlo.or", "stablehlo.multiply": "stablehlo.and"}
FLOATS = ("f16", "bf16", "f32", "f64")


def lower(text: str, entry: str) -> ir.Module:
    """Returns a module of one function, `entry`, on tensors. `text` has one public function.

    Each op gets the name of its operation and the innermost line of its location, `mul (model.py:12)`.
    Errors: ExportError for operations without a form in linalg, all at once, each with its line.
    """
    try:
        if "stablehlo.composite" in text:
            text = _call_composites(run_passes(text, READ))
        if "@threefry2x32" in text:
            text = _call_threefry(run_passes(text, READ))
        module, places, names = _prepare(run_passes(text, INLINE), entry)
        lowered = _parse(run_passes(module, LOWERING))
    except LoweringError as error:
        raise ExportError(f"torch-mlir does not lower the module: {error}") from None
    _replace(lowered)
    write_loops(lowered)
    _refuse(find_foreign(lowered), places)
    if names:
        set_names(lowered, names["arg"], names["result"])
    return lowered


def _parse(text: str) -> ir.Module:
    context = ir.Context()
    context.allow_unregistered_dialects = True
    return ir.Module.parse(text, context)


def _call_composites(text: str) -> str:
    """Returns a module's text in which composites are calls of their decompositions."""
    module = _parse(text)
    with module.context:
        for op in [op for op in walk(module.operation) if op.name == "stablehlo.composite"]:
            with op.location, ir.InsertionPoint(op):
                called = ir.Operation.create("func.call", [result.type for result in op.results], list(op.operands),
                                             {"callee": op.attributes["decomposition"]})
            for old, new in zip(op.results, called.results):
                old.replace_all_uses_with(new)
            op.erase()
    return module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)


def _call_threefry(text: str) -> str:
    """Returns a module's text in which JAX's functions for random bits call one operation.

    Written out, each of the two words after a round is made of both before, over 20 rounds.
    """
    module = _parse(text)
    with module.context, ir.Location.unknown():
        for function in module.body.operations:
            name = ir.StringAttr(function.operation.attributes["sym_name"]).value
            block = function.operation.regions[0].blocks[0]
            results = list(ir.FunctionType(ir.TypeAttr(function.operation.attributes["function_type"]).value).results)
            if not name.startswith("threefry2x32") or [argument.type for argument in block.arguments][2:] != results:
                continue
            for op in reversed(list(block.operations)):
                op.operation.erase()
            called = ir.Operation.create("stablehlo.custom_call", results, list(block.arguments),
                                         {"call_target_name": ir.StringAttr.get(THREEFRY)}, ip=ir.InsertionPoint(block))
            ir.Operation.create("func.return", [], list(called.results), ip=ir.InsertionPoint(block))
    return module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)


def _prepare(text: str, entry: str) -> tuple[str, dict[str, str], dict[str, list[str]]]:
    """Returns the module's text with its function renamed, locations shortened, and no types that Weir has not.

    With it come the source lines by location, and the names of arguments and results where complex ones are split.
    """
    module = _parse(split_constants(text))
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    if len(functions) != 1:
        raise ExportError(f"the module has {len(functions)} functions that are not called; expected one")
    places: dict[str, str] = {}
    with module.context, ir.Location.unknown():
        for name in list(module.operation.attributes):
            del module.operation.attributes[name if isinstance(name, str) else name.name]
        function = functions[0]
        function.attributes["sym_name"] = ir.StringAttr.get(entry)
        for op in list(walk(function.operation)):
            _relocate(op, places)
            if op.name in LOGIC and str(ir.ShapedType(op.results[0].type).element_type) == "i1":
                new = ir.Operation.create(LOGIC[op.name], [op.results[0].type], list(op.operands), loc=op.location,
                                          ip=ir.InsertionPoint(op))
                op.results[0].replace_all_uses_with(new.results[0])
                op.erase()
        _check_types(function.operation, places)
        _refuse(widen(function.operation), places)
        _fill_empty(function.operation)
        for op in [op for op in walk(function.operation) if op.name in RULES]:
            if (made := expand(op)) is not None:
                for old, value in zip(op.results, made, strict=True):
                    old.replace_all_uses_with(value)
                op.erase()
        _refuse(find_unsplit(function.operation), places)
        names = split_complex(function.operation)
    return module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True), places, names


def _fill_empty(function: ir.Operation) -> None:
    """Writes constants in place of tensors without elements, and pads, reductions and concatenations without them:
    torch-mlir places slices past the end."""
    for op in reversed(list(walk(function))):
        kinds = [result.type for result in op.results]
        with op.location, ir.InsertionPoint(op):
            if op.name != "stablehlo.constant" and kinds and all(map(_is_empty, op.results)):
                made = [hlo.make("constant", kind, value=ir.Attribute.parse(f"dense<> : {kind}")) for kind in kinds]
            elif op.name == "stablehlo.pad" and _is_empty(op.operands[0]):
                made = [hlo.broadcast(op.operands[1], kinds[0], [])]
            elif op.name == "stablehlo.reduce" and _is_empty(op.operands[0]):
                starts = list(op.operands)[len(kinds):]
                made = [hlo.broadcast(start, kind, []) for start, kind in zip(starts, kinds, strict=True)]
            elif op.name == "stablehlo.concatenate" and any(map(_is_empty, op.operands)):
                parts = [part for part in op.operands if not _is_empty(part)]
                made = [hlo.concatenate(parts, ir.IntegerAttr(op.attributes["dimension"]).value)]
            else:
                continue
        for result, new in zip(op.results, made, strict=True):
            result.replace_all_uses_with(new)
        op.erase()


def _is_empty(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and value.type.has_static_shape and 0 in value.type.shape


def _check_types(function: ir.Operation, places: dict[str, str]) -> None:
    """Refuses floats of fewer than 16 bits, and other types that Weir has in no form."""
    for op in walk(function):
        for value in list_values(op):
            element = value.type.element_type if isinstance(value.type, ir.RankedTensorType) else value.type
            if str(element).startswith("!quant") or (isinstance(element, ir.FloatType) and str(element) not in FLOATS):
                raise ExportError(f"{_spell(op)}, {places.get(str(op.location), 'at no known place')}, has the type "
                                  f"{value.type}; Weir has the floats {', '.join(FLOATS)}: convert them outside")


def _refuse(foreign: list[ir.Operation], places: dict[str, str]) -> None:
    """Raises ExportError if there are operations that the graph level has not."""
    lines = dict.fromkeys(f"  {_spell(op)}, {places.get(str(op.location), 'at no known place')}" for op in foreign)
    if lines:
        raise ExportError("\n".join(["the function has operations without a form in linalg:", *lines]))


def _relocate(op: ir.Operation, places: dict[str, str]) -> None:
    text = str(op.location)
    files = re.findall(r'"((?:[^"\\]|\\.)*)":(\d+):\d+', text)
    names = re.findall(r'loc\("([^"]*)"(?!:\d)', text)
    name = names[0].rpartition("/")[2] if names else op.name.partition(".")[2]
    if files:
        path, line = files[0]
        op.location = ir.Location.name(name, ir.Location.file(pathlib.Path(path).name, int(line), 0))
        places[str(op.location)] = f"{path}:{line}: {linecache.getline(path, int(line)).strip()}"
    else:
        op.location = ir.Location.name(name)


def _replace(lowered: ir.Module) -> None:
    """Writes operations of Weir's graph level in place of those that the passes left."""
    with lowered.context:
        for op in list(walk(lowered.operation)):
            target = _get_target(op) if op.name == "stablehlo.custom_call" else ""
            types, operands = [result.type for result in op.results], list(op.operands)
            with op.location, ir.InsertionPoint(op):
                if op.name in MATH and str(ir.ShapedType(types[0]).element_type) in FLOATS:
                    operands *= 2 if op.name == "chlo.square" else 1
                    new = ir.Operation.create(MATH[op.name], types, operands)
                elif op.name in BODIES:
                    new = write_body(op)
                elif target == STOP_GRADIENT:
                    new = ir.Operation.create("autodiff.stop_gradient", types, operands)
                elif target in (ARGSORT, ARGSORT_DESCENDING):
                    attributes = {"descending": ir.UnitAttr.get()} if target == ARGSORT_DESCENDING else {}
                    new = ir.Operation.create("norm.argsort", types, operands, attributes)
                elif target.startswith(MATRIX):
                    name, *flags = target.removeprefix(MATRIX).split(".")
                    new = ir.Operation.create(f"matrix.{name}", types, operands, dict.fromkeys(flags, ir.UnitAttr.get()))
                elif target == THREEFRY:
                    new = _write_threefry(types, operands)
                else:
                    continue
            for old, result in zip(op.results, new.results):
                old.replace_all_uses_with(result)
            op.erase()


def _write_threefry(types: list[ir.Type], operands: list[ir.Value]) -> ir.Operation:
    """Writes the block cipher Threefry-2x32 with 20 rounds as one op. `operands`: two words of the key, or of a key for
    each row, and two tensors.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
    """
    word = ir.IntegerType.get_signless(32)
    rank = len(ir.ShapedType(types[0]).shape)
    outs = [ir.Operation.create("tensor.empty", [kind]).result for kind in types]
    each, sizes = ir.AffineMap.get_identity(rank), list(ir.ShapedType(types[0]).shape)
    maps = [*(_map_key(hlo.get_sizes(key), sizes) for key in operands[:2]), each, each, each, each]
    new = ir.Operation.create("linalg.generic", types, [*operands, *outs], {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps]),
        "iterator_types": ir.Attribute.parse(f"[{', '.join(['#linalg.iterator_type<parallel>'] * rank)}]"),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([4, 2]),
    }, regions=1)
    block = new.regions[0].blocks.append(*[word] * 6, arg_locs=[new.location] * 6)
    with ir.InsertionPoint(block):
        def compute(name: str, *values: ir.Value) -> ir.Value:
            return ir.Operation.create(f"arith.{name}", [word], list(values)).result

        def write(number: int) -> ir.Value:
            return ir.Operation.create("arith.constant", [word], [], {"value": ir.IntegerAttr.get(word, number)}).result

        keys = list(block.arguments)[:2]
        keys.append(compute("xori", compute("xori", *keys), write(0x1BD11BDA)))
        x, y = (compute("addi", word_, key) for word_, key in zip(list(block.arguments)[2:4], keys))
        for group in range(5):
            for distance in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
                x = compute("addi", x, y)
                turned = compute("ori", compute("shli", y, write(distance)),
                                 compute("shrui", y, write(32 - distance)))
                y = compute("xori", x, turned)
            x = compute("addi", x, keys[(group + 1) % 3])
            y = compute("addi", compute("addi", y, keys[(group + 2) % 3]), write(group + 1))
        ir.Operation.create("linalg.yield", [], [x, y])
    return new


def _map_key(sizes: list[int], whole: list[int]) -> ir.AffineMap:
    """Returns the map of words of keys: scalars, or tensors that are broadcast."""
    dims = enumerate(sizes, len(whole) - len(sizes))
    return ir.AffineMap.get(len(whole), 0, [ir.AffineConstantExpr.get(0) if size == 1 else ir.AffineDimExpr.get(d)
                                            for d, size in dims])


def _get_target(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["call_target_name"]).value


def _spell(op: ir.Operation) -> str:
    return f"{op.name} @{_get_target(op)}" if op.name == "stablehlo.custom_call" else op.name
