// RUN: weir-opt %s --weir-set-profile --weir-emit-spirv --weir-print-spirv | FileCheck %s

// Lines of the kernel, at its first instruction, and of each access and barrier that is not
// of the line before it; of the kernel's file, without its folder.

#global = #gpu.address_space<global>
#workgroup = #gpu.address_space<workgroup>

#kernel = loc("folder/graph.mlir":3:5)
#load = loc("folder/graph.mlir":4:7)
#store = loc("folder/graph.mlir":9:2)
#other = loc("folder/other.mlir":6:1)

module attributes {gpu.container_module} {

// CHECK-LABEL: ; gpu.binary @lines
// CHECK-NOT:   OpExtension
// CHECK:       %[[FILE:.*]] = OpString "graph.mlir"
// CHECK-NOT:   OpString
// CHECK-NOT:   OpLine
// CHECK:       OpLabel
// CHECK-NEXT:  OpLine %[[FILE]] 3 5
// CHECK-NEXT:  OpLoad %v3uint
// CHECK-NOT:   OpLine
// CHECK:       OpLine %[[FILE]] 4 7
// CHECK-NEXT:  %[[X:.*]] = OpLoad %float
// CHECK-NOT:   OpLine
// CHECK:       %[[Y:.*]] = OpLoad %float
// CHECK:       %[[SUM:.*]] = OpFAdd %float %[[X]] %[[Y]]
// CHECK-NOT:   OpLine
// CHECK:       OpLine %[[FILE]] 9 2
// CHECK-NEXT:  OpStore %[[#]] %[[SUM]]
// CHECK-NEXT:  OpLine %[[FILE]] 3 5
// CHECK-NEXT:  OpControlBarrier
gpu.module @lines {
  gpu.func @lines(%x: memref<8xf32, #global>, %y: memref<8xf32, #global>)
      workgroup(%shared: memref<8xf32, #workgroup>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %0 = memref.load %x[%i] : memref<8xf32, #global> loc(fused[#load, #store])
    %1 = memref.load %y[%i] : memref<8xf32, #global> loc("a name"(#load))
    %2 = arith.addf %0, %1 : f32 loc(#store)
    memref.store %2, %shared[%i] : memref<8xf32, #workgroup> loc(callsite(#store at #load))
    gpu.barrier loc(#kernel)
    gpu.return
  } loc(#kernel)
}

// What is of another file, or of none, has line 0, but where no line holds.
// CHECK-LABEL: ; gpu.binary @files
// CHECK:       %[[FILE:.*]] = OpString "graph.mlir"
// CHECK:       OpLabel
// CHECK-NEXT:  OpLine %[[FILE]] 3 5
// CHECK-NEXT:  OpLoad %v3uint
// CHECK:       OpLine %[[FILE]] 0 0
// CHECK-NEXT:  OpLoad %float
// CHECK-NOT:   OpLine
// CHECK:       OpLoad %float
// CHECK-NOT:   OpLine
// CHECK:       OpLine %[[FILE]] 9 2
// CHECK-NEXT:  OpStore
// CHECK-NOT:   OpLine
// CHECK:       OpFunctionEnd
gpu.module @files {
  gpu.func @files(%x: memref<8xf32, #global>, %y: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %0 = memref.load %x[%i] : memref<8xf32, #global> loc(#other)
    %1 = memref.load %y[%i] : memref<8xf32, #global> loc(unknown)
    %2 = arith.addf %0, %1 : f32
    memref.store %2, %x[%i] : memref<8xf32, #global> loc(#store)
    gpu.return
  } loc(#kernel)
}

// A line ends with its block: it is said again in a loop, and behind one.
// CHECK-LABEL: ; gpu.binary @blocks
// CHECK:       OpLabel
// CHECK-NEXT:  OpLine %[[#]] 3 5
// CHECK-NOT:   OpLine
// CHECK:       OpLoad %float
// CHECK-NOT:   OpLine
// CHECK:       OpLoopMerge
// CHECK:       OpLine %[[#]] 3 5
// CHECK-NEXT:  OpStore
// CHECK-NOT:   OpLine
// CHECK:       OpLabel
// CHECK:       OpLine %[[#]] 3 5
// CHECK-NEXT:  OpStore
// CHECK-NOT:   OpLine
// CHECK:       OpFunctionEnd
gpu.module @blocks {
  gpu.func @blocks(%x: memref<8xf32, #global>, %y: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %0 = memref.load %x[%c0] : memref<8xf32, #global> loc(#kernel)
    scf.for %i = %c0 to %c8 step %c1 {
      memref.store %0, %y[%i] : memref<8xf32, #global> loc(#kernel)
    }
    memref.store %0, %x[%c1] : memref<8xf32, #global> loc(#kernel)
    gpu.return
  } loc(#kernel)
}

// CHECK-LABEL: ; gpu.binary @nowhere
// CHECK-NOT:   OpString
// CHECK-NOT:   OpLine
// CHECK:       OpFunctionEnd
gpu.module @nowhere {
  gpu.func @nowhere(%x: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %0 = memref.load %x[%i] : memref<8xf32, #global> loc(unknown)
    memref.store %0, %x[%i] : memref<8xf32, #global> loc(unknown)
    gpu.return
  } loc(unknown)
}

}
