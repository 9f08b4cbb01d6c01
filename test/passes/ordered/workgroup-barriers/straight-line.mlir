// RUN: weir-opt %s --weir-insert-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier
// RUN: weir-opt %s --weir-insert-workgroup-barriers --weir-remove-redundant-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier

// The three hazards, in workgroup and in global memory, each with its twin.

#one = array<i32: 1, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<64xf32, #gpu.address_space<workgroup>>
!g = memref<64xf32>

module attributes {gpu.container_module} {
gpu.module @m {

// CHECK-LABEL: gpu.func @raw
gpu.func @raw(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %x = memref.load %in[%t] : !g
  memref.store %x, %s[%t] : !s
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %s[%r] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @raw_own_element
gpu.func @raw_own_element(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %x = memref.load %in[%t] : !g
  memref.store %x, %s[%t] : !s
  %y = memref.load %s[%t] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// The reversal in place: all must have read before anyone writes.
// CHECK-LABEL: gpu.func @war_global
gpu.func @war_global(%x: !g) kernel
    attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %v = memref.load %x[%r] : !g
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.store
  memref.store %v, %x[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @war_global_two_halves
gpu.func @war_global_two_halves(%x: memref<128xf32>) kernel
    attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c127 = arith.constant 127 : index
  %r = arith.subi %c127, %t : index
  %v = memref.load %x[%r] : memref<128xf32>
  memref.store %v, %x[%t] : memref<128xf32>
  gpu.return
}

// CHECK-LABEL: gpu.func @waw
gpu.func @waw(%out: !g {llvm.noalias}, %a: f32, %b: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  memref.store %a, %s[%t] : !s
  %first = arith.cmpi eq, %t, %c0 : index
  %c63 = arith.constant 63 : index
  // CHECK:      gpu.barrier
  // CHECK-NEXT: scf.if
  scf.if %first {
    memref.store %b, %s[%c63] : !s
  }
  gpu.return
}

// CHECK-LABEL: gpu.func @waw_same_invocation
gpu.func @waw_same_invocation(%out: !g {llvm.noalias}, %a: f32, %b: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  memref.store %a, %s[%t] : !s
  %first = arith.cmpi eq, %t, %c0 : index
  scf.if %first {
    memref.store %b, %s[%c0] : !s
  }
  gpu.return
}

// One barrier serves three pairs.
// CHECK-LABEL: gpu.func @one_for_three
gpu.func @one_for_three(%out: !g {llvm.noalias}, %x: f32) workgroup(%a: !s, %b: !s, %c: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %a[%t] : !s
  memref.store %x, %b[%t] : !s
  memref.store %x, %c[%t] : !s
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load %{{.*}}[%{{.*}}] : memref<64xf32, #gpu.address_space<workgroup>>
  %0 = memref.load %a[%r] : !s
  %1 = memref.load %b[%r] : !s
  %2 = memref.load %c[%r] : !s
  %3 = arith.addf %0, %1 : f32
  %4 = arith.addf %2, %3 : f32
  memref.store %4, %out[%t] : !g
  gpu.return
}

// One in the middle is enough, and the input has it.
// CHECK-LABEL: gpu.func @found_in_the_input
gpu.func @found_in_the_input(%out: !g {llvm.noalias}, %x: f32) workgroup(%a: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %a[%t] : !s
  // CHECK: gpu.barrier
  gpu.barrier
  %y = arith.addf %x, %x : f32
  %0 = memref.load %a[%r] : !s
  %1 = arith.addf %0, %y : f32
  memref.store %1, %out[%t] : !g
  gpu.return
}

// Lanes of a subgroup don't run in step.
// CHECK-LABEL: gpu.func @subgroups_give_no_order
gpu.func @subgroups_give_no_order(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 8, 1, 1>, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c7 = arith.constant 7 : index
  %r = arith.xori %t, %c7 : index
  memref.store %x, %s[%t] : !s
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %s[%r] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @alone
gpu.func @alone(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #one, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  memref.store %x, %s[%c7] : !s
  %y = memref.load %s[%c7] : !s
  memref.store %y, %out[%c0] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @private_memory
gpu.func @private_memory(%out: !g {llvm.noalias}, %x: f32)
    private(%p: memref<4xf32, #gpu.address_space<private>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c1 = arith.constant 1 : index
  %q = memref.alloca() : memref<4xf32>
  memref.store %x, %p[%c1] : memref<4xf32, #gpu.address_space<private>>
  memref.store %x, %q[%c1] : memref<4xf32>
  %a = memref.load %p[%c1] : memref<4xf32, #gpu.address_space<private>>
  %b = memref.load %q[%c1] : memref<4xf32>
  %y = arith.addf %a, %b : f32
  memref.store %y, %out[%t] : !g
  gpu.return
}

// A vector of four spans its neighbours' elements.
// CHECK-LABEL: gpu.func @vectors
gpu.func @vectors(%out: memref<16xf32> {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c16 = arith.constant 16 : index
  %c4 = arith.constant 4 : index
  memref.store %x, %s[%t] : !s
  %few = arith.cmpi ult, %t, %c16 : index
  // CHECK:      gpu.barrier
  // CHECK-NEXT: scf.if
  scf.if %few {
    %i = arith.muli %t, %c4 : index
    %v = vector.load %s[%i] : !s, vector<4xf32>
    %y = vector.reduction <add>, %v : vector<4xf32> into f32
    memref.store %y, %out[%t] : memref<16xf32>
  }
  gpu.return
}

// CHECK-LABEL: gpu.func @vectors_own
gpu.func @vectors_own(%out: memref<16xf32> {llvm.noalias}, %x: vector<4xf32>) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 16, 1, 1>, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %i = arith.muli %t, %c4 : index
  %j = arith.addi %i, %c3 : index
  vector.store %x, %s[%i] : !s, vector<4xf32>
  %y = memref.load %s[%j] : !s
  memref.store %y, %out[%t] : memref<16xf32>
  gpu.return
}
}
}
