// A workgroup shares slabs of the factors where tiles are many. The twins' tiles are too few, would be
// behind the end by more than half, or their products fill no two slabs. The last function's kernel is
// printed first.
// RUN: weir-opt %s --weir-set-profile=profile=sm_80 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s
// RUN: weir-opt %s --weir-set-profile=profile=nvidia --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=PLAIN

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

// Ten slabs in three stages: three rounds, of which the last copies no slab behind the end, and one slab.
// CHECK-LABEL: gpu.func @contraction_256x256x160(
// CHECK:         scf.for %{{.*}} = %c0 to %c3
// CHECK:           nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// CHECK-NEXT:      gpu.barrier
// CHECK:           %[[IS_THERE:.*]] = arith.cmpi ult, %{{.*}}, %c10
// CHECK:           scf.if %[[IS_THERE]] {
// CHECK-COUNT-5:     nvgpu.device_async_copy
// CHECK:           nvgpu.device_async_create_group
// CHECK-COUNT-2:   nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// CHECK:         nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// CHECK-NOT:     nvgpu.device_async_copy
// CHECK:         gpu.return

// 16 tiles of 64 x 64, in slabs of 16 products. The first factor is computed, so it is loaded before the
// products of the slab before are added and stored behind them, to the other one of two slabs. The second is
// copied.
// CHECK-LABEL: gpu.func @contraction_256x256x64_0(
// CHECK-SAME:    workgroup(%[[A0:.*]] : memref<1088xf32, {{.*}}workgroup>>, %[[A1:.*]] : memref<1088xf32, {{.*}}workgroup>>, %[[A2:.*]] : memref<1088xf32, {{.*}}workgroup>>, %[[B0:.*]] : memref<1088xf32, {{.*}}workgroup>>, %[[B1:.*]] : memref<1088xf32, {{.*}}workgroup>>, %[[B2:.*]] : memref<1088xf32, {{.*}}workgroup>>)
// CHECK-NOT:     nvgpu.device_async_copy %arg0
// CHECK:         nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// CHECK-NEXT:    gpu.barrier
// CHECK:         nvgpu.device_async_copy %arg1[{{.*}}], %[[B2]]
// CHECK:         memref.load %arg0
// CHECK:         scf.for
// CHECK-COUNT-128: math.fma
// CHECK:         }
// CHECK-COUNT-4: memref.store %{{.*}}, %[[A2]]
// CHECK-NOT:     gpu.barrier
// CHECK:         nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// CHECK-NEXT:    gpu.barrier
// CHECK:         gpu.return

// Both factors are copied to three slabs each: the first element by element along its products, eight side by
// side, the second in vectors along its columns. Two slabs are on their way while one is added, eight products
// behind each other. A slab is written anew behind the barrier of the one that follows it.
// CHECK-LABEL: gpu.func @contraction_256x256x64(
// CHECK-SAME:    workgroup(%[[A0:.*]] : memref<1088xf32, {{.*}}workgroup>>, %[[A1:.*]] : memref<1088xf32, {{.*}}workgroup>>, %[[A2:.*]] : memref<1088xf32, {{.*}}workgroup>>, %[[B0:.*]] : memref<1088xf32, {{.*}}workgroup>>, %[[B1:.*]] : memref<1088xf32, {{.*}}workgroup>>, %[[B2:.*]] : memref<1088xf32, {{.*}}workgroup>>)
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 16, 1, 1>
// CHECK-COUNT-4: nvgpu.device_async_copy %arg0[{{.*}}], %[[A0]][{{.*}}], 1 :
// CHECK:         nvgpu.device_async_copy %arg1[{{.*}}], %[[B0]][{{.*}}], 4 {bypassL1} :
// CHECK-NEXT:    %[[GROUP:.*]] = nvgpu.device_async_create_group
// CHECK-COUNT-4: nvgpu.device_async_copy %arg0[{{.*}}], %[[A1]]
// CHECK:         nvgpu.device_async_copy %arg1[{{.*}}], %[[B1]]
// CHECK-NEXT:    nvgpu.device_async_create_group
// CHECK:         nvgpu.device_async_wait %[[GROUP]] {numGroups = 1 : i32}
// CHECK-NEXT:    gpu.barrier
// CHECK-COUNT-4: nvgpu.device_async_copy %arg0[{{.*}}], %[[A2]]
// CHECK:         nvgpu.device_async_copy %arg1[{{.*}}], %[[B2]]
// CHECK-NEXT:    nvgpu.device_async_create_group
// CHECK:         scf.for
// CHECK:           vector.load %[[A0]]
// CHECK-COUNT-128: math.fma
// CHECK-NOT:       math.fma
// CHECK:         nvgpu.device_async_wait %[[GROUP]] {numGroups = 1 : i32}
// CHECK-NEXT:    gpu.barrier
// CHECK-COUNT-4: nvgpu.device_async_copy %arg0[{{.*}}], %[[A0]]
// CHECK:         vector.load %[[A1]]
// CHECK:         memref.store %{{.*}}, %arg2[{{.*}}] : memref<16384xvector<4xf32>
// CHECK:         gpu.return

// The twin that copies nothing: the next slab is loaded before the products of this one are added, and stored
// behind a barrier.
// PLAIN-NOT:   nvgpu
// PLAIN-LABEL: gpu.func @contraction_256x256x64(
// PLAIN-SAME:    workgroup(%[[A:.*]] : memref<1088xf32, {{.*}}workgroup>>, %[[B:.*]] : memref<1088xf32, {{.*}}workgroup>>)
// PLAIN:         memref.load %arg0[{{.*}}] : memref<4096xvector<4xf32>
// PLAIN:         memref.load %arg1[{{.*}}] : memref<4096xvector<4xf32>
// PLAIN:         scf.for
// PLAIN-COUNT-4:   memref.store %{{.*}}, %[[A]]
// PLAIN-COUNT-4:   memref.store %{{.*}}, %[[B]]
// PLAIN:           gpu.barrier
// PLAIN:           memref.load %arg0
// PLAIN:           memref.load %arg1
// PLAIN:           scf.for
// PLAIN-COUNT-128:   math.fma
// PLAIN-NOT:         math.fma
// PLAIN:           gpu.barrier
// PLAIN:         memref.store %{{.*}}, %arg2[{{.*}}] : memref<16384xvector<4xf32>
// PLAIN:         gpu.return

func.func @many(%a: tensor<256x64xf32>, %b: tensor<64x256xf32>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x64xf32>, tensor<64x256xf32>) outs(%zeros : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

func.func @computed(%a: tensor<256x64xf32>, %b: tensor<64x256xf32>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<256x64xf32>
  %twice = linalg.add ins(%a, %a : tensor<256x64xf32>, tensor<256x64xf32>) outs(%ea : tensor<256x64xf32>) -> tensor<256x64xf32>
  %e = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%twice, %b : tensor<256x64xf32>, tensor<64x256xf32>) outs(%zeros : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

func.func @long(%a: tensor<256x160xf32>, %b: tensor<160x256xf32>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x160xf32>, tensor<160x256xf32>) outs(%zeros : tensor<256x256xf32>) -> tensor<256x256xf32>
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
