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
  }

  // Three values at once as written; two when each is used where it is made.
  // REMARK: remark: [Passed] order | Category:schedule | memory=512, program=768
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
}
