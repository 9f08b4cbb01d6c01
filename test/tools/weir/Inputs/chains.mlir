// Two chains of two products, one written behind the other.
func.func @chains(%a: tensor<8x8xf32> {weir.name = "a"}, %b: tensor<8x8xf32> {weir.name = "b"})
    -> (tensor<8x8xf32> {weir.name = "c"}, tensor<8x8xf32> {weir.name = "d"}) {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %t = linalg.matmul ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = linalg.matmul ins(%t, %t : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  %u = linalg.matmul ins(%b, %b : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = linalg.matmul ins(%u, %u : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c, %d : tensor<8x8xf32>, tensor<8x8xf32>
}
