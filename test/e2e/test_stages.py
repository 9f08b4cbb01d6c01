"""Kernels of several stages, on the processor: the same bits as in kernels of their own."""

import json
import random
import zipfile

import pytest
from conftest import list_isas
from safetensors.numpy import load_file

# Group dimensions, rows, columns, products of the scores, columns of the result.
SIZES = [((6,), 16, 16, 8, 8), ((2, 3), 37, 41, 13, 7), ((1, 5), 2, 64, 64, 64), ((4,), 130, 67, 16, 33),
         ((3, 2), 5, 200, 3, 1), ((2,), 64, 128, 64, 64)]


class Graph:
    """The text of a function, op by op."""

    def __init__(self):
        self.body, self.count = [], 0

    def type(self, sizes, element="f32"):
        return f"tensor<{''.join(f'{size}x' for size in sizes)}{element}>"

    def generic(self, sizes, inputs, written, result, body, reduced=0, zero=None, element="f32"):
        """Adds an op over `sizes`. `inputs` are values, types and lists of loops; so is what is written."""
        loops = ", ".join(f"d{i}" for i in range(len(sizes)))
        maps = ", ".join(f"affine_map<({loops}) -> ({', '.join(f'd{i}' for i in dims)})>"
                         for dims in [dims for _, _, dims in inputs] + [written])
        kinds = ", ".join(f'"{kind}"' for kind in ["parallel"] * (len(sizes) - reduced) + ["reduction"] * reduced)
        self.count += 1
        name, out = f"%r{self.count}", self.type(result, element)
        init = f"%e{self.count}"
        self.body.append(f"%e{self.count} = tensor.empty() : {out}")
        if zero:
            self.body.append(f"%z{self.count} = arith.constant {zero} : f32")
            self.body.append(f"%f{self.count} = linalg.fill ins(%z{self.count} : f32) outs(%e{self.count} : {out}) -> {out}")
            init = f"%f{self.count}"
        arguments = ", ".join([f"%a{i}: {type.split('x')[-1][:-1]}" for i, (_, type, _) in enumerate(inputs)] + [f"%o: {element}"])
        ins = (f"ins({', '.join(value for value, _, _ in inputs)} : {', '.join(type for _, type, _ in inputs)})"
               if inputs else "")
        self.body.append(f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {ins} "
                         f"outs({init} : {out}) {{\n  ^bb0({arguments}):\n    {body}\n  }} -> {out}")
        return name, out


def make_graph(groups, rows, columns, depth, width, seed):
    """softmax(mask(rotated(q) kᵀ)) v, with tensors laid out by chance."""
    choose = random.Random(seed)
    graph = Graph()
    n = len(groups)
    batch = list(range(n))
    loops = [*groups, rows, columns, depth]
    i, j, k = n, n + 1, n + 2

    def lay_out(dims):
        """The dimensions of an argument: batches somewhere, the last one in its place or not."""
        order = [*batch, *dims]
        choose.shuffle(order)
        return order

    arguments = []

    def argument(name, sizes, dims):
        type = graph.type([sizes[dim] for dim in dims])
        arguments.append(f"%{name}: {type}")
        return f"%{name}", type, dims

    q = argument("q", loops, lay_out([i, k]))
    kk = argument("k", loops, lay_out([j, k]))
    v = argument("v", [*groups, columns, width], lay_out([n, n + 1]))
    # A rotation: each element of q, and its neighbour in the last dimension at a computed place.
    sizes = [*groups, rows, depth]
    places = {dim: f"%x{number}" for number, dim in enumerate([*batch, i, k])}
    index = "\n    ".join(f"%x{number} = linalg.index {number} : index" for number in range(n + 2))
    half = f"""{index}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %last = arith.constant {depth - 1} : index
    %next = arith.addi %x{n + 1}, %c1 : index
    %is = arith.cmpi ule, %next, %last : index
    %p = arith.select %is, %next, %c0 : index
    %n = tensor.extract %q[{', '.join('%p' if dim == k else places[dim] for dim in q[2])}] : {q[1]}
    %h = arith.constant 0.5 : f32
    %m = arith.mulf %n, %h : f32
    %s = arith.addf %a0, %m : f32
    linalg.yield %s : f32"""
    whole = list(range(n + 2))
    turned = graph.generic(sizes, [(q[0], q[1], [min(dim, n + 1) for dim in q[2]])],
                           whole, sizes, half)
    product = "%p = arith.mulf %a0, %a1 : f32\n    %s = arith.addf %o, %p : f32\n    linalg.yield %s : f32"
    scores = graph.generic(loops, [(*turned, [*batch, i, k]), (kk[0], kk[1], kk[2])], [*batch, i, j],
                           [*groups, rows, columns], product, reduced=1, zero="0.0")
    shape = [*groups, rows, columns]
    kept = graph.generic(shape, [(*scores, whole)], whole, shape,
                         f"%t = arith.constant 0.25 : f32\n    %s = arith.cmpf ogt, %a0, %t : f32\n    linalg.yield %s : i1",
                         element="i1")
    low = graph.generic(shape, [(*scores, whole), (*kept, whole)], whole, shape,
                        f"%t = arith.constant -2.0 : f32\n    %s = arith.select %a1, %a0, %t : f32\n    linalg.yield %s : f32")
    most = graph.generic(shape, [(*low, whole)], whole[:-1], shape[:-1],
                         f"%s = arith.maximumf %a0, %o : f32\n    linalg.yield %s : f32", reduced=1, zero="0xFF800000")
    powers = graph.generic(shape, [(*low, whole), (*most, whole[:-1])], whole, shape,
                           f"%d = arith.subf %a0, %a1 : f32\n    %s = math.exp %d : f32\n    linalg.yield %s : f32")
    total = graph.generic(shape, [(*powers, whole)], whole[:-1], shape[:-1],
                          f"%s = arith.addf %a0, %o : f32\n    linalg.yield %s : f32", reduced=1, zero="0.0")
    soft = graph.generic(shape, [(*powers, whole), (*total, whole[:-1])], whole, shape,
                         f"%s = arith.divf %a0, %a1 : f32\n    linalg.yield %s : f32")
    out = lay_out([n, n + 1])
    result = graph.generic([*groups, rows, width, columns],
                           [(*soft, [*batch, n, n + 2]), (v[0], v[1], [n + 2 if dim == n else dim for dim in v[2]])],
                           out, [[*groups, rows, width][dim] for dim in out], product, reduced=1, zero="0.0")
    results = [result] + choose.sample([soft, scores, kept], seed % 3)
    return (f"func.func @f({', '.join(arguments)}) -> ({', '.join(type for _, type in results)}) {{\n  "
            + "\n  ".join(graph.body)
            + f"\n  return {', '.join(value for value, _ in results)} : {', '.join(type for _, type in results)}\n}}\n")


def write_profile(weir, isa, **keys):
    path = weir.folder / f"{isa}-{len(keys)}.json"
    path.write_text(json.dumps({"like": isa, "name": isa, **keys}))
    return path


def list_kernels(artifact):
    with zipfile.ZipFile(artifact) as archive:
        return [kernel["name"] for kernel in json.loads(archive.read("plan/cpu/f.json"))["kernels"]]


@pytest.mark.parametrize("seed", range(12))
def test_stages_keep_bits(weir, seed):
    (weir.folder / "f.mlir").write_text(make_graph(*SIZES[seed % len(SIZES)], seed))
    for isa in list_isas():
        apart = weir.compile("f.mlir", f"apart-{isa}", f"--target=cpu:{write_profile(weir, isa, stage_bytes=0)}")
        joined = weir.compile("f.mlir", f"joined-{isa}",
                              f"--target=cpu:{write_profile(weir, isa, stage_groups=2, stage_bytes=2**22)}")
        assert any(name.startswith("staged") for name in list_kernels(joined)), list_kernels(joined)
        assert not any(name.startswith("staged") for name in list_kernels(apart))
        weir.run("verify", joined)
        weir.run("run", apart, "--device=reference", "--f64", "--random-inputs=3", "--output=f64.safetensors")
        for artifact in (apart, joined):
            weir.run("run", artifact, f"--device=cpu:{isa}", "--random-inputs=3", "--compare=f64.safetensors",
                     "--tolerance=1e-5", f"--output={artifact}.safetensors")
        first, second = (load_file(f"{artifact}.safetensors") for artifact in (apart, joined))
        assert {name: value.tobytes() for name, value in first.items()} == \
               {name: value.tobytes() for name, value in second.items()}
