// RUN: weir-opt %s --weir-limit-memory=limit=4096 -split-input-file -verify-diagnostics -o /dev/null

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @accumulate(%a: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32>
      %v = memref.load %y[%i] : memref<64xf32>
      %w = arith.addf %u, %v : f32
      memref.store %w, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  func.func @updates(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %t = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@accumulate [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
      // expected-error @below {{is a spare, but does not write one value and no more}}
      schedule.dispatch @k::@accumulate [1, 1, 1] (%x, %t) {weir.spare = 1 : i64} : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @copy(%a: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32>
      memref.store %u, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  func.func @nobody(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %t = memref.alloc() : memref<64xf32>
    schedule.commands {
      // expected-error @below {{is a spare for no operand of a command before it}}
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %t) {weir.spare = 1 : i64} : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
