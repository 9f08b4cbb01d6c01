// RUN: weir-opt %s -split-input-file -verify-diagnostics

func.func @rank(%a: tensor<3xf32>) {
  // expected-error @below {{has an operand of 'tensor<3xf32>'; expected dimensions of rows and columns}}
  %l = matrix.cholesky %a : tensor<3xf32>
  return
}

// -----

func.func @cholesky_c1(%a: tensor<2x3x4xf32>) {
  // expected-error @below {{is of squares, got 3 rows and 4 columns}}
  %l = matrix.cholesky %a : tensor<2x3x4xf32>
  return
}

// -----

func.func @triangular_solve_c1(%a: tensor<4x3xf32>, %b: tensor<4x1xf32>) {
  // expected-error @below {{is of squares, got 4 rows and 3 columns}}
  %x = matrix.triangular_solve %a, %b : tensor<4x3xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @triangular_solve_c2(%a: tensor<2x3x3xf32>, %b: tensor<3x3x1xf32>) {
  // expected-error @below {{b is 'tensor<3x3x1xf32>', expected 'tensor<2x3x1xf32>'}}
  %x = matrix.triangular_solve %a, %b : tensor<2x3x3xf32>, tensor<3x3x1xf32>
  return
}

// -----

func.func @solve_c1(%a: tensor<4x3xf32>, %b: tensor<4x1xf32>) {
  // expected-error @below {{is of squares, got 4 rows and 3 columns}}
  %x = matrix.solve %a, %b : tensor<4x3xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @solve_c2(%a: tensor<3x3xf32>, %b: tensor<3x1xf64>) {
  // expected-error @below {{b is 'tensor<3x1xf64>', expected 'tensor<3x1xf32>'}}
  %x = matrix.solve %a, %b : tensor<3x3xf32>, tensor<3x1xf64>
  return
}

// -----

func.func @lu_c1(%a: tensor<5x3xf32>) {
  // expected-error @below {{permutation is 'tensor<3xi32>', expected 'tensor<5xi32>'}}
  %lu, %pivots, %order = matrix.lu %a : tensor<5x3xf32>, tensor<3xi32>, tensor<3xi32>
  return
}

// -----

func.func @householder_c1(%a: tensor<5x3xf32>) {
  // expected-error @below {{factors is 'tensor<5xf32>', expected 'tensor<3xf32>'}}
  %packed, %factors = matrix.householder %a : tensor<5x3xf32>, tensor<5xf32>
  return
}

// -----

func.func @householder_product_c1(%a: tensor<5x3xf32>, %t: tensor<4xf32>) {
  // expected-error @below {{has 4 reflections of 5 rows and 3 columns}}
  %q = matrix.householder_product %a, %t : tensor<5x3xf32>, tensor<4xf32> -> tensor<5x3xf32>
  return
}

// -----

func.func @householder_product_c2(%a: tensor<3x5xf32>, %t: tensor<3xf32>) {
  // expected-error @below {{has 5 columns of a product with 3}}
  %q = matrix.householder_product %a, %t : tensor<3x5xf32>, tensor<3xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @qr_c1(%a: tensor<5x3xf32>) {
  // expected-error @below {{r is 'tensor<5x3xf32>', expected 'tensor<3x3xf32>'}}
  %q, %r = matrix.qr %a : tensor<5x3xf32> -> tensor<5x3xf32>, tensor<5x3xf32>
  return
}

// -----

func.func @qr_c2(%a: tensor<5x3xf32>) {
  // expected-error @below {{q has 4 columns, expected 3 or 5}}
  %q, %r = matrix.qr %a : tensor<5x3xf32> -> tensor<5x4xf32>, tensor<4x3xf32>
  return
}

// -----

func.func @eigh_c1(%a: tensor<3x4xf32>) {
  // expected-error @below {{is of squares, got 3 rows and 4 columns}}
  %w, %v = matrix.eigh %a : tensor<3xf32>, tensor<3x4xf32>
  return
}

// -----

func.func @eigh_c2(%a: tensor<3x3xf32>) {
  // expected-error @below {{values is 'tensor<1xf32>', expected 'tensor<3xf32>'}}
  %w, %v = matrix.eigh %a : tensor<1xf32>, tensor<3x3xf32>
  return
}

// -----

func.func @svd_c1(%a: tensor<5x3xf32>) {
  // expected-error @below {{s is 'tensor<5xf32>', expected 'tensor<3xf32>'}}
  %u, %s, %vt = matrix.svd %a : tensor<5x3xf32> -> tensor<5x3xf32>, tensor<5xf32>, tensor<3x3xf32>
  return
}

// -----

func.func @svd_c2(%a: tensor<3x5xf32>) {
  // expected-error @below {{vt has 4 rows, expected 3 or 5}}
  %u, %s, %vt = matrix.svd %a : tensor<3x5xf32> -> tensor<3x3xf32>, tensor<3xf32>, tensor<4x5xf32>
  return
}
