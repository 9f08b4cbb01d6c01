// RUN: weir-opt %s --weir-donate-buffers --remarks-filter=donate-buffers -split-input-file -o /dev/null 2>&1 | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @add(%a: memref<64xf32>, %b: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32>
      %v = memref.load %b[%i] : memref<64xf32>
      %w = arith.addf %u, %v : f32
      memref.store %w, %y[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @copy(%a: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32>
      memref.store %u, %y[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @reverse(%a: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %c63 = arith.constant 63 : index
      %i = gpu.thread_id x
      %r = arith.subi %c63, %i : index
      %u = memref.load %a[%r] : memref<64xf32>
      memref.store %u, %y[%i] : memref<64xf32>
      gpu.return
    }
    gpu.func @half(%a: memref<64xf32>, %y: memref<32xf32>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32>
      memref.store %u, %y[%i] : memref<32xf32>
      gpu.return
    }
    gpu.func @bits(%a: memref<64xf32>, %y: memref<64xi32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32>
      %v = arith.bitcast %u : f32 to i32
      memref.store %v, %y[%i] : memref<64xi32>
      gpu.return
    }
    gpu.func @near(%a: memref<64xf32, 1>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32, 1>
      memref.store %u, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  memref.global "private" constant @table : memref<64xf32> = dense<1.0>

  // A value in between and a donated argument may be overwritten.
  // CHECK: remark: [Passed] in-place | Category:donate-buffers | Remark=""t", which operand 1 is, may take the 256 bytes of "x", operand 0"
  // CHECK: remark: [Passed] in-place {{.*}}Remark=""y", which operand 1 is, may take the 256 bytes of "t", operand 0"
  func.func @allowed(%x: memref<64xf32> {weir.name = "x", weir.donate},
                     %y: memref<64xf32> {weir.name = "y", weir.result}) attributes {weir.entry} {
    %t = memref.alloc() {weir.name = "t"} : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%t, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // CHECK: remark: [Missed] in-place {{.*}}Reason=live-reader, Remark="{{.*}}: a later command still touches them; see loc("{{.*}}":{{[0-9]+}}:7)"
  // CHECK: remark: [Passed] in-place {{.*}}"y", which operand {{[0-9]}} is, may take the {{[0-9]+}} bytes of "t"
  func.func @live_reader(%x: memref<64xf32> {weir.donate},
                         %y: memref<64xf32> {weir.name = "y", weir.result}) attributes {weir.entry} {
    %t = memref.alloc() {weir.name = "t"} : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@add [1, 1, 1] (%t, %x, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // A reader before, on another queue; its twin is on the same.
  // CHECK: remark: [Missed] in-place {{.*}}Reason=live-reader
  // CHECK: remark: [Missed] in-place {{.*}}Reason=unordered-reader{{.*}}; see loc("{{.*}}":{{[0-9]+}}:7)"
  func.func @unordered_reader(%x: memref<64xf32> {weir.donate},
                              %y: memref<64xf32> {weir.result},
                              %z: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) queue 1 : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %z) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
  // CHECK: remark: [Missed] in-place {{.*}}Reason=live-reader
  // CHECK: remark: [Passed] in-place {{.*}}"z", which operand {{[0-9]}} is, may take
  func.func @ordered_reader(%x: memref<64xf32> {weir.donate},
                            %y: memref<64xf32> {weir.result},
                            %z: memref<64xf32> {weir.name = "z", weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %z) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Arguments of functions that are no entries may be one another; one that
  // says it isn't may be taken.
  // CHECK: remark: [Missed] in-place {{.*}}Reason=argument-alias
  // CHECK: remark: [Passed] in-place
  func.func @argument_alias(%x: memref<64xf32> {weir.donate}, %n: memref<64xf32> {weir.donate, llvm.noalias},
                            %y: memref<64xf32> {weir.result}, %z: memref<64xf32> {weir.result}) {
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%n, %z) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // CHECK: remark: [Missed] in-place {{.*}}Reason=view-of-argument
  func.func @view_of_argument(%x: memref<128xf32> {weir.donate},
                              %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %v = memref.subview %x[0] [64] [1] : memref<128xf32> to memref<64xf32, strided<[1]>>
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%v, %y) : (memref<64xf32, strided<[1]>>, memref<64xf32>)
    }
    return
  }

  // CHECK: remark: [Missed] in-place {{.*}}Reason=size
  func.func @size(%x: memref<64xf32> {weir.donate},
                  %y: memref<32xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@half [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<32xf32>)
    }
    return
  }

  // CHECK: remark: [Missed] in-place {{.*}}Reason=layout
  func.func @layout(%x: memref<64xf32> {weir.donate},
                    %y: memref<64xi32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@bits [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xi32>)
    }
    return
  }

  // CHECK: remark: [Missed] in-place {{.*}}Reason=alignment
  // CHECK: remark: [Passed] in-place
  func.func @alignment(%x: memref<64xf32> {weir.donate}, %z: memref<64xf32> {weir.donate}) attributes {weir.entry} {
    %t = memref.alloc() {alignment = 4096 : i64} : memref<64xf32>
    %u = memref.alloc() {alignment = 256 : i64} : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %t) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%z, %u) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // CHECK: remark: [Missed] in-place {{.*}}Reason=memory-space
  func.func @memory_space(%x: memref<64xf32, 1> {weir.donate},
                          %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@near [1, 1, 1] (%x, %y) : (memref<64xf32, 1>, memref<64xf32>)
    }
    return
  }

  // CHECK: remark: [Missed] in-place {{.*}}Reason=access-map-unproven{{.*}}Remark="{{.*}}, operand 1 may be written before operand 0 is read; see
  func.func @unproven(%x: memref<64xf32> {weir.donate},
                      %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@reverse [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Two operands that name the bytes both have to hold.
  // CHECK: remark: [Passed] in-place
  // CHECK: remark: [Passed] in-place
  func.func @twice(%x: memref<64xf32> {weir.donate}, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@add [1, 1, 1] (%x, %x, %y) : (memref<64xf32>, memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // CHECK: remark: [Missed] in-place {{.*}}Reason=not-owned
  // CHECK: remark: [Missed] in-place {{.*}}Reason=not-owned
  func.func @not_owned(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}, %z: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %c = memref.get_global @table : memref<64xf32>
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%c, %z) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // CHECK: remark: [Missed] in-place {{.*}}Reason=not-owned
  // CHECK: remark: [Missed] in-place {{.*}}Reason=escapes-twice
  // CHECK-NOT: remark
  func.func @escapes_twice(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}, %z: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @k::@copy [1, 1, 1] (%y, %z) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @copy(%a: memref<64xf32>, %y: memref<64xf32>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %i = gpu.thread_id x
      %u = memref.load %a[%i] : memref<64xf32>
      memref.store %u, %y[%i] : memref<64xf32>
      gpu.return
    }
  }

  // Whoever calls reads what is returned: x itself, or a view of it; the twin returns the result.
  // CHECK: remark: [Missed] in-place {{.*}}Reason=escapes-twice, Remark=""y", which operand 1 is, may not take the bytes of "x", operand 0: that is a result itself
  func.func @returned(%x: memref<64xf32> {weir.name = "x", weir.donate},
                      %y: memref<64xf32> {weir.name = "y", weir.result}) -> memref<64xf32> attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return %x : memref<64xf32>
  }

  // CHECK: remark: [Missed] in-place {{.*}}Reason=escapes-twice
  func.func @view_returned(%x: memref<64xf32> {weir.donate},
                           %y: memref<64xf32> {weir.result}) -> memref<8x8xf32> attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
    }
    %v = memref.expand_shape %x [[0, 1]] output_shape [8, 8] : memref<64xf32> into memref<8x8xf32>
    return %v : memref<8x8xf32>
  }

  // CHECK: remark: [Missed] in-place {{.*}}Reason=escapes-twice
  func.func @either_returned(%c: i1, %x: memref<64xf32> {weir.donate}, %z: memref<64xf32>,
                             %y: memref<64xf32> {weir.result}) -> memref<64xf32> attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
    }
    %r = arith.select %c, %x, %z : memref<64xf32>
    return %r : memref<64xf32>
  }

  // CHECK: remark: [Passed] in-place
  // CHECK-NOT: remark
  func.func @twin_of_returned(%x: memref<64xf32> {weir.donate},
                              %y: memref<64xf32> {weir.result}) -> memref<64xf32> attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @k::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return %y : memref<64xf32>
  }
}
