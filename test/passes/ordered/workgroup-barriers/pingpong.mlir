// RUN: weir-opt %s --weir-insert-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier
// RUN: weir-opt %s --weir-insert-workgroup-barriers --weir-remove-redundant-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier

// Two buffers in turn need one barrier a trip, one buffer needs two.

#one = array<i32: 1, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<64xf32, #gpu.address_space<workgroup>>
!two = memref<2x64xf32, #gpu.address_space<workgroup>>
!g = memref<64xf32>
!tiles = memref<16x64xf32>

module attributes {gpu.container_module} {
gpu.module @m {

// CHECK-LABEL: gpu.func @by_index
gpu.func @by_index(%in: !tiles {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !two)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> f32 {
    %b = arith.remui %k, %c2 : index
    %x = memref.load %in[%k, %t] : !tiles
    memref.store %x, %s[%b, %t] : !two
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%b, %r] : !two
    %next = arith.addf %acc, %y : f32
    scf.yield %next : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// By mistake always the first.
// CHECK-LABEL: gpu.func @by_wrong_index
gpu.func @by_wrong_index(%in: !tiles {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !two)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %c32 step %c2 iter_args(%acc = %zero) -> f32 {
    %b = arith.remui %k, %c2 : index
    %i = arith.divui %k, %c2 : index
    %x = memref.load %in[%i, %t] : !tiles
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.store
    memref.store %x, %s[%b, %t] : !two
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%b, %r] : !two
    %next = arith.addf %acc, %y : f32
    scf.yield %next : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// A flag that the loop carries and flips.
// CHECK-LABEL: gpu.func @by_flag
gpu.func @by_flag(%in: !tiles {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !two)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %zero = arith.constant 0.0 : f32
  %sum, %last = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %zero, %b = %c0) -> (f32, index) {
    %x = memref.load %in[%k, %t] : !tiles
    memref.store %x, %s[%b, %t] : !two
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%b, %r] : !two
    %next = arith.addf %acc, %y : f32
    %other = arith.subi %c1, %b : index
    scf.yield %next, %other : f32, index
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// Two buffers that the loop swaps: a step of a stencil reads one, writes the other.
// CHECK-LABEL: gpu.func @swapped
gpu.func @swapped(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %x = memref.load %in[%t] : !g
  memref.store %x, %a[%t] : !s
  %from, %to = scf.for %k = %c0 to %c16 step %c1 iter_args(%p = %a, %q = %b) -> (!s, !s) {
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %p[%r] : !s
    memref.store %y, %q[%t] : !s
    scf.yield %q, %p : !s, !s
  }
  // CHECK:      gpu.barrier
  // CHECK-NEXT: memref.load
  %z = memref.load %from[%r] : !s
  memref.store %z, %out[%t] : !g
  gpu.return
}

// Not swapped: the stencil reads what it writes.
// CHECK-LABEL: gpu.func @not_swapped
gpu.func @not_swapped(%in: !g {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %x = memref.load %in[%t] : !g
  memref.store %x, %a[%t] : !s
  scf.for %k = %c0 to %c16 step %c1 {
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %a[%r] : !s
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.store
    memref.store %y, %a[%t] : !s
  }
  %z = memref.load %a[%t] : !s
  memref.store %z, %out[%t] : !g
  gpu.return
}

// Chosen by the parity of the trip.
// CHECK-LABEL: gpu.func @selected
gpu.func @selected(%in: !tiles {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%a: !s, %b: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> f32 {
    %odd = arith.remui %k, %c2 : index
    %even = arith.cmpi eq, %odd, %c0 : index
    %s = arith.select %even, %a, %b : !s
    %x = memref.load %in[%k, %t] : !tiles
    memref.store %x, %s[%t] : !s
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%r] : !s
    %next = arith.addf %acc, %y : f32
    scf.yield %next : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// Halves of one buffer, by an offset that is chosen.
// CHECK-LABEL: gpu.func @selected_offset
gpu.func @selected_offset(%in: !tiles {llvm.noalias}, %out: !g {llvm.noalias})
    workgroup(%s: memref<128xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %r = arith.subi %c63, %t : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> f32 {
    %odd = arith.remui %k, %c2 : index
    %even = arith.cmpi eq, %odd, %c0 : index
    %base = arith.select %even, %c0, %c64 : index
    %i = arith.addi %base, %t : index
    %j = arith.addi %base, %r : index
    %x = memref.load %in[%k, %t] : !tiles
    memref.store %x, %s[%i] : memref<128xf32, #gpu.address_space<workgroup>>
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%j] : memref<128xf32, #gpu.address_space<workgroup>>
    %next = arith.addf %acc, %y : f32
    scf.yield %next : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// The next tile is fetched while this one is used.
// CHECK-LABEL: gpu.func @prefetched
gpu.func @prefetched(%in: memref<17x64xf32> {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !two)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %zero = arith.constant 0.0 : f32
  %x0 = memref.load %in[%c0, %t] : memref<17x64xf32>
  memref.store %x0, %s[%c0, %t] : !two
  %sum = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> f32 {
    %n = arith.addi %k, %c1 : index
    %b = arith.remui %k, %c2 : index
    %other = arith.remui %n, %c2 : index
    %x = memref.load %in[%n, %t] : memref<17x64xf32>
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.store
    memref.store %x, %s[%other, %t] : !two
    %y = memref.load %s[%b, %r] : !two
    %next = arith.addf %acc, %y : f32
    scf.yield %next : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}
}
}
