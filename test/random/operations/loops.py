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
