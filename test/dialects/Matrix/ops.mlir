// RUN: weir-opt %s | weir-opt | FileCheck %s

// CHECK-LABEL: func @flags
func.func @flags(%a: tensor<2x3x3xf64>, %b: tensor<2x3x1xf64>) -> tensor<2x3x1xf64> {
  // CHECK: matrix.triangular_solve %{{.*}}, %{{.*}} {transposed, unit_diagonal, upper} : tensor<2x3x3xf64>, tensor<2x3x1xf64>
  %x = matrix.triangular_solve %a, %b {upper, transposed, unit_diagonal}
      : tensor<2x3x3xf64>, tensor<2x3x1xf64>
  // CHECK: matrix.solve %{{.*}}, %{{.*}} {transposed} :
  %y = matrix.solve %a, %x {transposed} : tensor<2x3x3xf64>, tensor<2x3x1xf64>
  return %y : tensor<2x3x1xf64>
}

// CHECK-LABEL: func @bases
func.func @bases(%a: tensor<3x5xf32>) -> tensor<5x5xf32> {
  // CHECK: matrix.qr %{{.*}} : tensor<3x5xf32> -> tensor<3x3xf32>, tensor<3x5xf32>
  %q, %r = matrix.qr %a : tensor<3x5xf32> -> tensor<3x3xf32>, tensor<3x5xf32>
  // CHECK: matrix.svd %{{.*}} : tensor<3x5xf32> -> tensor<3x3xf32>, tensor<3xf32>, tensor<5x5xf32>
  %u, %s, %vt = matrix.svd %a : tensor<3x5xf32> -> tensor<3x3xf32>, tensor<3xf32>, tensor<5x5xf32>
  return %vt : tensor<5x5xf32>
}

// CHECK-LABEL: func @upper_triangle
func.func @upper_triangle(%a: tensor<3x3xf32>) -> tensor<3xf32> {
  // CHECK: matrix.eigh %{{.*}} {upper} : tensor<3xf32>, tensor<3x3xf32>
  %w, %v = matrix.eigh %a {upper} : tensor<3xf32>, tensor<3x3xf32>
  return %w : tensor<3xf32>
}

// CHECK-LABEL: func @nothing
func.func @nothing(%a: tensor<4x0x0xf32>) -> tensor<4x0x0xf32> {
  // CHECK: matrix.cholesky %{{.*}} : tensor<4x0x0xf32>
  %l = matrix.cholesky %a : tensor<4x0x0xf32>
  return %l : tensor<4x0x0xf32>
}
