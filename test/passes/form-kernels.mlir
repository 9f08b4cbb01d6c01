// RUN: weir-opt %s --weir-set-profile --weir-form-kernels -split-input-file | FileCheck %s

#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#col = affine_map<(r, c) -> (c)>
#one = affine_map<(r) -> (r)>

// A residual sum, a reduction of it and what uses the reduction: one kernel,
// which also stores the residual sum.
// CHECK-LABEL: func @rows_join_their_maps
// CHECK:         schedule.kernel "row_6x8"(%arg0, %arg1) {{.*}} -> (tensor<6x8xf32>, tensor<6x8xf32>)
// CHECK-NOT:     schedule.kernel
func.func @rows_join_their_maps(%x: tensor<6x8xf32>, %f: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<6x8xf32>
  %e1 = tensor.empty() : tensor<6xf32>
  %sum = linalg.add ins(%x, %f : tensor<6x8xf32>, tensor<6x8xf32>) outs(%e2 : tensor<6x8xf32>) -> tensor<6x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6xf32>) -> tensor<6xf32>
  %total = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%sum : tensor<6x8xf32>) outs(%z : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum, %total : tensor<6x8xf32>, tensor<6xf32>) outs(%e2 : tensor<6x8xf32>) {
  ^bb0(%a: f32, %t: f32, %o: f32):
    %s = arith.divf %a, %t : f32
    linalg.yield %s : f32
  } -> tensor<6x8xf32>
  return %sum, %y : tensor<6x8xf32>, tensor<6x8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#col = affine_map<(r, c) -> (c)>

// The twin: a reduction of the columns and one of the rows share no domain.
// CHECK-LABEL: func @rows_and_columns_stay_apart
// CHECK:         schedule.kernel "row_6x8"
// CHECK:         schedule.kernel "row_8x6"
func.func @rows_and_columns_stay_apart(%x: tensor<6x8xf32>) -> (tensor<6xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e6 = tensor.empty() : tensor<6xf32>
  %e8 = tensor.empty() : tensor<8xf32>
  %z6 = linalg.fill ins(%zero : f32) outs(%e6 : tensor<6xf32>) -> tensor<6xf32>
  %z8 = linalg.fill ins(%zero : f32) outs(%e8 : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x8xf32>) outs(%z6 : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<6x8xf32>) outs(%z8 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r, %c : tensor<6xf32>, tensor<8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#col = affine_map<(r, c) -> (c)>

// A transpose before and a bias after a matmul: one kernel, no copy.
// CHECK-LABEL: func @contraction_takes_transpose_and_bias
// CHECK:         schedule.kernel "contraction_4x8x6"
// CHECK-NOT:     schedule.kernel
func.func @contraction_takes_transpose_and_bias(%x: tensor<4x6xf32>, %w: tensor<8x6xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %te = tensor.empty() : tensor<6x8xf32>
  %t = linalg.transpose ins(%w : tensor<8x6xf32>) outs(%te : tensor<6x8xf32>) permutation = [1, 0]
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %m = linalg.matmul ins(%x, %t : tensor<4x6xf32>, tensor<6x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m, %b : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Cheap arithmetic before a matmul is computed again for each tile; a
// transcendental is not.
// CHECK-LABEL: func @cheap_prologue
// CHECK:         schedule.kernel "contraction_4x8x6"
// CHECK-NOT:     schedule.kernel
func.func @cheap_prologue(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<4x6xf32>
  %n = linalg.negf ins(%x : tensor<4x6xf32>) outs(%xe : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %m = linalg.matmul ins(%n, %w : tensor<4x6xf32>, tensor<6x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %m : tensor<4x8xf32>
}

// CHECK-LABEL: func @dear_prologue
// CHECK:         schedule.kernel "map_4x6"
// CHECK:         schedule.kernel "contraction_4x8x6"
func.func @dear_prologue(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<4x6xf32>
  %n = linalg.exp ins(%x : tensor<4x6xf32>) outs(%xe : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %m = linalg.matmul ins(%n, %w : tensor<4x6xf32>, tensor<6x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %m : tensor<4x8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#flip = affine_map<(r, c) -> (c, r)>

// A reader at another point than the writer's would need an exchange between
// threads: two kernels.
// CHECK-LABEL: func @transposed_reader_stays_apart
// CHECK:         schedule.kernel "map_5x5"
// CHECK:         schedule.kernel "map_5x5"
func.func @transposed_reader_stays_apart(%x: tensor<5x5xf32>) -> tensor<5x5xf32> {
  %e = tensor.empty() : tensor<5x5xf32>
  %a = linalg.exp ins(%x : tensor<5x5xf32>) outs(%e : tensor<5x5xf32>) -> tensor<5x5xf32>
  %y = linalg.generic {indexing_maps = [#id, #flip, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %a : tensor<5x5xf32>, tensor<5x5xf32>) outs(%e : tensor<5x5xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<5x5xf32>
  return %y : tensor<5x5xf32>
}

// -----

// What leaves a kernel and comes back through another must not be inside both.
// CHECK-LABEL: func @no_cycle_through_another_kernel
// CHECK:         %[[A:.*]] = schedule.kernel "map_4x4"
// CHECK:         %[[M:.*]] = schedule.kernel "contraction_4x4x4"(%[[A]]
// CHECK-NOT:     schedule.kernel
// CHECK:         return %[[M]]
func.func @no_cycle_through_another_kernel(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %a = linalg.exp ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = linalg.matmul ins(%a, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.add ins(%a, %m : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// Results that are arguments, constants, or equal become copies.
// CHECK-LABEL: func @results_of_their_own
// CHECK:         schedule.kernel "map_3"(%arg0)
// CHECK:         schedule.kernel "map_3"() : () -> tensor<3xf32>
// CHECK:         schedule.kernel "map_3"(%arg0) {{.*}} -> (tensor<3xf32>, tensor<3xf32>)
func.func @results_of_their_own(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %c = arith.constant dense<1.0> : tensor<3xf32>
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.exp ins(%x : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  return %x, %c, %y, %y : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}
