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

  // A use inside a region counts; one that is passed on is an update.
  // expected-remark @below {{regions: read update update}}
  gpu.func @regions(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %x = memref.load %a[%i] : memref<4xf32>
    }
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%m = %b) -> memref<4xf32> {
      scf.yield %c : memref<4xf32>
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

// Coverage is declared and counts where the body writes; access is the body's.
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
    // expected-remark @below {{global: and other memory by memref.get_global}}
    gpu.func @global() kernel {
      %t = memref.get_global @table : memref<4xf32>
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
