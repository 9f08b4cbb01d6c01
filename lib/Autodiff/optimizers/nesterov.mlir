// Stochastic gradient descent with Nesterov's momentum: the formulas of
// torch.optim.SGD(nesterov=True).
func.func @update(%p: f32 {weir.kind = "param"}, %g: f32 {weir.kind = "gradient"},
                  %velocity: f32 {weir.kind = "state", weir.name = "momentum"},
                  %rate: f32 {weir.name = "learning_rate"}, %momentum: f32 {weir.name = "momentum"},
                  %decay: f32 {weir.name = "weight_decay"}) -> (f32, f32) {
  %pull = arith.mulf %decay, %p : f32
  %slope = arith.addf %g, %pull : f32
  %kept = arith.mulf %momentum, %velocity : f32
  %faster = arith.addf %kept, %slope : f32
  %next = arith.mulf %momentum, %faster : f32
  %ahead = arith.addf %slope, %next : f32
  %change = arith.mulf %rate, %ahead : f32
  %new = arith.subf %p, %change : f32
  return %new, %faster : f32, f32
}
