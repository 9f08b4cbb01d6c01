// RUN: weir-opt %s --weir-remove-redundant-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier
// RUN: weir-opt %s --weir-remove-redundant-workgroup-barriers --remarks-filter=remove-redundant-workgroup-barriers 2>&1 | FileCheck %s --check-prefix=REMARK

#one = array<i32: 1, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<64xf32, #gpu.address_space<workgroup>>
!g = memref<64xf32>

// REMARK-COUNT-9: [Passed] removed | Category:remove-redundant-workgroup-barriers
// REMARK-NOT: removed

module attributes {gpu.container_module} {
gpu.module @m {

// CHECK-LABEL: gpu.func @nothing_to_order
gpu.func @nothing_to_order(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  memref.store %x, %s[%t] : !s
  gpu.barrier
  %y = memref.load %s[%t] : !s
  gpu.barrier
  memref.store %y, %out[%t] : !g
  gpu.barrier
  gpu.return
}

// The first of two would do as well as the second; one is enough.
// CHECK-LABEL: gpu.func @two_in_a_row
gpu.func @two_in_a_row(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %s[%t] : !s
  gpu.barrier
  %z = arith.addf %x, %x : f32
  // CHECK:      arith.addf
  // CHECK-NEXT: gpu.barrier
  gpu.barrier
  %y = memref.load %s[%r] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// All three are needed: RAW, WAR around the loop, RAW behind it.
// CHECK-LABEL: gpu.func @needed
gpu.func @needed(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %s[%t] : !s
  // CHECK: scf.for
  scf.for %k = %c0 to %c16 step %c1 {
    // CHECK-NEXT: gpu.barrier
    gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%r] : !s
    // CHECK-NEXT: gpu.barrier
    gpu.barrier
    memref.store %y, %s[%t] : !s
  }
  // CHECK: gpu.barrier
  gpu.barrier
  %y = memref.load %s[%r] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// Of what is in the loop and what is outside, the latter is cheaper.
// CHECK-LABEL: gpu.func @rather_outside
gpu.func @rather_outside(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  memref.store %x, %s[%t] : !s
  // CHECK: gpu.barrier
  gpu.barrier
  // CHECK-NEXT: scf.for
  scf.for %k = %c0 to %c64 step %c1 {
    gpu.barrier
    %y = memref.load %s[%k] : !s
    memref.store %y, %out[%t] : !g
    gpu.barrier
  }
  gpu.return
}

// What is not known is kept.
// CHECK-LABEL: gpu.func @unknown
gpu.func @unknown(%out: !g {llvm.noalias}, %x: f32, %at: memref<64xindex> {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %i = memref.load %at[%t] : memref<64xindex>
  %y = memref.load %s[%i] : !s
  // CHECK: gpu.barrier
  gpu.barrier
  memref.store %x, %s[%i] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// Only some run it, but all come to it; and the twin with a branch on data.
// CHECK-LABEL: gpu.func @uniform_branch
gpu.func @uniform_branch(%out: !g {llvm.noalias}, %x: f32, %flag: i1) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %s[%t] : !s
  scf.if %flag {
    gpu.barrier
  }
  // CHECK: gpu.barrier
  gpu.barrier
  %y = memref.load %s[%r] : !s
  scf.if %flag {
    gpu.barrier
    %z = memref.load %s[%r] : !s
    memref.store %z, %out[%t] : !g
    gpu.barrier
  }
  gpu.return
}
}
}
