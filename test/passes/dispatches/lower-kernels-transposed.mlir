// A kernel that does nothing but transpose takes tiles of 32 x 32 by way of workgroup memory, whose lines have 33 elements:
// four elements of an invocation of 256. The twins compute something, are no whole tiles, keep neighbours neighbours, or
// have elements of 16 bits; and a profile that shares no workgroup memory has no such tiles.
// RUN: weir-opt %s --weir-set-profile=profile=sm_80 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels -split-input-file | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels -split-input-file | FileCheck %s --check-prefix=NONE

// NONE-NOT: workgroup>

// CHECK-LABEL: gpu.func @map_3x64x96(
// CHECK-SAME:    workgroup(%[[TILE:.*]] : memref<1056xf32, {{.*}}workgroup>>)
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 18, 1, 1>
// CHECK-COUNT-4: memref.load %arg0
// CHECK-COUNT-4: memref.store %{{.*}}, %[[TILE]]
// CHECK:         gpu.barrier
// CHECK-COUNT-4: memref.load %[[TILE]]
// CHECK-NOT:     memref.load
// CHECK:         gpu.return
func.func @whole(%x: tensor<3x96x64xf32>) -> tensor<3x64x96xf32> {
  %e = tensor.empty() : tensor<3x64x96xf32>
  %y = linalg.transpose ins(%x : tensor<3x96x64xf32>) outs(%e : tensor<3x64x96xf32>) permutation = [0, 2, 1]
  return %y : tensor<3x64x96xf32>
}

// -----

// CHECK-LABEL: gpu.func @map_64x96(
// CHECK-NOT:     workgroup>
// CHECK:         gpu.return
#across = affine_map<(i, j) -> (j, i)>
#along = affine_map<(i, j) -> (i, j)>
func.func @computes(%x: tensor<96x64xf32>) -> tensor<64x96xf32> {
  %e = tensor.empty() : tensor<64x96xf32>
  %y = linalg.generic {indexing_maps = [#across, #along], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<96x64xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<64x96xf32>
  return %y : tensor<64x96xf32>
}

// -----

// CHECK-LABEL: gpu.func @map_70x96(
// CHECK-NOT:     workgroup>
// CHECK:         gpu.return
func.func @no_whole_tiles(%x: tensor<96x70xf32>) -> tensor<70x96xf32> {
  %e = tensor.empty() : tensor<70x96xf32>
  %y = linalg.transpose ins(%x : tensor<96x70xf32>) outs(%e : tensor<70x96xf32>) permutation = [1, 0]
  return %y : tensor<70x96xf32>
}

// -----

// CHECK-LABEL: gpu.func @map_2x64x96(
// CHECK-NOT:     workgroup>
// CHECK:         gpu.return
func.func @keeps_neighbours(%x: tensor<64x2x96xf32>) -> tensor<2x64x96xf32> {
  %e = tensor.empty() : tensor<2x64x96xf32>
  %y = linalg.transpose ins(%x : tensor<64x2x96xf32>) outs(%e : tensor<2x64x96xf32>) permutation = [1, 0, 2]
  return %y : tensor<2x64x96xf32>
}

// -----

// CHECK-LABEL: gpu.func @map_64x96(
// CHECK-NOT:     workgroup>
// CHECK:         gpu.return
func.func @halves(%x: tensor<96x64xf16>) -> tensor<64x96xf16> {
  %e = tensor.empty() : tensor<64x96xf16>
  %y = linalg.transpose ins(%x : tensor<96x64xf16>) outs(%e : tensor<64x96xf16>) permutation = [1, 0]
  return %y : tensor<64x96xf16>
}
