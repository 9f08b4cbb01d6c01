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

// -----

// A scatter is a matter of one processor; nothing else changes bytes in an order of its own.
func.func @scatter_of_a_device(%to: tensor<90xi32>, %x: tensor<90xf32>, %init: tensor<200xf32>) -> tensor<200xf32> {
  %none = arith.constant 0.0 : f32
  // expected-error @below {{is marked weir.scatter, and is no reduction of the updates that name a row of an operand, alone in a kernel for a processor; remove the mark}}
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%to, %x : tensor<90xi32>, tensor<90xf32>) outs(%init : tensor<200xf32>) attrs = {weir.no_fuse, weir.scatter} {
  ^bb0(%row: i32, %in: f32, %out: f32):
    %i = linalg.index 0 : index
    %place = arith.index_cast %i : index to i32
    %isIt = arith.cmpi eq, %row, %place : i32
    %chosen = arith.select %isIt, %in, %none : f32
    %next = arith.addf %out, %chosen : f32
    linalg.yield %next : f32
  } -> tensor<200xf32>
  return %sum : tensor<200xf32>
}
