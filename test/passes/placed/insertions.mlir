// A slice inserted into a donated argument is written in place: the kernel that computes it ends in the
// insertion, and writes some of the argument's bytes.

// RUN: weir-opt %s --weir-set-profile --weir-normalize-graph --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels | FileCheck %s --check-prefix=KERNELS
// RUN: weir-opt %s --weir-set-profile --weir-normalize-graph --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=LOWER
// RUN: weir-opt %s --weir-set-profile --weir-normalize-graph --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels --weir-expand-math --weir-schedule | FileCheck %s --check-prefix=ORDER

// KERNELS-LABEL: func.func @row
// KERNELS: schedule.kernel
// KERNELS: %[[AT:.*]] = arith.index_cast
// KERNELS: %[[R:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[%[[AT]], 0] [1, 4] [1, 1]
// KERNELS: schedule.yield %[[R]] : tensor<8x4xf32>
// KERNELS-NOT: schedule.kernel
// KERNELS: return

// The result's own buffer stays unused.
// LOWER: gpu.func @map_4(%arg0: memref<1xvector<4xf32>{{.*}}effect<read>}, %arg1: memref<1xi64{{.*}}effect<read>}, %arg2: memref<8xvector<4xf32>{{.*}}effect<write>})
// LOWER: memref.store
// LOWER-NOT: memref.store
// LOWER-LABEL: func.func @row(%arg0: memref<32xf32>
// LOWER-SAME: %arg3: memref<32xf32> {{{.*}}weir.donated = 0
// LOWER: schedule.dispatch @{{.*}}(%arg1, %arg2, %arg0)

// Value 3 is the result; the bytes hold argument 0 before.
// ORDER-LABEL: func.func @row
// ORDER: schedule.dispatch {{.*}} values [1, 0, 2, 0, 3, 0] before [-1, -1, 0]
func.func @row(%c: tensor<8x4xf32> {weir.donate}, %x: tensor<1x4xf32>, %k: tensor<i64>) -> tensor<8x4xf32> {
  %n = tensor.extract %k[] : tensor<i64>
  %p = arith.index_cast %n : i64 to index
  %r = tensor.insert_slice %x into %c[%p, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// Each insertion makes a value of its own; the last is the result.
// KERNELS-LABEL: func.func @twice
// KERNELS-COUNT-2: tensor.insert_slice
// ORDER-LABEL: func.func @twice
// ORDER: schedule.dispatch {{.*}} values [1, 0, 4, 0] before [-1, 0]
// ORDER: schedule.dispatch {{.*}} values [2, 0, 3, 0] before [-1, 4]
func.func @twice(%c: tensor<8x4xf32> {weir.donate}, %x: tensor<1x4xf32>, %y: tensor<1x4xf32>) -> tensor<8x4xf32> {
  %q = tensor.insert_slice %x into %c[1, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
  %r = tensor.insert_slice %y into %q[5, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// Twins: the argument is not given away.
// KERNELS-LABEL: func.func @kept
// KERNELS-NOT: insert_slice
// KERNELS: return
// ORDER-LABEL: func.func @kept
// ORDER-NOT: before
func.func @kept(%c: tensor<8x4xf32>, %x: tensor<1x4xf32>) -> tensor<8x4xf32> {
  %r = tensor.insert_slice %x into %c[1, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// It has another reader.
// KERNELS-LABEL: func.func @read
// KERNELS-NOT: insert_slice
// KERNELS: return
func.func @read(%c: tensor<8x4xf32> {weir.donate}, %x: tensor<1x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %r = tensor.insert_slice %x into %c[1, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s = linalg.exp ins(%c : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %r, %s : tensor<8x4xf32>, tensor<8x4xf32>
}

// What is made of it is no result.
// KERNELS-LABEL: func.func @no_result
// KERNELS-NOT: insert_slice
// KERNELS: return
func.func @no_result(%c: tensor<8x4xf32> {weir.donate}, %x: tensor<1x4xf32>) -> tensor<8x4xf32> {
  %r = tensor.insert_slice %x into %c[1, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s = linalg.exp ins(%r : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %s : tensor<8x4xf32>
}

// It is inserted into another tensor, not that into it.
// KERNELS-LABEL: func.func @source
// KERNELS-NOT: insert_slice
// KERNELS: return
func.func @source(%c: tensor<1x4xf32> {weir.donate}, %x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %r = tensor.insert_slice %c into %x[1, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
