"""Loops between tensors."""

import math

from operations.base import Operation, need, type_of


class Loop(Operation):
    """A few trips whose number the compiler cannot know: its counter starts at 1 if an element is NaN."""

    has_gradient = False  # no constant says how long it is

    def propose(self, graph):
        value = graph.pick(graph.element)
        if value is None or not math.prod(graph.get(value)[0]):
            return None
        return [value], {"trips": graph.random.randint(1, 4), "keeps": graph.random.random() < 0.5}

    def infer(self, types, data):
        shape, element = types[0]
        need(math.prod(shape) and element in ("f32", "f64"))
        return [(shape, element)] * (2 if data["keeps"] else 1)

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        type, keeps = type_of(shape, element), data["keeps"]
        zero = writer.op("arith.constant 0 : index")
        first = writer.op(f"tensor.extract {name}[{', '.join([zero] * len(shape))}] : {type}")
        strange = writer.op(f"arith.cmpf uno, {first}, {first} : {element}")
        number = writer.op(f"arith.extui {strange} : i1 to i32")
        start = writer.op(f"tensor.from_elements {number} : tensor<i32>")
        end, one = (writer.op(f"arith.constant {value} : i32") for value in (data["trips"], 1))
        empty = writer.empty(shape, element)
        loops = ", ".join(f"d{i}" for i in range(len(shape)))
        each = f"affine_map<({loops}) -> ({loops})>"
        kinds = ", ".join(['"parallel"'] * len(shape))
        # Values change places in each trip if both are kept.
        types = ", ".join([type] * (1 + keeps) + ["tensor<i32>"])
        carried = [f"%h = {name}", *([f"%g = {name}"] if keeps else []), f"%i = {start}"]
        passed = ", ".join(["%h", *(["%g"] if keeps else []), "%i"])
        result = f"%v{writer.count}"
        writer.count += 1
        for line in [
            f"{result}:{2 + keeps} = scf.while ({', '.join(carried)}) : ({types}) -> ({types}) {{",
            "  %n = tensor.extract %i[] : tensor<i32>",
            f"  %go = arith.cmpi slt, %n, {end} : i32",
            f"  scf.condition(%go) {passed} : {types}",
            "} do {",
            f"^bb0({', '.join([f'%h: {type}', *([f'%g: {type}'] if keeps else []), '%i: tensor<i32>'])}):",
            f"  %m = linalg.generic {{indexing_maps = [{each}, {each}, {each}], iterator_types = [{kinds}]}}",
            f"      ins(%h, {'%g' if keeps else name} : {type}, {type}) outs({empty} : {type}) {{",
            f"  ^bb0(%x: {element}, %y: {element}, %o: {element}):",
            f"    %c = arith.constant 0.5 : {element}",
            f"    %s = arith.addf %x, %y : {element}",
            f"    %p = arith.mulf %s, %c : {element}",
            f"    linalg.yield %p : {element}",
            f"  }} -> {type}",
            "  %n = tensor.extract %i[] : tensor<i32>",
            f"  %next = arith.addi %n, {one} : i32",
            "  %j = tensor.from_elements %next : tensor<i32>",
            f"  scf.yield {'%g, %m' if keeps else '%m'}, %j : {types}",
            "}",
        ]:
            writer.emit(line)
        return [f"{result}#0", f"{result}#1"] if keeps else [f"{result}#0"]


class CountedLoop(Operation):
    """A loop of known length, short or long. Trips may read a slice each, stack what they make, and average rows."""

    def propose(self, graph):
        value = graph.pick(graph.element)
        if value is None or not math.prod(graph.get(value)[0]):
            return None
        shape, element = graph.get(value)
        data = {"trips": graph.random.choice([1, 2, 3, 7, 8, 9, 16, 19])}
        data |= {key: graph.random.random() < 0.4 for key in ("reads", "stacks", "averages", "reverses")}
        data["averages"] &= bool(shape)
        slices = [graph.pick_like([data["trips"], *shape], element)] if data["reads"] else []
        return [value, *slices], data

    def infer(self, types, data):
        shape, element = types[0]
        stacked = ([data["trips"], *shape], element)
        need(math.prod(shape) and element in ("f32", "f64") and (shape or not data["averages"]))
        need(len(types) == 1 + data["reads"] and types[1:] in ([], [stacked]))
        return [(shape, element), *([stacked] if data["stacks"] else [])]

    def emit(self, writer, operands, data):
        name, shape, element = operands[0]
        type, trips = type_of(shape, element), data["trips"]
        stack = type_of([trips, *shape], element)
        zero, one, count = (writer.op(f"arith.constant {value} : index") for value in (0, 1, trips))
        empty = writer.empty(shape, element)
        at = f"[{', '.join(['%k', *['0'] * len(shape)])}] [{', '.join(map(str, [1, *shape]))}] " \
             f"[{', '.join(['1'] * (1 + len(shape)))}]"
        loops = [f"d{i}" for i in range(len(shape))]
        each = f"affine_map<({', '.join(loops)}) -> ({', '.join(loops)})>"
        row = f"affine_map<({', '.join(loops)}) -> ({', '.join(loops[:-1])})>"
        rows = type_of(shape[:-1], element)
        kinds = ", ".join(['"parallel"'] * len(shape))
        body = [f"%last = arith.constant {trips - 1} : index",
                "%k = arith.subi %last, %i : index" if data["reverses"] else f"%k = arith.addi %i, {zero} : index"]
        if data["reads"]:
            body.append(f"%x = tensor.extract_slice {operands[1][0]}{at} : {stack} to {type}")
        other, taken = ("%x" if data["reads"] else name), each
        if data["averages"]:
            fewer = ", ".join(['"parallel"'] * (len(shape) - 1) + ['"reduction"'])
            body += [f"%zero = arith.constant 0.0 : {element}", f"%none = tensor.empty() : {rows}",
                     f"%start = linalg.fill ins(%zero : {element}) outs(%none : {rows}) -> {rows}",
                     f"%mean = linalg.generic {{indexing_maps = [{each}, {row}], iterator_types = [{fewer}]}}",
                     f"    ins({other} : {type}) outs(%start : {rows}) {{",
                     f"^bb0(%a: {element}, %o: {element}):", f"  %share = arith.constant {1 / shape[-1]} : {element}",
                     f"  %p = arith.mulf %a, %share : {element}", f"  %s = arith.addf %o, %p : {element}",
                     f"  linalg.yield %s : {element}", f"}} -> {rows}"]
            other, taken = "%mean", row
        body += [f"%m = linalg.generic {{indexing_maps = [{each}, {taken}, {each}], iterator_types = [{kinds}]}}",
                 f"    ins(%h, {other} : {type}, {rows if data['averages'] else type}) outs({empty} : {type}) {{",
                 f"^bb0(%a: {element}, %b: {element}, %o: {element}):", f"  %c = arith.constant 0.5 : {element}",
                 f"  %s = arith.addf %a, %b : {element}", f"  %p = arith.mulf %s, %c : {element}",
                 f"  linalg.yield %p : {element}", f"}} -> {type}"]
        carried, types, made = [f"%h = {name}"], [type], ["%m"]
        if data["stacks"]:
            carried.append(f"%all = {writer.empty([trips, *shape], element)}")
            types.append(stack)
            made.append("%put")
            body.append(f"%put = tensor.insert_slice %m into %all{at} : {type} into {stack}")
        result = f"%v{writer.count}"
        writer.count += 1
        for line in [f"{result}:{len(types)} = scf.for %i = {zero} to {count} step {one} "
                     f"iter_args({', '.join(carried)}) -> ({', '.join(types)}) {{", *(f"  {line}" for line in body),
                     f"  scf.yield {', '.join(made)} : {', '.join(types)}", "}"]:
            writer.emit(line)
        return [f"{result}#{i}" for i in range(len(types))]
