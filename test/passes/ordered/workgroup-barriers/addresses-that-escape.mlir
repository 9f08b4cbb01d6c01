// RUN: weir-opt %s --weir-insert-workgroup-barriers --allow-unregistered-dialect | FileCheck %s --implicit-check-not=gpu.barrier

// Who has a pointer may touch the memory later than the op that made it: barriers
// found before don't count.

#one = array<i32: 1, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<256xf32, #gpu.address_space<workgroup>>
!g = memref<64xf32>

gpu.module @pointers {
// CHECK-LABEL: gpu.func @pointer
gpu.func @pointer(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %p = memref.extract_aligned_pointer_as_index %s : !s -> index
  // CHECK: gpu.barrier
  gpu.barrier
  // CHECK-NEXT: "other.store"
  "other.store"(%p, %t, %x) : (index, index, f32) -> ()
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %s[%r] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}
}

// Nothing escapes: an unknown op touches what it is given, and this one nothing.
gpu.module @none {
// CHECK-LABEL: gpu.func @no_pointer
gpu.func @no_pointer(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  memref.store %x, %s[%t] : !s
  "other.compute"(%t, %x) : (index, f32) -> ()
  // An assertion touches nothing either.
  %c64 = arith.constant 64 : index
  %inside = arith.cmpi ult, %t, %c64 : index
  cf.assert %inside, "outside"
  %y = memref.load %s[%t] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}
}
