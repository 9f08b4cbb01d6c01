// Cooperative matrices add the products of factors in f16 where tiles are many. The twins' factors are of
// f32 or bf16, their tiles are too few, their products fill no two slabs, or the profile has none. The last
// function's kernel is printed first.
// RUN: weir-opt %s --weir-set-profile=profile=nvidia --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s
// RUN: weir-opt %s --weir-set-profile=profile=rdna2 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=NONE

// NONE-NOT: subgroup_mma

// CHECK-LABEL: gpu.func @contraction_256x256x63(
// CHECK-NOT:     subgroup_mma
// CHECK:         gpu.return

// CHECK-LABEL: gpu.func @contraction_128x128x64(
// CHECK-NOT:     subgroup_mma
// CHECK:         gpu.return

// CHECK-LABEL: gpu.func @contraction_256x256x64_1(
// CHECK-NOT:     subgroup_mma
// CHECK:         gpu.return

// CHECK-LABEL: gpu.func @contraction_256x256x64_0(
// CHECK-NOT:     subgroup_mma
// CHECK:         gpu.return

// 16 tiles of 64 x 64 by four subgroups, 32 products of each factor at once, four blocks a subgroup. The rows'
// factor lies with its rows side by side, and so is loaded transposed.
// CHECK-LABEL: gpu.func @contraction_256x256x64(
// CHECK-SAME:    workgroup(%[[A:.*]] : memref<2176xf16, {{.*}}workgroup>>, %[[B:.*]] : memref<2176xf16, {{.*}}workgroup>>, %[[SUMS:.*]] : memref<1024xf32, {{.*}}workgroup>>)
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 16, 1, 1>
// CHECK:         gpu.subgroup_mma_constant_matrix
// CHECK:         gpu.barrier
// CHECK-COUNT-2: gpu.subgroup_mma_load_matrix %[[A]]{{.*}}{leadDimension = 68 : index, transpose}{{.*}}-> !gpu.mma_matrix<16x16xf16, "AOp">
// CHECK-COUNT-2: gpu.subgroup_mma_load_matrix %[[B]]{{.*}}{leadDimension = 68 : index}{{.*}}-> !gpu.mma_matrix<16x16xf16, "BOp">
// CHECK-COUNT-4: gpu.subgroup_mma_compute
// CHECK:         gpu.subgroup_mma_store_matrix %{{.*}}, %[[SUMS]]{{.*}}{leadDimension = 16 : index}
// CHECK-NEXT:    gpu.barrier
// CHECK:         memref.load %[[SUMS]]
// CHECK:         gpu.barrier
// CHECK:         gpu.subgroup_mma_store_matrix
// CHECK:         gpu.return

func.func @many(%a: tensor<256x64xf16>, %b: tensor<64x256xf16>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x64xf16>, tensor<64x256xf16>) outs(%zeros : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

func.func @wide(%a: tensor<256x64xf32>, %b: tensor<64x256xf32>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x64xf32>, tensor<64x256xf32>) outs(%zeros : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

func.func @other_half(%a: tensor<256x64xbf16>, %b: tensor<64x256xbf16>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x64xbf16>, tensor<64x256xbf16>) outs(%zeros : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

func.func @few(%a: tensor<128x64xf16>, %b: tensor<64x128xf16>) -> tensor<128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %r = linalg.matmul ins(%a, %b : tensor<128x64xf16>, tensor<64x128xf16>) outs(%zeros : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %r : tensor<128x128xf32>
}

func.func @short(%a: tensor<256x63xf16>, %b: tensor<63x256xf16>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x63xf16>, tensor<63x256xf16>) outs(%zeros : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}
