// RUN: weir-opt %s --weir-verify-graph -split-input-file -verify-diagnostics

// The twin of all cases.
shard.grid @ranks(shape = 2)
func.func @fine(%x: tensor<4xf32> {weir.sharded = "blocks.0"}, %s: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<4xf32>, tensor<2xf32> {weir.sharded}) {
  %a = shard.all_gather %x on @ranks grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<8xf32>
  %b = shard.all_reduce %x on @ranks grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  %c = shard.all_slice %s on @ranks grid_axes = [0] slice_axis = 0 : tensor<8xf32> -> tensor<4xf32>
  %d = shard.reduce_scatter %c on @ranks grid_axes = [0] scatter_axis = 0 : tensor<4xf32> -> tensor<2xf32>
  return %a, %b, %d : tensor<8xf32>, tensor<4xf32>, tensor<2xf32>
}

// -----

// Case 5 of a sum over ranks: what all have is counted once for each of them.
shard.grid @ranks(shape = 2)
func.func @twice(%x: tensor<4xf32> {weir.sharded}) -> tensor<4xf32> {
  %a = shard.all_reduce %x on @ranks grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  // expected-error @below {{is of a value that all ranks share, so each rank would count once more; leave the op out, or mark the argument that differs by rank with weir.sharded}}
  %b = shard.all_reduce %a on @ranks grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

shard.grid @ranks(shape = 2)
func.func @sliced(%x: tensor<4xf32> {weir.sharded}) -> (tensor<2xf32> {weir.sharded}) {
  // expected-error @below {{takes slices of a value that differs by rank; gather it first, or slice it on each rank}}
  %a = shard.all_slice %x on @ranks grid_axes = [0] slice_axis = 0 : tensor<4xf32> -> tensor<2xf32>
  return %a : tensor<2xf32>
}

// -----

// An all-reduce was forgotten.
// expected-error @below {{has result 'loss', which differs by rank: no shard.all_reduce or shard.all_gather makes it one value; add it, or mark the result with weir.sharded}}
func.func @forgotten(%x: tensor<4xf32> {weir.sharded}) -> (tensor<4xf32> {weir.name = "loss"}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{has result 's' with weir.sharded, but the argument that it replaces is the same on all ranks}}
func.func @state(%s: tensor<4xf32> {weir.name = "s", weir.donate}, %x: tensor<4xf32> {weir.sharded})
    -> (tensor<4xf32> {weir.name = "s", weir.sharded}) {
  return %x : tensor<4xf32>
}

// -----

shard.grid @ranks(shape = 2)
// expected-error @below {{is the second grid; all collectives of a module are on one}}
shard.grid @others(shape = 2)

// -----

// expected-error @below {{is no grid of one dimension or two, of a known number of ranks; write shape = 2 or shape = 2x2}}
shard.grid @ranks(shape = 2x2x2)

// -----

// Two axes. A sum along one leaves what differs along the other.
shard.grid @ranks(shape = 2x3)
func.func @axes(%x: tensor<4xf32> {weir.sharded = array<i64: 0>}, %w: tensor<4xf32> {weir.sharded = array<i64: 1>},
                %b: tensor<4xf32> {weir.sharded})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32> {weir.sharded = array<i64: 0>}, tensor<4xf32> {weir.sharded}) {
  %a = shard.all_reduce %x on @ranks grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  %c = shard.all_reduce %w on @ranks grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %d = shard.all_reduce %b on @ranks grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  return %a, %c, %d, %b : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

shard.grid @ranks(shape = 2x3)
// expected-error @below {{has result 'y', which differs by rank}}
func.func @other_axis(%b: tensor<4xf32> {weir.sharded})
    -> (tensor<4xf32> {weir.name = "y", weir.sharded = array<i64: 1>}) {
  %d = shard.all_reduce %b on @ranks grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  return %d : tensor<4xf32>
}

// -----

shard.grid @ranks(shape = 2x3)
func.func @twice_along(%w: tensor<4xf32> {weir.sharded = array<i64: 1>}) -> (tensor<4xf32> {weir.sharded = array<i64: 1>}) {
  // expected-error @below {{is of a value that all ranks share}}
  %d = shard.all_reduce %w on @ranks grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %d : tensor<4xf32>
}

// -----

shard.grid @ranks(shape = 2x3)
// expected-error @below {{has result 's' with weir.sharded, but the argument that it replaces is the same on all ranks}}
func.func @state_along(%s: tensor<4xf32> {weir.name = "s", weir.donate, weir.sharded = array<i64: 1>},
                       %x: tensor<4xf32> {weir.sharded = array<i64: 0>})
    -> (tensor<4xf32> {weir.name = "s", weir.sharded = array<i64: 0>}) {
  return %x : tensor<4xf32>
}

// -----

shard.grid @ranks(shape = 2)
// expected-error @below {{argument 0 has weir.sharded = array<i64: 1>; write it alone, or with axes of the grid, as array<i64: 0>, or with the name of a unit, as "blocks.0"}}
func.func @no_axis(%x: tensor<4xf32> {weir.sharded = array<i64: 1>}) {
  return
}

// -----

shard.grid @ranks(shape = 2x3)
// expected-error @below {{argument 0 is of the unit "blocks.0", which is gathered along the one axis of a grid, and the grid has two; write axes in its place, as array<i64: 0>}}
func.func @unit_of_two_axes(%x: tensor<4xf32> {weir.sharded = "blocks.0"}) {
  return
}

// -----

// expected-error @below {{argument 0 has weir.sharded = ""; write it alone, or}}
// expected-error @below {{result 0 has weir.sharded = "blocks.0"; write it alone, or with axes of the grid, as array<i64: 0>}}
func.func @unit_of_a_result(%x: tensor<4xf32> {weir.sharded = ""}) -> (tensor<4xf32> {weir.sharded = "blocks.0"}) {
  return %x : tensor<4xf32>
}

// -----

shard.grid @ranks(shape = 2)
func.func @ops(%x: tensor<4xf32> {weir.sharded}, %b: tensor<4xi1> {weir.sharded}) -> (tensor<4xf32>, tensor<4xf64>, tensor<4xi1>) {
  // expected-error @below {{is no sum; ranks add, and nothing else}}
  %a = shard.all_reduce %x on @ranks grid_axes = [0] reduction = max : tensor<4xf32> -> tensor<4xf32>
  // expected-error @below {{makes 'f64' of 'f32'; convert the elements before it}}
  %c = shard.all_reduce %x on @ranks grid_axes = [0] : tensor<4xf32> -> tensor<4xf64>
  // expected-error @below {{adds i1; convert it to i32 before}}
  %d = shard.all_reduce %b on @ranks grid_axes = [0] : tensor<4xi1> -> tensor<4xi1>
  return %a, %c, %d : tensor<4xf32>, tensor<4xf64>, tensor<4xi1>
}

// -----

shard.grid @ranks(shape = 2)
func.func @axes(%x: tensor<4xf32> {weir.sharded}) -> tensor<4xf32> {
  // expected-error @below {{is not along one axis of the grid; write grid_axes = [0], or [1] for the second}}
  %a = shard.all_reduce %x on @ranks : tensor<4xf32> -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

shard.grid @ranks(shape = 2)
func.func @loop(%x: tensor<4xf32> {weir.sharded}) -> (tensor<4xf32> {weir.sharded}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %y = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    // expected-error @below {{is in a loop; ranks exchange values between the ops of a function alone}}
    %b = shard.all_reduce %a on @ranks grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

// expected-error @below {{argument 0 has weir.sharded = true; write it alone, or with axes of the grid, as array<i64: 0>, or with the name of a unit, as "blocks.0"}}
// expected-error @below {{result 0 has weir.sharded = true; write it alone, or with axes of the grid, as array<i64: 0>}}
func.func @attributes(%x: tensor<4xf32> {weir.sharded = true}) -> (tensor<4xf32> {weir.sharded = true}) {
  return %x : tensor<4xf32>
}
