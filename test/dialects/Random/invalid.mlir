// RUN: weir-opt %s -split-input-file -verify-diagnostics

func.func @uniform_c1_stream(%seed: tensor<i64>, %step: tensor<i64>) -> tensor<4xf32> {
  // expected-error @below {{stream is 4294967296; expected one in [0, 4294967296)}}
  %u = random.uniform %seed, %step stream 4294967296 : tensor<4xf32>
  return %u : tensor<4xf32>
}

// -----

func.func @uniform_c1_negative_stream(%seed: tensor<i64>, %step: tensor<i64>) -> tensor<4xf32> {
  // expected-error @below {{stream is -1; expected one in}}
  %u = random.uniform %seed, %step stream -1 : tensor<4xf32>
  return %u : tensor<4xf32>
}

// -----

func.func @uniform_c2_elements(%seed: tensor<i64>, %step: tensor<i64>) -> tensor<131072x131073xf32> {
  // expected-error @below {{has a result of 'tensor<131072x131073xf32>'; expected at most 17179869184 elements}}
  %u = random.uniform %seed, %step stream 0 : tensor<131072x131073xf32>
  return %u : tensor<131072x131073xf32>
}

// -----

// The twin: the largest of each.
func.func @largest(%seed: tensor<i64>, %step: tensor<i64>) -> (tensor<131072x131072xf32>, tensor<0x4xf32>) {
  %u = random.uniform %seed, %step stream 4294967295 : tensor<131072x131072xf32>
  %v = random.uniform %seed, %step stream 0 : tensor<0x4xf32>
  return %u, %v : tensor<131072x131072xf32>, tensor<0x4xf32>
}

// -----

func.func @uniform_type(%seed: tensor<i64>, %step: tensor<i64>) -> tensor<4xf64> {
  // expected-error @below {{result #0 must be statically shaped tensor of 32-bit float values}}
  %u = random.uniform %seed, %step stream 0 : tensor<4xf64>
  return %u : tensor<4xf64>
}
