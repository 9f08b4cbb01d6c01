// Gradients of LayerNorm, of which one is written over an argument that another kernel reads.
func.func @rows(%dy: tensor<5x96xf32> {weir.name = "dy", weir.donate}, %x: tensor<5x96xf32> {weir.name = "x"},
                %gamma: tensor<96xf32> {weir.name = "gamma"})
    -> (tensor<5x96xf32> {weir.name = "dx"}, tensor<96xf32> {weir.name = "dgamma"}, tensor<96xf32> {weir.name = "dbeta"}) {
  %zero = arith.constant dense<0.0> : tensor<96xf32>
  %dbeta = linalg.reduce { arith.addf } ins(%dy : tensor<5x96xf32>) outs(%zero : tensor<96xf32>) dimensions = [0] {weir.no_fuse}
  %dx, %dgamma, %unused = norm.layer_norm_vjp %dy, %x gamma(%gamma : tensor<96xf32>)
      {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<5x96xf32>, tensor<96xf32>
  return %dx, %dgamma, %dbeta : tensor<5x96xf32>, tensor<96xf32>, tensor<96xf32>
}
