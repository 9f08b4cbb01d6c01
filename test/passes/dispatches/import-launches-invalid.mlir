// RUN: weir-opt %s --weir-import-launches --split-input-file --verify-diagnostics --allow-unregistered-dialect

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  // expected-note @below {{it is this value}}
  func.func @dynamic_grid(%n: index) {
    // expected-note @below {{it is this value}}
    %m = arith.addi %n, %n : index
    // expected-note @below {{it is this value}}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error @below {{grid size y is not a constant}}
    // expected-error @below {{workgroup size z is not a constant}}
    gpu.launch_func @k::@k blocks in (%c1, %m, %c1) threads in (%c1, %c1, %n) args(%c1 : index)
    // expected-error @below {{grid size x is 0, not in [1, 2^31)}}
    gpu.launch_func @k::@k blocks in (%c0, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func @clusters() {
    %c1 = arith.constant 1 : index
    // expected-error @below {{has a cluster size, which a dispatch does not}}
    gpu.launch_func @k::@k clusters in (%c1, %c1, %c1) blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func @dynamic_memory() {
    %c1 = arith.constant 1 : index
    %c0_i32 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) dynamic_shared_memory_size %c0_i32 args(%c1 : index)
    // expected-error @below {{has dynamic workgroup memory, which a dispatch does not}}
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) dynamic_shared_memory_size %c64 args(%c1 : index)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func @stream(%s: !llvm.ptr) {
    %c1 = arith.constant 1 : index
    // expected-error @below {{is given a stream, of whose other users nothing is known}}
    gpu.launch_func <%s : !llvm.ptr> @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @p(%p: !llvm.ptr) kernel {
      gpu.return
    }
  }
  func.func @pointer(%p: !llvm.ptr) {
    %c1 = arith.constant 1 : index
    // expected-error @below {{operand 0 is '!llvm.ptr', neither a memref nor a scalar}}
    gpu.launch_func @k::@p blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !llvm.ptr)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel attributes {known_block_size = array<i32: 8, 1, 1>, known_grid_size = array<i32: 1, 2, 1>} {
      gpu.return
    }
  }
  func.func @stated_sizes() {
    %c1 = arith.constant 1 : index
    // expected-error @below {{has a grid of [1, 1, 1], its kernel states [1, 2, 1]}}
    // expected-error @below {{has a workgroup of [1, 1, 1], its kernel states [8, 1, 1]}}
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  gpu.module @m {
    func.func @l(%n: i64) attributes {gpu.kernel} {
      return
    }
  }
  func.func @no_gpu_func(%n: i64) {
    %c1 = arith.constant 1 : index
    // expected-error @below {{launches @m::@l, which is not a gpu.func; its effects are not known}}
    gpu.launch_func @m::@l blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%n : i64)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func @inline_launch() {
    %c1 = arith.constant 1 : index
    // expected-error @below {{has its kernel inside; run gpu-kernel-outlining first}}
    gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1)
        threads(%g, %h, %i) in (%j = %c1, %k = %c1, %l = %c1) {
      gpu.terminator
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func @loop() {
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    // expected-note @below {{inside this 'scf.for'}}
    scf.for %i = %c1 to %c8 step %c1 {
      // expected-error @below {{is inside another operation; only a straight-line function becomes a command list}}
      gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  // expected-error @below {{launches kernels or copies, and has 2 blocks; only a straight-line function becomes a command list}}
  func.func @blocks() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    cf.br ^next
  ^next:
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func @second_list() {
    %c1 = arith.constant 1 : index
    // expected-error @below {{stands beside launches; a function has one command list}}
    schedule.commands {
    }
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func private @callee()
  func.func @call() {
    %c1 = arith.constant 1 : index
    // expected-error @below {{may launch, and touch any memory; inline it first}}
    func.call @callee() : () -> ()
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func @host_load(%x: memref<4xf32>) -> f32 {
    %c1 = arith.constant 1 : index
    // expected-note @below {{after this command}}
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    // expected-error @below {{is host code that may touch memory}}
    %v = memref.load %x[%c1] : memref<4xf32>
    return %v : f32
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func @host_fill(%x: memref<4xf32>, %v: f32) {
    %c1 = arith.constant 1 : index
    // expected-note @below {{after this command}}
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    // expected-error @below {{is host code that may touch memory}}
    linalg.fill ins(%v : f32) outs(%x : memref<4xf32>)
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func @host_loop(%x: memref<4xf32>, %v: f32) {
    %c1 = arith.constant 1 : index
    // Nothing that matters.
    scf.for %i = %c1 to %c1 step %c1 {
    }
    // expected-note @below {{after this command}}
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    scf.for %i = %c1 to %c1 step %c1 {
    }
    // expected-error @below {{is host code that may touch memory}}
    scf.for %i = %c1 to %c1 step %c1 {
      memref.store %v, %x[%i] : memref<4xf32>
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func @unknown_op() {
    %c1 = arith.constant 1 : index
    // expected-error @below {{may do anything, launch included}}
    "who.knows"() : () -> ()
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func @token_returned() -> !gpu.async.token {
    %c1 = arith.constant 1 : index
    %t = gpu.launch_func async @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    // expected-error @below {{takes part in the order of launches and cannot be imported}}
    return %t : !gpu.async.token
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  func.func @freed(%x: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<16xi8>
    %v = memref.view %a[%c1][] : memref<16xi8> to memref<2xf32>
    // expected-note @below {{is freed here}}
    memref.dealloc %a : memref<16xi8>
    // expected-error @below {{uses memory that was freed}}
    memref.copy %v, %v : memref<2xf32> to memref<2xf32>
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%c1 : index)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%n: index) kernel {
      gpu.return
    }
  }
  "no.func"() ({
    %n = arith.constant 1 : index
    // expected-error @below {{is in no func.func and cannot be imported}}
    gpu.launch_func @k::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%n : index)
    "no.return"() : () -> ()
  }) : () -> ()
}

// -----

func.func @copy_in_loop(%x: memref<4xf32>, %y: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-note @below {{inside this 'scf.for'}}
  scf.for %i = %c1 to %c8 step %c1 {
    // expected-error @below {{is inside another operation; only a straight-line function becomes a command list}}
    gpu.memcpy %y, %x : memref<4xf32>, memref<4xf32>
  }
  return
}
