// RUN: weir-opt %s --weir-schedule --weir-plan-memory | FileCheck %s
// RUN: weir-opt %s --weir-schedule --weir-plan-memory=no-reuse | FileCheck %s --check-prefix=PINNED

module attributes {gpu.container_module} {
  gpu.module @copy {
    gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      memref.store %v, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  gpu.module @small {
    gpu.func @small(%x: memref<3xf32>, %y: memref<3xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<3xf32>
      memref.store %v, %y[%i] : memref<3xf32>
      gpu.return
    }
  }

  // The third value takes the bytes of the first, whose last reader is a wave
  // earlier.
  // CHECK-LABEL: @reuse
  // CHECK: weir.pinned_bytes = 768 : i64
  // CHECK: %[[ARENA:.*]] = memref.alloc() {alignment = 256 : i64, weir.arena} : memref<512xi8>
  // CHECK: %[[C0:.*]] = arith.constant 0 : index
  // CHECK: %[[C256:.*]] = arith.constant 256 : index
  // CHECK-NOT: arith.constant
  // CHECK: %[[A:.*]] = memref.view %[[ARENA]][%[[C0]]][] {weir.slot = #schedule.slot<"first", alignment = 256, waves = 0 to 1>}
  // CHECK: %[[B:.*]] = memref.view %[[ARENA]][%[[C256]]][] {weir.slot = #schedule.slot<"value1", alignment = 256, waves = 1 to 2>}
  // CHECK: %[[C:.*]] = memref.view %[[ARENA]][%[[C0]]][] {{.*}}waves = 2 to 3
  // CHECK: dispatch {{.*}}(%{{.*}}, %[[A]]) wave 0
  // CHECK: dispatch {{.*}}(%[[A]], %[[B]]) wave 1
  // CHECK: dispatch {{.*}}(%[[B]], %[[C]]) wave 2
  // PINNED-LABEL: @reuse
  // PINNED: weir.pinned_bytes = 768 : i64
  // PINNED: memref.alloc() {{.*}}weir.arena} : memref<768xi8>
  // PINNED: arith.constant 0 : index
  // PINNED: arith.constant 256 : index
  // PINNED: arith.constant 512 : index
  func.func @reuse(%x: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
    %a = memref.alloc() {weir.name = "first"} : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %c = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %c) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%c, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // %a is dead before %b is written in recorded order, but both are used in wave
  // 1, where order means nothing: their bytes stay apart.
  // CHECK-LABEL: @same_wave_keeps_bytes
  // CHECK: weir.pinned_bytes = 512 : i64
  // CHECK: memref.alloc() {{.*}}weir.arena} : memref<512xi8>
  func.func @same_wave_keeps_bytes(%x: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %b) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Its twin: a wave lies between them.
  // CHECK-LABEL: @later_wave_takes_bytes
  // CHECK: weir.pinned_bytes = 512 : i64
  // CHECK: memref.alloc() {{.*}}weir.arena} : memref<256xi8>
  func.func @later_wave_takes_bytes(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) attributes {weir.entry} {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %b) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Sizes that are no multiple of 256 are padded; uses through subviews count;
  // a value that nothing uses gets no bytes.
  // CHECK-LABEL: @packed
  // CHECK: weir.pinned_bytes = 512 : i64
  // CHECK: memref.alloc() {{.*}}weir.arena} : memref<512xi8>
  // CHECK: %[[C256:.*]] = arith.constant 256 : index
  // CHECK: %[[C0:.*]] = arith.constant 0 : index
  // CHECK: memref.view {{.*}}[%[[C256]]]{{.*}} to memref<3xf32>
  // CHECK: memref.view {{.*}}[%[[C0]]]{{.*}} waves = 0 to 1{{.*}} to memref<5xf32>
  // CHECK-NOT: memref.alloc
  // CHECK: memref.subview
  func.func @packed(%x: memref<3xf32>, %y: memref<3xf32>) attributes {weir.entry} {
    %a = memref.alloc() : memref<3xf32>
    %b = memref.alloc() : memref<5xf32>
    %unused = memref.alloc() : memref<1000xf32>
    %view = memref.cast %unused : memref<1000xf32> to memref<?xf32>
    %part = memref.subview %b[1] [3] [1] : memref<5xf32> to memref<3xf32, strided<[1], offset: 1>>
    schedule.commands {
      schedule.dispatch @small::@small [1, 1, 1] (%x, %a) : (memref<3xf32>, memref<3xf32>)
      schedule.dispatch @small::@small [1, 1, 1] (%x, %part) : (memref<3xf32>, memref<3xf32, strided<[1], offset: 1>>)
      schedule.dispatch @small::@small [1, 1, 1] (%part, %y) : (memref<3xf32, strided<[1], offset: 1>>, memref<3xf32>)
      schedule.dispatch @small::@small [1, 1, 1] (%a, %y) : (memref<3xf32>, memref<3xf32>)
    }
    return
  }

  // CHECK-LABEL: @no_values
  // CHECK-NOT: memref.alloc
  func.func @no_values(%x: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // What others allocate and free again has its place in the arena, too, which
  // outlives the commands.
  // CHECK-LABEL: @freed
  // CHECK: memref.alloc() {{.*}}weir.arena} : memref<256xi8>
  // CHECK-NOT: memref.dealloc
  // CHECK: return
  func.func @freed(%x: memref<64xf32>, %y: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %unused = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %y) : (memref<64xf32>, memref<64xf32>)
    }
    memref.dealloc %a : memref<64xf32>
    memref.dealloc %unused : memref<64xf32>
    return
  }

  // Nothing needs the arena, and that is said.
  // CHECK-LABEL: @no_arena
  // CHECK-SAME: weir.pinned_bytes = 0 : i64
  // CHECK-NOT: memref.alloc
  // CHECK: return
  func.func @no_arena(%x: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
