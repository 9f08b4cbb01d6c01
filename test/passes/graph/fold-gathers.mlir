// RUN: weir-opt %s --pass-pipeline='builtin.module(func.func(weir-fold-gathers))' -split-input-file | FileCheck %s

#k = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Tables of places that read all elements in their order, as torch finds the groups of a
// group norm: negative ones count from the end. A reshape.
// CHECK-LABEL: func @table_in_order
// CHECK-SAME:    %[[X:.*]]: tensor<2x2x3xf32>
// CHECK-NOT:     tensor.extract
// CHECK:         %[[R:.*]] = tensor.collapse_shape %[[X]] {{\[}}[0], [1, 2]] : tensor<2x2x3xf32> into tensor<2x6xf32>
// CHECK-NEXT:    return %[[R]]
func.func @table_in_order(%x: tensor<2x2x3xf32>) -> tensor<2x6xf32> {
  %groups = arith.constant dense<[0, 0, 0, 1, 1, 1]> : tensor<6xi64>
  %places = arith.constant dense<[[0, 1, 2, 0, 1, 2], [-3, -2, -1, -3, -2, -1]]> : tensor<2x6xi64>
  %zero = arith.constant 0 : i64
  %three = arith.constant 3 : i64
  %e = tensor.empty() : tensor<2x6xf32>
  %r = linalg.generic {indexing_maps = [#column, #k, #k], iterator_types = ["parallel", "parallel"]}
      ins(%groups, %places : tensor<6xi64>, tensor<2x6xi64>) outs(%e : tensor<2x6xf32>) {
  ^bb0(%g: i64, %p: i64, %out: f32):
    %i = linalg.index 0 : index
    %h = arith.index_cast %g : i64 to index
    %isBack = arith.cmpi slt, %p, %zero : i64
    %back = arith.addi %p, %three : i64
    %place = arith.select %isBack, %back, %p : i64
    %j = arith.index_cast %place : i64 to index
    %v = tensor.extract %x[%i, %h, %j] : tensor<2x2x3xf32>
    linalg.yield %v : f32
  } -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// The twins: two places exchanged, places that are no constants, fewer than there are, what
// is computed of an element, and a place that leads out, though the right number is made of it.
// CHECK-LABEL: func @tables_stay
// CHECK-COUNT-5: tensor.extract
// CHECK-NOT:     shape
func.func @tables_stay(%x: tensor<4xf32>, %k: tensor<4xi64>, %y: tensor<2x2xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>) {
  %first = arith.constant 0 : index
  %exchanged = arith.constant dense<[0, 2, 1, 3]> : tensor<4xi64>
  %ordered = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %fewer = arith.constant dense<[0, 1, 2]> : tensor<3xi64>
  %e = tensor.empty() : tensor<4xf32>
  %e3 = tensor.empty() : tensor<3xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%exchanged : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: i64, %out: f32):
    %j = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%j] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%k : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: i64, %out: f32):
    %j = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%j] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%fewer : tensor<3xi64>) outs(%e3 : tensor<3xf32>) {
  ^bb0(%p: i64, %out: f32):
    %j = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%j] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%ordered : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: i64, %out: f32):
    %j = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%j] : tensor<4xf32>
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%ordered : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: i64, %out: f32):
    %j = arith.index_cast %p : i64 to index
    %v = tensor.extract %y[%first, %j] : tensor<2x2xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %a, %b, %c, %d, %f : tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A table of one row, which a body reads at 0.
// CHECK-LABEL: func @one_row
// CHECK-NOT:     tensor.extract
// CHECK:         tensor.expand_shape
#row = affine_map<(i, j) -> (0, j)>
#k = affine_map<(i, j) -> (i, j)>
func.func @one_row(%x: tensor<3xf32>) -> tensor<1x3xf32> {
  %places = arith.constant dense<[[0, 1, 2]]> : tensor<1x3xi64>
  %e = tensor.empty() : tensor<1x3xf32>
  %a = linalg.generic {indexing_maps = [#row, #k], iterator_types = ["parallel", "parallel"]}
      ins(%places : tensor<1x3xi64>) outs(%e : tensor<1x3xf32>) {
  ^bb0(%p: i64, %out: f32):
    %j = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%j] : tensor<3xf32>
    linalg.yield %v : f32
  } -> tensor<1x3xf32>
  return %a : tensor<1x3xf32>
}

// -----

#id = affine_map<(c, f, k) -> (c, f, k)>

// Places that loops say are a map: the weights of a transposed convolution as torch-mlir reads them, and a window.
// CHECK-DAG: #[[TURNED:.*]] = affine_map<(d0, d1, d2) -> (d1, d0, -d2 + 4)>
// CHECK-DAG: #[[WINDOW:.*]] = affine_map<(d0, d1, d2) -> (d0 + d1 * 2, 1, d2)>
// CHECK-LABEL: func @places_of_loops
// CHECK-SAME:    %[[W:.*]]: tensor<3x2x5xf32>, %[[X:.*]]: tensor<6x2x5xf32>
// CHECK-NOT:     tensor.extract
// CHECK:         linalg.generic {indexing_maps = [#[[TURNED]], #{{.*}}], {{.*}} ins(%[[W]] : tensor<3x2x5xf32>)
// CHECK-NOT:     tensor.extract
// CHECK:         linalg.generic {indexing_maps = [#[[WINDOW]], #{{.*}}], {{.*}} ins(%[[X]] : tensor<6x2x5xf32>)
// CHECK-NOT:     tensor.extract
// CHECK:         return
func.func @places_of_loops(%w: tensor<3x2x5xf32>, %x: tensor<6x2x5xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x5xf32>) {
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %e = tensor.empty() : tensor<2x3x5xf32>
  %a = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<2x3x5xf32>) {
  ^bb0(%out: f32):
    %c = linalg.index 0 : index
    %f = linalg.index 1 : index
    %k = linalg.index 2 : index
    %back = arith.subi %four, %k : index
    %v = tensor.extract %w[%f, %c, %back] : tensor<3x2x5xf32>
    linalg.yield %v : f32
  } -> tensor<2x3x5xf32>
  %b = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<2x3x5xf32>) {
  ^bb0(%out: f32):
    %c = linalg.index 0 : index
    %f = linalg.index 1 : index
    %k = linalg.index 2 : index
    %twice = arith.muli %f, %two : index
    %place = arith.addi %c, %twice : index
    %v = tensor.extract %x[%place, %one, %k] : tensor<6x2x5xf32>
    linalg.yield %v : f32
  } -> tensor<2x3x5xf32>
  return %a, %b : tensor<2x3x5xf32>, tensor<2x3x5xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// The twins: a place before the first, a part of a dimension, and a product of loops.
// CHECK-LABEL: func @other_places
// CHECK:         tensor.extract
// CHECK:         tensor.extract
// CHECK:         tensor.extract
func.func @other_places(%x: tensor<5xf32>, %y: tensor<17xf32>) -> (tensor<5xf32>, tensor<4xf32>, tensor<5xf32>) {
  %three = arith.constant 3 : index
  %e = tensor.empty() : tensor<5xf32>
  %a = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %back = arith.subi %three, %i : index
    %v = tensor.extract %x[%back] : tensor<5xf32>
    linalg.yield %v : f32
  } -> tensor<5xf32>
  %f = tensor.empty() : tensor<4xf32>
  %b = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%f : tensor<4xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %x[%i] : tensor<5xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %c = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %square = arith.muli %i, %i : index
    %v = tensor.extract %y[%square] : tensor<17xf32>
    linalg.yield %v : f32
  } -> tensor<5xf32>
  return %a, %b, %c : tensor<5xf32>, tensor<4xf32>, tensor<5xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// Places in a resource, and no table at all; a table of other elements is not in order.
// CHECK-LABEL: func @resources
// CHECK-SAME:    %[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<1x2xf32>
// CHECK:         %[[B:.*]] = tensor.collapse_shape %[[Y]]
// CHECK:         %[[C:.*]] = linalg.generic
// CHECK:           tensor.extract
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[X]], %[[B]], %[[C]]
func.func @resources(%x: tensor<2xf32>, %y: tensor<1x2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %places = arith.constant dense_resource<places> : tensor<2xi64>
  %others = arith.constant dense_resource<others> : tensor<2xi64>
  %zero = arith.constant 0 : index
  %e = tensor.empty() : tensor<2xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%places : tensor<2xi64>) outs(%e : tensor<2xf32>) {
  ^bb0(%p: i64, %out: f32):
    %j = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%j] : tensor<2xf32>
    linalg.yield %v : f32
  } -> tensor<2xf32>
  %b = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<2xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %y[%zero, %i] : tensor<1x2xf32>
    linalg.yield %v : f32
  } -> tensor<2xf32>
  %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%others : tensor<2xi64>) outs(%e : tensor<2xf32>) {
  ^bb0(%p: i64, %out: f32):
    %j = arith.index_cast %p : i64 to index
    %v = tensor.extract %x[%j] : tensor<2xf32>
    linalg.yield %v : f32
  } -> tensor<2xf32>
  return %a, %b, %c : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

{-#
  dialect_resources: {
    builtin: {
      places: "0x0800000000000000000000000100000000000000",
      others: "0x0800000001000000000000000000000000000000"
    }
  }
#-}

// -----

// A constant that counts upward is the index of a loop, plus its first element. One that does not
// count stays, and so does one that alone says how far a loop goes.
// CHECK-LABEL: func @counts
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%{{.*}} : tensor<4xi64>) outs
// CHECK-NEXT:    ^bb0(%[[ODD:.*]]: i64, %{{.*}}: i64):
// CHECK-DAG:       %[[J:.*]] = linalg.index 1
// CHECK-DAG:       %[[I:.*]] = linalg.index 0
// CHECK-DAG:       %[[TWO:.*]] = arith.constant 2 : i64
// CHECK:           arith.addi %{{.*}}, %[[TWO]]
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%{{.*}} : tensor<4xi64>)
func.func @counts(%start: tensor<i64>) -> (tensor<3x4xi64>, tensor<i64>) {
  %rows = arith.constant dense<[[2], [3], [4]]> : tensor<3x1xi64>
  %columns = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %odd = arith.constant dense<[0, 1, 2, 4]> : tensor<4xi64>
  %e = tensor.empty() : tensor<3x4xi64>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (j)>,
                                        affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%rows, %columns, %odd : tensor<3x1xi64>, tensor<4xi64>, tensor<4xi64>) outs(%e : tensor<3x4xi64>) {
  ^bb0(%a: i64, %b: i64, %c: i64, %out: i64):
    %s = arith.muli %a, %b : i64
    %t = arith.addi %s, %c : i64
    linalg.yield %t : i64
  } -> tensor<3x4xi64>
  %sum = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
                         iterator_types = ["reduction"]}
      ins(%columns : tensor<4xi64>) outs(%start : tensor<i64>) {
  ^bb0(%a: i64, %out: i64):
    %s = arith.addi %a, %out : i64
    linalg.yield %s : i64
  } -> tensor<i64>
  return %y, %sum : tensor<3x4xi64>, tensor<i64>
}
