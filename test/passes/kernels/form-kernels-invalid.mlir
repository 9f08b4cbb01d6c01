// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels -split-input-file -verify-diagnostics

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

// -----

#id = affine_map<(r, c) -> (r, c)>
#part = affine_map<(r, c) -> (r floordiv 16, c)>

// 32 rows are 2 parts of 16; no kernel makes the result's other two rows.
func.func @fewer_parts_than_the_result_has(%x: tensor<32x8xf32>) -> tensor<4x8xf32> {
  %z = arith.constant dense<0.0> : tensor<4x8xf32>
  // expected-error @below {{has no kernel: it neither computes every point for itself nor reduces}}
  %s = linalg.generic {indexing_maps = [#id, #part], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<32x8xf32>) outs(%z : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.addf %o, %v : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#part = affine_map<(r, c) -> (r floordiv 16, c)>

// The twin: as many as it has.
func.func @as_many_parts_as_the_result_has(%x: tensor<32x8xf32>) -> tensor<2x8xf32> {
  %z = arith.constant dense<0.0> : tensor<2x8xf32>
  %s = linalg.generic {indexing_maps = [#id, #part], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<32x8xf32>) outs(%z : tensor<2x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.addf %o, %v : f32
    linalg.yield %t : f32
  } -> tensor<2x8xf32>
  return %s : tensor<2x8xf32>
}

// -----

// A result of which only one row is written.
func.func @result_not_covered(%x: tensor<8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  // expected-error @below {{has no kernel: it neither computes every point for itself nor reduces}}
  %y = linalg.generic {indexing_maps = [affine_map<(c) -> (c)>, affine_map<(c) -> (0, c)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
