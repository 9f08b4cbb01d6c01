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
      // expected-note @below {{dispatch 0 of @k, through operand 2}}
      schedule.dispatch @k::@k [1, 1, 1] (%n, %x, %a) : (index, memref<8x8xf32>, memref<8x8xf32>)
      // expected-error @below {{dispatch 1 reads bytes [0, 256) of an allocation through operand 0, which dispatch 0 of @k writes: a RAW hazard}}
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
        // expected-note @below {{dispatch 0, through operand 1}}
        schedule.fill %x with %v : memref<8xf32>, f32
        // expected-error @below {{and no barrier, signal or wait orders the two}}
        schedule.fill %x with %v : memref<8xf32>, f32
      }
      return
    }
  }
}

// -----

// Columns lie in each other's gaps; only those that share bytes need a barrier.
module {
  func.func @columns(%a: memref<8x8xf32>, %v: f32) {
    %left = memref.subview %a[0, 0] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1]>>
    %right = memref.subview %a[0, 4] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1], offset: 4>>
    schedule.commands {
      schedule.fill %left with %v : memref<8x4xf32, strided<[8, 1]>>, f32
      schedule.fill %right with %v : memref<8x4xf32, strided<[8, 1], offset: 4>>, f32
    }
    return
  }
  func.func @columns_meet(%a: memref<8x8xf32>, %v: f32) {
    %left = memref.subview %a[0, 0] [8, 5] [1, 1] : memref<8x8xf32> to memref<8x5xf32, strided<[8, 1]>>
    %right = memref.subview %a[0, 4] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1], offset: 4>>
    schedule.commands {
      // expected-note @below {{dispatch 0, through operand 1}}
      schedule.fill %left with %v : memref<8x5xf32, strided<[8, 1]>>, f32
      // expected-error @below {{and no barrier, signal or wait orders the two}}
      schedule.fill %right with %v : memref<8x4xf32, strided<[8, 1], offset: 4>>, f32
    }
    return
  }

  // A barrier shows the columns it names, not all that their range holds.
  func.func @columns_shown(%a: memref<8x8xf32>, %v: f32) {
    %left = memref.subview %a[0, 0] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1]>>
    %right = memref.subview %a[0, 4] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1], offset: 4>>
    schedule.commands {
      schedule.fill %left with %v : memref<8x4xf32, strided<[8, 1]>>, f32
      // expected-error @below {{lists #schedule.hazard<waw, 0 operand 1 -> 1 operand 1>, but does not make its bytes visible}}
      schedule.barrier memory(%right : memref<8x4xf32, strided<[8, 1], offset: 4>>) [#schedule.hazard<waw, 0 operand 1 -> 1 operand 1>]
      // expected-error @below {{and no barrier or signal makes it visible}}
      schedule.fill %left with %v : memref<8x4xf32, strided<[8, 1]>>, f32
    }
    return
  }

  // Where a view is may be unknown: it is itself, and part of its allocation.
  func.func @somewhere(%a: memref<?x8xf32>, %i: index, %v: f32) {
    %row = memref.subview %a[%i, 0] [1, 8] [1, 1] : memref<?x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    schedule.commands {
      schedule.fill %row with %v : memref<8xf32, strided<[1], offset: ?>>, f32
      schedule.barrier memory(%row : memref<8xf32, strided<[1], offset: ?>>) [#schedule.hazard<waw, 0 operand 1 -> 1 operand 1>]
      schedule.fill %a with %v : memref<?x8xf32>, f32
      schedule.barrier memory(%a : memref<?x8xf32>) [#schedule.hazard<waw, 1 operand 1 -> 2 operand 1>]
      schedule.fill %row with %v : memref<8xf32, strided<[1], offset: ?>>, f32
      schedule.barrier memory(%a : memref<?x8xf32>) [#schedule.hazard<waw, 2 operand 1 -> 3 operand 1>]
      schedule.fill %row with %v : memref<8xf32, strided<[1], offset: ?>>, f32
    }
    return
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
