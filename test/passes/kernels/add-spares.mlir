// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels --weir-add-spares | FileCheck %s
// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels --weir-add-spares --weir-lower-kernels | FileCheck %s --check-prefix=LOWER
// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels --weir-add-spares --weir-lower-kernels --weir-schedule -o %t.spared
// RUN: weir-opt %s --weir-set-profile --weir-prepare-kernels --weir-form-kernels --weir-lower-kernels --weir-schedule -o %t.plain
// RUN: diff %t.spared %t.plain

#id = affine_map<(i, j) -> (i, j)>

// The product and its tanh leave one kernel; the tanh follows from the product alone.
// CHECK-LABEL: func.func @after_product
// CHECK: %[[BOTH:.*]]:2 = schedule.kernel "contraction_16x16x16"(
// CHECK: schedule.kernel "again_16x16"(%[[BOTH]]#0) attributes {weir.spare = 1 : i64}
// CHECK:   math.tanh
// CHECK-NOT: weir.spare
// LOWER-LABEL: func.func @after_product
// LOWER: schedule.dispatch @contraction_16x16x16::@contraction_16x16x16 {{.*}}(%{{.*}}, %{{.*}}, %[[M:.*]], %[[T:.*]]) :
// LOWER-NEXT: schedule.dispatch @again_{{.*}}(%[[M]], %{{.*}}) {weir.spare = 3 : i64}
// LOWER-NOT: weir.spare
func.func @after_product(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %m = linalg.matmul ins(%a, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
  %t = linalg.tanh ins(%m : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %c = linalg.matmul ins(%m, %t : tensor<16x16xf32>, tensor<16x16xf32>) outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %c : tensor<16x16xf32>
}

// A sum of rows, and what is divided by it: to make the quotient again is to make the kernel
// again but for the sum, which is kept.
// CHECK-LABEL: func.func @after_sum
// LOWER-LABEL: func.func @after_sum
// CHECK: %[[BOTH:.*]]:2 = schedule.kernel "row_16x64"(%[[X:.*]]) :
// CHECK: schedule.kernel "again_16x64"(%[[BOTH]]#0, %[[X]]) attributes {weir.spare = 1 : i64}
func.func @after_sum(%x: tensor<16x64xf32>, %w: tensor<64x64xf32>) -> (tensor<16x64xf32>, tensor<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x64xf32>
  %e1 = tensor.empty() : tensor<16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x64xf32>) -> tensor<16x64xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16xf32>) -> tensor<16xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<16x64xf32>) outs(%z1 : tensor<16xf32>) dimensions = [1]
  %b = linalg.broadcast ins(%s : tensor<16xf32>) outs(%e : tensor<16x64xf32>) dimensions = [1]
  %q = linalg.div ins(%x, %b : tensor<16x64xf32>, tensor<16x64xf32>) outs(%e : tensor<16x64xf32>) -> tensor<16x64xf32>
  %c = linalg.matmul ins(%q, %w : tensor<16x64xf32>, tensor<64x64xf32>) outs(%z : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %c, %s : tensor<16x64xf32>, tensor<16xf32>
}

// Twins: a kernel that is element by element as a whole is its own pattern; what is a result is
// kept anyway; what is reduced takes the whole kernel.
// CHECK-LABEL: func.func @nothing_to_add
// CHECK-NOT: weir.spare
func.func @nothing_to_add(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %n = linalg.exp ins(%a : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %m = linalg.matmul ins(%n, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
  %t = linalg.tanh ins(%m : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %c = linalg.matmul ins(%m, %n : tensor<16x16xf32>, tensor<16x16xf32>) outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %c, %t : tensor<16x16xf32>, tensor<16x16xf32>
}
