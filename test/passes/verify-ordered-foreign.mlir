// RUN: weir-opt %s --weir-verify-ordered --split-input-file --verify-diagnostics

// Command lists of others are checked for their order alone: no profile, no
// flat buffers, no declared effects, other code around them.
module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index, %x: memref<8x8xf32>, %y: memref<8x8xf32>) kernel {
      %v = memref.load %x[%n, %n] : memref<8x8xf32>
      memref.store %v, %y[%n, %n] : memref<8x8xf32>
      gpu.return
    }
  }
  func.func @ordered(%n: index, %x: memref<8x8xf32>, %y: memref<8x8xf32>) -> memref<8x8xf32> {
    %a = gpu.alloc () : memref<8x8xf32>
    %b = gpu.alloc () : memref<8x8xf32>
    memref.copy %x, %y : memref<8x8xf32> to memref<8x8xf32>
    schedule.commands {
      schedule.dispatch @k::@k [1, 1, 1] (%n, %x, %a) : (index, memref<8x8xf32>, memref<8x8xf32>)
      schedule.copy %y to %b : memref<8x8xf32> to memref<8x8xf32>
      schedule.barrier memory(%a : memref<8x8xf32>) [#schedule.hazard<raw, 0 operand 2 -> 2 operand 0>]
      schedule.copy %a to %y : memref<8x8xf32> to memref<8x8xf32>
    }
    return %b : memref<8x8xf32>
  }
  func.func @unordered(%n: index, %x: memref<8x8xf32>) {
    %a = gpu.alloc () : memref<8x8xf32>
    %y = gpu.alloc () : memref<8x8xf32>
    schedule.commands {
      // expected-note @below {{this one, through operand 2}}
      schedule.dispatch @k::@k [1, 1, 1] (%n, %x, %a) : (index, memref<8x8xf32>, memref<8x8xf32>)
      // expected-error @below {{operand 0 reads bytes that an earlier dispatch writes, and no barrier separates them}}
      // expected-error @below {{operand 0 needs what dispatch 0 wrote through operand 2}}
      schedule.copy %a to %y : memref<8x8xf32> to memref<8x8xf32>
    }
    return
  }
}

// -----

// In modules within modules, too.
module {
  module @inner {
    func.func @unordered(%x: memref<8xf32>, %y: memref<8xf32>, %v: f32) {
      schedule.commands {
        // expected-note @below {{this one, through operand 1}}
        schedule.fill %x with %v : memref<8xf32>, f32
        // expected-error @below {{and no barrier separates them}}
        // expected-error @below {{operand 1 needs what dispatch 0 wrote through operand 1}}
        schedule.fill %x with %v : memref<8xf32>, f32
      }
      return
    }
  }
}

// -----

// An entry is to become part of an artifact and must keep all promises.
// expected-error @below {{module has no attribute weir.profile; run weir-set-profile first}}
module {
  func.func @f(%x: memref<8xf32>, %y: memref<8xf32>, %v: f32) attributes {weir.entry} {
    schedule.commands {
      schedule.fill %x with %v : memref<8xf32>, f32
    }
    return
  }
}
