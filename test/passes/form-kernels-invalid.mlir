// RUN: weir-opt %s --weir-set-profile --weir-form-kernels -split-input-file -verify-diagnostics

func.func @reduction_without_neutral_element(%x: tensor<4xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  // expected-error @below {{has no kernel: it neither computes every point for itself nor reduces with a combiner}}
  %s = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<4xf32>) outs(%z : tensor<f32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.subf %o, %v : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// All of them at once.
func.func @ops_without_kernel(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<f32>) {
  // expected-error @below {{'tensor.extract_slice' op has no kernel}}
  %y = tensor.extract_slice %x[1] [2] [1] : tensor<4xf32> to tensor<2xf32>
  %c0 = arith.constant 0 : index
  // expected-error @below {{'tensor.extract' op has no kernel}}
  %e = tensor.extract %x[%c0] : tensor<4xf32>
  // expected-error @below {{'tensor.from_elements' op has no kernel}}
  %z = tensor.from_elements %e : tensor<f32>
  return %y, %z : tensor<2xf32>, tensor<f32>
}
