// RUN: weir-opt %s --weir-test-in-place -verify-diagnostics -o /dev/null

gpu.module @m {
  // Elementwise: what an invocation writes only it reads, and has read.
  // expected-remark @below {{elementwise: 2 over 0 2 over 1}}
  gpu.func @elementwise(%a: memref<1024xf32>, %b: memref<1024xf32>, %y: memref<1024xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c64 = arith.constant 64 : index
    %g = gpu.block_id x
    %t = gpu.thread_id x
    %m = arith.muli %g, %c64 : index
    %i = arith.addi %m, %t : index
    %u = memref.load %a[%i] : memref<1024xf32>
    %v = memref.load %b[%i] : memref<1024xf32>
    %w = arith.addf %u, %v : f32
    memref.store %w, %y[%i] : memref<1024xf32>
    gpu.return
  }

  // What is not read, or read besides being written, is in no pair.
  // expected-remark @below {{unread: 3 over 1}}
  gpu.func @unread(%a: memref<1024xf32>, %b: memref<1024xf32>, %x: memref<1024xf32>, %y: memref<1024xf32>)
      kernel attributes {known_block_size = array<i32: 1024, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %t = gpu.thread_id x
    %u = memref.load %b[%t] : memref<1024xf32>
    %v = memref.load %x[%t] : memref<1024xf32>
    %w = arith.addf %u, %v : f32
    memref.store %w, %x[%t] : memref<1024xf32>
    memref.store %w, %y[%t] : memref<1024xf32>
    gpu.return
  }

  // Reads one operand again after the write: only the other will do.
  // expected-remark @below {{reread: 2 over 0}}
  gpu.func @reread(%a: memref<1024xf32>, %b: memref<1024xf32>, %y: memref<1024xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %t = gpu.thread_id x
    %u = memref.load %a[%t] : memref<1024xf32>
    memref.store %u, %y[%t] : memref<1024xf32>
    %v = memref.load %b[%t] : memref<1024xf32>
    gpu.return
  }

  // Shifted, reversed and transposed windows, gathers, broadcasts.
  // expected-remark @below {{shifted:}}
  gpu.func @shifted(%a: memref<64xf32>, %y: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 63, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c1 = arith.constant 1 : index
    %t = gpu.thread_id x
    %i = arith.addi %t, %c1 : index
    %u = memref.load %a[%i] : memref<64xf32>
    memref.store %u, %y[%t] : memref<64xf32>
    gpu.return
  }
  // expected-remark @below {{reversed:}}
  gpu.func @reversed(%a: memref<64xf32>, %y: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c63 = arith.constant 63 : index
    %t = gpu.thread_id x
    %i = arith.subi %c63, %t : index
    %u = memref.load %a[%i] : memref<64xf32>
    memref.store %u, %y[%t] : memref<64xf32>
    gpu.return
  }
  // expected-remark @below {{transposed:}}
  gpu.func @transposed(%a: memref<8x8xf32>, %y: memref<8x8xf32>)
      kernel attributes {known_block_size = array<i32: 8, 8, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %i = gpu.thread_id x
    %j = gpu.thread_id y
    %u = memref.load %a[%i, %j] : memref<8x8xf32>
    memref.store %u, %y[%j, %i] : memref<8x8xf32>
    gpu.return
  }
  // The twin: rows and columns stay.
  // expected-remark @below {{straight: 1 over 0}}
  gpu.func @straight(%a: memref<8x8xf32>, %y: memref<8x8xf32>)
      kernel attributes {known_block_size = array<i32: 8, 8, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %i = gpu.thread_id x
    %j = gpu.thread_id y
    %u = memref.load %a[%i, %j] : memref<8x8xf32>
    memref.store %u, %y[%i, %j] : memref<8x8xf32>
    gpu.return
  }
  // expected-remark @below {{gathered:}}
  gpu.func @gathered(%a: memref<64xf32>, %k: memref<64xi32>, %y: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %t = gpu.thread_id x
    %k32 = memref.load %k[%t] : memref<64xi32>
    %i = arith.index_cast %k32 : i32 to index
    %u = memref.load %a[%i] : memref<64xf32>
    memref.store %u, %y[%i] : memref<64xf32>
    gpu.return
  }
  // expected-remark @below {{broadcast: 1 over 2}}
  gpu.func @broadcast(%a: memref<64xf32>, %y: memref<64xf32>, %b: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %u = memref.load %a[%c0] : memref<64xf32>
    %v = memref.load %b[%t] : memref<64xf32>
    memref.store %u, %y[%t] : memref<64xf32>
    gpu.return
  }

  // A row per workgroup. All of it is summed before the first element is
  // written: the barriers of the reduction stand between.
  // expected-remark @below {{row: 1 over 0}}
  gpu.func @row(%x: memref<16x256xf32>, %y: memref<16x256xf32>)
      workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    %r = gpu.block_id x
    %t = gpu.thread_id x
    %mine = scf.for %j = %c0 to %c256 step %c64 iter_args(%sum = %zero) -> f32 {
      %k = arith.addi %j, %t : index
      %v = memref.load %x[%r, %k] : memref<16x256xf32>
      %next = arith.addf %sum, %v : f32
      scf.yield %next : f32
    }
    memref.store %mine, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %total = memref.load %s[%c0] : memref<64xf32, #gpu.address_space<workgroup>>
    scf.for %j = %c0 to %c256 step %c64 {
      %k = arith.addi %j, %t : index
      %v = memref.load %x[%r, %k] : memref<16x256xf32>
      %w = arith.mulf %v, %total : f32
      memref.store %w, %y[%r, %k] : memref<16x256xf32>
    }
    gpu.return
  }
  // The same row read by all, with a barrier after the reads and without.
  // expected-remark @below {{shared: 1 over 0}}
  gpu.func @shared(%x: memref<16x64xf32>, %y: memref<16x64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c63 = arith.constant 63 : index
    %r = gpu.block_id x
    %t = gpu.thread_id x
    %i = arith.subi %c63, %t : index
    %v = memref.load %x[%r, %i] : memref<16x64xf32>
    gpu.barrier
    memref.store %v, %y[%r, %t] : memref<16x64xf32>
    gpu.return
  }
  // expected-remark @below {{unshared:}}
  gpu.func @unshared(%x: memref<16x64xf32>, %y: memref<16x64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c63 = arith.constant 63 : index
    %r = gpu.block_id x
    %t = gpu.thread_id x
    %i = arith.subi %c63, %t : index
    gpu.barrier
    %v = memref.load %x[%r, %i] : memref<16x64xf32>
    memref.store %v, %y[%r, %t] : memref<16x64xf32>
    gpu.return
  }
  // A barrier in the loop doesn't help what comes back for more.
  // expected-remark @below {{comes_back:}}
  gpu.func @comes_back(%x: memref<16x64xf32>, %y: memref<16x64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c63 = arith.constant 63 : index
    %r = gpu.block_id x
    %t = gpu.thread_id x
    %i = arith.subi %c63, %t : index
    scf.for %k = %c0 to %c2 step %c1 {
      %v = memref.load %x[%r, %i] : memref<16x64xf32>
      gpu.barrier
      memref.store %v, %y[%r, %t] : memref<16x64xf32>
    }
    gpu.return
  }
  // Its twin takes another row each time.
  // expected-remark @below {{goes_on: 1 over 0}}
  gpu.func @goes_on(%x: memref<32x64xf32>, %y: memref<32x64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c63 = arith.constant 63 : index
    %g = gpu.block_id x
    %t = gpu.thread_id x
    %i = arith.subi %c63, %t : index
    %base = arith.muli %g, %c2 : index
    scf.for %k = %c0 to %c2 step %c1 {
      %r = arith.addi %base, %k : index
      %v = memref.load %x[%r, %i] : memref<32x64xf32>
      gpu.barrier
      memref.store %v, %y[%r, %t] : memref<32x64xf32>
    }
    gpu.return
  }
  // An invocation that reads all before it writes anything, and one that writes
  // as it goes.
  // expected-remark @below {{alone: 1 over 0}}
  gpu.func @alone(%x: memref<64xf32>, %y: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 1, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%s = %zero) -> f32 {
      %v = memref.load %x[%k] : memref<64xf32>
      %n = arith.addf %s, %v : f32
      scf.yield %n : f32
    }
    scf.for %k = %c0 to %c64 step %c1 {
      memref.store %sum, %y[%k] : memref<64xf32>
    }
    gpu.return
  }
  // expected-remark @below {{as_it_goes:}}
  gpu.func @as_it_goes(%x: memref<64xf32>, %y: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 1, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    scf.for %k = %c0 to %c63 step %c1 {
      %v = memref.load %x[%k] : memref<64xf32>
      %n = arith.addi %k, %c1 : index
      memref.store %v, %y[%n] : memref<64xf32>
    }
    gpu.return
  }
  // The other way round it stays ahead of itself.
  // expected-remark @below {{ahead: 1 over 0}}
  gpu.func @ahead(%x: memref<64xf32>, %y: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 1, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    scf.for %k = %c0 to %c63 step %c1 {
      %n = arith.addi %k, %c1 : index
      %v = memref.load %x[%n] : memref<64xf32>
      memref.store %v, %y[%k] : memref<64xf32>
    }
    gpu.return
  }
  // Sources that are written, targets updated by atomics, memory from nowhere.
  // expected-remark @below {{updates:}}
  gpu.func @updates(%a: memref<64xf32>, %y: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %a[%t] : memref<64xf32>
    memref.store %v, %a[%t] : memref<64xf32>
    %o = memref.atomic_rmw addf %v, %y[%t] : (f32, memref<64xf32>) -> f32
    gpu.return
  }
  func.func private @library(memref<64xf32>)
  // expected-remark @below {{elsewhere:}}
  gpu.func @elsewhere(%a: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %t = gpu.thread_id x
    %v = memref.load %a[%t] : memref<64xf32>
    memref.store %v, %y[%t] : memref<64xf32>
    func.call @library(%z) : (memref<64xf32>) -> ()
    gpu.return
  }
  // Rows in turn: each is copied while the one before is stored, and waited for before it is stored itself.
  // expected-remark @below {{copied: 1 over 0}}
  gpu.func @copied(%x: memref<64xf32>, %y: memref<64xf32>) workgroup(%row: memref<16xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 4, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %t = gpu.thread_id x
    %at = arith.muli %t, %c4 : index
    %first = nvgpu.device_async_copy %x[%at], %row[%at], 4 : memref<64xf32> to memref<16xf32, #gpu.address_space<workgroup>>
    %t0 = nvgpu.device_async_create_group
    scf.for %k = %c0 to %c4 step %c1 {
      nvgpu.device_async_wait %t0 {numGroups = 0 : i32}
      %v = vector.load %row[%at] : memref<16xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      %base = arith.muli %k, %c16 : index
      %here = arith.addi %base, %at : index
      %n = arith.addi %k, %c1 : index
      %is = arith.cmpi ult, %n, %c4 : index
      scf.if %is {
        %there = arith.addi %here, %c16 : index
        %next = nvgpu.device_async_copy %x[%there], %row[%at], 4 : memref<64xf32> to memref<16xf32, #gpu.address_space<workgroup>>
      }
      %t1 = nvgpu.device_async_create_group
      vector.store %v, %y[%here] : memref<64xf32>, vector<4xf32>
    }
    gpu.return
  }
  // Nothing waits for the copies.
  // expected-remark @below {{not_waited:}}
  gpu.func @not_waited(%x: memref<64xf32>, %y: memref<64xf32>) workgroup(%row: memref<16xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 4, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %t = gpu.thread_id x
    %at = arith.muli %t, %c4 : index
    %first = nvgpu.device_async_copy %x[%at], %row[%at], 4 : memref<64xf32> to memref<16xf32, #gpu.address_space<workgroup>>
    %t0 = nvgpu.device_async_create_group
    scf.for %k = %c0 to %c4 step %c1 {
      %v = vector.load %row[%at] : memref<16xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      %base = arith.muli %k, %c16 : index
      %here = arith.addi %base, %at : index
      %n = arith.addi %k, %c1 : index
      %is = arith.cmpi ult, %n, %c4 : index
      scf.if %is {
        %there = arith.addi %here, %c16 : index
        %next = nvgpu.device_async_copy %x[%there], %row[%at], 4 : memref<64xf32> to memref<16xf32, #gpu.address_space<workgroup>>
      }
      %t1 = nvgpu.device_async_create_group
      vector.store %v, %y[%here] : memref<64xf32>, vector<4xf32>
    }
    gpu.return
  }
  // The wait is for groups that were closed, and the copies are in none.
  // expected-remark @below {{in_no_group:}}
  gpu.func @in_no_group(%x: memref<64xf32>, %y: memref<64xf32>) workgroup(%row: memref<16xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 4, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %t = gpu.thread_id x
    %at = arith.muli %t, %c4 : index
    %first = nvgpu.device_async_copy %x[%at], %row[%at], 4 : memref<64xf32> to memref<16xf32, #gpu.address_space<workgroup>>
    %t0 = nvgpu.device_async_create_group
    scf.for %k = %c0 to %c4 step %c1 {
      nvgpu.device_async_wait %t0 {numGroups = 0 : i32}
      %v = vector.load %row[%at] : memref<16xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      %base = arith.muli %k, %c16 : index
      %here = arith.addi %base, %at : index
      %n = arith.addi %k, %c1 : index
      %is = arith.cmpi ult, %n, %c4 : index
      scf.if %is {
        %there = arith.addi %here, %c16 : index
        %next = nvgpu.device_async_copy %x[%there], %row[%at], 4 : memref<64xf32> to memref<16xf32, #gpu.address_space<workgroup>>
      }
      vector.store %v, %y[%here] : memref<64xf32>, vector<4xf32>
    }
    gpu.return
  }
  // The copy may still read the row that is stored.
  // expected-remark @below {{of_this_row:}}
  gpu.func @of_this_row(%x: memref<64xf32>, %y: memref<64xf32>) workgroup(%row: memref<16xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 4, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %t = gpu.thread_id x
    %at = arith.muli %t, %c4 : index
    %first = nvgpu.device_async_copy %x[%at], %row[%at], 4 : memref<64xf32> to memref<16xf32, #gpu.address_space<workgroup>>
    %t0 = nvgpu.device_async_create_group
    scf.for %k = %c0 to %c4 step %c1 {
      nvgpu.device_async_wait %t0 {numGroups = 0 : i32}
      %v = vector.load %row[%at] : memref<16xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      %base = arith.muli %k, %c16 : index
      %here = arith.addi %base, %at : index
      %n = arith.addi %k, %c1 : index
      %is = arith.cmpi ult, %n, %c4 : index
      scf.if %is {
        %there = arith.addi %here, %c0 : index
        %next = nvgpu.device_async_copy %x[%there], %row[%at], 4 : memref<64xf32> to memref<16xf32, #gpu.address_space<workgroup>>
      }
      %t1 = nvgpu.device_async_create_group
      vector.store %v, %y[%here] : memref<64xf32>, vector<4xf32>
    }
    gpu.return
  }
}
