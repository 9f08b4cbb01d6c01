// RUN: weir-opt %s --weir-decompose-matrices | FileCheck %s --implicit-check-not=matrix.

// One kernel a step: the loop's body is one op on all matrices of the batch.
// CHECK-LABEL: func @cholesky
// CHECK:         tensor.collapse_shape {{.*}} : tensor<2x3x4x4xf32> into tensor<6x4x4xf32>
// CHECK:         scf.for
// CHECK:           linalg.generic {{.*}}"parallel", "parallel", "parallel"]
// CHECK-NOT:       linalg.generic
// CHECK:           scf.yield
// CHECK:         tensor.expand_shape
func.func @cholesky(%a: tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32> {
  %l = matrix.cholesky %a : tensor<2x3x4x4xf32>
  return %l : tensor<2x3x4x4xf32>
}

// CHECK-LABEL: func @nothing_takes_no_loop
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @nothing_takes_no_loop(%a: tensor<0x4x4xf32>) -> tensor<0x4x4xf32> {
  %l = matrix.cholesky %a : tensor<0x4x4xf32>
  return %l : tensor<0x4x4xf32>
}

// The matrix is factored once, and each equation takes two loops more.
// CHECK-LABEL: func @equations_share_factors
// CHECK-COUNT-5: scf.for
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @equations_share_factors(%a: tensor<4x4xf64>, %b: tensor<4x2xf64>, %c: tensor<4x3xf64>)
    -> (tensor<4x2xf64>, tensor<4x3xf64>) {
  %x = matrix.solve %a, %b : tensor<4x4xf64>, tensor<4x2xf64>
  %y = matrix.solve %a, %c {transposed} : tensor<4x4xf64>, tensor<4x3xf64>
  return %x, %y : tensor<4x2xf64>, tensor<4x3xf64>
}

// CHECK-LABEL: func @equations_of_two_matrices
// CHECK-COUNT-6: scf.for
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @equations_of_two_matrices(%a: tensor<4x4xf64>, %c: tensor<4x4xf64>, %b: tensor<4x2xf64>)
    -> (tensor<4x2xf64>, tensor<4x2xf64>) {
  %x = matrix.solve %a, %b : tensor<4x4xf64>, tensor<4x2xf64>
  %y = matrix.solve %c, %b : tensor<4x4xf64>, tensor<4x2xf64>
  return %x, %y : tensor<4x2xf64>, tensor<4x2xf64>
}

// 8 sweeps of 4 rounds: two of rows meet in one round each, and one is alone.
// CHECK-LABEL: func @values_and_vectors
// CHECK:         %[[TRIPS:.*]] = arith.constant 45 : index
// CHECK:         scf.for {{.*}} to %[[TRIPS]] {{.*}} -> (tensor<1x5x5xf32>, tensor<1x5x5xf32>)
// CHECK:         norm.argsort
func.func @values_and_vectors(%a: tensor<5x5xf32>) -> (tensor<5xf32>, tensor<5x5xf32>) {
  %w, %v = matrix.eigh %a : tensor<5xf32>, tensor<5x5xf32>
  return %w, %v : tensor<5xf32>, tensor<5x5xf32>
}

// Vectors that nothing reads are not carried.
// CHECK-LABEL: func @values_alone
// CHECK:         scf.for {{.*}} -> (tensor<1x5x5xf32>) {
func.func @values_alone(%a: tensor<5x5xf32>) -> tensor<5xf32> {
  %w, %v = matrix.eigh %a : tensor<5xf32>, tensor<5x5xf32>
  return %w : tensor<5xf32>
}

// Reflections of A, rotations, and no reflections more.
// CHECK-LABEL: func @singular_values_alone
// CHECK-COUNT-2: scf.for
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @singular_values_alone(%a: tensor<3x5xf32>) -> tensor<3xf32> {
  %u, %s, %vt = matrix.svd %a : tensor<3x5xf32> -> tensor<3x3xf32>, tensor<3xf32>, tensor<5x5xf32>
  return %s : tensor<3xf32>
}

// CHECK-LABEL: func @completes_a_basis
// CHECK-COUNT-5: scf.for
// CHECK-NOT:     scf.for
// CHECK:         tensor.concat
func.func @completes_a_basis(%a: tensor<3x5xf32>) -> tensor<5x5xf32> {
  %u, %s, %vt = matrix.svd %a : tensor<3x5xf32> -> tensor<3x3xf32>, tensor<3xf32>, tensor<5x5xf32>
  return %vt : tensor<5x5xf32>
}

// CHECK-LABEL: func @other_ops_stay
// CHECK:         tensor.empty
// CHECK-NEXT:    tensor.empty
func.func @other_ops_stay() -> (tensor<4xf32>, tensor<4xf32>) {
  %a = tensor.empty() : tensor<4xf32>
  %b = tensor.empty() : tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
