// LayerNorm's gradients over rows of 1024: two kernels, one read of x and dy.
// dy is the caller's gift: dx may take its bytes.
func.func @layer_norm_vjp(%dy: tensor<512x1024xf32> {weir.name = "dy", weir.kind = "input", weir.donate},
                          %x: tensor<512x1024xf32> {weir.name = "x", weir.kind = "input"},
                          %gamma: tensor<1024xf32> {weir.name = "gamma", weir.kind = "param"})
    -> (tensor<512x1024xf32> {weir.name = "dx"}, tensor<1024xf32> {weir.name = "dgamma"},
        tensor<1024xf32> {weir.name = "dbeta"}) {
  %dx, %dgamma, %dbeta = norm.layer_norm_vjp %dy, %x gamma(%gamma : tensor<1024xf32>)
      {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<512x1024xf32>, tensor<1024xf32>
  return %dx, %dgamma, %dbeta : tensor<512x1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}
