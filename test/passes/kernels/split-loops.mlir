// RUN: weir-opt %s --weir-split-loops -split-input-file -verify-diagnostics | FileCheck %s

// A counter that is read is carried, in 32 bits; `w` is the same in all trips, and read by the body.
// CHECK:       module attributes {weir.programs = {counted = {
// CHECK-SAME:  carried = [array<i64: [[INIT:[0-9]+]], [[IN:[0-9]+]], {{.*}}], copies = ["counted_copy", "counted_copy_{{.*}}"]
// CHECK-SAME:  trips = 1000 : i64
// CHECK:       func.func @counted_part(%[[X:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<i32>) attributes {weir.segment}
// CHECK:         return %[[X]], %[[W]], %{{.*}} : tensor<4xf32>, tensor<4xf32>, tensor<i32>
// CHECK:       func.func @counted_copy(
// CHECK:       func.func @counted_part_{{.*}}(%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xf32> {weir.donate}, %[[I:.*]]: tensor<i32> {weir.donate}) -> (tensor<4xf32>, tensor<i32>)
// CHECK:         %[[N:.*]] = tensor.extract %[[I]][] : tensor<i32>
// CHECK:         arith.index_cast %[[N]] : i32 to index
// CHECK:         linalg.add
// CHECK-NOT:   func.func @counted(
func.func @counted(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1000 : index
  %e = tensor.empty() : tensor<4xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x, %same = %w) -> (tensor<4xf32>, tensor<4xf32>) {
    %k = arith.index_cast %i : index to i32
    %f = arith.sitofp %k : i32 to f32
    %s = linalg.fill ins(%f : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %y = linalg.add ins(%h, %same : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %z = linalg.sub ins(%y, %s : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %z, %same : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0 : tensor<4xf32>
}

// -----

// The twin: no loop, no segment.
// CHECK-LABEL: func.func @straight
// CHECK-NOT:   weir.segment
func.func @straight(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// A condition is computed before the loop and at the end of each trip.
// CHECK:       weir.programs = {decided = {{.*}}flag = 0 : i64
// CHECK:       func.func @decided_part(
// CHECK:         arith.cmpf
// CHECK:       func.func @decided_part_
// CHECK:         linalg.exp
// CHECK:         arith.cmpf
func.func @decided(%x: tensor<f32>, %end: tensor<f32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %r = scf.while (%h = %x) : (tensor<f32>) -> tensor<f32> {
    %a = tensor.extract %h[] : tensor<f32>
    %b = tensor.extract %end[] : tensor<f32>
    %go = arith.cmpf olt, %a, %b : f32
    scf.condition(%go) %h : tensor<f32>
  } do {
  ^bb0(%h: tensor<f32>):
    %y = linalg.exp ins(%h : tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
    scf.yield %y : tensor<f32>
  }
  return %r : tensor<f32>
}

// -----

func.func @empty(%x: tensor<0xf32>) -> tensor<0xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1000 : index
  // expected-error @below {{'scf.for' op carries 'tensor<0xf32>'; what a loop carries has a static shape and elements}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> tensor<0xf32> {
    %e = tensor.empty() : tensor<0xf32>
    %y = linalg.exp ins(%h : tensor<0xf32>) outs(%e : tensor<0xf32>) -> tensor<0xf32>
    scf.yield %y : tensor<0xf32>
  }
  return %r : tensor<0xf32>
}
