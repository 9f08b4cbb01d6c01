// Trips of loops of an invocation, and each end of a loop, which counts as one.
// RUN: weir-opt %s --weir-test-loop-trips --verify-diagnostics

gpu.module @k {
  // expected-remark @below {{all loops: 53}}
  gpu.func @nested() kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c10 = arith.constant 10 : index
    // Ten trips and an end.
    // expected-remark @below {{trips: 10}}
    // expected-remark @below {{share: 11}}
    scf.for %i = %c0 to %c10 step %c1 {
      // Trips 0, 3, 6 and 9, which is behind the bound: 3, and an end, ten times.
      // expected-remark @below {{trips: 3}}
      // expected-remark @below {{share: 40}}
      scf.for %j = %c1 to %c10 step %c3 {
      }
    }
    // No trip: the end alone. What is in it never begins.
    // expected-remark @below {{trips: 0}}
    // expected-remark @below {{share: 1}}
    scf.for %i = %c10 to %c0 step %c1 {
      // expected-remark @below {{trips: 3}}
      // expected-remark @below {{share: 0}}
      scf.for %j = %c0 to %c3 step %c1 {
      }
    }
    // One trip, in part.
    // expected-remark @below {{trips: 0}}
    // expected-remark @below {{share: 1}}
    scf.for %i = %c10 to %c10 step %c1 {
    }
    gpu.return
  }
  // expected-remark @below {{all loops: unknown}}
  gpu.func @bounds(%n: memref<1xindex>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %i = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c100 = arith.constant 100 : index
    // By the range of the lower bound.
    // expected-remark @below {{trips: 100}}
    // expected-remark @below {{share: 101}}
    scf.for %j = %i to %c100 step %c1 {
    }
    %bound = memref.load %n[%c0] : memref<1xindex>
    // expected-remark @below {{trips: unknown}}
    // expected-remark @below {{share: unknown}}
    scf.for %j = %c0 to %bound step %c1 {
      // expected-remark @below {{trips: 100}}
      // expected-remark @below {{share: unknown}}
      scf.for %l = %c0 to %c100 step %c1 {
      }
    }
    // expected-remark @below {{trips: unknown}}
    // expected-remark @below {{share: unknown}}
    scf.while : () -> () {
      %p = arith.cmpi ult, %bound, %i : index
      scf.condition(%p)
    } do {
      scf.yield
    }
    gpu.return
  }
}
