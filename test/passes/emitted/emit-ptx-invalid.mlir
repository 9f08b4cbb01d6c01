// RUN: weir-opt %s -split-input-file -verify-diagnostics --weir-set-profile=profile=sm_80 --weir-emit-ptx

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @exp {
  gpu.func @exp(%x: memref<32xf32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<32xf32, #global>
    // expected-error @below {{kernel @exp: math.exp of f32 has no exact lowering; weir-expand-math has one for f32 and f64}}
    %e = math.exp %v : f32
    memref.store %e, %x[%i] : memref<32xf32, #global>
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @remainder {
  gpu.func @remainder(%x: memref<32xf32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<32xf32, #global>
    // expected-error @below {{arith.remf of f32 has no exact lowering; weir-expand-math has one for f32 and f64}}
    %w = arith.remf %v, %v : f32
    memref.store %w, %x[%i] : memref<32xf32, #global>
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @narrow_shuffle {
  gpu.func @narrow_shuffle(%x: memref<32xf32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    %one = arith.constant 1 : i32
    %width = arith.constant 8 : i32
    %v = memref.load %x[%i] : memref<32xf32, #global>
    // expected-error @below {{kernel @narrow_shuffle: shuffles other than among all 32 invocations of a subgroup have no lowering}}
    %w, %valid = gpu.shuffle xor %v, %one, %width : f32
    memref.store %w, %x[%i] : memref<32xf32, #global>
    gpu.return
  }
}
}

// -----

// Lanes that don't exist cannot take part.

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @part_of_a_subgroup {
  gpu.func @part_of_a_subgroup(%x: memref<48xf32, #global>)
      kernel attributes {known_block_size = array<i32: 16, 3, 1>} {
    %i = gpu.thread_id x
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %v = memref.load %x[%i] : memref<48xf32, #global>
    // expected-error @below {{shuffles in a workgroup of 48 invocations, which is not a multiple of the subgroup's 32}}
    %w, %valid = gpu.shuffle xor %v, %one, %width : f32
    memref.store %w, %x[%i] : memref<48xf32, #global>
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @float_atomic {
  gpu.func @float_atomic(%x: memref<32xf32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    %one = arith.constant 1.0 : f32
    // expected-error @below {{memref.atomic_rmw of floats leaves the order of the sum open}}
    %old = memref.atomic_rmw addf %one, %x[%i] : (f32, memref<32xf32, #global>) -> f32
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @reduce {
  gpu.func @reduce(%x: memref<32xf32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<32xf32, #global>
    // expected-error @below {{gpu.subgroup_reduce leaves the order of the sum open}}
    %w = gpu.subgroup_reduce add %v : (f32) -> f32
    memref.store %w, %x[%i] : memref<32xf32, #global>
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @tf32 {
  // expected-error @below {{'tf32' has no representation in PTX here}}
  gpu.func @tf32(%x: memref<32xtf32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @too_long {
  // expected-error @below {{has more elements than a 32-bit index reaches}}
  gpu.func @too_long(%x: memref<2147483648xf32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}
}

// -----

// What the gate does not know, the conversion refuses, and what that lowers to a
// call the check of the text.

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @affine {
  // expected-error @below {{kernel @affine has no lowering to PTX}}
  gpu.func @affine(%x: memref<32xi32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    // expected-error @below {{failed to legalize operation 'affine.apply'}}
    %j = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%i)
    %v = memref.load %x[%j] : memref<32xi32, #global>
    memref.store %v, %x[%i] : memref<32xi32, #global>
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @assert {
  // expected-error @below {{kernel @assert became wrong PTX: it declares a symbol beside the entry: .extern .func __assertfail}}
  gpu.func @assert(%x: memref<32xi32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<32xi32, #global>
    %zero = arith.constant 0 : i32
    %p = arith.cmpi eq, %v, %zero : i32
    cf.assert %p, "zero"
    gpu.return
  }
}
}

// -----

module attributes {gpu.container_module} {
gpu.module @helpers {
  // expected-error @below {{gpu.module @helpers holds func.func; only kernels become PTX}}
  func.func @helper() {
    return
  }
}
}
