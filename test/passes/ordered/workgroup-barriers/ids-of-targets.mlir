// RUN: weir-opt %s --weir-insert-workgroup-barriers -split-input-file -verify-diagnostics

// Ids that a target's own dialect reads tell invocations apart, too, though the
// ops have no side effects and no operands.

!s = memref<64xf32, #gpu.address_space<workgroup>>
gpu.module @m {
gpu.func @nvvm_thread(%out: memref<64xf32> {llvm.noalias}, %x: f32) workgroup(%s: !s) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %c32 = arith.constant 32 : i32
  %r = arith.subi %c63, %t : index
  %id = nvvm.read.ptx.sreg.tid.x : i32
  %half = arith.cmpi slt, %id, %c32 : i32
  // expected-note @below {{invocations take different ways here}}
  scf.if %half {
    // expected-note @below {{the earlier access}}
    memref.store %x, %s[%t] : !s
    // expected-error @below {{RAW hazard between invocations of one workgroup}}
    %y = memref.load %s[%r] : !s
    memref.store %y, %out[%t] : memref<64xf32>
  }
  gpu.return
}
}

// -----

// A function of constants, but not of them alone.
!s = memref<64xf32, #gpu.address_space<workgroup>>
gpu.module @m {
gpu.func @rocdl_lane(%out: memref<64xf32> {llvm.noalias}, %x: f32) workgroup(%s: !s) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %c0 = arith.constant 0 : i32
  %all = arith.constant -1 : i32
  %c16 = arith.constant 16 : i32
  %r = arith.subi %c63, %t : index
  %lane = rocdl.mbcnt.lo %all, %c0 : (i32, i32) -> i32
  %low = arith.cmpi slt, %lane, %c16 : i32
  // expected-note @below {{invocations take different ways here}}
  scf.if %low {
    // expected-note @below {{the earlier access}}
    memref.store %x, %s[%t] : !s
    // expected-error @below {{RAW hazard between invocations of one workgroup}}
    %y = memref.load %s[%r] : !s
    memref.store %y, %out[%t] : memref<64xf32>
  }
  gpu.return
}
}

// -----

!s = memref<64xi32, #gpu.address_space<workgroup>>
gpu.module @m {
gpu.func @not_the_same_value() workgroup(%s: !s) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %c0 = arith.constant 0 : index
  %id = nvvm.read.ptx.sreg.tid.x : i32
  // expected-error @below {{invocations of one workgroup write the same bytes by this instruction}}
  memref.store %id, %s[%c0] : !s
  gpu.return
}
}

// -----

// What all invocations add up, all of them get: the branch is one for all.
!s = memref<64xf32, #gpu.address_space<workgroup>>
gpu.module @m {
gpu.func @reduced(%in: memref<64xf32> {llvm.noalias}, %out: memref<64xf32> {llvm.noalias})
    workgroup(%s: !s) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %r = arith.subi %c63, %t : index
  %x = memref.load %in[%t] : memref<64xf32>
  %sum = gpu.all_reduce add %x uniform {} : (f32) -> f32
  %positive = arith.cmpf ogt, %sum, %zero : f32
  scf.if %positive {
    memref.store %x, %s[%t] : !s
    %y = memref.load %s[%r] : !s
    memref.store %y, %out[%t] : memref<64xf32>
  }
  gpu.return
}
}

// -----

// Of a subgroup, only its own invocations.
!s = memref<64xf32, #gpu.address_space<workgroup>>
gpu.module @m {
gpu.func @reduced_in_subgroup(%in: memref<64xf32> {llvm.noalias}, %out: memref<64xf32> {llvm.noalias})
    workgroup(%s: !s) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %r = arith.subi %c63, %t : index
  %x = memref.load %in[%t] : memref<64xf32>
  %sum = gpu.subgroup_reduce add %x : (f32) -> f32
  %positive = arith.cmpf ogt, %sum, %zero : f32
  // expected-note @below {{invocations take different ways here}}
  scf.if %positive {
    // expected-note @below {{the earlier access}}
    memref.store %x, %s[%t] : !s
    // expected-error @below {{RAW hazard between invocations of one workgroup}}
    %y = memref.load %s[%r] : !s
    memref.store %y, %out[%t] : memref<64xf32>
  }
  gpu.return
}
}
