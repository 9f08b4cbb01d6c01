// A convolution of a tensor with zeros between its elements walks what is between them, not the zeros.

// RUN: weir-opt %s --weir-drop-dilations -split-input-file | FileCheck %s

// The gradient of a convolution of stride 2 by 4 taps, padded by 1: four taps are two steps of two residues.
// CHECK-DAG: #[[TAPS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d1, d5, d3)>
// CHECK-DAG: #[[ELEMENTS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d2 - d5 + 1)>
// CHECK-DAG: #[[WRITTEN:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
// CHECK-LABEL: func @whole_steps
// CHECK-SAME:  %[[W:.*]]: tensor<5x3x4xf32>, %[[DY:.*]]: tensor<2x5x8xf32>
// CHECK-NOT:     tensor<2x5x21xf32>
// CHECK-DAG:     %[[P:.*]] = tensor.insert_slice %[[DY]] into %{{.*}}[0, 0, 1] [2, 5, 8] [1, 1, 1] : tensor<2x5x8xf32> into tensor<2x5x10xf32>
// CHECK-DAG:     %[[T:.*]] = tensor.expand_shape %[[W]] {{\[}}[0], [1], [2, 3]] output_shape [5, 3, 2, 2]
// CHECK:         %[[R:.*]] = linalg.generic {indexing_maps = [#[[TAPS]], #[[ELEMENTS]], #[[WRITTEN]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%[[T]], %[[P]] : {{.*}}) outs(%{{.*}} : tensor<2x3x9x2xf32>)
// CHECK:         %[[DX:.*]] = tensor.collapse_shape %[[R]] {{\[}}[0], [1], [2, 3]]
// CHECK-NEXT:    return %[[DX]]
#w = affine_map<(n, c, h, f, k) -> (f, c, k)>
#d = affine_map<(n, c, h, f, k) -> (n, f, h - k + 3)>
#x = affine_map<(n, c, h, f, k) -> (n, c, h)>
func.func @whole_steps(%w: tensor<5x3x4xf32>, %dy: tensor<2x5x8xf32>) -> tensor<2x3x18xf32> {
  %f = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x21xf32>
  %zeros = linalg.fill ins(%f : f32) outs(%e : tensor<2x5x21xf32>) -> tensor<2x5x21xf32>
  %d = tensor.insert_slice %dy into %zeros[0, 0, 3] [2, 5, 8] [1, 1, 2] : tensor<2x5x8xf32> into tensor<2x5x21xf32>
  %z = arith.constant dense<0.0> : tensor<2x3x18xf32>
  %dx = linalg.generic {indexing_maps = [#w, #d, #x], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%w, %d : tensor<5x3x4xf32>, tensor<2x5x21xf32>) outs(%z : tensor<2x3x18xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %b, %a : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x3x18xf32>
  return %dx : tensor<2x3x18xf32>
}

// -----

// The twin: of stride 1 there is nothing in between.
// CHECK-LABEL: func @stride_of_one
// CHECK:         %[[D:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 3] [2, 5, 15] [1, 1, 1] : tensor<2x5x15xf32> into tensor<2x5x21xf32>
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %[[D]] :
// CHECK-NOT:     tensor.collapse_shape
#w = affine_map<(n, c, h, f, k) -> (f, c, k)>
#d = affine_map<(n, c, h, f, k) -> (n, f, h - k + 3)>
#x = affine_map<(n, c, h, f, k) -> (n, c, h)>
func.func @stride_of_one(%w: tensor<5x3x4xf32>, %dy: tensor<2x5x15xf32>) -> tensor<2x3x18xf32> {
  %f = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x21xf32>
  %zeros = linalg.fill ins(%f : f32) outs(%e : tensor<2x5x21xf32>) -> tensor<2x5x21xf32>
  %d = tensor.insert_slice %dy into %zeros[0, 0, 3] [2, 5, 15] [1, 1, 1] : tensor<2x5x15xf32> into tensor<2x5x21xf32>
  %z = arith.constant dense<0.0> : tensor<2x3x18xf32>
  %dx = linalg.generic {indexing_maps = [#w, #d, #x], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%w, %d : tensor<5x3x4xf32>, tensor<2x5x21xf32>) outs(%z : tensor<2x3x18xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %b, %a : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x3x18xf32>
  return %dx : tensor<2x3x18xf32>
}

// -----

// A transposed convolution of stride 2 in one dimension, its weights turned around: three taps get a zero for the fourth;
// what was there is added to.
// CHECK-LABEL: func @transposed
// CHECK-SAME:  %[[X:.*]]: tensor<2x6x5x7xf32>, %[[W:.*]]: tensor<4x6x3x3xf32>, %[[B:.*]]: tensor<2x4x5x14xf32>
// CHECK-NOT:     tensor<2x6x7x16xf32>
// CHECK:         %[[P:.*]] = tensor.insert_slice %[[X]] into %{{.*}}[0, 0, 1, 0] [2, 6, 5, 7] [1, 1, 1, 1] : tensor<2x6x5x7xf32> into tensor<2x6x7x8xf32>
// CHECK:         %[[V:.*]] = linalg.generic {{.*}} ins(%[[W]] :
// CHECK:         %[[V4:.*]] = tensor.insert_slice %[[V]] into %{{.*}}[0, 0, 0, 1] [4, 6, 3, 3] [1, 1, 1, 1] : tensor<4x6x3x3xf32> into tensor<4x6x3x4xf32>
// CHECK:         %[[T:.*]] = tensor.expand_shape %[[V4]] {{\[}}[0], [1], [2], [3, 4]]
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[T]] : {{.*}}) outs(%{{.*}} : tensor<2x4x5x7x2xf32>)
// CHECK:         %[[C:.*]] = tensor.collapse_shape %[[R]] {{.*}} into tensor<2x4x5x14xf32>
// CHECK:         linalg.add ins(%[[B]], %[[C]] :
func.func @transposed(%x: tensor<2x6x5x7xf32>, %w: tensor<4x6x3x3xf32>, %bias: tensor<2x4x5x14xf32>) -> tensor<2x4x5x14xf32> {
  %zeros = arith.constant dense<0.0> : tensor<2x6x7x16xf32>
  %d = tensor.insert_slice %x into %zeros[0, 0, 1, 1] [2, 6, 5, 7] [1, 1, 1, 2] : tensor<2x6x5x7xf32> into tensor<2x6x7x16xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%d, %w : tensor<2x6x7x16xf32>, tensor<4x6x3x3xf32>)
      outs(%bias : tensor<2x4x5x14xf32>) -> tensor<2x4x5x14xf32>
  return %y : tensor<2x4x5x14xf32>
}

// -----

// Of 5 residues two have a tap: the others' places are zeros.
// CHECK-LABEL: func @fewer_taps_than_stride
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<3x2xf32>, tensor<3x4xf32>) outs(%{{.*}} : tensor<4x2xf32>)
// CHECK:         %[[A:.*]] = tensor.insert_slice %[[R]] into %{{.*}}[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x5xf32>
// CHECK:         tensor.collapse_shape %[[A]]
func.func @fewer_taps_than_stride(%w: tensor<3x2xf32>, %dy: tensor<3x4xf32>) -> tensor<20xf32> {
  %zeros = arith.constant dense<0.0> : tensor<3x21xf32>
  %d = tensor.insert_slice %dy into %zeros[0, 1] [3, 4] [1, 5] : tensor<3x4xf32> into tensor<3x21xf32>
  %z = arith.constant dense<0.0> : tensor<20xf32>
  %dx = linalg.generic {indexing_maps = [affine_map<(h, f, k) -> (f, k)>, affine_map<(h, f, k) -> (f, h - k + 1)>, affine_map<(h, f, k) -> (h)>],
                        iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%w, %d : tensor<3x2xf32>, tensor<3x21xf32>) outs(%z : tensor<20xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %b, %a : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<20xf32>
  return %dx : tensor<20xf32>
}

// -----

// The twin: around the elements is something else than zero.
// CHECK-LABEL: func @ones_between
// CHECK:         tensor.insert_slice %{{.*}} into %{{.*}}[0, 1] [3, 4] [1, 5] : tensor<3x4xf32> into tensor<3x21xf32>
// CHECK:         outs(%{{.*}} : tensor<20xf32>)
func.func @ones_between(%w: tensor<3x2xf32>, %dy: tensor<3x4xf32>) -> tensor<20xf32> {
  %ones = arith.constant dense<1.0> : tensor<3x21xf32>
  %d = tensor.insert_slice %dy into %ones[0, 1] [3, 4] [1, 5] : tensor<3x4xf32> into tensor<3x21xf32>
  %z = arith.constant dense<0.0> : tensor<20xf32>
  %dx = linalg.generic {indexing_maps = [affine_map<(h, f, k) -> (f, k)>, affine_map<(h, f, k) -> (f, h - k + 1)>, affine_map<(h, f, k) -> (h)>],
                        iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%w, %d : tensor<3x2xf32>, tensor<3x21xf32>) outs(%z : tensor<20xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %b, %a : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<20xf32>
  return %dx : tensor<20xf32>
}

// -----

// The twin: what is summed is not 0 where the elements are.
// CHECK-LABEL: func @no_product
// CHECK:         tensor.insert_slice %{{.*}} into %{{.*}}[0, 1] [3, 4] [1, 5] : tensor<3x4xf32> into tensor<3x21xf32>
// CHECK:         outs(%{{.*}} : tensor<20xf32>)
func.func @no_product(%w: tensor<3x2xf32>, %dy: tensor<3x4xf32>) -> tensor<20xf32> {
  %zeros = arith.constant dense<0.0> : tensor<3x21xf32>
  %d = tensor.insert_slice %dy into %zeros[0, 1] [3, 4] [1, 5] : tensor<3x4xf32> into tensor<3x21xf32>
  %z = arith.constant dense<0.0> : tensor<20xf32>
  %dx = linalg.generic {indexing_maps = [affine_map<(h, f, k) -> (f, k)>, affine_map<(h, f, k) -> (f, h - k + 1)>, affine_map<(h, f, k) -> (h)>],
                        iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%w, %d : tensor<3x2xf32>, tensor<3x21xf32>) outs(%z : tensor<20xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.maximumf %b, %a : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<20xf32>
  return %dx : tensor<20xf32>
}
