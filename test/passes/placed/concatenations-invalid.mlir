// RUN: weir-opt %s --weir-set-profile --weir-lower-kernels -split-input-file -verify-diagnostics

// What the caller passes lies where it lies.
func.func @moves_an_argument(%x: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %a = schedule.kernel "exp" (%x) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%i: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %v = linalg.exp ins(%i : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    schedule.yield %v : tensor<4x4xf32>
  }
  // expected-error @below {{operand 1 is not a value that a kernel makes for it alone; weir-form-kernels inserts a copy}}
  %r = tensor.concat dim(0) %a, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

func.func @a_part_twice(%x: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %a = schedule.kernel "exp" (%x) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%i: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %v = linalg.exp ins(%i : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    schedule.yield %v : tensor<4x4xf32>
  }
  // expected-error @below {{operand 1 is not a value that a kernel makes for it alone}}
  %r = tensor.concat dim(0) %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

func.func @columns(%x: tensor<4x4xf32>) -> tensor<4x8xf32> {
  %a:2 = schedule.kernel "exp" (%x) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  ^bb0(%i: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %v = linalg.exp ins(%i : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    %w = linalg.tanh ins(%i : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    schedule.yield %v, %w : tensor<4x4xf32>, tensor<4x4xf32>
  }
  // expected-error @below {{has operands that do not follow one another in memory where target lavapipe can bind them; weir-generalize-tensors gathers them}}
  %r = tensor.concat dim(1) %a#0, %a#1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// Half of the tensor is nobody's.
func.func @not_all(%x: tensor<4x4xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{makes a tensor of slices that are not all of it, into none}}
  %r = schedule.kernel "exp" (%x) : (tensor<4x4xf32>) -> tensor<4x8xf32> {
  ^bb0(%i: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %v = linalg.exp ins(%i : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    %w = tensor.empty() : tensor<4x8xf32>
    %s = tensor.insert_slice %v into %w[0, 4] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x8xf32>
    schedule.yield %s : tensor<4x8xf32>
  }
  return %r : tensor<4x8xf32>
}

// -----

func.func @the_same_half_twice(%x: tensor<4x4xf32>) -> tensor<4x8xf32> {
  %a = schedule.kernel "exp" (%x) : (tensor<4x4xf32>) -> tensor<4x8xf32> {
  ^bb0(%i: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %v = linalg.exp ins(%i : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    %w = tensor.empty() : tensor<4x8xf32>
    %s = tensor.insert_slice %v into %w[0, 4] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x8xf32>
    schedule.yield %s : tensor<4x8xf32>
  }
  // expected-error @below {{makes a tensor of slices that may overlap}}
  %r = schedule.kernel "tanh" (%x, %a) : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%i: tensor<4x4xf32>, %w: tensor<4x8xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %v = linalg.tanh ins(%i : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    %s = tensor.insert_slice %v into %w[0, 3] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x8xf32>
    schedule.yield %s : tensor<4x8xf32>
  }
  return %r : tensor<4x8xf32>
}

// -----

// Two strides of its own.
func.func @no_runs(%x: tensor<2x3x4xf32>) -> tensor<2x6x8xf32> {
  // expected-error @below {{makes a tensor of slices that are not runs of bytes at equal distances; weir-generalize-tensors makes no others}}
  %r = schedule.kernel "exp" (%x) : (tensor<2x3x4xf32>) -> tensor<2x6x8xf32> {
  ^bb0(%i: tensor<2x3x4xf32>):
    %e = tensor.empty() : tensor<2x3x4xf32>
    %v = linalg.exp ins(%i : tensor<2x3x4xf32>) outs(%e : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %w = tensor.empty() : tensor<2x6x8xf32>
    %s = tensor.insert_slice %v into %w[0, 0, 0] [2, 3, 4] [1, 1, 1] : tensor<2x3x4xf32> into tensor<2x6x8xf32>
    schedule.yield %s : tensor<2x6x8xf32>
  }
  return %r : tensor<2x6x8xf32>
}

// -----

// What another kernel made whole may have other readers in mind.
func.func @into_a_made_one(%x: tensor<4x4xf32>, %y: tensor<2x4xf32>) -> tensor<4x4xf32> {
  %a = schedule.kernel "exp" (%x) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%i: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %v = linalg.exp ins(%i : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    schedule.yield %v : tensor<4x4xf32>
  }
  // expected-error @below {{inserts into a tensor that is not a donated argument on its way to one result}}
  %r = schedule.kernel "tanh" (%y, %a) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%i: tensor<2x4xf32>, %w: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<2x4xf32>
    %v = linalg.tanh ins(%i : tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
    %s = tensor.insert_slice %v into %w[0, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<4x4xf32>
    schedule.yield %s : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}
