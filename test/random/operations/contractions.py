"""Sums over dimensions and windows: reductions, products of matrices, convolutions, poolings."""

import math

from operations.base import Operation, get_dims, maybe_alone, need, no_fuse, type_of


class Reduce(Operation):
    """The mean, its square's, a product of what is near 1, or the largest or least of some
    dimensions, onto a constant or onto a value."""

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        if graph.random.random() < 0.3:  # columns: all dimensions but the last ones
            reduced = list(range(graph.random.randint(0, len(shape))))
        else:
            reduced = [i for i in range(len(shape)) if graph.random.random() < 0.5]
        if not reduced:
            return None
        ops = ["sum", "sum", "square", "product"] + ["maximumf", "minimumf"] * all(shape)
        data = {"reduced": reduced, "op": graph.random.choice(ops), "init": graph.random.choice([0.0, 0.0, 0.25])}
        operands = [value]
        if data["op"] in ("sum", "square") and graph.random.random() < 0.2:
            operands.append(graph.pick_like([size for i, size in enumerate(shape) if i not in reduced], element))
        return operands, data

    def infer(self, types, data):
        (shape, element), reduced = types[0], data["reduced"]
        need(all(i < len(shape) for i in reduced))
        need(all(shape) or data["op"] in ("sum", "square", "product"))
        out = ([size for i, size in enumerate(shape) if i not in reduced], element)
        need(len(types) == 1 or types[1] == out)
        return [out]

    def emit(self, writer, operands, data):
        name, shape, element = operands[0]
        dims, reduced, op = get_dims(len(shape)), data["reduced"], data["op"]
        kept = [i for i in range(len(shape)) if i not in reduced]
        out = [shape[i] for i in kept]
        if op in ("sum", "square"):
            init = operands[1][0] if len(operands) > 1 else writer.filled(out, element, data["init"])
            length = max(math.prod(shape[i] for i in reduced), 1)
            body = [f"%y = arith.mulf %x0, %x0 : {element}"] if op == "square" else []
            body += [f"%n = arith.constant {1.0 / length!r} : {element}",
                     f"%m = arith.mulf {'%y' if op == 'square' else '%x0'}, %n : {element}",
                     f"%r = arith.addf %o0, %m : {element}"]
        elif op == "product":
            init = writer.filled(out, element, data["init"] + 0.5)
            length = max(math.prod(shape[i] for i in reduced), 1)
            body = [f"%one = arith.constant 1.0 : {element}", f"%q = arith.mulf %x0, %x0 : {element}",
                    f"%u = arith.addf %q, %one : {element}", f"%t = arith.divf %x0, %u : {element}",
                    f"%n = arith.constant {1.0 / length!r} : {element}",
                    f"%f = math.fma %t, %n, %one : {element}", f"%r = arith.mulf %o0, %f : {element}"]
        else:
            infinity = {"maximumf": {"f32": "0xFF800000", "f64": "0xFFF0000000000000"},
                        "minimumf": {"f32": "0x7F800000", "f64": "0x7FF0000000000000"}}[op][element]
            init = writer.filled(out, element, infinity)
            body = [f"%r = arith.{op} %o0, %x0 : {element}"]
        kinds = ["reduction" if i in reduced else "parallel" for i in range(len(shape))]
        return [writer.generic(kinds, [(name, shape, element, dims)],
                               [(init, out, element, [dims[i] for i in kept])],
                               body + [f"linalg.yield %r : {element}"])]


class Running(Operation):
    """A running mean along one dimension, from either end, with a place's own element or without it."""

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        if not shape or element not in ("f32", "f64"):
            return None
        return [value], {"dim": graph.random.randrange(len(shape)),
                         "predicate": graph.random.choice(["sle", "slt", "sge", "sgt"])}

    def infer(self, types, data):
        need(data["dim"] < len(types[0][0]))
        return [types[0]]

    def emit(self, writer, operands, data):
        name, shape, element = operands[0]
        dims, dim, rank = get_dims(len(shape) + 1), data["dim"], len(shape)
        terms = [dims[rank] if i == dim else dims[i] for i in range(rank)]
        body = [f"%zero = arith.constant 0.0 : {element}",
                f"%n = arith.constant {1.0 / max(shape[dim], 1)!r} : {element}", f"%m = arith.mulf %x0, %n : {element}",
                f"%i = linalg.index {dim} : index", f"%j = linalg.index {rank} : index",
                f"%c = arith.cmpi {data['predicate']}, %j, %i : index", f"%t = arith.select %c, %m, %zero : {element}",
                f"%r = arith.addf %o0, %t : {element}", f"linalg.yield %r : {element}"]
        return [writer.generic(["parallel"] * rank + ["reduction"], [(name, shape, element, terms)],
                               [(writer.filled(shape, element, 0.0), shape, element, dims[:rank])], body)]


class Contract(Operation):
    """A product of matrices, of batches of them, or of a matrix and a vector; some stored
    transposed. Scaled, so that what comes out is of order one."""

    # kind: (loops, of which the last is summed; operands' and result's dimensions)
    KINDS = {
        "matmul": ("mnk", "mk", "kn", "mn"), "transposed": ("mnk", "mk", "nk", "mn"),
        "both": ("mnk", "km", "nk", "mn"), "batch_matmul": ("bmnk", "bmk", "bkn", "bmn"),
        "matvec": ("mk", "mk", "k", "m"), "vecmat": ("nk", "k", "kn", "n"), "dot": ("k", "k", "k", ""),
        "shared": ("bmnk", "bmk", "kn", "bmn"), "gradient": ("mnk", "km", "kn", "mn"),
        "batch_matvec": ("bmk", "bmk", "bk", "bm"), "batch_vecmat": ("bnk", "bk", "bkn", "bn"),
        "batch_reduce_matmul": ("mnbk", "bmk", "bkn", "mn"),
    }
    NAMED = ["matmul", "batch_matmul", "matvec", "vecmat", "dot", "batch_matvec", "batch_vecmat", "batch_reduce_matmul"]

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        kinds = [kind for kind, (_, first, _, _) in self.KINDS.items() if len(first) == len(shape)]
        if not kinds:
            return None
        kind = graph.random.choice(kinds)
        sizes = dict(zip(self.KINDS[kind][1], shape))
        other = []
        for dim in self.KINDS[kind][2]:
            sizes.setdefault(dim, graph.pick_size())
            other.append(sizes[dim])
        data = {"kind": kind, "named": graph.random.random() < 0.5, "maps": graph.random.random() < 0.3}
        return [value, graph.pick_like(other, element)], data

    def infer(self, types, data):
        _, first, second, out = self.KINDS[data["kind"]]
        need(len(types[0][0]) == len(first) and len(types[1][0]) == len(second) and types[0][1] == types[1][1])
        sizes = dict(zip(first, types[0][0]))
        for dim, size in zip(second, types[1][0]):
            need(sizes.setdefault(dim, size) == size)
        return [([sizes[dim] for dim in out], types[0][1])]

    def emit(self, writer, operands, data):
        loops, first, second, out = self.KINDS[data["kind"]]
        (a, a_shape, element), (b, b_shape, _) = operands
        sizes = dict(zip(first, a_shape)) | dict(zip(second, b_shape))
        shape = [sizes[dim] for dim in out]
        init, type = writer.filled(shape, element, "0.0"), type_of(shape, element)
        if data["named"] and data["kind"] in self.NAMED:
            raw = writer.op(f"linalg.{data['kind']} ins({a}, {b} : {type_of(a_shape, element)}, "
                            f"{type_of(b_shape, element)}) outs({init} : {type}) -> {type}")
        elif data["maps"]:
            maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(some)})>"
                             for some in (first, second, out))
            raw = writer.op(f"linalg.contract indexing_maps = [{maps}] ins({a}, {b} : {type_of(a_shape, element)}, "
                            f"{type_of(b_shape, element)}) outs({init} : {type}) -> {type}")
        else:
            dims = {dim: f"d{i}" for i, dim in enumerate(loops)}
            kinds = ["parallel" if dim in out else "reduction" for dim in loops]
            body = [f"%p = arith.mulf %x0, %x1 : {element}", f"%r = arith.addf %o0, %p : {element}",
                    f"linalg.yield %r : {element}"]
            raw = writer.generic(kinds, [(a, a_shape, element, [dims[d] for d in first]),
                                         (b, b_shape, element, [dims[d] for d in second])],
                                 [(init, shape, element, [dims[d] for d in out])], body)
        scale = 1.0 / max(math.prod(size for dim, size in sizes.items() if dim not in out), 1) ** 0.5
        return [writer.map(shape, element, [(raw, shape, element, get_dims(len(shape)))],
                           [f"%n = arith.constant {scale!r} : {element}", f"%r = arith.mulf %x0, %n : {element}"])]


class HalfContract(Operation):
    """A value, scaled by a part of a product of 16-bit factors that is large enough for instructions on matrices. All
    sums are exact: the reference in f64 rounds nothing."""

    ROWS, COLUMNS = 256, 256

    def propose(self, graph):
        value = graph.pick()
        shape = graph.get(value)[0]
        if len(shape) != 2 or shape[0] > self.ROWS or shape[1] > self.COLUMNS:
            return None
        return [value], {"half": graph.random.choice(["f16", "bf16"]),
                         "products": graph.random.choice([37, 64, 72, 83, 96, 128]),
                         "columns": graph.random.choice([self.COLUMNS, self.COLUMNS + 3]),
                         "transposed": graph.random.random() < 0.5,
                         "first": maybe_alone(graph), "second": maybe_alone(graph)}

    def infer(self, types, data):
        shape = types[0][0]
        need(len(shape) == 2 and shape[0] <= self.ROWS and shape[1] <= self.COLUMNS)
        return [types[0]]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        half, products, columns = data["half"], data["products"], data["columns"]

        def make_factor(sizes, row, alone):
            return writer.map(sizes, half, [], [
                "%i = linalg.index 0 : index", "%j = linalg.index 1 : index", f"%c = arith.constant {row} : index",
                "%p = arith.muli %i, %c : index", "%q = arith.addi %p, %j : index",
                "%n = arith.index_cast %q : index to i32", "%most = arith.constant 7 : i32",
                "%m = arith.remui %n, %most : i32", "%f = arith.uitofp %m : i32 to f32",
                "%k = arith.constant 0.125 : f32", "%s = arith.mulf %f, %k : f32",
                f"%r = arith.truncf %s : f32 to {half}"], no_fuse({"alone": alone}))

        second = [columns, products] if data["transposed"] else [products, columns]
        a = make_factor([self.ROWS, products], 3, data["first"])
        b = make_factor(second, 5, data["second"])
        sums = [self.ROWS, columns]
        init = writer.filled(sums, "f32", "0.0")
        raw = writer.generic(
            ["parallel", "parallel", "reduction"],
            [(a, [self.ROWS, products], half, ["d0", "d2"]),
             (b, second, half, ["d1", "d2"] if data["transposed"] else ["d2", "d1"])],
            [(init, sums, "f32", ["d0", "d1"])],
            [f"%v = arith.extf %x0 : {half} to f32", f"%w = arith.extf %x1 : {half} to f32",
             "%p = arith.mulf %v, %w : f32", "%r = arith.addf %o0, %p : f32", "linalg.yield %r : f32"])
        size = f"{shape[0]}, {shape[1]}"
        part = writer.op(f"tensor.extract_slice {raw}[0, 0] [{size}] [1, 1] : {type_of(sums, 'f32')} to "
                         f"{type_of(shape, 'f32')}")
        widened = ["%e = arith.extf %x1 : f32 to f64"] if element == "f64" else []
        factor = "%e" if widened else "%x1"
        return [writer.map(shape, element, [(name, shape, element, get_dims(2)), (part, shape, "f32", get_dims(2))],
                           [*widened, f"%k = arith.constant 0.015625 : {element}",
                            f"%f = arith.mulf {factor}, %k : {element}", f"%r = arith.mulf %x0, %f : {element}"])]


class Convolve(Operation):
    """A convolution with a window of each dimension, or along sequences of channels; scaled."""

    # By rank: name, attributes
    NAMES = {1: "conv_1d", 2: "conv_2d", 3: "conv_1d_nwc_wcf"}

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        if len(shape) not in self.NAMES or not all(shape):
            return None
        window = lambda size: graph.random.randint(1, min(size, 4))  # noqa: E731
        if len(shape) < 3:
            return [value, graph.pick_like([window(size) for size in shape], element)], {}
        width, stride = window(shape[1]), graph.random.choice([1, 2])
        return [value, graph.pick_like([width, shape[2], graph.random.choice([1, 3, 8])], element)], {"stride": stride}

    def infer(self, types, data):
        (shape, element), (window, other) = types
        need(element == other and len(shape) == len(window) in self.NAMES and all(shape) and all(window))
        if len(shape) == 3:
            need(window[0] <= shape[1] and window[1] == shape[2])
            return [([shape[0], (shape[1] - window[0]) // data["stride"] + 1, window[2]], element)]
        need(all(inner <= size for inner, size in zip(window, shape)))
        return [([size - inner + 1 for inner, size in zip(window, shape)], element)]

    def emit(self, writer, operands, data):
        (name, shape, element), (window, window_shape, _) = operands
        [(out, _)] = self.infer([(shape, element), (window_shape, element)], data)
        type, init = type_of(out, element), writer.filled(out, element, "0.0")
        attributes = ""
        if len(shape) == 3:
            attributes = (f" {{dilations = dense<1> : tensor<1xi64>, "
                          f"strides = dense<{data['stride']}> : tensor<1xi64>}}")
        raw = writer.op(f"linalg.{self.NAMES[len(shape)]}{attributes} ins({name}, {window} : "
                        f"{type_of(shape, element)}, {type_of(window_shape, element)}) outs({init} : {type}) -> {type}")
        scale = 1.0 / math.prod(window_shape[:2]) ** 0.5
        return [writer.map(out, element, [(raw, out, element, get_dims(len(out)))],
                           [f"%n = arith.constant {scale!r} : {element}", f"%r = arith.mulf %x0, %n : {element}"])]


class Pool(Operation):
    """The sum, the largest or the least of windows along sequences."""

    def propose(self, graph):
        value = graph.pick()
        shape = graph.get(value)[0]
        if len(shape) != 3 or not all(shape):
            return None
        return [value], {"width": graph.random.randint(1, min(shape[1], 4)), "stride": graph.random.choice([1, 2, 3]),
                         "op": graph.random.choice(["sum", "max", "min"])}

    def infer(self, types, data):
        shape, element = types[0]
        need(len(shape) == 3 and all(shape) and data["width"] <= shape[1])
        return [([shape[0], (shape[1] - data["width"]) // data["stride"] + 1, shape[2]], element)]

    def emit(self, writer, operands, data):
        [(name, shape, element)] = operands
        [(out, _)] = self.infer([(shape, element)], data)
        start = {"sum": "0.0", "max": {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}.get(element),
                 "min": {"f32": "0x7F800000", "f64": "0x7FF0000000000000"}.get(element)}[data["op"]]
        init, window = writer.filled(out, element, start), writer.empty([data["width"]], element)
        return [writer.op(f"linalg.pooling_nwc_{data['op']} {{dilations = dense<1> : tensor<1xi64>, "
                          f"strides = dense<{data['stride']}> : tensor<1xi64>}} ins({name}, {window} : "
                          f"{type_of(shape, element)}, {type_of([data['width']], element)}) "
                          f"outs({init} : {type_of(out, element)}) -> {type_of(out, element)}")]


class Windows(Operation):
    """Named convolutions and poolings of sequences, images and volumes, of channels first or last,
    in groups, by strides and dilations; scaled."""

    # The operands' and the result's dimensions; a value lacks n, the first of 1, where there are more than three.
    NAMES = {"conv_2d_nhwc_hwcf": ("nhwc", "hwcf", "nhwf"), "conv_2d_nhwc_fhwc": ("nhwc", "fhwc", "nhwf"),
             "conv_2d_nchw_fchw": ("nchw", "fchw", "nfhw"), "depthwise_conv_2d_nhwc_hwc": ("nhwc", "hwc", "nhwc"),
             "depthwise_conv_2d_nchw_chw": ("nchw", "chw", "nchw"), "conv_1d_ncw_fcw": ("ncw", "fcw", "nfw"),
             "depthwise_conv_1d_nwc_wc": ("nwc", "wc", "nwc"), "depthwise_conv_1d_ncw_cw": ("ncw", "cw", "ncw"),
             "depthwise_conv_1d_nwc_wcm": ("nwc", "wcm", "nwcm"),
             "depthwise_conv_2d_nhwc_hwcm": ("nhwc", "hwcm", "nhwcm"),
             "conv_2d_ngchw_fgchw": ("ngchw", "fgchw", "ngfhw"), "conv_2d_ngchw_gfchw": ("ngchw", "gfchw", "ngfhw"),
             "conv_2d_nhwgc_gfhwc": ("nhwgc", "gfhwc", "nhwgf"), "conv_3d": ("dhw", "dhw", "dhw"),
             "conv_3d_ndhwc_dhwcf": ("ndhwc", "dhwcf", "ndhwf"), "conv_3d_ncdhw_fcdhw": ("ncdhw", "fcdhw", "nfdhw"),
             "depthwise_conv_3d_ndhwc_dhwc": ("ndhwc", "dhwc", "ndhwc"),
             "depthwise_conv_3d_ncdhw_cdhw": ("ncdhw", "cdhw", "ncdhw"),
             "depthwise_conv_3d_ndhwc_dhwcm": ("ndhwc", "dhwcm", "ndhwcm"),
             "pooling_nhwc_sum": ("nhwc", "hw", "nhwc"), "pooling_nhwc_max": ("nhwc", "hw", "nhwc"),
             "pooling_nhwc_min": ("nhwc", "hw", "nhwc"), "pooling_nchw_sum": ("nchw", "hw", "nchw"),
             "pooling_nchw_max": ("nchw", "hw", "nchw"), "pooling_ncw_sum": ("ncw", "w", "ncw"),
             "pooling_ncw_max": ("ncw", "w", "ncw"), "pooling_ndhwc_sum": ("ndhwc", "dhw", "ndhwc"),
             "pooling_ndhwc_max": ("ndhwc", "dhw", "ndhwc"), "pooling_ndhwc_min": ("ndhwc", "dhw", "ndhwc")}

    def get_letters(self, op):
        """Returns the dimensions of the value, the window and the result, and whether n is left out of the first
        and the last."""
        layout, kernel, out = self.NAMES[op]
        lacks = len(layout) > 3
        return layout[lacks:], kernel, out[lacks:], lacks

    def propose(self, graph):
        value = graph.pick()
        shape, element = graph.get(value)
        fitting = [op for op in sorted(self.NAMES) if len(self.get_letters(op)[0]) == len(shape)]
        if not fitting or not all(shape):
            return None
        op = graph.random.choice(fitting)
        letters, kernel, _, _ = self.get_letters(op)
        sizes = dict(zip(letters, shape))
        window = [graph.random.choice([1, 3, 8]) if letter == "f" else graph.random.choice([1, 2]) if letter == "m" else
                  sizes[letter] if letter in "cg" else graph.random.randint(1, min(sizes[letter], 3))
                  for letter in kernel]
        data = {"op": op, "stride": graph.random.choice([1, 2]), "dilation": graph.random.choice([1, 1, 2]),
                "window": window}
        if op == "conv_3d":  # has neither
            data |= {"stride": 1, "dilation": 1}
        if any(self.get_count(sizes[letter], size, data) < 1
               for letter, size in zip(kernel, window) if letter in "dhw"):
            data["dilation"] = 1
        return [value] + [graph.pick_like(window, element)] * ("conv" in op), data

    def get_count(self, size, window, data):
        return (size - (window - 1) * data["dilation"] - 1) // data["stride"] + 1

    def infer(self, types, data):
        (shape, element), (letters, kernel, out, _) = types[0], self.get_letters(data["op"])
        need(len(shape) == len(letters) and all(shape) and len(kernel) == len(data["window"]))
        need(all(other == (data["window"], element) for other in types[1:]))
        sizes, windows = {"n": 1} | dict(zip(letters, shape)), dict(zip(kernel, data["window"]))
        need(all(windows[letter] == sizes[letter] for letter in "cg" if letter in windows))
        sizes |= {letter: self.get_count(sizes[letter], windows[letter], data) for letter in kernel if letter in "dhw"}
        sizes |= {letter: windows[letter] for letter in "fm" if letter in windows}
        need(all(size > 0 for size in sizes.values()))
        return [([sizes[letter] for letter in out], element)]

    def emit(self, writer, operands, data):
        name, shape, element = operands[0]
        op, (_, kernel, _, lacks) = data["op"], self.get_letters(data["op"])
        [(small, _)] = self.infer([(shape, element), *[(shape, element) for _, shape, element in operands[1:]]], data)
        whole, result = [1] * lacks + shape, [1] * lacks + small

        def get_groups(shape):
            return [[0, 1], *[[i] for i in range(2, len(shape))]]

        if lacks:
            name = writer.op(f"tensor.expand_shape {name} {get_groups(whole)} output_shape {whole} : "
                             f"{type_of(shape, element)} into {type_of(whole, element)}")
        start = {"max": {"f32": "0xFF800000", "f64": "0xFFF0000000000000"},
                 "min": {"f32": "0x7F800000", "f64": "0x7FF0000000000000"}}.get(op[-3:], {}).get(element, "0.0")
        window = operands[1][0] if len(operands) > 1 else writer.empty(data["window"], element)
        count = sum(letter in "dhw" for letter in kernel)
        attributes = "" if op == "conv_3d" else (f" {{dilations = dense<{data['dilation']}> : tensor<{count}xi64>, "
                                                 f"strides = dense<{data['stride']}> : tensor<{count}xi64>}}")
        init, type = writer.filled(result, element, start), type_of(result, element)
        raw = writer.op(f"linalg.{op}{attributes} ins({name}, {window} : {type_of(whole, element)}, "
                        f"{type_of(data['window'], element)}) outs({init} : {type}) -> {type}")
        if lacks:
            raw = writer.op(f"tensor.collapse_shape {raw} {get_groups(result)} : {type} into {type_of(small, element)}")
        summed = 1 if op[-3:] in ("max", "min") else math.prod(
            size for letter, size in zip(kernel, data["window"])
            if letter in "dhw" or letter == "c" and "f" in kernel)
        return [writer.map(small, element, [(raw, small, element, get_dims(len(small)))],
                           [f"%n = arith.constant {1.0 / summed ** 0.5!r} : {element}",
                            f"%r = arith.mulf %x0, %n : {element}"])]


class Whole(Operation):
    """Named ops on small whole numbers, or on quarters of them. All results are exact."""

    # The operands' dimensions and the result's.
    NAMES = {"quantized_matmul": ("mk", "kn", "mn"), "quantized_batch_matmul": ("bmk", "bkn", "bmn"),
             "mmt4d": ("MKxz", "NKyz", "MNxy"), "batch_mmt4d": ("bMKxz", "bNKyz", "bMNxy"),
             "pooling_nhwc_max_unsigned": ("nhwc", "hw", "nhwc"), "pooling_nhwc_min_unsigned": ("nhwc", "hw", "nhwc"),
             "pooling_nwc_max_unsigned": ("nwc", "w", "nwc"), "pooling_nwc_min_unsigned": ("nwc", "w", "nwc"),
             "div_unsigned": ("mn", "mn", "mn"), "ceil": ("mn", "mn"), "floor": ("mn", "mn"), "round": ("mn", "mn")}
    NAMES |= {f"{op}_q": Windows.NAMES[op] for op in [
        "conv_2d_nhwc_hwcf", "conv_2d_nhwc_fhwc", "conv_2d_nchw_fchw", "conv_2d_nhwgc_gfhwc", "conv_2d_ngchw_gfchw",
        "conv_3d_ndhwc_dhwcf", "depthwise_conv_2d_nhwc_hwc", "depthwise_conv_2d_nhwc_hwcm"]}

    def propose(self, graph):
        op = graph.random.choice(sorted(self.NAMES))
        sizes = {letter: graph.random.choice([1, 2, 3, 5]) for letter in sorted(set("".join(self.NAMES[op])))}
        return [], {"op": op, "sizes": sizes, "element": graph.element, "stride": graph.random.choice([1, 2]),
                    "dilation": graph.random.choice([1, 2]), "seed": graph.random.randrange(13)}

    def is_windowed(self, op):
        return "conv" in op or "pool" in op

    def get_shapes(self, data):
        """Windows are of two in each place."""
        op, sizes = data["op"], data["sizes"]
        *inputs, result = self.NAMES[op]
        shapes = [[sizes[letter] for letter in letters] for letters in self.NAMES[op]]
        if self.is_windowed(op):
            shapes[0] = [(size - 1) * data["stride"] + data["dilation"] + 1 if letter in "dhw" else size
                         for letter, size in zip(inputs[0], shapes[0])]
            shapes[1] = [2 if letter in "dhw" else size for letter, size in zip(inputs[1], shapes[1])]
        return shapes

    def infer(self, types, data):
        return [(self.get_shapes(data)[-1], data["element"])]

    def numbers(self, writer, shape, integer, seed, least):
        """Whole numbers from `least` on, below 13 more."""
        lines, sum = [f"%s = arith.constant {seed} : index"], "%s"
        for i in range(len(shape)):
            lines += [f"%i{i} = linalg.index {i} : index", f"%k{i} = arith.constant {2 * i + 3} : index",
                      f"%m{i} = arith.muli %i{i}, %k{i} : index", f"%s{i} = arith.addi {sum}, %m{i} : index"]
            sum = f"%s{i}"
        lines += ["%most = arith.constant 13 : index", f"%p = arith.remui {sum}, %most : index",
                  f"%q = arith.index_cast %p : index to {integer}", f"%l = arith.constant {least} : {integer}",
                  f"%r = arith.addi %q, %l : {integer}"]
        return writer.map(shape, integer, [], lines)

    def emit(self, writer, operands, data):
        op, element = data["op"], data["element"]
        *inputs, out = self.get_shapes(data)
        quantized, dims = op.startswith("quantized") or op.endswith("_q"), get_dims(len(out))
        if len(inputs) == 1:
            numbers = self.numbers(writer, out, "i32", data["seed"], -6)
            quarters = writer.map(out, element, [(numbers, out, "i32", dims)], [
                f"%f = arith.sitofp %x0 : i32 to {element}", f"%k = arith.constant 0.25 : {element}",
                f"%r = arith.mulf %f, %k : {element}"])
            type = type_of(out, element)
            return [writer.op(f"linalg.{op} ins({quarters} : {type}) outs({writer.empty(out, element)} : {type}) -> {type}")]
        integer = "i8" if quantized or "mmt4d" in op else "i32"
        least = 1 if op == "div_unsigned" else -6
        values = [self.numbers(writer, inputs[0], integer, data["seed"], least)]
        if "pooling" in op:
            values.append(writer.empty(inputs[1], integer))
        else:
            values.append(self.numbers(writer, inputs[1], integer, 2 * data["seed"] + 1, least))
        types = [type_of(shape, integer) for shape in inputs]
        for point in [3, -5] * quantized:
            values.append(writer.op(f"arith.constant {point} : i32"))
            types.append("i32")
        count = sum(letter in "dhw" for letter in self.NAMES[op][0]) if self.is_windowed(op) else 0
        attributes = count * "x" and (f" {{dilations = dense<{data['dilation']}> : tensor<{count}xi64>, "
                                      f"strides = dense<{data['stride']}> : tensor<{count}xi64>}}")
        init, type = writer.filled(out, "i32", "-1" if "min" in op else "0"), type_of(out, "i32")
        result = writer.op(f"linalg.{op}{attributes} ins({', '.join(values)} : {', '.join(types)}) "
                           f"outs({init} : {type}) -> {type}")
        # The low bits: numbers may be unsigned.
        return [writer.map(out, element, [(result, out, "i32", dims)], [
            "%most = arith.constant 1023 : i32", "%low = arith.andi %x0, %most : i32",
            f"%f = arith.sitofp %low : i32 to {element}", f"%k = arith.constant 0.0078125 : {element}",
            f"%r = arith.mulf %f, %k : {element}"])]
