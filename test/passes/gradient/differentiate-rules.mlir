// RUN: weir-opt %s --weir-differentiate --canonicalize --cse --split-input-file | FileCheck %s

// What each rule builds where a test by differences can't see it: at kinks, and in
// which op of another dialect a gradient ends.

func.func private @clamp(%x: tensor<4xf32>, %lo: tensor<4xf32>, %hi: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.map ins(%x, %lo, %hi : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      outs(%empty : tensor<4xf32>) (%a: f32, %b: f32, %c: f32, %out: f32) {
    %r = math.clampf %a to [%b, %c] : f32
    linalg.yield %r : f32
  }
  return %y : tensor<4xf32>
}
// CHECK-LABEL: func @clamp_by_value(
// CHECK:       ^bb0(%[[X:.*]]: f32, %[[LO:.*]]: f32, %[[HI:.*]]: f32, %[[G:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:    %[[ABOVE:.*]] = arith.cmpf ogt, %[[X]], %[[HI]]
// CHECK-NEXT:    %[[A:.*]] = arith.select %[[ABOVE]], %[[ZERO:.*]], %[[G]]
// CHECK-NEXT:    %[[BELOW:.*]] = arith.cmpf olt, %[[X]], %[[LO]]
// CHECK-NEXT:    %[[B:.*]] = arith.select %[[BELOW]], %[[ZERO]], %[[A]]
// CHECK-NEXT:    linalg.yield %[[B]]
func.func @clamp_by_value(%x: tensor<4xf32>, %lo: tensor<4xf32>, %hi: tensor<4xf32>) -> tensor<4xf32> {
  %y, %d = autodiff.vjp @clamp(%x, %lo, %hi) seeded [0] (%x) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %d : tensor<4xf32>
}
// CHECK-LABEL: func @clamp_by_upper_limit(
// CHECK:       ^bb0(%[[X:.*]]: f32, %[[LO:.*]]: f32, %[[HI:.*]]: f32, %[[G:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:    %[[ABOVE:.*]] = arith.cmpf ogt, %[[X]], %[[HI]]
// CHECK-NEXT:    %[[A:.*]] = arith.select %[[ABOVE]], %[[G]], %[[ZERO:.*]]
// CHECK-NEXT:    %[[CROSSED:.*]] = arith.cmpf ogt, %[[LO]], %[[HI]]
// CHECK-NEXT:    %[[B:.*]] = arith.select %[[CROSSED]], %[[G]], %[[A]]
// CHECK-NEXT:    linalg.yield %[[B]]
func.func @clamp_by_upper_limit(%x: tensor<4xf32>, %lo: tensor<4xf32>, %hi: tensor<4xf32>) -> tensor<4xf32> {
  %y, %d = autodiff.vjp @clamp(%x, %lo, %hi) seeded [0] (%x) wanted [2]
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %d : tensor<4xf32>
}

// -----

// PyTorch's maximum of two tensors, as torch-mlir writes it: half each where they are equal. With a
// number of the text it is a ReLU, where nothing is shared.
func.func private @largest(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %m = linalg.map ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) (%a: f32, %b: f32, %out: f32) {
    %c = arith.cmpf ogt, %a, %b : f32
    %r = arith.select %c, %a, %b : f32
    linalg.yield %r : f32
  }
  %n = linalg.map ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) (%a: f32, %out: f32) {
    %c = arith.cmpf ogt, %a, %zero : f32
    %r = arith.select %c, %a, %zero : f32
    linalg.yield %r : f32
  }
  return %m, %n : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func @ties_are_shared(
// CHECK:         %[[C:.*]] = arith.cmpf ogt, %[[A:.*]], %[[B:.*]] :
// CHECK-NEXT:    %[[CHOSEN:.*]] = arith.select %[[C]], %{{.*}}, %{{.*}}
// CHECK-NEXT:    %[[HALF:.*]] = arith.mulf %{{.*}}, %{{.*}}
// CHECK-NEXT:    %[[TIE:.*]] = arith.cmpf oeq, %[[A]], %[[B]]
// CHECK-NEXT:    %[[G:.*]] = arith.select %[[TIE]], %[[HALF]], %[[CHOSEN]]
// CHECK-NEXT:    linalg.yield %[[G]]
func.func @ties_are_shared(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %m, %n, %d = autodiff.vjp @largest(%x, %y) seeded [0] (%x) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %d : tensor<4xf32>
}
// CHECK-LABEL: func @relu_is_not_shared(
// CHECK-NOT:     arith.mulf
// CHECK-NOT:     oeq
// CHECK:         return
func.func @relu_is_not_shared(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %m, %n, %d = autodiff.vjp @largest(%x, %y) seeded [1] (%x) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %d : tensor<4xf32>
}

// -----

// Of a step function nothing flows back: no op but the zeros.
func.func private @steps(%x: tensor<4xf64>) -> tensor<4xf64> {
  %empty = tensor.empty() : tensor<4xf64>
  %y = linalg.floor ins(%x : tensor<4xf64>) outs(%empty : tensor<4xf64>) -> tensor<4xf64>
  return %y : tensor<4xf64>
}
// CHECK-LABEL: func @step_is_zero(
// CHECK-NOT:     linalg.generic
// CHECK:         %[[ZERO:.*]] = linalg.fill
// CHECK-NOT:     linalg
// CHECK:         return %[[ZERO]] : tensor<4xf64>
func.func @step_is_zero(%x: tensor<4xf64>) -> tensor<4xf64> {
  %y, %d = autodiff.vjp @steps(%x) seeded [0] (%x) wanted [0]
      : (tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
  return %d : tensor<4xf64>
}

// -----

// One VJP serves all three operands.
func.func private @norm(%x: tensor<3x4xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<3x4xf32> {
  %y = norm.layer_norm %x gamma(%g : tensor<4xf32>) beta(%b : tensor<4xf32>)
       {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<3x4xf32>
  %empty = tensor.empty() : tensor<3x4xf32>
  %p = linalg.softmax dimension(1) ins(%y : tensor<3x4xf32>) outs(%empty : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %p : tensor<3x4xf32>
}
// CHECK-LABEL: func @norms_keep_their_ops(
// CHECK-SAME:    %[[X:.*]]: tensor<3x4xf32>, %[[G:.*]]: tensor<4xf32>, %{{.*}}: tensor<4xf32>, %[[DP:.*]]: tensor<3x4xf32>)
// CHECK:         %[[P:.*]] = linalg.softmax
// CHECK:         %[[DY:.*]] = norm.softmax_vjp %[[DP]], %[[P]] {axis = 1 : i64}
// CHECK-NEXT:    %[[DX:.*]], %[[DG:.*]], %[[DB:.*]] = norm.layer_norm_vjp %[[DY]], %[[X]] gamma(%[[G]]
// CHECK-NEXT:    return %[[DX]], %[[DG]], %[[DB]]
func.func @norms_keep_their_ops(%x: tensor<3x4xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>, %dp: tensor<3x4xf32>)
    -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %p, %dx, %dg, %db = autodiff.vjp @norm(%x, %g, %b) seeded [0] (%dp) wanted [0, 1, 2]
      : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>)
        -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %dx, %dg, %db : tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Slices of one value add where they overlap, and go where they came from.
func.func private @slices(%x: tensor<7xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) {
  %a = tensor.extract_slice %x[0] [3] [1] : tensor<7xf32> to tensor<3xf32>
  %b = tensor.extract_slice %x[1] [3] [2] : tensor<7xf32> to tensor<3xf32>
  %c = tensor.extract_slice %x[1] [6] [1] : tensor<7xf32> to tensor<6xf32>
  %d = tensor.expand_shape %c [[0, 1]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>
  return %a, %b, %d : tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: func @slices_are_inserted(
// CHECK-SAME:    %[[A:.*]]: tensor<3xf32>, %[[B:.*]]: tensor<3xf32>, %[[D:.*]]: tensor<2x3xf32>,
// CHECK:         %[[C:.*]] = tensor.collapse_shape %[[D]]
// CHECK:         %[[ZERO:.*]] = linalg.fill
// CHECK:         %[[S1:.*]] = tensor.insert_slice %[[C]] into %[[ZERO]][1] [6] [1]
// CHECK:         %[[S2:.*]] = tensor.insert_slice %[[B]] into %{{.*}}[1] [3] [2]
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[S2]] : {{.*}}) outs(%[[S1]]
func.func @slices_are_inserted(%a: tensor<3xf32>, %b: tensor<3xf32>, %c: tensor<2x3xf32>, %x: tensor<7xf32>)
    -> tensor<7xf32> {
  %r:4 = autodiff.vjp @slices(%x) seeded [0, 1, 2] (%a, %b, %c) wanted [0]
      : (tensor<7xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>)
        -> (tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<7xf32>)
  return %r#3 : tensor<7xf32>
}

// The twin: those of even and of odd places, and rows apart, have nothing to add.
func.func private @apart(%x: tensor<4x7xf32>) -> (tensor<2x4xf32>, tensor<2x3xf32>, tensor<7xf32>) {
  %a = tensor.extract_slice %x[0, 0] [2, 4] [1, 2] : tensor<4x7xf32> to tensor<2x4xf32>
  %b = tensor.extract_slice %x[0, 1] [2, 3] [1, 2] : tensor<4x7xf32> to tensor<2x3xf32>
  %c = tensor.extract_slice %x[3, 0] [1, 7] [1, 1] : tensor<4x7xf32> to tensor<7xf32>
  return %a, %b, %c : tensor<2x4xf32>, tensor<2x3xf32>, tensor<7xf32>
}
// CHECK-LABEL: func @slices_are_apart(
// CHECK-SAME:    %[[A:.*]]: tensor<2x4xf32>, %[[B:.*]]: tensor<2x3xf32>, %[[C:.*]]: tensor<7xf32>,
// CHECK:         %[[ZERO:.*]] = linalg.fill
// CHECK-NEXT:    %[[S1:.*]] = tensor.insert_slice %[[C]] into %[[ZERO]][3, 0] [1, 7] [1, 1]
// CHECK-NEXT:    %[[S2:.*]] = tensor.insert_slice %[[B]] into %[[S1]][0, 1] [2, 3] [1, 2]
// CHECK-NEXT:    %[[S3:.*]] = tensor.insert_slice %[[A]] into %[[S2]][0, 0] [2, 4] [1, 2]
// CHECK-NEXT:    return %[[S3]]
func.func @slices_are_apart(%a: tensor<2x4xf32>, %b: tensor<2x3xf32>, %c: tensor<7xf32>, %x: tensor<4x7xf32>)
    -> tensor<4x7xf32> {
  %r:4 = autodiff.vjp @apart(%x) seeded [0, 1, 2] (%a, %b, %c) wanted [0]
      : (tensor<4x7xf32>, tensor<2x4xf32>, tensor<2x3xf32>, tensor<7xf32>)
        -> (tensor<2x4xf32>, tensor<2x3xf32>, tensor<7xf32>, tensor<4x7xf32>)
  return %r#3 : tensor<4x7xf32>
}

// -----

// Cotangents of the statistics are the op's, too, where there are any.
func.func private @activated(%x: tensor<2x3x4xf32>, %g: tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>) {
  %y, %m, %v = norm.batch_norm %x gamma(%g : tensor<3xf32>) {axis = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<2x3x4xf32>, tensor<3xf32>
  %a = norm.silu %y : tensor<2x3x4xf32>
  %b = norm.gelu %a {tanh_factor = 0.5 : f64} : tensor<2x3x4xf32>
  return %b, %v : tensor<2x3x4xf32>, tensor<3xf32>
}
// CHECK-LABEL: func @batch_norms_and_activations(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x4xf32>, %[[G:.*]]: tensor<3xf32>, %[[D:.*]]: tensor<2x3x4xf32>, %[[DV:.*]]: tensor<3xf32>)
// CHECK:         %[[Y:.*]], %{{.*}}, %{{.*}} = norm.batch_norm %[[X]]
// CHECK:         %[[A:.*]] = norm.silu %[[Y]]
// CHECK:         %[[DA:.*]] = norm.gelu_vjp %[[D]], %[[A]] {tanh_factor = 5.000000e-01 : f64}
// CHECK:         %[[DY:.*]] = norm.silu_vjp %[[DA]], %[[Y]]
// CHECK:         %[[DX:.*]], %[[DG:.*]], %{{.*}} = norm.batch_norm_vjp %[[DY]], %[[X]] gamma(%[[G]] : tensor<3xf32>) dvariance(%[[DV]] : tensor<3xf32>)
// CHECK:         return %[[DX]], %[[DG]]
func.func @batch_norms_and_activations(%x: tensor<2x3x4xf32>, %g: tensor<3xf32>, %d: tensor<2x3x4xf32>, %dv: tensor<3xf32>)
    -> (tensor<2x3x4xf32>, tensor<3xf32>) {
  %b, %v, %dx, %dg = autodiff.vjp @activated(%x, %g) seeded [0, 1] (%d, %dv) wanted [0, 1]
      : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<2x3x4xf32>, tensor<3xf32>)
        -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<2x3x4xf32>, tensor<3xf32>)
  return %dx, %dg : tensor<2x3x4xf32>, tensor<3xf32>
}

// -----

// The statistics are saved in place of the scores. The mask needs no gradient.
func.func private @attention(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>, %b: tensor<1x9xf32>)
    -> tensor<7x5xf32> {
  %y, %m, %s = norm.attention %q, %k, %v bias(%b : tensor<1x9xf32>) {scale = 0.5 : f64, softcap = 2.0 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>
  return %y : tensor<7x5xf32>
}
// CHECK-LABEL: func @attention_vjp(
// CHECK-SAME:    %[[Q:.*]]: tensor<7x4xf32>, %[[K:.*]]: tensor<9x4xf32>, %[[V:.*]]: tensor<9x5xf32>, %[[B:.*]]: tensor<1x9xf32>, %[[D:.*]]: tensor<7x5xf32>)
// CHECK-NEXT:    %[[Y:.*]], %[[M:.*]], %[[S:.*]] = norm.attention %[[Q]], %[[K]], %[[V]] bias(%[[B]] : tensor<1x9xf32>)
// CHECK-NEXT:    %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]], %{{.*}} = norm.attention_vjp %[[D]], %[[Q]], %[[K]], %[[V]], %[[Y]], %[[M]], %[[S]] bias(%[[B]] : tensor<1x9xf32>) {scale = 5.000000e-01 : f64, softcap = 2.000000e+00 : f64}
// CHECK-NEXT:    return %[[DQ]], %[[DK]], %[[DV]]
func.func @attention_vjp(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>, %b: tensor<1x9xf32>,
                         %d: tensor<7x5xf32>) -> (tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32>) {
  %y, %dq, %dk, %dv = autodiff.vjp @attention(%q, %k, %v, %b) seeded [0] (%d) wanted [0, 1, 2]
      : (tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32>, tensor<1x9xf32>, tensor<7x5xf32>)
        -> (tensor<7x5xf32>, tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32>)
  return %dq, %dk, %dv : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32>
}

// -----

// If others use a statistic, the gradient goes through its decomposition.
func.func private @largest(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>) -> tensor<7xf32> {
  %y, %m, %s = norm.attention %q, %k, %v {scale = 0.5 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>
  return %m : tensor<7xf32>
}
// CHECK-LABEL: func @gradient_of_statistics(
// CHECK-NOT:     norm.
// CHECK:         arith.maximumf
// CHECK-NOT:     norm.
// CHECK:         return
func.func @gradient_of_statistics(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>, %d: tensor<7xf32>)
    -> tensor<7x4xf32> {
  %m, %dq = autodiff.vjp @largest(%q, %k, %v) seeded [0] (%d) wanted [0]
      : (tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32>, tensor<7xf32>) -> (tensor<7xf32>, tensor<7x4xf32>)
  return %dq : tensor<7x4xf32>
}
