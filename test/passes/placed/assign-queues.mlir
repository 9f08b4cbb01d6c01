// RUN: weir-opt %s --weir-assign-queues=queues=2 | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-assign-queues | FileCheck %s --check-prefix=ONE
// RUN: weir-opt %s --weir-assign-queues=queues=2 --weir-schedule --weir-insert-barriers --weir-verify-ordered
// RUN: not weir-opt %s --weir-assign-queues=queues=65 2>&1 | FileCheck %s --check-prefix=MANY

// The profile has one queue.
// ONE-NOT: queue 1 :
// MANY: 65 queues; there may be 1 to 64

module attributes {gpu.container_module} {
  gpu.module @copy {
    gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      memref.store %v, %y[%i] : memref<64xf32>
      gpu.return
    }
  }

  // Chains that share nothing run beside each other, each on one queue.
  // CHECK-LABEL: @chains
  // CHECK:      dispatch {{.*}}) : (
  // CHECK-NEXT: dispatch {{.*}}) queue 1 : (
  // CHECK-NEXT: dispatch {{.*}}) : (
  // CHECK-NEXT: dispatch {{.*}}) queue 1 : (
  func.func @chains(%x: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %c = memref.alloc() : memref<64xf32>
    %d = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %b) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %c) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %d) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // One chain stays where it is.
  // CHECK-LABEL: @chain
  // CHECK-NOT: queue
  // CHECK: return
  func.func @chain(%x: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Of two readers the first follows the writer.
  // CHECK-LABEL: @fork
  // CHECK:      dispatch {{.*}}) : (
  // CHECK-NEXT: dispatch {{.*}}) : (
  // CHECK-NEXT: dispatch {{.*}}) queue 1 : (
  func.func @fork(%x: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %c = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %c) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
