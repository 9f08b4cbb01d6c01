// RUN: weir-opt %s --weir-schedule | FileCheck %s --check-prefix=WAVES
// RUN: weir-opt %s --weir-schedule --weir-plan-memory | FileCheck %s --check-prefix=SLOTS
// RUN: weir-opt %s --weir-insert-barriers | FileCheck %s

// Copies and fills are counted, ordered and kept alive as dispatches are.
module attributes {gpu.container_module} {
  gpu.module @copy {
    gpu.func @copy(%n: index, %x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %v = memref.load %x[%n] : memref<64xf32>
      memref.store %v, %y[%n] : memref<64xf32>
      gpu.return
    }
  }

  // CHECK-LABEL: @raw_through_copies
  // CHECK:      schedule.fill %[[A:.*]] with
  // CHECK-NEXT: schedule.barrier memory(%[[A]] : memref<64xf32>) [#schedule.hazard<raw, 0 operand 1 -> 1 operand 0>]
  // CHECK-NEXT: schedule.copy %[[A]] to %[[B:.*]] :
  // CHECK-NEXT: schedule.barrier memory(%[[B]] : memref<64xf32>) [#schedule.hazard<raw, 1 operand 1 -> 2 operand 1>]
  // CHECK-NEXT: schedule.dispatch
  // WAVES-LABEL: @raw_through_copies
  // WAVES: schedule.fill %{{.*}} with %{{.*}} wave 0
  // WAVES: schedule.copy %{{.*}} to %{{.*}} wave 1
  // WAVES: schedule.dispatch {{.*}} wave 2
  // SLOTS-LABEL: @raw_through_copies
  // SLOTS: weir.arena
  // SLOTS-SAME: memref<512xi8>
  // SLOTS: waves = 0 to 1
  // SLOTS: waves = 1 to 2
  func.func @raw_through_copies(%y: memref<64xf32>) attributes {weir.entry} {
    %zero = arith.constant 0.0 : f32
    %n = arith.constant 0 : index
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.fill %a with %zero : memref<64xf32>, f32
      schedule.copy %a to %b : memref<64xf32> to memref<64xf32>
      schedule.dispatch @copy::@copy [1, 1, 1] (%n, %b, %y) : (index, memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // A copy's source is only read, a scalar is nothing to order.
  // CHECK-LABEL: @raw_twin
  // CHECK-NOT: barrier
  // CHECK: return
  func.func @raw_twin(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>, %w: memref<64xf32>,
                      %n: index) attributes {weir.entry} {
    %zero = arith.constant 0.0 : f32
    schedule.commands {
      schedule.fill %w with %zero : memref<64xf32>, f32
      schedule.copy %x to %y : memref<64xf32> to memref<64xf32>
      schedule.dispatch @copy::@copy [1, 1, 1] (%n, %x, %z) : (index, memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // CHECK-LABEL: @war_waw
  // CHECK:      schedule.copy
  // CHECK-NEXT: schedule.barrier memory(%[[Y:.*]] : memref<64xf32>) [#schedule.hazard<waw, 0 operand 1 -> 1 operand 1>, #schedule.hazard<war, 0 operand 0 -> 2 operand 1>]
  // CHECK-NEXT: schedule.fill %[[Y]] with
  // CHECK-NEXT: schedule.fill %[[X:.*]] with
  // CHECK-NOT:  barrier
  // CHECK-LABEL: @war
  // CHECK:      schedule.copy
  // CHECK-NEXT: schedule.barrier [#schedule.hazard<war, 0 operand 0 -> 1 operand 1>]
  // CHECK-NEXT: schedule.fill
  func.func @war_waw(%x: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
    %zero = arith.constant 0.0 : f32
    schedule.commands {
      schedule.copy %x to %y : memref<64xf32> to memref<64xf32>
      schedule.fill %y with %zero : memref<64xf32>, f32
      schedule.fill %x with %zero : memref<64xf32>, f32
    }
    return
  }
  func.func @war(%x: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
    %zero = arith.constant 0.0 : f32
    schedule.commands {
      schedule.copy %x to %y : memref<64xf32> to memref<64xf32>
      schedule.fill %x with %zero : memref<64xf32>, f32
    }
    return
  }
}
