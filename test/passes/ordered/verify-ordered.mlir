// RUN: weir-opt %s --weir-set-profile --weir-verify-ordered --split-input-file --verify-diagnostics

module attributes {gpu.container_module} {
  gpu.module @copy {
    gpu.func @copy(%x: memref<64xf32> {schedule.effect = #schedule.effect<read>},
                   %y: memref<64xf32> {schedule.effect = #schedule.effect<write, covers_all = true>})
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      memref.store %v, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  // Two readers after one barrier; nothing between them.
  func.func @valid(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}, %z: memref<64xf32> {weir.result}, %w: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) wave 0 : (memref<64xf32>, memref<64xf32>)
      schedule.barrier memory(%y : memref<64xf32>) [#schedule.hazard<raw, 0 operand 1 -> 1 operand 0>, #schedule.hazard<raw, 0 operand 1 -> 2 operand 0>]
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %z) wave 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %w) wave 1 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // One test per kind: without its barrier each is found.
  func.func @raw(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}, %z: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      // expected-note @below {{dispatch 0 of @copy, through operand 1}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) wave 0 : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{dispatch 1 of @copy reads bytes [0, 256) of argument 1 through operand 0, which dispatch 0 of @copy writes: a RAW hazard, and no barrier, signal or wait orders the two}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %z) wave 1 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
  func.func @war(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}, %z: memref<64xf32> {weir.donate}) attributes {weir.entry} {
    schedule.commands {
      // expected-note @below {{dispatch 0 of @copy, through operand 0}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%z, %y) wave 0 : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{dispatch 1 of @copy writes bytes [0, 256) of argument 2 through operand 1, which dispatch 0 of @copy reads: a WAR hazard, and no barrier, signal or wait orders the two}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %z) wave 1 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
  func.func @war_twin(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}, %z: memref<64xf32> {weir.donate}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%z, %y) wave 0 : (memref<64xf32>, memref<64xf32>)
      schedule.barrier [#schedule.hazard<war, 0 operand 0 -> 1 operand 1>]
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %z) wave 1 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
  func.func @waw(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      // expected-note @below {{dispatch 0 of @copy, through operand 1}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) wave 0 : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{dispatch 1 of @copy writes bytes [0, 256) of argument 1 through operand 1, which dispatch 0 of @copy writes: a WAW hazard, and no barrier, signal or wait orders the two}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) wave 1 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Arguments of a function that is no entry may be the same bytes.
  func.func @foreign(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) {
    schedule.commands {
      // expected-note @below {{dispatch 0 of @copy, through operand}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) wave 0 : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{and no barrier, signal or wait orders the two}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %z) wave 1 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // A barrier that lies about itself.
  func.func @no_hazard(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}, %z: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) wave 0 : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{lists #schedule.hazard<war, 0 operand 0 -> 1 operand 0>, which is no hazard}}
      // expected-error @below {{lists #schedule.hazard<raw, 0 operand 1 -> 7 operand 0>, which is no hazard}}
      schedule.barrier [#schedule.hazard<war, 0 operand 0 -> 1 operand 0>, #schedule.hazard<raw, 0 operand 1 -> 7 operand 0>]
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %z) wave 0 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
  func.func @not_visible(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}, %z: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) wave 0 : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{lists #schedule.hazard<raw, 0 operand 1 -> 1 operand 0>, but does not make its bytes visible}}
      schedule.barrier memory(%x : memref<64xf32>) [#schedule.hazard<raw, 0 operand 1 -> 1 operand 0>]
      // expected-error @below {{and no barrier or signal makes it visible}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %z) wave 1 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
  func.func @not_needed(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}, %z: memref<64xf32> {weir.result}, %w: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) wave 0 : (memref<64xf32>, memref<64xf32>)
      schedule.barrier memory(%y : memref<64xf32>) [#schedule.hazard<raw, 0 operand 1 -> 1 operand 0>]
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %z) wave 1 : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{is not needed by the hazard it names first}}
      schedule.barrier memory(%y : memref<64xf32>) [#schedule.hazard<raw, 0 operand 1 -> 2 operand 0>]
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %w) wave 1 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
