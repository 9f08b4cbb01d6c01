// Adam with the largest second moment so far (Reddi, Kale and Kumar 2018), weight decay added to the
// gradient: the formulas of torch.optim.Adam(amsgrad=True).

// Computes what is the same for all elements. 1 - beta^step is -expm1(step log(beta)): as a
// difference it would lose most digits for a beta near 1.
func.func @shared(%step: f32 {weir.kind = "state", weir.name = "step"},
                  %rate: f32 {weir.name = "learning_rate"},
                  %decay: f32 {weir.name = "weight_decay"}, %beta1: f32 {weir.name = "beta1"},
                  %beta2: f32 {weir.name = "beta2"})
    -> (f32, f32 {weir.name = "speed"}, f32 {weir.name = "root"}) {
  %one = arith.constant 1.0 : f32
  %next = arith.addf %step, %one : f32
  %log1 = math.log %beta1 : f32
  %power1 = arith.mulf %next, %log1 : f32
  %less1 = math.expm1 %power1 : f32
  %weight1 = arith.negf %less1 : f32
  %speed = arith.divf %rate, %weight1 : f32
  %log2 = math.log %beta2 : f32
  %power2 = arith.mulf %next, %log2 : f32
  %less2 = math.expm1 %power2 : f32
  %weight2 = arith.negf %less2 : f32
  %root = math.sqrt %weight2 : f32
  return %next, %speed, %root : f32, f32, f32
}

func.func @update(%p: f32 {weir.kind = "param"}, %g: f32 {weir.kind = "gradient"},
                  %first: f32 {weir.kind = "state", weir.name = "first_moment"},
                  %second: f32 {weir.kind = "state", weir.name = "second_moment"},
                  %largest: f32 {weir.kind = "state", weir.name = "largest_second_moment"},
                  %decay: f32 {weir.name = "weight_decay"}, %speed: f32 {weir.name = "speed"},
                  %root: f32 {weir.name = "root"}, %beta1: f32 {weir.name = "beta1"},
                  %beta2: f32 {weir.name = "beta2"}, %epsilon: f32 {weir.name = "epsilon"})
    -> (f32, f32, f32, f32) {
  %one = arith.constant 1.0 : f32
  %pull = arith.mulf %decay, %p : f32
  %slope = arith.addf %g, %pull : f32
  %keep1 = arith.mulf %beta1, %first : f32
  %share1 = arith.subf %one, %beta1 : f32
  %add1 = arith.mulf %share1, %slope : f32
  %mean = arith.addf %keep1, %add1 : f32
  %keep2 = arith.mulf %beta2, %second : f32
  %share2 = arith.subf %one, %beta2 : f32
  %square = arith.mulf %slope, %slope : f32
  %add2 = arith.mulf %share2, %square : f32
  %spread = arith.addf %keep2, %add2 : f32
  %limit = arith.maximumf %largest, %spread : f32
  %deviation = math.sqrt %limit : f32
  %corrected = arith.divf %deviation, %root : f32
  %scale = arith.addf %corrected, %epsilon : f32
  %direction = arith.divf %mean, %scale : f32
  %change = arith.mulf %speed, %direction : f32
  %new = arith.subf %p, %change : f32
  return %new, %mean, %spread, %limit : f32, f32, f32, f32
}
