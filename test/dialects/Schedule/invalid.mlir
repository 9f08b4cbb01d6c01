// RUN: weir-opt %s -split-input-file -verify-diagnostics

func.func @kernel_c1_arguments(%x: tensor<8xf32>) {
  // expected-error @below {{region arguments ('tensor<4xf32>') differ from the inputs ('tensor<8xf32>')}}
  schedule.kernel "k" (%x) : (tensor<8xf32>) -> () {
  ^bb0(%a: tensor<4xf32>):
    schedule.yield
  }
  return
}

// -----

func.func @kernel_c2_yield(%x: tensor<8xf32>) -> tensor<4xf32> {
  %y = schedule.kernel "k" (%x) : (tensor<8xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<8xf32>):
    // expected-error @below {{yields ('tensor<8xf32>'), the kernel's results are ('tensor<4xf32>')}}
    schedule.yield %a : tensor<8xf32>
  }
  return %y : tensor<4xf32>
}

// -----

func.func @commands_c1_other_op() {
  schedule.commands {
    // expected-error @below {{does not belong in a command list}}
    %c = arith.constant 0 : index
  }
  return
}

// -----

module attributes {gpu.container_module} {
  func.func @dispatch_c2_unknown(%x: memref<8xf32>) {
    schedule.commands {
      // expected-error @below {{@k::@k is not a kernel of this module}}
      schedule.dispatch @k::@k [1, 1, 1] (%x) : (memref<8xf32>)
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%x: memref<8xf32, #gpu.address_space<global>>) kernel {
      gpu.return
    }
  }
  func.func @dispatch_c1_grid(%x: memref<8xf32>) {
    schedule.commands {
      // expected-error @below {{grid size 0 is below 1}}
      schedule.dispatch @k::@k [1, 0, 1] (%x) : (memref<8xf32>)
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%x: memref<8xf32, #gpu.address_space<global>>) kernel {
      gpu.return
    }
  }
  func.func @dispatch_c3_count(%x: memref<8xf32>) {
    schedule.commands {
      // expected-error @below {{has 2 operands, @k::@k takes 1}}
      schedule.dispatch @k::@k [1, 1, 1] (%x, %x) : (memref<8xf32>, memref<8xf32>)
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%x: memref<2xvector<4xf32>, #gpu.address_space<global>>) kernel {
      gpu.return
    }
  }
  func.func @dispatch_c4_bytes(%x: memref<8xf32>, %y: memref<9xf32>) {
    schedule.commands {
      schedule.dispatch @k::@k [1, 1, 1] (%x) : (memref<8xf32>)
      // expected-error @below {{operand 0 is 36 bytes long, the kernel's argument 32}}
      schedule.dispatch @k::@k [1, 1, 1] (%y) : (memref<9xf32>)
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index, %x: memref<8xf32>) kernel {
      gpu.return
    }
  }
  func.func @dispatch_c5_scalar(%x: memref<8xf32>, %n: index, %m: i32) {
    schedule.commands {
      schedule.dispatch @k::@k [1, 1, 1] (%n, %x) : (index, memref<8xf32>)
      // expected-error @below {{operand 0 is 'i32', the kernel's argument 'index'}}
      schedule.dispatch @k::@k [1, 1, 1] (%m, %x) : (i32, memref<8xf32>)
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index, %x: memref<8xf32>) kernel {
      gpu.return
    }
  }
  func.func @dispatch_c5_memory(%x: memref<8xf32>, %n: index) {
    schedule.commands {
      // expected-error @below {{operand 0 is 'memref<8xf32>', the kernel's argument 'index'}}
      schedule.dispatch @k::@k [1, 1, 1] (%x, %x) : (memref<8xf32>, memref<8xf32>)
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k() kernel attributes {known_grid_size = array<i32: 8, 1, 1>} {
      gpu.return
    }
  }
  func.func @dispatch_c6_grid() {
    schedule.commands {
      schedule.dispatch @k::@k [8, 1, 1] ()
      // expected-error @below {{has grid [8, 2, 1], @k::@k states [8, 1, 1]}}
      schedule.dispatch @k::@k [8, 2, 1] ()
    }
    return
  }
}

// -----

func.func @copy_c1_shape(%x: memref<8xf32>, %y: memref<?xf32>, %z: memref<9xf32>) {
  schedule.commands {
    schedule.copy %x to %y : memref<8xf32> to memref<?xf32>
    // expected-error @below {{source and target differ: 'memref<8xf32>' vs 'memref<9xf32>'}}
    schedule.copy %x to %z : memref<8xf32> to memref<9xf32>
  }
  return
}

// -----

func.func @copy_c1_element(%x: memref<8xf32>, %y: memref<8xi32>) {
  schedule.commands {
    // expected-error @below {{source and target differ: 'memref<8xf32>' vs 'memref<8xi32>'}}
    schedule.copy %x to %y : memref<8xf32> to memref<8xi32>
  }
  return
}

// -----

func.func @fill_c1_element(%x: memref<8xf32>, %v: i32) {
  schedule.commands {
    // expected-error @below {{value and elements of the target differ: 'i32' vs 'f32'}}
    schedule.fill %x with %v : memref<8xf32>, i32
  }
  return
}

// -----

func.func @barrier_c1_no_hazard() {
  schedule.commands {
    // expected-error @below {{has 0 hazards, expected at least 1}}
    schedule.barrier []
  }
  return
}

// -----

func.func @barrier_c2_place() {
  schedule.commands {
    // expected-error @below {{does not stand between the commands of #schedule.hazard<raw, 0 operand 0 -> 1 operand 0>}}
    schedule.barrier [#schedule.hazard<raw, 0 operand 0 -> 1 operand 0>]
  }
  return
}

// -----

func.func @queue_number(%x: memref<8xf32>, %y: memref<8xf32>) {
  schedule.commands {
    schedule.copy %x to %y queue 63 : memref<8xf32> to memref<8xf32>
    // expected-error @below {{property 'queue' failed to satisfy constraint}}
    schedule.copy %x to %y queue 64 : memref<8xf32> to memref<8xf32>
  }
  return
}

// -----

func.func @signal_c1_id() {
  schedule.commands {
    // expected-note @below {{the earlier one}}
    schedule.signal id 0
    schedule.signal id 1
    // expected-error @below {{has the id 0 of an earlier one}}
    schedule.signal queue 1 id 0
  }
  return
}

// -----

func.func @wait_c1_before() {
  schedule.commands {
    // expected-error @below {{waits on 0, which no signal before it has}}
    schedule.wait queue 1 on 0
    schedule.signal id 0
  }
  return
}

// -----

func.func @wait_c2_own_queue() {
  schedule.commands {
    schedule.signal queue 1 id 0
    // expected-error @below {{waits on a signal of its own queue 1}}
    schedule.wait queue 1 on 0
  }
  return
}

// -----

// expected-error @below {{expected waves with 0 <= first <= last, got 3 to 2}}
func.func @slot_c1_waves(%arena: memref<256xi8>) attributes {x = #schedule.slot<"v", alignment = 256, waves = 3 to 2>} {
  return
}

// -----

// expected-error @below {{a slice is for an operand that is written in part, got 'read'}}
func.func @effect_c1_read(%x: memref<64xi8>) attributes {x = #schedule.effect<read, covers_all = false, slice = [0, 16, 32, 2]>} {
  return
}

// -----

// expected-error @below {{a slice is for an operand that is written in part, got 'write' that covers all}}
func.func @effect_c1_covered(%x: memref<64xi8>) attributes {x = #schedule.effect<write, covers_all = true, slice = [0, 16, 32, 2]>} {
  return
}

// -----

// expected-error @below {{expected slice = [begin, bytes, stride, count] with 0 <= begin, 1 <= bytes < stride, 1 <= count, and begin, stride and stride * count up to 2^40, got [0, 16, 16, 2]}}
func.func @effect_c2_runs(%x: memref<64xi8>) attributes {x = #schedule.effect<write, covers_all = false, slice = [0, 16, 16, 2]>} {
  return
}

// -----

// expected-error @below {{stride * count up to 2^40, got [0, 16, 32]}}
func.func @effect_c2_numbers(%x: memref<64xi8>) attributes {x = #schedule.effect<write, covers_all = false, slice = [0, 16, 32]>} {
  return
}

// -----

!s = memref<8192xbf16, #gpu.address_space<workgroup>>

func.func @group_product_c4_offset(%a: !s, %sums: vector<32xf32>, %i: index) -> vector<32xf32> {
  // expected-error @below {{has a factor 12 elements behind its index, expected a multiple of 8}}
  %r = schedule.group_product %sums, %a[%i], %a[%i]
    {strides = array<i64: 16, 1024, 16, 1024>, columnOffset = 12} : !s, !s, vector<32xf32>
  return %r : vector<32xf32>
}

// -----

func.func @group_product_c5_words(%a: memref<4096xf32>, %sums: vector<32xf32>, %i: index) -> vector<32xf32> {
  // expected-error @below {{transposes a factor of f32}}
  %r = schedule.group_product %sums, %a[%i], %a[%i]
    {strides = array<i64: 16, 1024, 16, 1024>, transposesColumns} : memref<4096xf32>, memref<4096xf32>, vector<32xf32>
  return %r : vector<32xf32>
}

// -----

!s = memref<8192xbf16, #gpu.address_space<workgroup>>
!m = memref<4xi64, #gpu.address_space<workgroup>>

func.func @tile_copy_c1_box(%a: memref<65536xbf16>, %s: !s, %m: !m, %i: index) {
  // expected-error @below {{has 2 coordinates in a shape of 2 sizes, and a box of 1; expected as many, 2 to 5}}
  schedule.tile_copy %a[%i, %i] to %s[%i] signals %m[0] {shape = array<i64: 256, 256>, box = array<i64: 64>}
    : memref<65536xbf16>, !s, !m
  return
}

// -----

!s = memref<8192xbf16, #gpu.address_space<workgroup>>
!m = memref<4xi64, #gpu.address_space<workgroup>>

func.func @tile_copy_c2_type(%a: memref<65536xf16>, %s: !s, %m: !m, %i: index) {
  // expected-error @below {{copies 'f16' to 'bf16'}}
  schedule.tile_copy %a[%i, %i] to %s[%i] signals %m[0] {shape = array<i64: 256, 256>, box = array<i64: 64, 64>}
    : memref<65536xf16>, !s, !m
  return
}

// -----

!s = memref<8192xbf16, #gpu.address_space<workgroup>>
!m = memref<4xi64, #gpu.address_space<workgroup>>

func.func @tile_copy_c3_line(%a: memref<65536xbf16>, %s: !s, %m: !m, %i: index) {
  // expected-error @below {{has lines of 32 elements, expected 64}}
  schedule.tile_copy %a[%i, %i] to %s[%i] signals %m[0] {shape = array<i64: 256, 256>, box = array<i64: 64, 32>}
    : memref<65536xbf16>, !s, !m
  return
}

// -----

!s = memref<8192xbf16, #gpu.address_space<workgroup>>
!m = memref<4xi64, #gpu.address_space<workgroup>>

func.func @tile_copy_c3_words(%a: memref<65536xf32>, %s: memref<8192xf32>, %m: !m, %i: index) {
  // expected-error @below {{has lines of 64 elements, expected 32}}
  schedule.tile_copy %a[%i, %i] to %s[%i] signals %m[0] {shape = array<i64: 256, 256>, box = array<i64: 64, 64>}
    : memref<65536xf32>, memref<8192xf32>, !m
  return
}

// -----

!s = memref<8192xbf16, #gpu.address_space<workgroup>>
!m = memref<4xi64, #gpu.address_space<workgroup>>

func.func @tile_copy_c3_box(%a: memref<131072xbf16>, %s: !s, %m: !m, %i: index) {
  // expected-error @below {{has 257 in its box, expected 1 to 256}}
  schedule.tile_copy %a[%i, %i] to %s[%i] signals %m[0] {shape = array<i64: 512, 256>, box = array<i64: 257, 64>}
    : memref<131072xbf16>, !s, !m
  return
}

// -----

!s = memref<8192xbf16, #gpu.address_space<workgroup>>
!m = memref<4xi64, #gpu.address_space<workgroup>>

func.func @tile_copy_c4_row(%a: memref<65536xbf16>, %s: !s, %m: !m, %i: index) {
  // expected-error @below {{has 100 elements in a row of its shape, expected a multiple of 8}}
  schedule.tile_copy %a[%i, %i] to %s[%i] signals %m[0] {shape = array<i64: 256, 100>, box = array<i64: 64, 64>}
    : memref<65536xbf16>, !s, !m
  return
}
