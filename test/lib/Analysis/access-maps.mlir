// RUN: weir-opt %s --weir-test-access-maps --allow-unregistered-dialect -o /dev/null 2>&1 | FileCheck %s

gpu.module @m {
  // CHECK: note: elementwise: read argument 0 at (workgroup.x * 64 + invocation.x) * 4 for 4
  // CHECK: note: elementwise: write argument 1 at (workgroup.x * 64 + invocation.x) * 4 for 4
  // CHECK: note: elementwise: 0 and 1: unknown in a workgroup, unknown across
  // CHECK: note: elementwise: 1 and 1: disjoint in a workgroup, disjoint across
  gpu.func @elementwise(%a: memref<1024xf32>, %b: memref<1024xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 16, 1, 1>} {
    %b0 = gpu.block_id x
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %m = arith.muli %b0, %c64 : index
    %i = arith.addi %m, %t : index
    %v = memref.load %a[%i] : memref<1024xf32>
    memref.store %v, %b[%i] : memref<1024xf32>
    gpu.return
  }
  // CHECK: note: unknown_block: read argument 0 at global.x * 4 for 4 if opaque{{[0-9]+}} - global.x - 1 >= 0
  // CHECK: note: unknown_block: write argument 0 at global.x * 4 for 4 if opaque{{[0-9]+}} - global.x - 1 >= 0
  // CHECK: note: unknown_block: 0 and 1: disjoint in a workgroup, disjoint across
  // CHECK: note: unknown_block: 1 and 1: disjoint in a workgroup, disjoint across
  gpu.func @unknown_block(%a: memref<?xf32>, %n: index) kernel {
    %b0 = gpu.block_id x
    %t = gpu.thread_id x
    %d = gpu.block_dim x
    %m = arith.muli %b0, %d : index
    %i = arith.addi %m, %t : index
    %in = arith.cmpi slt, %i, %n : index
    scf.if %in {
      %v = memref.load %a[%i] : memref<?xf32>
      memref.store %v, %a[%i] : memref<?xf32>
    }
    gpu.return
  }
  // CHECK: note: dynamic_rows: read argument 0 at [workgroup.x, invocation.x] for 1 elements
  // CHECK: note: dynamic_rows: write argument 0 at [workgroup.x, invocation.x] for 1 elements
  // CHECK: note: dynamic_rows: 0 and 1: disjoint in a workgroup, disjoint across
  // CHECK: note: dynamic_rows: 1 and 1: disjoint in a workgroup, disjoint across
  gpu.func @dynamic_rows(%a: memref<?x?xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %b0 = gpu.block_id x
    %t = gpu.thread_id x
    %v = memref.load %a[%b0, %t] : memref<?x?xf32>
    memref.store %v, %a[%b0, %t] : memref<?x?xf32>
    gpu.return
  }
  // CHECK: note: reverse: write argument 0 at invocation.x * 4 for 4
  // CHECK: note: reverse: read argument 0 at (-invocation.x + 63) * 4 for 4
  // CHECK: note: reverse: 0 and 0: disjoint in a workgroup, disjoint across
  // CHECK: note: reverse: 0 and 1: overlap in a workgroup, disjoint across
  gpu.func @reverse() workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %c63 = arith.constant 63 : index
    %r = arith.subi %c63, %t : index
    %f = arith.constant 0.0 : f32
    memref.store %f, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    %v = memref.load %s[%r] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.return
  }
  // CHECK: note: ping_pong: read argument 0 at (trip{{[0-9]+}} mod 2) * 256 + (-invocation.x + 63) * 4 for 4 if -trip{{[0-9]+}} + 7 >= 0
  // CHECK: note: ping_pong: write argument 0 at (-(trip{{[0-9]+}} mod 2) + 1) * 256 + invocation.x * 4 for 4 if -trip{{[0-9]+}} + 7 >= 0
  // CHECK: note: ping_pong: 0 and 1: overlap in a workgroup, disjoint across, disjoint in one trip, overlap from trip to trip
  // CHECK: note: ping_pong: 1 and 1: disjoint in a workgroup, disjoint across, disjoint in one trip, disjoint from trip to trip
  gpu.func @ping_pong() workgroup(%s: memref<2x64xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c63 = arith.constant 63 : index
    %r = arith.subi %c63, %t : index
    %f = arith.constant 0.0 : f32
    scf.for %k = %c0 to %c8 step %c1 iter_args(%p = %c0) -> index {
      %q = arith.subi %c1, %p : index
      %v = memref.load %s[%p, %r] : memref<2x64xf32, #gpu.address_space<workgroup>>
      memref.store %v, %s[%q, %t] : memref<2x64xf32, #gpu.address_space<workgroup>>
      scf.yield %q : index
    }
    gpu.return
  }
  // CHECK: note: blocks: read argument 0 at (invocation.x + trip{{[0-9]+}} * 4) * 4 for 4 if -(invocation.x + trip{{[0-9]+}} * 4) + 127 >= 0 perhaps
  // CHECK: note: blocks: write argument 0 at (invocation.x + trip{{[0-9]+}} * 4) * 4 for 4 if -(invocation.x + trip{{[0-9]+}} * 4) + 127 >= 0 perhaps
  // CHECK: note: blocks: 0 and 1: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: blocks: 1 and 1: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  gpu.func @blocks(%a: memref<128xf32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
    %t = gpu.thread_id x
    %c4 = arith.constant 4 : index
    %c128 = arith.constant 128 : index
    cf.br ^head(%t : index)
  ^head(%i: index):
    %more = arith.cmpi slt, %i, %c128 : index
    cf.cond_br %more, ^body, ^exit
  ^body:
    %v = memref.load %a[%i] : memref<128xf32>
    memref.store %v, %a[%i] : memref<128xf32>
    %next = arith.addi %i, %c4 : index
    cf.br ^head(%next : index)
  ^exit:
    gpu.return
  }
  func.func @helper(%a: memref<128xf32>, %i: index) {
    %f = arith.constant 0.0 : f32
    memref.store %f, %a[%i] : memref<128xf32>
    return
  }
  // CHECK: note: calls: write argument 0 at invocation.x * 4 for 4
  // CHECK: note: calls: write argument 0 at (invocation.x + 1) * 4 for 4
  // CHECK: note: calls: 0 and 0: disjoint in a workgroup, unknown across
  // CHECK: note: calls: 0 and 1: overlap in a workgroup, unknown across
  // CHECK: note: calls: 1 and 1: disjoint in a workgroup, unknown across
  gpu.func @calls(%a: memref<128xf32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
    %t = gpu.thread_id x
    %c1 = arith.constant 1 : index
    %n = arith.addi %t, %c1 : index
    func.call @helper(%a, %t) : (memref<128xf32>, index) -> ()
    func.call @helper(%a, %n) : (memref<128xf32>, index) -> ()
    gpu.return
  }
  // CHECK: note: select: write argument 0 at invocation.x * 4 for 4 if {{.*}} - 1 == 0
  // CHECK: note: select: write argument 1 at invocation.x * 4 for 4 if {{.*}} == 0
  // CHECK: note: select: 0 and 0: disjoint in a workgroup, unknown across
  // CHECK: note: select: 0 and 1: unknown in a workgroup, unknown across
  // CHECK: note: select: 1 and 1: disjoint in a workgroup, unknown across
  gpu.func @select(%a: memref<128xf32>, %b: memref<128xf32>, %c: i1) kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
    %t = gpu.thread_id x
    %s = arith.select %c, %a, %b : memref<128xf32>
    %f = arith.constant 0.0 : f32
    memref.store %f, %s[%t] : memref<128xf32>
    gpu.return
  }
  // CHECK: note: arena: read argument 0 at invocation.x * 4 for 4
  // CHECK: note: arena: write argument 0 at invocation.x * 4 + 256 for 4
  // CHECK: note: arena: write argument 0 at invocation.x * 4 for 4
  // CHECK: note: arena: 0 and 1: disjoint in a workgroup, disjoint across
  // CHECK: note: arena: 0 and 2: disjoint in a workgroup, unknown across
  // CHECK: note: arena: 1 and 1: disjoint in a workgroup, unknown across
  // CHECK: note: arena: 1 and 2: disjoint in a workgroup, disjoint across
  // CHECK: note: arena: 2 and 2: disjoint in a workgroup, unknown across
  gpu.func @arena(%bytes: memref<1024xi8>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %x = memref.view %bytes[%c0][] : memref<1024xi8> to memref<64xf32>
    %y = memref.view %bytes[%c256][] : memref<1024xi8> to memref<64xf32>
    %v = memref.load %x[%t] : memref<64xf32>
    memref.store %v, %y[%t] : memref<64xf32>
    %sub = memref.subview %x[%t] [1] [1] : memref<64xf32> to memref<1xf32, strided<[1], offset: ?>>
    memref.store %v, %sub[%c0] : memref<1xf32, strided<[1], offset: ?>>
    gpu.return
  }
  // CHECK: note: gather: read argument 1 at invocation.x * 8 for 8
  // CHECK: note: gather: read argument 0 at opaque{{[0-9]+}} * 4 for 4
  // CHECK: note: gather: write argument 0 at invocation.x * 4 for 4
  // CHECK: note: gather: 0 and 2: unknown in a workgroup, unknown across
  // CHECK: note: gather: 1 and 2: unknown in a workgroup, unknown across
  // CHECK: note: gather: 2 and 2: disjoint in a workgroup, unknown across
  gpu.func @gather(%a: memref<64xf32>, %idx: memref<64xindex>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %i = memref.load %idx[%t] : memref<64xindex>
    %v = memref.load %a[%i] : memref<64xf32>
    memref.store %v, %a[%t] : memref<64xf32>
    gpu.return
  }
  // CHECK: note: whole: read argument 0 at element{{[0-9]+}} * 32 + element{{[0-9]+}} * 4 for 4
  // CHECK: note: whole: write argument 1 at element{{[0-9]+}} * 32 + element{{[0-9]+}} * 4 for 4
  // CHECK: note: whole: update argument 0 at element{{[0-9]+}} * 32 + element{{[0-9]+}} * 4 for 4 perhaps
  // CHECK: note: whole: 0 and 1: unknown in a workgroup, unknown across
  // CHECK: note: whole: 0 and 2: disjoint in a workgroup, unknown across
  // CHECK: note: whole: 1 and 1: disjoint in a workgroup, overlap across
  // CHECK: note: whole: 1 and 2: unknown in a workgroup, unknown across
  // CHECK: note: whole: 2 and 2: disjoint in a workgroup, unknown across
  gpu.func @whole(%a: memref<8x8xf32>, %b: memref<8x8xf32>) kernel attributes {known_block_size = array<i32: 1, 1, 1>, known_grid_size = array<i32: 2, 1, 1>} {
    memref.copy %a, %b : memref<8x8xf32> to memref<8x8xf32>
    "test.unknown"(%a) : (memref<8x8xf32>) -> ()
    gpu.return
  }
}
gpu.module @more {
  // CHECK: note: scan: read argument 1 at (invocation.x - 1) * 4 for 4 if invocation.x - 1 >= 0 if trip{{[0-9]+}} == 0
  // CHECK: note: scan: write argument 1 at invocation.x * 4 for 4 if trip{{[0-9]+}} == 0
  // CHECK: note: scan: read argument 1 at (invocation.x - 2) * 4 for 4 if invocation.x - 2 >= 0 if trip{{[0-9]+}} - 1 == 0
  // CHECK: note: scan: write argument 1 at invocation.x * 4 for 4 if trip{{[0-9]+}} - 1 == 0
  // CHECK: note: scan: 0 and 1: overlap in a workgroup, disjoint across, overlap in one trip, disjoint from trip to trip
  // CHECK: note: scan: 0 and 3: overlap in a workgroup, disjoint across, disjoint in one trip, overlap from trip to trip
  // CHECK: note: scan: 1 and 1: disjoint in a workgroup, disjoint across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: scan: 1 and 2: overlap in a workgroup, disjoint across, disjoint in one trip, overlap from trip to trip
  // CHECK: note: scan: 1 and 3: disjoint in a workgroup, disjoint across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: scan: 2 and 3: overlap in a workgroup, disjoint across, overlap in one trip, disjoint from trip to trip
  // CHECK: note: scan: 3 and 3: disjoint in a workgroup, disjoint across, disjoint in one trip, disjoint from trip to trip
  gpu.func @scan(%a: memref<256xf32>) workgroup(%w: memref<256xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %f = arith.constant 0.0 : f32
    scf.for %k = %c0 to %c2 step %c1 {
      %d = arith.shli %c1, %k : index
      %has = arith.cmpi uge, %t, %d : index
      scf.if %has {
        %i = arith.subi %t, %d : index
        %v = memref.load %w[%i] : memref<256xf32, #gpu.address_space<workgroup>>
      }
      memref.store %f, %w[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    }
    gpu.return
  }
  // CHECK: note: vectors: read argument 0 at workgroup.x * 256 + invocation.x * 16 for 16
  // CHECK: note: vectors: write argument 0 at workgroup.x * 256 + invocation.x * 16 for 16
  // CHECK: note: vectors: read argument 1 at workgroup.x * 256 + invocation.x * 16 for 32
  // CHECK: note: vectors: write argument 1 at workgroup.x * 256 + invocation.x * 16 for 16
  // CHECK: note: vectors: 0 and 1: disjoint in a workgroup, disjoint across
  // CHECK: note: vectors: 0 and 3: unknown in a workgroup, unknown across
  // CHECK: note: vectors: 1 and 1: disjoint in a workgroup, disjoint across
  // CHECK: note: vectors: 1 and 2: unknown in a workgroup, unknown across
  // CHECK: note: vectors: 1 and 3: unknown in a workgroup, unknown across
  // CHECK: note: vectors: 2 and 3: unknown in a workgroup, unknown across
  // CHECK: note: vectors: 3 and 3: disjoint in a workgroup, disjoint across
  gpu.func @vectors(%a: memref<64x64xf32>, %g: memref<64x64xf32>) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %c4 = arith.constant 4 : index
    %f = arith.constant 0.0 : f32
    %i = arith.muli %t, %c4 : index
    %v = vector.load %a[%b, %i] : memref<64x64xf32>, vector<4xf32>
    vector.store %v, %a[%b, %i] : memref<64x64xf32>, vector<4xf32>
    %w = vector.transfer_read %g[%b, %i], %f {in_bounds = [true]} : memref<64x64xf32>, vector<8xf32>
    vector.transfer_write %v, %g[%b, %i] {in_bounds = [true]} : vector<4xf32>, memref<64x64xf32>
    gpu.return
  }
  // CHECK: note: affine: read argument 0 at (trip{{[0-9]+}} * 8 + invocation.x) * 4 for 4 if -trip{{[0-9]+}} + 7 >= 0
  // CHECK: note: affine: write argument 0 at (trip{{[0-9]+}} + invocation.x * 8) * 4 for 4 if -trip{{[0-9]+}} + 7 >= 0
  // CHECK: note: affine: 0 and 1: overlap in a workgroup, unknown across, disjoint in one trip, overlap from trip to trip
  // CHECK: note: affine: 1 and 1: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  gpu.func @affine(%a: memref<64xf32>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %t = gpu.thread_id x
    affine.for %i = 0 to 8 {
      %v = affine.load %a[%i * 8 + symbol(%t)] : memref<64xf32>
      affine.store %v, %a[%i + symbol(%t) * 8] : memref<64xf32>
    }
    gpu.return
  }
  // CHECK: note: swapped: read argument 0 at invocation.x * 4 for 4 if trip{{[0-9]+}} == 0
  // CHECK: note: swapped: write argument 1 at invocation.x * 4 for 4 if trip{{[0-9]+}} == 0
  // CHECK: note: swapped: read argument 1 at invocation.x * 4 for 4 if trip{{[0-9]+}} - 1 == 0
  // CHECK: note: swapped: write argument 0 at invocation.x * 4 for 4 if trip{{[0-9]+}} - 1 == 0
  // CHECK: note: swapped: read argument 0 at invocation.x * 4 for 4 if trip{{[0-9]+}} - 2 == 0
  // CHECK: note: swapped: write argument 1 at invocation.x * 4 for 4 if trip{{[0-9]+}} - 2 == 0
  // CHECK: note: swapped: read argument 1 at invocation.x * 4 for 4 if trip{{[0-9]+}} - 3 == 0
  // CHECK: note: swapped: write argument 0 at invocation.x * 4 for 4 if trip{{[0-9]+}} - 3 == 0
  // CHECK: note: swapped: 0 and 1: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  // CHECK: note: swapped: 0 and 3: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 0 and 5: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  // CHECK: note: swapped: 0 and 7: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 1 and 1: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 1 and 2: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 1 and 3: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  // CHECK: note: swapped: 1 and 4: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  // CHECK: note: swapped: 1 and 5: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 1 and 6: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 1 and 7: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  // CHECK: note: swapped: 2 and 3: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  // CHECK: note: swapped: 2 and 5: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 2 and 7: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  // CHECK: note: swapped: 3 and 3: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 3 and 4: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 3 and 5: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  // CHECK: note: swapped: 3 and 6: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  // CHECK: note: swapped: 3 and 7: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 4 and 5: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  // CHECK: note: swapped: 4 and 7: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 5 and 5: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 5 and 6: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: swapped: 5 and 7: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  // CHECK: note: swapped: 6 and 7: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  // CHECK: note: swapped: 7 and 7: disjoint in a workgroup, unknown across, disjoint in one trip, disjoint from trip to trip
  gpu.func @swapped(%a: memref<64xf32>, %b: memref<64xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %k = %c0 to %c4 step %c1 iter_args(%x = %a, %y = %b) -> (memref<64xf32>, memref<64xf32>) {
      %v = memref.load %x[%t] : memref<64xf32>
      memref.store %v, %y[%t] : memref<64xf32>
      scf.yield %y, %x : memref<64xf32>, memref<64xf32>
    }
    gpu.return
  }
  // CHECK: note: atomic: atomic argument 0 at 0 for 4
  // CHECK: note: atomic: 0 and 0: overlap in a workgroup, unknown across
  gpu.func @atomic(%a: memref<1xf32>, %f: f32) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %v = memref.atomic_rmw addf %f, %a[%c0] : (f32, memref<1xf32>) -> f32
    gpu.return
  }
  // CHECK: note: pointer: update argument 0 at 0 for 4 perhaps
  // CHECK: note: pointer: write unknown memory anywhere perhaps
  // CHECK: note: pointer: 0 and 0: unknown in a workgroup, unknown across
  // CHECK: note: pointer: 0 and 1: unknown in a workgroup, unknown across
  // CHECK: note: pointer: 1 and 1: unknown in a workgroup, unknown across
  gpu.func @pointer(%a: memref<1xf32>, %b: memref<1xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %p = memref.extract_aligned_pointer_as_index %a : memref<1xf32> -> index
    %i = arith.index_cast %p : index to i64
    %q = llvm.inttoptr %i : i64 to !llvm.ptr
    %f = arith.constant 0.0 : f32
    llvm.store %f, %q : f32, !llvm.ptr
    gpu.return
  }
}
module attributes {gpu.container_module} {
  gpu.module @launched {
    // CHECK: note: row: write argument 0 at workgroup.y * 256 + invocation.x * 4 for 4
    // CHECK: note: row: 0 and 0: overlap in a workgroup, disjoint across
    gpu.func @row(%a: memref<16x64xf32>) kernel {
      %t = gpu.thread_id x
      %b = gpu.block_id y
      %f = arith.constant 0.0 : f32
      memref.store %f, %a[%b, %t] : memref<16x64xf32>
      gpu.return
    }
  }
  func.func @host(%a: memref<16x64xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @launched::@row blocks in (%c1, %c16, %c1) threads in (%c32, %c2, %c1) args(%a : memref<16x64xf32>)
    return
  }
}
gpu.module @trees {
  // CHECK: note: tree: read argument 0 at (invocation.x + 2) * 4 for 4 if -invocation.x + 1 >= 0 if trip{{[0-9]+}} == 0
  // CHECK: note: tree: write argument 0 at invocation.x * 4 for 4 if -invocation.x + 1 >= 0 if trip{{[0-9]+}} == 0
  // CHECK: note: tree: read argument 0 at (invocation.x + 1) * 4 for 4 if -invocation.x >= 0 if trip{{[0-9]+}} - 1 == 0
  // CHECK: note: tree: write argument 0 at invocation.x * 4 for 4 if -invocation.x >= 0 if trip{{[0-9]+}} - 1 == 0
  // CHECK: note: tree: 0 and 1: disjoint in a workgroup, disjoint across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: tree: 0 and 3: disjoint in a workgroup, disjoint across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: tree: 1 and 1: disjoint in a workgroup, disjoint across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: tree: 1 and 2: overlap in a workgroup, disjoint across, disjoint in one trip, overlap from trip to trip
  // CHECK: note: tree: 1 and 3: disjoint in a workgroup, disjoint across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: tree: 2 and 3: disjoint in a workgroup, disjoint across, disjoint in one trip, disjoint from trip to trip
  // CHECK: note: tree: 3 and 3: disjoint in a workgroup, disjoint across, disjoint in one trip, disjoint from trip to trip
  gpu.func @tree() workgroup(%w: memref<64xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    scf.while (%s = %c2) : (index) -> index {
      %more = arith.cmpi ugt, %s, %c0 : index
      scf.condition(%more) %s : index
    } do {
    ^bb0(%s: index):
      %low = arith.cmpi ult, %t, %s : index
      scf.if %low {
        %i = arith.addi %t, %s : index
        %v = memref.load %w[%i] : memref<64xf32, #gpu.address_space<workgroup>>
        memref.store %v, %w[%t] : memref<64xf32, #gpu.address_space<workgroup>>
      }
      %half = arith.shrui %s, %c1 : index
      scf.yield %half : index
    }
    gpu.return
  }
  // CHECK: note: moving: write argument 0 anywhere if opaque{{[0-9]+}} - trip{{[0-9]+}} - 1 >= 0 perhaps
  // CHECK: note: moving: 0 and 0: unknown in a workgroup, unknown across, unknown in one trip, unknown from trip to trip
  gpu.func @moving(%a: memref<64xf32>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = gpu.grid_dim x
    %v = memref.cast %a : memref<64xf32> to memref<?xf32, strided<[1], offset: ?>>
    %f = arith.constant 0.0 : f32
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%x = %v) -> memref<?xf32, strided<[1], offset: ?>> {
      memref.store %f, %x[%t] : memref<?xf32, strided<[1], offset: ?>>
      %y = memref.subview %x[1] [%t] [1] : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
      scf.yield %y : memref<?xf32, strided<[1], offset: ?>>
    }
    gpu.return
  }
  // Invocations of a workgroup agree on the id of their cluster, and not on what they load.
  // CHECK: note: cluster: write argument 0 at (opaque{{[0-9]+}} + invocation.x) * 4 for 4
  // CHECK: note: cluster: 0 and 0: disjoint in a workgroup, unknown across
  gpu.func @cluster(%a: memref<1024xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %c = gpu.cluster_id x
    %f = arith.constant 0.0 : f32
    %i = arith.addi %c, %t : index
    memref.store %f, %a[%i] : memref<1024xf32>
    gpu.return
  }
  // CHECK: note: loaded: write argument 0 at (opaque{{[0-9]+}} + invocation.x) * 4 for 4
  // CHECK: note: loaded: 1 and 1: unknown in a workgroup, unknown across
  gpu.func @loaded(%a: memref<1024xf32>, %b: memref<1xindex>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c = memref.load %b[%c0] : memref<1xindex>
    %f = arith.constant 0.0 : f32
    %i = arith.addi %c, %t : index
    memref.store %f, %a[%i] : memref<1024xf32>
    gpu.return
  }
}
