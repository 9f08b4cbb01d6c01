// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels -split-input-file -verify-diagnostics

func.func @larger_than_a_binding(%x: tensor<33554433xf32>) -> tensor<33554433xf32> {
  %e = tensor.empty() : tensor<33554433xf32>
  // expected-error @below {{has an operand of type 'tensor<33554433xf32>', larger than the 134217728 bytes per binding of target lavapipe}}
  %y = linalg.negf ins(%x : tensor<33554433xf32>) outs(%e : tensor<33554433xf32>) -> tensor<33554433xf32>
  return %y : tensor<33554433xf32>
}

// -----

// The twin: exactly as large as a binding.
func.func @as_large_as_a_binding(%x: tensor<33554432xf32>) -> tensor<33554432xf32> {
  %e = tensor.empty() : tensor<33554432xf32>
  %y = linalg.negf ins(%x : tensor<33554432xf32>) outs(%e : tensor<33554432xf32>) -> tensor<33554432xf32>
  return %y : tensor<33554432xf32>
}
