// RUN: weir-opt %s --weir-differentiate --weir-split-backward --split-input-file | FileCheck %s --implicit-check-not=shard

// A layer by columns and one by rows. Forward adds once, and so does backward: the cotangent of x,
// which all ranks share, is the sum of what each rank has. Weights add nothing.
// CHECK-LABEL: func @mlp.section.0(
// CHECK-SAME:    {weir.name = "x"}, {{.*}} {weir.kind = "param", weir.name = "up"}, {{.*}} {weir.kind = "param", weir.name = "down"})
// CHECK-SAME:    -> (tensor<3x4xf32> {weir.name = "sent.0.all_reduce"})
// CHECK-LABEL: func @mlp.section.1(
// CHECK-SAME:    %[[SUM:.*]]: tensor<3x4xf32> {weir.donate, weir.name = "received.0"})
// CHECK-SAME:    -> (tensor<3x4xf32> {weir.name = "y"})
// CHECK:         return %[[SUM]]

// CHECK-LABEL: func @mlp.vjp.section.0(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<3x4xf32> {weir.name = "x"}, %[[UP:[a-z0-9]*]]: tensor<4x5xf32> {weir.kind = "param", weir.name = "up"}, %[[DOWN:[a-z0-9]*]]: tensor<5x4xf32> {weir.kind = "param", weir.name = "down"}, %[[DY:[a-z0-9]*]]: tensor<3x4xf32> {weir.name = "cotangent.y"})
// CHECK-SAME:    -> (tensor<3x4xf32> {weir.name = "sent.0.all_reduce"}, tensor<3x4xf32> {weir.name = "sent.1.all_reduce"}, tensor<4x5xf32> {weir.name = "grad.up"}, tensor<5x4xf32> {weir.name = "grad.down"})
// CHECK:         %[[H:.*]] = linalg.matmul ins(%[[X]], %[[UP]]
// CHECK:         %[[Y:.*]] = linalg.matmul ins(%[[H]], %[[DOWN]]
// CHECK-DAG:     %[[DH:.*]] = linalg.generic {{.*}} ins(%[[DOWN]], %[[DY]] :
// CHECK-DAG:     %[[DDOWN:.*]] = linalg.generic {{.*}} ins(%[[H]], %[[DY]] :
// CHECK-DAG:     %[[DX:.*]] = linalg.generic {{.*}} ins(%[[UP]], %[[DH]] :
// CHECK-DAG:     %[[DUP:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[DH]] :
// CHECK:         return %[[Y]], %[[DX]], %[[DUP]], %[[DDOWN]]
// CHECK-LABEL: func @mlp.vjp.section.1(
// CHECK-SAME:    %[[SUM:[a-z0-9]*]]: tensor<3x4xf32> {weir.donate, weir.name = "received.0"}, %[[DX:[a-z0-9]*]]: tensor<3x4xf32> {weir.donate, weir.name = "received.1"})
// CHECK-SAME:    -> (tensor<3x4xf32> {weir.name = "y"}, tensor<3x4xf32> {weir.name = "grad.x"})
// CHECK:         return %[[SUM]], %[[DX]]
shard.grid @ranks(shape = 2)
func.func @mlp(%x: tensor<3x4xf32> {weir.name = "x"},
               %up: tensor<4x5xf32> {weir.name = "up", weir.kind = "param", weir.sharded},
               %down: tensor<5x4xf32> {weir.name = "down", weir.kind = "param", weir.sharded})
    -> (tensor<3x4xf32> {weir.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %e5 = tensor.empty() : tensor<3x5xf32>
  %e4 = tensor.empty() : tensor<3x4xf32>
  %z5 = linalg.fill ins(%zero : f32) outs(%e5 : tensor<3x5xf32>) -> tensor<3x5xf32>
  %z4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<3x4xf32>) -> tensor<3x4xf32>
  %h = linalg.matmul ins(%x, %up : tensor<3x4xf32>, tensor<4x5xf32>) outs(%z5 : tensor<3x5xf32>) -> tensor<3x5xf32>
  %y = linalg.matmul ins(%h, %down : tensor<3x5xf32>, tensor<5x4xf32>) outs(%z4 : tensor<3x4xf32>) -> tensor<3x4xf32>
  %sum = shard.all_reduce %y on @ranks grid_axes = [0] : tensor<3x4xf32> -> tensor<3x4xf32>
  return %sum : tensor<3x4xf32>
}
func.func @mlp.vjp(%x: tensor<3x4xf32> {weir.name = "x"},
                   %up: tensor<4x5xf32> {weir.name = "up", weir.kind = "param", weir.sharded},
                   %down: tensor<5x4xf32> {weir.name = "down", weir.kind = "param", weir.sharded},
                   %dy: tensor<3x4xf32> {weir.name = "cotangent.y"})
    -> (tensor<3x4xf32> {weir.name = "y"}, tensor<3x4xf32> {weir.name = "grad.x"},
        tensor<4x5xf32> {weir.name = "grad.up", weir.sharded},
        tensor<5x4xf32> {weir.name = "grad.down", weir.sharded}) {
  %y, %dx, %dup, %ddown = autodiff.vjp @mlp(%x, %up, %down) seeded [0] (%dy) wanted [0, 1, 2]
      : (tensor<3x4xf32>, tensor<4x5xf32>, tensor<5x4xf32>, tensor<3x4xf32>)
        -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<4x5xf32>, tensor<5x4xf32>)
  return %y, %dx, %dup, %ddown : tensor<3x4xf32>, tensor<3x4xf32>, tensor<4x5xf32>, tensor<5x4xf32>
}

// -----

// A value that a later section reads is kept, and donated to its last reader; constants are made
// again. The next value of an argument is given by the last section that reads that argument.
// CHECK-LABEL: func @kept.section.0(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: tensor<4xf32> {weir.name = "x"}, %{{.*}}: tensor<4xf32> {weir.kind = "state", weir.name = "s"})
// CHECK-SAME:    -> (tensor<4xf32> {weir.name = "sent.0.all_reduce"}, tensor<4xf32> {weir.name = "kept.0"}, tensor<4xf32> {weir.name = "kept.1"})
// CHECK-LABEL: func @kept.section.1(
// CHECK-SAME:    {weir.donate, weir.kind = "state", weir.name = "s"}
// CHECK-SAME:    {weir.donate, weir.name = "received.0"}
// CHECK-SAME:    -> (tensor<4xf32> {weir.name = "y"}, tensor<4xf32> {weir.name = "s"})
shard.grid @ranks(shape = 2)
func.func @kept(%x: tensor<4xf32> {weir.name = "x", weir.sharded},
                %s: tensor<4xf32> {weir.name = "s", weir.kind = "state", weir.donate})
    -> (tensor<4xf32> {weir.name = "y", weir.sharded}, tensor<4xf32> {weir.name = "s"}) {
  %e = tensor.empty() : tensor<4xf32>
  %a = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %sum = shard.all_reduce %a on @ranks grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  %next = linalg.tanh ins(%s : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %b = linalg.mul ins(%sum, %a : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.add ins(%b, %s : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %y, %next : tensor<4xf32>, tensor<4xf32>
}

// -----

// The twin: without collectives a function stays whole.
// CHECK-LABEL: func @whole(
// CHECK-SAME:    %{{.*}}: tensor<4xf32>) -> tensor<4xf32>
func.func @whole(%x: tensor<4xf32> {weir.sharded}) -> (tensor<4xf32> {weir.sharded}) {
  return %x : tensor<4xf32>
}
