// RUN: weir-opt %s | weir-opt | FileCheck %s

// CHECK-LABEL: func @layer_norm_without_weights
func.func @layer_norm_without_weights(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  // CHECK: norm.layer_norm %{{.*}} {axes = 3 : i64, eps = 0.000000e+00 : f64} : tensor<2x3x4xf64>
  %y = norm.layer_norm %x {axes = 3 : i64, eps = 0.0 : f64} : tensor<2x3x4xf64>
  return %y : tensor<2x3x4xf64>
}

// CHECK-LABEL: func @layer_norm_beta_alone
func.func @layer_norm_beta_alone(%x: tensor<2x3x4xf32>, %b: tensor<3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK: norm.layer_norm %{{.*}} beta(%{{.*}} : tensor<3x4xf32>) {axes = 2
  %y = norm.layer_norm %x beta(%b : tensor<3x4xf32>) {axes = 2 : i64, eps = 1.0e-5 : f64}
      : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: func @rms_norm_casts_before_scale
func.func @rms_norm_casts_before_scale(%x: tensor<0x4xf16>) -> tensor<0x4xf16> {
  // CHECK: norm.rms_norm %{{.*}} {axes = 1 : i64, cast_before_scale, eps
  %y = norm.rms_norm %x {axes = 1 : i64, eps = 1.0e-6 : f64, cast_before_scale} : tensor<0x4xf16>
  return %y : tensor<0x4xf16>
}

// CHECK-LABEL: func @cross_entropy_reductions
func.func @cross_entropy_reductions(%x: tensor<2x5x3xf32>, %t: tensor<2x5xi32>)
    -> (tensor<2x5xf32>, tensor<f32>) {
  // CHECK: norm.softmax_cross_entropy none %{{.*}} {ignore_index = 7 : i64} : {{.*}} -> tensor<2x5xf32>
  // CHECK: norm.softmax_cross_entropy sum %{{.*}} -> tensor<f32>
  %a = norm.softmax_cross_entropy none %x, %t {ignore_index = 7 : i64}
      : tensor<2x5x3xf32>, tensor<2x5xi32> -> tensor<2x5xf32>
  // CHECK: norm.softmax_cross_entropy mean %{{.*}} {label_smoothing = 2.500000e-01 : f64} : {{.*}} -> tensor<f32>
  %b = norm.softmax_cross_entropy sum %x, %t : tensor<2x5x3xf32>, tensor<2x5xi32> -> tensor<f32>
  %c = norm.softmax_cross_entropy mean %x, %t {label_smoothing = 0.25 : f64}
      : tensor<2x5x3xf32>, tensor<2x5xi32> -> tensor<f32>
  return %a, %b : tensor<2x5xf32>, tensor<f32>
}

// CHECK-LABEL: func @logsumexp
func.func @logsumexp(%x: tensor<2x5x3xf32>, %v: tensor<4xf64>) -> (tensor<2x3xf32>, tensor<f64>) {
  // CHECK: norm.logsumexp %{{.*}} {axis = 1 : i64} : tensor<2x5x3xf32> -> tensor<2x3xf32>
  // CHECK: norm.logsumexp %{{.*}} {axis = 0 : i64} : tensor<4xf64> -> tensor<f64>
  %a = norm.logsumexp %x {axis = 1 : i64} : tensor<2x5x3xf32> -> tensor<2x3xf32>
  %b = norm.logsumexp %v {axis = 0 : i64} : tensor<4xf64> -> tensor<f64>
  return %a, %b : tensor<2x3xf32>, tensor<f64>
}

// CHECK-LABEL: func @layer_norm_vjp_without_gamma
func.func @layer_norm_vjp_without_gamma(%dy: tensor<2x3x4xf64>, %x: tensor<2x3x4xf64>)
    -> tensor<3x4xf64> {
  // CHECK: norm.layer_norm_vjp %{{.*}}, %{{.*}} {axes = 2 : i64, eps = 0.000000e+00 : f64} : tensor<2x3x4xf64>, tensor<3x4xf64>
  %dx, %dg, %db = norm.layer_norm_vjp %dy, %x {axes = 2 : i64, eps = 0.0 : f64}
      : tensor<2x3x4xf64>, tensor<3x4xf64>
  return %db : tensor<3x4xf64>
}

// CHECK-LABEL: func @layer_norm_vjp_with_gamma
func.func @layer_norm_vjp_with_gamma(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %g: tensor<3xf32>)
    -> tensor<2x3xf32> {
  // CHECK: norm.layer_norm_vjp %{{.*}}, %{{.*}} gamma(%{{.*}} : tensor<3xf32>) {axes = 1
  %dx, %dg, %db = norm.layer_norm_vjp %dy, %x gamma(%g : tensor<3xf32>)
      {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<2x3xf32>, tensor<3xf32>
  return %dx : tensor<2x3xf32>
}

// CHECK-LABEL: func @rms_norm_vjp_casts_before_scale
func.func @rms_norm_vjp_casts_before_scale(%dy: tensor<0x4xf16>, %x: tensor<0x4xf16>)
    -> tensor<4xf16> {
  // CHECK: norm.rms_norm_vjp %{{.*}}, %{{.*}} {axes = 1 : i64, cast_before_scale, eps {{.*}}} : tensor<0x4xf16>, tensor<4xf16>
  %dx, %dg = norm.rms_norm_vjp %dy, %x {axes = 1 : i64, eps = 1.0e-6 : f64, cast_before_scale}
      : tensor<0x4xf16>, tensor<4xf16>
  return %dg : tensor<4xf16>
}

// CHECK-LABEL: func @logsumexp_vjp
func.func @logsumexp_vjp(%dy: tensor<2x3xf32>, %x: tensor<2x5x3xf32>) -> tensor<2x5x3xf32> {
  // CHECK: norm.logsumexp_vjp %{{.*}}, %{{.*}} {axis = 1 : i64} : tensor<2x3xf32>, tensor<2x5x3xf32>
  %dx = norm.logsumexp_vjp %dy, %x {axis = 1 : i64} : tensor<2x3xf32>, tensor<2x5x3xf32>
  return %dx : tensor<2x5x3xf32>
}

// CHECK-LABEL: func @cross_entropy_vjp_reductions
func.func @cross_entropy_vjp_reductions(%a: tensor<2x5xf32>, %b: tensor<f32>,
                                        %x: tensor<2x5x3xf32>, %t: tensor<2x5xi32>)
    -> (tensor<2x5x3xf32>, tensor<2x5x3xf32>) {
  // CHECK: norm.softmax_cross_entropy_vjp none %{{.*}} {ignore_index = 7 : i64} : tensor<2x5xf32>, tensor<2x5x3xf32>, tensor<2x5xi32>
  // CHECK: norm.softmax_cross_entropy_vjp sum %{{.*}} : tensor<f32>,
  %dx = norm.softmax_cross_entropy_vjp none %a, %x, %t {ignore_index = 7 : i64}
      : tensor<2x5xf32>, tensor<2x5x3xf32>, tensor<2x5xi32>
  %dz = norm.softmax_cross_entropy_vjp sum %b, %x, %t
      : tensor<f32>, tensor<2x5x3xf32>, tensor<2x5xi32>
  return %dx, %dz : tensor<2x5x3xf32>, tensor<2x5x3xf32>
}

// CHECK-LABEL: func @batch_norm
func.func @batch_norm(%x: tensor<2x3x4xf32>, %c: tensor<3xf32>)
    -> (tensor<3xf32>, tensor<2x3x4xf32>) {
  // CHECK: norm.batch_norm %{{.*}} beta(%{{.*}} : tensor<3xf32>) {axis = 1 : i64, eps = 1.000000e-05 : f64} : tensor<2x3x4xf32>, tensor<3xf32>
  %y, %m, %v = norm.batch_norm %x beta(%c : tensor<3xf32>) {axis = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<2x3x4xf32>, tensor<3xf32>
  // CHECK: norm.batch_norm_inference %{{.*}}, %{{.*}}, %{{.*}} gamma(%{{.*}} : tensor<3xf32>) {axis = 1
  %z = norm.batch_norm_inference %y, %m, %v gamma(%c : tensor<3xf32>)
      {axis = 1 : i64, eps = 0.0 : f64} : tensor<2x3x4xf32>, tensor<3xf32>
  // CHECK: norm.batch_norm_vjp %{{.*}}, %{{.*}} dmean(%{{.*}} : tensor<3xf32>) dvariance(%{{.*}} : tensor<3xf32>) {axis = 1
  %dx, %dg, %db = norm.batch_norm_vjp %z, %x dmean(%m : tensor<3xf32>) dvariance(%v : tensor<3xf32>)
      {axis = 1 : i64, eps = 1.0e-5 : f64} : tensor<2x3x4xf32>, tensor<3xf32>
  return %dg, %dx : tensor<3xf32>, tensor<2x3x4xf32>
}

// CHECK-LABEL: func @activations
func.func @activations(%x: tensor<f64>, %y: tensor<0x3xf32>) -> (tensor<f64>, tensor<0x3xf32>) {
  // CHECK: norm.gelu %{{.*}} : tensor<f64>
  // CHECK: norm.gelu_vjp %{{.*}}, %{{.*}} {tanh_factor = 5.000000e-01 : f64} : tensor<f64>
  %a = norm.gelu %x : tensor<f64>
  %b = norm.gelu_vjp %a, %x {tanh_factor = 0.5 : f64} : tensor<f64>
  // CHECK: norm.silu %{{.*}} : tensor<0x3xf32>
  // CHECK: norm.silu_vjp %{{.*}}, %{{.*}} : tensor<0x3xf32>
  %c = norm.silu %y : tensor<0x3xf32>
  %d = norm.silu_vjp %c, %y : tensor<0x3xf32>
  return %b, %d : tensor<f64>, tensor<0x3xf32>
}

// CHECK-LABEL: func @attention
func.func @attention(%q: tensor<2x3x7x4xbf16>, %k: tensor<2x3x9x4xbf16>, %v: tensor<2x3x9x5xbf16>,
                     %b: tensor<1x3x1x9xf32>) -> (tensor<2x3x7x4xbf16>, tensor<1x3x1x9xf32>) {
  // CHECK: norm.attention %{{.*}}, %{{.*}}, %{{.*}} bias(%{{.*}} : tensor<1x3x1x9xf32>) {scale = 5.000000e-01 : f64, softcap = 3.000000e+01 : f64} : tensor<2x3x7x4xbf16>, tensor<2x3x9x4xbf16>, tensor<2x3x9x5xbf16> -> tensor<2x3x7x5xbf16>, tensor<2x3x7xf32>
  %y, %m, %s = norm.attention %q, %k, %v bias(%b : tensor<1x3x1x9xf32>)
      {scale = 0.5 : f64, softcap = 30.0 : f64} : tensor<2x3x7x4xbf16>, tensor<2x3x9x4xbf16>,
      tensor<2x3x9x5xbf16> -> tensor<2x3x7x5xbf16>, tensor<2x3x7xf32>
  // CHECK: norm.attention_vjp %{{.*}} bias(%{{.*}} : tensor<1x3x1x9xf32>) {scale = 5.000000e-01 : f64} : {{.*}} -> tensor<2x3x7x5xbf16>, tensor<2x3x7xf32>, tensor<1x3x1x9xf32>
  %dq, %dk, %dv, %db = norm.attention_vjp %y, %q, %k, %v, %y, %m, %s bias(%b : tensor<1x3x1x9xf32>)
      {scale = 0.5 : f64} : tensor<2x3x7x4xbf16>, tensor<2x3x9x4xbf16>, tensor<2x3x9x5xbf16>
      -> tensor<2x3x7x5xbf16>, tensor<2x3x7xf32>, tensor<1x3x1x9xf32>
  return %dq, %db : tensor<2x3x7x4xbf16>, tensor<1x3x1x9xf32>
}

// CHECK-LABEL: func @attention_of_no_keys
func.func @attention_of_no_keys(%q: tensor<7x4xf64>, %k: tensor<0x4xf64>, %v: tensor<0x5xf64>)
    -> tensor<4x4xf64> {
  // CHECK: norm.attention %{{.*}}, %{{.*}}, %{{.*}} {scale = 1.000000e+00 : f64} : tensor<7x4xf64>, tensor<0x4xf64>, tensor<0x5xf64> -> tensor<7x5xf64>, tensor<7xf64>
  %y, %m, %s = norm.attention %q, %k, %v {scale = 1.0 : f64}
      : tensor<7x4xf64>, tensor<0x4xf64>, tensor<0x5xf64> -> tensor<7x5xf64>, tensor<7xf64>
  // CHECK: norm.attention_vjp %{{.*}} {scale = 1.000000e+00 : f64} : tensor<7x4xf64>, tensor<0x4xf64>, tensor<0x5xf64> -> tensor<7x5xf64>, tensor<7xf64>
  %dq, %dk, %dv = norm.attention_vjp %y, %q, %k, %v, %y, %m, %s {scale = 1.0 : f64}
      : tensor<7x4xf64>, tensor<0x4xf64>, tensor<0x5xf64> -> tensor<7x5xf64>, tensor<7xf64>
  %e = tensor.extract_slice %dq[0, 0] [4, 4] [1, 1] : tensor<7x4xf64> to tensor<4x4xf64>
  return %e : tensor<4x4xf64>
}

// CHECK-LABEL: func @argsort
func.func @argsort(%x: tensor<4x10xf32>, %y: tensor<4x10xi1>) -> (tensor<4x10xi32>, tensor<4x3xi32>) {
  // CHECK: norm.argsort %{{.*}} : tensor<4x10xf32> -> tensor<4x10xi32>
  // CHECK: norm.argsort %{{.*}}, %{{.*}} {descending} : tensor<4x10xi1>, tensor<4x10xf32> -> tensor<4x3xi32>
  %a = norm.argsort %x : tensor<4x10xf32> -> tensor<4x10xi32>
  %b = norm.argsort %y, %x {descending} : tensor<4x10xi1>, tensor<4x10xf32> -> tensor<4x3xi32>
  return %a, %b : tensor<4x10xi32>, tensor<4x3xi32>
}
