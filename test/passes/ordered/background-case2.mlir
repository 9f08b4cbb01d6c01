// Background case 2: weight gradients of a grouped linear layer, packed as views
// of one allocation, are read on queue 1 while queue 0 reuses the memory.
//
// RUN: weir-opt %s --weir-insert-barriers -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: weir-opt %t.mlir --weir-verify-ordered
//
// Without the wait before the reuse, or with the signal before the last reader,
// the gate finds it.
// RUN: sed '/schedule.wait on 2/d' %t.mlir > %t.cut.mlir
// RUN: not weir-opt %t.cut.mlir --weir-verify-ordered 2>&1 | FileCheck %s --check-prefix=CUT
// RUN: sed -e '/schedule.signal queue 1 id 2/d' -e 's/schedule.wait queue 1 on 0/schedule.wait queue 1 on 0\n      schedule.signal queue 1 id 2/' %t.mlir > %t.early.mlir
// RUN: not weir-opt %t.early.mlir --weir-verify-ordered 2>&1 | FileCheck %s --check-prefix=CUT
// CUT: error: {{.*}}dispatch 4 of @copy writes bytes [0, 400) of an allocation through operand 1, which dispatch 2 of @copy reads: a WAR hazard
// CUT: note: dispatch 2 of @copy, through operand 0

module attributes {gpu.container_module} {
  gpu.module @copy {
    gpu.func @copy(%x: memref<100xf32>, %y: memref<100xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<100xf32>
      memref.store %v, %y[%i] : memref<100xf32>
      gpu.return
    }
  }
  // 400 bytes are no multiple of 256: the second gradient begins at 512.
  // CHECK-LABEL: @grouped
  // CHECK:      dispatch
  // CHECK-NEXT: schedule.signal id 0 memory(%{{.*}} : memref<100xf32>)
  // CHECK-NEXT: dispatch
  // CHECK-NEXT: schedule.signal id 1 memory(%{{.*}} : memref<100xf32>)
  // CHECK-NEXT: schedule.wait queue 1 on 0
  // CHECK-NEXT: dispatch {{.*}} queue 1
  // CHECK-NEXT: schedule.signal queue 1 id 2{{$}}
  // CHECK-NEXT: schedule.wait queue 1 on 1
  // CHECK-NEXT: dispatch {{.*}} queue 1
  // CHECK-NEXT: schedule.wait on 2
  // CHECK-NEXT: dispatch
  func.func @grouped() {
    %packed = memref.alloc() : memref<1024xi8>
    %c0 = arith.constant 0 : index
    %c512 = arith.constant 512 : index
    %g0 = memref.view %packed[%c0][] : memref<1024xi8> to memref<100xf32>
    %g1 = memref.view %packed[%c512][] : memref<1024xi8> to memref<100xf32>
    %next = memref.view %packed[%c0][] : memref<1024xi8> to memref<100xf32>
    %x = memref.alloc() : memref<100xf32>
    %o0 = memref.alloc() : memref<100xf32>
    %o1 = memref.alloc() : memref<100xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %g0) : (memref<100xf32>, memref<100xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %g1) : (memref<100xf32>, memref<100xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%g0, %o0) queue 1 : (memref<100xf32>, memref<100xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%g1, %o1) queue 1 : (memref<100xf32>, memref<100xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %next) : (memref<100xf32>, memref<100xf32>)
    }
    return
  }
}
