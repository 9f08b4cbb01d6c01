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

// In place: each element is read by who writes it, in the bytes behind the whole vectors, too.
func.func @update(%w: tensor<37x1003xf32> {weir.name = "w", weir.donate}, %b: tensor<20xf32> {weir.name = "b", weir.donate},
                  %g: tensor<37x1003xf32>, %h: tensor<3x20xf32>)
    -> (tensor<37x1003xf32> {weir.name = "w"}, tensor<20xf32> {weir.name = "b"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<37x1003xf32>
  %w1 = linalg.sub ins(%w, %g : tensor<37x1003xf32>, tensor<37x1003xf32>) outs(%e : tensor<37x1003xf32>) -> tensor<37x1003xf32>
  %c = tensor.empty() : tensor<20xf32>
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<20xf32>) -> tensor<20xf32>
  %sum = linalg.reduce {arith.addf} ins(%h : tensor<3x20xf32>) outs(%f : tensor<20xf32>) dimensions = [0]
  %b1 = linalg.sub ins(%b, %sum : tensor<20xf32>, tensor<20xf32>) outs(%c : tensor<20xf32>) -> tensor<20xf32>
  return %w1, %b1 : tensor<37x1003xf32>, tensor<20xf32>
}
