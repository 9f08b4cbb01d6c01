// RUN: weir-opt %s --weir-expand-math | FileCheck %s

// CHECK-LABEL: func @scalars
// CHECK-NOT: math.{{(exp|log|sqrt|rsqrt|tanh|erf|sin|cos|atan|powf)}}
// CHECK: return
func.func @scalars(%x: f32, %y: f32) -> f32 {
  %0 = math.exp %x : f32
  %1 = math.exp2 %0 : f32
  %2 = math.expm1 %1 : f32
  %3 = math.log %2 : f32
  %4 = math.log2 %3 : f32
  %5 = math.log10 %4 : f32
  %6 = math.log1p %5 : f32
  %7 = math.sqrt %6 : f32
  %8 = math.rsqrt %7 : f32
  %9 = math.tanh %8 : f32
  %10 = math.erf %9 : f32
  %11 = math.sin %10 : f32
  %12 = math.cos %11 : f32
  %13 = math.atan %12 : f32
  %14 = math.powf %13, %y : f32
  return %14 : f32
}

// CHECK-LABEL: func @vector_stays_vector
// CHECK-NOT: math.exp
// CHECK: math.fma {{.*}} : vector<4xf32>
// CHECK: arith.bitcast {{.*}} : vector<4xi32> to vector<4xf32>
// CHECK-NOT: math.exp
// CHECK: return
func.func @vector_stays_vector(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.exp %x : vector<4xf32>
  return %0 : vector<4xf32>
}

// CHECK-LABEL: func @f64
// CHECK-NOT: math.{{exp|sqrt|sin|atan2|powf|round}}
// CHECK: math.fma {{.*}} : f64
// CHECK-NOT: math.{{exp|sqrt|sin|atan2|powf|round}}
// CHECK: return
func.func @f64(%x: f64, %y: f64) -> f64 {
  %0 = math.exp %x : f64
  %1 = math.sqrt %0 : f64
  %2 = math.sin %1 : f64
  %3 = math.atan2 %2, %y : f64
  %4 = math.powf %3, %y : f64
  %5 = math.round %4 : f64
  return %5 : f64
}

// CHECK-LABEL: func @further_functions
// CHECK-NOT: math.{{a|ceil|c|e|s|is}}
// CHECK: return
func.func @further_functions(%x: f32, %y: f32) -> (f32, f32, i1, i1, i1, i1) {
  %0 = math.acos %x : f32
  %1 = math.acosh %0 : f32
  %2 = math.asin %1 : f32
  %3 = math.asinh %2 : f32
  %4 = math.atanh %3 : f32
  %5 = math.atan2 %4, %y : f32
  %6 = math.cbrt %5 : f32
  %7 = math.cosh %6 : f32
  %8 = math.erfc %7 : f32
  %9 = math.sinh %8 : f32
  %10 = math.tan %9 : f32
  %11 = math.clampf %10 to [%x, %y] : f32
  %12, %13 = math.sincos %11 : f32
  %14 = math.isfinite %12 : f32
  %15 = math.isinf %12 : f32
  %16 = math.isnan %12 : f32
  %17 = math.isnormal %12 : f32
  return %12, %13, %14, %15, %16, %17 : f32, f32, i1, i1, i1, i1
}

// CHECK-LABEL: func @remainder_is_a_loop
// CHECK: scf.for
// CHECK: arith.remui {{.*}} : vector<2xi64>
// CHECK-NOT: arith.remf
// CHECK: return
func.func @remainder_is_a_loop(%x: vector<2xf64>, %y: vector<2xf64>) -> vector<2xf64> {
  %0 = arith.remf %x, %y : vector<2xf64>
  return %0 : vector<2xf64>
}

// CHECK-LABEL: func @other_types_stay
// CHECK-NEXT: math.exp %{{.*}} : f16
// CHECK-NEXT: math.exp %{{.*}} : tensor<4xf32>
// CHECK-NEXT: math.ctpop %{{.*}} : i32
// CHECK-NEXT: return
func.func @other_types_stay(%y: f16, %z: tensor<4xf32>, %i: i32) -> (f16, tensor<4xf32>, i32) {
  %0 = math.exp %y : f16
  %1 = math.exp %z : tensor<4xf32>
  %2 = math.ctpop %i : i32
  return %0, %1, %2 : f16, tensor<4xf32>, i32
}

// What the targets compute exactly themselves stays.
// CHECK-LABEL: func @exact_functions_stay
// CHECK-NEXT: math.absf
// CHECK-NEXT: math.floor
// CHECK-NEXT: math.ceil
// CHECK-NEXT: math.trunc
// CHECK-NEXT: math.roundeven
// CHECK-NEXT: math.round
// CHECK-NEXT: math.copysign
// CHECK-NEXT: math.fma
// CHECK-NEXT: return
func.func @exact_functions_stay(%x: f32) -> f32 {
  %0 = math.absf %x : f32
  %1 = math.floor %0 : f32
  %2 = math.ceil %1 : f32
  %3 = math.trunc %2 : f32
  %4 = math.roundeven %3 : f32
  %5 = math.round %4 : f32
  %6 = math.copysign %5, %x : f32
  %7 = math.fma %6, %5, %x : f32
  return %7 : f32
}

// CHECK-LABEL: func @fpowi_multiplies_from_lowest_bit
// CHECK-SAME: %[[X:.*]]: f32
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]] : f32
// CHECK-NEXT: %[[FOURTH:.*]] = arith.mulf %[[SQUARE]], %[[SQUARE]] : f32
// CHECK-NEXT: %[[FIFTH:.*]] = arith.mulf %[[X]], %[[FOURTH]] : f32
// CHECK-NEXT: return %[[FIFTH]]
func.func @fpowi_multiplies_from_lowest_bit(%x: f32) -> f32 {
  %n = arith.constant 5 : i32
  %0 = math.fpowi %x, %n : f32, i32
  return %0 : f32
}

// CHECK-LABEL: func @fpowi_negative
// CHECK-SAME: %[[X:.*]]: vector<4xf32>
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]] : vector<4xf32>
// CHECK: arith.divf %{{.*}}, %[[SQUARE]] : vector<4xf32>
func.func @fpowi_negative(%x: vector<4xf32>) -> vector<4xf32> {
  %n = arith.constant dense<-2> : vector<4xi32>
  %0 = math.fpowi %x, %n : vector<4xf32>, vector<4xi32>
  return %0 : vector<4xf32>
}

// CHECK-LABEL: func @fpowi_of_any_integer
// CHECK-NOT: math.fpowi
// CHECK: arith.sitofp
// CHECK-NOT: math.fpowi
// CHECK: return
func.func @fpowi_of_any_integer(%x: f32, %n: i32, %m: i64) -> f32 {
  %large = arith.constant 65 : i32
  %0 = math.fpowi %x, %n : f32, i32
  %1 = math.fpowi %0, %large : f32, i32
  %2 = math.fpowi %1, %m : f32, i64
  return %2 : f32
}

// CHECK-LABEL: func @fpowi_of_an_index_stays
// CHECK-NEXT: math.fpowi %{{.*}}, %{{.*}} : f32, index
func.func @fpowi_of_an_index_stays(%x: f32, %n: index) -> f32 {
  %0 = math.fpowi %x, %n : f32, index
  return %0 : f32
}
