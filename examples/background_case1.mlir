// LayerNorm's gradients with beta's summed by a kernel of its own, as some
// libraries do it: it reads dy, and then dx is written over dy, the caller's gift.
// Nothing but a write-after-read barrier keeps the sum right.
func.func @background_case1(
    %dy: tensor<512x1024xf32> {weir.name = "dy", weir.kind = "input", weir.donate},
    %x: tensor<512x1024xf32> {weir.name = "x", weir.kind = "input"},
    %gamma: tensor<1024xf32> {weir.name = "gamma", weir.kind = "param"})
    -> (tensor<512x1024xf32> {weir.name = "dx"}, tensor<1024xf32> {weir.name = "dgamma"},
        tensor<1024xf32> {weir.name = "dbeta"}) {
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %dbeta = linalg.reduce { arith.addf } ins(%dy : tensor<512x1024xf32>)
      outs(%zero : tensor<1024xf32>) dimensions = [0] {weir.no_fuse}
  %dx, %dgamma, %unused = norm.layer_norm_vjp %dy, %x gamma(%gamma : tensor<1024xf32>)
      {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<512x1024xf32>, tensor<1024xf32>
  return %dx, %dgamma, %dbeta : tensor<512x1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}
