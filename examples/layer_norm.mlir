// LayerNorm over rows of 1024: one kernel, one read of x.
func.func @layer_norm(%x: tensor<8192x1024xf32> {weir.name = "x", weir.kind = "input"},
                      %gamma: tensor<1024xf32> {weir.name = "gamma", weir.kind = "param"},
                      %beta: tensor<1024xf32> {weir.name = "beta", weir.kind = "param"})
    -> (tensor<8192x1024xf32> {weir.name = "y"}) {
  %y = norm.layer_norm %x gamma(%gamma : tensor<1024xf32>) beta(%beta : tensor<1024xf32>)
       {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<8192x1024xf32>
  return %y : tensor<8192x1024xf32>
}
