// RUN: weir-opt %s --weir-check-indices --split-input-file | FileCheck %s

// Rows of a table: the check walks the places of the indices, not the row's elements.
// CHECK-LABEL: func @embedding
// CHECK-SAME:    -> (tensor<2x3x4xf32>, tensor<i32> {weir.name = "weir.status"})
// CHECK-SAME:    attributes {weir.checks = ["{{.*}}check-indices.mlir:{{[0-9]+}} uses an index that is not in [0, 11)"]}
// CHECK:         %[[STATUS:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]} ins(%arg1, %{{.*}} : tensor<2x3xi64>, tensor<2x3xi32>)
// CHECK-DAG:       arith.cmpi slt, %[[I:.*]], %{{.*}} : i64
// CHECK-DAG:       arith.cmpi sge, %[[I]], %{{.*}} : i64
// CHECK:           arith.maxsi
// CHECK:         %[[ROWS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]
// CHECK:         return %[[ROWS]], %[[STATUS]]
func.func @embedding(%table: tensor<11x4xf32>, %tokens: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
  %e = tensor.empty() : tensor<2x3x4xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(b, t, d) -> (b, t)>, affine_map<(b, t, d) -> (b, t, d)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%tokens : tensor<2x3xi64>) outs(%e : tensor<2x3x4xf32>) {
  ^bb0(%token: i64, %o: f32):
    %i = arith.index_cast %token : i64 to index
    %d = linalg.index 2 : index
    %x = tensor.extract %table[%i, %d] : tensor<11x4xf32>
    linalg.yield %x : f32
  } -> tensor<2x3x4xf32>
  return %rows : tensor<2x3x4xf32>
}

// -----

// The twin: places that loops give are in range, and nothing is added.
// CHECK-LABEL: func @places
// CHECK-SAME:    -> tensor<3xf32> {
// CHECK-NOT:     weir.status
func.func @places(%table: tensor<11xf32>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%e : tensor<3xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %x = tensor.extract %table[%i] : tensor<11xf32>
    linalg.yield %x : f32
  } -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

// Several gathers share one number; a narrow index may be in range by its type above.
// CHECK-LABEL: func @two
// CHECK:         linalg.generic {{.*}} iterator_types = ["reduction"]
// CHECK:           arith.constant 127 : i8
// CHECK:         %[[SCALAR:.*]] = tensor.from_elements
// CHECK:         linalg.generic {{.*}} iterator_types = []
// CHECK:           arith.maxsi
func.func @two(%table: tensor<127xf32>, %wide: tensor<500xf32>, %n: tensor<3xi8>, %k: tensor<i64>) -> (tensor<3xf32>, tensor<3xf32>, f32) {
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%n : tensor<3xi8>) outs(%e : tensor<3xf32>) {
  ^bb0(%a: i8, %o: f32):
    %i = arith.index_cast %a : i8 to index
    %x = tensor.extract %table[%i] : tensor<127xf32>
    linalg.yield %x : f32
  } -> tensor<3xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%n : tensor<3xi8>) outs(%e : tensor<3xf32>) {
  ^bb0(%a: i8, %o: f32):
    %i = arith.index_cast %a : i8 to index
    %x = tensor.extract %wide[%i] : tensor<500xf32>
    linalg.yield %x : f32
  } -> tensor<3xf32>
  %number = tensor.extract %k[] : tensor<i64>
  %at = arith.index_cast %number : i64 to index
  %one = tensor.extract %table[%at] : tensor<127xf32>
  return %y, %z, %one : tensor<3xf32>, tensor<3xf32>, f32
}

// -----

// Loops and branches carry the number of a check out as a result of their own; a branch that is not taken has 0.
// CHECK-LABEL: func @loops
// CHECK-SAME:    tensor<i32> {weir.name = "weir.status"})
// CHECK:         scf.for {{.*}} -> (tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>)
// CHECK:           arith.maxsi
// CHECK:           scf.if {{.*}} -> (tensor<f32>, tensor<i32>)
// CHECK:           } else {
// CHECK:             scf.yield %{{.*}}, %{{.*}} : tensor<f32>, tensor<i32>
// CHECK:         scf.while {{.*}} : (tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
// CHECK:           scf.condition(%{{.*}}) %{{.*}}, %{{.*}} : tensor<f32>, tensor<i32>
// CHECK:           arith.maxsi
// CHECK:           scf.yield %{{.*}}, %{{.*}} : tensor<f32>, tensor<i32>
func.func @loops(%table: tensor<11xf32>, %tokens: tensor<3xi64>, %n: tensor<i64>) -> (tensor<f32>, tensor<f32>) {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %s = scf.for %i = %c0 to %c100 step %c1 iter_args(%a = %zero) -> tensor<f32> {
    %g = linalg.generic {indexing_maps = [affine_map<(t) -> (t)>, affine_map<(t) -> ()>], iterator_types = ["reduction"]}
      ins(%tokens : tensor<3xi64>) outs(%a : tensor<f32>) {
    ^bb0(%t: i64, %o: f32):
      %at = arith.index_cast %t : i64 to index
      %x = tensor.extract %table[%at] : tensor<11xf32>
      %y = arith.addf %o, %x : f32
      linalg.yield %y : f32
    } -> tensor<f32>
    %number = tensor.extract %n[] : tensor<i64>
    %at = arith.index_cast %number : i64 to index
    %one = tensor.extract %table[%at] : tensor<11xf32>
    %c = arith.cmpf olt, %one, %one : f32
    %h = scf.if %c -> tensor<f32> {
      %two = tensor.extract %table[%at] : tensor<11xf32>
      %two1 = tensor.from_elements %two : tensor<f32>
      scf.yield %two1 : tensor<f32>
    } else {
      scf.yield %g : tensor<f32>
    }
    scf.yield %h : tensor<f32>
  }
  %w = scf.while (%a = %s) : (tensor<f32>) -> tensor<f32> {
    %v = tensor.extract %a[] : tensor<f32>
    %lim = arith.constant 1000.0 : f32
    %c = arith.cmpf olt, %v, %lim : f32
    scf.condition(%c) %a : tensor<f32>
  } do {
  ^bb0(%a: tensor<f32>):
    %lim = arith.constant dense<2000.0> : tensor<f32>
    %g = linalg.generic {indexing_maps = [affine_map<(t) -> (t)>, affine_map<(t) -> ()>], iterator_types = ["reduction"]}
      ins(%tokens : tensor<3xi64>) outs(%lim : tensor<f32>) {
    ^bb0(%t: i64, %o: f32):
      %at = arith.index_cast %t : i64 to index
      %x = tensor.extract %table[%at] : tensor<11xf32>
      %y = arith.addf %o, %x : f32
      linalg.yield %y : f32
    } -> tensor<f32>
    scf.yield %g : tensor<f32>
  }
  return %s, %w : tensor<f32>, tensor<f32>
}
