// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v3 --weir-emit-cpu | FileCheck %s
// RUN: weir-opt %s --weir-set-profile=profile=aarch64 --weir-emit-cpu | FileCheck %s
// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v4 --weir-emit-cpu=threads=1 > %t.1
// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v4 --weir-emit-cpu=threads=4 > %t.2
// RUN: cmp %t.1 %t.2

#global = #gpu.address_space<global>
#private = #gpu.address_space<private>
#workgroup = #gpu.address_space<workgroup>

module attributes {gpu.container_module} {
// A kernel becomes a binary of its name, with what the plan says of it.
// CHECK-LABEL: gpu.binary @scale
// CHECK-SAME:  weir.operands = [{alignment = 4 : i64, bytes = 128 : i64, effect = #schedule.effect<update
// CHECK-SAME:  weir.workgroup = array<i64: 1, 1, 1>
// CHECK-SAME:  bin = "\7FELF
gpu.module @scale {
  gpu.func @scale(%x: memref<32xf32, #global>)
      kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %i = gpu.block_id x
    %v = memref.load %x[%i] : memref<32xf32, #global>
    %w = arith.addf %v, %v : f32
    memref.store %w, %x[%i] : memref<32xf32, #global>
    gpu.return
  }
}

// What tells the invocations of a workgroup apart, halves, and memory of its own.
// CHECK-LABEL: gpu.binary @alone
gpu.module @alone {
  gpu.func @alone(%x: memref<32xf16, #global>, %y: memref<32xbf16, #global>)
      workgroup(%shared: memref<4xf32, #workgroup>) private(%own: memref<2xf32, #private>)
      kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %i = gpu.block_id x
    %j = gpu.block_id y
    %k = gpu.block_id z
    %lane = gpu.lane_id
    %thread = gpu.thread_id x
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %p = arith.addi %lane, %thread : index
    %q = arith.addi %j, %k : index
    %r = arith.addi %p, %q : index
    %h = memref.load %x[%i] : memref<32xf16, #global>
    %v = arith.extf %h : f16 to f32
    memref.store %v, %shared[%r] : memref<4xf32, #workgroup>
    gpu.barrier
    %u = memref.load %shared[%p] : memref<4xf32, #workgroup>
    %s, %valid = gpu.shuffle xor %u, %zero, %one : f32
    memref.store %s, %own[%p] : memref<2xf32, #private>
    %t = memref.load %own[%p] : memref<2xf32, #private>
    %b = arith.truncf %t : f32 to bf16
    memref.store %b, %y[%i] : memref<32xbf16, #global>
    gpu.return
  }
}
}
