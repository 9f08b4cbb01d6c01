// RUN: rm -rf %t && mkdir %t
// RUN: echo '{"like": "x86-64-v3", "name": "two", "stage_groups": 2}' > %t/two.json
// RUN: echo '{"like": "x86-64-v3", "name": "small", "stage_groups": 2, "stage_bytes": 127}' > %t/small.json
// RUN: echo '{"like": "x86-64-v3", "name": "none", "stage_groups": 2, "stage_bytes": 0}' > %t/none.json
// DEFINE: %{profile} = %t/two.json
// DEFINE: %{join} = weir-opt %s --weir-set-profile=profile=%{profile} --weir-generalize-tensors \
// DEFINE:   --weir-prepare-kernels --weir-form-kernels --weir-join-kernels -split-input-file
// RUN: %{join} | FileCheck %s

// Twins: no target with several invocations joins, none that wants more groups, keeps fewer bytes or none.
// REDEFINE: %{profile} = lavapipe
// RUN: %{join} | FileCheck %s --check-prefix=APART --implicit-check-not=staged
// REDEFINE: %{profile} = x86-64-v3
// RUN: %{join} | FileCheck %s --check-prefix=APART --implicit-check-not=staged
// REDEFINE: %{profile} = %t/small.json
// RUN: %{join} | FileCheck %s --check-prefix=APART --implicit-check-not=staged
// REDEFINE: %{profile} = %t/none.json
// RUN: %{join} | FileCheck %s --check-prefix=APART --implicit-check-not=staged
// APART: func @attention

// The scores of a head, their softmax and its product: what the group keeps are 128 bytes of scores
// and as many of their softmax. A result that others read is one of the kernel, too.
// CHECK-LABEL: func @attention
// CHECK:         %[[S:.*]]:2 = schedule.kernel "staged_2x3_3"(%arg0, %arg1, %arg2) {{.*}} -> (tensor<2x3x4x8xf32>, tensor<2x4x3x6xf32>)
// CHECK:           %[[SCORES:.*]] = schedule.kernel "contraction_2x3x4x8x5"(%{{.*}}, %{{.*}}) attributes {group_dims = array<i64: 0, 1>}
// CHECK:           %[[SOFTMAX:.*]] = schedule.kernel "row_2x3x4x8"(%[[SCORES]]) attributes {group_dims = array<i64: 0, 1>}
// CHECK:           %[[OUT:.*]] = schedule.kernel "contraction_2x3x4x6x8"(%[[SOFTMAX]], %{{.*}}) attributes {group_dims = array<i64: 0, 1>}
// CHECK:           schedule.yield %[[SOFTMAX]], %[[OUT]]
// CHECK:         return %[[S]]#1, %[[S]]#0
func.func @attention(%q: tensor<2x3x4x5xf32>, %k: tensor<2x3x8x5xf32>, %v: tensor<2x3x8x6xf32>)
    -> (tensor<2x4x3x6xf32>, tensor<2x3x4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x3x4x8xf32>
  %er = tensor.empty() : tensor<2x3x4xf32>
  %eo = tensor.empty() : tensor<2x3x4x6xf32>
  %et = tensor.empty() : tensor<2x4x3x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x3x4x6xf32>) -> tensor<2x3x4x6xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %lr = linalg.fill ins(%low : f32) outs(%er : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, i, j, k) -> (a, b, i, k)>, affine_map<(a, b, i, j, k) -> (a, b, j, k)>,
      affine_map<(a, b, i, j, k) -> (a, b, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x3x4x5xf32>, tensor<2x3x8x5xf32>) outs(%z : tensor<2x3x4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<2x3x4x8xf32>
  %m = linalg.reduce { arith.maximumf } ins(%s : tensor<2x3x4x8xf32>) outs(%lr : tensor<2x3x4xf32>) dimensions = [3]
  %x = linalg.generic {indexing_maps = [affine_map<(a, b, i, j) -> (a, b, i, j)>, affine_map<(a, b, i, j) -> (a, b, i)>,
      affine_map<(a, b, i, j) -> (a, b, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %m : tensor<2x3x4x8xf32>, tensor<2x3x4xf32>) outs(%e : tensor<2x3x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<2x3x4x8xf32>
  %t = linalg.reduce { arith.addf } ins(%x : tensor<2x3x4x8xf32>) outs(%zr : tensor<2x3x4xf32>) dimensions = [3]
  %w = linalg.generic {indexing_maps = [affine_map<(a, b, i, j) -> (a, b, i, j)>, affine_map<(a, b, i, j) -> (a, b, i)>,
      affine_map<(a, b, i, j) -> (a, b, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %t : tensor<2x3x4x8xf32>, tensor<2x3x4xf32>) outs(%e : tensor<2x3x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<2x3x4x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b, i, j, k) -> (a, b, i, k)>, affine_map<(a, b, i, j, k) -> (a, b, k, j)>,
      affine_map<(a, b, i, j, k) -> (a, b, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%w, %v : tensor<2x3x4x8xf32>, tensor<2x3x8x6xf32>) outs(%zo : tensor<2x3x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<2x3x4x6xf32>
  %yt = linalg.transpose ins(%y : tensor<2x3x4x6xf32>) outs(%et : tensor<2x4x3x6xf32>) permutation = [0, 2, 1, 3]
  return %yt, %w : tensor<2x4x3x6xf32>, tensor<2x3x4x8xf32>
}

// -----

// Two products are enough, and what only the second reads is no result of the kernel.
// CHECK-LABEL: func @two
// CHECK:         schedule.kernel "staged_6_2"(%arg0, %arg1, %arg2) {{.*}} -> tensor<6x4x5xf32>
func.func @two(%a: tensor<6x4x3xf32>, %b: tensor<6x3x8xf32>, %c: tensor<6x8x5xf32>) -> tensor<6x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %e1 = tensor.empty() : tensor<6x4x5xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %m = linalg.batch_matmul ins(%a, %b : tensor<6x4x3xf32>, tensor<6x3x8xf32>)
      outs(%z : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %n = linalg.batch_matmul ins(%m, %c : tensor<6x4x8xf32>, tensor<6x8x5xf32>)
      outs(%z1 : tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  return %n : tensor<6x4x5xf32>
}

// -----

// A reshape that keeps the groups' dimension stands between the stages.
// CHECK-LABEL: func @across_reshape
// CHECK:         schedule.kernel "staged_6_2"
// CHECK:           tensor.collapse_shape
// CHECK-SAME:      tensor<6x4x2x4xf32> into tensor<6x4x8xf32>
func.func @across_reshape(%a: tensor<6x4x3xf32>, %b: tensor<6x3x2x4xf32>, %c: tensor<6x8x5xf32>) -> tensor<6x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %e1 = tensor.empty() : tensor<6x4x5xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %e4 = tensor.empty() : tensor<6x4x2x4xf32>
  %z4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<6x4x2x4xf32>) -> tensor<6x4x2x4xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(g, i, h, j, k) -> (g, i, k)>, affine_map<(g, i, h, j, k) -> (g, k, h, j)>,
      affine_map<(g, i, h, j, k) -> (g, i, h, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<6x4x3xf32>, tensor<6x3x2x4xf32>) outs(%z4 : tensor<6x4x2x4xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<6x4x2x4xf32>
  %w = tensor.collapse_shape %m [[0], [1], [2, 3]] : tensor<6x4x2x4xf32> into tensor<6x4x8xf32>
  %n = linalg.batch_matmul ins(%w, %c : tensor<6x4x8xf32>, tensor<6x8x5xf32>)
      outs(%z1 : tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  return %n : tensor<6x4x5xf32>
}

// -----

// Twin: the second product reads the first one's batches in another order.
// CHECK-LABEL: func @other_groups
// CHECK-NOT:     staged
// CHECK:         return
func.func @other_groups(%a: tensor<6x4x3xf32>, %b: tensor<6x3x8xf32>, %c: tensor<6x8x5xf32>) -> tensor<6x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %e1 = tensor.empty() : tensor<6x4x5xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %m = linalg.batch_matmul ins(%a, %b : tensor<6x4x3xf32>, tensor<6x3x8xf32>)
      outs(%z : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(g, i, j, k) -> (-g + 5, i, k)>, affine_map<(g, i, j, k) -> (g, k, j)>,
      affine_map<(g, i, j, k) -> (g, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%m, %c : tensor<6x4x8xf32>, tensor<6x8x5xf32>) outs(%z1 : tensor<6x4x5xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<6x4x5xf32>
  return %n : tensor<6x4x5xf32>
}

// -----

// Twin: the second product reads some of the first one's batches.
// CHECK-LABEL: func @some_groups
// CHECK-NOT:     staged
// CHECK:         return
func.func @some_groups(%a: tensor<6x4x3xf32>, %b: tensor<6x3x8xf32>, %c: tensor<3x8x5xf32>) -> tensor<3x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<6x4x8xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %first = linalg.batch_matmul ins(%a, %b : tensor<6x4x3xf32>, tensor<6x3x8xf32>)
    outs(%z0 : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %some = tensor.extract_slice %first[0, 0, 0] [3, 4, 8] [1, 1, 1] : tensor<6x4x8xf32> to tensor<3x4x8xf32>
  %e1 = tensor.empty() : tensor<3x4x5xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
  %second = linalg.batch_matmul ins(%some, %c : tensor<3x4x8xf32>, tensor<3x8x5xf32>)
    outs(%z1 : tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
  return %second : tensor<3x4x5xf32>
}

// -----

// Twin: a kernel that wants to be alone.
// CHECK-LABEL: func @alone
// CHECK-NOT:     staged
// CHECK:         return
func.func @alone(%a: tensor<6x4x3xf32>, %b: tensor<6x3x8xf32>, %c: tensor<6x8x5xf32>) -> tensor<6x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %e1 = tensor.empty() : tensor<6x4x5xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %m = linalg.batch_matmul ins(%a, %b : tensor<6x4x3xf32>, tensor<6x3x8xf32>)
      outs(%z : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %n = linalg.batch_matmul {weir.no_fuse} ins(%m, %c : tensor<6x4x8xf32>, tensor<6x8x5xf32>)
      outs(%z1 : tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  return %n : tensor<6x4x5xf32>
}

// -----

// Twin: the total of all batches comes back to the second product.
// CHECK-LABEL: func @comes_back
// CHECK-NOT:     staged
// CHECK:         return
func.func @comes_back(%a: tensor<6x4x3xf32>, %b: tensor<6x3x8xf32>, %c: tensor<6x8x5xf32>) -> tensor<6x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %e1 = tensor.empty() : tensor<6x4x5xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %m = linalg.batch_matmul ins(%a, %b : tensor<6x4x3xf32>, tensor<6x3x8xf32>)
      outs(%z : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %e0 = tensor.empty() : tensor<8xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8xf32>) -> tensor<8xf32>
  %t = linalg.reduce { arith.addf } ins(%m : tensor<6x4x8xf32>) outs(%z0 : tensor<8xf32>) dimensions = [0, 1]
  %ec = tensor.empty() : tensor<6x8x5xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(g, k, j) -> (g, k, j)>, affine_map<(g, k, j) -> (k)>, affine_map<(g, k, j) -> (g, k, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%c, %t : tensor<6x8x5xf32>, tensor<8xf32>) outs(%ec : tensor<6x8x5xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    linalg.yield %p : f32
  } -> tensor<6x8x5xf32>
  %n = linalg.batch_matmul ins(%m, %d : tensor<6x4x8xf32>, tensor<6x8x5xf32>)
      outs(%z1 : tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  return %n : tensor<6x4x5xf32>
}

// -----

// Twin: a result that may take the bytes of an argument.
// CHECK-LABEL: func @given_away
// CHECK-NOT:     staged
// CHECK:         return
func.func @given_away(%a: tensor<6x4x3xf32>, %b: tensor<6x3x8xf32>, %c: tensor<6x8x5xf32>, %s: tensor<6x4x5xf32> {weir.donate, weir.name = "s"}) -> (tensor<6x4x5xf32> {weir.name = "s"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %e1 = tensor.empty() : tensor<6x4x5xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %m = linalg.batch_matmul ins(%a, %b : tensor<6x4x3xf32>, tensor<6x3x8xf32>)
      outs(%z : tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  %n = linalg.batch_matmul ins(%m, %c : tensor<6x4x8xf32>, tensor<6x8x5xf32>)
      outs(%s : tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  return %n : tensor<6x4x5xf32>
}
