// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels -split-input-file | FileCheck %s

// CHECK-LABEL: func @split
// CHECK:         %[[X:.*]] = tensor.expand_shape %arg0
// CHECK:         schedule.kernel "map_6x2x7"(%[[X]])
// CHECK-NOT:     schedule.kernel
func.func @split(%x: tensor<12x7xf32>) -> tensor<6x2x7xf32> {
  %e = tensor.empty() : tensor<12x7xf32>
  %f = tensor.empty() : tensor<6x2x7xf32>
  %0 = linalg.exp ins(%x : tensor<12x7xf32>) outs(%e : tensor<12x7xf32>) -> tensor<12x7xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [6, 2, 7] : tensor<12x7xf32> into tensor<6x2x7xf32>
  %2 = linalg.tanh ins(%1 : tensor<6x2x7xf32>) outs(%f : tensor<6x2x7xf32>) -> tensor<6x2x7xf32>
  return %2 : tensor<6x2x7xf32>
}

// -----

// CHECK-LABEL: func @merged
// CHECK:         %[[Y:.*]] = schedule.kernel "map_6x2x7"(%arg0)
// CHECK-NOT:     schedule.kernel
// CHECK:         tensor.collapse_shape %[[Y]]
func.func @merged(%x: tensor<6x2x7xf32>) -> tensor<84xf32> {
  %e = tensor.empty() : tensor<6x2x7xf32>
  %f = tensor.empty() : tensor<84xf32>
  %0 = linalg.exp ins(%x : tensor<6x2x7xf32>) outs(%e : tensor<6x2x7xf32>) -> tensor<6x2x7xf32>
  %1 = tensor.collapse_shape %0 [[0, 1, 2]] : tensor<6x2x7xf32> into tensor<84xf32>
  %2 = linalg.tanh ins(%1 : tensor<84xf32>) outs(%f : tensor<84xf32>) -> tensor<84xf32>
  return %2 : tensor<84xf32>
}

// -----

// The twin: no loops count 2 x 6 and 3 x 4 elements alike.
// CHECK-LABEL: func @cut_otherwise
// CHECK:         schedule.kernel "map_2x6"
// CHECK:         schedule.kernel "map_3x4"
func.func @cut_otherwise(%x: tensor<2x6xf32>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<2x6xf32>
  %f = tensor.empty() : tensor<3x4xf32>
  %0 = linalg.exp ins(%x : tensor<2x6xf32>) outs(%e : tensor<2x6xf32>) -> tensor<2x6xf32>
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<2x6xf32> into tensor<12xf32>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [3, 4] : tensor<12xf32> into tensor<3x4xf32>
  %3 = linalg.tanh ins(%2 : tensor<3x4xf32>) outs(%f : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %3 : tensor<3x4xf32>
}

// -----

// Another twin: what must be alone stays as it is.
// CHECK-LABEL: func @alone
// CHECK:         schedule.kernel "map_12x7"
// CHECK:         schedule.kernel "map_6x2x7"
func.func @alone(%x: tensor<12x7xf32>) -> tensor<6x2x7xf32> {
  %e = tensor.empty() : tensor<12x7xf32>
  %f = tensor.empty() : tensor<6x2x7xf32>
  %0 = linalg.exp {weir.no_fuse} ins(%x : tensor<12x7xf32>) outs(%e : tensor<12x7xf32>) -> tensor<12x7xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [6, 2, 7] : tensor<12x7xf32> into tensor<6x2x7xf32>
  %2 = linalg.tanh ins(%1 : tensor<6x2x7xf32>) outs(%f : tensor<6x2x7xf32>) -> tensor<6x2x7xf32>
  return %2 : tensor<6x2x7xf32>
}

// -----

#rows = affine_map<(r, c) -> (r, 0)>
#all = affine_map<(r, c) -> (r, c)>

// Dimensions of size 1, and what a reduction begins with: no tensor, no kernel.
// CHECK-LABEL: func @row
// CHECK:         schedule.kernel "row_3x4x7"(%{{.*}}) : (tensor<3x4x7xf32>) -> tensor<3x4x7xf32>
// CHECK-NOT:     schedule.kernel
func.func @row(%x: tensor<12x7xf32>) -> tensor<3x4x1x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x1xf32>
  %f = tensor.empty() : tensor<12x7xf32>
  %g = tensor.empty() : tensor<3x4x1x7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<12x1xf32>) -> tensor<12x1xf32>
  %0 = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<12x7xf32>) outs(%z : tensor<12x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<12x1xf32>
  %1 = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %0 : tensor<12x7xf32>, tensor<12x1xf32>) outs(%f : tensor<12x7xf32>) {
  ^bb0(%a: f32, %t: f32, %o: f32):
    %s = arith.divf %a, %t : f32
    linalg.yield %s : f32
  } -> tensor<12x7xf32>
  %2 = tensor.expand_shape %1 [[0, 1], [2, 3]] output_shape [3, 4, 1, 7] : tensor<12x7xf32> into tensor<3x4x1x7xf32>
  %3 = linalg.exp ins(%2 : tensor<3x4x1x7xf32>) outs(%g : tensor<3x4x1x7xf32>) -> tensor<3x4x1x7xf32>
  return %3 : tensor<3x4x1x7xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#part = affine_map<(d0, d1, d2) -> (d0, d1 + 3, d2)>

// Dimensions of size 1 stay where a neighbour keeps them, such as one that reads a slice.
// CHECK-LABEL: func @behind_slice
// CHECK:         schedule.kernel "map_4x7"(%arg0) : (tensor<1x9x7xf32>) -> tensor<1x4x7xf32>
// CHECK-NOT:     schedule.kernel
func.func @behind_slice(%x: tensor<1x9x7xf32>) -> tensor<1x4x7xf32> {
  %e = tensor.empty() : tensor<1x4x7xf32>
  %0 = linalg.generic {indexing_maps = [#part, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<1x9x7xf32>) outs(%e : tensor<1x4x7xf32>) {
  ^bb0(%a: f32, %out: f32):
    %y = math.cos %a : f32
    linalg.yield %y : f32
  } -> tensor<1x4x7xf32>
  %1 = linalg.exp ins(%0 : tensor<1x4x7xf32>) outs(%e : tensor<1x4x7xf32>) -> tensor<1x4x7xf32>
  %2 = linalg.tanh ins(%1 : tensor<1x4x7xf32>) outs(%e : tensor<1x4x7xf32>) -> tensor<1x4x7xf32>
  return %2 : tensor<1x4x7xf32>
}

// -----

// So does one that reduces nothing else.
// CHECK-LABEL: func @of_one
// CHECK:         schedule.kernel "row_4"(%{{.*}}) : (tensor<4x1xf32>) -> tensor<4x1xf32>
// CHECK-NOT:     schedule.kernel
func.func @of_one(%x: tensor<4x1xf32>) -> tensor<4x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x1xf32>
  %f = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%x : tensor<4x1xf32>) outs(%e : tensor<4x1xf32>) -> tensor<4x1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.reduce ins(%0 : tensor<4x1xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    }
  %2 = linalg.broadcast ins(%1 : tensor<4xf32>) outs(%e : tensor<4x1xf32>) dimensions = [1]
  %3 = linalg.sub ins(%0, %2 : tensor<4x1xf32>, tensor<4x1xf32>) outs(%e : tensor<4x1xf32>) -> tensor<4x1xf32>
  return %3 : tensor<4x1xf32>
}

// -----

// The twin: elsewhere they go.
// CHECK-LABEL: func @behind_argument
// CHECK:         schedule.kernel "map_4x7"(%{{.*}}) : (tensor<4x7xf32>) -> tensor<4x7xf32>
// CHECK-NOT:     schedule.kernel
func.func @behind_argument(%x: tensor<1x4x7xf32>) -> tensor<1x4x7xf32> {
  %e = tensor.empty() : tensor<1x4x7xf32>
  %1 = linalg.exp ins(%x : tensor<1x4x7xf32>) outs(%e : tensor<1x4x7xf32>) -> tensor<1x4x7xf32>
  %2 = linalg.tanh ins(%1 : tensor<1x4x7xf32>) outs(%e : tensor<1x4x7xf32>) -> tensor<1x4x7xf32>
  return %2 : tensor<1x4x7xf32>
}

// -----

#channel = affine_map<(b, t, c) -> (c)>
#id = affine_map<(b, t, c) -> (b, t, c)>

// What follows a contraction gets its loops, so that its tiles stay as they are.
// CHECK-LABEL: func @behind_contraction
// CHECK:         schedule.kernel "contraction_10x12x6"
// CHECK-NOT:     schedule.kernel
func.func @behind_contraction(%x: tensor<10x6xf32>, %w: tensor<6x12xf32>, %b: tensor<12xf32>) -> tensor<2x5x12xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<10x12xf32>
  %f = tensor.empty() : tensor<2x5x12xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<10x12xf32>) -> tensor<10x12xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<10x6xf32>, tensor<6x12xf32>) outs(%z : tensor<10x12xf32>) -> tensor<10x12xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [2, 5, 12] : tensor<10x12xf32> into tensor<2x5x12xf32>
  %2 = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%1, %b : tensor<2x5x12xf32>, tensor<12xf32>) outs(%f : tensor<2x5x12xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<2x5x12xf32>
  %3 = linalg.exp ins(%2 : tensor<2x5x12xf32>) outs(%f : tensor<2x5x12xf32>) -> tensor<2x5x12xf32>
  return %3 : tensor<2x5x12xf32>
}

// -----

#time = affine_map<(b, t, c) -> (t)>
#id = affine_map<(b, t, c) -> (b, t, c)>

// The twin: one row of the product has more than one of %b's numbers.
// CHECK-LABEL: func @behind_contraction_by_row
// CHECK:         schedule.kernel "contraction_10x12x6"
// CHECK:         schedule.kernel "map_2x5x12"
func.func @behind_contraction_by_row(%x: tensor<10x6xf32>, %w: tensor<6x12xf32>, %b: tensor<5xf32>) -> tensor<2x5x12xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<10x12xf32>
  %f = tensor.empty() : tensor<2x5x12xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<10x12xf32>) -> tensor<10x12xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<10x6xf32>, tensor<6x12xf32>) outs(%z : tensor<10x12xf32>) -> tensor<10x12xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [2, 5, 12] : tensor<10x12xf32> into tensor<2x5x12xf32>
  %2 = linalg.generic {indexing_maps = [#id, #time, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%1, %b : tensor<2x5x12xf32>, tensor<5xf32>) outs(%f : tensor<2x5x12xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<2x5x12xf32>
  return %2 : tensor<2x5x12xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>

// A body that counts, in loops that were one.
// CHECK-LABEL: func @counts
// CHECK:         schedule.kernel "map_3x4x7"
// CHECK-DAG:       %[[I:.*]] = linalg.index 0
// CHECK-DAG:       %[[J:.*]] = linalg.index 1
// CHECK-DAG:       %[[ROWS:.*]] = arith.muli %[[I]], %c4
// CHECK:           arith.addi {{.*}}%[[ROWS]]
// CHECK-NOT:     schedule.kernel
func.func @counts(%x: tensor<12x7xf32>) -> tensor<3x4x7xf32> {
  %e = tensor.empty() : tensor<12x7xf32>
  %f = tensor.empty() : tensor<3x4x7xf32>
  %zero = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<12x7xf32>) outs(%e : tensor<12x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %lower = arith.cmpi sge, %i, %j : index
    %s = arith.select %lower, %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<12x7xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [3, 4, 7] : tensor<12x7xf32> into tensor<3x4x7xf32>
  %2 = linalg.exp ins(%1 : tensor<3x4x7xf32>) outs(%f : tensor<3x4x7xf32>) -> tensor<3x4x7xf32>
  return %2 : tensor<3x4x7xf32>
}

// -----

#rows = affine_map<(r, c) -> (r)>
#columns = affine_map<(r, c) -> (c)>
#all = affine_map<(r, c) -> (r, c)>
#id = affine_map<(b, r, c) -> (b, r, c)>
#matrix = affine_map<(b, r, c) -> (r, c)>

// CHECK-LABEL: func @outer_product
// CHECK:         schedule.kernel "map_3x4x7"(%arg0, %arg1, %arg2)
// CHECK-NOT:     schedule.kernel
func.func @outer_product(%x: tensor<3x4x7xf32>, %a: tensor<4xf32>, %b: tensor<7xf32>) -> tensor<3x4x7xf32> {
  %e = tensor.empty() : tensor<4x7xf32>
  %f = tensor.empty() : tensor<3x4x7xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #columns, #all], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<4xf32>, tensor<7xf32>) outs(%e : tensor<4x7xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x7xf32>
  %1 = linalg.generic {indexing_maps = [#id, #matrix, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %0 : tensor<3x4x7xf32>, tensor<4x7xf32>) outs(%f : tensor<3x4x7xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<3x4x7xf32>
  return %1 : tensor<3x4x7xf32>
}

// -----

#rows = affine_map<(r, c) -> (r)>
#columns = affine_map<(r, c) -> (c)>
#all = affine_map<(r, c) -> (r, c)>
#id = affine_map<(b, r, c) -> (b, r, c)>
#matrix = affine_map<(b, r, c) -> (r, c)>

// Twins: what is dear is computed once, and so is what has its elements already.
// CHECK-LABEL: func @kept
// CHECK:         schedule.kernel "map_4x7"(%arg1, %arg2)
// CHECK:         schedule.kernel "map_3x4x7"
func.func @kept(%x: tensor<3x4x7xf32>, %a: tensor<4xf32>, %b: tensor<7xf32>, %c: tensor<4x7xf32>) -> tensor<3x4x7xf32> {
  %e = tensor.empty() : tensor<4x7xf32>
  %f = tensor.empty() : tensor<3x4x7xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #columns, #all], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<4xf32>, tensor<7xf32>) outs(%e : tensor<4x7xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = math.powf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x7xf32>
  %1 = linalg.generic {indexing_maps = [#id, #matrix, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %0 : tensor<3x4x7xf32>, tensor<4x7xf32>) outs(%f : tensor<3x4x7xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<3x4x7xf32>
  return %1 : tensor<3x4x7xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#id3 = affine_map<(n, i, j) -> (n, i, j)>
#m = affine_map<(n, i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// A causal mask: from nothing but indices, and with a tensor that is the same everywhere.
// CHECK-LABEL: func @mask
// CHECK:         schedule.kernel "map_3x5x5"(%arg0) : (tensor<3x5x5xf32>)
// CHECK-NOT:     schedule.kernel
func.func @mask(%x: tensor<3x5x5xf32>) -> tensor<3x5x5xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %all = arith.constant dense<true> : tensor<5x5xi1>
  %e1 = tensor.empty() : tensor<5x5xi1>
  %e = tensor.empty() : tensor<3x5x5xf32>
  %later = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e1 : tensor<5x5xi1>) {
  ^bb0(%out: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi ult, %i, %j : index
    linalg.yield %c : i1
  } -> tensor<5x5xi1>
  %both = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%later, %all : tensor<5x5xi1>, tensor<5x5xi1>) outs(%e1 : tensor<5x5xi1>) {
  ^bb0(%a: i1, %b: i1, %out: i1):
    %c = arith.andi %a, %b : i1
    linalg.yield %c : i1
  } -> tensor<5x5xi1>
  %r = linalg.generic {indexing_maps = [#m, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%both, %x : tensor<5x5xi1>, tensor<3x5x5xf32>) outs(%e : tensor<3x5x5xf32>) {
  ^bb0(%a: i1, %b: f32, %out: f32):
    %c = arith.select %a, %lowest, %b : f32
    linalg.yield %c : f32
  } -> tensor<3x5x5xf32>
  return %r : tensor<3x5x5xf32>
}

// -----

// Heads: a contraction has the batches that its factors and its reader have, and their
// transposes are how it reads and writes.
// CHECK-DAG:   #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d4)>
// CHECK-DAG:   #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d4)>
// CHECK-DAG:   #[[P:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3)>
// CHECK-LABEL: func @heads
// CHECK-SAME:    %[[X:.*]]: tensor<26x20xf32>, %[[Y:.*]]: tensor<2x13x4x5xf32>
// CHECK:         %[[E:.*]] = tensor.expand_shape %[[X]]
// CHECK:         %[[R:.*]] = schedule.kernel "contraction_2x4x13x13x5"(%[[E]], %[[Y]]) : (tensor<2x13x4x5xf32>, tensor<2x13x4x5xf32>) -> tensor<2x13x4x13xf32>
// CHECK:           indexing_maps = [#[[Q]], #[[K]], #[[P]]]
// CHECK-NOT:     schedule.kernel
// CHECK:         tensor.collapse_shape %[[R]]
func.func @heads(%x: tensor<26x20xf32>, %y: tensor<2x13x4x5xf32>) -> tensor<26x52xf32> {
  %zero = arith.constant 0.0 : f32
  %q0 = tensor.expand_shape %x [[0, 1], [2, 3]] output_shape [2, 13, 4, 5] : tensor<26x20xf32> into tensor<2x13x4x5xf32>
  %eq = tensor.empty() : tensor<2x4x13x5xf32>
  %ek = tensor.empty() : tensor<2x4x5x13xf32>
  %q = linalg.transpose ins(%q0 : tensor<2x13x4x5xf32>) outs(%eq : tensor<2x4x13x5xf32>) permutation = [0, 2, 1, 3]
  %k = linalg.transpose ins(%y : tensor<2x13x4x5xf32>) outs(%ek : tensor<2x4x5x13xf32>) permutation = [0, 2, 3, 1]
  %qs = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x4x13x5xf32> into tensor<8x13x5xf32>
  %ks = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x4x5x13xf32> into tensor<8x5x13xf32>
  %es = tensor.empty() : tensor<8x13x13xf32>
  %init = linalg.fill ins(%zero : f32) outs(%es : tensor<8x13x13xf32>) -> tensor<8x13x13xf32>
  %s = linalg.batch_matmul ins(%qs, %ks : tensor<8x13x5xf32>, tensor<8x5x13xf32>) outs(%init : tensor<8x13x13xf32>) -> tensor<8x13x13xf32>
  %t = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [2, 4, 13, 13] : tensor<8x13x13xf32> into tensor<2x4x13x13xf32>
  %er = tensor.empty() : tensor<2x13x4x13xf32>
  %r = linalg.transpose ins(%t : tensor<2x4x13x13xf32>) outs(%er : tensor<2x13x4x13xf32>) permutation = [0, 2, 1, 3]
  %c = tensor.collapse_shape %r [[0, 1], [2, 3]] : tensor<2x13x4x13xf32> into tensor<26x52xf32>
  return %c : tensor<26x52xf32>
}

// -----

// The twin: a contraction keeps rows that its reader splits.
// CHECK-LABEL: func @rows
// CHECK:         schedule.kernel "contraction_26x20x5"
// CHECK:         schedule.kernel "map_13x2x20"
func.func @rows(%x: tensor<26x5xf32>, %y: tensor<5x20xf32>) -> tensor<13x2x20xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<26x20xf32>
  %init = linalg.fill ins(%zero : f32) outs(%es : tensor<26x20xf32>) -> tensor<26x20xf32>
  %s = linalg.matmul ins(%x, %y : tensor<26x5xf32>, tensor<5x20xf32>) outs(%init : tensor<26x20xf32>) -> tensor<26x20xf32>
  %t = tensor.expand_shape %s [[0, 1], [2]] output_shape [2, 13, 20] : tensor<26x20xf32> into tensor<2x13x20xf32>
  %er = tensor.empty() : tensor<13x2x20xf32>
  %r = linalg.transpose ins(%t : tensor<2x13x20xf32>) outs(%er : tensor<13x2x20xf32>) permutation = [1, 0, 2]
  return %r : tensor<13x2x20xf32>
}

// -----

#id = affine_map<(b, g, r, i, d) -> (b, g, r, i, d)>
#shared = affine_map<(b, g, r, i, d) -> (b, g, i, d)>

// Heads that share a factor: what repeats it goes, too, behind a transpose.
// CHECK-DAG:   #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d5)>
// CHECK-LABEL: func @repeated
// CHECK-SAME:    %[[Q:.*]]: tensor<2x6x9x5xf32>, %[[KS:.*]]: tensor<2x2x7x5xf32>
// CHECK:         %[[E:.*]] = tensor.expand_shape %[[Q]] {{.*}} output_shape [2, 2, 3, 9, 5]
// CHECK:         schedule.kernel "contraction_2x2x3x9x7x5"(%[[E]], %[[KS]])
// CHECK:           indexing_maps = [{{.*}}, #[[K]], {{.*}}]
// CHECK-NOT:     schedule.kernel
func.func @repeated(%q: tensor<2x6x9x5xf32>, %k: tensor<2x2x7x5xf32>) -> tensor<2x6x9x7xf32> {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<2x2x3x7x5xf32>
  %r = linalg.generic {indexing_maps = [#shared, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%k : tensor<2x2x7x5xf32>) outs(%er : tensor<2x2x3x7x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<2x2x3x7x5xf32>
  %h = tensor.collapse_shape %r [[0], [1, 2], [3], [4]] : tensor<2x2x3x7x5xf32> into tensor<2x6x7x5xf32>
  %et = tensor.empty() : tensor<2x6x5x7xf32>
  %t = linalg.transpose ins(%h : tensor<2x6x7x5xf32>) outs(%et : tensor<2x6x5x7xf32>) permutation = [0, 1, 3, 2]
  %qs = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x6x9x5xf32> into tensor<12x9x5xf32>
  %ks = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<2x6x5x7xf32> into tensor<12x5x7xf32>
  %es = tensor.empty() : tensor<12x9x7xf32>
  %init = linalg.fill ins(%zero : f32) outs(%es : tensor<12x9x7xf32>) -> tensor<12x9x7xf32>
  %s = linalg.batch_matmul ins(%qs, %ks : tensor<12x9x5xf32>, tensor<12x5x7xf32>) outs(%init : tensor<12x9x7xf32>) -> tensor<12x9x7xf32>
  %y = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [2, 6, 9, 7] : tensor<12x9x7xf32> into tensor<2x6x9x7xf32>
  return %y : tensor<2x6x9x7xf32>
}
