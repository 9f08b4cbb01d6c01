// Adafactor (Shazeer and Stern 2018): the formulas of torch.optim.Adafactor. The second moment of a
// parameter of rank 2 or more is kept as its means over the last dimension and over the one before.

func.func @shared(%step: f32 {weir.kind = "state", weir.name = "step"},
                  %rate: f32 {weir.name = "learning_rate"},
                  %decay: f32 {weir.name = "weight_decay"},
                  %beta2_decay: f32 {weir.name = "beta2_decay"})
    -> (f32, f32 {weir.name = "kept"}, f32 {weir.name = "weight"}, f32 {weir.name = "speed"}) {
  %one = arith.constant 1.0 : f32
  %next = arith.addf %step, %one : f32
  %pull = arith.mulf %rate, %decay : f32
  %kept = arith.subf %one, %pull : f32
  %weight = math.powf %next, %beta2_decay : f32
  %root = math.sqrt %next : f32
  %slowing = arith.divf %one, %root : f32
  %speed = arith.minimumf %rate, %slowing : f32
  return %next, %kept, %weight, %speed : f32, f32, f32, f32
}

func.func @update_scalar(%p: tensor<f32> {weir.kind = "param"}, %g: tensor<f32> {weir.kind = "gradient"},
    %variance: tensor<f32> {weir.kind = "state", weir.name = "variance"},
    %kept: f32 {weir.name = "kept"}, %weight: f32 {weir.name = "weight"}, %speed: f32 {weir.name = "speed"},
    %epsilon1: f32 {weir.name = "epsilon1"}, %epsilon2: f32 {weir.name = "epsilon2"}, %clip: f32 {weir.name = "clip"})
    -> (tensor<f32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %count = arith.constant 1.0 : f32
  %p_zero_none = tensor.empty() : tensor<f32>
  %p_zero = linalg.fill ins(%zero : f32) outs(%p_zero_none : tensor<f32>) -> tensor<f32>
  %p_squares = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%p : tensor<f32>) outs(%p_zero : tensor<f32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %p_sum = tensor.extract %p_squares[] : tensor<f32>
  %p_mean = arith.divf %p_sum, %count : f32
  %p_size = math.sqrt %p_mean : f32
  %p_scale = arith.maximumf %p_size, %epsilon2 : f32
  %alpha = arith.mulf %p_scale, %speed : f32
  %like = tensor.empty() : tensor<f32>
  %least = arith.mulf %epsilon1, %epsilon1 : f32
  %new_variance = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%variance, %g : tensor<f32>, tensor<f32>) outs(%like : tensor<f32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %q = arith.mulf %a1, %a1 : f32
    %d = arith.subf %q, %a0 : f32
    %m = arith.mulf %weight, %d : f32
    %t = arith.addf %a0, %m : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %update = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%g, %new_variance : tensor<f32>, tensor<f32>) outs(%like : tensor<f32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %limited = arith.maximumf %a1, %least : f32
    %rsqrt = math.rsqrt %limited : f32
    %u = arith.mulf %rsqrt, %a0 : f32
    linalg.yield %u : f32
  } -> tensor<f32>
  %u_zero_none = tensor.empty() : tensor<f32>
  %u_zero = linalg.fill ins(%zero : f32) outs(%u_zero_none : tensor<f32>) -> tensor<f32>
  %u_squares = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%update : tensor<f32>) outs(%u_zero : tensor<f32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %u_sum = tensor.extract %u_squares[] : tensor<f32>
  %u_mean = arith.divf %u_sum, %count : f32
  %u_size = math.sqrt %u_mean : f32
  %u_over = arith.divf %u_size, %clip : f32
  %u_divisor = arith.maximumf %one, %u_over : f32
  %pace = arith.divf %alpha, %u_divisor : f32
  %new = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%p, %update : tensor<f32>, tensor<f32>) outs(%like : tensor<f32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %shrunk = arith.mulf %kept, %a0 : f32
    %change = arith.mulf %pace, %a1 : f32
    %t = arith.subf %shrunk, %change : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %new, %new_variance : tensor<f32>, tensor<f32>
}

func.func @update_vector(%p: tensor<?xf32> {weir.kind = "param"}, %g: tensor<?xf32> {weir.kind = "gradient"},
    %variance: tensor<?xf32> {weir.kind = "state", weir.name = "variance"},
    %kept: f32 {weir.name = "kept"}, %weight: f32 {weir.name = "weight"}, %speed: f32 {weir.name = "speed"},
    %epsilon1: f32 {weir.name = "epsilon1"}, %epsilon2: f32 {weir.name = "epsilon2"}, %clip: f32 {weir.name = "clip"})
    -> (tensor<?xf32>, tensor<?xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %n0 = tensor.dim %p, %c0 : tensor<?xf32>
  %count_integer = arith.index_cast %n0 : index to i64
  %count = arith.sitofp %count_integer : i64 to f32
  %p_zero_none = tensor.empty() : tensor<f32>
  %p_zero = linalg.fill ins(%zero : f32) outs(%p_zero_none : tensor<f32>) -> tensor<f32>
  %p_squares = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%p : tensor<?xf32>) outs(%p_zero : tensor<f32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %p_sum = tensor.extract %p_squares[] : tensor<f32>
  %p_mean = arith.divf %p_sum, %count : f32
  %p_size = math.sqrt %p_mean : f32
  %p_scale = arith.maximumf %p_size, %epsilon2 : f32
  %alpha = arith.mulf %p_scale, %speed : f32
  %like = tensor.empty(%n0) : tensor<?xf32>
  %least = arith.mulf %epsilon1, %epsilon1 : f32
  %new_variance = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%variance, %g : tensor<?xf32>, tensor<?xf32>) outs(%like : tensor<?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %q = arith.mulf %a1, %a1 : f32
    %d = arith.subf %q, %a0 : f32
    %m = arith.mulf %weight, %d : f32
    %t = arith.addf %a0, %m : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %update = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%g, %new_variance : tensor<?xf32>, tensor<?xf32>) outs(%like : tensor<?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %limited = arith.maximumf %a1, %least : f32
    %rsqrt = math.rsqrt %limited : f32
    %u = arith.mulf %rsqrt, %a0 : f32
    linalg.yield %u : f32
  } -> tensor<?xf32>
  %u_zero_none = tensor.empty() : tensor<f32>
  %u_zero = linalg.fill ins(%zero : f32) outs(%u_zero_none : tensor<f32>) -> tensor<f32>
  %u_squares = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%update : tensor<?xf32>) outs(%u_zero : tensor<f32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %u_sum = tensor.extract %u_squares[] : tensor<f32>
  %u_mean = arith.divf %u_sum, %count : f32
  %u_size = math.sqrt %u_mean : f32
  %u_over = arith.divf %u_size, %clip : f32
  %u_divisor = arith.maximumf %one, %u_over : f32
  %pace = arith.divf %alpha, %u_divisor : f32
  %new = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%p, %update : tensor<?xf32>, tensor<?xf32>) outs(%like : tensor<?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %shrunk = arith.mulf %kept, %a0 : f32
    %change = arith.mulf %pace, %a1 : f32
    %t = arith.subf %shrunk, %change : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  return %new, %new_variance : tensor<?xf32>, tensor<?xf32>
}

func.func @update_matrix(%p: tensor<?x?xf32> {weir.kind = "param"}, %g: tensor<?x?xf32> {weir.kind = "gradient"},
    %rows: tensor<?xf32> {weir.kind = "state", weir.name = "row_variance", weir.dims = array<i64: 0>},
    %columns: tensor<?xf32> {weir.kind = "state", weir.name = "column_variance", weir.dims = array<i64: 1>},
    %kept: f32 {weir.name = "kept"}, %weight: f32 {weir.name = "weight"}, %speed: f32 {weir.name = "speed"},
    %epsilon1: f32 {weir.name = "epsilon1"}, %epsilon2: f32 {weir.name = "epsilon2"}, %clip: f32 {weir.name = "clip"})
    -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n0 = tensor.dim %p, %c0 : tensor<?x?xf32>
  %n1 = tensor.dim %p, %c1 : tensor<?x?xf32>
  %count_1 = arith.muli %n0, %n1 : index
  %count_integer = arith.index_cast %count_1 : index to i64
  %count = arith.sitofp %count_integer : i64 to f32
  %p_zero_none = tensor.empty() : tensor<f32>
  %p_zero = linalg.fill ins(%zero : f32) outs(%p_zero_none : tensor<f32>) -> tensor<f32>
  %p_squares = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%p : tensor<?x?xf32>) outs(%p_zero : tensor<f32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %p_sum = tensor.extract %p_squares[] : tensor<f32>
  %p_mean = arith.divf %p_sum, %count : f32
  %p_size = math.sqrt %p_mean : f32
  %p_scale = arith.maximumf %p_size, %epsilon2 : f32
  %alpha = arith.mulf %p_scale, %speed : f32
  %like = tensor.empty(%n0, %n1) : tensor<?x?xf32>
  %least = arith.mulf %epsilon1, %epsilon1 : f32
  %row_count_integer = arith.index_cast %n1 : index to i64
  %row_count = arith.sitofp %row_count_integer : i64 to f32
  %column_count_integer = arith.index_cast %n0 : index to i64
  %column_count = arith.sitofp %column_count_integer : i64 to f32
  %row_zero_none = tensor.empty(%n0) : tensor<?xf32>
  %row_zero = linalg.fill ins(%zero : f32) outs(%row_zero_none : tensor<?xf32>) -> tensor<?xf32>
  %row_squares = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%g : tensor<?x?xf32>) outs(%row_zero : tensor<?xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %row_like = tensor.empty(%n0) : tensor<?xf32>
  %new_rows = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%rows, %row_squares : tensor<?xf32>, tensor<?xf32>) outs(%row_like : tensor<?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %q = arith.divf %a1, %row_count : f32
    %d = arith.subf %q, %a0 : f32
    %m = arith.mulf %weight, %d : f32
    %t = arith.addf %a0, %m : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %column_zero_none = tensor.empty(%n1) : tensor<?xf32>
  %column_zero = linalg.fill ins(%zero : f32) outs(%column_zero_none : tensor<?xf32>) -> tensor<?xf32>
  %column_squares = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]}
      ins(%g : tensor<?x?xf32>) outs(%column_zero : tensor<?xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %column_like = tensor.empty(%n1) : tensor<?xf32>
  %new_columns = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%columns, %column_squares : tensor<?xf32>, tensor<?xf32>) outs(%column_like : tensor<?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %q = arith.divf %a1, %column_count : f32
    %d = arith.subf %q, %a0 : f32
    %m = arith.mulf %weight, %d : f32
    %t = arith.addf %a0, %m : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %mean_zero_none = tensor.empty() : tensor<f32>
  %mean_zero = linalg.fill ins(%zero : f32) outs(%mean_zero_none : tensor<f32>) -> tensor<f32>
  %row_total = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%new_rows : tensor<?xf32>) outs(%mean_zero : tensor<f32>) {
  ^bb0(%a0: f32, %o: f32):
    %t = arith.addf %o, %a0 : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %update = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%g, %new_rows, %new_columns, %row_total : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<f32>) outs(%like : tensor<?x?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %o: f32):
    %mean = arith.divf %a3, %column_count : f32
    %divisor = arith.maximumf %mean, %epsilon1 : f32
    %product = arith.mulf %a1, %a2 : f32
    %estimate = arith.divf %product, %divisor : f32
    %limited = arith.maximumf %estimate, %least : f32
    %rsqrt = math.rsqrt %limited : f32
    %u = arith.mulf %rsqrt, %a0 : f32
    linalg.yield %u : f32
  } -> tensor<?x?xf32>
  %u_zero_none = tensor.empty() : tensor<f32>
  %u_zero = linalg.fill ins(%zero : f32) outs(%u_zero_none : tensor<f32>) -> tensor<f32>
  %u_squares = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%update : tensor<?x?xf32>) outs(%u_zero : tensor<f32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %u_sum = tensor.extract %u_squares[] : tensor<f32>
  %u_mean = arith.divf %u_sum, %count : f32
  %u_size = math.sqrt %u_mean : f32
  %u_over = arith.divf %u_size, %clip : f32
  %u_divisor = arith.maximumf %one, %u_over : f32
  %pace = arith.divf %alpha, %u_divisor : f32
  %new = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%p, %update : tensor<?x?xf32>, tensor<?x?xf32>) outs(%like : tensor<?x?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %shrunk = arith.mulf %kept, %a0 : f32
    %change = arith.mulf %pace, %a1 : f32
    %t = arith.subf %shrunk, %change : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  return %new, %new_rows, %new_columns : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
}

func.func @update_rank3(%p: tensor<?x?x?xf32> {weir.kind = "param"}, %g: tensor<?x?x?xf32> {weir.kind = "gradient"},
    %rows: tensor<?x?xf32> {weir.kind = "state", weir.name = "row_variance", weir.dims = array<i64: 0, 1>},
    %columns: tensor<?x?xf32> {weir.kind = "state", weir.name = "column_variance", weir.dims = array<i64: 0, 2>},
    %kept: f32 {weir.name = "kept"}, %weight: f32 {weir.name = "weight"}, %speed: f32 {weir.name = "speed"},
    %epsilon1: f32 {weir.name = "epsilon1"}, %epsilon2: f32 {weir.name = "epsilon2"}, %clip: f32 {weir.name = "clip"})
    -> (tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n0 = tensor.dim %p, %c0 : tensor<?x?x?xf32>
  %n1 = tensor.dim %p, %c1 : tensor<?x?x?xf32>
  %n2 = tensor.dim %p, %c2 : tensor<?x?x?xf32>
  %count_1 = arith.muli %n0, %n1 : index
  %count_2 = arith.muli %count_1, %n2 : index
  %count_integer = arith.index_cast %count_2 : index to i64
  %count = arith.sitofp %count_integer : i64 to f32
  %p_zero_none = tensor.empty() : tensor<f32>
  %p_zero = linalg.fill ins(%zero : f32) outs(%p_zero_none : tensor<f32>) -> tensor<f32>
  %p_squares = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> ()>], iterator_types = ["reduction", "reduction", "reduction"]}
      ins(%p : tensor<?x?x?xf32>) outs(%p_zero : tensor<f32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %p_sum = tensor.extract %p_squares[] : tensor<f32>
  %p_mean = arith.divf %p_sum, %count : f32
  %p_size = math.sqrt %p_mean : f32
  %p_scale = arith.maximumf %p_size, %epsilon2 : f32
  %alpha = arith.mulf %p_scale, %speed : f32
  %like = tensor.empty(%n0, %n1, %n2) : tensor<?x?x?xf32>
  %least = arith.mulf %epsilon1, %epsilon1 : f32
  %row_count_integer = arith.index_cast %n2 : index to i64
  %row_count = arith.sitofp %row_count_integer : i64 to f32
  %column_count_integer = arith.index_cast %n1 : index to i64
  %column_count = arith.sitofp %column_count_integer : i64 to f32
  %row_zero_none = tensor.empty(%n0, %n1) : tensor<?x?xf32>
  %row_zero = linalg.fill ins(%zero : f32) outs(%row_zero_none : tensor<?x?xf32>) -> tensor<?x?xf32>
  %row_squares = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g : tensor<?x?x?xf32>) outs(%row_zero : tensor<?x?xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %row_like = tensor.empty(%n0, %n1) : tensor<?x?xf32>
  %new_rows = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%rows, %row_squares : tensor<?x?xf32>, tensor<?x?xf32>) outs(%row_like : tensor<?x?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %q = arith.divf %a1, %row_count : f32
    %d = arith.subf %q, %a0 : f32
    %m = arith.mulf %weight, %d : f32
    %t = arith.addf %a0, %m : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %column_zero_none = tensor.empty(%n0, %n2) : tensor<?x?xf32>
  %column_zero = linalg.fill ins(%zero : f32) outs(%column_zero_none : tensor<?x?xf32>) -> tensor<?x?xf32>
  %column_squares = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%g : tensor<?x?x?xf32>) outs(%column_zero : tensor<?x?xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %column_like = tensor.empty(%n0, %n2) : tensor<?x?xf32>
  %new_columns = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%columns, %column_squares : tensor<?x?xf32>, tensor<?x?xf32>) outs(%column_like : tensor<?x?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %q = arith.divf %a1, %column_count : f32
    %d = arith.subf %q, %a0 : f32
    %m = arith.mulf %weight, %d : f32
    %t = arith.addf %a0, %m : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %mean_zero_none = tensor.empty(%n0) : tensor<?xf32>
  %mean_zero = linalg.fill ins(%zero : f32) outs(%mean_zero_none : tensor<?xf32>) -> tensor<?xf32>
  %row_total = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%new_rows : tensor<?x?xf32>) outs(%mean_zero : tensor<?xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %t = arith.addf %o, %a0 : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %update = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g, %new_rows, %new_columns, %row_total : tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>) outs(%like : tensor<?x?x?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %o: f32):
    %mean = arith.divf %a3, %column_count : f32
    %divisor = arith.maximumf %mean, %epsilon1 : f32
    %product = arith.mulf %a1, %a2 : f32
    %estimate = arith.divf %product, %divisor : f32
    %limited = arith.maximumf %estimate, %least : f32
    %rsqrt = math.rsqrt %limited : f32
    %u = arith.mulf %rsqrt, %a0 : f32
    linalg.yield %u : f32
  } -> tensor<?x?x?xf32>
  %u_zero_none = tensor.empty() : tensor<f32>
  %u_zero = linalg.fill ins(%zero : f32) outs(%u_zero_none : tensor<f32>) -> tensor<f32>
  %u_squares = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> ()>], iterator_types = ["reduction", "reduction", "reduction"]}
      ins(%update : tensor<?x?x?xf32>) outs(%u_zero : tensor<f32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %u_sum = tensor.extract %u_squares[] : tensor<f32>
  %u_mean = arith.divf %u_sum, %count : f32
  %u_size = math.sqrt %u_mean : f32
  %u_over = arith.divf %u_size, %clip : f32
  %u_divisor = arith.maximumf %one, %u_over : f32
  %pace = arith.divf %alpha, %u_divisor : f32
  %new = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %update : tensor<?x?x?xf32>, tensor<?x?x?xf32>) outs(%like : tensor<?x?x?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %shrunk = arith.mulf %kept, %a0 : f32
    %change = arith.mulf %pace, %a1 : f32
    %t = arith.subf %shrunk, %change : f32
    linalg.yield %t : f32
  } -> tensor<?x?x?xf32>
  return %new, %new_rows, %new_columns : tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}

func.func @update_rank4(%p: tensor<?x?x?x?xf32> {weir.kind = "param"}, %g: tensor<?x?x?x?xf32> {weir.kind = "gradient"},
    %rows: tensor<?x?x?xf32> {weir.kind = "state", weir.name = "row_variance", weir.dims = array<i64: 0, 1, 2>},
    %columns: tensor<?x?x?xf32> {weir.kind = "state", weir.name = "column_variance", weir.dims = array<i64: 0, 1, 3>},
    %kept: f32 {weir.name = "kept"}, %weight: f32 {weir.name = "weight"}, %speed: f32 {weir.name = "speed"},
    %epsilon1: f32 {weir.name = "epsilon1"}, %epsilon2: f32 {weir.name = "epsilon2"}, %clip: f32 {weir.name = "clip"})
    -> (tensor<?x?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n0 = tensor.dim %p, %c0 : tensor<?x?x?x?xf32>
  %n1 = tensor.dim %p, %c1 : tensor<?x?x?x?xf32>
  %n2 = tensor.dim %p, %c2 : tensor<?x?x?x?xf32>
  %n3 = tensor.dim %p, %c3 : tensor<?x?x?x?xf32>
  %count_1 = arith.muli %n0, %n1 : index
  %count_2 = arith.muli %count_1, %n2 : index
  %count_3 = arith.muli %count_2, %n3 : index
  %count_integer = arith.index_cast %count_3 : index to i64
  %count = arith.sitofp %count_integer : i64 to f32
  %p_zero_none = tensor.empty() : tensor<f32>
  %p_zero = linalg.fill ins(%zero : f32) outs(%p_zero_none : tensor<f32>) -> tensor<f32>
  %p_squares = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> ()>], iterator_types = ["reduction", "reduction", "reduction", "reduction"]}
      ins(%p : tensor<?x?x?x?xf32>) outs(%p_zero : tensor<f32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %p_sum = tensor.extract %p_squares[] : tensor<f32>
  %p_mean = arith.divf %p_sum, %count : f32
  %p_size = math.sqrt %p_mean : f32
  %p_scale = arith.maximumf %p_size, %epsilon2 : f32
  %alpha = arith.mulf %p_scale, %speed : f32
  %like = tensor.empty(%n0, %n1, %n2, %n3) : tensor<?x?x?x?xf32>
  %least = arith.mulf %epsilon1, %epsilon1 : f32
  %row_count_integer = arith.index_cast %n3 : index to i64
  %row_count = arith.sitofp %row_count_integer : i64 to f32
  %column_count_integer = arith.index_cast %n2 : index to i64
  %column_count = arith.sitofp %column_count_integer : i64 to f32
  %row_zero_none = tensor.empty(%n0, %n1, %n2) : tensor<?x?x?xf32>
  %row_zero = linalg.fill ins(%zero : f32) outs(%row_zero_none : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %row_squares = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g : tensor<?x?x?x?xf32>) outs(%row_zero : tensor<?x?x?xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x?x?xf32>
  %row_like = tensor.empty(%n0, %n1, %n2) : tensor<?x?x?xf32>
  %new_rows = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%rows, %row_squares : tensor<?x?x?xf32>, tensor<?x?x?xf32>) outs(%row_like : tensor<?x?x?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %q = arith.divf %a1, %row_count : f32
    %d = arith.subf %q, %a0 : f32
    %m = arith.mulf %weight, %d : f32
    %t = arith.addf %a0, %m : f32
    linalg.yield %t : f32
  } -> tensor<?x?x?xf32>
  %column_zero_none = tensor.empty(%n0, %n1, %n3) : tensor<?x?x?xf32>
  %column_zero = linalg.fill ins(%zero : f32) outs(%column_zero_none : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %column_squares = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>], iterator_types = ["parallel", "parallel", "reduction", "parallel"]}
      ins(%g : tensor<?x?x?x?xf32>) outs(%column_zero : tensor<?x?x?xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<?x?x?xf32>
  %column_like = tensor.empty(%n0, %n1, %n3) : tensor<?x?x?xf32>
  %new_columns = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%columns, %column_squares : tensor<?x?x?xf32>, tensor<?x?x?xf32>) outs(%column_like : tensor<?x?x?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %q = arith.divf %a1, %column_count : f32
    %d = arith.subf %q, %a0 : f32
    %m = arith.mulf %weight, %d : f32
    %t = arith.addf %a0, %m : f32
    linalg.yield %t : f32
  } -> tensor<?x?x?xf32>
  %mean_zero_none = tensor.empty(%n0, %n1) : tensor<?x?xf32>
  %mean_zero = linalg.fill ins(%zero : f32) outs(%mean_zero_none : tensor<?x?xf32>) -> tensor<?x?xf32>
  %row_total = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%new_rows : tensor<?x?x?xf32>) outs(%mean_zero : tensor<?x?xf32>) {
  ^bb0(%a0: f32, %o: f32):
    %t = arith.addf %o, %a0 : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %update = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g, %new_rows, %new_columns, %row_total : tensor<?x?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?xf32>) outs(%like : tensor<?x?x?x?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %o: f32):
    %mean = arith.divf %a3, %column_count : f32
    %divisor = arith.maximumf %mean, %epsilon1 : f32
    %product = arith.mulf %a1, %a2 : f32
    %estimate = arith.divf %product, %divisor : f32
    %limited = arith.maximumf %estimate, %least : f32
    %rsqrt = math.rsqrt %limited : f32
    %u = arith.mulf %rsqrt, %a0 : f32
    linalg.yield %u : f32
  } -> tensor<?x?x?x?xf32>
  %u_zero_none = tensor.empty() : tensor<f32>
  %u_zero = linalg.fill ins(%zero : f32) outs(%u_zero_none : tensor<f32>) -> tensor<f32>
  %u_squares = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> ()>], iterator_types = ["reduction", "reduction", "reduction", "reduction"]}
      ins(%update : tensor<?x?x?x?xf32>) outs(%u_zero : tensor<f32>) {
  ^bb0(%a0: f32, %o: f32):
    %s = arith.mulf %a0, %a0 : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %u_sum = tensor.extract %u_squares[] : tensor<f32>
  %u_mean = arith.divf %u_sum, %count : f32
  %u_size = math.sqrt %u_mean : f32
  %u_over = arith.divf %u_size, %clip : f32
  %u_divisor = arith.maximumf %one, %u_over : f32
  %pace = arith.divf %alpha, %u_divisor : f32
  %new = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%p, %update : tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) outs(%like : tensor<?x?x?x?xf32>) {
  ^bb0(%a0: f32, %a1: f32, %o: f32):
    %shrunk = arith.mulf %kept, %a0 : f32
    %change = arith.mulf %pace, %a1 : f32
    %t = arith.subf %shrunk, %change : f32
    linalg.yield %t : f32
  } -> tensor<?x?x?x?xf32>
  return %new, %new_rows, %new_columns : tensor<?x?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>
}
