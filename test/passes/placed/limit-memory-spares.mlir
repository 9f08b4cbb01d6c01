// RUN: weir-opt %s --weir-limit-memory=limit=512 2>/dev/null | FileCheck %s
// RUN: weir-opt %s --weir-limit-memory=limit=512 -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: weir-opt %s --weir-limit-memory=limit=768 2>/dev/null | FileCheck %s --check-prefix=ROOM
// RUN: not weir-opt %s --weir-limit-memory=limit=8 2>&1 | FileCheck %s --check-prefix=SMALL

// ROOM-NOT: weir.spare
// ROOM-COUNT-5: schedule.dispatch
// ROOM-NOT: schedule.dispatch
// SMALL: error: entry 'spare' does not fit in 8 bytes: {{.*}} the smallest limit that fits is 512
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
    // Nothing may be written over what it reads.
    gpu.func @reverse(%a: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %c63 = arith.constant 63 : index
      %i = gpu.thread_id x
      %r = arith.subi %c63, %i : index
      %u = memref.load %a[%r] : memref<64xf32>
      memref.store %u, %y[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @both(%a: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %c63 = arith.constant 63 : index
      %i = gpu.thread_id x
      %r = arith.subi %c63, %i : index
      %u = memref.load %a[%r] : memref<64xf32>
      memref.store %u, %y[%i] : memref<64xf32>
      memref.store %u, %z[%i] : memref<64xf32>
      gpu.return
    }
  }

  // A spare makes %t alone, which costs less than to make %s along with it.
  // REMARK: remark: memory limit 512, entry 'spare': {{.*}}1 dispatch repeated
  // CHECK-LABEL: func.func @spare(
  // CHECK-SAME: %[[X:.*]]: memref<64xf32>, %[[Y:[^:]*]]: memref<64xf32> {weir.result}
  // CHECK: dispatch @k::@both
  // CHECK-NEXT: dispatch @k::@add
  // CHECK-NEXT: dispatch {{.*}} wave 2
  // CHECK-NEXT: dispatch {{.*}} wave 3
  // CHECK-NEXT: dispatch @k::@reverse [1, 1, 1](%[[X]], %[[AGAIN:.*]]) wave 4 values [0, 0, 3, 0]
  // CHECK-NEXT: dispatch @k::@add [1, 1, 1](%{{.*}}, %[[AGAIN]], %[[Y]]) wave 5
  // CHECK-NOT: weir.spare
  func.func @spare(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %s = memref.alloc() : memref<64xf32>
    %t = memref.alloc() : memref<64xf32>
    %u = memref.alloc() : memref<64xf32>
    %v = memref.alloc() : memref<64xf32>
    %w = memref.alloc() : memref<64xf32>
    %other = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@both [1, 1, 1] (%x, %s, %t) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%x, %other) {weir.spare = 2 : i64} : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%s, %t, %u) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%u, %v) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%v, %w) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%w, %t, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
