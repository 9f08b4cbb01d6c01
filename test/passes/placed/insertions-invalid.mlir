// RUN: weir-opt %s --weir-set-profile --weir-lower-kernels -split-input-file -verify-diagnostics

// Whoever reads the argument would find the row in it, or not.
func.func @read_by_others(%c: tensor<8x4xf32> {weir.donate}, %x: tensor<1x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // expected-error @below {{inserts into a tensor that has other uses; let it insert into a copy}}
  %r = schedule.kernel "insert" (%c, %x) : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>, %b: tensor<1x4xf32>):
    %e = tensor.empty() : tensor<1x4xf32>
    %v = linalg.exp ins(%b : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
    %i = tensor.insert_slice %v into %a[2, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    schedule.yield %i : tensor<8x4xf32>
  }
  %s = schedule.kernel "exp" (%c) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>):
    %e = tensor.empty() : tensor<8x4xf32>
    %v = linalg.exp ins(%a : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
    schedule.yield %v : tensor<8x4xf32>
  }
  return %r, %s : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

func.func @not_donated(%c: tensor<8x4xf32>, %x: tensor<1x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{inserts into a tensor that is not a donated argument on its way to one result; let it insert into a copy}}
  %r = schedule.kernel "insert" (%c, %x) : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>, %b: tensor<1x4xf32>):
    %e = tensor.empty() : tensor<1x4xf32>
    %v = linalg.exp ins(%b : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
    %i = tensor.insert_slice %v into %a[2, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    schedule.yield %i : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}

// -----

func.func @no_result(%c: tensor<8x4xf32> {weir.donate}, %x: tensor<1x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{inserts into a tensor that is not a donated argument on its way to one result}}
  %r = schedule.kernel "insert" (%c, %x) : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>, %b: tensor<1x4xf32>):
    %e = tensor.empty() : tensor<1x4xf32>
    %v = linalg.exp ins(%b : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
    %i = tensor.insert_slice %v into %a[2, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    schedule.yield %i : tensor<8x4xf32>
  }
  %s = schedule.kernel "exp" (%r) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>):
    %e = tensor.empty() : tensor<8x4xf32>
    %v = linalg.exp ins(%a : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
    schedule.yield %v : tensor<8x4xf32>
  }
  return %s : tensor<8x4xf32>
}

// -----

func.func @kernel_reads_it(%c: tensor<8x4xf32> {weir.donate}) -> tensor<8x4xf32> {
  %r = schedule.kernel "insert" (%c) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>):
    %e = tensor.empty() : tensor<1x4xf32>
    %v = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + 3, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x4xf32>) outs(%e : tensor<1x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x4xf32>
    // expected-error @below {{is into a tensor that is no input of the kernel, or that the kernel uses otherwise}}
    %i = tensor.insert_slice %v into %a[2, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    schedule.yield %i : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}

// -----

func.func @kernel_reads_what_is_made(%c: tensor<8x4xf32> {weir.donate}, %x: tensor<1x4xf32>) -> tensor<8x4xf32> {
  %r = schedule.kernel "insert" (%c, %x) : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>, %b: tensor<1x4xf32>):
    // expected-error @below {{makes a tensor that the kernel does not just yield}}
    %i = tensor.insert_slice %b into %a[2, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    %e = tensor.empty() : tensor<8x4xf32>
    %v = linalg.exp ins(%i : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
    schedule.yield %v : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}

// -----

// The place would be known only once the kernel has run.
func.func @place_is_computed_beside(%c: tensor<8x4xf32> {weir.donate}, %x: tensor<1x4xf32>, %k: tensor<i64>) -> tensor<8x4xf32> {
  %r = schedule.kernel "insert" (%c, %x, %k) : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i64>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>, %b: tensor<1x4xf32>, %d: tensor<i64>):
    %e = tensor.empty() : tensor<1x4xf32>
    %v = linalg.exp ins(%b : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
    %f = tensor.empty() : tensor<i64>
    %w = linalg.add ins(%d, %d : tensor<i64>, tensor<i64>) outs(%f : tensor<i64>) -> tensor<i64>
    %n = tensor.extract %w[] : tensor<i64>
    %p = arith.index_cast %n : i64 to index
    // expected-error @below {{is at a place that the kernel's inputs do not say}}
    %i = tensor.insert_slice %v into %a[%p, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    schedule.yield %i : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}
