#id = affine_map<(i) -> (i)>

func.func @scale(%x: tensor<6xf32> {weir.name = "x", weir.kind = "input"},
                 %n: tensor<2xi64> {weir.name = "n"})
    -> (tensor<6xf32> {weir.name = "y"}, tensor<2xi64> {weir.name = "m"}) {
  %e = tensor.empty() : tensor<6xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<6xf32>) outs(%e : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %two = arith.constant 2.0 : f32
    %b = arith.mulf %a, %two : f32
    linalg.yield %b : f32
  } -> tensor<6xf32>
  %e2 = tensor.empty() : tensor<2xi64>
  %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%n : tensor<2xi64>) outs(%e2 : tensor<2xi64>) {
  ^bb0(%a: i64, %o: i64):
    %b = arith.addi %a, %a : i64
    linalg.yield %b : i64
  } -> tensor<2xi64>
  return %y, %m : tensor<6xf32>, tensor<2xi64>
}

// A chain of two products: a value in the arena and a barrier.
func.func @chain(%a: tensor<4x4xf32> {weir.name = "a"}) -> (tensor<4x4xf32> {weir.name = "c"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>)
      outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%b, %a : tensor<4x4xf32>, tensor<4x4xf32>)
      outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}
