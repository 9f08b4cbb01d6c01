// RUN: weir-opt %s --weir-insert-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier
// RUN: weir-opt %s --weir-insert-workgroup-barriers --weir-remove-redundant-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier

// Arenas cut by views, arguments that may be the same memory, atomics.

#one = array<i32: 1, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<64xf32, #gpu.address_space<workgroup>>
!arena = memref<1024xi8, #gpu.address_space<workgroup>>
!g = memref<64xf32>

module attributes {gpu.container_module} {
gpu.module @m {

// Two views of one arena, apart.
// CHECK-LABEL: gpu.func @arena_apart
gpu.func @arena_apart(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%arena: !arena)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %c256 = arith.constant 256 : index
  %r = arith.subi %c63, %t : index
  %a = memref.view %arena[%c0][] : !arena to !s
  %b = memref.view %arena[%c256][] : !arena to !s
  %x = memref.load %in[%t] : !g
  memref.store %x, %a[%t] : !s
  memref.store %x, %b[%r] : !s
  %y = memref.load %a[%t] : !s
  %z = memref.load %b[%r] : !s
  %w = arith.addf %y, %z : f32
  memref.store %w, %out[%t] : !g
  gpu.return
}

// They overlap by half: the second's begin is the first's end.
// CHECK-LABEL: gpu.func @arena_overlap
gpu.func @arena_overlap(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%arena: !arena)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %a = memref.view %arena[%c0][] : !arena to !s
  %b = memref.view %arena[%c128][] : !arena to !s
  %x = memref.load %in[%t] : !g
  memref.store %x, %a[%t] : !s
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.store
  memref.store %x, %b[%t] : !s
  %y = memref.load %b[%t] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// A slot's second value comes when all have read the first.
// CHECK-LABEL: gpu.func @arena_reused
gpu.func @arena_reused(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%arena: !arena)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %a = memref.view %arena[%c0][] : !arena to !s
  %b = memref.view %arena[%c0][] : !arena to memref<64xi32, #gpu.address_space<workgroup>>
  %x = memref.load %in[%t] : !g
  memref.store %x, %a[%t] : !s
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %a[%r] : !s
  %i = arith.fptosi %y : f32 to i32
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.store
  memref.store %i, %b[%t] : memref<64xi32, #gpu.address_space<workgroup>>
  %j = memref.load %b[%t] : memref<64xi32, #gpu.address_space<workgroup>>
  %z = arith.sitofp %j : i32 to f32
  memref.store %z, %out[%t] : !g
  gpu.return
}

// Elements of another width are not the own ones.
// CHECK-LABEL: gpu.func @arena_other_width
gpu.func @arena_other_width(%out: memref<64xi64> {llvm.noalias}, %x: i32) workgroup(%arena: !arena)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %a = memref.view %arena[%c0][] : !arena to memref<128xi32, #gpu.address_space<workgroup>>
  %b = memref.view %arena[%c0][] : !arena to memref<64xi64, #gpu.address_space<workgroup>>
  memref.store %x, %a[%t] : memref<128xi32, #gpu.address_space<workgroup>>
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %b[%t] : memref<64xi64, #gpu.address_space<workgroup>>
  memref.store %y, %out[%t] : memref<64xi64>
  gpu.return
}

// A row each, cut by subview, its elements in any order; then a column each.
// CHECK-LABEL: gpu.func @subviews
gpu.func @subviews(%out: memref<16xf32> {llvm.noalias}, %x: f32)
    workgroup(%s: memref<16x16xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = array<i32: 16, 1, 1>, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c16 = arith.constant 16 : index
  %row = memref.subview %s[%t, 0] [1, 16] [1, 1]
      : memref<16x16xf32, #gpu.address_space<workgroup>> to memref<16xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>
  %column = memref.subview %s[0, %t] [16, 1] [1, 1]
      : memref<16x16xf32, #gpu.address_space<workgroup>> to memref<16xf32, strided<[16], offset: ?>, #gpu.address_space<workgroup>>
  scf.for %i = %c0 to %c16 step %c1 {
    memref.store %x, %row[%i] : memref<16xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>
  }
  %y = memref.load %row[%c3] : memref<16xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %z = memref.load %column[%c3] : memref<16xf32, strided<[16], offset: ?>, #gpu.address_space<workgroup>>
  %w = arith.addf %y, %z : f32
  memref.store %w, %out[%t] : memref<16xf32>
  gpu.return
}

// Arguments may be one memory.
// CHECK-LABEL: gpu.func @arguments
gpu.func @arguments(%a: !g, %b: !g) kernel
    attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %x = memref.load %a[%t] : !g
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.store
  memref.store %x, %b[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @one_is_noalias
gpu.func @one_is_noalias(%a: !g, %b: !g {llvm.noalias}) kernel
    attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %x = memref.load %a[%t] : !g
  memref.store %x, %b[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @only_read
gpu.func @only_read(%a: !g, %b: !g, %c: !g {llvm.noalias}) kernel
    attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %x = memref.load %a[%t] : !g
  %y = memref.load %b[%t] : !g
  %z = arith.addf %x, %y : f32
  memref.store %z, %c[%t] : !g
  gpu.return
}

// One or the other argument, known or not.
// CHECK-LABEL: gpu.func @select
gpu.func @select(%a: !g {llvm.noalias}, %b: !g {llvm.noalias}, %which: i1) kernel
    attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %to = arith.select %which, %a, %b : !g
  %x = memref.load %a[%r] : !g
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.store
  memref.store %x, %to[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @select_others
gpu.func @select_others(%a: !g {llvm.noalias}, %b: !g {llvm.noalias}, %c: !g {llvm.noalias}, %which: i1) kernel
    attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %to = arith.select %which, %c, %b : !g
  %x = memref.load %a[%r] : !g
  memref.store %x, %to[%t] : !g
  gpu.return
}

// A histogram: atomics don't race with each other, but plain loads do.
// CHECK-LABEL: gpu.func @histogram
gpu.func @histogram(%in: memref<64xindex> {llvm.noalias}, %out: memref<64xi32> {llvm.noalias})
    workgroup(%h: memref<64xi32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  memref.store %zero, %h[%t] : memref<64xi32, #gpu.address_space<workgroup>>
  %bin = memref.load %in[%t] : memref<64xindex>
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.atomic_rmw
  %0 = memref.atomic_rmw addi %one, %h[%bin] : (i32, memref<64xi32, #gpu.address_space<workgroup>>) -> i32
  // CHECK-NEXT: memref.atomic_rmw
  %1 = memref.atomic_rmw addi %one, %h[%bin] : (i32, memref<64xi32, #gpu.address_space<workgroup>>) -> i32
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: memref.load
  %2 = memref.load %h[%t] : memref<64xi32, #gpu.address_space<workgroup>>
  memref.store %2, %out[%t] : memref<64xi32>
  gpu.return
}

// Everyone writes the same value to the same place; others read it.
// CHECK-LABEL: gpu.func @same_value
gpu.func @same_value(%out: !g {llvm.noalias}, %x: f32)
    workgroup(%s: memref<1xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  memref.store %x, %s[%c0] : memref<1xf32, #gpu.address_space<workgroup>>
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %s[%c0] : memref<1xf32, #gpu.address_space<workgroup>>
  memref.store %y, %out[%t] : !g
  gpu.return
}

// A copy of all by all, then used.
// CHECK-LABEL: gpu.func @copied
gpu.func @copied(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  memref.copy %in, %s : !g to !s
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %s[%t] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// An index read from memory may be any.
// CHECK-LABEL: gpu.func @gathered
gpu.func @gathered(%at: memref<64xindex> {llvm.noalias}, %out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %i = memref.load %at[%t] : memref<64xindex>
  memref.store %x, %s[%t] : !s
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %y = memref.load %s[%i] : !s
  memref.store %y, %out[%t] : !g
  gpu.return
}

// Of another workgroup's row this one sees nothing: global memory, blocks apart.
// CHECK-LABEL: gpu.func @rows_of_workgroups
gpu.func @rows_of_workgroups(%x: memref<8x64xf32>) kernel
    attributes {known_block_size = #team, known_grid_size = array<i32: 8, 1, 1>} {
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %v = memref.load %x[%b, %r] : memref<8x64xf32>
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.store
  memref.store %v, %x[%b, %t] : memref<8x64xf32>
  gpu.return
}

// Sizes of the launch are not known: block_id * block_dim + thread_id.
// CHECK-LABEL: gpu.func @global_ids
gpu.func @global_ids(%x: memref<?xf32>, %n: index) kernel {
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %d = gpu.block_dim x
  %at = arith.muli %b, %d : index
  %i = arith.addi %at, %t : index
  %in = arith.cmpi ult, %i, %n : index
  scf.if %in {
    %v = memref.load %x[%i] : memref<?xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %x[%i] : memref<?xf32>
  }
  gpu.return
}
}
}
