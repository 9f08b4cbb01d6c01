// RUN: weir-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(weir-test-aliasing)))' 2>&1 >/dev/null | grep -o 'remark: .*' | FileCheck %s

// Memory that a kernel declares is its own, even where its type does not say
// which kind it is; arguments may be the same.
// CHECK: argument other: unknown
// CHECK: argument tile: disjoint
// CHECK: argument scratch: disjoint
// CHECK: tile half: overlap
// CHECK: tile scratch: disjoint
// CHECK: tile spare: disjoint
gpu.module @m {
  gpu.func @k(%a: memref<8xf32> {weir.name = "argument"}, %b: memref<8xf32> {weir.name = "other"})
      workgroup(%w: memref<8xf32, 3>, %v: memref<8xf32, 3>) private(%p: memref<8xf32, 5>) kernel {
    %0 = memref.cast %w {test.name = "tile"} : memref<8xf32, 3> to memref<?xf32, 3>
    %1 = memref.subview %w[0] [4] [1] {test.name = "half"} : memref<8xf32, 3> to memref<4xf32, strided<[1]>, 3>
    %2 = memref.cast %p {test.name = "scratch"} : memref<8xf32, 5> to memref<?xf32, 5>
    %3 = memref.cast %v {test.name = "spare"} : memref<8xf32, 3> to memref<?xf32, 3>
    gpu.return
  }
}
