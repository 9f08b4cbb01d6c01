// RUN: weir-opt %s --pass-pipeline='builtin.module(weir-set-profile,func.func(weir-generalize-tensors))' -split-input-file | FileCheck %s

// A slice is a map; `mod` is how linalg's verifier takes a prefix of a dimension.
// CHECK-DAG: #[[MOVED:.*]] = affine_map<(d0, d1) -> (d0 mod 7, d1 * 2 + 1)>
// CHECK-LABEL: func @slice
// CHECK-NOT:     tensor.extract_slice
// CHECK:         linalg.generic {indexing_maps = [#[[MOVED]], #{{.*}}], iterator_types = ["parallel", "parallel"]}
func.func @slice(%x: tensor<7x9xf32>) -> tensor<3x4xf32> {
  %r = tensor.extract_slice %x[0, 1] [3, 4] [1, 2] : tensor<7x9xf32> to tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// Padded dimensions alone are compared and clamped.
// CHECK-LABEL: func @pad
// CHECK:         %[[J:.*]] = linalg.index 1
// CHECK:         %[[AT:.*]] = arith.addi %[[J]], %c-2
// CHECK:         %[[IN:.*]] = arith.cmpi ult, %[[AT]], %c5
// CHECK-NOT:     arith.cmpi
// CHECK:         %[[V:.*]] = tensor.extract %arg0[%{{.*}}, %{{.*}}]
// CHECK:         arith.select %[[IN]], %[[V]], %cst
func.func @pad(%x: tensor<3x5xf32>) -> tensor<3x8xf32> {
  %c = arith.constant 1.5 : f32
  %r = tensor.pad %x low[0, 2] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<3x5xf32> to tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}

// -----

// Scalars of the function are computed where they are used; what no one uses goes.
// CHECK-LABEL: func @scalars
// CHECK-NOT:     tensor.extract %arg0
// CHECK:         linalg.generic
// CHECK:           %[[S:.*]] = tensor.extract %arg0[%c1]
// CHECK:           %[[E:.*]] = math.exp %[[S]]
// CHECK:           linalg.yield %[[E]]
func.func @scalars(%x: tensor<3xf32>) -> tensor<5xf32> {
  %c1 = arith.constant 1 : index
  %s = tensor.extract %x[%c1] : tensor<3xf32>
  %t = math.exp %s : f32
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.fill ins(%t : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// The twin: a constant is no computation.
// CHECK-LABEL: func @constant
// CHECK:         linalg.fill
func.func @constant() -> tensor<5xf32> {
  %t = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.fill ins(%t : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// What is read at a computed place of a slice is read of what it is taken from.
// CHECK-LABEL: func @through_slice
// CHECK-NOT:     linalg.generic {{.*}} ins
// CHECK:         %[[I:.*]] = linalg.index 0
// CHECK:         tensor.extract %arg0
func.func @through_slice(%x: tensor<9xf32>, %y: tensor<2xf32>) -> tensor<5xf32> {
  %0 = tensor.extract_slice %x[4] [3] [1] : tensor<9xf32> to tensor<3xf32>
  %1 = tensor.concat dim(0) %0, %y : (tensor<3xf32>, tensor<2xf32>) -> tensor<5xf32>
  return %1 : tensor<5xf32>
}

// -----

// And of a transpose, which others may read, too.
// CHECK-LABEL: func @through_transpose
// CHECK-SAME:    %[[X:.*]]: tensor<4x5xf32>
// CHECK:         linalg.generic
// CHECK-DAG:       %[[I:.*]] = linalg.index 0
// CHECK-DAG:       %[[J:.*]] = arith.remui
// CHECK:           tensor.extract %[[X]][%[[I]], %[[J]]]
func.func @through_transpose(%x: tensor<4x5xf32>) -> (tensor<5x4xf32>, tensor<4x5xf32>) {
  %e = tensor.empty() : tensor<5x4xf32>
  %f = tensor.empty() : tensor<4x5xf32>
  %three = arith.constant 3 : index
  %t = linalg.transpose ins(%x : tensor<4x5xf32>) outs(%e : tensor<5x4xf32>) permutation = [1, 0]
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%f : tensor<4x5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.remui %j, %three : index
    %v = tensor.extract %t[%k, %i] : tensor<5x4xf32>
    linalg.yield %v : f32
  } -> tensor<4x5xf32>
  return %t, %r : tensor<5x4xf32>, tensor<4x5xf32>
}

// -----

// The twin: an element of a product is no element of what it is made of.
// CHECK-LABEL: func @through_product
// CHECK:         %[[T:.*]] = linalg.mul
// CHECK:           tensor.extract %[[T]]
func.func @through_product(%x: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>) {
  %f = tensor.empty() : tensor<4x5xf32>
  %three = arith.constant 3 : index
  %t = linalg.mul ins(%x, %x : tensor<4x5xf32>, tensor<4x5xf32>) outs(%f : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%f : tensor<4x5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.remui %j, %three : index
    %v = tensor.extract %t[%i, %k] : tensor<4x5xf32>
    linalg.yield %v : f32
  } -> tensor<4x5xf32>
  return %t, %r : tensor<4x5xf32>, tensor<4x5xf32>
}
