// A copy of columns that lie across memory holds the shuffles of one block of 8 x 8 (8 a step, three
// steps), in a loop: they take most of a kernel's time to compile.
// The twin's columns lie along memory.
// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v3 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s

#row = affine_map<(i, j, k) -> (i, k)>
#across = affine_map<(i, j, k) -> (j, k)>
#along = affine_map<(i, j, k) -> (k, j)>
#sum = affine_map<(i, j, k) -> (i, j)>

// CHECK-LABEL:    gpu.func @contraction_256x128x64(
// CHECK-NOT:        vector.shuffle
// CHECK:            gpu.return

// CHECK-LABEL:    gpu.func @contraction_256x128x96(
// CHECK:            scf.for
// CHECK-COUNT-24:   vector.shuffle
// CHECK-NOT:        vector.shuffle
// CHECK:            gpu.return
func.func @across(%x: tensor<256x96xf32>, %y: tensor<128x96xf32>) -> tensor<256x128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x128xf32>) -> tensor<256x128xf32>
  %r = linalg.generic {indexing_maps = [#row, #across, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<256x96xf32>, tensor<128x96xf32>) outs(%f : tensor<256x128xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<256x128xf32>
  return %r : tensor<256x128xf32>
}

func.func @along(%x: tensor<256x64xf32>, %y: tensor<64x128xf32>) -> tensor<256x128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x128xf32>) -> tensor<256x128xf32>
  %r = linalg.generic {indexing_maps = [#row, #along, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<256x64xf32>, tensor<64x128xf32>) outs(%f : tensor<256x128xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<256x128xf32>
  return %r : tensor<256x128xf32>
}
