// RUN: weir-opt %s --weir-set-profile=profile=sm_80 --weir-prepare-kernels -split-input-file | FileCheck %s

// A sum over a row that keeps one element reads that element. The number is clamped for the load; without such an
// element the sum is 0.
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// CHECK-LABEL: func @picks
// CHECK-SAME:    (%[[X:.*]]: tensor<4x50xf32>, %[[T:.*]]: tensor<4xi64>)
// CHECK:         linalg.generic {{.*}}iterator_types = ["parallel"]} ins(%[[T]] : tensor<4xi64>)
// CHECK:         ^bb0(%[[N:.*]]: i64, %{{.*}}: f32):
// CHECK-DAG:       %[[I:.*]] = linalg.index 0
// CHECK-DAG:       %[[ABOVE:.*]] = arith.cmpi sge, %[[N]], %c0_i64
// CHECK-DAG:       %[[BELOW:.*]] = arith.cmpi slt, %[[N]], %c50_i64
// CHECK-DAG:       %[[IN:.*]] = arith.andi %[[ABOVE]], %[[BELOW]]
// CHECK-DAG:       %[[MAX:.*]] = arith.maxsi %[[N]], %c0_i64
// CHECK-DAG:       %[[MIN:.*]] = arith.minsi %[[MAX]], %c49_i64
// CHECK-DAG:       %[[J:.*]] = arith.index_cast %[[MIN]]
// CHECK-DAG:       %[[E:.*]] = tensor.extract %[[X]][%[[I]], %[[J]]]
// CHECK:           %[[P:.*]] = arith.select %[[IN]], %[[E]], %[[Z:.+]] : f32
// CHECK:           %[[R:.*]] = arith.addf %[[P]], %[[Z]] : f32
// CHECK:           linalg.yield %[[R]]
func.func @picks(%x: tensor<4x50xf32>, %t: tensor<4xi64>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %t : tensor<4x50xf32>, tensor<4xi64>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %n: i64, %out: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %is = arith.cmpi eq, %k, %n : i64
    %p = arith.select %is, %a, %zero : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// What is computed from elements in memory is computed once: here a widened element, and its square.
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// CHECK-LABEL: func @picks_what_is_widened
// CHECK:         iterator_types = ["parallel"]
// CHECK:           %[[E:.*]] = tensor.extract %arg0
// CHECK:           %[[W:.*]] = arith.extf %[[E]] : bf16 to f32
// CHECK:           arith.mulf %[[W]], %[[W]]
// CHECK-NOT:     "reduction"
func.func @picks_what_is_widened(%x: tensor<4x50xbf16>, %t: tensor<4xi32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %t : tensor<4x50xbf16>, tensor<4xi32>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: bf16, %n: i32, %out: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %is = arith.cmpi eq, %n, %k : i32
    %w = arith.extf %a : bf16 to f32
    %v = arith.mulf %w, %w : f32
    %p = arith.select %is, %v, %zero : f32
    %s = arith.addf %p, %out : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Twins: another value than 0 for the others; a number that differs along the row; narrow numbers, which may repeat; a
// row that a kernel with others computes.
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// CHECK-LABEL: func @others_are_not_zero
// CHECK-NOT:     tensor.extract
func.func @others_are_not_zero(%x: tensor<4x50xf32>, %t: tensor<4xi64>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %t : tensor<4x50xf32>, tensor<4xi64>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %n: i64, %out: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %is = arith.cmpi eq, %k, %n : i64
    %p = arith.select %is, %a, %one : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func @numbers_differ_along_the_row
// CHECK-NOT:     tensor.extract
func.func @numbers_differ_along_the_row(%x: tensor<4x50xf32>, %t: tensor<4x50xi64>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, #all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %t : tensor<4x50xf32>, tensor<4x50xi64>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %n: i64, %out: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %is = arith.cmpi eq, %k, %n : i64
    %p = arith.select %is, %a, %zero : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func @numbers_are_narrow
// CHECK-NOT:     tensor.extract
func.func @numbers_are_narrow(%x: tensor<4x500xf32>, %t: tensor<4xi8>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %t : tensor<4x500xf32>, tensor<4xi8>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %n: i8, %out: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i8
    %is = arith.cmpi eq, %k, %n : i8
    %p = arith.select %is, %a, %zero : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func @rows_are_computed
// CHECK-NOT:     tensor.extract
func.func @rows_are_computed(%x: tensor<4x50xf32>, %t: tensor<4xi64>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %w = tensor.empty() : tensor<4x50xf32>
  %x2 = linalg.tanh ins(%x : tensor<4x50xf32>) outs(%w : tensor<4x50xf32>) -> tensor<4x50xf32>
  %m = linalg.exp ins(%x2 : tensor<4x50xf32>) outs(%w : tensor<4x50xf32>) -> tensor<4x50xf32>
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%m, %t : tensor<4x50xf32>, tensor<4xi64>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %n: i64, %out: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %is = arith.cmpi eq, %k, %n : i64
    %p = arith.select %is, %a, %zero : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A subgroup compares so short a row in one step.
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
// CHECK-LABEL: func @keeps_a_short_row
// CHECK-NOT:     tensor.extract
// CHECK:         iterator_types = ["parallel", "reduction"]
func.func @keeps_a_short_row(%x: tensor<4x32xf32>, %t: tensor<4xi64>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %t : tensor<4x32xf32>, tensor<4xi64>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %n: i64, %out: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %is = arith.cmpi eq, %k, %n : i64
    %p = arith.select %is, %a, %zero : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}
