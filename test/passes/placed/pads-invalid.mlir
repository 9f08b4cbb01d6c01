// RUN: weir-opt %s --weir-set-profile --weir-lower-kernels -split-input-file -verify-diagnostics

// Which elements are around the slice is not known.
func.func @computed_place(%x: tensor<1x4xf32>, %at: tensor<i32>) -> tensor<8x4xf32> {
  %r = schedule.kernel "pad" (%x, %at) : (tensor<1x4xf32>, tensor<i32>) -> tensor<8x4xf32> {
  ^bb0(%b: tensor<1x4xf32>, %n: tensor<i32>):
    %number = tensor.extract %n[] : tensor<i32>
    %place = arith.index_cast %number : i32 to index
    %e = tensor.empty() : tensor<1x4xf32>
    %v = linalg.exp ins(%b : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
    %around = arith.constant dense<0.0> : tensor<8x4xf32>
    // expected-error @below {{is into a tensor of equal elements, at offsets that are no constants}}
    %i = tensor.insert_slice %v into %around[%place, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    schedule.yield %i : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}

// -----

func.func @nothing(%x: tensor<0x4xf32>) -> tensor<8x4xf32> {
  %r = schedule.kernel "pad" (%x) : (tensor<0x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%b: tensor<0x4xf32>):
    %e = tensor.empty() : tensor<0x4xf32>
    %v = linalg.exp ins(%b : tensor<0x4xf32>) outs(%e : tensor<0x4xf32>) -> tensor<0x4xf32>
    %around = arith.constant dense<0.0> : tensor<8x4xf32>
    // expected-error @below {{inserts no elements}}
    %i = tensor.insert_slice %v into %around[2, 0] [0, 4] [1, 1] : tensor<0x4xf32> into tensor<8x4xf32>
    schedule.yield %i : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}

// -----

// What is padded is whole: a slice of it more would be a second value in the same bytes.
func.func @inserted_later(%x: tensor<1x4xf32>, %y: tensor<1x4xf32>) -> tensor<8x4xf32> {
  %r = schedule.kernel "pad" (%x) : (tensor<1x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%b: tensor<1x4xf32>):
    %e = tensor.empty() : tensor<1x4xf32>
    %v = linalg.exp ins(%b : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
    %around = arith.constant dense<0.0> : tensor<8x4xf32>
    %i = tensor.insert_slice %v into %around[2, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    schedule.yield %i : tensor<8x4xf32>
  }
  // expected-error @below {{inserts into a tensor that is not a donated argument on its way to one result}}
  %s = schedule.kernel "insert" (%r, %y) : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>, %b: tensor<1x4xf32>):
    %e = tensor.empty() : tensor<1x4xf32>
    %v = linalg.exp ins(%b : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
    %i = tensor.insert_slice %v into %a[3, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    schedule.yield %i : tensor<8x4xf32>
  }
  return %s : tensor<8x4xf32>
}
