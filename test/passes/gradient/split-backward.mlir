// RUN: weir-opt %s --weir-differentiate --weir-split-backward --split-input-file | FileCheck %s
// RUN: weir-opt %s --weir-differentiate --split-input-file | FileCheck %s --check-prefix=TOTALS

// Background case 5. The cotangent of h, through which both uses of w are connected, is
// computed by the input pass; the weight pass is two contractions, and their sum.
// TOTALS-LABEL: func @twice.split(
// TOTALS-COUNT-2: autodiff.total activation
// TOTALS-NOT:     autodiff.total
// TOTALS:         return

// CHECK-NOT:   autodiff
// CHECK-LABEL: func @twice(
// CHECK-LABEL: func @twice.forward(
// CHECK-SAME:    %[[X:.*]]: tensor<1x2xf32> {weir.kind = "input", weir.name = "x"}, %[[W:.*]]: tensor<2x2xf32> {weir.kind = "param", weir.name = "w"})
// CHECK-SAME:    -> (tensor<1x2xf32> {weir.name = "y"}, tensor<1x2xf32> {weir.name = "tape.0"})
// CHECK:         %[[H:.*]] = linalg.matmul ins(%[[X]], %[[W]]
// CHECK:         %[[Y:.*]] = linalg.matmul ins(%[[H]], %[[W]]
// CHECK:         return %[[Y]], %[[H]]

// CHECK-LABEL: func @twice.backward_input(
// CHECK-SAME:    %[[W:.*]]: tensor<2x2xf32> {weir.kind = "param", weir.name = "w"}, %[[DY:.*]]: tensor<1x2xf32> {weir.name = "cotangent.y"})
// CHECK-SAME:    -> (tensor<1x2xf32> {weir.name = "grad.x"}, tensor<1x2xf32> {weir.name = "saved.0"})
// CHECK:         %[[DH:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[DY]] :
// CHECK:         %[[DX:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[DH]] :
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[DX]], %[[DH]]

// CHECK-LABEL: func @twice.backward_weight(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<1x2xf32> {weir.kind = "input", weir.name = "x"}, %[[H:[a-z0-9]*]]: tensor<1x2xf32> {weir.donate, weir.name = "tape.0"}, %[[DH:[a-z0-9]*]]: tensor<1x2xf32> {weir.donate, weir.name = "saved.0"}, %[[DY:[a-z0-9]*]]: tensor<1x2xf32> {weir.name = "cotangent.y"}, %[[SUM:[a-z0-9]*]]: tensor<2x2xf32> {weir.donate, weir.name = "grad.w"})
// CHECK-SAME:    -> (tensor<2x2xf32> {weir.name = "grad.w"})
// CHECK:         %[[OUTER:.*]] = linalg.generic {{.*}} ins(%[[H]], %[[DY]] :
// CHECK:         %[[BOTH:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[DH]] : {{.*}}) outs(%[[OUTER]]
// CHECK:         %[[ADDED:.*]] = linalg.generic {{.*}} ins(%[[BOTH]] : {{.*}}) outs(%[[SUM]]
// CHECK-NEXT:    ^bb0(%[[G:.*]]: f32, %[[O:.*]]: f32):
// CHECK-NEXT:      %[[A:.*]] = arith.addf %[[O]], %[[G]]
// CHECK-NEXT:      linalg.yield %[[A]]
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[ADDED]]
func.func @twice(%x: tensor<1x2xf32> {weir.kind = "input", weir.name = "x"},
                 %w: tensor<2x2xf32> {weir.kind = "param", weir.name = "w"})
    -> (tensor<1x2xf32> {weir.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x2xf32>) -> tensor<1x2xf32>
  %h = linalg.matmul ins(%x, %w : tensor<1x2xf32>, tensor<2x2xf32>) outs(%init : tensor<1x2xf32>)
       -> tensor<1x2xf32>
  %y = linalg.matmul ins(%h, %w : tensor<1x2xf32>, tensor<2x2xf32>) outs(%init : tensor<1x2xf32>)
       -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}
func.func @twice.split(%x: tensor<1x2xf32> {weir.kind = "input", weir.name = "x"},
                       %w: tensor<2x2xf32> {weir.kind = "param", weir.name = "w"},
                       %dy: tensor<1x2xf32> {weir.name = "cotangent.y"})
    -> (tensor<1x2xf32> {weir.name = "y"}, tensor<1x2xf32>, tensor<2x2xf32>)
    attributes {autodiff.split = array<i64: 2, 1>} {
  %y, %dx, %dw = autodiff.vjp @twice(%x, %w) seeded [0] (%dy) wanted [0, 1] {totals}
      : (tensor<1x2xf32>, tensor<2x2xf32>, tensor<1x2xf32>)
        -> (tensor<1x2xf32>, tensor<1x2xf32>, tensor<2x2xf32>)
  return %y, %dx, %dw : tensor<1x2xf32>, tensor<1x2xf32>, tensor<2x2xf32>
}

// -----

// x (w w): the product is a weight's; its cotangent is the weight pass's own, which
// carries it on inside the weights.
// TOTALS-LABEL: func @square.split(
// TOTALS:         autodiff.total activation
// TOTALS:         autodiff.total weight
// TOTALS-NOT:     autodiff.total
// TOTALS:         return

// CHECK-LABEL: func @square.forward(
// CHECK:         %[[WW:.*]] = linalg.matmul
// CHECK:         %[[Y:.*]] = linalg.matmul
// CHECK:         return %[[Y]], %[[WW]]
// CHECK-LABEL: func @square.backward_input(
// CHECK-SAME:    tensor<2x2xf32> {weir.donate, weir.name = "tape.0"}
// CHECK-SAME:    -> (tensor<1x2xf32> {weir.name = "grad.arg0"})
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK-LABEL: func @square.backward_weight(
// CHECK-NOT:     weir.name = "tape
// CHECK-NOT:     weir.name = "saved
// CHECK-COUNT-4: linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @square(%x: tensor<1x2xf32>, %w: tensor<2x2xf32> {weir.kind = "param"}) -> tensor<1x2xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x2xf32>) -> tensor<1x2xf32>
  %square = tensor.empty() : tensor<2x2xf32>
  %start = linalg.fill ins(%zero : f32) outs(%square : tensor<2x2xf32>) -> tensor<2x2xf32>
  %ww = linalg.matmul ins(%w, %w : tensor<2x2xf32>, tensor<2x2xf32>) outs(%start : tensor<2x2xf32>)
        -> tensor<2x2xf32>
  %y = linalg.matmul ins(%x, %ww : tensor<1x2xf32>, tensor<2x2xf32>) outs(%init : tensor<1x2xf32>)
       -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}
func.func @square.split(%x: tensor<1x2xf32>, %w: tensor<2x2xf32> {weir.kind = "param"},
                        %dy: tensor<1x2xf32> {weir.name = "cotangent.result0"})
    -> (tensor<1x2xf32>, tensor<1x2xf32>, tensor<2x2xf32>)
    attributes {autodiff.split = array<i64: 2, 1>} {
  %y, %dx, %dw = autodiff.vjp @square(%x, %w) seeded [0] (%dy) wanted [0, 1] {totals}
      : (tensor<1x2xf32>, tensor<2x2xf32>, tensor<1x2xf32>)
        -> (tensor<1x2xf32>, tensor<1x2xf32>, tensor<2x2xf32>)
  return %y, %dx, %dw : tensor<1x2xf32>, tensor<1x2xf32>, tensor<2x2xf32>
}

// -----

// A norm's VJP is one op, the input pass's; what it has of the weights' gradients is
// handed on. Its statistics are no op of this level. Of the two readers of x, the input
// pass is one, and x is no tape but an argument.
// CHECK-LABEL: func @norm.forward(
// CHECK-SAME:    -> (tensor<4x8xf32> {weir.name = "result0"}) {
// CHECK-LABEL: func @norm.backward_input(
// CHECK:         %[[DX:.*]], %[[DGAMMA:.*]], %[[DBETA:.*]] = norm.layer_norm_vjp
// CHECK:         return %[[DX]], %[[DGAMMA]], %[[DBETA]]
// CHECK-LABEL: func @norm.backward_weight(
// CHECK-SAME:    %[[A:[a-z0-9]*]]: tensor<8xf32> {weir.donate, weir.name = "saved.0"}, %[[B:[a-z0-9]*]]: tensor<8xf32> {weir.donate, weir.name = "saved.1"}, %[[GAMMA:[a-z0-9]*]]: tensor<8xf32> {weir.donate, weir.name = "grad.gamma"}, %[[BETA:[a-z0-9]*]]: tensor<8xf32> {weir.donate, weir.name = "grad.beta"})
// CHECK-NOT:     norm
// CHECK:         linalg.generic {{.*}} ins(%[[A]] : {{.*}}) outs(%[[GAMMA]]
// CHECK:         linalg.generic {{.*}} ins(%[[B]] : {{.*}}) outs(%[[BETA]]
func.func @norm(%x: tensor<4x8xf32>, %gamma: tensor<8xf32> {weir.kind = "param", weir.name = "gamma"},
                %beta: tensor<8xf32> {weir.kind = "param", weir.name = "beta"}) -> tensor<4x8xf32> {
  %y = norm.layer_norm %x gamma(%gamma : tensor<8xf32>) beta(%beta : tensor<8xf32>)
       {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func @norm.split(%x: tensor<4x8xf32>,
                      %gamma: tensor<8xf32> {weir.kind = "param", weir.name = "gamma"},
                      %beta: tensor<8xf32> {weir.kind = "param", weir.name = "beta"},
                      %dy: tensor<4x8xf32> {weir.name = "cotangent.result0"})
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
    attributes {autodiff.split = array<i64: 3, 1>} {
  %r:4 = autodiff.vjp @norm(%x, %gamma, %beta) seeded [0] (%dy) wanted [0, 1, 2] {totals}
      : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>)
        -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// What only integers lead to is an activation: its cotangent is the input pass's, which
// has no gradient to give. Both passes read h, and the weight pass, the last, may have
// its bytes.
// TOTALS-LABEL: func @chosen.split(
// TOTALS-COUNT-2: autodiff.total activation
// TOTALS-NOT:     autodiff.total
// TOTALS:         return

// CHECK-LABEL: func @chosen.forward(
// CHECK-LABEL: func @chosen.backward_input(
// CHECK-SAME:    tensor<4xf32> {weir.name = "tape.0"}
// CHECK-SAME:    -> (tensor<4xf32> {weir.name = "saved.0"})
// CHECK-LABEL: func @chosen.backward_weight(
// CHECK-SAME:    tensor<4xi32> {weir.name = "arg0"}
// CHECK-SAME:    tensor<4xf32> {weir.donate, weir.name = "tape.0"}
// CHECK-SAME:    tensor<4xf32> {weir.donate, weir.name = "saved.0"}
func.func @chosen(%i: tensor<4xi32>, %w: tensor<4xf32> {weir.kind = "param"}) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                                        affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%i, %w : tensor<4xi32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%n: i32, %a: f32, %out: f32):
    %f = arith.sitofp %n : i32 to f32
    %p = arith.mulf %f, %a : f32
    linalg.yield %p : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                                        affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%h, %w : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.mulf %a, %a : f32
    %p = arith.mulf %q, %b : f32
    linalg.yield %p : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @chosen.split(%i: tensor<4xi32>, %w: tensor<4xf32> {weir.kind = "param"},
                        %dy: tensor<4xf32> {weir.name = "cotangent.result0"})
    -> (tensor<4xf32>, tensor<4xf32>) attributes {autodiff.split = array<i64: 2, 1>} {
  %y, %dw = autodiff.vjp @chosen(%i, %w) seeded [0] (%dy) wanted [1] {totals}
      : (tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %y, %dw : tensor<4xf32>, tensor<4xf32>
}

// -----

// Without the attribute nothing is split, and nothing is marked where nobody asked.
// TOTALS-LABEL: func @whole(
// TOTALS-NOT:     autodiff
// TOTALS:         return
// CHECK-LABEL: func @whole(
// CHECK-NOT:   func
func.func private @mul(%x: tensor<4xf32>, %w: tensor<4xf32> {weir.kind = "param"}) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.mul ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @whole(%x: tensor<4xf32>, %w: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {
  %y, %dw = autodiff.vjp @mul(%x, %w) seeded [0] (%dy) wanted [1]
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %dw : tensor<4xf32>
}
