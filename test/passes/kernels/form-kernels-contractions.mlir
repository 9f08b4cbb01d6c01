// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v3 --weir-prepare-kernels --weir-form-kernels -split-input-file | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels -split-input-file | FileCheck %s --check-prefix=GPU

// Two sums that meet at a point, of different numbers of products. A subgroup keeps those of one contraction.
// CHECK-LABEL: func @meet
// CHECK:         schedule.kernel "contraction_4x8x6x5"(%arg0, %arg1, %arg2, %arg3)
// CHECK-NOT:     schedule.kernel
// GPU-LABEL: func @meet
// GPU:         schedule.kernel "contraction_4x8x
// GPU:         schedule.kernel "contraction_4x8x
func.func @meet(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>, %y: tensor<4x5xf32>, %v: tensor<5x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  %t = linalg.tanh ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = linalg.matmul ins(%y, %v : tensor<4x5xf32>, tensor<5x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = linalg.mul ins(%t, %b : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// One adds to the other.
// CHECK-LABEL: func @adds
// CHECK:         schedule.kernel "contraction_4x8x6x5"
// CHECK-NOT:     schedule.kernel
func.func @adds(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>, %y: tensor<4x5xf32>, %v: tensor<5x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = linalg.matmul ins(%y, %v : tensor<4x5xf32>, tensor<5x8xf32>) outs(%a : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// -----

// Three that read the same tensor: two of one shape share a kernel.
// CHECK-LABEL: func @readers
// CHECK-DAG:     schedule.kernel "contraction_4x7x6"
// CHECK-DAG:     schedule.kernel "contraction_4x8x6x6"
// CHECK:         return
func.func @readers(%x: tensor<4x6xf32>, %q: tensor<6x7xf32>, %k: tensor<6x8xf32>, %v: tensor<6x8xf32>)
    -> (tensor<4x7xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e7 = tensor.empty() : tensor<4x7xf32>
  %z7 = linalg.fill ins(%zero : f32) outs(%e7 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = linalg.matmul ins(%x, %q : tensor<4x6xf32>, tensor<6x7xf32>) outs(%z7 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %b = linalg.matmul ins(%x, %k : tensor<4x6xf32>, tensor<6x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = linalg.matmul ins(%x, %v : tensor<4x6xf32>, tensor<6x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %a, %b, %c : tensor<4x7xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// The sums of one are factors of the other: all of them must be there first.
// CHECK-LABEL: func @one_reads_the_other
// CHECK:         schedule.kernel "contraction_4x4x4"
// CHECK:         schedule.kernel "contraction_4x4x4"
func.func @one_reads_the_other(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = linalg.matmul ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = linalg.add ins(%a, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = linalg.matmul ins(%t, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}

// -----

#bik = affine_map<(b, i, j, k) -> (b, i, k)>
#bjk = affine_map<(b, i, j, k) -> (b, j, k)>
#jk = affine_map<(b, i, j, k) -> (j, k)>
#bij = affine_map<(b, i, j, k) -> (b, i, j)>

// Batches of one are rows of the other: no tile fits both.
// CHECK-LABEL: func @batches
// CHECK:         schedule.kernel "contraction_3x4x8x6"
// CHECK:         schedule.kernel "contraction_3x4x8x6"
func.func @batches(%x: tensor<3x4x6xf32>, %w: tensor<3x8x6xf32>, %v: tensor<8x6xf32>) -> tensor<3x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4x8xf32>) -> tensor<3x4x8xf32>
  %a = linalg.generic {indexing_maps = [#bik, #bjk, #bij], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<3x4x6xf32>, tensor<3x8x6xf32>) outs(%z : tensor<3x4x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x4x8xf32>
  %b = linalg.generic {indexing_maps = [#bik, #jk, #bij], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<3x4x6xf32>, tensor<8x6xf32>) outs(%a : tensor<3x4x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x4x8xf32>
  return %b : tensor<3x4x8xf32>
}
