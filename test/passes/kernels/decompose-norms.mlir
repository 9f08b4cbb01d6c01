// RUN: weir-opt %s --weir-decompose-norms --cse | FileCheck %s --implicit-check-not=norm.

// CHECK-DAG: [[FULL:#.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: [[ROWS:#.*]] = affine_map<(d0, d1, d2) -> (d0)>
// CHECK-DAG: [[COLUMNS:#.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: [[ROW:#.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: [[MIDDLE:#.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>

// CHECK-LABEL: func @layer_norm_takes_two_passes
// CHECK-SAME:    ([[X:%.*]]: tensor<2x3x4xf32>, [[G:%.*]]: tensor<3x4xf32>, [[B:%.*]]: tensor<3x4xf32>)
// CHECK:         [[SUM:%.*]] = linalg.generic {indexing_maps = [[[FULL]], [[ROWS]]], iterator_types = ["parallel", "reduction", "reduction"]} ins([[X]]
// CHECK:           arith.addf %out, %in : f32
// CHECK:         [[MEAN:%.*]] = linalg.generic {indexing_maps = [[[ROW]], [[ROW]]]{{.*}} ins([[SUM]] : tensor<2xf32>)
// CHECK:           arith.divf
// CHECK:         [[SQUARES:%.*]] = linalg.generic {indexing_maps = [[[FULL]], [[ROWS]], [[ROWS]]]{{.*}} ins([[X]], [[MEAN]]
// CHECK:           [[C:%.*]] = arith.subf
// CHECK-NEXT:      [[D:%.*]] = arith.mulf [[C]], %cst{{.*}} : f32
// CHECK-NEXT:      [[S:%.*]] = arith.mulf [[D]], [[D]]
// CHECK-NEXT:      arith.addf %out, [[S]]
// CHECK:         [[RSTD:%.*]] = linalg.generic {{.*}} ins([[SQUARES]] : tensor<2xf32>)
// CHECK:           arith.divf
// CHECK-NEXT:      arith.addf
// CHECK-NEXT:      [[R:%.*]] = math.rsqrt
// CHECK-NEXT:      arith.mulf [[R]], %cst{{.*}} : f32
// CHECK:         linalg.generic {indexing_maps = [[[FULL]], [[ROWS]], [[ROWS]], [[COLUMNS]], [[COLUMNS]], [[FULL]]]{{.*}} ins([[X]], [[MEAN]], [[RSTD]], [[G]], [[B]]
// CHECK:           arith.subf
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      arith.addf
func.func @layer_norm_takes_two_passes(%x: tensor<2x3x4xf32>, %g: tensor<3x4xf32>,
                                       %b: tensor<3x4xf32>) -> tensor<2x3x4xf32> {
  %y = norm.layer_norm %x gamma(%g : tensor<3x4xf32>) beta(%b : tensor<3x4xf32>)
       {axes = 2 : i64, eps = 1.0e-5 : f64} : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: func @rms_norm_scales_then_casts
// CHECK:         arith.extf %in : bf16 to f32
// CHECK:         math.rsqrt {{.*}} : f32
// CHECK-NEXT:    arith.mulf {{.*}} : f32
// CHECK-NEXT:    linalg.yield
// CHECK:         arith.mulf {{.*}} : f32
// CHECK:         arith.mulf {{.*}} : f32
// CHECK-NEXT:    arith.truncf {{.*}} : f32 to bf16
func.func @rms_norm_scales_then_casts(%x: tensor<2x4xbf16>, %g: tensor<4xbf16>) -> tensor<2x4xbf16> {
  %y = norm.rms_norm %x gamma(%g : tensor<4xbf16>) {axes = 1 : i64, eps = 1.0e-6 : f64}
      : tensor<2x4xbf16>
  return %y : tensor<2x4xbf16>
}

// CHECK-LABEL: func @rms_norm_casts_then_scales
// CHECK:         math.rsqrt {{.*}} : f32
// CHECK-NEXT:    arith.mulf {{.*}} : f32
// CHECK-NEXT:    linalg.yield
// CHECK:         arith.mulf {{.*}} : f32
// CHECK-NEXT:    arith.truncf {{.*}} : f32 to bf16
// CHECK-NEXT:    arith.mulf {{.*}} : bf16
func.func @rms_norm_casts_then_scales(%x: tensor<2x4xbf16>, %g: tensor<4xbf16>) -> tensor<2x4xbf16> {
  %y = norm.rms_norm %x gamma(%g : tensor<4xbf16>)
       {axes = 1 : i64, eps = 1.0e-6 : f64, cast_before_scale} : tensor<2x4xbf16>
  return %y : tensor<2x4xbf16>
}

// CHECK-LABEL: func @log_softmax_of_a_middle_axis
// CHECK:         indexing_maps = [[[FULL]], [[MIDDLE]]], iterator_types = ["parallel", "reduction", "parallel"]
// CHECK:           arith.maximumf %out, %in fastmath<nsz> : f64
func.func @log_softmax_of_a_middle_axis(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %y = norm.log_softmax %x {axis = 1 : i64} : tensor<2x3x4xf64>
  return %y : tensor<2x3x4xf64>
}

// CHECK-LABEL: func @cross_entropy_gathers_nothing
// CHECK-NOT:     tensor.extract
// CHECK:         return
func.func @cross_entropy_gathers_nothing(%x: tensor<2x3xf32>, %t: tensor<2xi64>) -> tensor<f32> {
  %y = norm.softmax_cross_entropy mean %x, %t : tensor<2x3xf32>, tensor<2xi64> -> tensor<f32>
  return %y : tensor<f32>
}

// Squares are scaled by as much as eps allows: 2^-42 for 1e-5, 2^-30 for 1e-12. Nothing hides the
// loss of small squares if eps is 0.
// CHECK-LABEL: func @squares_are_scaled_as_eps_allows
// CHECK:         arith.constant 2.27373675E-13 : f32
// CHECK:         arith.constant 9.31322574E-10 : f32
// CHECK-LABEL: func @squares_stay_if_eps_is_0
// CHECK:         [[ONE:%.*]] = arith.constant 1.000000e+00 : f32
// CHECK:           [[C:%.*]] = arith.subf
// CHECK-NEXT:      arith.mulf [[C]], [[ONE]]
func.func @squares_are_scaled_as_eps_allows(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = norm.layer_norm %x {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<2x3xf32>
  %z = norm.layer_norm %y {axes = 1 : i64, eps = 1.0e-12 : f64} : tensor<2x3xf32>
  return %z : tensor<2x3xf32>
}
func.func @squares_stay_if_eps_is_0(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = norm.layer_norm %x {axes = 1 : i64, eps = 0.0 : f64} : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// Statistics, two more sums by row, dx, and the weights' sums over the rows: all
// on x and dy themselves.
// CHECK-LABEL: func @layer_norm_vjp
// CHECK-SAME:    ([[DY:%.*]]: tensor<5x4xf32>, [[X:%.*]]: tensor<5x4xf32>, [[G:%.*]]: tensor<4xf32>)
// CHECK:         [[RSTD:%.*]] = linalg.generic
// CHECK:           math.rsqrt
// CHECK:         [[DX:%.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins([[DY]], [[X]],
// CHECK:         [[DG:%.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins([[DY]], [[X]],
// CHECK:           arith.addf %out
// CHECK:         [[DB:%.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins([[DY]] :
// CHECK-NEXT:    ^bb0(%in: f32, %out: f32):
// CHECK-NEXT:      arith.addf %out, %in
// CHECK:         return [[DX]], [[DG]], [[DB]]
func.func @layer_norm_vjp(%dy: tensor<5x4xf32>, %x: tensor<5x4xf32>, %g: tensor<4xf32>)
    -> (tensor<5x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %dx, %dg, %db = norm.layer_norm_vjp %dy, %x gamma(%g : tensor<4xf32>)
      {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<5x4xf32>, tensor<4xf32>
  return %dx, %dg, %db : tensor<5x4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What nothing uses is dead.
// CHECK-LABEL: func @layer_norm_vjp_of_beta_alone
// CHECK:         linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @layer_norm_vjp_of_beta_alone(%dy: tensor<5x4xf64>, %x: tensor<5x4xf64>) -> tensor<4xf64> {
  %dx, %dg, %db = norm.layer_norm_vjp %dy, %x {axes = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<5x4xf64>, tensor<4xf64>
  return %db : tensor<4xf64>
}

// The forward op and its VJP share their statistics.
// CHECK-LABEL: func @layer_norm_and_its_vjp
// CHECK-COUNT-1: math.rsqrt
// CHECK-NOT:     math.rsqrt
// CHECK:         return
func.func @layer_norm_and_its_vjp(%dy: tensor<5x4xf32>, %x: tensor<5x4xf32>)
    -> (tensor<5x4xf32>, tensor<5x4xf32>) {
  %y = norm.layer_norm %x {axes = 1 : i64, eps = 1.0e-5 : f64} : tensor<5x4xf32>
  %dx, %dg, %db = norm.layer_norm_vjp %dy, %x {axes = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<5x4xf32>, tensor<4xf32>
  return %y, %dx : tensor<5x4xf32>, tensor<5x4xf32>
}

// CHECK-LABEL: func @rms_norm_vjp_sums_in_f32
// CHECK:         arith.addf {{.*}} : f32
// CHECK-NOT:     arith.{{add|sub|mul|div}}f {{.*}} : bf16
// CHECK:         return
func.func @rms_norm_vjp_sums_in_f32(%dy: tensor<2x4xbf16>, %x: tensor<2x4xbf16>, %g: tensor<4xbf16>)
    -> (tensor<2x4xbf16>, tensor<4xbf16>) {
  %dx, %dg = norm.rms_norm_vjp %dy, %x gamma(%g : tensor<4xbf16>)
      {axes = 1 : i64, eps = 1.0e-6 : f64} : tensor<2x4xbf16>, tensor<4xbf16>
  return %dx, %dg : tensor<2x4xbf16>, tensor<4xbf16>
}

// CHECK-LABEL: func @rms_norm_vjp_weight_of_the_rounded
// CHECK:         iterator_types = ["reduction", "parallel"]
// CHECK:           [[N:%.*]] = arith.truncf {{.*}} : f32 to bf16
// CHECK-NEXT:      arith.extf [[N]] : bf16 to f32
// CHECK:           arith.addf {{.*}} : f32
// CHECK:         iterator_types = ["parallel"]
// CHECK:           arith.truncf {{.*}} : f32 to bf16
func.func @rms_norm_vjp_weight_of_the_rounded(%dy: tensor<2x4xbf16>, %x: tensor<2x4xbf16>)
    -> tensor<4xbf16> {
  %dx, %dg = norm.rms_norm_vjp %dy, %x {axes = 1 : i64, eps = 1.0e-6 : f64, cast_before_scale}
      : tensor<2x4xbf16>, tensor<4xbf16>
  return %dg : tensor<4xbf16>
}

// CHECK-LABEL: func @softmax_of_a_middle_axis
// CHECK-NOT:     linalg.softmax
// CHECK:         indexing_maps = [[[FULL]], [[MIDDLE]]], iterator_types = ["parallel", "reduction", "parallel"]
// CHECK:           arith.maximumf
// CHECK:         arith.divf
// CHECK-NOT:     linalg.softmax
// CHECK:         return
func.func @softmax_of_a_middle_axis(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %e = tensor.empty() : tensor<2x3x4xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<2x3x4xf32>) outs(%e : tensor<2x3x4xf32>)
      -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: func @softmax_vjp_and_log_softmax_vjp
// CHECK-COUNT-1: math.exp
// CHECK-NOT:     math.exp
// CHECK:         return
func.func @softmax_vjp_and_log_softmax_vjp(%dy: tensor<2x3xf32>, %y: tensor<2x3xf32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %a = norm.softmax_vjp %dy, %y {axis = 1 : i64} : tensor<2x3xf32>
  %b = norm.log_softmax_vjp %dy, %y {axis = 0 : i64} : tensor<2x3xf32>
  return %a, %b : tensor<2x3xf32>, tensor<2x3xf32>
}

// One row maximum, one sum of powers and one count for the loss and its gradient.
// CHECK-LABEL: func @cross_entropy_and_its_vjp
// CHECK-COUNT-1: arith.maximumf
// CHECK-COUNT-1: arith.extui
// CHECK-NOT:     arith.{{maximumf|extui}}
// CHECK:         return
func.func @cross_entropy_and_its_vjp(%d: tensor<f32>, %x: tensor<2x3xf32>, %t: tensor<2xi64>)
    -> (tensor<f32>, tensor<2x3xf32>) {
  %y = norm.softmax_cross_entropy mean %x, %t : tensor<2x3xf32>, tensor<2xi64> -> tensor<f32>
  %dx = norm.softmax_cross_entropy_vjp mean %d, %x, %t
      : tensor<f32>, tensor<2x3xf32>, tensor<2xi64>
  return %y, %dx : tensor<f32>, tensor<2x3xf32>
}

// One mean and one root of each channel for the norm and its gradients, and no sums but dbeta and
// dgamma.
// CHECK-LABEL: func @batch_norm_and_its_vjp
// CHECK-COUNT-4: iterator_types = ["reduction", "parallel", "reduction"]
// CHECK-NOT:     reduction
// CHECK:         return
func.func @batch_norm_and_its_vjp(%dy: tensor<2x3x4xf32>, %x: tensor<2x3x4xf32>, %g: tensor<3xf32>)
    -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<2x3x4xf32>, tensor<3xf32>) {
  %y, %m, %v = norm.batch_norm %x gamma(%g : tensor<3xf32>) {axis = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<2x3x4xf32>, tensor<3xf32>
  %dx, %dg, %db = norm.batch_norm_vjp %dy, %x gamma(%g : tensor<3xf32>)
      {axis = 1 : i64, eps = 1.0e-5 : f64} : tensor<2x3x4xf32>, tensor<3xf32>
  return %y, %v, %dx, %dg : tensor<2x3x4xf32>, tensor<3xf32>, tensor<2x3x4xf32>, tensor<3xf32>
}

// CHECK-LABEL: func @batch_norm_inference_is_elementwise
// CHECK-NOT:     reduction
// CHECK:         math.rsqrt
// CHECK-NOT:     reduction
// CHECK:         return
func.func @batch_norm_inference_is_elementwise(%x: tensor<2x3x4xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>)
    -> tensor<2x3x4xf32> {
  %y = norm.batch_norm_inference %x, %m, %v {axis = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<2x3x4xf32>, tensor<3xf32>
  return %y : tensor<2x3x4xf32>
}

// The complement of the error function keeps what 1 + erf loses; no power overflows.
// CHECK-LABEL: func @activations_keep_their_tails
// CHECK:         math.erfc
// CHECK-NOT:     math.erf %
// CHECK:         [[D:%.*]] = math.absf [[X:%.*]] :
// CHECK-NEXT:    [[N:%.*]] = arith.negf [[D]]
// CHECK-NEXT:    math.exp [[N]]
// CHECK-NOT:     math.exp
// CHECK:         return
func.func @activations_keep_their_tails(%dy: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = norm.gelu %x : tensor<4xf32>
  %dx = norm.silu_vjp %dy, %x : tensor<4xf32>
  return %y, %dx : tensor<4xf32>, tensor<4xf32>
}
