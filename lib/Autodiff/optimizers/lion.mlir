// Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2).
func.func @update(%p: f32 {weir.kind = "param"}, %g: f32 {weir.kind = "gradient"},
                  %momentum: f32 {weir.kind = "state", weir.name = "momentum"},
                  %rate: f32 {weir.name = "learning_rate"},
                  %decay: f32 {weir.name = "weight_decay"}, %beta1: f32 {weir.name = "beta1"},
                  %beta2: f32 {weir.name = "beta2"}) -> (f32, f32) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %keep1 = arith.mulf %beta1, %momentum : f32
  %share1 = arith.subf %one, %beta1 : f32
  %add1 = arith.mulf %share1, %g : f32
  %direction = arith.addf %keep1, %add1 : f32
  // The sign: 1, -1, or the direction itself where that is 0 or NaN.
  %unit = math.copysign %one, %direction : f32
  %has = arith.cmpf one, %direction, %zero : f32
  %sign = arith.select %has, %unit, %direction : f32
  %pull = arith.mulf %decay, %p : f32
  %slope = arith.addf %sign, %pull : f32
  %change = arith.mulf %rate, %slope : f32
  %new = arith.subf %p, %change : f32
  %keep2 = arith.mulf %beta2, %momentum : f32
  %share2 = arith.subf %one, %beta2 : f32
  %add2 = arith.mulf %share2, %g : f32
  %mean = arith.addf %keep2, %add2 : f32
  return %new, %mean : f32, f32
}
