// RUN: weir-opt %s --weir-set-profile --weir-verify-placed --split-input-file --verify-diagnostics

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
  memref.global "private" constant @cst : memref<64xf32> = dense<1.0>

  // What the level holds: %b takes %a's bytes, a wave after %a's last.
  func.func @valid(%x: memref<64xf32>, %d: memref<64xf32> {weir.donate}, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %arena = memref.alloc() {alignment = 256 : i64, weir.arena} : memref<256xi8>
    %c0 = arith.constant 0 : index
    %c = memref.get_global @cst : memref<64xf32>
    %a = memref.view %arena[%c0][] {weir.slot = #schedule.slot<"a", alignment = 256, waves = 0 to 1>} : memref<256xi8> to memref<64xf32>
    %b = memref.view %arena[%c0][] {weir.slot = #schedule.slot<"b", alignment = 256, waves = 2 to 2>} : memref<256xi8> to memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%c, %a) wave 0 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %d) wave 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%d, %b) wave 2 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%d, %y) wave 2 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  func.func @allocations(%x: memref<64xf32>) attributes {weir.entry} {
    // expected-error @below {{is not the arena}}
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() {weir.arena} : memref<64xi8>
    // expected-error @below {{is a second arena}}
    %c = memref.alloc() {weir.arena} : memref<64xi8>
    schedule.commands {
    }
    return
  }

  func.func @no_arena(%x: memref<64xf32>) attributes {weir.entry} {
    // expected-error @below {{expected an arena of type memref<Nxi8>, got}}
    %b = memref.alloc() {weir.arena} : memref<64xf32>
    schedule.commands {
    }
    return
  }

  func.func @slots(%x: memref<64xf32>) {
    %arena = memref.alloc() {weir.arena} : memref<1024xi8>
    %n = arith.constant -256 : index
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    // expected-error @below {{begins at byte 64 of the arena, expected a multiple of 256}}
    %a = memref.view %arena[%c64][] {weir.slot = #schedule.slot<"", alignment = 256, waves = 5 to 5>} : memref<1024xi8> to memref<64xf32>
    // expected-error @below {{has no weir.slot, a #schedule.slot}}
    %b = memref.view %arena[%c0][] : memref<1024xi8> to memref<64xf32>
    // expected-error @below {{has no known place in the arena}}
    %d = memref.view %arena[%n][] : memref<1024xi8> to memref<64xf32>
    // expected-note @below {{where this one has bytes [256, 768) in waves 0 to 1}}
    %e = memref.view %arena[%c256][] {weir.slot = #schedule.slot<"", alignment = 256, waves = 0 to 1>} : memref<1024xi8> to memref<128xf32>
    %c512 = arith.constant 512 : index
    // expected-error @below {{has bytes [512, 768) in waves 1 to 2}}
    %f = memref.view %arena[%c512][] {weir.slot = #schedule.slot<"", alignment = 256, waves = 1 to 2>} : memref<1024xi8> to memref<64xf32>
    schedule.commands {
    }
    return
  }
}

// -----

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
  func.func @waves(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}, %z: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      // expected-error @below {{has no wave}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) wave 1 : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{is in wave 0, after a dispatch of wave 1}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %z) wave 0 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}

// -----

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
  func.func @hazard_in_wave(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}, %z: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      // expected-note @below {{with operand 1 of this one}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) wave 0 : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{operand 0 has a raw hazard with a dispatch of its wave 0}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %z) wave 0 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}

// -----

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
  memref.global "private" constant @cst : memref<64xf32> = dense<1.0>
  func.func @operands(%x: memref<65xf32>, %y: memref<64xf32> {weir.result}, %p: memref<128xf32>) attributes {weir.entry} {
    %arena = memref.alloc() {weir.arena} : memref<256xi8>
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %c = memref.get_global @cst : memref<64xf32>
    %odd = memref.subview %x[1] [64] [1] : memref<65xf32> to memref<64xf32, strided<[1], offset: 1>>
    %even = memref.subview %p[0] [64] [2] : memref<128xf32> to memref<64xf32, strided<[2]>>
    %a = memref.view %arena[%c0][] {weir.slot = #schedule.slot<"", alignment = 256, waves = 0 to 1>} : memref<256xi8> to memref<64xf32>
    %beyond = memref.view %arena[%c256][] {weir.slot = #schedule.slot<"", alignment = 256, waves = 0 to 9>} : memref<256xi8> to memref<64xf32>
    schedule.commands {
      // expected-error @below {{operand 0 begins at byte 4, profile 'lavapipe' binds multiples of 16}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%odd, %y) wave 0 : (memref<64xf32, strided<[1], offset: 1>>, memref<64xf32>)
      // expected-error @below {{operand 0 does not lie side by side}}
      // expected-error @below {{operand 0 has 508 bytes, the kernel's argument 256}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%even, %y) wave 1 : (memref<64xf32, strided<[2]>>, memref<64xf32>)
      // expected-error @below {{operand 0 has bytes [256, 512), beyond its allocation of 256}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%beyond, %y) wave 2 : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{operand 0 is used in wave 3, its slot is its own in waves 0 to 1}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %y) wave 3 : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{operand 1 is written, but is neither a result, a donated argument nor the arena's}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %c) wave 4 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}

// -----

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
  func.func @read_only(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      // expected-error @below {{operand 1 is written, but is neither a result, a donated argument nor the arena's}}
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %x) wave 0 : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
