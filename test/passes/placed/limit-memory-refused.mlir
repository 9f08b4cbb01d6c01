// Dispatches that must not be repeated: nothing fits in less than with them once.
// RUN: not weir-opt %s --weir-limit-memory=limit=512 2>&1 | FileCheck %s
// RUN: weir-opt %s --weir-limit-memory=limit=768 -o /dev/null

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @add(%a: memref<64xf32>, %b: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32>
      %v = memref.load %b[%i] : memref<64xf32>
      %w = arith.addf %u, %v : f32
      memref.store %w, %y[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @reverse(%a: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %c63 = arith.constant 63 : index
      %i = gpu.thread_id x
      %r = arith.subi %c63, %i : index
      %u = memref.load %a[%r] : memref<64xf32>
      memref.store %u, %y[%i] : memref<64xf32>
      gpu.return
    }
    // Of 64 elements it writes 32.
    gpu.func @half(%a: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %c63 = arith.constant 63 : index
      %i = gpu.thread_id x
      %r = arith.subi %c63, %i : index
      %u = memref.load %a[%r] : memref<64xf32>
      memref.store %u, %y[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @accumulate(%a: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32>
      %v = memref.load %y[%i] : memref<64xf32>
      %w = arith.addf %u, %v : f32
      memref.store %w, %y[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @atomic(%a: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32>
      %v = memref.atomic_rmw addf %u, %y[%i] : (f32, memref<64xf32>) -> f32
      gpu.return
    }
  }

  // CHECK: error: entry 'half' does not fit in 512 bytes: {{.*}} the smallest limit that fits is 768
  func.func @half(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %t = memref.alloc() : memref<64xf32>
    %u = memref.alloc() : memref<64xf32>
    %v = memref.alloc() : memref<64xf32>
    %w = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@half [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%t, %u) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%u, %v) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%v, %w) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%w, %t, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // CHECK: error: entry 'updated' does not fit in 512 bytes: {{.*}} the smallest limit that fits is 768
  func.func @updated(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %t = memref.alloc() : memref<64xf32>
    %u = memref.alloc() : memref<64xf32>
    %v = memref.alloc() : memref<64xf32>
    %w = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@reverse [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@accumulate [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%t, %u) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%u, %v) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%v, %w) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%w, %t, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // CHECK: error: entry 'atomic' does not fit in 512 bytes: {{.*}} the smallest limit that fits is 768
  func.func @atomic(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %t = memref.alloc() : memref<64xf32>
    %u = memref.alloc() : memref<64xf32>
    %v = memref.alloc() : memref<64xf32>
    %w = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@atomic [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%t, %u) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%u, %v) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%v, %w) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%w, %t, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // %d is gone by then: %b takes its bytes.
  // CHECK: error: entry 'donated' does not fit in 512 bytes: {{.*}} the smallest limit that fits is 768
  func.func @donated(%d: memref<64xf32> {weir.donate}, %y: memref<64xf32> {weir.result},
                     %b: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %t = memref.alloc() : memref<64xf32>
    %u = memref.alloc() : memref<64xf32>
    %v = memref.alloc() : memref<64xf32>
    %w = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@reverse [1, 1, 1] (%d, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%t, %d, %b) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%t, %u) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%u, %v) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%v, %w) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%w, %t, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // What %t is made of is written once more, before %t is needed again.
  // CHECK: error: entry 'overwritten' does not fit in 512 bytes: {{.*}} the smallest limit that fits is 768
  func.func @overwritten(%x: memref<64xf32>, %y: memref<64xf32> {weir.result},
                         %b: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %t = memref.alloc() : memref<64xf32>
    %u = memref.alloc() : memref<64xf32>
    %v = memref.alloc() : memref<64xf32>
    %w = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@reverse [1, 1, 1] (%x, %b) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%b, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%t, %u) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%x, %t, %b) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%u, %v) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%v, %w) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%w, %t, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
