// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v3 --weir-lower-kernels -split-input-file | FileCheck %s

// No target whose workgroups have several invocations computes stages.
// RUN: not weir-opt %s --weir-set-profile --weir-lower-kernels -split-input-file 2>&1 | FileCheck %s --check-prefix=GPU
// GPU: error: has stages, which target lavapipe does not compute: a stage is for one invocation

// A workgroup has a group's product in memory of its own, 4 x 8 of 5 x 4 x 8 elements, and writes what the second stage
// makes of it in the group's place.
// CHECK-LABEL: gpu.module @staged
// CHECK:         gpu.func @staged({{.*}} %[[R:arg2]]: memref<160xf32
// CHECK-SAME:      known_grid_size = array<i32: 5, 1, 1>
// CHECK:           %[[KEPT:alloca]] = memref.alloca() : memref<32xf32, #gpu.address_space<private>>
// CHECK:           gpu.block_id x
// CHECK:           vector.store %{{[0-9]+}}, %[[KEPT]][
// CHECK:           %[[READ:[0-9]+]] = vector.load %[[KEPT]][
// CHECK:           %[[POWER:[0-9]+]] = math.exp2 %[[READ]]
// CHECK:           vector.store %[[POWER]], %[[R]]
// CHECK:           gpu.return
// CHECK:         schedule.dispatch @staged::@staged [5, 1, 1]
#a = affine_map<(g, i, j, k) -> (g, i, k)>
#b = affine_map<(g, i, j, k) -> (g, k, j)>
#c = affine_map<(g, i, j, k) -> (g, i, j)>
#id = affine_map<(g, i, j) -> (g, i, j)>
func.func @one(%a: tensor<5x4x3xf32>, %b: tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  %k = schedule.kernel "staged" (%a, %b) : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  ^bb0(%x: tensor<5x4x3xf32>, %y: tensor<5x3x8xf32>):
    %m = schedule.kernel "product" (%x, %y) attributes {group_dims = array<i64: 0>} : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x3xf32>, %q: tensor<5x3x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x4x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4x8xf32>) -> tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%p, %q : tensor<5x4x3xf32>, tensor<5x3x8xf32>) outs(%z : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %v: f32, %o: f32):
        %s = arith.mulf %u, %v : f32
        %t = arith.addf %o, %s : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    %n = schedule.kernel "power" (%m) attributes {group_dims = array<i64: 0>} : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x8xf32>):
      %e = tensor.empty() : tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%p : tensor<5x4x8xf32>) outs(%e : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %o: f32):
        %t = math.exp2 %u : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    schedule.yield %n : tensor<5x4x8xf32>
  }
  return %k : tensor<5x4x8xf32>
}

// -----

// Twin: what is returned as well is in both places.
// CHECK-LABEL: gpu.module @staged
// CHECK:         gpu.func @staged({{.*}}, %[[FIRST:arg2]]: memref<160xf32{{.*}}, %[[SECOND:arg3]]: memref<160xf32
// CHECK:           %[[KEPT:alloca]] = memref.alloca() : memref<32xf32
// CHECK:           vector.store %[[SUM:[0-9]+]], %[[KEPT]][
// CHECK:           vector.store %[[SUM]], %[[FIRST]][
// CHECK:           vector.load %[[KEPT]][
// CHECK:           vector.store %{{[0-9]+}}, %[[SECOND]][
#a = affine_map<(g, i, j, k) -> (g, i, k)>
#b = affine_map<(g, i, j, k) -> (g, k, j)>
#c = affine_map<(g, i, j, k) -> (g, i, j)>
#id = affine_map<(g, i, j) -> (g, i, j)>
func.func @both(%a: tensor<5x4x3xf32>, %b: tensor<5x3x8xf32>) -> (tensor<5x4x8xf32>, tensor<5x4x8xf32>) {
  %k:2 = schedule.kernel "staged" (%a, %b) : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> (tensor<5x4x8xf32>, tensor<5x4x8xf32>) {
  ^bb0(%x: tensor<5x4x3xf32>, %y: tensor<5x3x8xf32>):
    %m = schedule.kernel "product" (%x, %y) attributes {group_dims = array<i64: 0>} : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x3xf32>, %q: tensor<5x3x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x4x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4x8xf32>) -> tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%p, %q : tensor<5x4x3xf32>, tensor<5x3x8xf32>) outs(%z : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %v: f32, %o: f32):
        %s = arith.mulf %u, %v : f32
        %t = arith.addf %o, %s : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    %n = schedule.kernel "power" (%m) attributes {group_dims = array<i64: 0>} : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x8xf32>):
      %e = tensor.empty() : tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%p : tensor<5x4x8xf32>) outs(%e : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %o: f32):
        %t = math.exp2 %u : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    schedule.yield %m, %n : tensor<5x4x8xf32>, tensor<5x4x8xf32>
  }
  return %k#0, %k#1 : tensor<5x4x8xf32>, tensor<5x4x8xf32>
}
