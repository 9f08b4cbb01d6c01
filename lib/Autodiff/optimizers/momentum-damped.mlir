// Stochastic gradient descent with momentum and dampening: the formulas of torch.optim.SGD, which
// takes the whole gradient in the first step.

func.func @shared(%step: f32 {weir.kind = "state", weir.name = "step"},
                  %dampening: f32 {weir.name = "dampening"}) -> (f32, f32 {weir.name = "share"}) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %next = arith.addf %step, %one : f32
  %damped = arith.subf %one, %dampening : f32
  %first = arith.cmpf oeq, %step, %zero : f32
  %share = arith.select %first, %one, %damped : f32
  return %next, %share : f32, f32
}

func.func @update(%p: f32 {weir.kind = "param"}, %g: f32 {weir.kind = "gradient"},
                  %velocity: f32 {weir.kind = "state", weir.name = "momentum"},
                  %rate: f32 {weir.name = "learning_rate"}, %momentum: f32 {weir.name = "momentum"},
                  %decay: f32 {weir.name = "weight_decay"}, %share: f32 {weir.name = "share"})
    -> (f32, f32) {
  %pull = arith.mulf %decay, %p : f32
  %slope = arith.addf %g, %pull : f32
  %part = arith.mulf %share, %slope : f32
  %kept = arith.mulf %momentum, %velocity : f32
  %faster = arith.addf %kept, %part : f32
  %change = arith.mulf %rate, %faster : f32
  %new = arith.subf %p, %change : f32
  return %new, %faster : f32, f32
}
