// e^x, and the products that end it, on any numbers: there the first is not exact.
#point = affine_map<(i) -> (i)>
func.func @powers(%x: tensor<64xf32>, %y: tensor<32xf32>, %k: tensor<32xi32>) -> (tensor<64xf32>, tensor<32xf32>) {
  %one = arith.constant 1 : i32
  %fraction = arith.constant 23 : i32
  %bias = arith.constant 1065353216 : i32
  %empty = tensor.empty() : tensor<64xf32>
  %power = linalg.exp ins(%x : tensor<64xf32>) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %e = tensor.empty() : tensor<32xf32>
  %r = linalg.generic {indexing_maps = [#point, #point, #point], iterator_types = ["parallel"]}
      ins(%y, %k : tensor<32xf32>, tensor<32xi32>) outs(%e : tensor<32xf32>) {
  ^bb0(%from: f32, %n: i32, %out: f32):
    %half = arith.shrsi %n, %one : i32
    %rest = arith.subi %n, %half : i32
    %a = arith.shli %half, %fraction : i32
    %b = arith.addi %a, %bias : i32
    %first = arith.bitcast %b : i32 to f32
    %c = arith.shli %rest, %fraction : i32
    %d = arith.addi %c, %bias : i32
    %second = arith.bitcast %d : i32 to f32
    %p = arith.mulf %from, %first : f32
    %q = arith.mulf %p, %second : f32
    linalg.yield %q : f32
  } -> tensor<32xf32>
  return %power, %r : tensor<64xf32>, tensor<32xf32>
}
