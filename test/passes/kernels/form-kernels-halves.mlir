// Products whose factors are widened are contractions on every target. The twins' products are not of
// the widened factors alone: one is rounded, one's factor is scaled, so they are sums of rows.
// RUN: weir-opt %s --weir-set-profile=profile=sm_80 --weir-prepare-kernels --weir-form-kernels -split-input-file | FileCheck %s
// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v3 --weir-prepare-kernels --weir-form-kernels -split-input-file | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels -split-input-file | FileCheck %s

// CHECK-LABEL: func @both
// CHECK:         schedule.kernel "contraction_8x9x6"
func.func @both(%a: tensor<8x6xbf16>, %b: tensor<6x9xbf16>) -> tensor<8x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x9xf32>) -> tensor<8x9xf32>
  %r = linalg.matmul ins(%a, %b : tensor<8x6xbf16>, tensor<6x9xbf16>) outs(%z : tensor<8x9xf32>) -> tensor<8x9xf32>
  return %r : tensor<8x9xf32>
}

// -----

// CHECK-LABEL: func @one
// CHECK:         schedule.kernel "contraction_8x9x6"
func.func @one(%a: tensor<8x6xf16>, %b: tensor<6x9xf32>) -> tensor<8x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x9xf32>) -> tensor<8x9xf32>
  %r = linalg.matmul ins(%a, %b : tensor<8x6xf16>, tensor<6x9xf32>) outs(%z : tensor<8x9xf32>) -> tensor<8x9xf32>
  return %r : tensor<8x9xf32>
}

// -----

// CHECK-LABEL: func @rounded
// CHECK:         schedule.kernel "row_8x9x6"
func.func @rounded(%a: tensor<8x6xbf16>, %b: tensor<6x9xbf16>) -> tensor<8x9xf32> {
  %e = tensor.empty() : tensor<8x9xf32>
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x9xf32>) -> tensor<8x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<8x6xbf16>, tensor<6x9xbf16>) outs(%z : tensor<8x9xf32>) {
  ^bb0(%x: bf16, %y: bf16, %o: f32):
    %v = arith.extf %x : bf16 to f32
    %w = arith.extf %y : bf16 to f32
    %p = arith.mulf %v, %w : f32
    %q = arith.truncf %p : f32 to bf16
    %s = arith.extf %q : bf16 to f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<8x9xf32>
  return %r : tensor<8x9xf32>
}

// -----

// CHECK-LABEL: func @scaled
// CHECK:         schedule.kernel "row_8x9x6"
func.func @scaled(%a: tensor<8x6xbf16>, %b: tensor<6x9xbf16>) -> tensor<8x9xf32> {
  %e = tensor.empty() : tensor<8x9xf32>
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x9xf32>) -> tensor<8x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<8x6xbf16>, tensor<6x9xbf16>) outs(%z : tensor<8x9xf32>) {
  ^bb0(%x: bf16, %y: bf16, %o: f32):
    %v = arith.extf %x : bf16 to f32
    %w = arith.extf %y : bf16 to f32
    %u = arith.mulf %w, %w : f32
    %p = arith.mulf %v, %u : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x9xf32>
  return %r : tensor<8x9xf32>
}
