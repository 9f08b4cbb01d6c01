// Gradients of f16 and bf16 are summed in f32, and rounded once.
//
// RUN: weir-opt %s --weir-widen-arithmetic --weir-differentiate --weir-widen-arithmetic --split-input-file | FileCheck %s

// CHECK-LABEL: func @f(
// CHECK:       %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
// CHECK-SAME:    outs(%{{.*}} : tensor<8xf32>)
// CHECK:         arith.addf {{.*}} : f32
// CHECK-NEXT:    linalg.yield {{.*}} : f32
// CHECK:       linalg.generic {{.*}} ins(%[[SUM]] : tensor<8xf32>)
// CHECK:         arith.truncf {{.*}} : f32 to bf16
func.func @gather(%x: tensor<8xbf16>, %i: tensor<3xi32>) -> tensor<3xbf16> {
  %empty = tensor.empty() : tensor<3xbf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
      ins(%i : tensor<3xi32>) outs(%empty : tensor<3xbf16>) {
  ^bb0(%n: i32, %out: bf16):
    %at = arith.index_cast %n : i32 to index
    %e = tensor.extract %x[%at] : tensor<8xbf16>
    linalg.yield %e : bf16
  } -> tensor<3xbf16>
  return %y : tensor<3xbf16>
}
func.func @f(%x: tensor<8xbf16>, %i: tensor<3xi32>, %dy: tensor<3xbf16>) -> tensor<8xbf16> {
  %y, %dx = autodiff.vjp @gather(%x, %i) seeded [0] (%dy) wanted [0]
      : (tensor<8xbf16>, tensor<3xi32>, tensor<3xbf16>) -> (tensor<3xbf16>, tensor<8xbf16>)
  return %dx : tensor<8xbf16>
}

// -----

// CHECK-LABEL: func @f(
// CHECK:       %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]
// CHECK-SAME:    outs(%{{.*}} : tensor<6xf32>)
// CHECK:         arith.addf {{.*}} : f32
// CHECK-NEXT:    linalg.yield {{.*}} : f32
// CHECK:       linalg.generic {{.*}} ins(%[[SUM]] : tensor<6xf32>)
// CHECK:         arith.truncf {{.*}} : f32 to bf16

// Where nothing is summed each op rounds.
// CHECK-LABEL: func @g(
// CHECK-NOT:   reduction
// CHECK:       arith.truncf
func.func @narrow(%x: tensor<4x6xbf16>, %s: tensor<6xbf16>) -> tensor<4x6xbf16> {
  %empty = tensor.empty() : tensor<4x6xbf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<4x6xbf16>, tensor<6xbf16>) outs(%empty : tensor<4x6xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %out: bf16):
    %p = arith.mulf %a, %b : bf16
    linalg.yield %p : bf16
  } -> tensor<4x6xbf16>
  return %y : tensor<4x6xbf16>
}
func.func @f(%x: tensor<4x6xbf16>, %s: tensor<6xbf16>) -> tensor<6xbf16> {
  %y, %d = autodiff.vjp @narrow(%x, %s) seeded [0] (%x) wanted [1]
      : (tensor<4x6xbf16>, tensor<6xbf16>, tensor<4x6xbf16>) -> (tensor<4x6xbf16>, tensor<6xbf16>)
  return %d : tensor<6xbf16>
}
func.func @g(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %y, %d = autodiff.vjp @square(%x) seeded [0] (%x) wanted [0]
      : (tensor<4xbf16>, tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>)
  return %d : tensor<4xbf16>
}
func.func @square(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %empty = tensor.empty() : tensor<4xbf16>
  %y = linalg.square ins(%x : tensor<4xbf16>) outs(%empty : tensor<4xbf16>) -> tensor<4xbf16>
  return %y : tensor<4xbf16>
}

// -----

// A maximum of 16 bits, which is written in 32: its place is found among what is 16 bits wide.
// CHECK-LABEL: func @f(
// CHECK:       linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
// CHECK:         arith.minsi
// CHECK:       linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]
// CHECK:         arith.select {{.*}} : bf16
func.func @largest(%x: tensor<6x33xbf16>) -> tensor<6xbf16> {
  %z = arith.constant dense<0xFF80> : tensor<6xbf16>
  %n = arith.constant dense<0> : tensor<6xi64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<6x33xbf16>) outs(%z, %n : tensor<6xbf16>, tensor<6xi64>) {
  ^bb0(%a: bf16, %o: bf16, %p: i64):
    %i = linalg.index 1 : index
    %k = arith.index_cast %i : index to i64
    %m = arith.maximumf %a, %o : bf16
    %g = arith.cmpf ogt, %a, %o : bf16
    %s = arith.select %g, %k, %p : i64
    linalg.yield %m, %s : bf16, i64
  } -> (tensor<6xbf16>, tensor<6xi64>)
  return %r#0 : tensor<6xbf16>
}
func.func @f(%x: tensor<6x33xbf16>, %dy: tensor<6xbf16>) -> tensor<6x33xbf16> {
  %y, %dx = autodiff.vjp @largest(%x) seeded [0] (%dy) wanted [0]
      : (tensor<6x33xbf16>, tensor<6xbf16>) -> (tensor<6xbf16>, tensor<6x33xbf16>)
  return %dx : tensor<6x33xbf16>
}
