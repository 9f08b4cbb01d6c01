func.func @f(%x: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %many = arith.constant 4097 : index
  %r = scf.for %i = %c0 to %many step %c1 iter_args(%h = %x) -> tensor<8xf32> {
    %t = linalg.tanh {weir.no_fuse} ins(%h : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %y = linalg.add ins(%t, %w : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
