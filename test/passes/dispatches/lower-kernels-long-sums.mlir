// A long sum of floats is made in blocks, each added up from zero, and many blocks in blocks of these.
// Its twins stay one loop: a shorter sum, a maximum, a sum of integers.
// RUN: weir-opt %s -split-input-file --weir-set-profile=profile=x86-64-v3 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s
// RUN: weir-opt %s -split-input-file --weir-set-profile=profile=lavapipe --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=VULKAN

// CHECK-LABEL: gpu.func @row_131072(
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<8xf32>
// CHECK:         scf.for %[[BLOCK:[a-z0-9]*]] = %c0 to %c8 step %c1 iter_args(%[[TOTAL:[a-z0-9]*]] = %[[ZERO]], {{.*}})
// CHECK:           %[[FIRST:.*]] = arith.muli %[[BLOCK]], %c512 : index
// CHECK:           %[[SUM:.*]]:4 = scf.for %[[TRIP:[a-z0-9]*]] = %c0 to %c512 step %c1 iter_args(%[[RUNNING:[a-z0-9]*]] = %[[ZERO]], {{.*}})
// CHECK:             arith.addi %[[FIRST]], %[[TRIP]] : index
// CHECK:             arith.addf %[[RUNNING]], {{.*}} : vector<8xf32>
// CHECK:           arith.addf %[[TOTAL]], %[[SUM]]#0 : vector<8xf32>
// CHECK:         gpu.return
// VULKAN-LABEL: gpu.func @row_131072(
// VULKAN:         scf.for {{.*}} = %c0 to %c8 step
// VULKAN:           scf.for {{.*}} = %c0 to %c512 step
// VULKAN:         gpu.return
func.func @long(%x: tensor<131072xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<131072xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// 65,600 turns of 32 elements are 2 times 64 blocks, and a last block of 64 turns.
// CHECK-LABEL: gpu.func @row_2099200(
// CHECK:         scf.for {{.*}} = %c0 to %c2 step
// CHECK:           scf.for {{.*}} = %c0 to %c64 step
// CHECK:             scf.for {{.*}} = %c0 to %c512 step
// CHECK:         scf.for {{.*}} = %c0 to %c64 step {{.*}} iter_args(%{{.*}} = %cst, %{{.*}} = %cst, %{{.*}} = %cst, %{{.*}} = %cst)
// CHECK:         gpu.return
func.func @longer(%x: tensor<2099200xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<2099200xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// A loop that lavapipe would end early is unrolled, this one too often to have room for blocks.
// CHECK-LABEL: gpu.func @row_33554432(
// CHECK:         scf.for {{.*}} = %c0 to %c32 step
// CHECK:           scf.for {{.*}} = %c0 to %c64 step
// CHECK:             scf.for {{.*}} = %c0 to %c512 step
// CHECK:         gpu.return
// VULKAN-LABEL: gpu.func @row_33554432(
// VULKAN:         scf.for {{.*}} = %c0 to %c1048576 step
// VULKAN-NOT:     scf.for
// VULKAN:         gpu.return
func.func @unrolled(%x: tensor<33554432xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<33554432xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %f = math.exp %a : f32
    %r = arith.addf %o, %f : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// CHECK-LABEL: gpu.func @row_32768(
// CHECK:         scf.for {{.*}} = %c0 to %c1024 step
// CHECK-NOT:     scf.for
// CHECK:         gpu.return
// VULKAN-LABEL: gpu.func @row_32768(
// VULKAN:         scf.for {{.*}} = %c0 to %c1024 step
// VULKAN-NOT:     scf.for
// VULKAN:         gpu.return
func.func @short(%x: tensor<32768xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<32768xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// CHECK-LABEL: gpu.func @row_131104(
// CHECK:         scf.for {{.*}} = %c0 to %c4097 step
// CHECK-NOT:     scf.for
// CHECK:         gpu.return
func.func @maximum(%x: tensor<131104xf32>) -> tensor<f32> {
  %zero = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<131104xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// CHECK-LABEL: gpu.func @row_131136(
// CHECK:         scf.for {{.*}} = %c0 to %c4098 step
// CHECK-NOT:     scf.for
// CHECK:         gpu.return
func.func @integers(%x: tensor<131136xi32>) -> tensor<i32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<i32>
  %init = linalg.fill ins(%zero : i32) outs(%e : tensor<i32>) -> tensor<i32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<131136xi32>) outs(%init : tensor<i32>) {
  ^bb0(%a: i32, %o: i32):
    %r = arith.addi %o, %a : i32
    linalg.yield %r : i32
  } -> tensor<i32>
  return %s : tensor<i32>
}

// -----

// CHECK-LABEL: gpu.func @contraction_48x16x8192(
// CHECK:         scf.for {{.*}} = %c0 to %c16 step {{.*}} iter_args
// CHECK:           scf.for {{.*}} = %c0 to %c128 step {{.*}} iter_args(%{{.*}} = %cst, {{.*}})
// CHECK-COUNT-24:    math.fma
// CHECK:         gpu.return
// VULKAN-LABEL: gpu.func @contraction_48x16x8192(
// VULKAN:         scf.for {{.*}} = %c0 to %c16 step {{.*}} iter_args
// VULKAN:           scf.for {{.*}} = %c0 to %c32 step {{.*}} iter_args(%{{.*}} = %cst, {{.*}})
// VULKAN:             scf.for {{.*}} = %c0 to %c8 step
// VULKAN:         gpu.return
func.func @products(%a: tensor<48x8192xf32>, %b: tensor<8192x16xf32>) -> tensor<48x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<48x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<48x16xf32>) -> tensor<48x16xf32>
  %c = linalg.matmul ins(%a, %b : tensor<48x8192xf32>, tensor<8192x16xf32>) outs(%init : tensor<48x16xf32>) -> tensor<48x16xf32>
  return %c : tensor<48x16xf32>
}

// -----

// CHECK-LABEL: gpu.func @contraction_48x16x4096(
// CHECK:         scf.for {{.*}} = %c0 to %c1024 step {{.*}} iter_args
// CHECK:         gpu.return
// VULKAN-LABEL: gpu.func @contraction_48x16x4096(
// VULKAN:         scf.for {{.*}} = %c0 to %c256 step {{.*}} iter_args
// VULKAN:           scf.for {{.*}} = %c0 to %c8 step
// VULKAN:         gpu.return
func.func @fewer_products(%a: tensor<48x4096xf32>, %b: tensor<4096x16xf32>) -> tensor<48x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<48x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<48x16xf32>) -> tensor<48x16xf32>
  %c = linalg.matmul ins(%a, %b : tensor<48x4096xf32>, tensor<4096x16xf32>) outs(%init : tensor<48x16xf32>) -> tensor<48x16xf32>
  return %c : tensor<48x16xf32>
}

// -----

// Parts of long columns have 4,096 rows, those of others are a 64th.
// CHECK-LABEL: gpu.func @column_524288x8(
// CHECK-SAME:    %arg1: memref<1024xf32, #gpu.address_space<global>>
func.func @columns(%x: tensor<524288x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<524288x8xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %s : tensor<8xf32>
}

// -----

// CHECK-LABEL: gpu.func @column_524296x8(
// CHECK-SAME:    %arg1: memref<512xf32, #gpu.address_space<global>>
func.func @maxima_of_columns(%x: tensor<524296x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<524296x8xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %s : tensor<8xf32>
}
