// RUN: weir-opt %s --weir-schedule --weir-donate-buffers --weir-plan-memory --weir-insert-barriers | FileCheck %s
// RUN: weir-opt %s --weir-schedule --weir-donate-buffers --weir-plan-memory=no-reuse | FileCheck %s --check-prefix=PINNED
// RUN: not weir-opt %s --weir-schedule --weir-donate-buffers --weir-plan-memory=require-donation 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REQUIRED

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @add(%a: memref<64xf32>, %b: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32>
      %v = memref.load %b[%i] : memref<64xf32>
      %w = arith.addf %u, %v : f32
      memref.store %w, %y[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @both(%a: memref<64xf32>, %b: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32>
      %v = memref.load %b[%i] : memref<64xf32>
      memref.store %u, %y[%i] : memref<64xf32>
      memref.store %v, %z[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @reverse(%a: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %c63 = arith.constant 63 : index
      %i = gpu.thread_id x
      %r = arith.subi %c63, %i : index
      %u = memref.load %a[%r] : memref<64xf32>
      memref.store %u, %y[%i] : memref<64xf32>
      gpu.return
    }
  }

  // The last reader of %x begins %u, the last of %u begins the result: %x, %u
  // and %y are the same bytes, and %t, which could have been %y's, keeps its own.
  // CHECK-LABEL: @chain
  // CHECK-SAME: %[[X:.*]]: memref<64xf32> {weir.donate, weir.name = "x"}, %[[Z:.*]]: memref<64xf32>, %{{.*}}: memref<64xf32> {weir.donated = 0 : i64, weir.result}
  // CHECK: weir.pinned_bytes = 512 : i64
  // CHECK: memref.alloc() {{.*}}weir.arena} : memref<256xi8>
  // CHECK: %[[T:.*]] = memref.view {{.*}}#schedule.slot<"t", alignment = 256, waves = 0 to 2>
  // CHECK: dispatch @k::@add [1, 1, 1](%[[X]], %[[Z]], %[[T]]) wave 0
  // CHECK: barrier {{.*}}war, 0 operand 0 -> 1 operand 2
  // CHECK: dispatch @k::@add [1, 1, 1](%[[X]], %[[T]], %[[X]]) wave 1
  // CHECK: dispatch @k::@add [1, 1, 1](%[[T]], %[[X]], %[[X]]) wave 2
  // PINNED-LABEL: @chain
  // PINNED-NOT: weir.donated
  // PINNED: : memref<512xi8>
  func.func @chain(%x: memref<64xf32> {weir.name = "x", weir.donate}, %z: memref<64xf32>,
                   %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %t = memref.alloc() {weir.name = "t"} : memref<64xf32>
    %u = memref.alloc() {weir.name = "u"} : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@add [1, 1, 1] (%x, %z, %t) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%x, %t, %u) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%t, %u, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Who reads %x after it in the program comes before who may write over it.
  // CHECK-LABEL: @reader_first
  // CHECK: dispatch @k::@reverse {{.*}} wave 0
  // CHECK: dispatch @k::@reverse {{.*}} wave 1
  // CHECK: barrier {{.*}}#schedule.hazard<war, 1 operand 0 -> 2 operand 2>
  // CHECK: dispatch @k::@add {{.*}} wave 2
  func.func @reader_first(%x: memref<64xf32> {weir.donate}, %z: memref<64xf32>,
                          %y: memref<64xf32> {weir.result}, %r: memref<64xf32> {weir.result})
      attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@reverse [1, 1, 1] (%z, %r) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%x, %z, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%x, %r) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // The last reader of %x in the program begins a result, too, but not one that may
  // lie in %x: it comes before the one that may.
  // CHECK-LABEL: @reader_that_cannot_take
  // CHECK-SAME: weir.donated = 0 : i64
  // CHECK: dispatch @k::@reverse {{.*}} wave 0
  // CHECK: barrier {{.*}}#schedule.hazard<war, 0 operand 0 -> 1 operand 2>
  // CHECK: dispatch @k::@add {{.*}} wave 1
  func.func @reader_that_cannot_take(%x: memref<64xf32> {weir.donate}, %z: memref<64xf32>,
                                     %y: memref<64xf32> {weir.result},
                                     %r: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@add [1, 1, 1] (%x, %z, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%x, %r) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // %q takes the bytes of %p, so the dispatch that makes it comes a wave after the
  // other reader of %p, and %t lives longer. %c has bytes of %t, but begins with a
  // dispatch that leaves those alone: as a whole it is in no wave with %t all the same.
  // CHECK-LABEL: @first_writer_elsewhere
  // CHECK: %[[T:.*]] = memref.view {{.*}}#schedule.slot<"t", alignment = 256, waves = 0 to 2>
  // CHECK: %[[C:.*]] = memref.view {{.*}}#schedule.slot<"c", alignment = 256, waves = 3 to 3>
  // CHECK: dispatch {{.*}}, %[[T]], {{.*}} wave 2
  // CHECK: schedule.copy {{.*}} wave 3
  // CHECK-NEXT: schedule.barrier
  // CHECK-NEXT: schedule.copy {{.*}} wave 3
  func.func @first_writer_elsewhere(%x: memref<64xf32>, %y: memref<64xf32> {weir.result},
                                    %z: memref<64xf32> {weir.result},
                                    %w: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %p = memref.alloc() {weir.name = "p"} : memref<64xf32>
    %t = memref.alloc() {weir.name = "t"} : memref<64xf32>
    %q = memref.alloc() {weir.name = "q"} : memref<64xf32>
    %c = memref.alloc() {weir.name = "c"} : memref<128xf32>
    %low = memref.subview %c[0] [64] [1] : memref<128xf32> to memref<64xf32, strided<[1]>>
    %high = memref.subview %c[64] [64] [1] : memref<128xf32> to memref<64xf32, strided<[1], offset: 64>>
    schedule.commands {
      schedule.dispatch @k::@reverse [1, 1, 1] (%x, %p) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%p, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%p, %t, %q) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%y, %z) : (memref<64xf32>, memref<64xf32>)
      schedule.copy %x to %high : memref<64xf32> to memref<64xf32, strided<[1], offset: 64>>
      schedule.copy %x to %low : memref<64xf32> to memref<64xf32, strided<[1]>>
      schedule.dispatch @k::@reverse [1, 1, 1] (%q, %w) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Either result could lie in either argument: in the one that it is the next value of,
  // where a name says so.
  // CHECK-LABEL: @successors
  // CHECK-SAME: %[[A:.*]]: memref<64xf32> {weir.donate, weir.name = "a"}, %[[B:.*]]: memref<64xf32> {weir.donate, weir.name = "b"}
  // CHECK-SAME: {weir.donated = 1 : i64, weir.name = "b", weir.result}
  // CHECK-SAME: {weir.donated = 0 : i64, weir.name = "a", weir.result}
  // CHECK: dispatch @k::@both [1, 1, 1](%[[A]], %[[B]], %[[B]], %[[A]])
  func.func @successors(%a: memref<64xf32> {weir.name = "a", weir.donate},
                        %b: memref<64xf32> {weir.name = "b", weir.donate},
                        %y: memref<64xf32> {weir.name = "b", weir.result},
                        %z: memref<64xf32> {weir.name = "a", weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@both [1, 1, 1] (%a, %b, %y, %z)
          : (memref<64xf32>, memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }
  // CHECK-LABEL: @no_successors
  // CHECK-SAME: %[[A:.*]]: memref<64xf32> {weir.donate, weir.name = "a"}, %[[B:.*]]: memref<64xf32> {weir.donate}
  // CHECK-SAME: {weir.donated = 0 : i64, weir.name = "b", weir.result}
  // CHECK-SAME: {weir.donated = 1 : i64, weir.result}
  // CHECK: dispatch @k::@both [1, 1, 1](%[[A]], %[[B]], %[[A]], %[[B]])
  func.func @no_successors(%a: memref<64xf32> {weir.name = "a", weir.donate},
                           %b: memref<64xf32> {weir.donate},
                           %y: memref<64xf32> {weir.name = "b", weir.result},
                           %z: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@both [1, 1, 1] (%a, %b, %y, %z)
          : (memref<64xf32>, memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Nothing may take the bytes of a reversed operand.
  // CHECK-LABEL: @refused
  // CHECK-NOT: weir.donated
  // CHECK: dispatch
  // REQUIRED: error: argument "w" is donated, but no result takes its bytes: access-map-unproven, operand 1 may be written before operand 0 is read
  // REQUIRED: note: this stands in the way
  func.func @refused(%x: memref<64xf32> {weir.name = "w", weir.donate},
                     %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@reverse [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
