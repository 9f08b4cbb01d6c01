"""A graph that gathers, and indices in and out of its range."""

import pathlib

import numpy
from safetensors.numpy import save_file

pathlib.Path("gather.mlir").write_text("""
#row = affine_map<(i) -> (i)>
func.func @gather(%table: tensor<5xf32> {weir.name = "table"}, %at: tensor<3xi64> {weir.name = "at"})
    -> (tensor<f32> {weir.name = "sum"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#row, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%at : tensor<3xi64>) outs(%init : tensor<f32>) {
  ^bb0(%a: i64, %o: f32):
    %i = arith.index_cast %a : i64 to index
    %x = tensor.extract %table[%i] : tensor<5xf32>
    %s = arith.addf %x, %o : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %sum : tensor<f32>
}
""")
table = numpy.arange(5, dtype=numpy.float32)
for name, at in {"good": [0, 4, 2], "bad": [0, 5, 2], "negative": [0, 4, -1]}.items():
    save_file({"table": table, "at": numpy.array(at, numpy.int64)}, f"{name}.safetensors")
