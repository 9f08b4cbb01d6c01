// RUN: weir-opt %s --weir-set-profile --weir-verify-dispatches --verify-diagnostics

// Kernels of an artifact take buffers alone.
module attributes {gpu.container_module} {
  gpu.module @k {
    // expected-error @below {{argument 0 is 'index', not a memref of one static dimension}}
    gpu.func @k(%n: index {schedule.effect = #schedule.effect<none>},
                %y: memref<64xf32> {schedule.effect = #schedule.effect<write>})
        kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %v = arith.constant 1.0 : f32
      memref.store %v, %y[%n] : memref<64xf32>
      gpu.return
    }
  }
  func.func @scalar(%y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %n = arith.constant 0 : index
    schedule.commands {
      // expected-error @below {{operand 0 of type 'index' has no number of bytes}}
      schedule.dispatch @k::@k [1, 1, 1] (%n, %y) : (index, memref<64xf32>)
    }
    return
  }
}
