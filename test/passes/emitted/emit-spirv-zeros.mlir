// RUN: weir-opt %s -split-input-file --weir-set-profile --weir-emit-spirv --weir-print-spirv | FileCheck %s

// Drivers know operations by an operand that is the constant 0; the code has others of the same value.

module attributes {gpu.container_module} {
  // CHECK-LABEL: ; gpu.binary @zeros
  // CHECK-DAG:  %[[ZERO:.*]] = OpConstant %float 0
  // CHECK-DAG:  %[[MINUS:.*]] = OpConstant %float -0
  // CHECK-DAG:  %[[INF:.*]] = OpConstant %float 0x1p+128
  // CHECK:      %[[X:.*]] = OpLoad %float
  // CHECK-DAG:  %[[N:.*]] = OpFNegate %float %[[X]]
  // CHECK-DAG:  OpFMul %float %[[#]] %[[MINUS]]
  // CHECK-DAG:  OpFDiv %float %[[MINUS]] %[[#]]
  // CHECK-DAG:  OpFMul %float %[[X]] %[[INF]]
  // CHECK-DAG:  %[[IS:.*]] = OpFOrdEqual %bool %[[X]] %[[ZERO]]
  // CHECK-DAG:  OpSelect %float %[[#]] %[[ZERO]] %[[X]]
  // CHECK-DAG:  OpSelect %float %[[#]] %[[ZERO]] %[[#]]
  // CHECK-NOT:  OpFAdd
  gpu.module @zeros {
    gpu.func @zeros(%in: memref<1xf32, #gpu.address_space<global>>, %out: memref<5xf32, #gpu.address_space<global>>)
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %z = arith.constant 0.0 : f32
      %x = memref.load %in[%c0] : memref<1xf32, #gpu.address_space<global>>
      %p = arith.mulf %z, %x : f32
      %q = arith.divf %z, %x : f32
      %r = arith.divf %x, %z : f32
      %s = arith.addf %z, %x : f32
      %d = arith.subf %z, %x : f32
      memref.store %p, %out[%c0] : memref<5xf32, #gpu.address_space<global>>
      memref.store %q, %out[%c1] : memref<5xf32, #gpu.address_space<global>>
      memref.store %r, %out[%c2] : memref<5xf32, #gpu.address_space<global>>
      memref.store %s, %out[%c3] : memref<5xf32, #gpu.address_space<global>>
      memref.store %d, %out[%c4] : memref<5xf32, #gpu.address_space<global>>
      gpu.return
    }
  }
}

// -----

// The twin: what drivers compute as it stands.
module attributes {gpu.container_module} {
  // CHECK-LABEL: ; gpu.binary @others
  // CHECK-DAG:  %[[MINUS:.*]] = OpConstant %float -0
  // CHECK-DAG:  %[[TWO:.*]] = OpConstant %float 2
  // CHECK:      OpFDiv %float %[[#]] %[[MINUS]]
  // CHECK:      OpFAdd %float %[[#]] %[[TWO]]
  // CHECK-NOT:  OpSelect
  gpu.module @others {
    gpu.func @others(%in: memref<2xf32, #gpu.address_space<global>>, %out: memref<2xf32, #gpu.address_space<global>>)
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant -0.0 : f32
      %o = arith.constant 2.0 : f32
      %x = memref.load %in[%c0] : memref<2xf32, #gpu.address_space<global>>
      %s = arith.divf %x, %n : f32
      %y = memref.load %in[%c1] : memref<2xf32, #gpu.address_space<global>>
      %p = arith.addf %y, %o : f32
      memref.store %s, %out[%c0] : memref<2xf32, #gpu.address_space<global>>
      memref.store %p, %out[%c1] : memref<2xf32, #gpu.address_space<global>>
      gpu.return
    }
  }
}
