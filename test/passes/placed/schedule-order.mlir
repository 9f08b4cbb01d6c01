// RUN: weir-opt %s --weir-schedule | FileCheck %s
// RUN: weir-opt %s --weir-schedule --remarks-filter=schedule -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: weir-opt %s --weir-schedule=schedule=program | FileCheck %s --check-prefix=PROGRAM
// RUN: not weir-opt %s --weir-schedule=schedule=best 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: error: schedule 'best' is unknown; it is program or memory
module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      memref.store %v, %y[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @add(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %x[%i] : memref<64xf32>
      %v = memref.load %y[%i] : memref<64xf32>
      %w = arith.addf %u, %v : f32
      memref.store %w, %z[%i] : memref<64xf32>
      gpu.return
    }
  }

  // Three values at once as written; two when each is used where it is made.
  // REMARK: remark: [Passed] order | Category:schedule | Remark="at most 768 bytes live at once in program order, 512 in an order for memory; taken is the order for memory"
  // CHECK-LABEL: @three
  // CHECK-SAME: %[[X:.*]]: memref<64xf32>, %[[A:[^:]*]]: memref<64xf32> {weir.result}, %[[B:[^:]*]]: memref<64xf32> {weir.result}, %[[C:[^:]*]]: memref<64xf32>
  // CHECK: dispatch {{.*}}(%[[X]], %[[T:.*]]) wave 0
  // CHECK-NEXT: dispatch {{.*}}(%[[T]], %[[A]]) wave 1
  // CHECK-NEXT: dispatch {{.*}}(%[[X]], %[[U:.*]]) wave 1
  // CHECK-NEXT: dispatch {{.*}}(%[[U]], %[[B]]) wave 2
  // CHECK-NEXT: dispatch {{.*}}(%[[X]], %[[V:.*]]) wave 2
  // CHECK-NEXT: dispatch {{.*}}(%[[V]], %[[C]]) wave 3
  // PROGRAM-LABEL: @three
  // PROGRAM-COUNT-3: wave 0
  // PROGRAM-COUNT-3: wave 1
  func.func @three(%x: memref<64xf32>, %a: memref<64xf32> {weir.result}, %b: memref<64xf32> {weir.result},
                   %c: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %t = memref.alloc() : memref<64xf32>
    %u = memref.alloc() : memref<64xf32>
    %v = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %u) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %v) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%t, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%u, %b) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%v, %c) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Less memory would be needed if %t were read at once; but who reads it may write over
  // %w, and the other reader of %w comes before that one.
  // CHECK-LABEL: @readers_first
  // CHECK-SAME: %[[X:.*]]: memref<64xf32>, %[[W:.*]]: memref<64xf32> {weir.donate}, %[[B:[^:]*]]: memref<64xf32> {weir.result}, %[[NEW:[^:]*]]: memref<64xf32>
  // CHECK: dispatch {{.*}}(%[[X]], %[[T:.*]]) wave 0
  // CHECK-NEXT: dispatch {{.*}}(%[[X]], %[[U:.*]]) wave 0
  // CHECK-NEXT: dispatch {{.*}}(%[[W]], %[[U]], %[[B]]) wave 1
  // CHECK-NEXT: dispatch {{.*}}(%[[W]], %[[T]], %[[NEW]]) wave 1
  func.func @readers_first(%x: memref<64xf32>, %w: memref<64xf32> {weir.donate},
                           %b: memref<64xf32> {weir.result}, %new: memref<64xf32> {weir.result})
      attributes {weir.entry} {
    %t = memref.alloc() : memref<64xf32>
    %u = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %u) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%w, %u, %b) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%w, %t, %new) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
