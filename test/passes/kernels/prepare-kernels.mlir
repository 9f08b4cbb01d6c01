// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels -split-input-file | FileCheck %s

// The reshape moves to the argument; both ops get three loops.
// CHECK-LABEL: func @reshape_moves_to_the_argument
// CHECK:         %[[X:.*]] = tensor.expand_shape %arg0
// CHECK:         linalg.generic {{.*}} ins(%[[X]] : tensor<6x2x7xf32>)
// CHECK:           math.exp
// CHECK-NOT:     tensor.expand_shape
// CHECK:           math.tanh
func.func @reshape_moves_to_the_argument(%x: tensor<12x7xf32>) -> tensor<6x2x7xf32> {
  %e = tensor.empty() : tensor<12x7xf32>
  %f = tensor.empty() : tensor<6x2x7xf32>
  %0 = linalg.exp ins(%x : tensor<12x7xf32>) outs(%e : tensor<12x7xf32>) -> tensor<12x7xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [6, 2, 7] : tensor<12x7xf32> into tensor<6x2x7xf32>
  %2 = linalg.tanh ins(%1 : tensor<6x2x7xf32>) outs(%f : tensor<6x2x7xf32>) -> tensor<6x2x7xf32>
  return %2 : tensor<6x2x7xf32>
}

// The twin: an op that must be alone keeps its loops.
// CHECK-LABEL: func @alone_keeps_its_loops
// CHECK:         %[[E:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<12x7xf32>) {{.*}} {weir.no_fuse}
// CHECK:         tensor.expand_shape %[[E]]
func.func @alone_keeps_its_loops(%x: tensor<12x7xf32>) -> tensor<6x2x7xf32> {
  %e = tensor.empty() : tensor<12x7xf32>
  %f = tensor.empty() : tensor<6x2x7xf32>
  %0 = linalg.exp {weir.no_fuse} ins(%x : tensor<12x7xf32>) outs(%e : tensor<12x7xf32>) -> tensor<12x7xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [6, 2, 7] : tensor<12x7xf32> into tensor<6x2x7xf32>
  %2 = linalg.tanh ins(%1 : tensor<6x2x7xf32>) outs(%f : tensor<6x2x7xf32>) -> tensor<6x2x7xf32>
  return %2 : tensor<6x2x7xf32>
}

// -----

// CHECK-DAG: #[[LHS:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[RHS:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func @transpose_becomes_a_map
// CHECK-NOT:     linalg.transpose
// CHECK:         linalg.generic {indexing_maps = [#[[LHS]], #[[RHS]], #{{.*}}], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 :
func.func @transpose_becomes_a_map(%x: tensor<4x6xf32>, %w: tensor<8x6xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %te = tensor.empty() : tensor<6x8xf32>
  %t = linalg.transpose ins(%w : tensor<8x6xf32>) outs(%te : tensor<6x8xf32>) permutation = [1, 0]
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %m = linalg.matmul ins(%x, %t : tensor<4x6xf32>, tensor<6x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %m : tensor<4x8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#col = affine_map<(r, c) -> (c)>

// 4096 rows are cut into 64 parts of 64.
// CHECK: #[[PART:.*]] = affine_map<(d0, d1) -> (d0 floordiv 64, d1)>
// CHECK-LABEL: func @columns_are_cut
// CHECK:         %[[PARTS:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[PART]]]
// CHECK-SAME:      outs(%{{.*}} : tensor<64x8xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[PARTS]] : tensor<64x8xf32>) outs(%{{.*}} : tensor<8xf32>)
func.func @columns_are_cut(%x: tensor<4096x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<4096x8xf32>) outs(%zero : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %c : tensor<8xf32>
}

// The twin: 6 rows are one part.
// CHECK-LABEL: func @few_rows_stay_whole
// CHECK:         linalg.generic {{.*}} ins(%arg0 : tensor<6x8xf32>) outs(%{{.*}} : tensor<8xf32>)
// CHECK-NOT:     linalg.generic
func.func @few_rows_stay_whole(%x: tensor<6x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<6x8xf32>) outs(%zero : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %c : tensor<8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#flip = affine_map<(r, c) -> (c, r)>

// The contraction makes its result in the order in which the sum reads it.
// CHECK-LABEL: func @contraction_is_turned
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 {{.*}} outs(%{{.*}} : tensor<8x4xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[M]], %arg2 : tensor<8x4xf32>, tensor<8x4xf32>)
func.func @contraction_is_turned(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>, %b: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<4x8xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %m = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x8xf32>) outs(%zero : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#flip, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// The twin: another reader wants the order as it is.
// CHECK-LABEL: func @shared_contraction_stays
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 {{.*}} outs(%{{.*}} : tensor<4x8xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[M]], %arg2 : tensor<4x8xf32>, tensor<8x4xf32>)
func.func @shared_contraction_stays(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>, %b: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4x8xf32>) {
  %zero = arith.constant dense<0.0> : tensor<4x8xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %m = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x8xf32>) outs(%zero : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#flip, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %y, %m : tensor<8x4xf32>, tensor<4x8xf32>
}

// -----

#query = affine_map<(h, g, i, d, k) -> (h, g, i, k)>
#key = affine_map<(h, g, i, d, k) -> (h, g, k, d)>
#head = affine_map<(h, g, i, d, k) -> (h, g, i, d)>

// The sum over batches of a contraction is part of its sums.
// CHECK-LABEL: func @sum_over_batches
// CHECK:         linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel", "parallel", "reduction"]
// CHECK-NOT:     linalg.generic
func.func @sum_over_batches(%a: tensor<3x2x5x6xf32>, %b: tensor<3x2x6x4xf32>) -> tensor<3x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x2x5x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2x5x4xf32>) -> tensor<3x2x5x4xf32>
  %e1 = tensor.empty() : tensor<3x5x4xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<3x5x4xf32>) -> tensor<3x5x4xf32>
  %c = linalg.generic {indexing_maps = [#query, #key, #head], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<3x2x5x6xf32>, tensor<3x2x6x4xf32>) outs(%z : tensor<3x2x5x4xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<3x2x5x4xf32>
  %r = linalg.reduce ins(%c : tensor<3x2x5x4xf32>) outs(%z1 : tensor<3x5x4xf32>) dimensions = [1]
      (%x: f32, %o: f32) {
        %s = arith.addf %o, %x : f32
        linalg.yield %s : f32
      }
  return %r : tensor<3x5x4xf32>
}

// -----

#rows = affine_map<(g, i, d, k) -> (g, i, k)>
#columns = affine_map<(g, i, d, k) -> (k, d)>
#all = affine_map<(g, i, d, k) -> (g, i, d)>

// A sum over rows of the product is not: it would make each product once for each row.
// CHECK-LABEL: func @sum_over_rows
// CHECK:         linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK:         linalg.generic {{.*}}"reduction"
func.func @sum_over_rows(%a: tensor<3x5x6xf32>, %b: tensor<6x4xf32>) -> tensor<5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5x4xf32>) -> tensor<3x5x4xf32>
  %e1 = tensor.empty() : tensor<5x4xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<5x4xf32>) -> tensor<5x4xf32>
  %c = linalg.generic {indexing_maps = [#rows, #columns, #all], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<3x5x6xf32>, tensor<6x4xf32>) outs(%z : tensor<3x5x4xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<3x5x4xf32>
  %r = linalg.reduce ins(%c : tensor<3x5x4xf32>) outs(%z1 : tensor<5x4xf32>) dimensions = [0]
      (%x: f32, %o: f32) {
        %s = arith.addf %o, %x : f32
        linalg.yield %s : f32
      }
  return %r : tensor<5x4xf32>
}

// What products with 0 are added to stays as it is; the twin adds something.

// CHECK-LABEL: func.func @unchanged(
// CHECK-SAME: %[[X:.*]]: tensor<3x5xi32>, %[[START:.*]]: tensor<3xi32>
// CHECK-NOT: linalg.generic
// CHECK: return %[[START]] : tensor<3xi32>
func.func @unchanged(%x: tensor<3x5xi32>, %start: tensor<3xi32>) -> tensor<3xi32> {
  %zero = arith.constant dense<0> : tensor<3x5xi32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                                          affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x, %zero : tensor<3x5xi32>, tensor<3x5xi32>) outs(%start : tensor<3xi32>) {
  ^bb0(%a: i32, %b: i32, %o: i32):
    %p = arith.muli %a, %b : i32
    %s = arith.addi %o, %p : i32
    linalg.yield %s : i32
  } -> tensor<3xi32>
  return %sum : tensor<3xi32>
}

// CHECK-LABEL: func.func @changed(
// CHECK: linalg.generic
// CHECK: arith.addi
func.func @changed(%x: tensor<3x5xi32>, %start: tensor<3xi32>) -> tensor<3xi32> {
  %one = arith.constant dense<1> : tensor<3x5xi32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                                          affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x, %one : tensor<3x5xi32>, tensor<3x5xi32>) outs(%start : tensor<3xi32>) {
  ^bb0(%a: i32, %b: i32, %o: i32):
    %p = arith.muli %a, %b : i32
    %s = arith.addi %o, %p : i32
    linalg.yield %s : i32
  } -> tensor<3xi32>
  return %sum : tensor<3xi32>
}

// The weights are 1, and only they say how long a window is: an operand that nothing reads says it.

// CHECK-LABEL: func.func @window_of_ones(
// CHECK: %[[SIZE:.*]] = tensor.empty() : tensor<3xi8>
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[SIZE]] : tensor<7xi8>, tensor<3xi8>)
// CHECK: return %[[SUM]]
func.func @window_of_ones(%x: tensor<7xi8>) -> tensor<5xi32> {
  %ones = arith.constant dense<2> : tensor<3xi8>
  %start = arith.constant dense<0> : tensor<5xi32>
  %e = tensor.empty() : tensor<3xi8>
  %w = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%ones : tensor<3xi8>) outs(%e : tensor<3xi8>) {
  ^bb0(%a: i8, %o: i8):
    %one = arith.constant 1 : i8
    %s = arith.subi %a, %one : i8
    linalg.yield %s : i8
  } -> tensor<3xi8>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<7xi8>, tensor<3xi8>) outs(%start : tensor<5xi32>) {
  ^bb0(%a: i8, %b: i8, %o: i32):
    %c = arith.extsi %a : i8 to i32
    %d = arith.extsi %b : i8 to i32
    %p = arith.muli %c, %d : i32
    %s = arith.addi %o, %p : i32
    linalg.yield %s : i32
  } -> tensor<5xi32>
  return %sum : tensor<5xi32>
}
