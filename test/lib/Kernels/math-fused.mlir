// RUN: weir-opt %s --weir-expand-math | FileCheck %s
// RUN: weir-opt %s --weir-set-profile=profile=sm_80 --weir-expand-math | FileCheck %s --check-prefix=CUDA

// An fma that rounds once takes no rest of the square, and no comparison with 1/2.

// CHECK-LABEL: func @gelu
// CHECK: arith.divf
// CUDA-LABEL: func @gelu
// CUDA-NOT: arith.divf
// CUDA-NOT: math.erfc
// CUDA-COUNT-21: math.fma {{.*}} : vector<8xf32>
// CUDA-NOT: math.fma
// CUDA: return
func.func @gelu(%x: vector<8xf32>) -> vector<8xf32> {
  %factor = arith.constant dense<-0.707106769> : vector<8xf32>
  %half = arith.constant dense<0.5> : vector<8xf32>
  %scaled = arith.mulf %x, %factor : vector<8xf32>
  %both = math.erfc %scaled : vector<8xf32>
  %share = arith.mulf %both, %half : vector<8xf32>
  %y = arith.mulf %x, %share : vector<8xf32>
  return %y : vector<8xf32>
}

// Another number's share is no GELU.
// CUDA-LABEL: func @product
// CUDA: arith.divf
func.func @product(%x: f32, %y: f32) -> f32 {
  %factor = arith.constant -0.707106769 : f32
  %half = arith.constant 0.5 : f32
  %scaled = arith.mulf %x, %factor : f32
  %both = math.erfc %scaled : f32
  %share = arith.mulf %both, %half : f32
  %z = arith.mulf %y, %share : f32
  return %z : f32
}

// Two powers of two come from the bits of a sum; one is enough, if the operand is at most 0.
// CHECK-LABEL: func @exps
// CHECK-COUNT-4: arith.shli
// CUDA-LABEL: func @exps
// CUDA: arith.shli
// CUDA: arith.andi
// CUDA: arith.shli
// CUDA-NOT: arith.andi
// CUDA: arith.shli
// CUDA-NOT: arith.shli
// CUDA: return
func.func @exps(%x: f32) -> (f32, f32) {
  %0 = math.exp %x : f32
  %1 = math.exp %x {weir.not_positive} : f32
  return %0, %1 : f32, f32
}

// CUDA-LABEL: func @wide
// CUDA: arith.shrsi {{.*}} : i64
func.func @wide(%x: f64) -> f64 {
  %0 = math.exp %x {weir.not_positive} : f64
  return %0 : f64
}
