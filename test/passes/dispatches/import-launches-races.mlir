// RUN: weir-opt %s --weir-import-launches --verify-diagnostics

// Hazards that the source's tokens leave unordered, each with a twin.
module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @k(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %n = gpu.thread_id x
      %v = memref.load %x[%n] : memref<64xf32>
      memref.store %v, %y[%n] : memref<64xf32>
      gpu.return
    }
  }

  func.func @raw_of_launches(%x: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %t0 = gpu.wait async
    // expected-note @below {{with operand 1 of this one}}
    %t1 = gpu.launch_func async [%t0] @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<64xf32>, %a : memref<64xf32>)
    // expected-warning @below {{operand 0 has a raw hazard with an earlier command, and no token orders them: a race in the source}}
    %t2 = gpu.launch_func async [%t0] @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%a : memref<64xf32>, %b : memref<64xf32>)
    gpu.wait [%t1, %t2]
    return
  }

  // Tokens of allocations and waits carry on what they wait for.
  func.func @raw_twin_tokens(%x: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf32>
    %t0 = gpu.wait async
    %t1 = gpu.launch_func async [%t0] @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<64xf32>, %a : memref<64xf32>)
    %t2 = gpu.wait async [%t1]
    %b, %t3 = gpu.alloc async [%t2] () : memref<64xf32>
    %t4 = gpu.launch_func async [%t3] @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%a : memref<64xf32>, %b : memref<64xf32>)
    gpu.wait [%t4]
    return
  }

  // The host waits.
  func.func @raw_twin_host(%x: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %t0 = gpu.wait async
    %t1 = gpu.launch_func async [%t0] @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<64xf32>, %a : memref<64xf32>)
    gpu.wait [%t1]
    %t2 = gpu.launch_func async [%t0] @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%a : memref<64xf32>, %b : memref<64xf32>)
    gpu.wait [%t2]
    return
  }

  // Without `async` the host waits for a command, but for no other.
  func.func @waw_of_copy_and_fill(%x: memref<64xf32>, %s: f32) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %t0 = gpu.wait async
    // expected-note @below {{with operand 1 of this one}}
    %t1 = gpu.memset async [%t0] %a, %s : memref<64xf32>, f32
    gpu.launch_func @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<64xf32>, %b : memref<64xf32>)
    // expected-warning @below {{operand 1 has a waw hazard}}
    gpu.memcpy %a, %b : memref<64xf32>, memref<64xf32>
    gpu.wait [%t1]
    return
  }

  // Other bytes of one allocation, and arguments, of which nothing is known.
  func.func @waw_twin(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>, %w: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %a = memref.alloc() : memref<512xi8>
    %a0 = memref.view %a[%c0][] : memref<512xi8> to memref<64xf32>
    %a1 = memref.view %a[%c256][] : memref<512xi8> to memref<64xf32>
    %t0 = gpu.wait async
    %t1 = gpu.memcpy async [%t0] %a0, %x : memref<64xf32>, memref<64xf32>
    %t2 = gpu.memcpy async [%t0] %a1, %x : memref<64xf32>, memref<64xf32>
    %t3 = gpu.memcpy async [%t0] %z, %y : memref<64xf32>, memref<64xf32>
    gpu.wait [%t1, %t2, %t3]
    return
  }

  // Two streams that meet: what both wait for is ordered, they are not.
  func.func @war_of_streams(%x: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    %t0 = gpu.memcpy async %a, %x : memref<64xf32>, memref<64xf32>
    // expected-note @below {{with operand 0 of this one}}
    %t1 = gpu.launch_func async [%t0] @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%a : memref<64xf32>, %b : memref<64xf32>)
    // expected-warning @below {{operand 1 has a war hazard}}
    %t2 = gpu.memcpy async [%t0] %a, %x : memref<64xf32>, memref<64xf32>
    %t3 = gpu.wait async [%t1, %t2]
    %t4 = gpu.launch_func async [%t3] @k::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%a : memref<64xf32>, %b : memref<64xf32>)
    gpu.wait [%t4]
    return
  }
}
