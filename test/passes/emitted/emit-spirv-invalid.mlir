// RUN: weir-opt %s -split-input-file -verify-diagnostics --weir-set-profile --weir-emit-spirv

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @f8 {
  // expected-error @below {{kernel @f8: 'f8E5M2' has no representation in SPIR-V here}}
  gpu.func @f8(%x: memref<64xf8E5M2, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @f16 {
  gpu.func @f16(%x: memref<64xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<64xf32, #global>
    %h = arith.truncf %v : f32 to f16
    // expected-error @below {{kernel @f16: arith.addf of f16 or bf16 has no lowering; weir-widen-arithmetic has one for graphs}}
    %s = arith.addf %h, %h : f16
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @wide {
  gpu.func @wide(%x: memref<64xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<64xf32, #global>
    // expected-error @below {{kernel @wide: 'vector<8xf32>' is not a vector of 1 to 4 elements}}
    %w = vector.broadcast %v : f32 to vector<8xf32>
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @rank2 {
  // expected-error @below {{is not a 1-D memref of static shape and identity layout}}
  gpu.func @rank2(%x: memref<8x8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @strided {
  // expected-error @below {{is not a 1-D memref of static shape and identity layout}}
  gpu.func @strided(%x: memref<8xf32, strided<[2]>, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @dynamic {
  // expected-error @below {{is not a 1-D memref of static shape and identity layout}}
  gpu.func @dynamic(%x: memref<?xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @empty {
  // expected-error @below {{has no elements, which SPIR-V cannot declare}}
  gpu.func @empty(%x: memref<0xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}
}

// -----

module attributes {gpu.container_module} {
gpu.module @space {
  // expected-error @below {{argument 0 of type 'memref<8xf32>' is not a memref in #gpu.address_space<global>}}
  gpu.func @space(%x: memref<8xf32>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}
}

// -----

module attributes {gpu.container_module} {
gpu.module @scalar {
  // expected-error @below {{argument 0 of type 'f32' is not a memref in #gpu.address_space<global>}}
  gpu.func @scalar(%x: f32) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @bool {
  // expected-error @below {{'i1' in memory has no fixed size; store i8, i16, i32 or i64}}
  gpu.func @bool(%x: memref<8xi1, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @three {
  // expected-error @below {{'vector<3xf32>' in memory is padded in SPIR-V; use a power of two of elements, at least 2}}
  gpu.func @three(%x: memref<8xvector<3xf32>, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @all_reduce {
  gpu.func @all_reduce(%x: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<8xf32, #global>
    // expected-error @below {{gpu.all_reduce leaves the order of the sum open}}
    %s = gpu.all_reduce add %v uniform {} : (f32) -> f32
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @vector_load {
  gpu.func @vector_load(%x: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    // expected-error @below {{vector.load has no lowering; load and store elements of a memref of vectors}}
    %v = vector.load %x[%i] : memref<8xf32, #global>, vector<4xf32>
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @exp64 {
  gpu.func @exp64(%x: memref<8xf64, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<8xf64, #global>
    // expected-error @below {{kernel @exp64: math.exp of f64 has no exact lowering; weir-expand-math has one for f32 and f64}}
    %e = math.exp %v : f64
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @remainder {
  gpu.func @remainder(%x: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<8xf32, #global>
    // expected-error @below {{arith.remf of f32 has no exact lowering; weir-expand-math has one for f32 and f64}}
    %e = arith.remf %v, %v : f32
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @unsigned_loop {
  gpu.func @unsigned_loop(%x: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error @below {{an unsigned loop has no lowering}}
    scf.for unsigned %i = %c0 to %c1 step %c1 {
    }
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @no_size {
  // expected-error @below {{kernel @no_size: has no known_block_size}}
  gpu.func @no_size(%x: memref<8xf32, #global>) kernel {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @too_large {
  // expected-error @below {{a workgroup of 2048 invocations exceeds the 1024 of target lavapipe}}
  gpu.func @too_large(%x: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 64, 32, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @too_much_shared {
  // expected-error @below {{36864 bytes of workgroup memory exceed the 32768 of target lavapipe; compile for a profile with a larger workgroup_memory, if the device has it}}
  gpu.func @too_much_shared(%x: memref<8xf32, #global>)
      workgroup(%s: memref<9216xf32, #gpu.address_space<workgroup>>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @too_many_bytes {
  // expected-error @below {{argument 0 spans 134217732 bytes, more than the 134217728 that target lavapipe binds}}
  gpu.func @too_many_bytes(%x: memref<33554433xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @shuffle_width {
  // expected-error @below {{kernel @shuffle_width has no lowering to SPIR-V}}
  gpu.func @shuffle_width(%x: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %offset = arith.constant 4 : i32
    %width = arith.constant 32 : i32
    %v = memref.load %x[%i] : memref<8xf32, #global>
    // expected-error @below {{failed to legalize operation 'gpu.shuffle'}}
    %w, %valid = gpu.shuffle xor %v, %offset, %width : f32
    memref.store %w, %x[%i] : memref<8xf32, #global>
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
gpu.module @helper {
  // expected-error @below {{kernel @helper: is not a kernel; helper functions must be inlined before}}
  gpu.func @helper(%x: memref<8xf32, #global>) {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>

module attributes {gpu.container_module} {
func.func @taken() {
  return
}
gpu.module @other {
  // expected-error @below {{kernel @taken: another symbol of the module has this name}}
  gpu.func @taken(%x: memref<8xf32, #global>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.return
  }
}
}

// -----

#global = #gpu.address_space<global>
#shared = #gpu.address_space<workgroup>

module attributes {gpu.container_module} {
gpu.module @matrix {
  gpu.func @matrix(%x: memref<64xf32, #global>) workgroup(%s: memref<256xf32, #shared>)
      kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %c0 = arith.constant 0 : index
    // expected-error @below {{kernel @matrix: gpu.subgroup_mma_load_matrix needs a "cooperative_matrix", which target lavapipe lacks}}
    %m = gpu.subgroup_mma_load_matrix %s[%c0] {leadDimension = 16 : index}
        : memref<256xf32, #shared> -> !gpu.mma_matrix<16x16xf32, "COp">
    gpu.return
  }
}
}
