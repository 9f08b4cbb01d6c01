// What upstream's passes make of linalg on buffers, with host-side launches and with tokens.
// RUN: mlir-opt %s --pass-pipeline='builtin.module(convert-linalg-to-parallel-loops,func.func(gpu-map-parallel-loops,convert-parallel-loops-to-gpu),gpu-kernel-outlining)' -o %t.mlir
// RUN: weir-opt %t.mlir --weir-import-launches --weir-schedule --weir-insert-barriers --weir-verify-ordered | FileCheck %s
// RUN: mlir-opt %t.mlir --pass-pipeline='builtin.module(func.func(gpu-async-region))' | FileCheck %s --check-prefix=TOKENS
// RUN: mlir-opt %t.mlir --pass-pipeline='builtin.module(func.func(gpu-async-region))' | weir-opt --verify-diagnostics --weir-import-launches --weir-schedule --weir-insert-barriers --weir-verify-ordered | FileCheck %s
// RUN: mlir-opt %s --pass-pipeline='builtin.module(convert-linalg-to-parallel-loops,func.func(gpu-map-parallel-loops,convert-parallel-loops-to-gpu))' | not weir-opt --weir-import-launches 2>&1 | FileCheck %s --check-prefix=INLINE

// TOKENS: gpu.launch_func async
// INLINE: run gpu-kernel-outlining first

// The first two launches share only what they read.
// CHECK-LABEL: func.func @f
// CHECK: %[[T:.*]] = memref.alloc
// CHECK: %[[U:.*]] = memref.alloc
// CHECK:      schedule.commands {
// CHECK-NEXT:   schedule.dispatch @f_kernel::@f_kernel [64, 32, 1]({{.*}}) wave 0
// CHECK-NEXT:   schedule.dispatch @f_kernel_0::@f_kernel [64, 32, 1]({{.*}}) wave 0
// CHECK-NEXT:   schedule.barrier memory(%[[T]], %[[U]] : memref<64x32xf32>, memref<64x32xf32>)
// CHECK-SAME:     [#schedule.hazard<raw, 0 operand 3 -> 2 operand 2>, #schedule.hazard<raw, 1 operand 3 -> 2 operand 3>,
// CHECK-NEXT:   schedule.dispatch @f_kernel_1::@f_kernel [64, 32, 1]({{.*}}) wave 1
// CHECK-NEXT: }
// CHECK-NEXT: memref.dealloc %[[T]]
// CHECK-NEXT: memref.dealloc %[[U]]
func.func @f(%x: memref<64x32xf32>, %y: memref<64x32xf32>) {
  %t = memref.alloc() : memref<64x32xf32>
  %u = memref.alloc() : memref<64x32xf32>
  linalg.add ins(%x, %x : memref<64x32xf32>, memref<64x32xf32>) outs(%t : memref<64x32xf32>)
  linalg.sub ins(%x, %x : memref<64x32xf32>, memref<64x32xf32>) outs(%u : memref<64x32xf32>)
  linalg.mul ins(%t, %u : memref<64x32xf32>, memref<64x32xf32>) outs(%y : memref<64x32xf32>)
  memref.dealloc %t : memref<64x32xf32>
  memref.dealloc %u : memref<64x32xf32>
  return
}
