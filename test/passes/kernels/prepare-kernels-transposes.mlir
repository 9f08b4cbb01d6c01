// Products in tf32 by instructions of four subgroups read factors along the products alone: where these take long, others
// are transposed before, by kernels of their own, each tensor once. The twins: small products, f32, and a target without
// such instructions.
// RUN: weir-opt %s "--weir-set-profile=profile=sm_90a precision=tf32" --weir-prepare-kernels -split-input-file | FileCheck %s
// RUN: weir-opt %s --weir-set-profile=profile=sm_90a --weir-prepare-kernels -split-input-file | FileCheck %s --check-prefix=NONE
// RUN: weir-opt %s "--weir-set-profile=profile=sm_90 precision=tf32" --weir-prepare-kernels -split-input-file | FileCheck %s --check-prefix=NONE

// NONE-NOT: weir.no_fuse

// CHECK-DAG: #[[ACROSS:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[SAME:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[COLUMNS:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func @large
// CHECK:         %[[MOVED:.*]] = linalg.generic {indexing_maps = [#[[ACROSS]], #[[SAME]]], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<2048x2304xf32>) {{.*}} attrs = {weir.no_fuse}
// CHECK:         linalg.generic {indexing_maps = [#[[ROWS]], #[[COLUMNS]], #[[SAME3:.*]]], {{.*}} ins(%arg0, %[[MOVED]]
// CHECK-NOT:     weir.no_fuse
// CHECK:         linalg.generic {{.*}} ins(%arg2, %[[MOVED]]
func.func @large(%a: tensor<4096x2048xf32>, %b: tensor<2048x2304xf32>, %c: tensor<4096x2048xf32>) -> (tensor<4096x2304xf32>, tensor<4096x2304xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x2304xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x2304xf32>) -> tensor<4096x2304xf32>
  %m = linalg.matmul ins(%a, %b : tensor<4096x2048xf32>, tensor<2048x2304xf32>) outs(%f : tensor<4096x2304xf32>) -> tensor<4096x2304xf32>
  %n = linalg.matmul ins(%c, %b : tensor<4096x2048xf32>, tensor<2048x2304xf32>) outs(%f : tensor<4096x2304xf32>) -> tensor<4096x2304xf32>
  return %m, %n : tensor<4096x2304xf32>, tensor<4096x2304xf32>
}

// -----

// CHECK-LABEL: func @small
// CHECK-NOT:     weir.no_fuse
// CHECK:         return
func.func @small(%a: tensor<256x512xf32>, %b: tensor<512x256xf32>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %m = linalg.matmul ins(%a, %b : tensor<256x512xf32>, tensor<512x256xf32>) outs(%f : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %m : tensor<256x256xf32>
}
