// RUN: weir-opt %s --weir-set-profile=profile=x86-64-v3 --weir-lower-kernels -split-input-file -verify-diagnostics

// A stage says its groups.
#a = affine_map<(g, i, j, k) -> (g, i, k)>
#b = affine_map<(g, i, j, k) -> (g, k, j)>
#c = affine_map<(g, i, j, k) -> (g, i, j)>
#id = affine_map<(g, i, j) -> (g, i, j)>
func.func @unsaid(%a: tensor<5x4x3xf32>, %b: tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  %k = schedule.kernel "staged" (%a, %b) : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  ^bb0(%x: tensor<5x4x3xf32>, %y: tensor<5x3x8xf32>):
    %m = schedule.kernel "product" (%x, %y) attributes {group_dims = array<i64: 0>} : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x3xf32>, %q: tensor<5x3x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x4x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4x8xf32>) -> tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%p, %q : tensor<5x4x3xf32>, tensor<5x3x8xf32>) outs(%z : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %v: f32, %o: f32):
        %s = arith.mulf %u, %v : f32
        %t = arith.addf %o, %s : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    // expected-error @below {{is a stage, whose group_dims must name 1 to 4 dimensions of its rows}}
    %n = schedule.kernel "power" (%m) : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x8xf32>):
      %e = tensor.empty() : tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%p : tensor<5x4x8xf32>) outs(%e : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %o: f32):
        %t = math.exp2 %u : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    schedule.yield %n : tensor<5x4x8xf32>
  }
  return %k : tensor<5x4x8xf32>
}

// -----

#a = affine_map<(g, i, j, k) -> (g, i, k)>
#b = affine_map<(g, i, j, k) -> (g, k, j)>
#c = affine_map<(g, i, j, k) -> (g, i, j)>
#id = affine_map<(g, i, j) -> (g, i, j)>
func.func @no_row(%a: tensor<5x4x3xf32>, %b: tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  %k = schedule.kernel "staged" (%a, %b) : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  ^bb0(%x: tensor<5x4x3xf32>, %y: tensor<5x3x8xf32>):
    %m = schedule.kernel "product" (%x, %y) attributes {group_dims = array<i64: 0>} : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x3xf32>, %q: tensor<5x3x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x4x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4x8xf32>) -> tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%p, %q : tensor<5x4x3xf32>, tensor<5x3x8xf32>) outs(%z : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %v: f32, %o: f32):
        %s = arith.mulf %u, %v : f32
        %t = arith.addf %o, %s : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    // expected-error @below {{has group_dims [3], which are not different dimensions of its 3 rows}}
    %n = schedule.kernel "power" (%m) attributes {group_dims = array<i64: 3>} : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x8xf32>):
      %e = tensor.empty() : tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%p : tensor<5x4x8xf32>) outs(%e : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %o: f32):
        %t = math.exp2 %u : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    schedule.yield %n : tensor<5x4x8xf32>
  }
  return %k : tensor<5x4x8xf32>
}

// -----

#a = affine_map<(g, i, j, k) -> (g, i, k)>
#b = affine_map<(g, i, j, k) -> (g, k, j)>
#c = affine_map<(g, i, j, k) -> (g, i, j)>
#id = affine_map<(g, i, j) -> (g, i, j)>
func.func @twice(%a: tensor<5x4x3xf32>, %b: tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  %k = schedule.kernel "staged" (%a, %b) : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  ^bb0(%x: tensor<5x4x3xf32>, %y: tensor<5x3x8xf32>):
    %m = schedule.kernel "product" (%x, %y) attributes {group_dims = array<i64: 0>} : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x3xf32>, %q: tensor<5x3x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x4x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4x8xf32>) -> tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%p, %q : tensor<5x4x3xf32>, tensor<5x3x8xf32>) outs(%z : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %v: f32, %o: f32):
        %s = arith.mulf %u, %v : f32
        %t = arith.addf %o, %s : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    // expected-error @below {{has group_dims [0, 0], which are not different dimensions of its 3 rows}}
    %n = schedule.kernel "power" (%m) attributes {group_dims = array<i64: 0, 0>} : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x8xf32>):
      %e = tensor.empty() : tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%p : tensor<5x4x8xf32>) outs(%e : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %o: f32):
        %t = math.exp2 %u : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    schedule.yield %n : tensor<5x4x8xf32>
  }
  return %k : tensor<5x4x8xf32>
}

// -----

#a = affine_map<(g, i, j, k) -> (g, i, k)>
#b = affine_map<(g, i, j, k) -> (g, k, j)>
#c = affine_map<(g, i, j, k) -> (g, i, j)>
#id = affine_map<(g, i, j) -> (g, i, j)>
func.func @others(%a: tensor<5x4x3xf32>, %b: tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  %k = schedule.kernel "staged" (%a, %b) : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  ^bb0(%x: tensor<5x4x3xf32>, %y: tensor<5x3x8xf32>):
    %m = schedule.kernel "product" (%x, %y) attributes {group_dims = array<i64: 0>} : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x3xf32>, %q: tensor<5x3x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x4x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4x8xf32>) -> tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%p, %q : tensor<5x4x3xf32>, tensor<5x3x8xf32>) outs(%z : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %v: f32, %o: f32):
        %s = arith.mulf %u, %v : f32
        %t = arith.addf %o, %s : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    // expected-error @below {{has other groups than the first stage}}
    %n = schedule.kernel "power" (%m) attributes {group_dims = array<i64: 1>} : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x8xf32>):
      %e = tensor.empty() : tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%p : tensor<5x4x8xf32>) outs(%e : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %o: f32):
        %t = math.exp2 %u : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    schedule.yield %n : tensor<5x4x8xf32>
  }
  return %k : tensor<5x4x8xf32>
}

// -----

// The groups are read in another order.
#a = affine_map<(g, i, j, k) -> (g, i, k)>
#b = affine_map<(g, i, j, k) -> (g, k, j)>
#c = affine_map<(g, i, j, k) -> (g, i, j)>
#id = affine_map<(g, i, j) -> (g, i, j)>
func.func @mirrored(%a: tensor<5x4x3xf32>, %b: tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  %k = schedule.kernel "staged" (%a, %b) : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  ^bb0(%x: tensor<5x4x3xf32>, %y: tensor<5x3x8xf32>):
    %m = schedule.kernel "product" (%x, %y) attributes {group_dims = array<i64: 0>} : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x3xf32>, %q: tensor<5x3x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x4x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4x8xf32>) -> tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%p, %q : tensor<5x4x3xf32>, tensor<5x3x8xf32>) outs(%z : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %v: f32, %o: f32):
        %s = arith.mulf %u, %v : f32
        %t = arith.addf %o, %s : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    // expected-error @below {{reads in input 0 what another stage makes, but not only of its own group}}
    %n = schedule.kernel "power" (%m) attributes {group_dims = array<i64: 0>} : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x8xf32>):
      %e = tensor.empty() : tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(g, i, j) -> (-g + 4, i, j)>, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%p : tensor<5x4x8xf32>) outs(%e : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %o: f32):
        %t = math.exp2 %u : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    schedule.yield %n : tensor<5x4x8xf32>
  }
  return %k : tensor<5x4x8xf32>
}

// -----

#a = affine_map<(g, i, j, k) -> (g, i, k)>
#b = affine_map<(g, i, j, k) -> (g, k, j)>
#c = affine_map<(g, i, j, k) -> (g, i, j)>
#id = affine_map<(g, i, j) -> (g, i, j)>
func.func @no_fuse(%a: tensor<5x4x3xf32>, %b: tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  %k = schedule.kernel "staged" (%a, %b) : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  ^bb0(%x: tensor<5x4x3xf32>, %y: tensor<5x3x8xf32>):
    %m = schedule.kernel "product" (%x, %y) attributes {group_dims = array<i64: 0>} : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x3xf32>, %q: tensor<5x3x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x4x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4x8xf32>) -> tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%p, %q : tensor<5x4x3xf32>, tensor<5x3x8xf32>) outs(%z : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %v: f32, %o: f32):
        %s = arith.mulf %u, %v : f32
        %t = arith.addf %o, %s : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    // expected-error @below {{cannot be a stage: weir.no_fuse asks for a kernel of its own}}
    %n = schedule.kernel "power" (%m) attributes {group_dims = array<i64: 0>} : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x8xf32>):
      %e = tensor.empty() : tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%p : tensor<5x4x8xf32>) outs(%e : tensor<5x4x8xf32>) attrs = {weir.no_fuse} {
      ^bb2(%u: f32, %o: f32):
        %t = math.exp2 %u : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    schedule.yield %n : tensor<5x4x8xf32>
  }
  return %k : tensor<5x4x8xf32>
}

// -----

#a = affine_map<(g, i, j, k) -> (g, i, k)>
#b = affine_map<(g, i, j, k) -> (g, k, j)>
#c = affine_map<(g, i, j, k) -> (g, i, j)>
#id = affine_map<(g, i, j) -> (g, i, j)>
func.func @beside(%a: tensor<5x4x3xf32>, %b: tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  %k = schedule.kernel "staged" (%a, %b) : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  ^bb0(%x: tensor<5x4x3xf32>, %y: tensor<5x3x8xf32>):
    // expected-error @below {{stands beside the stages of a kernel, which has kernels and reshapes}}
    %e0 = tensor.empty() : tensor<5xf32>
    %m = schedule.kernel "product" (%x, %y) attributes {group_dims = array<i64: 0>} : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x3xf32>, %q: tensor<5x3x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x4x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4x8xf32>) -> tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%p, %q : tensor<5x4x3xf32>, tensor<5x3x8xf32>) outs(%z : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %v: f32, %o: f32):
        %s = arith.mulf %u, %v : f32
        %t = arith.addf %o, %s : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    %n = schedule.kernel "power" (%m) attributes {group_dims = array<i64: 0>} : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x8xf32>):
      %e = tensor.empty() : tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%p : tensor<5x4x8xf32>) outs(%e : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %o: f32):
        %t = math.exp2 %u : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    schedule.yield %n : tensor<5x4x8xf32>
  }
  return %k : tensor<5x4x8xf32>
}

// -----

#a = affine_map<(g, i, j, k) -> (g, i, k)>
#b = affine_map<(g, i, j, k) -> (g, k, j)>
#c = affine_map<(g, i, j, k) -> (g, i, j)>
#id = affine_map<(g, i, j) -> (g, i, j)>
func.func @given(%a: tensor<5x4x3xf32>, %b: tensor<5x3x8xf32>) -> (tensor<5x4x8xf32>, tensor<5x4x3xf32>) {
  // expected-error @below {{yields a value that no stage makes}}
  %k:2 = schedule.kernel "staged" (%a, %b) : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> (tensor<5x4x8xf32>, tensor<5x4x3xf32>) {
  ^bb0(%x: tensor<5x4x3xf32>, %y: tensor<5x3x8xf32>):
    %m = schedule.kernel "product" (%x, %y) attributes {group_dims = array<i64: 0>} : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x3xf32>, %q: tensor<5x3x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x4x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4x8xf32>) -> tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%p, %q : tensor<5x4x3xf32>, tensor<5x3x8xf32>) outs(%z : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %v: f32, %o: f32):
        %s = arith.mulf %u, %v : f32
        %t = arith.addf %o, %s : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    %n = schedule.kernel "power" (%m) attributes {group_dims = array<i64: 0>} : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x8xf32>):
      %e = tensor.empty() : tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%p : tensor<5x4x8xf32>) outs(%e : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %o: f32):
        %t = math.exp2 %u : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    schedule.yield %n, %x : tensor<5x4x8xf32>, tensor<5x4x3xf32>
  }
  return %k#0, %k#1 : tensor<5x4x8xf32>, tensor<5x4x3xf32>
}

// -----

#a = affine_map<(g, i, j, k) -> (g, i, k)>
#b = affine_map<(g, i, j, k) -> (g, k, j)>
#c = affine_map<(g, i, j, k) -> (g, i, j)>
#id = affine_map<(g, i, j) -> (g, i, j)>
func.func @unread(%a: tensor<5x4x3xf32>, %b: tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  %k = schedule.kernel "staged" (%a, %b) : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
  ^bb0(%x: tensor<5x4x3xf32>, %y: tensor<5x3x8xf32>):
    %m = schedule.kernel "product" (%x, %y) attributes {group_dims = array<i64: 0>} : (tensor<5x4x3xf32>, tensor<5x3x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x3xf32>, %q: tensor<5x3x8xf32>):
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x4x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4x8xf32>) -> tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%p, %q : tensor<5x4x3xf32>, tensor<5x3x8xf32>) outs(%z : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %v: f32, %o: f32):
        %s = arith.mulf %u, %v : f32
        %t = arith.addf %o, %s : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    // expected-error @below {{makes result 0, which nothing reads}}
    %n = schedule.kernel "power" (%m) attributes {group_dims = array<i64: 0>} : (tensor<5x4x8xf32>) -> tensor<5x4x8xf32> {
    ^bb1(%p: tensor<5x4x8xf32>):
      %e = tensor.empty() : tensor<5x4x8xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%p : tensor<5x4x8xf32>) outs(%e : tensor<5x4x8xf32>) {
      ^bb2(%u: f32, %o: f32):
        %t = math.exp2 %u : f32
        linalg.yield %t : f32
      } -> tensor<5x4x8xf32>
      schedule.yield %r : tensor<5x4x8xf32>
    }
    schedule.yield %m : tensor<5x4x8xf32>
  }
  return %k : tensor<5x4x8xf32>
}
