// RUN: weir-opt %s -split-input-file -verify-diagnostics --weir-set-profile=profile=x86-64-v3 --weir-emit-cpu

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @exp {
  gpu.func @exp(%x: memref<32xf32, #global>)
      kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %i = gpu.block_id x
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
gpu.module @wide {
  // expected-error @below {{kernel @wide: a workgroup of 32 invocations exceeds the 1 of target x86-64-v3}}
  gpu.func @wide(%x: memref<32xf32, #global>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @atomic {
  gpu.func @atomic(%x: memref<32xi32, #global>)
      kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %i = gpu.block_id x
    %one = arith.constant 1 : i32
    // expected-error @below {{kernel @atomic: memref.atomic_rmw has no lowering to machine code}}
    %v = memref.atomic_rmw addi %one, %x[%i] : (i32, memref<32xi32, #global>) -> i32
    gpu.return
  }
}
}
