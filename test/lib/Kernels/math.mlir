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

// CHECK-LABEL: func @other_types_stay
// CHECK-NEXT: math.exp %{{.*}} : f64
// CHECK-NEXT: math.sqrt %{{.*}} : f64
// CHECK-NEXT: math.exp %{{.*}} : f16
// CHECK-NEXT: math.exp %{{.*}} : tensor<4xf32>
// CHECK-NEXT: return
func.func @other_types_stay(%x: f64, %y: f16, %z: tensor<4xf32>)
    -> (f64, f64, f16, tensor<4xf32>) {
  %0 = math.exp %x : f64
  %1 = math.sqrt %x : f64
  %2 = math.exp %y : f16
  %3 = math.exp %z : tensor<4xf32>
  return %0, %1, %2, %3 : f64, f64, f16, tensor<4xf32>
}

// CHECK-LABEL: func @other_functions_stay
// CHECK-NEXT: math.absf
// CHECK-NEXT: math.floor
// CHECK-NEXT: math.erfc
// CHECK-NEXT: math.atan2
// CHECK-NEXT: return
func.func @other_functions_stay(%x: f32) -> f32 {
  %0 = math.absf %x : f32
  %1 = math.floor %0 : f32
  %2 = math.erfc %1 : f32
  %3 = math.atan2 %2, %x : f32
  return %3 : f32
}

// CHECK-LABEL: func @rsqrt_f64
// CHECK: %[[ONE:.*]] = arith.constant 1.0{{.*}} : f64
// CHECK: %[[ROOT:.*]] = math.sqrt %{{.*}} : f64
// CHECK: arith.divf %[[ONE]], %[[ROOT]] : f64
func.func @rsqrt_f64(%x: f64) -> f64 {
  %0 = math.rsqrt %x : f64
  return %0 : f64
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

// CHECK-LABEL: func @fpowi_stays
// CHECK: math.fpowi %{{.*}}, %{{.*}} : f32, i32
// CHECK: math.fpowi %{{.*}}, %{{.*}} : f32, i32
func.func @fpowi_stays(%x: f32, %n: i32) -> f32 {
  %large = arith.constant 65 : i32
  %0 = math.fpowi %x, %n : f32, i32
  %1 = math.fpowi %0, %large : f32, i32
  return %1 : f32
}
