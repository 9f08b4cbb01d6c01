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
// CHECK-NEXT:      [[S:%.*]] = arith.mulf [[C]], [[C]]
// CHECK-NEXT:      arith.addf %out, [[S]]
// CHECK:         [[RSTD:%.*]] = linalg.generic {{.*}} ins([[SQUARES]] : tensor<2xf32>)
// CHECK:           arith.divf
// CHECK-NEXT:      arith.addf
// CHECK-NEXT:      math.rsqrt
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
// CHECK:           arith.maximumf %out, %in : f64
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
