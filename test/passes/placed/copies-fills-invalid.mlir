// RUN: weir-opt %s --weir-set-profile --weir-verify-dispatches --split-input-file --verify-diagnostics
// RUN: weir-opt %s --weir-set-profile --weir-pack --split-input-file --verify-diagnostics

// No artifact holds copies or fills; neither gate nor weir-pack lets them pass.
module {
  func.func @copy(%x: memref<64xf32>, %y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    schedule.commands {
      // expected-error @below {{cannot be part of an artifact yet}}
      schedule.copy %x to %y wave 0 : memref<64xf32> to memref<64xf32>
    }
    return
  }
}

// -----

module {
  func.func @fill(%y: memref<64xf32> {weir.result}) attributes {weir.entry} {
    %zero = arith.constant 0.0 : f32
    schedule.commands {
      // expected-error @below {{cannot be part of an artifact yet}}
      schedule.fill %y with %zero wave 0 : memref<64xf32>, f32
    }
    return
  }
}
