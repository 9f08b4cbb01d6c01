// RUN: weir-opt %s --weir-insert-workgroup-barriers -split-input-file -verify-diagnostics

!s = memref<64xf32, #gpu.address_space<workgroup>>
gpu.module @m {
gpu.func @divergent_branch(%in: memref<64xf32> {llvm.noalias}) workgroup(%s: !s) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c31 = arith.constant 31 : index
  %c32 = arith.constant 32 : index
  %x = memref.load %in[%t] : memref<64xf32>
  %half = arith.cmpi ult, %t, %c32 : index
  // expected-note @below {{invocations take different ways here}}
  scf.if %half {
    %r = arith.subi %c31, %t : index
    // expected-note @below {{the earlier access}}
    memref.store %x, %s[%t] : !s
    // expected-error @below {{RAW hazard between invocations of one workgroup: this meets the bytes of an earlier access, and not all invocations come to any place between the two}}
    %y = memref.load %s[%r] : !s
    memref.store %y, %in[%t] : memref<64xf32>
  }
  gpu.return
}
}

// -----

// The two ways of a branch are taken at once.
!s = memref<64xf32, #gpu.address_space<workgroup>>
gpu.module @m {
gpu.func @two_ways(%x: f32, %out: memref<64xf32> {llvm.noalias}) workgroup(%s: !s) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c32 = arith.constant 32 : index
  %half = arith.cmpi ult, %t, %c32 : index
  // expected-note @below {{invocations take different ways here}}
  scf.if %half {
    // expected-note @below {{the earlier access}}
    memref.store %x, %s[%t] : !s
  } else {
    %u = arith.subi %t, %c32 : index
    // expected-error @below {{RAW hazard}}
    %y = memref.load %s[%u] : !s
    memref.store %y, %out[%t] : memref<64xf32>
  }
  gpu.return
}
}

// -----

// As many trips as the invocation's number.
!s = memref<64xf32, #gpu.address_space<workgroup>>
gpu.module @m {
gpu.func @divergent_loop(%x: f32) workgroup(%s: !s) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{invocations take different ways here}}
  scf.for %i = %c0 to %t step %c1 {
    // expected-error @below {{RAW hazard}}
    %y = memref.load %s[%i] : !s
    %z = arith.addf %x, %y : f32
    // expected-note @below {{the earlier access}}
    memref.store %z, %s[%t] : !s
  }
  gpu.return
}
}

// -----

!s = memref<64xf32, #gpu.address_space<workgroup>>
gpu.module @m {
gpu.func @divergent_barrier(%x: f32) workgroup(%s: !s) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c32 = arith.constant 32 : index
  %half = arith.cmpi ult, %t, %c32 : index
  // expected-note @below {{invocations take different ways here}}
  scf.if %half {
    // expected-error @below {{divergent barrier: not all invocations of a workgroup come to it together}}
    gpu.barrier
  }
  gpu.return
}
}

// -----

// Some have left the kernel.
gpu.module @m {
gpu.func @early_exit(%n: index) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %t = gpu.thread_id x
  %in = arith.cmpi ult, %t, %n : index
  // expected-note @below {{invocations take different ways here}}
  cf.cond_br %in, ^body, ^exit
^body:
  // expected-error @below {{divergent barrier}}
  gpu.barrier
  cf.br ^exit
^exit:
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @self(%x: f32) workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c2 = arith.constant 2 : index
  %h = arith.divui %t, %c2 : index
  %i = arith.index_cast %t : index to i32
  %v = arith.sitofp %i : i32 to f32
  // expected-error @below {{invocations of one workgroup write the same bytes by this instruction; no barrier orders it with itself}}
  memref.store %v, %s[%h] : memref<64xf32, #gpu.address_space<workgroup>>
  gpu.return
}
}

// -----

// A permutation, perhaps.
gpu.module @m {
gpu.func @scatter(%to: memref<64xindex> {llvm.noalias}, %out: memref<64xindex> {llvm.noalias}) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %i = memref.load %to[%t] : memref<64xindex>
  // expected-remark @below {{invocations of one workgroup may write the same bytes by this instruction}}
  memref.store %t, %out[%i] : memref<64xindex>
  gpu.return
}
}

// -----

// An index from memory, into workgroup memory and between workgroups; atomic updates don't race.
gpu.module @m {
gpu.func @scatter_in_workgroup(%to: memref<64xi32> {llvm.noalias}, %in: memref<64xf32> {llvm.noalias})
    workgroup(%s : memref<64xf32, #gpu.address_space<workgroup>>) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %j = memref.load %to[%t] : memref<64xi32>
  %i = arith.index_cast %j : i32 to index
  %v = memref.load %in[%t] : memref<64xf32>
  // expected-remark @below {{invocations of one workgroup may write the same bytes by this instruction}}
  memref.store %v, %s[%i] : memref<64xf32, #gpu.address_space<workgroup>>
  gpu.return
}
gpu.func @scatter_between_workgroups(%to: memref<64xi32> {llvm.noalias}, %out: memref<64xindex> {llvm.noalias}) kernel
    attributes {known_block_size = array<i32: 1, 1, 1>, known_grid_size = array<i32: 64, 1, 1>} {
  %b = gpu.block_id x
  %j = memref.load %to[%b] : memref<64xi32>
  %i = arith.index_cast %j : i32 to index
  // expected-remark @below {{different workgroups may race: it can't be told whether they touch the same bytes here}}
  memref.store %b, %out[%i] : memref<64xindex>
  gpu.return
}
gpu.func @histogram(%to: memref<64xi32> {llvm.noalias}, %out: memref<64xi32> {llvm.noalias}) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %j = memref.load %to[%t] : memref<64xi32>
  %i = arith.index_cast %j : i32 to index
  %n = memref.load %out[%i] : memref<64xi32>
  %c1 = arith.constant 1 : i32
  %m = arith.addi %n, %c1 : i32
  // expected-remark @below {{invocations of one workgroup may write the same bytes by this instruction}}
  memref.store %m, %out[%i] : memref<64xi32>
  gpu.return
}
gpu.func @atomic_histogram(%to: memref<256xi32> {llvm.noalias}, %out: memref<64xi32> {llvm.noalias}) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 4, 1, 1>} {
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %c64 = arith.constant 64 : index
  %begin = arith.muli %b, %c64 : index
  %k = arith.addi %begin, %t : index
  %j = memref.load %to[%k] : memref<256xi32>
  %i = arith.index_cast %j : i32 to index
  %c1 = arith.constant 1 : i32
  %n = memref.atomic_rmw addi %c1, %out[%i] : (i32, memref<64xi32>) -> i32
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @workgroups_proved(%out: memref<64xindex> {llvm.noalias}) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 4, 1, 1>} {
  %t = gpu.thread_id x
  %b = gpu.block_id x
  // expected-error @below {{different workgroups race: they touch the same bytes here, and no barrier orders workgroups}}
  memref.store %b, %out[%t] : memref<64xindex>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @workgroups_unknown(%n: index, %out: memref<256xindex> {llvm.noalias}) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 4, 1, 1>} {
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %at = arith.muli %b, %n : index
  %i = arith.addi %at, %t : index
  // expected-remark @below {{different workgroups may race: it can't be told whether they touch the same bytes here}}
  memref.store %b, %out[%i] : memref<256xindex>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @workgroups_apart(%out: memref<256xindex> {llvm.noalias}) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 4, 1, 1>} {
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %c64 = arith.constant 64 : index
  %at = arith.muli %b, %c64 : index
  %i = arith.addi %at, %t : index
  memref.store %b, %out[%i] : memref<256xindex>
  gpu.return
}
}

// -----

// Whoever comes last, it is the same.
gpu.module @m {
gpu.func @workgroups_agree(%out: memref<1xf32> {llvm.noalias}) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 4, 1, 1>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  memref.store %one, %out[%c0] : memref<1xf32>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @atomics(%out: memref<1xf32> {llvm.noalias}, %x: f32) kernel
    attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 4, 1, 1>} {
  %c0 = arith.constant 0 : index
  %0 = memref.atomic_rmw addf %x, %out[%c0] : (f32, memref<1xf32>) -> f32
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @two_entries(%flag: i1) kernel {
  cf.cond_br %flag, ^a, ^b
^a:
  cf.br ^b
^b:
  // expected-error @below {{this branch enters a loop that is entered elsewhere, too; such control flow is not analysed for races}}
  cf.cond_br %flag, ^a, ^c
^c:
  gpu.return
}
}

// -----

func.func @inline(%x: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{the body of a gpu.launch is not analysed for races; outline it first (gpu-kernel-outlining)}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

// Only some invocations come to where a wait for the copy could be.
#one = array<i32: 1, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<256xf32, #gpu.address_space<workgroup>>
!g = memref<256xf32>
gpu.module @m {
gpu.func @a_copy_that_some_read(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c255 = arith.constant 255 : index
  %i = arith.muli %t, %c4 : index
  %r = arith.subi %c255, %t : index
  %some = arith.cmpi ult, %t, %c32 : index
  // expected-note @below {{invocations take different ways here}}
  scf.if %some {
    // expected-note @below {{the earlier access}}
    %token = nvgpu.device_async_copy %in[%i], %s[%i], 4 : !g to !s
    // expected-error @below {{RAW hazard between invocations of one workgroup}}
    %x = memref.load %s[%i] : !s
    memref.store %x, %out[%t] : !g
  }
  gpu.return
}
}
