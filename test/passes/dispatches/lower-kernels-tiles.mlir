// Vectors of a contraction are of columns in several dimensions where the last one is short. The
// twins' last dimension fills a vector.
// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v4 --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s

// A row of 16 pixels is loaded from the image.
// CHECK-LABEL: gpu.func @contraction_8x64x16x16x16x3x3(
// CHECK-NOT:     memref<{{.*}}private>>, vector<2xf32>
// CHECK:         vector.load %arg0[{{.*}}] : {{.*}}, vector<16xf32>
// CHECK:         vector.store %{{.*}}, %arg2[{{.*}}] : memref<131072xf32, {{.*}}>, vector<16xf32>
// CHECK:         gpu.return

// The pixels of 8 images of 2x2 are two vectors. They are copied in runs of 2, and stored in runs of
// 4, the pixels of an image.
// CHECK-LABEL: gpu.func @contraction_8x64x2x2x16x3x3(
// CHECK:         vector.load %{{.*}} : memref<2048xf32, {{.*}}>, vector<2xf32>
// CHECK:         vector.store %{{.*}} : memref<{{.*}}private>>, vector<2xf32>
// CHECK:         vector.load %{{.*}} : memref<{{.*}}private>>, vector<16xf32>
// CHECK:         vector.store %{{.*}}, %arg2[{{.*}}] : memref<2048xf32, {{.*}}>, vector<4xf32>
// CHECK:         gpu.return

#image = affine_map<(n, o, h, w, i, y, x) -> (n, i, h + y, w + x)>
#filter = affine_map<(n, o, h, w, i, y, x) -> (o, i, y, x)>
#result = affine_map<(n, o, h, w, i, y, x) -> (n, o, h, w)>
func.func @small(%x: tensor<8x16x4x4xf32>, %f: tensor<64x16x3x3xf32>) -> tensor<8x64x2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64x2x2xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64x2x2xf32>) -> tensor<8x64x2x2xf32>
  %r = linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %f : tensor<8x16x4x4xf32>, tensor<64x16x3x3xf32>) outs(%zeros : tensor<8x64x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x64x2x2xf32>
  return %r : tensor<8x64x2x2xf32>
}

func.func @large(%x: tensor<8x16x18x18xf32>, %f: tensor<64x16x3x3xf32>) -> tensor<8x64x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64x16x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64x16x16xf32>) -> tensor<8x64x16x16xf32>
  %r = linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %f : tensor<8x16x18x18xf32>, tensor<64x16x3x3xf32>) outs(%zeros : tensor<8x64x16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x64x16x16xf32>
  return %r : tensor<8x64x16x16xf32>
}
