// RUN: weir-opt %s --weir-verify-ordered --verify-diagnostics

module attributes {gpu.container_module} {
  gpu.module @copy {
    gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      memref.store %v, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  func.func @ordered(%a0: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %c = memref.alloc() : memref<64xf32>
    %d = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.signal queue 1 id 0 memory(%b : memref<64xf32>)
      schedule.wait on 0
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %c) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // The wait is cut.
  func.func @no_wait(%a0: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %c = memref.alloc() : memref<64xf32>
    %d = memref.alloc() : memref<64xf32>
    schedule.commands {
      // expected-note @below {{dispatch 0 of @copy, through operand 1}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.signal queue 1 id 0 memory(%b : memref<64xf32>)
      // expected-error @below {{dispatch 1 of @copy reads bytes [0, 256) of an allocation through operand 0, which dispatch 0 of @copy writes: a RAW hazard}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %c) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // The signal comes before the last reader.
  func.func @early_signal(%a0: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %c = memref.alloc() : memref<64xf32>
    %d = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.signal queue 1 id 0
      // expected-note @below {{dispatch 1 of @copy, through operand 0}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %c) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.wait on 0
      // expected-error @below {{dispatch 2 of @copy writes bytes [0, 256) of an allocation through operand 1, which dispatch 1 of @copy reads: a WAR hazard}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%d, %a) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
  func.func @late_signal(%a0: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %c = memref.alloc() : memref<64xf32>
    %d = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %c) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.signal queue 1 id 0
      schedule.wait on 0
      schedule.dispatch @copy::@copy [1, 1, 1] (%d, %a) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // A wait of a third queue does not help.
  func.func @other_wait(%a0: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %c = memref.alloc() : memref<64xf32>
    %d = memref.alloc() : memref<64xf32>
    schedule.commands {
      // expected-note @below {{dispatch 0 of @copy, through operand 1}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.signal queue 1 id 0 memory(%b : memref<64xf32>)
      schedule.wait queue 2 on 0
      // expected-error @below {{which dispatch 0 of @copy writes: a WAW hazard}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%d, %b) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // A barrier of one queue does not order another.
  func.func @other_barrier(%a0: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %c = memref.alloc() : memref<64xf32>
    %d = memref.alloc() : memref<64xf32>
    schedule.commands {
      // expected-note @below {{dispatch 0 of @copy, through operand 1}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{is not needed by the hazard it names first}}
      schedule.barrier memory(%b : memref<64xf32>) [#schedule.hazard<raw, 0 operand 1 -> 1 operand 0>]
      // expected-error @below {{which dispatch 0 of @copy writes: a RAW hazard}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %d) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Ordered, but not visible.
  func.func @not_visible(%a0: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %c = memref.alloc() : memref<64xf32>
    %d = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.signal queue 1 id 0
      schedule.wait on 0
      // expected-error @below {{operand 0 needs what dispatch 0 wrote through operand 1, and no barrier or signal makes it visible}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %c) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Waits order the two already.
  func.func @needless_barrier(%a0: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %c = memref.alloc() : memref<64xf32>
    %d = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) : (memref<64xf32>, memref<64xf32>)
      schedule.signal id 1 memory(%b : memref<64xf32>)
      schedule.wait queue 1 on 1
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %c) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.signal queue 1 id 0 memory(%c : memref<64xf32>)
      schedule.wait on 0
      // expected-error @below {{is not needed by the hazard it names first}}
      schedule.barrier memory(%b : memref<64xf32>) [#schedule.hazard<waw, 0 operand 1 -> 2 operand 1>]
      schedule.dispatch @copy::@copy [1, 1, 1] (%c, %b) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
