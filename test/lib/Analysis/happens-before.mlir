// RUN: weir-opt %s --weir-test-happens-before --verify-diagnostics

func.func @f(%x: memref<8xf32>, %v: f32) {
  schedule.commands {
    // expected-remark @below {{dispatch 0 comes after}}
    schedule.fill %x with %v queue 1 : memref<8xf32>, f32
    // expected-remark @below {{dispatch 1 comes after}}
    schedule.fill %x with %v : memref<8xf32>, f32
    schedule.signal queue 1 id 0
    // Behind the signal: not covered by it.
    // expected-remark @below {{dispatch 2 comes after}}
    schedule.fill %x with %v queue 1 : memref<8xf32>, f32
    schedule.wait on 0
    // The wait orders the other queue, not its own.
    // expected-remark @below {{dispatch 3 comes after 0}}
    schedule.fill %x with %v : memref<8xf32>, f32
    schedule.barrier [#schedule.hazard<waw, 1 operand 0 -> 4 operand 0>]
    // expected-remark @below {{dispatch 4 comes after 0 1 3}}
    schedule.fill %x with %v : memref<8xf32>, f32
    schedule.signal id 1
    schedule.wait queue 2 on 1
    // What queue 0 waited for, those who wait for it have waited for.
    // expected-remark @below {{dispatch 5 comes after 0 1 3 4}}
    schedule.fill %x with %v queue 2 : memref<8xf32>, f32
  }
  return
}
