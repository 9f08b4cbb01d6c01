#id = affine_map<(i) -> (i)>

// `x` is the caller's state: its next value has its name. `y` is not carried.
func.func @step(%x: tensor<4xf32> {weir.name = "x", weir.kind = "state", weir.donate},
                %y: tensor<4xf32> {weir.name = "y", weir.kind = "input"})
    -> (tensor<4xf32> {weir.name = "x"}, tensor<4xf32> {weir.name = "z"}) {
  %e = tensor.empty() : tensor<4xf32>
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%e, %e : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %p: f32):
    %s = arith.addf %a, %b : f32
    %n = arith.negf %s : f32
    linalg.yield %s, %n : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
