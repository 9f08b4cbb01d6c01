// RUN: weir-opt %s --weir-differentiate --split-input-file | FileCheck %s

// The rule of each collective. A scale that all ranks share, read beside what differs by rank, gets
// a sum; behind an all-reduce the cotangent is there, and behind a gather its slice.
// CHECK-LABEL: func @reduce_vjp(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<4xf32> {weir.sharded}, %[[G:[a-z0-9]*]]: tensor<4xf32>, %[[DY:[a-z0-9]*]]: tensor<4xf32>)
// CHECK:         %[[P:.*]] = linalg.mul ins(%[[X]], %[[G]]
// CHECK:         shard.all_reduce %[[P]] on @ranks grid_axes = [0]
// CHECK:         %[[DX:.*]] = linalg.generic {{.*}} ins(%[[G]], %[[DY]] :
// CHECK:         %[[PART:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[DY]] :
// CHECK:         %[[DG:.*]] = shard.all_reduce %[[PART]] on @ranks grid_axes = [0]
// CHECK-NOT:     shard
// CHECK:         return %[[DX]], %[[DG]]
shard.grid @ranks(shape = 2)
func.func private @reduce(%x: tensor<4xf32> {weir.sharded}, %g: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %p = linalg.mul ins(%x, %g : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = shard.all_reduce %p on @ranks grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @reduce_vjp(%x: tensor<4xf32> {weir.sharded}, %g: tensor<4xf32>, %dy: tensor<4xf32>)
    -> (tensor<4xf32> {weir.sharded}, tensor<4xf32>) {
  %y, %dx, %dg = autodiff.vjp @reduce(%x, %g) seeded [0] (%dy) wanted [0, 1]
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %dx, %dg : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func @gather_vjp(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32> {weir.sharded}, %[[DY:.*]]: tensor<8xf32>)
// CHECK:         %[[DX:.*]] = shard.all_slice %[[DY]] on @ranks grid_axes = [0] slice_axis = 0 : tensor<8xf32> -> tensor<4xf32>
// CHECK:         return %[[DX]]
shard.grid @ranks(shape = 2)
func.func private @gather(%x: tensor<4xf32> {weir.sharded}) -> tensor<8xf32> {
  %y = shard.all_gather %x on @ranks grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func @gather_vjp(%x: tensor<4xf32> {weir.sharded}, %dy: tensor<8xf32>) -> (tensor<4xf32> {weir.sharded}) {
  %y, %dx = autodiff.vjp @gather(%x) seeded [0] (%dy) wanted [0]
      : (tensor<4xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}

// -----

// What is gathered and then read by each rank for itself has a sum of which each needs a slice.
// CHECK-LABEL: func @scattered_vjp(
// CHECK:         %[[PART:.*]] = linalg.generic
// CHECK:         %[[DX:.*]] = shard.reduce_scatter %[[PART]] on @ranks grid_axes = [0] scatter_axis = 0 : tensor<8xf32> -> tensor<4xf32>
// CHECK-NOT:     shard
// CHECK:         return %[[DX]]
shard.grid @ranks(shape = 2)
func.func private @scattered(%x: tensor<4xf32> {weir.sharded}, %w: tensor<8xf32> {weir.sharded})
    -> (tensor<8xf32> {weir.sharded}) {
  %u = shard.all_gather %x on @ranks grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.mul ins(%u, %w : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func @scattered_vjp(%x: tensor<4xf32> {weir.sharded}, %w: tensor<8xf32> {weir.sharded},
                         %dy: tensor<8xf32> {weir.sharded}) -> (tensor<4xf32> {weir.sharded}) {
  %y, %dx = autodiff.vjp @scattered(%x, %w) seeded [0] (%dy) wanted [0]
      : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}

// -----

// CHECK-LABEL: func @scatter_vjp(
// CHECK-SAME:    %[[DY:[a-z0-9]*]]: tensor<4xf32> {weir.sharded})
// CHECK:         %[[DX:.*]] = shard.all_gather %[[DY]] on @ranks grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<8xf32>
// CHECK:         return %[[DX]]
shard.grid @ranks(shape = 2)
func.func private @scatter(%x: tensor<8xf32> {weir.sharded}) -> (tensor<4xf32> {weir.sharded}) {
  %y = shard.reduce_scatter %x on @ranks grid_axes = [0] scatter_axis = 0 : tensor<8xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @scatter_vjp(%x: tensor<8xf32> {weir.sharded}, %dy: tensor<4xf32> {weir.sharded})
    -> (tensor<8xf32> {weir.sharded}) {
  %y, %dx = autodiff.vjp @scatter(%x) seeded [0] (%dy) wanted [0]
      : (tensor<8xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<8xf32>)
  return %dx : tensor<8xf32>
}

// -----

// CHECK-LABEL: func @slice_vjp(
// CHECK-SAME:    %[[DY:[a-z0-9]*]]: tensor<4xf32> {weir.sharded})
// CHECK:         %[[DX:.*]] = shard.all_gather %[[DY]] on @ranks grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<8xf32>
// CHECK:         return %[[DX]]
shard.grid @ranks(shape = 2)
func.func private @slice(%x: tensor<8xf32>) -> (tensor<4xf32> {weir.sharded}) {
  %y = shard.all_slice %x on @ranks grid_axes = [0] slice_axis = 0 : tensor<8xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @slice_vjp(%x: tensor<8xf32>, %dy: tensor<4xf32> {weir.sharded}) -> tensor<8xf32> {
  %y, %dx = autodiff.vjp @slice(%x) seeded [0] (%dy) wanted [0]
      : (tensor<8xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<8xf32>)
  return %dx : tensor<8xf32>
}

// -----

// Along each axis of a grid by itself: x differs along the first one, w along the second one. What
// flows back to either is added along the other, and behind a sum along one it is there.
// CHECK-LABEL: func @grid_vjp(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: {{[^,]*}}, %[[W:[a-z0-9]*]]: {{[^,]*}}, %[[G:[a-z0-9]*]]: {{[^,]*}}, %[[DY:[a-z0-9]*]]: {{[^,]*}})
// CHECK:         %[[S:.*]] = shard.all_reduce %{{.*}} on @ranks grid_axes = [1]
// CHECK:         %[[DS:.*]] = linalg.generic {{.*}} ins(%[[G]], %[[DY]] :
// CHECK:         %[[G_PART:.*]] = linalg.generic {{.*}} ins(%[[S]], %[[DY]] :
// CHECK:         %[[X_PART:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[DS]] :
// CHECK:         %[[W_PART:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[DS]] :
// CHECK-DAG:     %[[DX:.*]] = shard.all_reduce %[[X_PART]] on @ranks grid_axes = [1]
// CHECK-DAG:     %[[DW:.*]] = shard.all_reduce %[[W_PART]] on @ranks grid_axes = [0]
// CHECK-DAG:     %[[DG:.*]] = shard.all_reduce %[[G_PART]] on @ranks grid_axes = [0]
// CHECK:         return %[[DX]], %[[DW]], %[[DG]]
shard.grid @ranks(shape = 2x3)
func.func private @grid(%x: tensor<4xf32> {weir.sharded = array<i64: 0>}, %w: tensor<4xf32> {weir.sharded = array<i64: 1>},
                        %g: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %p = linalg.mul ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = shard.all_reduce %p on @ranks grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %q = linalg.mul ins(%s, %g : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = shard.all_reduce %q on @ranks grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @grid_vjp(%x: tensor<4xf32> {weir.sharded = array<i64: 0>}, %w: tensor<4xf32> {weir.sharded = array<i64: 1>},
                    %g: tensor<4xf32>, %dy: tensor<4xf32>)
    -> (tensor<4xf32> {weir.sharded = array<i64: 0>}, tensor<4xf32> {weir.sharded = array<i64: 1>}, tensor<4xf32>) {
  %y, %dx, %dw, %dg = autodiff.vjp @grid(%x, %w, %g) seeded [0] (%dy) wanted [0, 1, 2]
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
        -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %dx, %dw, %dg : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// So has what is computed from gathered values alone: the sum is that of the gathered value.
// CHECK-LABEL: func @reshaped_vjp(
// CHECK:         %[[PART:.*]] = tensor.collapse_shape
// CHECK:         %[[DX:.*]] = shard.reduce_scatter %[[PART]] on @ranks grid_axes = [0] scatter_axis = 0 : tensor<8xf32> -> tensor<4xf32>
// CHECK-NOT:     shard
// CHECK:         return %[[DX]]
shard.grid @ranks(shape = 2)
func.func private @reshaped(%x: tensor<4xf32> {weir.sharded}, %w: tensor<2x4xf32> {weir.sharded})
    -> (tensor<2x4xf32> {weir.sharded}) {
  %u = shard.all_gather %x on @ranks grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<8xf32>
  %v = tensor.expand_shape %u [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %e = tensor.empty() : tensor<2x4xf32>
  %y = linalg.mul ins(%v, %w : tensor<2x4xf32>, tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func @reshaped_vjp(%x: tensor<4xf32> {weir.sharded}, %w: tensor<2x4xf32> {weir.sharded},
                        %dy: tensor<2x4xf32> {weir.sharded}) -> (tensor<4xf32> {weir.sharded}) {
  %y, %dx = autodiff.vjp @reshaped(%x, %w) seeded [0] (%dy) wanted [0]
      : (tensor<4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}

// -----

// The twin: a reader whose result all ranks share has its cotangent once, so the sum is that of the
// other reader alone.
// CHECK-LABEL: func @regularized_vjp(
// CHECK:         %[[SUM:.*]] = shard.all_reduce
// CHECK:         %[[TOTAL:.*]] = tensor.collapse_shape
// CHECK:         %[[DX:.*]] = shard.all_slice %[[TOTAL]] on @ranks grid_axes = [0] slice_axis = 0
// CHECK-NOT:     shard
// CHECK:         return %[[DX]]
shard.grid @ranks(shape = 2)
func.func private @regularized(%x: tensor<4xf32> {weir.sharded}, %w: tensor<2x4xf32> {weir.sharded})
    -> (tensor<2x4xf32> {weir.sharded}, tensor<2x4xf32>) {
  %u = shard.all_gather %x on @ranks grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<8xf32>
  %v = tensor.expand_shape %u [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %e = tensor.empty() : tensor<2x4xf32>
  %y = linalg.mul ins(%v, %w : tensor<2x4xf32>, tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %r = linalg.mul ins(%v, %v : tensor<2x4xf32>, tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y, %r : tensor<2x4xf32>, tensor<2x4xf32>
}
func.func @regularized_vjp(%x: tensor<4xf32> {weir.sharded}, %w: tensor<2x4xf32> {weir.sharded},
                           %dy: tensor<2x4xf32> {weir.sharded}, %dr: tensor<2x4xf32>) -> (tensor<4xf32> {weir.sharded}) {
  %y, %r, %dx = autodiff.vjp @regularized(%x, %w) seeded [0, 1] (%dy, %dr) wanted [0]
      : (tensor<4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
      -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}

// -----

// Along each axis by itself: x differs along the second one, and its reader along both. The sum along
// the first one is whole, and each rank gets its part of that along the second.
// CHECK-LABEL: func @reshaped_on_grid_vjp(
// CHECK:         %[[PART:.*]] = tensor.collapse_shape
// CHECK:         %[[SUM:.*]] = shard.all_reduce %[[PART]] on @ranks grid_axes = [0]
// CHECK:         %[[DX:.*]] = shard.reduce_scatter %[[SUM]] on @ranks grid_axes = [1] scatter_axis = 0 : tensor<12xf32> -> tensor<4xf32>
// CHECK-NOT:     shard
// CHECK:         return %[[DX]]
shard.grid @ranks(shape = 2x3)
func.func private @reshaped_on_grid(%x: tensor<4xf32> {weir.sharded = array<i64: 1>}, %w: tensor<3x4xf32> {weir.sharded})
    -> (tensor<3x4xf32> {weir.sharded}) {
  %u = shard.all_gather %x on @ranks grid_axes = [1] gather_axis = 0 : tensor<4xf32> -> tensor<12xf32>
  %v = tensor.expand_shape %u [[0, 1]] output_shape [3, 4] : tensor<12xf32> into tensor<3x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %y = linalg.mul ins(%v, %w : tensor<3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
func.func @reshaped_on_grid_vjp(%x: tensor<4xf32> {weir.sharded = array<i64: 1>}, %w: tensor<3x4xf32> {weir.sharded},
                                %dy: tensor<3x4xf32> {weir.sharded}) -> (tensor<4xf32> {weir.sharded = array<i64: 1>}) {
  %y, %dx = autodiff.vjp @reshaped_on_grid(%x, %w) seeded [0] (%dy) wanted [0]
      : (tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}

// -----

// Where its reader differs along the first axis alone, so does the sum: each rank has the whole of it.
// CHECK-LABEL: func @shared_on_grid_vjp(
// CHECK:         %[[PART:.*]] = tensor.collapse_shape
// CHECK:         %[[SUM:.*]] = shard.all_reduce %[[PART]] on @ranks grid_axes = [0]
// CHECK:         %[[DX:.*]] = shard.all_slice %[[SUM]] on @ranks grid_axes = [1] slice_axis = 0 : tensor<12xf32> -> tensor<4xf32>
// CHECK-NOT:     shard
// CHECK:         return %[[DX]]
shard.grid @ranks(shape = 2x3)
func.func private @shared_on_grid(%x: tensor<4xf32> {weir.sharded = array<i64: 1>}, %w: tensor<3x4xf32> {weir.sharded = array<i64: 0>})
    -> (tensor<3x4xf32> {weir.sharded = array<i64: 0>}) {
  %u = shard.all_gather %x on @ranks grid_axes = [1] gather_axis = 0 : tensor<4xf32> -> tensor<12xf32>
  %v = tensor.expand_shape %u [[0, 1]] output_shape [3, 4] : tensor<12xf32> into tensor<3x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %y = linalg.mul ins(%v, %w : tensor<3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
func.func @shared_on_grid_vjp(%x: tensor<4xf32> {weir.sharded = array<i64: 1>}, %w: tensor<3x4xf32> {weir.sharded = array<i64: 0>},
                              %dy: tensor<3x4xf32> {weir.sharded = array<i64: 0>}) -> (tensor<4xf32> {weir.sharded = array<i64: 1>}) {
  %y, %dx = autodiff.vjp @shared_on_grid(%x, %w) seeded [0] (%dy) wanted [0]
      : (tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}

// -----

// The twin: where all ranks share everything, nothing is added up.
// CHECK-LABEL: func @shared_vjp(
// CHECK-NOT:     shard
shard.grid @ranks(shape = 2)
func.func private @shared(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.mul ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @shared_vjp(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {
  %y, %dx = autodiff.vjp @shared(%x) seeded [0] (%dy) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}
