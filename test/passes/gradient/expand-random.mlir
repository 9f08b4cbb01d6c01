// RUN: weir-opt %s --weir-expand-random --split-input-file | FileCheck %s

// The element's place, row by row, gives the block and the word of the block; ten rounds
// of two products follow.
// CHECK-LABEL: func @matrix
// CHECK-NOT:   random.uniform
// CHECK:       linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK-SAME:    ins(%arg0, %arg1 : tensor<i64>, tensor<i64>)
// CHECK-DAG:     %[[ROW:.*]] = linalg.index 0
// CHECK-DAG:     %[[COLUMN:.*]] = linalg.index 1
// CHECK:         %[[PLACE:.*]] = arith.addi {{.*}}%[[COLUMN]]
// CHECK:         arith.divui %[[PLACE]], %[[FOUR:.*]]
// CHECK:         arith.remui %[[PLACE]], %[[FOUR]]
// CHECK-COUNT-20: arith.mului_extended
// CHECK-NOT:     arith.mului_extended
// CHECK:         arith.shrui
// CHECK:         arith.sitofp {{.*}} : i32 to f32
// CHECK:         linalg.yield
func.func @matrix(%seed: tensor<i64>, %step: tensor<i64>) -> tensor<3x5xf32> {
  %u = random.uniform %seed, %step stream 7 : tensor<3x5xf32>
  return %u : tensor<3x5xf32>
}

// -----

// CHECK-LABEL: func @scalar
// CHECK:       linalg.generic {{.*}} iterator_types = []
func.func @scalar(%seed: tensor<i64>, %step: tensor<i64>) -> tensor<f32> {
  %u = random.uniform %seed, %step stream 0 : tensor<f32>
  return %u : tensor<f32>
}

// -----

// The twin: what is not random stays.
// CHECK-LABEL: func @untouched
// CHECK-NEXT:    return %arg0
func.func @untouched(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  return %x : tensor<3x5xf32>
}
