// Sizes that no vector divides.
func.func @odd(%x: tensor<5x33xf32>) -> (tensor<5x33xf32>, tensor<33xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x33xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<5x33xf32>) outs(%e : tensor<5x33xf32>) -> tensor<5x33xf32>
  %c = tensor.empty() : tensor<33xf32>
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<33xf32>) -> tensor<33xf32>
  %sum = linalg.reduce {arith.addf} ins(%x : tensor<5x33xf32>) outs(%f : tensor<33xf32>) dimensions = [0]
  return %y, %sum : tensor<5x33xf32>, tensor<33xf32>
}
