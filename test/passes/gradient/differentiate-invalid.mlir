// RUN: weir-opt %s --weir-differentiate --split-input-file --verify-diagnostics

// A gather of what no gradient is wanted of.
func.func @scaled_gather(%x: tensor<8xf32>, %i: tensor<3xi32>, %s: tensor<3xf32>) -> tensor<3xf32> {
  %empty = tensor.empty() : tensor<3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                                        affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
      ins(%i, %s : tensor<3xi32>, tensor<3xf32>) outs(%empty : tensor<3xf32>) {
  ^bb0(%n: i32, %a: f32, %out: f32):
    %at = arith.index_cast %n : i32 to index
    %e = tensor.extract %x[%at] : tensor<8xf32>
    %p = arith.mulf %e, %a : f32
    linalg.yield %p : f32
  } -> tensor<3xf32>
  return %y : tensor<3xf32>
}
func.func @f(%x: tensor<8xf32>, %i: tensor<3xi32>, %s: tensor<3xf32>, %dy: tensor<3xf32>)
    -> tensor<3xf32> {
  %y, %ds = autodiff.vjp @scaled_gather(%x, %i, %s) seeded [0] (%dy) wanted [2]
      : (tensor<8xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3xf32>)
        -> (tensor<3xf32>, tensor<3xf32>)
  return %ds : tensor<3xf32>
}

// -----

func.func @quotient(%x: tensor<4x129xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has no gradient rule: the gradient flows from result 0, whose elements are combined by 'arith.divf'; sums, products, maxima and minima have a rule}}
  %y = linalg.reduce { arith.divf } ins(%x : tensor<4x129xf32>) outs(%init : tensor<4xf32>)
       dimensions = [1]
  return %y : tensor<4xf32>
}
func.func @f(%x: tensor<4x129xf32>, %init: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4x129xf32> {
  %y, %dx = autodiff.vjp @quotient(%x, %init) seeded [0] (%dy) wanted [0]
      : (tensor<4x129xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4x129xf32>)
  return %dx : tensor<4x129xf32>
}

// -----

func.func @bits(%x: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.map ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>)
      (%a: f32, %out: f32) {
        // expected-error @below {{has no gradient rule: it makes integers of the bits of a float}}
        %bits = arith.bitcast %a : f32 to i32
        %b = arith.bitcast %bits : i32 to f32
        linalg.yield %b : f32
      }
  return %y : tensor<4xf32>
}
func.func @f(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {
  %y, %dx = autodiff.vjp @bits(%x) seeded [0] (%dy) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}

// -----

// A window's weights are walked by a loop of their own.
func.func @window(%x: tensor<8xf32>, %w: tensor<3xf32>, %init: tensor<6xf32>) -> tensor<6xf32> {
  %y = linalg.conv_1d ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%init : tensor<6xf32>)
       -> tensor<6xf32>
  return %y : tensor<6xf32>
}
func.func @f(%x: tensor<8xf32>, %w: tensor<3xf32>, %dy: tensor<6xf32>) -> tensor<3xf32> {
  %y, %dw = autodiff.vjp @window(%x, %w, %dy) seeded [0] (%dy) wanted [1]
      : (tensor<8xf32>, tensor<3xf32>, tensor<6xf32>, tensor<6xf32>)
        -> (tensor<6xf32>, tensor<3xf32>)
  return %dw : tensor<3xf32>
}

// -----

// The second result is a running sum, which depends on the order of the loops.
func.func @running(%x: tensor<6xf32>, %a: tensor<f32>, %b: tensor<6xf32>) -> tensor<6xf32> {
  // expected-error @below {{has no gradient rule: the gradient flows from result 1, which is computed from an accumulator on its way}}
  %y:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>,
                                          affine_map<(i) -> (i)>],
                         iterator_types = ["reduction"]}
      ins(%x : tensor<6xf32>) outs(%a, %b : tensor<f32>, tensor<6xf32>) {
  ^bb0(%e: f32, %sum: f32, %out: f32):
    %p = arith.addf %sum, %e : f32
    linalg.yield %p, %p : f32, f32
  } -> (tensor<f32>, tensor<6xf32>)
  return %y#1 : tensor<6xf32>
}
func.func @f(%x: tensor<6xf32>, %a: tensor<f32>) -> tensor<6xf32> {
  %y, %dx = autodiff.vjp @running(%x, %a, %x) seeded [0] (%x) wanted [0]
      : (tensor<6xf32>, tensor<f32>, tensor<6xf32>, tensor<6xf32>)
        -> (tensor<6xf32>, tensor<6xf32>)
  return %dx : tensor<6xf32>
}

// -----

func.func @generate(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has no gradient rule, and the gradient flows into its body}}
  %y = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %x[%i] : tensor<4xf32>
    tensor.yield %e : f32
  } : tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y, %dx = autodiff.vjp @generate(%x) seeded [0] (%x) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}

// -----

// expected-error @below {{argument 0 is 'tensor<?xf32>'; gradients need static shapes}}
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{gives 'tensor<?xf32>'; gradients need static shapes}}
  %y = tensor.cast %x : tensor<?xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y, %dx = autodiff.vjp @dynamic(%x) seeded [0] (%x) wanted [0]
      : (tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return %dx : tensor<?xf32>
}

// -----

func.func @itself(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is part of @itself, which it differentiates}}
  %y, %dx = autodiff.vjp @itself(%x) seeded [0] (%x) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}

// -----

func.func @largest(%x: tensor<4x6xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has no gradient rule: the gradient flows through operand 1, from which a product, maximum or minimum starts}}
  %y = linalg.reduce { arith.maximumf } ins(%x : tensor<4x6xf32>) outs(%init : tensor<4xf32>)
       dimensions = [1]
  return %y : tensor<4xf32>
}
func.func @f(%x: tensor<4x6xf32>, %init: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {
  %y, %d = autodiff.vjp @largest(%x, %init) seeded [0] (%dy) wanted [1]
      : (tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %d : tensor<4xf32>
}

// -----

// The same maximum, of what no gradient is wanted of.
func.func @largest(%x: tensor<4x6xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %y = linalg.reduce { arith.maximumf } ins(%x : tensor<4x6xf32>) outs(%init : tensor<4xf32>)
       dimensions = [1]
  return %y : tensor<4xf32>
}
func.func @f(%x: tensor<4x6xf32>, %init: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4x6xf32> {
  %y, %d = autodiff.vjp @largest(%x, %init) seeded [0] (%dy) wanted [0]
      : (tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4x6xf32>)
  return %d : tensor<4x6xf32>
}

// -----

func.func @padded(%x: tensor<3xf32>, %p: tensor<f32>) -> tensor<5xf32> {
  %s = tensor.extract %p[] : tensor<f32>
  // expected-error @below {{has no gradient rule: the padding is no constant, and the gradient may flow to it}}
  %y = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %s : f32
  } : tensor<3xf32> to tensor<5xf32>
  return %y : tensor<5xf32>
}
func.func @f(%x: tensor<3xf32>, %p: tensor<f32>, %dy: tensor<5xf32>) -> tensor<f32> {
  %y, %d = autodiff.vjp @padded(%x, %p) seeded [0] (%dy) wanted [1]
      : (tensor<3xf32>, tensor<f32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<f32>)
  return %d : tensor<f32>
}

// -----

func.func @last(%x: tensor<3x129xf32>, %init: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @below {{the gradient flows from result 0, whose elements are not the accumulator plus a value; sums, products, maxima and minima have a rule}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x129xf32>) outs(%init : tensor<3xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<3xf32>
  return %y : tensor<3xf32>
}
func.func @f(%x: tensor<3x129xf32>, %init: tensor<3xf32>) -> tensor<3x129xf32> {
  %y, %d = autodiff.vjp @last(%x, %init) seeded [0] (%init) wanted [0]
      : (tensor<3x129xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3x129xf32>)
  return %d : tensor<3x129xf32>
}

// -----

func.func @odd(%x: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.map ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) (%a: f32, %out: f32) {
    // expected-error @below {{has no gradient rule, and the gradient flows through its operand 0}}
    %b = arith.scaling_extf %a, %a : f32, f32 to f64
    %d = arith.truncf %b : f64 to f32
    linalg.yield %d : f32
  }
  return %y : tensor<4xf32>
}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y, %d = autodiff.vjp @odd(%x) seeded [0] (%x) wanted [0]
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %d : tensor<4xf32>
}

// -----

func.func @through_memory(%x: tensor<f32>) -> tensor<f32> {
  %m = memref.alloca() : memref<f32>
  %a = tensor.extract %x[] : tensor<f32>
  // expected-error @below {{has no gradient rule: it may touch memory, by which the gradient would be lost}}
  memref.store %a, %m[] : memref<f32>
  %b = memref.load %m[] : memref<f32>
  %y = tensor.from_elements %b : tensor<f32>
  return %y : tensor<f32>
}
func.func @through_memory_beside(%x: tensor<f32>) -> tensor<f32> {
  %c = arith.constant 2.0 : f32
  %memory = memref.alloca() : memref<f32>
  memref.store %c, %memory[] : memref<f32>
  return %x : tensor<f32>
}
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %y, %d = autodiff.vjp @through_memory(%x) seeded [0] (%x) wanted [0]
      : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %d : tensor<f32>
}
// The twin: what goes to memory depends on nothing wanted.
func.func @g(%x: tensor<f32>) -> tensor<f32> {
  %y, %d = autodiff.vjp @through_memory_beside(%x) seeded [0] (%x) wanted [0]
      : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %d : tensor<f32>
}
