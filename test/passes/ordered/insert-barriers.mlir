// RUN: weir-opt %s --weir-insert-barriers --split-input-file | FileCheck %s
// RUN: weir-opt %s --weir-insert-barriers --weir-insert-barriers --split-input-file | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @copy {
    gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      memref.store %v, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  gpu.module @add {
    gpu.func @add(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      %w = memref.load %y[%i] : memref<64xf32>
      %s = arith.addf %v, %w : f32
      memref.store %s, %y[%i] : memref<64xf32>
      gpu.return
    }
  }

  // CHECK-LABEL: @raw
  // CHECK:      dispatch
  // CHECK-NEXT: schedule.barrier memory(%[[Y:.*]] : memref<64xf32>) [#schedule.hazard<raw, 0 operand 1 -> 1 operand 0>]
  // CHECK-NEXT: dispatch {{.*}}(%[[Y]],
  func.func @raw(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %z) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Two reads of the same bytes.
  // CHECK-LABEL: @raw_twin
  // CHECK-NOT: barrier
  // CHECK: return
  func.func @raw_twin(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %z) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Background case 1: a reduction reads g, then a kernel writes into g's bytes.
  // Nothing becomes visible, so no memory is named.
  // CHECK-LABEL: @war_reduction_then_reuse
  // CHECK:      dispatch
  // CHECK-NEXT: schedule.barrier [#schedule.hazard<war, 0 operand 0 -> 1 operand 1>]
  // CHECK-NEXT: dispatch
  func.func @war_reduction_then_reuse(%g: memref<64xf32>, %gb: memref<64xf32>, %x: memref<64xf32>) attributes {weir.entry} {
    %arena = memref.alloc() {weir.arena} : memref<256xi8>
    %c0 = arith.constant 0 : index
    %slot = memref.view %arena[%c0][] : memref<256xi8> to memref<64xf32>
    %gx = memref.view %arena[%c0][] : memref<256xi8> to memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%slot, %gb) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %gx) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Its twin: gx has bytes of its own, right behind.
  // CHECK-LABEL: @war_twin
  // CHECK-NOT: barrier
  // CHECK: return
  func.func @war_twin(%g: memref<64xf32>, %gb: memref<64xf32>, %x: memref<64xf32>) attributes {weir.entry} {
    %arena = memref.alloc() {weir.arena} : memref<512xi8>
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %slot = memref.view %arena[%c0][] : memref<512xi8> to memref<64xf32>
    %gx = memref.view %arena[%c256][] : memref<512xi8> to memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%slot, %gb) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %gx) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // CHECK-LABEL: @waw
  // CHECK:      dispatch
  // CHECK-NEXT: schedule.barrier memory(%{{.*}} : memref<64xf32>) [#schedule.hazard<waw, 0 operand 1 -> 1 operand 1>]
  // CHECK-NEXT: dispatch
  func.func @waw(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%z, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // CHECK-LABEL: @waw_twin
  // CHECK-NOT: barrier
  // CHECK: return
  func.func @waw_twin(%x: memref<64xf32>, %y: memref<128xf32>, %z: memref<64xf32>) attributes {weir.entry} {
    %0 = memref.subview %y[0] [64] [1] : memref<128xf32> to memref<64xf32, strided<[1]>>
    %1 = memref.subview %y[64] [64] [1] : memref<128xf32> to memref<64xf32, strided<[1], offset: 64>>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %0) : (memref<64xf32>, memref<64xf32, strided<[1]>>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%z, %1) : (memref<64xf32>, memref<64xf32, strided<[1], offset: 64>>)
    }
    return
  }

  // One barrier serves both writes that the third dispatch needs, and the reader
  // after it; the pair that forced it comes first.
  // CHECK-LABEL: @one_serves_many
  // CHECK-COUNT-2: dispatch
  // CHECK-NEXT: schedule.barrier memory(%[[A:.*]], %[[B:.*]] : memref<64xf32>, memref<64xf32>)
  // CHECK-SAME: [#schedule.hazard<raw, 0 operand 1 -> 2 operand 0>,
  // CHECK-SAME:  #schedule.hazard<raw, 1 operand 1 -> 2 operand 1>,
  // CHECK-SAME:  #schedule.hazard<waw, 1 operand 1 -> 2 operand 1>,
  // CHECK-SAME:  #schedule.hazard<raw, 0 operand 1 -> 3 operand 0>]
  // CHECK-NEXT: dispatch @add::@add [1, 1, 1](%[[A]], %[[B]])
  // CHECK-NEXT: dispatch @copy::@copy [1, 1, 1](%[[A]],
  // CHECK-NOT: barrier
  // CHECK: return
  func.func @one_serves_many(%x: memref<64xf32>, %a: memref<64xf32>, %b: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %b) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @add::@add [1, 1, 1] (%a, %b) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // What a barrier before another dispatch separated already needs none: it is
  // listed there, and its bytes are made visible there.
  // CHECK-LABEL: @separated_already
  // CHECK: dispatch
  // CHECK: schedule.barrier memory({{.*}}) [#schedule.hazard<raw, 0 operand 1 -> 1 operand 0>, #schedule.hazard<raw, 0 operand 1 -> 2 operand 0>]
  // CHECK: dispatch
  // CHECK-NEXT: dispatch
  // CHECK-NOT: barrier
  // CHECK: return
  func.func @separated_already(%x: memref<64xf32>, %a: memref<64xf32>, %b: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Operands of one dispatch may share bytes: that is the kernel's business.
  // CHECK-LABEL: @in_place
  // CHECK-NOT: barrier
  // CHECK: return
  func.func @in_place(%x: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %x) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // A value of unknown origin shares bytes with everything.
  // CHECK-LABEL: @unknown_origin
  // CHECK: dispatch
  // CHECK-NEXT: barrier memory(%{{.*}} : memref<64xf32>) [#schedule.hazard<raw, 0 operand 1 -> 1 operand 0>]
  // CHECK-NEXT: dispatch
  func.func @unknown_origin(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>, %p: i1) attributes {weir.entry} {
    %which = arith.select %p, %x, %z : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%which, %z) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}

// -----

// The columns of a matrix lie in each other's gaps.
module attributes {gpu.container_module} {
  gpu.module @set {
    gpu.func @set(%y: memref<?x?xf32, strided<[?, ?], offset: ?>>, %v: f32) kernel {
      %i = gpu.thread_id x
      %c0 = arith.constant 0 : index
      memref.store %v, %y[%i, %c0] : memref<?x?xf32, strided<[?, ?], offset: ?>>
      gpu.return
    }
  }

  // CHECK-LABEL: @columns
  // CHECK:      schedule.commands {
  // CHECK-NEXT:   dispatch
  // CHECK-NEXT:   dispatch
  // CHECK-NEXT: }
  func.func @columns(%a: memref<8x8xf32>, %v: f32) {
    %left = memref.subview %a[0, 0] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1]>>
    %right = memref.subview %a[0, 4] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1], offset: 4>>
    schedule.commands {
      schedule.dispatch @set::@set [1, 1, 1] (%left, %v) : (memref<8x4xf32, strided<[8, 1]>>, f32)
      schedule.dispatch @set::@set [1, 1, 1] (%right, %v) : (memref<8x4xf32, strided<[8, 1], offset: 4>>, f32)
    }
    return
  }

  // The twin shares one column.
  // CHECK-LABEL: @columns_meet
  // CHECK:      dispatch
  // CHECK-NEXT: schedule.barrier memory(%[[L:.*]] : {{.*}}) [#schedule.hazard<waw, 0 operand 0 -> 1 operand 0>]
  // CHECK-NEXT: dispatch
  func.func @columns_meet(%a: memref<8x8xf32>, %v: f32) {
    %left = memref.subview %a[0, 0] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1]>>
    %right = memref.subview %a[0, 3] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1], offset: 3>>
    schedule.commands {
      schedule.dispatch @set::@set [1, 1, 1] (%left, %v) : (memref<8x4xf32, strided<[8, 1]>>, f32)
      schedule.dispatch @set::@set [1, 1, 1] (%right, %v) : (memref<8x4xf32, strided<[8, 1], offset: 3>>, f32)
    }
    return
  }

  // What is written into the gaps does not hide who wrote around them: the
  // last dispatch needs both halves shown, each view once.
  // CHECK-LABEL: @gaps_hide_nothing
  // CHECK-SAME:    (%[[A:.*]]: memref<8x8xf32>
  // CHECK:      %[[LEFT:.*]] = memref.subview %[[A]][0, 0]
  // CHECK:      %[[RIGHT:.*]] = memref.subview %[[A]][0, 4]
  // CHECK:      dispatch
  // CHECK-NEXT: dispatch
  // CHECK-NEXT: schedule.barrier memory(%[[LEFT]], %[[RIGHT]] : {{.*}}) [#schedule.hazard<raw, 0 operand 0 -> 2 operand 0>, #schedule.hazard<raw, 1 operand 0 -> 2 operand 0>, #schedule.hazard<waw, 0 operand 0 -> 2 operand 0>, #schedule.hazard<waw, 1 operand 0 -> 2 operand 0>]
  // CHECK-NEXT: dispatch
  gpu.module @whole {
    gpu.func @whole(%y: memref<8x8xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %y[%i, %i] : memref<8x8xf32>
      memref.store %v, %y[%i, %i] : memref<8x8xf32>
      gpu.return
    }
  }
  func.func @gaps_hide_nothing(%a: memref<8x8xf32>, %v: f32) {
    %left = memref.subview %a[0, 0] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1]>>
    %right = memref.subview %a[0, 4] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1], offset: 4>>
    schedule.commands {
      schedule.dispatch @set::@set [1, 1, 1] (%left, %v) : (memref<8x4xf32, strided<[8, 1]>>, f32)
      schedule.dispatch @set::@set [1, 1, 1] (%right, %v) : (memref<8x4xf32, strided<[8, 1], offset: 4>>, f32)
      schedule.dispatch @whole::@whole [1, 1, 1] (%a) : (memref<8x8xf32>)
    }
    return
  }
}
