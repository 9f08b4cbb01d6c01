// RUN: weir-opt %s --weir-test-effects -split-input-file -verify-diagnostics

gpu.module @m {
  // expected-remark @below {{kinds: read write update none}}
  gpu.func @kinds(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>, %d: memref<4xf32>) kernel {
    %i = gpu.thread_id x
    %x = memref.load %a[%i] : memref<4xf32>
    %y = memref.load %c[%i] : memref<4xf32>
    memref.store %x, %b[%i] : memref<4xf32>
    memref.store %y, %c[%i] : memref<4xf32>
    gpu.return
  }

  // expected-remark @below {{views: read write none}}
  gpu.func @views(%a: memref<8xf32>, %b: memref<16xi8>, %c: memref<8xf32>) kernel {
    %i = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %half = memref.subview %a[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
    %cast = memref.cast %half : memref<4xf32, strided<[1], offset: 4>> to memref<?xf32, strided<[?], offset: ?>>
    %floats = memref.view %b[%c0][] : memref<16xi8> to memref<4xf32>
    %again = memref.reinterpret_cast %floats to offset: [0], sizes: [2, 2], strides: [2, 1] : memref<4xf32> to memref<2x2xf32>
    %size = memref.dim %c, %c0 : memref<8xf32>
    %x = memref.load %cast[%i] : memref<?xf32, strided<[?], offset: ?>>
    memref.store %x, %again[%c0, %c0] : memref<2x2xf32>
    gpu.return
  }

  // A use inside a region counts, and one through what a loop passes on for all
  // that it may be; passing on alone touches nothing.
  // expected-remark @below {{regions: read write write none}}
  gpu.func @regions(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>, %d: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %f = arith.constant 0.0 : f32
    scf.for %i = %c0 to %c4 step %c1 {
      %x = memref.load %a[%i] : memref<4xf32>
    }
    %n = gpu.grid_dim x
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %b, %o = %d)
        -> (memref<4xf32>, memref<4xf32>) {
      memref.store %f, %m[%i] : memref<4xf32>
      scf.yield %c, %d : memref<4xf32>, memref<4xf32>
    }
    gpu.return
  }

  // expected-remark @below {{atomics: update}}
  gpu.func @atomics(%a: memref<4xi32>) kernel {
    %i = gpu.thread_id x
    %one = arith.constant 1 : i32
    %x = memref.atomic_rmw addi %one, %a[%i] : (i32, memref<4xi32>) -> i32
    gpu.return
  }

  // Pure, but the address escapes.
  // expected-remark @below {{escapes: update}}
  gpu.func @escapes(%a: memref<4xi32>) kernel {
    %x = memref.extract_aligned_pointer_as_index %a : memref<4xi32> -> index
    gpu.return
  }
}

// -----

// Coverage by the maps, where all sizes are known.
gpu.module @m {
  // expected-remark @below {{covers: write(all) write write(all) write}}
  gpu.func @covers(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<61xf32>, %d: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 16, 1, 1>, known_grid_size = array<i32: 4, 1, 1>} {
    %c16 = arith.constant 16 : index
    %c61 = arith.constant 61 : index
    %t = gpu.thread_id x
    %g = gpu.block_id x
    %m = arith.muli %g, %c16 : index
    %i = arith.addi %m, %t : index
    %f = arith.constant 0.0 : f32
    memref.store %f, %a[%i] : memref<64xf32>
    %gap = arith.muli %g, %g : index
    memref.store %f, %b[%gap] : memref<64xf32>
    %in = arith.cmpi ult, %i, %c61 : index
    scf.if %in {
      memref.store %f, %c[%i] : memref<61xf32>
      memref.store %f, %d[%i] : memref<64xf32>
    }
    gpu.return
  }
}

// -----

// Else coverage is declared and counts where the body writes; access is the body's.
gpu.module @m {
  // expected-remark @below {{declared: read write(all) write none}}
  gpu.func @declared(%a: memref<4xf32> {schedule.effect = #schedule.effect<update, covers_all = true>},
                     %b: memref<4xf32> {schedule.effect = #schedule.effect<write, covers_all = true>},
                     %c: memref<4xf32> {schedule.effect = #schedule.effect<write>},
                     %n: index) kernel {
    %x = memref.load %a[%n] : memref<4xf32>
    memref.store %x, %b[%n] : memref<4xf32>
    memref.store %x, %c[%n] : memref<4xf32>
    gpu.return
  }
}

// -----

module attributes {gpu.container_module} {
  func.func private @other(memref<4xf32>)
  gpu.module @m {
    memref.global @table : memref<4xf32>
    func.func private @library(memref<4xf32>)
    // expected-remark @below {{call: update and other memory by func.call}}
    gpu.func @call(%a: memref<4xf32>) kernel {
      func.call @library(%a) : (memref<4xf32>) -> ()
      gpu.return
    }
    // expected-remark @below {{global: and other memory by memref.load}}
    gpu.func @global() kernel {
      %i = gpu.thread_id x
      %t = memref.get_global @table : memref<4xf32>
      %x = memref.load %t[%i] : memref<4xf32>
      gpu.return
    }
    // Functions of the module are looked into.
    func.func @first(%m: memref<4xf32>, %n: memref<4xf32>) {
      %c0 = arith.constant 0 : index
      %x = memref.load %m[%c0] : memref<4xf32>
      return
    }
    // expected-remark @below {{calls: none read}}
    gpu.func @calls(%a: memref<4xf32>, %b: memref<4xf32>) kernel {
      func.call @first(%b, %a) : (memref<4xf32>, memref<4xf32>) -> ()
      gpu.return
    }
    // One that calls itself is not.
    func.func @again(%m: memref<4xf32>) {
      func.call @again(%m) : (memref<4xf32>) -> ()
      return
    }
    // expected-remark @below {{recursion: update and other memory by func.call}}
    gpu.func @recursion(%a: memref<4xf32>) kernel {
      func.call @again(%a) : (memref<4xf32>) -> ()
      gpu.return
    }
    // Memory of the workgroup or the invocation is the kernel's own.
    // expected-remark @below {{own: read}}
    gpu.func @own(%a: memref<4xf32>) workgroup(%w: memref<4xf32, #gpu.address_space<workgroup>>) kernel {
      %i = gpu.thread_id x
      %p = memref.alloca() : memref<4xf32, #gpu.address_space<private>>
      %x = memref.load %a[%i] : memref<4xf32>
      memref.store %x, %w[%i] : memref<4xf32, #gpu.address_space<workgroup>>
      memref.store %x, %p[%i] : memref<4xf32, #gpu.address_space<private>>
      gpu.return
    }
  }
}
