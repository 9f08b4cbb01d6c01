// RUN: weir-opt %s --weir-set-profile --weir-verify-dispatches --split-input-file --verify-diagnostics

// What the level holds, loops at their limit included: together they make 65535 trips and ends.
module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%x: memref<64xf32> {schedule.effect = #schedule.effect<read>},
                %y: memref<64xf32> {schedule.effect = #schedule.effect<write, covers_all = true>})
        workgroup(%w: memref<8192xf32, #gpu.address_space<workgroup>>)
        kernel attributes {known_block_size = array<i32: 64, 4, 4>} {
      %i = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %n = arith.constant 32766 : index
      %m = arith.constant 262136 : index
      %c1 = arith.constant 1 : index
      scf.for %j = %c0 to %n step %c1 {
      }
      scf.for %j = %i to %m step %c8 {
      }
      %v = memref.load %x[%i] : memref<64xf32>
      memref.store %v, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  memref.global "private" constant @cst : memref<64xf32> = dense<1.0>
  func.func @valid(%x: memref<64xf32> {weir.shape = tensor<8x8xf32>}, %none: memref<0xf32>,
                   %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %c = memref.get_global @cst : memref<64xf32>
    %a = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@k [65535, 65535, 1] (%c, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@k [1, 1, 1] (%a, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}

// -----

// Effects: declared, and no narrower than what the body does.
module attributes {gpu.container_module} {
  gpu.module @m {
    // expected-error @below {{argument 0 has no schedule.effect}}
    // expected-error @below {{argument 1 is declared 'read', the body does 'update'}}
    // expected-error @below {{argument 2 is declared to be covered, the body writes nothing}}
    // expected-error @below {{argument 3 is declared 'none', the body does 'read'}}
    gpu.func @effects(%a: memref<4xf32>,
                      %b: memref<4xf32> {schedule.effect = #schedule.effect<read>},
                      %c: memref<4xf32> {schedule.effect = #schedule.effect<write, covers_all = true>},
                      %d: memref<4xf32> {schedule.effect = #schedule.effect<none>},
                      %wide: memref<4xf32> {schedule.effect = #schedule.effect<update>})
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %v = memref.load %b[%i] : memref<4xf32>
      memref.store %v, %b[%i] : memref<4xf32>
      %w = memref.load %d[%i] : memref<4xf32>
      %u = memref.load %wide[%i] : memref<4xf32>
      gpu.return
    }
    memref.global @table : memref<4xf32>
    // expected-error @below {{may touch memory that is not among its arguments}}
    gpu.func @other() kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %t = memref.get_global @table : memref<4xf32>
      // expected-note @below {{through this operation}}
      %v = memref.load %t[%c0] : memref<4xf32>
      gpu.return
    }
  }
}

// -----

// The profile's limits of a kernel.
module attributes {gpu.container_module} {
  gpu.module @m {
    // expected-error @below {{has no known_block_size of three sizes}}
    gpu.func @no_size() kernel {
      gpu.return
    }
    // expected-error @below {{has workgroups of [1025, 1, 1] invocations, profile 'lavapipe' allows 1024 in total}}
    gpu.func @workgroup_size() kernel attributes {known_block_size = array<i32: 1025, 1, 1>} {
      gpu.return
    }
    // expected-error @below {{@workgroup_memory takes 32772 bytes of workgroup memory, profile 'lavapipe' allows 32768; compile for a profile with a larger workgroup_memory, if the device has it, or with a smaller workgroup_size, contraction_slab or matrix_slab}}
    gpu.func @workgroup_memory()
        workgroup(%v: memref<8192xf32, #gpu.address_space<workgroup>>, %w: memref<1xf32, #gpu.address_space<workgroup>>)
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      gpu.return
    }
    gpu.func @loops(%n: memref<1xindex> {schedule.effect = #schedule.effect<read>})
        kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      %i = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c524288 = arith.constant 524288 : index
      scf.for %j = %i to %c524288 step %c8 {
      }
      %bound = memref.load %n[%c0] : memref<1xindex>
      // expected-error @below {{has no known bound}}
      scf.for %j = %c0 to %bound step %c1 {
      }
      // expected-error @below {{has no known bound}}
      scf.while : () -> () {
        %p = arith.cmpi ult, %bound, %c8 : index
        scf.condition(%p)
      } do {
        scf.yield
      }
      gpu.return
    }
    // expected-error @below {{argument 0 is 'memref<?xf32>', not a memref of one static dimension}}
    // expected-error @below {{argument 1 is 'memref<2x2xf32>', not a memref of one static dimension}}
    // expected-error @below {{argument 2 is 'index', not a memref of one static dimension}}
    gpu.func @arguments(%a: memref<?xf32> {schedule.effect = #schedule.effect<none>},
                        %b: memref<2x2xf32> {schedule.effect = #schedule.effect<none>},
                        %c: index {schedule.effect = #schedule.effect<none>})
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      gpu.return
    }
  }
}

// -----

// The profile's limits of a dispatch.
module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%x: memref<33554433xf32> {schedule.effect = #schedule.effect<none>})
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      gpu.return
    }
  }
  gpu.module @z {
    gpu.func @z(%x: memref<0xf32> {schedule.effect = #schedule.effect<none>})
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      gpu.return
    }
  }
  func.func @f(%x: memref<33554433xf32>, %z: memref<0xf32>) attributes {weir.entry} {
    schedule.commands {
      // expected-error @below {{has 65536 workgroups on axis 1, profile 'lavapipe' allows 65535}}
      // expected-error @below {{operand 0 has 134217732 bytes, profile 'lavapipe' allows 134217728 a binding}}
      schedule.dispatch @k::@k [65535, 65536, 1] (%x) : (memref<33554433xf32>)
      // expected-error @below {{operand 0 has no bytes}}
      schedule.dispatch @z::@z [1, 1, 1] (%z) : (memref<0xf32>)
    }
    return
  }
}

// -----

// Operands: one more than the profile's storage buffers.
module attributes {gpu.container_module} {
  gpu.module @k {
    // expected-error @below {{has 33 arguments, profile 'lavapipe' allows 32}}
    gpu.func @k(
        %a0: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %a1: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %a2: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %a3: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %a4: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %a5: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %a6: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %a7: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %b0: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %b1: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %b2: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %b3: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %b4: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %b5: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %b6: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %b7: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %c0: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %c1: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %c2: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %c3: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %c4: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %c5: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %c6: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %c7: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %d0: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %d1: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %d2: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %d3: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %d4: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %d5: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %d6: memref<1xf32> {schedule.effect = #schedule.effect<none>}, %d7: memref<1xf32> {schedule.effect = #schedule.effect<none>},
        %e0: memref<1xf32> {schedule.effect = #schedule.effect<none>})
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      gpu.return
    }
  }
}

// -----

// Functions.
module attributes {gpu.container_module} {
  // expected-error @below {{has no body of one block}}
  func.func private @declaration()
  // expected-error @below {{has no command list}}
  func.func @no_list() {
    return
  }
  // expected-error @below {{argument 0 is 'memref<?xf32>', not a memref of static shape}}
  // expected-error @below {{argument 1 is 'index', not a memref of static shape}}
  // expected-error @below {{argument 2 of 16 bytes stands for 'tensor<5xf32>'}}
  // expected-error @below {{returns 1 values; from the dispatches level on results are arguments with weir.result}}
  func.func @signature(%a: memref<?xf32>, %b: index, %c: memref<4xf32> {weir.shape = tensor<5xf32>}) -> index {
    schedule.commands {
    }
    return %b : index
  }
  func.func @leftovers(%a: memref<4xf32>) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{does not belong beside a command list}}
    %x = memref.load %a[%c0] : memref<4xf32>
    // expected-error @below {{has a tensor; the dispatches level allows none}}
    %t = arith.constant dense<1.0> : tensor<4xf32>
    // expected-error @below {{belongs to the kernels level}}
    // expected-error @below {{does not belong beside a command list}}
    %y = schedule.kernel "k" (%t) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%b: tensor<4xf32>):
      schedule.yield %b : tensor<4xf32>
    }
    schedule.commands {
    }
    return
  }
  // expected-error @below {{does not belong beside kernels, constants and functions}}
  module {
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%x: memref<4xf32> {schedule.effect = #schedule.effect<write>})
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %v = arith.constant 1.0 : f32
      memref.store %v, %x[%i] : memref<4xf32>
      gpu.return
    }
  }
  func.func @barrier_too_early(%x: memref<4xf32>) {
    schedule.commands {
      schedule.dispatch @k::@k [1, 1, 1] (%x) : (memref<4xf32>)
      // expected-error @below {{belongs to the ordered level}}
      schedule.barrier [#schedule.hazard<waw, 0 operand 0 -> 1 operand 0>]
      schedule.dispatch @k::@k [1, 1, 1] (%x) : (memref<4xf32>)
    }
    return
  }
}

// -----

// Each loop is short enough, but the driver counts all of them together, and each end of a loop:
// 257 + 256 * 257 trips.
module attributes {gpu.container_module} {
  gpu.module @together {
    // expected-error @below {{makes up to 66049 trips of loops for an invocation, the end of each counted as one, and profile 'lavapipe' ends all loops after 65535}}
    gpu.func @together() kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 256 : index
      scf.for %i = %c0 to %n step %c1 {
        scf.for %j = %c0 to %n step %c1 {
        }
      }
      gpu.return
    }
    // 255 + 254 * 257 trips and ends.
    gpu.func @fits() kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 254 : index
      %m = arith.constant 256 : index
      scf.for %i = %c0 to %n step %c1 {
        scf.for %j = %c0 to %m step %c1 {
        }
      }
      gpu.return
    }
  }
}
