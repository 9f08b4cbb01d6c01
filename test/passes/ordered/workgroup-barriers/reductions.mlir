// RUN: weir-opt %s --weir-insert-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier
// RUN: weir-opt %s --weir-insert-workgroup-barriers --weir-remove-redundant-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier

// Trees, scans, scratch that is used again, columns.

#one = array<i32: 1, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<64xf32, #gpu.address_space<workgroup>>
!g = memref<64xf32>

module attributes {gpu.container_module} {
gpu.module @m {

// One barrier a step: a step reads the upper half, which no one writes then.
// CHECK-LABEL: gpu.func @tree
gpu.func @tree(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %x = memref.load %in[%t] : !g
  memref.store %x, %s[%t] : !s
  // CHECK:     scf.while
  %d = scf.while (%d = %c32) : (index) -> index {
    // CHECK: gpu.barrier
    %go = arith.cmpi ugt, %d, %c0 : index
    scf.condition(%go) %d : index
  } do {
  ^bb0(%d: index):
    %low = arith.cmpi ult, %t, %d : index
    scf.if %low {
      %o = arith.addi %t, %d : index
      %a = memref.load %s[%t] : !s
      %b = memref.load %s[%o] : !s
      %c = arith.addf %a, %b : f32
      memref.store %c, %s[%t] : !s
    }
    %half = arith.shrui %d, %c1 : index
    scf.yield %half : index
  }
  %y = memref.load %s[%c0] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// The same by a counted loop and a shift.
// CHECK-LABEL: gpu.func @tree_counted
gpu.func @tree_counted(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c32 = arith.constant 32 : index
  %x = memref.load %in[%t] : !g
  memref.store %x, %s[%t] : !s
  // CHECK: scf.for
  scf.for %k = %c0 to %c6 step %c1 {
    // CHECK: gpu.barrier
    %d = arith.shrui %c32, %k : index
    %low = arith.cmpi ult, %t, %d : index
    scf.if %low {
      %o = arith.addi %t, %d : index
      %a = memref.load %s[%t] : !s
      %b = memref.load %s[%o] : !s
      %c = arith.addf %a, %b : f32
      memref.store %c, %s[%t] : !s
    }
  }
  // CHECK: gpu.barrier
  %y = memref.load %s[%c0] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// Only the first reads the result, which it wrote itself.
// CHECK-LABEL: gpu.func @tree_for_the_first
gpu.func @tree_for_the_first(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c32 = arith.constant 32 : index
  %x = memref.load %in[%t] : !g
  memref.store %x, %s[%t] : !s
  // CHECK: scf.for
  scf.for %k = %c0 to %c6 step %c1 {
    // CHECK: gpu.barrier
    %d = arith.shrui %c32, %k : index
    %low = arith.cmpi ult, %t, %d : index
    scf.if %low {
      %o = arith.addi %t, %d : index
      %a = memref.load %s[%t] : !s
      %b = memref.load %s[%o] : !s
      %c = arith.addf %a, %b : f32
      memref.store %c, %s[%t] : !s
    }
  }
  %first = arith.cmpi eq, %t, %c0 : index
  scf.if %first {
    %y = memref.load %s[%c0] : !s
    memref.store %y, %out[%c0] : !g
  }
  gpu.return
}

// An inclusive scan in place: all must have read before anyone writes.
// CHECK-LABEL: gpu.func @scan
gpu.func @scan(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant 0.0 : f32
  %x = memref.load %in[%t] : !g
  memref.store %x, %s[%t] : !s
  // CHECK: scf.for
  scf.for %k = %c0 to %c6 step %c1 {
    %d = arith.shli %c1, %k : index
    %has = arith.cmpi uge, %t, %d : index
    // CHECK:      gpu.barrier
    // CHECK-NEXT: scf.if
    %b = scf.if %has -> f32 {
      %o = arith.subi %t, %d : index
      %b = memref.load %s[%o] : !s
      scf.yield %b : f32
    } else {
      scf.yield %zero : f32
    }
    %a = memref.load %s[%t] : !s
    %c = arith.addf %a, %b : f32
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.store
    memref.store %c, %s[%t] : !s
  }
  %y = memref.load %s[%t] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// Between two buffers one barrier a step is enough.
// CHECK-LABEL: gpu.func @scan_between_two
gpu.func @scan_between_two(%in: !g {llvm.noalias}, %out: !g {llvm.noalias})
    workgroup(%s: memref<2x64xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %x = memref.load %in[%t] : !g
  memref.store %x, %s[%c0, %t] : memref<2x64xf32, #gpu.address_space<workgroup>>
  // CHECK: scf.for
  scf.for %k = %c0 to %c6 step %c1 {
    %d = arith.shli %c1, %k : index
    %from = arith.remui %k, %c2 : index
    %to = arith.subi %c1, %from : index
    %has = arith.cmpi uge, %t, %d : index
    // CHECK: gpu.barrier
    %a = memref.load %s[%from, %t] : memref<2x64xf32, #gpu.address_space<workgroup>>
    scf.if %has {
      %o = arith.subi %t, %d : index
      %b = memref.load %s[%from, %o] : memref<2x64xf32, #gpu.address_space<workgroup>>
      %c = arith.addf %a, %b : f32
      memref.store %c, %s[%to, %t] : memref<2x64xf32, #gpu.address_space<workgroup>>
    } else {
      memref.store %a, %s[%to, %t] : memref<2x64xf32, #gpu.address_space<workgroup>>
    }
  }
  %y = memref.load %s[%c0, %t] : memref<2x64xf32, #gpu.address_space<workgroup>>
  memref.store %y, %out[%t] : !g
  gpu.return
}

// Mean, then variance, through one scratch: RAW, WAR, RAW.
// CHECK-LABEL: gpu.func @mean_and_variance
gpu.func @mean_and_variance(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %x = memref.load %in[%t] : !g
  memref.store %x, %s[%t] : !s
  // CHECK:      gpu.barrier
  // CHECK-NEXT: scf.for
  %sum = scf.for %i = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> f32 {
    %v = memref.load %s[%i] : !s
    %n = arith.addf %acc, %v : f32
    scf.yield %n : f32
  }
  %d = arith.subf %x, %sum : f32
  %q = arith.mulf %d, %d : f32
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.store
  memref.store %q, %s[%t] : !s
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: scf.for
  %var = scf.for %i = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> f32 {
    %v = memref.load %s[%i] : !s
    %n = arith.addf %acc, %v : f32
    scf.yield %n : f32
  }
  %y = arith.divf %d, %var : f32
  memref.store %y, %out[%t] : !g
  gpu.return
}

// With scratch of its own the second needs no WAR barrier.
// CHECK-LABEL: gpu.func @mean_and_variance_apart
gpu.func @mean_and_variance_apart(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s, %s2: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %x = memref.load %in[%t] : !g
  memref.store %x, %s[%t] : !s
  // CHECK:      gpu.barrier
  // CHECK-NEXT: scf.for
  %sum = scf.for %i = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> f32 {
    %v = memref.load %s[%i] : !s
    %n = arith.addf %acc, %v : f32
    scf.yield %n : f32
  }
  %d = arith.subf %x, %sum : f32
  %q = arith.mulf %d, %d : f32
  memref.store %q, %s2[%t] : !s
  // CHECK:      gpu.barrier
  // CHECK-NEXT: scf.for
  %var = scf.for %i = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> f32 {
    %v = memref.load %s2[%i] : !s
    %n = arith.addf %acc, %v : f32
    scf.yield %n : f32
  }
  %y = arith.divf %d, %var : f32
  memref.store %y, %out[%t] : !g
  gpu.return
}

// The first invocation leaves the mean where all read it; rows follow each other.
// CHECK-LABEL: gpu.func @mean_of_rows
gpu.func @mean_of_rows(%in: memref<8x64xf32> {llvm.noalias}, %out: memref<8x64xf32> {llvm.noalias})
    workgroup(%s: !s, %mean: memref<1xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %first = arith.cmpi eq, %t, %c0 : index
  scf.for %r = %c0 to %c8 step %c1 {
    %x = memref.load %in[%r, %t] : memref<8x64xf32>
    // The first must have read the row before.
    // CHECK:      memref.store
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: scf.if
    memref.store %x, %s[%t] : !s
    scf.if %first {
      %sum = scf.for %i = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> f32 {
        %v = memref.load %s[%i] : !s
        %n = arith.addf %acc, %v : f32
        scf.yield %n : f32
      }
      memref.store %sum, %mean[%c0] : memref<1xf32, #gpu.address_space<workgroup>>
    }
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %m = memref.load %mean[%c0] : memref<1xf32, #gpu.address_space<workgroup>>
    %d = arith.subf %x, %m : f32
    memref.store %d, %out[%r, %t] : memref<8x64xf32>
  }
  gpu.return
}

// Columns of a tile are summed; the tile is then filled again: WAR.
// CHECK-LABEL: gpu.func @columns
gpu.func @columns(%in: memref<4x16x16xf32> {llvm.noalias}, %out: memref<4x16xf32> {llvm.noalias})
    workgroup(%s: memref<16x16xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = array<i32: 16, 16, 1>, known_grid_size = #one} {
  %tx = gpu.thread_id x
  %ty = gpu.thread_id y
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %first = arith.cmpi eq, %ty, %c0 : index
  scf.for %k = %c0 to %c4 step %c1 {
    %x = memref.load %in[%k, %ty, %tx] : memref<4x16x16xf32>
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.store
    memref.store %x, %s[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: scf.if
    scf.if %first {
      %sum = scf.for %i = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> f32 {
        %v = memref.load %s[%i, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
        %n = arith.addf %acc, %v : f32
        scf.yield %n : f32
      }
      memref.store %sum, %out[%k, %tx] : memref<4x16xf32>
    }
  }
  gpu.return
}

// One invocation a column: nobody else comes near.
// CHECK-LABEL: gpu.func @own_columns
gpu.func @own_columns(%in: memref<16x64xf32> {llvm.noalias}, %out: !g {llvm.noalias})
    workgroup(%s: memref<16x64xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c16 step %c1 {
    %x = memref.load %in[%i, %t] : memref<16x64xf32>
    memref.store %x, %s[%i, %t] : memref<16x64xf32, #gpu.address_space<workgroup>>
  }
  %sum = scf.for %i = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> f32 {
    %v = memref.load %s[%i, %t] : memref<16x64xf32, #gpu.address_space<workgroup>>
    %n = arith.addf %acc, %v : f32
    scf.yield %n : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// A column sum of dy in global memory, then dx over dy: background case 1 in one kernel.
// CHECK-LABEL: gpu.func @in_place_after_columns
gpu.func @in_place_after_columns(%dy: memref<64x64xf32> {llvm.noalias}, %db: !g {llvm.noalias}) kernel
    attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> f32 {
    %v = memref.load %dy[%i, %t] : memref<64x64xf32>
    %n = arith.addf %acc, %v : f32
    scf.yield %n : f32
  }
  memref.store %sum, %db[%t] : !g
  // CHECK:      gpu.barrier
  // CHECK-NEXT: scf.for
  scf.for %j = %c0 to %c64 step %c1 {
    %v = memref.load %dy[%t, %j] : memref<64x64xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %dy[%t, %j] : memref<64x64xf32>
  }
  gpu.return
}

// A matrix tile, two of them, and a product.
// CHECK-LABEL: gpu.func @matmul
gpu.func @matmul(%a: memref<16x64xf32> {llvm.noalias}, %b: memref<64x16xf32> {llvm.noalias},
                 %c: memref<16x16xf32> {llvm.noalias})
    workgroup(%sa: memref<16x16xf32, #gpu.address_space<workgroup>>,
              %sb: memref<16x16xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = array<i32: 16, 16, 1>, known_grid_size = #one} {
  %tx = gpu.thread_id x
  %ty = gpu.thread_id y
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %zero) -> f32 {
    %ka = arith.addi %k, %tx : index
    %kb = arith.addi %k, %ty : index
    %x = memref.load %a[%ty, %ka] : memref<16x64xf32>
    %y = memref.load %b[%kb, %tx] : memref<64x16xf32>
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.store
    memref.store %x, %sa[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
    memref.store %y, %sb[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
    // CHECK:      gpu.barrier
    // CHECK-NEXT: scf.for
    %part = scf.for %i = %c0 to %c16 step %c1 iter_args(%in = %acc) -> f32 {
      %u = memref.load %sa[%ty, %i] : memref<16x16xf32, #gpu.address_space<workgroup>>
      %v = memref.load %sb[%i, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %in, %p : f32
      scf.yield %n : f32
    }
    scf.yield %part : f32
  }
  memref.store %sum, %c[%ty, %tx] : memref<16x16xf32>
  gpu.return
}

// A transpose through a padded tile.
// CHECK-LABEL: gpu.func @transpose
gpu.func @transpose(%a: memref<64x64xf32> {llvm.noalias}, %b: memref<64x64xf32> {llvm.noalias})
    workgroup(%s: memref<16x17xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = array<i32: 16, 16, 1>, known_grid_size = array<i32: 4, 4, 1>} {
  %tx = gpu.thread_id x
  %ty = gpu.thread_id y
  %bx = gpu.block_id x
  %by = gpu.block_id y
  %i = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%by, %ty)
  %j = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%bx, %tx)
  %x = memref.load %a[%i, %j] : memref<64x64xf32>
  memref.store %x, %s[%ty, %tx] : memref<16x17xf32, #gpu.address_space<workgroup>>
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %s[%tx, %ty] : memref<16x17xf32, #gpu.address_space<workgroup>>
  %k = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%bx, %ty)
  %l = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%by, %tx)
  memref.store %y, %b[%k, %l] : memref<64x64xf32>
  gpu.return
}
}
}
