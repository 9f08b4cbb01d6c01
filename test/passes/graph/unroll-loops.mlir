// RUN: weir-opt %s --weir-unroll-loops -split-input-file | FileCheck %s

// The counter is known, and so is what is computed of it: slices lie at constants.
// CHECK-LABEL: func @recurrence
// CHECK-SAME:    %[[XS:.*]]: tensor<7x4xf32>, %[[H0:.*]]: tensor<4xf32>
// CHECK-NOT:     scf.for
// CHECK:         %[[X1:.*]] = tensor.extract_slice %[[XS]][3, 0] [1, 4] [1, 1]
// CHECK:         %[[H1:.*]] = linalg.add ins(%[[H0]], %[[X1]]
// CHECK:         %[[Y1:.*]] = tensor.insert_slice %[[H1]] into %{{.*}}[1, 0] [1, 4] [1, 1]
// CHECK:         %[[X2:.*]] = tensor.extract_slice %[[XS]][5, 0] [1, 4] [1, 1]
// CHECK:         %[[H2:.*]] = linalg.add ins(%[[H1]], %[[X2]]
// CHECK:         %[[Y2:.*]] = tensor.insert_slice %[[H2]] into %[[Y1]][3, 0] [1, 4] [1, 1]
// CHECK-NOT:     linalg.add
// CHECK:         return %[[Y2]], %[[H2]]
func.func @recurrence(%xs: tensor<7x4xf32>, %h0: tensor<4xf32>) -> (tensor<5x4xf32>, tensor<4xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %two = arith.constant 2 : i64
  %last = arith.constant 6 : i64
  %ys0 = tensor.empty() : tensor<5x4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r:2 = scf.for %i = %c1 to %c5 step %c2 iter_args(%ys = %ys0, %h = %h0) -> (tensor<5x4xf32>, tensor<4xf32>) {
    %wide = arith.index_cast %i : index to i64
    %ahead = arith.addi %wide, %two : i64
    %capped = arith.minsi %ahead, %last : i64
    %place = arith.index_cast %capped : i64 to index
    %x = tensor.extract_slice %xs[%place, 0] [1, 4] [1, 1] : tensor<7x4xf32> to tensor<4xf32>
    %next = linalg.add ins(%h, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %y = tensor.insert_slice %next into %ys[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<5x4xf32>
    scf.yield %y, %next : tensor<5x4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<5x4xf32>, tensor<4xf32>
}

// -----

// Two loops in one another; values carried in another order; a loop that takes no step.
// CHECK-LABEL: func @nested
// CHECK-SAME:    %[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>
// CHECK-NOT:     scf.for
// CHECK:         tensor.extract_slice %[[T:.*]][0, 0] [1, 4]
// CHECK:         tensor.extract_slice %[[T]][0, 1] [1, 4]
// CHECK:         tensor.extract_slice %[[T]][1, 0] [1, 4]
// CHECK:         tensor.extract_slice %[[T]][1, 1] [1, 4]
// CHECK:         tensor.extract_slice %[[T]][2, 0] [1, 4]
// CHECK:         tensor.extract_slice %[[T]][2, 1] [1, 4]
// CHECK-NOT:     tensor.extract_slice
// CHECK:         return %{{.*}}, %{{.*}}, %[[A]]
func.func @nested(%a: tensor<4xf32>, %b: tensor<4xf32>, %t: tensor<3x5xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<4xf32>
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a, %y = %b) -> (tensor<4xf32>, tensor<4xf32>) {
    %s = scf.for %j = %c0 to %c2 step %c1 iter_args(%z = %x) -> tensor<4xf32> {
      %p = tensor.extract_slice %t[%i, %j] [1, 4] [1, 1] : tensor<3x5xf32> to tensor<4xf32>
      %w = linalg.add ins(%z, %p : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %w : tensor<4xf32>
    }
    scf.yield %y, %s : tensor<4xf32>, tensor<4xf32>
  }
  %n = scf.for %i = %c2 to %c2 step %c1 iter_args(%x = %a) -> tensor<4xf32> {
    %w = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %w : tensor<4xf32>
  }
  return %r#0, %r#1, %n : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The twin: how often is in the data.
// CHECK-LABEL: func @unknown
// CHECK:         scf.for
func.func @unknown(%x: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xf32>
  %count = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %count : i64 to index
  %r = scf.for %i = %c0 to %end step %c1 iter_args(%z = %x) -> tensor<4xf32> {
    %w = linalg.exp ins(%z : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %w : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// What is long stays a loop.
// CHECK-LABEL: func @long
// CHECK:         scf.for
func.func @long(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.constant 2049 : index
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.for %i = %c0 to %end step %c1 iter_args(%z = %x) -> tensor<4xf32> {
    %w = linalg.exp ins(%z : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %w : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// A loop that counts by itself, as front ends write it: 0, 3, 6.
// CHECK-LABEL: func @counts
// CHECK-NOT:     scf.
// CHECK-COUNT-3: linalg.exp
// CHECK-NOT:     linalg.exp
func.func @counts(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>) {
  %e = tensor.empty() : tensor<4xf32>
  %zero = arith.constant dense<0> : tensor<i32>
  %three = arith.constant 3 : i32
  %end = arith.constant dense<7> : tensor<i32>
  %r:2 = scf.while (%z = %x, %i = %zero) : (tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
    %out = tensor.empty() : tensor<i1>
    %isLess = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
        ins(%i, %end : tensor<i32>, tensor<i32>) outs(%out : tensor<i1>) {
    ^bb0(%a: i32, %b: i32, %o: i1):
      %l = arith.cmpi slt, %a, %b : i32
      linalg.yield %l : i1
    } -> tensor<i1>
    %go = tensor.extract %isLess[] : tensor<i1>
    scf.condition(%go) %z, %i : tensor<4xf32>, tensor<i32>
  } do {
  ^bb0(%z: tensor<4xf32>, %i: tensor<i32>):
    %w = linalg.exp ins(%z : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %a = tensor.extract %i[] : tensor<i32>
    %b = arith.addi %a, %three : i32
    %next = tensor.from_elements %b : tensor<i32>
    scf.yield %w, %next : tensor<4xf32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<i32>
}

// -----

// The twin: data decide when it ends.
// CHECK-LABEL: func @decided
// CHECK:         scf.while
func.func @decided(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %e = tensor.empty() : tensor<4xf32>
  %zero = arith.constant dense<0> : tensor<i32>
  %one = arith.constant 1 : i32
  %r:2 = scf.while (%z = %x, %i = %zero) : (tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
    %a = tensor.extract %i[] : tensor<i32>
    %b = tensor.extract %n[] : tensor<i32>
    %go = arith.cmpi slt, %a, %b : i32
    scf.condition(%go) %z, %i : tensor<4xf32>, tensor<i32>
  } do {
  ^bb0(%z: tensor<4xf32>, %i: tensor<i32>):
    %w = linalg.exp ins(%z : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %a = tensor.extract %i[] : tensor<i32>
    %b = arith.addi %a, %one : i32
    %next = tensor.from_elements %b : tensor<i32>
    scf.yield %w, %next : tensor<4xf32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<i32>
}
