// What is around a slice that a kernel makes anyway is written by the same kernel.

// RUN: weir-opt %s --weir-set-profile --weir-generalize-tensors | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-verify-kernels | FileCheck %s --check-prefix=KERNELS
// RUN: weir-opt %s --weir-set-profile --weir-generalize-tensors --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels | FileCheck %s --check-prefix=LOWER

// All of the result is written, and no other kernel is there.
// CHECK-LABEL: func.func @reduced
// CHECK: %[[SUM:.*]] = linalg.reduce
// CHECK: %[[AROUND:.*]] = arith.constant dense<2.500000e+00> : tensor<8x9xf32>
// CHECK: tensor.insert_slice %[[SUM]] into %[[AROUND]][1, 0] [5, 7] [1, 1]
// KERNELS-LABEL: func.func @reduced
// KERNELS: schedule.kernel
// KERNELS: %[[AROUND:.*]] = arith.constant dense<2.500000e+00>
// KERNELS: tensor.insert_slice %{{.*}} into %[[AROUND]][1, 0] [5, 7] [1, 1]
// KERNELS-NOT: schedule.kernel
// KERNELS: return
// LOWER-LABEL: gpu.func @row_5x7x40(%arg0: {{.*}}, %arg1: memref<72xf32, {{.*}} {schedule.effect = #schedule.effect<write, covers_all = true>}
// The 35 sums, then a row before them, two behind, and two columns beside them.
// LOWER: memref.store %{{.*}}, %arg1
// LOWER: %[[ID:.*]] = gpu.thread_id x
// LOWER: memref.store %[[PADDING:.*]], %arg1
// LOWER: memref.store %[[PADDING]], %arg1
// LOWER: memref.store %[[PADDING]], %arg1
// LOWER-NOT: memref.store
// LOWER: gpu.return
func.func @reduced(%x: tensor<5x7x40xf32>) -> tensor<8x9xf32> {
  %f = arith.constant 2.5 : f32
  %z = arith.constant dense<0.0> : tensor<5x7xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<5x7x40xf32>) outs(%z : tensor<5x7xf32>) dimensions = [2]
  %r = tensor.pad %s low[1, 0] high[2, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %f : f32
  } : tensor<5x7xf32> to tensor<8x9xf32>
  return %r : tensor<8x9xf32>
}

// The twin: the reader at each point chooses between the sum and the padding.
// CHECK-LABEL: func.func @reader_chooses
// CHECK-NOT: tensor.insert_slice
// CHECK: arith.select
func.func @reader_chooses(%x: tensor<5x7x40xf32>, %y: tensor<8x9xf32>) -> tensor<8x9xf32> {
  %f = arith.constant 2.5 : f32
  %z = arith.constant dense<0.0> : tensor<5x7xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<5x7x40xf32>) outs(%z : tensor<5x7xf32>) dimensions = [2]
  %p = tensor.pad %s low[1, 0] high[2, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %f : f32
  } : tensor<5x7xf32> to tensor<8x9xf32>
  %e = tensor.empty() : tensor<8x9xf32>
  %r = linalg.add ins(%p, %y : tensor<8x9xf32>, tensor<8x9xf32>) outs(%e : tensor<8x9xf32>) -> tensor<8x9xf32>
  return %r : tensor<8x9xf32>
}

// The twin: the padding is no constant.
// CHECK-LABEL: func.func @padded_by_places
// CHECK-NOT: tensor.insert_slice
// CHECK: arith.select
func.func @padded_by_places(%x: tensor<5x40xf32>) -> tensor<8xf32> {
  %z = arith.constant dense<0.0> : tensor<5xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<5x40xf32>) outs(%z : tensor<5xf32>) dimensions = [1]
  %r = tensor.pad %s low[1] high[2] {
  ^bb0(%i: index):
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    tensor.yield %f : f32
  } : tensor<5xf32> to tensor<8xf32>
  return %r : tensor<8xf32>
}

// The twin: an argument, which no kernel makes.
// CHECK-LABEL: func.func @argument
// CHECK-NOT: tensor.insert_slice
// CHECK: arith.select
func.func @argument(%x: tensor<5xf32>) -> tensor<8xf32> {
  %f = arith.constant 2.5 : f32
  %r = tensor.pad %x low[1] high[2] {
  ^bb0(%i: index):
    tensor.yield %f : f32
  } : tensor<5xf32> to tensor<8xf32>
  return %r : tensor<8xf32>
}

// Spread with strides, and read in windows, by way of what is computed from the sums; the sums are a result, too.
// KERNELS-LABEL: func.func @spread
// KERNELS: %[[MADE:.*]]:2 = schedule.kernel
// KERNELS: tensor.insert_slice %{{.*}} into %{{.*}}[1, 2] [5, 7] [2, 3]
// KERNELS: schedule.yield
// KERNELS: %[[READ:.*]] = schedule.kernel {{.*}}(%[[MADE]]#1
// KERNELS-NOT: schedule.kernel
// KERNELS: return %[[MADE]]#0, %[[READ]]
func.func @spread(%x: tensor<5x7x40xf32>, %w: tensor<2xf32>) -> (tensor<5x7xf32>, tensor<11x24xf32>) {
  %z = arith.constant dense<0.0> : tensor<5x7xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<5x7x40xf32>) outs(%z : tensor<5x7xf32>) dimensions = [2]
  %e = tensor.empty() : tensor<5x7xf32>
  %t = linalg.tanh ins(%s : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %around = arith.constant dense<0.0> : tensor<11x25xf32>
  %p = tensor.insert_slice %t into %around[1, 2] [5, 7] [2, 3] : tensor<5x7xf32> into tensor<11x25xf32>
  %n = arith.constant dense<0.0> : tensor<11x24xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j + k)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %w : tensor<11x25xf32>, tensor<2xf32>) outs(%n : tensor<11x24xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %sum = arith.addf %o, %m : f32
    linalg.yield %sum : f32
  } -> tensor<11x24xf32>
  return %s, %c : tensor<5x7xf32>, tensor<11x24xf32>
}
