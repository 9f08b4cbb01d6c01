// RUN: weir-opt %s --pass-pipeline='builtin.module(func.func(weir-normalize-graph))' -split-input-file | FileCheck %s

#rows = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>

// An index that data gives is clamped before it loses bits; one that a loop of as
// many trips gives is not. The assertion goes.
// CHECK-LABEL: func @gather
// CHECK:         ^bb0(%[[IN:.*]]: i64, %{{.*}}: f32):
// CHECK-NOT:       cf.assert
// CHECK:           %[[LOW:.*]] = arith.maxsi %[[IN]], %{{.*}} : i64
// CHECK:           %[[MID:.*]] = arith.minsi %[[LOW]], %c10_i64{{.*}} : i64
// CHECK:           %[[AT:.*]] = arith.index_cast %[[MID]] : i64 to index
// CHECK:           tensor.extract %{{.*}}[%[[AT]], %[[J:.*]]] : tensor<11x6xf32>
// CHECK-NOT:       arith.maxsi {{.*}} : index
func.func @gather(%x: tensor<11x6xf32>, %k: tensor<5xi64>) -> tensor<5x6xf32> {
  %e = tensor.empty() : tensor<5x6xf32>
  %c11 = arith.constant 11 : index
  %r = linalg.generic {indexing_maps = [#rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%k : tensor<5xi64>) outs(%e : tensor<5x6xf32>) {
  ^bb0(%in: i64, %out: f32):
    %at = arith.index_cast %in : i64 to index
    %j = linalg.index 1 : index
    %ok = arith.cmpi slt, %at, %c11 : index
    cf.assert %ok, "index must be smaller than dim size"
    %v = tensor.extract %x[%at, %j] : tensor<11x6xf32>
    linalg.yield %v : f32
  } -> tensor<5x6xf32>
  return %r : tensor<5x6xf32>
}

// -----

// The twin: a loop of more trips than the tensor has rows, and a constant in range.
// CHECK-LABEL: func @loops
// CHECK:         %[[I:.*]] = linalg.index 0 : index
// CHECK:         %[[LOW:.*]] = arith.maxsi %[[I]], %{{.*}} : index
// CHECK:         %[[AT:.*]] = arith.minsi %[[LOW]], %c2{{.*}} : index
// CHECK:         tensor.extract %{{.*}}[%[[AT]], %c1{{.*}}]
func.func @loops(%x: tensor<3x2xf32>) -> tensor<5xf32> {
  %c1 = arith.constant 1 : index
  %r = tensor.empty() : tensor<5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%r : tensor<5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %x[%i, %c1] : tensor<3x2xf32>
    linalg.yield %v : f32
  } -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// -----

// CHECK-LABEL: func @casts
// CHECK-NOT:     tensor.cast
// CHECK:         tensor.concat dim(1) %arg0, %arg1 : (tensor<3x2xf32>, tensor<3x5xf32>) -> tensor<3x7xf32>
func.func @casts(%a: tensor<3x2xf32>, %b: tensor<3x5xf32>) -> tensor<3x7xf32> {
  %0 = tensor.cast %a : tensor<3x2xf32> to tensor<3x?xf32>
  %1 = tensor.cast %b : tensor<3x5xf32> to tensor<3x?xf32>
  %2 = tensor.concat dim(1) %0, %1 : (tensor<3x?xf32>, tensor<3x?xf32>) -> tensor<3x?xf32>
  %3 = tensor.cast %2 : tensor<3x?xf32> to tensor<3x7xf32>
  return %3 : tensor<3x7xf32>
}

// -----

// What isn't known stays, for the gate to name.
// CHECK-LABEL: func @unknown
// CHECK:         tensor.cast %arg0 : tensor<?xf32> to tensor<4xf32>
func.func @unknown(%a: tensor<?xf32>) -> tensor<4xf32> {
  %0 = tensor.cast %a : tensor<?xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func @conditional
// CHECK-NOT:     scf.if
// CHECK:         %[[A:.*]] = tensor.extract %arg0
// CHECK:         arith.select %{{.*}}, %[[A]], %{{.*}} : f32
func.func @conditional(%x: tensor<5xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c5 = arith.constant 5 : index
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%y : tensor<8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %first = arith.cmpi ult, %i, %c5 : index
    %v = scf.if %first -> f32 {
      %a = tensor.extract %x[%i] : tensor<5xf32>
      scf.yield %a : f32
    } else {
      scf.yield %out : f32
    }
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// The twin: a division that may not be done where it isn't asked for.
// CHECK-LABEL: func @conditional_division
// CHECK:         scf.if
func.func @conditional_division(%x: tensor<8xi64>) -> tensor<8xi64> {
  %c5 = arith.constant 5 : i64
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%x : tensor<8xi64>) {
  ^bb0(%out: i64):
    %first = arith.cmpi ne, %out, %c5 : i64
    %v = scf.if %first -> i64 {
      %a = arith.divsi %c5, %out : i64
      scf.yield %a : i64
    } else {
      scf.yield %out : i64
    }
    linalg.yield %v : i64
  } -> tensor<8xi64>
  return %r : tensor<8xi64>
}

// -----

// CHECK-LABEL: func @negative_padding
// CHECK:         %[[CUT:.*]] = tensor.extract_slice %arg0[2] [5] [1]
// CHECK:         tensor.pad %[[CUT]] low[0] high[1]
func.func @negative_padding(%x: tensor<7xf32>) -> tensor<6xf32> {
  %c = arith.constant 0.0 : f32
  %r = tensor.pad %x low[-2] high[1] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<7xf32> to tensor<6xf32>
  return %r : tensor<6xf32>
}

// -----

// CHECK-LABEL: func @elementwise
// CHECK:         linalg.generic
// CHECK:           arith.addf {{.*}} : f32
func.func @elementwise(%x: tensor<7xf32>) -> tensor<7xf32> {
  %r = arith.addf %x, %x : tensor<7xf32>
  return %r : tensor<7xf32>
}

// -----

// What has no elements joins nothing.
// CHECK-LABEL: func @empty_parts
// CHECK-NOT:     tensor.concat
// CHECK:         return %arg0
func.func @empty_parts(%a: tensor<3x2xf32>, %b: tensor<3x0xf32>) -> tensor<3x2xf32> {
  %r = tensor.concat dim(1) %a, %b : (tensor<3x2xf32>, tensor<3x0xf32>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// -----

#k = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Tables of places that read all elements in their order, as torch finds the groups of a
// group norm: negative ones count from the end. A reshape.
// CHECK-LABEL: func @table_in_order
// CHECK-SAME:    %[[X:.*]]: tensor<2x2x3xf32>
// CHECK-NOT:     tensor.extract
// CHECK:         %[[ALL:.*]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1, 2]] : tensor<2x2x3xf32> into tensor<12xf32>
// CHECK-NEXT:    %[[R:.*]] = tensor.expand_shape %[[ALL]] {{\[}}[0, 1]] output_shape [2, 6] : tensor<12xf32> into tensor<2x6xf32>
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

// The twins: two places exchanged, places that are no constants, fewer than there are, and
// what is computed of an element.
// CHECK-LABEL: func @tables_stay
// CHECK-COUNT-4: tensor.extract
// CHECK-NOT:     shape
func.func @tables_stay(%x: tensor<4xf32>, %k: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>) {
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
  return %a, %b, %c, %d : tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>
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
