// RUN: weir-opt %s --weir-set-profile --weir-verify-kernels --split-input-file --verify-diagnostics

// What the level holds.
func.func @valid(%x: tensor<2x4xf32>, %z: tensor<0xf32>) -> (tensor<8xf32>, tensor<2xf32>) {
  %c = arith.constant dense<1.0> : tensor<2xf32>
  %e = tensor.empty() : tensor<2x4xf32>
  %y = schedule.kernel "double" (%x) : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>):
    %o = tensor.empty() : tensor<2x4xf32>
    %s = linalg.add ins(%a, %a : tensor<2x4xf32>, tensor<2x4xf32>) outs(%o : tensor<2x4xf32>) -> tensor<2x4xf32>
    schedule.yield %s : tensor<2x4xf32>
  }
  %r = tensor.collapse_shape %y [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  return %r, %c : tensor<8xf32>, tensor<2xf32>
}

// -----

// All problems are reported, not the first.
func.func @computes_outside(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error @below {{stands outside of kernels}}
  %y = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{stands outside of kernels}}
  %z = math.exp %y : tensor<4xf32>
  return %z : tensor<4xf32>
}
// expected-error @below {{argument 0 is 'tensor<?xf32>', not a ranked tensor of static shape}}
// expected-error @below {{argument 1 is 'memref<4xf32>', not a ranked tensor of static shape}}
// expected-error @below {{argument 2 is 'tensor<*xf32>', not a ranked tensor of static shape}}
// expected-error @below {{result 0 is 'tensor<*xf32>', not a ranked tensor of static shape}}
func.func @types(%x: tensor<?xf32>, %y: memref<4xf32>, %z: tensor<*xf32>) -> tensor<*xf32> {
  return %z : tensor<*xf32>
}
// expected-error @below {{has no body}}
func.func private @declaration(tensor<4xf32>)
// expected-error @below {{has several blocks}}
func.func @blocks() {
  cf.br ^next
^next:
  return
}
// expected-error @below {{does not belong at the kernels level}}
gpu.module @m {
}

// -----

func.func @nested(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = schedule.kernel "outer" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @below {{is inside another kernel}}
    %z = schedule.kernel "inner" (%a) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%b: tensor<4xf32>):
      schedule.yield %b : tensor<4xf32>
    }
    schedule.yield %z : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
