// Stochastic gradient descent: the formulas of torch.optim.SGD without momentum.
func.func @update(%p: f32 {weir.kind = "param"}, %g: f32 {weir.kind = "gradient"},
                  %rate: f32 {weir.name = "learning_rate"},
                  %decay: f32 {weir.name = "weight_decay"}) -> f32 {
  %pull = arith.mulf %decay, %p : f32
  %slope = arith.addf %g, %pull : f32
  %change = arith.mulf %rate, %slope : f32
  %new = arith.subf %p, %change : f32
  return %new : f32
}
