// Where a profile has units, a row's team grows with the row: 16 elements an invocation, from a subgroup to the largest
// workgroup. A workgroup that owns a row owns several of them, as many as keep all units busy. The twin: without units each
// row has the profile's workgroup, or subgroup.
// RUN: weir-opt %s --weir-set-profile=profile=sm_90 --weir-decompose-norms --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | grep gpu.func | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-decompose-norms --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | grep gpu.func | FileCheck %s --check-prefix=OWN

// CHECK:      gpu.func @row_1024x32000({{.*}}known_block_size = array<i32: 1024, 1, 1>, known_grid_size = array<i32: 128, 1, 1>
// CHECK-NEXT: gpu.func @row_4096x1024({{.*}}known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1024, 1, 1>
// CHECK-NEXT: gpu.func @row_4096x512({{.*}}known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 512, 1, 1>
// OWN-COUNT-4: known_block_size = array<i32: 8, 1, 1>

// A row of 257 vectors is not divided by 128 invocations.
// CHECK-NEXT: gpu.func @row_20x1028({{.*}}known_block_size = array<i32: 256, 1, 1>
func.func @rest(%x: tensor<20x1028xf32>) -> tensor<20x1028xf32> {
  %e = tensor.empty() : tensor<20x1028xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<20x1028xf32>) outs(%e : tensor<20x1028xf32>) -> tensor<20x1028xf32>
  return %y : tensor<20x1028xf32>
}
func.func @subgroup(%x: tensor<4096x512xf32>) -> tensor<4096x512xf32> {
  %e = tensor.empty() : tensor<4096x512xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<4096x512xf32>) outs(%e : tensor<4096x512xf32>) -> tensor<4096x512xf32>
  return %y : tensor<4096x512xf32>
}
func.func @few(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> {
  %e = tensor.empty() : tensor<4096x1024xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<4096x1024xf32>) outs(%e : tensor<4096x1024xf32>) -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}
func.func @all(%x: tensor<1024x32000xf32>) -> tensor<1024x32000xf32> {
  %e = tensor.empty() : tensor<1024x32000xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<1024x32000xf32>) outs(%e : tensor<1024x32000xf32>) -> tensor<1024x32000xf32>
  return %y : tensor<1024x32000xf32>
}
