// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels -split-input-file | FileCheck %s

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

// The twin: a reduction of few rows is not cut, and shares no domain with one of
// the columns.
// CHECK-LABEL: func @rows_and_few_columns_stay_apart
// CHECK:         schedule.kernel "row_6x8"
// CHECK:         schedule.kernel "across_8x6"
func.func @rows_and_few_columns_stay_apart(%x: tensor<6x8xf32>) -> (tensor<6xf32>, tensor<8xf32>) {
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

// -----

#id = affine_map<(b, t, c) -> (b, t, c)>
#col = affine_map<(b, t, c) -> (c)>

// A reduction of many rows is cut: parts of at least 8 consecutive rows over both
// leading dimensions, then the parts in order, and what is made of the result.
// CHECK-DAG:   #[[PART:.*]] = affine_map<(d0, d1, d2) -> ((d0 * 9 + d1) floordiv 8, d2)>
// CHECK-LABEL: func @columns_are_cut
// CHECK:         %[[P:.*]] = schedule.kernel "column_3x9x5"(%arg0) {{.*}} -> tensor<4x5xf32>
// CHECK:           linalg.generic {indexing_maps = [#{{.*}}, #[[PART]]], iterator_types = ["reduction", "reduction", "parallel"]}
// CHECK:         schedule.kernel "across_5x4"(%[[P]]) {{.*}} -> tensor<5xf32>
// CHECK:           arith.addf
// CHECK:           arith.negf
// CHECK-NOT:     schedule.kernel
func.func @columns_are_cut(%x: tensor<3x9x5xf32>) -> tensor<5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %s = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%x : tensor<3x9x5xf32>) outs(%z : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  %n = linalg.negf ins(%s : tensor<5xf32>) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  return %n : tensor<5xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#flip = affine_map<(r, c) -> (c, r)>
#col = affine_map<(r, c) -> (c)>

// The twin: what lies side by side in memory is a row, whatever the loops' order.
// CHECK-LABEL: func @rows_are_not_cut
// CHECK:         schedule.kernel "row_5x27"
// CHECK-NOT:     schedule.kernel
func.func @rows_are_not_cut(%x: tensor<5x27xf32>) -> tensor<5xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5xf32>
  %z = linalg.fill ins(%low : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %s = linalg.generic {indexing_maps = [#flip, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<5x27xf32>) outs(%z : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  return %s : tensor<5xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#col = affine_map<(r, c) -> (c)>

// Rows, points and the parts of columns: one kernel; one more for all the parts,
// although nothing but the kernel before ties them.
// CHECK-LABEL: func @rows_take_columns
// CHECK:         %[[K:.*]]:3 = schedule.kernel "row_column_32x8"(%arg0) {{.*}} -> (tensor<4x8xf32>, tensor<32x8xf32>, tensor<4x8xf32>)
// CHECK:         schedule.kernel "across_8x4"(%[[K]]#0, %[[K]]#2) {{.*}} -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NOT:     schedule.kernel
func.func @rows_take_columns(%x: tensor<32x8xf32>) -> (tensor<8xf32>, tensor<32x8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e32 = tensor.empty() : tensor<32xf32>
  %e8 = tensor.empty() : tensor<8xf32>
  %e = tensor.empty() : tensor<32x8xf32>
  %z32 = linalg.fill ins(%zero : f32) outs(%e32 : tensor<32xf32>) -> tensor<32xf32>
  %z8 = linalg.fill ins(%zero : f32) outs(%e8 : tensor<8xf32>) -> tensor<8xf32>
  %columns = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<32x8xf32>) outs(%z8 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %rows = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<32x8xf32>) outs(%z32 : tensor<32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %rows : tensor<32x8xf32>, tensor<32xf32>) outs(%e : tensor<32x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<32x8xf32>
  %ofY = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%y : tensor<32x8xf32>) outs(%z8 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %columns, %y, %ofY : tensor<8xf32>, tensor<32x8xf32>, tensor<8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#col = affine_map<(r, c) -> (c)>

// The twin: parts of columns of more bytes than an invocation may hold.
// CHECK-LABEL: func @long_rows_and_columns_stay_apart
// CHECK:         schedule.kernel "row_16x8200"
// CHECK:         schedule.kernel "column_16x8200"
// CHECK:         schedule.kernel "across_8200x2"
func.func @long_rows_and_columns_stay_apart(%x: tensor<16x8200xf32>) -> (tensor<16xf32>, tensor<8200xf32>) {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<16xf32>
  %ec = tensor.empty() : tensor<8200xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<16xf32>) -> tensor<16xf32>
  %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<8200xf32>) -> tensor<8200xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<16x8200xf32>) outs(%zr : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<16xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<16x8200xf32>) outs(%zc : tensor<8200xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8200xf32>
  return %r, %c : tensor<16xf32>, tensor<8200xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#col = affine_map<(r, c) -> (c)>

// No kernel reads a column that it reduces: it isn't known before its last row.
// CHECK-LABEL: func @reader_of_columns_stays_apart
// CHECK:         schedule.kernel "column_32x8"
// CHECK:         schedule.kernel "across_8x4"
// CHECK:         schedule.kernel "map_32x8"
func.func @reader_of_columns_stays_apart(%x: tensor<32x8xf32>) -> tensor<32x8xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e8 = tensor.empty() : tensor<8xf32>
  %e = tensor.empty() : tensor<32x8xf32>
  %z = linalg.fill ins(%low : f32) outs(%e8 : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<32x8xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<32x8xf32>, tensor<8xf32>) outs(%e : tensor<32x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<32x8xf32>
  return %y : tensor<32x8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#col = affine_map<(r, c) -> (c)>

// Two that reduce columns of one tensor read it once; of two tensors they have
// nothing in common.
// CHECK-LABEL: func @siblings
// CHECK:         schedule.kernel "column_32x8"(%arg0) {{.*}} -> (tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK:         schedule.kernel "across_8x4"({{.*}}) {{.*}} -> (tensor<8xf32>, tensor<8xf32>)
// CHECK:         schedule.kernel "column_32x8"(%arg1) {{.*}} -> tensor<4x8xf32>
// CHECK:         schedule.kernel "across_8x4"({{.*}}) {{.*}} -> tensor<8xf32>
func.func @siblings(%x: tensor<32x8xf32>, %y: tensor<32x8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %l = linalg.fill ins(%low : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<32x8xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<32x8xf32>) outs(%l : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %t = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%y : tensor<32x8xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %s, %m, %t : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#col = affine_map<(r, c) -> (c)>

// Siblings of which one needs the other are no siblings: the second sum reads x,
// and what is made of the first.
// CHECK-LABEL: func @dependent_siblings_stay_apart
// CHECK:         schedule.kernel "column_32x8"(%arg0)
// CHECK:         schedule.kernel "across_8x4"
// CHECK:         schedule.kernel "column_32x8"
// CHECK:         schedule.kernel "across_8x4"
func.func @dependent_siblings_stay_apart(%x: tensor<32x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<32x8xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %q = linalg.generic {indexing_maps = [#id, #col, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x, %s : tensor<32x8xf32>, tensor<8xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %t = arith.addf %d, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %q : tensor<8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>

// What is marked gets a kernel of its own, the rest does what it would.
// CHECK-LABEL: func @alone
// CHECK-COUNT-3: schedule.kernel "map_6x8"
// CHECK-NOT:     schedule.kernel
func.func @alone(%x: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %e = tensor.empty() : tensor<6x8xf32>
  %a = linalg.exp ins(%x : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %b = linalg.tanh {weir.no_fuse} ins(%a : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %c = linalg.log ins(%b : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %c : tensor<6x8xf32>
}

// CHECK-LABEL: func @not_alone
// CHECK:         schedule.kernel "map_6x8"
// CHECK-NOT:     schedule.kernel
func.func @not_alone(%x: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %e = tensor.empty() : tensor<6x8xf32>
  %a = linalg.exp ins(%x : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %b = linalg.tanh ins(%a : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %c = linalg.log ins(%b : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %c : tensor<6x8xf32>
}

// -----

// A product whose only reader walks it transposed is made so; one that others read, too, is not.
// CHECK-LABEL: func @turned
// CHECK:         schedule.kernel "contraction_3x7x5"
// CHECK:           linalg.generic {indexing_maps = [#[[A:.*]], #[[B:.*]], #[[C:.*]]], iterator_types = ["parallel", "parallel", "reduction"]} {{.*}}outs(%{{.*}} : tensor<7x3xf32>)
// CHECK:           linalg.generic {indexing_maps = [#[[ID:.*]], #[[ID]], #[[ID]]], iterator_types = ["parallel", "parallel"]}
// CHECK-LABEL: func @read_both_ways
// CHECK:         schedule.kernel "contraction_3x7x5"
// CHECK:           linalg.generic {{.*}}"reduction"]} {{.*}}outs(%{{.*}} : tensor<3x7xf32>)
func.func @turned(%x: tensor<5x3xf32>, %y: tensor<5x7xf32>, %w: tensor<7x3xf32>) -> tensor<7x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x7xf32>) -> tensor<3x7xf32>
  %g = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%x, %y : tensor<5x3xf32>, tensor<5x7xf32>) outs(%z : tensor<3x7xf32>) -> tensor<3x7xf32>
  %f = tensor.empty() : tensor<7x3xf32>
  %t = linalg.transpose ins(%g : tensor<3x7xf32>) outs(%f : tensor<7x3xf32>) permutation = [1, 0]
  %r = linalg.sub ins(%w, %t : tensor<7x3xf32>, tensor<7x3xf32>) outs(%f : tensor<7x3xf32>) -> tensor<7x3xf32>
  return %r : tensor<7x3xf32>
}
func.func @read_both_ways(%x: tensor<5x3xf32>, %y: tensor<5x7xf32>, %w: tensor<7x3xf32>) -> (tensor<7x3xf32>, tensor<3x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x7xf32>) -> tensor<3x7xf32>
  %g = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%x, %y : tensor<5x3xf32>, tensor<5x7xf32>) outs(%z : tensor<3x7xf32>) -> tensor<3x7xf32>
  %f = tensor.empty() : tensor<7x3xf32>
  %t = linalg.transpose ins(%g : tensor<3x7xf32>) outs(%f : tensor<7x3xf32>) permutation = [1, 0]
  %r = linalg.sub ins(%w, %t : tensor<7x3xf32>, tensor<7x3xf32>) outs(%f : tensor<7x3xf32>) -> tensor<7x3xf32>
  return %r, %g : tensor<7x3xf32>, tensor<3x7xf32>
}

// -----

// The last sum reads the old %w and needs what %y gives: a kernel that makes both %y and
// the next %w could not write over %w. Where %w is not donated, one kernel makes both.
// CHECK-LABEL: func @update_after_readers
// CHECK:         %[[Y:.*]]:2 = schedule.kernel "row_8"(%arg0, %arg1)
// CHECK:         schedule.kernel "row_8"(%arg1, %[[Y]]#1)
// CHECK:         schedule.kernel "map_8"(%arg1, %[[Y]]#0)
// CHECK-LABEL: func @no_update
// CHECK:         schedule.kernel "row_8"(%arg0, %arg1) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>, tensor<8xf32>)
// CHECK-NOT:     "map_8"
func.func @update_after_readers(%x: tensor<8xf32>, %w: tensor<8xf32> {weir.name = "w", weir.donate})
    -> (tensor<8xf32>, tensor<f32>, tensor<8xf32> {weir.name = "w"}) {
  %e = tensor.empty() : tensor<8xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %y = linalg.add ins(%x, %w : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.reduce { arith.addf } ins(%y : tensor<8xf32>) outs(%zero : tensor<f32>) dimensions = [0]
  %q = linalg.generic {weir.no_fuse, indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%w : tensor<8xf32>) outs(%s : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %n = linalg.sub ins(%w, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %y, %q, %n : tensor<8xf32>, tensor<f32>, tensor<8xf32>
}
func.func @no_update(%x: tensor<8xf32>, %w: tensor<8xf32> {weir.name = "w"})
    -> (tensor<8xf32>, tensor<f32>, tensor<8xf32> {weir.name = "w"}) {
  %e = tensor.empty() : tensor<8xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %y = linalg.add ins(%x, %w : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.reduce { arith.addf } ins(%y : tensor<8xf32>) outs(%zero : tensor<f32>) dimensions = [0]
  %q = linalg.generic {weir.no_fuse, indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%w : tensor<8xf32>) outs(%s : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %n = linalg.sub ins(%w, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %y, %q, %n : tensor<8xf32>, tensor<f32>, tensor<8xf32>
}

// -----

// What is no combiner is computed in the order of its loops, alone.
// CHECK-LABEL: func @any_body
// CHECK:         schedule.kernel "sequence_4"
// CHECK:         schedule.kernel "map"
func.func @any_body(%x: tensor<4xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<4xf32>) outs(%z : tensor<f32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.subf %o, %v : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %r = linalg.exp ins(%s : tensor<f32>) outs(%e0 : tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}

// -----

#rows = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>

// What is read at computed places is complete before: two kernels. The twin reads
// another tensor there, and joins.
// CHECK-LABEL: func @gather_of_computed
// CHECK:         schedule.kernel "map_11x6"
// CHECK:         schedule.kernel "map_5x6"
// CHECK-LABEL: func @gather_of_argument
// CHECK:         schedule.kernel "map_5x6"(%{{.*}}, %{{.*}})
// CHECK-NOT:     schedule.kernel
func.func @gather_of_computed(%w: tensor<11x6xf32>, %k: tensor<5xi64>) -> tensor<5x6xf32> {
  %f = tensor.empty() : tensor<11x6xf32>
  %x = linalg.exp ins(%w : tensor<11x6xf32>) outs(%f : tensor<11x6xf32>) -> tensor<11x6xf32>
  %e = tensor.empty() : tensor<5x6xf32>
  %r = linalg.generic {indexing_maps = [#rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%k : tensor<5xi64>) outs(%e : tensor<5x6xf32>) {
  ^bb0(%in: i64, %out: f32):
    %at = arith.index_cast %in : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%at, %j] : tensor<11x6xf32>
    linalg.yield %v : f32
  } -> tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}
func.func @gather_of_argument(%x: tensor<11x6xf32>, %k: tensor<5xi64>) -> tensor<5x6xf32> {
  %e = tensor.empty() : tensor<5x6xf32>
  %r = linalg.generic {indexing_maps = [#rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%k : tensor<5xi64>) outs(%e : tensor<5x6xf32>) {
  ^bb0(%in: i64, %out: f32):
    %at = arith.index_cast %in : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%at, %j] : tensor<11x6xf32>
    linalg.yield %v : f32
  } -> tensor<5x6xf32>
  %s = linalg.exp ins(%r : tensor<5x6xf32>) outs(%e : tensor<5x6xf32>) -> tensor<5x6xf32>
  return %s : tensor<5x6xf32>
}

// The scalars of a named op are computed in its body; none is left between the kernels.
// CHECK-LABEL: func.func @scalars_of_named_ops
// CHECK-NEXT: schedule.kernel
// CHECK-NOT: schedule.kernel
// CHECK: return
func.func @scalars_of_named_ops(%x: tensor<2x4xi8>, %y: tensor<4x3xi8>, %k: tensor<i32>) -> tensor<2x3xi32> {
  %zero = arith.constant 0 : i32
  %at = tensor.extract %k[] : tensor<i32>
  %e = tensor.empty() : tensor<2x3xi32>
  %z = linalg.fill ins(%zero : i32) outs(%e : tensor<2x3xi32>) -> tensor<2x3xi32>
  %r = linalg.quantized_matmul ins(%x, %y, %at, %zero : tensor<2x4xi8>, tensor<4x3xi8>, i32, i32)
      outs(%z : tensor<2x3xi32>) -> tensor<2x3xi32>
  return %r : tensor<2x3xi32>
}

// -----

// What alone says how long a reduction's loops are stays a kernel of its own: a slice of a slice, from
// elements that the loops move by constants.
// CHECK-LABEL: func @sum_of_moved
// CHECK:         schedule.kernel "map_6x7"
// CHECK:         schedule.kernel "across_4x6"
// CHECK-NOT:     schedule.kernel
// CHECK:         return
func.func @sum_of_moved(%x: tensor<8x7xf32>) -> tensor<4xf32> {
  %z = arith.constant dense<0.0> : tensor<4xf32>
  %e = tensor.empty() : tensor<6x7xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + 1, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x7xf32>) outs(%e : tensor<6x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<6x7xf32>
  %d = tensor.empty() : tensor<6x4xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j + 3)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%s : tensor<6x7xf32>) outs(%d : tensor<6x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<6x4xf32>
  %r = linalg.reduce { arith.addf } ins(%t : tensor<6x4xf32>) outs(%z : tensor<4xf32>) dimensions = [0]
  return %r : tensor<4xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

// Rows of one tensor are reduced by one kernel, though neither reads what the other makes; what
// shares nothing but zeros stays apart.
// CHECK-LABEL: func @readers_of_one_tensor
// CHECK:         schedule.kernel "row_32x8"(%arg0) {{.*}} -> (tensor<32xf32>, tensor<32xf32>)
// CHECK:         schedule.kernel "row_32x8"(%arg1) {{.*}} -> tensor<32xf32>
// CHECK-NOT:     schedule.kernel
func.func @readers_of_one_tensor(%x: tensor<32x8xf32>, %y: tensor<32x8xf32>)
    -> (tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<32x8xf32>) outs(%z : tensor<32xf32>) {
  ^bb0(%in: f32, %o: f32):
    %t = arith.addf %in, %o : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  %q = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<32x8xf32>) outs(%z : tensor<32xf32>) {
  ^bb0(%in: f32, %o: f32):
    %p = arith.mulf %in, %in : f32
    %t = arith.addf %p, %o : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  %other = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<32x8xf32>) outs(%z : tensor<32xf32>) {
  ^bb0(%in: f32, %o: f32):
    %t = arith.addf %in, %o : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  return %s, %q, %other : tensor<32xf32>, tensor<32xf32>, tensor<32xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

// The next value of a donated argument is written in place, so not by a kernel that reads it
// for something else.
// CHECK-LABEL: func @reader_of_what_is_overwritten
// CHECK:         schedule.kernel "row_8x8"(%arg0) {{.*}} -> tensor<8xf32>
// CHECK:         schedule.kernel "row_8x8"(%arg0) {{.*}} -> tensor<8x8xf32>
func.func @reader_of_what_is_overwritten(%x: tensor<8x8xf32> {weir.name = "x", weir.donate})
    -> (tensor<8xf32> {weir.name = "y"}, tensor<8x8xf32> {weir.name = "x"}) {
  %zero = arith.constant 0.0 : f32
  %few = tensor.empty() : tensor<8xf32>
  %e = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%few : tensor<8xf32>) -> tensor<8xf32>
  %q = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x8xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%in: f32, %o: f32):
    %p = arith.mulf %in, %in : f32
    %t = arith.addf %p, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x8xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%in: f32, %o: f32):
    %t = arith.addf %in, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %next = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<8x8xf32>, tensor<8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%in: f32, %of: f32, %o: f32):
    %t = arith.divf %in, %of : f32
    linalg.yield %t : f32
  } -> tensor<8x8xf32>
  return %q, %next : tensor<8xf32>, tensor<8x8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#turned = affine_map<(r, c) -> (c, r)>
#none = affine_map<(r, c) -> ()>

// A mask that is made of a scalar and of places is made again for its second reader, which
// shares no kernel with the first: nothing keeps it.
// CHECK-LABEL: func @mask_is_made_twice
// CHECK:         %[[H:.*]] = schedule.kernel {{.*}}(%arg2, %arg0) : (tensor<i32>, tensor<40x8xf32>) -> tensor<40x8xf32>
// CHECK:           linalg.index
// CHECK:         schedule.kernel
// CHECK:         schedule.kernel {{.*}} -> tensor<40x8xf32>
// CHECK:           linalg.index
func.func @mask_is_made_twice(%x: tensor<40x8xf32>, %w: tensor<8x8xf32>, %n: tensor<i32>) -> tensor<40x8xf32> {
  %zero = arith.constant 0.0 : f32
  %em = tensor.empty() : tensor<40x8xi1>
  %e = tensor.empty() : tensor<40x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<40x8xf32>) -> tensor<40x8xf32>
  %m = linalg.generic {indexing_maps = [#none, #id], iterator_types = ["parallel", "parallel"]}
      ins(%n : tensor<i32>) outs(%em : tensor<40x8xi1>) {
  ^bb0(%a: i32, %o: i1):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %k = arith.cmpi slt, %j, %a : i32
    linalg.yield %k : i1
  } -> tensor<40x8xi1>
  %h = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<40x8xf32>, tensor<40x8xi1>) outs(%e : tensor<40x8xf32>) {
  ^bb0(%a: f32, %k: i1, %o: f32):
    %s = arith.select %k, %a, %zero : f32
    %t = math.tanh %s : f32
    linalg.yield %t : f32
  } -> tensor<40x8xf32>
  %y = linalg.matmul ins(%h, %w : tensor<40x8xf32>, tensor<8x8xf32>) outs(%z : tensor<40x8xf32>) -> tensor<40x8xf32>
  %v = linalg.matmul ins(%y, %w : tensor<40x8xf32>, tensor<8x8xf32>) outs(%z : tensor<40x8xf32>) -> tensor<40x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v, %m : tensor<40x8xf32>, tensor<40x8xi1>) outs(%e : tensor<40x8xf32>) {
  ^bb0(%a: f32, %k: i1, %o: f32):
    %s = arith.select %k, %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<40x8xf32>
  return %r : tensor<40x8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>

// The twin: a mask that is made of a tensor is made once and kept.
// CHECK-LABEL: func @mask_of_a_tensor_is_kept
// CHECK:         %[[H:.*]]:2 = schedule.kernel {{.*}}(%arg2, %arg0) {{.*}} -> (tensor<40x8xi1>, tensor<40x8xf32>)
// CHECK:         schedule.kernel
// CHECK:         schedule.kernel {{.*}}%[[H]]#0
func.func @mask_of_a_tensor_is_kept(%x: tensor<40x8xf32>, %w: tensor<8x8xf32>, %n: tensor<40x8xi32>) -> tensor<40x8xf32> {
  %zero = arith.constant 0.0 : f32
  %em = tensor.empty() : tensor<40x8xi1>
  %e = tensor.empty() : tensor<40x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<40x8xf32>) -> tensor<40x8xf32>
  %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%n : tensor<40x8xi32>) outs(%em : tensor<40x8xi1>) {
  ^bb0(%a: i32, %o: i1):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %k = arith.cmpi slt, %j, %a : i32
    linalg.yield %k : i1
  } -> tensor<40x8xi1>
  %h = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<40x8xf32>, tensor<40x8xi1>) outs(%e : tensor<40x8xf32>) {
  ^bb0(%a: f32, %k: i1, %o: f32):
    %s = arith.select %k, %a, %zero : f32
    %t = math.tanh %s : f32
    linalg.yield %t : f32
  } -> tensor<40x8xf32>
  %y = linalg.matmul ins(%h, %w : tensor<40x8xf32>, tensor<8x8xf32>) outs(%z : tensor<40x8xf32>) -> tensor<40x8xf32>
  %v = linalg.matmul ins(%y, %w : tensor<40x8xf32>, tensor<8x8xf32>) outs(%z : tensor<40x8xf32>) -> tensor<40x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%v, %m : tensor<40x8xf32>, tensor<40x8xi1>) outs(%e : tensor<40x8xf32>) {
  ^bb0(%a: f32, %k: i1, %o: f32):
    %s = arith.select %k, %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<40x8xf32>
  return %r : tensor<40x8xf32>
}

// -----

// A result that nothing else reads is made once.
// CHECK-LABEL: func @places_are_a_result
// CHECK:         schedule.kernel {{.*}} -> tensor<40xi32>
// CHECK-NOT:     schedule.kernel
func.func @places_are_a_result() -> tensor<40xi32> {
  %e = tensor.empty() : tensor<40xi32>
  %m = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%e : tensor<40xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    linalg.yield %j : i32
  } -> tensor<40xi32>
  return %m : tensor<40xi32>
}
