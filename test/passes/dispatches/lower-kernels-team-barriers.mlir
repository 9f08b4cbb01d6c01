// What a team combines in a pass has a barrier, behind which all read what each subgroup has. Each value has its own bytes,
// so that who writes those of the next row is behind the barrier of another pass, or of copies, or else behind one more.
// RUN: echo '{"like": "nvidia", "name": "small", "units": 1}' > %t.vulkan.json
// RUN: echo '{"like": "sm_90", "name": "small", "units": 1}' > %t.cuda.json
// RUN: weir-opt %s --weir-set-profile=profile=%t.vulkan.json --weir-decompose-norms --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefixes=CHECK,VULKAN
// RUN: weir-opt %s --weir-set-profile=profile=%t.cuda.json --weir-decompose-norms --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefixes=CHECK,CUDA

// The last function is printed first. Two sums of one pass share a barrier, and there is one pass: another barrier is
// before the stores, if not that of the copies.
// CHECK-LABEL:  gpu.func @row_64x4096_0(
// CHECK-SAME:   workgroup({{.*}}[[A:%arg[0-9]+]] : memref<8xf32, #gpu.address_space<workgroup>>, [[B:%arg[0-9]+]] : memref<8xf32, #gpu.address_space<workgroup>>)
// CHECK:        scf.for
// CUDA:           nvgpu.device_async_wait
// CUDA-NEXT:      gpu.barrier
// CUDA-NOT:       gpu.barrier
// VULKAN:         gpu.barrier
// CHECK:          memref.store %{{.*}}, [[A]][
// CHECK:          memref.store %{{.*}}, [[B]][
// CHECK:          gpu.barrier
// CHECK-COUNT-8:  memref.load [[A]][
// CHECK-COUNT-8:  memref.load [[B]][
// CHECK-NOT:      gpu.barrier
// CHECK:          gpu.return

// Two passes have a barrier each.
// CHECK-LABEL:  gpu.func @row_64x4096(
// CHECK:        scf.for
// CUDA:           nvgpu.device_async_wait
// CUDA-NEXT:      gpu.barrier
// CHECK-NOT:      gpu.barrier
// CHECK:          memref.store {{.*}} memref<8xf32, #gpu.address_space<workgroup>>
// CHECK:          gpu.barrier
// CHECK-NOT:      gpu.barrier
// CHECK:          memref.store {{.*}} memref<8xf32, #gpu.address_space<workgroup>>
// CHECK:          gpu.barrier
// CHECK-NOT:      gpu.barrier
// CHECK:          gpu.return

func.func @two_passes(%x: tensor<64x4096xf32>) -> tensor<64x4096xf32> {
  %y = norm.layer_norm %x {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<64x4096xf32>
  return %y : tensor<64x4096xf32>
}

func.func @one_pass(%x: tensor<64x4096xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %a, %b = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x4096xf32>) outs(%zero, %zero : tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%v: f32, %s: f32, %t: f32):
    %square = arith.mulf %v, %v : f32
    %sum = arith.addf %s, %v : f32
    %squares = arith.addf %t, %square : f32
    linalg.yield %sum, %squares : f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>)
  return %a, %b : tensor<64xf32>, tensor<64xf32>
}
