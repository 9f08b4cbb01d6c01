func.func @f(%a: memref<64xi8>) attributes {x = #schedule.effect<write, covers_all = maybe>} {
  return
}

// -----

func.func @f(%a: memref<64xi8>) attributes {x = #schedule.effect<write, slice = [0, 1, 2, 3], covers_all = true>} {
  return
}

// -----

func.func @f(%a: memref<64xi8>) attributes {x = #schedule.effect<write, all>} {
  return
}
