// A kernel with so many loops and ids that a set of them does not fit in a register.
// RUN: weir compile %s --vjp=f --entry=f.vjp -o %t.weir && weir verify %t.weir | FileCheck %s
// CHECK: effects {{ *}}holds

func.func @f(%a0: tensor<12x97xf32> {weir.donate}, %a1: tensor<97xf32> {weir.donate}) -> (tensor<12x97xf32>, tensor<12x97xf32>) {
  %v0 = tensor.empty() : tensor<12x97xf32>
  %v1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
    ins(%a0 : tensor<12x97xf32>) outs(%v0 : tensor<12x97xf32>) {
  ^bb0(%x0: f32, %o0: f32):
    %t = math.tanh %x0 : f32
    %r = math.tan %t : f32
    linalg.yield %r : f32
  } -> tensor<12x97xf32>
  %v2 = tensor.empty() : tensor<12x97xf32>
  %v3 = linalg.softmax dimension(1) ins(%v1 : tensor<12x97xf32>) outs(%v2 : tensor<12x97xf32>) -> tensor<12x97xf32>
  %v4 = tensor.empty() : tensor<12x97xf32>
  %v5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
    ins(%v3 : tensor<12x97xf32>) outs(%v4 : tensor<12x97xf32>) {
  ^bb0(%x0: f32, %o0: f32):
    %half = arith.constant 0.5 : f32
    %q = arith.mulf %x0, %x0 : f32
    %one = arith.constant 1.0 : f32
    %u = arith.addf %q, %one : f32
    %s = math.sqrt %u : f32
    %t = arith.divf %x0, %s : f32
    %r = arith.addf %t, %half : f32
    linalg.yield %r : f32
  } -> tensor<12x97xf32>
  %v6 = norm.rms_norm %v5 gamma(%a1 : tensor<97xf32>) {axes = 1 : i64, eps = 1.0e-1 : f64} : tensor<12x97xf32>
  %v7 = tensor.empty() : tensor<12x97xf32>
  %v8 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
    ins(%v6 : tensor<12x97xf32>) outs(%v7 : tensor<12x97xf32>) {
  ^bb0(%x0: f32, %o0: f32):
    %half = arith.constant 0.5 : f32
    %q = arith.mulf %x0, %x0 : f32
    %one = arith.constant 1.0 : f32
    %u = arith.addf %q, %one : f32
    %s = math.sqrt %u : f32
    %t = arith.divf %x0, %s : f32
    %r = arith.addf %t, %half : f32
    linalg.yield %r : f32
  } -> tensor<12x97xf32>
  %v9 = tensor.empty() : tensor<12x97xf32>
  %v10 = linalg.negf ins(%a0 : tensor<12x97xf32>) outs(%v9 : tensor<12x97xf32>) -> tensor<12x97xf32>
  return %v8, %v10 : tensor<12x97xf32>, tensor<12x97xf32>
}
