// The elements behind the last full vector are taken in shorter ones. What each of these reads of
// an operand that repeats is a vector of their own size, though its indices are the same.
// The twin has no rest.
// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v4 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s

// CHECK-LABEL: gpu.func @map_8x4(
// CHECK-NOT:     vector<8xf32>
// CHECK:         gpu.return

// CHECK-LABEL: gpu.func @map_6x4(
// CHECK:         %[[LONG:.*]] = vector.from_elements {{.*}} : vector<16xf32>
// CHECK:         arith.addf %{{.*}}, %[[LONG]] : vector<16xf32>
// CHECK:         %[[SHORT:.*]] = vector.from_elements {{.*}} : vector<8xf32>
// CHECK:         arith.addf %{{.*}}, %[[SHORT]] : vector<8xf32>
func.func @rest(%x: tensor<4xf32>, %y: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %e = tensor.empty() : tensor<6x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<6x4xf32>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%b: f32, %out: f32):
    %j = linalg.index 1 : index
    %a = tensor.extract %x[%j] : tensor<4xf32>
    %s = arith.addf %b, %a : f32
    linalg.yield %s : f32
  } -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

func.func @no_rest(%x: tensor<4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%b: f32, %out: f32):
    %j = linalg.index 1 : index
    %a = tensor.extract %x[%j] : tensor<4xf32>
    %s = arith.addf %b, %a : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
