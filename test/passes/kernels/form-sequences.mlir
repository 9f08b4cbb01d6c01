// A loop that computes element by element becomes one op over its trips; another stays.
// RUN: weir-opt %s --weir-form-sequences -split-input-file | FileCheck %s

// Backward, with all states.
// CHECK-DAG:   #[[BACK:.*]] = affine_map<(d0, d1) -> (-d1 + 999, d0)>
// CHECK-DAG:   #[[POINT:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func @backward
// CHECK-NOT:     scf.for
// CHECK:         %[[R:.*]]:2 = linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "reduction"]
// CHECK-SAME:      outs(%{{.*}}, %{{.*}} : tensor<8xf32>, tensor<1000x8xf32>)
// CHECK:           %[[N:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
// CHECK:           linalg.yield %[[N]], %[[N]] : f32, f32
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @backward(%a: tensor<1000x8xf32>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<1000x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.constant 999 : index
  %c1000 = arith.constant 1000 : index
  %e = tensor.empty() : tensor<8xf32>
  %all = tensor.empty() : tensor<1000x8xf32>
  %r:2 = scf.for %i = %c0 to %c1000 step %c1 iter_args(%h = %x, %s = %all) -> (tensor<8xf32>, tensor<1000x8xf32>) {
    %t = arith.subi %last, %i : index
    %row = tensor.extract_slice %a[%t, 0] [1, 8] [1, 1] : tensor<1000x8xf32> to tensor<8xf32>
    %n = linalg.div ins(%h, %row : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %m = tensor.insert_slice %n into %s[%t, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<1000x8xf32>
    scf.yield %n, %m : tensor<8xf32>, tensor<1000x8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<1000x8xf32>
}

// -----

// The twins: what is inserted is read in the next trip, and a row of rows that there are not.
// CHECK-LABEL: func @reads_what_it_inserts
// CHECK:         scf.for
// CHECK:         scf.for
func.func @reads_what_it_inserts(%a: tensor<1000x8xf32>, %x: tensor<8xf32>) -> (tensor<1000x8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %e = tensor.empty() : tensor<8xf32>
  %r:2 = scf.for %i = %c0 to %c1000 step %c1 iter_args(%h = %x, %s = %a) -> (tensor<8xf32>, tensor<1000x8xf32>) {
    %row = tensor.extract_slice %s[%c0, 0] [1, 8] [1, 1] : tensor<1000x8xf32> to tensor<8xf32>
    %n = linalg.div ins(%h, %row : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %m = tensor.insert_slice %n into %s[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<1000x8xf32>
    scf.yield %n, %m : tensor<8xf32>, tensor<1000x8xf32>
  }
  %q = scf.for %i = %c0 to %c1000 step %c1 iter_args(%h = %x) -> tensor<8xf32> {
    %t = arith.addi %i, %c1 : index
    %row = tensor.extract_slice %a[%t, 0] [1, 8] [1, 1] : tensor<1000x8xf32> to tensor<8xf32>
    %n = linalg.div ins(%h, %row : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %n : tensor<8xf32>
  }
  return %r#1, %q : tensor<1000x8xf32>, tensor<8xf32>
}
