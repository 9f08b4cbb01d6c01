// RUN: weir-opt %s --weir-import-launches --split-input-file | FileCheck %s
// RUN: weir-opt %s --weir-import-launches --split-input-file | weir-opt --split-input-file | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index, %s: f32, %x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %v = memref.load %x[%n] : memref<64xf32>
      %w = arith.addf %v, %s : f32
      memref.store %w, %y[%n] : memref<64xf32>
      gpu.return
    }
  }

  // Commands in the program's order; a kernel learns its workgroup's size.
  // CHECK: gpu.func @k({{.*}}) kernel attributes {known_block_size = array<i32: 32, 1, 1>
  // CHECK-LABEL: func.func @commands
  // CHECK-NOT:  gpu.
  // CHECK:      schedule.commands {
  // CHECK-NEXT:   schedule.copy %[[X:.*]] to %[[Y:.*]] : memref<64xf32> to memref<64xf32>
  // CHECK-NEXT:   schedule.fill %[[X]] with %[[S:.*]] : memref<64xf32>, f32
  // CHECK-NEXT:   schedule.dispatch @k::@k [2, 3, 4](%[[N:.*]], %[[S]], %[[Y]], %[[X]]) : (index, f32, memref<64xf32>, memref<64xf32>)
  // CHECK-NEXT:   schedule.copy %[[X]] to %[[Y]]
  // CHECK-NEXT: }
  // CHECK-NEXT: return
  func.func @commands(%x: memref<64xf32>, %y: memref<64xf32>) {
    %n = arith.constant 1 : index
    %s = arith.constant 0.0 : f32
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    gpu.memcpy %y, %x : memref<64xf32>, memref<64xf32>
    gpu.memset %x, %s : memref<64xf32>, f32
    gpu.launch_func @k::@k blocks in (%c2, %c3, %c4) threads in (%c32, %n, %n)
        args(%n : index, %s : f32, %y : memref<64xf32>, %x : memref<64xf32>)
    memref.copy %x, %y : memref<64xf32> to memref<64xf32>
    return
  }

  // Tokens and waits go; device memory is allocated before and freed behind.
  // CHECK-LABEL: func.func @tokens
  // CHECK:      %[[A:.*]] = gpu.alloc () : memref<64xf32>
  // CHECK:      %[[B:.*]] = gpu.alloc host_shared () : memref<64xf32>
  // CHECK:      schedule.commands {
  // CHECK-NEXT:   schedule.copy %{{.*}} to %[[A]]
  // CHECK-NEXT:   schedule.dispatch
  // CHECK-NEXT:   schedule.copy %[[A]] to
  // CHECK-NEXT:   schedule.fill %[[B]]
  // CHECK-NEXT: }
  // CHECK-NEXT: gpu.dealloc %[[A]] : memref<64xf32>
  // CHECK-NEXT: gpu.dealloc %[[B]] : memref<64xf32>
  // CHECK-NEXT: return
  func.func @tokens(%x: memref<64xf32>, %s: f32) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %t0 = gpu.wait async
    %a, %t1 = gpu.alloc async [%t0] () : memref<64xf32>
    %t2 = gpu.memcpy async [%t1] %a, %x : memref<64xf32>, memref<64xf32>
    %t3 = gpu.launch_func async [%t2] @k::@k blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%c1 : index, %s : f32, %a : memref<64xf32>, %a : memref<64xf32>)
    %t4 = gpu.memcpy async [%t3] %x, %a : memref<64xf32>, memref<64xf32>
    gpu.wait [%t4]
    %t5 = gpu.dealloc async [%t4] %a : memref<64xf32>
    %t6 = gpu.wait async
    %b, %t7 = gpu.alloc async [%t6] host_shared () : memref<64xf32>
    %t8 = gpu.memset async [%t7] %b, %s : memref<64xf32>, f32
    %t9 = gpu.dealloc async [%t8] %b : memref<64xf32>
    gpu.wait [%t5, %t9]
    return
  }

  // Arguments, allocations, globals; views, also between commands; memory
  // freed in between is freed behind.
  memref.global "private" constant @c : memref<64xf32> = dense<1.0>
  // CHECK-LABEL: func.func @views
  // CHECK:      memref.get_global
  // CHECK:      memref.alloc
  // CHECK:      memref.alloca
  // CHECK:      memref.view
  // CHECK:      memref.subview
  // CHECK:      memref.reinterpret_cast
  // CHECK:      memref.expand_shape
  // CHECK:      memref.collapse_shape
  // CHECK:      memref.cast
  // CHECK:      schedule.commands
  // CHECK-COUNT-6: schedule.copy
  // CHECK:      }
  // CHECK-NEXT: memref.dealloc
  // CHECK:      memref.alloc
  // CHECK-NEXT: memref.dealloc
  func.func @views(%x: memref<64xf32>, %c8: index, %s: f32) {
    %c1 = arith.constant 1 : index
    %c = memref.get_global @c : memref<64xf32>
    %a = memref.alloc() : memref<512xi8>
    memref.copy %c, %x : memref<64xf32> to memref<64xf32>
    %l = memref.alloca() : memref<64xf32>
    %v = memref.view %a[%c1][] : memref<512xi8> to memref<64xf32>
    memref.copy %v, %l : memref<64xf32> to memref<64xf32>
    %s0 = memref.subview %x[0] [32] [2] : memref<64xf32> to memref<32xf32, strided<[2]>>
    %r = memref.reinterpret_cast %x to offset: [32], sizes: [32], strides: [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 32>>
    memref.copy %s0, %r : memref<32xf32, strided<[2]>> to memref<32xf32, strided<[1], offset: 32>>
    %e = memref.expand_shape %x [[0, 1]] output_shape [8, 8] : memref<64xf32> into memref<8x8xf32>
    %f = memref.collapse_shape %e [[0, 1]] : memref<8x8xf32> into memref<64xf32>
    memref.copy %f, %l : memref<64xf32> to memref<64xf32>
    memref.dealloc %a : memref<512xi8>
    %d = memref.cast %x : memref<64xf32> to memref<?xf32>
    memref.copy %d, %l : memref<?xf32> to memref<64xf32>
    memref.copy %x, %l : memref<64xf32> to memref<64xf32>
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%c1 : index, %s : f32, %x : memref<64xf32>, %x : memref<64xf32>)
    %after = memref.alloc() : memref<64xf32>
    memref.dealloc %after : memref<64xf32>
    return
  }

  // Sizes that are computed from constants and static shapes.
  // CHECK-LABEL: func.func @computed_sizes
  // CHECK: schedule.dispatch {{.*}} [2, 64, 32](
  func.func @computed_sizes(%x: memref<64xf32>, %s: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %n = memref.dim %x, %c0 : memref<64xf32>
    %g = affine.apply affine_map<(d0)[s0] -> (d0 ceildiv s0)>(%n)[%c32]
    %h = arith.maxsi %c32, %g : index
    gpu.launch_func @k::@k blocks in (%g, %n, %h) threads in (%c32, %c1, %c1)
        args(%c0 : index, %s : f32, %x : memref<64xf32>, %x : memref<64xf32>)
    return
  }

  // Host code before the first command stays before it.
  // CHECK-LABEL: func.func @host_code_before
  // CHECK: memref.store
  // CHECK: gpu.host_register
  // CHECK: memref.load
  // CHECK: schedule.commands
  // CHECK-NEXT: schedule.dispatch
  func.func @host_code_before(%x: memref<64xf32>, %s: f32) {
    %c1 = arith.constant 1 : index
    memref.store %s, %x[%c1] : memref<64xf32>
    %r = memref.cast %x : memref<64xf32> to memref<*xf32>
    gpu.host_register %r : memref<*xf32>
    %v = memref.load %x[%c1] : memref<64xf32>
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%c1 : index, %v : f32, %x : memref<64xf32>, %x : memref<64xf32>)
    return
  }

  // A function that only copies, with views and memory of its own.
  // CHECK-LABEL: func.func @only_copies
  // CHECK:      memref.alloc
  // CHECK:      memref.subview
  // CHECK:      schedule.commands {
  // CHECK-NEXT:   schedule.copy
  // CHECK-NEXT:   schedule.copy
  // CHECK-NEXT: }
  // CHECK-NEXT: memref.dealloc
  func.func @only_copies(%x: memref<64xf32>, %y: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    memref.copy %x, %a : memref<64xf32> to memref<64xf32>
    %s = memref.subview %a[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
    %t = memref.subview %y[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
    memref.copy %s, %t : memref<32xf32, strided<[1]>> to memref<32xf32, strided<[1]>>
    memref.dealloc %a : memref<64xf32>
    return
  }

  // CHECK-LABEL: func.func @only_device_copies
  // CHECK:      schedule.commands {
  // CHECK-NEXT:   schedule.fill
  // CHECK-NEXT:   schedule.copy
  // CHECK-NEXT: }
  func.func @only_device_copies(%x: memref<64xf32>, %y: memref<64xf32>, %s: f32) {
    %t0 = gpu.memset async %x, %s : memref<64xf32>, f32
    %t1 = gpu.memcpy async [%t0] %y, %x : memref<64xf32>, memref<64xf32>
    gpu.wait [%t1]
    return
  }

  // Where host code does more, its copies are its own.
  // CHECK-LABEL: func.func @host_code_with_copies
  // CHECK-NEXT: memref.copy
  // CHECK-NEXT: call @host_code_with_copies
  func.func @host_code_with_copies(%x: memref<64xf32>, %y: memref<64xf32>) {
    memref.copy %x, %y : memref<64xf32> to memref<64xf32>
    func.call @host_code_with_copies(%y, %x) : (memref<64xf32>, memref<64xf32>) -> ()
    return
  }

  // CHECK-LABEL: func.func @host_code_with_stores
  // CHECK: memref.copy
  // CHECK-NEXT: memref.store
  func.func @host_code_with_stores(%x: memref<64xf32>, %y: memref<64xf32>, %s: f32) {
    %c0 = arith.constant 0 : index
    memref.copy %x, %y : memref<64xf32> to memref<64xf32>
    memref.store %s, %x[%c0] : memref<64xf32>
    return
  }

  // Nor is a copy of the device's own code a command.
  // CHECK-LABEL: gpu.module @device
  // CHECK: memref.copy
  gpu.module @device {
    func.func @helper(%x: memref<64xf32>, %y: memref<64xf32>) {
      memref.copy %x, %y : memref<64xf32> to memref<64xf32>
      return
    }
  }
}

// -----

// With workgroups of other sizes a kernel is another kernel; with other grids it
// states none. One that states its sizes keeps them.
module attributes {gpu.container_module} {
  // CHECK-LABEL: gpu.module @k
  // CHECK: gpu.func @k() kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
  // CHECK: gpu.func @stated() kernel attributes {known_block_size = array<i32: 8, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  // CHECK: gpu.func @[[COPY:k.+]]() kernel attributes {known_block_size = array<i32: 8, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
  // CHECK-NOT: gpu.func
  gpu.module @k {
    gpu.func @k() kernel {
      gpu.return
    }
    gpu.func @stated() kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      gpu.return
    }
  }
  // CHECK-LABEL: @sizes
  // CHECK: dispatch @k::@k [1, 1, 1]
  // CHECK: dispatch @k::@[[COPY]] [1, 1, 1]
  // CHECK: dispatch @k::@k [8, 1, 1]
  // CHECK: dispatch @k::@stated [1, 1, 1]
  func.func @sizes() {
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c32 = arith.constant 32 : i32
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) : i32
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c8, %c1, %c1) : i32
    gpu.launch_func @k::@k blocks in (%c8, %c1, %c1) threads in (%c32, %c1, %c1) : i32
    gpu.launch_func @k::@stated blocks in (%c1, %c1, %c1) threads in (%c8, %c1, %c1) : i32
    return
  }
  // In another function, too.
  // CHECK-LABEL: @sizes_elsewhere
  // CHECK: dispatch @k::@[[COPY]]
  func.func @sizes_elsewhere() {
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c8, %c1, %c1) : i32
    return
  }
}

// -----

// Modules in modules.
// CHECK-LABEL: module @inner
// CHECK: dispatch @k::@k [1, 1, 1]
module {
  module @inner attributes {gpu.container_module} {
    gpu.module @k {
      gpu.func @k(%x: memref<?x?xf32, strided<[?, ?], offset: ?>, 1>, %y: memref<*xf32>, %v: vector<4xf32>) kernel {
        gpu.return
      }
    }
    func.func @inner(%x: memref<?x?xf32, strided<[?, ?], offset: ?>, 1>, %y: memref<*xf32>, %v: vector<4xf32>) {
      %c1 = arith.constant 1 : index
      gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
          args(%x : memref<?x?xf32, strided<[?, ?], offset: ?>, 1>, %y : memref<*xf32>, %v : vector<4xf32>)
      return
    }
  }
}
