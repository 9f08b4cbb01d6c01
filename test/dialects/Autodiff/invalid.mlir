// RUN: weir-opt %s -split-input-file -verify-diagnostics

func.func @vjp_c1_no_function(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error @below {{names @f, which is not a function of this module}}
  %r:2 = autodiff.vjp @f(%x) seeded [0] (%x) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func @vjp_c1_no_body(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error @below {{names @f, which has no body of one block}}
  %r:2 = autodiff.vjp @f(%x) seeded [0] (%x) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xf32>) {
  return %i, %x : tensor<4xi32>, tensor<4xf32>
}
func.func @vjp_c2_number(%x: tensor<4xf32>) {
  // expected-error @below {{has 1 arguments, not 2}}
  %r:3 = autodiff.vjp @f(%x) seeded [1] (%x) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xi32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xf32>) {
  return %i, %x : tensor<4xi32>, tensor<4xf32>
}
func.func @vjp_c2_type(%x: tensor<4xf32>) {
  // expected-error @below {{argument 1 is 'tensor<4xf32>', not 'tensor<4xi32>'}}
  %r:3 = autodiff.vjp @f(%x, %x) seeded [1] (%x) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xi32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xf32>) {
  return %i, %x : tensor<4xi32>, tensor<4xf32>
}
func.func @vjp_c3_integer(%x: tensor<4xf32>, %i: tensor<4xi32>) {
  // expected-error @below {{seeded names result 0 of type 'tensor<4xi32>'; only float tensors have gradients}}
  %r:3 = autodiff.vjp @f(%x, %i) seeded [0] (%i) wanted [0]
      : (tensor<4xf32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4xi32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xf32>) {
  return %i, %x : tensor<4xi32>, tensor<4xf32>
}
func.func @vjp_c3_beyond(%x: tensor<4xf32>, %i: tensor<4xi32>) {
  // expected-error @below {{seeded names result 2, the callee has 2}}
  %r:3 = autodiff.vjp @f(%x, %i) seeded [2] (%x) wanted [0]
      : (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>) -> (tensor<4xi32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xf32>) {
  return %i, %x : tensor<4xi32>, tensor<4xf32>
}
func.func @vjp_c3_cotangent(%x: tensor<4xf32>, %i: tensor<4xi32>, %g: tensor<5xf32>) {
  // expected-error @below {{cotangent 0 is 'tensor<5xf32>', not 'tensor<4xf32>'}}
  %r:3 = autodiff.vjp @f(%x, %i) seeded [1] (%g) wanted [0]
      : (tensor<4xf32>, tensor<4xi32>, tensor<5xf32>) -> (tensor<4xi32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @vjp_c4_rises(%x: tensor<4xf32>) {
  // expected-error @below {{wanted numbers do not rise: 1 follows 1}}
  %r:3 = autodiff.vjp @f(%x, %x) seeded [0] (%x) wanted [1, 1]
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @vjp_c5_results(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{result 1 is 'tensor<4xf32>', not 'tensor<5xf32>'}}
  %r:2 = autodiff.vjp @f(%x, %y) seeded [0] (%x) wanted [1]
      : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @total_c1(%g: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @below {{operand #0 must be ranked tensor of floating-point values, but got 'tensor<4xi32>'}}
  %total = autodiff.total weight %g : tensor<4xi32>
  return %total : tensor<4xi32>
}

// -----

// expected-error @below {{autodiff.split is array<i64: 2, 0, 0>; it is two numbers, of the 1 arguments and 1 results}}
func.func @split_c1_number(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {autodiff.split = array<i64: 2, 0, 0>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{autodiff.split is array<i64: 2, 0>; it is two numbers, of the 1 arguments and 1 results}}
func.func @split_c1_arguments(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {autodiff.split = array<i64: 2, 0>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{autodiff.split is array<i64: 1, 2>; it is two numbers, of the 1 arguments and 1 results}}
func.func @split_c1_results(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {autodiff.split = array<i64: 1, 2>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{has 1 gradients, which aren't of the types of its 1 float arguments}}
func.func @split_c2_type(%i: tensor<4xi32>, %x: tensor<5xf32>, %g: tensor<4xf32>) -> tensor<4xf32>
    attributes {autodiff.split = array<i64: 2, 0>} {
  return %g : tensor<4xf32>
}

// -----

func.func @split_holds(%i: tensor<4xi32>, %x: tensor<5xf32>, %g: tensor<5xf32>) -> tensor<5xf32>
    attributes {autodiff.split = array<i64: 2, 0>} {
  %total = autodiff.total activation %g : tensor<5xf32>
  return %total : tensor<5xf32>
}

// -----

// expected-error @below {{"autodiff.join" is not an attribute of the autodiff dialect}}
func.func @no_attribute(%x: tensor<4xf32>) attributes {autodiff.join} {
  return
}
