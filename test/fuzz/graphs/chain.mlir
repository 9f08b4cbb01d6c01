// Values that share the bytes of the arena, products that may run at once, an argument that is given away.
func.func @chain(%x: tensor<4x8xf32> {weir.name = "x", weir.donate}, %y: tensor<4x8xf32> {weir.name = "y"},
                 %w: tensor<8x8xf32> {weir.name = "w"})
    -> (tensor<4x8xf32> {weir.name = "sum"}, tensor<4x8xf32> {weir.name = "last"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = linalg.matmul ins(%y, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = linalg.tanh {weir.no_fuse} ins(%a : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %d = linalg.mul {weir.no_fuse} ins(%c, %b : tensor<4x8xf32>, tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = linalg.matmul ins(%d, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  %f = linalg.sub {weir.no_fuse} ins(%x, %e : tensor<4x8xf32>, tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %g = linalg.add {weir.no_fuse} ins(%d, %e : tensor<4x8xf32>, tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %g, %f : tensor<4x8xf32>, tensor<4x8xf32>
}
