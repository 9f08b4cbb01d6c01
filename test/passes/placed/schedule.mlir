// RUN: weir-opt %s --weir-schedule --split-input-file --verify-diagnostics | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @copy {
    gpu.func @copy(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      memref.store %v, %y[%i] : memref<64xf32>
      gpu.return
    }
  }

  // CHECK-LABEL: @chain
  // CHECK: @copy::@copy {{.*}} wave 0
  // CHECK: @copy::@copy {{.*}} wave 1
  // CHECK: @copy::@copy {{.*}} wave 2
  func.func @chain(%x: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %b) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Two readers of one value share a wave; nothing is moved, so a dispatch that
  // needs nothing stays in the wave of the one before it.
  // CHECK-LABEL: @fork
  // CHECK: dispatch {{.*}} wave 0
  // CHECK: dispatch {{.*}} wave 1
  // CHECK: dispatch {{.*}} wave 1
  // CHECK: dispatch {{.*}} wave 1
  func.func @fork(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) attributes {weir.entry} {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%a, %z) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %b) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // WAR: the value's readers come before its next writer. WAW: so do writers.
  // CHECK-LABEL: @war_waw
  // CHECK: dispatch {{.*}} wave 0
  // CHECK: dispatch {{.*}} wave 1
  // CHECK: dispatch {{.*}} wave 2
  func.func @war_waw(%x: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %y) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %x) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%y, %x) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // Halves of one argument, written and read, have no hazard.
  // CHECK-LABEL: @halves
  // CHECK: dispatch {{.*}} wave 0
  // CHECK: dispatch {{.*}} wave 0
  func.func @halves(%x: memref<64xf32>, %y: memref<128xf32>, %z: memref<64xf32>) attributes {weir.entry} {
    %0 = memref.subview %y[0] [64] [1] : memref<128xf32> to memref<64xf32, strided<[1]>>
    %1 = memref.subview %y[64] [64] [1] : memref<128xf32> to memref<64xf32, strided<[1], offset: 64>>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %0) : (memref<64xf32>, memref<64xf32, strided<[1]>>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%1, %z) : (memref<64xf32, strided<[1], offset: 64>>, memref<64xf32>)
    }
    return
  }

  // Arguments of a function that is no entry may share bytes: a value read
  // through one is ordered before a write through another.
  // CHECK-LABEL: @foreign
  // CHECK: dispatch {{.*}} wave 0
  // CHECK: dispatch {{.*}} wave 1
  func.func @foreign(%x: memref<64xf32>, %y: memref<64xf32>) {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // CHECK-LABEL: @foreign_twin
  // CHECK: dispatch {{.*}} wave 0
  // CHECK: dispatch {{.*}} wave 0
  func.func @foreign_twin(%x: memref<64xf32>, %y: memref<64xf32>) attributes {weir.entry} {
    %a = memref.alloc() : memref<64xf32>
    %b = memref.alloc() : memref<64xf32>
    schedule.commands {
      schedule.dispatch @copy::@copy [1, 1, 1] (%x, %a) : (memref<64xf32>, memref<64xf32>)
      schedule.dispatch @copy::@copy [1, 1, 1] (%b, %y) : (memref<64xf32>, memref<64xf32>)
    }
    return
  }

  // CHECK-LABEL: @no_commands
  func.func @no_commands() {
    return
  }
  func.func private @declaration()
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k {
    memref.global @table : memref<4xf32>
    gpu.func @k(%x: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %t = memref.get_global @table : memref<4xf32>
      // expected-note @below {{through this operation}}
      %v = memref.load %t[%c0] : memref<4xf32>
      gpu.return
    }
  }
  func.func @other_memory(%x: memref<4xf32>) {
    schedule.commands {
      // expected-error @below {{may touch memory that is not among its operands}}
      schedule.dispatch @k::@k [1, 1, 1] (%x) : (memref<4xf32>)
    }
    return
  }
  func.func @two_lists() {
    // expected-note @below {{the first is here}}
    schedule.commands {
    }
    // expected-error @below {{is the second command list of its function}}
    schedule.commands {
    }
    return
  }
  func.func @nested(%p: i1) {
    scf.if %p {
      // expected-error @below {{is not in the first block of its function}}
      schedule.commands {
      }
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.binary @k [#gpu.object<#spirv.target_env<#spirv.vce<v1.3, [Shader], []>, #spirv.resource_limits<>>, bin = "x">]
  func.func @emitted(%x: memref<4xf32>) {
    schedule.commands {
      // expected-error @below {{names @k, which is no gpu.func}}
      schedule.dispatch @k [1, 1, 1] (%x) : (memref<4xf32>)
    }
    return
  }
}
