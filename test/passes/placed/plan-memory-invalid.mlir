// RUN: weir-opt %s --weir-plan-memory --split-input-file --verify-diagnostics

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%x: memref<4xf32>) kernel {
      gpu.return
    }
  }
  func.func @no_wave(%x: memref<4xf32>) {
    schedule.commands {
      // expected-error @below {{has no wave; run weir-schedule first}}
      schedule.dispatch @k::@k [1, 1, 1] (%x) : (memref<4xf32>)
    }
    return
  }
  func.func @wave_falls(%x: memref<4xf32>) {
    schedule.commands {
      schedule.dispatch @k::@k [1, 1, 1] (%x) wave 2 : (memref<4xf32>)
      // expected-error @below {{is in wave 1, after a dispatch of wave 2}}
      schedule.dispatch @k::@k [1, 1, 1] (%x) wave 1 : (memref<4xf32>)
    }
    return
  }
  func.func @escapes() -> memref<4xf32> {
    // expected-error @below {{is used by more than dispatches and cannot be placed}}
    %a = memref.alloc() : memref<4xf32>
    schedule.commands {
      schedule.dispatch @k::@k [1, 1, 1] (%a) wave 0 : (memref<4xf32>)
    }
    // expected-note @below {{it is used here}}
    return %a : memref<4xf32>
  }
  func.func @dynamic(%n: index) {
    // expected-error @below {{cannot be placed: its shape must be static and its layout plain}}
    %a = memref.alloc(%n) : memref<?xf32>
    // expected-error @below {{cannot be placed}}
    %b = memref.alloc() : memref<4xf32, strided<[2]>>
    schedule.commands {
    }
    return
  }
  func.func @spaces() {
    %a = memref.alloc() : memref<4xf32>
    // expected-error @below {{is in another memory space than the other values}}
    %b = memref.alloc() : memref<4xf32, 1>
    schedule.commands {
    }
    return
  }
  func.func @placed() {
    // expected-error @below {{is an arena already}}
    %a = memref.alloc() {weir.arena} : memref<4xi8>
    schedule.commands {
    }
    return
  }
}

// -----

// The sum of the sizes does not fit in 63 bits.
module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%x: memref<9223372036854775000xi8>, %y: memref<9223372036854775000xi8>) kernel {
      gpu.return
    }
  }
  // expected-error @below {{cannot be placed: the values of the arena need more than 2^63 - 1 bytes}}
  func.func @too_large() {
    %a = memref.alloc() : memref<9223372036854775000xi8>
    %b = memref.alloc() : memref<9223372036854775000xi8>
    schedule.commands {
      schedule.dispatch @k::@k [1, 1, 1] (%a, %b) wave 0 : (memref<9223372036854775000xi8>, memref<9223372036854775000xi8>)
    }
    return
  }
}
