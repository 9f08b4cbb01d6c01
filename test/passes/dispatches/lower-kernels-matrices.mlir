// Instructions on matrices add the products of 16-bit factors where tiles are many. The twins' factors are
// of 32 bits, their tiles are too few, their products fill no two slabs, or the profile has none of these
// instructions. The last function's kernel is printed first.
// RUN: weir-opt %s --weir-set-profile=profile=sm_80 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s
// RUN: echo '{"like": "sm_80", "name": "none", "matrix_tile": 0}' > %t.json
// RUN: weir-opt %s --weir-set-profile=profile=%t.json --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=NONE

// NONE-NOT: nvgpu.{{mma|ldmatrix}}

// CHECK-LABEL: gpu.func @contraction_256x256x63(
// CHECK-NOT:     nvgpu.{{mma|ldmatrix}}
// CHECK:         gpu.return

// CHECK-LABEL: gpu.func @contraction_128x256x64(
// CHECK-NOT:     nvgpu.{{mma|ldmatrix}}
// CHECK:         gpu.return

// CHECK-LABEL: gpu.func @contraction_256x256x64_0(
// CHECK-NOT:     nvgpu.{{mma|ldmatrix}}
// CHECK:         gpu.return

// 16 tiles of 64 x 64 by four subgroups, two slabs of 32 products for each factor. Both are copied eight
// elements at once; the second lies with its columns side by side, so its fragments are transposed.
// CHECK-LABEL: gpu.func @contraction_256x256x64(
// CHECK-SAME:    %arg0: memref<16384xbf16, {{[^>]*}}global>>
// CHECK-SAME:    workgroup(%[[A0:.*]] : memref<2048xbf16, {{.*}}workgroup>>, %[[A1:.*]] : memref<2048xbf16, {{.*}}workgroup>>, %[[B0:.*]] : memref<2048xbf16, {{.*}}workgroup>>, %[[B1:.*]] : memref<2048xbf16, {{.*}}workgroup>>)
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 16, 1, 1>
// CHECK-COUNT-2: nvgpu.device_async_copy %arg0{{.*}}, %[[A0]]{{.*}}, 8 {bypassL1}
// CHECK-COUNT-2: nvgpu.device_async_copy %arg1{{.*}}, %[[B0]]{{.*}}, 8 {bypassL1}
// CHECK-NEXT:    %[[GROUP:.*]] = nvgpu.device_async_create_group
// CHECK:         nvgpu.device_async_wait %[[GROUP]] {numGroups = 0 : i32}
// CHECK-NEXT:    gpu.barrier
// CHECK-COUNT-2: nvgpu.device_async_copy %arg0{{.*}}, %[[A1]]
// CHECK-COUNT-2: nvgpu.device_async_copy %arg1{{.*}}, %[[B1]]
// CHECK-NEXT:    nvgpu.device_async_create_group
// CHECK-COUNT-2: nvgpu.ldmatrix %[[A0]]{{.*}}numTiles = 4 : i32, transpose = false
// CHECK-COUNT-2: nvgpu.ldmatrix %[[B0]]{{.*}}numTiles = 4 : i32, transpose = true
// CHECK-COUNT-8: nvgpu.mma.sync{{.*}}mmaShape = [16, 8, 16]
// CHECK-COUNT-8: nvgpu.mma.sync
// CHECK-NOT:     nvgpu.mma
// CHECK:         nvgpu.device_async_wait {{.*}} {numGroups = 0 : i32}
// CHECK-NEXT:    gpu.barrier
// CHECK:         nvgpu.ldmatrix %[[A1]]
// CHECK-NOT:     gpu.barrier
// CHECK:         memref.store %{{.*}}, %arg2[{{.*}}] : memref<32768xvector<2xf32>
// CHECK:         gpu.return

func.func @many(%a: tensor<256x64xbf16>, %b: tensor<64x256xbf16>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x64xbf16>, tensor<64x256xbf16>) outs(%zeros : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

func.func @wide(%a: tensor<256x64xf32>, %b: tensor<64x256xf32>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x64xf32>, tensor<64x256xf32>) outs(%zeros : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

func.func @few(%a: tensor<128x64xbf16>, %b: tensor<64x256xbf16>) -> tensor<128x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<128x256xf32>) -> tensor<128x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<128x64xbf16>, tensor<64x256xbf16>) outs(%zeros : tensor<128x256xf32>) -> tensor<128x256xf32>
  return %r : tensor<128x256xf32>
}

func.func @short(%a: tensor<256x63xf16>, %b: tensor<63x256xf16>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x63xf16>, tensor<63x256xf16>) outs(%zeros : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}
