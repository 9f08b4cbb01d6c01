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

// -----

// Arguments of units are gathered for the ops that read them: a section for each unit forward, and
// one for each backward, which gathers again. The last unit stays. What is computed from a unit
// alone is repeated, and sums of gradients leave as soon as they are there. While the next section is
// computed, they are on their way: updates and the loss read them in the section behind it.
// CHECK-LABEL: func @units.step.section.0(
// CHECK-SAME:    %{{.*}}: tensor<3x4xf32> {weir.name = "x"}, %{{.*}}: tensor<16xf32> {weir.name = "gathered.0.u"})
// CHECK-SAME:    -> (tensor<3x4xf32> {weir.name = "kept.[[H:[0-9]+]]"})
// CHECK-LABEL: func @units.step.section.1(
// CHECK-SAME:    %{{.*}}: tensor<3x4xf32> {weir.donate, weir.name = "kept.[[H]]"}, %{{.*}}: tensor<16xf32> {weir.name = "gathered.0.v"})
// CHECK-SAME:    -> (tensor<f32> {weir.name = "sent.0.all_reduce"}, tensor<16xf32> {weir.name = "sent.1.reduce_scatter.0"}, tensor<3x4xf32> {weir.name = "kept.[[DH:[0-9]+]]"})
// CHECK-LABEL: func @units.step.section.2(
// CHECK-SAME:    {weir.name = "x"}, %{{.*}}: tensor<3x4xf32> {weir.donate, weir.name = "kept.[[DH]]"}, %[[U:[a-z0-9]*]]: tensor<16xf32> {weir.name = "gathered.0.u"})
// CHECK-SAME:    -> (tensor<16xf32> {weir.name = "sent.2.reduce_scatter.0"})
// CHECK:         linalg.generic {{.*}} ins(%[[U]]
// CHECK:           math.exp
// CHECK-LABEL: func @units.step.section.3(
// CHECK-SAME:    %{{.*}}: tensor<8xf32> {weir.donate, weir.kind = "param", weir.name = "u"}, %{{.*}}: tensor<8xf32> {weir.donate, weir.kind = "param", weir.name = "v"}, %{{.*}}: tensor<8xf32> {weir.donate, weir.name = "received.2"}, %{{.*}}: tensor<8xf32> {weir.donate, weir.name = "received.1"}, %{{.*}}: tensor<f32> {weir.donate, weir.name = "received.0"})
// CHECK-SAME:    -> (tensor<f32> {weir.name = "loss"}, tensor<8xf32> {weir.name = "u"}, tensor<8xf32> {weir.name = "v"})
shard.grid @ranks(shape = 2)
func.func private @units(%x: tensor<3x4xf32> {weir.name = "x", weir.sharded},
                 %u: tensor<8xf32> {weir.name = "u", weir.kind = "param", weir.sharded = "first"},
                 %v: tensor<8xf32> {weir.name = "v", weir.kind = "param", weir.sharded = "second"})
    -> (tensor<f32> {weir.name = "loss"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x4xf32>
  %es = tensor.empty() : tensor<f32>
  %ew = tensor.empty() : tensor<16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<f32>) -> tensor<f32>
  %ug = shard.all_gather %u on @ranks grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %vg = shard.all_gather %v on @ranks grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %up = linalg.exp ins(%ug : tensor<16xf32>) outs(%ew : tensor<16xf32>) -> tensor<16xf32>
  %uw = tensor.expand_shape %up [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
  %vw = tensor.expand_shape %vg [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
  %h = linalg.matmul ins(%x, %uw : tensor<3x4xf32>, tensor<4x4xf32>) outs(%z : tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = linalg.matmul ins(%h, %vw : tensor<3x4xf32>, tensor<4x4xf32>) outs(%z : tensor<3x4xf32>) -> tensor<3x4xf32>
  %own = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>],
                         iterator_types = ["reduction", "reduction"]}
      ins(%y : tensor<3x4xf32>) outs(%zs : tensor<f32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %loss = shard.all_reduce %own on @ranks grid_axes = [0] : tensor<f32> -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @units.step(%x: tensor<3x4xf32> {weir.name = "x", weir.sharded},
                      %u: tensor<8xf32> {weir.name = "u", weir.kind = "param", weir.sharded = "first", weir.donate},
                      %v: tensor<8xf32> {weir.name = "v", weir.kind = "param", weir.sharded = "second", weir.donate})
    -> (tensor<f32> {weir.name = "loss"}, tensor<8xf32> {weir.name = "u", weir.sharded},
        tensor<8xf32> {weir.name = "v", weir.sharded}) {
  %one = arith.constant dense<1.0> : tensor<f32>
  %e = tensor.empty() : tensor<8xf32>
  %loss, %du, %dv = autodiff.vjp @units(%x, %u, %v) seeded [0] (%one) wanted [1, 2]
      : (tensor<3x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<f32>, tensor<8xf32>, tensor<8xf32>)
  %nu = linalg.sub ins(%u, %du : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %nv = linalg.sub ins(%v, %dv : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %loss, %nu, %nv : tensor<f32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// The twin: what reads a unit waits for the sum, so that has no time.
// CHECK-LABEL: func @awaited.section.0(
// CHECK-SAME:    -> (tensor<16xf32> {weir.name = "sent.0.all_reduce"})
// CHECK-LABEL: func @awaited.section.1(
// CHECK-SAME:    {weir.donate, weir.name = "received.0"}, {{.*}} {weir.name = "gathered.0.v"})
// CHECK-SAME:    -> (tensor<16xf32> {weir.name = "kept.0"})
shard.grid @ranks(shape = 2)
func.func @awaited(%x: tensor<16xf32> {weir.name = "x", weir.sharded},
                   %u: tensor<8xf32> {weir.name = "u", weir.sharded = "first"},
                   %v: tensor<8xf32> {weir.name = "v", weir.sharded = "second"})
    -> (tensor<16xf32> {weir.name = "y"}) {
  %e = tensor.empty() : tensor<16xf32>
  %ug = shard.all_gather %u on @ranks grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %vg = shard.all_gather %v on @ranks grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %a = linalg.mul ins(%x, %ug : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %s = shard.all_reduce %a on @ranks grid_axes = [0] : tensor<16xf32> -> tensor<16xf32>
  %b = linalg.mul ins(%s, %vg : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %y = linalg.mul ins(%b, %ug : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// -----

// The twin: without units all is gathered at once.
// CHECK-LABEL: func @together.section.0(
// CHECK-SAME:    -> (tensor<8xf32> {weir.name = "sent.0.all_gather.0"}, tensor<8xf32> {weir.name = "sent.1.all_gather.0"})
// CHECK-LABEL: func @together.section.1(
// CHECK-SAME:    {weir.donate, weir.name = "received.0"}, {{.*}} {weir.donate, weir.name = "received.1"})
// CHECK-SAME:    -> (tensor<16xf32> {weir.name = "y"})
shard.grid @ranks(shape = 2)
func.func @together(%x: tensor<16xf32> {weir.name = "x", weir.sharded},
                    %u: tensor<8xf32> {weir.name = "u", weir.sharded}, %v: tensor<8xf32> {weir.name = "v", weir.sharded})
    -> (tensor<16xf32> {weir.name = "y", weir.sharded}) {
  %e = tensor.empty() : tensor<16xf32>
  %ug = shard.all_gather %u on @ranks grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %vg = shard.all_gather %v on @ranks grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %h = linalg.mul ins(%x, %ug : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %y = linalg.mul ins(%h, %vg : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// -----

// An argument that is only gathered stays an argument, of the first section that reads it.
// CHECK-LABEL: func @gathered.section.0(
// CHECK-SAME:    {weir.name = "x"}, %{{[a-z0-9]*}}: tensor<8xf32> {weir.name = "u"}, %{{[a-z0-9]*}}: tensor<16xf32> {weir.name = "gathered.0.u"})
// CHECK-LABEL: func @gathered.section.1(
// CHECK-SAME:    {weir.name = "v"}, %{{[a-z0-9]*}}: tensor<16xf32> {weir.donate, weir.name = "kept.0"}, %{{[a-z0-9]*}}: tensor<16xf32> {weir.name = "gathered.0.v"})
// CHECK-LABEL: func @gathered.section.2(
// CHECK-SAME:    %{{[a-z0-9]*}}: tensor<16xf32> {weir.donate, weir.name = "kept.1"}, %{{[a-z0-9]*}}: tensor<16xf32> {weir.name = "gathered.0.u"})
shard.grid @ranks(shape = 2)
func.func @gathered(%x: tensor<16xf32> {weir.name = "x", weir.sharded},
                    %u: tensor<8xf32> {weir.name = "u", weir.sharded = "first"},
                    %v: tensor<8xf32> {weir.name = "v", weir.sharded = "second"})
    -> (tensor<16xf32> {weir.name = "y", weir.sharded}) {
  %e = tensor.empty() : tensor<16xf32>
  %ug = shard.all_gather %u on @ranks grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %vg = shard.all_gather %v on @ranks grid_axes = [0] gather_axis = 0 : tensor<8xf32> -> tensor<16xf32>
  %a = linalg.mul ins(%x, %ug : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %b = linalg.mul ins(%a, %vg : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %y = linalg.mul ins(%b, %ug : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  return %y : tensor<16xf32>
}
