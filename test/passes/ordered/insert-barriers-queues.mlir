// RUN: weir-opt %s --weir-insert-barriers | FileCheck %s
// RUN: weir-opt %s --weir-insert-barriers --weir-insert-barriers | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @copy {
    gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      memref.store %v, %y[%i] : memref<64xf32>
      gpu.return
    }
  }

  // The signal stands right behind what is waited for and makes it visible.
  // CHECK-LABEL: @raw
  // CHECK:      dispatch {{.*}} queue 1
  // CHECK-NEXT: schedule.signal queue 1 id 0 memory(%[[B:.*]] : memref<64xf32>)
  // CHECK-NEXT: dispatch {{.*}} queue 1
  // CHECK-NEXT: schedule.wait on 0
  // CHECK-NEXT: dispatch {{.*}}(%[[B]],
  // CHECK-NEXT: }
  func.func @raw(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %d: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %c) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %d) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Another queue that touches other bytes waits for nobody.
  // CHECK-LABEL: @raw_twin
  // CHECK-NOT: signal
  // CHECK-NOT: wait
  // CHECK-NOT: barrier
  // CHECK: return
  func.func @raw_twin(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %d: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %c) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %d) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // A signal covers readers, too; nothing becomes visible.
  // CHECK-LABEL: @war_last_reader
  // CHECK-COUNT-2: dispatch {{.*}} queue 1
  // CHECK-NEXT: schedule.signal queue 1 id 0{{$}}
  // CHECK-NEXT: schedule.wait on 0
  // CHECK-NEXT: dispatch
  // CHECK-NEXT: }
  func.func @war_last_reader(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %d: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %c) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%d, %a) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // One wait orders all that comes later; the next dispatch needs none.
  // CHECK-LABEL: @one_wait
  // CHECK:      schedule.signal queue 1 id 0
  // CHECK-NEXT: schedule.wait on 0
  // CHECK-NEXT: dispatch
  // CHECK-NEXT: dispatch
  // CHECK-NEXT: }
  func.func @one_wait(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %d: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %c) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %d) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Two queues wait for one signal.
  // CHECK-LABEL: @one_signal
  // CHECK:      schedule.signal queue 1 id 0
  // CHECK-NEXT: schedule.wait on 0
  // CHECK-NEXT: dispatch
  // CHECK-NEXT: schedule.wait queue 2 on 0
  // CHECK-NEXT: dispatch
  // CHECK-NEXT: }
  func.func @one_signal(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %d: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %c) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %d) queue 2 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // What a queue waited for, those who wait for it have waited for.
  // CHECK-LABEL: @through_another
  // CHECK:      dispatch {{.*}} queue 1
  // CHECK-NEXT: schedule.signal queue 1 id [[FIRST:[0-9]+]] memory(%[[B:[^,]*]] : memref<64xf32>)
  // CHECK-NEXT: schedule.wait queue 2 on [[FIRST]]
  // CHECK-NEXT: dispatch {{.*}} queue 2
  // CHECK-NEXT: schedule.signal queue 2 id [[SECOND:[0-9]+]]
  // CHECK-NEXT: schedule.wait on [[SECOND]]
  // CHECK-NEXT: dispatch
  // CHECK-NEXT: dispatch
  // CHECK-NEXT: }
  func.func @through_another(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %d: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %c) queue 2 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%c, %d) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %a) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Waits to and fro order two dispatches of one queue: no barrier.
  // CHECK-LABEL: @to_and_fro
  // CHECK-NOT: barrier
  // CHECK: return
  func.func @to_and_fro(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %d: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %c) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%c, %b) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Inside a queue a barrier does it, for that queue alone.
  // CHECK-LABEL: @inside
  // CHECK:      dispatch {{.*}} queue 1
  // CHECK-NEXT: dispatch
  // CHECK-NEXT: schedule.barrier queue 1 memory(%{{.*}} : memref<64xf32>) [#schedule.hazard<raw, 0 operand 1 -> 2 operand 0>]
  // CHECK-NEXT: dispatch {{.*}} queue 1
  // CHECK-NEXT: }
  func.func @inside(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %d: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %d) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %c) queue 1 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
