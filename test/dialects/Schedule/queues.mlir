// RUN: weir-opt %s | weir-opt | FileCheck %s

// CHECK-LABEL: @queues
func.func @queues(%x: memref<8xf32>, %y: memref<8xf32>, %v: f32) {
  schedule.commands {
    // Queue 0 is not printed.
    // CHECK: schedule.fill %{{.*}} with %{{.*}} : memref<8xf32>, f32
    schedule.fill %x with %v queue 0 : memref<8xf32>, f32
    // CHECK: schedule.fill %{{.*}} with %{{.*}} wave 1 queue 1 : memref<8xf32>, f32
    schedule.fill %x with %v wave 1 queue 1 : memref<8xf32>, f32
    // CHECK: schedule.signal id 0 memory(%{{.*}} : memref<8xf32>)
    schedule.signal queue 0 id 0 memory(%x : memref<8xf32>)
    // CHECK: schedule.signal queue 2 id 7{{$}}
    schedule.signal queue 2 id 7
    // CHECK: schedule.wait queue 1 on 0
    schedule.wait queue 1 on 0
    // CHECK: schedule.wait on 7
    schedule.wait on 7
    // CHECK: schedule.barrier queue 1 memory(%{{.*}} : memref<8xf32>) [#schedule.hazard<waw, 0 operand 1 -> 2 operand 0>]
    schedule.barrier queue 1 memory(%x : memref<8xf32>) [#schedule.hazard<waw, 0 operand 1 -> 2 operand 0>]
    // CHECK: schedule.copy %{{.*}} to %{{.*}} queue 3 : memref<8xf32> to memref<8xf32>
    schedule.copy %x to %y queue 3 : memref<8xf32> to memref<8xf32>
  }
  return
}
