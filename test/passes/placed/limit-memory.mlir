// RUN: weir-opt %s --weir-limit-memory=limit=512 2>/dev/null | FileCheck %s
// RUN: weir-opt %s --weir-limit-memory=limit=512 -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: weir-opt %s --weir-limit-memory=limit=512 --weir-donate-buffers --weir-plan-memory \
// RUN:   --weir-insert-barriers -o /dev/null
// RUN: weir-opt %s --weir-limit-memory=limit=1024 -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROOM
// RUN: weir-opt %s --weir-schedule -o %t.scheduled
// RUN: weir-opt %s --weir-limit-memory=limit=1024 -o %t.limited 2>/dev/null
// RUN: diff %t.scheduled %t.limited
// RUN: not weir-opt %s --weir-limit-memory=limit=511 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not weir-opt %s --weir-limit-memory 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: weir-opt %s --weir-limit-memory=curve=true -o %t.curve 2>&1 | count 0
// RUN: FileCheck %s --check-prefix=CURVE < %t.curve
// RUN: sed 's/weir.curve = [^]]*], //' %t.curve | diff - %t.scheduled
// RUN: weir-opt %s --weir-limit-memory="curve=true reorder=false" | FileCheck %s --check-prefix=CURVE
// RUN: weir-opt %s --weir-limit-memory=knee=true -o %t.knee 2>&1 | FileCheck %s --check-prefix=KNEE
// RUN: weir-opt %s --weir-limit-memory=limit=512 2>/dev/null | diff - %t.knee

// NONE: error: limit 0 is no number of bytes, 1 or more
// ROOM: remark: memory limit 1024, entry 'again': arena as written 768, reordered 768 bytes
// ROOM-NOT: repeated
// A third less is worth a sixth more work. %t may lie in the bytes of %y, so the bound does not count it.
// KNEE: remark: checkpoint auto, entry 'again': arena as written 768, reordered 768, with 1 dispatch repeated (16.7% more work) 512 bytes
// CURVE: @again({{.*}}weir.curve = [{barriers = 4 : i64, bound = 512 : i64, bytes = 768 : i64, dispatches = 5 : i64, live = 768 : i64, work = 1.0{{.*}} : f64},
// CURVE-SAME: {barriers = {{[0-9]}} : i64, bound = 512 : i64, bytes = 512 : i64, dispatches = 6 : i64, knee, live = 512 : i64, work = 1.16{{.*}} : f64}]
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
  }

  // %t is not used while %u and %v are there, and made again behind that.
  // REMARK: remark: memory limit 512, entry 'again': arena as written 768, reordered 768, with 1 dispatch repeated ({{.*}} more work) 512 bytes
  // SMALL: error: entry 'again' does not fit in 511 bytes: its arena has 768 as written, 768 in the best order, and the smallest limit that fits is 512
  // SMALL: note: then '{{[tu]}}' has 256 bytes where most are live
  // CHECK-LABEL: func.func @again(
  // CHECK-SAME: %[[X:.*]]: memref<64xf32>, %[[Y:[^:]*]]: memref<64xf32> {weir.result}
  // CHECK: %[[T:.*]] = memref.alloc() {weir.name = "t"}
  // CHECK: %[[AGAIN:.*]] = memref.alloc() {weir.name = "t again"}
  // CHECK: dispatch @k::@reverse [1, 1, 1](%[[X]], %[[T]]) wave 0 values [0, 0, 2, 0]
  // CHECK-NEXT: dispatch {{.*}}(%[[T]], %[[U:.*]]) wave 1
  // CHECK-NEXT: dispatch {{.*}}(%[[U]], %[[V:.*]]) wave 2
  // CHECK-NEXT: dispatch {{.*}}(%[[V]], %[[W:.*]]) wave 3
  // CHECK-NEXT: dispatch @k::@reverse [1, 1, 1](%[[X]], %[[AGAIN]]) wave 4 values [0, 0, 2, 0]
  // CHECK-NEXT: dispatch @k::@add [1, 1, 1](%[[W]], %[[AGAIN]], %[[Y]]) wave 5
  func.func @again(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %t = memref.alloc() {weir.name = "t"} : memref<64xf32>
    %u = memref.alloc() {weir.name = "u"} : memref<64xf32>
    %v = memref.alloc() : memref<64xf32>
    %w = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@reverse [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%t, %u) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%u, %v) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%v, %w) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%w, %t, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // What %t is made of is gone by then, and made again, too.
  // REMARK: remark: memory limit 512, entry 'deep': {{.*}}2 dispatches repeated
  // CHECK-LABEL: func.func @deep(
  // CHECK-SAME: %[[X:.*]]: memref<64xf32>, %[[Y:[^:]*]]: memref<64xf32> {weir.result}
  // CHECK: wave 4
  // CHECK-NEXT: dispatch @k::@reverse [1, 1, 1](%[[X]], %[[S:.*]]) wave 5
  // CHECK-NEXT: dispatch @k::@reverse [1, 1, 1](%[[S]], %[[T:.*]]) wave 6
  // CHECK-NEXT: dispatch @k::@add [1, 1, 1](%{{.*}}, %[[T]], %[[Y]]) wave 7
  func.func @deep(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %s = memref.alloc() : memref<64xf32>
    %t = memref.alloc() : memref<64xf32>
    %u = memref.alloc() : memref<64xf32>
    %v = memref.alloc() : memref<64xf32>
    %w = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@reverse [1, 1, 1] (%x, %s) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%s, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%t, %u) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%u, %v) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@reverse [1, 1, 1] (%v, %w) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%w, %t, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }
}
