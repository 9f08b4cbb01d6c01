// Parts of a concatenation that kernels make anyway are written where it wants them; what is computed for
// it alone is computed in its kernel.

// RUN: weir-opt %s --weir-set-profile --weir-generalize-tensors | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels | FileCheck %s --check-prefix=KERNELS
// RUN: weir-opt %s --weir-set-profile --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-verify-kernels --weir-lower-kernels | FileCheck %s --check-prefix=LOWER

// LOWER-DAG: gpu.func @contraction_16x8x8_0(%{{.*}}slice = [0, 32, 48, 16]>
// LOWER-DAG: gpu.func @contraction_16x4x8(%{{.*}}slice = [32, 16, 48, 16]>

// Side by side: kernels write views of one allocation.
// CHECK-LABEL: func.func @rows
// CHECK: tensor.concat dim(0)
// KERNELS-LABEL: func.func @rows
// KERNELS: %[[A:.*]] = schedule.kernel
// KERNELS: %[[B:.*]] = schedule.kernel
// KERNELS: tensor.concat dim(0) %[[A]], %[[B]]
// LOWER-LABEL: func.func @rows(%arg0: {{.*}}, %arg3: memref<256xf32>
// LOWER-DAG: %[[A:.*]] = memref.subview %arg3[0] [128] [1]
// LOWER-DAG: %[[B:.*]] = memref.subview %arg3[128] [128] [1]
// LOWER: schedule.dispatch {{.*}}(%arg0, %arg1, %[[A]])
// LOWER: schedule.dispatch {{.*}}(%arg0, %arg2, %[[B]])
func.func @rows(%x: tensor<16x8xf32>, %v: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<32x8xf32> {
  %z = arith.constant dense<0.0> : tensor<16x8xf32>
  %a = linalg.matmul ins(%x, %v : tensor<16x8xf32>, tensor<8x8xf32>) outs(%z : tensor<16x8xf32>) -> tensor<16x8xf32>
  %b = linalg.matmul ins(%x, %w : tensor<16x8xf32>, tensor<8x8xf32>) outs(%z : tensor<16x8xf32>) -> tensor<16x8xf32>
  %r = tensor.concat dim(0) %a, %b : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<32x8xf32>
  return %r : tensor<32x8xf32>
}

// Not side by side: kernels write slices of it, one after the other.
// CHECK-LABEL: func.func @columns
// CHECK: %[[NONE:.*]] = tensor.empty() : tensor<16x12xf32>
// CHECK: %[[ONE:.*]] = tensor.insert_slice %{{.*}} into %[[NONE]][0, 0] [16, 8] [1, 1]
// CHECK: tensor.insert_slice %{{.*}} into %[[ONE]][0, 8] [16, 4] [1, 1]
// LOWER-LABEL: func.func @columns(%arg0: {{.*}}, %arg3: memref<192xf32>
// LOWER: schedule.dispatch {{.*}}(%arg0, %arg1, %arg3)
// LOWER: schedule.dispatch {{.*}}(%arg0, %arg2, %arg3)
func.func @columns(%x: tensor<16x8xf32>, %v: tensor<8x8xf32>, %w: tensor<8x4xf32>) -> tensor<16x12xf32> {
  %z = arith.constant dense<0.0> : tensor<16x8xf32>
  %y = arith.constant dense<0.0> : tensor<16x4xf32>
  %a = linalg.matmul ins(%x, %v : tensor<16x8xf32>, tensor<8x8xf32>) outs(%z : tensor<16x8xf32>) -> tensor<16x8xf32>
  %b = linalg.matmul ins(%x, %w : tensor<16x8xf32>, tensor<8x4xf32>) outs(%y : tensor<16x4xf32>) -> tensor<16x4xf32>
  %r = tensor.concat dim(1) %a, %b : (tensor<16x8xf32>, tensor<16x4xf32>) -> tensor<16x12xf32>
  return %r : tensor<16x12xf32>
}

// The twin: two arguments are only moved, by one kernel.
// CHECK-LABEL: func.func @moved
// CHECK-NOT: tensor.concat
// CHECK-NOT: tensor.insert_slice
// KERNELS-LABEL: func.func @moved
// KERNELS: schedule.kernel
// KERNELS-NOT: schedule.kernel
// KERNELS: return
func.func @moved(%a: tensor<16x8xf32>, %b: tensor<16x8xf32>) -> tensor<32x8xf32> {
  %r = tensor.concat dim(0) %a, %b : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<32x8xf32>
  return %r : tensor<32x8xf32>
}

// Computed for the pad alone.
// CHECK-LABEL: func.func @padded
// CHECK-COUNT-1: linalg.generic
// CHECK: math.exp
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @padded(%a: tensor<5xf32>) -> tensor<8xf32> {
  %f = arith.constant 2.5 : f32
  %e = tensor.empty() : tensor<5xf32>
  %c = linalg.exp ins(%a : tensor<5xf32>) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %r = tensor.pad %c low[1] high[2] {
  ^bb0(%i: index):
    tensor.yield %f : f32
  } : tensor<5xf32> to tensor<8xf32>
  return %r : tensor<8xf32>
}

// The twin: others read it. The kernel that makes it anyway writes what is padded, too.
// CHECK-LABEL: func.func @padded_and_read
// CHECK: %[[EXP:.*]] = linalg.exp
// CHECK: tensor.insert_slice %[[EXP]] into
// KERNELS-LABEL: func.func @padded_and_read
// KERNELS: schedule.kernel
// KERNELS-NOT: schedule.kernel
// KERNELS: return
func.func @padded_and_read(%a: tensor<5xf32>) -> (tensor<8xf32>, tensor<5xf32>) {
  %f = arith.constant 2.5 : f32
  %e = tensor.empty() : tensor<5xf32>
  %c = linalg.exp ins(%a : tensor<5xf32>) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %r = tensor.pad %c low[1] high[2] {
  ^bb0(%i: index):
    tensor.yield %f : f32
  } : tensor<5xf32> to tensor<8xf32>
  return %r, %c : tensor<8xf32>, tensor<5xf32>
}

// Slices inserted one after the other, in any order, that are all of it side by side: each kernel writes its part.
// CHECK-LABEL: func.func @inserted
// CHECK: %[[A:.*]] = linalg.matmul ins(%{{.*}}, %arg1
// CHECK: %[[B:.*]] = linalg.matmul ins(%{{.*}}, %arg2
// CHECK: tensor.concat dim(0) %[[A]], %[[B]]
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @inserted(%x: tensor<16x8xf32>, %v: tensor<8x8xf32>, %w: tensor<8x8xf32>, %y: tensor<32x8xf32>) -> tensor<32x8xf32> {
  %z = arith.constant dense<0.0> : tensor<16x8xf32>
  %a = linalg.matmul ins(%x, %v : tensor<16x8xf32>, tensor<8x8xf32>) outs(%z : tensor<16x8xf32>) -> tensor<16x8xf32>
  %b = linalg.matmul ins(%x, %w : tensor<16x8xf32>, tensor<8x8xf32>) outs(%z : tensor<16x8xf32>) -> tensor<16x8xf32>
  %p = tensor.insert_slice %b into %y[16, 0] [16, 8] [1, 1] : tensor<16x8xf32> into tensor<32x8xf32>
  %r = tensor.insert_slice %a into %p[0, 0] [16, 8] [1, 1] : tensor<16x8xf32> into tensor<32x8xf32>
  return %r : tensor<32x8xf32>
}

// What is left of equal elements is a part, too.
// CHECK-LABEL: func.func @inserted_with_gaps
// CHECK: %[[A:.*]] = linalg.matmul ins(%{{.*}}, %arg1
// CHECK: %[[B:.*]] = linalg.matmul ins(%{{.*}}, %arg2
// CHECK: %[[NONE:.*]] = tensor.empty() : tensor<16x21xf32>
// CHECK: %[[ONE:.*]] = tensor.insert_slice %[[A]] into %[[NONE]][0, 0] [16, 8] [1, 1]
// CHECK: %[[TWO:.*]] = tensor.insert_slice %{{.*}} into %[[ONE]][0, 8] [16, 5] [1, 1]
// CHECK: tensor.insert_slice %[[B]] into %[[TWO]][0, 13] [16, 8] [1, 1]
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @inserted_with_gaps(%x: tensor<16x8xf32>, %v: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<16x21xf32> {
  %z = arith.constant dense<0.0> : tensor<16x8xf32>
  %a = linalg.matmul ins(%x, %v : tensor<16x8xf32>, tensor<8x8xf32>) outs(%z : tensor<16x8xf32>) -> tensor<16x8xf32>
  %b = linalg.matmul ins(%x, %w : tensor<16x8xf32>, tensor<8x8xf32>) outs(%z : tensor<16x8xf32>) -> tensor<16x8xf32>
  %y = arith.constant dense<1.0> : tensor<16x21xf32>
  %p = tensor.insert_slice %b into %y[0, 13] [16, 8] [1, 1] : tensor<16x8xf32> into tensor<16x21xf32>
  %r = tensor.insert_slice %a into %p[0, 0] [16, 8] [1, 1] : tensor<16x8xf32> into tensor<16x21xf32>
  return %r : tensor<16x21xf32>
}

// The twins: some of an argument is left; the later one is written over the earlier; or both are corners.
// CHECK-LABEL: func.func @rest_of_an_argument
// CHECK-NOT: tensor.concat
// CHECK-COUNT-2: linalg.generic
func.func @rest_of_an_argument(%a: tensor<2x8xf32>, %b: tensor<3x8xf32>, %y: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %p = tensor.insert_slice %b into %y[3, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<6x8xf32>
  %r = tensor.insert_slice %a into %p[0, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}

// CHECK-LABEL: func.func @written_over
// CHECK-NOT: tensor.concat
// CHECK-COUNT-2: linalg.generic
func.func @written_over(%a: tensor<4x8xf32>, %b: tensor<3x8xf32>, %y: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %p = tensor.insert_slice %b into %y[3, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<6x8xf32>
  %r = tensor.insert_slice %a into %p[0, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}

// CHECK-LABEL: func.func @corners
// CHECK-NOT: tensor.concat
// CHECK-COUNT-2: linalg.generic
func.func @corners(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>) -> tensor<6x8xf32> {
  %y = arith.constant dense<1.0> : tensor<6x8xf32>
  %p = tensor.insert_slice %b into %y[3, 4] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<6x8xf32>
  %r = tensor.insert_slice %a into %p[0, 0] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}
