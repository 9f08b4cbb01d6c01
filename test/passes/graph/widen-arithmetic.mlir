// RUN: weir-opt %s --weir-widen-arithmetic -split-input-file | FileCheck %s

#id = affine_map<(d0) -> (d0)>

// Each op of the graph rounds once, and its casts stay.
// CHECK-LABEL: func @arithmetic
// CHECK:       ^bb0(%[[X:.*]]: f16, %[[Y:.*]]: f16, %{{.*}}: f16, %{{.*}}: i1):
// CHECK-DAG:     %[[X32:.*]] = arith.extf %[[X]] : f16 to f32
// CHECK-DAG:     %[[Y32:.*]] = arith.extf %[[Y]] : f16 to f32
// CHECK:         %[[S:.*]] = arith.addf %[[X32]], %[[Y32]] : f32
// CHECK-NEXT:    %[[S16:.*]] = arith.truncf %[[S]] : f32 to f16
// CHECK-NEXT:    %[[S32:.*]] = arith.extf %[[S16]] : f16 to f32
// CHECK-NEXT:    %[[E:.*]] = math.exp %[[S32]] : f32
// CHECK-NEXT:    %[[E16:.*]] = arith.truncf %[[E]] : f32 to f16
// CHECK:         arith.cmpf ogt, {{.*}} : f32
// CHECK:         arith.select {{.*}} : f16
// CHECK-NOT:     fastmath
// CHECK:         linalg.yield {{.*}} : f16, i1
func.func @arithmetic(%a: tensor<8xf16>, %b: tensor<8xf16>) -> (tensor<8xf16>, tensor<8xi1>) {
  %e = tensor.empty() : tensor<8xf16>
  %e1 = tensor.empty() : tensor<8xi1>
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<8xf16>, tensor<8xf16>) outs(%e, %e1 : tensor<8xf16>, tensor<8xi1>) {
  ^bb0(%x: f16, %y: f16, %o: f16, %o1: i1):
    %s = arith.addf %x, %y : f16
    %m = math.exp %s : f16
    %q = arith.cmpf ogt, %m, %y : f16
    %z = arith.select %q, %m, %y : f16
    linalg.yield %z, %q : f16, i1
  } -> (tensor<8xf16>, tensor<8xi1>)
  return %r#0, %r#1 : tensor<8xf16>, tensor<8xi1>
}

// -----

// A contraction adds in f32, products that are not rounded, and rounds its end.
// CHECK-LABEL: func @contraction
// CHECK:       %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK:       %[[INIT:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<4x3xf32>)
// CHECK:       %[[SUM:.*]] = linalg.generic
// CHECK-SAME:    outs(%[[INIT]] : tensor<4x3xf32>)
// CHECK:         %[[A:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT:    %[[B:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT:    %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT:    %[[S:.*]] = arith.addf %{{.*}}, %[[P]] : f32
// CHECK-NEXT:    linalg.yield %[[S]] : f32
// CHECK:       linalg.generic {{.*}} ins(%[[SUM]] : tensor<4x3xf32>)
// CHECK:         arith.truncf %{{.*}} : f32 to bf16
func.func @contraction(%a: tensor<4x7xbf16>, %b: tensor<7x3xbf16>) -> tensor<4x3xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<4x3xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%e : tensor<4x3xbf16>) -> tensor<4x3xbf16>
  %c = linalg.matmul ins(%a, %b : tensor<4x7xbf16>, tensor<7x3xbf16>) outs(%init : tensor<4x3xbf16>)
      -> tensor<4x3xbf16>
  return %c : tensor<4x3xbf16>
}

// -----

// What is added has rounded where it isn't a product; what the sum begins with is kept.
// CHECK-LABEL: func @sum
// CHECK-SAME:    , %[[START:.*]]: tensor<f16>
// CHECK:       linalg.generic {{.*}} ins(%[[START]] : tensor<f16>)
// CHECK:         arith.extf
// CHECK:       linalg.generic
// CHECK-SAME:    outs(%{{.*}} : tensor<f32>)
// CHECK:         arith.subf {{.*}} : f32
// CHECK-NEXT:    arith.truncf {{.*}} : f32 to f16
// CHECK-NEXT:    arith.extf {{.*}} : f16 to f32
// CHECK-NEXT:    arith.addf {{.*}} : f32
// CHECK-NEXT:    linalg.yield {{.*}} : f32
func.func @sum(%a: tensor<8xf16>, %start: tensor<f16>) -> tensor<f16> {
  %one = arith.constant 1.0 : f16
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>],
                       iterator_types = ["reduction"]}
      ins(%a : tensor<8xf16>) outs(%start : tensor<f16>) {
  ^bb0(%x: f16, %o: f16):
    %d = arith.subf %x, %one : f16
    %s = arith.addf %d, %o : f16
    linalg.yield %s : f16
  } -> tensor<f16>
  return %y : tensor<f16>
}

// -----

// What uses the running value otherwise is computed in steps, each rounded.
// CHECK-LABEL: func @running
// CHECK:       outs(%{{.*}} : tensor<f16>)
// CHECK:         arith.addf {{.*}} : f32
// CHECK-NEXT:    arith.truncf {{.*}} : f32 to f16
func.func @running(%a: tensor<8xf16>, %start: tensor<f16>) -> tensor<f16> {
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>],
                       iterator_types = ["reduction"]}
      ins(%a : tensor<8xf16>) outs(%start : tensor<f16>) {
  ^bb0(%x: f16, %o: f16):
    %d = arith.mulf %x, %o : f16
    %s = arith.addf %d, %o : f16
    linalg.yield %s : f16
  } -> tensor<f16>
  return %y : tensor<f16>
}

// -----

// The twin: nothing is of f16 or bf16.
// CHECK-LABEL: func @wide
// CHECK-NOT:   extf
// CHECK-NOT:   truncf
func.func @wide(%a: tensor<4x7xf32>, %b: tensor<7x3xf32>, %i: tensor<4xi16>) -> (tensor<4x3xf32>, tensor<4xi16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x7xf32>, tensor<7x3xf32>) outs(%init : tensor<4x3xf32>)
      -> tensor<4x3xf32>
  return %c, %i : tensor<4x3xf32>, tensor<4xi16>
}

// -----

#id = affine_map<(d0) -> (d0)>

// Of f32 it would be no cast.
// CHECK-LABEL: func @scaled
// CHECK:       arith.scaling_extf %{{.*}}, %{{.*}} : f16, f32 to f32
func.func @scaled(%a: tensor<4xf16>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<4xf16>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%x: f16, %s: f32, %o: f32):
    %y = arith.scaling_extf %x, %s : f16, f32 to f32
    linalg.yield %y : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
