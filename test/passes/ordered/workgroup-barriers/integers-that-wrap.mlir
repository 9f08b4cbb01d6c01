// RUN: weir-opt %s --weir-insert-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier

// An integer of fixed width that a loop carries comes back to where it began.

#one = array<i32: 1, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<512xf32, #gpu.address_space<workgroup>>
!g = memref<64xf32>

gpu.module @m {

// 0, 64, 128, 192 and 0 again: what invocation 4 writes, invocation 0 wrote.
// CHECK-LABEL: gpu.func @wraps
gpu.func @wraps(%in: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i8
  %step = arith.constant 64 : i8
  %x = memref.load %in[%t] : !g
  // CHECK: scf.for
  scf.for %k = %c0 to %c8 step %c1 iter_args(%i = %zero) -> i8 {
    // CHECK: gpu.barrier
    %mine = arith.cmpi eq, %t, %k : index
    scf.if %mine {
      %place = arith.index_castui %i : i8 to index
      memref.store %x, %s[%place] : !s
    }
    %next = arith.addi %i, %step : i8
    scf.yield %next : i8
  }
  gpu.return
}

// Its twin has the width.
// CHECK-LABEL: gpu.func @wide
gpu.func @wide(%in: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i16
  %step = arith.constant 64 : i16
  %x = memref.load %in[%t] : !g
  scf.for %k = %c0 to %c8 step %c1 iter_args(%i = %zero) -> i16 {
    %mine = arith.cmpi eq, %t, %k : index
    scf.if %mine {
      %place = arith.index_castui %i : i16 to index
      memref.store %x, %s[%place] : !s
    }
    %next = arith.addi %i, %step : i16
    scf.yield %next : i16
  }
  gpu.return
}

}
