// The maximum of a 3x3 window is computed for neighbouring windows at once, since 3 terms are no
// vector. The twin's terms are rows of memory, whose vectors are of terms.
// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v4 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s

// CHECK-LABEL: gpu.func @row_4x3x8(
// CHECK:         arith.maximumf {{.*}} : vector<8xf32>
// CHECK:         arith.maximumf {{.*}} : f32
// CHECK:         memref.store
// CHECK:         gpu.return

// CHECK-LABEL: gpu.func @row_4x16x3x3(
// CHECK:         vector.load %arg0[{{.*}}] : {{.*}}, vector<16xf32>
// CHECK:         arith.maximumf {{.*}} : vector<16xf32>
// CHECK-NOT:     arith.maximumf {{.*}} : f32
// CHECK:         vector.store {{.*}}, vector<16xf32>
// CHECK:         gpu.return
func.func @windows(%x: tensor<6x18xf32>) -> tensor<4x16xf32> {
  %low = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<3x3xf32>
  %e = tensor.empty() : tensor<4x16xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(h, w, y, x) -> (h + y, w + x)>, affine_map<(h, w, y, x) -> (y, x)>, affine_map<(h, w, y, x) -> (h, w)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %window : tensor<6x18xf32>, tensor<3x3xf32>) outs(%lows : tensor<4x16xf32>) {
  ^bb0(%a: f32, %none: f32, %o: f32):
    %m = arith.maximumf %o, %a : f32
    linalg.yield %m : f32
  } -> tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}

func.func @rows(%x: tensor<4x3x8xf32>) -> tensor<4xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, h, w) -> (n, h, w)>, affine_map<(n, h, w) -> (n)>], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<4x3x8xf32>) outs(%lows : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %o, %a : f32
    linalg.yield %m : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
