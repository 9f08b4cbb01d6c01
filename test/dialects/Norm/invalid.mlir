// RUN: weir-opt %s -split-input-file -verify-diagnostics

func.func @layer_norm_c1_none(%x: tensor<2x4xf32>) {
  // expected-error @below {{normalises 0 dimensions, x has 2}}
  %y = norm.layer_norm %x {axes = 0 : i64, eps = 1.0e-5 : f64} : tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm_c1_too_many(%x: tensor<2x4xf32>) {
  // expected-error @below {{normalises 3 dimensions, x has 2}}
  %y = norm.layer_norm %x {axes = 3 : i64, eps = 1.0e-5 : f64} : tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm_c2_gamma(%x: tensor<2x4xf32>, %g: tensor<2xf32>) {
  // expected-error @below {{gamma is 'tensor<2xf32>', expected 'tensor<4xf32>'}}
  %y = norm.layer_norm %x gamma(%g : tensor<2xf32>) {axes = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm_c2_beta_type(%x: tensor<2x4xf32>, %b: tensor<4xf64>) {
  // expected-error @below {{beta is 'tensor<4xf64>', expected 'tensor<4xf32>'}}
  %y = norm.layer_norm %x beta(%b : tensor<4xf64>) {axes = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm_c3_negative(%x: tensor<2x4xf32>) {
  // expected-error @below {{not a finite value from 0 on}}
  %y = norm.layer_norm %x {axes = 1 : i64, eps = -1.0e-5 : f64} : tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm_c3_infinite(%x: tensor<2x4xf32>) {
  // expected-error @below {{not a finite value from 0 on}}
  %y = norm.layer_norm %x {axes = 1 : i64, eps = 0x7FF0000000000000 : f64} : tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm_dynamic(%x: tensor<?x4xf32>) {
  // expected-error @below {{must be statically shaped tensor}}
  %y = norm.layer_norm %x {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<?x4xf32>
  return
}

// -----

func.func @rms_norm_c1(%x: tensor<f32>) {
  // expected-error @below {{normalises 1 dimensions, x has 0}}
  %y = norm.rms_norm %x {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<f32>
  return
}

// -----

func.func @rms_norm_c2(%x: tensor<2x4xbf16>, %g: tensor<4xf32>) {
  // expected-error @below {{gamma is 'tensor<4xf32>', expected 'tensor<4xbf16>'}}
  %y = norm.rms_norm %x gamma(%g : tensor<4xf32>) {axes = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<2x4xbf16>
  return
}

// -----

func.func @rms_norm_c3(%x: tensor<2x4xf32>) {
  // expected-error @below {{not a finite value from 0 on}}
  %y = norm.rms_norm %x {axes = 1 : i64, eps = 0x7FF8000000000000 : f64} : tensor<2x4xf32>
  return
}

// -----

func.func @log_softmax_c1(%x: tensor<2x4xf32>) {
  // expected-error @below {{axis 2 is not among the 2 of x}}
  %y = norm.log_softmax %x {axis = 2 : i64} : tensor<2x4xf32>
  return
}

// -----

func.func @logsumexp_c1(%x: tensor<2x4xf32>) {
  // expected-error @below {{axis -1 is not among the 2 of x}}
  %y = norm.logsumexp %x {axis = -1 : i64} : tensor<2x4xf32> -> tensor<2xf32>
  return
}

// -----

func.func @logsumexp_c2(%x: tensor<2x4xf32>) {
  // expected-error @below {{the result is 'tensor<2xf32>', expected 'tensor<4xf32>'}}
  %y = norm.logsumexp %x {axis = 0 : i64} : tensor<2x4xf32> -> tensor<2xf32>
  return
}

// -----

func.func @cross_entropy_c1(%x: tensor<2x4xf32>, %t: tensor<3xi64>) {
  // expected-error @below {{logits of shape [2, 4] need targets of that shape without its last dimension, got [3]}}
  %y = norm.softmax_cross_entropy mean %x, %t : tensor<2x4xf32>, tensor<3xi64> -> tensor<f32>
  return
}

// -----

func.func @cross_entropy_c2_none(%x: tensor<2x4xf32>, %t: tensor<2xi64>) {
  // expected-error @below {{reduction 'none' gives 'tensor<2xf32>', not 'tensor<f32>'}}
  %y = norm.softmax_cross_entropy none %x, %t : tensor<2x4xf32>, tensor<2xi64> -> tensor<f32>
  return
}

// -----

func.func @cross_entropy_c2_element(%x: tensor<2x4xf32>, %t: tensor<2xi64>) {
  // expected-error @below {{reduction 'mean' gives 'tensor<f32>', not 'tensor<f64>'}}
  %y = norm.softmax_cross_entropy mean %x, %t : tensor<2x4xf32>, tensor<2xi64> -> tensor<f64>
  return
}

// -----

func.func @cross_entropy_c3_ignore_index(%x: tensor<2x4xf32>, %t: tensor<2xi32>) {
  // expected-error @below {{targets of 'i32' cannot hold 4294967296}}
  %y = norm.softmax_cross_entropy sum %x, %t {ignore_index = 4294967296 : i64}
      : tensor<2x4xf32>, tensor<2xi32> -> tensor<f32>
  return
}

// -----

func.func @cross_entropy_c3_classes(%x: tensor<0x2147483648xf32>, %t: tensor<0xi32>) {
  // expected-error @below {{targets of 'i32' cannot hold 2147483648}}
  %y = norm.softmax_cross_entropy sum %x, %t
      : tensor<0x2147483648xf32>, tensor<0xi32> -> tensor<f32>
  return
}

// -----

func.func @cross_entropy_c4(%x: tensor<2x4xf32>, %t: tensor<2xi64>) {
  // expected-error @below {{label smoothing is 1.500000e+00 : f64, not in [0, 1]}}
  %y = norm.softmax_cross_entropy mean %x, %t {label_smoothing = 1.5 : f64}
      : tensor<2x4xf32>, tensor<2xi64> -> tensor<f32>
  return
}

// -----

func.func @cross_entropy_vjp_c4(%d: tensor<f32>, %x: tensor<2x4xf32>, %t: tensor<2xi64>) {
  // expected-error @below {{label smoothing is 0x7FF8000000000000 : f64, not in [0, 1]}}
  %y = norm.softmax_cross_entropy_vjp mean %d, %x, %t {label_smoothing = 0x7FF8000000000000 : f64}
      : tensor<f32>, tensor<2x4xf32>, tensor<2xi64>
  return
}

// -----

func.func @layer_norm_vjp_c1(%x: tensor<2x4xf32>) {
  // expected-error @below {{normalises 3 dimensions, x has 2}}
  %dx, %dg, %db = norm.layer_norm_vjp %x, %x {axes = 3 : i64, eps = 1.0e-5 : f64}
      : tensor<2x4xf32>, tensor<4xf32>
  return
}

// -----

func.func @layer_norm_vjp_c2_gamma(%x: tensor<2x4xf32>, %g: tensor<2xf32>) {
  // expected-error @below {{gamma is 'tensor<2xf32>', expected 'tensor<4xf32>'}}
  %dx, %dg, %db = norm.layer_norm_vjp %x, %x gamma(%g : tensor<2xf32>)
      {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<2x4xf32>, tensor<4xf32>
  return
}

// -----

func.func @layer_norm_vjp_c2_dgamma(%x: tensor<2x4xf32>) {
  // expected-error @below {{dgamma is 'tensor<2x4xf32>', expected 'tensor<4xf32>'}}
  %dx, %dg, %db = norm.layer_norm_vjp %x, %x {axes = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<2x4xf32>, tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm_vjp_c2_dbeta(%x: tensor<2x4xf32>) {
  // expected-error @below {{failed to verify that all of {dgamma, dbeta} have same type}}
  %dx, %dg, %db = "norm.layer_norm_vjp"(%x, %x) {axes = 1 : i64, eps = 1.0e-5 : f64}
      : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>)
  return
}

// -----

func.func @layer_norm_vjp_c3(%x: tensor<2x4xf32>) {
  // expected-error @below {{not a finite value from 0 on}}
  %dx, %dg, %db = norm.layer_norm_vjp %x, %x {axes = 1 : i64, eps = -1.0 : f64}
      : tensor<2x4xf32>, tensor<4xf32>
  return
}

// -----

func.func @layer_norm_vjp_cotangent_of_another_shape(%x: tensor<2x4xf32>, %dy: tensor<4x2xf32>) {
  // expected-error @below {{failed to verify that all of {dy, x, dx} have same type}}
  %dx, %dg, %db = "norm.layer_norm_vjp"(%dy, %x) {axes = 1 : i64, eps = 1.0e-5 : f64}
      : (tensor<4x2xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @layer_norm_vjp_without_axes(%x: tensor<2x4xf32>) {
  // expected-error @below {{requires attribute 'axes'}}
  %dx, %dg, %db = norm.layer_norm_vjp %x, %x {eps = 1.0e-5 : f64} : tensor<2x4xf32>, tensor<4xf32>
  return
}

// -----

func.func @rms_norm_vjp_c1(%x: tensor<f32>) {
  // expected-error @below {{normalises 1 dimensions, x has 0}}
  %dx, %dg = norm.rms_norm_vjp %x, %x {axes = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<f32>, tensor<f32>
  return
}

// -----

func.func @rms_norm_vjp_c2_gamma(%x: tensor<2x4xbf16>, %g: tensor<4xf32>) {
  // expected-error @below {{gamma is 'tensor<4xf32>', expected 'tensor<4xbf16>'}}
  %dx, %dg = norm.rms_norm_vjp %x, %x gamma(%g : tensor<4xf32>)
      {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<2x4xbf16>, tensor<4xbf16>
  return
}

// -----

func.func @rms_norm_vjp_c2_dgamma(%x: tensor<2x4xbf16>) {
  // expected-error @below {{dgamma is 'tensor<4xf32>', expected 'tensor<4xbf16>'}}
  %dx, %dg = norm.rms_norm_vjp %x, %x {axes = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<2x4xbf16>, tensor<4xf32>
  return
}

// -----

func.func @rms_norm_vjp_c3(%x: tensor<2x4xf32>) {
  // expected-error @below {{not a finite value from 0 on}}
  %dx, %dg = norm.rms_norm_vjp %x, %x {axes = 1 : i64, eps = 0x7FF8000000000000 : f64}
      : tensor<2x4xf32>, tensor<4xf32>
  return
}

// -----

func.func @softmax_vjp_c1(%y: tensor<2x4xf32>) {
  // expected-error @below {{axis -1 is not among the 2 of y}}
  %dx = norm.softmax_vjp %y, %y {axis = -1 : i64} : tensor<2x4xf32>
  return
}

// -----

func.func @log_softmax_vjp_c1(%y: tensor<2x4xf32>) {
  // expected-error @below {{axis 2 is not among the 2 of y}}
  %dx = norm.log_softmax_vjp %y, %y {axis = 2 : i64} : tensor<2x4xf32>
  return
}

// -----

func.func @logsumexp_vjp_c1(%dy: tensor<2xf32>, %x: tensor<2x4xf32>) {
  // expected-error @below {{axis 2 is not among the 2 of x}}
  %dx = norm.logsumexp_vjp %dy, %x {axis = 2 : i64} : tensor<2xf32>, tensor<2x4xf32>
  return
}

// -----

func.func @logsumexp_vjp_c2(%dy: tensor<2xf64>, %x: tensor<2x4xf32>) {
  // expected-error @below {{dy is 'tensor<2xf64>', expected 'tensor<2xf32>'}}
  %dx = norm.logsumexp_vjp %dy, %x {axis = 1 : i64} : tensor<2xf64>, tensor<2x4xf32>
  return
}

// -----

func.func @cross_entropy_vjp_c1(%d: tensor<f32>, %x: tensor<2x4xf32>, %t: tensor<3xi64>) {
  // expected-error @below {{logits of shape [2, 4] need targets of that shape without its last dimension, got [3]}}
  %dx = norm.softmax_cross_entropy_vjp mean %d, %x, %t
      : tensor<f32>, tensor<2x4xf32>, tensor<3xi64>
  return
}

// -----

func.func @cross_entropy_vjp_c2_none(%d: tensor<f32>, %x: tensor<2x4xf32>, %t: tensor<2xi64>) {
  // expected-error @below {{reduction 'none' takes 'tensor<2xf32>', not 'tensor<f32>'}}
  %dx = norm.softmax_cross_entropy_vjp none %d, %x, %t
      : tensor<f32>, tensor<2x4xf32>, tensor<2xi64>
  return
}

// -----

func.func @cross_entropy_vjp_c2_element(%d: tensor<f64>, %x: tensor<2x4xf32>, %t: tensor<2xi64>) {
  // expected-error @below {{reduction 'sum' takes 'tensor<f32>', not 'tensor<f64>'}}
  %dx = norm.softmax_cross_entropy_vjp sum %d, %x, %t
      : tensor<f64>, tensor<2x4xf32>, tensor<2xi64>
  return
}

// -----

func.func @cross_entropy_vjp_c3(%d: tensor<f32>, %x: tensor<2x4xf32>, %t: tensor<2xi32>) {
  // expected-error @below {{targets of 'i32' cannot hold 4294967296}}
  %dx = norm.softmax_cross_entropy_vjp sum %d, %x, %t {ignore_index = 4294967296 : i64}
      : tensor<f32>, tensor<2x4xf32>, tensor<2xi32>
  return
}

// -----

func.func @batch_norm_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{axis 2 is not among the 2 of x}}
  %y, %m, %v = norm.batch_norm %x {axis = 2 : i64, eps = 1.0e-5 : f64} : tensor<2x3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_c2_statistics(%x: tensor<2x3xf32>) {
  // expected-error @below {{mean is 'tensor<2xf32>', expected 'tensor<3xf32>'}}
  %y, %m, %v = norm.batch_norm %x {axis = 1 : i64, eps = 1.0e-5 : f64} : tensor<2x3xf32>, tensor<2xf32>
  return
}

// -----

func.func @batch_norm_c2_beta(%x: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @below {{beta is 'tensor<2xf32>', expected 'tensor<3xf32>'}}
  %y, %m, %v = norm.batch_norm %x beta(%b : tensor<2xf32>) {axis = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<2x3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_c3(%x: tensor<2x3xf32>) {
  // expected-error @below {{not a finite value from 0 on}}
  %y, %m, %v = norm.batch_norm %x {axis = 1 : i64, eps = -1.0 : f64} : tensor<2x3xf32>, tensor<3xf32>
  return
}

// -----

func.func @batch_norm_inference_c2(%x: tensor<2x3xf32>, %m: tensor<2xf32>) {
  // expected-error @below {{mean is 'tensor<2xf32>', expected 'tensor<3xf32>'}}
  %y = norm.batch_norm_inference %x, %m, %m {axis = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<2x3xf32>, tensor<2xf32>
  return
}

// -----

func.func @batch_norm_vjp_c2(%x: tensor<2x3xf32>, %d: tensor<2xf32>) {
  // expected-error @below {{dvariance is 'tensor<2xf32>', expected 'tensor<3xf32>'}}
  %dx, %dg, %db = norm.batch_norm_vjp %x, %x dvariance(%d : tensor<2xf32>)
      {axis = 1 : i64, eps = 1.0e-5 : f64} : tensor<2x3xf32>, tensor<3xf32>
  return
}

// -----

func.func @gelu_c1(%x: tensor<3xf32>) {
  // expected-error @below {{tanh_factor is 0x7FF0000000000000 : f64, not finite}}
  %y = norm.gelu %x {tanh_factor = 0x7FF0000000000000 : f64} : tensor<3xf32>
  return
}

// -----

func.func @gelu_vjp_c1(%x: tensor<3xf32>) {
  // expected-error @below {{tanh_factor is 0x7FF8000000000000 : f64, not finite}}
  %y = norm.gelu_vjp %x, %x {tanh_factor = 0x7FF8000000000000 : f64} : tensor<3xf32>
  return
}

// -----

func.func @silu_of_integers(%x: tensor<3xi32>) {
  // expected-error @below {{must be statically shaped tensor}}
  %y = norm.silu %x : tensor<3xi32>
  return
}

// -----

func.func @attention_c1_rank(%q: tensor<4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>) {
  // expected-error @below {{q has 1 dimensions, expected at least 2}}
  %y, %m, %s = norm.attention %q, %k, %v {scale = 1.0 : f64}
      : tensor<4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_c1_elements(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf16>) {
  // expected-error @below {{v is of 'f16', q of 'f32'}}
  %y, %m, %s = norm.attention %q, %k, %v {scale = 1.0 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf16> -> tensor<7x5xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_c1_batches(%q: tensor<2x7x4xf32>, %k: tensor<3x9x4xf32>, %v: tensor<2x9x5xf32>) {
  // expected-error @below {{k is 'tensor<3x9x4xf32>', expected the batch dimensions of q, 'tensor<2x7x4xf32>'}}
  %y, %m, %s = norm.attention %q, %k, %v {scale = 1.0 : f64}
      : tensor<2x7x4xf32>, tensor<3x9x4xf32>, tensor<2x9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_c1_keys(%q: tensor<7x4xf32>, %k: tensor<9x3xf32>, %v: tensor<9x5xf32>) {
  // expected-error @below {{k has keys of 3 elements, q queries of 4}}
  %y, %m, %s = norm.attention %q, %k, %v {scale = 1.0 : f64}
      : tensor<7x4xf32>, tensor<9x3xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_c1_values(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<8x5xf32>) {
  // expected-error @below {{v has 8 values, k 9 keys}}
  %y, %m, %s = norm.attention %q, %k, %v {scale = 1.0 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<8x5xf32> -> tensor<7x5xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_c2(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>, %b: tensor<7x8xf32>) {
  // expected-error @below {{bias is 'tensor<7x8xf32>', which the scores, 'tensor<7x9xf32>', cannot repeat}}
  %y, %m, %s = norm.attention %q, %k, %v bias(%b : tensor<7x8xf32>) {scale = 1.0 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_c2_rank(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>, %b: tensor<9xf32>) {
  // expected-error @below {{bias is 'tensor<9xf32>', which the scores, 'tensor<7x9xf32>', cannot repeat}}
  %y, %m, %s = norm.attention %q, %k, %v bias(%b : tensor<9xf32>) {scale = 1.0 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_c2_elements(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>, %b: tensor<7x9xf64>) {
  // expected-error @below {{bias is 'tensor<7x9xf64>', which the scores, 'tensor<7x9xf32>', cannot repeat}}
  %y, %m, %s = norm.attention %q, %k, %v bias(%b : tensor<7x9xf64>) {scale = 1.0 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_c3_result(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>) {
  // expected-error @below {{result is 'tensor<7x4xf32>', expected 'tensor<7x5xf32>'}}
  %y, %m, %s = norm.attention %q, %k, %v {scale = 1.0 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x4xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_c3_statistics(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>) {
  // expected-error @below {{max and share are 'tensor<9xf32>', expected 'tensor<7xf32>'}}
  %y, %m, %s = norm.attention %q, %k, %v {scale = 1.0 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<9xf32>
  return
}

// -----

func.func @attention_c4_scale(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>) {
  // expected-error @below {{scale is 0x7FF8000000000000 : f64, not finite}}
  %y, %m, %s = norm.attention %q, %k, %v {scale = 0x7FF8000000000000 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_c4_softcap(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>) {
  // expected-error @below {{softcap is 0.000000e+00 : f64, not a finite number above 0}}
  %y, %m, %s = norm.attention %q, %k, %v {scale = 1.0 : f64, softcap = 0.0 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_vjp_c5_missing(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>, %b: tensor<7x9xf32>,
    %y: tensor<7x5xf32>, %m: tensor<7xf32>) {
  // expected-error @below {{has a bias, but no dbias}}
  %dq, %dk, %dv = norm.attention_vjp %y, %q, %k, %v, %y, %m, %m bias(%b : tensor<7x9xf32>) {scale = 1.0 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_vjp_c5_without(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>, %b: tensor<7x9xf32>,
    %y: tensor<7x5xf32>, %m: tensor<7xf32>) {
  // expected-error @below {{has a dbias, but no bias}}
  %dq, %dk, %dv, %db = norm.attention_vjp %y, %q, %k, %v, %y, %m, %m {scale = 1.0 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>, tensor<7x9xf32>
  return
}

// -----

func.func @attention_vjp_c5_type(%q: tensor<7x4xf32>, %k: tensor<9x4xf32>, %v: tensor<9x5xf32>, %b: tensor<7x9xf32>,
    %y: tensor<7x5xf32>, %m: tensor<7xf32>) {
  // expected-error @below {{dbias is 'tensor<1x9xf32>', expected 'tensor<7x9xf32>'}}
  %dq, %dk, %dv, %db = norm.attention_vjp %y, %q, %k, %v, %y, %m, %m bias(%b : tensor<7x9xf32>) {scale = 1.0 : f64}
      : tensor<7x4xf32>, tensor<9x4xf32>, tensor<9x5xf32> -> tensor<7x5xf32>, tensor<7xf32>, tensor<1x9xf32>
  return
}

// -----

func.func @argsort_c1_shapes(%x: tensor<4x10xf32>, %y: tensor<4x9xi64>) {
  // expected-error @below {{has keys of shapes [4, 10] and [4, 9]}}
  %order = norm.argsort %x, %y : tensor<4x10xf32>, tensor<4x9xi64> -> tensor<4x10xi32>
  return
}

// -----

func.func @argsort_c1_rank(%x: tensor<f32>) {
  // expected-error @below {{sorts keys of shape [], whose last dimension is not in [1, 1073741824]}}
  %order = norm.argsort %x : tensor<f32> -> tensor<i32>
  return
}

// -----

func.func @argsort_c1_none() {
  // expected-error @below {{has no key}}
  %order = "norm.argsort"() : () -> tensor<4xi32>
  return
}

// -----

func.func @argsort_c2_longer(%x: tensor<4x10xf32>) {
  // expected-error @below {{gives [4, 11] of keys [4, 10]; expected that shape, or a shorter last dimension from 1 on}}
  %order = norm.argsort %x : tensor<4x10xf32> -> tensor<4x11xi32>
  return
}
