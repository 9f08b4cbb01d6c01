// RUN: weir-opt %s --weir-insert-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier

// Barriers in the input count where every way passes them.

#one = array<i32: 1, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<64xf32, #gpu.address_space<workgroup>>
!g = memref<64xf32>
!tiles = memref<16x64xf32>

module attributes {gpu.container_module} {
gpu.module @m {

// A loop that may not run at all can't bring the barrier that is needed around it.
// CHECK-LABEL: gpu.func @perhaps_no_trip
gpu.func @perhaps_no_trip(%out: !g {llvm.noalias}, %x: f32, %n: index) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %s[%t] : !s
  // CHECK: scf.for
  scf.for %k = %c0 to %n step %c1 {
    // CHECK-NEXT: gpu.barrier
    gpu.barrier
  }
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %s[%r] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}
// CHECK-LABEL: gpu.func @surely_a_trip
gpu.func @surely_a_trip(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %s[%t] : !s
  // CHECK: scf.for
  scf.for %k = %c0 to %c63 step %c1 {
    // CHECK-NEXT: gpu.barrier
    gpu.barrier
    %y = memref.load %s[%r] : !s
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}

}
}
