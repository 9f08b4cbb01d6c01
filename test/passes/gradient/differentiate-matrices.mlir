// RUN: weir-opt %s --weir-differentiate --split-input-file --verify-diagnostics | FileCheck %s

// The gradient of an equation is an equation with the same matrix, transposed.

// CHECK-LABEL: func @solve_vjp
// CHECK:         %[[X:.*]] = matrix.solve %[[A:.*]], %{{.*}} :
// CHECK:         %[[DB:.*]] = matrix.solve %[[A]], %{{.*}} {transposed} :
// CHECK:         linalg.generic {{.*}} ins(%[[DB]], %[[X]] :
func.func private @solve(%a: tensor<3x3xf64>, %b: tensor<3x2xf64>) -> tensor<3x2xf64> {
  %x = matrix.solve %a, %b : tensor<3x3xf64>, tensor<3x2xf64>
  return %x : tensor<3x2xf64>
}
func.func @solve_vjp(%a: tensor<3x3xf64>, %b: tensor<3x2xf64>) -> (tensor<3x3xf64>, tensor<3x2xf64>) {
  %x, %da, %db = autodiff.vjp @solve(%a, %b) seeded [0] (%b) wanted [0, 1]
      : (tensor<3x3xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<3x3xf64>, tensor<3x2xf64>)
  return %da, %db : tensor<3x3xf64>, tensor<3x2xf64>
}

// -----

// Values alone need no differences of values.
// CHECK-LABEL: func @values_vjp
// CHECK-NOT:     arith.divf
// CHECK:         return
func.func private @values(%a: tensor<3x3xf64>) -> tensor<3xf64> {
  %w, %v = matrix.eigh %a : tensor<3xf64>, tensor<3x3xf64>
  return %w : tensor<3xf64>
}
func.func @values_vjp(%a: tensor<3x3xf64>, %g: tensor<3xf64>) -> tensor<3x3xf64> {
  %w, %da = autodiff.vjp @values(%a) seeded [0] (%g) wanted [0]
      : (tensor<3x3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3x3xf64>)
  return %da : tensor<3x3xf64>
}

// -----

// 1 / (w_j - w_i) is 0 where the values are as good as equal.
// CHECK-LABEL: func @vectors_vjp
// CHECK-DAG:     %[[LIMIT:.*]] = arith.constant 6.6613381477509392E-16 : f64
// CHECK:         arith.mulf %[[LIMIT]], %{{.*}} : f64
// CHECK:         arith.cmpf ole
// CHECK-NEXT:    arith.select
func.func private @vectors(%a: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %w, %v = matrix.eigh %a : tensor<3xf64>, tensor<3x3xf64>
  return %v : tensor<3x3xf64>
}
func.func @vectors_vjp(%a: tensor<3x3xf64>, %g: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %v, %da = autodiff.vjp @vectors(%a) seeded [0] (%g) wanted [0]
      : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  return %da : tensor<3x3xf64>
}

// -----

func.func private @complete(%a: tensor<5x3xf64>) -> tensor<5x5xf64> {
  // expected-error @below {{has no gradient rule where q has more columns than a; ask for the first 3 alone}}
  %q, %r = matrix.qr %a : tensor<5x3xf64> -> tensor<5x5xf64>, tensor<5x3xf64>
  return %q : tensor<5x5xf64>
}
func.func @complete_vjp(%a: tensor<5x3xf64>, %g: tensor<5x5xf64>) -> tensor<5x3xf64> {
  %q, %da = autodiff.vjp @complete(%a) seeded [0] (%g) wanted [0]
      : (tensor<5x3xf64>, tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5x3xf64>)
  return %da : tensor<5x3xf64>
}

// -----

func.func private @basis(%a: tensor<5x3xf64>) -> tensor<5x5xf64> {
  // expected-error @below {{has no gradient rule where u or vt completes a basis; ask for the first 3 vectors alone}}
  %u, %s, %vt = matrix.svd %a : tensor<5x3xf64> -> tensor<5x5xf64>, tensor<3xf64>, tensor<3x3xf64>
  return %u : tensor<5x5xf64>
}
func.func @basis_vjp(%a: tensor<5x3xf64>, %g: tensor<5x5xf64>) -> tensor<5x3xf64> {
  %u, %da = autodiff.vjp @basis(%a) seeded [0] (%g) wanted [0]
      : (tensor<5x3xf64>, tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5x3xf64>)
  return %da : tensor<5x3xf64>
}

// -----

// Values of a factorization that completes a basis have a gradient.
// CHECK-LABEL: func @singular_values_vjp
// CHECK:         tensor.extract_slice {{.*}} tensor<5x5xf64> to tensor<5x3xf64>
func.func private @singular_values(%a: tensor<5x3xf64>) -> tensor<3xf64> {
  %u, %s, %vt = matrix.svd %a : tensor<5x3xf64> -> tensor<5x5xf64>, tensor<3xf64>, tensor<3x3xf64>
  return %s : tensor<3xf64>
}
func.func @singular_values_vjp(%a: tensor<5x3xf64>, %g: tensor<3xf64>) -> tensor<5x3xf64> {
  %s, %da = autodiff.vjp @singular_values(%a) seeded [0] (%g) wanted [0]
      : (tensor<5x3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<5x3xf64>)
  return %da : tensor<5x3xf64>
}
