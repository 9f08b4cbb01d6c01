// On a processor a factor whose products lie whole pages apart is copied for the rows that read it: caches keep few lines of
// such places. The twins: rows of 1,040 elements lie elsewhere, and 32 rows are too few.
// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v3 --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s

// The last function is printed first.
// CHECK-LABEL: gpu.func @contraction_32x1024x256(
// CHECK-NOT:   memref<4096xf32, #gpu.address_space<private>>
// CHECK-LABEL: gpu.func @contraction_64x1040x256(
// CHECK-NOT:   memref<4096xf32, #gpu.address_space<private>>
// CHECK-LABEL: gpu.func @contraction_64x1024x256(
// CHECK:       vector.store %{{.*}} : memref<4096xf32, #gpu.address_space<private>>, vector<8xf32>

func.func @whole_pages(%a: tensor<64x256xf32>, %b: tensor<256x1024xf32>, %c: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
  %m = linalg.matmul ins(%a, %b : tensor<64x256xf32>, tensor<256x1024xf32>) outs(%c : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  return %m : tensor<64x1024xf32>
}
func.func @other_lines(%a: tensor<64x256xf32>, %b: tensor<256x1040xf32>, %c: tensor<64x1040xf32>) -> tensor<64x1040xf32> {
  %m = linalg.matmul ins(%a, %b : tensor<64x256xf32>, tensor<256x1040xf32>) outs(%c : tensor<64x1040xf32>) -> tensor<64x1040xf32>
  return %m : tensor<64x1040xf32>
}
func.func @few_rows(%a: tensor<32x256xf32>, %b: tensor<256x1024xf32>, %c: tensor<32x1024xf32>) -> tensor<32x1024xf32> {
  %m = linalg.matmul ins(%a, %b : tensor<32x256xf32>, tensor<256x1024xf32>) outs(%c : tensor<32x1024xf32>) -> tensor<32x1024xf32>
  return %m : tensor<32x1024xf32>
}
