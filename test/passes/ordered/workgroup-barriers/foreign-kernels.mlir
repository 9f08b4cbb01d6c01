// RUN: weir-opt %s --weir-insert-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier
// RUN: weir-opt %s --weir-insert-workgroup-barriers \
// RUN:   --weir-remove-redundant-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier

// Kernels as people and other compilers write them, and where each needs its barriers.

#one = array<i32: 1, 1, 1>
#four = array<i32: 4, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<64xf32, #gpu.address_space<workgroup>>
!g = memref<64xf32>
!g256 = memref<256xf32>
!matrix = memref<64x64xf32>
!dynamic = memref<?x?xf32>
!tile = memref<16x16xf32, #gpu.address_space<workgroup>>
!padded = memref<16x17xf32, #gpu.address_space<workgroup>>
!rows = memref<2x64xf32, #gpu.address_space<workgroup>>
!flag = memref<1xi32, #gpu.address_space<workgroup>>
!pair = memref<128xf32, #gpu.address_space<workgroup>>
!high = memref<64xf32, strided<[1], offset: 64>, #gpu.address_space<workgroup>>
!arena = memref<512xi8, #gpu.address_space<workgroup>>
!bytes = memref<64xi8, #gpu.address_space<workgroup>>

gpu.module @m {

// A tile with a column to spare, filled and read by affine accesses.
// CHECK-LABEL: gpu.func @transpose_padded
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.load
gpu.func @transpose_padded(%in: !matrix {llvm.noalias}, %out: !matrix {llvm.noalias})
    workgroup(%tile: !padded)
    kernel attributes {known_block_size = array<i32: 16, 16, 1>, known_grid_size = array<i32: 4, 4, 1>} {
  %tx = gpu.thread_id x
  %ty = gpu.thread_id y
  %bx = gpu.block_id x
  %by = gpu.block_id y
  %x = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%bx, %tx)
  %y = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%by, %ty)
  %v = affine.load %in[%y, %x] : !matrix
  affine.store %v, %tile[%ty, %tx] : !padded
  %w = memref.load %tile[%tx, %ty] : !padded
  %ox = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%by, %tx)
  %oy = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%bx, %ty)
  memref.store %w, %out[%oy, %ox] : !matrix
  gpu.return
}

// Each invocation moves four rows of the tile in two loops.
// CHECK-LABEL: gpu.func @transpose_rows_in_turn
// CHECK:      gpu.barrier
// CHECK-NEXT: scf.for
gpu.func @transpose_rows_in_turn(%in: !matrix {llvm.noalias}, %out: !matrix {llvm.noalias})
    workgroup(%tile: !padded)
    kernel attributes {known_block_size = array<i32: 16, 4, 1>, known_grid_size = array<i32: 4, 4, 1>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %tx = gpu.thread_id x
  %ty = gpu.thread_id y
  %bx = gpu.block_id x
  %by = gpu.block_id y
  %x = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%bx, %tx)
  scf.for %j = %c0 to %c16 step %c4 {
    %r = arith.addi %ty, %j : index
    %y = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%by, %r)
    %v = memref.load %in[%y, %x] : !matrix
    memref.store %v, %tile[%r, %tx] : !padded
  }
  %ox = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%by, %tx)
  scf.for %j = %c0 to %c16 step %c4 {
    %r = arith.addi %ty, %j : index
    %y = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%bx, %r)
    %v = memref.load %tile[%tx, %r] : !padded
    memref.store %v, %out[%y, %ox] : !matrix
  }
  gpu.return
}

// Two tiles in a loop: before they are read, and before they are filled again.
// CHECK-LABEL: gpu.func @matmul
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.store
// CHECK:      gpu.barrier
// CHECK-NEXT: scf.for
gpu.func @matmul(%A: !dynamic {llvm.noalias}, %B: !dynamic {llvm.noalias}, %C: !dynamic {llvm.noalias},
              %K: index)
    workgroup(%sa: !tile, %sb: !tile)
    kernel attributes {known_block_size = array<i32: 16, 16, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %f0 = arith.constant 0.0 : f32
  %tx = gpu.thread_id x
  %ty = gpu.thread_id y
  %bx = gpu.block_id x
  %by = gpu.block_id y
  %x = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%bx, %tx)
  %y = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%by, %ty)
  %acc = scf.for %k = %c0 to %K step %c16 iter_args(%a0 = %f0) -> f32 {
    %ka = arith.addi %k, %tx : index
    %kb = arith.addi %k, %ty : index
    %a = memref.load %A[%y, %ka] : !dynamic
    %b = memref.load %B[%kb, %x] : !dynamic
    memref.store %a, %sa[%ty, %tx] : !tile
    memref.store %b, %sb[%ty, %tx] : !tile
    %s = scf.for %q = %c0 to %c16 step %c1 iter_args(%a1 = %a0) -> f32 {
      %u = memref.load %sa[%ty, %q] : !tile
      %v = memref.load %sb[%q, %tx] : !tile
      %m = arith.mulf %u, %v : f32
      %n = arith.addf %a1, %m : f32
      scf.yield %n : f32
    }
    scf.yield %s : f32
  }
  memref.store %acc, %C[%y, %x] : !dynamic
  gpu.return
}

// Loads guarded by bounds; the tile itself is stored by all.
// CHECK-LABEL: gpu.func @guarded_tile
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.store
// CHECK:      gpu.barrier
// CHECK-NEXT: scf.for
gpu.func @guarded_tile(%A: memref<?xf32> {llvm.noalias}, %C: memref<?xf32> {llvm.noalias},
              %n: index)
    workgroup(%s: !s)
    kernel attributes {known_block_size = #team} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %f0 = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %bx = gpu.block_id x
  %base = arith.muli %bx, %c64 : index
  %g = arith.addi %base, %t : index
  %in = arith.cmpi ult, %g, %n : index
  %acc = scf.for %k = %c0 to %n step %c64 iter_args(%a0 = %f0) -> f32 {
    %kk = arith.addi %k, %t : index
    %ok = arith.cmpi ult, %kk, %n : index
    %v = scf.if %ok -> f32 {
      %l = memref.load %A[%kk] : memref<?xf32>
      scf.yield %l : f32
    } else {
      scf.yield %f0 : f32
    }
    memref.store %v, %s[%t] : !s
    %r = scf.for %q = %c0 to %c64 step %c1 iter_args(%a1 = %a0) -> f32 {
      %u = memref.load %s[%q] : !s
      %w = arith.addf %a1, %u : f32
      scf.yield %w : f32
    }
    scf.yield %r : f32
  }
  scf.if %in {
    memref.store %acc, %C[%g] : memref<?xf32>
  }
  gpu.return
}

// A scan in one buffer: twice a trip.
// CHECK-LABEL: gpu.func @scan_in_place
// CHECK:      gpu.barrier
// CHECK-NEXT: scf.condition
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.store
gpu.func @scan_in_place(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %f0 = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %v = memref.load %in[%t] : !g
  memref.store %v, %s[%t] : !s
  %w = scf.while (%o = %c1) : (index) -> index {
    %c = arith.cmpi ult, %o, %c64 : index
    scf.condition(%c) %o : index
  } do {
    ^bb0(%o: index):
    %p = arith.cmpi uge, %t, %o : index
    %x = scf.if %p -> f32 {
      %i = arith.subi %t, %o : index
      %l = memref.load %s[%i] : !s
      scf.yield %l : f32
    } else {
      scf.yield %f0 : f32
    }
    %y = memref.load %s[%t] : !s
    %z = arith.addf %x, %y : f32
    memref.store %z, %s[%t] : !s
    %o2 = arith.shli %o, %c1 : index
    scf.yield %o2 : index
  }
  %last = arith.subi %c63, %t : index
  %q = memref.load %s[%last] : !s
  memref.store %q, %out[%t] : !g
  gpu.return
}

// The same in two rows that change places: once a trip.
// CHECK-LABEL: gpu.func @scan_in_two_rows
// CHECK:      gpu.barrier
// CHECK-NEXT: scf.if
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.load
gpu.func @scan_in_two_rows(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !rows)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %f0 = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %v = memref.load %in[%t] : !g
  memref.store %v, %s[%c0, %t] : !rows
  %w:2 = scf.for %d = %c0 to %c4 step %c1 iter_args(%src = %c0, %dst = %c1) -> (index, index) {
    %o = arith.shli %c1, %d : index
    %p = arith.cmpi uge, %t, %o : index
    %x = scf.if %p -> f32 {
      %i = arith.subi %t, %o : index
      %l = memref.load %s[%src, %i] : !rows
      scf.yield %l : f32
    } else {
      scf.yield %f0 : f32
    }
    %y = memref.load %s[%src, %t] : !rows
    %z = arith.addf %x, %y : f32
    memref.store %z, %s[%dst, %t] : !rows
    scf.yield %dst, %src : index, index
  }
  %last = arith.subi %c63, %t : index
  %q = memref.load %s[%w#0, %last] : !rows
  memref.store %q, %out[%t] : !g
  gpu.return
}

// Half as many invocations each trip.
// CHECK-LABEL: gpu.func @scan_upwards
// CHECK:      gpu.barrier
// CHECK-NEXT: scf.if
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.load
gpu.func @scan_upwards(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %v = memref.load %in[%t] : !g
  memref.store %v, %s[%t] : !s
  %w = scf.for %d = %c0 to %c4 step %c1 iter_args(%o = %c1) -> index {
    %o2 = arith.muli %o, %c2 : index
    %n = arith.divui %c64, %o2 : index
    %p = arith.cmpi ult, %t, %n : index
    scf.if %p {
      %a0 = arith.muli %t, %o2 : index
      %a1 = arith.addi %a0, %o : index
      %a = arith.subi %a1, %c1 : index
      %b1 = arith.addi %a0, %o2 : index
      %b = arith.subi %b1, %c1 : index
      %x = memref.load %s[%a] : !s
      %y = memref.load %s[%b] : !s
      %z = arith.addf %x, %y : f32
      memref.store %z, %s[%b] : !s
    }
    scf.yield %o2 : index
  }
  %last = arith.subi %c63, %t : index
  %q = memref.load %s[%last] : !s
  memref.store %q, %out[%t] : !g
  gpu.return
}

// A tree of blocks, its width an i32 that is halved: a barrier where all come.
// CHECK-LABEL: gpu.func @tree_of_blocks
// CHECK:      gpu.barrier
// CHECK-NEXT: cf.cond_br
gpu.func @tree_of_blocks(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %t32 = arith.index_cast %t : index to i32
  %i32c = arith.constant 32 : i32
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %v = memref.load %in[%t] : !g
  memref.store %v, %s[%t] : !s
  cf.br ^head(%i32c : i32)
  ^head(%o: i32):
  %c = arith.cmpi sgt, %o, %i0 : i32
  cf.cond_br %c, ^body, ^exit
  ^body:
  %p = arith.cmpi slt, %t32, %o : i32
  cf.cond_br %p, ^then, ^latch
  ^then:
  %i = arith.addi %t32, %o : i32
  %ii = arith.index_cast %i : i32 to index
  %x = memref.load %s[%ii] : !s
  %y = memref.load %s[%t] : !s
  %z = arith.addf %x, %y : f32
  memref.store %z, %s[%t] : !s
  cf.br ^latch
  ^latch:
  %o2 = arith.shrsi %o, %i1 : i32
  cf.br ^head(%o2 : i32)
  ^exit:
  %q = memref.load %s[%c0] : !s
  memref.store %q, %out[%t] : !g
  gpu.return
}

// The width computed from the trip, indices widened to i64.
// CHECK-LABEL: gpu.func @tree_by_shifts
// CHECK:      gpu.barrier
// CHECK-NEXT: scf.if
gpu.func @tree_by_shifts(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = gpu.thread_id x
  %t32 = arith.index_cast %t : index to i32
  %i32c = arith.constant 32 : i32
  %v = memref.load %in[%t] : !g
  memref.store %v, %s[%t] : !s
  scf.for %k = %c0 to %c4 step %c1 {
    %k32 = arith.index_cast %k : index to i32
    %o = arith.shrui %i32c, %k32 : i32
    %p = arith.cmpi slt, %t32, %o : i32
    scf.if %p {
      %i3 = arith.addi %t32, %o : i32
      %i6 = arith.extsi %i3 : i32 to i64
      %i = arith.index_cast %i6 : i64 to index
      %x = memref.load %s[%i] : !s
      %y = memref.load %s[%t] : !s
      %z = arith.addf %x, %y : f32
      memref.store %z, %s[%t] : !s
    }
  }
  %q = memref.load %s[%t] : !s
  memref.store %q, %out[%t] : !g
  gpu.return
}

// Set back, raised, and looked at: three a trip, the last where the loop goes on.
// CHECK-LABEL: gpu.func @until_nothing_changes
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.atomic_rmw
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.load
// CHECK:      gpu.barrier
// CHECK-NEXT: scf.yield
gpu.func @until_nothing_changes(%x: memref<64xi32> {llvm.noalias}) workgroup(%fl: !flag)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %t = gpu.thread_id x
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %z = arith.cmpi eq, %t, %c0 : index
  scf.while : () -> () {
    scf.if %z {
      memref.store %i0, %fl[%c0] : !flag
    }
    %v = memref.load %x[%t] : memref<64xi32>
    %v2 = arith.shrui %v, %i1 : i32
    memref.store %v2, %x[%t] : memref<64xi32>
    %o = memref.atomic_rmw maxu %v2, %fl[%c0] : (i32, !flag) -> i32
    %f = memref.load %fl[%c0] : !flag
    %c = arith.cmpi ne, %f, %i0 : i32
    scf.condition(%c)
  } do {
    scf.yield
  }
  gpu.return
}

// All write the same, but another value on the next trip.
// CHECK-LABEL: gpu.func @same_value_each_trip
// CHECK:      gpu.barrier
// CHECK-NEXT: }
gpu.func @same_value_each_trip(%out: memref<64xindex> {llvm.noalias})
    workgroup(%s: memref<64xindex, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = gpu.thread_id x
  scf.for %i = %c0 to %c4 step %c1 {
    memref.store %i, %s[%c0] : memref<64xindex, #gpu.address_space<workgroup>>
  }
  %v = memref.load %s[%c0] : memref<64xindex, #gpu.address_space<workgroup>>
  memref.store %v, %out[%t] : memref<64xindex>
  gpu.return
}

// All write one value, then all another.
// CHECK-LABEL: gpu.func @same_place_two_values
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.store
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.load
gpu.func @same_place_two_values(%out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %t = gpu.thread_id x
  memref.store %f0, %s[%c0] : !s
  memref.store %f1, %s[%c0] : !s
  %v = memref.load %s[%c0] : !s
  memref.store %v, %out[%t] : !g
  gpu.return
}

// What one invocation wrote, all read: they agree on the branch.
// CHECK-LABEL: gpu.func @flag_of_one
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.load
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.load
gpu.func @flag_of_one(%in: !g {llvm.noalias}, %out: !g {llvm.noalias})
    workgroup(%fl: memref<1xi1, #gpu.address_space<workgroup>>, %s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %f0 = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %v = memref.load %in[%t] : !g
  %z = arith.cmpi eq, %t, %c0 : index
  scf.if %z {
    %q = arith.cmpf ogt, %v, %f0 : f32
    memref.store %q, %fl[%c0] : memref<1xi1, #gpu.address_space<workgroup>>
  }
  %p = memref.load %fl[%c0] : memref<1xi1, #gpu.address_space<workgroup>>
  scf.if %p {
    memref.store %f0, %s[%t] : !s
    %i = arith.subi %c63, %t : index
    %y = memref.load %s[%i] : !s
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}

// A halo that the first and the last invocation fill.
// CHECK-LABEL: gpu.func @halo
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.load
gpu.func @halo(%in: memref<258xf32> {llvm.noalias}, %out: !g256 {llvm.noalias})
    workgroup(%s: memref<66xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #four} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %c65 = arith.constant 65 : index
  %b = gpu.block_id x
  %b0 = arith.muli %b, %c64 : index
  %g = arith.addi %b0, %t : index
  %g1 = arith.addi %g, %c1 : index
  %t1 = arith.addi %t, %c1 : index
  %t2 = arith.addi %t, %c2 : index
  %v = memref.load %in[%g1] : memref<258xf32>
  memref.store %v, %s[%t1] : memref<66xf32, #gpu.address_space<workgroup>>
  %p = arith.cmpi eq, %t, %c0 : index
  scf.if %p {
    %l = memref.load %in[%b0] : memref<258xf32>
    memref.store %l, %s[%c0] : memref<66xf32, #gpu.address_space<workgroup>>
  }
  %p2 = arith.cmpi eq, %t, %c63 : index
  scf.if %p2 {
    %g2 = arith.addi %g, %c2 : index
    %l = memref.load %in[%g2] : memref<258xf32>
    memref.store %l, %s[%c65] : memref<66xf32, #gpu.address_space<workgroup>>
  }
  %x = memref.load %s[%t] : memref<66xf32, #gpu.address_space<workgroup>>
  %y = memref.load %s[%t2] : memref<66xf32, #gpu.address_space<workgroup>>
  %z = arith.addf %x, %y : f32
  memref.store %z, %out[%g] : !g256
  gpu.return
}

// Gaussian elimination, step by step.
// CHECK-LABEL: gpu.func @elimination
// CHECK:      gpu.barrier
// CHECK-NEXT: scf.if
gpu.func @elimination(%A: memref<16x16xf32> {llvm.noalias}) workgroup(%s: !tile)
    kernel attributes {known_block_size = array<i32: 16, 16, 1>, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %x = gpu.thread_id x
  %y = gpu.thread_id y
  %v = memref.load %A[%y, %x] : memref<16x16xf32>
  memref.store %v, %s[%y, %x] : !tile
  scf.for %k = %c0 to %c16 step %c1 {
    %p = arith.cmpi ugt, %y, %k : index
    %q = arith.cmpi ugt, %x, %k : index
    %pq = arith.andi %p, %q : i1
    scf.if %pq {
      %a = memref.load %s[%y, %k] : !tile
      %b = memref.load %s[%k, %x] : !tile
      %c = memref.load %s[%y, %x] : !tile
      %m = arith.mulf %a, %b : f32
      %d = arith.subf %c, %m : f32
      memref.store %d, %s[%y, %x] : !tile
    }
  }
  %w = memref.load %s[%y, %x] : !tile
  memref.store %w, %A[%y, %x] : memref<16x16xf32>
  gpu.return
}

// A reinterpret_cast counts from the base of the whole buffer, not from its operand.
// CHECK-LABEL: gpu.func @reinterpreted_subview
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.load
gpu.func @reinterpreted_subview(%in: !g {llvm.noalias}, %out: !g {llvm.noalias})
    workgroup(%s: !pair)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c63 = arith.constant 63 : index
  %f0 = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %r = arith.subi %c63, %t : index
  %hi = memref.subview %s[64][64][1] : !pair to !high
  %z = memref.reinterpret_cast %hi to offset: [0], sizes: [64], strides: [1] : !high to !s
  memref.store %f0, %s[%t] : !pair
  %x = memref.load %z[%r] : !s
  memref.store %x, %out[%t] : !g
  gpu.return
}

// So these two share nothing.
// CHECK-LABEL: gpu.func @reinterpreted_subview_apart
gpu.func @reinterpreted_subview_apart(%in: !g {llvm.noalias}, %out: !g {llvm.noalias})
    workgroup(%s: !pair)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c63 = arith.constant 63 : index
  %f0 = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %r = arith.subi %c63, %t : index
  %hi = memref.subview %s[64][64][1] : !pair to !high
  %z = memref.reinterpret_cast %hi to offset: [0], sizes: [64], strides: [1] : !high to !s
  memref.store %f0, %hi[%t] : !high
  %x = memref.load %z[%r] : !s
  memref.store %x, %out[%t] : !g
  gpu.return
}

// The last byte of one view is the first of the other, of another invocation.
// CHECK-LABEL: gpu.func @one_byte_shared
// CHECK:      gpu.barrier
// CHECK-NEXT: memref.load
gpu.func @one_byte_shared(%out: memref<64xi8> {llvm.noalias}) workgroup(%s: !arena)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %c255 = arith.constant 255 : index
  %a = memref.view %s[%c0][] : !arena to !s
  %b = memref.view %s[%c255][] : !arena to !bytes
  memref.store %f0, %a[%t] : !s
  %x = memref.load %b[%t] : !bytes
  memref.store %x, %out[%t] : memref<64xi8>
  gpu.return
}

// The same byte, but it is of one invocation.
// CHECK-LABEL: gpu.func @one_byte_of_one
gpu.func @one_byte_of_one(%out: memref<64xi8> {llvm.noalias}) workgroup(%s: !arena)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %f0 = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %c255 = arith.constant 255 : index
  %r = arith.subi %c63, %t : index
  %a = memref.view %s[%c0][] : !arena to !s
  %b = memref.view %s[%c255][] : !arena to !bytes
  memref.store %f0, %a[%t] : !s
  %x = memref.load %b[%r] : !bytes
  memref.store %x, %out[%t] : memref<64xi8>
  gpu.return
}

// The guard also keeps out what is negative.
// CHECK-LABEL: gpu.func @unsigned_guard
// CHECK:      gpu.barrier
// CHECK-NEXT: scf.if
gpu.func @unsigned_guard(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %f0 = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %c40 = arith.constant 40 : index
  %c24 = arith.constant 24 : index
  %d = arith.subi %t, %c40 : index
  %p = arith.cmpi ult, %d, %c24 : index
  memref.store %f0, %s[%t] : !s
  scf.if %p {
    %y = memref.load %s[%d] : !s
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}

// Columns are summed, then rows overwritten.
// CHECK-LABEL: gpu.func @column_then_rows
// CHECK:      gpu.barrier
// CHECK-NEXT: scf.for
gpu.func @column_then_rows(%dy: !matrix {llvm.noalias}, %sum: !g {llvm.noalias})
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %f0 = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %z = scf.for %i = %c0 to %c64 step %c1 iter_args(%x = %f0) -> f32 {
    %v = memref.load %dy[%i, %t] : !matrix
    %y = arith.addf %x, %v : f32
    scf.yield %y : f32
  }
  memref.store %z, %sum[%t] : !g
  scf.for %i = %c0 to %c64 step %c1 {
    memref.store %f0, %dy[%t, %i] : !matrix
  }
  gpu.return
}

// Its twin overwrites the column it read.
// CHECK-LABEL: gpu.func @column_then_column
gpu.func @column_then_column(%dy: !matrix {llvm.noalias}, %sum: !g {llvm.noalias})
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %f0 = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %z = scf.for %i = %c0 to %c64 step %c1 iter_args(%x = %f0) -> f32 {
    %v = memref.load %dy[%i, %t] : !matrix
    %y = arith.addf %x, %v : f32
    scf.yield %y : f32
  }
  memref.store %z, %sum[%t] : !g
  scf.for %i = %c0 to %c64 step %c1 {
    memref.store %f0, %dy[%i, %t] : !matrix
  }
  gpu.return
}

}
