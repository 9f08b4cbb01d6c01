// RUN: weir-opt %s --weir-insert-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier
// RUN: weir-opt %s --weir-insert-workgroup-barriers --weir-remove-redundant-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier

// What kernels of others look like, and how many barriers each needs.

!s = memref<64xf32, #gpu.address_space<workgroup>>
!b = memref<1024xf32, #gpu.address_space<workgroup>>
!g = memref<64xf32>
!tiles = memref<16x64xf32>
module attributes {gpu.container_module} {
gpu.module @m {
memref.global "private" @scratch : !s

// One of two buffers, by the parity of the trip.
// CHECK-LABEL: gpu.func @selected(
// CHECK-COUNT-1: gpu.barrier
gpu.func @selected(%out: !g {llvm.noalias}, %x: f32) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  scf.for %k = %c0 to %c16 step %c1 {
    %odd = arith.remui %k, %c2 : index
    %even = arith.cmpi eq, %odd, %c0 : index
    %p = arith.select %even, %a, %b : !s
    memref.store %x, %p[%t] : !s
    %y = memref.load %p[%r] : !s
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}

// However many trips.
// CHECK-LABEL: gpu.func @selected_dyn(
// CHECK-COUNT-1: gpu.barrier
gpu.func @selected_dyn(%out: !g {llvm.noalias}, %n: index, %x: f32) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  scf.for %k = %c0 to %n step %c1 {
    %odd = arith.remui %k, %c2 : index
    %even = arith.cmpi eq, %odd, %c0 : index
    %p = arith.select %even, %a, %b : !s
    memref.store %x, %p[%t] : !s
    %y = memref.load %p[%r] : !s
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}

// Halves of one buffer, by an offset that is chosen.
// CHECK-LABEL: gpu.func @selected_offset(
// CHECK-COUNT-1: gpu.barrier
gpu.func @selected_offset(%out: !g {llvm.noalias}, %n: index, %x: f32) workgroup(%s: memref<128xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %r = arith.subi %c63, %t : index
  scf.for %k = %c0 to %n step %c1 {
    %odd = arith.remui %k, %c2 : index
    %even = arith.cmpi eq, %odd, %c0 : index
    %base = arith.select %even, %c0, %c64 : index
    %i = arith.addi %base, %t : index
    %j = arith.addi %base, %r : index
    memref.store %x, %s[%i] : memref<128xf32, #gpu.address_space<workgroup>>
    %y = memref.load %s[%j] : memref<128xf32, #gpu.address_space<workgroup>>
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}

// The same with known trips.
// CHECK-LABEL: gpu.func @selected_offset_const(
// CHECK-COUNT-1: gpu.barrier
gpu.func @selected_offset_const(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: memref<128xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %r = arith.subi %c63, %t : index
  scf.for %k = %c0 to %c16 step %c1 {
    %odd = arith.remui %k, %c2 : index
    %even = arith.cmpi eq, %odd, %c0 : index
    %base = arith.select %even, %c0, %c64 : index
    %i = arith.addi %base, %t : index
    %j = arith.addi %base, %r : index
    memref.store %x, %s[%i] : memref<128xf32, #gpu.address_space<workgroup>>
    %y = memref.load %s[%j] : memref<128xf32, #gpu.address_space<workgroup>>
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}

// Two buffers that the loop hands around, any number of times.
// CHECK-LABEL: gpu.func @swapped_dyn(
// CHECK-COUNT-2: gpu.barrier
gpu.func @swapped_dyn(%out: !g {llvm.noalias}, %n: index, %x: f32) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %a[%t] : !s
  %f, %g = scf.for %k = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (!s, !s) {
    %y = memref.load %p[%r] : !s
    memref.store %y, %q[%t] : !s
    scf.yield %q, %p : !s, !s
  }
  %z = memref.load %f[%r] : !s
  memref.store %z, %out[%t] : !g
  gpu.return
}

// Known, but many times.
// CHECK-LABEL: gpu.func @swapped_100(
// CHECK-COUNT-2: gpu.barrier
gpu.func @swapped_100(%out: !g {llvm.noalias}, %x: f32) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c100 = arith.constant 100 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %a[%t] : !s
  %f, %g = scf.for %k = %c0 to %c100 step %c1 iter_args(%p = %a, %q = %b) -> (!s, !s) {
    %y = memref.load %p[%r] : !s
    memref.store %y, %q[%t] : !s
    scf.yield %q, %p : !s, !s
  }
  %z = memref.load %f[%r] : !s
  memref.store %z, %out[%t] : !g
  gpu.return
}

// Three of them.
// CHECK-LABEL: gpu.func @rotated3_dyn(
// CHECK-COUNT-1: gpu.barrier
gpu.func @rotated3_dyn(%out: !g {llvm.noalias}, %n: index, %x: f32) workgroup(%a: !s, %b: !s, %d: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %f, %g, %h = scf.for %k = %c0 to %n step %c1 iter_args(%p = %a, %q = %b, %u = %d) -> (!s, !s, !s) {
    memref.store %x, %p[%t] : !s
    %y = memref.load %p[%r] : !s
    memref.store %y, %out[%t] : !g
    scf.yield %q, %u, %p : !s, !s, !s
  }
  gpu.return
}

// Chosen by a flag that the loop flips.
// CHECK-LABEL: gpu.func @flag_select(
// CHECK-COUNT-1: gpu.barrier
gpu.func @flag_select(%out: !g {llvm.noalias}, %n: index, %x: f32) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %true = arith.constant true
  %f = scf.for %k = %c0 to %n step %c1 iter_args(%even = %true) -> (i1) {
    %p = arith.select %even, %a, %b : !s
    memref.store %x, %p[%t] : !s
    %y = memref.load %p[%r] : !s
    memref.store %y, %out[%t] : !g
    %o = arith.xori %even, %true : i1
    scf.yield %o : i1
  }
  gpu.return
}

// The same by branches.
// CHECK-LABEL: gpu.func @flag_if(
// CHECK-COUNT-1: gpu.barrier
gpu.func @flag_if(%out: !g {llvm.noalias}, %n: index, %x: f32) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %true = arith.constant true
  %f = scf.for %k = %c0 to %n step %c1 iter_args(%even = %true) -> (i1) {
    scf.if %even {
      memref.store %x, %a[%t] : !s
    } else {
      memref.store %x, %b[%t] : !s
    }
    %p = scf.if %even -> !s {
      scf.yield %a : !s
    } else {
      scf.yield %b : !s
    }
    %y = memref.load %p[%r] : !s
    memref.store %y, %out[%t] : !g
    %o = arith.xori %even, %true : i1
    scf.yield %o : i1
  }
  gpu.return
}

// An offset loaded from memory, the same for all.
// CHECK-LABEL: gpu.func @uniform_offset(
gpu.func @uniform_offset(%at: memref<4xindex> {llvm.noalias}, %big: memref<?xf32> {llvm.noalias}, %out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %o = memref.load %at[%c0] : memref<4xindex>
  %i = arith.addi %o, %t : index
  memref.store %x, %big[%i] : memref<?xf32>
  %y = memref.load %big[%i] : memref<?xf32>
  memref.store %y, %out[%t] : !g
  gpu.return
}

// A tree over as many invocations as there are.
// CHECK-LABEL: gpu.func @tree_dyn(
// CHECK-COUNT-1: gpu.barrier
gpu.func @tree_dyn(%out: !g {llvm.noalias}, %x: f32) workgroup(%big: !b)
    kernel attributes {known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %d0 = gpu.block_dim x
  %h = arith.divui %d0, %c2 : index
  memref.store %x, %big[%t] : !b
  scf.while (%d = %h) : (index) -> index {
    %go = arith.cmpi ugt, %d, %c0 : index
    scf.condition(%go) %d : index
  } do {
  ^bb0(%d: index):
    %low = arith.cmpi ult, %t, %d : index
    scf.if %low {
      %o = arith.addi %t, %d : index
      %a = memref.load %big[%t] : !b
      %b = memref.load %big[%o] : !b
      %c = arith.addf %a, %b : f32
      memref.store %c, %big[%t] : !b
    }
    %half = arith.shrui %d, %c1 : index
    scf.yield %half : index
  }
  %y = memref.load %big[%c0] : !b
  memref.store %y, %out[%t] : !g
  gpu.return
}

// A tree in blocks.
// CHECK-LABEL: gpu.func @tree_cf(
// CHECK-COUNT-1: gpu.barrier
gpu.func @tree_cf(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  memref.store %x, %s[%t] : !s
  cf.br ^h(%c32 : index)
^h(%d: index):
  %go = arith.cmpi ugt, %d, %c0 : index
  cf.cond_br %go, ^b, ^e
^b:
  %low = arith.cmpi ult, %t, %d : index
  cf.cond_br %low, ^u, ^l
^u:
  %o = arith.addi %t, %d : index
  %a = memref.load %s[%t] : !s
  %b = memref.load %s[%o] : !s
  %c = arith.addf %a, %b : f32
  memref.store %c, %s[%t] : !s
  cf.br ^l
^l:
  %half = arith.shrui %d, %c1 : index
  cf.br ^h(%half : index)
^e:
  %y = memref.load %s[%c0] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// A stencil with a halo that the ends fill.
// CHECK-LABEL: gpu.func @stencil_halo(
// CHECK-COUNT-1: gpu.barrier
gpu.func @stencil_halo(%out: !g {llvm.noalias}, %x: f32) workgroup(%h: memref<66xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t1 = arith.addi %t, %c1 : index
  %t2 = arith.addi %t, %c2 : index
  %c65 = arith.constant 65 : index
  memref.store %x, %h[%t1] : memref<66xf32, #gpu.address_space<workgroup>>
  %f = arith.cmpi eq, %t, %c0 : index
  scf.if %f {
    memref.store %zero, %h[%c0] : memref<66xf32, #gpu.address_space<workgroup>>
  }
  %l = arith.cmpi eq, %t, %c63 : index
  scf.if %l {
    memref.store %zero, %h[%c65] : memref<66xf32, #gpu.address_space<workgroup>>
  }
  %y = memref.load %h[%t] : memref<66xf32, #gpu.address_space<workgroup>>
  %z = memref.load %h[%t2] : memref<66xf32, #gpu.address_space<workgroup>>
  %w = arith.addf %y, %z : f32
  memref.store %w, %out[%t] : !g
  gpu.return
}

// A neighbour by exclusive or.
// CHECK-LABEL: gpu.func @butterfly(
// CHECK-COUNT-2: gpu.barrier
gpu.func @butterfly(%x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %q = scf.for %k = %c0 to %c16 step %c1 iter_args(%v = %x) -> f32 {
    %o = arith.xori %t, %c1 : index
    memref.store %v, %s[%t] : !s
    %b = memref.load %s[%o] : !s
    %w = arith.addf %v, %b : f32
    scf.yield %w : f32
  }
  gpu.return
}

// The other half by exclusive or.
// CHECK-LABEL: gpu.func @xor_halves(
gpu.func @xor_halves(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: memref<128xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c64 = arith.constant 64 : index
  %o = arith.xori %t, %c64 : index
  memref.store %x, %s[%t] : memref<128xf32, #gpu.address_space<workgroup>>
  %b = memref.load %s[%o] : memref<128xf32, #gpu.address_space<workgroup>>
  memref.store %b, %out[%t] : !g
  gpu.return
}

// One partial result a subgroup.
// CHECK-LABEL: gpu.func @subgroup_partials(
// CHECK-COUNT-1: gpu.barrier
gpu.func @subgroup_partials(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %l = gpu.lane_id
  %sg = gpu.subgroup_id : index
  %f = arith.cmpi eq, %l, %c0 : index
  scf.if %f {
    memref.store %x, %s[%sg] : !s
  }
  %y = memref.load %s[%c0] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// A linear number made of two ids.
// CHECK-LABEL: gpu.func @linear_id(
// CHECK-COUNT-1: gpu.barrier
gpu.func @linear_id(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 16, 4, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %ty = gpu.thread_id y
  %m = arith.muli %ty, %c16 : index
  %lin = arith.addi %m, %t : index
  %r2 = arith.subi %c63, %lin : index
  memref.store %x, %s[%lin] : !s
  %y = memref.load %s[%r2] : !s
  memref.store %y, %out[%lin] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @linear_id_own(
gpu.func @linear_id_own(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 16, 4, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c16 = arith.constant 16 : index
  %ty = gpu.thread_id y
  %m = arith.muli %ty, %c16 : index
  %lin = arith.addi %m, %t : index
  memref.store %x, %s[%lin] : !s
  %y = memref.load %s[%lin] : !s
  memref.store %y, %out[%lin] : !g
  gpu.return
}

// vector.transfer_read and _write.
// CHECK-LABEL: gpu.func @transfer(
// CHECK-COUNT-1: gpu.barrier
gpu.func @transfer(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: memref<128xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c2 = arith.constant 2 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %zero = arith.constant 0.0 : f32
  %i = arith.muli %t, %c2 : index
  %j = arith.muli %r, %c2 : index
  %v = vector.broadcast %x : f32 to vector<2xf32>
  vector.transfer_write %v, %s[%i] {in_bounds = [true]} : vector<2xf32>, memref<128xf32, #gpu.address_space<workgroup>>
  %w = vector.transfer_read %s[%j], %zero {in_bounds = [true]} : memref<128xf32, #gpu.address_space<workgroup>>, vector<2xf32>
  %e = vector.extract %w[0] : f32 from vector<2xf32>
  memref.store %e, %out[%t] : !g
  gpu.return
}

// Workgroup memory as a global.
// CHECK-LABEL: gpu.func @global_scratch(
// CHECK-COUNT-1: gpu.barrier
gpu.func @global_scratch(%out: !g {llvm.noalias}, %x: f32)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %s = memref.get_global @scratch : !s
  memref.store %x, %s[%t] : !s
  %y = memref.load %s[%r] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// Dynamic workgroup memory, cut by views.
// CHECK-LABEL: gpu.func @dynamic_shared(
// CHECK-COUNT-1: gpu.barrier
gpu.func @dynamic_shared(%out: !g {llvm.noalias}, %x: f32)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  %c256 = arith.constant 256 : index
  %a = memref.view %d[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to !s
  %b = memref.view %d[%c256][] : memref<?xi8, #gpu.address_space<workgroup>> to !s
  memref.store %x, %a[%t] : !s
  memref.store %x, %b[%r] : !s
  %y = memref.load %a[%r] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @dynamic_shared_apart(
gpu.func @dynamic_shared_apart(%out: !g {llvm.noalias}, %x: f32)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  %c256 = arith.constant 256 : index
  %a = memref.view %d[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to !s
  %b = memref.view %d[%c256][] : memref<?xi8, #gpu.address_space<workgroup>> to !s
  memref.store %x, %a[%t] : !s
  memref.store %x, %b[%r] : !s
  %y = memref.load %a[%t] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// A tree for each of several rows.
// CHECK-LABEL: gpu.func @rows_tree(
// CHECK-COUNT-2: gpu.barrier
gpu.func @rows_tree(%in: !tiles {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c8 = arith.constant 8 : index
  scf.for %row = %c0 to %c8 step %c1 {
    %v = memref.load %in[%row, %t] : !tiles
    memref.store %v, %s[%t] : !s
    scf.while (%d = %c32) : (index) -> index {
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
  }
  gpu.return
}

// Sizes of the workgroup are not known.
// CHECK-LABEL: gpu.func @no_sizes(
// CHECK-COUNT-1: gpu.barrier
gpu.func @no_sizes(%out: !g {llvm.noalias}, %x: f32) workgroup(%big: !b)
    kernel attributes {known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c1 = arith.constant 1 : index
  %t1 = arith.addi %t, %c1 : index
  memref.store %x, %big[%t] : !b
  %y = memref.load %big[%t1] : !b
  memref.store %y, %out[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @no_sizes_own(
gpu.func @no_sizes_own(%out: !g {llvm.noalias}, %x: f32) workgroup(%big: !b)
    kernel attributes {known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  memref.store %x, %big[%t] : !b
  %y = memref.load %big[%t] : !b
  memref.store %y, %out[%t] : !g
  gpu.return
}

// A loop as long as the invocation's number, with nothing to order.
// CHECK-LABEL: gpu.func @triangular(
gpu.func @triangular(%in: !tiles {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %t step %c1 {
    %v = memref.load %in[%c0, %k] : !tiles
    memref.store %v, %out[%t] : !g
  }
  gpu.return
}

// Rows in, columns out, by affine loops.
// CHECK-LABEL: gpu.func @tile_rows_affine(
// CHECK-COUNT-2: gpu.barrier
gpu.func @tile_rows_affine(%in: !tiles {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%big: !b)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  affine.for %k = 0 to 64 step 16 {
    affine.for %i = 0 to 16 {
      %v = affine.load %in[%i, symbol(%t)] : !tiles
      affine.store %v, %big[%i * 64 + symbol(%t)] : !b
    }
    affine.for %i = 0 to 16 {
      %v = affine.load %big[symbol(%t) * 16 + %i] : !b
      affine.store %v, %out[symbol(%t)] : !g
    }
  }
  gpu.return
}

// All read all, then each writes.
// CHECK-LABEL: gpu.func @war_after_loop_const(
// CHECK-COUNT-1: gpu.barrier
gpu.func @war_after_loop_const(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %c64 step %c1 {
    %v = memref.load %s[%k] : !s
    memref.store %v, %out[%t] : !g
  }
  memref.store %x, %s[%t] : !s
  gpu.return
}

// Three stages in turn.
// CHECK-LABEL: gpu.func @multi_stage(
// CHECK-COUNT-1: gpu.barrier
gpu.func @multi_stage(%out: !g {llvm.noalias}, %n: index, %x: f32) workgroup(%m: memref<3x64xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %c3 = arith.constant 3 : index
  scf.for %k = %c0 to %n step %c1 {
    %st = arith.remui %k, %c3 : index
    memref.store %x, %m[%st, %t] : memref<3x64xf32, #gpu.address_space<workgroup>>
    %y = memref.load %m[%st, %r] : memref<3x64xf32, #gpu.address_space<workgroup>>
    memref.store %y, %out[%t] : !g
  }
  gpu.return
}

// Indices in 32 bits.
// CHECK-LABEL: gpu.func @i32_ids(
// CHECK-COUNT-1: gpu.barrier
gpu.func @i32_ids(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %ti = arith.index_cast %t : index to i32
  %c63i = arith.constant 63 : i32
  %ri = arith.subi %c63i, %ti : i32
  %r3 = arith.index_cast %ri : i32 to index
  memref.store %x, %s[%t] : !s
  %y = memref.load %s[%r3] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @i32_own(
gpu.func @i32_own(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  %t = gpu.thread_id x
  %ti = arith.index_cast %t : index to i32
  %r3 = arith.index_cast %ti : i32 to index
  memref.store %x, %s[%t] : !s
  %y = memref.load %s[%r3] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

}
}
