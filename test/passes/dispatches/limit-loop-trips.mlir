// Loops that make more trips than the device are unrolled, by no more than is needed.
// RUN: split-file %s %t
// RUN: weir-opt %t/kernels.mlir --weir-set-profile=profile=%t/hundred.json --weir-limit-loop-trips --canonicalize | FileCheck %s
// RUN: weir-opt %t/kernels.mlir --weir-set-profile=profile=%t/endless.json --weir-limit-loop-trips --canonicalize | FileCheck %s --check-prefix=ENDLESS

//--- hundred.json
{"like": "lavapipe", "name": "hundred", "max_loop_trips": 100}
//--- endless.json
{"like": "lavapipe", "name": "endless", "max_loop_trips": 2147483647}
//--- kernels.mlir
gpu.module @k {
  // Nothing is to be done: 99 trips and an end.
  // CHECK-LABEL: gpu.func @fits
  // CHECK:         scf.for %{{.*}} = %{{.*}} to %c99{{.*}} step %c1{{.*}} {
  // CHECK-NEXT:      memref.store
  // CHECK-NEXT:    }
  gpu.func @fits(%y: memref<1000xf32>) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = arith.constant 99 : index
    %v = arith.constant 1.0 : f32
    scf.for %i = %zero to %n step %one {
      memref.store %v, %y[%i] : memref<1000xf32>
    }
    gpu.return
  }
  // One more. A sum keeps its order; the last trip, which is left over, comes behind the loop.
  // CHECK-LABEL: gpu.func @sum
  // CHECK:         %[[SUM:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c100{{.*}} step %c2{{.*}} iter_args(%[[BEFORE:.*]] = %{{.*}})
  // CHECK:           %[[A:.*]] = memref.load %{{.*}}[%[[I]]]
  // CHECK:           %[[FIRST:.*]] = arith.addf %[[BEFORE]], %[[A]]
  // CHECK:           %[[J:.*]] = arith.addi %[[I]], %c1
  // CHECK:           %[[B:.*]] = memref.load %{{.*}}[%[[J]]]
  // CHECK:           %[[SECOND:.*]] = arith.addf %[[FIRST]], %[[B]]
  // CHECK:           scf.yield %[[SECOND]]
  // CHECK:         %[[C:.*]] = memref.load %{{.*}}[%c100
  // CHECK:         arith.addf %[[SUM]], %[[C]]
  // ENDLESS-LABEL: gpu.func @sum
  // ENDLESS:         scf.for %{{.*}} = %c0{{.*}} to %c101{{.*}} step %c1
  gpu.func @sum(%x: memref<1000xf32>, %y: memref<1xf32>) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = arith.constant 101 : index
    %v = arith.constant 1.0 : f32
    %s = scf.for %i = %zero to %n step %one iter_args(%before = %v) -> f32 {
      %a = memref.load %x[%i] : memref<1000xf32>
      %sum = arith.addf %before, %a : f32
      scf.yield %sum : f32
    }
    memref.store %s, %y[%zero] : memref<1xf32>
    gpu.return
  }
  // The inner loop goes away as a whole, which leaves 30 trips and an end.
  // CHECK-LABEL: gpu.func @nested
  // CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c30{{.*}} step %c1{{.*}} {
  // CHECK-COUNT-3:   memref.store
  // CHECK-NOT:       scf.for
  // CHECK:         gpu.return
  gpu.func @nested(%y: memref<30x3xf32>) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = arith.constant 30 : index
    %m = arith.constant 3 : index
    %v = arith.constant 1.0 : f32
    scf.for %i = %zero to %n step %one {
      scf.for %j = %zero to %m step %one {
        memref.store %v, %y[%i, %j] : memref<30x3xf32>
      }
    }
    gpu.return
  }
  // Two loops of 80 trips and an end each: both have two copies.
  // CHECK-LABEL: gpu.func @both
  // CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c80{{.*}} step %c2{{.*}} {
  // CHECK-COUNT-2:   memref.store
  // CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c80{{.*}} step %c2{{.*}} {
  // CHECK-COUNT-2:   memref.store
  // CHECK-NOT:       memref.store
  // CHECK:         gpu.return
  gpu.func @both(%y: memref<1000xf32>) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = arith.constant 80 : index
    %v = arith.constant 1.0 : f32
    scf.for %i = %zero to %n step %one {
      memref.store %v, %y[%i] : memref<1000xf32>
    }
    scf.for %i = %zero to %n step %one {
      memref.store %v, %y[%i] : memref<1000xf32>
    }
    gpu.return
  }
  // More code than a kernel may have: left as it is, and refused by the gate.
  // CHECK-LABEL: gpu.func @long
  // CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c100000000{{.*}} step %c1{{.*}} {
  gpu.func @long(%y: memref<100000000xf32>) kernel {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = arith.constant 100000000 : index
    %v = arith.constant 1.0 : f32
    scf.for %i = %zero to %n step %one {
      memref.store %v, %y[%i] : memref<100000000xf32>
    }
    gpu.return
  }
  // Bounds that are no constants stay.
  // CHECK-LABEL: gpu.func @bound
  // CHECK:         scf.for
  // CHECK-NEXT:      memref.store
  // CHECK-NEXT:    }
  gpu.func @bound(%y: memref<1000xf32>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %begin = gpu.thread_id x
    %one = arith.constant 1 : index
    %n = arith.constant 200 : index
    %v = arith.constant 1.0 : f32
    scf.for %i = %begin to %n step %one {
      memref.store %v, %y[%i] : memref<1000xf32>
    }
    gpu.return
  }
}
