// RUN: weir-opt %s --weir-insert-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier
// RUN: weir-opt %s --weir-insert-workgroup-barriers --weir-remove-redundant-workgroup-barriers | FileCheck %s --implicit-check-not=gpu.barrier

// Hazards around back edges.

#one = array<i32: 1, 1, 1>
#team = array<i32: 64, 1, 1>
!s = memref<64xf32, #gpu.address_space<workgroup>>
!g = memref<64xf32>
!tiles = memref<16x64xf32>

module attributes {gpu.container_module} {
gpu.module @m {

// A tile is filled, then read by all: RAW within a trip, WAR with the next.
// CHECK-LABEL: gpu.func @tiles
gpu.func @tiles(%in: !tiles {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> f32 {
    %x = memref.load %in[%k, %t] : !tiles
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.store
    memref.store %x, %s[%t] : !s
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%r] : !s
    %next = arith.addf %acc, %y : f32
    scf.yield %next : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// CHECK-LABEL: gpu.func @tiles_own_elements
gpu.func @tiles_own_elements(%in: !tiles {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> f32 {
    %x = memref.load %in[%k, %t] : !tiles
    memref.store %x, %s[%t] : !s
    %y = memref.load %s[%t] : !s
    %next = arith.addf %acc, %y : f32
    scf.yield %next : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// Only the back edge has a hazard: one barrier a trip.
// CHECK-LABEL: gpu.func @carried_only
gpu.func @carried_only(%x: f32)
    workgroup(%s: memref<17x64xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  memref.store %x, %s[%c0, %r] : memref<17x64xf32, #gpu.address_space<workgroup>>
  scf.for %k = %c0 to %c16 step %c1 {
    %next = arith.addi %k, %c1 : index
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%k, %r] : memref<17x64xf32, #gpu.address_space<workgroup>>
    %z = arith.addf %x, %y : f32
    memref.store %z, %s[%next, %t] : memref<17x64xf32, #gpu.address_space<workgroup>>
  }
  gpu.return
}

// CHECK-LABEL: gpu.func @carried_own_elements
gpu.func @carried_own_elements(%x: f32)
    workgroup(%s: memref<17x64xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  memref.store %x, %s[%c0, %t] : memref<17x64xf32, #gpu.address_space<workgroup>>
  scf.for %k = %c0 to %c16 step %c1 {
    %next = arith.addi %k, %c1 : index
    %y = memref.load %s[%k, %t] : memref<17x64xf32, #gpu.address_space<workgroup>>
    %z = arith.addf %x, %y : f32
    memref.store %z, %s[%next, %t] : memref<17x64xf32, #gpu.address_space<workgroup>>
  }
  gpu.return
}

// What is written before a loop that only reads: one barrier, outside.
// CHECK-LABEL: gpu.func @out_of_the_loop
gpu.func @out_of_the_loop(%out: !g {llvm.noalias}, %x: f32) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  memref.store %x, %s[%t] : !s
  // CHECK:      gpu.barrier
  // CHECK-NEXT: scf.for
  %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %x) -> f32 {
    %y = memref.load %s[%k] : !s
    %next = arith.addf %acc, %y : f32
    scf.yield %next : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// Every trip has a row of its own.
// CHECK-LABEL: gpu.func @row_per_trip
gpu.func @row_per_trip(%out: !g {llvm.noalias}, %x: f32)
    workgroup(%s: memref<16x64xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %r = arith.subi %c63, %t : index
  %sum = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %x) -> f32 {
    memref.store %acc, %s[%k, %t] : memref<16x64xf32, #gpu.address_space<workgroup>>
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.load
    %y = memref.load %s[%k, %r] : memref<16x64xf32, #gpu.address_space<workgroup>>
    %next = arith.addf %acc, %y : f32
    scf.yield %next : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// The inner loop reads what the outer one wrote.
// CHECK-LABEL: gpu.func @nested
gpu.func @nested(%in: !tiles {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> f32 {
    %x = memref.load %in[%k, %t] : !tiles
    // CHECK:      gpu.barrier
    // CHECK-NEXT: memref.store
    memref.store %x, %s[%t] : !s
    // CHECK:      gpu.barrier
    // CHECK-NEXT: scf.for
    %row = scf.for %j = %c0 to %c64 step %c1 iter_args(%inner = %acc) -> f32 {
      %y = memref.load %s[%j] : !s
      %next = arith.addf %inner, %y : f32
      scf.yield %next : f32
    }
    scf.yield %row : f32
  }
  memref.store %sum, %out[%t] : !g
  gpu.return
}

// The workgroup's stride: invocation t owns t, t + 64, ...
// CHECK-LABEL: gpu.func @strided_fill
gpu.func @strided_fill(%out: memref<256xf32> {llvm.noalias}, %x: f32)
    workgroup(%s: memref<256xf32, #gpu.address_space<workgroup>>)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  %c64 = arith.constant 64 : index
  %c255 = arith.constant 255 : index
  %c256 = arith.constant 256 : index
  scf.for %i = %t to %c256 step %c64 {
    memref.store %x, %s[%i] : memref<256xf32, #gpu.address_space<workgroup>>
  }
  scf.for %i = %t to %c256 step %c64 {
    %y = memref.load %s[%i] : memref<256xf32, #gpu.address_space<workgroup>>
    memref.store %y, %out[%i] : memref<256xf32>
  }
  // CHECK:      gpu.barrier
  // CHECK-NEXT: scf.for
  scf.for %i = %t to %c256 step %c64 {
    %j = arith.subi %c255, %i : index
    memref.store %x, %s[%j] : memref<256xf32, #gpu.address_space<workgroup>>
  }
  gpu.return
}

// affine loops count as well.
// CHECK-LABEL: gpu.func @affine_loops
gpu.func @affine_loops(%in: !tiles {llvm.noalias}, %out: !g {llvm.noalias}) workgroup(%s: !s)
    kernel attributes {known_block_size = #team, known_grid_size = #one} {
  %t = gpu.thread_id x
  affine.for %k = 0 to 16 {
    %x = affine.load %in[%k, symbol(%t)] : !tiles
    // CHECK:      gpu.barrier
    // CHECK-NEXT: affine.store
    affine.store %x, %s[symbol(%t)] : !s
    // CHECK-NEXT: gpu.barrier
    // CHECK-NEXT: affine.load
    %y = affine.load %s[63 - symbol(%t)] : !s
    affine.store %y, %out[symbol(%t)] : !g
  }
  gpu.return
}
}
}
