// A workgroup shares slabs of the factors where tiles are many. The twins' tiles are too few, would be
// behind the end by more than half, or their products fill no two slabs. The last function's kernel is
// printed first.
// RUN: weir-opt %s --weir-set-profile=profile=sm_80 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s

// 512 tiles of 128 x 256, 8 x 16 sums of an invocation: the busiest of 108 units has five. The twin's units have three of
// 64 x 128 each rather than one of four times as many sums.
// CHECK-LABEL: gpu.func @contraction_1024x2048x32(
// CHECK-SAME:    known_grid_size = array<i32: 256, 1, 1>
// CHECK-LABEL: gpu.func @contraction_4096x4096x32(
// CHECK-SAME:    known_grid_size = array<i32: 512, 1, 1>
// CHECK-COUNT-1024: math.fma
// CHECK:         gpu.barrier
// CHECK-COUNT-1024: math.fma
// CHECK-NOT:     math.fma
// CHECK:         gpu.return

// CHECK-LABEL: gpu.func @contraction_256x256x31(
// CHECK-NOT:     workgroup>
// CHECK:         gpu.return

// CHECK-LABEL: gpu.func @contraction_20x4096x64(
// CHECK-NOT:     workgroup>
// CHECK:         gpu.return

// CHECK-LABEL: gpu.func @contraction_128x256x64(
// CHECK-NOT:     workgroup>
// CHECK:         gpu.return

// 16 tiles of 64 x 64, in slabs of 16 products. The first factor is loaded along its products and
// stored one by one, the second along its columns. The next slab is loaded before the products of
// this one are added, eight behind each other.
// CHECK-LABEL: gpu.func @contraction_256x256x64(
// CHECK-SAME:    workgroup(%[[A:.*]] : memref<1088xf32, {{.*}}workgroup>>, %[[B:.*]] : memref<1088xf32, {{.*}}workgroup>>)
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 16, 1, 1>
// CHECK:         memref.load %arg0[{{.*}}] : memref<4096xvector<4xf32>
// CHECK:         memref.load %arg1[{{.*}}] : memref<4096xvector<4xf32>
// CHECK:         scf.for
// CHECK-COUNT-4:   memref.store %{{.*}}, %[[A]]
// CHECK-COUNT-4:   memref.store %{{.*}}, %[[B]]
// CHECK:           gpu.barrier
// CHECK:           memref.load %arg0
// CHECK:           memref.load %arg1
// CHECK:           scf.for
// CHECK-COUNT-128:   math.fma
// CHECK-NOT:         math.fma
// CHECK:           gpu.barrier
// CHECK:         memref.store %{{.*}}, %arg2[{{.*}}] : memref<16384xvector<4xf32>
// CHECK:         gpu.return

func.func @many(%a: tensor<256x64xf32>, %b: tensor<64x256xf32>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x64xf32>, tensor<64x256xf32>) outs(%zeros : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

func.func @few(%a: tensor<128x64xf32>, %b: tensor<64x256xf32>) -> tensor<128x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<128x256xf32>) -> tensor<128x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<128x64xf32>, tensor<64x256xf32>) outs(%zeros : tensor<128x256xf32>) -> tensor<128x256xf32>
  return %r : tensor<128x256xf32>
}

func.func @flat(%a: tensor<20x64xf32>, %b: tensor<64x4096xf32>) -> tensor<20x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x4096xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<20x4096xf32>) -> tensor<20x4096xf32>
  %r = linalg.matmul ins(%a, %b : tensor<20x64xf32>, tensor<64x4096xf32>) outs(%zeros : tensor<20x4096xf32>) -> tensor<20x4096xf32>
  return %r : tensor<20x4096xf32>
}

func.func @short(%a: tensor<256x31xf32>, %b: tensor<31x256xf32>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x31xf32>, tensor<31x256xf32>) outs(%zeros : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

func.func @large(%a: tensor<4096x32xf32>, %b: tensor<32x4096xf32>) -> tensor<4096x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4096x32xf32>, tensor<32x4096xf32>) outs(%zeros : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %r : tensor<4096x4096xf32>
}

func.func @even(%a: tensor<1024x32xf32>, %b: tensor<32x2048xf32>) -> tensor<1024x2048xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024x2048xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<1024x2048xf32>) -> tensor<1024x2048xf32>
  %r = linalg.matmul ins(%a, %b : tensor<1024x32xf32>, tensor<32x2048xf32>) outs(%zeros : tensor<1024x2048xf32>) -> tensor<1024x2048xf32>
  return %r : tensor<1024x2048xf32>
}
