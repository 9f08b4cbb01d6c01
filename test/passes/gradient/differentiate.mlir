// RUN: weir-opt %s --weir-differentiate --split-input-file | FileCheck %s

// Contractions over permuted maps, in the product's own loops: no transposed copies.
// The weight's gradient of the second use goes into `outs` of the first.
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[Y:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[X:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
func.func private @twice(%x: tensor<3x2xf32>, %w: tensor<2x2xf32>) -> tensor<3x2xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x2xf32>) -> tensor<3x2xf32>
  %h = linalg.matmul ins(%x, %w : tensor<3x2xf32>, tensor<2x2xf32>) outs(%init : tensor<3x2xf32>)
       -> tensor<3x2xf32>
  %y = linalg.matmul ins(%h, %w : tensor<3x2xf32>, tensor<2x2xf32>) outs(%init : tensor<3x2xf32>)
       -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
// CHECK-NOT: func private
// CHECK-LABEL: func @shared_weight_adds_into_outs(
// CHECK-SAME:    %[[X_:.*]]: tensor<3x2xf32>, %[[W:.*]]: tensor<2x2xf32>, %[[DY:.*]]: tensor<3x2xf32>)
// CHECK:         %[[H:.*]] = linalg.matmul ins(%[[X_]], %[[W]]
// CHECK-NEXT:    %[[R:.*]] = linalg.matmul ins(%[[H]], %[[W]]
// CHECK:         %[[DH:.*]] = linalg.generic {indexing_maps = [#[[K]], #[[Y]], #[[X]]], iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[W]], %[[DY]]
// CHECK:         %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<2x2xf32>
// CHECK-NEXT:    %[[DW:.*]] = linalg.generic {indexing_maps = [#[[X]], #[[Y]], #[[K]]], iterator_types = ["reduction", "parallel", "parallel"]} ins(%[[H]], %[[DY]] : {{.*}}) outs(%[[ZERO]]
// CHECK:         %[[SUM:.*]] = linalg.generic {indexing_maps = [#[[X]], #[[Y]], #[[K]]], iterator_types = ["reduction", "parallel", "parallel"]} ins(%[[X_]], %[[DH]] : {{.*}}) outs(%[[DW]]
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[G:.*]]: f32, %[[O:.*]]: f32):
// CHECK-NEXT:      %[[P:.*]] = arith.mulf %[[G]], %[[A]]
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[O]], %[[P]]
// CHECK-NEXT:      linalg.yield %[[S]]
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[R]], %[[SUM]]
func.func @shared_weight_adds_into_outs(%x: tensor<3x2xf32>, %w: tensor<2x2xf32>,
                                        %dy: tensor<3x2xf32>)
    -> (tensor<3x2xf32>, tensor<2x2xf32>) {
  %y, %dw = autodiff.vjp @twice(%x, %w) seeded [0] (%dy) wanted [1]
      : (tensor<3x2xf32>, tensor<2x2xf32>, tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<2x2xf32>)
  return %y, %dw : tensor<3x2xf32>, tensor<2x2xf32>
}

// -----

// CHECK-DAG: #[[FULL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[LAST:.*]] = affine_map<(d0, d1) -> (d1)>
func.func @scaled(%x: tensor<4x6xf32>, %s: tensor<6xf32>) -> tensor<4x6xf32> {
  %empty = tensor.empty() : tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<4x6xf32>, tensor<6xf32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %e = math.exp %a : f32
    %p = arith.mulf %e, %b : f32
    linalg.yield %p : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
// The exponential is computed again, not saved. What was broadcast is summed; only
// what a derivative reads is read.
// CHECK-LABEL: func @broadcast_is_summed(
// CHECK-SAME:    %[[X:.*]]: tensor<4x6xf32>, %[[S:.*]]: tensor<6xf32>, %[[G:.*]]: tensor<4x6xf32>)
// CHECK:         %[[DX:.*]] = linalg.generic {indexing_maps = [#[[FULL]], #[[LAST]], #[[FULL]], #[[FULL]]], iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[S]], %[[G]]
// CHECK:           math.exp
// CHECK:         %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<6xf32>
// CHECK-NEXT:    %[[DS:.*]] = linalg.generic {indexing_maps = [#[[FULL]], #[[FULL]], #[[LAST]]], iterator_types = ["reduction", "parallel"]} ins(%[[X]], %[[G]] : {{.*}}) outs(%[[ZERO]]
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[C:.*]]: f32, %[[O:.*]]: f32):
// CHECK-NEXT:      %[[E:.*]] = math.exp %[[A]]
// CHECK-NEXT:      %[[P:.*]] = arith.mulf %[[C]], %[[E]]
// CHECK-NEXT:      %[[Q:.*]] = arith.addf %[[O]], %[[P]]
// CHECK-NEXT:      linalg.yield %[[Q]]
// CHECK:         return %[[DX]], %[[DS]]
func.func @broadcast_is_summed(%x: tensor<4x6xf32>, %s: tensor<6xf32>, %dy: tensor<4x6xf32>)
    -> (tensor<4x6xf32>, tensor<6xf32>) {
  %y, %dx, %ds = autodiff.vjp @scaled(%x, %s) seeded [0] (%dy) wanted [0, 1]
      : (tensor<4x6xf32>, tensor<6xf32>, tensor<4x6xf32>)
        -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<6xf32>)
  return %dx, %ds : tensor<4x6xf32>, tensor<6xf32>
}

// -----

func.func @mul(%x: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.mul ins(%x, %s : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>)
       -> tensor<4xf32>
  return %y : tensor<4xf32>
}
// The same value for two arguments: the gradient of one of them alone.
// CHECK-LABEL: func @one_value_two_arguments(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>, %[[G:.*]]: tensor<4xf32>)
// CHECK:         %[[DX:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[G]] :
// CHECK-NOT:     arith.addf
// CHECK:         return %[[DX]]
func.func @one_value_two_arguments(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {
  %y, %dx = autodiff.vjp @mul(%x, %x) seeded [0] (%dy) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}

// One argument used twice: both parts in one op.
func.func @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.mul ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>)
       -> tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-LABEL: func @one_argument_used_twice(
// CHECK:         %[[DX:.*]] = linalg.generic
// CHECK:           arith.addf
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[DX]]
func.func @one_argument_used_twice(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {
  %y, %dx = autodiff.vjp @square(%x) seeded [0] (%dy) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}

// -----

func.func @sum(%x: tensor<4x6xf32>, %unused: tensor<5xf32>, %i: tensor<4xi32>)
    -> (tensor<4x1xf32>, tensor<4xi32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x1xf32>) -> tensor<4x1xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x6xf32>) outs(%init : tensor<4x1xf32>) {
  ^bb0(%a: f32, %out: f32):
    %p = arith.addf %a, %out : f32
    linalg.yield %p : f32
  } -> tensor<4x1xf32>
  return %y, %i : tensor<4x1xf32>, tensor<4xi32>
}
// CHECK-LABEL: func @sum_is_broadcast(
// CHECK-SAME:    %[[G:.*]]: tensor<4x1xf32>,
// CHECK:         %[[DX:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%[[G]] : tensor<4x1xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      linalg.yield %[[A]]
// CHECK:         %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<5xf32>
// CHECK:         return %[[DX]], %[[ZERO]]
func.func @sum_is_broadcast(%dy: tensor<4x1xf32>, %x: tensor<4x6xf32>, %u: tensor<5xf32>,
                            %i: tensor<4xi32>) -> (tensor<4x6xf32>, tensor<5xf32>) {
  %y, %j, %dx, %du = autodiff.vjp @sum(%x, %u, %i) seeded [0] (%dy) wanted [0, 1]
      : (tensor<4x6xf32>, tensor<5xf32>, tensor<4xi32>, tensor<4x1xf32>)
        -> (tensor<4x1xf32>, tensor<4xi32>, tensor<4x6xf32>, tensor<5xf32>)
  return %dx, %du : tensor<4x6xf32>, tensor<5xf32>
}

// -----

// A window: the element x is d0 + d1, which is solved for d0 = x - d1.
// CHECK-LABEL: func @window_solved
// CHECK:         linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}], iterator_types = ["parallel", "reduction"]} ins(%arg1 : tensor<3xf32>)
// CHECK-DAG:       %[[X:.*]] = linalg.index 0
// CHECK-DAG:       %[[K:.*]] = linalg.index 1
// CHECK:           %[[D:.*]] = arith.subi %[[X]], %[[K]]
// CHECK:           arith.cmpi sge, %[[D]]
// CHECK:           %[[G:.*]] = tensor.extract %arg2
// CHECK:           arith.mulf %[[G]]
// CHECK:           arith.select
func.func private @window(%x: tensor<8xf32>, %w: tensor<3xf32>, %init: tensor<6xf32>) -> tensor<6xf32> {
  %y = linalg.conv_1d ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%init : tensor<6xf32>)
       -> tensor<6xf32>
  return %y : tensor<6xf32>
}
func.func @window_solved(%x: tensor<8xf32>, %w: tensor<3xf32>, %dy: tensor<6xf32>) -> tensor<8xf32> {
  %y, %dx = autodiff.vjp @window(%x, %w, %dy) seeded [0] (%dy) wanted [0]
      : (tensor<8xf32>, tensor<3xf32>, tensor<6xf32>, tensor<6xf32>)
        -> (tensor<6xf32>, tensor<8xf32>)
  return %dx : tensor<8xf32>
}

// -----

// A convolution of channels is a contraction, and so is its gradient: the cotangent gets zeros around it and, for the
// stride of 2, in between, and is read by the element's loops and the weights'.
// CHECK-DAG: #[[PADDED:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d2 - d4 * 3 + 6)>
// CHECK-DAG: #[[WEIGHTS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d3, d1, d4)>
// CHECK-LABEL: func @convolution_padded
// CHECK:         %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<2x5x20xf32>
// CHECK:         %[[P:.*]] = tensor.insert_slice %arg2 into %[[ZEROS]][0, 0, 6] [2, 5, 4] [1, 1, 2] : tensor<2x5x4xf32> into tensor<2x5x20xf32>
// CHECK:         linalg.generic {indexing_maps = [#[[WEIGHTS]], #[[PADDED]], #{{.*}}], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%arg1, %[[P]]
// CHECK-NOT:       arith.select
// CHECK:         return
func.func private @convolution(%x: tensor<2x3x14xf32>, %w: tensor<5x3x3xf32>, %init: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
  %y = linalg.conv_1d_ncw_fcw {strides = dense<2> : tensor<1xi64>, dilations = dense<3> : tensor<1xi64>}
      ins(%x, %w : tensor<2x3x14xf32>, tensor<5x3x3xf32>) outs(%init : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %y : tensor<2x5x4xf32>
}
func.func @convolution_padded(%x: tensor<2x3x14xf32>, %w: tensor<5x3x3xf32>, %dy: tensor<2x5x4xf32>) -> tensor<2x3x14xf32> {
  %y, %dx = autodiff.vjp @convolution(%x, %w, %dy) seeded [0] (%dy) wanted [0]
      : (tensor<2x3x14xf32>, tensor<5x3x3xf32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>)
        -> (tensor<2x5x4xf32>, tensor<2x3x14xf32>)
  return %dx : tensor<2x3x14xf32>
}

// -----

// Windows of a padded tensor give the gradient of what was padded, no more: the cotangent gets the zeros that are left.
// CHECK: #[[PADDED:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d2 - d4 + 2)>
// CHECK-LABEL: func @convolution_of_padded
// CHECK:         %[[P:.*]] = tensor.insert_slice %arg2 into %{{.*}}[0, 0, 1] [2, 5, 14] [1, 1, 1] : tensor<2x5x14xf32> into tensor<2x5x16xf32>
// CHECK:         %[[DX:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[PADDED]], #{{.*}}], {{.*}} outs(%{{.*}} : tensor<2x3x14xf32>)
// CHECK-NOT:     tensor.extract_slice
// CHECK:         return %[[DX]]
func.func private @padded(%x: tensor<2x3x14xf32>, %w: tensor<5x3x3xf32>, %init: tensor<2x5x14xf32>) -> tensor<2x5x14xf32> {
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1] high[0, 0, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %z : f32
  } : tensor<2x3x14xf32> to tensor<2x3x16xf32>
  %y = linalg.conv_1d_ncw_fcw ins(%p, %w : tensor<2x3x16xf32>, tensor<5x3x3xf32>) outs(%init : tensor<2x5x14xf32>) -> tensor<2x5x14xf32>
  return %y : tensor<2x5x14xf32>
}
func.func @convolution_of_padded(%x: tensor<2x3x14xf32>, %w: tensor<5x3x3xf32>, %dy: tensor<2x5x14xf32>) -> tensor<2x3x14xf32> {
  %y, %dx = autodiff.vjp @padded(%x, %w, %dy) seeded [0] (%dy) wanted [0]
      : (tensor<2x3x14xf32>, tensor<5x3x3xf32>, tensor<2x5x14xf32>, tensor<2x5x14xf32>)
        -> (tensor<2x5x14xf32>, tensor<2x3x14xf32>)
  return %dx : tensor<2x3x14xf32>
}

// -----

// The twin: one element that is padded has no index that tells it from the padding.
// CHECK-LABEL: func @convolution_of_one
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<2x3x3xf32>)
// CHECK:         tensor.extract_slice %{{.*}}[0, 0, 1] [2, 3, 1] [1, 1, 1]
func.func private @padded_one(%x: tensor<2x3x1xf32>, %w: tensor<5x3x3xf32>, %init: tensor<2x5x1xf32>) -> tensor<2x5x1xf32> {
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1] high[0, 0, 1] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %z : f32
  } : tensor<2x3x1xf32> to tensor<2x3x3xf32>
  %y = linalg.conv_1d_ncw_fcw ins(%p, %w : tensor<2x3x3xf32>, tensor<5x3x3xf32>) outs(%init : tensor<2x5x1xf32>) -> tensor<2x5x1xf32>
  return %y : tensor<2x5x1xf32>
}
func.func @convolution_of_one(%x: tensor<2x3x1xf32>, %w: tensor<5x3x3xf32>, %dy: tensor<2x5x1xf32>) -> tensor<2x3x1xf32> {
  %y, %dx = autodiff.vjp @padded_one(%x, %w, %dy) seeded [0] (%dy) wanted [0]
      : (tensor<2x3x1xf32>, tensor<5x3x3xf32>, tensor<2x5x1xf32>, tensor<2x5x1xf32>)
        -> (tensor<2x5x1xf32>, tensor<2x3x1xf32>)
  return %dx : tensor<2x3x1xf32>
}

// -----

// Of a depthwise convolution the cotangent gets zeros where there are strides: weir-drop-dilations walks none of them.
// CHECK-LABEL: func @depthwise_strided
// CHECK:         tensor.insert_slice %arg2 into %{{.*}}[0, 0, 2] [2, 3, 6] [1, 1, 2] : tensor<2x3x6xf32> into tensor<2x3x16xf32>
// CHECK-NOT:     arith.select
// CHECK:         return
func.func private @strided(%x: tensor<2x3x14xf32>, %w: tensor<3x3xf32>, %init: tensor<2x3x6xf32>) -> tensor<2x3x6xf32> {
  %y = linalg.depthwise_conv_1d_ncw_cw {strides = dense<2> : tensor<1xi64>, dilations = dense<1> : tensor<1xi64>}
      ins(%x, %w : tensor<2x3x14xf32>, tensor<3x3xf32>) outs(%init : tensor<2x3x6xf32>) -> tensor<2x3x6xf32>
  return %y : tensor<2x3x6xf32>
}
func.func @depthwise_strided(%x: tensor<2x3x14xf32>, %w: tensor<3x3xf32>, %dy: tensor<2x3x6xf32>) -> tensor<2x3x14xf32> {
  %y, %dx = autodiff.vjp @strided(%x, %w, %dy) seeded [0] (%dy) wanted [0]
      : (tensor<2x3x14xf32>, tensor<3x3xf32>, tensor<2x3x6xf32>, tensor<2x3x6xf32>) -> (tensor<2x3x6xf32>, tensor<2x3x14xf32>)
  return %dx : tensor<2x3x14xf32>
}

// -----

// The twin: without strides the few taps are not worth a tensor.
// CHECK-LABEL: func @depthwise
// CHECK-NOT:     tensor.insert_slice
// CHECK:         arith.select
// CHECK:         return
func.func private @each(%x: tensor<2x3x14xf32>, %w: tensor<3x3xf32>, %init: tensor<2x3x12xf32>) -> tensor<2x3x12xf32> {
  %y = linalg.depthwise_conv_1d_ncw_cw ins(%x, %w : tensor<2x3x14xf32>, tensor<3x3xf32>)
      outs(%init : tensor<2x3x12xf32>) -> tensor<2x3x12xf32>
  return %y : tensor<2x3x12xf32>
}
func.func @depthwise(%x: tensor<2x3x14xf32>, %w: tensor<3x3xf32>, %dy: tensor<2x3x12xf32>) -> tensor<2x3x14xf32> {
  %y, %dx = autodiff.vjp @each(%x, %w, %dy) seeded [0] (%dy) wanted [0]
      : (tensor<2x3x14xf32>, tensor<3x3xf32>, tensor<2x3x12xf32>, tensor<2x3x12xf32>) -> (tensor<2x3x12xf32>, tensor<2x3x14xf32>)
  return %dx : tensor<2x3x14xf32>
}

// -----

// A reduction that no rule is for, in few steps: each is made again, then they are gone through backwards.
// CHECK-LABEL: func @steps
// CHECK:         %[[Y:.*]] = linalg.reduce
// CHECK:         %[[X0:.*]] = tensor.extract_slice %arg0[0, 0]
// CHECK:         %[[A:.*]] = linalg.generic {{.*}} ins(%[[X0]], %arg1 :
// CHECK:         %[[X1:.*]] = tensor.extract_slice %arg0[0, 1]
// CHECK:         %[[B:.*]] = linalg.generic {{.*}} ins(%[[X1]], %[[A]] :
// CHECK:         %[[X2:.*]] = tensor.extract_slice %arg0[0, 2]
// CHECK:         %[[D2:.*]] = linalg.generic {{.*}} ins(%[[X2]], %[[B]], %arg2 :
// CHECK:         %[[G:.*]] = linalg.generic {{.*}} ins(%[[X2]], %arg2 :
// CHECK:         %[[I2:.*]] = tensor.insert_slice %[[D2]] into %{{.*}}[0, 2]
// CHECK:         %[[D1:.*]] = linalg.generic {{.*}} ins(%[[X1]], %[[A]], %[[G]] :
// CHECK:         tensor.insert_slice %[[D1]] into %[[I2]][0, 1]
// CHECK:         return %[[Y]]
func.func private @quotients(%x: tensor<4x3xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %y = linalg.reduce { arith.divf } ins(%x : tensor<4x3xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  return %y : tensor<4xf32>
}
func.func @steps(%x: tensor<4x3xf32>, %init: tensor<4xf32>, %dy: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x3xf32>) {
  %y, %dx = autodiff.vjp @quotients(%x, %init) seeded [0] (%dy) wanted [0]
      : (tensor<4x3xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4x3xf32>)
  return %y, %dx : tensor<4xf32>, tensor<4x3xf32>
}

// -----

// The other way round nothing has to be put around it.
// CHECK: #[[BACK:.*]] = affine_map<(d0) -> (-d0 + 6)>
// CHECK-LABEL: func @reversed
// CHECK-NOT:     arith.select
// CHECK-NOT:     tensor.insert_slice
// CHECK:         linalg.generic {indexing_maps = [#[[BACK]], #{{.*}}], iterator_types = ["parallel"]} ins(%arg1
// CHECK-NOT:       arith.select
// CHECK:         return
func.func private @reverse(%x: tensor<7xf32>) -> tensor<7xf32> {
  %empty = tensor.empty() : tensor<7xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (6 - i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<7xf32>) outs(%empty : tensor<7xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<7xf32>
  return %y : tensor<7xf32>
}
func.func @reversed(%x: tensor<7xf32>, %dy: tensor<7xf32>) -> tensor<7xf32> {
  %y, %dx = autodiff.vjp @reverse(%x) seeded [0] (%dy) wanted [0]
      : (tensor<7xf32>, tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>)
  return %dx : tensor<7xf32>
}

// -----

// A gather: rows are compared with the index, columns are walked by the loop that read them.
// CHECK-LABEL: func @rows_matched
// CHECK:         linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}, #{{.*}}], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg1, %arg2 : tensor<3xi32>, tensor<3x4xf32>)
// CHECK:           %[[AT:.*]] = arith.index_cast
// CHECK:           %[[R:.*]] = linalg.index 0
// CHECK:           %[[HERE:.*]] = arith.cmpi eq, %[[AT]], %[[R]]
// CHECK:           arith.select %[[HERE]]
func.func private @gather(%x: tensor<8x4xf32>, %i: tensor<3xi32>) -> tensor<3x4xf32> {
  %empty = tensor.empty() : tensor<3x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<3xi32>) outs(%empty : tensor<3x4xf32>) {
  ^bb0(%n: i32, %out: f32):
    %at = arith.index_cast %n : i32 to index
    %j = linalg.index 1 : index
    %e = tensor.extract %x[%at, %j] : tensor<8x4xf32>
    linalg.yield %e : f32
  } -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
func.func @rows_matched(%x: tensor<8x4xf32>, %i: tensor<3xi32>, %dy: tensor<3x4xf32>) -> tensor<8x4xf32> {
  %y, %dx = autodiff.vjp @gather(%x, %i) seeded [0] (%dy) wanted [0]
      : (tensor<8x4xf32>, tensor<3xi32>, tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<8x4xf32>)
  return %dx : tensor<8x4xf32>
}

// -----

// No cotangent passes a stop: x gets that of its other use alone, and of the product y's
// derivative takes the stopped value for a constant.
// CHECK-LABEL: func @stopped(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>, %[[DY:.*]]: tensor<4xf32>)
// CHECK-NOT:     autodiff
// CHECK:         %[[T:.*]] = linalg.tanh ins(%[[X]]
// CHECK-NEXT:    %[[Y:.*]] = linalg.mul ins(%[[X]], %[[T]]
// CHECK:         %[[DX:.*]] = linalg.generic {{.*}} ins(%[[T]], %[[DY]]
// CHECK:           arith.mulf
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[Y]], %[[DX]]
func.func private @product(%x: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %t = linalg.tanh ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %s = autodiff.stop_gradient %t : tensor<4xf32>
  %y = linalg.mul ins(%x, %s : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>)
       -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @stopped(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = autodiff.vjp @product(%x) seeded [0] (%dy) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// The twin: without the stop there are both parts.
// CHECK-LABEL: func @flowing(
// CHECK-COUNT-2: linalg.generic
// CHECK:         return
func.func private @product(%x: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %t = linalg.tanh ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.mul ins(%x, %t : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>)
       -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @flowing(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = autodiff.vjp @product(%x) seeded [0] (%dy) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Without derivatives a stop is nothing.
// CHECK-LABEL: func @plain
// CHECK-NEXT:    return %arg0
func.func @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = autodiff.stop_gradient %x : tensor<4xf32>
  return %s : tensor<4xf32>
}
