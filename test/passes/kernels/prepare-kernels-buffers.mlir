// RUN: weir-opt %s --weir-set-profile=profile=vulkan13 --weir-prepare-kernels | FileCheck %s
// RUN: weir-opt %s --weir-set-profile=profile=v3d --weir-prepare-kernels | FileCheck %s --check-prefix=WIDE

// Where a kernel may have four buffers, an op of more operands is several: one for each op of its
// body, and the last one, which has the result.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// CHECK-LABEL: func @points
// CHECK:         %[[FIRST:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<4xf32>)
// CHECK:           arith.subf
// CHECK:         %[[SECOND:.*]] = linalg.generic {{.*}} ins(%[[FIRST]], %arg2 : tensor<4x6xf32>, tensor<4xf32>)
// CHECK:           arith.mulf
// CHECK:         %[[LAST:.*]] = linalg.generic {{.*}} ins(%[[SECOND]], %arg3 : tensor<4x6xf32>, tensor<6xf32>)
// CHECK:           arith.addf
// CHECK:         return %[[LAST]]
// WIDE-LABEL:  func @points
// WIDE:          linalg.generic {{.*}} ins(%arg0, %arg1, %arg2, %arg3 :
// WIDE-NOT:      linalg.generic
// WIDE:          return
func.func @points(%x: tensor<4x6xf32>, %mean: tensor<4xf32>, %scale: tensor<4xf32>, %shift: tensor<6xf32>)
    -> tensor<4x6xf32> {
  %empty = tensor.empty() : tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #row, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %scale, %shift : tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<6xf32>)
      outs(%empty : tensor<4x6xf32>) {
  ^bb0(%a: f32, %m: f32, %s: f32, %t: f32, %out: f32):
    %0 = arith.subf %a, %m : f32
    %1 = arith.mulf %0, %s : f32
    %2 = arith.addf %1, %t : f32
    linalg.yield %2 : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// What is reduced is computed before; only the combiner is left.
// CHECK-LABEL: func @reduces
// CHECK-COUNT-3: iterator_types = ["parallel", "parallel"]
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%{{.*}} : tensor<4x6xf32>)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.addf
// CHECK-NEXT:      linalg.yield
func.func @reduces(%x: tensor<4x6xf32>, %mean: tensor<4xf32>, %scale: tensor<4xf32>, %shift: tensor<6xf32>)
    -> tensor<4xf32> {
  %zeros = arith.constant dense<0.0> : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #row, #column, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %mean, %scale, %shift : tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<6xf32>)
      outs(%zeros : tensor<4xf32>) {
  ^bb0(%a: f32, %m: f32, %s: f32, %t: f32, %sum: f32):
    %0 = arith.subf %a, %m : f32
    %1 = arith.mulf %0, %s : f32
    %2 = arith.mulf %1, %t : f32
    %3 = arith.addf %sum, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// Four buffers are few enough.
// CHECK-LABEL: func @fits
// CHECK:         linalg.generic {{.*}} ins(%arg0, %arg1, %arg2 :
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @fits(%x: tensor<4x6xf32>, %mean: tensor<4xf32>, %scale: tensor<4xf32>) -> tensor<4x6xf32> {
  %empty = tensor.empty() : tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %scale : tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%a: f32, %m: f32, %s: f32, %out: f32):
    %0 = arith.subf %a, %m : f32
    %1 = arith.mulf %0, %s : f32
    linalg.yield %1 : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
