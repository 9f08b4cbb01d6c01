"""Every op that moves elements, on Vulkan and the simulator against the reference, which lowers it
upstream's way."""

import json
import zipfile

import numpy
import pytest
from safetensors.numpy import load_file, save_file

GATHER = """linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}} ins(%k : tensor<{n}xi64>) outs(%e : tensor<{n}x{m}xf32>) {{
      ^bb0(%in: i64, %out: f32):
        %at = arith.index_cast %in : i64 to index
        %j = linalg.index 1 : index
        %c = arith.constant {rows} : index
        %ok = arith.cmpi slt, %at, %c : index
        cf.assert %ok, "index must be smaller than dim size"
        %v = tensor.extract %x[%at, %j] : tensor<{rows}x{m}xf32>
        linalg.yield %v : f32
      }} -> tensor<{n}x{m}xf32>"""

# Arguments, result type, body.
GRAPHS = {
    "slice": ("%x: tensor<7x9xf32>", "tensor<3x4xf32>",
              "%r = tensor.extract_slice %x[2, 1] [3, 4] [2, 2] : tensor<7x9xf32> to tensor<3x4xf32>"),
    "slice_prefix": ("%x: tensor<7x8xf32>", "tensor<7x4xf32>",
                     "%r = tensor.extract_slice %x[0, 0] [7, 4] [1, 1] : tensor<7x8xf32> to tensor<7x4xf32>"),
    "slice_drops_dim": ("%x: tensor<5x6xf32>", "tensor<6xf32>",
                        "%r = tensor.extract_slice %x[3, 0] [1, 6] [1, 1] : tensor<5x6xf32> to tensor<6xf32>"),
    "slice_empty": ("%x: tensor<5x6xf32>", "tensor<0x6xf32>",
                    "%r = tensor.extract_slice %x[3, 0] [0, 6] [1, 1] : tensor<5x6xf32> to tensor<0x6xf32>"),
    "slice_at_runtime": ("%x: tensor<9x4xf32>, %k: tensor<i64>", "tensor<3x4xf32>",
                         """%n = tensor.extract %k[] : tensor<i64>
    %i = arith.index_cast %n : i64 to index
    %r = tensor.extract_slice %x[%i, 0] [3, 4] [1, 1] : tensor<9x4xf32> to tensor<3x4xf32>"""),
    "slices_of_product": ("%x: tensor<4x12xf32>, %y: tensor<4x12xf32>", "tensor<4x4xf32>",
                          """%a = tensor.extract_slice %x[0, 0] [4, 6] [1, 1] : tensor<4x12xf32> to tensor<4x6xf32>
    %b = tensor.extract_slice %y[0, 6] [4, 6] [1, 1] : tensor<4x12xf32> to tensor<4x6xf32>
    %z = arith.constant dense<0.0> : tensor<4x4xf32>
    %r = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
        affine_map<(m, n, k) -> (m, n)>] ins(%a, %b : tensor<4x6xf32>, tensor<4x6xf32>)
        outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>"""),
    "pad": ("%x: tensor<3x5xf32>", "tensor<6x8xf32>",
            """%c = arith.constant 1.5 : f32
    %r = tensor.pad %x low[1, 0] high[2, 3] {
    ^bb0(%i: index, %j: index):
      tensor.yield %c : f32
    } : tensor<3x5xf32> to tensor<6x8xf32>"""),
    "pad_of_computed": ("%x: tensor<4x8xf32>", "tensor<4x12xf32>",
                        """%e = tensor.empty() : tensor<4x8xf32>
    %s = linalg.exp ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
    %c = arith.constant -1.0 : f32
    %r = tensor.pad %s low[0, 4] high[0, 0] {
    ^bb0(%i: index, %j: index):
      tensor.yield %c : f32
    } : tensor<4x8xf32> to tensor<4x12xf32>"""),
    "pad_negative": ("%x: tensor<7xf32>", "tensor<6xf32>",
                     """%c = arith.constant 0.0 : f32
    %r = tensor.pad %x low[-2] high[1] {
    ^bb0(%i: index):
      tensor.yield %c : f32
    } : tensor<7xf32> to tensor<6xf32>"""),
    "pad_empty": ("%x: tensor<0xf32>", "tensor<3xf32>",
                  """%c = arith.constant 2.0 : f32
    %r = tensor.pad %x low[1] high[2] {
    ^bb0(%i: index):
      tensor.yield %c : f32
    } : tensor<0xf32> to tensor<3xf32>"""),
    "concat": ("%x: tensor<3x2xf32>, %y: tensor<3x0xf32>, %z: tensor<3x5xf32>", "tensor<3x9xf32>",
               """%r = tensor.concat dim(1) %x, %y, %z, %x : (tensor<3x2xf32>, tensor<3x0xf32>, tensor<3x5xf32>,
        tensor<3x2xf32>) -> tensor<3x9xf32>"""),
    "concat_rows": ("%x: tensor<2x8xf32>, %z: tensor<3x8xf32>", "tensor<5x8xf32>",
                    "%r = tensor.concat dim(0) %x, %z : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<5x8xf32>"),
    "roll": ("%x: tensor<3x7xf32>", "tensor<3x7xf32>",
             """%a = tensor.extract_slice %x[0, 5] [3, 2] [1, 1] : tensor<3x7xf32> to tensor<3x2xf32>
    %b = tensor.cast %a : tensor<3x2xf32> to tensor<3x?xf32>
    %c = tensor.extract_slice %x[0, 0] [3, 5] [1, 1] : tensor<3x7xf32> to tensor<3x5xf32>
    %d = tensor.cast %c : tensor<3x5xf32> to tensor<3x?xf32>
    %e = tensor.concat dim(1) %b, %d : (tensor<3x?xf32>, tensor<3x?xf32>) -> tensor<3x?xf32>
    %r = tensor.cast %e : tensor<3x?xf32> to tensor<3x7xf32>"""),
    "insert_slice": ("%x: tensor<2x3xf32>, %y: tensor<5x9xf32>", "tensor<5x9xf32>",
                     """%r = tensor.insert_slice %x into %y[1, 2] [2, 3] [2, 3]
        : tensor<2x3xf32> into tensor<5x9xf32>"""),
    "insert_row_at_runtime": ("%x: tensor<4xf32>, %y: tensor<6x4xf32>, %k: tensor<i64>", "tensor<6x4xf32>",
                              """%n = tensor.extract %k[] : tensor<i64>
    %i = arith.index_cast %n : i64 to index
    %r = tensor.insert_slice %x into %y[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<6x4xf32>"""),
    "insert": ("%x: tensor<f32>, %y: tensor<2x3xf32>", "tensor<2x3xf32>",
               """%s = tensor.extract %x[] : tensor<f32>
    %a = arith.constant 1 : index
    %r = tensor.insert %s into %y[%a, %a] : tensor<2x3xf32>"""),
    "scalars": ("%x: tensor<3xf32>", "tensor<2x2xf32>",
                """%a = arith.constant 0 : index
    %b = arith.constant 2 : index
    %s = tensor.extract %x[%a] : tensor<3xf32>
    %t = tensor.extract %x[%b] : tensor<3xf32>
    %u = arith.mulf %s, %t : f32
    %v = math.exp %u : f32
    %r = tensor.from_elements %s, %t, %u, %v : tensor<2x2xf32>"""),
    "splat_of_computed": ("%x: tensor<3xf32>", "tensor<5x4xf32>",
                          """%a = arith.constant 1 : index
    %s = tensor.extract %x[%a] : tensor<3xf32>
    %p = tensor.splat %s : tensor<5x4xf32>
    %e = tensor.empty() : tensor<5x4xf32>
    %f = linalg.fill ins(%s : f32) outs(%e : tensor<5x4xf32>) -> tensor<5x4xf32>
    %r = linalg.add ins(%p, %f : tensor<5x4xf32>, tensor<5x4xf32>) outs(%e : tensor<5x4xf32>) -> tensor<5x4xf32>"""),
    "generate": ("%x: tensor<4x5xf32>", "tensor<5x4xf32>",
                 """%r = tensor.generate {
    ^bb0(%i: index, %j: index):
      %v = tensor.extract %x[%j, %i] : tensor<4x5xf32>
      tensor.yield %v : f32
    } : tensor<5x4xf32>"""),
    "gather": ("%x: tensor<11x6xf32>, %k: tensor<5xi64>", "tensor<5x6xf32>",
               "%e = tensor.empty() : tensor<5x6xf32>\n    %r = " + GATHER.format(n=5, m=6, rows=11)),
    "gather_vectors": ("%x: tensor<11x8xf32>, %k: tensor<5xi64>", "tensor<5x8xf32>",
                       "%e = tensor.empty() : tensor<5x8xf32>\n    %r = " + GATHER.format(n=5, m=8, rows=11)),
    "gather_of_computed": ("%w: tensor<11x8xf32>, %k: tensor<5xi64>", "tensor<5x8xf32>",
                           """%f = tensor.empty() : tensor<11x8xf32>
    %x = linalg.exp ins(%w : tensor<11x8xf32>) outs(%f : tensor<11x8xf32>) -> tensor<11x8xf32>
    %e = tensor.empty() : tensor<5x8xf32>\n    %r = """ + GATHER.format(n=5, m=8, rows=11)),
    # At its own place and at another: only the first could be computed where it is read.
    "gather_beside_read": ("%x: tensor<9xf32>, %i: tensor<9xi32>", "tensor<9xf32>",
                           """%e = tensor.empty() : tensor<9xf32>
    %p = linalg.mul ins(%x, %x : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                         iterator_types = ["parallel"]}
        ins(%p, %i : tensor<9xf32>, tensor<9xi32>) outs(%e : tensor<9xf32>) {
    ^bb0(%a: f32, %n: i32, %out: f32):
      %k = arith.index_cast %n : i32 to index
      %y = tensor.extract %p[%k] : tensor<9xf32>
      %s = arith.subf %a, %y : f32
      linalg.yield %s : f32
    } -> tensor<9xf32>"""),
    "arith_of_tensors": ("%x: tensor<4x5xf32>, %y: tensor<4x5xf32>", "tensor<4x5xf32>",
                         """%s = arith.subf %x, %y : tensor<4x5xf32>
    %m = arith.cmpf ogt, %x, %y : tensor<4x5xf32>
    %e = math.exp %s : tensor<4x5xf32>
    %r = arith.select %m, %e, %y : tensor<4x5xi1>, tensor<4x5xf32>"""),
    "bytes": ("%x: tensor<5x4xi8>, %y: tensor<5x4xi64>", "tensor<5x4xi8>",
              """%c = arith.constant dense<[[3], [-7], [127], [-128], [0]]> : tensor<5x1xi8>
    %e = tensor.empty() : tensor<5x4xi8>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
        affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%x, %y, %c : tensor<5x4xi8>, tensor<5x4xi64>, tensor<5x1xi8>) outs(%e : tensor<5x4xi8>) {
    ^bb0(%a: i8, %b: i64, %k: i8, %out: i8):
      %t = arith.trunci %b : i64 to i8
      %s = arith.addi %a, %t : i8
      %m = arith.muli %s, %k : i8
      %neg = arith.cmpi slt, %m, %a : i8
      %w = arith.select %neg, %k, %m : i8
      linalg.yield %w : i8
    } -> tensor<5x4xi8>"""),
    "conditional_in_body": ("%x: tensor<5xf32>, %y: tensor<3xf32>", "tensor<8xf32>",
                            """%e = tensor.empty() : tensor<8xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        outs(%e : tensor<8xf32>) {
    ^bb0(%out: f32):
      %i = linalg.index 0 : index
      %c = arith.constant 5 : index
      %first = arith.cmpi ult, %i, %c : index
      %v = scf.if %first -> f32 {
        %a = tensor.extract %x[%i] : tensor<5xf32>
        scf.yield %a : f32
      } else {
        %j = arith.subi %i, %c : index
        %b = tensor.extract %y[%j] : tensor<3xf32>
        scf.yield %b : f32
      }
      linalg.yield %v : f32
    } -> tensor<8xf32>"""),
    # A recurrent net as ONNX's LSTM arrives: slices at the counter, and states carried on.
    "loop": ("%xs: tensor<5x2x3xf32>, %w: tensor<3x4xf32>, %u: tensor<4x4xf32>", "tensor<5x2x4xf32>",
             """%c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %last = arith.constant 4 : index
    %zero = arith.constant 0.0 : f32
    %h0 = arith.constant dense<0.0> : tensor<2x4xf32>
    %ys0 = arith.constant dense<0.0> : tensor<5x2x4xf32>
    %e = tensor.empty() : tensor<2x4xf32>
    %r, %h5 = scf.for %i = %c0 to %c5 step %c1 iter_args(%ys = %ys0, %h = %h0) -> (tensor<5x2x4xf32>, tensor<2x4xf32>) {
      %back = arith.subi %last, %i : index
      %x = tensor.extract_slice %xs[%back, 0, 0] [1, 2, 3] [1, 1, 1] : tensor<5x2x3xf32> to tensor<2x3xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
      %a = linalg.matmul ins(%x, %w : tensor<2x3xf32>, tensor<3x4xf32>) outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32>
      %b = linalg.matmul ins(%h, %u : tensor<2x4xf32>, tensor<4x4xf32>) outs(%a : tensor<2x4xf32>) -> tensor<2x4xf32>
      %t = linalg.tanh ins(%b : tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
      %y = tensor.insert_slice %t into %ys[%i, 0, 0] [1, 2, 4] [1, 1, 1] : tensor<2x4xf32> into tensor<5x2x4xf32>
      scf.yield %y, %t : tensor<5x2x4xf32>, tensor<2x4xf32>
    }"""),
    "place_of_maximum": ("%x: tensor<5x7xf32>", "tensor<5xi64>",
                         """%m = arith.constant dense<0xFF800000> : tensor<5xf32>
    %z = arith.constant dense<0> : tensor<5xi64>
    %v, %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
        affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<5x7xf32>) outs(%m, %z : tensor<5xf32>, tensor<5xi64>) {
    ^bb0(%in: f32, %best: f32, %at: i64):
      %j = linalg.index 1 : index
      %here = arith.index_cast %j : index to i64
      %max = arith.maximumf %in, %best : f32
      %more = arith.cmpf ogt, %in, %best : f32
      %place = arith.select %more, %here, %at : i64
      linalg.yield %max, %place : f32, i64
    } -> (tensor<5xf32>, tensor<5xi64>)"""),
    "alternating_sum": ("%x: tensor<97x3xf32>", "tensor<3xf32>",
                        """%z = arith.constant dense<0.0> : tensor<3xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
        iterator_types = ["reduction", "parallel"]} ins(%x : tensor<97x3xf32>) outs(%z : tensor<3xf32>) {
    ^bb0(%in: f32, %sum: f32):
      %next = arith.subf %in, %sum : f32
      linalg.yield %next : f32
    } -> tensor<3xf32>"""),
}


def make_generic(maps, kinds, inputs, result, body, start=None):
    """One generic op as a graph: `inputs` are types, the accumulator starts from zeros or `start`."""
    arguments = ", ".join(f"%x{i}: {type}" for i, type in enumerate(inputs))
    values = ", ".join(f"%x{i}" for i in range(len(inputs)))
    names = "".join(f"%v{i}: {type.split('x')[-1][:-1]}, " for i, type in enumerate(inputs))
    return arguments, result, f"""%z = arith.constant dense<{start or '0.0'}> : {result}
    %r = linalg.generic {{indexing_maps = [{', '.join(f'affine_map<{m}>' for m in maps)}],
        iterator_types = [{', '.join(f'"{kind}"' for kind in kinds)}]}}
        ins({values} : {', '.join(inputs)}) outs(%z : {result}) {{
    ^bb0({names}%o: f32):
      {body}
    }} -> {result}"""


SUM = "%s = arith.addf %o, {} : f32\n      linalg.yield %s : f32"
PARALLEL, REDUCTION = "parallel", "reduction"
CONVOLUTION = "linalg.{0} {{dilations = dense<{1}> : vector<2xi64>, strides = dense<{2}> : vector<2xi64>}}"
# Reads elsewhere than at loops of their own: solved for a loop, or compared with every place.
GRAPHS |= {
    "flip": make_generic(["(i, j) -> (-i + 4, j)", "(i, j) -> (i, j)"], [PARALLEL, PARALLEL], ["tensor<5x3xf32>"],
                         "tensor<5x3xf32>", "linalg.yield %v0 : f32"),
    "diagonal": make_generic(["(i) -> (i, i)", "(i) -> (i)"], [PARALLEL], ["tensor<4x4xf32>"], "tensor<4xf32>",
                             "%p = arith.mulf %v0, %v0 : f32\n      linalg.yield %p : f32"),
    "windows": make_generic(["(i, j) -> (j + i * 2)", "(i, j) -> (i, j)"], [PARALLEL, PARALLEL], ["tensor<9xf32>"],
                            "tensor<4x3xf32>", "linalg.yield %v0 : f32"),
    "sum_of_windows": make_generic(["(i, k) -> (i * 2 + k * 3)", "(i, k) -> (k)", "(i, k) -> (i)"],
                                   [PARALLEL, REDUCTION], ["tensor<13xf32>", "tensor<3xf32>"], "tensor<4xf32>",
                                   "%p = arith.mulf %v0, %v1 : f32\n      " + SUM.format("%p")),
    "correlation": make_generic(["(i, k) -> (i + k)", "(i, k) -> (k)", "(i, k) -> (i)"], [PARALLEL, REDUCTION],
                                ["tensor<11xf32>", "tensor<5xf32>"], "tensor<7xf32>",
                                "%p = arith.mulf %v0, %v1 : f32\n      " + SUM.format("%p")),
    "rows_divided": make_generic(["(i) -> (i floordiv 3)", "(i) -> (i)"], [PARALLEL], ["tensor<3xf32>"],
                                 "tensor<7xf32>", "%p = arith.mulf %v0, %v0 : f32\n      linalg.yield %p : f32"),
    "convolution": ("%x: tensor<2x3x7x5xf32>, %w: tensor<4x3x3x2xf32>", "tensor<2x4x3x3xf32>",
                    "%z = arith.constant dense<0.0> : tensor<2x4x3x3xf32>\n    %r = "
                    + CONVOLUTION.format("conv_2d_nchw_fchw", "[1, 2]", "[2, 1]")
                    + " ins(%x, %w : tensor<2x3x7x5xf32>, tensor<4x3x3x2xf32>) outs(%z : tensor<2x4x3x3xf32>)"
                    " -> tensor<2x4x3x3xf32>"),
    "depthwise": ("%x: tensor<1x3x6x5xf32>, %w: tensor<3x3x2xf32>", "tensor<1x3x4x4xf32>",
                  "%z = arith.constant dense<0.0> : tensor<1x3x4x4xf32>\n    %r = "
                  + CONVOLUTION.format("depthwise_conv_2d_nchw_chw", "1", "1")
                  + " ins(%x, %w : tensor<1x3x6x5xf32>, tensor<3x3x2xf32>) outs(%z : tensor<1x3x4x4xf32>)"
                  " -> tensor<1x3x4x4xf32>"),
    "average_pool": ("%x: tensor<1x2x6x7xf32>", "tensor<1x2x3x3xf32>",
                     "%z = arith.constant dense<0.0> : tensor<1x2x3x3xf32>\n    %w = tensor.empty() : tensor<2x3xf32>"
                     "\n    %r = " + CONVOLUTION.format("pooling_nchw_sum", "1", "2")
                     + " ins(%x, %w : tensor<1x2x6x7xf32>, tensor<2x3xf32>) outs(%z : tensor<1x2x3x3xf32>)"
                     " -> tensor<1x2x3x3xf32>"),
    # Reversed, and what says how long the reduced loop is gone with that.
    "reversed_correlation": ("%x: tensor<1x1x14xf32>, %w: tensor<4xf32>", "tensor<1x1x11xf32>",
                             """%e = tensor.empty() : tensor<4xf32>
    %f = linalg.generic {indexing_maps = [affine_map<(i) -> (-i + 3)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]} ins(%w : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<4xf32>
    %g = tensor.expand_shape %f [[0, 1, 2]] output_shape [1, 1, 4] : tensor<4xf32> into tensor<1x1x4xf32>
    %z = arith.constant dense<0.0> : tensor<1x1x11xf32>
    %r = linalg.conv_1d_ncw_fcw ins(%x, %g : tensor<1x1x14xf32>, tensor<1x1x4xf32>) outs(%z : tensor<1x1x11xf32>)
        -> tensor<1x1x11xf32>"""),
    # One of the indices is the same everywhere: trips of a row's loop read it alike.
    "gather_of_planes": ("%x: tensor<2x9x6x8xf32>, %i: tensor<2x1x1x1xi64>, %j: tensor<9x1x1xi64>, %k: tensor<8xi64>",
                         "tensor<2x9x1x8xf32>", """%e = tensor.empty() : tensor<2x9x1x8xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, 0, 0, 0)>, affine_map<(a, b, c, d) -> (b, 0, 0)>,
        affine_map<(a, b, c, d) -> (d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%i, %j, %k : tensor<2x1x1x1xi64>, tensor<9x1x1xi64>, tensor<8xi64>) outs(%e : tensor<2x9x1x8xf32>) {
    ^bb0(%a: i64, %b: i64, %d: i64, %o: f32):
      %five = arith.constant 5 : index
      %p = arith.index_cast %a : i64 to index
      %q = arith.index_cast %b : i64 to index
      %s = arith.index_cast %d : i64 to index
      %v = tensor.extract %x[%p, %q, %five, %s] : tensor<2x9x6x8xf32>
      linalg.yield %v : f32
    } -> tensor<2x9x1x8xf32>"""),
    "max_pool": ("%x: tensor<1x2x6x7xf32>", "tensor<1x2x3x3xf32>",
                 "%z = arith.constant dense<0xFF800000> : tensor<1x2x3x3xf32>\n    %w = tensor.empty() : tensor<2x3xf32>"
                 "\n    %r = " + CONVOLUTION.format("pooling_nchw_max", "1", "2")
                 + " ins(%x, %w : tensor<1x2x6x7xf32>, tensor<2x3xf32>) outs(%z : tensor<1x2x3x3xf32>)"
                 " -> tensor<1x2x3x3xf32>"),
}
# What the compiler may fold into others needs no kernel of its own.
KERNELS = {"slices_of_product": 1, "roll": 1, "slice_prefix": 1, "gather_of_computed": 1, "gather_beside_read": 2, "pad_of_computed": 1}


def get_text(name):
    arguments, result, body = GRAPHS[name]
    return f"func.func @f({arguments}) -> {result} {{\n    {body}\n    return %r : {result}\n}}\n"


@pytest.mark.parametrize("profile", [{}, {"vector_width": 1}, {"max_loop_trips": 60, "max_grid": [3, 5, 65535]}])
@pytest.mark.parametrize("name", GRAPHS)
def test_op(weir, name, profile):
    flags = [f"--target=vulkan:{weir.profile(**profile)}"] if profile else []
    artifact = weir.compile_text(get_text(name), "a", *flags)
    output = weir.compare(artifact, ["--random-inputs=7"], 1e-6, validated=True)
    assert load_file(output)["result0"].size or name == "slice_empty"
    if name in KERNELS and not profile:
        with zipfile.ZipFile(artifact) as archive:
            commands = json.loads(archive.read("plan/vulkan/f.json"))["commands"]
        assert sum(command["command"] == "dispatch" for command in commands) == KERNELS[name]


# Without gradients: results of integers.
def test_copies_of_invocations_without_elements(weir):
    """Teams of 16 share rows of fewer vectors: who has none fills no copy, and reads none."""
    (weir.folder / "a.mlir").write_text(get_text("gather_of_planes"))
    weir.run("compile", "a.mlir", "--vjp=f", "--entry=f.vjp", "--target=vulkan:v3d", "-o", "a.weir",
             "--against-graph=always")


@pytest.mark.parametrize("name", sorted(set(GRAPHS) - {"place_of_maximum", "bytes"}))
def test_gradient(weir, name):
    """Against central differences in f64, and on Vulkan against the reference."""
    text = get_text(name)
    if name != "slice_empty":
        (weir.folder / "g.mlir").write_text(text)
        weir.run("gradcheck", "g.mlir", "--entry=f", "--seed=3")
    artifact = weir.compile_text(text, "a", "--vjp=f", "--entry=f.vjp")
    weir.compare(artifact, ["--random-inputs=11"], 1e-5)


def test_loop_steps(weir):
    """Step by step in NumPy: the reference writes loops out by the compiler's own pass."""
    artifact = weir.compile_text(get_text("loop"), "a", "--target=vulkan")
    random = numpy.random.default_rng(5)
    xs, w, u = (random.standard_normal(shape).astype(numpy.float32) for shape in ((5, 2, 3), (3, 4), (4, 4)))
    save_file({"arg0": xs, "arg1": w, "arg2": u}, weir.folder / "in.safetensors")
    weir.run("run", artifact, "--input=in.safetensors", "--output=out.safetensors")
    h, wanted = numpy.zeros((2, 4)), []
    for step in range(5):
        h = numpy.tanh(xs[4 - step].astype(float) @ w + h @ u)
        wanted.append(h)
    assert numpy.abs(load_file(weir.folder / "out.safetensors")["result0"] - numpy.stack(wanted)).max() < 1e-5


def test_no_gradient_of_many_steps_of_any_body(weir):
    (weir.folder / "g.mlir").write_text(get_text("alternating_sum").replace("97x3", "129x3"))
    weir.run("compile", "g.mlir", "--vjp=f", "-o", "g.weir", status=2)


def test_ties(weir):
    """A window's maximum has the gradient at its first, as PyTorch does; a plain maximum shares it."""
    pool = weir.compile_text(get_text("max_pool"), "pool", "--vjp=f", "--entry=f.vjp")
    ones = {"arg0": numpy.ones((1, 2, 6, 7), numpy.float32), "cotangent.result0": numpy.ones((1, 2, 3, 3), numpy.float32)}
    save_file(ones, weir.folder / "ones.safetensors")
    plain = weir.compile_text("""func.func @f(%x: tensor<4xf32>) -> tensor<f32> {
      %z = arith.constant dense<0xFF800000> : tensor<f32>
      %r = linalg.reduce { arith.maximumf } ins(%x : tensor<4xf32>) outs(%z : tensor<f32>) dimensions = [0]
      return %r : tensor<f32>
    }""", "plain", "--vjp=f", "--entry=f.vjp")
    save_file({"arg0": numpy.array([1, 3, 3, 2], numpy.float32), "cotangent.result0": numpy.array(2, numpy.float32)},
              weir.folder / "plain.safetensors")
    first = numpy.zeros((1, 2, 6, 7), numpy.float32)
    first[:, :, ::2, 0:5:2] = 1
    for device in "vulkan", "reference", "sim":
        for artifact, inputs, wanted in ((pool, "ones", first), (plain, "plain", [0, 1, 1, 0])):
            weir.run("run", artifact, f"--device={device}", f"--input={inputs}.safetensors", "--output=out.safetensors")
            assert (load_file(weir.folder / "out.safetensors")["grad.arg0"] == wanted).all(), device


@pytest.mark.parametrize("name", ["gather", "gather_vectors"])
@pytest.mark.parametrize("indices", [[0, 10, 3, 3, 7], [-1, 11, -2**63, 2**63 - 1, 2**32 + 4]])
def test_indices_are_clamped(weir, name, indices):
    """Also those that fewer bits would bring back in range."""
    artifact = weir.compile_text(get_text(name))
    width = 6 if name == "gather" else 8
    x = numpy.arange(11 * width, dtype=numpy.float32).reshape(11, width)
    save_file({"arg0": x, "arg1": numpy.array(indices, numpy.int64)}, weir.folder / "in.safetensors")
    for device in "vulkan", "reference", "sim":
        weir.run("run", artifact, f"--device={device}", "--input=in.safetensors", "--output=out.safetensors")
        found = load_file(weir.folder / "out.safetensors")["result0"]
        assert (found == x[numpy.clip(indices, 0, 10)]).all(), (device, found[:, 0])


@pytest.mark.parametrize("name, index, expected", [
    ("slice_at_runtime", 4, 4), ("slice_at_runtime", -3, 0), ("slice_at_runtime", 2**40, 6),
    ("insert_row_at_runtime", 2, 2), ("insert_row_at_runtime", -1, 0), ("insert_row_at_runtime", 77, 5)])
def test_slices_at_runtime(weir, name, index, expected):
    """They lie within the tensor wherever they are asked for."""
    artifact = weir.compile_text(get_text(name))
    rows = 9 if name == "slice_at_runtime" else 6
    table = numpy.arange(rows * 4, dtype=numpy.float32).reshape(rows, 4)
    if name == "slice_at_runtime":
        inputs, wanted = {"arg0": table, "arg1": numpy.array(index)}, table[expected:expected + 3]
    else:
        row = numpy.full(4, -1, numpy.float32)
        inputs, wanted = {"arg0": row, "arg1": table, "arg2": numpy.array(index)}, table.copy()
        wanted[expected] = row
    save_file(inputs, weir.folder / "in.safetensors")
    for device in "vulkan", "reference", "sim":
        weir.run("run", artifact, f"--device={device}", "--input=in.safetensors", "--output=out.safetensors")
        assert (load_file(weir.folder / "out.safetensors")["result0"] == wanted).all(), device


def test_special_values(weir):
    """No device takes it that there are none."""
    artifact = weir.compile_text("""func.func @f(%x: tensor<49xf32>, %y: tensor<49xf32>) -> (tensor<49xf32>, tensor<49xf32>,
    tensor<49xf32>, tensor<49xf32>, tensor<49xf32>, tensor<49xf32>, tensor<49xi1>) {
  %q = arith.divf %x, %y : tensor<49xf32>
  %p = arith.mulf %x, %y : tensor<49xf32>
  %s = arith.addf %x, %y : tensor<49xf32>
  %d = arith.subf %x, %y : tensor<49xf32>
  %m = arith.maximumf %x, %y : tensor<49xf32>
  %n = arith.negf %x : tensor<49xf32>
  %c = arith.cmpf une, %d, %d : tensor<49xf32>
  return %q, %p, %s, %d, %m, %n, %c : tensor<49xf32>, tensor<49xf32>, tensor<49xf32>, tensor<49xf32>, tensor<49xf32>,
    tensor<49xf32>, tensor<49xi1>
}
""")
    special = numpy.array([0.0, -0.0, 1.0, -2.0, numpy.inf, -numpy.inf, numpy.nan], numpy.float32)
    save_file({"arg0": numpy.repeat(special, 7), "arg1": numpy.tile(special, 7)}, weir.folder / "in.safetensors")
    found = compare_specials(weir, artifact)
    assert numpy.isnan(found["result0"]).sum() > 10


def run_everywhere(weir, artifact):
    """The results on each device, of what in.safetensors holds."""
    found = {}
    for device in "vulkan", "reference", "sim":
        weir.run("run", artifact, f"--device={device}", "--input=in.safetensors", "--output=out.safetensors")
        found[device] = load_file(weir.folder / "out.safetensors")
    return found


def compare_specials(weir, artifact):
    """Vulkan's and the simulator's numbers are the reference's, with the signs of zeros."""
    found = run_everywhere(weir, artifact)
    for name, wanted in found["reference"].items():
        for device in "vulkan", "sim":
            other = found[device][name]
            nan = numpy.isnan(wanted)
            assert (numpy.isnan(other) == nan).all(), (device, name)
            assert (other[~nan] == wanted[~nan]).all(), (device, name)
            assert (numpy.signbit(other[~nan]) == numpy.signbit(wanted[~nan])).all(), (device, name)
    return found["vulkan"]


@pytest.mark.parametrize("size", [7, 8])
@pytest.mark.parametrize("bits", [32, 64])
def test_special_values_in_the_code(weir, bits, size):
    """A driver may know an operation by its constant, and take it for one of finite numbers."""
    special = [0.0, -0.0, 1.0, -2.0, numpy.inf, -numpy.inf, numpy.nan]
    infinite, nan = ("0x7F800000", "0x7FC00000") if bits == 32 else ("0x7FF0000000000000", "0x7FF8000000000000")
    type, results = f"tensor<{size}xf{bits}>", []
    body = f"  %one = arith.constant dense<1.0> : {type}\n"
    for i, literal in enumerate(["0.0", "-0.0", "1.0", infinite, nan]):
        body += f"  %c{i} = arith.constant dense<{literal}> : {type}\n"
        for op in "divf", "mulf", "addf", "subf", "maximumf":
            for lhs, rhs in (f"%c{i}", "%x"), ("%x", f"%c{i}"):
                results.append(f"%r{len(results)}")
                body += f"  {results[-1]} = arith.{op} {lhs}, {rhs} : {type}\n"
        for operands in f"%c{i}, %x, %x", f"%x, %c{i}, %x", f"%x, %x, %c{i}", f"%x, %one, %c{i}":
            results.append(f"%r{len(results)}")
            body += f"  {results[-1]} = math.fma {operands} : {type}\n"
    artifact = weir.compile_text(f"func.func @f(%x: {type}) -> ({', '.join([type] * len(results))}) {{\n{body}"
                                 f"  return {', '.join(results)} : {', '.join([type] * len(results))}\n}}\n", "a", "--target=vulkan")
    save_file({"arg0": numpy.resize(numpy.array(special, f"f{bits // 8}"), size)}, weir.folder / "in.safetensors")
    compare_specials(weir, artifact)


@pytest.mark.parametrize("number", ["i8", "i16", "i32"])
def test_wide_comparisons_in_the_code(weir, number):
    """A driver may compare what was narrow with a constant in halves."""
    wide, bits, body, results = "tensor<9xi64>", int(number[1:]), "", []
    for conversion in "extsi", "extui":
        body += f"  %{conversion} = arith.{conversion} %x : tensor<9x{number}> to {wide}\n"
    for i, constant in enumerate([0, 1, -1, 2**(bits - 1) - 1, -2**(bits - 1), 2**(bits - 1), 2**40]):
        body += f"  %c{i} = arith.constant dense<{constant}> : {wide}\n"
        for predicate in "eq", "slt", "sle", "sgt", "sge", "ult":
            for operands in f"%extsi, %c{i}", f"%c{i}, %extsi", f"%extui, %c{i}":
                results.append(f"%r{len(results)}")
                body += f"  {results[-1]} = arith.cmpi {predicate}, {operands} : {wide}\n"
    types = ", ".join(["tensor<9xi1>"] * len(results))
    artifact = weir.compile_text(f"func.func @f(%x: tensor<9x{number}>) -> ({types}) {{\n{body}"
                                 f"  return {', '.join(results)} : {types}\n}}\n", "a", "--target=vulkan")
    values = [0, 1, -1, 2, -2, 5, 2**(bits - 1) - 1, -2**(bits - 1), -2**(bits - 1) + 1]
    save_file({"arg0": numpy.array(values, f"i{bits // 8}")}, weir.folder / "in.safetensors")
    found = run_everywhere(weir, artifact)
    wanted = found.pop("reference")
    assert len(wanted) == 126 and 50 < sum(w.sum() > 0 for w in wanted.values())
    for device, results in found.items():
        assert [name for name in wanted if (results[name] != wanted[name]).any()] == [], device
