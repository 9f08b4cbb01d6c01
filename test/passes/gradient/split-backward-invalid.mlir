// RUN: weir-opt %s --weir-split-backward --split-input-file --verify-diagnostics

func.func private @f.backward_input()
// expected-error @below {{cannot have entry 'f.backward_input': that function is there already}}
func.func @f.split(%w: tensor<4xf32> {weir.kind = "param"}, %dy: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) attributes {autodiff.split = array<i64: 1, 1>} {
  return %w, %dy : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func private @other.backward_input()
func.func @f.split(%w: tensor<4xf32> {weir.kind = "param"}, %dy: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) attributes {autodiff.split = array<i64: 1, 1>} {
  return %w, %dy : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @below {{has a result that depends on its cotangent 'dy'}}
func.func @cotangent_result(%w: tensor<4xf32> {weir.kind = "param"},
                            %dy: tensor<4xf32> {weir.name = "dy"})
    -> (tensor<4xf32>, tensor<4xf32>) attributes {autodiff.split = array<i64: 1, 1>} {
  return %dy, %dy : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @scalar(%x: tensor<f32>, %w: tensor<4xf32> {weir.kind = "param"}, %dy: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<f32>, tensor<4xf32>) attributes {autodiff.split = array<i64: 2, 1>} {
  // expected-error @below {{gives 'f32', which backward needs from another entry; entries give tensors}}
  %s = tensor.extract %x[] : tensor<f32>
  %y = tensor.splat %s : tensor<4xf32>
  %dw = linalg.fill ins(%s : f32) outs(%dy : tensor<4xf32>) -> tensor<4xf32>
  return %y, %x, %dw : tensor<4xf32>, tensor<f32>, tensor<4xf32>
}

// -----

// Each entry has the scalar to itself.
func.func @scalars(%x: tensor<f32>, %w: tensor<4xf32> {weir.kind = "param"}, %dy: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<f32>, tensor<4xf32>) attributes {autodiff.split = array<i64: 2, 1>} {
  %s = tensor.extract %x[] : tensor<f32>
  %y = tensor.splat %s : tensor<4xf32>
  %t = tensor.extract %x[] : tensor<f32>
  %dw = linalg.fill ins(%t : f32) outs(%dy : tensor<4xf32>) -> tensor<4xf32>
  return %y, %x, %dw : tensor<4xf32>, tensor<f32>, tensor<4xf32>
}
