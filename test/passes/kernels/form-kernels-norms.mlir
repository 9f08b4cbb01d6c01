// Norms, softmax and what they are differentiated by: one kernel for all that is
// computed row by row.
//
// RUN: weir-opt %s --weir-set-profile --weir-decompose-norms --cse --weir-prepare-kernels --weir-form-kernels | FileCheck %s

// CHECK-LABEL: func @softmax
// CHECK:         schedule.kernel "row_37x24"
// CHECK-NOT:     schedule.kernel
// CHECK:         return
func.func @softmax(%x: tensor<37x24xf32>) -> tensor<37x24xf32> {
  %e = tensor.empty() : tensor<37x24xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<37x24xf32>) outs(%e : tensor<37x24xf32>)
      -> tensor<37x24xf32>
  return %y : tensor<37x24xf32>
}

// CHECK-LABEL: func @softmax_and_its_vjp
// CHECK:         schedule.kernel "row_37x24"
// CHECK-NOT:     schedule.kernel
// CHECK:         return
func.func @softmax_and_its_vjp(%dy: tensor<37x24xf32>, %x: tensor<37x24xf32>) -> tensor<37x24xf32> {
  %e = tensor.empty() : tensor<37x24xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<37x24xf32>) outs(%e : tensor<37x24xf32>)
      -> tensor<37x24xf32>
  %dx = norm.softmax_vjp %dy, %y {axis = 1 : i64} : tensor<37x24xf32>
  return %dx : tensor<37x24xf32>
}

// CHECK-LABEL: func @logsumexp_and_its_vjp
// CHECK:         schedule.kernel "row_37x24"
// CHECK-NOT:     schedule.kernel
// CHECK:         return
func.func @logsumexp_and_its_vjp(%dy: tensor<37xf32>, %x: tensor<37x24xf32>)
    -> (tensor<37xf32>, tensor<37x24xf32>) {
  %y = norm.logsumexp %x {axis = 1 : i64} : tensor<37x24xf32> -> tensor<37xf32>
  %dx = norm.logsumexp_vjp %dy, %x {axis = 1 : i64} : tensor<37xf32>, tensor<37x24xf32>
  return %y, %dx : tensor<37xf32>, tensor<37x24xf32>
}

// CHECK-LABEL: func @cross_entropy_vjp
// CHECK:         schedule.kernel "row_37x24"
// CHECK-NOT:     schedule.kernel
// CHECK:         return
func.func @cross_entropy_vjp(%d: tensor<f32>, %x: tensor<37x24xf32>, %t: tensor<37xi64>)
    -> tensor<37x24xf32> {
  %dx = norm.softmax_cross_entropy_vjp sum %d, %x, %t
      : tensor<f32>, tensor<37x24xf32>, tensor<37xi64>
  return %dx : tensor<37x24xf32>
}

// The count of targets is a kernel of its own.
// CHECK-LABEL: func @cross_entropy_vjp_of_a_mean
// CHECK-COUNT-2: schedule.kernel
// CHECK-NOT:     schedule.kernel
// CHECK:         return
func.func @cross_entropy_vjp_of_a_mean(%d: tensor<f32>, %x: tensor<37x24xf32>, %t: tensor<37xi64>)
    -> tensor<37x24xf32> {
  %dx = norm.softmax_cross_entropy_vjp mean %d, %x, %t
      : tensor<f32>, tensor<37x24xf32>, tensor<37xi64>
  return %dx : tensor<37x24xf32>
}
